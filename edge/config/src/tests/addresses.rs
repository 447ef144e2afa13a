//! Assignment of inner addresses.

use super::Folder;
use crate::{Addressing, Config, Routing, Warning};

const GATEWAY: &str = r#"[node]
id = "gw.example.net"
[peer.alice]
id = "alice@example.net"
psk = "alice.psk"
local = ["10.8.0.0/16", "fd00:8::/64"]
pool = "office"
[pool.office]
addresses = ["10.9.0.0/24", "2001:db8:9::/64"]
"#;

const MOBILE: &str = r#"[node]
id = "alice@example.net"
[peer.office]
address = "192.0.2.1"
id = "gw.example.net"
psk = "office.psk"
local = ["dynamic"]
remote = ["10.8.0.0/16"]
"#;

fn load(text: &str) -> Config {
    Folder::new().load(text).unwrap()
}

/// Returns the only fault of a file after a replacement.
fn fault(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    let lines = Folder::new().lines(&text.replacen(from, to, 1));
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.into_iter().next().unwrap()
}

#[test]
fn a_pool_says_what_its_peers_have() {
    let config = load(GATEWAY);
    let alice = &config.peers[0];
    assert_eq!(alice.addressing, Addressing::Lent("office".to_owned()));
    let texts: Vec<_> = alice.remote.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["10.9.0.0/24", "2001:db8:9::/64"]);
    assert_eq!(config.pools[0].lease.as_secs(), 86_400);
    assert_eq!(config.store, std::path::Path::new(crate::DEFAULT_STORE));
    assert_eq!(config.warnings, []);
}

#[test]
fn dynamic_is_asked_for_in_the_families_of_the_other_side() {
    let config = load(MOBILE);
    let office = &config.peers[0];
    assert_eq!(office.addressing, Addressing::Requested);
    let texts: Vec<_> = office.local.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["0.0.0.0/0"]);
    assert!(!office.dns_from_peer);
    assert!(load(&format!("{MOBILE}dns = \"from-peer\"\n")).peers[0].dns_from_peer);
}

#[test]
fn a_pool_that_is_not_there_is_told() {
    assert_eq!(
        fault(GATEWAY, "pool = \"office\"", "pool = \"ofice\""),
        "7:8 peer.alice.pool | there is no [pool.ofice] | did you mean `office`?"
    );
    let none = fault(
        GATEWAY,
        "[pool.office]\naddresses = [\"10.9.0.0/24\", \"2001:db8:9::/64\"]\n",
        "",
    );
    assert!(none.contains("add [pool.office]"), "{none}");
}

#[test]
fn a_peer_has_addresses_of_its_own_or_lent_ones() {
    let both = fault(GATEWAY, "pool =", "remote = [\"10.1.0.2/32\"]\npool =");
    assert!(both.contains("remove `remote`, or `pool`"), "{both}");
    let neither = fault(GATEWAY, "pool = \"office\"\n", "");
    assert!(neither.contains("`remote` is missing"), "{neither}");
    let mixed = fault(MOBILE, "\"dynamic\"", "\"dynamic\", \"10.1.0.2/32\"");
    assert!(
        mixed.contains("cannot be combined with prefixes"),
        "{mixed}"
    );
}

#[test]
fn only_who_connects_asks() {
    let passive = fault(MOBILE, "address = \"192.0.2.1\"\n", "");
    assert!(passive.contains("no `address` to connect to"), "{passive}");
    let active = fault(GATEWAY, "pool =", "address = \"192.0.2.9\"\npool =");
    assert!(active.contains("remove `address`, or `pool`"), "{active}");
}

#[test]
fn name_servers_come_with_an_address() {
    let fixed = MOBILE.replace("\"dynamic\"", "\"10.1.0.2/32\"");
    let alone = fault(&fixed, "local", "dns = \"from-peer\"\nlocal");
    assert!(alone.contains("`dns` of [tunnel]"), "{alone}");
}

#[test]
fn what_a_peer_has_for_ever_is_not_lent_to_others() {
    let bob = "[peer.bob]\nid = \"bob@example.net\"\npsk = \"alice.psk\"\nlocal = [\"10.8.0.0/16\"]\n\
               remote = [\"10.9.0.77/32\"]\n[pool.office]";
    let both = fault(GATEWAY, "[pool.office]", bob);
    assert!(
        both.contains("[pool.office] leases addresses of 10.9.0.0/24"),
        "{both}"
    );
}

#[test]
fn peers_may_share_a_pool_and_a_pool_without_any_is_warned_of() {
    let bob = "[peer.bob]\nid = \"bob@example.net\"\npsk = \"alice.psk\"\nlocal = [\"10.8.0.0/16\", \"::/0\"]\n\
               pool = \"office\"\n[pool.spare]\naddresses = [\"10.10.0.0/24\"]\n[pool.office]";
    let config = load(&GATEWAY.replacen("[pool.office]", bob, 1));
    let name = "spare".to_owned();
    assert_eq!(config.warnings, [Warning::PoolWithoutPeer { name }]);
}

// Refuses: resume
#[test]
fn tickets_by_value_and_limits_that_are_counted_are_warned_of() {
    for (limit, expected) in [
        ("clocked = \"2h\"", vec![]),
        ("established = \"2h\"", vec![Warning::TicketsByReference]),
        ("data = \"2MiB\"", vec![Warning::TicketsByReference]),
    ] {
        let text = format!("{GATEWAY}[sessions]\ntickets_by_value = true\n{limit}\n");
        assert_eq!(load(&text).warnings, expected, "{limit}");
    }
}

#[test]
fn a_pool_has_addresses_and_a_bounded_lease() {
    let empty = fault(GATEWAY, "[\"10.9.0.0/24\", \"2001:db8:9::/64\"]", "[]");
    assert!(empty.contains("list at least one prefix"), "{empty}");
    let short = fault(GATEWAY, "[pool.office]", "[pool.office]\nlease = \"59s\"");
    assert!(short.contains("between 1m and"), "{short}");
    let relative = fault(
        GATEWAY,
        "[pool.office]",
        "[store]\nfile = \"leases\"\n[pool.office]",
    );
    assert!(relative.contains("absolute path"), "{relative}");
}

#[test]
fn subnets_are_led_into_the_tunnel_where_the_file_says_so() {
    assert_eq!(load(MOBILE).peers[0].routes, Routing::Remote);
    let split = format!("{MOBILE}routes = \"subnets\"\n");
    assert_eq!(load(&split).peers[0].routes, Routing::Subnets);
    let fixed = fault(&split, "\"dynamic\"", "\"10.1.0.2/32\"");
    assert!(fixed.contains("list those subnets in `remote`"), "{fixed}");
    let held = fault(&split, "routes", "leak = \"never\"\nroutes");
    assert!(held.contains("list the protected subnets in"), "{held}");
}

#[test]
fn a_subnet_that_a_peer_cannot_reach_is_warned_of() {
    let told = |subnets: &str| {
        let pool = format!("[pool.office]\nsubnets = {subnets}");
        load(&GATEWAY.replacen("[pool.office]", &pool, 1)).warnings
    };
    assert_eq!(told("[\"10.8.1.0/24\", \"fd00:8::/64\"]"), []);
    let outside = |subnet: &str| Warning::SubnetOutside {
        peer: "alice".to_owned(),
        subnet: subnet.to_owned(),
    };
    assert_eq!(
        told("[\"10.0.0.0/8\", \"10.8.1.0/24\", \"192.0.2.0/24\"]"),
        [outside("10.0.0.0/8"), outside("192.0.2.0/24")]
    );
}

// Refuses: split-routes
#[test]
fn a_list_of_subnets_is_neither_empty_nor_without_end() {
    let with = |subnets: &str| {
        let pool = format!("[pool.office]\nsubnets = {subnets}");
        fault(GATEWAY, "[pool.office]", &pool)
    };
    let empty = with("[]");
    assert!(empty.contains("list at least one prefix"), "{empty}");
    let many: Vec<_> = (0..257)
        .map(|n| format!("\"10.8.0.{}/32\"", n % 256))
        .collect();
    let long = with(&format!("[{}]", many.join(", ")));
    assert!(long.contains("at most 256"), "{long}");
}
