//! Records of the last attempt with each peer, which explain why a tunnel is down.
//!
//! There is one record per configured peer and one for all unknown peers together, so memory is
//! bounded. The claims of an unauthenticated initiator are stored under the claimed peer only while
//! that peer has no IKE SA that is up or being established. Otherwise they go to the shared record.

use crate::allowed_suites::{AllowedEspSuites, AllowedIkeSuites};
use crate::auth::Proof;
use crate::config::{Config, Peer, PeerRole};
use crate::down_reason::DownReason;
use crate::exchange::auth::{Child, initiator_identity, responder_identity};
use crate::exchange::{find, find_notify, first_error, proposals};
use crate::extension::fragment::Uncut;
use crate::extension::ppk;
use crate::extension::zones::{self, ZoneMap};
use crate::peer_table::PeerTable;
use crate::proposal::{offer_esp, offer_ike};
use crate::refusal::Refusal;
use crate::sa::core::Core;
use crate::signature;
use crypto::{Certificate, RawKey};
use model::{Identity, IkeSaId, Instant, Path, PeerId, Spi, TrafficSelector, ZoneAgreement};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use wire::ike::{AuthMethod, GroupId, Message, NotifyType, Payload, Proposal, Transform};

/// Maximum number of list entries that a record keeps.
const MOST: usize = 64;

/// The last attempt to establish an IKE SA with a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    sa: IkeSaId,
    /// Time of its start.
    pub began: Instant,
    /// True if we initiated it.
    pub initiator: bool,
    /// Path of its messages.
    pub path: Path,
    /// Number of times that the current or last request was sent.
    pub tries: u32,
    /// Our offer, or our policy as responder. Stored only when the attempt fails, because a gateway
    /// has ten thousand that do not. For all others, [`crate::Engine::attempt`] returns that of the
    /// current configuration.
    pub ours: Offer,
    /// The other end's offer or answer, as far as known.
    pub theirs: Offer,
    /// Size of our IKE_AUTH or of an earlier message, if so long that IP has to fragment it.
    pub uncut: Option<Uncut>,
    /// Remarks that did not end the attempt.
    pub remarks: Vec<Refusal>,
    /// Outcome; `None` while the attempt is in progress.
    pub end: Option<End>,
}

/// Outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The IKE SA is up.
    Up,
    /// The IKE SA did not come up, or is down again.
    Down(DownReason),
    /// We refused the initiator.
    Refused(Refusal),
}

/// One end's offer for an IKE SA and its child SA. Unknown fields are empty. There is one offer per
/// peer, so large optional fields are boxed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Algorithms for IKE.
    pub ike: Vec<Transform>,
    /// Algorithms for ESP.
    pub esp: Vec<Transform>,
    /// Identity that the end claims.
    pub identity: Option<Identity>,
    /// Identity that the end expects of the other one.
    pub expects: Option<Identity>,
    /// Authentication method of the end.
    pub auth: Option<AuthMethod>,
    /// Name of the PPK in the keys; empty in an answer that accepts the other end's PPK.
    pub ppk: Option<String>,
    /// Certificate that the end presented. It is not necessarily trusted.
    pub certificate: Option<Box<Certificate>>,
    /// Raw public key of the end, if it needs no certificate.
    pub key: Option<Box<RawKey>>,
    /// Raw public key configured for the other end. Set in our own offer only.
    pub expected_key: Option<Box<RawKey>>,
    /// Names of the trusted CAs. Set in our own offer only.
    pub authorities: Vec<String>,
    /// Selectors of the end's own traffic.
    pub local: Vec<TrafficSelector>,
    /// Selectors of the other end's traffic.
    pub remote: Vec<TrafficSelector>,
    /// Zones and licences.
    pub zones: Option<Box<ZoneAgreement>>,
    /// Error notify that the end answered with.
    pub error: Option<NotifyType>,
}

impl Offer {
    /// Creates the offer to the other end that the configuration of a peer allows.
    fn of(peer: &Peer, theirs: &Self, config: &Config) -> Self {
        let is_user = |claimed: &&Identity| {
            let users = peer.users.as_ref();
            users.is_some_and(|users| users.identities.matches(claimed))
        };
        let user = theirs.identity.as_ref().filter(is_user);
        let mut offer = Self {
            ike: named(&offer_ike(&AllowedIkeSuites::of(peer))),
            identity: Some(config.identity.clone()),
            expects: Some(user.unwrap_or(&peer.identity).clone()),
            auth: Some(AuthMethod::SHARED_KEY),
            ppk: peer.ppk.as_ref().map(|ppk| ppk.id.clone()),
            ..Self::default()
        };
        let own = config.credential.as_ref();
        let proof = Proof::of(peer);
        if proof.is_signature() {
            offer.auth = Some(AuthMethod::DIGITAL_SIGNATURE);
        }
        if proof.known_key().is_some() {
            offer.key = own.map(|own| Box::new(own.key.clone()));
            offer.expected_key = peer.key.clone();
        }
        if proof.is_certified() {
            let trust = peer.certificate.trust(&config.trust);
            let authorities = trust.authorities().iter();
            let certificate = own.and_then(|own| signature::first(&own.chain));
            offer.certificate = certificate.map(Box::new);
            offer.authorities = kept(authorities.map(|ca| ca.subject.clone()));
        }
        if let PeerRole::Vpn {
            local,
            remote,
            addressing: _,
            zones,
            mode: _,
        } = &peer.role
        {
            offer.esp = named(&offer_esp(&AllowedEspSuites::configured(peer), Spi(0)));
            offer.local = kept(local.to_vec());
            offer.remote = kept(remote.to_vec());
            offer.zones = zones::offer(zones).map(Box::new);
        }
        offer
    }

    /// Creates the offer of an initiator from its first message.
    pub(crate) fn of_initiator(first: &Message) -> Self {
        let mut offer = Self::default();
        offer.read_init(first);
        offer
    }

    /// Fills in the fields that an IKE_SA_INIT message holds.
    pub(crate) fn read_init(&mut self, message: &Message) {
        self.ike = transforms(message);
        self.error = first_error(message);
        // INVALID_KE_PAYLOAD names the one group that the responder accepts (RFC 7296 section 1.3).
        let group = find_notify(message, NotifyType::INVALID_KE_PAYLOAD);
        if let Some(&[high, low]) = group.map(|notify| notify.data.as_slice()) {
            let group = GroupId(u16::from_be_bytes([high, low]));
            self.ike.push(Transform::group(group));
        }
    }

    /// Fills in the fields that an IKE_AUTH message holds. The identity may be that of an earlier
    /// round.
    pub(crate) fn read_auth(&mut self, message: &Message, initiator: bool, private: bool) {
        let (idi, idr) = (initiator_identity(message), responder_identity(message));
        let (identity, expects) = match initiator {
            true => (idi.cloned(), idr.cloned()),
            false => (idr.cloned(), None),
        };
        self.identity = identity.or(self.identity.take());
        self.expects = expects;
        self.auth = find(message, |payload| match payload {
            Payload::Authentication(proof) => Some(proof.method),
            _ => None,
        });
        self.ppk = match initiator {
            true => ppk::named(message),
            false => ppk::is_confirmed(message).then(String::new),
        };
        self.certificate = signature::first(&signature::chain(message)).map(Box::new);
        self.key = signature::sent_key(message).map(Box::new);
        self.esp = transforms(message);
        if let Some(child) = Child::read(message) {
            let (local, remote) = match initiator {
                true => (child.initiator, child.responder),
                false => (child.responder, child.initiator),
            };
            (self.local, self.remote) = (kept(local.to_vec()), kept(remote.to_vec()));
        }
        let zones = private.then(|| ZoneMap::read(message)).flatten();
        self.zones = zones.map(|zones| Box::new(zones.agreement));
        self.error = first_error(message);
    }
}

/// All records.
#[derive(Default)]
pub(crate) struct Attempts {
    of: FxHashMap<PeerId, Box<Attempt>>,
    stranger: Option<Attempt>,
    /// IKE SAs that are up, by their peers.
    up: FxHashMap<PeerId, BTreeSet<IkeSaId>>,
}

impl Attempts {
    /// Returns the last attempt with a peer. Unless the attempt failed, our offer is that of the
    /// current configuration.
    pub(crate) fn get(&self, peer: PeerId, config: &PeerTable) -> Option<Attempt> {
        let mut attempt = Attempt::clone(self.of.get(&peer)?);
        if !attempt.is_failed() {
            attempt.ours = Offer::of(config.peer(peer)?, &attempt.theirs, config);
        }
        Some(attempt)
    }

    /// Removes what is known of a peer.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.of.remove(&peer);
        self.up.remove(&peer);
    }

    pub(crate) const fn stranger(&self) -> Option<&Attempt> {
        self.stranger.as_ref()
    }

    /// Removes the records of peers that the configuration does not have.
    pub(crate) fn retain(&mut self, config: &PeerTable) {
        self.of.retain(|peer, _| config.peer(*peer).is_some());
    }

    /// Starts a record, as we initiate an IKE SA or an initiator has authenticated.
    pub(crate) fn begin(&mut self, core: &Core, config: &PeerTable, theirs: Offer, now: Instant) {
        let Some(peer) = core.peer(config) else {
            return;
        };
        let attempt = Attempt::new(core, Offer::default(), theirs, now);
        self.of.insert(peer.id, Box::new(attempt));
    }

    /// Records the refusal of an unauthenticated initiator. `claimed` is the peer that it claims to
    /// be.
    pub(crate) fn refuse(
        &mut self,
        core: &Core,
        claimed: Option<&Peer>,
        config: &Config,
        theirs: Offer,
        why: Refusal,
        now: Instant,
    ) {
        let ours = claimed.map_or_else(
            || Offer {
                identity: Some(config.identity.clone()),
                ..Offer::default()
            },
            |peer| Offer::of(peer, &theirs, config),
        );
        let attempt = Attempt {
            end: Some(End::Refused(why)),
            ..Attempt::new(core, ours, theirs, now)
        };
        match claimed.filter(|peer| !self.is_busy(peer.id)) {
            Some(peer) => drop(self.of.insert(peer.id, Box::new(attempt))),
            None => self.stranger = Some(attempt),
        }
    }

    /// Records what the other end of an attempt sent. Of attempts at several addresses, the record
    /// is about the one that was answered last.
    pub(crate) fn learn(&mut self, core: &Core, learn: impl FnOnce(&mut Offer)) {
        let record = core.peer.and_then(|peer| self.of.get_mut(&peer));
        if let Some(record) = record.filter(|record| core.raced && record.end.is_none()) {
            record.sa = core.id;
        }
        if let Some(attempt) = self.current(core) {
            attempt.path = core.path;
            learn(&mut attempt.theirs);
        }
    }

    /// Records the size of our IKE_AUTH, or of an earlier message, if IP has to fragment it.
    pub(crate) fn learn_uncut(&mut self, core: &Core, uncut: Option<Uncut>) {
        if let Some(attempt) = self.current(core) {
            attempt.uncut = uncut;
        }
    }

    /// Records the transmission or retransmission of a request.
    pub(crate) fn sent(&mut self, core: &Core, again: bool) {
        if let Some(attempt) = self.current(core) {
            attempt.path = core.path;
            attempt.tries = if again { attempt.tries + 1 } else { 1 };
        }
    }

    /// Adds a remark.
    pub(crate) fn remark(&mut self, peer: PeerId, remark: &Refusal) {
        if let Some(attempt) = self.of.get_mut(&peer)
            && attempt.remarks.len() < MOST
            && !attempt.remarks.contains(remark)
            && attempt.end != Some(End::Refused(remark.clone()))
        {
            attempt.remarks.push(remark.clone());
        }
    }

    /// Records the end of an attempt, or of the IKE SA that it established.
    pub(crate) fn end(&mut self, core: &Core, end: End, config: &PeerTable) {
        if let Some(peer) = core.peer {
            match end {
                End::Up => self.note_up(peer, core.id),
                End::Down(_) | End::Refused(_) => self.note_down(peer, core.id),
            }
        }
        if let Some(attempt) = self.current(core) {
            attempt.end = Some(end);
            if let Some(peer) = core.peer(config).filter(|_| attempt.is_failed()) {
                attempt.ours = Offer::of(peer, &attempt.theirs, config);
            }
        }
    }

    /// Records a clone of an IKE SA, which is up as well.
    pub(crate) fn cloned(&mut self, clone: &Core) {
        if let Some(peer) = clone.peer {
            self.note_up(peer, clone.id);
        }
    }

    fn note_up(&mut self, peer: PeerId, sa: IkeSaId) {
        self.up.entry(peer).or_default().insert(sa);
    }

    fn note_down(&mut self, peer: PeerId, sa: IkeSaId) {
        if let Some(sas) = self.up.get_mut(&peer) {
            sas.remove(&sa);
            if sas.is_empty() {
                self.up.remove(&peer);
            }
        }
    }

    /// Assigns the record of an IKE SA to the clone that replaces it.
    pub(crate) fn hand_over(&mut self, old: IkeSaId, clone: &Core) {
        let attempt = clone.peer.and_then(|peer| self.of.get_mut(&peer));
        if let Some(attempt) = attempt.filter(|attempt| attempt.sa == old) {
            attempt.sa = clone.id;
        }
    }

    /// Assigns the record of an attempt to an older one, which succeeded instead.
    pub(crate) fn succeed(&mut self, newer: IkeSaId, older: &Core) {
        let attempt = older.peer.and_then(|peer| self.of.get_mut(&peer));
        if let Some(attempt) = attempt.filter(|attempt| attempt.sa == newer) {
            (attempt.sa, attempt.path) = (older.id, older.path);
            attempt.end = Some(End::Up);
        }
    }

    fn current(&mut self, core: &Core) -> Option<&mut Attempt> {
        let attempt = self.of.get_mut(&core.peer?)?;
        (attempt.sa == core.id).then_some(attempt)
    }

    /// Returns true if a peer has an IKE SA that is up or being established.
    fn is_busy(&self, peer: PeerId) -> bool {
        let last = self.of.get(&peer);
        self.up.contains_key(&peer) || last.is_some_and(|last| last.end.is_none())
    }
}

impl Attempt {
    const fn is_failed(&self) -> bool {
        matches!(self.end, Some(End::Down(_) | End::Refused(_)))
    }

    const fn new(core: &Core, ours: Offer, theirs: Offer, now: Instant) -> Self {
        Self {
            sa: core.id,
            began: now,
            initiator: core.initiator,
            path: core.path,
            tries: 0,
            ours,
            theirs,
            uncut: None,
            remarks: Vec::new(),
            end: None,
        }
    }
}

/// Returns every algorithm in the SA payload of a message.
fn transforms(message: &Message) -> Vec<Transform> {
    named(proposals(message).unwrap_or_default())
}

/// Returns every algorithm in the proposals.
fn named(proposals: &[Proposal]) -> Vec<Transform> {
    let all = proposals.iter().flat_map(|proposal| &proposal.transforms);
    kept(all).into_iter().cloned().collect()
}

/// Removes repetitions from a list, and bounds its length.
fn kept<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for item in items {
        if kept.len() < MOST && !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept.shrink_to_fit();
    kept
}
