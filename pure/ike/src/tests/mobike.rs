//! Moves: the rules of RFC 4555, and attempts to abuse them.

use super::pair::{Flying, LEFT, NAT, Pair, RIGHT, Side, fit};
use super::rekey::{rekey_child, rekey_ike};
use super::*;
use crate::down_reason::PeerMisbehaved;
use crate::{CannotMove, DownReason, Event};
use model::{IkeSaId, Path};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use wire::ike::{ExchangeType, Flags, Header, Message, Notify, NotifyType, Payload, VERSION_2};

/// Two more addresses of the mobile node.
pub(crate) const CELL: &str = "100.64.0.2";
pub(crate) const TRAIN: &str = "198.18.0.2";
/// The address of an uninvolved third party.
const VICTIM: &str = "203.0.113.66";

pub(crate) fn roaming() -> (Config, Config) {
    let (mut left, mut right) = (mobile(), gateway());
    for config in [&mut left, &mut right] {
        config.peers[0].features.mobike = true;
    }
    (left, right)
}

fn connected() -> Pair {
    let (left, right) = roaming();
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

fn id(pair: &mut Pair, side: Side) -> IkeSaId {
    pair.host(side).engine.sas().next().unwrap().id
}

pub(crate) fn to(local: &str) -> Path {
    let at = |ip: &str| SocketAddr::new(ip.parse().unwrap(), crate::NATT_PORT);
    Path::udp(at(local), at(RIGHT))
}

pub(crate) fn move_to(pair: &mut Pair, path: Path) {
    let sa = id(pair, Side::Left);
    let moved = pair.with(Side::Left, |engine, now| engine.move_to(sa, path, now));
    assert_eq!(moved, Ok(()));
}

/// Returns the mobile node's addresses to which an end moved its children, in order.
pub(super) fn told(pair: &mut Pair, side: Side) -> Vec<IpAddr> {
    let told = pair
        .host(side)
        .events
        .iter()
        .filter_map(|event| match event {
            Event::PathMoved { path, .. } if side == Side::Left => Some(path.local.ip()),
            Event::PathMoved { path, .. } => Some(path.remote.ip()),
            _ => None,
        });
    told.collect()
}

pub(super) fn ips(of: &[&str]) -> Vec<IpAddr> {
    of.iter().map(|ip| ip.parse().unwrap()).collect()
}

/// Returns the number of times an end sent a notify.
fn sent(pair: &Pair, from: Side, kind: NotifyType) -> usize {
    let receiver = match from {
        Side::Left => &pair.right.engine,
        Side::Right => &pair.left.engine,
    };
    let has = |message: Message| {
        let mut payloads = message.payloads.into_iter();
        payloads.any(|payload| matches!(payload, Payload::Notify(n) if n.kind == kind))
    };
    let all = pair.sent.iter().filter(|flying| flying.to == from.other());
    all.filter(|f| receiver.peek(&f.message).is_some_and(has))
        .count()
}

pub(super) fn mobile_events(pair: &mut Pair, side: Side) -> Vec<(bool, Vec<IpAddr>)> {
    let events = pair
        .host(side)
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Mobile {
                decides, addresses, ..
            } => Some((*decides, addresses.clone())),
            _ => None,
        });
    events.collect()
}

#[test]
fn both_ends_say_that_they_can_and_where_they_are_besides() {
    let (left, mut right) = roaming();
    right.addresses = ips(&[RIGHT, "198.51.100.1", "2001:db8::1"]);
    let mut pair = Pair::new(left, right);
    pair.connect();
    let besides = ips(&["198.51.100.1", "2001:db8::1"]);
    assert_eq!(mobile_events(&mut pair, Side::Left), [(true, besides)]);
    assert_eq!(mobile_events(&mut pair, Side::Right), [(false, Vec::new())]);
}

#[test]
fn where_one_end_does_not_want_it_nothing_moves() {
    for unwilling in [Side::Left, Side::Right] {
        let (mut left, mut right) = roaming();
        match unwilling {
            Side::Left => left.peers[0].features.mobike = false,
            Side::Right => right.peers[0].features.mobike = false,
        }
        let mut pair = Pair::new(left, right);
        pair.connect();
        let sa = id(&mut pair, Side::Left);
        let moved = pair.with(Side::Left, |engine, now| engine.move_to(sa, to(CELL), now));
        assert_eq!(moved, Err(CannotMove::NotAgreed));
        assert!(mobile_events(&mut pair, Side::Left).is_empty());
        assert!(mobile_events(&mut pair, Side::Right).is_empty());
    }
}

#[test]
fn a_move_takes_the_children_of_both_ends_along() {
    let mut pair = connected();
    move_to(&mut pair, to(CELL));
    assert_eq!(told(&mut pair, Side::Left), ips(&[CELL]));
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
    assert!(fit(pair.left.child(), pair.right.child()));
    for side in [Side::Left, Side::Right] {
        let moved = pair.host(side).events.iter().find_map(|event| match event {
            Event::PathMoved { children, .. } => Some(children.clone()),
            _ => None,
        });
        assert_eq!(moved, Some(vec![pair.host(side).child().id]));
    }
    // Two exchanges, update and check, make four messages.
    assert_eq!(pair.sent.len(), 8);
}

/// RFC 4555 section 3.7, DESIGN section 4 invariant 7.
// Weakness: 81
// Weakness: M1
#[test]
fn nothing_of_a_child_goes_to_an_address_before_it_is_proved() {
    let mut pair = connected();
    move_to(&mut pair, to(CELL));
    pair.deliver_next();
    assert!(told(&mut pair, Side::Right).is_empty());
    // Even a new child is not sent there.
    let check = pair.intercept();
    rekey_child(&mut pair, Side::Right);
    assert_eq!(check.len(), 2, "the answer, and the check");
    pair.deliver(&check[0]);
    assert!(told(&mut pair, Side::Right).is_empty());
    pair.deliver(&check[1]);
    pair.settle();
    let new = pair.right.events.iter().find_map(|event| match event {
        Event::ChildRekeyed { new, .. } => Some(new.path.remote.ip()),
        _ => None,
    });
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
    assert_eq!(new, Some(CELL.parse().unwrap()), "it came after the check");
}

#[test]
fn a_child_that_is_rekeyed_during_the_check_goes_where_the_peer_was_last_proved() {
    let mut pair = connected();
    rekey_child(&mut pair, Side::Left);
    let request = pair.intercept();
    move_to(&mut pair, to(CELL));
    // The rekey is outstanding, so the update has to wait. The request takes the new path at once.
    let again = pair.intercept();
    assert_eq!(again[0].message, request[0].message);
    assert_eq!(again[0].path.remote, to(CELL).local);
    pair.deliver(&again[0]);
    let new = pair.right.events.iter().find_map(|event| match event {
        Event::ChildRekeyed { new, .. } => Some(new.path.remote.ip()),
        _ => None,
    });
    assert_eq!(new, Some(LEFT.parse().unwrap()));
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
}

// Weakness: M2
#[test]
fn only_the_newest_of_several_moves_counts() {
    let mut pair = connected();
    move_to(&mut pair, to(CELL));
    move_to(&mut pair, to(TRAIN));
    pair.settle();
    assert_eq!(
        told(&mut pair, Side::Right).last(),
        Some(&TRAIN.parse().unwrap())
    );
    assert_eq!(pair.left.up(), 1);
    let new: Vec<_> = pair
        .right
        .engine
        .sas()
        .map(|sa| sa.path.remote.ip())
        .collect();
    assert_eq!(new, ips(&[TRAIN]));
}

#[test]
fn a_move_back_during_the_check_needs_no_other() {
    let mut pair = connected();
    move_to(&mut pair, to(CELL));
    move_to(&mut pair, to(LEFT));
    pair.settle();
    let back: IpAddr = LEFT.parse().unwrap();
    assert!(
        told(&mut pair, Side::Right)
            .last()
            .is_none_or(|last| *last == back)
    );
    assert_eq!(
        pair.right.engine.sas().next().unwrap().path.remote.ip(),
        back
    );
}

/// Packets of a child SA come from the new address just before the update, or just after it.
#[test]
fn the_check_of_a_new_address_is_sent_once() {
    for (update_first, cookies) in [(true, 2), (false, 3)] {
        let mut pair = connected();
        move_to(&mut pair, to(CELL));
        if update_first {
            pair.deliver_next();
        }
        let sa = id(&mut pair, Side::Right);
        let from = Path::udp(to(CELL).remote, to(CELL).local);
        pair.with(Side::Right, |engine, now| {
            engine.note_stray(sa, from, 1000, now);
        });
        pair.settle();
        assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
        // The answer to the update has one.
        assert_eq!(sent(&pair, Side::Right, NotifyType::COOKIE2), cookies);
        let to_left = pair.sent.iter().filter(|flying| flying.to == Side::Left);
        let all: Vec<_> = to_left.map(|flying| &flying.message).collect();
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "a message was sent twice");
    }
}

#[test]
fn a_lost_answer_to_an_update_is_given_again_without_another_check() {
    let mut pair = connected();
    move_to(&mut pair, to(CELL));
    pair.deliver_next();
    // The answer and the check are lost; both are retransmitted.
    pair.lose();
    pair.run_for(Duration::from_secs(5));
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
    assert!(pair.right.engine.counters().answered_again >= 1);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

#[test]
fn the_end_that_was_called_cannot_move_anything() {
    let mut pair = connected();
    let sa = id(&mut pair, Side::Right);
    let refused = pair.with(Side::Right, |engine, now| engine.move_to(sa, to(CELL), now));
    assert_eq!(refused, Err(CannotMove::NotOurs));
    // An update that the responder sends anyway is refused.
    let path = pair.left.engine.sas().next().unwrap().path;
    let update = Payload::Notify(Notify::new(NotifyType::UPDATE_SA_ADDRESSES, Vec::new()));
    pair.with(Side::Right, |engine, now| {
        engine.request_raw(sa, ExchangeType::INFORMATIONAL, vec![update], now);
    });
    let mut request = pair.intercept().remove(0);
    request.path.remote = SocketAddr::new(VICTIM.parse().unwrap(), 4500);
    pair.deliver(&request);
    assert_eq!(pair.left.engine.sas().next().unwrap().path, path);
    assert_eq!(
        sent(&pair, Side::Left, NotifyType::UNACCEPTABLE_ADDRESSES),
        1
    );
    assert!(pair.left.refusals()[0].contains("only we can"));
}

/// The party that initiated the first IKE SA decides about moves, whichever end has rekeyed it (RFC
/// 4555 section 1.3).
#[test]
fn a_rekey_by_the_other_end_does_not_change_who_decides() {
    let mut pair = connected();
    rekey_ike(&mut pair, Side::Right);
    pair.run_for(Duration::from_secs(60));
    move_to(&mut pair, to(CELL));
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
    let sa = id(&mut pair, Side::Right);
    let refused = pair.with(Side::Right, |engine, now| engine.move_to(sa, to(CELL), now));
    assert_eq!(refused, Err(CannotMove::NotOurs));
}

// Refuses: mobike
#[test]
fn a_peer_that_must_be_at_an_address_is_not_followed_elsewhere() {
    let (left, mut right) = roaming();
    right.peers[0].address = Some(LEFT.parse().unwrap());
    let mut pair = Pair::new(left, right);
    pair.connect();
    move_to(&mut pair, to(CELL));
    pair.settle();
    assert!(told(&mut pair, Side::Right).is_empty());
    let refused =
        |event: &Event| matches!(event, Event::MoveRefused { path, .. } if *path == to(CELL));
    assert!(pair.left.events.iter().any(refused));
    assert!(pair.right.refusals()[0].contains("its configured address is"));
    assert!(pair.left.refusals()[0].contains("UNACCEPTABLE_ADDRESSES"));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

/// A new address of the peer also has to be validated before children's packets are sent there.
#[test]
fn another_address_of_the_peer_is_used_once_our_cookie_comes_back_from_there() {
    let mut pair = connected();
    let mut path = to(LEFT);
    path.remote.set_ip("198.51.100.1".parse().unwrap());
    move_to(&mut pair, path);
    assert!(told(&mut pair, Side::Left).is_empty());
    pair.settle();
    assert_eq!(told(&mut pair, Side::Left).len(), 1);
}

/// RFC 4555 section 3.7: "If the values do not match, the IKE_SA MUST be closed."
// Weakness: 81
#[test]
fn a_check_that_is_answered_with_another_cookie_ends_the_ike_sa() {
    for cookie in [None, Some(vec![7; 16])] {
        let mut pair = connected();
        move_to(&mut pair, to(CELL));
        pair.deliver_next();
        let check = pair.intercept().remove(1);
        let asked = pair.left.engine.peek(&check.message).unwrap();
        let header = Header {
            flags: Flags {
                initiator: true,
                response: true,
                ..Flags::default()
            },
            version: VERSION_2,
            ..asked.header
        };
        let notify = cookie.map(|data| Payload::Notify(Notify::new(NotifyType::COOKIE2, data)));
        let payloads = notify.into_iter().collect();
        let answer = Message { header, payloads };
        let message = pair.left.engine.seal(&answer).unwrap();
        let path = to(CELL).reversed();
        pair.deliver(&Flying {
            to: Side::Right,
            path,
            message,
        });
        assert!(told(&mut pair, Side::Right).is_empty());
        let why = DownReason::Misbehaved(PeerMisbehaved::Cookie);
        assert_eq!(pair.right.down_reasons(), [&why]);
    }
}

/// An attacker on the path changes the source of an update. The victim gets a few of our IKE
/// messages and no packet of a child. The peer detects the change from the address we report.
// Refuses: mobike
// Weakness: 81
// Weakness: M1
#[test]
fn a_third_party_is_not_bombed_by_a_forged_header() {
    let (mut left, right) = roaming();
    left.peers[0].liveness = Duration::from_secs(10);
    let mut pair = Pair::new(left, right);
    pair.connect();
    move_to(&mut pair, to(CELL));
    let mut update = pair.intercept().remove(0);
    update.path.remote = SocketAddr::new(VICTIM.parse().unwrap(), 4500);
    pair.deliver(&update);
    // Messages to the victim are lost, and the genuine update is retransmitted.
    pair.lose();
    pair.away.push(VICTIM.parse().unwrap());
    pair.run_for(Duration::from_secs(60));
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    let at_victim = pair
        .sent
        .iter()
        .filter(|f| f.path.local.ip() == VICTIM.parse::<IpAddr>().unwrap());
    let octets: usize = at_victim.map(|flying| flying.message.len()).sum();
    assert!(octets < 1500, "{octets} octets went to the victim");
}

// Weakness: 81
// Weakness: M2
#[test]
fn an_update_that_is_replayed_from_elsewhere_moves_nobody() {
    let mut pair = connected();
    move_to(&mut pair, to(CELL));
    pair.settle();
    let requests: Vec<_> = pair
        .sent
        .iter()
        .filter(|f| f.to == Side::Right && f.path.local.port() == crate::NATT_PORT)
        .cloned()
        .collect();
    let picture = pair.right.picture();
    for mut replayed in requests {
        replayed.path.remote = SocketAddr::new(VICTIM.parse().unwrap(), 4500);
        pair.deliver(&replayed);
    }
    assert_eq!(pair.right.picture(), picture);
}

/// A window admits requests in any order (RFC 4555 section 3.5). The negative control: alone, the
/// older update moves the SA.
// Weakness: M2
#[test]
fn of_two_updates_in_one_window_an_older_one_that_comes_late_moves_nothing() {
    for both in [true, false] {
        let (mut left, mut right) = roaming();
        for config in [&mut left, &mut right] {
            config.peers[0].window = 4;
        }
        let mut pair = Pair::new(left, right);
        pair.connect();
        let sa = id(&mut pair, Side::Left);
        let mut updates = Vec::new();
        for from in [CELL, TRAIN] {
            let update = Payload::Notify(Notify::new(NotifyType::UPDATE_SA_ADDRESSES, Vec::new()));
            pair.with(Side::Left, |engine, now| {
                engine.request_raw(sa, ExchangeType::INFORMATIONAL, vec![update], now);
            });
            let mut update = pair.intercept().remove(0);
            update.path.remote.set_ip(from.parse().unwrap());
            updates.push(update);
        }
        if both {
            pair.deliver(&updates[1]);
        }
        pair.deliver(&updates[0]);
        let path = pair.right.engine.sas().next().unwrap().path;
        let expected = if both { TRAIN } else { CELL };
        assert_eq!(path.remote.ip().to_string(), expected);
    }
}

/// A peer lists ten thousand addresses, as many in a message as there may be.
// Weakness: M5
#[test]
fn of_ten_thousand_addresses_that_a_peer_lists_few_are_kept() {
    let mut pair = connected();
    let sa = id(&mut pair, Side::Right);
    let path = pair.left.engine.sas().next().unwrap().path;
    let addresses: Vec<_> = (0..10_000_u32)
        .map(|n| (0x0a40_0000 + n).to_be_bytes())
        .collect();
    for listed in addresses.chunks(60) {
        let listed = listed.iter().map(|address| {
            let kind = NotifyType::ADDITIONAL_IP4_ADDRESS;
            Payload::Notify(Notify::new(kind, address.to_vec()))
        });
        let listed = listed.collect();
        pair.with(Side::Right, |engine, now| {
            engine.request_raw(sa, ExchangeType::INFORMATIONAL, listed, now);
        });
        pair.settle();
    }
    let lists = mobile_events(&mut pair, Side::Left);
    assert!(lists.len() > 160, "{} lists", lists.len());
    assert!(lists.iter().all(|(_, list)| list.len() <= 8));
    assert_eq!(lists[lists.len() - 1].1[0].to_string(), "10.64.38.232");
    assert_eq!(pair.left.engine.sas().next().unwrap().path, path);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

/// RFC 4555 section 3.8: "The host not behind a NAT MUST NOT use these dynamic updates".
#[test]
fn a_message_that_does_not_say_so_moves_nothing() {
    let (left, right) = roaming();
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT);
    pair.connect();
    let path = pair.right.engine.sas().next().unwrap().path;
    pair.nat = Some(NAT.with_shift(30_000));
    let sa = id(&mut pair, Side::Left);
    pair.with(Side::Left, |engine, now| {
        engine.revoke(sa, model::CsaId(1), now)
    });
    pair.settle();
    assert_eq!(pair.right.engine.sas().next().unwrap().path, path);
}

/// An end whose address is not translated requests no update.
#[test]
fn a_nat_that_is_new_is_noticed_by_a_sign_of_life() {
    let (mut left, right) = roaming();
    left.peers[0].liveness = Duration::from_secs(10);
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair.run_for(Duration::from_secs(60));
    assert_eq!(sent(&pair, Side::Left, NotifyType::UPDATE_SA_ADDRESSES), 0);
    pair.nat = Some(NAT);
    pair.run_for(Duration::from_secs(12));
    assert_eq!(told(&mut pair, Side::Right), ips(&["198.51.100.9"]));
}

#[test]
fn another_mapping_of_a_nat_is_noticed_by_a_sign_of_life() {
    let (mut left, right) = roaming();
    left.peers[0].liveness = Duration::from_secs(10);
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT);
    pair.connect();
    pair.run_for(Duration::from_secs(60));
    pair.nat = Some(NAT.with_shift(30_000));
    pair.run_for(Duration::from_secs(12));
    let mut ports = pair.right.events.iter().filter_map(|event| match event {
        Event::PathMoved { path, .. } => Some(path.remote.port()),
        _ => None,
    });
    assert_eq!(ports.next_back(), Some(34500));
    let quiet = sent(&pair, Side::Left, NotifyType::UPDATE_SA_ADDRESSES);
    pair.run_for(Duration::from_secs(600));
    assert_eq!(
        sent(&pair, Side::Left, NotifyType::UPDATE_SA_ADDRESSES),
        quiet
    );
}

// Weakness: M4
#[test]
fn a_translator_is_refused_where_it_is_forbidden() {
    let (mut left, right) = roaming();
    left.peers[0].features.forbids_nat = true;
    let mut pair = Pair::new(left.clone(), right.clone());
    pair.nat = Some(NAT);
    pair.connect();
    assert!(
        pair.left.down_reasons()[0]
            .to_string()
            .contains("UNEXPECTED_NAT_DETECTED")
    );
    assert!(pair.right.refusals()[0].contains("forbids NATs"));
    // A NAT appears later. The update is retried a few times, because a single packet may have been
    // forged.
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair.nat = Some(NAT);
    move_to(&mut pair, to(LEFT));
    pair.settle();
    assert!(told(&mut pair, Side::Right).is_empty());
    let tries = sent(&pair, Side::Left, NotifyType::UPDATE_SA_ADDRESSES);
    assert_eq!(tries, 6);
    let refused = |event: &Event| matches!(event, Event::MoveRefused { .. });
    assert_eq!(
        pair.left
            .events
            .iter()
            .filter(|event| refused(event))
            .count(),
        1
    );
}

#[test]
fn nobody_is_translated_where_nothing_translates() {
    let (mut left, right) = roaming();
    left.peers[0].features.forbids_nat = true;
    let mut pair = Pair::new(left, right);
    pair.connect();
    move_to(&mut pair, to(CELL));
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
}

/// RFC 4555 section 3.6: "the complete list is sent every time".
#[test]
fn a_new_list_of_addresses_replaces_the_old_one() {
    let (left, mut right) = roaming();
    right.addresses = ips(&["198.51.100.1"]);
    let mut pair = Pair::new(left, right);
    pair.connect();
    let sa = id(&mut pair, Side::Right);
    let notify = |kind, data| Payload::Notify(Notify::new(kind, data));
    for payload in [
        notify(NotifyType::ADDITIONAL_IP4_ADDRESS, vec![198, 51, 100, 2]),
        notify(NotifyType::NO_ADDITIONAL_ADDRESSES, Vec::new()),
    ] {
        pair.with(Side::Right, |engine, now| {
            engine.request_raw(sa, ExchangeType::INFORMATIONAL, vec![payload], now);
        });
        pair.settle();
    }
    let told = mobile_events(&mut pair, Side::Left).into_iter();
    let lists: Vec<_> = told.map(|(_, list)| list).collect();
    assert_eq!(
        lists,
        [ips(&["198.51.100.1"]), ips(&["198.51.100.2"]), Vec::new()]
    );
}

#[test]
fn a_silent_path_is_told_once_and_another_that_answers_as_well() {
    let mut pair = silent();
    let silent = |event: &Event| matches!(event, Event::PathSilent { .. });
    assert_eq!(
        pair.left
            .events
            .iter()
            .filter(|event| silent(event))
            .count(),
        1
    );
    let sa = id(&mut pair, Side::Left);
    pair.with(Side::Left, |engine, now| engine.probe(sa, to(CELL), now));
    pair.settle();
    let answers = pair.left.events.iter().find_map(|event| match event {
        Event::PathAnswers { path, .. } => Some(*path),
        _ => None,
    });
    assert_eq!(answers, Some(to(CELL)));
    assert!(
        told(&mut pair, Side::Right).is_empty(),
        "a try moves nothing"
    );
    move_to(&mut pair, to(CELL));
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), ips(&[CELL]));
}

/// For the pages: the mobile node has sent three liveness checks without an answer.
pub(crate) fn silent() -> Pair {
    let (mut left, right) = roaming();
    left.peers[0].liveness = Duration::from_secs(10);
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair.begin_story();
    pair.away.push(LEFT.parse().unwrap());
    pair.run_for(Duration::from_secs(12));
    pair
}

/// RFC 4555 section 3.11: "for at least five minutes".
#[test]
fn the_end_that_does_not_decide_has_patience() {
    let (left, mut right) = roaming();
    right.peers[0].liveness = Duration::from_secs(10);
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair.away.push(LEFT.parse().unwrap());
    pair.run_for(Duration::from_secs(309));
    assert_eq!(pair.right.up(), 1);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.right.up(), 0);
}

/// Moves collide with each other and with rekeys of both ends, over links that lose, duplicate and
/// reorder. In the end both ends agree, and no SA had to be set up again.
// Recovers: mobike
#[test]
fn moves_cross_with_everything_and_both_ends_agree_in_the_end() {
    for seed in 1..=60 {
        let (left, right) = roaming();
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        pair.hop = pair.hop.losing(250).repeating(200).delaying(200);
        let mut rng = crypto::Rng::from_seed([seed; 32]);
        let mut last = LEFT;
        for _ in 0..12 {
            match rng.u32() % 4 {
                0 => rekey_child(&mut pair, Side::Right),
                1 => rekey_ike(
                    &mut pair,
                    [Side::Left, Side::Right][(rng.u32() % 2) as usize],
                ),
                _ => {
                    last = [LEFT, CELL, TRAIN][(rng.u32() % 3) as usize];
                    move_to(&mut pair, to(last));
                }
            }
            pair.run_for(Duration::from_millis((rng.u32() % 3000).into()));
        }
        pair.hop.lost = 0;
        pair.run_for(Duration::from_secs(120));
        let last: IpAddr = last.parse().unwrap();
        for (side, host) in [(Side::Left, &pair.left), (Side::Right, &pair.right)] {
            assert_eq!(
                host.up(),
                1,
                "seed {seed}, {side:?}: {:?}",
                host.down_reasons()
            );
            let sas = host.engine.sas();
            let path = sas.map(|sa| sa.path).next().unwrap();
            let seen = if side == Side::Left {
                path.local
            } else {
                path.remote
            };
            assert_eq!(seen.ip(), last, "seed {seed}, {side:?}");
        }
        let went = told(&mut pair, Side::Right);
        let newest = pair.right.children().last().unwrap().path.remote.ip();
        assert_eq!(went.last().copied().unwrap_or(newest), last, "seed {seed}");
        assert!(fit(pair.left.child(), pair.right.child()), "seed {seed}");
    }
}
