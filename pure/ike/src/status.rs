//! What an engine shows of its IKE SAs.

use crate::attempt::Attempt;
use crate::counters::Counters;
use crate::down_reason::DownReason;
use crate::engine::Engine;
use crate::extension::nat::Nat;
use crate::extension::overlap::Windows;
use crate::sa::{Sa, State};
use crypto::Secret;
use model::{ChildSaId, IkeSaId, InnerAddresses, Instant, Kem, Lease, Path, Suite};

/// How far an IKE SA is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaState {
    /// IKE_SA_INIT was sent.
    Connecting,
    /// IKE_AUTH is under way, or an additional key exchange before it.
    Authenticating,
    /// It is up.
    Established,
    /// It is being deleted.
    Closing,
}

/// One IKE SA for `status`.
#[derive(Clone, Debug)]
pub struct SaStatus {
    /// Our name of it.
    pub id: IkeSaId,
    /// The peer's name in the configuration; `None` until it is known.
    pub peer: Option<String>,
    /// How far it is.
    pub state: SaState,
    /// Whether we began it.
    pub initiator: bool,
    /// The initiator's SPI.
    pub spi_i: u64,
    /// The responder's SPI, zero until it is known.
    pub spi_r: u64,
    /// Where its messages go.
    pub path: Path,
    /// What NAT detection found.
    pub nat: Option<Nat>,
    /// Whether a PPK is in its keys.
    pub ppk: bool,
    /// The additional key exchanges that are in its keys.
    pub kems: Vec<Kem>,
    /// Whether it can move, and then whether it is for us to decide.
    pub moves: Option<bool>,
    /// How many requests may be under way, and are.
    pub windows: Windows,
    /// Since when it is up.
    pub since: Option<Instant>,
    /// Whether either end may clone it.
    pub clones: bool,
    /// Whether it is a clone that has not taken the place of another yet.
    pub aside: bool,
    /// Whether another has its place, and it only waits for what is under way.
    pub leaving: bool,
    /// The addresses inside that one end lends the other for it.
    pub addresses: Option<InnerAddresses>,
    /// Its children.
    pub children: Vec<ChildSaId>,
    /// The last unprotected refusal, while it is being made.
    pub refused: Option<DownReason>,
}

/// The keys of an IKE SA, for the decryption of a capture. Only for who asked for it.
#[derive(Clone, Debug)]
pub struct KeyLog {
    /// The initiator's SPI.
    pub spi_i: u64,
    /// The responder's SPI.
    pub spi_r: u64,
    /// Key of the HMAC over what the initiator sends; empty with an AEAD.
    pub sk_ai: Secret,
    /// The same for the responder.
    pub sk_ar: Secret,
    /// Key and salt of what the initiator sends.
    pub sk_ei: Secret,
    /// Key and salt of what the responder sends.
    pub sk_er: Secret,
    /// The cipher.
    pub suite: Suite,
}

/// Getters.
impl Engine {
    /// Every IKE SA that is being made, up or being deleted.
    pub fn sas(&self) -> impl Iterator<Item = SaStatus> + '_ {
        self.sas.values().filter_map(|sa| self.status(sa))
    }

    /// One of them.
    pub fn sa(&self, sa: IkeSaId) -> Option<SaStatus> {
        self.status(self.sas.get(&sa)?)
    }

    /// How many IKE SAs with a peer are up.
    pub fn count_up(&self, peer: &str) -> usize {
        self.sas_with(peer).filter_map(Sa::established).count()
    }

    /// The IKE SAs for which [`Self::handle_timeout`] has something to do now, with their children.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = (IkeSaId, Vec<ChildSaId>)> {
        self.timeline.due(now).map(|id| {
            let up = self.sas.get(&id).and_then(|sa| sa.established());
            (id, up.map_or_else(Vec::new, |up| up.children()))
        })
    }

    /// Returns the child SAs of an IKE SA.
    pub fn children(&self, sa: IkeSaId) -> Vec<ChildSaId> {
        let up = self.sas.get(&sa).and_then(|sa| sa.established());
        up.map_or_else(Vec::new, |up| up.children())
    }

    /// The keys of an established IKE SA.
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

    /// Every lease of every pool.
    pub fn leases(&self) -> impl Iterator<Item = Lease> {
        self.pools.leases()
    }

    /// What the last attempt with a peer showed.
    pub fn attempt(&self, peer: &str) -> Option<Attempt> {
        self.out.attempts.get(peer, &self.config)
    }

    /// What the last attempt of somebody showed who has not proved to be any peer.
    pub const fn stranger(&self) -> Option<&Attempt> {
        self.out.attempts.stranger()
    }

    /// How often each thing happened.
    pub const fn counters(&self) -> &Counters {
        &self.out.counters
    }

    /// Initiators that have not proved who they are.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    fn status(&self, sa: &Sa) -> Option<SaStatus> {
        let state = match &sa.state {
            State::InitSent(_) => SaState::Connecting,
            State::KemSent(_) | State::AuthSent(_) | State::AwaitAuth(_) => SaState::Authenticating,
            State::Established(_) => SaState::Established,
            State::Closing(_) => SaState::Closing,
            State::Retired(_) | State::Lingering(_) | State::Gone => return None,
        };
        let up = sa.established();
        let refused = match &sa.state {
            State::InitSent(init) => init.refused.clone(),
            _ => None,
        };
        Some(SaStatus {
            id: sa.core.id,
            peer: sa.core.peer.clone(),
            state,
            initiator: sa.core.initiator,
            spi_i: sa.core.spi_i,
            spi_r: sa.core.spi_r,
            path: sa.core.path,
            nat: up.and(sa.core.nat),
            ppk: up.is_some_and(|up| up.keys.ppk),
            kems: up.map_or_else(Vec::new, |up| up.keys.kems.clone()),
            moves: up.and_then(|up| Some(up.mobike.as_ref()?.decides)),
            windows: sa.core.windows(),
            since: up.map(|up| up.contact.since),
            clones: up.is_some_and(|up| up.may_be_cloned()),
            aside: up.is_some_and(|up| up.is_aside()),
            leaving: up.is_some_and(|up| up.is_leaving()),
            addresses: up.and_then(|up| up.addresses),
            children: up.map_or_else(Vec::new, |up| up.children()),
            refused,
        })
    }
}
