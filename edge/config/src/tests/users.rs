//! Tables for many users, and `unique`.

use super::certificates::folder;
use crate::{Addressing, Config};
use model::{Unique, Wildcard};

const STAFF: &str = r#"[node]
id = "gateway.example.net"
cert = "gateway.pem"
key = "gateway.key"
ca = "ca.pem"
[peer.staff]
id = "*@staff.example.net"
local = ["10.8.0.0/16"]
pool = "office"
[pool.office]
addresses = ["10.9.0.0/24"]
"#;

fn load(text: &str) -> Config {
    folder().load(text).unwrap()
}

fn only_fault(text: &str) -> String {
    let lines = folder().lines(text);
    let [line] = lines.as_slice() else {
        panic!("one fault, not {lines:#?}");
    };
    line.clone()
}

#[test]
fn a_table_is_for_one_peer_or_for_everyone_whom_a_pattern_means() {
    let config = load(STAFF);
    let staff = &config.peers[0];
    let expected = Wildcard::Mailboxes("staff.example.net".to_owned());
    assert_eq!(staff.user_identities(), Some(expected));
    assert_eq!((staff.users, staff.unique), (1000, Unique::Replace));
    assert_eq!(staff.addressing, Addressing::Lent("office".to_owned()));
    for pattern in ["*.example.net", "*"] {
        let config = load(&STAFF.replace("*@staff.example.net", pattern));
        assert!(config.peers[0].user_identities().is_some(), "{pattern}");
    }
    let one = load(&STAFF.replace("*@", "alice@"));
    assert_eq!(one.peers[0].user_identities(), None);
    let each = STAFF
        .replace("*@", "alice@")
        .replace("pool =", "unique = \"never\"\npool =");
    let each = load(&each);
    assert!(matches!(
        each.peers[0].user_identities(),
        Some(Wildcard::One(_))
    ));
}

#[test]
fn tables_of_ones_own_and_other_patterns_stand_beside_a_pattern_and_no_second_one_like_it() {
    let beside = |id: &str| {
        format!(
            "{STAFF}[peer.other]\nid = \"{id}\"\nlocal = [\"10.8.0.0/16\"]\npool = \"office\"\n"
        )
    };
    for id in [
        "alice@staff.example.net",
        "*@sales.example.net",
        "*",
        "*.example.net",
    ] {
        assert_eq!(load(&beside(id)).peers.len(), 2, "{id}");
    }
    let twice = only_fault(&beside("*@Staff.example.net"));
    assert!(twice.contains("[peer.other] has the same id"), "{twice}");
}

/// Rule 23: "Wildcard identities need certificates or EAP; with a PSK they are refused".
#[test]
fn a_secret_or_a_key_that_many_share_is_refused_with_a_fix() {
    let public = include_bytes!("certificates/first.pub");
    for (key, file) in [("psk", "office.psk"), ("pubkey", "first.pub")] {
        let folder = folder();
        folder.key("first.pub", public, 0o644);
        let text = STAFF.replace("pool =", &format!("{key} = \"{file}\"\npool ="));
        let lines = folder.lines(&text);
        assert_eq!(lines.len(), 1, "{lines:#?}");
        assert!(lines[0].contains(&format!("peer.staff.{key} | `{key}` is the same")));
        assert!(
            lines[0].contains("each user needs a certificate"),
            "{lines:#?}"
        );
    }
}

#[test]
fn what_does_not_fit_a_table_for_many_is_refused_with_a_fix() {
    let with = |line: &str| STAFF.replace("pool = \"office\"\n", &format!("{line}\n"));
    for (text, expected) in [
        (
            with("address = \"192.0.2.1\"\nremote = [\"10.9.0.0/24\"]"),
            "who come from any address",
        ),
        (
            with("remote = [\"10.9.0.0/24\"]"),
            "an inner address of its own",
        ),
    ] {
        let lines = folder().lines(&text);
        assert!(
            lines.iter().any(|line| line.contains(expected)),
            "{lines:#?}"
        );
    }
    let one = STAFF.replace("*@", "alice@");
    let users = only_fault(&one.replace("pool =", "users = 5\npool ="));
    assert!(users.contains("this table is for one peer"), "{users}");
    let none = only_fault(&STAFF.replace("pool =", "users = 0\npool ="));
    assert!(none.contains("1 to 100000"), "{none}");
    let never = "unique = \"never\"\n";
    let fixed = one.replace(
        "pool = \"office\"\n",
        &format!("{never}remote = [\"10.7.0.1/32\"]\n"),
    );
    let fixed = only_fault(&fixed);
    assert!(
        fixed.contains("several tunnels needs an inner address"),
        "{fixed}"
    );
    let resume = STAFF.replace("pool =", &format!("{never}resume = \"ticket\"\npool ="));
    let resume = only_fault(&resume);
    assert!(resume.contains("remove `resume`"), "{resume}");
}

#[test]
fn what_is_no_pattern_is_refused_and_a_pattern_is_only_for_peers() {
    for id in [
        "a*@example.net",
        "*@*.example.net",
        "**",
        "*@",
        "* @example.net",
    ] {
        let fault = only_fault(&STAFF.replace("*@staff.example.net", id));
        assert!(
            fault.contains("is not an identity | write one name"),
            "{fault}"
        );
        assert!(fault.contains("write \"*@example.net\""), "{fault}");
    }
    let licensed = format!(
        "{STAFF}[licensed.fa]\naddress = \"10.3.0.1\"\nid = \"*.example.net\"\npsk = \"fa.psk\"\n"
    );
    let licensed = only_fault(&licensed);
    assert!(
        licensed.contains("only a [peer.NAME] can be for many users"),
        "{licensed}"
    );
    let own = only_fault(&STAFF.replace("\"gateway.example.net\"", "\"*.example.net\""));
    assert!(
        own.contains("node.id | `*.example.net` is not an identity"),
        "{own}"
    );
}

fn staff_with(lines: &str) -> String {
    STAFF.replace("pool =", &format!("{lines}\npool ="))
}

fn guests(lines: &str) -> String {
    format!(
        "[peer.guests]\nid = \"*@staff.example.net\"\nlocal = [\"10.8.0.0/16\"]\npool = \"office\"\n{lines}\n"
    )
}

#[test]
fn a_table_may_have_a_ca_and_a_unit_of_its_own() {
    let config = load(&staff_with("ca = \"ca.pem\"\nou = \"Staff\""));
    let party = &config.peers[0].party;
    assert_eq!(party.authorities.len(), 1);
    assert_eq!(party.unit.as_deref(), Some("Staff"));
    // A CA of the table is enough: [node] needs none.
    let alone = staff_with("ca = [\"ca.pem\"]").replacen("ca = \"ca.pem\"\n", "", 1);
    let config = load(&alone);
    assert!(config.authorities.is_empty());
    assert_eq!(config.certificates().count(), 2);
    let both = load(&staff_with("ca = \"ca.pem\""));
    assert_eq!(both.certificates().count(), 2, "each once");
}

#[test]
fn tables_with_one_pattern_differ_in_the_unit_or_the_name_of_the_ca() {
    let text = |one: &str, other: &str| format!("{}{}", staff_with(one), guests(other));
    let good = text("ou = \"Staff\"", "ou = \"Guests\"");
    assert_eq!(load(&good).peers.len(), 2);
    for (one, other) in [
        ("", ""),
        ("ou = \"Staff\"", ""),
        ("ou = \"Staff\"", "ou = \"Staff\""),
        ("ca = \"ca.pem\"", ""),
        ("ca = \"ca.pem\"", "ca = \"ca.pem\""),
    ] {
        let fault = only_fault(&text(one, other));
        assert!(fault.contains("[peer.staff] has the same id") || fault.contains("[peer.guests]"));
        assert!(fault.contains("in both tables another `ou`"), "{fault}");
    }
    let folder = folder();
    let other = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let other = other.join("../../pure/ike/src/tests/certificates/other.pem");
    folder.key("other.pem", &std::fs::read(other).unwrap(), 0o644);
    let two = text("ca = \"ca.pem\"", "ca = \"other.pem\"");
    assert_eq!(folder.load(&two).unwrap().peers.len(), 2);
}

#[test]
fn what_is_about_certificates_does_not_fit_a_secret_and_a_unit_has_its_limits() {
    let one = STAFF.replace("*@", "alice@");
    for (key, line) in [("ca", "ca = \"ca.pem\""), ("ou", "ou = \"Staff\"")] {
        let text = one.replace("pool =", &format!("psk = \"office.psk\"\n{line}\npool ="));
        let fault = only_fault(&text);
        let expected = format!("`{key}` is about certificates, and this peer authenticates by");
        assert!(fault.contains(&expected), "{fault}");
    }
    let long = format!("ou = \"{}\"", "a".repeat(65));
    let fault = only_fault(&staff_with(&long));
    assert!(fault.contains("at most 64 characters"), "{fault}");
    let fault = only_fault(&staff_with("ou = \"a\\tb\""));
    assert!(fault.contains("no control characters"), "{fault}");
    let fault = only_fault(&staff_with("ca = \"gateway.pem\""));
    assert!(fault.contains("is not the certificate of a CA"), "{fault}");
}
