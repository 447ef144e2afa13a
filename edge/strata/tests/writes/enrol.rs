//! `strata enrol`.

use super::folder::{Folder, has};

const ALICE: &str = "enrol alice@example.net --file strata.toml";

/// Returns a folder with a gateway.
fn gateway() -> Folder {
    let folder = Folder::new();
    folder.done(
        "init gateway --id gw.example.net --address 192.0.2.1 --network 10.8.0.0/16 \
                 --pool 10.9.0.0/24 --dns 10.8.0.53 --out .",
    );
    folder
}

// Works: init
#[test]
fn an_archive_has_all_that_a_device_needs() {
    let folder = gateway();
    let told = folder.done(ALICE);
    has(
        &told,
        &[
            "wrote ./alice.tar",
            "added [peer.alice]",
            "strata reload",
            "tar -xf alice.tar",
        ],
    );
    assert_eq!(folder.mode("alice.tar"), 0o600);
    has(
        &folder.done("check strata.toml"),
        &["valid: gw.example.net, 1 tunnel"],
    );
    folder.write("device/.here", "");
    assert!(
        folder
            .run("tar", "-xf alice.tar -C device")
            .status
            .success()
    );
    has(
        &folder.done("check device/strata.toml"),
        &["valid: alice@example.net, 1 tunnel"],
    );
    assert_eq!(folder.mode("device/alice.key"), 0o600);
    has(
        &folder.read("device/strata.toml"),
        &[
            "address = \"192.0.2.1\"",
            "remote = [\"10.8.0.0/16\"]",
            "dns = \"from-peer\"",
        ],
    );
    let verified = folder.run(
        "openssl",
        "verify -x509_strict -CAfile device/ca.pem device/alice.pem",
    );
    assert!(verified.status.success());
    // The CA's key never leaves the gateway.
    assert!(!folder.read("device/alice.pem").contains("PRIVATE"));
    let list = String::from_utf8(folder.run("tar", "-tf alice.tar").stdout).expect("names");
    assert_eq!(list, "strata.toml\nalice.key\nalice.pem\nca.pem\n");
    has(&folder.done("pki list --ca ca"), &["alice@example.net"]);
}

// Works: init
#[test]
fn options_take_the_place_of_what_the_gateway_has() {
    let folder = gateway();
    let told = folder.json(&format!(
        "{ALICE} --address 198.51.100.1 --network 10.8.1.0/24 --out out"
    ));
    assert_eq!(told["enrol"]["archive"], "out/alice.tar");
    assert_eq!(told["enrol"]["table"], "alice");
    has(&folder.read("strata.toml"), &["local = [\"10.8.1.0/24\"]"]);
    folder.write("device/.here", "");
    folder.run("tar", "-xf out/alice.tar -C device");
    has(
        &folder.read("device/strata.toml"),
        &["\"198.51.100.1\"", "[\"10.8.1.0/24\"]"],
    );
}

// Refuses: init
#[test]
fn a_device_that_cannot_be_enrolled_changes_nothing() {
    let folder = gateway();
    folder.done(ALICE);
    let before = folder.read("strata.toml");
    let refuses = |words: &str, says: &[&str]| {
        folder.refused(words, says);
        assert_eq!(folder.read("strata.toml"), before, "{words}");
    };
    refuses(
        &format!("{ALICE} --out other"),
        &["[peer.alice]", "choose another name"],
    );
    refuses(
        "enrol alice@example.org --file strata.toml",
        &["has `alice@example.net`"],
    );
    refuses(
        "enrol a/b@example.net --file strata.toml",
        &["is not a domain name"],
    );
    refuses(
        "enrol bob@example.net --file none.toml",
        &["none.toml", "strata init gateway"],
    );
    refuses(
        "enrol bob@example.net --file strata.toml --ca none",
        &["there is no CA in none"],
    );
    refuses(
        "enrol bob@example.net --file strata.toml --pool none",
        &["devices"],
    );
    refuses(
        "enrol gw.example.net --file strata.toml",
        &["identity of this gateway"],
    );
    folder.write("bob.tar", "mine");
    refuses(
        "enrol bob@example.net --file strata.toml",
        &["bob.tar already exists"],
    );
    assert_eq!(folder.read("bob.tar"), "mine");
    let issued = folder.done("pki list --ca ca");
    assert!(!issued.contains("bob"), "{issued}");
}

// Refuses: init
#[test]
fn a_gateway_without_pool_certificate_or_address_is_told_what_to_add() {
    let folder = gateway();
    let whole = folder.read("strata.toml");
    let peer = "[peer.x]\nid = \"x\"\nlocal = [\"10.8.0.0/16\"]\nremote = [\"10.7.0.1/32\"]\n";
    let (node, _) = whole.split_once("# Addresses").expect("a pool");
    folder.write("none.toml", &format!("{node}{peer}"));
    folder.refused("enrol bob@b.example --file none.toml", &["no [pool.NAME]"]);
    let two = "[pool.other]\naddresses = [\"10.6.0.0/24\"]\n";
    folder.write("two.toml", &format!("{whole}{two}"));
    folder.refused(
        "enrol bob@b.example --file two.toml",
        &["several pools", "--pool"],
    );
    folder.refused(
        "enrol bob@b.example --file two.toml --pool other",
        &["has no `subnets`", "--network"],
    );
    folder.done("pki issue --ca ca --id gw.example.net --force");
    folder.refused(ALICE, &["names no address", "--address"]);
}
