//! Licences for all nodes of a domain.

use super::certificates::folder;
use super::{Folder, OFFICE};
use crate::{Config, Warning};

/// A line of the peer's table at the end that connects.
const ADDRESS: &str = "address = \"192.0.2.1\"\n";

const SAT: &str = "{ node = \"*.sat.example.net\", zones = [\"headers\"], right = \"read\" }";

/// Returns the configuration of the end that accepts the tunnel.
fn with(licences: &str, more: &str) -> String {
    let office = OFFICE.replace(ADDRESS, "");
    format!("{office}zones = \"require\"\nlicences = [{licences}]\n{more}")
}

/// Returns the configuration with a certificate of this node.
fn certified(text: &str) -> String {
    let id = "id = \"alice@example.net\"";
    let own = "id = \"gateway.example.net\"\ncert = \"gateway.pem\"\nkey = \"gateway.key\"\n\
        ca = [\"ca.pem\"]";
    text.replacen(id, own, 1)
}

fn read(text: &str) -> Config {
    Folder::new().load(text).unwrap()
}

/// Returns the table of a node of the domain.
fn node(name: &str, lines: &str) -> String {
    format!(
        "[licensed.{name}]\nid = \"{name}.sat.example.net\"\naddress = \"192.0.2.7\"\n{lines}\n"
    )
}

fn members(config: &Config) -> Vec<&str> {
    let peer = &config.peers[0];
    let domains = peer.zones.domains.iter();
    let members = domains.flat_map(|domain| domain.members(config, peer));
    members.map(|node| node.party.name.as_str()).collect()
}

#[test]
fn a_domain_is_licensed_without_the_names_of_its_nodes() {
    let config = read(&with(SAT, ""));
    let zones = &config.peers[0].zones;
    assert!(zones.licences.is_empty() && zones.slots.is_empty());
    let [domain] = &zones.domains[..] else {
        panic!("{:?}", zones.domains)
    };
    assert_eq!((domain.most, domain.rights().len()), (4, 1));
    let matches = |node: &str| domain.names().matches(&node.parse().unwrap());
    assert!(matches("fa.sat.example.net") && matches("b.c.SAT.example.net"));
    assert!(!matches("sat.example.net") && !matches("fa.example.net"));
    assert!(members(&config).is_empty());
}

/// A node with a licence by name has that one alone.
#[test]
fn the_nodes_of_a_domain_are_those_with_a_table() {
    let licences = format!(
        "{SAT}, {{ node = \"fb.sat.example.net\", zones = [\"headers\"], right = \"read\", at = [\"192.0.2.8\"] }}"
    );
    let tables = [
        node("fa", "ca = \"ca.pem\"\nat = [\"10.3.1.0/24\"]"),
        node("fb", "psk = \"office.psk\""),
        node("fc", "ca = \"ca.pem\""),
        node("other", "psk = \"office.psk\"").replace("other.sat", "other"),
    ];
    let text = certified(&with(&licences, &tables.concat()));
    let config = folder().load(&text).unwrap();
    assert_eq!(members(&config), ["fa", "fc"]);
    let places = config
        .licensed
        .iter()
        .map(|node| node.place()[0].to_string());
    let places: Vec<_> = places.collect();
    assert_eq!(places[0], "10.3.1.0/24");
    assert_eq!(places[2], "192.0.2.7/32");
    let unlicensed = config.warnings.iter().filter_map(|warning| match warning {
        Warning::NodeWithoutLicence { name, .. } => Some(name.as_str()),
        _ => None,
    });
    assert_eq!(unlicensed.collect::<Vec<_>>(), ["other"]);
}

// Refuses: licence-domain
#[test]
fn what_a_domain_cannot_have_is_told_with_the_fix() {
    let changed = |from: &str, to: &str| with(&SAT.replace(from, to), "");
    let two = |other: &str| with(&format!("{SAT}, {}", SAT.replace("*.sat", other)), "");
    let at_most = |number: &str| changed(" }", &format!(", at_most = {number} }}"));
    let many: Vec<_> = (0..33)
        .map(|number| format!("10.3.{number}.0/24"))
        .collect();
    for (text, told) in [
        (
            changed("\"headers\"]", "\"headers\", \"payload\"]"),
            "by its name only",
        ),
        (changed("*.sat", "*@sat"), "or a domain"),
        (changed("*.sat.example.net", "*"), "or a domain"),
        (
            changed(" }", ", at = [\"192.0.2.7\"] }"),
            "in the [licensed.NAME]",
        ),
        (at_most("0"), "1"),
        (at_most("17"), "16"),
        (
            changed(" }", ", at_most = 3 }").replace("*.sat", "fa.sat"),
            "is for one node",
        ),
        (two("*.leo.sat"), "license one of the two domains"),
        (
            with(
                &format!("{SAT}, {}", SAT.replace(" }", ", at_most = 3 }")),
                "",
            ),
            "have different `at_most`",
        ),
        (with(SAT, "handover = \"dkm\"\n"), "\"push\" or \"pkd\""),
        (
            with(SAT, &node("fa", "psk = \"office.psk\"")),
            "`psk` does not show that",
        ),
        (
            with(SAT, &node("fa", "ca = \"ca.pem\"")).replace("192.0.2.7", "fa.example.net"),
            "its address is a name",
        ),
        (with(SAT, &node("fa", "")), "any trusted CA may name it"),
        (
            with(SAT, &node("fa", "ca = \"ca.pem\"\nat = []")),
            "would never get keys",
        ),
        (
            with(SAT, &node("fa", &format!("ca = \"ca.pem\"\nat = {many:?}"))),
            "at most 32",
        ),
    ] {
        let faults = folder().lines(&certified(&text));
        let found = faults.iter().any(|fault| fault.contains(told));
        assert!(found && faults.len() == 1, "{told}: {faults:#?}\n{text}");
    }
}

#[test]
fn a_place_of_a_node_that_is_licensed_by_its_name_is_told() {
    let named = SAT.replace("*.sat", "fa.sat");
    let table = node("fa", "psk = \"office.psk\"\nat = [\"10.3.1.0/24\"]");
    let unused = |licences: &str, table: &str| {
        let text = certified(&with(licences, table));
        let config = folder().load(&text).unwrap();
        let warnings = config.warnings.iter();
        let unused = warnings.filter(|warning| matches!(warning, Warning::PlaceUnused { .. }));
        unused.map(ToString::to_string).collect::<Vec<_>>()
    };
    // Also beside the domain, whose licence does not hold for the node then.
    let at = named.replace(" }", ", at = [\"192.0.2.8\"] }");
    for licences in [named, format!("{SAT}, {at}")] {
        let told = unused(&licences, &table);
        assert!(
            told.len() == 1 && told[0].contains("by its name"),
            "{told:?}"
        );
    }
    let table = table.replace("psk = \"office.psk\"", "ca = \"ca.pem\"");
    assert_eq!(unused(SAT, &table), [""; 0]);
}

#[test]
fn a_domain_without_a_table_is_told_where_keys_are_distributed() {
    let told = |text: &str| {
        let warnings = read(text).warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let found = told(&with(SAT, ""));
    let words = "name *.sat.example.net, but no [licensed.NAME] is a node of it";
    assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
    let connects = with(SAT, "").replacen("id = \"gw", &format!("{ADDRESS}id = \"gw"), 1);
    assert_eq!(told(&connects), [""; 0]);
}

/// The end that accepts the tunnel distributes the keys: a table at the other end would take the
/// place of the slots for all nodes of the domain.
// Refuses: licence-domain
#[test]
fn the_end_that_connects_has_no_table_of_a_node_of_the_domain() {
    let table = node("fa", "ca = \"ca.pem\"");
    let text = certified(&with(SAT, &table));
    assert!(folder().load(&text).is_ok());
    let connects = text.replacen("id = \"gw", &format!("{ADDRESS}id = \"gw"), 1);
    let faults = folder().lines(&connects);
    let told = |fault: &String| {
        let words = [
            "licensed.fa",
            "[peer.office] has an `address`",
            "by its name",
        ];
        words.iter().all(|words| fault.contains(words))
    };
    assert!(faults.len() == 1 && told(&faults[0]), "{faults:#?}");
    let at = SAT
        .replace("*.sat", "fa.sat")
        .replace(" }", ", at = [\"192.0.2.8\"] }");
    let named = connects.replace(SAT, &format!("{SAT}, {at}"));
    let config = folder().load(&named).unwrap();
    assert!(members(&config).is_empty());
}

/// Two nodes may have the first zone alone: one by its name, and one of the domain.
#[test]
fn a_node_of_a_domain_shares_no_key_with_one_that_is_licensed_everywhere() {
    let everywhere = SAT.replace("*.sat", "fa");
    let faults = Folder::new().lines(&with(&format!("{everywhere}, {SAT}"), ""));
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].contains("would share the key of `headers`"),
        "{faults:?}"
    );
}
