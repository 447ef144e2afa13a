//! Interruptions of a tunnel with default settings, and their length.
//!
//! A client sends all the time, as an application that waits for an answer. Each test prints the
//! time without one, from the interruption on.

use anyhow::{Result, anyhow, ensure};
use lab::echo::{Client, Service};
use lab::host::Host;
use lab::pair::{self, DEADLINE, Pair, Terms, Tunnel};
use lab::process::until;
use lab::tshark;
use lab::wiretap::{Seen, Wiretap, write_capture};
use os::Family;
use std::thread;
use std::time::Duration;

/// Longest pause that a user hardly notices.
const SOON: Duration = Duration::from_secs(1);

/// Longest pause after a restart of a gateway.
const LATER: Duration = Duration::from_secs(2);

/// The same if messages of the gateway are lost.
const MUCH_LATER: Duration = Duration::from_secs(10);

/// Outer ports that a NAT gives IKE on port 500, IKE on port 4500, and ESP.
#[derive(Clone, Copy)]
struct Translation {
    ike: u16,
    natt: u16,
    esp: u16,
}

impl Translation {
    /// One mapping for a port, as most NATs have it.
    const fn whole(base: u16) -> Self {
        Self {
            ike: base,
            natt: base + 1,
            esp: base + 1,
        }
    }

    /// Has the host between both ends translate like this. Packets to ports of earlier translations
    /// are dropped.
    fn put(self, pair: &Pair) -> Result<()> {
        let Self { ike, natt, esp } = self;
        let rules = format!(
            "table ip nat\ndelete table ip nat\ntable ip nat {{
  chain out {{
    type filter hook postrouting priority 100
    oifname \"wired\" udp sport 500 udp sport set {ike} ip saddr set 192.0.2.2
    oifname \"wired\" udp sport 4500 @th,64,32 0 udp sport set {natt} ip saddr set 192.0.2.2
    oifname \"wired\" udp sport 4500 udp sport set {esp} ip saddr set 192.0.2.2
  }}
  chain in {{
    type filter hook prerouting priority -300
    iifname \"wired\" udp dport {ike} udp dport set 500 ip daddr set 10.3.0.2
    iifname \"wired\" udp dport {esp} @th,64,32 != 0 counter udp dport set 4500 ip daddr set 10.3.0.2
    iifname \"wired\" udp dport {esp} udp dport set 4500 ip daddr set 10.3.0.2
    iifname \"wired\" udp dport {natt} udp dport set 4500 ip daddr set 10.3.0.2
    iifname \"wired\" udp dport 20000-60000 drop
  }}
}}\n"
        );
        let file = pair.between.file("nat.nft", &rules)?;
        let load = format!("nft -f {}", file.display());
        pair.between.run(&load).map(drop)
    }
}

/// Starts a tunnel with default liveness.
fn by_default(pair: &Pair, mobike: &str) -> Result<Tunnel> {
    by_default_with(pair, mobike, "")
}

/// The same with more in the configuration of the gateway.
fn by_default_with(pair: &Pair, mobike: &str, more: &str) -> Result<Tunnel> {
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    pair.gateway.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    pair.gateway.secret("node.psk", pair::NODE_KEY)?;
    let settings = |config: String| {
        let config = config.replace("liveness = \"1s\"\n", "");
        config.replace(
            "psk = \"tunnel.psk\"\n",
            &format!("psk = \"tunnel.psk\"\nmobike = \"{mobike}\"\n"),
        )
    };
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "auto");
    let gateway = settings(pair::gateway_config(Terms::PLAIN));
    let gateway = pair.gateway.stratad(&format!("{gateway}{more}"))?;
    let mobile = pair.mobile.stratad(&settings(config))?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    Ok(Tunnel { mobile, gateway })
}

/// Starts a service at the gateway and its client at the mobile node.
fn echo(pair: &Pair) -> Result<(Service, Client)> {
    Ok((Service::start(&pair.gateway)?, Client::start(&pair.mobile)?))
}

/// Sends until the gateway answers at the port that the NAT maps ESP to.
fn follow(pair: &Pair, client: &mut Client, translation: Translation) -> Result<()> {
    let rule = format!("udp dport {} @th", translation.esp);
    until("ESP to where the NAT maps it", DEADLINE, || {
        client.answered()?;
        let rules = pair.between.run("nft list table ip nat")?;
        let used = |line: &str| line.contains(&rule) && !line.contains("counter packets 0 ");
        Ok(rules.lines().any(used).then_some(()))
    })
}

/// Prints the time without an answer and fails if it is too long.
fn judge(what: &str, took: Duration, most: Duration) -> Result<()> {
    println!("{what}: {} ms without an answer", took.as_millis());
    ensure!(took < most, "{what}: {took:?}, and {most:?} is the most");
    Ok(())
}

/// RFC 7296 section 2.23 without MOBIKE, RFC 4555 section 3.8 with it.
// Recovers: tunnel
#[lab::test(quiet)]
fn a_nat_that_gives_other_ports_costs_less_than_a_second() -> Result<()> {
    for mobike in ["on", "off"] {
        let pair = Pair::new("back")?;
        Translation::whole(40_000).put(&pair)?;
        let tunnel = by_default(&pair, mobike)?;
        let (_service, mut client) = echo(&pair)?;
        let before = tunnel.spis()?;
        for base in [41_000, 42_000, 43_000] {
            Translation::whole(base).put(&pair)?;
            let what = format!("other ports, MOBIKE {mobike}");
            judge(&what, client.answered()?, SOON)?;
        }
        ensure!(tunnel.spis()? == before, "other SAs replaced the tunnel");
    }
    Ok(())
}

// Recovers: tunnel
#[lab::test(quiet)]
fn a_nat_that_maps_esp_apart_from_ike_is_followed_as_fast() -> Result<()> {
    for mobike in ["on", "off"] {
        let pair = Pair::new("back")?;
        let apart = |base: u16| Translation {
            esp: base + 7,
            ..Translation::whole(base)
        };
        apart(40_000).put(&pair)?;
        let tunnel = by_default(&pair, mobike)?;
        let (_service, mut client) = echo(&pair)?;
        follow(&pair, &mut client, apart(40_000))?;
        let before = tunnel.spis()?;
        for base in [41_000, 42_000, 43_000] {
            apart(base).put(&pair)?;
            let what = format!("other ports for each, MOBIKE {mobike}");
            judge(&what, client.answered()?, SOON)?;
            follow(&pair, &mut client, apart(base))?;
        }
        ensure!(tunnel.spis()? == before, "other SAs replaced the tunnel");
    }
    Ok(())
}

/// Kills the gateway of a tunnel three times, and prints the times without an answer, each from the
/// moment at which the process is gone, with the time that its start takes.
fn kill(tunnel: &mut Tunnel, client: &mut Client, most: Duration) -> Result<()> {
    for _ in 0..3 {
        tunnel.gateway.process().crash()?;
        let took = thread::scope(|scope| {
            let waiting = scope.spawn(|| client.answered());
            tunnel.gateway.start_again()?;
            let waited = waiting.join();
            waited.map_err(|_| anyhow!("the client panicked"))?
        })?;
        judge("a gateway killed", took, most)?;
    }
    Ok(())
}

/// Returns true if the mobile node was proved that its tunnel was lost.
fn is_proved(tunnel: &mut Tunnel) -> bool {
    let log = tunnel.mobile.process().log();
    log.contains("the peer was started again and has lost the tunnel")
}

/// Returns the tokens in clear that tshark finds among the packets of a host.
fn tokens(host: &Host, seen: &[Seen]) -> Result<Vec<String>> {
    const CAPTURE: &str = "back.pcap";
    write_capture(&host.directory().join(CAPTURE), seen)?;
    let (keys, is_token) = (host.directory(), "isakmp.notify.msgtype == 16419");
    let field = "isakmp.notify.data.qcd.token_secret_data";
    tshark::fields(host, keys, CAPTURE, &[], is_token, field)
}

// Works: crash
// Recovers: tunnel
#[lab::test(quiet)]
fn a_gateway_that_was_killed_is_back_within_two_seconds_and_proves_it() -> Result<()> {
    let pair = Pair::new("back")?;
    let mut tunnel = by_default(&pair, "on")?;
    let (_service, mut client) = echo(&pair)?;
    let tap = Wiretap::open(&pair.mobile)?;
    kill(&mut tunnel, &mut client, LATER)?;
    ensure!(is_proved(&mut tunnel), "no proof");
    let tokens = tokens(&pair.mobile, &tap.rest()?)?;
    ensure!(!tokens.is_empty(), "tshark sees no token");
    ensure!(tokens.iter().all(|token| token.len() == 32), "{tokens:?}");
    Ok(())
}

/// Control: an error without a token brings the tunnel back as well, and proves nothing.
// Refuses: crash
#[lab::test(quiet)]
fn a_gateway_without_tokens_is_back_and_proves_nothing() -> Result<()> {
    let pair = Pair::new("back")?;
    let mut tunnel = by_default_with(&pair, "on", "[sessions]\ncrash_tokens = false\n")?;
    let (_service, mut client) = echo(&pair)?;
    let tap = Wiretap::open(&pair.mobile)?;
    kill(&mut tunnel, &mut client, MUCH_LATER)?;
    ensure!(!is_proved(&mut tunnel), "it proved something");
    let tokens = tokens(&pair.mobile, &tap.rest()?)?;
    ensure!(tokens.is_empty(), "{tokens:?}");
    Ok(())
}

/// The first copy of each message of IKE on port 4500 is lost on its way to the mobile node, so
/// that nothing passes but what is sent again. A message is known by the SPI of the responder, its
/// exchange, its flags and its Message ID.
// Recovers: crash
#[lab::test(quiet)]
fn a_gateway_whose_messages_are_each_lost_once_is_back_within_ten_seconds() -> Result<()> {
    let pair = Pair::new("back")?;
    let mut tunnel = by_default(&pair, "on")?;
    let (_service, mut client) = echo(&pair)?;
    let rules = "table ip lossy {
  set seen {
    typeof @th,160,128
    flags dynamic
    size 65535
  }
  chain in {
    type filter hook prerouting priority -300
    udp sport 4500 @th,64,32 0 @th,160,128 != @seen add @seen { @th,160,128 } counter drop
  }
}\n";
    let file = pair.mobile.file("lossy.nft", rules)?;
    pair.mobile.run(&format!("nft -f {}", file.display()))?;
    kill(&mut tunnel, &mut client, MUCH_LATER)?;
    ensure!(is_proved(&mut tunnel), "no proof");
    let counted = pair.mobile.run("nft list table ip lossy")?;
    ensure!(!counted.contains("packets 0 "), "{counted}");
    Ok(())
}
