//! libreswan at the other end, in both roles. It uses the ESP of a Linux kernel.

use anyhow::Result;
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, PSK, expect_refusal};
use lab::guest::Guest;
use lab::libreswan::Pluto;
use lab::pair::{is_down, is_up};
use lab::process::until;

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

/// Starts both daemons; they are not connected yet.
fn start(psk: &str) -> Result<(Duo, Daemon, Pluto)> {
    let guest = Guest::boot()?;
    let duo = Duo::with("libreswan", None, Some(&guest))?;
    duo.ours.secret("theirs.psk", PSK)?;
    let strata = duo.ours.stratad(OURS)?;
    let pluto = Pluto::start(guest, &duo.theirs, psk)?;
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
