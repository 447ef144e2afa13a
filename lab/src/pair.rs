//! Two endpoints and one host between them: the network of most end-to-end tests.
//!
//! ```text
//!  mobile             between              gateway
//!  eth0 ---------- wireless  wired ---------- eth0
//!  10.3.0.2        10.3.0.1  192.0.2.2   192.0.2.1
//!  2001:db8:3::2         ::1       ::2   2001:db8:2::1
//!
//!  10.1.0.2, fd00:1::2 <== tunnel ==> 10.8.0.1, fd00:8::1
//! ```
//!
//! All routes are default routes. Packets that the mobile node does not protect therefore leave in
//! clear and pass the host between: a router, a licensed node, or a tap on the wire.

use crate::daemon::Daemon;
use crate::emulator::{Emulator, Settings};
use crate::host::Host;
pub use crate::process::DEADLINE;
use crate::process::until;
use crate::testbed::Testbed;
use crate::wire;
use anyhow::{Context, Result, ensure};
use os::netlink::Netlink;
use os::{Family, Prefix};
use serde_json::Value;
use std::num::NonZeroU64;
use std::time::Duration;

/// Prefixes that the gateway protects, one per family.
pub const PROTECTED: [&str; 2] = ["10.8.0.0/16", "fd00:8::/64"];

/// Inner addresses of the gateway.
pub const GATEWAY: [&str; 2] = ["10.8.0.1", "fd00:8::1"];

/// Inner addresses of the mobile node.
pub const MOBILE: [&str; 2] = ["10.1.0.2", "fd00:1::2"];

/// The addresses of a host behind the mobile node, if there is one.
pub const BEHIND: [&str; 2] = ["10.1.0.130", "fd00:1::8002"];

/// Identity of the licensed node, if the host between is one.
pub const LICENSED: &str = "fa.example.net";

/// A licence for the licensed node to read the headers, as a configuration writes it.
pub const HEADERS: &str = r#"[{ node = "fa.example.net", zones = ["headers"], right = "read" }]"#;

/// No licence for any node.
pub const NOBODY: &str = "[]";

/// Pre-shared key of the mobile node and the gateway, in `tunnel.psk`.
pub const TUNNEL_KEY: &str = "a key between mobile node and gateway";

/// Pre-shared key of the gateway and the licensed node, in `node.psk`.
pub const NODE_KEY: &str = "a key between gateway and licensed node";

/// The three hosts.
pub struct Pair {
    bed: Testbed,
    /// The wire between the mobile node and the host between, if it is emulated.
    _hop: Option<Emulator>,
    /// The mobile node, which initiates.
    pub mobile: Host,
    /// The host that all packets pass.
    pub between: Host,
    /// The gateway, which responds.
    pub gateway: Host,
}

/// One end's settings for the zones of a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// `accept`, `require` or `refuse`.
    pub zones: &'a str,
    /// List of licences, as a configuration writes it.
    pub licences: &'a str,
}

impl<'a> Terms<'a> {
    /// Requires zones, readable by the nodes that these licences name.
    pub const fn requiring(licences: &'a str) -> Self {
        Terms {
            zones: "require",
            licences,
        }
    }

    /// Plain ESP.
    pub const PLAIN: Self = Terms {
        zones: "refuse",
        licences: NOBODY,
    };

    /// Zones that only the two endpoints can read.
    pub const ZONED: Self = Terms {
        zones: "require",
        licences: NOBODY,
    };

    /// Zones whose headers the licensed node may read.
    pub const LICENSED: Self = Terms {
        zones: "require",
        licences: HEADERS,
    };

    /// Leaves out `licences` if there are none: with `zones = "refuse"` they are a configuration
    /// error.
    pub(crate) fn text(&self) -> String {
        match self.licences {
            NOBODY => format!("zones = \"{}\"", self.zones),
            licences => format!("zones = \"{}\"\nlicences = {licences}", self.zones),
        }
    }
}

impl Pair {
    /// Creates the hosts and the wires, with routes but without daemons.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new(name: &str) -> Result<Self> {
        Self::with_hop(name, None)
    }

    /// Creates the same network with an emulated wire to the mobile node: limited rate, delay and
    /// bit errors.
    ///
    /// # Errors
    /// As [`Pair::new`].
    pub fn with_lossy_hop(name: &str, hop: sim::Settings) -> Result<Self> {
        Self::with_hop(name, Some(hop))
    }

    fn with_hop(name: &str, hop: Option<sim::Settings>) -> Result<Self> {
        let bed = Testbed::new(name)?;
        let (mobile, gateway) = (bed.host("mobile")?, bed.host("gateway")?);
        let between = bed.host("between")?;
        between.sysctl("net.ipv4.ip_forward", "1")?;
        between.sysctl("net.ipv6.conf.all.forwarding", "1")?;
        let near = mobile.end("eth0", &["10.3.0.2/24", "2001:db8:3::2/64"]);
        let far = between.end("wireless", &["10.3.0.1/24", "2001:db8:3::1/64"]);
        let hop = match hop {
            None => wire::veth(near, far).map(|()| None)?,
            Some(hop) => Some(wire::emulated(near, far, Settings::symmetric(hop), 1)?),
        };
        wire::veth(
            between.end("wired", &["192.0.2.2/24", "2001:db8:2::2/64"]),
            gateway.end("eth0", &["192.0.2.1/24", "2001:db8:2::1/64"]),
        )?;
        for (host, via) in [
            (&mobile, ["10.3.0.1", "2001:db8:3::1"]),
            (&gateway, ["192.0.2.2", "2001:db8:2::2"]),
        ] {
            via.iter().try_for_each(|via| host.route("default", via))?;
        }
        // A point-to-point device has no link-local address.
        let on_hop = if hop.is_some() { 1 } else { 2 };
        for (host, addresses) in [(&mobile, on_hop), (&between, on_hop + 2), (&gateway, 2)] {
            await_addresses(host, addresses)?;
        }
        Ok(Self {
            bed,
            _hop: hop,
            mobile,
            between,
            gateway,
        })
    }

    /// Adds a second wire to the mobile node, with a worse route metric: `eth1` with 10.4.0.2.
    ///
    /// # Errors
    /// As [`Pair::new`].
    pub fn add_second_wire(&self) -> Result<()> {
        wire::veth(
            self.mobile.end("eth1", &["10.4.0.2/24"]),
            self.between.end("wireless2", &["10.4.0.1/24"]),
        )?;
        add_way(&self.mobile, "10.4.0.2", "10.4.0.1")
    }

    /// Takes the mobile node's interface on the second wire down, or brings it up with its routes.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_second_wire(&self, up: bool) -> Result<()> {
        if !up {
            return self.mobile.run("ip link set eth1 down").map(drop);
        }
        self.mobile.run("ip link set eth1 up")?;
        restore_way(&self.mobile, "10.4.0.1")
    }

    /// Adds the same second wire with limited rate, delay and bit errors. Dropping the emulator
    /// cuts it.
    ///
    /// # Errors
    /// As [`Pair::new`].
    pub fn add_second_lossy_hop(&self, hop: sim::Settings) -> Result<Emulator> {
        let near = self.mobile.end("eth1", &["10.4.0.2/24"]);
        let far = self.between.end("wireless2", &["10.4.0.1/24"]);
        let hop = wire::emulated(near, far, Settings::symmetric(hop), 2)?;
        add_way(&self.mobile, "10.4.0.2", "10.4.0.1")?;
        Ok(hop)
    }

    /// Adds a second wire to the gateway, with a worse route metric: `eth1` with 198.51.100.1.
    ///
    /// # Errors
    /// As [`Pair::new`].
    pub fn add_second_gateway_wire(&self) -> Result<()> {
        wire::veth(
            self.between.end("wired2", &["198.51.100.2/24"]),
            self.gateway.end("eth1", &["198.51.100.1/24"]),
        )?;
        add_way(&self.gateway, "198.51.100.1", "198.51.100.2")
    }

    /// Adds a host with the addresses [`BEHIND`] and the mobile node as its router.
    ///
    /// # Errors
    /// As [`Pair::new`].
    pub fn add_host_behind_mobile(&self) -> Result<Host> {
        let behind = self.bed.host("behind")?;
        self.mobile.sysctl("net.ipv4.ip_forward", "1")?;
        self.mobile.sysctl("net.ipv6.conf.all.forwarding", "1")?;
        wire::veth(
            self.mobile
                .end("lan0", &["10.1.0.129/25", "fd00:1::8001/113"]),
            behind.end("eth0", &["10.1.0.130/25", "fd00:1::8002/113"]),
        )?;
        for via in ["10.1.0.129", "fd00:1::8001"] {
            behind.route("default", via)?;
        }
        await_addresses(&behind, 2)?;
        Ok(behind)
    }

    /// Sets the MTU of both wires, in octets.
    pub fn set_mtu(&self, mtu: u32) -> Result<()> {
        self.each_device(|netlink, device| netlink.set_mtu(device, mtu))
    }

    /// Sets the largest number of segments per packet (GSO) that the devices of both wires accept.
    ///
    /// # Errors
    /// As [`Pair::new`].
    pub fn set_most_segments(&self, segments: u32) -> Result<()> {
        self.each_device(|netlink, device| netlink.set_most_segments(device, segments))
    }

    fn each_device(&self, change: impl Fn(&Netlink, &str) -> Result<(), os::Error>) -> Result<()> {
        for (host, device) in [
            (&self.mobile, "eth0"),
            (&self.between, "wireless"),
            (&self.between, "wired"),
            (&self.gateway, "eth0"),
        ] {
            change(&host.netns().netlink()?, device)?;
        }
        Ok(())
    }

    /// Starts both endpoints' daemons, not yet connected, with outer addresses of this family.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start(&self, outer: Family, mobile: Terms<'_>, gateway: Terms<'_>) -> Result<Tunnel> {
        let gateway = self.start_gateway(gateway)?;
        let mobile = self.start_mobile(outer, mobile, "manual")?;
        Ok(Tunnel { mobile, gateway })
    }

    /// Starts both endpoints' daemons with the same terms and brings up a tunnel over IPv4.
    ///
    /// # Errors
    /// The tunnel does not come up; the message says why.
    pub fn start_up(&self, terms: Terms<'_>) -> Result<Tunnel> {
        let tunnel = self.start(Family::V4, terms, terms)?;
        tunnel.up()?;
        Ok(tunnel)
    }

    /// Starts the mobile node's daemon; `start` is `auto` or `manual`.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_mobile(&self, outer: Family, terms: Terms<'_>, start: &str) -> Result<Daemon> {
        self.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
        self.mobile.stratad(&mobile_config(outer, terms, start))
    }

    /// Starts the gateway's daemon, which distributes keys to the host between if licences name it.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_gateway(&self, terms: Terms<'_>) -> Result<Daemon> {
        self.gateway.secret("tunnel.psk", TUNNEL_KEY)?;
        self.gateway.secret("node.psk", NODE_KEY)?;
        self.gateway.stratad(&gateway_config(terms))
    }

    /// Starts the daemon of the host between, as a licensed node of this identity.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_licensed(&self, identity: &str) -> Result<Daemon> {
        self.start_licensed_as(&licensed_config(identity))
    }

    /// Starts the licensed node with a configuration derived from [`licensed_config`].
    pub fn start_licensed_as(&self, config: &str) -> Result<Daemon> {
        self.between.secret("node.psk", NODE_KEY)?;
        self.between.stratad(config)
    }

    /// Keeps the testbed's folder with its logs after the test.
    pub fn keep(&self) {
        self.bed.keep();
    }
}

/// Adds a policy route for packets from an address, and a default route that is used only if no
/// better one is left.
pub(crate) fn add_way(host: &Host, from: &str, via: &str) -> Result<()> {
    restore_way(host, via)?;
    host.run(&format!("ip rule add from {from} lookup 100"))
        .map(drop)
}

/// Adds the routes of [`add_way`] again: the kernel removes them with a device that is taken down.
pub(crate) fn restore_way(host: &Host, via: &str) -> Result<()> {
    for place in ["metric 4000", "table 100"] {
        host.run(&format!("ip route replace default via {via} {place}"))?;
    }
    Ok(())
}

/// Waits until the kernel has added the local routes of new IPv6 addresses. It adds them
/// asynchronously, so a comparison of route tables would otherwise see them appear.
pub(crate) fn await_addresses(host: &Host, addresses: usize) -> Result<()> {
    let what = format!("the IPv6 addresses of {}", host.name());
    until(&what, DEADLINE, || {
        let routes = host.run("ip -6 route show table local")?;
        let on_wires = |line: &&str| line.starts_with("local ") && !line.contains(" dev lo ");
        Ok((routes.lines().filter(on_wires).count() >= addresses).then_some(()))
    })
}

/// The daemons at both ends.
pub struct Tunnel {
    /// Daemon of the mobile node.
    pub mobile: Daemon,
    /// Daemon of the gateway.
    pub gateway: Daemon,
}

impl Tunnel {
    /// Brings the tunnel up and waits for both ends.
    ///
    /// # Errors
    /// The tunnel does not come up; the message says why.
    pub fn up(&self) -> Result<()> {
        self.mobile.strata_text("up office --wait")?;
        self.gateway.wait_until("status", DEADLINE, is_up).map(drop)
    }

    /// Waits until both ends have exactly the live paths from these addresses of the mobile node,
    /// and all of them work.
    ///
    /// # Errors
    /// The deadline passed.
    pub fn await_live(&self, locals: &[&str]) -> Result<()> {
        self.await_live_and(locals, |_, _| true)
    }

    /// Waits for the same, and until this holds at both ends for each address and its path, as
    /// `strata paths` shows it.
    ///
    /// # Errors
    /// The deadline passed.
    pub fn await_live_and(
        &self,
        locals: &[&str],
        holds: impl Fn(&str, &Value) -> bool,
    ) -> Result<()> {
        for (daemon, end) in [(&self.mobile, "local"), (&self.gateway, "remote")] {
            daemon.wait_until("paths", DEADLINE, |paths| {
                let live = paths["paths"]["tunnels"][0]["live"].as_array();
                let live = live.map_or(&[][..], Vec::as_slice);
                let is_live = |local: &&str| {
                    let socket = format!("{local}:4500");
                    let mut found = live.iter().filter(|path| path[end] == socket.as_str());
                    found.any(|path| path["works"] == true && holds(local, path))
                };
                live.len() == locals.len() && locals.iter().all(is_live)
            })?;
        }
        Ok(())
    }

    /// Rekeys from one end, in turns, and waits until both ends have the new keys. Every fifth
    /// round rekeys the IKE SA instead of the child SA.
    ///
    /// # Errors
    /// An end does not get new keys; the message has the round.
    pub fn rekey(&mut self, round: usize) -> Result<()> {
        let ends = [(&mut self.gateway, "alice"), (&mut self.mobile, "office")];
        let ike = if round % 5 == 4 { " --ike" } else { "" };
        let asking = round % 2;
        let what = match ike {
            "" => "tunnel rekeyed",
            _ => "IKE SA rekeyed",
        };
        let told = |log: &str| log.matches(what).count();
        let before = [
            told(&ends[0].0.process().log()),
            told(&ends[1].0.process().log()),
        ];
        let words = format!("rekey {}{ike}", ends[asking].1);
        ends[asking].0.strata(&words)?;
        for ((daemon, _), before) in ends.into_iter().zip(before) {
            let again = |log: &str| (told(log) > before).then_some(());
            let waited = daemon.process().wait_for(what, DEADLINE, again);
            waited.with_context(|| format!("round {round}, `strata {words}`"))?;
        }
        Ok(())
    }

    /// Returns the child SAs of the mobile node and of the gateway.
    ///
    /// # Errors
    /// A daemon does not answer.
    pub fn children(&self) -> Result<[Vec<Value>; 2]> {
        let status = |daemon: &Daemon| daemon.strata("status");
        Ok([
            children(&status(&self.mobile)?),
            children(&status(&self.gateway)?),
        ])
    }

    /// Returns the SPIs (`spi_in`, `spi_out`) of the child SAs of the mobile node and of the
    /// gateway.
    ///
    /// # Errors
    /// A daemon does not answer.
    pub fn spis(&self) -> Result<[Vec<(Value, Value)>; 2]> {
        let spis = |children: &Vec<Value>| {
            let spis = children.iter();
            spis.map(|child| (child["spi_in"].clone(), child["spi_out"].clone()))
                .collect()
        };
        Ok(self.children()?.each_ref().map(spis))
    }
}

/// Returns the entry of the tunnel's peer in an answer of `strata status`, or null.
pub fn peer(status: &Value) -> &Value {
    let peers = status["status"]["peers"].as_array();
    let vpn = peers.and_then(|peers| peers.iter().find(|peer| peer["kind"] == "vpn"));
    vpn.unwrap_or(&Value::Null)
}

/// Returns all that `strata status` shows of the tunnel's peer.
pub fn details(daemon: &Daemon) -> Result<String> {
    let status = daemon.strata("status")?;
    let name = peer(&status)["name"].as_str().context("no peer")?;
    daemon.strata_text(&format!("status {name}"))
}

/// Returns the child SAs of the tunnel.
pub fn children(status: &Value) -> Vec<Value> {
    peer(status)["children"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

/// Returns the sorted names of the child SAs that are not draining. The child SA of the peer's own
/// table is called `first`.
pub fn names(status: &Value) -> Vec<String> {
    let children = children(status);
    let current = children.iter().filter(|child| child["draining"] == false);
    let mut names: Vec<_> = current
        .map(|child| child["name"].as_str().unwrap_or("first").to_owned())
        .collect();
    names.sort();
    names
}

/// Returns true if the tunnel is up and has a child SA.
pub fn is_up(status: &Value) -> bool {
    peer(status)["state"] == "up" && !children(status).is_empty()
}

/// Returns true if the tunnel is down and has no child SA left. Wait for this only if this end does
/// not want the tunnel up: a wanted tunnel starts again within a second, and a slow client misses
/// that second.
pub fn is_down(status: &Value) -> bool {
    peer(status)["state"] == "down" && children(status).is_empty()
}

/// Returns true if a task of the daemon fails.
pub fn has_error(status: &Value, task: &str) -> bool {
    let errors = status["status"]["errors"].as_array();
    errors.is_some_and(|errors| errors.iter().any(|error| error["task"] == task))
}

/// Checks that no ESP packet was dropped. Drops of IKE messages do not count: a retransmitted
/// request may cross the Delete of its SA.
///
/// # Errors
/// A packet was dropped; the message says why.
pub fn no_drops(status: &Value) -> Result<()> {
    let drops = status["status"]["drops"].as_object();
    let drops = drops.context("no drops are told")?;
    ensure!(drops.keys().all(|why| why.starts_with("ike_")), "{drops:?}");
    Ok(())
}

/// Returns the settings of a wire for [`Pair::with_lossy_hop`]: 20 Mb/s, 2 ms delay, a queue of 200
/// packets, and this bit error rate.
pub const fn hop(bit_error_rate: f64) -> sim::Settings {
    sim::Settings {
        rate: NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(2),
        queue: 200,
        bit_error_rate,
    }
}

/// Returns true if a licensed node holds exactly one grant, by its `strata zones`.
pub fn holds_a_grant(zones: &Value) -> bool {
    zones["zones"]["held"]
        .as_array()
        .is_some_and(|held| held.len() == 1)
}

/// Returns the number of segments that a licensed node retransmitted because the hop lost them.
///
/// # Errors
/// The daemon does not answer, or does not count them.
pub fn repaired(licensed: &Daemon) -> Result<u64> {
    let metrics = licensed.strata_text("metrics")?;
    let repaired = "strata_snoop_segments_total{action=\"retransmitted_lost\"} ";
    let repaired = metrics.lines().find_map(|line| line.strip_prefix(repaired));
    Ok(repaired.context("no such counter")?.parse()?)
}

/// Returns the number of TCP segments with headers that a licensed node has read.
///
/// # Errors
/// The daemon does not answer.
pub fn segments(licensed: &Daemon) -> Result<u64> {
    let metrics = licensed.strata_text("metrics")?;
    let line = metrics.lines().find(|line| {
        line.starts_with("strata_transit_packets_total") && line.contains("\"segment\"")
    });
    let number = line.and_then(|line| line.rsplit(' ').next());
    number.map_or(Ok(0), |number| Ok(number.parse()?))
}

/// Returns the reason of the tunnel's last failure; empty if there was none.
pub fn refusal(status: &Value) -> &str {
    peer(status)["last_refusal"]["reason"]
        .as_str()
        .unwrap_or("")
}

/// Returns the addresses that must never be seen in clear: those of both ends of the tunnel.
///
/// # Panics
/// Never: they are constants.
pub fn inside() -> Vec<Prefix> {
    let prefixes = PROTECTED.iter().chain(&MOBILE);
    prefixes
        .map(|text| text.parse().expect("a constant of this file"))
        .collect()
}

/// Returns the mobile node's configuration without `[control]`. Its short liveness interval keeps
/// tests that wait for a dead peer short.
pub fn mobile_config(outer: Family, terms: Terms<'_>, start: &str) -> String {
    let address = match outer {
        Family::V4 => "192.0.2.1",
        Family::V6 => "2001:db8:2::1",
    };
    let terms = terms.text();
    format!(
        r#"
[node]
id = "alice@example.net"
[tunnel]
addresses = ["10.1.0.2/32", "fd00:1::2/128"]
[peer.office]
address = "{address}"
id = "gw.example.net"
psk = "tunnel.psk"
local = ["10.1.0.2/32", "fd00:1::2/128"]
remote = ["10.8.0.0/16", "fd00:8::/64"]
liveness = "1s"
start = "{start}"
{terms}
"#
    )
}

/// Returns the gateway's configuration without `[control]`.
pub fn gateway_config(terms: Terms<'_>) -> String {
    let terms = terms.text();
    format!(
        r#"
[node]
id = "gw.example.net"
[tunnel]
addresses = ["10.8.0.1/16", "fd00:8::1/64"]
[peer.alice]
id = "alice@example.net"
psk = "tunnel.psk"
local = ["10.8.0.0/16", "fd00:8::/64"]
remote = ["10.1.0.2/32", "fd00:1::2/128"]
liveness = "1s"
{terms}
[licensed.fa]
address = "192.0.2.2"
id = "{LICENSED}"
psk = "node.psk"
liveness = "1s"
"#
    )
}

/// Returns the licensed node's configuration without `[control]`.
pub fn licensed_config(identity: &str) -> String {
    format!(
        r#"
[node]
id = "{identity}"
[gateway.gw]
id = "gw.example.net"
psk = "node.psk"
liveness = "1s"
[divert]
wired = "wired"
wireless = "wireless"
[snoop]
enabled = true
"#
    )
}

/// Lists the kernel state that a daemon could leave behind on a host: devices, rules, routes of
/// every table, UDP sockets and the guard against packets in clear. One line for each, sorted. Two
/// equal lists mean that nothing was left.
///
/// # Errors
/// Those of the kernel.
pub fn traces(host: &Host) -> Result<Vec<String>> {
    let mut traces = host.inside(|| {
        let links = Netlink::open()?.links()?;
        let mut sockets = sockets("/proc/thread-self/net/udp")?;
        sockets.extend(self::sockets("/proc/thread-self/net/udp6")?);
        let guard = os::clear::dropped()?.map(|_| "the guard".to_owned());
        Ok([links, sockets, guard.into_iter().collect()].concat())
    })?;
    for command in [
        "rule",
        "-6 rule",
        "route show table all",
        "-6 route show table all",
    ] {
        let output = host.run(&format!("ip {command}"))?;
        traces.extend(
            output
                .lines()
                .map(|line| format!("{command}: {}", line.trim())),
        );
    }
    traces.sort();
    Ok(traces)
}

/// Returns the local addresses of the bound sockets in a `/proc/net/udp`.
fn sockets(table: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(table)?;
    let local = |line: &str| {
        line.split_whitespace()
            .nth(1)
            .map(|at| format!("{table} {at}"))
    };
    Ok(text.lines().skip(1).filter_map(local).collect())
}
