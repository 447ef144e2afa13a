//! Transport mode that moves (MOBIKE-X): the kernel's TCP at both ends, and tshark as the witness
//! that nothing goes in clear, wherever the tunnel is.

use anyhow::{Result, bail, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, Pair, TUNNEL_KEY, Tunnel};
use lab::process::{DEADLINE, until};
use lab::transfer::transfer;
use lab::tshark;
use lab::wiretap::{Seen, Wiretap, write_capture};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use serde_json::Value;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::num::NonZeroU64;
use std::time::Duration;

/// Addresses of the mobile node on its two networks, and of the gateway.
const WIFI: &str = "10.3.0.2";
const CELL: &str = "10.4.0.2";
const SERVER: &str = "192.0.2.1";

/// Addresses inside, in BEET mode.
const INSIDE: [&str; 2] = ["10.1.0.2", "10.8.0.1"];

const OCTETS: u64 = 100_000;
const CAPTURE: &str = "wire.pcap";
const MARKER: &str = "the last packet";

/// Addresses that the two ends list in transport mode, as a TOML list.
const WALKS: &str = r#"["10.3.0.2/32", "10.4.0.2/32"]"#;
const STAYS: &str = r#"["192.0.2.1/32"]"#;

/// The same over IPv6, and the router on the second network.
const WIFI_V6: &str = "2001:db8:3::2";
const CELL_V6: &str = "2001:db8:4::2";
const SERVER_V6: &str = "2001:db8:2::1";
const WALKS_V6: &str = r#"["2001:db8:3::2/128", "2001:db8:4::2/128"]"#;
const STAYS_V6: &str = r#"["2001:db8:2::1/128"]"#;
const ROUTER_V6: &str = "2001:db8:4::1";

fn mobile(lines: &str) -> String {
    format!(
        r#"
[node]
id = "alice@example.net"
[peer.office]
address = "192.0.2.1"
id = "gw.example.net"
psk = "tunnel.psk"
local = {WALKS}
remote = {STAYS}
mode = "transport"
liveness = "1s"
start = "manual"
{lines}
"#
    )
}

fn gateway(remote: &str, lines: &str) -> String {
    format!(
        r#"
[node]
id = "gw.example.net"
[peer.alice]
id = "alice@example.net"
psk = "tunnel.psk"
local = {STAYS}
remote = {remote}
mode = "transport"
liveness = "1s"
{lines}
"#
    )
}

/// Brings up a tunnel between these configurations.
fn start_up(pair: &Pair, mobile: &str, gateway: &str) -> Result<Tunnel> {
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    let tunnel = Tunnel {
        gateway: pair.gateway.stratad(gateway)?,
        mobile: pair.mobile.stratad(mobile)?,
    };
    tunnel.up()?;
    Ok(tunnel)
}

fn walking(pair: &Pair) -> Result<Tunnel> {
    start_up(pair, &mobile(""), &gateway(WALKS, ""))
}

/// Returns the inbound SPIs of both ends.
fn spis(tunnel: &Tunnel) -> Result<[Value; 2]> {
    let spi = |daemon: &Daemon| {
        let status = daemon.strata("status")?;
        Ok::<_, anyhow::Error>(pair::peer(&status)["children"][0]["spi_in"].clone())
    };
    Ok([spi(&tunnel.mobile)?, spi(&tunnel.gateway)?])
}

/// Waits until both ends use an address of the mobile node, and programs there prefer it.
fn is_at(pair: &Pair, tunnel: &Tunnel, address: &str) -> Result<()> {
    let ip: IpAddr = address.parse()?;
    let server = if ip.is_ipv4() { SERVER } else { SERVER_V6 };
    let there = |end: &'static str| {
        let address = SocketAddr::new(ip, 4500).to_string();
        move |paths: &Value| paths["paths"]["tunnels"][0][end] == address.as_str()
    };
    tunnel
        .mobile
        .wait_until("paths", DEADLINE, there("local"))?;
    tunnel
        .gateway
        .wait_until("paths", DEADLINE, there("remote"))?;
    until("a route that prefers the address", DEADLINE, || {
        let route = pair.mobile.run(&format!("ip route get {server}"))?;
        Ok(route.contains(&format!("src {address} ")).then_some(()))
    })
}

fn move_to(pair: &Pair, tunnel: &Tunnel, address: &str) -> Result<()> {
    let moved = tunnel
        .mobile
        .strata(&format!("move office --from {address}"))?;
    let local = SocketAddr::new(address.parse()?, 4500).to_string();
    ensure!(moved["move"]["local"] == local.as_str(), "{moved}");
    is_at(pair, tunnel, address)
}

/// Carries new connections in both directions, and echoes of ICMP.
fn carry(pair: &Pair, address: &str) -> Result<()> {
    transfer(&pair.mobile, &pair.gateway, SERVER, OCTETS)?;
    transfer(&pair.gateway, &pair.mobile, address, OCTETS)?;
    echo(&pair.mobile, SERVER)?;
    echo(&pair.gateway, address)
}

/// Has an address answer an ICMP echo. The kernel completes request and source address.
fn echo(from: &Host, to: &str) -> Result<()> {
    const REQUEST: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, 1];
    from.sysctl("net.ipv4.ping_group_range", "0 2147483647")?;
    from.inside(|| {
        let (family, kind) = (AddressFamily::Inet, SockType::Datagram);
        let socket = socket(family, kind, SockFlag::empty(), SockProtocol::Icmp)?;
        let socket = UdpSocket::from(socket);
        socket.set_read_timeout(Some(DEADLINE))?;
        socket.send_to(&REQUEST, (to.parse::<IpAddr>()?, 0))?;
        let mut answer = [0; 64];
        let (length, _) = socket.recv_from(&mut answer)?;
        ensure!(
            length == REQUEST.len() && answer[0] == 0,
            "{:?}",
            &answer[..length]
        );
        Ok(())
    })
}

/// Returns the packets on the wire so far, up to a datagram in clear that is sent from an address
/// to the host between now.
fn seen(pair: &Pair, tap: &Wiretap, from: &str, between: &str) -> Result<Vec<Seen>> {
    pair.mobile.inside(|| {
        let socket = UdpSocket::bind((from.parse::<IpAddr>()?, 0))?;
        let to: IpAddr = between.parse()?;
        Ok(socket.send_to(MARKER.as_bytes(), (to, 9))?)
    })?;
    tap.read_until(DEADLINE, |seen| seen.has_text(MARKER))
}

/// Returns the packets that tshark finds in clear: TCP and ICMP, but not within ESP.
fn in_clear(pair: &Pair, seen: &[Seen]) -> Result<Vec<String>> {
    write_capture(&pair.mobile.directory().join(CAPTURE), seen)?;
    let keys = pair.mobile.directory();
    let filter = "(tcp || icmp) && !esp";
    tshark::fields(&pair.mobile, keys, CAPTURE, &[], filter, "frame.number")
}

fn ensure_nothing_in_clear(pair: &Pair, seen: &[Seen]) -> Result<()> {
    let clear = in_clear(pair, seen)?;
    ensure!(clear.is_empty(), "in clear: {clear:?}");
    ensure!(seen.len() > 200, "{} packets", seen.len());
    Ok(())
}

/// Returns true if a segment to an address is answered, even by a reset.
fn reaches(from: &Host, address: &str) -> Result<bool> {
    from.inside(|| {
        let to = (address.parse::<IpAddr>()?, 80).into();
        let brief = Duration::from_millis(500);
        Ok(match TcpStream::connect_timeout(&to, brief) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionRefused,
        })
    })
}

// Works: mobikex
#[lab::test]
fn transport_mode_moves_with_its_keys_and_nothing_goes_in_clear() -> Result<()> {
    let pair = Pair::new("transport")?;
    pair.add_second_wire()?;
    // Control: without a tunnel, the same verdict fails.
    let tap = Wiretap::open(&pair.between)?;
    transfer(&pair.mobile, &pair.gateway, SERVER, OCTETS)?;
    let before = seen(&pair, &tap, WIFI, "10.3.0.1")?;
    ensure!(!in_clear(&pair, &before)?.is_empty());
    let tunnel = walking(&pair)?;
    let tap = Wiretap::open(&pair.between)?;
    let spis_before = spis(&tunnel)?;
    for (from, other) in [(WIFI, CELL), (CELL, WIFI), (WIFI, CELL)] {
        move_to(&pair, &tunnel, from)?;
        carry(&pair, from)?;
        // Its other address is protected as well, and nothing is there now.
        ensure!(!reaches(&pair.gateway, other)?);
    }
    ensure!(spis(&tunnel)? == spis_before, "the tunnel was made anew");
    ensure_nothing_in_clear(&pair, &seen(&pair, &tap, WIFI, "10.3.0.1")?)
}

// Works: mobikex
#[lab::test]
fn transport_mode_moves_when_its_interface_goes_down() -> Result<()> {
    let pair = Pair::new("transport")?;
    pair.add_second_wire()?;
    let tunnel = walking(&pair)?;
    is_at(&pair, &tunnel, WIFI)?;
    let before = spis(&tunnel)?;
    let tap = Wiretap::open(&pair.between)?;
    pair.mobile.run("ip link set eth0 down")?;
    is_at(&pair, &tunnel, CELL)?;
    carry(&pair, CELL)?;
    ensure!(spis(&tunnel)? == before, "the tunnel was made anew");
    ensure_nothing_in_clear(&pair, &seen(&pair, &tap, CELL, "10.4.0.1")?)
}

/// Gives both ends of the second wire an address of IPv6, and the mobile node a way from its own.
fn add_second_way_of_ipv6(pair: &Pair) -> Result<()> {
    let add = |host: &Host, address: &str, device: &str| {
        host.run(&format!("ip address add {address}/64 dev {device} nodad"))
    };
    add(&pair.between, ROUTER_V6, "wireless2")?;
    add(&pair.mobile, CELL_V6, "eth1")?;
    for command in [
        format!("route add default via {ROUTER_V6} metric 4000"),
        format!("route add default via {ROUTER_V6} table 100"),
        format!("rule add from {CELL_V6} lookup 100"),
    ] {
        pair.mobile.run(&format!("ip -6 {command}"))?;
    }
    Ok(())
}

// Works: mobikex
#[lab::test]
fn transport_mode_moves_between_addresses_of_ipv6() -> Result<()> {
    let pair = Pair::new("transport")?;
    pair.add_second_wire()?;
    add_second_way_of_ipv6(&pair)?;
    // Control: without a tunnel, the same verdict fails.
    let tap = Wiretap::open(&pair.between)?;
    transfer(&pair.mobile, &pair.gateway, SERVER_V6, OCTETS)?;
    let before = seen(&pair, &tap, WIFI_V6, "2001:db8:3::1")?;
    ensure!(!in_clear(&pair, &before)?.is_empty());
    let over_v6 = |config: String| {
        let listed = config.replace(WALKS, WALKS_V6).replace(STAYS, STAYS_V6);
        listed.replace("\"192.0.2.1\"", &format!("\"{SERVER_V6}\""))
    };
    let (near, far) = (over_v6(mobile("")), over_v6(gateway(WALKS, "")));
    let tunnel = start_up(&pair, &near, &far)?;
    let tap = Wiretap::open(&pair.between)?;
    let spis_before = spis(&tunnel)?;
    for (from, other) in [(CELL_V6, WIFI_V6), (WIFI_V6, CELL_V6)] {
        move_to(&pair, &tunnel, from)?;
        transfer(&pair.mobile, &pair.gateway, SERVER_V6, OCTETS)?;
        transfer(&pair.gateway, &pair.mobile, from, OCTETS)?;
        ensure!(!reaches(&pair.gateway, other)?);
    }
    ensure!(spis(&tunnel)? == spis_before, "the tunnel was made anew");
    ensure_nothing_in_clear(&pair, &seen(&pair, &tap, WIFI_V6, "2001:db8:3::1")?)
}

/// The header that is rebuilt has the inner addresses, wherever the packets come from.
// Works: mobikex
#[lab::test]
fn beet_mode_moves_with_its_keys_and_nothing_goes_in_clear() -> Result<()> {
    let pair = Pair::new("transport")?;
    pair.add_second_wire()?;
    let beet = |config: String, own: &str, ends: [&str; 2]| {
        let [local, remote] = ends.map(|address| format!("[\"{address}/32\"]"));
        let listed = config.lines().map(|line| match line.split(" = ").next() {
            Some("local") => format!("local = {local}"),
            Some("remote") => format!("remote = {remote}"),
            Some("mode") => "mode = \"beet\"".to_owned(),
            _ => line.to_owned(),
        });
        let tunnel = format!("[tunnel]\naddresses = [\"{own}/32\"]\n");
        format!("{}\n{tunnel}", listed.collect::<Vec<_>>().join("\n"))
    };
    let [near, far] = INSIDE;
    let near_end = beet(mobile(""), near, [near, far]);
    let far_end = beet(gateway(WALKS, ""), far, [far, near]);
    let tunnel = start_up(&pair, &near_end, &far_end)?;
    let before = spis(&tunnel)?;
    let tap = Wiretap::open(&pair.between)?;
    for from in [CELL, WIFI] {
        tunnel
            .mobile
            .strata(&format!("move office --from {from}"))?;
        transfer(&pair.mobile, &pair.gateway, far, OCTETS)?;
        transfer(&pair.gateway, &pair.mobile, near, OCTETS)?;
    }
    ensure!(spis(&tunnel)? == before, "the tunnel was made anew");
    ensure_nothing_in_clear(&pair, &seen(&pair, &tap, WIFI, "10.3.0.1")?)
}

fn refused(daemon: &Daemon, words: &str) -> Result<String> {
    match daemon.strata(words) {
        Ok(answer) => bail!("`strata {words}` was not refused: {answer}"),
        Err(refusal) => Ok(format!("{refusal:?}")),
    }
}

/// The other end lists two addresses, and not this one.
// Refuses: mobikex
#[lab::test]
fn an_address_that_the_other_end_does_not_list_is_refused_and_the_tunnel_stays() -> Result<()> {
    let pair = Pair::new("transport")?;
    pair.add_second_wire()?;
    let listed = r#"["10.3.0.2/32", "10.5.0.2/32"]"#;
    let tunnel = start_up(&pair, &mobile(""), &gateway(listed, ""))?;
    let before = spis(&tunnel)?;
    let tap = Wiretap::open(&pair.between)?;
    tunnel
        .mobile
        .strata(&format!("move office --from {CELL}"))?;
    for (daemon, peer, words) in [
        (
            &tunnel.gateway,
            "alice",
            "10.4.0.2 is not among the addresses",
        ),
        (&tunnel.mobile, "office", "UNACCEPTABLE_ADDRESSES"),
    ] {
        let told = |status: &Value| pair::refusal(status).contains(words);
        daemon.wait_until("status", DEADLINE, told)?;
        let explained = daemon.strata_text(&format!("explain {peer}"))?;
        ensure!(explained.contains(words), "{explained}");
        ensure!(explained.contains("`remote`"), "{explained}");
    }
    is_at(&pair, &tunnel, WIFI)?;
    carry(&pair, WIFI)?;
    ensure!(spis(&tunnel)? == before, "the tunnel was made anew");
    ensure_nothing_in_clear(&pair, &seen(&pair, &tap, WIFI, "10.3.0.1")?)?;
    let elsewhere = refused(&tunnel.mobile, "move office --from 10.1.0.2")?;
    ensure!(
        elsewhere.contains("10.1.0.2 is not among the addresses"),
        "{elsewhere}"
    );
    Ok(())
}

/// An end without MOBIKE, as an older version has it for transport mode.
// Refuses: mobikex
#[lab::test]
fn transport_mode_stays_where_one_end_has_no_mobike() -> Result<()> {
    let pair = Pair::new("transport")?;
    pair.add_second_wire()?;
    let gateway = gateway(WALKS, "mobike = \"off\"");
    let tunnel = start_up(&pair, &mobile(""), &gateway)?;
    let refusal = refused(&tunnel.mobile, &format!("move office --from {CELL}"))?;
    ensure!(refusal.contains("which cannot move"), "{refusal}");
    ensure!(refusal.contains("list all addresses"), "{refusal}");
    carry(&pair, WIFI)
}

// Recovers: mobikex
#[lab::test]
fn transport_mode_moves_over_hops_that_lose_packets() -> Result<()> {
    let hop = sim::Settings {
        rate: NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        // One in sixteen full packets is lost.
        bit_error_rate: 1.0 / 200_000.0,
    };
    let pair = Pair::with_lossy_hop("transport", hop)?;
    let _hop = pair.add_second_lossy_hop(hop)?;
    let tunnel = walking(&pair)?;
    let before = spis(&tunnel)?;
    let tap = Wiretap::open(&pair.between)?;
    for from in [CELL, WIFI, CELL, WIFI] {
        move_to(&pair, &tunnel, from)?;
        transfer(&pair.mobile, &pair.gateway, SERVER, OCTETS)?;
    }
    ensure!(spis(&tunnel)? == before, "the tunnel was made anew");
    ensure_nothing_in_clear(&pair, &tap.rest()?)
}
