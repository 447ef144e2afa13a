//! Masses of unauthenticated initiators, alone or from whole networks: their cost is bounded, and
//! other peers are served meanwhile.

use super::groups::with_groups;
use super::pair::{Flying, Pair, Side};
use super::*;
use crate::{DropReason, Engine, Sender};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use wire::ike::{Datagram, Message, Payload};

const ALL: [Group; 5] = [
    Group::X25519,
    Group::P256,
    Group::P384,
    Group::Modp2048,
    Group::Modp3072,
];

/// Returns a pair, and the first message of an honest initiator, not yet delivered.
fn begun(left: Config, right: Config) -> (Pair, Flying) {
    let mut pair = Pair::new(left, right);
    pair.initiate(Side::Left);
    let first = pair.intercept().remove(0);
    (pair, first)
}

/// Returns the first message of another initiator.
fn other(first: &Flying, n: u32, from: IpAddr) -> Flying {
    let mut other = first.clone();
    other.message[..4].copy_from_slice(&(n + 1).to_be_bytes());
    other.path.remote = SocketAddr::new(from, 500);
    other
}

fn in_ipv6(site: u16, subnet: u32, host: u32) -> IpAddr {
    let network = u128::from(0x2001_0db8_u32) << 96 | u128::from(site) << 80;
    Ipv6Addr::from_bits(network | u128::from(subnet) << 64 | u128::from(host)).into()
}

fn in_ipv4(host: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a00_0000 + host).into()
}

/// Disables cookies, as if the initiators received at their addresses.
fn without_cookies(right: &mut Config) {
    right.limits.half_open_without_cookie = usize::MAX;
    right.limits.half_open_per_host_without_cookie = usize::MAX;
}

/// Returns values of the group's length that are no public values, and for the curves also values
/// of another length.
fn bad_values(group: Group, good: &[u8]) -> Vec<Vec<u8>> {
    let len = good.len();
    let mut values = vec![vec![0; len], vec![0xff; len], good[1..].to_vec()];
    let mut small = vec![0; len];
    match group {
        Group::X25519 => small[0] = 1,
        _ => small[len - 1] = 1,
    }
    values.push(small);
    if group == Group::X25519 {
        // Almost any 32 octets are a public value.
        values.remove(1);
    } else if matches!(group, Group::P256 | Group::P384) {
        let mut beside = good.to_vec();
        beside[0] ^= 1;
        values.push(beside);
    }
    values
}

fn with_values(first: &Flying, group: Group) -> Vec<Flying> {
    let Ok(Datagram::Clear(message)) = Datagram::decode(&first.message) else {
        panic!("a first message is in the clear")
    };
    let Payload::KeyExchange(genuine) = message.payloads[1].clone() else {
        panic!("the value of {group:?}")
    };
    let with = |public| {
        let mut payloads = message.payloads.clone();
        payloads[1] = Payload::KeyExchange(wire::ike::KeyExchange {
            public,
            ..genuine.clone()
        });
        let header = message.header;
        let message = Message { header, payloads }.encode();
        Flying { message, ..*first }
    };
    let values = bad_values(group, &genuine.public).into_iter();
    values.map(with).collect()
}

/// For the pages: an initiator with an invalid public value, and then one that was answered, give
/// way to the next.
pub(super) fn giving_way() -> Pair {
    let (left, mut right) = with_groups(&[Group::P256], &[Group::P256]);
    right.limits.half_open.total = 2;
    let (mut pair, first) = begun(left, right);
    let bad = with_values(&first, Group::P256).remove(0);
    pair.deliver(&other(&bad, 0, in_ipv4(0)));
    for n in 1..4 {
        pair.deliver(&other(&first, n, in_ipv4(n << 8)));
    }
    pair
}

#[test]
fn the_oldest_of_the_most_crowded_network_gives_way() {
    let pair = giving_way();
    assert_eq!(pair.right.engine.half_open(), 2);
    assert_eq!(pair.right.engine.counters().gave_way, 2);
}

/// Forged messages come from anywhere, each with another SPI.
// Weakness: 29
// Weakness: 30
// Weakness: 32
// Weakness: 89
#[test]
fn bad_public_values_make_no_key_and_are_asked_for_cookies() {
    for group in ALL {
        let (left, right) = with_groups(&[group], &[group]);
        let (mut pair, first) = begun(left, right);
        let bad = with_values(&first, group);
        for n in 0..5000 {
            let bad = &bad[n as usize % bad.len()];
            pair.deliver(&other(bad, n, in_ipv4(n << 8)));
        }
        let counted = |pair: &Pair, why| pair.right.dropped(why);
        assert_eq!(pair.right.engine.counters().key_pairs, 0, "{group:?}");
        assert_eq!(pair.right.engine.half_open(), 64, "{group:?}");
        assert_eq!(counted(&pair, DropReason::KeyExchange), 64, "{group:?}");
        let asked = counted(&pair, DropReason::CookieWanted);
        assert_eq!(asked, 5000 - 64, "{group:?}");
        pair.intercept();
        pair.deliver(&first);
        pair.settle();
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "{group:?}");
        assert_eq!(pair.right.engine.counters().key_pairs, 1, "{group:?}");
    }
}

// Weakness: 89
#[test]
fn what_is_charged_for_a_bad_public_value_ends_with_its_time() {
    let (left, right) = with_groups(&[Group::P256], &[Group::P256]);
    let (mut pair, first) = begun(left, right);
    let bad = with_values(&first, Group::P256).remove(0);
    for n in 0..20 {
        pair.deliver(&other(&bad, n, in_ipv4(1)));
    }
    assert_eq!(pair.right.engine.half_open(), 8);
    pair.intercept();
    pair.now += Duration::from_secs(60);
    pair.timeout(Side::Right);
    assert_eq!(pair.right.engine.half_open(), 0);
    assert_eq!(pair.right.engine.poll_timeout(), None);
}

/// Addresses of one IPv6 /64, of one /48, of 100 /48s, of 17 IPv4 networks and of one IPv4 network,
/// each with the places they get.
// Weakness: 29
// Weakness: 62
// Weakness: 90
#[test]
fn strangers_of_a_few_networks_cannot_keep_others_out() {
    let crowds: [(&dyn Fn(u32) -> IpAddr, usize); 5] = [
        (&|n| in_ipv6(1, 1, n), 64),
        (&|n| in_ipv6(1, n, n), 256),
        (&|n| in_ipv6(n as u16 % 100, n, n), 1024),
        (&|n| in_ipv4((n % 17) << 8), 1024),
        (&|n| in_ipv4(n % 200), 256),
    ];
    for (from, places) in crowds {
        let (left, mut right) = (mobile(), gateway());
        without_cookies(&mut right);
        right.limits.half_open.total = 1024;
        let (mut pair, first) = begun(left, right);
        for n in 0..3000 {
            pair.deliver(&other(&first, n, from(n)));
        }
        pair.intercept();
        assert_eq!(pair.right.engine.half_open(), places);
        pair.deliver(&first);
        let answer = pair.intercept().remove(0);
        // The attackers continue while the initiator computes.
        for n in 3000..4000 {
            pair.deliver(&other(&first, n, from(n)));
        }
        pair.intercept();
        pair.deliver(&answer);
        pair.settle();
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "{places} places");
    }
}

/// A place is protected for two seconds against newcomers from the same network. After that time an
/// honest initiator of the network gets one.
// Weakness: 90
#[test]
fn a_network_of_strangers_does_not_keep_its_own_honest_initiators_out_for_long() {
    let (left, mut right) = (mobile(), gateway());
    without_cookies(&mut right);
    let (mut pair, first) = begun(left, right);
    let from = first.path.remote.ip();
    for n in 0..100 {
        pair.deliver(&other(&first, n, from));
    }
    pair.deliver(&first);
    assert_eq!(pair.right.dropped(DropReason::HalfOpenLimit), 100 - 64 + 1);
    pair.intercept();
    pair.run_for(Duration::from_secs(4));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert_eq!(pair.right.engine.counters().gave_way, 1);
}

/// Neither a cookie nor an answer that asks for one is computed, and no message is parsed. A
/// retransmission of a message that was answered gets its answer.
// Weakness: 147
#[test]
fn a_message_from_a_host_without_a_free_place_is_dropped_unread() {
    let (left, mut right) = (mobile(), gateway());
    right.limits.half_open_without_cookie = 0;
    let (mut pair, first) = begun(left, right);
    let from = |n| in_ipv6(1, 1, n);
    let paid = |pair: &mut Pair, n| {
        let first = other(&first, n, from(n));
        let asked = ask(pair, &first).unwrap();
        with_cookie(&first, &asked)
    };
    let answered: Vec<_> = (0..64).map(|n| paid(&mut pair, n)).collect();
    answered.iter().for_each(|flying| pair.deliver(flying));
    assert_eq!(pair.right.engine.half_open(), 64);
    pair.intercept();
    let late = paid(&mut pair, 64);
    let mut unreadable = late.clone();
    unreadable.message.truncate(40);
    let unpaid = other(&first, 65, from(65));
    let wanted = pair.right.dropped(DropReason::CookieWanted);
    for flying in [&late, &unreadable, &unpaid] {
        assert_eq!(sender(&pair, flying), Sender::Settled);
        pair.deliver(flying);
    }
    assert!(pair.is_quiet());
    assert_eq!(pair.right.dropped(DropReason::HalfOpenLimit), 3);
    assert_eq!(pair.right.dropped(DropReason::CookieWanted), wanted);
    assert_eq!(sender(&pair, &answered[0]), Sender::Reachable);
    pair.deliver(&answered[0]);
    assert_eq!(pair.right.engine.counters().answered_again, 1);
    // Another host of the site has places of its own.
    let neighbour = other(&first, 66, in_ipv6(1, 2, 1));
    assert_eq!(sender(&pair, &neighbour), Sender::Unpaid);
    pair.now += Duration::from_secs(2);
    assert_eq!(sender(&pair, &late), Sender::Reachable);
    assert_eq!(sender(&pair, &unpaid), Sender::Unpaid);
    pair.deliver(&late);
    assert_eq!(pair.right.engine.counters().gave_way, 1);
}

/// So a site with many hosts, such as an IPv4 /24, gets no more cookies than it has places. Another
/// site is asked for cookies as before.
#[test]
fn a_message_from_a_site_without_a_free_place_is_dropped_unread() {
    let (left, mut right) = (mobile(), gateway());
    right.limits.half_open_without_cookie = 0;
    let (mut pair, first) = begun(left, right);
    let paid = |pair: &mut Pair, n: u32| {
        let first = other(&first, n, in_ipv4(n));
        let asked = ask(pair, &first).unwrap();
        with_cookie(&first, &asked)
    };
    for n in 0..256 {
        let flying = paid(&mut pair, n);
        pair.deliver(&flying);
        pair.intercept();
    }
    assert_eq!(pair.right.engine.half_open(), 256);
    let unpaid = other(&first, 300, in_ipv4(7));
    let elsewhere = other(&first, 301, in_ipv4(7 << 8));
    assert_eq!(sender(&pair, &unpaid), Sender::Settled);
    assert_eq!(sender(&pair, &elsewhere), Sender::Unpaid);
    let wanted = pair.right.dropped(DropReason::CookieWanted);
    pair.deliver(&unpaid);
    assert!(pair.is_quiet());
    assert_eq!(pair.right.dropped(DropReason::HalfOpenLimit), 1);
    assert_eq!(pair.right.dropped(DropReason::CookieWanted), wanted);
    pair.now += Duration::from_secs(2);
    assert_eq!(sender(&pair, &unpaid), Sender::Unpaid);
}

// Weakness: 90
#[test]
fn a_configured_address_has_places_that_no_stranger_takes() {
    let (left, mut right) = (mobile(), gateway());
    let (_, first) = begun(left.clone(), right.clone());
    right.peers[0].address = Some(first.path.remote.ip());
    right.limits.half_open.total = 10;
    right.limits.half_open_without_cookie = 10;
    let (mut pair, first) = begun(left, right);
    for n in 0..100 {
        pair.deliver(&other(&first, n, in_ipv4(n << 8)));
    }
    pair.intercept();
    pair.deliver(&first);
    let answer = pair.intercept().remove(0);
    for n in 100..200 {
        pair.deliver(&other(&first, n, in_ipv4(n << 8)));
    }
    pair.intercept();
    let begun = pair.now;
    pair.deliver(&answer);
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert_eq!(pair.now - begun, pair.hop.delay * 2, "no cookie was wanted");
}

/// From then on, only initiators at that address are asked for cookies.
#[test]
fn who_forges_a_configured_address_gets_its_places_only_without_cookies() {
    let (left, mut right) = (mobile(), gateway());
    right.peers[0].address = Some(in_ipv4(1));
    let (mut pair, first) = begun(left, right);
    for n in 0..100 {
        pair.deliver(&other(&first, n, in_ipv4(1)));
    }
    assert_eq!(pair.right.engine.half_open(), 8);
    assert_eq!(pair.right.dropped(DropReason::CookieWanted), 92);
}

/// RFC 8019 section 4.1. A stream validates an address as a cookie does.
// Weakness: 62
#[test]
fn half_open_sas_live_shorter_while_there_are_many() {
    let (mut pair, first) = begun(mobile(), gateway());
    for n in 0..200 {
        let mut other = other(&first, n, in_ipv4(n << 8));
        other.path = model::Path::tcp(other.path.local, other.path.remote);
        pair.deliver(&other);
    }
    pair.intercept();
    let lives = |pair: &mut Pair, seconds| {
        pair.now += Duration::from_secs(seconds);
        pair.timeout(Side::Right);
        Engine::half_open(&pair.right.engine)
    };
    assert_eq!(lives(&mut pair, 9), 200);
    assert_eq!(lives(&mut pair, 1), 64);
    assert_eq!(lives(&mut pair, 50), 0);
}

/// The daemon may delay such messages.
#[test]
fn a_message_is_unproved_until_its_ike_sa_is_up() {
    let (mut pair, first) = begun(mobile(), gateway());
    assert_eq!(sender(&pair, &first), Sender::Unverified);
    pair.deliver(&first);
    assert_eq!(sender(&pair, &first), Sender::Unverified, "it comes again");
    pair.deliver_next();
    let auth = pair.intercept().remove(0);
    assert_eq!(sender(&pair, &auth), Sender::Begun);
    pair.deliver(&auth);
    pair.settle();
    assert_eq!(sender(&pair, &auth), Sender::Settled);
    let id = pair.left.engine.sas().next().unwrap().id;
    pair.with(Side::Left, |engine, now| engine.rekey_ike(id, now));
    let request = pair.intercept().remove(0);
    assert_eq!(sender(&pair, &request), Sender::Settled);
    // An answer belongs to an SA that this end began.
    pair.deliver(&request);
    let answer = pair.intercept().remove(0);
    let left = &pair.left.engine;
    let of_answer = left.sender(answer.path, &answer.message, pair.now);
    assert_eq!(of_answer, Sender::Settled);
    let nonsense = Flying {
        message: b"nonsense".to_vec(),
        ..first
    };
    assert_eq!(sender(&pair, &nonsense), Sender::Settled);
}

/// Returns the responder's classification of a message's sender.
fn sender(pair: &Pair, flying: &Flying) -> Sender {
    let engine = &pair.right.engine;
    engine.sender(flying.path, &flying.message, pair.now)
}

// Weakness: 129
#[test]
fn a_sender_is_known_to_receive_at_its_address_by_a_cookie_an_spi_or_a_stream() {
    let (mut pair, first) = begun(mobile(), gateway());
    let mut stream = first.clone();
    stream.path = model::Path::tcp(first.path.local, first.path.remote);
    assert_eq!(sender(&pair, &stream), Sender::Reachable);
    for n in 0..64 {
        assert_eq!(sender(&pair, &first), Sender::Unverified);
        pair.deliver(&other(&first, n, in_ipv4(n << 8)));
    }
    pair.intercept();
    let again = other(&first, 7, in_ipv4(7 << 8));
    assert_eq!(sender(&pair, &again), Sender::Unverified, "it was answered");
    assert_eq!(sender(&pair, &stream), Sender::Reachable);
    assert_eq!(sender(&pair, &first), Sender::Unpaid);
    let asked = ask(&mut pair, &first).unwrap();
    pair.deliver(&asked);
    let paid = pair.intercept().remove(0);
    assert_eq!(sender(&pair, &paid), Sender::Reachable);
    for forged in [1, 28 + 8, 28 + 8 + 32] {
        let mut other = paid.clone();
        other.message[forged] ^= 1;
        assert_eq!(sender(&pair, &other), Sender::Unpaid, "octet {forged}");
    }
    let mut from_elsewhere = paid.clone();
    from_elsewhere.path.remote = "192.0.2.66:500".parse().unwrap();
    assert_eq!(sender(&pair, &from_elsewhere), Sender::Unpaid);
    pair.deliver(&paid);
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

/// Returns the answer of a responder that does not process the message.
fn ask(pair: &mut Pair, first: &Flying) -> Option<Flying> {
    let engine = &mut pair.right.engine;
    let answer = engine.ask_for_cookie(first.path, &first.message, pair.now)?;
    Some(Flying {
        to: Side::Left,
        path: answer.path.reversed(),
        message: answer.payload,
    })
}

/// Returns a first message with the cookie that an answer asks for.
fn with_cookie(first: &Flying, asked: &Flying) -> Flying {
    let clear = |flying: &Flying| match Datagram::decode(&flying.message) {
        Ok(Datagram::Clear(message)) => message,
        other => panic!("a first message is in the clear: {other:?}"),
    };
    let mut message = clear(first);
    message.payloads.insert(0, clear(asked).payloads.remove(0));
    Flying {
        message: message.encode(),
        ..first.clone()
    }
}

/// Delayed or not, a message gets the same answer.
// Weakness: 130
#[test]
fn a_cookie_is_asked_for_in_the_same_way_whether_the_message_is_read_or_not() {
    let (left, mut right) = (mobile(), gateway());
    right.limits.half_open_without_cookie = 0;
    let (mut pair, first) = begun(left, right);
    let glanced = ask(&mut pair, &first).unwrap().message;
    pair.deliver(&first);
    let read = pair.intercept().remove(0).message;
    assert_eq!(glanced, read);
    assert_eq!(pair.right.dropped(DropReason::CookieWanted), 2);
    let counters = pair.right.engine.counters();
    assert_eq!((counters.received, counters.sent), (2, 2));
}

/// Returns the number of datagrams received, and the sum of the counters of all outcomes.
fn accounts(pair: &Pair) -> [u64; 2] {
    let counters = pair.right.engine.counters();
    let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
    let handled = counters.taken + counters.answered_again + dropped;
    [counters.received, handled]
}

/// Whether a datagram is refused at a glance, waits for a cookie or reaches a state.
#[test]
fn each_datagram_is_counted_exactly_once_whichever_way_it_takes() {
    let (left, mut right) = with_groups(&[Group::P256], &[Group::P256]);
    right.limits.half_open.per_host = 4;
    right.limits.half_open_per_host_without_cookie = 3;
    let (mut pair, first) = begun(left, right);
    let changed = |at: usize, octet: u8| {
        let mut changed = first.clone();
        changed.message[at] = octet;
        changed
    };
    let cut = |len: usize| {
        let mut cut = first.clone();
        cut.message.truncate(len);
        cut
    };
    let bad = with_values(&first, Group::P256);
    let mut rows = vec![
        ("an empty datagram", cut(0)),
        ("no header", cut(27)),
        ("another length", cut(40)),
        ("IKEv1", changed(17, 0x10)),
        ("IKEv3", changed(17, 0x30)),
        ("the same soon", changed(17, 0x30)),
        ("a response", changed(19, 0x28)),
        ("an unknown SPI", changed(15, 1)),
        ("another exchange", changed(18, 37)),
        ("a message ID", changed(23, 1)),
        ("no such payload", changed(16, 250)),
        ("a bad public value", bad[0].clone()),
    ];
    rows.extend((0..3).map(|n| ("a first message", other(&first, n, in_ipv4(1)))));
    rows.extend((0..30).map(|_| ("a retransmission", other(&first, 0, in_ipv4(1)))));
    rows.extend((3..6).map(|n| ("one without a cookie", other(&first, n, in_ipv4(1)))));
    for (name, flying) in rows {
        let [received, handled] = accounts(&pair);
        pair.deliver(&flying);
        assert_eq!(accounts(&pair), [received + 1, handled + 1], "{name}");
        pair.intercept();
    }
    for n in 6..12 {
        let flying = other(&first, n, in_ipv4(1));
        let [received, handled] = accounts(&pair);
        let asked = ask(&mut pair, &flying);
        assert_eq!(accounts(&pair), [received + 1, handled + 1], "a queued one");
        let paid = with_cookie(&flying, &asked.unwrap());
        pair.deliver(&paid);
        assert_eq!(accounts(&pair), [received + 2, handled + 2], "a paid one");
        pair.intercept();
    }
    let outcomes = [
        DropReason::MalformedMessage,
        DropReason::OldVersion,
        DropReason::UnknownVersion,
        DropReason::UnknownSa,
        DropReason::KeyExchange,
        DropReason::CookieWanted,
        DropReason::HalfOpenLimit,
        DropReason::RepeatedTooOften,
    ];
    for why in outcomes {
        assert!(pair.right.dropped(why) > 0, "no row has: {why}");
    }
    assert!(pair.right.engine.counters().answered_again > 0);
}
