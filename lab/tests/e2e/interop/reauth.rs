//! strongSwan re-authenticates, or asks Strata to, while octets flow.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{Duo, OURS, THEIRS};
use lab::process::DEADLINE;
use lab::strongswan::Connection;
use lab::transfer::transfer;
use serde_json::Value;

const MB: u64 = 1_000_000;

/// Our log message after a re-authentication.
const ANEW: &str = ": re-authenticated";

/// Transfers octets in both directions until `times` re-authentications are logged, and fails
/// unless one tunnel is left.
fn carry_until(duo: &Duo, strata: &mut Daemon, times: usize) -> Result<()> {
    let mut rounds = 0;
    while strata.process().log().matches(ANEW).count() < times {
        transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)?;
        transfer(&duo.theirs, &duo.ours, "10.1.0.1", MB)?;
        rounds += 1;
        ensure!(rounds < 2000, "{}", strata.process().log());
    }
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)?;
    transfer(&duo.theirs, &duo.ours, "10.1.0.1", MB)
}

fn children(status: &Value) -> usize {
    let children = status["status"]["peers"][0]["children"].as_array();
    children.map_or(0, Vec::len)
}

// Works: reauth
#[lab::test(repeated)]
fn strata_authenticates_anew_while_octets_flow() -> Result<()> {
    let duo = Duo::new("reauth")?;
    let (mut strata, charon) = duo.start(OURS, &THEIRS)?;
    strata.strata("up theirs --wait")?;
    for times in 1..=2 {
        strata.wait_until("status", DEADLINE, |status| children(status) == 1)?;
        strata.strata("reauth theirs")?;
        carry_until(&duo, &mut strata, times)?;
    }
    strata.wait_until("status", DEADLINE, |status| children(status) == 1)?;
    let one = |sas: &str| sas.matches("state=ESTABLISHED").count() == 1;
    charon.wait_until(DEADLINE, one).map(drop)
}

/// strongSwan uses `make_before_break`, which is off by default.
// Works: reauth
#[lab::test(repeated)]
fn strongswan_authenticates_anew_while_octets_flow() -> Result<()> {
    let duo = Duo::new("reauth")?;
    let reauth = "3s";
    let (mut strata, charon) = duo.start(OURS, &Connection { reauth, ..THEIRS })?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, |status| children(status) == 1)?;
    carry_until(&duo, &mut strata, 2)
}

/// RFC 4478.
// Works: reauth
#[lab::test(repeated)]
fn strata_obeys_the_limit_that_strongswan_announces() -> Result<()> {
    let duo = Duo::new("reauth")?;
    let reauth = "12s";
    let (mut strata, _charon) = duo.start(OURS, &Connection { reauth, ..THEIRS })?;
    strata.strata("up theirs --wait")?;
    carry_until(&duo, &mut strata, 1)
}
