//! Status of an engine and of its IKE SAs.

use crate::attempt::Attempt;
use crate::config::Peer;
use crate::counters::Counters;
use crate::engine::Engine;
use crate::extension::nat::Nat;
use crate::extension::overlap::Windows;
use crate::sa::closing::Ending;
use crate::sa::{Sa, State};
use crypto::Secret;
use model::{
    ChildSaId, Identity, IkeSaId, InnerAddresses, Instant, Kem, Lease, Path, PeerId, Suite,
};
use std::time::Duration;
use wire::ike::Header;

/// State of an IKE SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaState {
    /// IKE_SA_INIT, or IKE_SESSION_RESUME, was sent.
    Connecting,
    /// IKE_AUTH, or an additional key exchange before it, is in progress.
    Authenticating,
    /// The IKE SA is up.
    Established,
    /// The IKE SA is being deleted.
    Closing,
}

/// Status of one IKE SA.
#[derive(Clone, Debug)]
pub struct SaStatus {
    /// Local id of the IKE SA.
    pub id: IkeSaId,
    /// The peer; `None` until it is known.
    pub peer: Option<PeerId>,
    /// State.
    pub state: SaState,
    /// True if we initiated it.
    pub initiator: bool,
    /// The initiator's SPI.
    pub spi_i: u64,
    /// The responder's SPI, zero until it is known.
    pub spi_r: u64,
    /// Path of its messages.
    pub path: Path,
    /// Result of NAT detection.
    pub nat: Option<Nat>,
    /// True if its keys include a PPK.
    pub ppk: bool,
    /// The additional key exchanges that its keys include.
    pub kems: Vec<Kem>,
    /// `None` if it cannot move; otherwise true if we choose its path.
    pub moves: Option<bool>,
    /// Window sizes, and the number of outstanding requests.
    pub windows: Windows,
    /// Time at which its set-up began.
    pub began: Instant,
    /// Time at which it came up.
    pub since: Option<Instant>,
    /// Time of the last authentic message, and of the last packet of its child SAs that the caller
    /// has reported. `None` until it is up.
    pub heard: Option<Instant>,
    /// Smoothed time from a request to its response, if it was measured on this path.
    pub round_trip: Option<Duration>,
    /// Number of times that its oldest outstanding request was sent; 0 if none is outstanding.
    pub tries: u32,
    /// True if either end may clone it.
    pub clones: bool,
    /// True if it is a clone that has not yet replaced another IKE SA.
    pub aside: bool,
    /// True if another IKE SA has replaced it, and it only waits for outstanding exchanges.
    pub leaving: bool,
    /// Inner addresses that one end has assigned to the other on this IKE SA.
    pub addresses: Option<InnerAddresses>,
    /// Its child SAs.
    pub children: Vec<ChildSaId>,
    /// True if an unauthenticated message refused it, while it is being established.
    pub refused: bool,
    /// True if another one may be initiated beside it: it was refused, or its first message was
    /// answered and a later one is not.
    pub allows_another: bool,
}

/// Keys of an IKE SA, for decrypting a capture. Export them only if the operator asks for that.
#[derive(Clone, Debug)]
pub struct KeyLog {
    /// The initiator's SPI.
    pub spi_i: u64,
    /// The responder's SPI.
    pub spi_r: u64,
    /// HMAC key of the initiator's messages; empty with an AEAD.
    pub sk_ai: Secret,
    /// HMAC key of the responder's messages; empty with an AEAD.
    pub sk_ar: Secret,
    /// Encryption key and salt of the initiator's messages.
    pub sk_ei: Secret,
    /// Encryption key and salt of the responder's messages.
    pub sk_er: Secret,
    /// Suite of the IKE SA.
    pub suite: Suite,
}

#[cfg(test)]
impl Engine {
    /// Returns the wall-clock time.
    pub(crate) const fn today(&self) -> crypto::UnixTime {
        self.today
    }
}

/// Getters.
impl Engine {
    /// Returns all configured peers.
    pub fn peers(&self) -> &[Peer] {
        &self.config.peers
    }

    /// Returns a peer, if it is configured.
    pub fn peer(&self, peer: PeerId) -> Option<&Peer> {
        self.config.peer(peer)
    }

    /// Returns the peers that prove an identity: one for each address that they may connect from.
    pub fn peers_named(&self, identity: &Identity) -> impl Iterator<Item = &Peer> {
        self.config.named(identity)
    }

    /// Returns the peer that an initiator with this identity would be, or be a user of.
    pub fn claimed(&self, identity: &Identity) -> Option<PeerId> {
        self.config.claimed(identity).map(|peer| peer.id)
    }

    /// Returns the licensed nodes that we distribute keys to.
    pub fn licensed(&self) -> impl Iterator<Item = &Peer> {
        self.config.licensed()
    }

    /// Returns the status of every IKE SA that is being established, up or being deleted.
    pub fn sas(&self) -> impl Iterator<Item = SaStatus> + '_ {
        self.sas.values().filter_map(|sa| self.status(sa))
    }

    /// Returns the status of the IKE SAs with one peer.
    pub fn sas_of(&self, peer: PeerId) -> impl Iterator<Item = SaStatus> {
        self.sas_with(peer).filter_map(|sa| self.status(sa))
    }

    /// Returns the status of one IKE SA.
    pub fn sa(&self, sa: IkeSaId) -> Option<SaStatus> {
        self.status(self.sas.get(&sa)?)
    }

    /// Returns the number of IKE SAs with a peer that are up.
    pub fn count_up(&self, peer: PeerId) -> usize {
        self.sas_with(peer).filter_map(Sa::established).count()
    }

    /// Returns the IKE SAs that [`Self::handle_timeout`] would process now, with their child SAs.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = (IkeSaId, Vec<ChildSaId>)> {
        let due = self.deadlines.due(now);
        due.map(|id| (id, self.children(id)))
    }

    /// Returns the child SAs of an IKE SA.
    pub fn children(&self, sa: IkeSaId) -> Vec<ChildSaId> {
        let up = self.sas.get(&sa).and_then(|sa| sa.established());
        up.map_or_else(Vec::new, |up| up.children.ids())
    }

    /// Returns true if the peer of an established IKE SA sent our vendor ID.
    pub fn has_our_vendor_id(&self, sa: IkeSaId) -> bool {
        let up = self.sas.get(&sa).and_then(|sa| sa.established());
        up.is_some_and(|up| up.terms.private)
    }

    /// Returns the keys of an established IKE SA.
    pub fn key_log(&self, sa: IkeSaId) -> Option<KeyLog> {
        let sa = self.sas.get(&sa)?;
        let cipher = &sa.established()?.keys.cipher;
        Some(KeyLog {
            spi_i: sa.core.spi_i,
            spi_r: sa.core.spi_r,
            sk_ai: cipher.keys.sk_ai.clone(),
            sk_ar: cipher.keys.sk_ar.clone(),
            sk_ei: cipher.keys.sk_ei.clone(),
            sk_er: cipher.keys.sk_er.clone(),
            suite: cipher.suite,
        })
    }

    /// Returns every lease of every pool.
    pub fn leases(&self) -> impl Iterator<Item = Lease> {
        self.pools.leases()
    }

    /// Returns the record of the last attempt with a peer.
    pub fn attempt(&self, peer: PeerId) -> Option<Attempt> {
        self.out.attempts.get(peer, &self.config)
    }

    /// Returns the record of the last attempt by an unauthenticated initiator that could not be
    /// attributed to a peer.
    pub const fn stranger(&self) -> Option<&Attempt> {
        self.out.attempts.stranger()
    }

    /// Returns the peer whose IKE SA a message belongs to, if the peer is known. The
    /// message, sent or received, is not necessarily authentic.
    pub fn peer_of(&self, message: &[u8]) -> Option<PeerId> {
        let header = Header::peek(message).ok()?;
        let spis = [header.spi_i, header.spi_r];
        let id = spis.iter().find_map(|spi| self.by_spi.get(spi))?;
        self.sas.get(id)?.core.peer
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &Counters {
        &self.out.counters
    }

    /// Returns the number of initiators that are not yet authenticated.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    fn status(&self, sa: &Sa) -> Option<SaStatus> {
        let state = match &sa.state {
            State::InitSent(_) | State::ResumeSent(_) => SaState::Connecting,
            State::KemSent(_)
            | State::AuthSent(_)
            | State::AwaitEntry(_)
            | State::AwaitAuth(_)
            | State::AwaitProof(_) => SaState::Authenticating,
            State::Established(_) => SaState::Established,
            State::Ending(Ending::Closing(_)) => SaState::Closing,
            State::Ending(_) => return None,
        };
        let up = sa.established();
        Some(SaStatus {
            id: sa.core.id,
            peer: sa.core.peer,
            state,
            initiator: sa.core.initiator,
            spi_i: sa.core.spi_i,
            spi_r: sa.core.spi_r,
            path: sa.core.path,
            nat: up.and(sa.core.nat),
            ppk: up.is_some_and(|up| up.keys.ppk),
            kems: up.map_or_else(Vec::new, |up| up.keys.kems.clone()),
            moves: up.and_then(|up| up.chooses_path()),
            windows: sa.core.windows(),
            began: sa.core.began,
            since: up.map(|up| up.terms.contact.since),
            heard: up.map(|up| up.liveness.heard),
            round_trip: sa.core.requests.round_trip(),
            tries: sa.core.requests.tries(),
            clones: up.is_some_and(|up| up.terms.clones),
            aside: up.is_some_and(|up| up.replacement.aside.is_some()),
            leaving: up.is_some_and(|up| up.is_leaving()),
            addresses: up.and_then(|up| up.terms.addresses),
            children: up.map_or_else(Vec::new, |up| up.children.ids()),
            refused: sa.core.refused,
            allows_another: sa.allows_another(),
        })
    }
}
