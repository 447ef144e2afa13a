//! What the last attempt with each peer showed, for a person who asks why there is no tunnel.
//!
//! There is one record for each configured peer and one for all strangers together, so nobody can
//! fill memory. What an initiator claims that has proved nothing is kept under the name it claims
//! only while nothing of that peer is up or under way; otherwise it counts as a stranger's.

use crate::config::{Config, Peer, PeerRole};
use crate::directory::Directory;
use crate::down_reason::DownReason;
use crate::exchange::auth::{Child, responder_identity};
use crate::exchange::{find, find_notify, first_error, proposals};
use crate::extension::fragment::Uncut;
use crate::extension::ppk;
use crate::extension::zones::{self, ZoneMap};
use crate::menu::{EspMenu, IkeMenu};
use crate::proposal::{offer_esp, offer_ike};
use crate::refusal::Refusal;
use crate::sa::Core;
use crate::signature;
use crypto::{Certificate, RawKey};
use model::{Identity, IkeSaId, Instant, Path, Spi, TrafficSelector, ZoneAgreement};
use std::collections::BTreeMap;
use wire::ike::{AuthMethod, Datagram, GroupId, Message, NotifyType, Payload, Proposal, Transform};

/// More of a list than this is not kept.
const MOST: usize = 64;

/// The last time that an IKE SA with a peer was to be made, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    sa: IkeSaId,
    /// When it began.
    pub began: Instant,
    /// Whether we began it.
    pub initiator: bool,
    /// Between which addresses and ports.
    pub path: Path,
    /// How often the request that is or was awaiting an answer was sent.
    pub tries: u32,
    /// What we offered or would accept. Kept from the moment it fails: a gateway has ten thousand that
    /// do not.
    pub ours: Offer,
    /// What the other end offered or answered, as far as it said.
    pub theirs: Offer,
    /// What we prove ourselves with, or send before, if it is so long that IP has to cut it.
    pub uncut: Option<Uncut>,
    /// What was remarkable and ended nothing.
    pub remarks: Vec<Refusal>,
    /// How it ended; `None` while it is under way.
    pub end: Option<End>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The IKE SA is up.
    Up,
    /// It is not, or not any more.
    Down(DownReason),
    /// We refused.
    Refused(Refusal),
}

/// What one end wants of an IKE SA and its child. Empty where it did not say. There is one for each peer,
/// so what is large and rare is in a box.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Algorithms for IKE.
    pub ike: Vec<Transform>,
    /// Algorithms for ESP.
    pub esp: Vec<Transform>,
    /// Who it says it is.
    pub identity: Option<Identity>,
    /// Whom it expects at the other end.
    pub expects: Option<Identity>,
    /// How it proves its identity.
    pub auth: Option<AuthMethod>,
    /// The name of the PPK in its keys; empty in an answer that takes the other end's.
    pub ppk: Option<String>,
    /// The certificate it proves that with; not all of what it says need be true.
    pub certificate: Option<Box<Certificate>>,
    /// The public key that it proves that with where it needs no certificate.
    pub key: Option<Box<RawKey>>,
    /// Our own: the public key by which we know the other end.
    pub expected_key: Option<Box<RawKey>>,
    /// Our own: the names of the CAs whose certificates we believe.
    pub authorities: Vec<String>,
    /// What of its own the tunnel is to carry.
    pub local: Vec<TrafficSelector>,
    /// What of the other end's the tunnel is to carry.
    pub remote: Vec<TrafficSelector>,
    /// Zones and licences.
    pub zones: Option<Box<ZoneAgreement>>,
    /// The error it answered with.
    pub error: Option<NotifyType>,
}

impl Offer {
    /// What the configuration of a peer allows.
    fn of(peer: &Peer, config: &Config) -> Self {
        let mut offer = Self {
            ike: named(&offer_ike(&IkeMenu::of(peer))),
            identity: Some(config.identity.clone()),
            expects: Some(peer.identity.clone()),
            auth: Some(AuthMethod::SHARED_KEY),
            ppk: peer.ppk.as_ref().map(|ppk| ppk.id.clone()),
            ..Self::default()
        };
        if peer.psk.is_none() {
            let own = config.credential.as_ref();
            offer.auth = Some(AuthMethod::DIGITAL_SIGNATURE);
            if peer.key.is_some() {
                offer.key = own.map(|own| Box::new(own.key.clone()));
                offer.expected_key = peer.key.clone().map(Box::new);
            } else {
                let authorities = config.trust.authorities().iter();
                let certificate = own.and_then(|own| signature::first(&own.chain));
                offer.certificate = certificate.map(Box::new);
                offer.authorities = kept(authorities.map(|ca| ca.subject.clone()));
            }
        }
        if let PeerRole::Vpn {
            local,
            remote,
            addressing: _,
            zones,
            mode: _,
        } = &peer.role
        {
            offer.esp = named(&offer_esp(&EspMenu::of(peer, Vec::new()), Spi(0)));
            offer.local = kept(local.clone());
            offer.remote = kept(remote.clone());
            offer.zones = zones::offer(zones).map(Box::new);
        }
        offer
    }

    /// What a message of IKE_SA_INIT says of its sender.
    pub(crate) fn read_init(&mut self, message: &Message) {
        self.ike = transforms(message);
        self.error = first_error(message);
        // It names the one group it would take (RFC 7296 section 1.3).
        let group = find_notify(message, NotifyType::INVALID_KE_PAYLOAD);
        if let Some(&[high, low]) = group.map(|notify| notify.data.as_slice()) {
            let group = GroupId(u16::from_be_bytes([high, low]));
            self.ike.push(Transform::group(group));
        }
    }

    /// What a message of IKE_AUTH says of its sender.
    pub(crate) fn read_auth(&mut self, message: &Message, initiator: bool, private: bool) {
        let (idi, idr) = (initiator_identity(message), responder_identity(message));
        (self.identity, self.expects) = match initiator {
            true => (idi.cloned(), idr.cloned()),
            false => (idr.cloned(), None),
        };
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

/// The records.
#[derive(Default)]
pub(crate) struct Attempts {
    of: BTreeMap<String, Box<Attempt>>,
    stranger: Option<Attempt>,
    /// IKE SAs that are up, and whose they are.
    up: BTreeMap<IkeSaId, String>,
}

impl Attempts {
    /// The last attempt with a peer. What we offer is what the configuration says for as long as
    /// nothing has failed.
    pub(crate) fn get(&self, peer: &str, config: &Directory) -> Option<Attempt> {
        let mut attempt = Attempt::clone(self.of.get(peer)?);
        if !attempt.is_failed() {
            attempt.ours = Offer::of(config.peer(peer)?, config);
        }
        Some(attempt)
    }

    pub(crate) const fn stranger(&self) -> Option<&Attempt> {
        self.stranger.as_ref()
    }

    /// Forgets all peers but those the configuration has.
    pub(crate) fn retain(&mut self, config: &Directory) {
        self.of.retain(|name, _| config.peer(name).is_some());
    }

    /// We begin an IKE SA, or somebody has proved to be a peer.
    pub(crate) fn begin(&mut self, core: &Core, config: &Directory, theirs: Offer, now: Instant) {
        let Some(peer) = core.peer(config) else {
            return;
        };
        let attempt = Attempt::new(core, Offer::default(), theirs, now);
        self.of.insert(peer.name.clone(), Box::new(attempt));
    }

    /// Somebody was refused who has proved nothing: `claimed` is the peer it says it is.
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
            |peer| Offer::of(peer, config),
        );
        let attempt = Attempt {
            end: Some(End::Refused(why)),
            ..Attempt::new(core, ours, theirs, now)
        };
        match claimed.filter(|peer| !self.is_busy(&peer.name)) {
            Some(peer) => drop(self.of.insert(peer.name.clone(), Box::new(attempt))),
            None => self.stranger = Some(attempt),
        }
    }

    /// Learns what the other end of an attempt says.
    pub(crate) fn learn(&mut self, core: &Core, learn: impl FnOnce(&mut Offer)) {
        if let Some(attempt) = self.current(core) {
            attempt.path = core.path;
            learn(&mut attempt.theirs);
        }
    }

    /// Our IKE_AUTH is sent, or what comes before it.
    pub(crate) fn learn_uncut(&mut self, core: &Core, uncut: Option<Uncut>) {
        if let Some(attempt) = self.current(core) {
            attempt.uncut = uncut;
        }
    }

    /// A request is sent: the first time, or once more.
    pub(crate) fn sent(&mut self, core: &Core, again: bool) {
        if let Some(attempt) = self.current(core) {
            attempt.path = core.path;
            attempt.tries = if again { attempt.tries + 1 } else { 1 };
        }
    }

    /// Something was remarkable.
    pub(crate) fn remark(&mut self, peer: &str, remark: &Refusal) {
        if let Some(attempt) = self.of.get_mut(peer)
            && attempt.remarks.len() < MOST
            && !attempt.remarks.contains(remark)
            && attempt.end != Some(End::Refused(remark.clone()))
        {
            attempt.remarks.push(remark.clone());
        }
    }

    /// An attempt ended, or an IKE SA that it made.
    pub(crate) fn end(&mut self, core: &Core, end: End, config: &Directory) {
        match (&end, &core.peer) {
            (End::Up, Some(peer)) => drop(self.up.insert(core.id, peer.clone())),
            _ => drop(self.up.remove(&core.id)),
        }
        if let Some(attempt) = self.current(core) {
            attempt.end = Some(end);
            if let Some(peer) = core.peer(config).filter(|_| attempt.is_failed()) {
                attempt.ours = Offer::of(peer, config);
            }
        }
    }

    /// An IKE SA is cloned: the clone is up as well.
    pub(crate) fn cloned(&mut self, clone: &Core) {
        self.up
            .extend(clone.peer.clone().map(|peer| (clone.id, peer)));
    }

    /// What an attempt made goes on as another IKE SA.
    pub(crate) fn hand_over(&mut self, old: IkeSaId, clone: &Core) {
        let attempt = clone.peer.as_ref().and_then(|peer| self.of.get_mut(peer));
        if let Some(attempt) = attempt.filter(|attempt| attempt.sa == old) {
            attempt.sa = clone.id;
        }
    }

    fn current(&mut self, core: &Core) -> Option<&mut Attempt> {
        let attempt = self.of.get_mut(core.peer.as_ref()?)?;
        (attempt.sa == core.id).then_some(attempt)
    }

    /// Whether something of a peer is up or under way.
    fn is_busy(&self, peer: &str) -> bool {
        let last = self.of.get(peer);
        self.up.values().any(|up| up == peer) || last.is_some_and(|last| last.end.is_none())
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

/// What an initiator said of itself in both of its requests. The first is there as octets.
pub(crate) fn of_initiator(first: &[u8], second: Option<&Message>, private: bool) -> Offer {
    let mut offer = Offer::default();
    if let Ok(Datagram::Clear(first)) = Datagram::decode(first) {
        offer.read_init(&first);
    }
    if let Some(second) = second {
        offer.read_auth(second, true, private);
    }
    offer
}

fn initiator_identity(message: &Message) -> Option<&Identity> {
    find(message, |payload| match payload {
        Payload::IdInitiator(id) => Some(&id.identity),
        _ => None,
    })
}

/// Every algorithm that the SA payload of a message names.
fn transforms(message: &Message) -> Vec<Transform> {
    named(proposals(message).unwrap_or_default())
}

/// Every algorithm that proposals name.
fn named(proposals: &[Proposal]) -> Vec<Transform> {
    let all = proposals.iter();
    kept(all.flat_map(|proposal| proposal.transforms.clone()))
}

/// A list without repetitions, as far as it is kept.
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
