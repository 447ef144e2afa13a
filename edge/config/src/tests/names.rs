//! Peers whose `address` is a name, or has a port.

use super::Folder;
use crate::{Effect, Peer, Start};

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
}

// Works: link-local
#[test]
fn a_link_local_address_has_the_interface_of_its_link() {
    for (written, port) in [("fe80::1%eth0", None), ("[fe80::1%eth0]:4501", Some(4501))] {
        let address = peer(written).address.unwrap();
        let on = address.link().unwrap();
        assert_eq!(
            (on.address, on.interface.as_str()),
            ("fe80::1".parse().unwrap(), "eth0")
        );
        assert_eq!(address.ip(), Some("fe80::1".parse().unwrap()));
        assert_eq!((address.name(), address.port), (None, port));
        assert_eq!(address.to_string(), written, "it is shown as it is written");
    }
    let brackets = peer("[fe80::1%wg-0.7]").address.unwrap();
    assert_eq!(brackets.to_string(), "fe80::1%wg-0.7");
    let others = "[licensed.fa]\nid = \"fa\"\npsk = \"office.psk\"\naddress = \"fe80::2%eth1\"\n\
                  [gateway.gw]\nid = \"gw\"\npsk = \"office.psk\"\naddress = \"fe80::3%eth2\"\n";
    let config = Folder::new().load(&format!("{}{others}", with("fe80::1%eth0")));
    let config = config.unwrap();
    let hosts: Vec<_> = config
        .linked_hosts()
        .map(|host| (host.key(), host.at.to_string()))
        .collect();
    let expected = [
        ("peer.office.address", "fe80::1%eth0"),
        ("licensed.fa.address", "fe80::2%eth1"),
        ("gateway.gw.address", "fe80::3%eth2"),
    ];
    assert_eq!(
        hosts,
        expected.map(|(key, at)| (key.to_owned(), at.to_owned()))
    );
}

/// SAs know the address alone.
// Works: link-local
#[test]
fn another_link_of_an_address_applies_at_once() {
    let load = |address| Folder::new().load(&with(address)).unwrap();
    for (before, after, effect) in [
        ("fe80::1%eth0", "fe80::1%eth1", Effect::Applied),
        ("[fe80::1%eth0]:4501", "[fe80::1%wg0]:4501", Effect::Applied),
        ("[fe80::1%eth0]:4501", "[fe80::1%eth0]:4502", Effect::Anew),
        ("fe80::1%eth0", "fe80::2%eth0", Effect::Anew),
        ("fe80::1%eth0", "192.0.2.1", Effect::Anew),
    ] {
        let changes = load(before).diff(&load(after));
        let [change] = &changes[..] else {
            panic!("{changes:?}");
        };
        assert_eq!(
            (change.key.as_str(), change.effect),
            ("peer.office.address", effect)
        );
    }
}

// Refuses: link-local
#[test]
fn an_address_on_a_link_that_cannot_be_is_told_with_its_form() {
    for (address, why) in [
        ("fe80::1", "`fe80::1` is link-local"),
        ("fe80::1%", "does not end with the name of an interface"),
        ("fe80::1%2", "does not end with the name of an interface"),
        (
            "fe80::1%eth0/64",
            "does not end with the name of an interface",
        ),
        (
            "fe80::1%a-name-that-is-too-long",
            "does not end with the name of an interface",
        ),
        (
            "2001:db8::1%eth0",
            "only link-local addresses belong to one",
        ),
        ("192.0.2.1%eth0", "no link-local address in front of it"),
        (
            "gw.example.net%eth0",
            "no link-local address in front of it",
        ),
    ] {
        let told = fault(&with(address));
        assert!(told.starts_with("4:11 peer.office.address | "), "{told}");
        assert!(told.contains(why), "{address}: {told}");
    }
    let transport = with("fe80::1%eth0").replace("10.8.0.0/16", "fe80::1/128");
    let transport = transport.replace("10.1.0.2/32", "fe80::2/128");
    let told = fault(&format!("{transport}mode = \"transport\"\n"));
    assert!(told.contains("by eth0 alone"), "{told}");
    let bound = format!(
        "{}[listen]\naddresses = [\"2001:db8::7\"]\n",
        with("fe80::1%eth0")
    );
    let told = fault(&bound);
    assert!(told.contains("remove `addresses` from [listen]"), "{told}");
}

/// The engines tell hosts apart by their addresses. Negative control: two tables may name the same
/// host on the same link.
// Refuses: link-local
#[test]
fn one_link_local_address_on_two_links_is_refused() {
    let other = with("fe80::1%eth1").replace("office]", "home]");
    let (_, other) = other.split_once("[peer").unwrap();
    let other = other
        .replace("\"office\"", "\"home\"")
        .replace("10.8.", "10.9.");
    let both = format!("{}[peer{other}", with("fe80::1%eth0"));
    let told = fault(&both);
    assert!(
        told.contains("[peer.home] has the same address on another link: fe80::1%eth1"),
        "{told}"
    );
    let same = both.replace("%eth1", "%eth0");
    assert!(Folder::new().load(&same).is_ok());
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
