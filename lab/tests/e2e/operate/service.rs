//! Policies per service, by protocol and ports, in transport mode: protected by one of two tunnels,
//! discarded, or bypassed.

use anyhow::{Context, Result, ensure};
use lab::host::Host;
use lab::pair::{self, DEADLINE, Pair, Tunnel};
use lab::plain;
use lab::process::until;
use lab::wiretap::{Seen, Wiretap};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// Addresses of the hosts, inner and outer.
const MOBILE: &str = "10.3.0.2";
const SERVER: &str = "192.0.2.1";

const WEB: u16 = 9100;
const VOICE: u16 = 9201;
const OTHER: u16 = 9300;

/// Payload that must not be seen in clear.
const SECRET: &str = "what the service says";

/// Returns the tables of both ends. The first tunnel carries the server's `services`, as each end
/// configures them; the second one, `voice`, carries `child`.
fn configs(services: [&str; 2], child: &str) -> [String; 2] {
    let table = |id: &str, table: &str, peer: &str, address: &str, ends: [String; 2]| {
        let [local, remote] = ends;
        format!(
            "[node]\nid = \"{id}\"\n[peer.{table}]\nid = \"{peer}\"\naddress = \"{address}\"\n\
             psk = \"tunnel.psk\"\nlocal = [\"{local}\"]\nremote = [\"{remote}\"]\nmode = \"transport\"\n\
             start = \"manual\"\n"
        )
    };
    let [mobile, gateway] = ["alice@example.net", "gw.example.net"];
    let client = || format!("{MOBILE}/32");
    let server = |service: &str| format!("{SERVER}/32{service}");
    let near = table(
        mobile,
        "office",
        gateway,
        SERVER,
        [client(), server(services[0])],
    );
    let far = table(
        gateway,
        "alice",
        mobile,
        MOBILE,
        [server(services[1]), client()],
    );
    let with = |config: String, table: &str, end: &str| match child {
        "" => config,
        service => format!(
            "{config}[peer.{table}.child.voice]\n{end} = [\"{}\"]\n",
            server(service)
        ),
    };
    [with(near, "office", "remote"), with(far, "alice", "local")]
}

fn start(services: [&str; 2], child: &str) -> Result<(Pair, Tunnel)> {
    let pair = Pair::new("service")?;
    let tunnel = plain::start_with(&pair, &configs(services, child))?;
    tunnel.up()?;
    Ok((pair, tunnel))
}

/// Makes one connection to a port of the server, with a short exchange.
fn talk(pair: &Pair, port: u16) -> Result<()> {
    let listener = pair
        .gateway
        .inside(|| Ok(TcpListener::bind((SERVER, port))?))?;
    let dial = || {
        Ok(TcpStream::connect_timeout(
            &listener.local_addr()?,
            DEADLINE,
        )?)
    };
    let mut client = pair.mobile.inside(dial)?;
    let (mut server, _) = listener.accept()?;
    client.write_all(SECRET.as_bytes())?;
    let mut room = [0; SECRET.len()];
    server.read_exact(&mut room)?;
    ensure!(room == SECRET.as_bytes());
    Ok(())
}

/// Sends a datagram to a port of the server; returns the receiving socket.
fn tell(pair: &Pair, port: u16) -> Result<UdpSocket> {
    let receive = || {
        let socket = UdpSocket::bind((SERVER, port))?;
        socket.set_read_timeout(Some(DEADLINE))?;
        Ok(socket)
    };
    let receiver = pair.gateway.inside(receive)?;
    let sender = pair.mobile.inside(|| Ok(UdpSocket::bind((MOBILE, 0))?))?;
    sender.send_to(SECRET.as_bytes(), (SERVER, port))?;
    Ok(receiver)
}

/// Returns the packets that each tunnel of the mobile node sent, first the peer's own, then
/// `voice`.
fn sent(tunnel: &Tunnel) -> Result<[u64; 2]> {
    let children = pair::children(&tunnel.mobile.strata("status")?);
    Ok(["first", "voice"].map(|name| {
        let named = |child: &&Value| child["name"].as_str().unwrap_or("first") == name;
        let child = children.iter().find(named);
        let packets = child.and_then(|child| child["sent"]["packets"].as_u64());
        packets.unwrap_or_default()
    }))
}

fn dropped(tunnel: &Tunnel) -> Result<u64> {
    let status = tunnel.mobile.strata("status")?;
    Ok(status["status"]["drops"]["esp_no_policy"]
        .as_u64()
        .unwrap_or_default())
}

/// Fails if the tap has seen the secret so far.
fn ensure_secret(pair: &Pair, tap: &Wiretap) -> Result<()> {
    let marker = "the last packet of this look";
    let send = |host: &Host| {
        host.inside(|| {
            let socket = UdpSocket::bind((MOBILE, 0))?;
            Ok(socket.send_to(marker.as_bytes(), ("10.3.0.1", 9))?)
        })
    };
    send(&pair.mobile)?;
    let seen = tap.read_until(DEADLINE, |seen| seen.has_text(marker))?;
    let told = |seen: &&Seen| seen.has_text(SECRET);
    ensure!(seen.iter().find(told).is_none(), "it was seen in clear");
    Ok(())
}

// Works: services
// Refuses: services
#[lab::test]
fn each_service_goes_by_its_own_tunnel_and_all_others_go_nowhere() -> Result<()> {
    let (pair, tunnel) = start([" tcp 9100"; 2], " udp 9200-9201")?;
    let both = |status: &Value| pair::names(status) == ["first", "voice"];
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        daemon.wait_until("status", DEADLINE, both)?;
    }
    let tap = Wiretap::open(&pair.between)?;
    talk(&pair, WEB)?;
    let [web, voice] = sent(&tunnel)?;
    ensure!(web >= 3 && voice == 0, "{web}, {voice}");
    let receiver = tell(&pair, VOICE)?;
    receiver.recv(&mut [0; 64])?;
    let [_, voice] = sent(&tunnel)?;
    ensure!(voice == 1, "{voice} datagrams");
    // A service without a policy: its protocol is protected, its port is not.
    let before = dropped(&tunnel)?;
    let receiver = tell(&pair, OTHER)?;
    until("the drop", DEADLINE, || {
        Ok((dropped(&tunnel)? > before).then_some(()))
    })?;
    receiver.set_nonblocking(true)?;
    ensure!(receiver.recv(&mut [0; 64]).is_err(), "it arrived");
    let told = pair.mobile.inside(|| {
        let there = SocketAddr::new(SERVER.parse()?, OTHER);
        Ok(TcpStream::connect_timeout(
            &there,
            Duration::from_millis(300),
        ))
    })?;
    ensure!(told.is_err(), "a connection to a service that nobody named");
    ensure_secret(&pair, &tap)?;
    let carried = pair::children(&tunnel.gateway.strata("status")?);
    let text = serde_json::to_string(&carried)?;
    ensure!(
        text.contains("192.0.2.1/32 protocol 6 ports 9100-9100"),
        "{text}"
    );
    Ok(())
}

/// The traffic selectors are the intersection of both ends' (RFC 7296 section 2.9).
// Works: services
#[lab::test]
fn ends_that_mean_different_services_carry_what_both_mean() -> Result<()> {
    let (pair, tunnel) = start([" tcp 9000-9150", " tcp 9100-9200"], "")?;
    talk(&pair, WEB)?;
    for (daemon, end) in [(&tunnel.mobile, "remote"), (&tunnel.gateway, "local")] {
        let children = pair::children(&daemon.strata("status")?);
        let agreed = children[0][end][0].as_str().context("no selectors")?;
        ensure!(
            agreed == "192.0.2.1/32 protocol 6 ports 9100-9150",
            "{agreed}"
        );
    }
    let before = dropped(&tunnel)?;
    let _ = tell(&pair, WEB)?;
    until("the drop of another protocol", DEADLINE, || {
        Ok((dropped(&tunnel)? > before).then_some(()))
    })
}

// Refuses: services
#[lab::test]
fn what_is_no_service_is_told_with_the_fix() -> Result<()> {
    let pair = Pair::new("service")?;
    for (service, words) in [
        (" htcp 80", "`htcp` is not a protocol"),
        (" icmp 8", "only tcp, udp and sctp have ports"),
        (" tcp 90-80", "is not a range of ports"),
    ] {
        let Err(refused) = plain::start_with(&pair, &configs([service; 2], "")) else {
            anyhow::bail!("`{service}` was taken");
        };
        let refused = format!("{refused:#}");
        ensure!(refused.contains(words), "{refused}");
    }
    Ok(())
}
