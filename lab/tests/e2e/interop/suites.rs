//! strongSwan at the other end with suites other than the default: in both roles, with rekeys in
//! between.

use anyhow::{Result, bail, ensure};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, THEIRS, certified};
use lab::openssl::{self, GOOD, Order, RSA};
use lab::pair::{children, is_down, is_up, peer};
use lab::plain;
use lab::process::until;
use lab::strongswan::{Charon, Connection};
use lab::transfer::transfer;

const MB: u64 = 1_000_000;

/// Thousands of packets in each direction. charon's user-space AES-CBC is too slow for more.
const OCTETS: u64 = 4 * MB;

// Works: suites
#[lab::test(repeated)]
fn aes_128_cbc_with_sha_256_carries_both_sas() -> Result<()> {
    cbc_carries_both_sas("aes128-sha256", "integ-alg=HMAC_SHA2_256_128")
}

// Works: suites
#[lab::test(repeated)]
fn aes_256_cbc_with_sha_384_carries_both_sas() -> Result<()> {
    cbc_carries_both_sas("aes256-sha384", "integ-alg=HMAC_SHA2_384_192")
}

// Works: suites
#[lab::test(repeated)]
fn aes_256_cbc_with_sha_512_carries_both_sas() -> Result<()> {
    cbc_carries_both_sas("aes256-sha512", "integ-alg=HMAC_SHA2_512_256")
}

/// Tests a suite in both roles. `words` identify it in strongSwan's list of SAs.
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

/// The proposal contains every HMAC that strongSwan knows, next to many others.
#[lab::test(repeated)]
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

/// AES-256-GCM with P-384, also for the keys of the child SA.
// Works: suites
#[lab::test(repeated)]
fn the_strict_set_makes_both_sas_and_their_successors() -> Result<()> {
    let (ike, esp) = ("aes256gcm16-prfsha256-ecp384", "aes256gcm16-ecp384");
    let theirs = Connection { ike, esp, ..THEIRS };
    let (duo, mut strata, charon) = start("suite = \"strict\"", &theirs)?;
    both_roles(&duo, &mut strata, &charon, |sas| {
        sas.contains("dh-group=ECP_384") && sas.matches("encr-keysize=256").count() == 2
    })
}

// Works: ipsec-mb
#[lab::test(repeated)]
fn the_aes_gcm_of_libipsec_mb_makes_both_sas_and_their_successors() -> Result<()> {
    let ours = plain::in_table(OURS, "[node]", "aead = \"ipsec-mb\"");
    for (suite, ike, esp) in [
        ("modern", THEIRS.ike, THEIRS.esp),
        (
            "strict",
            "aes256gcm16-prfsha256-ecp384",
            "aes256gcm16-ecp384",
        ),
    ] {
        let duo = Duo::new("suites")?;
        let theirs = Connection { ike, esp, ..THEIRS };
        let (mut strata, charon) = duo.start(&format!("{ours}suite = \"{suite}\"\n"), &theirs)?;
        both_roles(&duo, &mut strata, &charon, |sas| {
            sas.matches("encr-alg=AES_GCM_16").count() == 2
        })?;
        let told = strata.process().log();
        ensure!(told.contains("using AES-GCM of libipsec-mb"), "{told}");
    }
    Ok(())
}

/// A strongSwan without AEADs.
const OLD: Connection<'_> = Connection {
    ike: "aes128-sha256-prfsha256-ecp256",
    esp: "aes128-sha256",
    ..THEIRS
};

// Works: suites
#[lab::test(repeated)]
fn the_legacy_set_reaches_a_strongswan_without_aeads() -> Result<()> {
    let (duo, strata, charon) = start("suite = \"legacy\"", &OLD)?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    duo.carry(OCTETS)?;
    charon.terminate()?;
    // The tunnel stays down: Strata does not initiate after a tunnel that strongSwan initiated.
    strata.wait_until("status", DEADLINE, is_down)?;
    strata.strata("up theirs --wait")?;
    duo.carry(OCTETS)
}

/// Neither end accepts a suite that it does not allow.
// Refuses: suites
#[lab::test(repeated)]
fn the_modern_set_does_not() -> Result<()> {
    let (_duo, strata, charon) = start("suite = \"modern\"", &OLD)?;
    ensure!(charon.initiate().is_err(), "it was not refused");
    let status = strata.wait_until("status", DEADLINE, |status| {
        status["status"].to_string().contains("no IKE suite")
    })?;
    ensure!(!is_up(&status), "{status}");
    Ok(())
}

// Works: suites
#[lab::test(repeated)]
fn modp_3072_makes_the_keys_of_both_sas() -> Result<()> {
    modp_makes_the_keys_of_both_sas("modp3072", "dh-group=MODP_3072")
}

// Works: suites
#[lab::test(repeated)]
fn modp_2048_makes_the_keys_of_both_sas() -> Result<()> {
    modp_makes_the_keys_of_both_sas("modp2048", "dh-group=MODP_2048")
}

/// Tests a group in both roles. `words` identify it in strongSwan's list of SAs.
fn modp_makes_the_keys_of_both_sas(group: &str, words: &str) -> Result<()> {
    let ike = format!("aes128gcm16-prfsha256-{group}");
    let esp = format!("aes128gcm16-{group}");
    let theirs = Connection {
        ike: &ike,
        esp: &esp,
        ..THEIRS
    };
    let (duo, mut strata, charon) = start(&format!("groups = \"{group}\""), &theirs)?;
    both_roles(&duo, &mut strata, &charon, |sas| sas.contains(words))
}

/// Strata guesses X25519; this strongSwan has only a MODP group, and no AEAD.
// Works: suites
#[lab::test(repeated)]
fn the_legacy_set_reaches_a_strongswan_without_curves() -> Result<()> {
    let ike = "aes256-sha256-prfsha256-modp2048";
    let theirs = Connection { ike, ..OLD };
    let (duo, strata, charon) = start("suite = \"legacy\"", &theirs)?;
    strata.strata("up theirs --wait")?;
    charon.wait_until(DEADLINE, |sas| sas.contains("dh-group=MODP_2048"))?;
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)
}

/// Strata signs with RSASSA-PSS, strongSwan with PKCS #1, the CA as openssl does by default.
// Works: certificates
#[lab::test(repeated)]
fn rsa_certificates_prove_both_ends() -> Result<()> {
    let duo = Duo::new("rsa")?;
    duo.certify(RSA)?;
    let theirs = Connection {
        psk: None,
        ..THEIRS
    };
    let (mut strata, charon) = duo.start(&certified(OURS), &theirs)?;
    both_roles(&duo, &mut strata, &charon, |sas| {
        sas.contains("state=ESTABLISHED")
    })
}

/// An attacker who factors such a key can impersonate its owner.
// Refuses: certificates
// Weakness: 60
#[lab::test(repeated)]
fn an_rsa_key_of_1024_bits_is_refused_with_a_reason() -> Result<()> {
    let duo = Duo::new("rsa")?;
    let short = "rsa -pkeyopt rsa_keygen_bits:1024";
    openssl::authority(&duo.ours, RSA, "RSA CA")?;
    let order = Order { key: short, ..GOOD };
    openssl::order(&duo.ours, "DNS:ours.example", order)?;
    duo.ours.file("strata.toml", &certified(OURS))?;
    let Err(refusal) = strata(&duo.ours, "check strata.toml") else {
        bail!("it was taken");
    };
    let refusal = format!("{refusal:?}");
    ensure!(refusal.contains("RSA of 2048 bits or more"), "{refusal}");
    Ok(())
}

/// charon's user-space ESP has no extended sequence numbers and negotiates none.
#[lab::test(repeated)]
fn a_charon_that_has_no_extended_numbers_gets_none() -> Result<()> {
    let (duo, mut strata, charon) = start("esn = true", &THEIRS)?;
    both_roles(&duo, &mut strata, &charon, |sas| !sas.contains("esn=1"))?;
    let status = strata.strata("status")?;
    let mut children = children(&status).into_iter();
    ensure!(children.all(|child| child["esn"] == false), "{status}");
    Ok(())
}

fn start(line: &str, theirs: &Connection<'_>) -> Result<(Duo, Daemon, Charon)> {
    let duo = Duo::new("suites")?;
    let (strata, charon) = duo.start(&format!("{OURS}{line}\n"), theirs)?;
    Ok((duo, strata, charon))
}

/// Brings the tunnel up with strongSwan and then with Strata as the initiator. Each time octets
/// pass in both directions, also after rekeys of the IKE SA and the child SA.
fn both_roles(
    duo: &Duo,
    strata: &mut Daemon,
    charon: &Charon,
    agreed: impl Fn(&str) -> bool,
) -> Result<()> {
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    duo.carry(OCTETS)?;
    charon.rekey()?;
    for keys in ["IKE SA rekeyed", "tunnel rekeyed"] {
        strata.process().wait_for_log(keys, DEADLINE)?;
    }
    charon.wait_until(DEADLINE, |sas| one_child(sas) && agreed(sas))?;
    duo.carry(OCTETS)?;
    charon.terminate()?;
    strata.wait_until("status", DEADLINE, is_down)?;
    strata.strata("up theirs --wait")?;
    duo.carry(OCTETS)?;
    strata.strata("rekey theirs")?;
    // The first rekey was strongSwan's.
    let twice = |log: &str| log.matches("tunnel rekeyed").count() >= 2;
    until("new keys", DEADLINE, || {
        Ok(twice(&strata.process().log()).then_some(()))
    })?;
    duo.carry(OCTETS)?;
    charon.wait_until(DEADLINE, agreed)?;
    ensure!(
        peer(&strata.strata("status")?)["children"][0]["kind"] == "plain",
        "not a plain tunnel"
    );
    Ok(())
}

/// Returns true if only one child SA is left.
fn one_child(sas: &str) -> bool {
    sas.matches("reqid=").count() == 1
}
