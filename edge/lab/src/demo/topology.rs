//! The demo's network:
//!
//! ```text
//! mobile ──lossy──  node  ──100 ms──  gateway ──── server
//! 10.1.0.2     10.1.0.1 10.2.0.1   10.2.0.2 10.3.0.1  10.3.0.2
//! 10.9.0.2 (in the tunnel)
//! ```

use super::{Options, Setup};
use crate::daemon::Daemon;
use crate::emulator::{Emulator, Settings};
use crate::host::Host;
use crate::process::Process;
use crate::testbed::{Testbed, find_command};
use crate::wire;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

/// Bits per second of the lossy hop.
pub(super) const LOSSY_RATE: u64 = 2_000_000;

/// Where the marked stream is served.
pub(super) const URL: &str = "http://10.3.0.2:8080/stream";

const DEADLINE: Duration = Duration::from_secs(30);

/// All of one setup: hosts, wires, daemons and the server. It falls when it is dropped.
pub(super) struct Topology {
    pub mobile: Host,
    pub lossy: Emulator,
    pub wired: Emulator,
    pub node_daemon: Option<Daemon>,
    /// Held, for they live as long as this does.
    _held: (Vec<Daemon>, Process),
}

impl Topology {
    /// Builds the network, starts what runs in it and waits until the tunnel is up and the node
    /// has its keys. `stream` is the folder with the marked stream.
    pub fn build(bed: &Testbed, setup: Setup, options: &Options, stream: &Path) -> Result<Self> {
        let host = |name: &str| bed.host(&format!("{}-{name}", setup.key()));
        let [mobile, node] = [host("mobile")?, host("node")?];
        let [gateway, server] = [host("gateway")?, host("server")?];
        for host in [&mobile, &node, &gateway, &server] {
            tune(host)?;
        }
        // Each setup and each wire has errors of its own, all from the one seed.
        let seed = options.seed.wrapping_mul(16) + 2 * setup as u64;
        let lossy = wire::emulated(
            mobile.end("radio0", &["10.1.0.2/24"]),
            node.end("radio0", &["10.1.0.1/24"]),
            Settings::symmetric(lossy_hop(options.ber)),
            seed,
        )?;
        let wired = wire::emulated(
            node.end("wired0", &["10.2.0.1/24"]),
            gateway.end("wired0", &["10.2.0.2/24"]),
            Settings::symmetric(WIRED_HOP),
            seed + 1,
        )?;
        wire::veth(
            gateway.end("lan0", &["10.3.0.1/24"]),
            server.end("lan0", &["10.3.0.2/24"]),
        )?;
        mobile.route("default", "10.1.0.1")?;
        node.route("10.3.0.0/24", "10.2.0.2")?;
        gateway.route("10.1.0.0/24", "10.2.0.1")?;
        server.route("default", "10.3.0.1")?;
        let web = serve(&server, stream)?;
        let (ends, node_daemon) = protect(setup, options, [&mobile, &node, &gateway])?;
        Ok(Self {
            mobile,
            lossy,
            wired,
            node_daemon,
            _held: (ends, web),
        })
    }
}

fn lossy_hop(one_error_in: u64) -> sim::Settings {
    sim::Settings {
        rate: NonZeroU64::new(LOSSY_RATE),
        delay: Duration::from_millis(1),
        queue: 200,
        bit_error_rate: match one_error_in {
            0 => 0.0,
            bits => 1.0 / bits as f64,
        },
    }
}

const WIRED_HOP: sim::Settings = sim::Settings {
    rate: NonZeroU64::new(100_000_000),
    delay: Duration::from_millis(100),
    queue: 1000,
    bit_error_rate: 0.0,
};

/// TCP as in the papers: Reno, no SACK, nothing remembered from one connection to the next, and
/// receive buffers small enough that the queue of the lossy hop never overflows.
fn tune(host: &Host) -> Result<()> {
    for (name, value) in [
        ("net.ipv4.tcp_congestion_control", "reno"),
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.tcp_no_metrics_save", "1"),
        ("net.ipv4.tcp_rmem", "4096 131072 250000"),
        ("net.ipv4.ip_forward", "1"),
    ] {
        host.sysctl(name, value)
            .with_context(|| format!("cannot set {name}"))?;
    }
    Ok(())
}

/// nginx as an ordinary program: one process, nothing outside its folder. It believes to be root,
/// and would ask for a user it does not have unless told that root will do.
fn serve(server: &Host, stream: &Path) -> Result<Process> {
    let config = format!(
        "user root;
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  sendfile on;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{ listen 10.3.0.2:8080; root \"{}\"; }}
}}
",
        stream.display()
    );
    let config = server.file("nginx.conf", &config)?;
    let mut command = server.command(find_command("nginx", "nginx-light")?);
    command.arg("-e").arg("stderr").arg("-c").arg(config);
    command.arg("-p").arg(server.directory());
    let web = server.start("nginx", command)?;
    let started = server.wait_for_port("10.3.0.2:8080", DEADLINE);
    started.with_context(|| format!("nginx says: {}", web.log()))?;
    Ok(web)
}

/// Starts the daemons; returns those of the two ends, and the node's.
fn protect(
    setup: Setup,
    options: &Options,
    [mobile, node, gateway]: [&Host; 3],
) -> Result<(Vec<Daemon>, Option<Daemon>)> {
    for (name, hosts) in [
        ("tunnel.psk", [mobile, gateway]),
        ("node.psk", [node, gateway]),
    ] {
        let key = format!("a key for the demo only: {name} {}\n", options.seed);
        for host in hosts {
            host.secret(name, &key)?;
        }
    }
    let node_daemon = match setup.has_node() {
        true => Some(node.stratad(&setup.node(options))?),
        false => None,
    };
    if !setup.has_tunnel() {
        return Ok((Vec::new(), node_daemon));
    }
    let gateway = gateway.stratad(&setup.gateway(options))?;
    let mobile = mobile.stratad(&setup.mobile(options))?;
    wait_for_tunnel(&mobile)?;
    if let (Some(daemon), true) = (&node_daemon, setup.is_zoned() && options.licence) {
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
    crate::process::until("the node's keys", DEADLINE, || {
        let zones: Value = serde_json::from_str(&node.ask("zones", Value::Null)?)?;
        let held = zones["zones"]["held"]
            .as_array()
            .is_some_and(|held| !held.is_empty());
        Ok(held.then_some(()))
    })
}
