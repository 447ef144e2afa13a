//! `[peer.NAME]`: the other end of a tunnel, and the zones that both ends would license to nodes.

use crate::child::{Child, Draft};
use crate::level::LevelPolicy;
use crate::mode;
use crate::ppk::ppk;
use crate::reader::{Table, Value};
use crate::tfc::{Tfc, cover, tfc};
use crate::zone::{Stance, ZonePolicy};
use crate::{Party, Pool, Ppk};
use model::{Dscp, MOST_RESOURCES, Mode, Suite, TrafficSelector, ZoneSelector, ZoneSuite};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// A VPN peer.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The peer's identity and its IKE settings.
    pub party: Party,
    /// `address`: the address at which the peer listens. If it is set, we initiate; otherwise we
    /// wait for the peer.
    pub address: Option<IpAddr>,
    /// `local`: our prefixes that the tunnel carries, each optionally limited to a protocol and
    /// ports: `10.1.0.2/32 tcp 443`. `["dynamic"]` requests an inner address from the peer; the
    /// selectors then cover all of `remote`'s address families.
    pub local: Vec<TrafficSelector>,
    /// `remote`: the peer's prefixes that the tunnel carries, in the same form. With `pool`, the
    /// prefixes of the pool.
    pub remote: Vec<TrafficSelector>,
    /// `mode`: the part of a packet that the tunnel seals. Default `tunnel`: the whole packet.
    pub mode: Mode,
    /// `local = ["dynamic"]` and `pool`: the end that assigns the other's inner address. Default
    /// neither.
    pub addressing: Addressing,
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
    /// `mobike`: true if the tunnel may move to other addresses, provided that the peer supports it
    /// (RFC 4555). Default `on`, but `off` with `mode = "transport"`.
    pub mobike: bool,
    /// `clone`: true if the IKE SA may be cloned, provided that the peer agrees (RFC 7791). The
    /// tunnel can then move without a pause. Default false: few implementations support it, and
    /// every clone is one more IKE SA.
    pub clones: bool,
    /// `resources`: number of child SAs for the same traffic, each with keys of its own, 1 to 64,
    /// provided that the peer also asks for several (RFC 9611). All packets of a flow use one of
    /// them. Default: one for each of [`crate::Tunnel::workers`].
    pub resources: Option<u8>,
    /// `esn`: true if sequence numbers have 64 bits, provided that the peer agrees (RFC 4303
    /// section 2.2.1), so that the keys of a fast tunnel last longer than 2^32 packets. Not
    /// together with `zones`. Default false.
    pub esn: bool,
    /// `nat`: `forbidden` treats NATs on the path as an attack (RFC 4555 section 3.9). Default
    /// `allowed`.
    pub forbids_nat: bool,
    /// `redirect`: addresses of other gateways to which the peer may redirect us (RFC 5685). They
    /// must authenticate with the same `id`. Default none.
    pub redirects: Vec<TrafficSelector>,
    /// `tcp`: the condition under which packets to the peer use a TCP stream (RFC 9329). Default
    /// `off`.
    pub tcp: Tcp,
    /// `tcp_port`: the port at which the peer listens for TCP. Default 4500.
    pub tcp_port: u16,
    /// `dscp`: the DSCP of the outer header: `zero`, `copy` for that of the inner header, or a
    /// number up to 63. Default `zero`.
    pub dscp: Dscp,
    /// `tfc`: the padding that hides packet lengths: `mtu` pads every packet to the longest length,
    /// `buckets` to one of a few lengths, `off` not at all. Default `off`.
    pub tfc: Tfc,
    /// `cover`: minimum rate of packets to the peer in packets per second, 1 to 1000. Dummy packets
    /// fill the gaps. Default none.
    pub cover: Option<u16>,
    /// `ppk`: a post-quantum pre-shared key in addition to `psk` or certificates (RFC 8784).
    /// Default none.
    pub ppk: Option<Ppk>,
    /// `zones`, `layout` and `licences`.
    pub zones: ZonePolicy,
    /// `[peer.NAME.level]`: the packets that may go without encryption. Default none.
    pub levels: LevelPolicy,
    /// `[peer.NAME.child.NAME]`: additional tunnels, sorted by name.
    pub children: Vec<Child>,
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

/// The part of a peer's prefixes that is routed into the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// `remote`: everything that the tunnel may carry, also while the tunnel is down.
    Remote,
    /// `subnets`: the subnets that the peer announces, from its first announcement on; all other
    /// traffic bypasses the tunnel. All of `remote` if the peer announces none.
    Subnets,
}

/// The event that makes us connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// `auto`: the start of the daemon, and every loss of the tunnel.
    Auto,
    /// `manual`: a `strata up` command.
    Manual,
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

/// Reads a DSCP: `zero`, `copy`, or a number in range.
fn dscp(value: &Value<'_>) -> Option<Dscp> {
    if value.is_text() {
        return value.choice(&[("zero", Dscp::default()), ("copy", Dscp::Copied)]);
    }
    let number = value.number(0..=Dscp::HIGHEST.into())?;
    u8::try_from(number).ok().map(Dscp::Fixed)
}

impl Peer {
    pub(crate) fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let party = Party::read(name, &mut table);
        let address = table.optional("address", Value::address);
        let local = table.required("local", "[\"10.1.0.2/32\"]", local);
        let pool = table.optional("pool", |value| value.text().map(str::to_owned));
        let remote = remote(&mut table);
        let mode = table.optional("mode", mode::mode).unwrap_or_default();
        let from_peer = table.optional("dns", |value| value.choice(&[("from-peer", ())]));
        let routing = [("remote", Routing::Remote), ("subnets", Routing::Subnets)];
        let routes = table.optional("routes", |value| value.choice(&routing));
        let routes = routes.unwrap_or(Routing::Remote);
        let start = start(&mut table, address);
        let leak = [("never", Leak::Never), ("stopped", Leak::Stopped)];
        let leak = table.optional("leak", |value| value.choice(&leak));
        let second = Duration::from_secs(1);
        let rekey = table.optional("rekey", |value| value.duration(second..=second * 86_400));
        let pfs = table.optional("pfs", Value::boolean);
        let switch = [("on", true), ("off", false)];
        let mobike = table.optional("mobike", |value| value.choice(&switch));
        let clones = table.optional("clone", Value::boolean);
        let resources = table.optional("resources", |value| {
            let most = value.number(1..=MOST_RESOURCES.into())?;
            u8::try_from(most).ok()
        });
        let esn = table.optional("esn", Value::boolean);
        let nat = [("allowed", false), ("forbidden", true)];
        let nat = table.optional("nat", |value| value.choice(&nat));
        let redirects = table.optional("redirect", |value| redirects(value, address));
        let tcp = table.optional("tcp", |value| tcp(value, address));
        let tcp_port = table.optional("tcp_port", Value::port);
        let dscp = table.optional("dscp", dscp);
        let tfc = table.optional("tfc", tfc);
        let cover = table.optional("cover", cover);
        let ppk = table.optional("ppk", ppk);
        let zones = ZonePolicy::read(&mut table);
        let levels = LevelPolicy::read(&mut table, zones.as_ref());
        let children = table.named("child", Draft::read);
        let dynamic = matches!(local, Some(Local::Dynamic));
        check_addressing(&mut table, dynamic, address);
        check_esn(&mut table, esn, zones.as_ref());
        if routes == Routing::Subnets {
            check_subnets(&mut table, dynamic, leak);
        }
        table.finish();
        let remote = remote?;
        let rekey = rekey.unwrap_or(second * 3600);
        let pfs = pfs.unwrap_or(true);
        let children = children?.into_iter();
        let children = children.map(|child| child.beside(mode, rekey, pfs));
        let children: Vec<_> = children.collect();
        let has_transport = has_transport(mode, &children);
        Some(Self {
            children,
            party: party?,
            address,
            local: match local? {
                Local::Prefixes(prefixes) => prefixes,
                Local::Dynamic => everything_like(&remote),
            },
            addressing: match pool {
                Some(pool) => Addressing::Lent(pool),
                None if dynamic => Addressing::Requested,
                None => Addressing::Fixed,
            },
            dns_from_peer: from_peer.is_some(),
            routes,
            remote,
            mode,
            start,
            leak: leak.unwrap_or(Leak::Stopped),
            rekey,
            pfs,
            mobike: mobike.unwrap_or(!has_transport),
            clones: clones.unwrap_or(false),
            resources,
            esn: esn.unwrap_or(false),
            forbids_nat: nat.unwrap_or(false),
            redirects: redirects.unwrap_or_default(),
            tcp: tcp.unwrap_or(Tcp::Off),
            tcp_port: tcp_port.unwrap_or(4500),
            dscp: dscp.unwrap_or_default(),
            tfc: tfc.unwrap_or_default(),
            cover,
            ppk,
            zones: zones?,
            levels,
        })
    }
}

/// The value of `local`.
enum Local {
    Prefixes(Vec<TrafficSelector>),
    Dynamic,
}

fn local(value: &Value<'_>) -> Option<Local> {
    value.accepts(|| "`[\"dynamic\"]`".to_owned());
    let mut elements = value.elements();
    let dynamic = |element: Value<'_>| element.inner.as_str() == Some("dynamic");
    match (elements.next().is_some_and(dynamic), elements.next()) {
        (true, None) => Some(Local::Dynamic),
        (true, Some(_)) => value.fault(
            "\"dynamic\" cannot be combined with prefixes",
            "write `local = [\"dynamic\"]` alone, for the address that the peer assigns us",
        ),
        (false, _) => selectors(value).map(Local::Prefixes),
    }
}

/// Reads `remote`. With `pool` it must be absent: the selectors follow once the pools are known.
fn remote(table: &mut Table<'_>) -> Option<Vec<TrafficSelector>> {
    if table.value("pool").is_none() {
        return table.required("remote", "[\"10.8.0.0/16\"]", selectors);
    }
    if let Some(value) = table.value("remote") {
        return value.fault(
            "`pool` already determines the inner address of the peer",
            "remove `remote`, or `pool`",
        );
    }
    Some(Vec::new())
}

/// Requires an `address` from an end that requests an inner address, because that end must
/// initiate.
fn check_addressing(table: &mut Table<'_>, dynamic: bool, address: Option<IpAddr>) {
    if let (true, None, Some(value)) = (dynamic, table.value("address"), table.value("local")) {
        value.fault::<()>(
            "only the initiator can request an inner address, and there is no `address` to connect to",
            "add `address = \"192.0.2.1\"`, or list our prefixes in `local`",
        );
    }
    if let (Some(value), Some(_)) = (table.value("pool"), address) {
        value.fault::<()>(
            "a peer with a `pool` has to initiate, but this one has an `address` to connect to",
            "remove `address`, or `pool`",
        );
    }
    if let (false, Some(value)) = (dynamic, table.value("dns")) {
        value.fault::<()>(
            "a peer sends its name servers with the inner address that it assigns us, and we do not request one",
            "write `local = [\"dynamic\"]`, or list the name servers in `dns` of [tunnel]",
        );
    }
}

/// Refuses `esn` with zones: a licensed node that sees part of the packets cannot infer the upper
/// 32 bits.
fn check_esn(table: &mut Table<'_>, esn: Option<bool>, zones: Option<&ZonePolicy>) {
    let zoned = zones.is_some_and(|zones| zones.stance != Stance::Refuse);
    if let (Some(true), true, Some(value)) = (esn, zoned, table.value("esn")) {
        value.fault::<()>(
            "zones require sequence numbers of 32 bits: a licensed node that sees only some packets could not infer the other 32",
            "remove `esn`, or write `zones = \"refuse\"`",
        );
    }
}

/// Checks `routes = "subnets"`: a peer announces its subnets together with our inner address, and
/// other traffic leaves outside the tunnel.
fn check_subnets(table: &mut Table<'_>, dynamic: bool, leak: Option<Leak>) {
    let Some(value) = table.value("routes") else {
        return;
    };
    if !dynamic {
        value.fault::<()>(
            "a peer announces its subnets with the inner address that it assigns us, and we do not request one",
            "write `local = [\"dynamic\"]`, or list those subnets in `remote` instead of `routes`",
        );
    }
    if leak == Some(Leak::Never) {
        value.fault::<()>(
            "`leak = \"never\"` keeps all of `remote` in the tunnel, and `routes` sends some of it outside",
            "remove one of the two; with `leak`, list the protected subnets in `remote`",
        );
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
fn redirects(value: &Value<'_>, address: Option<IpAddr>) -> Option<Vec<TrafficSelector>> {
    if address.is_none() {
        return value.fault(
            "only the initiator is redirected, and there is no `address` to connect to",
            "add `address = \"192.0.2.1\"`, or remove `redirect`",
        );
    }
    selectors(value)
}

/// Reads `tcp`, which needs an `address`: the initiator chooses the transport.
fn tcp(value: &Value<'_>, address: Option<IpAddr>) -> Option<Tcp> {
    let choices = [
        ("off", Tcp::Off),
        ("fallback", Tcp::Fallback),
        ("always", Tcp::Always),
    ];
    match value.choice(&choices)? {
        Tcp::Fallback | Tcp::Always if address.is_none() => value.fault(
            "only the initiator chooses TCP, and there is no `address` to connect to",
            "add `address = \"192.0.2.1\"`, or remove `tcp` here and write `tcp = 4500` in [listen]",
        ),
        tcp => Some(tcp),
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
            self.remote = pool.map_or_else(Vec::new, Pool::selectors);
        }
        for child in &mut self.children {
            child.complete(&self.local, &self.remote);
        }
        self
    }

    /// Returns true if one of the peer's tunnels is in transport mode.
    pub(crate) fn has_transport(&self) -> bool {
        has_transport(self.mode, &self.children)
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

fn has_transport(first: Mode, children: &[Child]) -> bool {
    let mut others = children.iter().map(|child| child.mode);
    first == Mode::Transport || others.any(|mode| mode == Mode::Transport)
}

fn start(table: &mut Table<'_>, address: Option<IpAddr>) -> Start {
    let choices = [("auto", Start::Auto), ("manual", Start::Manual)];
    let waits = table.value("address").is_none();
    let start = table.optional("start", |value| match value.choice(&choices)? {
        Start::Auto if waits => value.fault(
            "there is no `address` to connect to",
            "add `address = \"192.0.2.1\"`, or leave `start` out: the peer connects to us",
        ),
        start => Some(start),
    });
    let default = if address.is_some() {
        Start::Auto
    } else {
        Start::Manual
    };
    start.unwrap_or(default)
}
