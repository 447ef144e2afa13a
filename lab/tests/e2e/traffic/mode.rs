//! Transport and BEET mode between hosts, with the kernel's TCP at either end. tshark checks the
//! contents of packets; invalid combinations must not come up.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, DEADLINE, Pair, TUNNEL_KEY, Tunnel};
use lab::process::until;
use lab::transfer::{connect, transfer};
use lab::tshark;
use lab::wiretap::{Seen, Wiretap, write_capture};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Few enough octets for a tap to keep every packet.
const OCTETS: u64 = 200_000;
const CAPTURE: &str = "wire.pcap";
const MARKER: &str = "the last packet";

/// Outer addresses of the two ends.
const OUTSIDE: [[&str; 2]; 2] = [
    ["10.3.0.2", "192.0.2.1"],
    ["2001:db8:3::2", "2001:db8:2::1"],
];

/// Inner addresses of the two ends.
const INSIDE: [&str; 2] = ["10.1.0.2", "10.8.0.1"];

/// Addresses and modes in the configurations of both ends.
struct Ends<'a> {
    outside: [&'a str; 2],
    inside: [&'a str; 2],
    modes: [&'a str; 2],
}

const TRANSPORT: Ends<'_> = Ends {
    outside: OUTSIDE[0],
    inside: OUTSIDE[0],
    modes: ["transport", "transport"],
};

const BEET: Ends<'_> = Ends {
    outside: OUTSIDE[0],
    inside: INSIDE,
    modes: ["beet", "beet"],
};

const TUNNEL: Ends<'_> = Ends {
    outside: OUTSIDE[0],
    inside: INSIDE,
    modes: ["tunnel", "tunnel"],
};

fn host(address: &str) -> String {
    let length = if address.contains(':') { 128 } else { 32 };
    format!("{address}/{length}")
}

impl Ends<'_> {
    fn configs(&self) -> [String; 2] {
        let names = ["alice@example.net", "gw.example.net"];
        let tables = ["office", "alice"];
        [0, 1].map(|end| {
            let other = 1 - end;
            // The kernel has the outer addresses already.
            let own = match self.inside == self.outside {
                true => String::new(),
                false => format!("addresses = [\"{}\"]", host(self.inside[end])),
            };
            format!(
                r#"
[node]
id = "{id}"
[tunnel]
{own}
[peer.{table}]
address = "{address}"
id = "{peer}"
psk = "tunnel.psk"
local = ["{local}"]
remote = ["{remote}"]
mode = "{mode}"
liveness = "1s"
start = "manual"
"#,
                id = names[end],
                table = tables[end],
                address = self.outside[other],
                peer = names[other],
                local = host(self.inside[end]),
                remote = host(self.inside[other]),
                mode = self.modes[end],
            )
        })
    }

    /// Starts both daemons; they are not connected yet.
    fn start(&self, pair: &Pair) -> Result<Tunnel> {
        start(pair, &self.configs())
    }

    fn start_up(&self, pair: &Pair) -> Result<Tunnel> {
        let tunnel = self.start(pair)?;
        tunnel.up()?;
        Ok(tunnel)
    }

    fn carry(&self, pair: &Pair) -> Result<()> {
        transfer(&pair.mobile, &pair.gateway, self.inside[1], OCTETS)?;
        transfer(&pair.gateway, &pair.mobile, self.inside[0], OCTETS)
    }
}

fn start(pair: &Pair, configs: &[String; 2]) -> Result<Tunnel> {
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    Ok(Tunnel {
        gateway: pair.gateway.stratad(&configs[1])?,
        mobile: pair.mobile.stratad(&configs[0])?,
    })
}

/// Fails unless both ends report this mode, in JSON and in text, and have dropped nothing.
fn ensure_mode(tunnel: &Tunnel, mode: &str, text: &str) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        let children = pair::children(&status);
        ensure!(!children.is_empty(), "{status}");
        ensure!(
            children.iter().all(|child| child["mode"] == mode),
            "{status}"
        );
        pair::no_drops(&status)?;
        let shown = pair::details(daemon)?;
        ensure!(
            shown.contains(&format!("  sa        plain{text}, in ")),
            "{shown}"
        );
    }
    Ok(())
}

fn ensure_nothing_up(tunnel: &Tunnel) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        daemon.wait_until("status", DEADLINE, |status| {
            pair::children(status).is_empty()
        })?;
    }
    Ok(())
}

/// Fails unless `strata up` reports the first words, and the other end the second ones.
fn ensure_refused(tunnel: &Tunnel, here: &str, there: &str) -> Result<()> {
    tunnel.mobile.refuses("up office --wait=5", here)?;
    let told = |status: &Value| there.is_empty() || status.to_string().contains(there);
    tunnel.gateway.wait_until("status", DEADLINE, told)?;
    ensure_nothing_up(tunnel)
}

/// Returns the packets that passed the host between, up to a datagram in clear sent to it now.
fn seen(pair: &Pair, tap: &Wiretap, between: &str) -> Result<Vec<Seen>> {
    pair.mobile.inside(|| {
        let any = if between.contains(':') {
            "[::]:0"
        } else {
            "0.0.0.0:0"
        };
        let socket = UdpSocket::bind(any)?;
        let to: IpAddr = between.parse()?;
        Ok(socket.send_to(MARKER.as_bytes(), (to, 9))?)
    })?;
    tap.read_until(DEADLINE, |seen| seen.has_text(MARKER))
}

/// Returns the transport protocol of a packet without options or extension headers.
fn protocol(seen: &Seen) -> u8 {
    seen.octets[if seen.source.is_ipv4() { 9 } else { 6 }]
}

const TCP: u8 = 6;

fn ensure_nothing_in_clear(seen: &[Seen]) -> Result<()> {
    let clear: Vec<_> = seen.iter().filter(|seen| protocol(seen) == TCP).collect();
    ensure!(clear.is_empty(), "{clear:?}");
    Ok(())
}

fn transport(outside: [&'static str; 2], between: &str) -> Result<()> {
    let ends = Ends {
        outside,
        inside: outside,
        ..TRANSPORT
    };
    let pair = Pair::new("mode")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = ends.start_up(&pair)?;
    ends.carry(&pair)?;
    ensure_mode(&tunnel, "transport", ", transport mode")?;
    let carried = pair::children(&tunnel.mobile.strata("status")?);
    let octets = carried[0]["sent"]["octets"].as_u64().unwrap_or_default();
    ensure!(octets > OCTETS, "{carried:?}");
    let seen = seen(&pair, &tap, between)?;
    ensure!(seen.len() > 400, "{}", seen.len());
    ensure_nothing_in_clear(&seen)
}

// Works: modes
#[lab::test]
fn transport_mode_carries_what_goes_between_the_hosts_over_ipv4() -> Result<()> {
    transport(OUTSIDE[0], "10.3.0.1")
}

// Works: modes
#[lab::test]
fn transport_mode_carries_what_goes_between_the_hosts_over_ipv6() -> Result<()> {
    transport(OUTSIDE[1], "2001:db8:3::1")
}

// Works: modes
#[lab::test]
fn beet_mode_carries_what_goes_between_the_addresses_inside() -> Result<()> {
    let pair = Pair::new("mode")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = BEET.start_up(&pair)?;
    BEET.carry(&pair)?;
    ensure_mode(&tunnel, "beet", ", BEET mode")?;
    let seen = seen(&pair, &tap, "10.3.0.1")?;
    ensure_nothing_in_clear(&seen)?;
    let inside = pair::inside();
    let leaked = |seen: &Seen| inside.iter().any(|prefix| seen.touches(*prefix));
    ensure!(!seen.iter().any(leaked));
    Ok(())
}

/// A packet uses the child SA whose traffic selectors match.
// Works: modes
#[lab::test]
fn a_tunnel_and_transport_mode_with_the_same_peer() -> Result<()> {
    let pair = Pair::new("mode")?;
    let [mobile, gateway] = TUNNEL.configs();
    let child = |config: String, table: &str, local: &str, remote: &str| {
        format!(
            "{config}[peer.{table}.child.direct]\nlocal = [\"{}\"]\nremote = [\"{}\"]\nmode = \"transport\"\n",
            host(local),
            host(remote)
        )
    };
    let [near, far] = OUTSIDE[0];
    let configs = [
        child(mobile, "office", near, far),
        child(gateway, "alice", far, near),
    ];
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = start(&pair, &configs)?;
    tunnel.up()?;
    let both = |status: &Value| pair::names(status) == ["direct", "first"];
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        daemon.wait_until("status", DEADLINE, both)?;
    }
    let sent = || -> Result<[u64; 2]> {
        let children = pair::children(&tunnel.mobile.strata("status")?);
        Ok(["tunnel", "transport"].map(|mode| {
            let mut of = children.iter().filter(|child| child["mode"] == mode);
            let child = of.next().map(|child| &child["sent"]["octets"]);
            child.and_then(Value::as_u64).unwrap_or_default()
        }))
    };
    transfer(&pair.mobile, &pair.gateway, far, OCTETS)?;
    let [first, direct] = sent()?;
    ensure!(first == 0 && direct > OCTETS, "{first}, {direct}");
    transfer(&pair.mobile, &pair.gateway, INSIDE[1], OCTETS)?;
    let [first, after] = sent()?;
    // A connection sends its last segments after its last octet has arrived.
    let late = after - direct;
    ensure!(first > OCTETS && late < OCTETS / 100, "{first}, {late}");
    ensure_nothing_in_clear(&seen(&pair, &tap, "10.3.0.1")?)
}

/// Returns the protocol layers that tshark finds in the ESP packets of a transfer, one string per
/// packet.
fn layers(ends: &Ends<'_>) -> Result<Vec<String>> {
    let pair = Pair::new("mode")?;
    // Two Stratas negotiate implicit IVs, which tshark does not support.
    let suite = |config: String| format!("{config}suite = \"aes256-sha256\"\n");
    let tunnel = start(&pair, &ends.configs().map(suite))?;
    let keys = pair.mobile.directory().join("keys");
    tunnel
        .mobile
        .strata_text(&format!("keylog {}", keys.display()))?;
    tunnel.up()?;
    let tap = Wiretap::open(&pair.between)?;
    transfer(&pair.mobile, &pair.gateway, ends.inside[1], 10_000)?;
    let seen = seen(&pair, &tap, "10.3.0.1")?;
    write_capture(&pair.mobile.directory().join(CAPTURE), &seen)?;
    let checked = ["esp.enable_authentication_check:TRUE"];
    let mut layers = tshark::fields(
        &pair.mobile,
        &keys,
        CAPTURE,
        &checked,
        "esp && tcp",
        "frame.protocols",
    )?;
    ensure!(layers.len() > 10, "{layers:?}");
    layers.sort();
    layers.dedup();
    Ok(layers)
}

/// The ports are random, so tshark may decode the data as another protocol. Only the layers before
/// it count.
fn all_begin(layers: &[String], begin: &str) -> Result<()> {
    ensure!(
        layers.iter().all(|layers| layers.contains(begin)),
        "{layers:?}"
    );
    Ok(())
}

// Works: modes
#[lab::test]
fn tshark_sees_a_segment_inside_and_in_a_tunnel_a_packet() -> Result<()> {
    for ends in [TRANSPORT, BEET] {
        all_begin(&layers(&ends)?, ":esp:tcp")?;
    }
    all_begin(&layers(&TUNNEL)?, ":esp:ip:tcp")
}

// Recovers: modes
#[lab::test]
fn new_keys_keep_the_mode_and_lose_no_octet() -> Result<()> {
    for (ends, mode, text) in [
        (TRANSPORT, "transport", ", transport mode"),
        (BEET, "beet", ", BEET mode"),
    ] {
        let pair = Pair::new("mode")?;
        let mut tunnel = ends.start_up(&pair)?;
        for round in 0..5 {
            tunnel.rekey(round)?;
            ends.carry(&pair)?;
        }
        ensure_mode(&tunnel, mode, text)?;
    }
    Ok(())
}

// Recovers: modes
#[lab::test]
fn nothing_goes_between_the_hosts_in_clear_before_it_is_up_and_after_it_is_down() -> Result<()> {
    let pair = Pair::new("mode")?;
    // Control: without protection the wire carries TCP in clear.
    let tap = Wiretap::open(&pair.between)?;
    TRANSPORT.carry(&pair)?;
    let before = seen(&pair, &tap, "10.3.0.1")?;
    ensure!(before.iter().any(|seen| protocol(seen) == TCP));
    let tunnel = TRANSPORT.start(&pair)?;
    let tap = Wiretap::open(&pair.between)?;
    ensure!(!reaches_the_gateway(&pair.mobile)?);
    tunnel.up()?;
    TRANSPORT.carry(&pair)?;
    tunnel.mobile.strata("down office")?;
    ensure_nothing_up(&tunnel)?;
    ensure!(!reaches_the_gateway(&pair.mobile)?);
    ensure_nothing_in_clear(&seen(&pair, &tap, "10.3.0.1")?)
}

/// Returns true if a segment to the gateway's outer address is answered, even by a reset.
fn reaches_the_gateway(from: &Host) -> Result<bool> {
    from.inside(|| {
        let to = (OUTSIDE[0][1].parse::<IpAddr>()?, 80).into();
        let brief = Duration::from_millis(500);
        let answered = match TcpStream::connect_timeout(&to, brief) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionRefused,
        };
        Ok(answered)
    })
}

/// The lock passes packets to the ports of IKE and ESP at the same address, and no other packets.
// Recovers: modes
#[lab::test]
fn with_leak_never_a_stop_opens_nothing() -> Result<()> {
    let pair = Pair::new("mode")?;
    ensure!(reaches_the_gateway(&pair.mobile)?);
    let [mobile, gateway] = TRANSPORT.configs();
    let mobile = format!("{mobile}leak = \"never\"\n");
    let mut tunnel = start(&pair, &[mobile, gateway])?;
    tunnel.up()?;
    TRANSPORT.carry(&pair)?;
    let tap = Wiretap::open(&pair.between)?;
    tunnel.mobile.stop()?;
    ensure!(!reaches_the_gateway(&pair.mobile)?);
    tunnel.mobile.start_again()?;
    tunnel.up()?;
    TRANSPORT.carry(&pair)?;
    ensure_nothing_in_clear(&seen(&pair, &tap, "10.3.0.1")?)
}

// Refuses: modes
#[lab::test]
fn a_peer_that_makes_a_tunnel_instead_is_left() -> Result<()> {
    for ends in [TRANSPORT, BEET] {
        let pair = Pair::new("mode")?;
        let asked = ends.modes[0];
        let ends = Ends {
            modes: [asked, "tunnel"],
            ..ends
        };
        let tunnel = ends.start(&pair)?;
        let here = format!("set `mode = \"{asked}\"` there");
        ensure_refused(&tunnel, &here, "")?;
    }
    Ok(())
}

// Refuses: modes
#[lab::test]
fn a_peer_that_asks_for_a_tunnel_is_refused() -> Result<()> {
    for ends in [TRANSPORT, BEET] {
        let pair = Pair::new("mode")?;
        let wanted = ends.modes[0];
        let ends = Ends {
            modes: ["tunnel", wanted],
            ..ends
        };
        let tunnel = ends.start(&pair)?;
        let there = format!("the peer requests tunnel mode, but {wanted} mode is configured here");
        ensure_refused(&tunnel, "`mode`", &there)?;
    }
    Ok(())
}

/// Enables NAT towards the gateway.
fn translate(pair: &Pair) -> Result<()> {
    let rules = "table ip nat {\n chain out {\n  type nat hook postrouting priority 100\n  oifname \"wired\" meta l4proto udp masquerade to :20000-30000\n }\n}\n";
    pair.between.file("nat.nft", rules)?;
    pair.between.run("nft -f nat.nft").map(drop)
}

/// Removes the mobile node's address from the gateway's configuration, which then identifies it by
/// `id` alone.
fn without_address(configs: [String; 2]) -> [String; 2] {
    let [mobile, gateway] = configs;
    let gateway = gateway.replace("address = \"10.3.0.2\"\n", "");
    [mobile, gateway.replace("start = \"manual\"\n", "")]
}

// Refuses: modes
#[lab::test]
fn transport_mode_does_not_come_up_through_a_nat() -> Result<()> {
    let pair = Pair::new("mode")?;
    translate(&pair)?;
    let tunnel = TRANSPORT.start(&pair)?;
    ensure_refused(&tunnel, "transport mode does not work through NATs", "")
}

// Works: modes
#[lab::test]
fn beet_mode_comes_up_through_a_nat() -> Result<()> {
    let pair = Pair::new("mode")?;
    translate(&pair)?;
    let tunnel = start(&pair, &without_address(BEET.configs()))?;
    tunnel.up()?;
    BEET.carry(&pair)?;
    ensure_mode(&tunnel, "beet", ", BEET mode")
}

// Refuses: modes
#[lab::test]
fn transport_mode_does_not_move_and_beet_mode_does() -> Result<()> {
    let pair = Pair::new("mode")?;
    pair.add_second_wire()?;
    let tunnel = TRANSPORT.start_up(&pair)?;
    for (daemon, peer) in [(&tunnel.mobile, "office"), (&tunnel.gateway, "alice")] {
        let fix = "mode = \"beet\"";
        daemon.refuses(&format!("move {peer}"), fix)?;
    }
    TRANSPORT.carry(&pair)?;
    drop(tunnel);
    let pair = Pair::new("mode")?;
    pair.add_second_wire()?;
    // A gateway with a configured peer address accepts the peer from no other address.
    let tunnel = start(&pair, &without_address(BEET.configs()))?;
    tunnel.up()?;
    // A connection from before the move continues after it.
    let (near, far) = connect(&pair.mobile, &pair.gateway, INSIDE[1])?;
    tunnel.mobile.strata("move office --from 10.4.0.2")?;
    echo(near, far)?;
    BEET.carry(&pair)?;
    let path = |status: &Value| {
        pair::peer(status)["remote"]
            .to_string()
            .contains("10.4.0.2")
    };
    tunnel.gateway.wait_until("status", DEADLINE, path)?;
    ensure_mode(&tunnel, "beet", ", BEET mode")
}

fn echo(mut near: TcpStream, mut far: TcpStream) -> Result<()> {
    let mut octets = [0; 5];
    near.write_all(b"hello")?;
    far.read_exact(&mut octets)?;
    far.write_all(&octets)?;
    near.read_exact(&mut octets)?;
    ensure!(octets == *b"hello");
    Ok(())
}

// Works: modes
#[lab::test]
fn a_mode_that_comes_with_a_reload_makes_the_tunnel_anew() -> Result<()> {
    let pair = Pair::new("mode")?;
    let tunnel = TUNNEL.start_up(&pair)?;
    ensure_mode(&tunnel, "tunnel", "")?;
    let beet = BEET.configs();
    for (daemon, config) in [(&tunnel.gateway, &beet[1]), (&tunnel.mobile, &beet[0])] {
        daemon.change(config)?;
    }
    tunnel.up()?;
    let in_beet = |status: &Value| {
        let children = pair::children(status);
        !children.is_empty() && children.iter().all(|child| child["mode"] == "beet")
    };
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        daemon.wait_until("status", DEADLINE, in_beet)?;
    }
    BEET.carry(&pair)
}

// Recovers: modes
#[lab::test]
fn both_modes_come_up_over_a_lossy_hop() -> Result<()> {
    for ends in [TRANSPORT, BEET] {
        let hop = pair::hop(1.0 / 50_000.0);
        let pair = Pair::with_lossy_hop("mode", hop)?;
        let tunnel = ends.start(&pair)?;
        tunnel.mobile.strata("up office --wait=60")?;
        transfer(&pair.mobile, &pair.gateway, ends.inside[1], OCTETS)?;
    }
    Ok(())
}

/// The kernel fragments a datagram that does not fit before it reaches the tunnel.
// Refuses: modes
#[lab::test]
fn fragments_are_dropped_and_counted() -> Result<()> {
    let pair = Pair::new("mode")?;
    let tunnel = TRANSPORT.start_up(&pair)?;
    pair.mobile.inside(|| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        Ok(socket.send_to(&[7; 3000], (OUTSIDE[0][1], 9))?)
    })?;
    let count = |daemon: &Daemon| -> Result<Option<u64>> {
        Ok(daemon.strata("status")?["status"]["drops"]["esp_fragment"].as_u64())
    };
    until("dropped fragments", DEADLINE, || {
        Ok(count(&tunnel.mobile)?.filter(|count| *count >= 2))
    })?;
    TRANSPORT.carry(&pair)
}

// Refuses: modes
#[lab::test]
fn a_strict_reverse_path_is_refused_at_the_start() -> Result<()> {
    let pair = Pair::new("mode")?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    pair.mobile.sysctl("net.ipv4.conf.eth0.rp_filter", "1")?;
    let [config, _] = TRANSPORT.configs();
    let Err(refused) = pair.mobile.stratad(&config) else {
        anyhow::bail!("it started");
    };
    let refused = format!("{refused:?}");
    ensure!(
        refused.contains("net.ipv4.conf.eth0.rp_filter=2"),
        "{refused}"
    );
    Ok(())
}
