//! Inner addresses that a gateway lends (RFC 7296 sections 2.19 and 3.15).

use super::pair::{Host, Pair, Side, fit};
use super::*;
use crate::{DownReason, Event, Inside, Pool};
use crypto::UnixTime;
use model::{Instant, LeaseChange, Shared};
use std::time::Duration;
use wire::codec::{Codec, Reader};
use wire::ike::{
    Configuration, ConfigurationAttribute, ConfigurationType, ExchangeType, Payload,
    TrafficSelectors,
};

const DAY: u64 = 86_400;

/// Returns the configuration of a node that requests inner addresses to reach the gateway's
/// networks.
pub(crate) fn borrower() -> Config {
    let mut config = mobile();
    config.peers[0].role = PeerRole::Vpn {
        local: vec![prefix("0.0.0.0/0"), prefix("::/0")].into(),
        remote: vec![prefix("10.0.0.0/8"), prefix("fd00::/16")].into(),
        addressing: Addressing::Requested,
        zones: ZonePolicy::default().into(),
        mode: Mode::Tunnel,
    };
    config
}

/// Returns the configuration of a gateway that lends addresses out of these prefixes.
pub(crate) fn lender(prefixes: &[&str]) -> Config {
    let mut config = gateway();
    let addresses: Vec<_> = prefixes.iter().map(|text| prefix(text)).collect();
    config.peers[0].role = PeerRole::Vpn {
        local: vec![prefix("10.0.0.0/16"), prefix("fd00:8::/64")].into(),
        remote: addresses.clone().into(),
        addressing: Addressing::Lent(Shared::from(Pool {
            name: "office".to_owned(),
            addresses,
            reserved: vec!["10.9.0.0".parse().unwrap(), "fd00:9::".parse().unwrap()],
            dns: vec!["10.0.0.53".parse().unwrap(), "fd00:8::53".parse().unwrap()],
            subnets: Vec::new(),
            lease: Duration::from_secs(DAY),
        })),
        zones: ZonePolicy::default().into(),
        mode: Mode::Tunnel,
    };
    config
}

pub(crate) fn pool_of(config: &mut Config) -> &mut Pool {
    match &mut config.peers[0].role {
        PeerRole::Vpn {
            addressing: Addressing::Lent(pool),
            ..
        } => pool,
        other => panic!("{other:?}"),
    }
}

/// CVE-2023-28771. Name servers become arguments of programs, and subnets become routes. No text
/// from a gateway does.
// Weakness: 26
#[test]
fn of_all_attributes_that_a_gateway_sends_nothing_but_numbers_is_kept() {
    let hostile = b"$(x);`y`|z&'\"*~\\".repeat(20);
    let mut kept = 0;
    for kind in 0..=40 {
        for length in 1..=40 {
            let mut octets = vec![ConfigurationType::CFG_REPLY.0, 0, 0, 0];
            let address = [0, 1, 0, 4, 10, 9, 0, 5];
            let header = [0, kind, 0, length];
            octets.extend([&address[..], &header, &hostile[..length.into()]].concat());
            let Ok(configuration) = Configuration::read(&mut Reader::new("CP", &octets)) else {
                continue;
            };
            let reply = saying(vec![Payload::Configuration(configuration)]);
            let Some(inside) = crate::extension::configuration::read_reply(&reply) else {
                continue;
            };
            kept += inside.dns.len() + inside.subnets.len();
            let number = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
            let mut servers = inside.dns.iter().map(ToString::to_string);
            assert!(
                servers.all(|server| server.chars().all(number)),
                "{inside:?}"
            );
            let shown = format!("{inside:?}");
            assert!(
                !shown.contains(['$', ';', '`', '|', '&', '\'', '"', '~']),
                "{shown}"
            );
        }
    }
    assert!(kept >= 3, "servers and subnets of either family are kept");
}

const BOTH: [&str; 2] = ["10.9.0.0/24", "fd00:9::/64"];

fn inside(host: &Host) -> Option<&Inside> {
    host.events.iter().find_map(|event| match event {
        Event::Configured { inside, .. } => Some(inside),
        _ => None,
    })
}

fn leases(host: &mut Host) -> Vec<LeaseChange> {
    std::iter::from_fn(|| host.engine.poll_lease()).collect()
}

/// Returns the left end's selectors, on which both ends agree.
fn carried(pair: &Pair) -> Vec<String> {
    let (left, right) = (pair.left.child(), pair.right.child());
    assert!(fit(left, right));
    left.local.iter().map(ToString::to_string).collect()
}

#[test]
fn the_tunnel_carries_the_lent_addresses_and_no_others() {
    let mut pair = Pair::new(borrower(), lender(&BOTH));
    pair.connect();
    assert_eq!(carried(&pair), ["10.9.0.1/32", "fd00:9::1/128"]);
    let given = inside(&pair.left).expect("addresses were lent");
    let texts: Vec<_> = given.addresses.iter().map(|a| a.to_string()).collect();
    assert_eq!(texts, ["10.9.0.1", "fd00:9::1"]);
    let dns: Vec<_> = given.dns.iter().map(ToString::to_string).collect();
    assert_eq!(dns, ["10.0.0.53", "fd00:8::53"]);
    assert_eq!(
        given.subnets,
        [prefix("10.0.0.0/16"), prefix("fd00:8::/64")]
    );
    for host in [&pair.left, &pair.right] {
        let shown = host.engine.sas().next().and_then(|sa| sa.addresses);
        assert_eq!(shown, Some(given.addresses));
    }
}

/// The inner address is needed before the first packet.
#[test]
fn addresses_are_told_before_the_child() {
    let mut pair = Pair::new(borrower(), lender(&BOTH));
    pair.connect();
    let at = |wanted: fn(&Event) -> bool| pair.left.events.iter().position(wanted);
    let configured = at(|event| matches!(event, Event::Configured { .. }));
    assert!(configured < at(|event| matches!(event, Event::ChildUp(_))));
}

#[test]
fn who_comes_back_has_its_address_again() {
    let mut pair = Pair::new(borrower(), lender(&BOTH));
    pair.connect();
    let first = carried(&pair);
    let sa = pair.left.engine.sas().next().expect("it is up").id;
    pair.with(Side::Left, |engine, now| engine.close(sa, now));
    pair.settle();
    pair.left.events.clear();
    pair.right.events.clear();
    pair.connect();
    assert_eq!(carried(&pair), first);
}

#[test]
fn an_engine_that_was_told_the_leases_lends_the_same_address_again() {
    let mut pair = Pair::new(borrower(), lender(&BOTH));
    pool_of(&mut pair.right.engine.config)
        .reserved
        .push("10.9.0.1".parse().unwrap());
    pair.connect();
    let first = carried(&pair);
    let told = leases(&mut pair.right);
    let [LeaseChange::Kept(lease)] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(lease.free_from, None);
    // The gateway restarts without the reservation, so 10.9.0.1 would be free.
    let mut fresh = Host::seeded(lender(&BOTH), 7, 2);
    fresh.engine.restore_leases(vec![lease.clone()]);
    pair.restart(Side::Right, fresh);
    pair.restart(Side::Left, Host::seeded(borrower(), 8, 1));
    pair.connect();
    assert_eq!(carried(&pair), first);
}

#[test]
fn a_lease_begins_with_the_sa_and_its_time_with_the_sas_end() {
    let mut pair = Pair::new(borrower(), lender(&BOTH));
    pair.right.engine.set_wall_clock(UnixTime(1000));
    pair.connect();
    let kept = |changes: &[LeaseChange]| match changes {
        [LeaseChange::Kept(lease) | LeaseChange::Used(lease)] => lease.free_from,
        other => panic!("{other:?}"),
    };
    assert_eq!(kept(&leases(&mut pair.right)), None);
    let sa = pair.right.engine.sas().next().expect("it is up").id;
    pair.with(Side::Right, |engine, now| engine.rekey_ike(sa, now));
    pair.settle();
    assert_eq!(leases(&mut pair.right), [], "a rekeyed SA is the same one");
    pair.with(Side::Left, |engine, now| engine.shutdown(now));
    pair.settle();
    assert_eq!(kept(&leases(&mut pair.right)), Some(1000 + DAY));
}

#[test]
fn an_empty_pool_is_told_to_both_ends() {
    let mut right = lender(&["10.9.0.0/32"]);
    pool_of(&mut right).dns.clear();
    let mut pair = Pair::new(borrower(), right);
    pair.connect();
    let [refusal] = pair.right.refusals().try_into().expect("one refusal");
    assert!(
        refusal.contains("the pool `office` has no free address"),
        "{refusal}"
    );
    let [why] = pair.left.down_reasons().try_into().expect("one end");
    let why = why.to_string();
    assert!(why.contains("INTERNAL_ADDRESS_FAILURE"), "{why}");
    assert_eq!(leases(&mut pair.right), []);
}

#[test]
fn who_gets_one_family_carries_that_one() {
    let mut pair = Pair::new(borrower(), lender(&["fd00:9::/64"]));
    pair.connect();
    assert_eq!(carried(&pair), ["fd00:9::1/128"]);
    let given = inside(&pair.left).expect("an address was lent");
    assert_eq!(
        given.dns,
        ["fd00:8::53".parse::<std::net::IpAddr>().unwrap()]
    );
    assert_eq!(given.subnets, [prefix("fd00:8::/64")]);
}

/// RFC 7296 section 3.15.2: "the gateway does not mind if the client sends traffic not included by
/// INTERNAL_IP4_SUBNET directly to the destination".
#[test]
fn what_is_behind_a_gateway_is_told_beside_what_the_tunnel_carries() {
    let mut right = lender(&BOTH);
    pool_of(&mut right).subnets = vec![prefix("10.0.3.0/24"), prefix("fd00:8::/65")];
    let mut pair = Pair::new(borrower(), right);
    pair.connect();
    let given = inside(&pair.left).expect("addresses were lent");
    assert_eq!(
        given.subnets,
        [prefix("10.0.3.0/24"), prefix("fd00:8::/65")]
    );
    assert_eq!(
        given.carried,
        [prefix("10.0.0.0/16"), prefix("fd00:8::/64")]
    );
    assert_eq!(given.reachable().as_ref(), Some(&given.subnets));
    assert_eq!(given.beyond(), []);
}

#[test]
fn a_subnet_outside_the_agreed_selectors_is_not_reached_through_the_tunnel() {
    let mut right = lender(&BOTH);
    pool_of(&mut right).subnets = vec![prefix("10.0.0.0/15"), prefix("192.0.2.0/24")];
    let mut pair = Pair::new(borrower(), right);
    pair.connect();
    let given = inside(&pair.left).expect("addresses were lent");
    assert_eq!(given.reachable(), Some(vec![prefix("10.0.0.0/16")]));
    assert_eq!(given.beyond(), given.subnets);
}

#[test]
fn another_list_of_subnets_makes_the_sas_anew() {
    let mut pair = Pair::new(borrower(), lender(&BOTH));
    pair.connect();
    let mut other = lender(&BOTH);
    pool_of(&mut other).subnets = vec![prefix("10.0.3.0/24")];
    let changed = pair.with(Side::Right, |engine, now: Instant| {
        engine.reconfigure(other, now)
    });
    assert_eq!(changed, [peer_id("mobile")]);
}

#[test]
fn who_asks_for_nothing_where_addresses_are_lent_is_told_so() {
    let mut pair = Pair::new(mobile(), lender(&["10.8.0.0/24"]));
    pair.connect();
    let [refusal] = pair.right.refusals().try_into().expect("one refusal");
    assert!(refusal.contains("requests no inner address"), "{refusal}");
    let [why] = pair.left.down_reasons().try_into().expect("one end");
    let why = why.to_string();
    assert!(why.contains("FAILED_CP_REQUIRED"), "{why}");
}

#[test]
fn a_peer_that_lends_nothing_is_no_use_to_who_needs_an_address() {
    let mut pair = Pair::new(borrower(), gateway());
    pair.connect();
    assert_eq!(pair.left.down_reasons(), [&DownReason::NoAddress]);
    assert!(pair.left.children().is_empty() && inside(&pair.left).is_none());
}

#[test]
fn who_lends_does_not_begin() {
    let mut pair = Pair::new(borrower(), lender(&BOTH));
    pair.initiate(Side::Right);
    pair.settle();
    let [refusal] = pair.left.refusals().try_into().expect("one refusal");
    assert!(refusal.contains("so it cannot initiate"), "{refusal}");
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
}

/// An insider wants another peer's packets. It requests addresses as it must, gets its own, and
/// claims another one.
#[test]
fn a_claim_to_anothers_address_gets_no_tunnel() {
    for claim in ["10.9.0.77/32", "10.9.0.2/31", "192.0.2.0/24"] {
        let mut left = borrower();
        let PeerRole::Vpn { local, .. } = &mut left.peers[0].role else {
            panic!("a VPN peer");
        };
        *local = vec![prefix(claim)].into();
        let mut pair = Pair::new(left, lender(&BOTH));
        pair.connect();
        let [refusal] = pair.right.refusals().try_into().expect("one refusal");
        assert!(refusal.contains("10.9.0.1"), "{claim}: {refusal}");
        assert!(pair.right.children().is_empty() && pair.left.children().is_empty());
    }
}

/// The insider claims a range around its own address, in a rekey request.
#[test]
fn a_wider_claim_is_narrowed_whenever_it_is_made() {
    let mut pair = Pair::new(borrower(), lender(&BOTH));
    pair.connect();
    let sa = pair.left.engine.sas().next().expect("it is up").id;
    let old = pair.left.child().inbound.spi;
    let wide = TrafficSelectors(vec![prefix("10.9.0.0/24"), prefix("::/0")]);
    pair.with(Side::Left, |engine, now| {
        let request = rekey_request(old, wide);
        engine.request_raw(sa, ExchangeType::CREATE_CHILD_SA, request, now);
    });
    pair.settle();
    let children = pair.right.children();
    let newest = children.last().expect("the rekeyed one");
    assert_eq!(children.len(), 2);
    let texts: Vec<_> = newest.remote.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["10.9.0.1/32", "fd00:9::1/128"]);
}

fn rekey_request(old: model::Spi, claimed: TrafficSelectors) -> Vec<Payload> {
    let proposals = crate::proposal::offer_esp(
        &crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]),
        model::Spi(0x1234_5678),
    );
    vec![
        crate::exchange::create_child::rekey_sa(old),
        Payload::SecurityAssociation(proposals),
        Payload::Nonce(vec![7; 32]),
        Payload::TsInitiator(claimed),
        Payload::TsResponder(TrafficSelectors(vec![
            prefix("10.0.0.0/16"),
            prefix("::/0"),
        ])),
    ]
}

#[test]
fn new_keys_carry_the_same_addresses_whoever_asks_for_them() {
    for side in [Side::Left, Side::Right] {
        let mut pair = Pair::new(borrower(), lender(&BOTH));
        pair.connect();
        let before = carried(&pair);
        let child = pair.host(side).child().id;
        let sa = pair.host(side).engine.sas().next().expect("it is up").id;
        pair.with(side, |engine, now| engine.rekey_ike(sa, now));
        pair.settle();
        pair.with(side, |engine, now| engine.rekey_child(sa, child, now));
        pair.run_for(Duration::from_secs(60));
        assert_ne!(pair.host(side).child().id, child, "there are new keys");
        assert_eq!(carried(&pair), before);
    }
}

/// Over a network that loses a third of the datagrams, one identity gets one address, however often
/// it asks.
#[test]
fn losses_do_not_make_leases() {
    for seed in 0..50 {
        let mut pair = Pair::seeded(borrower(), lender(&BOTH), seed);
        pair.hop = pair.hop.losing(300).repeating(100).delaying(100);
        pair.connect();
        pair.run_for(Duration::from_secs(200));
        assert_eq!(carried(&pair), ["10.9.0.1/32", "fd00:9::1/128"]);
        assert_eq!(pair.right.engine.leases().count(), 1);
        assert_eq!(leases(&mut pair.right).len(), 1);
    }
}

/// Addresses that no host can have, and endless name servers and subnets.
// Refuses: split-routes
#[test]
fn nonsense_of_a_gateway_is_not_taken() {
    let reply = |addresses: &[&str], subnets: u8| {
        let attribute = |text: &&str| ConfigurationAttribute::Address {
            is_ipv4: !text.contains(':'),
            value: Some((text.parse().unwrap(), 32)),
        };
        let servers = (0..100).map(|last| ConfigurationAttribute::Dns {
            is_ipv4: true,
            value: Some([10, 0, 0, last].into()),
        });
        let subnets = (0..=subnets).flat_map(|second| (0..8).map(move |third| (second, third)));
        let subnets = subnets.map(|(second, third)| ConfigurationAttribute::Subnet {
            is_ipv4: true,
            value: Some(([10, second, third, 0].into(), 24)),
        });
        let attributes = addresses.iter().map(attribute);
        let attributes = attributes.chain(servers).chain(subnets).collect();
        let kind = ConfigurationType::CFG_REPLY;
        let configuration = Configuration { kind, attributes };
        saying(vec![Payload::Configuration(configuration)])
    };
    let read = |addresses: &[&str], subnets: u8| {
        crate::extension::configuration::read_reply(&reply(addresses, subnets))
    };
    for nonsense in [
        "0.0.0.0",
        "127.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "ff02::1",
    ] {
        assert_eq!(read(&[nonsense], 0), None, "{nonsense}");
    }
    let inside = read(&["10.9.0.1", "10.9.0.2"], 31).expect("the first is one");
    assert_eq!(inside.addresses.v4, Some([10, 9, 0, 1].into()));
    assert_eq!(inside.dns.len(), 4);
    assert_eq!(
        inside.subnets.len(),
        crate::extension::configuration::MAX_SUBNETS
    );
    let inside = read(&["10.9.0.1"], 32).expect("the address is one");
    assert_eq!((inside.subnets.len(), inside.reachable()), (0, None));
    // The carried part of each subnet takes 24 prefixes.
    let mut range = prefix("10.0.0.0/8");
    range.first = "10.0.0.1".parse().unwrap();
    let shattered = Inside {
        subnets: vec![prefix("10.0.0.0/8"); 12],
        carried: vec![range],
        ..Inside::default()
    };
    assert_eq!(shattered.reachable(), None);
    assert_eq!(shattered.beyond().len(), 12);
}

#[test]
fn another_pool_makes_the_sas_anew() {
    let mut pair = Pair::new(borrower(), lender(&BOTH));
    pair.connect();
    let other = lender(&["10.10.0.0/24"]);
    let changed = pair.with(Side::Right, |engine, now: Instant| {
        engine.reconfigure(other, now)
    });
    assert_eq!(changed, [peer_id("mobile")]);
    pair.settle();
    pair.left.events.clear();
    pair.right.events.clear();
    pair.connect();
    assert_eq!(carried(&pair), ["10.10.0.0/32"]);
}
