//! libreswan at the other end, in both roles. It uses the ESP of a Linux kernel.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, PSK, expect_refusal};
use lab::guest::Guest;
use lab::libreswan::Pluto;
use lab::pair::{is_down, is_up};
use lab::process::until;
use lab::wiretap::{Wiretap, exchanges};
use serde_json::Value;
use wire::ike::ExchangeType;

const OCTETS: u64 = 5_000_000;

#[lab::test(repeated)]
fn libreswan_connects_and_octets_pass_each_way() -> Result<()> {
    let (duo, strata, pluto) = start(PSK)?;
    pluto.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    duo.carry_by_kernel(pluto.guest(), OCTETS)?;
    pluto.terminate()?;
    strata.wait_until("status", DEADLINE, is_down).map(drop)
}

#[lab::test(repeated)]
fn strata_connects_and_libreswan_makes_new_keys() -> Result<()> {
    let (duo, mut strata, pluto) = start(PSK)?;
    strata.strata("up theirs --wait")?;
    duo.carry_by_kernel(pluto.guest(), OCTETS)?;
    pluto.rekey()?;
    wait_for_new_keys(&mut strata, 1)?;
    duo.carry_by_kernel(pluto.guest(), OCTETS)?;
    for words in ["rekey theirs", "rekey theirs --ike"] {
        strata.strata(words)?;
    }
    wait_for_new_keys(&mut strata, 2)?;
    duo.carry_by_kernel(pluto.guest(), OCTETS)
}

#[lab::test(repeated)]
fn libreswans_refusal_of_a_wrong_key_is_told() -> Result<()> {
    let (_duo, strata, _pluto) = start("another key of many octets")?;
    strata.strata("up theirs")?;
    expect_refusal(&strata, &["AUTHENTICATION_FAILED"])
}

/// libreswan presents our ticket without NAT detection, and we refuse that at once.
// Refuses: resume
#[lab::test(repeated)]
fn libreswan_presents_our_ticket_and_sets_the_tunnel_up_in_full() -> Result<()> {
    let (duo, strata, pluto) = start_resuming()?;
    pluto.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    pluto.suspend()?;
    let tap = Wiretap::open(&duo.ours)?;
    pluto.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    has_fallen_back(&tap)?;
    duo.carry_by_kernel(pluto.guest(), OCTETS)
}

/// A ticket of libreswan has all of the session in it. Its answer has no NAT detection either.
// Refuses: resume
#[lab::test(repeated)]
fn strata_presents_libreswans_ticket_and_sets_the_tunnel_up_in_full() -> Result<()> {
    let (duo, strata, pluto) = start_resuming()?;
    strata.strata("up theirs --wait")?;
    duo.carry_by_kernel(pluto.guest(), OCTETS)?;
    let tap = Wiretap::open(&duo.ours)?;
    let cut = duo.ours.file("cut.nft", CUT)?;
    duo.ours.run(&format!("nft -f {}", cut.display()))?;
    let is_lost = |status: &Value| !is_up(status);
    strata.wait_until("status", DEADLINE, is_lost)?;
    tap.rest()?;
    duo.ours.run("nft delete table inet cut")?;
    strata.strata("up theirs --wait")?;
    has_fallen_back(&tap)?;
    duo.carry_by_kernel(pluto.guest(), OCTETS)
}

/// Nothing comes in.
const CUT: &str = "table inet cut {
    chain input { type filter hook input priority 0; udp sport { 500, 4500 } drop; }
}
";

/// Starts both daemons, which resume sessions by tickets.
fn start_resuming() -> Result<(Duo, Daemon, Pluto)> {
    let ours = format!("{OURS}resume = \"ticket\"\nliveness = \"1s\"\n");
    start_with(&ours, PSK, "session-resumption=yes")
}

/// Checks that a ticket was presented and answered, and that a full exchange followed.
fn has_fallen_back(tap: &Wiretap) -> Result<()> {
    let seen = exchanges(&tap.rest()?);
    let resume = |exchange: &&ExchangeType| **exchange == ExchangeType::IKE_SESSION_RESUME;
    ensure!(
        seen.iter().filter(resume).count() >= 2 && seen.contains(&ExchangeType::IKE_SA_INIT),
        "{seen:?}"
    );
    Ok(())
}

/// Starts both daemons; they are not connected yet.
fn start(psk: &str) -> Result<(Duo, Daemon, Pluto)> {
    start_with(OURS, psk, "")
}

/// Does the same with our configuration, and one more option of their connection.
fn start_with(ours: &str, psk: &str, option: &str) -> Result<(Duo, Daemon, Pluto)> {
    let guest = Guest::boot()?;
    let duo = Duo::with("libreswan", None, Some(&guest))?;
    duo.ours.secret("theirs.psk", PSK)?;
    let strata = duo.ours.stratad(ours)?;
    let pluto = Pluto::start(guest, &duo.theirs, psk, option)?;
    println!("{} on Linux {}", pluto.version()?, pluto.guest().version()?);
    Ok((duo, strata, pluto))
}

fn wait_for_new_keys(strata: &mut Daemon, times: usize) -> Result<()> {
    for keys in ["IKE SA rekeyed", "tunnel rekeyed"] {
        until(keys, DEADLINE, || {
            let log = strata.process().log();
            Ok((log.matches(keys).count() >= times).then_some(()))
        })?;
    }
    Ok(())
}
