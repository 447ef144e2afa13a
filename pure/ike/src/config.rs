//! What an engine is told at its start.

use crate::extension::ppk::Ppk;
use crate::extension::redirect::Elsewhere;
use crate::extension::slot;
use crate::extension::tcp::Tcp;
use crate::pool::Pool;
use crate::signature::Credential;
use crypto::{RawKey, Secret, TrustStore};
use model::{
    Encapsulation, Group, Identity, Kem, LevelGrant, Licence, MapKind, Mode, Room, Suite,
    TrafficSelector, ZoneSelector, ZoneSuite,
};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::time::Duration;

/// IKE's own UDP port.
pub const PORT: u16 = 500;

/// The UDP port that IKE and ESP share once a NAT may be on the path (RFC 3948).
pub const NATT_PORT: u16 = 4500;

/// What IPv6 carries everywhere, and IPv4 nearly: the usual [`Config::fragment`].
pub const FRAGMENT: u16 = 1280;

/// Everything an [`crate::Engine`] knows of its host.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who we are, to every peer.
    pub identity: Identity,
    /// What we prove that with to peers without a pre-shared key.
    pub credential: Option<Credential>,
    /// Whose certificates we believe.
    pub trust: TrustStore,
    /// Everybody we talk to.
    pub peers: Vec<Peer>,
    /// How long things take and may take.
    pub timers: Timers,
    /// What strangers may cost us.
    pub limits: Limits,
    /// Whether ESP is in UDP where no NAT asks for it.
    pub encapsulation: Encapsulation,
    /// Where both ends move after IKE_SA_INIT; messages on it carry the non-ESP marker.
    pub natt_port: u16,
    /// Addresses of ours at which peers that move may reach us, beside the one in use (RFC 4555
    /// section 3.4).
    pub addresses: Vec<IpAddr>,
    /// The longest IP datagram that a message is sent in, if the peer too can do with fragments
    /// (RFC 7383); at least 576. Zero: IP may cut it.
    pub fragment: u16,
    /// Where initiators are sent that can be (RFC 5685).
    pub elsewhere: Option<Elsewhere>,
    /// Among how many workers children are shared out: what remains of an SPI of ours divided by it says whose it
    /// is.
    pub workers: NonZeroU8,
}

impl Config {
    /// The usual ports, timers and limits.
    pub fn new(identity: Identity, peers: Vec<Peer>) -> Self {
        Self {
            identity,
            credential: None,
            trust: TrustStore::default(),
            peers,
            timers: Timers::default(),
            limits: Limits::default(),
            encapsulation: Encapsulation::default(),
            natt_port: NATT_PORT,
            addresses: Vec::new(),
            fragment: FRAGMENT,
            elsewhere: None,
            workers: NonZeroU8::MIN,
        }
    }
}

/// Somebody we talk to.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Name of its table in the configuration.
    pub name: String,
    /// Where it must come from; anywhere if `None`.
    pub address: Option<IpAddr>,
    /// Who it has to prove to be.
    pub identity: Identity,
    /// The secret we share with it, and with nobody else. `None`: either end signs.
    pub psk: Option<Secret>,
    /// The key that it has to sign with, where there is no secret: then neither end needs a
    /// certificate (RFC 7670). `None`: that of its certificate.
    pub key: Option<RawKey>,
    /// The post-quantum secret we share with it besides (RFC 8784).
    pub ppk: Option<Ppk>,
    /// What it is to us.
    pub role: PeerRole,
    /// Suites for IKE and ESP, the best first.
    pub suites: Vec<Suite>,
    /// Groups for the key exchange, the best first; never empty.
    pub groups: Vec<Group>,
    /// Methods for a key exchange besides that no quantum computer breaks (RFC 9370), the best first;
    /// `None` among them: it may be without. Never empty.
    pub kems: Vec<Option<Kem>>,
    /// After how much silence it is asked whether it is there. Zero: never.
    pub liveness: Duration,
    /// How long keys are used.
    pub lifetimes: Lifetimes,
    /// Whether its IKE SA may move to other addresses (RFC 4555), if the peer can do it too.
    pub mobike: bool,
    /// Whether either end may clone its IKE SA (RFC 7791), if the peer says the same.
    pub clones: bool,
    /// So many children it may have for the traffic of the first, that one as well, if the peer says that it
    /// wants several too (RFC 9611). One: no more than that.
    pub resources: u8,
    /// Whether the sequence numbers of its children are extended to 64 bits (RFC 4303 section 2.2.1), if the
    /// peer wants that too. Those of zones never are.
    pub esn: bool,
    /// Whether a translator on the way is an attack: then it is told by whom packets are from (RFC
    /// 4555 section 3.9).
    pub forbids_nat: bool,
    /// The gateways that it may send us to, which have to prove its identity (RFC 5685).
    pub redirects: Vec<TrafficSelector>,
    /// So many requests may be under way at once, in each direction, if the peer says the same (RFC 7296
    /// section 2.3). So many of our answers are kept.
    pub window: u8,
    /// Whether packets may go to it in a stream of TCP (RFC 9329).
    pub tcp: Tcp,
    /// Children beside the first, which its role describes; each has a name of its own, and none
    /// carries anything of another.
    pub children: Vec<ChildPolicy>,
    /// Children for the traffic of the first that may be asked for, each of which licenses one node more, or several.
    pub slots: Vec<Slot>,
}

/// A child for the same traffic as the first whose zones one licensed node more may open, or several that share it: for
/// where that node, or one of them, is on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// What the child is called: [`crate::slot_name`].
    pub name: String,
    /// The node, or those that share it, in order.
    pub nodes: BTreeSet<Identity>,
    /// The zones of the first child, with licences of these nodes beside those that all have.
    pub zones: ZonePolicy,
}

impl Slot {
    /// The slot of a node, with the licences that it adds to those of the first child. Without zones it would
    /// be of no use, so it has them or is not there.
    pub fn new(
        node: Identity,
        licences: impl IntoIterator<Item = Licence>,
        first: &ZonePolicy,
    ) -> Self {
        Self::shared([node].into(), licences, first)
    }

    /// The same for several nodes.
    pub fn shared(
        nodes: BTreeSet<Identity>,
        licences: impl IntoIterator<Item = Licence>,
        first: &ZonePolicy,
    ) -> Self {
        let mut zones = first.clone();
        zones.licences.extend(licences);
        zones.stance = Stance::Require;
        Self {
            name: slot::name(&nodes),
            nodes,
            zones,
        }
    }

    /// Whether several nodes have its keys.
    pub fn is_shared(&self) -> bool {
        self.nodes.len() > 1
    }

    /// Whether it is the slot of this node and nobody else.
    pub fn is_of(&self, node: &Identity) -> bool {
        !self.is_shared() && self.nodes.contains(node)
    }
}

/// A child beside the first (RFC 7296 section 1.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildPolicy {
    /// Name of its table in the configuration.
    pub name: String,
    /// What of ours it carries.
    pub local: Vec<TrafficSelector>,
    /// What of the peer's it carries.
    pub remote: Vec<TrafficSelector>,
    /// What of a datagram it seals.
    pub mode: Mode,
    /// How long its keys are used. Zero: for ever.
    pub lifetime: Duration,
    /// Whether its keys come from a key exchange of their own, if the peer can.
    pub pfs: bool,
    /// Whether we ask for it as soon as an IKE SA is up that we began.
    pub auto: bool,
}

/// How long keys are used before new ones are made. Either end asks for them somewhat earlier, by a
/// random amount, so that both rarely do it at once (RFC 7296 section 2.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Of a child SA. Zero: for ever.
    pub child: Duration,
    /// Of the IKE SA. Zero: for ever.
    pub ike: Duration,
    /// Until both ends have to prove anew who they are, which new keys do not ask for. Zero: never.
    pub reauth: Duration,
    /// Whether new keys of a child come from a key exchange of their own, if the peer can.
    pub pfs: bool,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            child: Duration::from_secs(3600),
            ike: Duration::from_secs(4 * 3600),
            reauth: Duration::ZERO,
            pfs: true,
        }
    }
}

impl Peer {
    /// A peer that proves its identity by certificate and may come from anywhere, with the suite, group and times
    /// that are usual and without anything that is not needed; the rest is set by field.
    pub fn new(name: &str, identity: Identity, role: PeerRole) -> Self {
        Self {
            name: name.to_owned(),
            address: None,
            identity,
            psk: None,
            key: None,
            ppk: None,
            role,
            suites: vec![Suite::Aes128Gcm16],
            groups: vec![Group::X25519],
            kems: vec![None],
            liveness: Duration::from_secs(30),
            lifetimes: Lifetimes::default(),
            mobike: false,
            clones: false,
            resources: 1,
            esn: false,
            forbids_nat: false,
            redirects: Vec::new(),
            window: 1,
            tcp: Tcp::Off,
            children: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// Whether it lends us our addresses inside.
    pub(crate) const fn requests_addresses(&self) -> bool {
        matches!(
            self.role,
            PeerRole::Vpn {
                addressing: Addressing::Requested,
                ..
            }
        )
    }

    /// Whether additional key exchanges are enough for it, or that there were none.
    pub(crate) fn accepts(&self, kems: &[Kem]) -> bool {
        self.kems.contains(&None) || kems.iter().any(|kem| self.kems.contains(&Some(*kem)))
    }

    /// The pool its addresses come out of, if they do.
    pub(crate) fn pool(&self) -> Option<&Pool> {
        match &self.role {
            PeerRole::Vpn {
                addressing: Addressing::Lent(pool),
                ..
            } => Some(pool),
            PeerRole::Vpn { .. } | PeerRole::Licensed | PeerRole::Gateway | PeerRole::Neighbour => {
                None
            }
        }
    }

    /// Whether SAs that were made with these terms are also what the new ones ask for. Every field
    /// has its place here, so that a new one cannot be forgotten.
    pub(crate) fn agrees(&self, new: &Self) -> bool {
        let Self {
            name,
            address,
            identity,
            psk,
            key,
            ppk,
            role,
            suites,
            groups,
            kems,
            liveness: _,
            lifetimes: _,
            mobike,
            clones,
            resources,
            esn,
            forbids_nat,
            redirects: _,
            window: _,
            // They come and go one by one.
            children: _,
            slots: _,
            tcp,
        } = self;
        (name, address, identity) == (&new.name, &new.address, &new.identity)
            && (psk, key, ppk) == (&new.psk, &new.key, &new.ppk)
            && role.agrees(&new.role)
            && (suites, groups, kems) == (&new.suites, &new.groups, &new.kems)
            && (mobike, clones, resources) == (&new.mobike, &new.clones, &new.resources)
            && (esn, forbids_nat, tcp) == (&new.esn, &new.forbids_nat, &new.tcp)
    }
}

/// What a peer is to us. Every right hangs on it: keys go only to licensed nodes, grants are taken
/// only from gateways, tokens only from neighbours, children are made only with VPN peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerRole {
    /// The other end of a tunnel.
    Vpn {
        /// What of ours it may reach.
        local: Vec<TrafficSelector>,
        /// What of its we want to reach.
        remote: Vec<TrafficSelector>,
        /// Where addresses inside come from, which narrow one of the two.
        addressing: Addressing,
        /// What we agree to show to licensed nodes.
        zones: ZonePolicy,
        /// What of a datagram the first child seals.
        mode: Mode,
    },
    /// A node we give keys to. Its IKE SA has no child.
    Licensed,
    /// The gateway whose grants we, a licensed node, take. Its IKE SA has no child.
    Gateway,
    /// Another licensed node, to which mobile nodes go from us, another one, or from which they come: each may ask the
    /// other for keys with a token of a mobile node. Its IKE SA has no child.
    Neighbour,
}

impl PeerRole {
    /// Whether both are the same but for licences, which the next keys have.
    fn agrees(&self, new: &Self) -> bool {
        let mut relicensed = self.clone();
        if let (Self::Vpn { zones: old, .. }, Self::Vpn { zones: new, .. }) = (&mut relicensed, new)
        {
            old.licences.clone_from(&new.licences);
        }
        relicensed == *new
    }
}

/// Where addresses inside come from (RFC 7296 section 2.19).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// Each end has its own.
    #[default]
    Fixed,
    /// We ask the peer for ours, one for each family of `local`; so it is for us to begin.
    Requested,
    /// The peer has to ask for its own, which comes out of this pool. The pool is part of `remote`.
    Lent(Box<Pool>),
}

/// How strongly zones are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stance {
    /// Zones if the peer agrees, plain ESP otherwise.
    Accept,
    /// Zones or no tunnel.
    Require,
    /// Plain ESP.
    #[default]
    Refuse,
}

/// What this endpoint accepts about zones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZonePolicy {
    /// How strongly they are wanted.
    pub stance: Stance,
    /// The zones from serial 1; the last is the payload zone and its selector `Rest`.
    pub zones: Vec<(ZoneSelector, ZoneSuite)>,
    /// Whether packets carry their maps.
    pub map: MapKind,
    /// Replay window in packets, 4096 to 65536.
    pub window: u32,
    /// Who may do what with which zone.
    pub licences: Vec<Licence>,
    /// What may go without encryption, if anything.
    pub level: Option<LevelGrant>,
}

/// How long things take and may take.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Until a request is sent again for the first time; doubles each time.
    pub retransmit: Duration,
    /// The longest wait between two retransmissions.
    pub retransmit_longest: Duration,
    /// How often a request is sent before the peer counts as gone.
    pub attempts: u32,
    /// How often a silent peer is asked whether it is there. Fewer, for that question was preceded
    /// by silence, and a peer that has restarted is to be noticed soon.
    pub liveness_attempts: u32,
    /// How often the last request of an SA that we close is sent: nobody waits for the answer.
    pub closing_attempts: u32,
    /// How often any request is sent by the end that does not decide where a mobile SA goes: the other
    /// one is to have the time to find a path.
    pub patient_attempts: u32,
    /// How long an initiator may take until it is authenticated.
    pub half_open: Duration,
    /// The same while so many take their time that new ones have to bring cookies: enough to lose a message
    /// or two.
    pub half_open_crowded: Duration,
    /// How long an SA that is gone still answers repeated requests.
    pub linger: Duration,
    /// How long a child that was rekeyed stays before it is deleted: what is under way arrives.
    pub drain: Duration,
    /// The same where licensed nodes may send its packets again: twice the longest age of their
    /// caches, and the time that new grants may take (DESIGN section 5).
    pub drain_licensed: Duration,
    /// How long one that was rekeyed and deleted is still received on.
    pub stragglers: Duration,
    /// Pause after a peer could not rekey just then; up to twice as much, by chance.
    pub retry: Duration,
    /// How long a key exchange that is to follow is waited for (RFC 9370 section 2.2.4: "5-20 seconds").
    pub follow_up: Duration,
    /// How long fragments wait for those that complete their message. As long as a peer may keep
    /// repeating it would be kinder (RFC 7383 section 2.6); what it repeats is whole, so it need not.
    pub reassembly: Duration,
}

impl Default for Timers {
    /// Sixteen attempts in about a hundred seconds (RFC 7296 section 2.4: "at least a dozen times
    /// over a period of at least several minutes"; whoever moves would rather begin anew earlier).
    /// Pauses stay short, because here a lost datagram says more about the link than about load,
    /// and a half-open SA lives long enough for a dozen of them.
    fn default() -> Self {
        Self {
            retransmit: Duration::from_millis(500),
            retransmit_longest: Duration::from_secs(8),
            attempts: 16,
            liveness_attempts: 5,
            closing_attempts: 3,
            // "at least five minutes" (RFC 4555 section 3.11)
            patient_attempts: 41,
            half_open: Duration::from_secs(60),
            half_open_crowded: Duration::from_secs(10),
            linger: Duration::from_secs(30),
            drain: Duration::from_secs(5),
            drain_licensed: Duration::from_secs(22),
            stragglers: Duration::from_secs(2),
            retry: Duration::from_secs(2),
            follow_up: Duration::from_secs(20),
            reassembly: Duration::from_secs(30),
        }
    }
}

/// What strangers may cost us.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// IKE SAs of initiators that have proved nothing yet.
    pub half_open: Room,
    /// From so many on, a new one has to bring a cookie (RFC 7296 section 2.6), which who does not
    /// receive at its own address never has.
    pub half_open_without_cookie: usize,
    /// The same, for one IPv4 address or IPv6 /64: somebody may forge it to keep its owner out.
    pub half_open_per_host_without_cookie: usize,
    /// Grants held on one IKE SA.
    pub grants: usize,
    /// Child SAs of one IKE SA, those that are being replaced as well: then a peer gets no more. Of all
    /// its IKE SAs together it has at most twice as many, as one may take the place of another.
    pub children: usize,
    /// IKE SAs with one peer beside the one that it wants to clone: then it gets no more.
    pub clones: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            half_open: Room {
                total: 1024,
                per_site: 256,
                per_host: 64,
                // "Two seconds is probably as low a value as can realistically be used" (RFC 8019
                // section 4.1).
                patience: Duration::from_secs(2),
            },
            half_open_without_cookie: 64,
            half_open_per_host_without_cookie: 8,
            grants: 256,
            children: 64,
            clones: 3,
        }
    }
}
