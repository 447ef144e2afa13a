//! `strata ping`: each place at which a ping can be lost, made by a rule of nftables. Its counters
//! are the witness.

use anyhow::{Context, Result, ensure};
use lab::host::Host;
use lab::pair::{DEADLINE, Pair};
use lab::plain;
use lab::process::until;
use serde_json::Value;

/// Drops ESP at a hook of a host, while IKE passes: a message has the non-ESP marker, four octets
/// of zero, in front.
fn block(host: &Host, hook: &str) -> Result<()> {
    let rules = format!(
        "table inet lossy {{\n\
         chain drops {{\n\
         type filter hook {hook} priority 0; policy accept;\n\
         udp dport 4500 @th,64,32 != 0 counter drop\n\
         }}\n}}\n"
    );
    let file = host.file("lossy.nft", &rules)?;
    host.run(&format!("nft -f {}", file.display())).map(drop)
}

/// Returns the packets that the rule has dropped, and removes it.
fn unblock(host: &Host) -> Result<u64> {
    let listed = host.run("nft -j list table inet lossy")?;
    host.run("nft delete table inet lossy")?;
    let listed: Value = serde_json::from_str(&listed)?;
    let parts = listed["nftables"].as_array().context("no rules")?;
    let rules = parts
        .iter()
        .filter_map(|part| part["rule"]["expr"].as_array());
    let counters = rules
        .flatten()
        .filter_map(|expr| expr["counter"]["packets"].as_u64());
    Ok(counters.sum())
}

// Works: ping
#[lab::test]
fn counters_of_both_ends_tell_at_which_of_four_places_a_ping_is_lost() -> Result<()> {
    let pair = Pair::new("ping")?;
    let tunnel = plain::start(&pair, "", "")?;
    tunnel.up()?;
    let mobile = &tunnel.mobile;
    let all = "2 pings, 2 answers, round trip min ";
    for (host, hook, place, words) in [
        (
            &pair.mobile,
            "output",
            "not_sent",
            "not sent: this host's system does not accept",
        ),
        (
            &pair.gateway,
            "input",
            "not_received",
            "2 sent here, and not received by the peer",
        ),
        (
            &pair.gateway,
            "output",
            "not_answered",
            "2 received by the peer, and not answered: its system does not accept",
        ),
        (
            &pair.mobile,
            "input",
            "answer_lost",
            "2 answered by the peer, and the answer was not received here",
        ),
    ] {
        // The control: without the rule, the same command succeeds.
        let told = mobile.strata_text("ping office --count 2")?;
        ensure!(told.contains(all), "{told}");
        block(host, hook)?;
        mobile.refuses("ping office --count 2", words)?;
        // The system may be asked to send a packet twice: in a run of packets, and alone.
        let dropped = unblock(host)?;
        ensure!((2..=4).contains(&dropped), "{place}: {dropped}");
        block(host, hook)?;
        let answer = mobile.ask("ping", serde_json::json!({"peer": "office", "count": 1}))?;
        let answer: Value = serde_json::from_str(&answer)?;
        let lost = answer["ping"]["lost"].as_array().context("no losses")?;
        ensure!(lost.len() == 1 && lost[0]["place"] == place, "{answer}");
        unblock(host)?;
    }
    let told = mobile.strata("ping office -c 1")?;
    let times = &told["ping"]["round_trip"];
    ensure!(times["min_micros"] == times["max_micros"], "{told}");
    ensure!(told["ping"]["received"].is_null(), "it was asked: {told}");
    // The gateway pings as well, through its own SA.
    let told = tunnel.gateway.strata_text("ping alice -c 1")?;
    ensure!(told.contains("1 ping, 1 answer"), "{told}");
    Ok(())
}

// Refuses: ping
#[lab::test]
fn a_peer_that_hides_lengths_does_not_answer_and_one_that_is_down_is_not_pinged() -> Result<()> {
    let pair = Pair::new("ping")?;
    let tunnel = plain::start(&pair, "", "tfc = \"mtu\"")?;
    let mobile = &tunnel.mobile;
    mobile.refuses("ping office", "strata up office")?;
    mobile.refuses("ping home", "`strata status`")?;
    tunnel.up()?;
    mobile.refuses("ping office -c 1", "not answered: it hides lengths (`tfc`)")?;
    let gateway = &tunnel.gateway;
    gateway.refuses("ping alice -c 1", "remove `tfc` from [peer.alice]")?;
    Ok(())
}

/// Nothing passes at all: the verdict names IKE. The path comes back, and so do the pings.
// Recovers: ping
#[lab::test]
fn over_a_path_that_is_cut_ike_is_named_and_pings_return_when_it_is_back() -> Result<()> {
    let pair = Pair::new("ping")?;
    let tunnel = plain::start(&pair, "", "")?;
    tunnel.up()?;
    let mobile = &tunnel.mobile;
    let chain = "table inet cut {\n\
                 chain drops {\n\
                 type filter hook forward priority 0; policy drop;\n\
                 }\n}\n";
    let rules = pair.between.file("cut.nft", chain)?;
    pair.between.run(&format!("nft -f {}", rules.display()))?;
    mobile.refuses("ping office -c 1", "IKE is not answered either")?;
    pair.between.run("nft delete table inet cut")?;
    until("a ping to return", DEADLINE, || {
        Ok(mobile.strata_text("ping office -c 1").ok())
    })
    .map(drop)
}
