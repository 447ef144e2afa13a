//! Tunnels over TCP (RFC 9329), through networks that block UDP.

use anyhow::{Context, Result, ensure};
use lab::account::wait_for;
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, GATEWAY, MOBILE, Pair, Tunnel, is_up, refusal};
use lab::plain;
use lab::process::{DEADLINE, until};
use lab::transfer::transfer;
use lab::wiretap::Wiretap;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};

const MB: u64 = 1_000_000;

/// Additional table of the gateway's configuration.
const LISTEN: &str = "[listen]\ntcp = 4500\n";

/// Rules for the host between: drop all UDP.
const WALL: &str = "table ip wall {
  chain forward {
    type filter hook forward priority 0
    meta l4proto udp drop
  }
}
";

/// Rules for the host between: reset every connection at both ends.
const CUT: &str = "table ip cut {
  chain forward {
    type filter hook forward priority 0
    meta l4proto tcp reject with tcp reset
  }
}
";

const UDP: u8 = 17;
const TCP: u8 = 6;

fn wall(pair: &Pair, table: &str) -> Result<()> {
    pair.between.file("wall.nft", table)?;
    pair.between.run("nft -f wall.nft").map(drop)
}

fn open(pair: &Pair, table: &str) -> Result<()> {
    let delete = format!("nft delete table ip {table}");
    pair.between.run(&delete).map(drop)
}

/// Starts both daemons, not connected yet; `mobile` is a line in the mobile node's table of the
/// gateway.
fn start(pair: &Pair, mobile: &str) -> Result<Tunnel> {
    let [mobile, gateway] = plain::configs(mobile, "");
    plain::start_with(pair, &[mobile, format!("{gateway}{LISTEN}")])
}

/// Returns the IP protocols of packets on the mobile node's wire.
fn protocols(tap: &Wiretap) -> Result<Vec<u8>> {
    let mobile: IpAddr = "10.3.0.2".parse()?;
    let seen = tap.rest()?;
    let ours = seen
        .iter()
        .filter(|packet| [packet.source, packet.destination].contains(&mobile));
    let protocols = ours.filter_map(|packet| packet.octets.get(9).copied());
    Ok(protocols.collect())
}

fn goes_by(daemon: &Daemon, carrier: &str) -> Result<Value> {
    daemon.wait_until("paths", DEADLINE, |paths| {
        paths["paths"]["tunnels"][0]["carrier"] == carrier
    })
}

/// Returns a counter of stream events at a host.
fn count(daemon: &Daemon, what: &str) -> Result<u64> {
    let status = daemon.strata("status")?;
    let drops = &status["status"]["drops"];
    Ok(drops[format!("system_stream_{what}")].as_u64().unwrap_or(0))
}

// Works: tcp
#[lab::test]
fn where_no_udp_comes_through_a_tunnel_comes_up_by_tcp() -> Result<()> {
    let pair = Pair::new("tcp")?;
    wall(&pair, WALL)?;
    let tunnel = start(&pair, "tcp = \"fallback\"")?;
    tunnel.up()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 20 * MB)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 20 * MB)?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        ensure!(pair::peer(&status)["carrier"] == "tcp", "{status}");
        goes_by(daemon, "tcp")?;
    }
    let shown = tunnel.mobile.strata_text("status")?;
    ensure!(shown.contains("192.0.2.1:4500 by TCP"), "{shown}");
    let Tunnel { mut mobile, .. } = tunnel;
    let told = "no answer by UDP, trying TCP to 192.0.2.1:4500";
    mobile.process().wait_for_log(told, DEADLINE)
}

// Works: tcp
#[lab::test]
fn where_udp_comes_through_nothing_goes_by_tcp() -> Result<()> {
    let pair = Pair::new("tcp")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = start(&pair, "tcp = \"fallback\"")?;
    tunnel.up()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
    let protocols = protocols(&tap)?;
    ensure!(protocols.contains(&UDP) && !protocols.contains(&TCP));
    goes_by(&tunnel.gateway, "udp").map(drop)
}

// Works: tcp
#[lab::test]
fn always_sends_no_datagram_at_all() -> Result<()> {
    let pair = Pair::new("tcp")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = start(&pair, "tcp = \"always\"")?;
    tunnel.up()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
    let protocols = protocols(&tap)?;
    ensure!(protocols.contains(&TCP) && !protocols.contains(&UDP));
    Ok(())
}

/// Both ends notice the reset when they send. No connection succeeds until the network allows it
/// again.
// Recovers: tcp
#[lab::test]
fn a_tunnel_outlives_its_connection() -> Result<()> {
    for mobike in ["on", "off"] {
        let pair = Pair::new("tcp")?;
        let tunnel = start(&pair, &format!("tcp = \"always\"\nmobike = \"{mobike}\""))?;
        tunnel.up()?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
        let before = (tunnel.spis()?, goes_by(&tunnel.mobile, "tcp")?);
        let local = |paths: &Value| paths["paths"]["tunnels"][0]["local"].clone();
        wall(&pair, CUT)?;
        say_something(&pair.mobile)?;
        tunnel
            .mobile
            .wait_until("paths", DEADLINE, |paths| local(paths) != local(&before.1))?;
        open(&pair, "cut")?;
        let back = || transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB).ok();
        until("the tunnel", DEADLINE, || Ok(back()))?;
        transfer(&pair.gateway, &pair.mobile, MOBILE[0], MB)?;
        ensure!(tunnel.spis()? == before.0, "the tunnel was made anew");
    }
    Ok(())
}

fn say_something(mobile: &Host) -> Result<()> {
    mobile.inside(|| {
        let socket = UdpSocket::bind((MOBILE[0], 0))?;
        Ok(socket.send_to(b"anybody?", (GATEWAY[0], 9))?)
    })?;
    Ok(())
}

// Refuses: tcp
#[lab::test]
fn a_listener_that_is_not_there_is_told_with_the_fix() -> Result<()> {
    let pair = Pair::new("tcp")?;
    let configs = plain::configs("tcp = \"always\"\ntcp_port = 443", "");
    let tunnel = plain::start_with(&pair, &configs)?;
    tunnel.mobile.strata("up office")?;
    let told = |status: &Value| refusal(status).contains("`tcp = 443` in its [listen]");
    tunnel.mobile.wait_until("status", DEADLINE, told)?;
    let explained = tunnel.mobile.strata_text("explain office")?;
    ensure!(
        explained.contains("write `tcp = 443` in [listen], start stratad"),
        "{explained}"
    );
    Ok(())
}

// Refuses: tcp
#[lab::test]
fn silence_is_explained_with_tcp_as_a_way_out() -> Result<()> {
    const ADVICE: &str = "write `tcp = \"fallback\"`";
    let pair = Pair::new("tcp")?;
    wall(&pair, WALL)?;
    let tunnel = start(&pair, "tcp = \"off\"")?;
    tunnel.mobile.strata("up office")?;
    wait_for(&tunnel.mobile, "office", |explained| {
        explained["attempt"]["fixes"]
            .to_string()
            .contains("`tcp = ")
    })?;
    let explained = tunnel.mobile.strata_text("explain office")?;
    ensure!(explained.contains(ADVICE), "{explained}");
    Ok(())
}

// Refuses: tcp
#[lab::test]
fn strangers_that_say_nothing_or_nonsense_are_few_and_counted() -> Result<()> {
    let pair = Pair::new("tcp")?;
    let tunnel = start(&pair, "tcp = \"always\"")?;
    let dial = || {
        pair.mobile.inside(|| {
            let stranger = TcpStream::connect("192.0.2.1:4500")?;
            stranger.set_read_timeout(Some(DEADLINE))?;
            Ok(stranger)
        })
    };
    let mut nonsense = dial()?;
    nonsense.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
    ends(&mut nonsense)?;
    ensure!(count(&tunnel.gateway, "corrupt")? == 1);
    let mut silent: Vec<_> = (0..40).map(|_| dial()).collect::<Result<_>>()?;
    // If dialling was slow, an older connection was closed in favour of a new one.
    let refused = || {
        let gone = count(&tunnel.gateway, "refused")? + count(&tunnel.gateway, "gave_way")?;
        Ok((gone == 24).then_some(()))
    };
    until("those that are too many to be refused", DEADLINE, refused)?;
    silent.iter_mut().try_for_each(ends)?;
    ensure!(count(&tunnel.gateway, "unused")? == 16);
    // Idle connections no longer block others.
    tunnel.up()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)
}

/// Fails unless the other end closes the stream, in any way.
fn ends(stream: &mut TcpStream) -> Result<()> {
    match stream.read(&mut [0; 16]) {
        Ok(0) => Ok(()),
        Ok(_) => anyhow::bail!("a stranger is answered"),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(()),
        Err(error) => Err(error).context("a stranger is kept"),
    }
}

/// The tunnel keeps its SAs (RFC 9329 section 7.1).
// Works: tcp
#[lab::test]
fn a_tunnel_moves_from_udp_to_tcp_and_back() -> Result<()> {
    let pair = Pair::new("tcp")?;
    let tunnel = start(&pair, "tcp = \"fallback\"")?;
    tunnel.up()?;
    let before = tunnel.spis()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
    wall(&pair, WALL)?;
    goes_by(&tunnel.mobile, "tcp")?;
    goes_by(&tunnel.gateway, "tcp")?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], MB)?;
    open(&pair, "wall")?;
    tunnel.mobile.strata("move office")?;
    goes_by(&tunnel.gateway, "udp")?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], MB)?;
    ensure!(tunnel.spis()? == before, "the tunnel was made anew");
    Ok(())
}

// Works: tcp
#[lab::test]
fn a_lock_of_everything_lets_a_stream_pass() -> Result<()> {
    let pair = Pair::new("tcp")?;
    let [mobile, gateway] = plain::configs("tcp = \"always\"\nleak = \"never\"", "");
    let remote = "remote = [\"0.0.0.0/0\", \"::/0\"] #";
    let mobile = mobile.replace("remote = ", remote);
    let tunnel = plain::start_with(&pair, &[mobile, format!("{gateway}{LISTEN}")])?;
    tunnel.mobile.strata("up office")?;
    tunnel.mobile.wait_until("status", DEADLINE, is_up)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], MB)?;
    let status = tunnel.mobile.strata("status")?;
    let drops = &status["status"]["drops"];
    ensure!(drops["system_enter_from_protected"].is_null(), "{drops}");
    Ok(())
}
