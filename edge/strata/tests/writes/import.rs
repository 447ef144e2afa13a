//! `strata import`: files, exit statuses, certificates. The conversion has its tests in the crate
//! `import`, and the tunnels are those of the lab.

use super::folder::{Folder, has};

const SITES: &str = include_str!("../../../../fuzz/seeds/import/swanctl-sites.conf");
const CLIENT: &str = include_str!("../../../../fuzz/seeds/import/swanctl-client.conf");
const IPSEC: &str = include_str!("../../../../fuzz/seeds/import/ipsec-sites.conf");
const SECRETS: &str = include_str!("../../../../fuzz/seeds/import/ipsec.secrets");
const WG: &str = include_str!("../../../../fuzz/seeds/import/wg-client.conf");

// Works: import
#[test]
fn a_file_that_has_a_place_for_every_line_succeeds() {
    let folder = Folder::new();
    folder.write("swanctl.conf", CLIENT);
    let told = folder.done("import swanctl swanctl.conf -o new");
    has(
        &told,
        &[
            "wrote new/strata.toml",
            "wrote new/home.psk",
            "1 tunnel converted",
        ],
    );
    assert!(!told.contains("staple"), "{told}");
    assert_eq!(folder.mode("new/home.psk"), 0o600);
    has(
        &folder.done("check new/strata.toml"),
        &["valid: carol@strongswan.org"],
    );
    let json = folder.json("import swanctl swanctl.conf -o json");
    assert_eq!(json["import"]["tunnels"], 1);
    assert_eq!(json["import"]["notes"], serde_json::json!([]));
}

// Refuses: import
#[test]
fn the_status_is_2_if_a_line_that_protects_traffic_has_no_place() {
    let folder = Folder::new();
    folder.write("swanctl.conf", SITES);
    let (status, told) = folder.strata("import swanctl swanctl.conf -o new");
    assert_eq!(status, 2);
    has(&told, &["line 30: updown = ", "(left out)", "line 20: "]);
    has(&folder.read("new/strata.toml"), &["# LEFT OUT: updown = "]);
    // Negative control: the same file without the line.
    folder.write("good.conf", &SITES.replace("updown =", "# updown ="));
    folder.done("import swanctl good.conf -o good");
    // So is a configuration that `strata check` does not accept.
    let weak = CLIENT.replace("correct horse # battery {staple} 42", "password");
    folder.write("weak.conf", &weak);
    let (status, told) = folder.strata("import swanctl weak.conf -o weak");
    assert_eq!(status, 2);
    has(&told, &["strata check: ", "fewer than 16"]);
}

// Refuses: import
#[test]
fn the_status_is_1_if_the_file_is_no_such_file() {
    let folder = Folder::new();
    folder.write("swanctl.conf", SITES);
    folder.write("wg.conf", WG);
    for (words, says) in [
        (
            "import swanctl wg.conf -o new",
            "wg.conf is no swanctl.conf: line ",
        ),
        (
            "import wg swanctl.conf -o new",
            "swanctl.conf is no file of wg-quick: line ",
        ),
        (
            "import ipsec swanctl.conf -o new",
            "swanctl.conf is no ipsec.conf: line ",
        ),
        ("import wg none.conf -o new", "cannot read none.conf"),
    ] {
        let (status, told) = folder.strata(words);
        assert_eq!(status, 1, "{words}: {told}");
        has(&told, &[says]);
        assert!(
            !told.contains("yAnz5TF") && !told.contains("FpZAZqEN"),
            "{told}"
        );
    }
    assert!(!folder.exists("new"));
}

// Refuses: import
#[test]
fn nothing_is_replaced_unless_it_is_wanted() {
    let folder = Folder::new();
    folder.write("swanctl.conf", CLIENT);
    folder.write("new/home.psk", "mine");
    folder.refused(
        "import swanctl swanctl.conf -o new",
        &["home.psk already exists", "--force"],
    );
    assert!(!folder.exists("new/strata.toml"));
    folder.done("import swanctl swanctl.conf -o new --force");
    assert!(folder.read("new/home.psk").starts_with("correct horse"));
}

// Works: import
#[test]
fn secrets_of_ipsec_are_beside_the_file_or_named() {
    let folder = Folder::new();
    folder.write("a/ipsec.conf", IPSEC);
    folder.write("a/ipsec.secrets", SECRETS);
    folder.write("b/ipsec.conf", IPSEC);
    for words in [
        "import ipsec a/ipsec.conf -o a/new",
        "import ipsec b/ipsec.conf --secrets a/ipsec.secrets -o b/new",
    ] {
        let (status, told) = folder.strata(words);
        assert_eq!(status, 2, "leftfirewall and a password of EAP: {told}");
        has(&told, &["1 tunnel converted"]);
    }
    folder.done("check a/new/strata.toml");
    assert_eq!(
        folder.read("a/new/net-net.psk"),
        folder.read("b/new/net-net.psk")
    );
    let (_, told) = folder.strata("import ipsec b/ipsec.conf -o b/none");
    has(
        &told,
        &["0 tunnels converted", "no secret for the two identities"],
    );
}

// Works: import
#[test]
fn certificates_and_keys_are_found_where_strongswan_has_them() {
    let folder = Folder::new();
    folder.done("pki ca --name Root --out ca");
    folder.done("pki issue --ca ca --id moon.strongswan.org --out made");
    folder.done("pki issue --ca ca --id other.strongswan.org --out made");
    let connection = "connections { net { remote_addrs = 192.0.2.2\n local { auth = pubkey\n \
        certs = moon.pem\n id = moon.strongswan.org }\n remote { auth = pubkey\n \
        id = sun.strongswan.org }\n children { net { local_ts = 10.1.0.0/16\n \
        remote_ts = 10.2.0.0/16 } } } }\n";
    folder.write("etc/swanctl.conf", connection);
    for (from, to) in [
        ("made/moon.strongswan.org.pem", "etc/x509/moon.pem"),
        ("made/other.strongswan.org.key", "etc/private/a.key"),
        ("made/moon.strongswan.org.key", "etc/private/b.key"),
        ("ca/ca.pem", "etc/x509ca/root.pem"),
    ] {
        folder.write(to, &folder.read(from));
    }
    for key in ["a", "b"] {
        folder.run("chmod", &format!("600 etc/private/{key}.key"));
    }
    folder.done("import swanctl etc/swanctl.conf -o new");
    has(
        &folder.read("new/strata.toml"),
        &["/etc/private/b.key\"", "/etc/x509ca/root.pem\""],
    );
    folder.done("check new/strata.toml");
    folder.run("rm", "etc/private/b.key");
    let (status, told) = folder.strata("import swanctl etc/swanctl.conf -o without");
    assert_eq!(status, 2);
    has(&told, &["no readable private key"]);
}

/// A CA of one peer does not prove another one.
// Works: import
// Weakness: 200
#[test]
fn cas_that_are_named_for_a_peer_are_those_of_its_table() {
    let folder = Folder::new();
    for (name, id) in [("north", "moon"), ("south", "sun")] {
        folder.done(&format!("pki ca --name {name} --out {name}"));
        let issue = format!("pki issue --ca {name} --id {id}.strongswan.org --out made");
        folder.done(&issue);
        let place = format!("etc/x509ca/{name}.pem");
        folder.write(&place, &folder.read(&format!("{name}/ca.pem")));
    }
    let made = "made/moon.strongswan.org";
    folder.write("etc/x509/moon.pem", &folder.read(&format!("{made}.pem")));
    folder.write("etc/private/moon.key", &folder.read(&format!("{made}.key")));
    folder.run("chmod", "600 etc/private/moon.key");
    let net = |name: &str, host: u8, more: &str| {
        format!(
            "{name} {{ remote_addrs = 192.0.2.{host}\n local {{ auth = pubkey\n certs = moon.pem\n \
             id = moon.strongswan.org }}\n remote {{ auth = pubkey\n id = {name}.strongswan.org\n \
             {more} }}\n children {{ net {{ local_ts = 10.1.0.0/16\n \
             remote_ts = 10.{host}.0.0/16 }} }} }}\n"
        )
    };
    let (sun, any) = (net("sun", 2, "cacerts = south.pem"), net("any", 3, ""));
    for (nets, of_node) in [(sun.clone(), false), (format!("{sun}{any}"), true)] {
        folder.write("etc/swanctl.conf", &format!("connections {{ {nets} }}\n"));
        folder.done("import swanctl etc/swanctl.conf -o new --force");
        let written = folder.read("new/strata.toml");
        let (node, peers) = written.split_once("[peer.").unwrap();
        assert_eq!(node.contains("north.pem"), of_node, "{written}");
        let (sun, others) = peers.split_once("remote = ").unwrap();
        assert!(sun.contains("/etc/x509ca/south.pem\"]"), "{written}");
        assert!(!others.contains("ca ="), "{written}");
        folder.done("check new/strata.toml");
    }
    // A further connection with the same peer.
    for (ca, status) in [("south", 0), ("north", 2)] {
        let more = net("sun", 4, &format!("cacerts = {ca}.pem")).replacen("sun", "again", 1);
        folder.write(
            "etc/swanctl.conf",
            &format!("connections {{ {sun} {more} }}\n"),
        );
        let (found, told) = folder.strata("import swanctl etc/swanctl.conf -o new --force");
        let lost = told.contains("its CAs are those of [peer.sun]: ") && told.contains("south.pem");
        assert_eq!((found, lost), (status, status == 2), "{told}");
    }
}

// Works: import
#[test]
fn hosts_of_wireguard_get_new_keys_and_are_told_what_to_exchange() {
    let folder = Folder::new();
    folder.write("wg0.conf", WG);
    let told = folder.done("import wg wg0.conf -o new");
    has(
        &told,
        &[
            "pubkey = \"wg-1c8828f71373.pub\"",
            "pubkey = \"wg-c53201039adb.pub\"",
            "1 tunnel converted",
        ],
    );
    assert!(
        !told.contains("yAnz5TF") && !told.contains("UwcSPg38"),
        "{told}"
    );
    assert_eq!(folder.mode("new/wg-1c8828f71373.key"), 0o600);
    let (status, missing) = folder.strata("check new/strata.toml");
    assert_eq!(status, 2, "{missing}");
    folder.done("pki key --name wg-c53201039adb --out new");
    folder.done("check new/strata.toml");
}
