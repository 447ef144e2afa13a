//! A host in a Wi-Fi and a cellular network, and a gateway with a web server.
//!
//! ```text
//!          wlan0 ~~~~ wifi
//!   host                  between  wired ---- eth0  gateway
//!          wwan0 ~~~~ cell                192.0.2.1
//!   10.1.0.2                              10.8.0.1
//! ```

use super::Options;
use crate::daemon::Daemon;
use crate::emulator::{Emulator, Settings};
use crate::host::Host;
use crate::pair::{TUNNEL_KEY, is_up};
use crate::process::DEADLINE;
use crate::testbed::Testbed;
use crate::wire;
use anyhow::Result;
use os::netlink::{Route, Rule, Via};
use os::{Family, Prefix};
use std::num::NonZeroU64;
use std::time::Duration;

/// A network that the host can be in.
pub(super) struct Uplink {
    /// Name for readers.
    pub name: &'static str,
    /// Interface of the host.
    device: &'static str,
    /// Address of the host.
    pub address: &'static str,
    /// Interface and address of the router.
    far_device: &'static str,
    router: &'static str,
    /// Routing table for packets from the address.
    table: u32,
    /// Preference of its default route.
    metric: u32,
    /// Rate, delay and errors in each direction.
    pub hop: sim::Settings,
}

/// Indices of [`UPLINKS`].
pub(super) const WIFI: usize = 0;
pub(super) const CELLULAR: usize = 1;

/// Both networks. Their queues hold a full receive window of the host, so that only the radio loses
/// packets.
pub(super) const UPLINKS: [Uplink; 2] = [
    Uplink {
        name: "Wi-Fi",
        device: "wlan0",
        address: "10.3.0.2",
        far_device: "wifi",
        router: "10.3.0.1",
        table: 101,
        metric: 100,
        hop: sim::Settings {
            rate: NonZeroU64::new(12_000_000),
            delay: Duration::from_millis(5),
            queue: 100,
            bit_error_rate: 0.0,
        },
    },
    Uplink {
        name: "cellular",
        device: "wwan0",
        address: "10.4.0.2",
        far_device: "cell",
        router: "10.4.0.1",
        table: 102,
        metric: 200,
        hop: sim::Settings {
            rate: NonZeroU64::new(5_000_000),
            delay: Duration::from_millis(30),
            queue: 100,
            // One packet of full size in 4,000.
            bit_error_rate: 2e-8,
        },
    },
];

/// Priorities of the rules of both networks, after those of `stratad`.
const PRIORITY: u32 = 30_000;

/// Receive buffer of the host's TCP in octets: minimum, default and maximum.
const ROOM: &str = "4096 131072 131072";

/// A running network.
pub(super) struct Network {
    pub host: Host,
    pub between: Host,
    pub gateway: Host,
    /// Daemon of the host.
    pub daemon: Daemon,
    /// Emulators of both networks.
    hops: [Emulator; 2],
    /// Kept alive with the network.
    _far: Daemon,
    _bed: Testbed,
}

impl Network {
    /// Builds the network, and waits until the tunnel is up.
    pub fn build(bed: Testbed, options: &Options) -> Result<Self> {
        let (host, gateway) = (bed.host("host")?, bed.host("gateway")?);
        let between = bed.host("between")?;
        for one in [&host, &between, &gateway] {
            // The tap would see the kernel's own messages. A kernel without IPv6 has none.
            let _ = one.sysctl("net.ipv6.conf.default.disable_ipv6", "1");
        }
        between.sysctl("net.ipv4.ip_forward", "1")?;
        host.sysctl("net.ipv4.tcp_rmem", ROOM)?;
        let connect = |uplink: usize| UPLINKS[uplink].connect(&host, &between, options.seed);
        let hops = [connect(WIFI)?, connect(CELLULAR)?];
        let wired = between.end("wired", &["192.0.2.2/24"]);
        wire::veth(wired, gateway.end("eth0", &["192.0.2.1/24"]))?;
        gateway.route("default", "192.0.2.2")?;
        for one in [&host, &gateway] {
            one.secret("tunnel.psk", TUNNEL_KEY)?;
        }
        let [keys, far_keys] = options.way.keys();
        let far = gateway.stratad(&format!("{GATEWAY}{far_keys}\n"))?;
        let daemon = host.stratad(&format!("{HOST}{keys}\n"))?;
        for end in [&daemon, &far] {
            end.wait_until("status", DEADLINE, is_up)?;
        }
        Ok(Self {
            host,
            between,
            gateway,
            daemon,
            hops,
            _far: far,
            _bed: bed,
        })
    }

    /// Has the Wi-Fi lose this share of all packets.
    pub fn fade(&self, share: f64) {
        self.hops[WIFI].fade(share);
    }

    /// Returns the packets that the fading Wi-Fi has lost.
    pub fn faded(&self) -> u64 {
        self.hops[WIFI].faded().into_iter().sum()
    }

    /// Takes the host's interface in the Wi-Fi down, and with it the routes there.
    pub fn leave_wifi(&self) -> Result<()> {
        let netlink = self.host.netns().netlink()?;
        Ok(netlink.link_down(UPLINKS[WIFI].device)?)
    }

    /// Brings the host's interface in the Wi-Fi up again, with its routes.
    pub fn enter_wifi(&self) -> Result<()> {
        let netlink = self.host.netns().netlink()?;
        netlink.link_up(UPLINKS[WIFI].device)?;
        UPLINKS[WIFI].add_routes(&self.host)
    }
}

impl Uplink {
    fn connect(&self, host: &Host, between: &Host, seed: u64) -> Result<Emulator> {
        let [near, far] = [self.address, self.router].map(|address| format!("{address}/24"));
        let emulator = wire::emulated(
            host.end(self.device, &[&near]),
            between.end(self.far_device, &[&far]),
            Settings::symmetric(self.hop),
            seed.wrapping_mul(2).wrapping_add(u64::from(self.table)),
        )?;
        let own: Prefix = format!("{}/32", self.address).parse()?;
        let rule = Rule::new(Family::V4, PRIORITY + self.table, self.table).from(own);
        host.netns().netlink()?.add_rule(&rule)?;
        self.add_routes(host)?;
        Ok(emulator)
    }

    /// Adds the default routes: for packets from the address, and for all others.
    fn add_routes(&self, host: &Host) -> Result<()> {
        let via = Via::Onlink {
            gateway: self.router.parse()?,
            device: self.device.to_owned(),
        };
        let all = Route::new(Prefix::everything(Family::V4), via);
        let netlink = host.netns().netlink()?;
        for (table, metric) in [(self.table, 0), (Route::MAIN, self.metric)] {
            netlink.replace_route(&Route {
                table,
                metric,
                ..all.clone()
            })?;
        }
        Ok(())
    }
}

/// Configurations, each to be completed by keys of the peer.
const HOST: &str = r#"
[node]
id = "alice@example.net"
[tunnel]
addresses = ["10.1.0.2/32"]
[peer.office]
address = "192.0.2.1"
id = "gw.example.net"
psk = "tunnel.psk"
local = ["10.1.0.2/32"]
remote = ["10.8.0.0/16"]
"#;
const GATEWAY: &str = r#"
[node]
id = "gw.example.net"
[tunnel]
addresses = ["10.8.0.1/16"]
[peer.alice]
id = "alice@example.net"
psk = "tunnel.psk"
local = ["10.8.0.0/16"]
remote = ["10.1.0.2/32"]
"#;
