//! `right = "inject"` and `[stand_in]`: a licensed node answers for a mobile node that is out of
//! reach. TCP connections of the kernel survive an outage that would end them otherwise.

use anyhow::{Context, Result, bail, ensure};
use lab::daemon::Daemon;
use lab::pair::{
    self, DEADLINE, HEADERS, LICENSED, MOBILE, NODE_KEY, Pair, Terms, Tunnel, holds_a_grant,
    licensed_config,
};
use lab::process::until;
use lab::transfer::connect;
use lab::wiretap::Wiretap;
use os::Family;
use socket2::{SockRef, TcpKeepalive};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wire::zoned::Injected;

const INJECT: &str = r#"[{ node = "fa.example.net", zones = ["headers"], right = "inject" }]"#;

/// The mobile node neither receives nor sends.
const OUTAGE: &str = "table inet outage {
chain in { type filter hook input priority -300; udp dport { 500, 4500 } drop; }
chain out { type filter hook output priority -300; udp dport { 500, 4500 } drop; }
}
";

fn licensing(licences: &str) -> Terms<'_> {
    Terms {
        zones: "require",
        licences,
    }
}

/// Starts a tunnel through a node that is configured to answer for its mobile node.
fn start(pair: &Pair, licences: &str, limit: &str) -> Result<(Daemon, Tunnel)> {
    pair.between.secret("node.psk", NODE_KEY)?;
    let patience = format!("[stand_in]\nafter = \"300ms\"\nlimit = \"{limit}\"\n");
    let config = licensed_config(LICENSED) + &patience;
    let licensed = pair.between.stratad(&config)?;
    let terms = licensing(licences);
    let tunnel = pair.start(Family::V4, terms, terms)?;
    tunnel.up()?;
    licensed.wait_until("zones", DEADLINE, holds_a_grant)?;
    Ok((licensed, tunnel))
}

fn outage(pair: &Pair) -> Result<()> {
    pair.mobile.file("outage.nft", OUTAGE)?;
    pair.mobile.run("nft -f outage.nft").map(drop)
}

fn over(pair: &Pair) -> Result<()> {
    pair.mobile.run("nft delete table inet outage").map(drop)
}

/// A connection between a server and the mobile node.
struct Connection {
    server: TcpStream,
    mobile: TcpStream,
}

impl Connection {
    /// Connects. The server's kernel sends a keepalive probe after a second of silence, and ends
    /// the connection after three unanswered probes.
    fn begin(pair: &Pair) -> Result<Self> {
        let (server, mobile) = connect(&pair.gateway, &pair.mobile, MOBILE[0])?;
        let second = Duration::from_secs(1);
        let keepalive = TcpKeepalive::new().with_time(second).with_interval(second);
        SockRef::from(&server).set_tcp_keepalive(&keepalive.with_retries(3))?;
        let mut connection = Self { server, mobile };
        connection.go_on()?;
        Ok(connection)
    }

    /// Exchanges a message in each direction.
    fn go_on(&mut self) -> Result<()> {
        self.say(b"how is the weather")?;
        self.hear(b"how is the weather")?;
        self.mobile.write_all(b"it rains")?;
        let mut room = [0; 8];
        self.server.read_exact(&mut room)?;
        ensure!(&room == b"it rains");
        Ok(())
    }

    fn say(&mut self, words: &[u8]) -> Result<()> {
        Ok(self.server.write_all(words)?)
    }

    fn hear(&mut self, words: &[u8]) -> Result<()> {
        let mut room = vec![0; words.len()];
        self.mobile.read_exact(&mut room)?;
        ensure!(room == words, "other octets came");
        Ok(())
    }

    /// Waits until the server's kernel has given up.
    fn ends(&self) -> Result<()> {
        let error = until("the kernel to give up", DEADLINE, || {
            Ok(self.server.take_error()?)
        })?;
        ensure!(error.kind() == ErrorKind::TimedOut, "{error}");
        Ok(())
    }

    /// Returns the kernel's state of the server's socket.
    fn state(&self, pair: &Pair) -> Result<String> {
        let port = self.server.local_addr()?.port();
        pair.gateway.run(&format!("ss -tinoH sport = :{port}"))
    }
}

/// Returns the packets that the node injected, and those of them that the gateway accepted.
fn injected(licensed: &Daemon, tunnel: &Tunnel) -> Result<[u64; 2]> {
    let metrics = licensed.strata_text("metrics")?;
    let line = metrics.lines().find(|line| {
        line.starts_with("strata_stand_in_packets_total") && line.contains("\"injected\"")
    });
    let made = line.and_then(|line| line.rsplit(' ').next());
    let made = made.context("no such counter")?.parse()?;
    let status = tunnel.gateway.strata("status")?;
    let believed = status["status"]["injected"].as_u64();
    Ok([made, believed.context("no such number")?])
}

fn wait_for_answers(licensed: &Daemon, tunnel: &Tunnel, count: u64) -> Result<()> {
    until("answers of the node", DEADLINE, || {
        let [_, believed] = injected(licensed, tunnel)?;
        Ok((believed >= count).then_some(()))
    })
}

// Works: inject-right
// Answers: inject-what
#[lab::test]
fn a_connection_outlives_an_outage_that_its_keepalives_would_have_ended() -> Result<()> {
    let pair = Pair::new("inject")?;
    let (licensed, tunnel) = start(&pair, INJECT, "10m")?;
    let mut connection = Connection::begin(&pair)?;
    let zones = licensed.strata("zones")?;
    ensure!(zones["zones"]["held"][0]["injects"] == true, "{zones}");
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let zones = daemon.strata("zones")?;
        let holder = &zones["zones"]["composites"][0]["holders"][0];
        ensure!(holder["right"] == "inject", "{zones}");
    }
    outage(&pair)?;
    // Each packet answers a probe, with a second in between. Without answers the connection ends
    // after four seconds.
    wait_for_answers(&licensed, &tunnel, 7)?;
    ensure!(connection.server.take_error()?.is_none());
    over(&pair)?;
    connection.go_on()?;
    let [made, believed] = injected(&licensed, &tunnel)?;
    ensure!(made == believed, "{made} made, {believed} believed");
    let status = tunnel.gateway.strata("status")?;
    pair::no_drops(&status)
}

/// Control: the same node and configuration without the right to inject.
// Refuses: inject-right
// Answers: inject-without
#[lab::test]
fn a_node_that_may_only_read_saves_no_connection() -> Result<()> {
    let pair = Pair::new("inject")?;
    let (licensed, tunnel) = start(&pair, HEADERS, "10m")?;
    let connection = Connection::begin(&pair)?;
    outage(&pair)?;
    connection.ends()?;
    ensure!(injected(&licensed, &tunnel)? == [0, 0]);
    Ok(())
}

/// Starts a connection with unacknowledged data, whose kernel gives up after three seconds without
/// an answer.
fn under_way(pair: &Pair) -> Result<Connection> {
    pair.gateway.sysctl("net.ipv4.tcp_retries2", "3")?;
    let mut connection = Connection::begin(pair)?;
    outage(pair)?;
    connection.say(b"take an umbrella")?;
    Ok(connection)
}

// Works: inject-right
#[lab::test]
fn data_under_way_waits_for_the_end_of_an_outage() -> Result<()> {
    let pair = Pair::new("inject")?;
    let (licensed, tunnel) = start(&pair, INJECT, "10m")?;
    let mut connection = under_way(&pair)?;
    wait_for_answers(&licensed, &tunnel, 1)?;
    let state = connection.state(&pair)?;
    // `ss` does not show a zero window.
    ensure!(!state.contains("snd_wnd:"), "{state}");
    // The fifth retransmission comes after more than three seconds.
    until("the kernel to try again and again", DEADLINE, || {
        let state = connection.state(&pair)?;
        let doubled = state
            .split_whitespace()
            .find_map(|word| word.strip_prefix("backoff:"));
        let doubled = doubled.map_or(Ok(0), str::parse::<u32>)?;
        Ok((doubled >= 4).then_some(()))
    })?;
    ensure!(connection.server.take_error()?.is_none());
    over(&pair)?;
    connection.hear(b"take an umbrella")?;
    connection.go_on()
}

// Refuses: inject-right
#[lab::test]
fn without_a_stand_in_data_under_way_gives_up() -> Result<()> {
    let pair = Pair::new("inject")?;
    let (_licensed, _tunnel) = start(&pair, HEADERS, "10m")?;
    under_way(&pair)?.ends()
}

// Refuses: inject-right
// Answers: inject-hiding
#[lab::test]
fn nobody_is_stood_in_for_longer_than_the_limit() -> Result<()> {
    let pair = Pair::new("inject")?;
    let (licensed, tunnel) = start(&pair, INJECT, "3s")?;
    let connection = Connection::begin(&pair)?;
    outage(&pair)?;
    wait_for_answers(&licensed, &tunnel, 1)?;
    connection.ends()
}

/// The mobile node cannot rekey during the outage. The gateway rejects packets injected under the
/// old keys.
// Refuses: inject-right
// Weakness: S25
// Answers: inject-without
#[lab::test]
fn a_licence_to_inject_that_is_taken_back_ends_during_an_outage() -> Result<()> {
    let pair = Pair::new("inject")?;
    let (licensed, tunnel) = start(&pair, INJECT, "10m")?;
    let connection = Connection::begin(&pair)?;
    outage(&pair)?;
    wait_for_answers(&licensed, &tunnel, 2)?;
    let without = pair::gateway_config(Terms::ZONED);
    tunnel.gateway.change(&without)?;
    connection.ends()
}

// Recovers: inject-right
// Weakness: S25
#[lab::test]
fn no_number_comes_twice_over_a_crash_of_the_node_and_a_lossy_hop() -> Result<()> {
    let pair = Pair::with_lossy_hop("inject", pair::hop(1.0 / 1_200_000.0))?;
    let (mut licensed, tunnel) = start(&pair, INJECT, "10m")?;
    let tap = Wiretap::open(&pair.gateway)?;
    let mut numbers = BTreeSet::new();
    for round in 1..=2 {
        let mut connection = Connection::begin(&pair)?;
        let [_, before] = injected(&licensed, &tunnel)?;
        outage(&pair)?;
        wait_for_answers(&licensed, &tunnel, before + 3).with_context(|| format!("{round}"))?;
        over(&pair)?;
        connection.go_on()?;
        note(&tap, &mut numbers)?;
        if round == 1 {
            licensed.process().crash()?;
            licensed.start_again()?;
            licensed.wait_until("zones", DEADLINE, holds_a_grant)?;
        }
    }
    let grants: BTreeSet<_> = numbers.iter().map(|(_, grant, _)| grant).collect();
    ensure!(grants.len() == 2 && numbers.len() >= 6, "{numbers:?}");
    Ok(())
}

/// Records the numbers of all injected packets that the tap has seen; fails on a reused number.
fn note(tap: &Wiretap, numbers: &mut BTreeSet<(u32, u16, u32)>) -> Result<()> {
    while let Some(seen) = tap.next()? {
        if let Some(made) = seen.esp().and_then(Injected::read)
            && !numbers.insert((made.spi.0, made.grant, made.counter))
        {
            bail!("{made:?} is the front of two packets");
        }
    }
    Ok(())
}
