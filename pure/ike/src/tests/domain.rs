//! Licences for all nodes of a domain: each gets a slot of its own, offered and agreed on by name.

use super::attack::ask_sealed;
use super::children::rekey;
use super::pair::{Pair, Side, fit, keys_of};
use super::slot::{close, open};
use super::zones::zoned;
use super::*;
use crate::exchange::notify;
use crate::{Domain, Event, Slot, slot_name};
use model::{Identity, Kem, TrafficSelector, Wildcard};
use std::collections::BTreeSet;
use wire::ike::{ExchangeType, NotifyType, Payload, TrafficSelectors, encode_nodes, encode_place};

const SAT: &str = "*.sat.example.net";
const A: &str = "a.sat.example.net";
const B: &str = "b.sat.example.net";
const C: &str = "c.sat.example.net";
const OUTSIDE: &str = "a.other.example.net";

/// Where every node is.
const PLACE: &str = "10.3.0.0/24";

fn identity(text: &str) -> Identity {
    text.parse().unwrap()
}

/// Returns the configuration with a licence for up to `most` nodes of the domain.
fn with_domain(mut config: Config, most: u8) -> Config {
    zones_of(&mut config).licences.clear();
    let zones = zones_of(&mut config).clone();
    let domain = Domain {
        names: Wildcard::read(&identity(SAT)).unwrap(),
        named: BTreeSet::new(),
        rights: vec![(ZoneId::DESIGNATED, Right::Read)],
    };
    let slot = |number| Slot::of_domain(&identity(SAT), number, domain.clone(), &zones);
    config.peers[0].slots = (1..=most).map(slot).collect();
    config
}

/// Returns the configuration with the domain, and with licences of a node by its name.
fn with_domain_and(config: Config, node: &str, licences: Vec<Licence>) -> Config {
    let mut config = with_domain(config, 2);
    let zones = zones_of(&mut config).clone();
    for slot in &mut config.peers[0].slots {
        slot.domain.as_mut().unwrap().named = [identity(node)].into();
    }
    let named = Slot::new(identity(node), licences, &zones);
    config.peers[0].slots.insert(0, named);
    config
}

/// Returns the configuration with these nodes by name, each with its licences and its place.
fn with_nodes(mut config: Config, nodes: &[&str], licences: fn(&str) -> Vec<Licence>) -> Config {
    zones_of(&mut config).licences.clear();
    let zones = zones_of(&mut config).clone();
    let slot = |node: &&str| Slot {
        place: vec![prefix(PLACE)],
        ..Slot::new(identity(node), licences(node), &zones)
    };
    config.peers[0].slots = nodes.iter().map(slot).collect();
    config
}

fn reads_headers(node: &str) -> Vec<Licence> {
    vec![licence(node)]
}

fn reads_all(node: &str) -> Vec<Licence> {
    let payload = Licence {
        zone: ZoneId(2),
        ..licence(node)
    };
    vec![licence(node), payload]
}

/// Returns a mobile node with the domain, and a gateway with these nodes.
fn connected(most: u8, nodes: &[&str]) -> Pair {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let right = with_nodes(right, nodes, reads_headers);
    let mut pair = Pair::new(with_domain(left, most), right);
    pair.connect();
    pair
}

fn slot(number: u8) -> String {
    format!("{}#{number}", slot_name([&identity(SAT)]))
}

/// Returns the licences of the mobile node's slot with this number, if it is up.
fn licences(pair: &Pair, number: u8) -> Option<&[Licence]> {
    let child = pair.left.named(Some(&slot(number)))?;
    Some(&child.agreement.as_ref()?.licences)
}

fn by_name(node: &str) -> String {
    slot_name([&identity(node)])
}

/// Opens a slot of the gateway, by its name.
fn open_named(pair: &mut Pair, name: &str) {
    let opened = pair.with(Side::Right, |engine, now| {
        engine.open_child(peer_id("mobile"), name, now)
    });
    assert_eq!(opened, Ok(()));
    pair.settle();
}

/// Applies another configuration of one end, and waits.
fn change(pair: &mut Pair, side: Side, config: Config) {
    pair.with(side, |engine, now| engine.reconfigure(config, now));
    pair.run_for(Duration::from_secs(10));
}

/// Returns the places that the mobile node has learned, in order.
fn places(pair: &Pair) -> Vec<(String, Vec<TrafficSelector>)> {
    let placed = pair.left.events.iter().filter_map(|event| match event {
        Event::Placed { node, place, .. } => Some((node.to_string(), place.clone())),
        _ => None,
    });
    placed.collect()
}

/// Invariant 1: the keys of each node are its own. Invariant 4: both ends name it.
#[test]
fn each_node_of_a_domain_has_a_slot_with_its_name_and_keys_of_its_own() {
    let mut pair = connected(2, &[A, B]);
    open(&mut pair, A);
    open(&mut pair, B);
    assert_eq!(licences(&pair, 1), Some(&[licence(A)][..]));
    assert_eq!(licences(&pair, 2), Some(&[licence(B)][..]));
    let mut keys = Vec::new();
    for (number, node) in [(1, A), (2, B)] {
        let left = pair.left.named(Some(&slot(number))).unwrap();
        assert!(fit(left, pair.right.named(Some(&by_name(node))).unwrap()));
        keys.extend([&left.inbound, &left.outbound].map(keys_of).concat());
    }
    let all = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), all);
    let place = vec![prefix(PLACE)];
    let expected = [A, B].map(|node| (node.to_owned(), place.clone()));
    assert_eq!(places(&pair), expected);
}

/// The pattern is in no message: only the end that names the nodes requests their slots.
#[test]
fn a_slot_of_a_domain_is_not_requested_by_the_end_that_names_no_node() {
    let mut pair = connected(1, &[A]);
    let before = pair.sent.len();
    let opened = pair.with(Side::Left, |engine, now| {
        engine.open_child(peer_id("gateway"), &slot(1), now)
    });
    assert_eq!(opened, Ok(()));
    pair.settle();
    assert_eq!((pair.sent.len(), pair.left.children().len()), (before, 1));
}

/// A gateway with bad will, or an offer that crosses the end of the slot before it.
#[test]
fn a_node_has_one_slot_of_its_domain_however_often_it_is_offered() {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut right = with_nodes(right, &[A, B], reads_headers);
    let twin = Slot {
        name: "@twin".to_owned(),
        ..right.peers[0].slots[0].clone()
    };
    right.peers[0].slots.push(twin);
    let mut pair = Pair::new(with_domain(left, 2), right);
    pair.connect();
    open(&mut pair, A);
    open_named(&mut pair, "@twin");
    assert_eq!(pair.left.children().len(), 2);
    let told = pair.right.refusals().join("");
    assert!(told.contains("NO_ADDITIONAL_SAS"), "{told}");
    open(&mut pair, B);
    assert_eq!(licences(&pair, 2), Some(&[licence(B)][..]));
}

/// Two offers at once, each with an additional key exchange of its own.
// Recovers: licence-domain
#[test]
fn slots_that_come_up_at_once_are_apart() {
    for seed in 0..20 {
        let (left, right) = zoned(Stance::Require, Stance::Require);
        let mut left = with_domain(left, 2);
        let mut right = with_nodes(right, &[A, B], reads_headers);
        for config in [&mut left, &mut right] {
            config.peers[0].kems = vec![Some(Kem::MlKem768)];
            config.peers[0].window = 4;
        }
        let mut pair = Pair::seeded(left, right, seed);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(5));
        pair.hop = pair.hop.losing(100).repeating(200).delaying(200);
        pair.with(Side::Right, |engine, now| {
            for node in [A, B] {
                let opened = engine.open_child(peer_id("mobile"), &by_name(node), now);
                assert_eq!(opened, Ok(()));
            }
        });
        pair.run_for(Duration::from_secs(200));
        let mut both = [1, 2].map(|number| licences(&pair, number).map(<[_]>::to_vec));
        both.sort();
        let expected = [A, B].map(|node| Some(vec![licence(node)]));
        assert_eq!(both, expected, "seed {seed}");
    }
}

/// The mobile node is told the place with an offer, so another place is another offer.
#[test]
fn a_node_with_another_place_is_offered_again() {
    let mut pair = connected(1, &[A]);
    open(&mut pair, A);
    let spi = |pair: &Pair| pair.left.named(Some(&slot(1))).unwrap().inbound.spi;
    let before = spi(&pair);
    let (_, right) = zoned(Stance::Require, Stance::Require);
    let mut right = with_nodes(right, &[A], reads_headers);
    right.peers[0].slots[0].place = vec![prefix("10.4.0.0/24")];
    change(&mut pair, Side::Right, right.clone());
    assert_ne!(spi(&pair), before);
    let told = [PLACE, "10.4.0.0/24"].map(|place| (A.to_owned(), vec![prefix(place)]));
    assert_eq!(places(&pair), told);
    // Control: the same place again.
    let before = spi(&pair);
    change(&mut pair, Side::Right, right);
    assert_eq!(spi(&pair), before);
}

// Refuses: licence-domain
#[test]
fn a_node_that_the_gateway_licenses_by_its_name_is_refused_and_told() {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut right = with_nodes(right, &[A], reads_headers);
    right.peers[0].slots[0].place.clear();
    let mut pair = Pair::new(with_domain(left, 2), right);
    pair.connect();
    open(&mut pair, A);
    assert_eq!(pair.left.children().len(), 1);
    let told = pair.left.refusals().join("");
    assert!(told.contains("read without its place"), "{told}");
    assert!(places(&pair).is_empty());
}

/// What a licence by name says about a node, a domain does not widen.
// Refuses: licence-domain
#[test]
fn a_node_that_is_licensed_by_its_name_has_no_rights_of_a_domain() {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut left = with_domain(left, 2);
    let writes = vec![(ZoneId::DESIGNATED, Right::Write)];
    for slot in &mut left.peers[0].slots {
        let domain = slot.domain.as_mut().unwrap();
        domain.rights.clone_from(&writes);
        domain.named = [identity(A)].into();
        slot.zones.licences = vec![licence(A)];
    }
    let may_write = |node: &str| {
        let right = Right::Write;
        vec![Licence {
            right,
            ..licence(node)
        }]
    };
    let mut pair = Pair::new(left, with_nodes(right, &[A, B], may_write));
    pair.connect();
    open(&mut pair, A);
    assert_eq!(pair.left.children().len(), 1);
    // Control: one that is licensed by the domain alone.
    open(&mut pair, B);
    assert_eq!(licences(&pair, 1), Some(&may_write(B)[..]));
}

/// A reload may name a node whose slot is up: from then on it has the rights of that licence, and
/// the place that the policy names. Another node keeps its slot.
// Refuses: licence-domain
#[test]
fn a_node_that_is_named_by_a_reload_loses_the_slot_of_its_domain() {
    let payload = |node: &str| Licence {
        zone: ZoneId(2),
        ..licence(node)
    };
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let right = with_nodes(right, &[A, B], reads_all);
    let mut pair = Pair::new(with_domain(left.clone(), 2), right);
    pair.connect();
    open(&mut pair, A);
    open(&mut pair, B);
    let spi = |pair: &Pair| pair.left.named(Some(&slot(2))).unwrap().inbound.spi;
    let (other, told) = (spi(&pair), places(&pair));
    let named = with_domain_and(left.clone(), A, vec![payload(A)]);
    change(&mut pair, Side::Left, named);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(licences(&pair, 1), None);
    let own = pair.left.named(Some(&by_name(A))).unwrap();
    assert_eq!(own.agreement.as_ref().unwrap().licences, [payload(A)]);
    assert_eq!(places(&pair), told);
    // It is a node of the domain again.
    change(&mut pair, Side::Left, with_domain(left, 2));
    pair.run_for(Duration::from_secs(60));
    assert_eq!(licences(&pair, 1), Some(&[licence(A)][..]));
    assert_eq!(spi(&pair), other);
}

/// One of several nodes that share a slot by their names is not offered as a node of the domain.
// Refuses: licence-domain
#[test]
fn a_node_that_shares_a_slot_by_its_name_has_none_of_the_domain() {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut left = with_domain_and(left, A, vec![licence(A)]);
    let shared = &mut left.peers[0].slots[0];
    shared.nodes.insert(identity(OUTSIDE));
    shared.name = slot_name(&shared.nodes);
    let mut pair = Pair::new(left, with_nodes(right, &[A, B], reads_headers));
    pair.connect();
    open(&mut pair, A);
    assert_eq!(pair.left.children().len(), 1);
    // Control: one that no licence names.
    open(&mut pair, B);
    assert_eq!(licences(&pair, 1), Some(&[licence(B)][..]));
}

// Refuses: licence-domain
#[test]
fn a_node_outside_the_domain_gets_no_slot_and_that_is_told() {
    let mut pair = connected(2, &[OUTSIDE, A]);
    open(&mut pair, OUTSIDE);
    assert_eq!(pair.left.children().len(), 1);
    let told = pair.left.refusals().join("");
    assert!(told.contains("let a.other.example.net read, but"), "{told}");
    let told = pair.right.refusals().join("");
    assert!(told.contains("OFFER_REFUSED"), "{told}");
    open(&mut pair, A);
    assert_eq!(licences(&pair, 1), Some(&[licence(A)][..]));
}

// Refuses: licence-domain
#[test]
fn one_more_node_than_may_have_keys_gets_none_until_another_has_lost_them() {
    let mut pair = connected(2, &[A, B, C]);
    for node in [A, B, C] {
        open(&mut pair, node);
    }
    assert_eq!(pair.left.children().len(), 3);
    let told = pair.left.refusals().join("");
    assert!(
        told.contains("let c.sat.example.net read, but 2 nodes"),
        "{told}"
    );
    // The gateway repeats its request.
    close(&mut pair, A);
    assert_eq!(licences(&pair, 1), Some(&[licence(C)][..]));
}

/// An authenticated gateway with bad will asks for more than the domain has.
// Refuses: licence-domain
#[test]
fn a_slot_of_a_domain_gives_a_node_no_other_zone() {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let right = with_nodes(right, &[A], reads_all);
    let mut pair = Pair::new(with_domain(left, 2), right);
    pair.connect();
    open(&mut pair, A);
    assert_eq!(licences(&pair, 1), Some(&[licence(A)][..]));
    let child = pair.right.named(Some(&by_name(A))).unwrap();
    assert_eq!(child.agreement.as_ref().unwrap().licences, [licence(A)]);
}

/// New keys go to the node that had those before, whatever the gateway licenses by then.
// Refuses: licence-domain
#[test]
fn new_keys_of_a_slot_go_to_no_other_node_of_the_domain() {
    for side in [Side::Left, Side::Right] {
        let mut pair = connected(2, &[A]);
        open(&mut pair, A);
        let spi = |pair: &Pair| pair.left.named(Some(&slot(1))).unwrap().inbound.spi;
        let before = spi(&pair);
        let (_, right) = zoned(Stance::Require, Stance::Require);
        let two = |node: &str| vec![licence(node), licence(B)];
        let right = with_nodes(right, &[A], two);
        pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
        let name = match side {
            Side::Left => slot(1),
            Side::Right => by_name(A),
        };
        pair.run_for(Duration::from_secs(120));
        rekey(&mut pair, side, Some(&name));
        pair.run_for(Duration::from_secs(120));
        assert_ne!(spi(&pair), before);
        assert_eq!(licences(&pair, 1), Some(&[licence(A)][..]), "{side:?}");
    }
}

#[test]
fn new_keys_of_a_node_are_made_once() {
    for side in [Side::Left, Side::Right] {
        let mut pair = connected(2, &[A]);
        open(&mut pair, A);
        let name = match side {
            Side::Left => slot(1),
            Side::Right => by_name(A),
        };
        rekey(&mut pair, side, Some(&name));
        pair.run_for(Duration::from_secs(120));
        let rekeyed = |event: &&Event| matches!(event, Event::ChildRekeyed { .. });
        assert_eq!(pair.left.events.iter().filter(rekeyed).count(), 1);
        assert_eq!(licences(&pair, 1), Some(&[licence(A)][..]));
    }
}

/// Offers of the domain itself, of two of its nodes, and of one that is nowhere.
// Refuses: licence-domain
#[test]
fn an_offer_that_is_not_of_one_node_at_its_place_is_refused() {
    let at = |places: &[&str]| {
        let places: Vec<_> = places.iter().map(|place| prefix(place)).collect();
        Some(notify(NotifyType::PLACE, encode_place(&places)))
    };
    let many = vec![PLACE; 33];
    for (nodes, place) in [
        (vec![SAT], at(&[PLACE])),
        (vec![A, B], at(&[PLACE])),
        (vec![A], None),
        (vec![A], at(&[])),
        (vec![A], at(&many)),
        (
            vec![A],
            Some(notify(NotifyType::PLACE, vec![1, 0, 0, 0, 7])),
        ),
    ] {
        let (left, right) = zoned(Stance::Require, Stance::Require);
        let mut pair = Pair::new(left, with_domain(right, 2));
        pair.connect();
        let nodes: Vec<_> = nodes.into_iter().map(identity).collect();
        let selectors = |text| TrafficSelectors(vec![prefix(text)]);
        let proposal = crate::proposal::offer_esp(
            &crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]),
            model::Spi(0x1000_0000),
        );
        let zones = crate::extension::zones::offer(&two_zones(Stance::Require, A));
        let map = wire::ike::encode_zone_map(&zones.unwrap());
        let request = vec![
            Payload::SecurityAssociation(proposal),
            Payload::Nonce(vec![7; 32]),
            Payload::TsInitiator(selectors("10.8.0.2/32")),
            Payload::TsResponder(selectors("10.0.0.0/16")),
            notify(NotifyType::ZONE_MAP, map),
            notify(NotifyType::OFFER, encode_nodes(&nodes)),
        ];
        let request = request.into_iter().chain(place).collect();
        let sa = pair.left.ike();
        let answer = ask_sealed(&mut pair, sa, ExchangeType::CREATE_CHILD_SA, request);
        assert_eq!(
            answer,
            [notify(NotifyType::OFFER_REFUSED, Vec::new())],
            "{nodes:?}"
        );
        assert_eq!(pair.right.children().len(), 1);
    }
}

#[test]
fn a_domain_that_is_not_licensed_any_more_loses_its_slots() {
    let mut pair = connected(2, &[A, B]);
    open(&mut pair, A);
    open(&mut pair, B);
    let (left, _) = zoned(Stance::Require, Stance::Require);
    let left = with_domain(left, 0);
    pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.left.children().len(), 1);
    assert_eq!(pair.right.children().len(), 1);
}

// Recovers: licence-domain
#[test]
fn slots_of_a_domain_come_up_on_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..20 {
        let (left, right) = zoned(Stance::Require, Stance::Require);
        let right = with_nodes(right, &[A, B], reads_headers);
        let mut pair = Pair::seeded(with_domain(left, 2), right, seed);
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(60));
        open(&mut pair, A);
        open(&mut pair, B);
        pair.run_for(Duration::from_secs(120));
        let mut both = [1, 2].map(|number| licences(&pair, number).map(<[_]>::to_vec));
        both.sort();
        let expected = [A, B].map(|node| Some(vec![licence(node)]));
        assert_eq!(both, expected, "seed {seed}");
    }
}
