//! Licences that apply in one place only.

use super::{Folder, OFFICE};
use crate::{Handover, Slot, ZonePolicy};
use std::net::IpAddr;

fn with(lines: &str) -> String {
    format!("{OFFICE}zones = \"require\"\n{lines}")
}

fn zones(lines: &str) -> ZonePolicy {
    let config = Folder::new().load(&with(lines));
    config.unwrap().peers.remove(0).zones.clone()
}

fn fault(text: &str) -> String {
    let faults = Folder::new().lines(text);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    faults.into_iter().next().unwrap()
}

fn licence(node: &str, at: &str) -> String {
    format!("{{ node = \"{node}\", zones = [\"headers\"], right = \"read\"{at} }}")
}

fn covers(slot: &Slot, address: &str) -> bool {
    let address: IpAddr = address.parse().unwrap();
    slot.at.iter().any(|at| at.contains(address, 0, None))
}

#[test]
fn a_licence_with_a_place_is_none_that_holds_everywhere() {
    let (here, there) = (
        licence("fa.example.net", ", at = [\"198.51.100.2\"]"),
        licence(
            "fb.example.net",
            ", at = [\"203.0.113.0/24\", \"2001:db8::/64\"]",
        ),
    );
    let zones = zones(&format!("licences = [{here}, {there}]\n"));
    assert!(zones.licences.is_empty());
    let nodes: Vec<_> = zones
        .slots
        .iter()
        .map(|slot| slot.node.to_string())
        .collect();
    assert_eq!(nodes, ["fa.example.net", "fb.example.net"]);
    assert!(covers(&zones.slots[0], "198.51.100.2"));
    assert!(!covers(&zones.slots[0], "198.51.100.3"));
    assert!(covers(&zones.slots[1], "203.0.113.77"));
    assert!(covers(&zones.slots[1], "2001:db8::1"));
    assert_eq!(zones.handover, Handover::Push);
    assert_eq!(zones.all_licences().count(), 2);
}

#[test]
fn keys_are_handed_over_as_the_file_says() {
    for (word, handover) in [
        ("push", Handover::Push),
        ("pkd", Handover::Pkd),
        ("dkm", Handover::Dkm),
    ] {
        let here = licence("fa.example.net", ", at = [\"198.51.100.2\"]");
        let read = zones(&format!("licences = [{here}]\nhandover = \"{word}\"\n"));
        assert_eq!(read.handover, handover);
        assert_eq!(read.handover.name(), word);
    }
}

// Refuses: handover
#[test]
fn what_makes_no_sense_of_places_is_told_with_the_fix() {
    let at = |places: &str| licence("fa.example.net", &format!(", at = {places}"));
    let everywhere = licence("fa.example.net", "");
    for (lines, words) in [
        (format!("licences = [{}]", at("[]")), "would never apply"),
        (
            format!("licences = [{}]", at("[\"198.51.100.2/24\"]")),
            "198.51.100.0/24",
        ),
        (
            format!(
                "licences = [{}, {}]",
                at("[\"192.0.2.1\"]"),
                at("[\"192.0.2.2\"]")
            ),
            "have different `at`",
        ),
        (
            format!("licences = [{}, {everywhere}]", at("[\"192.0.2.1\"]")),
            "or in none",
        ),
        (
            format!("licences = [{everywhere}]\nhandover = \"push\""),
            "no keys are handed over",
        ),
    ] {
        let told = fault(&with(&format!("{lines}\n")));
        assert!(told.contains(words), "{told}");
    }
}

/// With `holders`, nodes with the same rights share keys, and nodes with different rights do not.
#[test]
fn nodes_that_may_do_the_same_share_keys_where_the_file_says_so() {
    let at = |node: &str, place: &str| licence(node, &format!(", at = [\"{place}\"]"));
    let (a, b) = (
        at("fa.example.net", "192.0.2.1"),
        at("fb.example.net", "192.0.2.2"),
    );
    let writes = at("fc.example.net", "192.0.2.3").replace("read", "write");
    let lines = format!("licences = [{a}, {writes}, {b}]\nhandover = \"pkd\"\n");
    let names = |zones: &ZonePolicy| {
        let groups = zones.groups().into_iter();
        let names = |group: Vec<&Slot>| {
            let names = group.iter().map(|slot| slot.node.to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        groups.map(names).collect::<Vec<_>>()
    };
    let alone = zones(&lines);
    assert_eq!(alone.holders, None);
    assert_eq!(
        names(&alone),
        ["fa.example.net", "fc.example.net", "fb.example.net"]
    );
    let shared = zones(&format!("{lines}holders = 2\n"));
    assert_eq!(shared.holders, Some(2));
    assert_eq!(
        names(&shared),
        ["fa.example.net fb.example.net", "fc.example.net"]
    );
}

/// Returns licences of `count` nodes with the same rights, each in a place of its own.
fn list(count: usize) -> String {
    let at = |number| {
        licence(
            &format!("f{number}.example.net"),
            &format!(", at = [\"192.0.2.{number}\"]"),
        )
    };
    let all: Vec<_> = (1..=count).map(at).collect();
    format!("licences = [{}]\n", all.join(", "))
}

// Refuses: handover-shared
#[test]
fn how_many_share_keys_makes_sense_or_is_told_with_the_fix() {
    let pkd = "handover = \"pkd\"\n";
    for (lines, words) in [
        (format!("{}{pkd}holders = 1\n", list(2)), "2"),
        (format!("{}{pkd}holders = 33\n", list(2)), "32"),
        (format!("{}holders = 2\n", list(2)), "handover = \"pkd\""),
        (
            format!("{}handover = \"dkm\"\nholders = 2\n", list(2)),
            "handover = \"pkd\"",
        ),
        (
            format!("{}handover = \"push\"\nholders = 2\n", list(2)),
            "handover = \"pkd\"",
        ),
        (
            format!("{}{pkd}holders = 2\n", list(1)),
            "no two nodes have the same",
        ),
        (
            format!("{}{pkd}holders = 2\n", list(33)),
            "at most 32 nodes with the same",
        ),
    ] {
        let told = fault(&with(&lines));
        assert!(told.contains(words), "{told}");
    }
    let everywhere = licence("fa.example.net", "");
    let told = fault(&with(&format!("licences = [{everywhere}]\nholders = 2\n")));
    assert!(told.contains("`holders`"), "{told}");
}

const NEIGHBOUR: &str = "[neighbour.fb]\nid = \"fb.example.net\"\npsk = \"office.psk\"\n";

// Refuses: handover-dkm
#[test]
fn a_neighbour_is_one_of_a_node_that_packets_pass() {
    let divert = "[divert]\nwired = \"eth0\"\nwireless = \"wlan0\"\n";
    let load = |address: &str| {
        let text = format!("{OFFICE}{divert}{NEIGHBOUR}{address}");
        let mut adjacent = Folder::new().load(&text).unwrap().adjacent;
        (adjacent.len(), adjacent.remove(0))
    };
    let (count, fb) = load("");
    assert_eq!((count, fb.address), (1, None));
    assert_eq!(fb.party.identity.to_string(), "fb.example.net");
    let (_, fb) = load("address = \"10.4.0.1\"\n");
    assert_eq!(fb.address, Some(IpAddr::from([10, 4, 0, 1]).into()));
    let told = fault(&format!("{OFFICE}{NEIGHBOUR}"));
    assert!(
        told.contains("cannot use the keys of a neighbour"),
        "{told}"
    );
}

/// Each node has keys of its own in its place, so no key is shared. A node that could read
/// everywhere would share all of them.
#[test]
fn nodes_in_places_of_their_own_share_no_key() {
    let at = |node: &str, place: &str| licence(node, &format!(", at = [\"{place}\"]"));
    let (a, b) = (
        at("fa.example.net", "192.0.2.1"),
        at("fb.example.net", "192.0.2.2"),
    );
    assert_eq!(zones(&format!("licences = [{a}, {b}]\n")).slots.len(), 2);
    let everywhere = licence("fc.example.net", "");
    let told = fault(&with(&format!("licences = [{a}, {everywhere}]\n")));
    assert!(told.contains("would share the key of `headers`"), "{told}");
}

#[test]
fn neighbours_are_those_of_a_licensed_node() {
    let node = "[node]\nid = \"fa.example.net\"\n[gateway.gw]\nid = \"gw.example.net\"\npsk = \"office.psk\"\n";
    let divert = "[divert]\nwired = \"eth0\"\nwireless = \"wlan0\"\n";
    let handover = "[handover]\nneighbours = [\"fb.example.net\"]\n";
    let config = Folder::new()
        .load(&format!("{node}{divert}{handover}"))
        .unwrap();
    assert_eq!(config.neighbours, ["fb.example.net".parse().unwrap()]);
    let told = fault(&format!("{node}{handover}"));
    assert!(told.contains("without [divert]"), "{told}");
    let many: Vec<_> = (0..33).map(|n| format!("\"n{n}.example.net\"")).collect();
    let many = format!("[handover]\nneighbours = [{}]\n", many.join(", "));
    let told = fault(&format!("{node}{divert}{many}"));
    assert!(told.contains("at most 32"), "{told}");
}

/// A hand-over of keys has room for `MAX_LICENCES` of `wire`.
#[test]
fn with_dkm_there_are_no_more_licences_than_a_node_can_be_told() {
    assert_eq!(
        zones(&format!("{}handover = \"dkm\"\n", list(33))).handover,
        Handover::Dkm
    );
    zones(&format!("{}handover = \"pkd\"\n", list(34)));
    let told = fault(&with(&format!("{}handover = \"dkm\"\n", list(34))));
    assert!(told.contains("33 nodes"), "{told}");
}
