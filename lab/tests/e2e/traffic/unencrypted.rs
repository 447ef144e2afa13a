//! `unencrypted`: tunnels that are authenticated and not encrypted, until a certain time and for a
//! number of packets.

use anyhow::{Context, Result, ensure};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, Tunnel, children, refusal};
use lab::plain::{self, accepting, configs, for_packets};
use lab::transfer::transfer;
use lab::tshark;
use lab::volley::volleys;
use lab::wiretap::{Seen, Wiretap, write_capture};
use model::{EspSuite, Sha2};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

const NONE: &str = "";
const NULL: EspSuite = EspSuite::Null(Sha2::Sha256);
const HOUR: u64 = 3600;
const MB: u64 = 1_000_000;
const FEW: u64 = 100_000;

/// Payload of a datagram inside the tunnel.
const TEXT: &str = "what every router may read";

/// The discard port, on which no socket listens.
const DISCARD: u16 = 9;

const CAPTURE: &str = "wire.pcap";

/// Returns the suite of the tunnel that a status shows, and whether it is said to be unencrypted.
fn shown(status: &Value) -> Option<(String, bool)> {
    let all = children(status);
    let child = all.iter().find(|child| child["draining"] == false)?;
    let suite = child["suite"].as_str()?.to_owned();
    Some((suite, child["unencrypted"].as_bool()?))
}

fn is_encrypted(status: &Value) -> bool {
    shown(status).is_some_and(|(_, unencrypted)| !unencrypted)
}

/// Checks that both ends say, in JSON and in text, that they do not encrypt.
fn ensure_told(tunnel: &Tunnel, suite: &str) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        let expected = Some((suite.to_owned(), true));
        ensure!(shown(&status) == expected, "{status}");
        let text = daemon.strata_text("status")?;
        let name = pair::peer(&status)["name"].as_str().context("no name")?;
        let told = format!("every router on the path can read the tunnel with {name}");
        ensure!(
            text.contains(&told) && text.contains("TUNNEL IN CLEAR"),
            "{text}"
        );
        let details = pair::details(daemon)?;
        ensure!(details.contains("NOT ENCRYPTED"), "{details}");
    }
    Ok(())
}

/// Sends a datagram through the tunnel and returns the ESP packets between the ends, the last of
/// which is a datagram in clear.
fn on_the_wire(pair: &Pair, tap: &Wiretap) -> Result<Vec<Seen>> {
    let send = |from: &str, to: &str, text: &str| {
        pair.mobile.inside(|| {
            let socket = UdpSocket::bind((from, 0))?;
            Ok(socket.send_to(text.as_bytes(), (to, DISCARD))?)
        })
    };
    send(MOBILE[0], GATEWAY[0], TEXT)?;
    // What the tunnel takes later comes out later.
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], FEW)?;
    send("10.3.0.2", "10.3.0.1", "the last packet")?;
    let seen = tap.read_until(DEADLINE, |seen| seen.has_text("the last packet"))?;
    Ok(seen
        .into_iter()
        .filter(|seen| seen.esp().is_some())
        .collect())
}

// Works: unencrypted
#[lab::test(limit(300))]
fn every_suite_carries_what_every_router_can_read_and_both_ends_say_so() -> Result<()> {
    for suite in EspSuite::UNENCRYPTED {
        let pair = Pair::new("clear")?;
        let line = accepting(suite, HOUR)?;
        let mut tunnel = plain::start(&pair, &line, &line)?;
        tunnel.up()?;
        ensure_told(&tunnel, suite.name())?;
        let tap = Wiretap::open(&pair.between)?;
        let seen = on_the_wire(&pair, &tap)?;
        ensure!(
            seen.iter().any(|seen| seen.has_text(TEXT)),
            "{suite}: {seen:?}"
        );
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], FEW)?;
        tunnel.rekey(usize::from(suite == EspSuite::Aes128Gmac))?;
        transfer(&pair.gateway, &pair.mobile, MOBILE[0], FEW)?;
        ensure_told(&tunnel, suite.name())?;
        for daemon in [&mut tunnel.mobile, &mut tunnel.gateway] {
            pair::no_drops(&daemon.strata("status")?)?;
            daemon
                .process()
                .wait_for_log("is NOT ENCRYPTED", DEADLINE)?;
        }
    }
    Ok(())
}

/// Control: without a line at both ends, and with a line that ended, nobody can read anything.
// Refuses: unencrypted
#[lab::test]
fn without_a_word_and_after_its_time_everything_is_encrypted() -> Result<()> {
    let ended = "unencrypted = { suite = \"null-sha256\", until = 2026-01-31 }";
    for line in [NONE, ended] {
        let pair = Pair::new("clear")?;
        let tunnel = plain::start(&pair, line, line)?;
        tunnel.up()?;
        let tap = Wiretap::open(&pair.between)?;
        let seen = on_the_wire(&pair, &tap)?;
        ensure!(!seen.is_empty() && !seen.iter().any(|seen| seen.has_text(TEXT)));
        ensure!(is_encrypted(&tunnel.mobile.strata("status")?));
        let text = tunnel.mobile.strata_text("status")?;
        let told = text.contains("`unencrypted` of office ended on 2026-01-31 00:00 UTC");
        ensure!(
            told != line.is_empty() && !text.contains("not encrypted:"),
            "{text}"
        );
    }
    Ok(())
}

/// tshark has its own HMAC, and finds the text without keys.
// Works: unencrypted
#[lab::test(repeated)]
fn tshark_reads_null_without_keys_and_finds_its_hmac_right_with_them() -> Result<()> {
    let line = accepting(NULL, HOUR)?;
    for (ours, is_clear) in [(line.as_str(), true), (NONE, false)] {
        let pair = Pair::new("clear")?;
        let tunnel = plain::start(&pair, ours, ours)?;
        let keys = pair.mobile.directory().join(format!("keys-{is_clear}"));
        let asked = format!("keylog {}", keys.display());
        tunnel.mobile.strata_text(&asked)?;
        tunnel.up()?;
        let tap = Wiretap::open(&pair.between)?;
        let seen = on_the_wire(&pair, &tap)?;
        write_capture(&pair.mobile.directory().join(CAPTURE), &seen)?;
        let read = |keys: &Path, preference: &str, filter: &str, field: &str| {
            tshark::fields(&pair.mobile, keys, CAPTURE, &[preference], filter, field)
        };
        let checked = "esp.enable_authentication_check:TRUE";
        let all = read(&keys, checked, "esp", "esp.sequence")?;
        let right = read(&keys, checked, "esp.icv_good == 1", "esp.sequence")?;
        let guess = "esp.enable_null_encryption_decode_heuristic:TRUE";
        let none = pair.mobile.directory().join("no-keys");
        let ports = read(&none, guess, "esp && udp.dstport == 9", "ip.src")?;
        match is_clear {
            true => ensure!(all == right && !all.is_empty(), "{all:?}, {right:?}"),
            false => ensure!(!all.is_empty()),
        }
        let found = ports.iter().any(|source| source.contains(MOBILE[0]));
        ensure!(found == is_clear, "{ports:?}");
    }
    Ok(())
}

/// The initiator offers nothing else, and the other end tells its operator what to do.
// Refuses: unencrypted
#[lab::test]
fn an_end_that_does_not_accept_it_refuses_and_both_say_what_to_change() -> Result<()> {
    let pair = Pair::new("clear")?;
    let line = accepting(NULL, HOUR)?;
    let tunnel = plain::start(&pair, &line, NONE)?;
    tunnel.mobile.strata("up office")?;
    let told = |status: &Value| refusal(status).contains("NO_PROPOSAL_CHOSEN");
    tunnel.mobile.wait_until("status", DEADLINE, told)?;
    let told = |status: &Value| refusal(status).contains("only ESP without encryption");
    tunnel.gateway.wait_until("status", DEADLINE, told)?;
    for (daemon, words) in [
        (&tunnel.mobile, "explain office"),
        (&tunnel.gateway, "explain alice"),
    ] {
        let explained = daemon.strata_text(words)?;
        ensure!(explained.contains("`unencrypted`"), "{explained}");
    }
    let [encrypting, _] = configs(NONE, NONE);
    tunnel.mobile.change(&encrypting)?;
    tunnel.mobile.wait_until("status", DEADLINE, is_encrypted)?;
    plain::carry(&pair)
}

/// The other end would accept either. What it gets is encrypted.
// Refuses: unencrypted
#[lab::test]
fn an_end_that_accepts_it_gets_encryption_from_one_that_offers_encryption() -> Result<()> {
    let pair = Pair::new("clear")?;
    let line = accepting(NULL, HOUR)?;
    let mut tunnel = plain::start(&pair, NONE, &line)?;
    tunnel.up()?;
    // A rekey by the end that would accept less does not lower what the tunnel has.
    for round in 0..2 {
        tunnel.rekey(round)?;
        for daemon in [&tunnel.mobile, &tunnel.gateway] {
            ensure!(is_encrypted(&daemon.strata("status")?), "round {round}");
        }
    }
    plain::carry(&pair)
}

/// One end accepts it for an hour, the other for little more than the minute in which tunnels are
/// rekeyed to encryption.
// Recovers: unencrypted
#[lab::test]
fn a_minute_before_its_end_the_tunnel_is_rekeyed_to_encryption_without_a_loss() -> Result<()> {
    let pair = Pair::new("clear")?;
    let (short, long) = (
        accepting(EspSuite::Aes128Gmac, 72)?,
        accepting(EspSuite::Aes128Gmac, HOUR)?,
    );
    let mut tunnel = plain::start(&pair, &short, &long)?;
    tunnel.up()?;
    ensure_told(&tunnel, "aes128gmac")?;
    volleys(
        (&pair.mobile, MOBILE[0]),
        (&pair.gateway, GATEWAY[0]),
        || {
            for daemon in [&tunnel.mobile, &tunnel.gateway] {
                daemon.wait_until("status", DEADLINE, is_encrypted)?;
            }
            Ok(())
        },
    )?;
    tunnel.rekey(0)?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        ensure!(
            is_encrypted(&status),
            "the gateway accepts it still: {status}"
        );
        pair::no_drops(&status)?;
    }
    Ok(())
}

/// Returns the packets that may still go without encryption.
fn packets_left(daemon: &Daemon) -> Result<u64> {
    let all = children(&daemon.strata("status")?);
    let left = all.iter().find_map(|child| child["packets_left"].as_u64());
    left.with_context(|| format!("no packets are told: {all:?}"))
}

/// The mobile node accepts fewer packets than the gateway. A restart begins to count again.
// Works: unencrypted
// Recovers: unencrypted
#[lab::test]
fn at_nine_tenths_of_its_packets_the_tunnel_is_rekeyed_to_encryption_without_a_loss() -> Result<()>
{
    let pair = Pair::new("clear")?;
    let long = accepting(EspSuite::Aes128Gmac, HOUR)?;
    let mut tunnel = plain::start(&pair, &for_packets(&long, 20_000), &long)?;
    tunnel.up()?;
    ensure_told(&tunnel, "aes128gmac")?;
    ensure!(packets_left(&tunnel.mobile)? <= 20_000);
    ensure!(packets_left(&tunnel.gateway)? > 900_000_000);
    volleys(
        (&pair.mobile, MOBILE[0]),
        (&pair.gateway, GATEWAY[0]),
        || {
            for daemon in [&tunnel.mobile, &tunnel.gateway] {
                daemon.wait_until("status", DEADLINE, is_encrypted)?;
            }
            Ok(())
        },
    )?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        pair::no_drops(&daemon.strata("status")?)?;
    }
    let told = "90 % of the packets that `unencrypted` allows are used";
    tunnel.mobile.process().wait_for_log(told, DEADLINE)?;
    // Neither other keys nor another tunnel begin it again, nor a reload with the same line.
    tunnel.rekey(0)?;
    tunnel.mobile.strata("reload")?;
    tunnel.mobile.strata("down office")?;
    tunnel.up()?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        ensure!(is_encrypted(&status), "{status}");
    }
    tunnel.mobile.stop()?;
    tunnel.mobile.start_again()?;
    tunnel.up()?;
    ensure_told(&tunnel, "aes128gmac")
}

/// A router counts what it can read of more packets than the ends accept. The control accepts all
/// of them.
// Refuses: unencrypted
#[lab::test]
fn no_router_reads_more_packets_than_an_end_accepts() -> Result<()> {
    const MANY: u32 = 300;
    let line = accepting(NULL, HOUR)?;
    let mobile: IpAddr = "10.3.0.2".parse()?;
    for (packets, least, most) in [(100, 80, 100), (10_000, MANY + 1, MANY + 1)] {
        let pair = Pair::new("clear")?;
        let line = for_packets(&line, packets);
        let tunnel = plain::start(&pair, &line, &line)?;
        tunnel.up()?;
        let _sink = pair
            .gateway
            .inside(|| Ok(UdpSocket::bind((GATEWAY[0], DISCARD))?))?;
        let tap = Wiretap::open(&pair.between)?;
        pair.mobile.inside(|| {
            let socket = UdpSocket::bind((MOBILE[0], 0))?;
            for _ in 0..MANY {
                socket.send_to(TEXT.as_bytes(), (GATEWAY[0], DISCARD))?;
            }
            Ok(())
        })?;
        // Two devices pass each packet.
        let seen = on_the_wire(&pair, &tap)?;
        let readable = seen.iter().filter(|seen| seen.source == mobile);
        let readable = readable.filter(|seen| seen.has_text(TEXT));
        let readable: BTreeSet<_> = readable.map(Seen::esp).collect();
        let count = readable.len() as u32;
        ensure!((least..=most).contains(&count), "{count} of {packets}");
    }
    Ok(())
}

// Recovers: unencrypted
#[lab::test]
fn it_carries_over_a_lossy_hop_and_stays_as_it_is() -> Result<()> {
    let hop = sim::Settings {
        rate: NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        // One in sixteen full packets is lost.
        bit_error_rate: 1.0 / 200_000.0,
    };
    let pair = Pair::with_lossy_hop("clear", hop)?;
    let line = accepting(EspSuite::Null(Sha2::Sha512), HOUR)?;
    let tunnel = plain::start(&pair, &line, &line)?;
    tunnel.up()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
    tunnel.mobile.strata("rekey office")?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], MB)?;
    ensure_told(&tunnel, "null-sha512")
}

// Refuses: unencrypted
#[lab::test]
fn lines_that_would_show_more_than_is_meant_are_refused_with_the_fix() -> Result<()> {
    let pair = Pair::new("clear")?;
    let line = accepting(NULL, HOUR)?;
    let tunnel = plain::start(&pair, &line, &line)?;
    tunnel.up()?;
    let [mobile, _] = configs(&line, NONE);
    let year = accepting(NULL, 400 * 24 * HOUR)?;
    for (line, fix) in [
        ("suite = \"null-sha256\"", "`unencrypted = { suite"),
        (&format!("{line}\ntfc = \"mtu\""), "remove one of the two"),
        (&year, "on which the tunnel should be encrypted"),
        ("unencrypted = { suite = \"null-sha256\" }", "add `until ="),
    ] {
        let [faulty, _] = configs(line, NONE);
        tunnel.mobile.configure(&faulty)?;
        tunnel.mobile.refuses("reload", fix)?;
    }
    tunnel
        .mobile
        .configure(&mobile.replace("zones = \"refuse\"", "zones = \"accept\""))?;
    tunnel.mobile.refuses("reload", "`zones = \"refuse\"`")?;
    ensure_told(&tunnel, "null-sha256")?;
    told_by_check(&pair, &mobile)
}

/// `strata check` accepts the line, and warns.
fn told_by_check(pair: &Pair, config: &str) -> Result<()> {
    pair.mobile.file("strata.toml", config)?;
    let told = strata(&pair.mobile, "check strata.toml")?;
    ensure!(told.contains("TUNNEL IN CLEAR: until"), "{told}");
    Ok(())
}
