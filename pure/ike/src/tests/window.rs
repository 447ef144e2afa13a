//! Several outstanding requests: the rules of RFC 7296 section 2.3.

use super::distribute::{gateway_of_node, grant, node};
use super::mobike::{CELL, TRAIN, move_to, roaming, to};
use super::pair::{Flying, NAT, Pair, Side};
use super::rekey::{is_settled, rekey_child, rekey_ike};
use super::*;
use crate::{Event, Windows};
use model::{CsaId, Grant, IkeSaId, Path};
use wire::ike::{ExchangeType, Header, Notify, NotifyType, Payload};

/// Returns a connected pair with these window sizes.
fn wide((mut left, mut right): (Config, Config), windows: [u8; 2]) -> (Pair, IkeSaId) {
    left.peers[0].window = windows[0];
    right.peers[0].window = windows[1];
    let mut pair = Pair::new(left, right);
    let id = pair.connect();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    (pair, id)
}

/// Returns a gateway on the left and a licensed node on the right.
fn granting(window: u8) -> (Pair, IkeSaId) {
    wide((gateway_of_node(), node()), [window; 2])
}

fn windows(pair: &mut Pair, side: Side) -> Windows {
    let mut sas = pair.host(side).engine.sas();
    sas.next().expect("an SA").windows
}

/// Returns both ends' windows: for the peer's requests and for its own.
fn widths(pair: &mut Pair) -> [(u8, u8); 2] {
    [Side::Left, Side::Right].map(|side| {
        let windows = windows(pair, side);
        (windows.ours, windows.theirs)
    })
}

/// Returns the keys of one composite SA.
fn of(csa: u64, number: u16) -> Grant<Secret> {
    let csa = CsaId(csa);
    Grant {
        csa,
        ..grant(number)
    }
}

fn distribute(pair: &mut Pair, id: IkeSaId, grants: impl IntoIterator<Item = Grant<Secret>>) {
    for grant in grants {
        pair.with(Side::Left, |engine, now| engine.distribute(id, grant, now));
    }
}

/// A composite SA and the number of a grant.
type Name = (u64, u16);

/// Returns the grants that arrived and the grants that were accepted.
fn exchanged(pair: &Pair) -> (Vec<Name>, Vec<Name>) {
    let came = pair.right.events.iter().filter_map(|event| match event {
        Event::Granted { grant, .. } => Some((grant.csa.0, grant.grant)),
        _ => None,
    });
    let accepted = pair.left.events.iter().filter_map(|event| match event {
        Event::GrantAccepted { csa, grant, .. } => Some((csa.0, *grant)),
        _ => None,
    });
    (came.collect(), accepted.collect())
}

/// Sends requests of the left end that no task would create, and takes them out of the network.
fn raw(pair: &mut Pair, requests: impl IntoIterator<Item = Vec<Payload>>) -> Vec<Flying> {
    let sa = pair.left.ike();
    let exchange = ExchangeType::INFORMATIONAL;
    for payloads in requests {
        pair.with(Side::Left, |engine, now| {
            engine.request_raw(sa, exchange, payloads, now);
        });
    }
    pair.intercept()
}

fn saying(kind: NotifyType, data: &[u8]) -> Vec<Payload> {
    vec![Payload::Notify(Notify::new(kind, data.to_vec()))]
}

/// Returns the message IDs of datagrams.
fn ids(flying: &[Flying]) -> Vec<u32> {
    let ids = flying.iter().map(|flying| Header::peek(&flying.message));
    ids.map(|header| header.unwrap().message_id).collect()
}

/// Returns the datagram as if it came from another address.
fn from(flying: &Flying, address: &str) -> Flying {
    let mut other = flying.clone();
    other.path.remote.set_ip(address.parse().unwrap());
    other
}

fn path_of(pair: &mut Pair, side: Side) -> Path {
    let mut sas = pair.host(side).engine.sas();
    sas.next().expect("an SA").path
}

#[test]
fn either_end_says_how_many_answers_it_keeps_and_uses_no_more_than_that_itself() {
    let (mut pair, _) = wide((mobile(), gateway()), [8, 4]);
    assert_eq!(widths(&mut pair), [(8, 4), (4, 4)]);
}

#[test]
fn there_is_one_request_at_a_time_with_a_peer_that_says_nothing() {
    let (mut pair, _) = wide((mobile(), gateway()), [8, 1]);
    assert_eq!(widths(&mut pair), [(8, 1), (1, 1)]);
}

/// A grant that is revoked while it is queued is never sent, so the node gets no key that it may no
/// longer have.
// Weakness: S37
#[test]
fn a_grant_that_is_taken_back_while_it_waits_does_not_leave() {
    let (mut pair, id) = granting(1);
    distribute(&mut pair, id, (1..=3).map(|csa| of(csa, 1)));
    for csa in [1, 3] {
        pair.with(Side::Left, |engine, now| engine.revoke(id, CsaId(csa), now));
    }
    pair.settle();
    let (came, accepted) = exchanged(&pair);
    // The first grant was already sent.
    assert_eq!(
        (came, accepted),
        (vec![(1, 1), (2, 1)], vec![(1, 1), (2, 1)])
    );
    let revoked = pair.right.events.iter().filter_map(|event| match event {
        Event::Revoked { csa, .. } => Some(csa.0),
        _ => None,
    });
    assert_eq!(revoked.collect::<Vec<_>>(), [1]);
}

#[test]
fn grants_take_one_round_trip_together_where_they_took_one_each() {
    for (window, trips) in [(1, 8), (3, 3), (8, 1)] {
        let (mut pair, id) = granting(window);
        let before = pair.now;
        distribute(&mut pair, id, (1..=8).map(|csa| of(csa, 1)));
        pair.settle();
        assert_eq!(pair.now - before, pair.hop.delay * 2 * trips);
        let (came, accepted) = exchanged(&pair);
        assert_eq!((came.len(), accepted.len()), (8, 8));
    }
}

#[test]
fn grants_of_one_composite_sa_keep_their_order() {
    for seed in 0..20 {
        let (mut pair, id) = granting(8);
        pair.reseed(seed);
        pair.hop = pair.hop.losing(200).delaying(500);
        distribute(&mut pair, id, (1..=4).flat_map(|n| [of(1, n), of(2, n)]));
        pair.run_for(Duration::from_secs(300));
        let (came, accepted) = exchanged(&pair);
        for grants in [came, accepted] {
            for csa in [1, 2] {
                let of = grants.iter().filter(|grant| grant.0 == csa);
                let numbers: Vec<_> = of.map(|grant| grant.1).collect();
                assert_eq!(numbers, [1, 2, 3, 4], "seed {seed}");
            }
        }
    }
}

/// No request is handled twice either, whatever is lost, duplicated and overtaken.
// Recovers: window
#[test]
fn a_window_is_never_exceeded_whatever_the_network_does() {
    for seed in 0..30 {
        let (mut pair, id) = granting(4);
        pair.reseed(seed);
        pair.hop = pair.hop.losing(250).repeating(300).delaying(400);
        distribute(&mut pair, id, (1..=20).map(|csa| of(csa, 1)));
        let mut most = 0;
        while exchanged(&pair).1.len() < 20 {
            let under_way = windows(&mut pair, Side::Left).under_way;
            assert!(under_way <= 4, "seed {seed}");
            most = most.max(under_way);
            pair.run_for(Duration::from_millis(50));
            assert!(pair.now.since_origin().as_secs() < 600, "seed {seed}");
        }
        assert_eq!((most, exchanged(&pair).0.len()), (4, 20), "seed {seed}");
    }
}

#[test]
fn grants_are_answered_in_whatever_order_their_owner_gets_to_them() {
    let (mut pair, id) = granting(4);
    distribute(&mut pair, id, (1..=3).map(|csa| of(csa, 1)));
    let (requests, now) = (pair.intercept(), pair.now);
    let node = &mut pair.right.engine;
    for request in requests.iter().chain(&requests) {
        node.handle_datagram(request.path, &request.message, now);
    }
    let asked: Vec<_> = std::iter::from_fn(|| node.poll_event()).collect();
    let asked = asked.iter().filter_map(|event| match event {
        Event::Granted { sa, grant, .. } => Some((*sa, grant.csa)),
        _ => None,
    });
    let asked: Vec<_> = asked.collect();
    assert_eq!(
        asked.len(),
        3,
        "what comes again meanwhile is not asked again"
    );
    for (sa, csa) in asked.into_iter().rev() {
        pair.with(Side::Right, |engine, now| {
            engine.answer_grant(sa, csa, 1, None, now);
        });
    }
    pair.settle();
    assert_eq!(exchanged(&pair).1, [(3, 1), (2, 1), (1, 1)]);
}

#[test]
fn requests_of_one_window_are_handled_in_the_order_of_their_coming() {
    let (mut pair, _) = wide((mobile(), gateway()), [4; 2]);
    let mut requests = raw(&mut pair, [const { Vec::new() }; 4]);
    requests.reverse();
    for request in &requests {
        pair.deliver(request);
    }
    let answers = pair.intercept();
    assert_eq!(ids(&answers), ids(&requests));
    answers.iter().for_each(|answer| pair.deliver(answer));
    assert_eq!(windows(&mut pair, Side::Left).under_way, 0);
}

// Weakness: 67
#[test]
fn what_is_below_or_above_the_window_changes_nothing() {
    let (mut pair, _) = wide((mobile(), gateway()), [8, 2]);
    let first = raw(&mut pair, [const { Vec::new() }; 3]);
    let before = pair.right.picture();
    pair.deliver(&first[2]);
    assert!(pair.is_quiet() && pair.right.picture() == before);
    for request in &first {
        pair.deliver(request);
    }
    pair.settle();
    pair.deliver(&first[0]);
    assert!(pair.is_quiet(), "nobody waits for that answer any more");
    pair.deliver(&first[1]);
    assert_eq!(pair.intercept().len(), 1, "the answer is given again");
}

// Weakness: 66
#[test]
fn whatever_was_said_under_a_wide_window_is_of_no_use_to_who_says_it_again() {
    let (mut pair, id) = granting(8);
    distribute(&mut pair, id, (1..=20).map(|csa| of(csa, 1)));
    pair.settle();
    let (recorded, before) = (pair.sent.clone(), exchanged(&pair));
    for flying in recorded.iter().rev().chain(&recorded) {
        pair.deliver(flying);
        for answer in pair.intercept() {
            let exchange = Header::peek(&answer.message).unwrap().exchange;
            let known = recorded.iter().any(|sent| sent.message == answer.message);
            assert!(known || exchange == ExchangeType::IKE_SA_INIT);
        }
    }
    assert_eq!(exchanged(&pair), before);
}

#[test]
fn an_answer_that_is_lost_under_a_wide_window_is_given_again() {
    let (mut pair, id) = granting(4);
    distribute(&mut pair, id, (1..=4).map(|csa| of(csa, 1)));
    for _ in 0..4 {
        pair.deliver_next();
    }
    assert_eq!(pair.intercept().len(), 4, "all answers are lost");
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.right.engine.counters().answered_again, 4);
    let (came, accepted) = exchanged(&pair);
    assert_eq!((came.len(), accepted.len()), (4, 4));
}

/// "You can only increase it", up to the size configured at this end.
#[test]
fn a_window_that_is_told_later_is_used_if_it_is_wider_and_told_well() {
    let (mut pair, _) = wide((mobile(), gateway()), [4, 8]);
    assert_eq!(windows(&mut pair, Side::Right).theirs, 4);
    let told: [(&[u8], u8); 6] = [
        (&[0, 0, 0, 2], 4),
        (&[0, 0, 0, 0], 4),
        (&[0, 0, 6], 4),
        (&[0, 0, 0, 6, 0], 4),
        (&[0, 0, 0, 6], 6),
        (&[255; 4], 8),
    ];
    for (data, window) in told {
        let requests = raw(&mut pair, [saying(NotifyType::SET_WINDOW_SIZE, data)]);
        pair.deliver(&requests[0]);
        pair.settle();
        assert_eq!(windows(&mut pair, Side::Right).theirs, window, "{data:?}");
    }
}

#[test]
fn a_successor_begins_with_a_window_of_one_and_both_ends_say_again_how_wide_it_is() {
    for side in [Side::Left, Side::Right] {
        let (mut pair, _) = wide((mobile(), gateway()), [4, 8]);
        rekey_ike(&mut pair, side);
        pair.deliver_next();
        let told = windows(&mut pair, side.other());
        assert_eq!((told.theirs, told.under_way), (1, 1), "it says so alone");
        pair.settle();
        assert!(is_settled(&mut pair));
        assert_eq!(widths(&mut pair), [(4, 4), (8, 4)]);
    }
}

#[test]
fn a_successor_waits_for_what_was_asked_before_it_and_has_not_come() {
    let (mut pair, _) = wide((mobile(), gateway()), [4; 2]);
    let overtaken = raw(&mut pair, [Vec::new()]);
    rekey_ike(&mut pair, Side::Left);
    pair.settle();
    assert_eq!(pair.left.ike_rekeys(), 0, "it was refused for now");
    pair.deliver(&overtaken[0]);
    pair.run_for(Duration::from_secs(60));
    assert_eq!((pair.left.ike_rekeys(), pair.right.ike_rekeys()), (1, 1));
    assert!(is_settled(&mut pair));
}

/// The IKE SA is rekeyed while nothing else is outstanding. Requests that come meanwhile are sent
/// on the successor.
#[test]
fn an_ike_rekey_is_alone_and_loses_nothing() {
    let (mut pair, id) = granting(8);
    distribute(&mut pair, id, [of(1, 1), of(2, 1)]);
    rekey_ike(&mut pair, Side::Left);
    distribute(&mut pair, id, [of(3, 1), of(4, 1)]);
    assert_eq!(windows(&mut pair, Side::Left).under_way, 2);
    pair.settle();
    assert_eq!(pair.left.ike_rekeys(), 1);
    assert_eq!(exchanged(&pair).1, [(1, 1), (2, 1), (3, 1), (4, 1)]);
}

#[test]
fn an_sa_that_ends_waits_for_no_more_than_the_closing_of_a_narrow_one() {
    let (mut pair, id) = granting(4);
    distribute(&mut pair, id, (1..=6).map(|csa| of(csa, 1)));
    pair.with(Side::Left, |engine, now| engine.close(id, now));
    pair.lose();
    pair.run_for(Duration::from_secs(60));
    let left = pair.left.engine.sas().count() + pair.right.engine.sas().count();
    assert_eq!(left, 0);
}

#[test]
fn a_message_in_one_piece_leaves_the_fragments_of_another_alone() {
    let (mut pair, _) = wide((mobile(), gateway()), [4; 2]);
    let long = saying(NotifyType(40000), &[7; 2000]);
    let mut requests = raw(&mut pair, [long, Vec::new()]);
    assert_eq!(requests.len(), 3, "two fragments, and a whole message");
    requests.swap(1, 2);
    for request in &requests {
        pair.deliver(request);
    }
    let ids = ids(&pair.intercept());
    assert_eq!(ids, [ids[1] + 1, ids[1]]);
}

/// "If there are outstanding IKEv2 requests ..., continues retransmitting them using the addresses
/// in the IKE_SA (the new addresses)" (RFC 4555 section 3.5).
// Recovers: window
#[test]
fn every_request_under_way_takes_the_new_path_before_the_update() {
    let (mut pair, _) = wide(roaming(), [4; 2]);
    let lost = raw(&mut pair, [const { Vec::new() }; 3]);
    move_to(&mut pair, to(CELL));
    let again = pair.intercept();
    assert_eq!(ids(&again), ids(&lost));
    for request in &again {
        assert_eq!(request.path.remote.ip(), to(CELL).local.ip());
        pair.deliver(request);
    }
    pair.settle();
    assert_eq!(
        path_of(&mut pair, Side::Right).remote.ip(),
        to(CELL).local.ip()
    );
}

/// "Determines whether it has already received a newer UPDATE_SA_ADDRESSES request than this one
/// ... If it has, a normal response message is sent, but no other action is taken" (RFC 4555
/// section 3.5).
#[test]
fn an_update_that_a_newer_one_has_overtaken_moves_nobody() {
    let (mut pair, _) = wide(roaming(), [4; 2]);
    let update = || saying(NotifyType::UPDATE_SA_ADDRESSES, &[]);
    let updates = raw(&mut pair, [update(), update()]);
    pair.deliver(&from(&updates[1], CELL));
    pair.intercept();
    pair.deliver(&from(&updates[0], TRAIN));
    assert_eq!(ids(&pair.intercept()), ids(&updates[..1]), "it is answered");
    assert_eq!(
        path_of(&mut pair, Side::Right).remote.ip(),
        to(CELL).local.ip()
    );
}

/// "If it has, a response message is sent, but the address set is not updated" (section 3.6).
#[test]
fn a_list_of_addresses_that_a_newer_one_has_overtaken_is_not_kept() {
    let (mut pair, _) = wide(roaming(), [4; 2]);
    let list = |last| saying(NotifyType::ADDITIONAL_IP4_ADDRESS, &[198, 51, 100, last]);
    let lists = raw(&mut pair, [list(1), list(2)]);
    for request in lists.iter().rev() {
        pair.deliver(request);
    }
    let kept = pair
        .right
        .events
        .iter()
        .rev()
        .find_map(|event| match event {
            Event::Mobile { addresses, .. } => Some(addresses.clone()),
            _ => None,
        });
    assert_eq!(kept, Some(vec!["198.51.100.2".parse().unwrap()]));
}

/// Meanwhile a NAT has given the sender another port (RFC 7296 section 2.23).
#[test]
fn a_request_that_comes_late_moves_nobody_back() {
    let (mut left, mut right) = (mobile(), gateway());
    (left.peers[0].window, right.peers[0].window) = (4, 4);
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT.with_shift(100));
    pair.connect();
    let mut requests = raw(&mut pair, [const { Vec::new() }; 2]);
    let shift = 10_000;
    pair.nat = Some(NAT.with_shift(shift));
    requests[1].path.remote.set_port(4500 + shift);
    for request in requests.iter().rev() {
        pair.deliver(request);
        pair.run_for(Duration::from_millis(200));
        let port = path_of(&mut pair, Side::Right).remote.port();
        assert_eq!(port, 4500 + shift);
    }
}

#[test]
fn rekeys_of_everything_settle_under_any_windows() {
    for seed in 0..60 {
        let windows = [[1, 8], [8, 8], [64, 2]][usize::from(seed) % 3];
        let (mut pair, _) = wide(roaming(), windows);
        pair.reseed(seed);
        pair.hop = pair.hop.losing(150).repeating(300).delaying(300);
        for round in 0..6 {
            let side = [Side::Left, Side::Right][round % 2];
            rekey_child(&mut pair, side);
            rekey_child(&mut pair, side.other());
            if round % 3 == 2 {
                rekey_ike(&mut pair, side);
            }
            pair.run_for(Duration::from_secs(7));
        }
        pair.hop = pair.hop.healed();
        pair.run_for(Duration::from_secs(300));
        assert!(is_settled(&mut pair), "seed {seed}");
    }
}
