//! `strata init`.

use super::folder::{Folder, has};

const GATEWAY: &str = "init gateway --id gw.example.net --address 192.0.2.1 \
    --network 10.8.0.0/16 --pool 10.9.0.0/24 --out .";
const CLIENT: &str = "init client --id alice@example.net --gateway gw.example.net \
    --address 192.0.2.1 --network 10.8.0.0/16 --out alice";
const NODE: &str = "init node --id fa.example.net --gateway gw.example.net --address 198.51.100.2 \
    --wired eth0 --wireless wlan0 --out node";

// Works: init
#[test]
fn a_gateway_is_valid_and_openssl_believes_its_certificate() {
    let folder = Folder::new();
    let told = folder.done(GATEWAY);
    has(
        &told,
        &["wrote ./strata.toml", "strata enrol", "ip_forward"],
    );
    let checked = folder.done("check strata.toml");
    has(
        &checked,
        &[
            "strata.toml: valid: gw.example.net",
            "[pool.devices] is unused",
        ],
    );
    for key in ["gw.example.net.key", "ca/ca.key"] {
        assert_eq!(folder.mode(key), 0o600, "{key}");
    }
    let verify = |more: &str| {
        let words = format!("verify -x509_strict {more} -CAfile ca/ca.pem gw.example.net.pem");
        folder.run("openssl", &words).status.success()
    };
    assert!(verify(
        "-verify_ip 192.0.2.1 -verify_hostname gw.example.net"
    ));
    assert!(!verify("-verify_ip 192.0.2.2"));
}

// Works: init
#[test]
fn a_client_and_a_node_are_valid_with_the_public_key_of_the_gateway() {
    let folder = Folder::new();
    folder.done(GATEWAY);
    for (words, own, table) in [
        (CLIENT, "alice", "[peer.alice]"),
        (NODE, "node", "[licensed.fa]"),
    ] {
        let told = folder.done(words);
        has(
            &told,
            &["The gateway needs", table, "pubkey = ", "gw.pub", "Next:"],
        );
        let (status, missing) = folder.strata(&format!("check {own}/strata.toml"));
        assert_eq!(status, 2);
        has(&missing, &["gw.pub"]);
        let public = folder.done("pki pubkey gw.example.net.key");
        folder.write(&format!("{own}/gw.pub"), &public);
        folder.done(&format!("check {own}/strata.toml"));
    }
    // The lines for the gateway fit its file.
    let lines = folder.json(
        "init client --id bob@example.net --gateway gw.example.net --address \
                             192.0.2.1 --network 10.8.0.0/16 --out bob",
    );
    let lines = lines["init"]["lines"].as_str().expect("lines").to_owned();
    folder.write("bob.pub", &folder.read("bob/bob.pub"));
    folder.write(
        "strata.toml",
        &format!("{}\n{lines}", folder.read("strata.toml")),
    );
    folder.done("check strata.toml");
}

// Refuses: init
#[test]
fn nothing_is_ever_replaced() {
    let folder = Folder::new();
    for (words, file) in [
        (GATEWAY, "strata.toml"),
        (CLIENT, "alice/strata.toml"),
        (NODE, "node/strata.toml"),
    ] {
        folder.done(words);
        let before = folder.read(file);
        folder.refused(words, &["already exists", "--out"]);
        assert_eq!(folder.read(file), before);
    }
    let other = Folder::new();
    other.write("ca/ca.key", "a CA of before");
    other.refused(GATEWAY, &["ca/ca.key already exists"]);
    assert!(!other.exists("strata.toml"));
}

// Refuses: init
#[test]
fn what_is_no_identity_or_network_is_refused_with_an_example() {
    let folder = Folder::new();
    folder.refused(
        &GATEWAY.replace("gw.example.net", "*.example.net"),
        &["is not a domain name"],
    );
    for (right, wrong, says) in [
        ("10.8.0.0/16", "10.8.0.1/16", "write 10.8.0.0/16"),
        ("10.9.0.0/24", "10.9.0.0", "a slash"),
        ("192.0.2.1", "gw", "invalid"),
    ] {
        let (status, text) = folder.strata(&GATEWAY.replace(right, wrong));
        assert_eq!(status, 2, "{text}");
        has(&text, &[says]);
    }
    assert!(!folder.exists("strata.toml"));
}
