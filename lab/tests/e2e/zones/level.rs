//! Dynamic levels (DESIGN section 3): packets that both ends name are sent unencrypted, by class,
//! by period and by the operator's choice, within the limits of a grant. All other packets stay
//! zoned.

use anyhow::{Context, Result, bail, ensure};
use lab::account::{expect_fix, expect_row, wait};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::pair::{
    self, DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, TUNNEL_KEY, Terms, Tunnel, holds_a_grant,
    segments,
};
use lab::plain;
use lab::process::until;
use lab::transfer::transfer;
use lab::volley::volleys;
use lab::wiretap::Wiretap;
use os::Family;
use serde_json::Value;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

/// The port whose packets are sent unencrypted in these tests, and another port.
const PORT: u16 = 5004;
const OTHER_PORT: u16 = 6004;

/// Payload that only these tests send.
const TEXT: &str = "a picture that everybody on the way may see";

const VIDEO: &str =
    r#"integrity = { protocol = "udp", ports = "5004-5005", packets = 100000, seconds = 3600 }"#;

/// A grant for every packet with ports.
const ALL: &str =
    r#"integrity = { ports = "0-65535", packets = 1000000, seconds = 3600, renewals = 100 }"#;

/// Returns the mobile node's and the gateway's configuration, with their grants for unencrypted
/// packets. Probes of the path MTU, which would be counted as packets, are off.
fn configs(levels: [&str; 2]) -> [String; 2] {
    configs_with(Terms::ZONED, levels)
}

fn configs_with(terms: Terms<'_>, levels: [&str; 2]) -> [String; 2] {
    let with = |config: String, peer: &str, level: &str| match level {
        "" => config,
        level => format!("{config}\n[peer.{peer}.level]\n{level}\n"),
    };
    let mobile = pair::mobile_config(Family::V4, terms, "manual");
    let gateway = pair::gateway_config(terms);
    [
        with(mobile, "office", levels[0]),
        with(gateway, "alice", levels[1]),
    ]
    .map(|text| text.replace("[tunnel]", "[tunnel]\npath_mtu = \"off\""))
}

fn up(pair: &Pair, level: &str) -> Result<Tunnel> {
    let tunnel = plain::start_with(pair, &configs([level; 2]))?;
    tunnel.up()?;
    Ok(tunnel)
}

/// Returns the newest composite SA of `strata zones`.
fn composite(daemon: &Daemon) -> Result<Value> {
    let zones = daemon.strata("zones")?;
    let composites = zones["zones"]["composites"].as_array();
    let newest = composites.and_then(|composites| composites.last());
    Ok(newest.context("no composite SA")?.clone())
}

fn number(daemon: &Daemon, name: &str) -> Result<u64> {
    let composite = composite(daemon)?;
    let number = composite["level"][name].as_u64();
    number.with_context(|| format!("no {name}: {composite}"))
}

/// Sends a number of datagrams with the text from the mobile node to a port of the gateway; each
/// must arrive. Returns the number of datagrams that were readable on the path.
fn readable(pair: &Pair, port: u16, count: usize) -> Result<usize> {
    readable_behind(pair, &[], port, count)
}

/// The same with a header before the text.
fn readable_behind(pair: &Pair, header: &[u8], port: u16, count: usize) -> Result<usize> {
    let sent = [header, TEXT.as_bytes()].concat();
    let bind = |host: &lab::host::Host, address: &str, port: u16| {
        let address: IpAddr = address.parse()?;
        host.inside(|| Ok(UdpSocket::bind((address, port))?))
    };
    let near = bind(&pair.mobile, MOBILE[0], 0)?;
    let far = bind(&pair.gateway, GATEWAY[0], port)?;
    far.set_read_timeout(Some(DEADLINE))?;
    let tap = Wiretap::open(&pair.between)?;
    let mut arrived = [0; 100];
    for _ in 0..count {
        near.send_to(&sent, far.local_addr()?)?;
        let len = far.recv(&mut arrived).context("it does not arrive")?;
        ensure!(arrived[..len] == sent, "another text");
    }
    let (mut sealed, mut readable) = (0, 0);
    while let Some(seen) = tap.next()? {
        sealed += usize::from(seen.esp().is_some());
        readable += usize::from(seen.has_text(TEXT));
    }
    ensure!(sealed >= count, "{sealed} packets were seen");
    // The router is tapped on both sides, so it shows each packet more than once.
    let times = sealed / count;
    ensure!(readable % times == 0, "{readable} of {sealed}");
    Ok(readable / times)
}

// Works: dynamic-levels
// Answers: sight-level
#[lab::test]
fn what_is_named_can_be_read_on_the_way_and_nothing_else() -> Result<()> {
    let pair = Pair::new("level")?;
    let tunnel = up(&pair, VIDEO)?;
    ensure!(readable(&pair, PORT, 20)? == 20, "it is encrypted");
    ensure!(readable(&pair, OTHER_PORT, 20)? == 0, "it is not encrypted");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 300_000)?;
    ensure!(number(&tunnel.mobile, "sent")? == 20, "others went so");
    ensure!(number(&tunnel.gateway, "received")? == 20, "others came so");
    ensure!(number(&tunnel.mobile, "packets_left")? == 99_980, "of all");
    let told = tunnel.mobile.strata_text("zones")?;
    let words = "protocol 17, ports 5004-5005 NOT ENCRYPTED";
    ensure!(told.contains(words), "{told}");
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

/// Negative control; a grant at one end alone has no effect either.
// Refuses: dynamic-levels
// Answers: sight-level
#[lab::test]
fn without_a_grant_nothing_can_be_read_on_the_way() -> Result<()> {
    for levels in [["", ""], [VIDEO, ""], ["", VIDEO]] {
        let pair = Pair::new("level")?;
        let tunnel = plain::start_with(&pair, &configs(levels))?;
        tunnel.up()?;
        ensure!(readable(&pair, PORT, 20)? == 0, "{levels:?}");
        ensure!(composite(&tunnel.mobile)?["level"].is_null(), "{levels:?}");
    }
    Ok(())
}

/// The scheme of the paper.
// Works: dynamic-levels
#[lab::test]
fn every_third_packet_is_encrypted_all_the_same() -> Result<()> {
    let pair = Pair::new("level")?;
    let tunnel = up(&pair, &format!("{VIDEO}\nevery = 3"))?;
    let seen = readable(&pair, PORT, 30)?;
    ensure!(seen == 20, "{seen} of 30 could be read");
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

/// Returns an RTP header (RFC 3550 section 5.1) with a payload type, with or without a marker.
fn rtp(marked: bool, kind: u8) -> Vec<u8> {
    [&[0x80, u8::from(marked) << 7 | kind][..], &[0; 10]].concat()
}

/// The paper's example: I-frames of MPEG video are encrypted, P-frames and B-frames are not.
// Works: dynamic-levels
#[lab::test]
fn of_rtp_and_of_mpeg_what_matters_most_is_encrypted() -> Result<()> {
    let with = |words: &str| VIDEO.replace("packets", &format!("{words}, packets"));
    let pair = Pair::new("level")?;
    let tunnel = up(&pair, &with(r#"rtp = "unmarked""#))?;
    for (marked, expected) in [(false, 5), (true, 0)] {
        let seen = readable_behind(&pair, &rtp(marked, 96), PORT, 5)?;
        ensure!(seen == expected, "marker {marked}: {seen} could be read");
    }
    ensure!(readable(&pair, PORT, 5)? == 0, "it is no RTP");
    pair::no_drops(&tunnel.gateway.strata("status")?)?;
    drop(tunnel);
    let pair = Pair::new("level")?;
    let tunnel = up(&pair, &with(r#"mpeg = "PB""#))?;
    for (picture, expected) in [(1, 0), (2, 5), (3, 5)] {
        let header = [rtp(false, 32), vec![0, 0, picture, 0]].concat();
        let seen = readable_behind(&pair, &header, PORT, 5)?;
        ensure!(seen == expected, "picture {picture}: {seen} could be read");
    }
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

// Works: dynamic-levels
#[lab::test]
fn an_operator_switches_levels_under_volleys_and_nothing_is_lost() -> Result<()> {
    let pair = Pair::new("level")?;
    let tunnel = up(&pair, ALL)?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        for level in ["zoned", "integrity", "opaque", "auto"]
            .into_iter()
            .cycle()
            .take(24)
        {
            tunnel
                .mobile
                .strata_text(&format!("level office {level}"))?;
            tunnel
                .gateway
                .strata_text(&format!("level alice {level}"))?;
        }
        Ok(())
    })?;
    for (level, expected) in [("zoned", 0), ("integrity", 10), ("opaque", 0), ("auto", 10)] {
        tunnel
            .mobile
            .strata_text(&format!("level office {level}"))?;
        let seen = readable(&pair, PORT, 10)?;
        ensure!(seen == expected, "{level}: {seen} could be read");
        let shown = composite(&tunnel.mobile)?;
        ensure!(shown["signal"] == level, "{shown}");
    }
    pair::no_drops(&tunnel.gateway.strata("status")?)?;
    pair::no_drops(&tunnel.mobile.strata("status")?)
}

// Recovers: dynamic-levels
#[lab::test]
fn a_grant_that_is_used_up_loses_nothing_and_the_rest_is_encrypted() -> Result<()> {
    let pair = Pair::new("level")?;
    let few = r#"integrity = { ports = "0-65535", packets = 100, seconds = 3600 }"#;
    let tunnel = up(&pair, few)?;
    volleys(
        (&pair.mobile, MOBILE[0]),
        (&pair.gateway, GATEWAY[0]),
        || transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 300_000),
    )?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        ensure!(number(daemon, "sent")? == 100, "more than was granted");
        ensure!(number(daemon, "packets_left")? == 0, "and some left");
        let log = std::fs::read_to_string(daemon.log_path())?;
        let told = log
            .matches("the limit of unencrypted packets is reached")
            .count();
        ensure!(told == 1, "told {told} times: {log}");
        pair::no_drops(&daemon.strata("status")?)?;
    }
    ensure!(readable(&pair, PORT, 10)? == 0, "it is not encrypted");
    Ok(())
}

// Recovers: dynamic-levels
#[lab::test]
fn new_keys_renew_a_grant_as_often_as_was_agreed_and_nothing_is_lost() -> Result<()> {
    let pair = Pair::new("level")?;
    let twice = ALL.replace("renewals = 100", "renewals = 2");
    let mut tunnel = up(&pair, &twice)?;
    for round in 0..4 {
        let seen = readable(&pair, PORT, 5)?;
        let left = composite(&tunnel.mobile)?["level"]["renewals"].as_u64();
        let expected = 2_u64.checked_sub(round);
        ensure!(left == expected, "{left:?} renewals after {round}");
        let clear = if expected.is_some() { 5 } else { 0 };
        ensure!(seen == clear, "{seen} could be read after {round}");
        let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
        volleys(ends.0, ends.1, || tunnel.rekey(round as usize))?;
    }
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

/// Loses one in sixteen full packets, so the sequence numbers of both SAs have gaps.
// Recovers: dynamic-levels
#[lab::test]
fn a_download_comes_through_a_lossy_hop_every_second_packet_without_encryption() -> Result<()> {
    let hop = sim::Settings {
        rate: std::num::NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        bit_error_rate: 1.0 / 200_000.0,
    };
    let pair = Pair::with_lossy_hop("level", hop)?;
    let tunnel = up(&pair, &format!("{ALL}\nevery = 2"))?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 300_000)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 300_000)?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let [sent, came] = ["sent", "received"].map(|name| number(daemon, name));
        let (sent, came) = (sent?, came?);
        ensure!(sent > 100 && came > 100, "{sent} sent, {came} received");
    }
    Ok(())
}

// Refuses: dynamic-levels
#[lab::test]
fn ends_that_name_different_datagrams_encrypt_all_and_are_told_with_the_fix() -> Result<()> {
    let pair = Pair::new("level")?;
    let configs = configs([VIDEO, ALL]);
    let tunnel = plain::start_with(&pair, &configs)?;
    tunnel.up()?;
    ensure!(readable(&pair, PORT, 10)? == 0, "it is not encrypted");
    let explained = wait(&tunnel.gateway, "alice", "up")?;
    expect_row(&explained["attempt"], "not encrypted", "differs")?;
    let there = "write the same as the peer, protocol 17, ports 5004-5005";
    let key = "peer.alice.level.integrity";
    expect_fix(&explained["attempt"], key, &configs[1], there)?;
    let explained = wait(&tunnel.mobile, "office", "up")?;
    let key = "peer.office.level.integrity";
    let fix = "write the same `level` at both ends";
    expect_fix(&explained["attempt"], key, &configs[0], fix)?;
    let log = std::fs::read_to_string(tunnel.mobile.log_path())?;
    ensure!(
        log.contains("all traffic is encrypted; set the same `integrity`"),
        "{log}"
    );
    Ok(())
}

// Refuses: dynamic-levels
#[lab::test]
fn a_level_that_was_not_agreed_on_is_refused_with_the_fix() -> Result<()> {
    let pair = Pair::new("level")?;
    let tunnel = plain::start_with(&pair, &configs([VIDEO, ""]))?;
    tunnel.up()?;
    let fixes = [
        (
            &tunnel.mobile,
            "level office integrity",
            "compare `integrity` at both ends",
        ),
        (
            &tunnel.gateway,
            "level alice integrity",
            "in [peer.alice.level] at both ends",
        ),
        (
            &tunnel.gateway,
            "level bob zoned",
            "name a peer that `strata status` shows",
        ),
        (&tunnel.gateway, "level alice plain", "possible values"),
    ];
    for (daemon, words, fix) in fixes {
        daemon.refuses(words, fix)?;
    }
    // A stronger protection needs no agreement.
    tunnel.mobile.strata_text("level office opaque")?;
    ensure!(readable(&pair, PORT, 5)? == 0, "it is not encrypted");
    Ok(())
}

// Recovers: dynamic-levels
#[lab::test]
fn a_reload_takes_a_grant_back() -> Result<()> {
    let pair = Pair::new("level")?;
    let [mobile, gateway] = configs([VIDEO; 2]);
    let tunnel = plain::start_with(&pair, &[mobile, gateway.clone()])?;
    tunnel.up()?;
    ensure!(readable(&pair, PORT, 5)? == 5, "it is encrypted");
    let [_, without] = configs([""; 2]);
    let told = tunnel.gateway.change(&without)?;
    ensure!(told.contains("peer.alice.level.integrity"), "{told}");
    tunnel.up()?;
    tunnel.mobile.wait_until("zones", DEADLINE, |zones| {
        let composites = zones["zones"]["composites"].as_array();
        let newest = composites.and_then(|composites| composites.last());
        newest.is_some_and(|newest| newest["level"].is_null())
    })?;
    ensure!(readable(&pair, PORT, 5)? == 0, "it is not encrypted");
    Ok(())
}

// Refuses: dynamic-levels
#[lab::test]
fn a_class_that_is_not_bounded_is_told_with_the_fix() -> Result<()> {
    let pair = Pair::new("level")?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    for (level, words) in [
        (
            "integrity = { packets = 1, seconds = 1 }",
            "add `ports`, like \"5004-5005\"",
        ),
        ("integrity = { ports = \"1-2\", packets = 1 }", "seconds"),
        (
            "integrity = { dscp = \"af44\", packets = 1, seconds = 1 }",
            "af43",
        ),
        ("every = 5", "integrity"),
    ] {
        let [config, _] = configs([level, ""]);
        pair.mobile.file("strata.toml", &config)?;
        let Err(refusal) = strata(&pair.mobile, "check strata.toml") else {
            bail!("it was taken: {config}");
        };
        ensure!(format!("{refusal:?}").contains(words), "{refusal:?}");
    }
    Ok(())
}

/// Both ends lose three percent of incoming packets.
const BAD: &str = "table inet link {
chain in {
type filter hook input priority -300
udp dport 4500 numgen random mod 100 < 3 drop
}
}
";

// Works: link-levels
// Recovers: link-levels
#[lab::test]
fn on_a_good_link_nobody_reads_anything_and_on_a_bad_one_what_repairs_it() -> Result<()> {
    let pair = Pair::new("level")?;
    let licensed = pair.start_licensed(LICENSED)?;
    let level = r#"opaque_below = "1%""#;
    let tunnel = plain::start_with(&pair, &configs_with(Terms::LICENSED, [level; 2]))?;
    tunnel.up()?;
    licensed.wait_until("zones", DEADLINE, holds_a_grant)?;
    let judged = |good: bool| {
        until("both ends to judge the link", DEADLINE, || {
            transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 500_000)?;
            transfer(&pair.gateway, &pair.mobile, MOBILE[0], 500_000)?;
            let [mobile, gateway] = [&tunnel.mobile, &tunnel.gateway].map(composite);
            let both = [
                mobile?["link"]["good"].clone(),
                gateway?["link"]["good"].clone(),
            ];
            Ok((both == [Value::Bool(good), Value::Bool(good)]).then_some(()))
        })
    };
    let seen = || segments(&licensed);
    judged(true)?;
    let before = seen()?;
    ensure!(before > 0, "as long as nobody knew it read what there was");
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 500_000)?;
    ensure!(seen()? == before, "it reads on a good link");
    for host in [&pair.mobile, &pair.gateway] {
        host.file("bad.nft", BAD)?;
        host.run("nft -f bad.nft")?;
    }
    judged(false)?;
    let before = seen()?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 500_000)?;
    ensure!(seen()? > before, "it reads nothing on a bad link");
    for host in [&pair.mobile, &pair.gateway] {
        host.run("nft delete table inet link")?;
    }
    judged(true)?;
    let shown = tunnel.mobile.strata_text("zones")?;
    ensure!(
        shown.contains("of packets to us are lost: opaque"),
        "{shown}"
    );
    // The operator's choice has precedence.
    tunnel.gateway.strata_text("level alice zoned")?;
    let before = seen()?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 500_000)?;
    ensure!(seen()? > before, "the operator was not heard");
    Ok(())
}
