//! strongSwan at the other end of a plain tunnel, as initiator and as responder.

use anyhow::{Result, bail, ensure};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, THEIRS, add_inner_address, expect_refusal};
use lab::host::Host;
use lab::lending::{CHARON, led_into_tunnel, lender_of_charon, on_device};
use lab::pair::{children, is_down, is_up, peer};
use lab::process::until;
use lab::strongswan::{Charon, Connection, Pool};
use lab::transfer::transfer;
use serde_json::Value;
use std::time::Instant;

const MB: u64 = 1_000_000;

/// Fails unless the tunnel is plain and has carried this many octets in each direction.
fn check_traffic(daemon: &Daemon, received: u64, sent: u64) -> Result<()> {
    let status = daemon.strata("status")?;
    let children = children(&status);
    let [child] = children.as_slice() else {
        bail!("not one child: {status}");
    };
    let carried = |direction: &str| child[direction]["octets"].as_u64();
    ensure!(child["kind"] == "plain", "{child}");
    ensure!(carried("received") >= Some(received), "{child}");
    ensure!(carried("sent") >= Some(sent), "{child}");
    Ok(())
}

/// Returns the error of an operation that must fail.
fn refused(outcome: Result<String>) -> Result<String> {
    match outcome {
        Ok(account) => bail!("it was not refused: {account}"),
        Err(refusal) => Ok(format!("{refusal:?}")),
    }
}

/// Returns true if charon has no state of a peer left.
fn nothing(sas: &str) -> bool {
    !sas.contains("list-sa event")
}

/// Proves the testbed: if a later test fails and this one passes, the fault is Strata's.
#[lab::test(repeated)]
fn strongswan_alone_carries_20_mb_each_way_in_this_testbed() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    add_inner_address(&duo.ours, "10.1.0.1/32")?;
    let responder = duo.theirs.charon(&THEIRS)?;
    let initiator = duo.ours.charon(&THEIRS.reversed())?;
    let account = initiator.initiate()?;
    ensure!(
        account.contains("ESP:AES_GCM_16_128/NO_EXT_SEQ"),
        "{account}"
    );
    duo.carry(20 * MB)?;
    ensure!(
        initiator.sas()?.contains("encap=yes"),
        "no UDP encapsulation"
    );
    initiator.terminate()?;
    responder.wait_until(DEADLINE, nothing).map(drop)
}

// Works: tunnel
#[lab::test(repeated)]
fn strongswan_connects_and_20_mb_pass_each_way() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (strata, charon) = duo.start(OURS, &THEIRS)?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    duo.carry(20 * MB)?;
    check_traffic(&strata, 20 * MB, 20 * MB)
}

// Works: psk
// Works: ping
// Works: tunnel
#[lab::test(repeated)]
fn strata_connects_and_20_mb_pass_each_way() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (strata, charon) = duo.start(OURS, &THEIRS)?;
    strata.strata("up theirs --wait")?;
    charon.wait_until(DEADLINE, |sas| sas.contains("state=INSTALLED"))?;
    duo.carry(20 * MB)?;
    // It answers no pings, but an exchange of IKE.
    let told = strata.strata_text("ping theirs")?;
    ensure!(
        told.contains("not Strata") && told.contains("IKE is answered"),
        "{told}"
    );
    ensure!(told.contains("the last ESP packet arrived"), "{told}");
    check_traffic(&strata, 20 * MB, 20 * MB)
}

/// strongSwan proposes dozens of algorithms, and Strata lacks most of them.
#[lab::test(repeated)]
fn strongswan_with_its_default_proposals_is_answered() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (ike, esp) = ("default", "default");
    let (strata, charon) = duo.start(OURS, &Connection { ike, esp, ..THEIRS })?;
    charon.initiate()?;
    transfer(&duo.theirs, &duo.ours, "10.1.0.1", MB)?;
    check_traffic(&strata, MB, 0)
}

/// RFC 7296 section 1.2: INVALID_KE_PAYLOAD names the group to use.
// Works: suites
#[lab::test(repeated)]
fn strongswan_guessing_another_group_is_led_to_ours() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let ike = "aes128gcm16-prfsha256-ecp256-x25519";
    let (strata, charon) = duo.start(OURS, &Connection { ike, ..THEIRS })?;
    let account = charon.initiate()?;
    ensure!(
        account.contains("N(INVAL_KE)"),
        "its guess was ours: {account}"
    );
    strata.wait_until("status", DEADLINE, is_up).map(drop)
}

#[lab::test(repeated)]
fn strongswan_with_its_default_proposals_answers() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (ike, esp) = ("default", "default");
    let (strata, _charon) = duo.start(OURS, &Connection { ike, esp, ..THEIRS })?;
    strata.strata("up theirs --wait")?;
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)?;
    check_traffic(&strata, 0, MB)
}

// Works: suites
#[lab::test(repeated)]
fn aes_256_is_agreed_where_both_ends_ask_for_it() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (ike, esp) = ("aes256gcm16-prfsha256-x25519", "aes256gcm16");
    let (strata, charon) = duo.start(OURS, &Connection { ike, esp, ..THEIRS })?;
    strata.strata("up theirs --wait")?;
    charon.wait_until(DEADLINE, |sas| sas.contains("encr-keysize=256"))?;
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)?;
    check_traffic(&strata, 0, MB)
}

// Works: suites
#[lab::test(repeated)]
fn chacha20_poly1305_is_agreed_for_both_sas() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (ike, esp) = ("chacha20poly1305-prfsha256-x25519", "chacha20poly1305");
    let ours = OURS.replace("psk = ", "suite = [\"chacha20poly1305\"]\npsk = ");
    let (strata, charon) = duo.start(&ours, &Connection { ike, esp, ..THEIRS })?;
    strata.strata("up theirs --wait")?;
    let both = |sas: &str| sas.matches("encr-alg=CHACHA20_POLY1305").count() == 2;
    charon.wait_until(DEADLINE, both)?;
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)?;
    transfer(&duo.theirs, &duo.ours, "10.1.0.1", MB)?;
    check_traffic(&strata, MB, MB)
}

/// Strata guesses X25519, which this charon does not have.
// Works: suites
#[lab::test(repeated)]
fn our_guess_of_a_group_is_led_to_strongswans() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let ike = "aes128gcm16-prfsha256-ecp256";
    let (strata, charon) = duo.start(OURS, &Connection { ike, ..THEIRS })?;
    strata.strata("up theirs --wait")?;
    charon.wait_until(DEADLINE, |sas| sas.contains("dh-group=ECP_256"))?;
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)?;
    check_traffic(&strata, 0, MB)
}

// Works: certificates
#[lab::test(repeated)]
fn ecdsa_certificates_with_intermediates_convince_strongswan() -> Result<()> {
    certificates_convince_strongswan("--p256", OURS, &THEIRS).map(drop)
}

// Works: certificates
#[lab::test(repeated)]
fn p384_certificates_with_intermediates_convince_strongswan() -> Result<()> {
    certificates_convince_strongswan("--p384", OURS, &THEIRS).map(drop)
}

// Works: certificates
#[lab::test(repeated)]
fn ed25519_certificates_with_intermediates_convince_strongswan() -> Result<()> {
    certificates_convince_strongswan("--ed25519", OURS, &THEIRS).map(drop)
}

/// RFC 7383, with different fragment sizes at the two ends. Each end is the initiator once.
// Works: ike-fragments
#[lab::test(repeated)]
fn fragments_of_ike_messages_pass_each_way() -> Result<()> {
    let ours = format!("{OURS}[listen]\nfragment = 600\n");
    let fragment = 500;
    let theirs = Connection { fragment, ..THEIRS };
    let (_duo, strata, mut charon) = certificates_convince_strongswan("--p256", &ours, &theirs)?;
    let log = charon.process().log();
    for said in [
        "splitting IKE message",
        "reassembled fragmented IKE message",
    ] {
        ensure!(log.matches(said).count() >= 2, "{said}: {log}");
    }
    let metrics = strata.strata_text("metrics")?;
    for kind in ["sent_in_fragments", "put_together"] {
        let name = format!("strata_ike_fragmented_total{{kind=\"{kind}\"}} ");
        let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
        let count = count.and_then(|count| count.parse::<u64>().ok());
        ensure!(count >= Some(2), "{name}: {metrics}");
    }
    Ok(())
}

/// Each end has a CA of its own below one root, and knows only the root of the other end's chain.
fn certificates_convince_strongswan(
    kind: &str,
    ours: &str,
    theirs: &Connection<'_>,
) -> Result<(Duo, Daemon, Charon)> {
    let duo = Duo::new("strongswan")?;
    strata(&duo.ours, &format!("pki ca --name Root --out root {kind}"))?;
    for (name, id) in [("ours", THEIRS.peer_id), ("theirs", THEIRS.id)] {
        let middle = format!("pki ca --name {name} --by root --out {name} {kind}");
        strata(&duo.ours, &middle)?;
        let end = format!("pki issue --ca {name} --id {id} --out made {kind}");
        strata(&duo.ours, &end)?;
    }
    for (file, place) in [
        ("made/theirs.example.pem", "x509/end.pem"),
        ("made/theirs.example.key", "private/end.key"),
        ("theirs/ca.pem", "x509ca/theirs.pem"),
        ("root/ca.pem", "x509ca/root.pem"),
    ] {
        let place = duo.theirs.directory().join(place);
        std::fs::create_dir_all(place.parent().unwrap_or(&place))?;
        std::fs::copy(duo.ours.directory().join(file), place)?;
    }
    let ours = ours
        .replace("psk = \"theirs.psk\"\n", "")
        .replace("[tunnel]", OUR_CERTIFICATE);
    let psk = None;
    let (strata, charon) = duo.start(&ours, &Connection { psk, ..*theirs })?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    transfer(&duo.theirs, &duo.ours, "10.1.0.1", MB)?;
    charon.terminate()?;
    strata.wait_until("status", DEADLINE, is_down)?;
    strata.strata("up theirs --wait")?;
    duo.carry(20 * MB)?;
    Ok((duo, strata, charon))
}

const OUR_CERTIFICATE: &str = r#"cert = "made/ours.example.pem"
key = "made/ours.example.key"
ca = ["root/ca.pem"]
[tunnel]"#;

// Works: rekey
#[lab::test(repeated)]
fn strongswan_rekeys_child_and_ike_sa_while_octets_flow() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (ike_rekey, rekey) = ("3s", "1s");
    let often = Connection {
        ike_rekey,
        rekey,
        ..THEIRS
    };
    let (mut strata, charon) = duo.start(OURS, &often)?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    carry_until_rekeyed(&duo, &mut strata)
}

// Works: rekey
#[lab::test(repeated)]
fn strata_rekeys_child_and_ike_sa_while_octets_flow() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let often = format!("{OURS}rekey = \"2s\"\nike_rekey = \"3s\"\n");
    let (mut strata, _charon) = duo.start(&often, &THEIRS)?;
    strata.strata("up theirs --wait")?;
    carry_until_rekeyed(&duo, &mut strata)
}

/// Strata proposes a rekey with a group and without; strongSwan requires one.
// Works: rekey
#[lab::test(repeated)]
fn new_keys_come_from_a_key_exchange_where_strongswan_wants_one() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let esp = "aes128gcm16-x25519";
    let (mut strata, charon) = duo.start(OURS, &Connection { esp, ..THEIRS })?;
    strata.strata("up theirs --wait")?;
    strata.strata("rekey theirs")?;
    strata.process().wait_for_log("tunnel rekeyed", DEADLINE)?;
    charon.wait_until(DEADLINE, |sas| sas.contains("dh-group=CURVE_25519"))?;
    duo.carry(20 * MB)
}

/// Transfers until the IKE SA and the child SA were rekeyed three times each, without a lost octet.
fn carry_until_rekeyed(duo: &Duo, strata: &mut Daemon) -> Result<()> {
    let often = |log: &str| {
        let count = |what| log.matches(what).count();
        count("tunnel rekeyed") >= 3 && count("IKE SA rekeyed") >= 3
    };
    let started = Instant::now();
    let mut log = String::new();
    while !often(&log) {
        ensure!(started.elapsed() < DEADLINE, "{log}");
        duo.carry(20 * MB)?;
        log = strata.process().log();
    }
    ensure!(!log.contains("down"), "{log}");
    Ok(())
}

/// RFC 4555 section 3.5: Strata's UPDATE_SA_ADDRESSES.
// Works: mobike
#[lab::test(repeated)]
fn strongswan_follows_where_strata_moves() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (mut strata, charon) = duo.start(OURS, &THEIRS)?;
    strata.strata("up theirs --wait")?;
    let before = ike_spi(&charon.sas()?);
    duo.ours.run("ip addr add 192.0.2.11/24 dev eth0")?;
    strata.strata("move theirs --from 192.0.2.11")?;
    let there = |sas: &str| sas.contains("remote-host=192.0.2.11");
    charon.wait_until(DEADLINE, there)?;
    duo.carry(20 * MB)?;
    check_moved(&mut strata, &charon, &before)
}

/// Two paths are configured, and the peer has MOBIKE alone: one path, which moves.
// Refuses: live-paths
#[lab::test(repeated)]
fn strongswan_has_one_path_and_the_operator_learns_why() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let manual = "start = \"manual\"\n";
    let ours = OURS.replace(manual, &format!("{manual}paths = 2\n"));
    let (mut strata, charon) = duo.start(&ours, &THEIRS)?;
    strata.strata("up theirs --wait")?;
    let before = ike_spi(&charon.sas()?);
    duo.ours.run("ip addr add 192.0.2.11/24 dev eth0")?;
    let status = strata.strata("status")?.to_string();
    let told = "does not support several live paths";
    ensure!(status.contains(told), "{status}");
    strata.strata("move theirs --from 192.0.2.11")?;
    charon.wait_until(DEADLINE, |sas: &str| sas.contains("remote-host=192.0.2.11"))?;
    check_moved(&mut strata, &charon, &before)
}

/// strongSwan loses its address, selects another one, and answers Strata's return routability check
/// there.
// Works: mobike
#[lab::test(repeated)]
fn strata_follows_where_strongswan_moves() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    // A peer that moves has no configured address.
    let ours = OURS
        .replace("address = \"192.0.2.2\"\n", "")
        .replace("start = \"manual\"\n", "");
    let address = "%any";
    let (mut strata, charon) = duo.start(&ours, &Connection { address, ..THEIRS })?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    let before = ike_spi(&charon.sas()?);
    duo.theirs
        .sysctl("net.ipv4.conf.eth0.promote_secondaries", "1")?;
    duo.theirs.run("ip addr add 192.0.2.12/24 dev eth0")?;
    duo.theirs.run("ip addr del 192.0.2.2/24 dev eth0")?;
    let there = |paths: &Value| {
        let remote = paths["paths"]["tunnels"][0]["remote"].as_str();
        remote.is_some_and(|remote| remote.starts_with("192.0.2.12:"))
    };
    strata.wait_until("paths", DEADLINE, there)?;
    duo.carry(20 * MB)?;
    check_moved(&mut strata, &charon, &before)
}

/// The IKE SA must be the same. The child SA may be new: strongSwan's user-space ESP cannot move,
/// so charon creates another child SA on the same IKE SA.
fn check_moved(strata: &mut Daemon, charon: &Charon, before: &str) -> Result<()> {
    let sas = charon.sas()?;
    let same = !before.is_empty() && ike_spi(&sas) == before;
    ensure!(same, "another IKE SA: {sas}");
    let log = strata.process().log();
    ensure!(log.contains("tunnel moved"), "{log}");
    ensure!(!log.contains("down"), "{log}");
    Ok(())
}

/// Returns charon's initiator SPI of the IKE SA.
fn ike_spi(sas: &str) -> String {
    let found = sas.split("initiator-spi=").nth(1);
    let spi = found.and_then(|rest| rest.split_whitespace().next());
    spi.unwrap_or_default().to_owned()
}

#[lab::test(repeated)]
fn a_delete_from_strongswan_takes_our_end_down() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (strata, charon) = duo.start(OURS, &THEIRS)?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    charon.terminate()?;
    strata.wait_until("status", DEADLINE, is_down).map(drop)
}

#[lab::test(repeated)]
fn a_delete_from_us_takes_strongswans_end_down() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (strata, mut charon) = duo.start(OURS, &THEIRS)?;
    charon.initiate()?;
    strata.strata("down theirs")?;
    charon.wait_until(DEADLINE, nothing)?;
    let log = charon.process().log();
    ensure!(log.contains("received DELETE for IKE_SA"), "{log}");
    strata.wait_until("status", DEADLINE, is_down).map(drop)
}

#[lab::test(repeated)]
fn stopping_strata_takes_strongswans_end_down() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (mut strata, charon) = duo.start(OURS, &THEIRS)?;
    strata.strata("up theirs --wait")?;
    strata.stop()?;
    charon.wait_until(DEADLINE, nothing).map(drop)
}

// Refuses: psk
#[lab::test(repeated)]
fn a_wrong_key_of_strongswan_is_refused_with_a_reason() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let psk = Some("another key of many octets");
    let (strata, charon) = duo.start(OURS, &Connection { psk, ..THEIRS })?;
    let refusal = refused(charon.initiate())?;
    ensure!(refusal.contains("AUTHENTICATION_FAILED"), "{refusal}");
    expect_refusal(&strata, &["pre-shared key"])
}

// Refuses: psk
#[lab::test(repeated)]
fn strongswans_refusal_of_a_wrong_key_is_told() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let psk = Some("another key of many octets");
    let (strata, charon) = duo.start(OURS, &Connection { psk, ..THEIRS })?;
    let refusal = refused(strata.strata_text("up theirs --wait"))?;
    expect_refusal(&strata, &["AUTHENTICATION_FAILED"])?;
    ensure!(
        format!("{refusal:?}").contains("AUTHENTICATION_FAILED"),
        "{refusal:?}"
    );
    charon.wait_until(DEADLINE, nothing).map(drop)
}

// Refuses: tunnel
#[lab::test(repeated)]
fn selectors_outside_ours_are_refused_with_a_reason() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let local = "10.99.0.0/24";
    let (strata, charon) = duo.start(OURS, &Connection { local, ..THEIRS })?;
    let refusal = refused(charon.initiate())?;
    ensure!(refusal.contains("TS_UNACCEPTABLE"), "{refusal}");
    expect_refusal(&strata, &["traffic selectors", "`local`", "`remote`"])
}

#[lab::test(repeated)]
fn strongswans_refusal_of_our_selectors_is_told() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let local = "10.99.0.0/24";
    let (strata, _charon) = duo.start(OURS, &Connection { local, ..THEIRS })?;
    let refusal = refused(strata.strata_text("up theirs --wait"))?;
    expect_refusal(&strata, &["TS_UNACCEPTABLE"])?;
    ensure!(
        format!("{refusal:?}").contains("TS_UNACCEPTABLE"),
        "{refusal:?}"
    );
    Ok(())
}

// Refuses: tunnel
#[lab::test(repeated)]
fn an_unknown_identity_is_refused_with_a_reason() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let id = "stranger.example";
    let (mut strata, charon) = duo.start(OURS, &Connection { id, ..THEIRS })?;
    let refusal = refused(charon.initiate())?;
    ensure!(refusal.contains("AUTHENTICATION_FAILED"), "{refusal}");
    let named = |status: &Value| {
        let reason = status["status"]["refused_stranger"]["reason"].as_str();
        reason.is_some_and(|reason| reason.contains("stranger.example"))
    };
    strata.wait_until("status", DEADLINE, named)?;
    strata.process().wait_for_log("stranger.example", DEADLINE)
}

// Works: pools
#[lab::test(repeated)]
fn strongswan_gets_addresses_out_of_our_pool() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let (strata, mut charon) = duo.start(&lender_of_charon(&duo.ours), &CHARON)?;
    for _ in 0..2 {
        charon.initiate()?;
        let status = strata.wait_until("status", DEADLINE, is_up)?;
        ensure!(peer(&status)["inside"][0] == "10.9.0.1", "{status}");
        let addresses = duo.theirs.run("ip -o addr")?;
        for lent in ["10.9.0.1/32", "2001:db8:9::1/128"] {
            ensure!(addresses.contains(lent), "{lent} is not in {addresses}");
        }
        for (theirs, ours) in [("10.9.0.1", "10.1.0.1"), ("2001:db8:9::1", "fd00:1::1")] {
            transfer(&duo.ours, &duo.theirs, theirs, MB)?;
            transfer(&duo.theirs, &duo.ours, ours, MB)?;
        }
        check_traffic(&strata, MB, MB)?;
        charon.terminate()?;
        strata.wait_until("status", DEADLINE, is_down)?;
    }
    // charon receives the name server, but has no plugin for it.
    let log = charon.process().log();
    ensure!(log.contains("DNS"), "{log}");
    Ok(())
}

/// strongSwan gets an address, but requests traffic selectors with another one.
// Refuses: pools
#[lab::test(repeated)]
fn strongswan_claiming_anothers_address_gets_no_tunnel() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    let local = "10.9.0.77/32";
    let (strata, charon) = duo.start(
        &lender_of_charon(&duo.ours),
        &Connection { local, ..CHARON },
    )?;
    let refusal = refused(charon.initiate())?;
    ensure!(refusal.contains("TS_UNACCEPTABLE"), "{refusal}");
    expect_refusal(&strata, &["10.9.0.1", "the only one that the peer may use"])
}

// Works: pools
#[lab::test(repeated)]
fn strongswan_lends_us_addresses_out_of_its_pools() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    add_inner_address(&duo.theirs, "fd00:2::1/128")?;
    let resolver = duo.ours.file("resolv.conf", "nameserver 192.0.2.53\n")?;
    let ours = format!(
        "[node]\nid = \"ours.example\"\n[tunnel]\nresolver = \"{}\"\n\
         [peer.theirs]\naddress = \"192.0.2.2\"\nid = \"theirs.example\"\npsk = \"theirs.psk\"\n\
         local = [\"dynamic\"]\nremote = [\"10.2.0.0/24\", \"fd00:2::/64\"]\nstart = \"manual\"\n\
         dns = \"from-peer\"\n",
        resolver.display()
    );
    let theirs = Connection {
        local: "10.2.0.0/24, fd00:2::/64",
        remote: "dynamic",
        pools: &[
            Pool {
                addresses: "10.9.0.0/24",
                dns: "10.2.0.53",
                subnets: None,
            },
            Pool {
                addresses: "2001:db8:9::/64",
                dns: "fd00:2::53",
                subnets: None,
            },
        ],
        ..THEIRS
    };
    let (strata, charon) = duo.start(&ours, &theirs)?;
    strata.strata("up theirs --wait")?;
    charon.wait_until(DEADLINE, |sas| sas.contains("state=INSTALLED"))?;
    let lent = on_device(&duo.ours)?;
    ensure!(
        lent.len() == 2 && lent[0].starts_with("10.9.0."),
        "{lent:?}"
    );
    let servers = std::fs::read_to_string(&resolver)?;
    ensure!(
        servers.contains("nameserver 10.2.0.53\nnameserver fd00:2::53"),
        "{servers}"
    );
    let address = |index: usize| lent[index].split('/').next().unwrap_or_default().to_owned();
    for (theirs, ours) in [("10.2.0.1", address(0)), ("fd00:2::1", address(1))] {
        transfer(&duo.ours, &duo.theirs, theirs, MB)?;
        transfer(&duo.theirs, &duo.ours, &ours, MB)?;
    }
    strata.strata("rekey theirs")?;
    strata.strata("down theirs")?;
    let gone = || Ok(on_device(&duo.ours)?.is_empty().then_some(()));
    until("the addresses to go", DEADLINE, gone)
}

/// Strata routes the prefixes that strongSwan announces into the tunnel, or everything if it
/// announces none.
// Works: split-routes
#[lab::test(repeated)]
fn strongswan_says_what_is_behind_it_or_does_not() -> Result<()> {
    for (subnets, led, reason) in [
        (Some("10.2.0.0/24"), "10.2.0.0/24", "subnets"),
        (None, "default", "unsaid"),
    ] {
        let duo = Duo::new("strongswan")?;
        let ours = OURS
            .replace("addresses = [\"10.1.0.1/32\"]", "")
            .replace("local = [\"10.1.0.1/32\"]", "local = [\"dynamic\"]")
            .replace("remote = [\"10.2.0.0/24\"]", "remote = [\"0.0.0.0/0\"]");
        let ours = format!("{ours}routes = \"subnets\"\n");
        let (addresses, dns) = ("10.9.0.0/24", "10.2.0.53");
        let theirs = Connection {
            local: "0.0.0.0/0",
            remote: "dynamic",
            pools: &[Pool {
                addresses,
                dns,
                subnets,
            }],
            ..THEIRS
        };
        let (strata, _charon) = duo.start(&ours, &theirs)?;
        strata.strata("up theirs --wait")?;
        ensure!(led_into_tunnel(&duo.ours)? == [led]);
        let status = strata.strata("status")?;
        ensure!(peer(&status)["routes"]["reason"] == reason, "{status}");
        transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)?;
        check_traffic(&strata, 0, MB)?;
        if subnets.is_some() {
            transfer(&duo.ours, &duo.theirs, THEIRS.address, 2 * MB)?;
            let status = strata.strata("status")?;
            let sent = children(&status)[0]["sent"]["octets"].as_u64();
            ensure!(sent < Some(2 * MB), "it went into the tunnel: {status}");
        }
    }
    Ok(())
}

/// Two users of one table: a charon whose certificate is for a name of its pattern, and the same
/// charon with another name.
// Works: users
#[lab::test(repeated)]
fn strongswan_is_a_user_of_a_table_by_its_certificate_alone() -> Result<()> {
    let duo = Duo::new("strongswan")?;
    strata(&duo.ours, "pki ca --name Root --out root")?;
    let (alice, eve) = ("alice@staff.example", "eve@sales.example");
    for id in ["ours.example", alice, eve] {
        strata(
            &duo.ours,
            &format!("pki issue --ca root --out made --id {id}"),
        )?;
    }
    let daemon = duo.ours.stratad(&lender_of_staff(&duo.ours, ""))?;
    let charon = charon_with(&duo, "made", eve)?;
    let refusal = refused(charon.initiate())?;
    ensure!(refusal.contains("AUTHENTICATION_FAILED"), "{refusal}");
    drop(charon);
    let charon = charon_with(&duo, "made", alice)?;
    charon.initiate()?;
    let up = |status: &Value| is_user(status, alice, "staff");
    daemon.wait_until("status", DEADLINE, up)?;
    transfer(&duo.ours, &duo.theirs, "10.9.0.1", MB)?;
    transfer(&duo.theirs, &duo.ours, "10.1.0.1", MB)?;
    charon.terminate()?;
    let gone = |status: &Value| !up(status);
    daemon.wait_until("status", DEADLINE, gone).map(drop)
}

/// Returns our end's configuration with a table for many users in place of the peer's. `more` is
/// another line of it.
fn lender_of_staff(host: &Host, more: &str) -> String {
    lender_of_charon(host)
        .replace("psk = \"theirs.psk\"\n", more)
        .replace(
            "[peer.theirs]\nid = \"theirs.example\"",
            "[peer.staff]\nid = \"*@staff.example\"",
        )
        .replace("[tunnel]", OUR_CERTIFICATE)
}

/// Returns true if a user of this name is up, by this table.
fn is_user(status: &Value, name: &str, table: &str) -> bool {
    let peers = status["status"]["peers"].as_array().into_iter().flatten();
    let mut users = peers.filter(|peer| peer["name"] == name);
    users.any(|peer| peer["state"] == "up" && peer["table"] == table)
}

/// Starts a charon with the certificate for a name in a folder of our end.
fn charon_with(duo: &Duo, folder: &str, id: &'static str) -> Result<Charon> {
    for (file, place) in [
        (format!("{folder}/{id}.pem"), "x509/end.pem"),
        (format!("{folder}/{id}.key"), "private/end.key"),
        ("root/ca.pem".to_owned(), "x509ca/root.pem"),
    ] {
        let place = duo.theirs.directory().join(place);
        std::fs::create_dir_all(place.parent().unwrap_or(&place))?;
        std::fs::copy(duo.ours.directory().join(file), place)?;
    }
    let psk = None;
    duo.theirs.charon(&Connection { id, psk, ..CHARON })
}

/// The same charon with the same name, of one unit after another.
// Works: user-groups
// Refuses: user-groups
#[lab::test(repeated)]
fn strongswan_is_a_user_of_the_table_for_the_unit_in_its_certificate() -> Result<()> {
    const ALICE: &str = "alice@staff.example";
    let duo = Duo::new("strongswan")?;
    strata(&duo.ours, "pki ca --name Root --out root")?;
    strata(
        &duo.ours,
        "pki issue --ca root --out made --id ours.example",
    )?;
    for unit in ["Staff", "Guests", "Sales"] {
        let issue = format!("pki issue --ca root --id {ALICE} --ou {unit} --out {unit}");
        strata(&duo.ours, &issue)?;
        let mut openssl = duo.ours.command("openssl");
        openssl.args(["x509", "-noout", "-subject", "-in"]);
        openssl.arg(format!("{unit}/{ALICE}.pem"));
        let subject = duo.ours.run_command(openssl, DEADLINE)?;
        ensure!(subject.contains(&format!("OU = {unit}")), "{subject}");
    }
    let ours = lender_of_staff(&duo.ours, "ou = \"Staff\"\n");
    let guests = ours.split("[peer.staff]").nth(1).unwrap_or_default();
    let guests = guests.replace("Staff", "Guests");
    let daemon = duo
        .ours
        .stratad(&format!("{ours}\n[peer.guests]{guests}"))?;
    let refusal = refused(charon_with(&duo, "Sales", ALICE)?.initiate())?;
    ensure!(refusal.contains("AUTHENTICATION_FAILED"), "{refusal}");
    let status = daemon.strata("status")?.to_string();
    let why = "has the organisational unit `Sales`, but must have the organisational units";
    ensure!(status.contains(why), "{status}");
    for (folder, table) in [("Guests", "guests"), ("Staff", "staff")] {
        let charon = charon_with(&duo, folder, ALICE)?;
        charon.initiate()?;
        let up = |status: &Value| is_user(status, ALICE, table);
        daemon.wait_until("status", DEADLINE, up)?;
        charon.terminate()?;
        let gone = |status: &Value| !up(status);
        daemon.wait_until("status", DEADLINE, gone)?;
    }
    Ok(())
}
