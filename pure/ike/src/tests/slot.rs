//! Slots: children for the same traffic, each of which licenses one more node.

use super::attack::ask_sealed;
use super::children::{agree, rekey};
use super::pair::{Pair, Side, keys_of};
use super::zones::zoned;
use super::*;
use crate::exchange::notify;
use crate::slot_name as name;
use crate::{Engine, Event, Slot};
use model::Instant;
use wire::ike::{ExchangeType, NotifyType, Payload, encode_nodes};

const A: &str = "a.example.net";
const B: &str = "b.example.net";

fn slot_of(node: &str) -> String {
    name([&node.parse().unwrap()])
}

fn with_slots(mut config: Config, nodes: &[&str]) -> Config {
    zones_of(&mut config).licences.clear();
    let zones = zones_of(&mut config).clone();
    let slot = |node: &&str| Slot::new(node.parse().unwrap(), [licence(node)], &zones);
    config.peers[0].slots = nodes.iter().map(slot).collect();
    config
}

/// Returns the configuration with one slot that all of these nodes share.
fn with_shared(mut config: Config, nodes: &[&str]) -> Config {
    zones_of(&mut config).licences.clear();
    let zones = zones_of(&mut config).clone();
    let licences = nodes.iter().map(|node| licence(node));
    let nodes = nodes.iter().map(|node| node.parse().unwrap()).collect();
    config.peers[0].slots = vec![Slot::shared(nodes, licences, &zones)];
    config
}

/// Opens the slot that the nodes share from the gateway, and returns its name.
fn open_shared(pair: &mut Pair, nodes: &[&str]) -> String {
    let nodes: Vec<model::Identity> = nodes.iter().map(|node| node.parse().unwrap()).collect();
    let slot = name(&nodes);
    let opened = pair.with(Side::Right, |engine, now| {
        engine.open_child(peer_id("mobile"), &slot, now)
    });
    assert_eq!(opened, Ok(()));
    pair.settle();
    slot
}

fn connected_shared(mobile: &[&str], gateway: &[&str]) -> Pair {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut pair = Pair::new(with_shared(left, mobile), with_shared(right, gateway));
    pair.connect();
    pair
}

/// Returns a mobile node and a gateway with zones, and with slots for these nodes.
pub(crate) fn connected(mobile: &[&str], gateway: &[&str]) -> Pair {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut pair = Pair::new(with_slots(left, mobile), with_slots(right, gateway));
    pair.connect();
    pair
}

/// Opens a node's slot from the gateway.
pub(crate) fn open(pair: &mut Pair, node: &str) {
    let opened = pair.with(Side::Right, |engine, now| {
        engine.open_child(peer_id("mobile"), &slot_of(node), now)
    });
    assert_eq!(opened, Ok(()));
    pair.settle();
}

pub(crate) fn close(pair: &mut Pair, node: &str) {
    let closed = pair.with(Side::Right, |engine, now| {
        engine.close_child(peer_id("mobile"), &slot_of(node), now)
    });
    assert_eq!(closed, Ok(()));
    pair.run_for(Duration::from_secs(10));
}

#[test]
fn a_slot_is_not_there_before_somebody_asks_for_it() {
    let mut pair = connected(&[A, B], &[A, B]);
    assert!(agree(&pair, &[None]));
    open(&mut pair, A);
    assert!(agree(&pair, &[None, Some(&slot_of(A))]));
    open(&mut pair, B);
    assert!(agree(&pair, &[None, Some(&slot_of(A)), Some(&slot_of(B))]));
    close(&mut pair, A);
    assert!(agree(&pair, &[None, Some(&slot_of(B))]));
}

/// An end that has released a slot does not keep the other end from opening it, because the other
/// end may give its node keys as well.
#[test]
fn a_slot_that_is_released_may_be_made_by_the_other_end() {
    let mut pair = connected(&[A], &[A]);
    let released = |pair: &mut Pair, release: fn(&mut Engine, &str, Instant)| {
        pair.with(Side::Right, |engine, now| release(engine, &slot_of(A), now));
        pair.run_for(Duration::from_secs(10));
        assert!(agree(pair, &[None]));
    };
    let asked = |pair: &mut Pair| {
        pair.with(Side::Left, |engine, now| {
            engine.open_child(peer_id("gateway"), &slot_of(A), now)
        })
    };
    open(&mut pair, A);
    released(&mut pair, |engine, slot, now| {
        engine.release_child(peer_id("mobile"), slot, now).unwrap();
    });
    assert_eq!(asked(&mut pair), Ok(()));
    pair.settle();
    assert!(agree(&pair, &[None, Some(&slot_of(A))]));
    // Control: a slot that is closed is refused.
    released(&mut pair, |engine, slot, now| {
        engine.close_child(peer_id("mobile"), slot, now).unwrap();
    });
}

/// A slot that comes up after its release does not stay either.
#[test]
fn a_slot_that_is_released_while_it_is_asked_for_does_not_stay() {
    let mut pair = connected(&[A], &[A]);
    pair.with(Side::Right, |engine, now| {
        engine
            .open_child(peer_id("mobile"), &slot_of(A), now)
            .unwrap();
        engine
            .release_child(peer_id("mobile"), &slot_of(A), now)
            .unwrap();
    });
    pair.run_for(Duration::from_secs(100));
    assert!(agree(&pair, &[None]));
}

/// Invariants 1 and 5 of DESIGN section 4: the keys of one node are useless for the child of
/// another.
// Weakness: S28
#[test]
fn each_slot_licenses_its_own_node_and_has_keys_of_its_own() {
    let mut pair = connected(&[A, B], &[A, B]);
    open(&mut pair, A);
    open(&mut pair, B);
    let mut keys = Vec::new();
    for node in [None, Some(A), Some(B)] {
        let child = pair.right.named(node.map(slot_of).as_deref()).unwrap();
        let licences = &child.agreement.as_ref().unwrap().licences;
        assert_eq!(*licences, node.map(licence).into_iter().collect::<Vec<_>>());
        keys.extend([&child.inbound, &child.outbound].map(keys_of).concat());
    }
    let all = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), all);
}

/// Invariant 4: a node learns only keys that both endpoints accepted, before the key leaves.
// Refuses: handover
// Weakness: S30
#[test]
fn an_offer_of_a_node_that_the_other_end_does_not_license_is_refused_and_told() {
    let mut pair = connected(&[A], &[A, B]);
    open(&mut pair, B);
    assert!(agree(&pair, &[None]));
    let told = pair.left.refusals().join("");
    assert!(told.contains("offers to let b.example.net read"), "{told}");
    let told = pair.right.refusals().join("");
    assert!(told.contains("OFFER_REFUSED"), "{told}");
    // Everything else stays unchanged.
    open(&mut pair, A);
    assert!(agree(&pair, &[None, Some(&slot_of(A))]));
}

#[test]
fn new_keys_of_a_slot_are_of_the_same_slot() {
    let mut pair = connected(&[A], &[A]);
    open(&mut pair, A);
    let before = pair.right.named(Some(&slot_of(A))).unwrap().inbound.spi;
    rekey(&mut pair, Side::Right, Some(&slot_of(A)));
    pair.run_for(Duration::from_secs(120));
    assert!(agree(&pair, &[None, Some(&slot_of(A))]));
    let after = pair.right.named(Some(&slot_of(A))).unwrap();
    assert_ne!(after.inbound.spi, before);
    let licences = &after.agreement.as_ref().unwrap().licences;
    assert_eq!(*licences, [licence(A)]);
}

/// The responder of CREATE_CHILD_SA may send once it is certain that its answer arrived.
#[test]
fn who_asked_for_a_slot_says_that_it_has_the_answer() {
    let mut pair = connected(&[A], &[A]);
    open(&mut pair, A);
    let child = pair.left.named(Some(&slot_of(A))).unwrap().id;
    let assured =
        |event: &Event| matches!(event, Event::ChildAssured { child: id } if *id == child);
    assert!(pair.left.events.iter().any(assured));
}

// Weakness: S30
#[test]
fn two_nodes_in_one_offer_or_none_are_refused() {
    for nodes in [vec![], vec![A, B]] {
        let mut pair = connected(&[A, B], &[A, B]);
        let nodes: Vec<_> = nodes.iter().map(|node| node.parse().unwrap()).collect();
        let offer = notify(NotifyType::OFFER, encode_nodes(&nodes));
        let selectors = |text| wire::ike::TrafficSelectors(vec![prefix(text)]);
        let proposal = crate::proposal::offer_esp(
            &crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]),
            model::Spi(0x1000_0000),
        );
        let request = vec![
            Payload::SecurityAssociation(proposal),
            Payload::Nonce(vec![7; 32]),
            Payload::TsInitiator(selectors("10.8.0.2/32")),
            Payload::TsResponder(selectors("10.0.0.0/16")),
            offer,
        ];
        let sa = pair.left.ike();
        let answer = ask_sealed(&mut pair, sa, ExchangeType::CREATE_CHILD_SA, request);
        assert_eq!(answer, [notify(NotifyType::OFFER_REFUSED, Vec::new())]);
        assert!(agree(&pair, &[None]));
    }
}

/// Invariant 4: both ends name each node of a shared slot.
#[test]
fn a_slot_that_nodes_share_licenses_all_of_them_where_both_ends_say_so() {
    let mut pair = connected_shared(&[A, B], &[B, A]);
    let slot = open_shared(&mut pair, &[A, B]);
    assert!(agree(&pair, &[None, Some(&slot)]));
    let child = pair.left.named(Some(&slot)).unwrap();
    let licences = &child.agreement.as_ref().unwrap().licences;
    assert_eq!(*licences, [licence(A), licence(B)]);
}

// Refuses: handover-shared
// Weakness: S30
#[test]
fn an_offer_of_nodes_that_the_other_end_does_not_have_share_a_slot_is_refused_and_told() {
    const C: &str = "c.example.net";
    // A node without a licence, an additional node, and one node alone.
    for mobile in [&[A, C][..], &[A, B, C], &[A]] {
        let mut pair = connected_shared(mobile, &[A, B]);
        open_shared(&mut pair, &[A, B]);
        assert!(agree(&pair, &[None]), "{mobile:?}");
        let told = pair.left.refusals().join("");
        assert!(told.contains("with shared keys"), "{told}");
        assert!(told.contains("for exactly these nodes"), "{told}");
        let told = pair.right.refusals().join("");
        assert!(told.contains("OFFER_REFUSED"), "{told}");
    }
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut pair = Pair::new(with_slots(left, &[A, B]), with_shared(right, &[A, B]));
    pair.connect();
    open_shared(&mut pair, &[A, B]);
    assert!(agree(&pair, &[None]), "each has a slot of its own there");
}

/// Both ends name the same nodes, but one end does not license one of them. Nothing would be agreed
/// for that node.
#[test]
fn an_offer_is_refused_of_which_a_node_would_have_no_licence() {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut left = with_shared(left, &[A, B]);
    let licences = &mut left.peers[0].slots[0].zones.licences;
    licences.retain(|licence| licence.node.to_string() == A);
    let mut pair = Pair::new(left, with_shared(right, &[A, B]));
    pair.connect();
    open_shared(&mut pair, &[A, B]);
    assert!(agree(&pair, &[None]));
    let told = pair.left.refusals().join("");
    assert!(told.contains("offers to let b.example.net read"), "{told}");
}

#[test]
fn new_keys_of_a_slot_that_nodes_share_are_of_the_same_nodes() {
    let mut pair = connected_shared(&[A, B], &[A, B]);
    let slot = open_shared(&mut pair, &[A, B]);
    let before = pair.right.named(Some(&slot)).unwrap().inbound.spi;
    rekey(&mut pair, Side::Right, Some(&slot));
    pair.run_for(Duration::from_secs(120));
    assert!(agree(&pair, &[None, Some(&slot)]));
    let after = pair.right.named(Some(&slot)).unwrap();
    assert_ne!(after.inbound.spi, before);
    let licences = &after.agreement.as_ref().unwrap().licences;
    assert_eq!(*licences, [licence(A), licence(B)]);
}

#[test]
fn a_slot_that_another_node_is_to_share_is_another_one() {
    const C: &str = "c.example.net";
    let mut pair = connected_shared(&[A, B], &[A, B]);
    let before = open_shared(&mut pair, &[A, B]);
    for side in [Side::Left, Side::Right] {
        let (left, right) = zoned(Stance::Require, Stance::Require);
        let config = if side == Side::Left { left } else { right };
        let config = with_shared(config, &[A, B, C]);
        pair.with(side, |engine, now| engine.reconfigure(config, now));
    }
    pair.run_for(Duration::from_secs(10));
    assert!(agree(&pair, &[None]), "{before} is gone");
    let slot = open_shared(&mut pair, &[A, B, C]);
    assert!(agree(&pair, &[None, Some(&slot)]));
}

/// Without the vendor ID of both ends the number may have another meaning. In a plain tunnel there
/// is nothing to license.
#[test]
fn a_tunnel_without_zones_has_no_slots() {
    let (left, right) = zoned(Stance::Refuse, Stance::Accept);
    let mut pair = Pair::new(left, with_slots(right, &[A]));
    pair.connect();
    open(&mut pair, A);
    assert!(agree(&pair, &[None]));
    assert!(pair.left.refusals().is_empty(), "it was not asked");
}

#[test]
fn a_slot_that_the_configuration_has_no_more_is_deleted() {
    let mut pair = connected(&[A, B], &[A, B]);
    open(&mut pair, A);
    open(&mut pair, B);
    let (_, right) = zoned(Stance::Require, Stance::Require);
    let anew = pair.with(Side::Right, |engine, now| {
        engine.reconfigure(with_slots(right, &[B]), now)
    });
    assert!(anew.is_empty(), "the peer goes on");
    pair.run_for(Duration::from_secs(10));
    assert!(agree(&pair, &[None, Some(&slot_of(B))]));
}

// Recovers: handover
#[test]
fn slots_come_and_go_on_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        let (left, right) = zoned(Stance::Require, Stance::Require);
        let (left, right) = (with_slots(left, &[A, B]), with_slots(right, &[A, B]));
        let mut pair = Pair::seeded(left, right, seed);
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(60));
        for node in [A, B] {
            open(&mut pair, node);
        }
        pair.run_for(Duration::from_secs(120));
        close(&mut pair, A);
        pair.run_for(Duration::from_secs(120));
        assert!(agree(&pair, &[None, Some(&slot_of(B))]), "seed {seed}");
    }
}
