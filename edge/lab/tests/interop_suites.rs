//! strongSwan at the other end with what is not our default: in both roles, with new keys on the way.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{Duo, OURS, THEIRS};
use lab::runner;
use lab::strongswan::{Charon, Connection};
use lab::transfer::transfer;
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    runner::run(lab::tests![
        aes_128_cbc_with_sha_256_carries_both_sas,
        aes_256_cbc_with_sha_384_carries_both_sas,
        aes_256_cbc_with_sha_512_carries_both_sas,
        strongswan_with_its_default_proposals_finds_our_one_hmac,
    ])
}

const MB: u64 = 1_000_000;

/// The machine may be stopped for seconds at any time.
const DEADLINE: Duration = Duration::from_secs(60);

fn aes_128_cbc_with_sha_256_carries_both_sas() -> Result<()> {
    cbc_carries_both_sas("aes128-sha256", "integ-alg=HMAC_SHA2_256_128")
}

fn aes_256_cbc_with_sha_384_carries_both_sas() -> Result<()> {
    cbc_carries_both_sas("aes256-sha384", "integ-alg=HMAC_SHA2_384_192")
}

fn aes_256_cbc_with_sha_512_carries_both_sas() -> Result<()> {
    cbc_carries_both_sas("aes256-sha512", "integ-alg=HMAC_SHA2_512_256")
}

/// `words` says in strongSwan's account that it has the suite too.
fn cbc_carries_both_sas(suite: &str, words: &str) -> Result<()> {
    let ike = format!("{suite}-prfsha256-x25519");
    let theirs = Connection {
        ike: &ike,
        esp: suite,
        ..THEIRS
    };
    let (duo, mut strata, charon) = start(&format!("suite = \"{suite}\""), &theirs)?;
    both_roles(&duo, &mut strata, &charon, |sas| {
        sas.matches(words).count() == 2
    })
}

/// One proposal with every HMAC it knows, next to many others.
fn strongswan_with_its_default_proposals_finds_our_one_hmac() -> Result<()> {
    let (ike, esp) = ("default", "default");
    let theirs = Connection { ike, esp, ..THEIRS };
    let (duo, strata, charon) = start("suite = \"aes256-sha256\"", &theirs)?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    let words = "integ-alg=HMAC_SHA2_256_128";
    charon.wait_until(DEADLINE, |sas| sas.matches(words).count() == 2)?;
    transfer(&duo.theirs, &duo.ours, "10.1.0.1", MB)
}

/// Both daemons, not yet connected; ours with one more line about the peer.
fn start(line: &str, theirs: &Connection<'_>) -> Result<(Duo, Daemon, Charon)> {
    let duo = Duo::new("suites")?;
    let (strata, charon) = duo.start(&format!("{OURS}{line}\n"), theirs)?;
    Ok((duo, strata, charon))
}

/// strongSwan begins and then we do; each time 20 MB pass each way, and in between both ends make
/// new keys of both kinds.
fn both_roles(
    duo: &Duo,
    strata: &mut Daemon,
    charon: &Charon,
    agreed: impl Fn(&str) -> bool,
) -> Result<()> {
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    carry_20_mb_each_way(duo)?;
    charon.rekey()?;
    for keys in ["IKE SA has new keys", "tunnel has new keys"] {
        strata.process().wait_for_log(keys, DEADLINE)?;
    }
    charon.wait_until(DEADLINE, |sas| one_child(sas) && agreed(sas))?;
    carry_20_mb_each_way(duo)?;
    charon.terminate()?;
    strata.wait_until("status", DEADLINE, is_down)?;
    strata.strata("up theirs --wait")?;
    carry_20_mb_each_way(duo)?;
    strata.strata("rekey theirs")?;
    // The first was strongSwan's.
    let twice = |log: &str| log.matches("tunnel has new keys").count() >= 2;
    lab::process::until("new keys", DEADLINE, || {
        Ok(twice(&strata.process().log()).then_some(()))
    })?;
    carry_20_mb_each_way(duo)?;
    charon.wait_until(DEADLINE, agreed)?;
    ensure!(
        peer(&strata.strata("status")?)["children"][0]["kind"] == "plain",
        "not a plain tunnel"
    );
    Ok(())
}

fn carry_20_mb_each_way(duo: &Duo) -> Result<()> {
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", 20 * MB)?;
    transfer(&duo.theirs, &duo.ours, "10.1.0.1", 20 * MB)
}

/// What was replaced is gone.
fn one_child(sas: &str) -> bool {
    sas.matches("reqid=").count() == 1
}

fn peer(status: &Value) -> &Value {
    &status["status"]["peers"][0]
}

fn is_up(status: &Value) -> bool {
    peer(status)["state"] == "up" && peer(status)["children"][0].is_object()
}

fn is_down(status: &Value) -> bool {
    peer(status)["state"] == "down"
}
