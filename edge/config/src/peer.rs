//! `[peer.NAME]`: the other end of a tunnel, and the zones that both ends would license to nodes.

use crate::child::Child;
use crate::keys::{PARTY, PEER};
use crate::level::LevelPolicy;
use crate::reader::{Table, Value};
use crate::tfc::Tfc;
use crate::users::USERS;
use crate::zone::{Stance, ZonePolicy};
use crate::{Address, InterfaceTraffic, Party, Pool, Ppk, Terms, Unencrypted, unencrypted};
use model::{
    Dscp, Features, Mode, Selectors, Shared, Shares, Suite, TrafficSelector, Unique, ZoneSelector,
    ZoneSuite, one_pair,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A VPN peer.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The peer's identity and its IKE settings.
    pub party: Party,
    /// `address`: the address or name at which the peer listens, with or without a port. If it is
    /// set, we initiate; otherwise we wait for the peer.
    pub address: Option<Address>,
    /// `local`: our prefixes that the tunnel carries, each optionally limited to a protocol and
    /// ports: `10.1.0.2/32 tcp 443`. `["dynamic"]` requests an inner address from the peer; the
    /// selectors then cover all of `remote`'s address families.
    pub local: Selectors,
    /// `remote`: the peer's prefixes that the tunnel carries, in the same form. With `pool`, the
    /// prefixes of the pool.
    pub remote: Selectors,
    /// `local = ["dynamic"]` and `pool`: the end that assigns the other's inner address. Default
    /// neither.
    pub addressing: Addressing,
    /// `ppk`: a post-quantum pre-shared key in addition to `psk` or certificates (RFC 8784).
    /// Default none.
    pub ppk: Option<Box<Ppk>>,
    /// `[peer.NAME.child.NAME]`: additional tunnels, sorted by name.
    pub children: Vec<Child>,
    /// All other keys. A gateway may have 100,000 peers, and most have these in common.
    pub terms: Shared<PeerTerms>,
}

/// The keys of a peer that others may have in common with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTerms {
    /// `mode`: the part of a packet that the tunnel seals. Default `tunnel`: the whole packet.
    pub mode: Mode,
    /// `users`: most users at once of a table whose `id` is a pattern, 1 to 100000. Default 1000.
    pub users: u32,
    /// `unique`: what becomes of a second tunnel of one identity. Default `replace`.
    pub unique: Unique,
    /// `dns = "from-peer"`: programs use the name servers that the peer names while the tunnel is
    /// up. Default false.
    pub dns_from_peer: bool,
    /// `routes`: the part of `remote` that is routed into the tunnel. Default `remote`: all of it.
    pub routes: Routing,
    /// `start`: the event that makes us connect. Default `auto` with an address; always `manual`
    /// without one.
    pub start: Start,
    /// `leak`: the state in which `remote` may be reached outside the tunnel. Default `stopped`.
    pub leak: Leak,
    /// `rekey`: lifetime of the tunnel's keys, 1 s to 24 h. Default 1 h.
    pub rekey: Duration,
    /// `pfs`: true if each rekey of the tunnel has a key exchange of its own, provided that the
    /// peer does the same; with `kem`, also an additional key exchange. Default true.
    pub pfs: bool,
    /// Optional features that we offer the peer. Their `resources` follow from the key below.
    pub features: Features,
    /// `resources`: number of child SAs for the same traffic, each with keys of its own, 1 to 64,
    /// provided that the peer also asks for several (RFC 9611). All packets of a flow use one of
    /// them. Default: one for each of [`crate::Tunnel::workers`].
    pub resources: Option<u8>,
    /// `traffic`: traffic that goes by certain interfaces, with several paths. Default none.
    pub traffic: Vec<InterfaceTraffic>,
    /// `redirect`: addresses of other gateways to which the peer may redirect us (RFC 5685). They
    /// must authenticate with the same `id`. Default none.
    pub redirects: Vec<TrafficSelector>,
    /// `tcp`: the condition under which packets to the peer use a TCP stream (RFC 9329). Default
    /// `off`.
    pub tcp: Tcp,
    /// `tcp_port`: the port at which the peer listens for TCP. Default 4500.
    pub tcp_port: u16,
    /// `resume`: how a tunnel comes back that was lost without being closed. Default `off`.
    pub resume: Resume,
    /// `dscp`: the DSCP of the outer header: `zero`, `copy` for that of the inner header, or a
    /// number up to 63. Default `zero`.
    pub dscp: Dscp,
    /// `tfc`: the padding that hides packet lengths: `mtu` pads every packet to the longest length,
    /// `buckets` to one of a few lengths, `off` not at all. Default `off`.
    pub tfc: Tfc,
    /// `cover`: minimum rate of packets to the peer in packets per second, 1 to 1000. Dummy packets
    /// fill the gaps. Default none.
    pub cover: Option<u16>,
    /// `unencrypted`: suites without encryption that are accepted, until a certain time. Default
    /// none.
    pub unencrypted: Option<Unencrypted>,
    /// `zones`, `layout` and `licences`.
    pub zones: ZonePolicy,
    /// `[peer.NAME.level]`: the packets that may go without encryption. Default none.
    pub levels: LevelPolicy,
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

/// The terms that peers have in common.
#[derive(Default)]
pub(crate) struct Common {
    of_parties: Shares<Terms>,
    of_peers: Shares<PeerTerms>,
    /// Of `local`: most peers of a gateway reach the same networks.
    networks: Shares<[TrafficSelector]>,
}

impl Common {
    /// Lets a peer share the terms of earlier ones. At once, so that no terms of its own are
    /// between what it keeps in memory.
    pub(crate) fn share(&mut self, mut peer: Peer) -> Peer {
        self.of_parties.share(&mut peer.party.terms);
        self.of_peers.share(&mut peer.terms);
        self.networks.share(&mut peer.local);
        peer
    }
}

/// The source of inner addresses (RFC 7296 section 2.19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Each end has its own address.
    Fixed,
    /// The peer assigns our inner address.
    Requested,
    /// We lease the peer its inner address from the pool of this name.
    Lent(String),
}

/// The condition under which packets to a peer use a TCP stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tcp {
    /// `off`: never.
    Off,
    /// `fallback`: if the peer does not answer over UDP.
    Fallback,
    /// `always`: UDP is not tried.
    Always,
}

impl Tcp {
    pub(crate) const WORDS: [(&str, Self); 3] = [
        ("off", Self::Off),
        ("fallback", Self::Fallback),
        ("always", Self::Always),
    ];
}

/// How a tunnel comes back that was lost without being closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// `off`: by a full exchange.
    Off,
    /// `ticket`: by a ticket (RFC 5723), if the peer has one for us or we have one for it.
    Ticket,
    /// `skid3`: by SKID3 (paper 004), or by a ticket if the peer does not know it.
    Skid3,
    /// `skid3-pfs`: by SKID3 with a key exchange, and never by a ticket.
    Skid3Pfs,
}

impl Resume {
    pub(crate) const WORDS: [(&str, Self); 4] = [
        ("off", Self::Off),
        ("ticket", Self::Ticket),
        ("skid3", Self::Skid3),
        ("skid3-pfs", Self::Skid3Pfs),
    ];
}

/// The part of a peer's prefixes that is routed into the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// `remote`: everything that the tunnel may carry, also while the tunnel is down.
    Remote,
    /// `subnets`: the subnets that the peer announces, from its first announcement on; all other
    /// traffic bypasses the tunnel. All of `remote` if the peer announces none.
    Subnets,
}

impl Routing {
    pub(crate) const WORDS: [(&str, Self); 2] =
        [("remote", Self::Remote), ("subnets", Self::Subnets)];
}

/// The event that makes us connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// `auto`: the start of the daemon, and every loss of the tunnel.
    Auto,
    /// `manual`: a `strata up` command.
    Manual,
}

impl Start {
    pub(crate) const WORDS: [(&str, Self); 2] = [("auto", Self::Auto), ("manual", Self::Manual)];
}

/// The state in which protected traffic may leave outside the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leak {
    /// `never`: blocked until unlocked, also after the daemon was stopped cleanly.
    Never,
    /// `stopped`: allowed after the daemon was stopped cleanly; blocked before that, and after a
    /// crash.
    Stopped,
}

impl Leak {
    pub(crate) const WORDS: [(&str, Self); 2] =
        [("never", Self::Never), ("stopped", Self::Stopped)];
}

/// The values of `nat`: true if a NAT is forbidden.
pub(crate) const NAT: [(&str, bool); 2] = [("allowed", false), ("forbidden", true)];

impl Peer {
    /// Creates a peer with the default of each key, and without identity and prefixes.
    fn new(name: &str) -> Self {
        Self {
            party: Party::new(name),
            address: None,
            local: Selectors::default(),
            remote: Selectors::default(),
            addressing: Addressing::Fixed,
            ppk: None,
            children: Vec::new(),
            terms: Shared::from(PeerTerms {
                mode: Mode::default(),
                users: USERS,
                unique: Unique::default(),
                dns_from_peer: false,
                routes: Routing::Remote,
                start: Start::Manual,
                leak: Leak::Stopped,
                rekey: Duration::from_secs(3600),
                pfs: true,
                features: Features::default(),
                resources: None,
                traffic: Vec::new(),
                redirects: Vec::new(),
                tcp: Tcp::Off,
                tcp_port: 4500,
                resume: Resume::Off,
                dscp: Dscp::default(),
                tfc: Tfc::default(),
                cover: None,
                unencrypted: None,
                zones: ZonePolicy::default(),
                levels: LevelPolicy::default(),
            }),
        }
    }

    pub(crate) fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let mut peer = Self::new(name);
        let mut is_whole = table.read(PARTY, &mut peer.party);
        is_whole &= table.read(PEER, &mut peer);
        let name = peer.address.as_ref().and_then(Address::name);
        is_whole &= peer.party.read_identity(&mut table, name);
        peer.zones = ZonePolicy::read(&mut table);
        peer.levels = LevelPolicy::read(&mut table, &peer.zones);
        let children = table.named("child", |name, table| Child::read(name, table, &peer));
        is_whole &= children.is_some();
        peer.children = children.unwrap_or_default();
        table.read_late(PEER, &mut peer);
        let is_dynamic = table.value("local").is_some_and(|value| is_dynamic(&value));
        if is_dynamic {
            peer.local = everything_like(&peer.remote).into();
        }
        peer.check_addressing(&mut table, is_dynamic);
        peer.check_esn(&mut table);
        unencrypted::check(&peer, &mut table);
        if peer.routes == Routing::Subnets {
            peer.check_subnets(&mut table, is_dynamic);
        }
        table.finish();
        is_whole.then_some(peer)
    }

    /// Requires an `address` from an end that requests an inner address, because that end must
    /// initiate.
    fn check_addressing(&self, table: &mut Table<'_>, is_dynamic: bool) {
        if let (true, None, Some(value)) =
            (is_dynamic, table.value("address"), table.value("local"))
        {
            value.fault::<()>(
                "only the initiator can request an inner address, and there is no `address` to connect to",
                "add `address = \"192.0.2.1\"`, or list our prefixes in `local`",
            );
        }
        if let (Some(value), Some(_)) = (table.value("pool"), &self.address) {
            value.fault::<()>(
                "a peer with a `pool` has to initiate, but this one has an `address` to connect to",
                "remove `address`, or `pool`",
            );
        }
        if let (false, Some(value)) = (is_dynamic, table.value("dns")) {
            value.fault::<()>(
                "a peer sends its name servers with the inner address that it assigns us, and we do not request one",
                "write `local = [\"dynamic\"]`, or list the name servers in `dns` of [tunnel]",
            );
        }
    }

    /// Refuses `esn` with zones: a licensed node that sees part of the packets cannot infer the
    /// upper 32 bits.
    fn check_esn(&self, table: &mut Table<'_>) {
        let is_zoned = self.zones.stance != Stance::Refuse;
        if let (true, true, Some(value)) = (self.features.esn, is_zoned, table.value("esn")) {
            value.fault::<()>(
                "zones require sequence numbers of 32 bits: a licensed node that sees only some packets could not infer the other 32",
                "remove `esn`, or write `zones = \"refuse\"`",
            );
        }
    }

    /// Checks `routes = "subnets"`: a peer announces its subnets together with our inner address,
    /// and other traffic leaves outside the tunnel.
    fn check_subnets(&self, table: &mut Table<'_>, is_dynamic: bool) {
        let Some(value) = table.value("routes") else {
            return;
        };
        if !is_dynamic {
            value.fault::<()>(
                "a peer announces its subnets with the inner address that it assigns us, and we do not request one",
                "write `local = [\"dynamic\"]`, or list those subnets in `remote` instead of `routes`",
            );
        }
        if self.leak == Leak::Never {
            value.fault::<()>(
                "`leak = \"never\"` keeps all of `remote` in the tunnel, and `routes` sends some of it outside",
                "remove one of the two; with `leak`, list the protected subnets in `remote`",
            );
        }
    }
}

/// Reads `address`. An end that knows the peer's address connects at once, unless `start` says
/// otherwise.
pub(crate) fn address(value: &Value<'_>, peer: &mut Peer) -> Option<()> {
    peer.address = Some(Address::read(value)?);
    peer.start = Start::Auto;
    Some(())
}

/// Reads `local`. The prefixes of `["dynamic"]` follow from `remote`.
pub(crate) fn local(value: &Value<'_>, peer: &mut Peer) -> Option<()> {
    value.accepts(|| "`[\"dynamic\"]`".to_owned());
    let mut elements = value.elements();
    match elements.next().is_some_and(|first| is_word_dynamic(&first)) {
        true if elements.next().is_some() => value.fault(
            "\"dynamic\" cannot be combined with prefixes",
            "write `local = [\"dynamic\"]` alone, for the address that the peer assigns us",
        ),
        true => {
            peer.addressing = Addressing::Requested;
            Some(())
        }
        false => {
            peer.local = selectors(value)?.into();
            Some(())
        }
    }
}

/// Returns true if the value of `local` is `["dynamic"]`.
fn is_dynamic(local: &Value<'_>) -> bool {
    let mut elements = local.elements();
    let first = elements.next();
    first.is_some_and(|first| is_word_dynamic(&first)) && elements.next().is_none()
}

fn is_word_dynamic(element: &Value<'_>) -> bool {
    element.inner.as_str() == Some("dynamic")
}

/// Reads `pool`, which assigns the peer's inner address.
pub(crate) fn pool(value: &Value<'_>, peer: &mut Peer) -> Option<()> {
    peer.addressing = Addressing::Lent(value.text()?.to_owned());
    Some(())
}

/// Reads `remote`. With `pool` it must be absent: the selectors follow once the pools are known.
pub(crate) fn remote(value: &Value<'_>, peer: &mut Peer) -> Option<()> {
    if value.is_beside("pool") {
        return value.fault(
            "`pool` already determines the inner address of the peer",
            "remove `remote`, or `pool`",
        );
    }
    peer.remote = selectors(value)?.into();
    Some(())
}

/// Reads a DSCP: `zero`, `copy`, or a number in range.
pub(crate) fn dscp(value: &Value<'_>) -> Option<Dscp> {
    if value.is_text() {
        return value.choice(&[("zero", Dscp::default()), ("copy", Dscp::Copied)]);
    }
    let number = value.number(0..=Dscp::HIGHEST.into())?;
    u8::try_from(number).ok().map(Dscp::Fixed)
}

/// Reads `start`. Only an end that knows the peer's address can connect.
pub(crate) fn start(value: &Value<'_>, peer: &mut Peer) -> Option<()> {
    match value.choice(&Start::WORDS)? {
        Start::Auto if !value.is_beside("address") => value.fault(
            "there is no `address` to connect to",
            "add `address = \"192.0.2.1\"`, or leave `start` out: the peer connects to us",
        ),
        start => {
            peer.start = start;
            Some(())
        }
    }
}

/// Returns the full range of every address family in `remote`, for the peer to narrow.
fn everything_like(remote: &[TrafficSelector]) -> Vec<TrafficSelector> {
    let everything: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let has = |address: &IpAddr| {
        let mut remote = remote.iter();
        remote.any(|selector| selector.first.is_ipv4() == address.is_ipv4())
    };
    let families = everything.into_iter().filter(has);
    families
        .filter_map(|address| TrafficSelector::from_prefix(address, 0))
        .collect()
}

/// Reads `redirect`, which needs an `address`: only an initiator can be redirected.
pub(crate) fn redirects(value: &Value<'_>, peer: &mut Peer) -> Option<()> {
    if peer.address.is_none() {
        return value.fault(
            "only the initiator is redirected, and there is no `address` to connect to",
            "add `address = \"192.0.2.1\"`, or remove `redirect`",
        );
    }
    peer.redirects = selectors(value)?;
    Some(())
}

/// Reads `tcp`, which needs an `address`: the initiator chooses the transport.
pub(crate) fn tcp(value: &Value<'_>, peer: &mut Peer) -> Option<()> {
    match value.choice(&Tcp::WORDS)? {
        Tcp::Fallback | Tcp::Always if peer.address.is_none() => value.fault(
            "only the initiator chooses TCP, and there is no `address` to connect to",
            "add `address = \"192.0.2.1\"`, or remove `tcp` here and write `tcp = 4500` in [listen]",
        ),
        tcp => {
            peer.tcp = tcp;
            Some(())
        }
    }
}

pub(crate) fn selectors(value: &Value<'_>) -> Option<Vec<TrafficSelector>> {
    let selectors = value.list(Value::selector)?;
    if selectors.is_empty() {
        return value.fault(
            "names no prefix",
            "list at least one, like [\"10.8.0.0/16\"]",
        );
    }
    Some(selectors)
}

impl Peer {
    /// Returns the zones of the peer's packets and the suite of each. The default suite is the best
    /// of `suite`.
    pub fn layout(&self) -> impl Iterator<Item = (ZoneSelector, ZoneSuite)> {
        let best = self.party.suites.first().copied();
        let best = best.unwrap_or(Suite::Aes128Gcm16).into();
        let zones = self.zones.layout.iter();
        zones.map(move |(selector, suite)| (*selector, suite.unwrap_or(best)))
    }

    /// Returns the most octets that these suites add to a packet; 0 without zones.
    pub fn zone_overhead(&self) -> u16 {
        match self.zones.stance {
            Stance::Refuse => 0,
            Stance::Accept | Stance::Require => {
                let suites = self.layout().map(|(_, suite)| suite.overhead() as u16);
                suites.sum()
            }
        }
    }
}

impl Peer {
    /// Fills in `remote` from the peer's pool. An unknown pool yields no selectors; it has its own
    /// fault.
    pub(crate) fn among(mut self, pools: &[Pool]) -> Self {
        if let Addressing::Lent(name) = &self.addressing {
            let pool = pools.iter().find(|pool| pool.name == *name);
            self.remote = pool.map(Pool::selectors).unwrap_or_default().into();
        }
        for child in &mut self.children {
            child.complete(&self.local, &self.remote);
        }
        self
    }

    /// Returns the name of the pool that the peer's inner address is leased from.
    pub(crate) fn pool(&self) -> Option<&str> {
        match &self.addressing {
            Addressing::Lent(name) => Some(name),
            Addressing::Fixed | Addressing::Requested => None,
        }
    }

    /// Returns true if a tunnel in transport mode cannot move, as each end lists one address.
    pub(crate) fn is_fixed(&self) -> bool {
        let (local, remote) = (&self.local[..], &self.remote[..]);
        let first = (self.mode, local, remote);
        // A child without prefixes of its own has those of its peer.
        let others = self.children.iter().map(|child| {
            let [ours, theirs] = [(&child.local, local), (&child.remote, remote)]
                .map(|(own, peers)| if own.is_empty() { peers } else { &own[..] });
            (child.mode, ours, theirs)
        });
        let mut all = std::iter::once(first).chain(others);
        all.any(|(mode, local, remote)| {
            mode == Mode::Transport && one_pair(local, remote).is_some()
        })
    }

    /// Returns our selectors of all of the peer's tunnels together.
    pub fn all_local(&self) -> impl Iterator<Item = &TrafficSelector> {
        let others = self.children.iter().flat_map(|child| &child.local);
        self.local.iter().chain(others)
    }

    /// Returns the peer's selectors of all of its tunnels together.
    pub fn all_remote(&self) -> impl Iterator<Item = &TrafficSelector> {
        let others = self.children.iter().flat_map(|child| &child.remote);
        self.remote.iter().chain(others)
    }
}
