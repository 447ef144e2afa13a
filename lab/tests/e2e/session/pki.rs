//! Certificates made by openssl instead of pre-shared keys: tunnels, refusals that both ends
//! report, and warnings before a certificate expires.

use anyhow::{Context as _, Result, ensure};
use lab::certified::{
    self, ALICE, CA, GATEWAY_CONFIG, GW, MOBILE_CONFIG, both, hand_out, start, strata,
};
use lab::daemon::Daemon;
use lab::openssl::{self, EC, ED25519, GOOD, Order, P384, RSA, authority, authority_that};
use lab::pair::{self, DEADLINE, GATEWAY, HEADERS, LICENSED, MOBILE, Pair, Tunnel, is_up, refusal};
use lab::transfer::transfer;
use serde_json::Value;

const OCTETS: u64 = 1_000_000;

/// A validity that has not begun, in openssl's syntax.
const FUTURE: &str = "-startdate 20500101000000Z -enddate 20510101000000Z";

// Works: certificates
#[lab::test]
fn ecdsa_certificates_carry_a_tunnel() -> Result<()> {
    a_tunnel(GOOD)
}

// Works: certificates
#[lab::test]
fn ed25519_certificates_with_an_intermediate_carry_a_tunnel() -> Result<()> {
    a_tunnel(Order {
        key: ED25519,
        intermediate: true,
        ..GOOD
    })
}

// Works: certificates
#[lab::test]
fn p384_certificates_with_an_intermediate_carry_a_tunnel() -> Result<()> {
    a_tunnel(Order {
        key: P384,
        intermediate: true,
        ..GOOD
    })
}

/// Both ends sign with RSASSA-PSS; the CA signed with PKCS #1.
// Works: certificates
#[lab::test]
fn rsa_certificates_with_an_intermediate_carry_a_tunnel() -> Result<()> {
    a_tunnel(Order {
        key: RSA,
        intermediate: true,
        ..GOOD
    })
}

/// Two certificates at each end make long messages, in several IP fragments. Half of the messages
/// lose a fragment.
#[lab::test]
fn certificates_come_through_a_lossy_hop_again_and_again() -> Result<()> {
    let hop = pair::hop(1.0 / 50_000.0);
    let order = Order {
        intermediate: true,
        ..GOOD
    };
    let (pair, mut tunnel) = certified::over(Pair::with_lossy_hop("pki", hop)?, order)?;
    for _ in 0..5 {
        tunnel.mobile.strata("down office")?;
        let up = tunnel.mobile.strata("up office --wait=60");
        up.with_context(|| tunnel.mobile.process().log())?;
    }
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS / 100)
}

// Refuses: certificates
#[lab::test]
fn an_expired_certificate_is_refused_and_both_ends_say_so() -> Result<()> {
    let validity = "-startdate 20200101000000Z -enddate 20200201000000Z";
    is_refused(
        Order { validity, ..GOOD },
        "expired on 2020-02-01",
        "has expired",
    )
}

// Refuses: certificates
#[lab::test]
fn a_certificate_of_the_future_is_refused_and_both_ends_say_so() -> Result<()> {
    is_refused(
        Order {
            validity: FUTURE,
            ..GOOD
        },
        "is valid only from 2050-01-01",
        "not valid yet there",
    )
}

#[lab::test]
fn a_certificate_for_another_use_is_refused_and_both_ends_say_so() -> Result<()> {
    let extensions = "extendedKeyUsage=codeSigning";
    let (pair, tunnel) = both(Order { extensions, ..GOOD })?;
    let here = "key usage does not allow IKE";
    told(&tunnel.mobile, &tunnel.gateway, "key usage", here)?;
    let checked = strata(&pair.mobile, "check strata.toml")?;
    ensure!(
        checked.contains("refuse our certificate (its key usage"),
        "{checked}"
    );
    let checked = strata(&pair.gateway, "check strata.toml")?;
    ensure!(!checked.contains("warning"), "{checked}");
    Ok(())
}

// Refuses: certificates
#[lab::test]
fn a_certificate_with_more_than_we_support_is_no_broken_rule() -> Result<()> {
    let extensions = "1.2.3.4=critical,ASN1:NULL";
    is_refused(
        Order { extensions, ..GOOD },
        "has the critical extension 1.2.3.4, which Strata does not support",
        "the peer does not support a part of its chain",
    )
}

/// A CA issues what its own certificate allows, also if the operator trusts it.
// Refuses: certificates
#[lab::test]
fn a_ca_that_goes_beyond_its_own_certificate_is_refused() -> Result<()> {
    let is_ca = "basicConstraints=critical,CA:TRUE";
    let (broken, unsupported) = ("violates RFC 5280", "does not support a part of its chain");
    for (says, there, here) in [
        (
            format!("{is_ca},pathlen:0"),
            "allows fewer CAs below it than the chain has",
            broken,
        ),
        (
            format!("{is_ca}\nkeyUsage=critical,cRLSign"),
            "may not issue certificates",
            broken,
        ),
        (
            format!(
                "{is_ca}\nnameConstraints=critical,permitted;DNS:gw.example.net,excluded;email:example.net"
            ),
            "has name constraints on e-mail addresses, which Strata does not support",
            unsupported,
        ),
    ] {
        let pair = Pair::new("pki")?;
        authority_that(&pair.mobile, EC, CA, &says)?;
        for file in ["ca.pem", "ca.key"] {
            let text = std::fs::read_to_string(pair.mobile.directory().join(file))?;
            pair.gateway.secret(file, &text)?;
        }
        let gateway = start(&pair.gateway, GW, GOOD, GATEWAY_CONFIG)?;
        let below = Order {
            intermediate: true,
            ..GOOD
        };
        let mobile = start(&pair.mobile, ALICE, below, MOBILE_CONFIG)?;
        told(&mobile, &gateway, there, here)?;
        let checked = strata(&pair.mobile, "check strata.toml")?;
        ensure!(
            checked.contains("peers that run Strata refuse our certificate"),
            "{checked}"
        );
        ensure!(checked.contains(there), "{checked}");
    }
    Ok(())
}

// Refuses: certificates
#[lab::test]
fn a_certificate_of_an_unknown_ca_is_refused_and_both_ends_say_so() -> Result<()> {
    an_impostor("Another CA", "does not chain to any CA in `ca`")
}

// Refuses: certificates
#[lab::test]
fn a_ca_of_the_same_name_with_another_key_is_refused() -> Result<()> {
    an_impostor(CA, "signed with another key")
}

// Works: certificates
#[lab::test]
fn a_certificate_that_ends_soon_is_warned_of() -> Result<()> {
    let pair = Pair::new("pki")?;
    let order = Order {
        validity: "-days 5",
        ..GOOD
    };
    authority(&pair.mobile, EC, CA)?;
    let mut mobile = start(&pair.mobile, ALICE, order, MOBILE_CONFIG)?;
    let status = mobile.strata("status")?;
    let warned = |text: &str| text.contains("CN=end.pem CN` expires in");
    ensure!(
        warned(&status["status"]["warnings"].to_string()),
        "{status}"
    );
    let checked = strata(&pair.mobile, "check strata.toml --json")?;
    ensure!(warned(&checked), "{checked}");
    let metrics = mobile.strata_text("metrics")?;
    ensure!(
        metrics.contains("strata_certificate_expiry_timestamp_seconds{subject=\"CN=end.pem CN\"}"),
        "{metrics}"
    );
    mobile
        .process()
        .wait_for_log("CN=end.pem CN` expires in", DEADLINE)
}

/// The configuration is valid but useless.
// Works: check
#[lab::test]
fn a_certificate_that_has_ended_is_warned_of_by_check() -> Result<()> {
    let pair = Pair::new("pki")?;
    let order = Order {
        validity: "-startdate 20200101000000Z -enddate 20200201000000Z",
        ..GOOD
    };
    authority(&pair.mobile, EC, CA)?;
    openssl::order(&pair.mobile, ALICE, order)?;
    pair.mobile.file("strata.toml", MOBILE_CONFIG)?;
    let checked = strata(&pair.mobile, "check strata.toml")?;
    ensure!(
        checked.contains("warning: the certificate of `CN=end.pem CN` EXPIRED on 2020-02-01"),
        "{checked}"
    );
    ensure!(checked.contains("strata.toml: valid:"), "{checked}");
    openssl::order(&pair.mobile, ALICE, GOOD)?;
    let checked = strata(&pair.mobile, "check strata.toml")?;
    ensure!(!checked.contains("warning"), "{checked}");
    Ok(())
}

/// A host whose clock is behind has such a certificate as well.
// Works: check
#[lab::test]
fn a_certificate_of_the_future_is_warned_of_by_check_and_in_the_log() -> Result<()> {
    let pair = Pair::new("pki")?;
    let order = Order {
        validity: FUTURE,
        ..GOOD
    };
    authority(&pair.mobile, EC, CA)?;
    let mut mobile = start(&pair.mobile, ALICE, order, MOBILE_CONFIG)?;
    let warning = "CN=end.pem CN` is valid only from 2050-01-01 00:00 UTC";
    let checked = strata(&pair.mobile, "check strata.toml")?;
    ensure!(checked.contains(warning), "{checked}");
    ensure!(checked.contains("`date --utc`"), "{checked}");
    ensure!(!checked.contains("EXPIRED"), "{checked}");
    let checked = strata(&pair.mobile, "check strata.toml --json")?;
    ensure!(checked.contains(warning), "{checked}");
    mobile.process().wait_for_log(warning, DEADLINE)
}

// Refuses: certificates
#[lab::test]
fn an_id_that_is_not_in_the_certificate_is_a_fault_of_the_file() -> Result<()> {
    let pair = Pair::new("pki")?;
    authority(&pair.mobile, EC, CA)?;
    let Err(refused) = start(&pair.mobile, "email:bob@example.net", GOOD, MOBILE_CONFIG) else {
        anyhow::bail!("stratad started with somebody else's certificate");
    };
    let text = format!("{refused:?}");
    ensure!(text.contains("is not a subjectAltName"), "{text}");
    Ok(())
}

/// A root, a CA below it, and one certificate of each kind.
// Works: own-ca
#[lab::test]
fn certificates_of_strata_pki_carry_a_tunnel_and_openssl_believes_them() -> Result<()> {
    let pair = Pair::new("pki")?;
    let (mobile, gateway) = (&pair.mobile, &pair.gateway);
    strata(mobile, "pki ca --name Root --out root")?;
    strata(mobile, "pki ca --name Middle --by root --out middle")?;
    let issue = "pki issue --ca middle --out made --id";
    strata(mobile, &format!("{issue} alice@example.net --ed25519"))?;
    let names = "--also 192.0.2.1 --also vpn.example.net";
    strata(mobile, &format!("{issue} gw.example.net --server {names}"))?;
    for name in ["alice@example.net", "gw.example.net"] {
        let told = mobile.run(&format!(
            "openssl verify -x509_strict -CAfile root/ca.pem -untrusted middle/ca.pem made/{name}.pem"
        ))?;
        ensure!(told.contains("OK"), "{told}");
    }
    let shown = strata(mobile, "pki show made/gw.example.net.pem --json")?;
    let shown: Value = serde_json::from_str(&shown)?;
    ensure!(
        shown["pki"]["certificates"][0]["names"][0] == "gw.example.net"
            && shown["pki"]["certificates"][1]["subject"] == "CN=Middle",
        "{shown}"
    );
    hand_out(mobile, mobile, "alice@example.net")?;
    hand_out(mobile, gateway, "gw.example.net")?;
    let gateway = gateway.stratad(GATEWAY_CONFIG)?;
    let mobile = mobile.stratad(MOBILE_CONFIG)?;
    carries_data(&pair, &Tunnel { mobile, gateway })
}

// Works: certificates
#[lab::test]
fn a_licensed_node_with_a_certificate_gets_its_grant() -> Result<()> {
    let pair = Pair::new("pki")?;
    let maker = &pair.mobile;
    strata(maker, "pki ca --name Root --out root")?;
    for (host, id) in [
        (&pair.mobile, "alice@example.net"),
        (&pair.gateway, "gw.example.net"),
        (&pair.between, LICENSED),
    ] {
        strata(maker, &format!("pki issue --ca root --out made --id {id}"))?;
        hand_out(maker, host, id)?;
    }
    let zones = format!("zones = \"require\"\nlicences = {HEADERS}\n");
    let node = format!("[licensed.fa]\naddress = \"192.0.2.2\"\nid = \"{LICENSED}\"\n");
    let licensed = pair.between.stratad(LICENSED_CONFIG)?;
    let gateway = format!("{GATEWAY_CONFIG}{zones}{node}");
    let gateway = pair.gateway.stratad(&gateway)?;
    let mobile = pair.mobile.stratad(&format!("{MOBILE_CONFIG}{zones}"))?;
    carries_data(&pair, &Tunnel { mobile, gateway })?;
    let held = |zones: &Value| {
        let held = zones["zones"]["held"].as_array();
        held.is_some_and(|held| held.len() == 1 && held[0]["identity"] == "gw.example.net")
    };
    licensed.wait_until("zones", DEADLINE, held).map(drop)
}

// Refuses: own-ca
#[lab::test]
fn strata_pki_replaces_nothing_unless_told_to() -> Result<()> {
    let pair = Pair::new("pki")?;
    strata(&pair.mobile, "pki ca --name Root")?;
    let key = || std::fs::read(pair.mobile.directory().join("ca.key"));
    let before = key()?;
    let Err(refused) = strata(&pair.mobile, "pki ca --name Root") else {
        anyhow::bail!("a CA was replaced");
    };
    let text = format!("{refused:?}");
    ensure!(
        text.contains("ca.key already exists") && text.contains("--force"),
        "{text}"
    );
    ensure!(key()? == before);
    strata(&pair.mobile, "pki ca --name Root --force")?;
    ensure!(key()? != before);
    let mode = pair.mobile.run("stat -c %a ca.key")?;
    ensure!(mode.trim() == "600", "{mode}");
    Ok(())
}

/// Fails unless both ends, with certificates of this kind from one CA, can transfer data.
fn a_tunnel(order: Order<'_>) -> Result<()> {
    let (pair, tunnel) = both(order)?;
    carries_data(&pair, &tunnel)
}

fn carries_data(pair: &Pair, tunnel: &Tunnel) -> Result<()> {
    tunnel.up()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], OCTETS)
}

/// Fails unless the gateway refuses a mobile node's certificate of this kind.
fn is_refused(order: Order<'_>, there: &str, here: &str) -> Result<()> {
    let (_pair, tunnel) = both(order)?;
    told(&tunnel.mobile, &tunnel.gateway, there, here)
}

/// Fails unless the gateway refuses a mobile node's certificate from an unknown CA of this name.
fn an_impostor(name: &str, there: &str) -> Result<()> {
    let pair = Pair::new("pki")?;
    authority(&pair.gateway, EC, CA)?;
    authority(&pair.mobile, EC, name)?;
    let gateway = start(&pair.gateway, GW, GOOD, GATEWAY_CONFIG)?;
    let mobile = start(&pair.mobile, ALICE, GOOD, MOBILE_CONFIG)?;
    told(&mobile, &gateway, there, "our CA is not trusted there")
}

fn told(mobile: &Daemon, gateway: &Daemon, there: &str, here: &str) -> Result<()> {
    let Err(refused) = mobile.strata_text("up office --wait") else {
        anyhow::bail!("the certificate was believed");
    };
    let text = format!("{refused:?}");
    ensure!(text.contains(here), "{here:?} is not in: {text}");
    let said = |status: &Value| status["status"].to_string().contains(there);
    let status = gateway.wait_until("status", DEADLINE, said)?;
    ensure!(!is_up(&status), "{status}");
    let status = mobile.strata("status")?;
    ensure!(refusal(&status).contains(here), "{status}");
    Ok(())
}

const LICENSED_CONFIG: &str = r#"
[node]
id = "fa.example.net"
cert = "chain.pem"
key = "end.key"
ca = ["ca.pem"]
[gateway.gw]
id = "gw.example.net"
[divert]
wired = "wired"
wireless = "wireless"
[snoop]
enabled = true
"#;
