//! The tables of Mobile IP.

use super::{Folder, OFFICE};
use crate::keys::sections;
use crate::{
    Algorithm, Config, Effect, ForeignAgent, HomeAgent, MobileNode, Mobility, Replay, Warning, What,
};
use std::collections::BTreeSet;
use std::time::Duration;

pub(super) const NODE: &str = "[node]\nid = \"alice@example.net\"\n";

/// The shortest valid table, below [`NODE`].
const MOBILE_NODE: &str = r#"[mobile_node]
home_address = "10.66.0.7"
home_agent = "192.0.2.1"
interfaces = ["wlan0"]
key = { spi = 4097, secret = "home.key" }
"#;
const FOREIGN_AGENT: &str = r#"[foreign_agent]
interface = "wlan0"
address = "198.51.100.2"
homes = ["10.66.0.0/16"]
"#;
const HOME_AGENT: &str = r#"[home_agent]
address = "192.0.2.1"
[home_agent.mobile.alice]
home_address = "10.66.0.7"
key = { spi = 4097, secret = "home.key" }
"#;

/// Every key of each table, with a value that is not its default.
pub(super) const FULL: [&str; 3] = [
    r#"[mobile_node]
home_address = "10.66.0.7"
home_agent = "192.0.2.1"
interfaces = ["wlan0", "wlan1"]
key = { spi = 4097, secret = "home.key", algorithm = "hmac-md5" }
replay = "nonces"
lifetime = "6m"
simultaneous = true
[mobile_node.agent.cafe]
address = "198.51.100.2"
key = { spi = 4098, secret = "home.key", algorithm = "hmac-md5" }
"#,
    r#"[foreign_agent]
interface = "wlan1"
address = "198.51.100.2"
advertise = "1500ms"
lifetime = "6m"
visitors = 77
nat = "detect"
keepalive = "25s"
homes = ["10.66.0.0/16", "10.77.0.0/16"]
[foreign_agent.home.office]
address = "192.0.2.1"
homes = ["10.66.0.0/16", "10.88.0.0/16"]
key = { spi = 4099, secret = "home.key", algorithm = "hmac-md5" }
[foreign_agent.mobile.alice]
home_address = "10.66.0.7"
key = { spi = 4098, secret = "home.key", algorithm = "hmac-md5" }
[foreign_agent.neighbour.bar]
address = "203.0.113.2"
key = { spi = 4101, secret = "home.key", algorithm = "hmac-md5" }
"#,
    r#"[home_agent]
address = "192.0.2.1"
lifetime = "11m"
bindings = 3
nat = "detect"
nat_lifetime = "2m"
keepalive = "25s"
[home_agent.mobile.alice]
home_address = "10.66.0.7"
key = { spi = 4097, secret = "home.key", algorithm = "hmac-md5" }
replay = "nonces"
[home_agent.foreign.cafe]
address = "198.51.100.2"
key = { spi = 4099, secret = "home.key", algorithm = "hmac-md5" }
"#,
];

/// One change of each key: the key, its text, and the replacement.
const CHANGES: [&[(&str, &str, &str)]; 3] = [
    &[
        ("mobile_node.home_address", "10.66.0.7", "10.66.0.8"),
        ("mobile_node.home_agent", "192.0.2.1", "192.0.2.2"),
        ("mobile_node.interfaces", "\"wlan1\"", "\"wlan2\""),
        ("mobile_node.key", "4097", "4100"),
        ("mobile_node.key", "\"hmac-md5\"", "\"hmac-sha256\""),
        ("mobile_node.key.secret", "home.key", "office.psk"),
        ("mobile_node.replay", "nonces", "timestamps"),
        ("mobile_node.lifetime", "6m", "7m"),
        (
            "mobile_node.simultaneous",
            "simultaneous = true",
            "simultaneous = false",
        ),
        ("mobile_node.agent.cafe.address", "100.2", "100.3"),
        ("mobile_node.agent.cafe.key", "4098", "4100"),
        (
            "mobile_node.agent.cafe.key.secret",
            "4098, secret = \"home.key",
            "4098, secret = \"office.psk",
        ),
    ],
    &[
        ("foreign_agent.interface", "wlan1", "wlan2"),
        ("foreign_agent.address", "100.2", "100.3"),
        ("foreign_agent.advertise", "1500ms", "1501ms"),
        ("foreign_agent.lifetime", "6m", "7m"),
        ("foreign_agent.visitors", "77", "78"),
        ("foreign_agent.nat", "detect", "always"),
        ("foreign_agent.keepalive", "25s", "26s"),
        ("foreign_agent.homes", "10.77.0.0", "10.78.0.0"),
        (
            "foreign_agent.home.office.address",
            "192.0.2.1",
            "192.0.2.2",
        ),
        ("foreign_agent.home.office.homes", "10.88.0.0", "10.89.0.0"),
        ("foreign_agent.home.office.key", "4099", "4100"),
        ("foreign_agent.home.office.key.secret", "home.key", "gw.psk"),
        (
            "foreign_agent.mobile.alice.home_address",
            "10.66.0.7",
            "10.66.0.8",
        ),
        ("foreign_agent.mobile.alice.key", "4098", "4100"),
        (
            "foreign_agent.mobile.alice.key.secret",
            "4098, secret = \"home.key",
            "4098, secret = \"gw.psk",
        ),
        ("foreign_agent.neighbour.bar.address", "113.2", "113.3"),
        ("foreign_agent.neighbour.bar.key", "4101", "4100"),
        (
            "foreign_agent.neighbour.bar.key.secret",
            "4101, secret = \"home.key",
            "4101, secret = \"gw.psk",
        ),
    ],
    &[
        ("home_agent.address", "192.0.2.1", "192.0.2.2"),
        ("home_agent.lifetime", "11m", "12m"),
        ("home_agent.bindings", "bindings = 3", "bindings = 4"),
        ("home_agent.nat", "detect", "always"),
        ("home_agent.nat_lifetime", "2m", "3m"),
        ("home_agent.keepalive", "25s", "26s"),
        (
            "home_agent.mobile.alice.home_address",
            "10.66.0.7",
            "10.66.0.8",
        ),
        ("home_agent.mobile.alice.key", "4097", "4100"),
        ("home_agent.mobile.alice.key.secret", "home.key", "gw.psk"),
        ("home_agent.mobile.alice.replay", "nonces", "timestamps"),
        ("home_agent.foreign.cafe.address", "100.2", "100.3"),
        ("home_agent.foreign.cafe.key", "4099", "4100"),
        (
            "home_agent.foreign.cafe.key.secret",
            "4099, secret = \"home.key",
            "4099, secret = \"gw.psk",
        ),
    ],
];

/// Returns a folder in which all secrets differ; in the other tests they are equal.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.key("gw.psk", b"a key of another one, long enough\n", 0o600);
    folder.key("office.psk", b"and a third, which is that as well\n", 0o600);
    folder
}

fn load(lines: &str) -> Config {
    folder().load(&format!("{NODE}{lines}")).unwrap()
}

/// Returns the only fault below [`NODE`].
fn only_fault(lines: &str) -> String {
    let faults = folder().lines(&format!("{NODE}{lines}"));
    assert_eq!(faults.len(), 1, "{faults:#?}");
    faults[0].clone()
}

fn mobile_node(lines: &str) -> MobileNode {
    match load(lines).mobility {
        Some(Mobility::MobileNode(node)) => node,
        other => panic!("{other:?}"),
    }
}

fn foreign_agent(lines: &str) -> ForeignAgent {
    match load(lines).mobility {
        Some(Mobility::ForeignAgent(agent)) => agent,
        other => panic!("{other:?}"),
    }
}

fn home_agent(lines: &str) -> HomeAgent {
    match load(lines).mobility {
        Some(Mobility::HomeAgent(agent)) => agent,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_left_out_of_a_mobile_node_has_a_default() {
    let node = mobile_node(MOBILE_NODE);
    assert_eq!(node.home_address.to_string(), "10.66.0.7");
    assert_eq!(node.home_agent.to_string(), "192.0.2.1");
    assert_eq!(node.interfaces, ["wlan0"]);
    assert_eq!(
        (node.key.spi, node.key.algorithm),
        (4097, Algorithm::HmacSha256)
    );
    assert_eq!(
        node.key.secret.expose(),
        b"9f86d081884c7d659a2feaa0c55ad015"
    );
    assert_eq!(node.replay, Replay::Timestamps);
    assert_eq!(node.lifetime, Duration::from_secs(300));
    assert!(!node.simultaneous && node.agents.is_empty());
    assert!(!format!("{node:?}").contains("0123"));
}

#[test]
fn what_is_left_out_of_an_agent_has_a_default() {
    let agent = foreign_agent(FOREIGN_AGENT);
    assert_eq!((agent.interface.as_str(), agent.visitors), ("wlan0", 1000));
    assert_eq!(agent.advertise, Duration::from_secs(1));
    assert_eq!(agent.lifetime, Duration::from_secs(300));
    assert!(agent.home_agents.is_empty() && agent.mobiles.is_empty());
    assert!(agent.neighbours.is_empty());
    let agent = home_agent(HOME_AGENT);
    assert_eq!(
        (agent.bindings, agent.lifetime),
        (2, Duration::from_secs(600))
    );
    assert_eq!(agent.mobiles[0].replay, Replay::Timestamps);
    assert!(agent.foreign.is_empty());
}

#[test]
fn everything_that_is_written_is_read() {
    let node = mobile_node(FULL[0]);
    assert_eq!(node.interfaces, ["wlan0", "wlan1"]);
    assert_eq!((node.replay, node.simultaneous), (Replay::Nonces, true));
    assert_eq!(node.key.algorithm, Algorithm::HmacMd5);
    let [cafe] = &node.agents[..] else {
        panic!("{:?}", node.agents);
    };
    assert_eq!(
        (cafe.name.as_str(), cafe.key.as_ref().unwrap().spi),
        ("cafe", 4098)
    );
    let agent = foreign_agent(FULL[1]);
    assert_eq!(agent.advertise, Duration::from_millis(1500));
    assert_eq!(agent.homes[1].to_string(), "10.77.0.0/16");
    assert_eq!(agent.home_agents[0].agent.key.as_ref().unwrap().spi, 4099);
    assert_eq!(agent.mobiles[0].key.spi, 4098);
    assert_eq!(agent.neighbours[0].address.to_string(), "203.0.113.2");
    assert_eq!(agent.neighbours[0].key.as_ref().unwrap().spi, 4101);
    let agent = home_agent(FULL[2]);
    assert_eq!(
        (agent.bindings, agent.mobiles[0].replay),
        (3, Replay::Nonces)
    );
    assert_eq!(agent.foreign[0].key.as_ref().unwrap().spi, 4099);
    // An agent may be without a key.
    let without = FULL[2].rsplit_once("key =").unwrap().0;
    assert_eq!(home_agent(without).foreign[0].key, None);
}

/// Any station on the link can name an address of the Internet, and a home agent of its own.
// Weakness: 112
#[test]
fn whose_mobile_nodes_are_taken_is_written_out() {
    let without = FOREIGN_AGENT.replace("homes = [\"10.66.0.0/16\"]\n", "");
    let told = only_fault(&without);
    assert!(
        told.contains("foreign_agent | no mobile node can register"),
        "{told}"
    );
    assert!(told.contains("homes = \"anybody\""), "{told}");
    let listed = "[foreign_agent.home.office]\naddress = \"192.0.2.1\"\n";
    let agent = foreign_agent(&format!("{without}{listed}"));
    assert!(agent.homes.is_empty() && agent.home_agents.len() == 1);
    let anybody = format!("{without}homes = \"anybody\"\n");
    assert!(foreign_agent(&anybody).homes.is_empty());
    let interface = "wlan0".to_owned();
    assert_eq!(
        load(&anybody).warnings,
        [Warning::AnybodyVisits { interface }]
    );
    let told = only_fault(&format!("{anybody}{listed}"));
    assert!(
        told.contains("foreign_agent.homes | home agents are listed"),
        "{told}"
    );
    for homes in [
        "[]",
        "[\"2001:db8::/64\"]",
        "[\"0.0.0.0/0\"]",
        "\"everybody\"",
        "7",
    ] {
        let told = only_fault(&format!("{without}homes = {homes}\n"));
        assert!(told.contains("foreign_agent.homes | "), "{told}");
    }
}

// Weakness: 136
#[test]
fn home_agents_that_share_home_networks_are_told() {
    let listed = |name: &str, homes: &str| {
        let last = name.len();
        format!("[foreign_agent.home.{name}]\naddress = \"192.0.2.{last}\"\n{homes}")
    };
    let with = |homes: [&str; 2]| {
        let [office, branch] = homes;
        let agents = [
            listed("office", office),
            listed("other", ""),
            listed("branches", branch),
        ];
        format!("{FOREIGN_AGENT}{}", agents.concat())
    };
    let (ours, theirs) = (
        "homes = [\"10.66.1.0/24\"]\n",
        "homes = [\"10.66.2.0/24\"]\n",
    );
    assert_eq!(load(&with([ours, theirs])).warnings, []);
    let (first, second) = ("office".to_owned(), "other".to_owned());
    assert_eq!(
        load(&with(["", theirs])).warnings,
        [Warning::SharedHomes { first, second }]
    );
    let wide = "homes = [\"10.66.0.0/16\"]\n";
    let told = only_fault(&with([wide, theirs]));
    assert!(
        told.contains("foreign_agent.home.office.homes | `home.branches` has mobile nodes"),
        "{told}"
    );
    for homes in ["[]", "[\"2001:db8::/64\"]", "\"anybody\""] {
        let told = only_fault(&with([&format!("homes = {homes}\n"), theirs]));
        assert!(
            told.contains("foreign_agent.home.office.homes | "),
            "{told}"
        );
    }
}

#[test]
fn nat_without_a_key_at_either_agent_is_warned_of() {
    for (lines, table) in [
        (
            FOREIGN_AGENT.replace("homes", "nat = \"detect\"\nhomes"),
            "foreign_agent.home",
        ),
        (
            HOME_AGENT.replace("[home_agent]", "[home_agent]\nnat = \"always\""),
            "home_agent.foreign",
        ),
    ] {
        assert_eq!(load(&lines).warnings, [Warning::NatWithoutKey { table }]);
    }
    for full in FULL {
        assert_eq!(load(full).warnings, []);
    }
}

#[test]
fn a_machine_is_one_of_the_three() {
    let told = only_fault(&format!("{MOBILE_NODE}{FOREIGN_AGENT}"));
    assert!(
        told.starts_with("8:1 foreign_agent | [mobile_node] is also present"),
        "{told}"
    );
    let all = format!("{NODE}{HOME_AGENT}{MOBILE_NODE}{FOREIGN_AGENT}");
    assert_eq!(folder().lines(&all).len(), 2);
}

#[test]
fn what_is_said_of_tunnels_in_udp_needs_them() {
    for (lines, key) in [
        (FULL[1], "keepalive = \"25s\"\n"),
        (FULL[2], "keepalive = \"25s\"\nnat_lifetime = \"2m\"\n"),
    ] {
        let keys = ["keepalive = \"25s\"\n", "nat_lifetime = \"2m\"\n"];
        let bare = keys
            .iter()
            .fold(lines.to_owned(), |bare, key| bare.replace(key, ""));
        for nat in ["", "nat = \"never\"\n"] {
            let file = bare.replace("nat = \"detect\"\n", &format!("{nat}{key}"));
            let told = folder().lines(&format!("{NODE}{file}"));
            assert_eq!(told.len(), key.lines().count(), "{told:?}");
            assert!(
                told.iter()
                    .all(|told| told.contains("this key applies to tunnels in UDP"))
            );
        }
    }
    let told = only_fault(&FULL[2].replace("\"25s\"", "\"9s\""));
    assert!(told.contains("home_agent.keepalive"), "{told}");
    let told = only_fault(&FULL[2].replace("\"detect\"", "\"sometimes\""));
    assert!(told.contains("home_agent.nat"), "{told}");
}

#[test]
fn what_has_to_be_there_is_asked_for() {
    for (lines, key, problem) in [
        (
            MOBILE_NODE,
            "home_address = \"10.66.0.7\"\n",
            "mobile_node | `home_address` is missing",
        ),
        (
            MOBILE_NODE,
            "home_agent = \"192.0.2.1\"\n",
            "mobile_node | `home_agent` is missing",
        ),
        (
            MOBILE_NODE,
            "interfaces = [\"wlan0\"]\n",
            "mobile_node | `interfaces` is missing",
        ),
        (
            MOBILE_NODE,
            "key = { spi = 4097, secret = \"home.key\" }\n",
            "mobile_node | `key` is missing",
        ),
        (
            MOBILE_NODE,
            "spi = 4097, ",
            "mobile_node.key | `spi` is missing",
        ),
        (
            MOBILE_NODE,
            ", secret = \"home.key\"",
            "mobile_node.key | `secret` is missing",
        ),
        (
            FOREIGN_AGENT,
            "interface = \"wlan0\"\n",
            "foreign_agent | `interface` is missing",
        ),
        (
            FOREIGN_AGENT,
            "address = \"198.51.100.2\"\n",
            "foreign_agent | `address` is missing",
        ),
        (
            FULL[1],
            "address = \"192.0.2.1\"\n",
            "foreign_agent.home.office | `address` is missing",
        ),
        (
            FULL[1],
            "home_address = \"10.66.0.7\"\n",
            "foreign_agent.mobile.alice | `home_address` is missing",
        ),
        (
            FULL[1],
            "address = \"203.0.113.2\"\n",
            "foreign_agent.neighbour.bar | `address` is missing",
        ),
        (
            FULL[1],
            "key = { spi = 4101, secret = \"home.key\", algorithm = \"hmac-md5\" }\n",
            "foreign_agent.neighbour.bar | `key` is missing",
        ),
        (
            HOME_AGENT,
            "address = \"192.0.2.1\"\n",
            "home_agent | `address` is missing",
        ),
        (
            HOME_AGENT,
            "home_address = \"10.66.0.7\"\n",
            "home_agent.mobile.alice | `home_address` is missing",
        ),
        (
            HOME_AGENT,
            "key = { spi = 4097, secret = \"home.key\" }\n",
            "home_agent.mobile.alice | `key` is missing",
        ),
    ] {
        assert!(lines.contains(key), "{key}");
        let told = only_fault(&lines.replacen(key, "", 1));
        assert!(told.contains(&format!("{problem} | add `")), "{told}");
    }
    let told = only_fault("[home_agent]\naddress = \"192.0.2.1\"\n");
    assert!(
        told.contains("home_agent | this home agent has no mobile nodes"),
        "{told}"
    );
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_known_one() {
    for (lines, known) in [
        (format!("{MOBILE_NODE}livetime = \"5m\"\n"), "lifetime"),
        (format!("{FOREIGN_AGENT}advertize = \"1s\"\n"), "advertise"),
        (HOME_AGENT.replace("key =", "keys ="), "key"),
        (
            MOBILE_NODE.replace("key\" }", "key\", algoritm = \"hmac-md5\" }"),
            "algorithm",
        ),
    ] {
        let faults = folder().lines(&format!("{NODE}{lines}"));
        let fix = format!("unknown key | did you mean `{known}`?");
        assert!(faults.iter().any(|told| told.contains(&fix)), "{faults:#?}");
    }
}

/// RFC 5944 section 1.6 reserves 0 to 255.
#[test]
fn a_reserved_number_is_refused() {
    for number in ["0", "255", "4294967296", "-1"] {
        let told = only_fault(&MOBILE_NODE.replace("4097", number));
        assert!(
            told.contains("mobile_node.key.spi | is not between 256 and 4294967295"),
            "{told}"
        );
    }
    for number in ["256", "0x1001", "4294967295"] {
        load(&MOBILE_NODE.replace("4097", number));
    }
}

#[test]
fn what_no_host_can_have_is_refused() {
    for (bad, problem) in [
        ("2001:db8::1", "is not an IPv4 address"),
        ("gw.example.net", "is not an IPv4 address"),
        ("0.0.0.0", "cannot be the address of a host"),
        ("127.0.0.1", "cannot be the address of a host"),
        ("224.0.0.11", "cannot be the address of a host"),
        ("255.255.255.255", "cannot be the address of a host"),
    ] {
        for (lines, good) in [
            (MOBILE_NODE, "10.66.0.7"),
            (MOBILE_NODE, "192.0.2.1"),
            (FOREIGN_AGENT, "198.51.100.2"),
            (HOME_AGENT, "192.0.2.1"),
            (HOME_AGENT, "10.66.0.7"),
            (FULL[0], "198.51.100.2"),
        ] {
            let told = only_fault(&lines.replace(good, bad));
            assert!(told.contains(problem), "{told}");
        }
    }
    let told = only_fault(&MOBILE_NODE.replace("192.0.2.1", "10.66.0.7"));
    assert!(
        told.contains("mobile_node.home_agent | this is our own"),
        "{told}"
    );
}

#[test]
fn limits_are_kept_and_told() {
    for (lines, key, limits) in [
        (
            format!("{MOBILE_NODE}lifetime = \"9s\"\n"),
            "mobile_node.lifetime",
            "10s and 65534s",
        ),
        (
            format!("{MOBILE_NODE}lifetime = \"19h\"\n"),
            "mobile_node.lifetime",
            "10s and 65534s",
        ),
        (
            format!("{FOREIGN_AGENT}lifetime = \"0s\"\n"),
            "foreign_agent.lifetime",
            "10s and 65534s",
        ),
        (
            format!("{FOREIGN_AGENT}advertise = \"99ms\"\n"),
            "foreign_agent.advertise",
            "100ms and 10m",
        ),
        (
            format!("{FOREIGN_AGENT}visitors = 0\n"),
            "foreign_agent.visitors",
            "1 and 10000",
        ),
        (
            FULL[2].replace("bindings = 3", "bindings = 9"),
            "home_agent.bindings",
            "1 and 8",
        ),
    ] {
        let told = only_fault(&lines);
        assert!(
            told.contains(&format!("{key} | is not between {limits} | ")),
            "{told}"
        );
    }
}

#[test]
fn devices_are_named_once_and_there_is_one() {
    for (bad, problem) in [
        ("[]", "mobile_node.interfaces | is empty"),
        (
            "[\"wlan0\", \"wlan1\", \"wlan0\"]",
            "mobile_node.interfaces[2] | `wlan0` is listed twice",
        ),
        (
            "[\"a name that is too long\"]",
            "mobile_node.interfaces[0] | `a name that is too long` cannot be",
        ),
        ("\"wlan0\"", "mobile_node.interfaces | expected a list"),
    ] {
        let told = only_fault(&MOBILE_NODE.replace("[\"wlan0\"]", bad));
        assert!(told.contains(problem), "{told}");
    }
}

#[test]
fn a_word_that_is_not_known_is_told_with_those_that_are() {
    let told = only_fault(&FULL[0].replacen("hmac-md5", "hmac-md4", 1));
    assert!(
        told.contains("mobile_node.key.algorithm | `hmac-md4` is not known"),
        "{told}"
    );
    let told = only_fault(&format!("{MOBILE_NODE}replay = \"nonce\"\n"));
    assert!(
        told.contains("mobile_node.replay | `nonce` is not known | did you mean `nonces`?"),
        "{told}"
    );
}

#[test]
fn two_with_one_address_are_told() {
    for (lines, kind, address, told_as) in [
        (
            FULL[0],
            "mobile_node.agent",
            "address = \"198.51.100.2\"",
            "`agent.cafe`",
        ),
        (
            FULL[1],
            "foreign_agent.home",
            "address = \"192.0.2.1\"",
            "`home.office`",
        ),
        (
            FULL[1],
            "foreign_agent.neighbour",
            "address = \"203.0.113.2\"\nkey = { spi = 4097, secret = \"home.key\" }",
            "`neighbour.bar`",
        ),
        (
            FULL[2],
            "home_agent.foreign",
            "address = \"198.51.100.2\"",
            "`foreign.cafe`",
        ),
    ] {
        let told = only_fault(&format!("{lines}[{kind}.twin]\n{address}\n"));
        let problem = format!("{kind}.twin.address | {told_as} has the same address");
        assert!(told.contains(&problem), "{told}");
    }
    let key = "key = { spi = 4097, secret = \"home.key\" }\n";
    for lines in [FULL[1], FULL[2]] {
        let kind = if lines == FULL[1] {
            "foreign_agent"
        } else {
            "home_agent"
        };
        let twin = format!("{lines}[{kind}.mobile.twin]\nhome_address = \"10.66.0.7\"\n{key}");
        let told = only_fault(&twin);
        assert!(
            told.contains("`mobile.alice` has the same address"),
            "{told}"
        );
    }
}

#[test]
fn a_foreign_agent_is_no_neighbour_of_itself() {
    let told = only_fault(&FULL[1].replace("203.0.113.2", "198.51.100.2"));
    let problem = "foreign_agent.neighbour.bar.address | this is our own `address`";
    assert!(told.contains(problem), "{told}");
}

#[test]
fn a_secret_is_a_file_that_nobody_else_reads_and_is_never_repeated() {
    let folder = folder();
    folder.key("home.key", b"0123456789abcdef", 0o640);
    let told = folder.lines(&format!("{NODE}{MOBILE_NODE}"));
    assert!(
        told[0].contains("mobile_node.key.secret | the file is accessible to users other"),
        "{told:?}"
    );
    folder.key("home.key", b"\n", 0o600);
    let told = folder.lines(&format!("{NODE}{MOBILE_NODE}"));
    assert!(
        told[0].contains("mobile_node.key.secret | the key is empty"),
        "{told:?}"
    );
    for lines in [
        MOBILE_NODE.replace("home.key", "correct horse battery"),
        format!("{NODE}[mobile_node]\nkey.secret = \"correct horse battery\"\n"),
        format!(
            "{MOBILE_NODE}[mobile_node.agent.a]\nkey = {{ secret = \"correct horse battery\" }}\n"
        ),
    ] {
        let shown = folder.faults(&format!("{NODE}{lines}")).to_string();
        assert!(!shown.contains("horse"), "{shown}");
    }
}

#[test]
fn a_secret_that_could_be_guessed_is_warned_of() {
    let folder = folder();
    folder.key("home.key", b"fifteen octets!\n", 0o600);
    for (lines, table) in [
        (MOBILE_NODE, "mobile_node"),
        (HOME_AGENT, "home_agent.mobile.alice"),
    ] {
        let config = folder.load(&format!("{NODE}{lines}")).unwrap();
        let table = table.to_owned();
        assert_eq!(
            config.warnings,
            [Warning::WeakSecret {
                table,
                why: "the key has 15 octets, fewer than 16: it could be guessed offline".to_owned()
            }]
        );
    }
    // Every table that may have the key.
    let warned = FULL.map(|lines| {
        let config = folder.load(&format!("{NODE}{lines}")).unwrap();
        config.warnings.len()
    });
    assert_eq!(warned, [2, 3, 2]);
    for (key, warned) in [(&b"9f86d081884c7d65"[..], 0), (b"passwordpassword", 1)] {
        folder.key("home.key", key, 0o600);
        let config = folder.load(&format!("{NODE}{MOBILE_NODE}")).unwrap();
        assert_eq!(config.warnings.len(), warned);
    }
}

/// Packets for the home address would be routed by Mobile IP, and not into the tunnel that should
/// protect them.
#[test]
fn a_home_address_is_outside_of_tunnels() {
    let peer = OFFICE.strip_prefix(NODE).unwrap();
    for (lines, key) in [
        (MOBILE_NODE, "mobile_node.home_address"),
        (HOME_AGENT, "home_agent.mobile.alice.home_address"),
    ] {
        load(&format!("{lines}{peer}"));
        let inside = peer.replace("10.8.0.0/16", "10.66.0.0/24");
        let told = only_fault(&format!("{lines}{inside}"));
        assert!(
            told.contains(&format!(
                "{key} | this home address is in `remote` of [peer.office]"
            )),
            "{told}"
        );
        let narrow = peer.replace("10.8.0.0/16", "10.66.0.7/32 tcp 443");
        load(&format!("{lines}{narrow}"));
        let tunnel = "[tunnel]\naddresses = [\"10.66.0.7/32\"]\n";
        let told = only_fault(&format!("{lines}{peer}{tunnel}"));
        assert!(
            told.contains(&format!(
                "{key} | this home address is also in `addresses` of [tunnel]"
            )),
            "{told}"
        );
        let waiting = peer.replace("remote = [\"10.8.0.0/16\"]", "pool = \"all\"");
        let waiting = waiting.replace("address = \"192.0.2.1\"\n", "");
        let pool = "[pool.all]\naddresses = [\"10.66.0.0/24\"]\n";
        let told = only_fault(&format!("{lines}{waiting}{pool}"));
        assert!(
            told.contains(&format!("{key} | [pool.all] could lease this home address")),
            "{told}"
        );
    }
}

#[test]
fn the_device_of_the_tunnel_is_wired_and_a_foreign_agent_s() {
    let divert = "[divert]\nwired = \"strata-mobile\"\nwireless = \"wlan0\"\n";
    assert_eq!(load(&format!("{FOREIGN_AGENT}{divert}")).warnings, []);
    for lines in ["", MOBILE_NODE, HOME_AGENT] {
        let told = only_fault(&format!("{lines}{divert}"));
        assert!(
            told.contains("divert.wired | `strata-mobile` is only for `wired`"),
            "{told}"
        );
    }
    let swapped = "[divert]\nwired = \"wlan0\"\nwireless = \"strata-mobile\"\n";
    let told = only_fault(&format!("{FOREIGN_AGENT}{swapped}"));
    assert!(told.contains("divert.wireless | "), "{told}");
    for other in [
        divert.replace("strata-mobile", "eth0"),
        divert.replace("wlan0", "wlan1"),
    ] {
        let interface = "wlan0".to_owned();
        let warned = load(&format!("{FOREIGN_AGENT}{other}")).warnings;
        assert_eq!(warned, [Warning::VisitorsNotDiverted { interface }]);
    }
}

#[test]
fn who_has_no_tunnel_may_have_mobile_ip_alone() {
    for lines in [MOBILE_NODE, FOREIGN_AGENT, HOME_AGENT] {
        assert_eq!(load(lines).warnings, []);
    }
}

#[test]
fn every_key_needs_a_restart_and_what_runs_stays_until_then() {
    let folder = folder();
    for (full, changes) in FULL.iter().zip(CHANGES) {
        let load = |text: &str| folder.load(&format!("{NODE}{text}")).unwrap();
        let running = load(full);
        for &(key, from, to) in changes {
            assert!(full.contains(from), "{key}");
            let new = load(&full.replacen(from, to, 1));
            let [change] = &running.diff(&new)[..] else {
                panic!("{key}: {:?}", running.diff(&new));
            };
            assert_eq!((change.key.as_str(), change.effect), (key, Effect::Restart));
            let kept = new.clone().keeping(&running);
            assert_eq!(kept.mobility, running.mobility);
            assert_eq!(kept.diff(&new).len(), 1, "told again the next time");
        }
        let changed: BTreeSet<_> = changes.iter().map(|change| change.0.to_owned()).collect();
        assert_eq!(keys(&running), changed);
    }
}

/// Returns the dotted keys of all settings of Mobile IP.
fn keys(config: &Config) -> BTreeSet<String> {
    let others = sections(&load(&OFFICE[NODE.len()..]));
    let sections = sections(config);
    let ours = sections
        .iter()
        .filter(|section| others.iter().all(|other| other.name != section.name));
    let dotted = ours.flat_map(|section| section.settings.iter().map(|one| section.dotted(one)));
    dotted.collect()
}

#[test]
fn every_key_that_can_be_written_is_compared() {
    for full in FULL {
        let config = load(full);
        let compared = keys(&config);
        for key in config.places.keys() {
            let is_table = compared
                .iter()
                .any(|known| known.starts_with(&format!("{key}.")));
            let known = compared.iter().any(|known| key.starts_with(known.as_str()));
            assert!(
                is_table || known || key.starts_with("node"),
                "{key} is in no setting"
            );
        }
    }
}

#[test]
fn a_table_that_comes_or_goes_needs_a_restart_and_no_secret_is_shown() {
    let folder = folder();
    let load = |text: &str| folder.load(&format!("{OFFICE}{text}")).unwrap();
    let without = load("");
    for (full, tables) in FULL.iter().zip([2, 4, 3]) {
        let with = load(full);
        for (from, to, what) in [
            (&without, &with, What::Added),
            (&with, &without, What::Removed),
        ] {
            let changes = from.diff(to);
            assert_eq!(changes.len(), tables);
            let alike =
                |change: &crate::Change| (&change.what, change.effect) == (&what, Effect::Restart);
            assert!(changes.iter().all(alike), "{changes:?}");
        }
    }
    let old = load(FULL[0]);
    folder.key("home.key", b"5994471abb01112afcc18159f6cc74b4\n", 0o600);
    let changes = old.diff(&load(FULL[0]));
    assert!(
        changes
            .iter()
            .all(|change| change.what == What::SecretChanged)
    );
    assert_eq!(changes.len(), 2);
    assert!(!format!("{changes:?}").contains("5994"));
}
