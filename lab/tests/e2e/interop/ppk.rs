//! strongSwan at the other end with a post-quantum pre-shared key (PPK, RFC 8784), as initiator and
//! as responder.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, THEIRS, expect_refusal};
use lab::pair::{is_down, is_up, peer};
use lab::process::until;
use lab::strongswan::{Charon, Connection, Ppk};
use serde_json::Value;

const OCTETS: u64 = 5_000_000;

/// Two different keys of 256 bits, in base64.
const KEY: &str = "k1l0dmVzdGVyIGlzIG5vdCBhIHF1YW50dW0ga2V5ISE=";
const ANOTHER_KEY: &str = "YW5vdGhlciBrZXkgdGhhdCBpcyBsb25nIGVub3VnaCE=";

/// strongSwan's PPK if both ends have the same.
const SAME: Ppk<'_> = Ppk {
    id: "office2026",
    secret: KEY,
    named: true,
    required: true,
};

/// A different PPK, which strongSwan does not require.
const OTHER: Ppk<'_> = Ppk {
    id: "office2027",
    secret: ANOTHER_KEY,
    named: true,
    required: false,
};

/// Starts both daemons, not connected yet. Strata has the PPK, required or optional.
fn start(required: bool, theirs: Option<Ppk<'_>>) -> Result<(Duo, Daemon, Charon)> {
    let duo = Duo::new("ppk")?;
    duo.ours.secret("theirs.ppk", KEY)?;
    let ppk = "ppk = { id = \"office2026\", key = \"theirs.ppk\", required =";
    let ours = format!("{OURS}{ppk} {required} }}\n");
    let theirs = Connection {
        ppk: theirs,
        ..THEIRS
    };
    let (strata, charon) = duo.start(&ours, &theirs)?;
    Ok((duo, strata, charon))
}

// Works: ppk
#[lab::test(repeated)]
fn a_ppk_that_both_require_is_in_the_keys_whoever_begins() -> Result<()> {
    is_in_the_keys_whoever_begins(true)
}

// Works: ppk
#[lab::test(repeated)]
fn a_ppk_that_nobody_requires_is_in_the_keys_whoever_begins() -> Result<()> {
    is_in_the_keys_whoever_begins(false)
}

/// Fails unless the PPK is in the keys of both roles, and in the keys after rekeys by either end.
fn is_in_the_keys_whoever_begins(required: bool) -> Result<()> {
    let theirs = Ppk { required, ..SAME };
    let (duo, mut strata, mut charon) = start(required, Some(theirs))?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_protected)?;
    duo.carry(OCTETS)?;
    charon.rekey()?;
    for keys in ["IKE SA rekeyed", "tunnel rekeyed"] {
        strata.process().wait_for_log(keys, DEADLINE)?;
    }
    charon.wait_until(DEADLINE, |sas| sas.matches("reqid=").count() == 1)?;
    duo.carry(OCTETS)?;
    charon.terminate()?;
    strata.wait_until("status", DEADLINE, is_down)?;
    strata.strata("up theirs --wait")?;
    strata.wait_until("status", DEADLINE, is_protected)?;
    charon.wait_until(DEADLINE, |sas| sas.contains("ppk=yes"))?;
    duo.carry(OCTETS)?;
    strata.strata("rekey theirs --ike")?;
    strata.strata("rekey theirs")?;
    // The first rekey was strongSwan's.
    until("new keys", DEADLINE, || {
        let log = strata.process().log();
        let twice = |what: &str| log.matches(what).count() >= 2;
        let both = twice("IKE SA rekeyed") && twice("tunnel rekeyed");
        Ok(both.then_some(()))
    })?;
    duo.carry(OCTETS)?;
    let log = charon.process().log();
    ensure!(
        log.matches("using PPK for PPK_ID 'office2026'").count() == 2,
        "{log}"
    );
    Ok(())
}

/// strongSwan announces no support of PPKs.
#[lab::test(repeated)]
fn a_strongswan_without_ppks_gets_a_tunnel_where_ours_is_optional() -> Result<()> {
    let (duo, mut strata, charon) = start(false, None)?;
    charon.initiate()?;
    goes_without(&duo, &mut strata, 1)?;
    charon.terminate()?;
    strata.wait_until("status", DEADLINE, is_down)?;
    strata.strata("up theirs --wait")?;
    goes_without(&duo, &mut strata, 2)
}

/// strongSwan's first answer announces support of PPKs, its second one does not confirm ours.
#[lab::test(repeated)]
fn an_optional_ppk_that_strongswan_does_not_have_is_told() -> Result<()> {
    let named = false;
    let (duo, mut strata, mut charon) = start(false, Some(Ppk { named, ..OTHER }))?;
    strata.strata("up theirs --wait")?;
    goes_without(&duo, &mut strata, 1)?;
    let log = charon.process().log();
    ensure!(log.contains("using NO_PPK_AUTH notify"), "{log}");
    Ok(())
}

#[lab::test(repeated)]
fn an_optional_ppk_of_strongswan_that_we_do_not_have_is_told() -> Result<()> {
    let (duo, mut strata, mut charon) = start(false, Some(OTHER))?;
    charon.initiate()?;
    goes_without(&duo, &mut strata, 1)?;
    let log = charon.process().log();
    ensure!(
        log.contains("peer didn't use PPK for PPK_ID 'office2027'"),
        "{log}"
    );
    Ok(())
}

// Refuses: ppk
#[lab::test(repeated)]
fn strongswan_with_another_key_of_that_name_is_refused() -> Result<()> {
    let secret = ANOTHER_KEY;
    let (_duo, strata, charon) = start(true, Some(Ppk { secret, ..SAME }))?;
    ensure!(charon.initiate().is_err(), "it was not refused");
    expect_refusal(&strata, &["proof does not verify"])
}

// Refuses: ppk
#[lab::test(repeated)]
fn strongswans_refusal_of_another_key_is_told() -> Result<()> {
    let secret = ANOTHER_KEY;
    let (_duo, strata, _charon) = start(true, Some(Ppk { secret, ..SAME }))?;
    strata.strata("up theirs")?;
    expect_refusal(&strata, &["the PPK `office2026`"])
}

#[lab::test(repeated)]
fn a_strongswan_that_comes_without_is_refused_where_one_is_required() -> Result<()> {
    let (_duo, strata, charon) = start(true, None)?;
    ensure!(charon.initiate().is_err(), "it was not refused");
    expect_refusal(&strata, &["the peer uses no PPK"])
}

/// Fails unless the tunnel is up without the PPK and the log has warned `times` times.
fn goes_without(duo: &Duo, strata: &mut Daemon, times: usize) -> Result<()> {
    let status = strata.wait_until("status", DEADLINE, is_up)?;
    ensure!(peer(&status)["ppk"] == false, "{status}");
    until("the warning", DEADLINE, || {
        let log = strata.process().log();
        let told = log.matches("not protected against quantum computers");
        Ok((told.count() >= times).then_some(()))
    })?;
    duo.carry(OCTETS)
}

fn is_protected(status: &Value) -> bool {
    is_up(status) && peer(status)["ppk"] == true
}
