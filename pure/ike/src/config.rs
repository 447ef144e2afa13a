//! Configuration of an engine.

use crate::certificate_terms::CertificateTerms;
use crate::credential::Credential;
use crate::destination::Destination;
use crate::domain::Domain;
use crate::extension::ppk::Ppk;
use crate::pool::Pool;
use crypto::{RawKey, Secret, TrustStore, UnixTime};
use model::{
    Allowance, Encapsulation, EspSuite, Features, Group, Identity, Kem, LevelGrant, Licence,
    MapKind, Mode, Path, PeerId, Room, Selectors, Shared, Suite, TrafficSelector, Unique, Wildcard,
    ZoneSelector, ZoneSuite,
};
use resumption::{Strategy, Way};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// UDP port of IKE.
pub const PORT: u16 = 500;

/// UDP port that IKE and ESP share once a NAT may be on the path (RFC 3948).
pub const NATT_PORT: u16 = 4500;

/// Usual value of [`Config::fragment`], in octets: every IPv6 path carries such a datagram, and
/// nearly every IPv4 path.
pub const FRAGMENT: u16 = 1280;

/// The engine's configuration: local identity, peers, timers and limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our identity, for every peer.
    pub identity: Identity,
    /// Credential that proves our identity to peers without a pre-shared key.
    pub credential: Option<Credential>,
    /// Certification authorities and revocation lists that we trust.
    pub trust: TrustStore,
    /// All configured peers.
    pub peers: Vec<Peer>,
    /// Retransmission intervals, timeouts and delays.
    pub timers: Timers,
    /// Limits on the resources that unauthenticated peers can consume.
    pub limits: Limits,
    /// Encapsulation of ESP: always in UDP, or only where a NAT requires it.
    pub encapsulation: Encapsulation,
    /// UDP port that both ends move to after IKE_SA_INIT. Messages on this port carry the non-ESP
    /// marker.
    pub natt_port: u16,
    /// Additional local addresses at which mobile peers can reach us, announced to them (RFC 4555
    /// section 3.4).
    pub addresses: Vec<IpAddr>,
    /// Remote ends of the traffic that bypasses all tunnels.
    pub bypassed: Vec<TrafficSelector>,
    /// Maximum size of an IP datagram that carries a message, in octets, at least 576. Longer
    /// messages are sent in fragments if the peer supports them too (RFC 7383). Zero disables IKE
    /// fragmentation and leaves it to IP.
    pub fragment: u16,
    /// How long a peer may resume its sessions.
    pub resumption: Strategy,
    /// Gateway to which initiators that support RFC 5685 are redirected.
    pub elsewhere: Option<Elsewhere>,
    /// Number of workers that share the child SAs. The remainder of one of our SPIs divided by this
    /// number identifies the worker that owns the SA.
    pub workers: NonZeroU8,
}

impl Config {
    /// Usual value of [`Self::resumption`]: a working day.
    pub const SESSIONS: Strategy = Strategy {
        clocked: Duration::from_secs(8 * 3600),
        established: None,
        data: None,
        by_value: false,
    };

    /// Creates a configuration with the usual ports, timers and limits.
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
            bypassed: Vec::new(),
            fragment: FRAGMENT,
            resumption: Self::SESSIONS,
            elsewhere: None,
            workers: NonZeroU8::MIN,
        }
    }
}

/// A configured peer.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Identifier of the peer.
    pub id: PeerId,
    /// Address that the peer must connect from; `None` allows any address.
    pub address: Option<IpAddr>,
    /// Identity that the peer has to prove.
    pub identity: Identity,
    /// Pre-shared key, known to this peer and us only. With `None`, both ends authenticate by
    /// signature.
    pub psk: Option<Secret>,
    /// Public key that the peer has to sign with. With a key, neither end needs a certificate (RFC
    /// 7670). `None` stands for the key of the peer's certificate. Ignored if there is a pre-shared
    /// key.
    pub key: Option<Box<RawKey>>,
    /// Post-quantum pre-shared key, mixed into the key schedule (RFC 8784).
    pub ppk: Option<Box<Ppk>>,
    /// Role of the peer. It determines the rights of the peer.
    pub role: PeerRole,
    /// The identities for which the peer stands; `None` for its own alone. Each one that comes is a
    /// user: a peer of its own, with the same settings.
    pub users: Option<Box<UserPolicy>>,
    /// Suites without encryption that are accepted for ESP; `None`: none. No other peer has a share
    /// in its packets.
    pub unencrypted: Option<Box<Unencrypted>>,
    /// All other settings. A gateway may have 100,000 peers, and most have these in common.
    pub terms: Shared<PeerTerms>,
}

/// The settings of a peer that others may have in common with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTerms {
    /// Suites for IKE and ESP, in order of preference.
    pub suites: Vec<Suite>,
    /// Groups for the key exchange, in order of preference; never empty.
    pub groups: Vec<Group>,
    /// Methods for an additional, post-quantum key exchange (RFC 9370), in order of preference. If
    /// `None` is among them, the additional exchange is optional. Never empty.
    pub kems: Vec<Option<Kem>>,
    /// Time without incoming traffic after which the engine sends a liveness check. Zero disables
    /// the check.
    pub liveness: Duration,
    /// Lifetimes of keys and authentications.
    pub lifetimes: Lifetimes,
    /// The certificates that may prove the peer's identity, if the peer has no key.
    pub certificate: CertificateTerms,
    /// Optional features that we offer the peer.
    pub features: Features,
    /// Addresses of the gateways to which the peer may redirect us. Such a gateway has to prove the
    /// peer's identity (RFC 5685).
    pub redirects: Vec<TrafficSelector>,
    /// Maximum number of outstanding requests in each direction, if the peer announces the same
    /// (RFC 7296 section 2.3). The engine keeps as many of our responses.
    pub window: u8,
    /// Use of TCP encapsulation with this peer (RFC 9329).
    pub tcp: Tcp,
    /// How an IKE SA with the peer is resumed that was lost without a Delete. As initiator we ask
    /// for it, as responder we grant it.
    pub resumption: Resumption,
    /// What becomes of a second IKE SA that the peer initiates from another address. With
    /// [`Unique::Never`] each one is a user of its own, and no session is resumed.
    pub unique: Unique,
    /// Additional child SAs. The role describes the first child SA. Each additional one has a
    /// unique name, and their traffic does not overlap.
    pub children: Vec<ChildPolicy>,
    /// Traffic of the first child SA that goes by certain interfaces, if we choose the paths and
    /// there are several.
    pub rules: Vec<PathRule>,
    /// Optional child SAs for the traffic of the first one, each of which licenses one or more
    /// additional nodes.
    pub slots: Vec<Slot>,
}

impl Deref for Peer {
    type Target = PeerTerms;

    fn deref(&self) -> &PeerTerms {
        &self.terms
    }
}

/// A change concerns this peer only.
impl DerefMut for Peer {
    fn deref_mut(&mut self) -> &mut PeerTerms {
        &mut self.terms
    }
}

/// Suites without encryption that are accepted for the child SAs of a peer until a certain time,
/// and for so many packets (DESIGN invariant 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unencrypted {
    /// The suites, in order of preference.
    pub suites: Vec<EspSuite>,
    /// Time at which all such child SAs have ended.
    pub until: UnixTime,
    /// The packets of all of them. A reload that changes none of these fields goes on counting.
    pub packets: Allowance,
}

impl Unencrypted {
    /// Time before the end in which child SAs are rekeyed to encryption, and none begins.
    pub const NOTICE: Duration = Duration::from_secs(60);

    /// Returns true if child SAs may begin.
    pub(crate) fn may_begin(&self, today: UnixTime) -> bool {
        self.left(today) > Self::NOTICE
    }

    /// Returns the time that is left. When few packets are left, it is that of the notice.
    pub(crate) fn left(&self, today: UnixTime) -> Duration {
        let left = Duration::from_secs(self.until.0.saturating_sub(today.0));
        match self.packets.is_low() {
            true => left.min(Self::NOTICE),
            false => left,
        }
    }
}

/// The identities for which one peer of the configuration stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPolicy {
    /// The identities. Other than a single one, each of them has to be proved by a certificate.
    pub identities: Wildcard,
    /// Most users at once.
    pub most: u32,
}

/// Use of TCP encapsulation with a peer, and the port on which the peer listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tcp {
    /// Never use TCP.
    #[default]
    Off,
    /// Use TCP if the peer does not answer by UDP.
    Fallback(u16),
    /// Use TCP from the first message on.
    Always(u16),
}

/// A gateway to which initiators are redirected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The gateway.
    pub to: Destination,
    /// True if initiators are redirected at their first message, before they are authenticated.
    /// This costs least, but redirects every initiator.
    pub at_once: bool,
}

/// Returns the name of the slot of these nodes, which have to be in order.
pub fn slot_name<'a>(nodes: impl IntoIterator<Item = &'a Identity>) -> String {
    let nodes = nodes.into_iter().map(|node| node.canonical().to_string());
    let nodes: Vec<_> = nodes.collect();
    format!("@{}", nodes.join("+"))
}

/// Returns true if the child SA with this name is a slot.
pub fn is_slot(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.starts_with('@'))
}

/// A child SA for the traffic of the first one, whose zones an additional licensed node may open,
/// or several that share the slot. An endpoint uses it while such a node is on the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Name of the child SA: [`crate::slot_name`].
    pub name: String,
    /// The licensed node, or the nodes that share the slot, in order.
    pub nodes: BTreeSet<Identity>,
    /// The zones of the first child SA, with the licences of these nodes added.
    pub zones: ZonePolicy,
    /// The addresses that identify the location of the node, if it is licensed by its domain and
    /// its keys are distributed here. The other end learns them with the offer.
    pub place: Vec<TrafficSelector>,
    /// The domain whose nodes the slot is for, one at a time. `nodes` is then empty.
    pub domain: Option<Domain>,
    /// The addresses of further paths that these nodes are on. The child SA of such a path has the
    /// zones of the slot, and there is no slot beside it.
    pub paths: Vec<TrafficSelector>,
}

impl Slot {
    /// Creates the slot of one node, by adding `licences` to those of the first child SA. A slot
    /// without zones would be useless, so the slot requires them.
    pub fn new(
        node: Identity,
        licences: impl IntoIterator<Item = Licence>,
        first: &ZonePolicy,
    ) -> Self {
        Self::shared([node].into(), licences, first)
    }

    /// Creates a slot that several nodes share.
    pub fn shared(
        nodes: BTreeSet<Identity>,
        licences: impl IntoIterator<Item = Licence>,
        first: &ZonePolicy,
    ) -> Self {
        let mut zones = first.clone();
        zones.licences.extend(licences);
        zones.stance = Stance::Require;
        Self {
            name: slot_name(&nodes),
            nodes,
            zones,
            place: Vec::new(),
            domain: None,
            paths: Vec::new(),
        }
    }

    /// Creates one of the slots for the nodes of a domain, by its number among them. `pattern` is
    /// the domain as an identity. Only the other end requests such a slot.
    pub fn of_domain(pattern: &Identity, number: u8, domain: Domain, first: &ZonePolicy) -> Self {
        Self {
            name: format!("{}#{number}", slot_name([pattern])),
            domain: Some(domain),
            ..Self::shared(BTreeSet::new(), [], first)
        }
    }

    /// Returns the zones, with the licences of a domain's node if these licences are for one.
    pub fn zones_for(&self, licences: &[Licence]) -> Cow<'_, ZonePolicy> {
        match &self.domain {
            Some(domain) => domain.zones_for(&self.zones, licences),
            None => Cow::Borrowed(&self.zones),
        }
    }

    /// Returns the node of a domain that these licences of the slot's child SA are for.
    pub fn node_of<'l>(&self, licences: &'l [Licence]) -> Option<&'l Identity> {
        let domain = self.domain.as_ref()?;
        domain.node_of(licences)
    }

    /// Returns true if the nodes are on a further path: its addresses, at either end, say so.
    fn is_on(&self, path: Path) -> bool {
        let ends = [path.remote.ip(), path.local.ip()];
        let mut places = self.paths.iter();
        places.any(|place| ends.iter().any(|end| place.contains(*end, 0, None)))
    }

    /// Returns true if several nodes hold the keys of the slot.
    pub fn is_shared(&self) -> bool {
        self.nodes.len() > 1
    }

    /// Returns true if the slot belongs to this node alone.
    pub fn is_of(&self, node: &Identity) -> bool {
        !self.is_shared() && self.nodes.contains(node)
    }
}

/// Traffic that goes on the live path by one interface. The engine does not know interfaces: the
/// caller says which path the traffic is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// Name of the interface.
    pub interface: String,
    /// Selectors of the traffic, at the peer's end.
    pub remote: Vec<TrafficSelector>,
}

/// An additional child SA (RFC 7296 section 1.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildPolicy {
    /// Name of its table in the configuration.
    pub name: String,
    /// Selectors of the local traffic it carries.
    pub local: Vec<TrafficSelector>,
    /// Selectors of the remote traffic it carries.
    pub remote: Vec<TrafficSelector>,
    /// Mode: the part of a datagram that is sealed.
    pub mode: Mode,
    /// Lifetime of its keys. Zero: unlimited.
    pub lifetime: Duration,
    /// True if its keys come from a key exchange of their own (perfect forward secrecy), given that
    /// the peer supports this.
    pub pfs: bool,
    /// True if we request it as soon as an IKE SA that we initiated is up.
    pub auto: bool,
}

/// Lifetimes of keys, and of an authentication. Either end renews them somewhat earlier, by a
/// random amount, so that the two ends rarely do so at the same time (RFC 7296 section 2.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Lifetime of a child SA. Zero: unlimited.
    pub child: Duration,
    /// Lifetime of the keys of an IKE SA. Zero: unlimited.
    pub ike: Duration,
    /// Time until the peers have to re-authenticate, which a rekey does not do. Zero: never.
    pub reauth: Duration,
    /// True if a rekey of a child SA includes a key exchange of its own (perfect forward secrecy),
    /// given that the peer supports this.
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

impl Default for PeerTerms {
    /// The usual suite, group and timers. All optional features are off.
    fn default() -> Self {
        Self {
            suites: vec![Suite::Aes128Gcm16],
            groups: vec![Group::X25519],
            kems: vec![None],
            liveness: Duration::from_secs(30),
            lifetimes: Lifetimes::default(),
            certificate: CertificateTerms::default(),
            features: Features::default(),
            redirects: Vec::new(),
            window: 1,
            tcp: Tcp::Off,
            resumption: Resumption::Off,
            unique: Unique::Replace,
            children: Vec::new(),
            rules: Vec::new(),
            slots: Vec::new(),
        }
    }
}

impl Peer {
    /// Returns the slot with a name.
    pub fn slot(&self, name: &str) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.name == name)
    }

    /// Returns the slot whose nodes are on a further path, the first if there are several.
    pub fn slot_on(&self, path: Path) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.is_on(path))
    }

    /// Creates a peer that proves its identity by certificate and may connect from any address. The
    /// peer has the usual suite, group and timers, and all optional features are off. The caller
    /// sets other fields directly.
    pub fn new(id: PeerId, identity: Identity, role: PeerRole) -> Self {
        Self {
            id,
            address: None,
            identity,
            psk: None,
            key: None,
            ppk: None,
            role,
            users: None,
            unencrypted: None,
            terms: PeerTerms::default().into(),
        }
    }

    /// Returns true if the peer proves its identity by certificate.
    pub(crate) const fn is_certified(&self) -> bool {
        self.psk.is_none() && self.key.is_none()
    }

    /// Returns the user that one of the identities is for which the peer stands. It has no
    /// unencrypted packets: all users would share those of the table.
    pub(crate) fn user(&self, id: PeerId, identity: Identity) -> Self {
        Self {
            id,
            identity,
            users: None,
            unencrypted: None,
            ..self.clone()
        }
    }

    /// Returns true if the peer assigns our inner addresses.
    pub(crate) const fn requests_addresses(&self) -> bool {
        matches!(
            self.role,
            PeerRole::Vpn {
                addressing: Addressing::Requested,
                ..
            }
        )
    }

    /// Returns true if these additional key exchanges, possibly none, satisfy the peer's
    /// configuration.
    pub(crate) fn accepts(&self, kems: &[Kem]) -> bool {
        self.kems.contains(&None) || kems.iter().any(|kem| self.kems.contains(&Some(*kem)))
    }

    /// Returns the suites without encryption that a child SA may begin with now.
    pub(crate) fn unencrypted_now(&self, today: UnixTime) -> &[EspSuite] {
        let accepted = self.unencrypted.as_ref();
        let now = accepted.filter(|accepted| accepted.may_begin(today));
        now.map_or(&[], |accepted| &accepted.suites)
    }

    /// Returns true if IKE SAs with the peer may have keys of this kind.
    pub(crate) fn accepts_keys(&self, suite: Suite, group: Group, kems: &[Kem]) -> bool {
        self.suites.contains(&suite) && self.groups.contains(&group) && self.accepts(kems)
    }

    /// Returns the pool that leases the peer's inner addresses, if one does.
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

    /// Returns true if SAs negotiated with these terms also satisfy the new terms. Every field is
    /// listed, so that a new one cannot be forgotten.
    pub(crate) fn agrees(&self, new: &Self) -> bool {
        let Self {
            id,
            address,
            identity,
            psk,
            key,
            ppk,
            role,
            // A user has none, and what it stands for is the same as long as it is found.
            users: _,
            unencrypted,
            terms,
        } = self;
        let PeerTerms {
            suites,
            groups,
            kems,
            liveness: _,
            lifetimes: _,
            certificate,
            features,
            redirects: _,
            window: _,
            // Child SAs are added and removed one by one.
            children: _,
            rules: _,
            slots: _,
            // An IKE SA stays whether or not it can be resumed.
            resumption: _,
            // It decides to which peer an IKE SA belongs.
            unique,
            tcp,
        } = &**terms;
        (id, address, identity) == (&new.id, &new.address, &new.identity)
            && (psk, key, ppk) == (&new.psk, &new.key, &new.ppk)
            && role.agrees(&new.role)
            && (suites, groups, kems) == (&new.suites, &new.groups, &new.kems)
            && *unencrypted == new.unencrypted
            && (features, tcp, unique) == (&new.features, &new.tcp, &new.unique)
            && *certificate == new.certificate
    }
}

/// Role of a peer. Every right depends on it: keys go only to licensed nodes, grants are accepted
/// only from gateways, tokens only from neighbours, and child SAs are created only with VPN peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerRole {
    /// The other end of a tunnel.
    Vpn {
        /// Local addresses that the peer may reach.
        local: Selectors,
        /// Remote addresses that we want to reach.
        remote: Selectors,
        /// Source of the inner addresses. A leased address narrows `local` or `remote`.
        addressing: Addressing,
        /// The parts of packets that we agree to show to licensed nodes.
        zones: Shared<ZonePolicy>,
        /// Mode of the first child SA: the part of a datagram that is sealed.
        mode: Mode,
    },
    /// A licensed node, to which we distribute keys. Its IKE SA has no child SA.
    Licensed,
    /// The gateway that grants keys to us, a licensed node. Its IKE SA has no child SA.
    Gateway,
    /// Another licensed node, from the view of a licensed node. Mobile nodes move between the two.
    /// Either may request keys from the other with a token of a mobile node. Its IKE SA has no
    /// child SA.
    Neighbour,
}

impl PeerRole {
    /// Returns true if both roles are equal except for licences, which the next rekey updates.
    fn agrees(&self, new: &Self) -> bool {
        let mut relicensed = self.clone();
        if let (Self::Vpn { zones: old, .. }, Self::Vpn { zones: new, .. }) = (&mut relicensed, new)
        {
            old.licences.clone_from(&new.licences);
        }
        relicensed == *new
    }
}

/// Source of the inner addresses (RFC 7296 section 2.19).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// Each end has addresses of its own.
    #[default]
    Fixed,
    /// The peer assigns ours, one for each address family in `local`. Only we can therefore
    /// initiate.
    Requested,
    /// The peer has to request an address, which we lease from this pool. The pool is part of
    /// `remote`.
    Lent(Shared<Pool>),
}

/// How a lost IKE SA is resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resumption {
    /// By a full exchange only.
    #[default]
    Off,
    /// By a ticket (RFC 5723).
    Tickets,
    /// By SKID3 with a peer that sent our vendor ID, by a ticket with any other one.
    Skid3,
    /// By SKID3 with a key exchange, with a peer that sent our vendor ID.
    Skid3Pfs,
}

impl Resumption {
    /// Returns true if sessions may be resumed in this way.
    pub(crate) fn allows(self, way: Way) -> bool {
        match self {
            Self::Off => false,
            Self::Tickets => way == Way::Ticket,
            Self::Skid3 => true,
            Self::Skid3Pfs => way == Way::Skid3Pfs,
        }
    }

    /// Returns the way for which to give an entry to a peer that asks for one. What either end
    /// requires counts.
    pub(crate) fn given(self, asked: Way) -> Option<Way> {
        let way = match self {
            Self::Skid3Pfs if asked == Way::Skid3 => Way::Skid3Pfs,
            Self::Off | Self::Tickets | Self::Skid3 | Self::Skid3Pfs => asked,
        };
        self.allows(way).then_some(way)
    }
}

/// Requirement for zones.
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

/// Zone policy of this endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZonePolicy {
    /// Requirement for zones.
    pub stance: Stance,
    /// Zones from serial 1 on. The last one is the payload zone, and its selector is `Rest`.
    pub zones: Vec<(ZoneSelector, ZoneSuite)>,
    /// Kind of zone map: carried by each packet, or fixed in the SA.
    pub map: MapKind,
    /// Replay window in packets, 4096 to 65536.
    pub window: u32,
    /// Licences: each gives a node a right to a zone.
    pub licences: Vec<Licence>,
    /// Traffic that may be sent authenticated but unencrypted, if any.
    pub level: Option<LevelGrant>,
}

/// Intervals, timeouts and numbers of attempts.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Delay before the first retransmission of a request until a round trip on its path has been
    /// measured. It doubles with each retransmission.
    pub retransmit: Duration,
    /// Minimum time to wait for a response in addition to the measured round trip. Never less than
    /// this is waited before a retransmission.
    pub retransmit_slack: Duration,
    /// Maximum delay before the first retransmission. Even a liveness check on a slow or lossy path
    /// is then sent four times.
    pub retransmit_within: Duration,
    /// Maximum delay between two retransmissions.
    pub retransmit_longest: Duration,
    /// Time after which a request without a response is given up, and the peer is considered gone.
    pub give_up: Duration,
    /// The same time for a liveness check. Shorter than `give_up`, because silence has preceded the
    /// check, and a restart of the peer should be detected soon.
    pub give_up_check: Duration,
    /// The same time for the last request of an SA that we close. Nothing depends on its response.
    pub give_up_closing: Duration,
    /// The same time for a request of the end that does not choose the path of a mobile SA. The
    /// other end needs the time to find a path.
    pub give_up_patient: Duration,
    /// Time after which a first message over UDP is followed by one over TCP, if TCP is the
    /// fallback: "the initial message over UDP be retransmitted at least once before falling back
    /// to TCP" (RFC 9329 section 5.1).
    pub fall_back: Duration,
    /// Maximum time that an initiator may take to authenticate.
    pub half_open: Duration,
    /// The same limit while new initiators have to return cookies because too many are half open.
    /// Long enough to lose a message or two.
    pub half_open_crowded: Duration,
    /// Time for which a deleted SA still answers retransmitted requests.
    pub linger: Duration,
    /// Delay before a rekeyed child SA is deleted, so that packets in flight still arrive.
    pub drain: Duration,
    /// The same delay if licensed nodes may retransmit packets of the child SA: twice the maximum
    /// age of their caches, plus the time that new grants may take (DESIGN section 5).
    pub drain_licensed: Duration,
    /// Time for which we still receive on a child SA that was rekeyed and deleted.
    pub stragglers: Duration,
    /// Delay before a refused rekey is tried again. It doubles with each refusal, and a random
    /// amount of up to the same time is added.
    pub retry: Duration,
    /// Maximum time to wait for a follow-up key exchange (RFC 9370 section 2.2.4: "5-20 seconds").
    pub follow_up: Duration,
    /// Maximum time that fragments wait for the rest of their message. RFC 7383 section 2.6
    /// suggests as long as the peer may retransmit. Less is enough here, because a retransmission
    /// repeats all fragments.
    pub reassembly: Duration,
}

impl Default for Timers {
    /// Requests are given up after less than two minutes. RFC 7296 section 2.4 suggests "at least a
    /// dozen times over a period of at least several minutes", but a mobile host is better off with
    /// an earlier restart. Intervals stay short, because here a lost datagram indicates a bad link
    /// rather than load, and a half-open SA lives long enough for ten of them. All times to give up
    /// are those of 16, 5, 3 and 41 transmissions with delays of 0.5 s that double up to 8 s.
    fn default() -> Self {
        Self {
            // "the sender SHOULD set RTO <- 1 second" (RFC 6298 section 2.1)
            retransmit: Duration::from_secs(1),
            retransmit_slack: Duration::from_millis(200),
            retransmit_within: Duration::from_secs(2),
            retransmit_longest: Duration::from_secs(8),
            give_up: Duration::from_millis(103_500),
            give_up_check: Duration::from_millis(15_500),
            give_up_closing: Duration::from_millis(3_500),
            // "at least five minutes" (RFC 4555 section 3.11)
            give_up_patient: Duration::from_millis(303_500),
            fall_back: Duration::from_millis(7_500),
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

/// Limits on the resources that unauthenticated peers can consume, and on the number of SAs and
/// grants.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// IKE SAs of initiators that are not yet authenticated.
    pub half_open: Room,
    /// Number of half-open SAs from which on a new initiator has to return a cookie (RFC 7296
    /// section 2.6). An initiator with a forged source address cannot do that.
    pub half_open_without_cookie: usize,
    /// The same threshold for one IPv4 address or IPv6 /64. A third party may forge that address to
    /// lock out its legitimate user.
    pub half_open_per_host_without_cookie: usize,
    /// Maximum number of grants held on one IKE SA.
    pub grants: usize,
    /// Maximum number of child SAs of one IKE SA, including those that are being replaced. Further
    /// requests of the peer are refused. All IKE SAs with one peer together may have twice as many,
    /// because one may be replacing another.
    pub children: usize,
    /// Maximum number of IKE SAs with one peer in addition to the one that it asks to clone.
    /// Further clones are refused.
    pub clones: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Enough for 6,000 set-ups a second, each with a round trip of 600 ms: an SA that gives
            // way to another one has been work for nothing.
            half_open: Room {
                total: 4096,
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
