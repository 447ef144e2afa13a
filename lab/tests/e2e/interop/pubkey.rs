//! strongSwan at the other end with raw public keys (RFC 7670), as initiator and as responder. It
//! neither sends its key nor uses ours from the message: each end has the other's key in its
//! configuration.

use anyhow::{Result, ensure};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, THEIRS, expect_refusal};
use lab::openssl::RSA;
use lab::pair::{is_down, is_up};
use lab::strongswan::{Charon, Connection};

const OCTETS: u64 = 5_000_000;

/// openssl's names for key types.
const P256: &str = "ec -pkeyopt ec_paramgen_curve:P-256";
const P384: &str = "ec -pkeyopt ec_paramgen_curve:P-384";
const ED25519: &str = "ed25519";

/// Returns our configuration with the keys in its folder.
fn with_keys() -> String {
    OURS.replace("psk = \"theirs.psk\"", "pubkey = \"theirs.pub\"")
        .replace("[tunnel]", "key = \"ours.key\"\n[tunnel]")
}

/// Creates a key with openssl in our folder: `NAME.key`, and `NAME.pub` as printed by
/// `strata pki pubkey`.
fn make(duo: &Duo, name: &str, kind: &str) -> Result<()> {
    let ours = &duo.ours;
    ours.run(&format!(
        "openssl genpkey -algorithm {kind} -out {name}.key"
    ))?;
    ours.run(&format!("chmod 600 {name}.key"))?;
    let public = strata(ours, &format!("pki pubkey {name}.key"))?;
    ours.file(&format!("{name}.pub"), &public).map(drop)
}

/// Copies a file of ours to charon.
fn give(duo: &Duo, file: &str, place: &str) -> Result<()> {
    let place = duo.theirs.directory().join(place);
    std::fs::create_dir_all(place.parent().unwrap_or(&place))?;
    std::fs::copy(duo.ours.directory().join(file), place)?;
    Ok(())
}

/// Starts both daemons, not connected yet. The names are those of charon's private key, and of the
/// public key that it has for us. Our key for charon is `theirs.pub`.
fn start(duo: &Duo, private: &str, public: &str) -> Result<(Daemon, Charon)> {
    start_as(duo, private, public, &THEIRS)
}

fn start_as(
    duo: &Duo,
    private: &str,
    public: &str,
    connection: &Connection<'_>,
) -> Result<(Daemon, Charon)> {
    give(duo, &format!("{private}.key"), "private/own.key")?;
    give(duo, &format!("{private}.pub"), "pubkey/own.pub")?;
    give(duo, &format!("{public}.pub"), "pubkey/peer.pub")?;
    let theirs = Connection {
        psk: None,
        raw_keys: true,
        ..*connection
    };
    duo.start(&with_keys(), &theirs)
}

// Works: raw-public-keys
#[lab::test(repeated)]
fn ed25519_keys_prove_both_ends_whoever_begins() -> Result<()> {
    prove_both_ends(ED25519, &THEIRS)
}

// Works: raw-public-keys
#[lab::test(repeated)]
fn ecdsa_keys_prove_both_ends_whoever_begins() -> Result<()> {
    prove_both_ends(P256, &THEIRS)
}

/// As Windows and Apple's systems do, charon announces no hash algorithms and signs with methods 9
/// and 10 (RFC 4754).
#[lab::test(repeated)]
fn ecdsa_keys_prove_both_ends_to_a_peer_from_before_rfc_7427() -> Result<()> {
    let theirs = Connection {
        signature_authentication: false,
        ..THEIRS
    };
    prove_both_ends(P256, &theirs)?;
    prove_both_ends(P384, &theirs)
}

// Works: raw-public-keys
#[lab::test(repeated)]
fn rsa_keys_prove_both_ends_whoever_begins() -> Result<()> {
    prove_both_ends(RSA, &THEIRS)
}

fn prove_both_ends(kind: &str, theirs: &Connection<'_>) -> Result<()> {
    let duo = Duo::new("pubkey")?;
    make(&duo, "ours", kind)?;
    make(&duo, "theirs", kind)?;
    let (strata, mut charon) = start_as(&duo, "theirs", "ours", theirs)?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    duo.carry(OCTETS)?;
    charon.terminate()?;
    strata.wait_until("status", DEADLINE, is_down)?;
    strata.strata("up theirs --wait")?;
    duo.carry(OCTETS)?;
    let log = charon.process().log();
    ensure!(!log.contains("sending end entity cert"), "{log}");
    Ok(())
}

// Refuses: raw-public-keys
#[lab::test(repeated)]
fn strongswan_with_another_key_is_refused_with_a_reason() -> Result<()> {
    let duo = Duo::new("pubkey")?;
    for name in ["ours", "theirs", "another"] {
        make(&duo, name, ED25519)?;
    }
    let (strata, charon) = start(&duo, "another", "ours")?;
    ensure!(charon.initiate().is_err(), "it was not refused");
    expect_refusal(&strata, &["with its configured public key"])
}

// Refuses: raw-public-keys
#[lab::test(repeated)]
fn strongswans_refusal_of_another_key_is_told() -> Result<()> {
    let duo = Duo::new("pubkey")?;
    for name in ["ours", "theirs", "another"] {
        make(&duo, name, ED25519)?;
    }
    let (strata, _charon) = start(&duo, "theirs", "another")?;
    strata.strata("up theirs")?;
    expect_refusal(&strata, &["refused our public key"])
}
