//! Needs that the machine has to meet, by role.

use super::{Folder, OFFICE};
use crate::Setting;

/// A peer with an IPv4 and an IPv6 network behind this host.
const SITE: &str = r#"[node]
id = "gw.example.net"
[peer.alice]
id = "alice@example.net"
psk = "alice.psk"
local = ["10.8.0.0/16", "fd00:8::/64"]
remote = ["10.1.0.2/32", "fd00:1::2/128"]
"#;

const PAGE: &str = include_str!("../../../../docs/operate/settings.md");
const README: &str = include_str!("../../../../README.md");

/// Returns the settings that a file needs, and if each is vital.
fn needs(text: &str) -> Vec<(String, bool)> {
    let config = Folder::new().load(text).unwrap();
    let needs = config.needs().into_iter();
    let settings = |need: &crate::Need| {
        let settings: Vec<_> = need.settings.iter().map(Setting::to_string).collect();
        settings.join(" or ")
    };
    needs.map(|need| (settings(&need), need.is_vital)).collect()
}

const V4: &str = "net.ipv4.ip_forward=1";
const V6: &str = "net.ipv6.conf.all.forwarding=1";

fn need(setting: &str, is_vital: bool) -> (String, bool) {
    (setting.to_owned(), is_vital)
}

#[test]
fn a_host_alone_needs_no_setting() {
    assert_eq!(needs(OFFICE), []);
    let dynamic = OFFICE.replace("10.1.0.2/32", "dynamic");
    assert_eq!(needs(&dynamic), []);
}

#[test]
fn a_gateway_should_forward_the_families_of_the_networks_behind_it() {
    assert_eq!(needs(SITE), [need(V4, false), need(V6, false)]);
    let v4 = OFFICE.replace("10.1.0.2/32", "10.1.0.0/24");
    assert_eq!(needs(&v4), [need(V4, false)]);
    let child = format!("{OFFICE}[peer.office.child.lan]\nlocal = [\"172.16.1.0/24\"]\n");
    assert_eq!(needs(&child), [need(V4, false)]);
}

#[test]
fn a_licensed_node_must_forward_one_family_and_an_agent_ipv4() {
    let either = format!("{V4} or {V6}");
    let licensed = include_str!("../../examples/licensed.toml");
    assert_eq!(needs(licensed), [need(&either, true)]);
    for agent in [
        include_str!("../../examples/foreign_agent.toml"),
        include_str!("../../examples/home_agent.toml"),
    ] {
        assert!(needs(agent).contains(&need(V4, true)));
    }
}

#[test]
fn a_host_forwards_if_any_of_its_roles_does() {
    let forwards = |text: &str| Folder::new().load(text).unwrap().forwards();
    let around = OFFICE.replace("10.8.0.0/16", "0.0.0.0/0");
    assert!(!forwards(OFFICE) && !forwards(&around));
    for text in [SITE, include_str!("../../examples/licensed.toml")] {
        assert!(forwards(text));
    }
}

#[test]
fn a_tunnel_that_covers_its_peer_needs_loose_reverse_paths() {
    let loose = [need("net.ipv4.conf.all.rp_filter=2", true)];
    for remote in ["0.0.0.0/0", "192.0.2.0/24"] {
        assert_eq!(needs(&OFFICE.replace("10.8.0.0/16", remote)), loose);
    }
    let child = format!("{OFFICE}[peer.office.child.wan]\nremote = [\"192.0.2.0/24\"]\n");
    assert_eq!(needs(&child), loose);
    let bypass = "[[policy]]\naction = \"bypass\"\nremote = \"192.0.2.1/32\"\n";
    let around = OFFICE.replace("10.8.0.0/16", "0.0.0.0/0") + bypass;
    assert_eq!(needs(&around), []);
}

#[test]
fn a_mobile_node_with_two_agents_needs_loose_reverse_paths_at_each_interface() {
    let node = include_str!("../../examples/mobile_node.toml");
    let both = node.replacen("[mobile_node]\n", "[mobile_node]\nsimultaneous = true\n", 1);
    let config = Folder::new().load(&both).unwrap();
    let interfaces = config.interfaces();
    assert!(!interfaces.is_empty());
    for (key, name) in interfaces {
        assert_eq!(key, "mobile_node.interfaces");
        let setting = format!("net.ipv4.conf.{name}.rp_filter=2");
        assert!(needs(&both).contains(&need(&setting, true)), "{name}");
    }
}

#[test]
fn an_interface_with_a_dot_has_slashes_in_its_setting() {
    let interface = "eth0.7".to_owned();
    let setting = Setting::LooseReversePath { interface };
    assert_eq!(setting.to_string(), "net/ipv4/conf/eth0.7/rp_filter=2");
}

#[test]
fn interfaces_and_addresses_that_may_come_later_are_those_of_the_machine() {
    let listen = "[listen]\naddresses = [\"192.0.2.7\", \"2001:db8::7\"]\n";
    let config = Folder::new().load(&format!("{OFFICE}{listen}")).unwrap();
    let addresses = ["192.0.2.7", "2001:db8::7"].map(|address| address.parse().unwrap());
    assert_eq!(
        config.addresses(),
        addresses.map(|address| ("listen.addresses", address))
    );
    let licensed = include_str!("../../examples/licensed.toml");
    let config = Folder::new().load(licensed).unwrap();
    let keys: Vec<_> = config.interfaces().iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, ["divert.wired", "divert.wireless"]);
    // `strata-mobile` is not the machine's.
    let agent = include_str!("../../examples/foreign_agent.toml");
    let config = Folder::new().load(agent).unwrap();
    let both = ["divert.wireless", "foreign_agent.interface"];
    assert_eq!(config.interfaces(), both.map(|key| (key, "wlan0")));
}

#[test]
fn an_interface_with_traffic_may_be_missing() {
    let traffic = "paths = 2\ntraffic = [{ interface = \"wwan9\", remote = [\"10.8.0.0/24\"] }]\n";
    let config = Folder::new().load(&format!("{OFFICE}{traffic}")).unwrap();
    let named: Vec<_> = config.interfaces_of_traffic().collect();
    assert_eq!(named, [("peer.office.traffic".to_owned(), "wwan9")]);
    assert!(config.interfaces().is_empty());
}

#[test]
fn the_page_names_every_setting_that_check_and_doctor_name() {
    let interface = |name: &str| Setting::LooseReversePath {
        interface: name.to_owned(),
    };
    let settings = [Setting::ForwardIpv4, Setting::ForwardIpv6];
    for setting in settings.into_iter().chain(["all", "wlan0"].map(interface)) {
        assert!(PAGE.contains(&format!("`{setting}`")), "{setting}");
    }
}

/// The README has no room for reasons, and leads to the page.
#[test]
fn the_readme_names_the_kinds_of_settings_and_the_page() {
    for words in [V4, V6, "rp_filter", "](docs/operate/settings.md)"] {
        assert!(README.contains(words), "{words}");
    }
}
