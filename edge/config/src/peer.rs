//! `[peer.NAME]`: the other end of a tunnel, and what both of us would show to others.

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
    /// Who it is.
    pub party: Party,
    /// `address`: where it listens. With it we connect, without it we wait for the peer.
    pub address: Option<IpAddr>,
    /// `local`: prefixes of ours that the tunnel carries, each with a protocol and ports if not all of it is
    /// meant: `10.1.0.2/32 tcp 443`; `["dynamic"]` is an address that the peer
    /// lends us, and everything of `remote`'s families here.
    pub local: Vec<TrafficSelector>,
    /// `remote`: prefixes of the peer's that the tunnel carries, in the same way. With `pool` those of the pool.
    pub remote: Vec<TrafficSelector>,
    /// `mode`: what of a packet the tunnel seals. Default `tunnel`: all of it.
    pub mode: Mode,
    /// `local = ["dynamic"]` and `pool`: who lends whom an address inside. Default nobody.
    pub addressing: Addressing,
    /// `dns = "from-peer"`: programs ask the name servers that the peer names, while the tunnel is
    /// up. Default they do not.
    pub dns_from_peer: bool,
    /// `routes`: what of `remote` is led into the tunnel. Default `remote`: all of it.
    pub routes: Routing,
    /// `start`: when to connect. Default `auto` with an address; always `manual` without one.
    pub start: Start,
    /// `leak`: when `remote` may be reached outside the tunnel. Default `stopped`.
    pub leak: Leak,
    /// `rekey`: how long keys of the tunnel are used, 1 s to 24 h. Default 1 h.
    pub rekey: Duration,
    /// `pfs`: whether its new keys come from a key exchange of their own, where the peer does the
    /// same; with `kem`, from that one as well. Default true.
    pub pfs: bool,
    /// `mobike`: whether the tunnel may move to other addresses, if the peer can do it too (RFC 4555).
    /// Default `on`, but `off` with `mode = "transport"`.
    pub mobike: bool,
    /// `clone`: whether its IKE SA may be cloned, if the peer says the same (RFC 7791): then the tunnel can
    /// move without a pause. Default false, as few know it, and every clone is one more IKE SA.
    pub clones: bool,
    /// `resources`: so many tunnels carry the same, each with keys of its own, if the peer says that it wants
    /// several too (RFC 9611); 1 to 64. All packets of a flow go by one of them. Default: one for each of
    /// [`crate::Tunnel::workers`].
    pub resources: Option<u8>,
    /// `esn`: whether sequence numbers have 64 bits, if the peer says the same (RFC 4303 section 2.2.1), so
    /// that the keys of a fast tunnel last longer than 2^32 packets. Not beside `zones`. Default false.
    pub esn: bool,
    /// `nat`: `forbidden` takes translators on the way for an attack (RFC 4555 section 3.9). Default
    /// `allowed`.
    pub forbids_nat: bool,
    /// `redirect`: addresses of other gateways that it may send us to (RFC 5685). They have to prove the
    /// same `id`. Default none.
    pub redirects: Vec<TrafficSelector>,
    /// `tcp`: whether packets go to it in a stream (RFC 9329). Default `off`.
    pub tcp: Tcp,
    /// `tcp_port`: the port at which it listens for that. Default 4500.
    pub tcp_port: u16,
    /// `dscp`: the class of service that packets to it ask for outside: `zero`, `copy` that of the datagram
    /// inside, or a number up to 63. Default `zero`.
    pub dscp: Dscp,
    /// `tfc`: how long packets to it look from outside: `mtu`, as the longest; `buckets`, as one of few;
    /// `off`, as they are, which is the default.
    pub tfc: Tfc,
    /// `cover`: so many packets go to it in each second at least, 1 to 1000: dummies where there is nothing
    /// to send. Default none.
    pub cover: Option<u16>,
    /// `ppk`: a post-quantum pre-shared key beside `psk` or certificates (RFC 8784). Default none.
    pub ppk: Option<Ppk>,
    /// `zones`, `layout` and `licences`.
    pub zones: ZonePolicy,
    /// `[peer.NAME.level]`: what may go without encryption. Default nothing.
    pub levels: LevelPolicy,
    /// `[peer.NAME.child.NAME]`: tunnels beside this first one, sorted by name.
    pub children: Vec<Child>,
}

/// Where addresses inside come from (RFC 7296 section 2.19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Each end has its own.
    Fixed,
    /// The peer lends us ours.
    Requested,
    /// We lend the peer its own, out of the pool of this name.
    Lent(String),
}

/// When packets go to a peer in a stream of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tcp {
    /// `off`: never.
    Off,
    /// `fallback`: where nobody answers by UDP.
    Fallback,
    /// `always`: UDP is not tried.
    Always,
}

/// What of a peer's is led into the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// `remote`: all that the tunnel may carry, whether it is up or not.
    Remote,
    /// `subnets`: what the peer says is behind it, from when it first says so; everything else goes
    /// beside the tunnel. All of `remote` if it does not say.
    Subnets,
}

/// When to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// `auto`: when the daemon starts, and again whenever the tunnel is lost.
    Auto,
    /// `manual`: when `strata up` says so.
    Manual,
}

/// When traffic that the tunnel protects may leave outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leak {
    /// `never`: not even when the daemon was stopped in good order, until it is unlocked.
    Never,
    /// `stopped`: when the daemon was stopped in good order; not before, and not after a crash.
    Stopped,
}

/// A word, or one of the numbers that there are.
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

/// What `local` says.
enum Local {
    Prefixes(Vec<TrafficSelector>),
    Dynamic,
}

fn local(value: &Value<'_>) -> Option<Local> {
    let mut elements = value.elements();
    let dynamic = |element: Value<'_>| element.inner.as_str() == Some("dynamic");
    match (elements.next().is_some_and(dynamic), elements.next()) {
        (true, None) => Some(Local::Dynamic),
        (true, Some(_)) => value.fault(
            "\"dynamic\" stands beside prefixes",
            "write `local = [\"dynamic\"]` for the address that the peer lends us, and nothing else",
        ),
        (false, _) => selectors(value).map(Local::Prefixes),
    }
}

/// With `pool` there is none: it is found when the pools are known.
fn remote(table: &mut Table<'_>) -> Option<Vec<TrafficSelector>> {
    if table.value("pool").is_none() {
        return table.required("remote", "[\"10.8.0.0/16\"]", selectors);
    }
    if let Some(value) = table.value("remote") {
        return value.fault(
            "`pool` says already what the peer has inside: an address that we lend it",
            "remove `remote`, or `pool`",
        );
    }
    Some(Vec::new())
}

/// Whoever asks for an address begins.
fn check_addressing(table: &mut Table<'_>, dynamic: bool, address: Option<IpAddr>) {
    if let (true, None, Some(value)) = (dynamic, table.value("address"), table.value("local")) {
        value.fault::<()>(
            "only who connects can ask for an address inside, and there is no `address` to connect to",
            "add `address = \"192.0.2.1\"`, or list our prefixes in `local`",
        );
    }
    if let (Some(value), Some(_)) = (table.value("pool"), address) {
        value.fault::<()>(
            "a peer that gets an address out of a pool connects to us, and this one has an `address`",
            "remove `address`, or `pool`",
        );
    }
    if let (false, Some(value)) = (dynamic, table.value("dns")) {
        value.fault::<()>(
            "a peer names its name servers with the address that it lends us, and we do not ask for one",
            "write `local = [\"dynamic\"]`, or list the name servers in `dns` of [tunnel]",
        );
    }
}

/// A node on the way that sees a part of the packets cannot infer what is not on them.
fn check_esn(table: &mut Table<'_>, esn: Option<bool>, zones: Option<&ZonePolicy>) {
    let zoned = zones.is_some_and(|zones| zones.stance != Stance::Refuse);
    if let (Some(true), true, Some(value)) = (esn, zoned, table.value("esn")) {
        value.fault::<()>(
            "packets in zones have sequence numbers of 32 bits, for a licensed node that sees a part of them could not infer the rest",
            "remove `esn`, or write `zones = \"refuse\"`",
        );
    }
}

/// Subnets are told together with an address, and what is beside them leaves outside the tunnel.
fn check_subnets(table: &mut Table<'_>, dynamic: bool, leak: Option<Leak>) {
    let Some(value) = table.value("routes") else {
        return;
    };
    if !dynamic {
        value.fault::<()>(
            "a peer names the subnets behind it with the address that it lends us, and we do not ask for one",
            "write `local = [\"dynamic\"]`, or list those subnets in `remote` instead of `routes`",
        );
    }
    if leak == Some(Leak::Never) {
        value.fault::<()>(
            "`leak = \"never\"` keeps all of `remote` in the tunnel, and this leads some of it beside",
            "remove one of them; with `leak`, list in `remote` what is to be kept in",
        );
    }
}

/// All of the families that these are of: what is asked for is narrowed to what the peer lends.
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

/// Only who connects can be sent elsewhere.
fn redirects(value: &Value<'_>, address: Option<IpAddr>) -> Option<Vec<TrafficSelector>> {
    if address.is_none() {
        return value.fault(
            "who connects is sent to other gateways, and there is no `address` to connect to",
            "add `address = \"192.0.2.1\"`, or remove `redirect`",
        );
    }
    selectors(value)
}

/// Whoever connects says how.
fn tcp(value: &Value<'_>, address: Option<IpAddr>) -> Option<Tcp> {
    let choices = [
        ("off", Tcp::Off),
        ("fallback", Tcp::Fallback),
        ("always", Tcp::Always),
    ];
    match value.choice(&choices)? {
        Tcp::Fallback | Tcp::Always if address.is_none() => value.fault(
            "who connects says whether it does so by TCP, and there is no `address` to connect to",
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
    /// The zones of its packets with the suite of each: where nobody wrote one, the best of `suite`.
    pub fn layout(&self) -> impl Iterator<Item = (ZoneSelector, ZoneSuite)> {
        let best = self.party.suites.first().copied();
        let best = best.unwrap_or(Suite::Aes128Gcm16).into();
        let zones = self.zones.layout.iter();
        zones.map(move |(selector, suite)| (*selector, suite.unwrap_or(best)))
    }

    /// Octets that these suites add to a packet at most; 0 without zones.
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
    /// What `remote` is where a pool says it. Of a pool that is not there: nothing, and a fault.
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

    /// Whether one of its tunnels is in transport mode.
    pub(crate) fn has_transport(&self) -> bool {
        has_transport(self.mode, &self.children)
    }

    /// What of ours its tunnels carry, all of them together.
    pub fn all_local(&self) -> impl Iterator<Item = &TrafficSelector> {
        let others = self.children.iter().flat_map(|child| &child.local);
        self.local.iter().chain(others)
    }

    /// What of the peer's its tunnels carry, all of them together.
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
