//! Peers whose `address` is a name, or has a port.

use super::Folder;
use crate::{Peer, Start};

const MOBILE: &str = r#"[node]
id = "alice@example.net"
[peer.office]
address = "192.0.2.1"
id = "office"
psk = "office.psk"
local = ["10.1.0.2/32"]
remote = ["10.8.0.0/16"]
"#;

fn with(address: &str) -> String {
    MOBILE.replace("192.0.2.1", address)
}

fn peer(address: &str) -> Peer {
    let config = Folder::new().load(&with(address)).unwrap();
    config.peers[0].clone()
}

fn fault(text: &str) -> String {
    let lines = Folder::new().lines(text);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.into_iter().next().unwrap()
}

#[test]
fn an_address_is_an_ip_address_or_a_name_with_or_without_a_port() {
    for (written, ip, name, port) in [
        ("192.0.2.1", Some("192.0.2.1"), None, None),
        ("192.0.2.1:4501", Some("192.0.2.1"), None, Some(4501)),
        ("2001:db8::1", Some("2001:db8::1"), None, None),
        ("[2001:db8::1]:4501", Some("2001:db8::1"), None, Some(4501)),
        ("gw.example.net", None, Some("gw.example.net"), None),
        (
            "gw.example.net:4501",
            None,
            Some("gw.example.net"),
            Some(4501),
        ),
        (
            "xn--bcher-kva.example",
            None,
            Some("xn--bcher-kva.example"),
            None,
        ),
        ("3.example", None, Some("3.example"), None),
    ] {
        let peer = peer(written);
        let address = peer.address.as_ref().unwrap();
        assert_eq!(address.ip().map(|ip| ip.to_string()).as_deref(), ip);
        assert_eq!(address.name(), name);
        assert_eq!(address.port, port);
        assert_eq!(address.to_string(), written, "it is shown as it is written");
        assert_eq!(peer.start, Start::Auto);
    }
    let brackets = peer("[2001:db8::1]").address.unwrap();
    assert_eq!(brackets.to_string(), "2001:db8::1");
    let name = peer("GW.Example.NET.").address.unwrap();
    assert_eq!(name.to_string(), "gw.example.net");
}

// Refuses: names
#[test]
fn what_is_no_address_is_told_with_the_forms_there_are() {
    let long = format!("{}.example", "a".repeat(64));
    for address in [
        "gw",
        "gw..example",
        "-gw.example",
        "gw_1.example",
        "g\u{e4}.example",
        "192.0.2.300",
        "192.0.2",
        "gw.example.net/24",
        "https://gw.example.net",
        "[gw.example.net",
        "1:2:3",
        ":4501",
        "*.example.net",
        long.as_str(),
    ] {
        let told = fault(&with(address));
        assert!(told.starts_with("4:11 peer.office.address | "), "{told}");
        assert!(told.contains("gw.example.net:4501"), "{told}");
    }
    for address in ["gw.example.net:0", "gw.example.net:65536", "192.0.2.1:x"] {
        let told = fault(&with(address));
        assert!(told.contains("has no valid port"), "{told}");
    }
    for address in ["fe80::1%eth0", "fe80::1", "[fe80::1%eth0]:4501"] {
        let told = fault(&with(address));
        assert!(told.contains("belongs to one link only"), "{told}");
    }
}

// Works: names
#[test]
fn nodes_that_we_connect_to_have_names_too() {
    let keys = "psk = \"office.psk\"\naddress = \"fa.example.net:4501\"\n";
    let licensed = format!("{MOBILE}[licensed.fa]\n{keys}");
    let node = &Folder::new().load(&licensed).unwrap().licensed[0];
    assert_eq!(node.address.name(), Some("fa.example.net"));
    assert_eq!(node.address.port, Some(4501));
    assert_eq!(node.party.identity, "fa.example.net".parse().unwrap());
    let without = licensed.replace("address = \"fa", "id = \"fa.example.net\"\n# \"fa");
    let told = fault(&without);
    assert!(told.contains("`address` is missing"), "{told}");
}

// Refuses: names
#[test]
fn names_are_for_hosts_that_we_connect_to() {
    let gateway = "[gateway.gw]\nid = \"gw\"\npsk = \"office.psk\"\naddress = \"gw.example.net\"\n";
    let lines = Folder::new().lines(&format!("{MOBILE}{gateway}"));
    let told = lines
        .iter()
        .find(|line| line.contains("gateway.gw.address"));
    let told = told.expect("the name is refused");
    assert!(told.contains("[peer.NAME], [licensed.NAME] and"), "{told}");
    let transport = with("gw.example.net").replace("10.8.0.0/16", "192.0.2.1/32");
    let told = fault(&format!("{transport}mode = \"transport\"\n"));
    assert!(told.contains("that is a name"), "{told}");
}

/// Without `id`, the peer proves the name at which it is looked for, and no name server can change
/// that.
#[test]
fn a_name_is_the_identity_unless_another_one_is_given() {
    let text = with("gw.example.net:4501");
    let load = |text: &str| {
        Folder::new().load(text).unwrap().peers[0]
            .party
            .identity
            .clone()
    };
    assert_eq!(load(&text).to_string(), "office");
    let without = text.replace("id = \"office\"\n", "");
    assert_eq!(load(&without), "gw.example.net".parse().unwrap());
    let told = fault(&MOBILE.replace("id = \"office\"\n", ""));
    assert!(told.contains("`id` is missing"), "{told}");
}
