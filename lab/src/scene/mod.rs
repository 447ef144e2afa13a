//! The network of the demo and of the figures: a download over a lossy hop, protected or not.
//!
//! ```text
//! mobile ──lossy──  node  ──wired──  gateway ──── server
//! 10.1.0.2     10.1.0.1 10.2.0.1   10.2.0.2 10.3.0.1  10.3.0.2
//! 10.9.0.2 (in the tunnel)
//! ```

mod level;
mod sender;
mod setup;

pub use level::{Level, Others};
pub use sender::Sender;
pub use setup::{FLOWS, PACKETS, Setup};

use crate::daemon::Daemon;
use crate::emulator::{Emulator, Settings as Wire};
use crate::host::Host;
use crate::process::{DEADLINE, until};
use crate::testbed::Testbed;
use crate::wire;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::time::Duration;

/// Bits per second of the lossy hop.
pub const LOSSY_RATE: u64 = 2_000_000;

/// One-way delay of the wired hop, unless a scene overrides it.
pub const WIRED_DELAY: Duration = Duration::from_millis(100);

/// Octets of TCP's largest window in the papers.
pub const WINDOW: u32 = 65_535;

/// The server's address.
pub const SERVER: &str = "10.3.0.2";

/// Parameters of one scene.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Protection and repair of the download.
    pub setup: Setup,
    /// Packets of a zoned tunnel that are in zones; `None` for all.
    pub level: Option<Level>,
    /// TCP of the server.
    pub sender: Sender,
    /// True if TCP's windows and SNOOP's cache have today's sizes instead of the papers'.
    pub modern: bool,
    /// Bits per bit error on the lossy hop, in both directions; 0 for no errors.
    pub one_error_in: u64,
    /// One-way delay of the wired hop.
    pub wired_delay: Duration,
    /// Seed of the bit errors: scenes with the same seed hit the same packets.
    pub seed: u64,
    /// True if SNOOP works in the setups that have it.
    pub snoop: bool,
    /// True if the licensed node gets the licence for the headers.
    pub licence: bool,
    /// True if the licensed node also gets a licence for the payload.
    pub license_payload: bool,
}

impl Settings {
    /// Creates the parameters of a scene with SNOOP and the licence in place.
    pub const fn new(setup: Setup, sender: Sender, one_error_in: u64, seed: u64) -> Self {
        Self {
            setup,
            level: None,
            sender,
            modern: true,
            one_error_in,
            wired_delay: WIRED_DELAY,
            seed,
            snoop: true,
            licence: true,
            license_payload: false,
        }
    }

    /// Returns the levels of an end's configuration, for its peer of this name.
    fn level_of(&self, peer: &str) -> String {
        let table = self.level.map(|level| level.table(peer));
        table.unwrap_or_default()
    }

    /// Returns the parameters of the lossy hop.
    pub fn lossy_hop(&self) -> sim::Settings {
        sim::Settings {
            rate: NonZeroU64::new(LOSSY_RATE),
            delay: Duration::from_millis(1),
            queue: 200,
            bit_error_rate: match self.one_error_in {
                0 => 0.0,
                bits => 1.0 / bits as f64,
            },
        }
    }

    /// Returns the parameters of the wired hop.
    pub fn wired_hop(&self) -> sim::Settings {
        sim::Settings {
            rate: NonZeroU64::new(100_000_000),
            delay: self.wired_delay,
            queue: 1000,
            bit_error_rate: 0.0,
        }
    }
}

/// A running scene: hosts, wires and daemons. Dropping it takes all of them down.
pub struct Scene {
    /// The mobile node, which downloads.
    pub mobile: Host,
    /// The server, which has the file.
    pub server: Host,
    /// The lossy hop; its first end is the mobile node's.
    pub lossy: Emulator,
    /// The wired hop; its first end is the licensed node's.
    pub wired: Emulator,
    /// Daemon of the licensed node, if there is one.
    pub node: Option<Daemon>,
    /// Daemons of both ends, kept alive with the scene.
    _ends: Vec<Daemon>,
}

impl Scene {
    /// Builds the network, starts the daemons and waits until the tunnel is up and the node has its
    /// keys. The hosts' names begin with `name`, to distinguish scenes of one testbed.
    ///
    /// # Errors
    /// The kernel refuses, or a tunnel does not come up; the message says why.
    pub fn build(bed: &Testbed, name: &str, settings: &Settings) -> Result<Self> {
        let host = |role: &str| bed.host(&format!("{name}-{role}"));
        let [mobile, node] = [host("mobile")?, host("node")?];
        let [gateway, server] = [host("gateway")?, host("server")?];
        for host in [&mobile, &node, &gateway, &server] {
            tune(host)?;
        }
        for host in [&mobile, &server] {
            set_options(host, settings)?;
        }
        let lossy = wire::emulated(
            mobile.end("radio0", &["10.1.0.2/24"]),
            node.end("radio0", &["10.1.0.1/24"]),
            Wire::symmetric(settings.lossy_hop()),
            settings.seed,
        )?;
        let wired = wire::emulated(
            node.end("wired0", &["10.2.0.1/24"]),
            gateway.end("wired0", &["10.2.0.2/24"]),
            Wire::symmetric(settings.wired_hop()),
            settings.seed,
        )?;
        wire::veth(
            gateway.end("lan0", &["10.3.0.1/24"]),
            server.end("lan0", &["10.3.0.2/24"]),
        )?;
        mobile.route("default", "10.1.0.1")?;
        node.route("10.3.0.0/24", "10.2.0.2")?;
        gateway.route("10.1.0.0/24", "10.2.0.1")?;
        server.route("default", "10.3.0.1")?;
        if let Some(level) = settings.level {
            level.lead_around([&mobile, &node, &gateway])?;
        }
        let (ends, node) = protect(settings, [&mobile, &node, &gateway])?;
        if let Some(level) = settings.level {
            level.believe_plaintext(&ends)?;
        }
        Ok(Self {
            mobile,
            server,
            lossy,
            wired,
            node,
            _ends: ends,
        })
    }

    /// Changes the hops and the sender of the scene. The setup stays: the daemons keep running.
    ///
    /// # Errors
    /// The kernel refuses the sender.
    pub fn change(&mut self, settings: &Settings) -> Result<()> {
        for host in [&self.mobile, &self.server] {
            set_options(host, settings)?;
        }
        let lossy = Wire::symmetric(settings.lossy_hop());
        self.lossy.change(lossy, settings.seed);
        let wired = Wire::symmetric(settings.wired_hop());
        self.wired.change(wired, settings.seed);
        Ok(())
    }
}

/// Sets TCP as in the papers, apart from the sender's own parameters. No metrics are kept between
/// connections, and receive buffers are small enough that the queue of the lossy hop never
/// overflows.
fn tune(host: &Host) -> Result<()> {
    for (name, value) in [
        // Every namespace has Reno; a sender that needs another one sets it on its socket.
        ("net.ipv4.tcp_congestion_control", "reno"),
        ("net.ipv4.tcp_no_metrics_save", "1"),
        ("net.ipv4.tcp_rmem", "4096 131072 250000"),
        ("net.ipv4.ip_forward", "1"),
    ] {
        host.sysctl(name, value)
            .with_context(|| format!("cannot set {name}"))?;
    }
    Ok(())
}

/// Enables or disables options of new connections, which use them if both ends do. Without window
/// scaling no more than [`WINDOW`] octets are under way, like with the papers' send buffer.
fn set_options(host: &Host, settings: &Settings) -> Result<()> {
    for (name, on) in [
        ("net.ipv4.tcp_sack", settings.sender.has_sack()),
        ("net.ipv4.tcp_window_scaling", settings.modern),
    ] {
        host.sysctl(name, if on { "1" } else { "0" })
            .with_context(|| format!("cannot set {name}"))?;
    }
    Ok(())
}

/// Starts the daemons; returns those of the two ends, and that of the node.
fn protect(
    settings: &Settings,
    [mobile, node, gateway]: [&Host; 3],
) -> Result<(Vec<Daemon>, Option<Daemon>)> {
    let setup = settings.setup;
    for (name, hosts) in [
        ("tunnel.psk", [mobile, gateway]),
        ("node.psk", [node, gateway]),
    ] {
        let key = format!("a key for the lab only: {name} {}\n", settings.seed);
        for host in hosts {
            host.secret(name, &key)?;
        }
    }
    let node_daemon = match setup.has_node() {
        true => Some(node.stratad(&setup.node(settings))?),
        false => None,
    };
    if !setup.has_tunnel() {
        return Ok((Vec::new(), node_daemon));
    }
    let gateway = gateway.stratad(&setup.gateway(settings))?;
    let mobile = mobile.stratad(&setup.mobile(settings))?;
    wait_for_tunnel(&mobile)?;
    if let (Some(daemon), true) = (&node_daemon, setup.is_zoned() && settings.licence) {
        wait_for_grant(daemon)?;
    }
    Ok((vec![mobile, gateway], node_daemon))
}

fn wait_for_tunnel(mobile: &Daemon) -> Result<()> {
    let request = json!({"peer": "gateway", "wait_seconds": DEADLINE.as_secs()});
    let answer = mobile.ask("up", request)?;
    let peer: Value = serde_json::from_str(&answer)?;
    let peer = &peer["up"]["peers"][0];
    anyhow::ensure!(
        peer["state"] == "up",
        "the tunnel did not come up: {}",
        peer["reason"].as_str().unwrap_or("no reason given")
    );
    Ok(())
}

fn wait_for_grant(node: &Daemon) -> Result<()> {
    until("the node's keys", DEADLINE, || {
        let zones: Value = serde_json::from_str(&node.ask("zones", Value::Null)?)?;
        let held = zones["zones"]["held"]
            .as_array()
            .is_some_and(|held| !held.is_empty());
        Ok(held.then_some(()))
    })
}
