//! The daemon restores the parts of a tunnel that other programs remove, at most three times a
//! minute. Beyond that it warns until a reload. A tap on the host between the endpoints looks for
//! leaks.

use anyhow::{Result, ensure};
use lab::bait::{self, leak, no_leak, round};
use lab::daemon::Daemon;
use lab::lending::{ALICE, POOL};
use lab::pair::{self, DEADLINE, GATEWAY, Pair, Terms};
use lab::process::until;
use lab::transfer::transfer;
use lab::wiretap::Wiretap;
use nix::sys::signal::Signal;
use os::Family;
use serde_json::Value;

/// The removal that a network manager does at its restart.
const RULES: &str = "ip rule del priority 7296";
const RULES_V6: &str = "ip -6 rule del priority 7296";

const ROUTES: &str = "ip route flush table 7296";
const ROUTES_V6: &str = "ip -6 route flush table 7296";

/// The removal that a firewall does when it loads its rules.
const FILTERS: &str = "nft flush ruleset";

// Works: restore
// Weakness: 120
#[lab::test]
fn a_flushed_table_is_filled_again() -> Result<()> {
    carries_again_after(&[ROUTES, ROUTES_V6])
}

// Works: restore
// Weakness: 120
#[lab::test]
fn a_deleted_rule_is_added_again() -> Result<()> {
    carries_again_after(&[RULES, RULES_V6])
}

// Works: restore
// Weakness: 120
#[lab::test]
fn a_device_that_was_taken_down_is_brought_up_with_its_addresses_and_routes() -> Result<()> {
    carries_again_after(&["ip link set strata0 down"])
}

// Works: restore
// Weakness: 120
#[lab::test]
fn flushed_addresses_are_given_again() -> Result<()> {
    carries_again_after(&["ip addr flush dev strata0"])
}

/// Control: the same removal stays visible while the daemon is stopped.
// Recovers: restore
#[lab::test]
fn while_the_daemon_stands_still_nothing_is_put_back() -> Result<()> {
    let pair = Pair::new("restore")?;
    let tap = Wiretap::open(&pair.between)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    let before = traces(&pair)?;
    tunnel.mobile.process().signal(Signal::SIGSTOP)?;
    pair.mobile.run(ROUTES)?;
    pair.mobile.run(ROUTES_V6)?;
    leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    ensure!(traces(&pair)? != before, "somebody put it back");
    tunnel.mobile.process().signal(Signal::SIGCONT)?;
    await_traces(&pair, &before)?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)
}

// Refuses: restore
// Weakness: 120
#[lab::test]
fn the_fourth_time_within_a_minute_is_warned_of_until_a_reload() -> Result<()> {
    let pair = Pair::new("restore")?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    let (mobile, before) = (&tunnel.mobile, traces(&pair)?);
    for _ in 0..3 {
        pair.mobile.run(RULES)?;
        await_traces(&pair, &before)?;
        ensure!(removed(&mobile.strata("status")?).is_empty());
    }
    healthy(&pair, mobile)?;
    pair.mobile.run(RULES)?;
    let gave_up = |status: &Value| removed(status).contains("rule 7296: not fwmark 0x7296");
    mobile.wait_until("status", DEADLINE, gave_up)?;
    // The warning stays after other removals, and nothing is restored any more.
    pair.mobile.run(RULES_V6)?;
    let status = mobile.strata("status")?;
    ensure!(pair::has_error(&status, "removed"), "{status}");
    let text = mobile.strata_text("status")?;
    for words in [
        "error: another program removed routes or rules of stratad 4 times within 60 s",
        "`strata reload`",
    ] {
        ensure!(text.contains(words), "{words:?} is not in: {text}");
    }
    ensure!(traces(&pair)? != before, "it was put back");
    ensure!(healthy(&pair, mobile).is_err(), "the doctor saw nothing");
    mobile.strata_text("reload")?;
    ensure!(traces(&pair)? == before, "it was not put back");
    let status = mobile.strata("status")?;
    ensure!(removed(&status).is_empty() && !pair::has_error(&status, "removed"));
    healthy(&pair, mobile)?;
    pair.mobile.run(RULES)?;
    await_traces(&pair, &before)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)
}

/// The lock holds while routes are missing, and routes hold while the lock is missing.
// Works: restore
// Weakness: 120
#[lab::test]
fn nothing_leaks_while_a_part_of_what_is_locked_is_missing() -> Result<()> {
    let pair = Pair::new("restore")?;
    let tap = Wiretap::open(&pair.between)?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    let mobile = start_locked(&pair)?;
    let (before, lock) = (traces(&pair)?, lock(&pair)?);
    for culprit in [ROUTES, ROUTES_V6, FILTERS] {
        bait::lay_while(&pair.mobile, &GATEWAY, || {
            pair.mobile.run(culprit)?;
            await_traces(&pair, &before)?;
            until("the lock", DEADLINE, || {
                let now = self::lock(&pair).ok();
                Ok((now.as_ref() == Some(&lock)).then_some(()))
            })
        })?;
        mobile.strata_text("reload")?;
    }
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)
}

/// The kernel also notifies the daemon of its own removals.
// Refuses: restore
#[lab::test]
fn what_the_daemon_removes_itself_is_not_put_back_and_counts_for_nothing() -> Result<()> {
    let pair = Pair::new("restore")?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "manual");
    let wider = config.replace("remote = [", "remote = [\"10.9.0.0/16\", ");
    let mut mobile = start_locked(&pair)?;
    let (narrow, locked) = (traces(&pair)?, "leak = \"never\"\n");
    for _ in 0..5 {
        mobile.change(&format!("{wider}{locked}"))?;
        ensure!(traces(&pair)? != narrow);
        mobile.change(&format!("{config}{locked}"))?;
        ensure!(traces(&pair)? == narrow);
    }
    mobile.strata_text("up office --wait")?;
    mobile.strata_text("down office")?;
    mobile.wait_until("status", DEADLINE, pair::is_down)?;
    ensure!(removed(&mobile.strata("status")?).is_empty());
    mobile.change(&config)?;
    mobile.stop()?;
    let log = mobile.process().log();
    ensure!(!log.contains("another program"), "{log}");
    Ok(())
}

/// The kernel removes a device's IPv4 routes together with its last IPv4 address.
#[lab::test]
fn an_address_that_is_given_back_is_no_removal_by_another_program() -> Result<()> {
    let pair = Pair::new("restore")?;
    let _gateway = pair.start_lender(POOL)?;
    let mut mobile = pair.start_borrower(&pair.mobile, &ALICE)?;
    for _ in 0..5 {
        mobile.strata_text("up office --wait")?;
        mobile.strata_text("down office")?;
        mobile.wait_until("status", DEADLINE, pair::is_down)?;
    }
    // The daemon's report of this removal lists everything that it considers missing.
    let before = traces(&pair)?;
    pair.mobile.run(RULES)?;
    await_traces(&pair, &before)?;
    let log = mobile.process().log();
    let told = log.lines().filter(|line| line.contains("another program"));
    let told: Vec<_> = told.collect();
    ensure!(told.len() == 1 && !told[0].contains("route "), "{told:#?}");
    Ok(())
}

/// A licensed node diverts packets by rules of its own.
// Works: restore
// Weakness: 120
#[lab::test]
fn rules_of_a_licensed_node_are_added_again() -> Result<()> {
    let pair = Pair::new("restore")?;
    let _node = pair.start_licensed(pair::LICENSED)?;
    let rules = || pair.between.run("ip rule show priority 7290");
    let before = rules()?;
    for _ in before.lines() {
        pair.between.run("ip rule del priority 7290")?;
    }
    until("the rules", DEADLINE, || {
        Ok((rules()? == before).then_some(()))
    })
}

/// The tunnel works, another program removes something, and the tunnel works again.
fn carries_again_after(culprit: &[&str]) -> Result<()> {
    let pair = Pair::new("restore")?;
    let tap = Wiretap::open(&pair.between)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)?;
    let before = traces(&pair)?;
    for command in culprit {
        pair.mobile.run(command)?;
    }
    await_traces(&pair, &before)?;
    for address in GATEWAY {
        transfer(&pair.mobile, &pair.gateway, address, 10_000)?;
    }
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    ensure!(removed(&tunnel.mobile.strata("status")?).is_empty());
    let told = "restoring what another program removed";
    tunnel.mobile.process().wait_for_log(told, DEADLINE)
}

/// Lists routes and rules; addresses appear through their routes.
fn traces(pair: &Pair) -> Result<Vec<String>> {
    let mut traces = pair::traces(&pair.mobile)?;
    traces.retain(|trace| trace.contains("rule: ") || trace.contains("table all: "));
    Ok(traces)
}

fn await_traces(pair: &Pair, wanted: &[String]) -> Result<()> {
    until("routes and rules as before", DEADLINE, || {
        Ok((traces(pair)? == wanted).then_some(()))
    })
}

fn start_locked(pair: &Pair) -> Result<Daemon> {
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "auto");
    let mobile = pair
        .mobile
        .stratad(&format!("{config}leak = \"never\"\n"))?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    Ok(mobile)
}

/// Returns the lock without its counters.
fn lock(pair: &Pair) -> Result<String> {
    pair.mobile.run("nft --stateless list table inet strata")
}

/// Returns the parts that the daemon no longer restores.
fn removed(status: &Value) -> String {
    let removed = status["status"]["removed"].as_array();
    let removed = removed.into_iter().flatten().filter_map(Value::as_str);
    removed.collect::<Vec<_>>().join(", ")
}

/// Fails if the doctor finds a part missing.
fn healthy(pair: &Pair, mobile: &Daemon) -> Result<()> {
    let file = pair.mobile.directory().join("strata.toml");
    let report = mobile.strata_text(&format!("doctor {}", file.display()));
    let report = report.unwrap_or_else(|error| format!("{error:#}"));
    ensure!(report.contains("installed"), "{report}");
    ensure!(!report.contains("keeps removing"), "{report}");
    Ok(())
}
