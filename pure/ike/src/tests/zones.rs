//! Agreement on zones.

use super::pair::{Pair, Side, fit, keys_of};
use super::*;
use crate::DownReason;
use model::{Keys, MapKind};
use std::time::Duration;

const NODE: &str = "node.example.net";

pub(crate) fn zoned(left: Stance, right: Stance) -> (Config, Config) {
    let (mut mobile, mut gateway) = (mobile(), gateway());
    *zones_of(&mut mobile) = two_zones(left, NODE);
    *zones_of(&mut gateway) = two_zones(right, NODE);
    (mobile, gateway)
}

fn connected((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(600));
    pair
}

#[test]
fn agreed_zones_have_a_key_each_in_each_direction() {
    let pair = connected(zoned(Stance::Accept, Stance::Accept));
    let child = pair.left.child();
    assert!(fit(child, pair.right.child()));
    let agreement = child.agreement.as_ref().unwrap();
    assert_eq!(agreement.licences, [licence(NODE)]);
    assert_eq!(agreement.window, 8192);
    let mut keys = [keys_of(&child.inbound), keys_of(&child.outbound)].concat();
    let lengths: Vec<_> = keys.iter().map(Vec::len).collect();
    assert_eq!(lengths, [20, 36, 20, 36]);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4, "no key is used twice");
}

#[test]
fn licences_are_those_of_both_policies_and_the_rest_is_told() {
    let (mut left, mut right) = zoned(Stance::Accept, Stance::Accept);
    zones_of(&mut left).licences = vec![licence("b.example"), licence("a.example")];
    zones_of(&mut right).licences = vec![licence("c.example"), licence("b.example")];
    zones_of(&mut right).window = 4096;
    let pair = connected((left, right));
    let agreement = pair.left.child().agreement.clone().unwrap();
    assert_eq!(agreement.licences, [licence("b.example")]);
    assert_eq!(agreement.window, 4096);
    assert!(
        pair.left
            .refusals()
            .join("")
            .contains("zone 1 to a.example")
    );
    assert!(
        pair.right
            .refusals()
            .join("")
            .contains("zone 1 to c.example")
    );
}

#[test]
fn who_accepts_zones_does_without_them_if_the_peer_does_not() {
    let pair = connected(zoned(Stance::Accept, Stance::Refuse));
    assert!(fit(pair.left.child(), pair.right.child()));
    assert!(pair.left.child().agreement.is_none());
    assert!(
        pair.left
            .refusals()
            .join("")
            .contains("the tunnel is plain")
    );
    let pair = connected(zoned(Stance::Refuse, Stance::Accept));
    assert!(matches!(pair.left.child().inbound.keys, Keys::Plain { .. }));
}

#[test]
fn a_responder_that_requires_zones_refuses_a_plain_tunnel() {
    let pair = connected(zoned(Stance::Refuse, Stance::Require));
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    let why = pair.left.down_reasons()[0].to_string();
    assert!(why.contains("ZONES_REQUIRED"), "{why}");
    assert!(pair.right.refusals()[0].contains("zones are required here"));
}

// Weakness: S6
#[test]
fn an_initiator_that_requires_zones_takes_a_plain_tunnel_down() {
    let pair = connected(zoned(Stance::Require, Stance::Refuse));
    assert_eq!(pair.left.down_reasons(), [&DownReason::ZonesRequired]);
    assert_eq!(pair.right.down_reasons(), [&DownReason::ClosedByPeer]);
    assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
}

#[test]
fn different_zones_are_not_agreed() {
    let (left, mut right) = zoned(Stance::Accept, Stance::Accept);
    zones_of(&mut right).zones[0].1 = ZoneSuite::Aes256Gcm16;
    let pair = connected((left, right));
    assert!(pair.left.child().agreement.is_none());
    assert!(fit(pair.left.child(), pair.right.child()));
}

fn mapped(left: MapKind, right: MapKind, stance: Stance) -> (Config, Config) {
    let (mut mobile, mut gateway) = zoned(stance, stance);
    (zones_of(&mut mobile).map, zones_of(&mut gateway).map) = (left, right);
    (mobile, gateway)
}

#[test]
fn a_fixed_map_has_an_opaque_sa_beside_with_spis_and_keys_of_its_own() {
    let pair = connected(mapped(fixed_map(52), fixed_map(52), Stance::Accept));
    let child = pair.left.child();
    assert!(fit(child, pair.right.child()));
    assert_eq!(child.agreement.as_ref().unwrap().map, fixed_map(52));
    let opaque = child.opaque.as_ref().unwrap();
    let halves = [
        &child.inbound,
        &child.outbound,
        &opaque.inbound,
        &opaque.outbound,
    ];
    let mut spis = halves.map(|half| half.spi);
    spis.sort();
    assert!(spis.windows(2).all(|pair| pair[0] < pair[1]), "{spis:?}");
    let mut keys = halves.map(keys_of).concat();
    let lengths: Vec<_> = keys.iter().map(Vec::len).collect();
    assert_eq!(lengths, [20, 36, 20, 36, 36, 36]);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 6, "no key is used twice");
    let changeable = connected(zoned(Stance::Accept, Stance::Accept));
    assert!(changeable.left.child().opaque.is_none());
}

#[test]
fn different_maps_are_not_agreed() {
    let maps = || [MapKind::Changeable, fixed_map(40), fixed_map(52)];
    for (left, right) in maps()
        .into_iter()
        .flat_map(|l| maps().map(|r| (l.clone(), r)))
    {
        let same = left == right;
        let accepting = connected(mapped(left.clone(), right.clone(), Stance::Accept));
        assert_eq!(accepting.left.child().agreement.is_some(), same);
        assert!(fit(accepting.left.child(), accepting.right.child()));
        let requiring = connected(mapped(left, right, Stance::Require));
        assert_eq!(requiring.left.up() == 1, same);
    }
}

// Weakness: S6
// Weakness: S11
#[test]
fn zone_keys_bind_the_agreement_and_both_spis() {
    let (left, right) = zoned(Stance::Accept, Stance::Accept);
    let with = |change: fn(&mut ZonePolicy)| {
        let (mut left, mut right) = (left.clone(), right.clone());
        change(zones_of(&mut left));
        change(zones_of(&mut right));
        let pair = connected((left, right));
        keys_of(&pair.left.child().inbound)
    };
    let plain = with(|_| {});
    assert_eq!(plain, with(|_| {}));
    assert_ne!(plain, with(|policy| policy.window = 4096));
    assert_ne!(plain, with(|policy| policy.licences.clear()));
    let fixed = with(|policy| policy.map = fixed_map(52));
    assert_ne!(plain[..2], fixed[..2]);
    assert_ne!(fixed, with(|policy| policy.map = fixed_map(40)));
}
