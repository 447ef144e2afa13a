//! Rekeying of children and of the IKE SA itself.

use super::distribute::grant;
use super::pair::{Host, Pair, Side, fit, keys_of};
use super::*;
use crate::sa::State;
use crate::sa::closing::Ending;
use crate::{DownReason, Event};
use crypto::Secret;
use model::{ChildSa, ChildSaId, IkeSaId};
use std::time::Duration;
use wire::ike::{Header, NotifyType};

const BOTH: [Side; 2] = [Side::Left, Side::Right];

/// Returns a connected pair with these lifetimes; zero means unlimited.
fn living(child: Duration, ike: Duration) -> Pair {
    let (mut left, mut right) = (mobile(), gateway());
    for config in [&mut left, &mut right] {
        let lifetimes = &mut config.peers[0].lifetimes;
        (lifetimes.child, lifetimes.ike) = (child, ike);
    }
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

pub(crate) fn connected() -> Pair {
    living(Duration::ZERO, Duration::ZERO)
}

fn zoned(map: MapKind) -> Pair {
    let (mut left, mut right) = (mobile(), gateway());
    for config in [&mut left, &mut right] {
        let zones = zones_of(config);
        *zones = two_zones(Stance::Require, "node.example.net");
        zones.map = map.clone();
    }
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

impl Host {
    pub(crate) fn ike(&self) -> IkeSaId {
        let mut sas = self.engine.sas();
        sas.find(|sa| sa.state == crate::SaState::Established)
            .unwrap()
            .id
    }

    /// Returns pairs of a rekeyed child and its successor, in order.
    fn successors(&self) -> Vec<(ChildSaId, &ChildSa<Secret>)> {
        let rekeyed = self.events.iter().filter_map(|event| match event {
            Event::ChildRekeyed { old, new } => Some((*old, &**new)),
            _ => None,
        });
        rekeyed.collect()
    }

    pub(crate) fn newest(&self) -> &ChildSa<Secret> {
        let live = self.children();
        live.last().copied().unwrap()
    }

    /// Returns the successors that the peer is known to have installed.
    fn assured(&self) -> Vec<ChildSaId> {
        let assured = self.events.iter().filter_map(|event| match event {
            Event::ChildAssured { child } => Some(*child),
            _ => None,
        });
        assured.collect()
    }

    pub(crate) fn ike_rekeys(&self) -> usize {
        let rekeyed = |event: &&Event| matches!(event, Event::IkeRekeyed { .. });
        self.events.iter().filter(rekeyed).count()
    }
}

/// Returns the keys of the companion opaque SA, if the child has one.
fn keys_beside(child: &ChildSa<Secret>) -> Option<Vec<Vec<u8>>> {
    child.opaque.as_ref().map(|opaque| keys_of(&opaque.inbound))
}

pub(crate) fn rekey_child(pair: &mut Pair, side: Side) {
    let (sa, child) = {
        let host = pair.host(side);
        (host.ike(), host.newest().id)
    };
    pair.with(side, |engine, now| engine.rekey_child(sa, child, now));
}

pub(crate) fn rekey_ike(pair: &mut Pair, side: Side) {
    let sa = pair.host(side).ike();
    pair.with(side, |engine, now| engine.rekey_ike(sa, now));
}

/// Returns true if both ends agree on one IKE SA and one child, and nothing is left over.
pub(crate) fn is_settled(pair: &mut Pair) -> bool {
    let one = pair.left.children().len() == 1 && pair.right.children().len() == 1;
    one && fit(pair.left.newest(), pair.right.newest()) && ikes_fit(pair)
}

fn ikes_fit(pair: &Pair) -> bool {
    let of = |host: &Host| {
        let keys = host.engine.key_log(host.ike()).unwrap();
        (keys.spi_i, keys.spi_r, keys.sk_ei.expose().to_vec())
    };
    let sas = pair.left.engine.sas().count() + pair.right.engine.sas().count();
    of(&pair.left) == of(&pair.right) && sas == 2
}

#[test]
fn a_child_is_rekeyed_by_either_end_and_the_old_one_stays_for_a_while() {
    for side in BOTH {
        for mut pair in [
            connected(),
            zoned(MapKind::Changeable),
            zoned(fixed_map(52)),
        ] {
            let (before, agreement, beside) = {
                let old = pair.left.child();
                (
                    keys_of(&old.inbound),
                    old.agreement.clone(),
                    keys_beside(old),
                )
            };
            rekey_child(&mut pair, side);
            pair.settle();
            for host in [&pair.left, &pair.right] {
                assert_eq!(host.children().len(), 2, "both are there");
                assert_eq!(host.successors().len(), 1);
            }
            let new = pair.left.newest();
            assert!(fit(new, pair.right.newest()));
            assert_ne!(keys_of(&new.inbound), before);
            assert_eq!(new.agreement, agreement);
            assert!(beside.is_none() && new.opaque.is_none() || keys_beside(new) != beside);
            assert_eq!(new.initiator, side == Side::Left);
            pair.run_for(Duration::from_secs(60));
            assert!(is_settled(&mut pair));
            assert!(pair.left.down_reasons().is_empty());
        }
    }
}

#[test]
fn keys_of_a_successor_come_from_a_key_exchange_if_one_end_wants_it() {
    let sizes = [(true, true), (false, false)].map(|(left, right)| {
        let (mut mobile, mut gateway) = (mobile(), gateway());
        mobile.peers[0].lifetimes.pfs = left;
        gateway.peers[0].lifetimes.pfs = right;
        let mut pair = Pair::new(mobile, gateway);
        pair.connect();
        rekey_child(&mut pair, Side::Left);
        pair.settle();
        assert!(fit(pair.left.newest(), pair.right.newest()));
        pair.sent[4].message.len()
    });
    // A KE payload, and three transforms to choose from: two groups and none.
    assert_eq!(sizes[0] - sizes[1], 40 + 24);
}

#[test]
fn an_ike_sa_is_rekeyed_by_either_end_and_keeps_its_name_and_children() {
    for side in BOTH {
        let mut pair = connected();
        let (names, child) = ((pair.left.ike(), pair.right.ike()), pair.left.child().id);
        let before = pair.left.engine.key_log(names.0).unwrap();
        rekey_ike(&mut pair, side);
        pair.settle();
        assert_eq!((pair.left.ike(), pair.right.ike()), names);
        let after = pair.left.engine.key_log(names.0).unwrap();
        assert!(after.spi_i != before.spi_i && after.sk_ei != before.sk_ei);
        assert_eq!(pair.left.child().id, child);
        assert_eq!((pair.left.ike_rekeys(), pair.right.ike_rekeys()), (1, 1));
        pair.run_for(Duration::from_secs(120));
        assert!(is_settled(&mut pair));
        // Later requests go on the successor, with message IDs from zero.
        rekey_child(&mut pair, Side::Left);
        let header = Header::peek(&pair.sent.last().unwrap().message).unwrap();
        assert_eq!((header.message_id, header.spi_i), (0, after.spi_i));
        pair.settle();
        assert!(fit(pair.left.newest(), pair.right.newest()));
        assert!(pair.left.down_reasons().is_empty());
    }
}

#[test]
fn what_a_rekeyed_ike_sa_has_to_do_is_done_on_its_successor() {
    let mut pair = connected();
    rekey_ike(&mut pair, Side::Left);
    // The child's rekey waits for that of the IKE SA.
    rekey_child(&mut pair, Side::Left);
    pair.settle();
    assert_eq!(pair.left.successors().len(), 1);
    assert!(fit(pair.left.newest(), pair.right.newest()));
}

#[test]
fn keys_are_replaced_when_their_lifetime_is_over_and_not_long_before() {
    let hour = Duration::from_secs(3600);
    let mut pair = living(hour, 4 * hour);
    pair.run_for(hour * 9 / 10 - Duration::from_secs(1));
    assert!(pair.left.successors().is_empty() && pair.right.successors().is_empty());
    pair.run_for(hour / 10 + Duration::from_secs(1));
    assert_eq!(pair.left.successors().len(), 1);
    pair.run_for(24 * hour);
    assert!((25..30).contains(&pair.left.successors().len()));
    assert!((6..8).contains(&pair.left.ike_rekeys()));
    assert!(pair.left.down_reasons().is_empty());
    assert!(fit(pair.left.newest(), pair.right.newest()));
}

#[test]
fn who_hands_keys_to_licensed_nodes_asks_first() {
    let hour = Duration::from_secs(3600);
    let (mut left, mut right) = (mobile(), gateway());
    left.peers[0].lifetimes.child = hour;
    right.peers[0].lifetimes.child = hour;
    right.peers.push(peer("node", PeerRole::Licensed));
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair.run_for(24 * hour);
    let asked = |host: &Host| {
        let all = host.successors();
        all.iter().filter(|(_, new)| new.initiator).count()
    };
    assert_eq!(asked(&pair.left), 0);
    assert!(asked(&pair.right) > 20);
}

#[test]
fn rekeys_survive_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        let mut pair = Pair::seeded(mobile(), gateway(), seed);
        pair.connect();
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        for round in 0..6 {
            let side = BOTH[usize::from(seed.wrapping_add(round) % 2)];
            match round % 3 {
                0 => rekey_ike(&mut pair, side),
                _ => rekey_child(&mut pair, side),
            }
            pair.run_for(Duration::from_secs(60));
        }
        pair.run_for(Duration::from_secs(300));
        assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
        assert_eq!(pair.left.successors().len(), 4, "seed {seed}");
        assert_eq!(pair.right.successors().len(), 4, "seed {seed}");
        assert_eq!(pair.left.ike_rekeys(), 2, "seed {seed}");
        assert!(pair.left.down_reasons().is_empty(), "seed {seed}");
    }
}

/// Section 2.8.1, with every order of the four messages.
#[test]
fn of_two_successors_asked_for_at_once_the_one_with_the_lowest_nonce_goes() {
    let mut losers = [0, 0];
    for seed in 0..20 {
        for first in 0..4 {
            let mut pair = Pair::seeded(mobile(), gateway(), seed);
            pair.connect();
            rekey_child(&mut pair, Side::Left);
            rekey_child(&mut pair, Side::Right);
            pair.cross(first);
            pair.run_for(Duration::from_secs(120));
            assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
            let ours = pair.left.newest().initiator;
            assert_ne!(ours, pair.right.newest().initiator);
            losers[usize::from(ours)] += 1;
        }
    }
    assert!(losers.iter().all(|&count| count > 10), "{losers:?}");
}

/// Section 2.8.1, the second sequence of events: A's request is lost, and B does not notice the
/// collision.
#[test]
fn a_request_that_comes_when_the_peers_own_is_done_is_refused_and_forgotten() {
    let mut pair = connected();
    rekey_child(&mut pair, Side::Left);
    let late = pair.intercept().remove(0);
    rekey_child(&mut pair, Side::Right);
    pair.settle();
    pair.deliver(&late);
    pair.run_for(Duration::from_secs(60));
    assert!(is_settled(&mut pair));
    assert_eq!(pair.left.successors().len(), 1);
    assert!(pair.left.refusals().is_empty() && pair.left.down_reasons().is_empty());
}

#[test]
fn of_two_ike_successors_asked_for_at_once_the_one_with_the_lowest_nonce_goes() {
    let mut losers = [0, 0];
    for seed in 0..20 {
        for order in 0..4 {
            let mut pair = Pair::seeded(mobile(), gateway(), seed);
            pair.connect();
            rekey_ike(&mut pair, Side::Left);
            rekey_ike(&mut pair, Side::Right);
            pair.cross(order);
            pair.run_for(Duration::from_secs(120));
            assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
            assert_eq!((pair.left.ike_rekeys(), pair.right.ike_rekeys()), (1, 1));
            let id = pair.left.ike();
            let ours = pair.left.engine.sas().find(|sa| sa.id == id).unwrap();
            losers[usize::from(ours.initiator)] += 1;
        }
    }
    assert!(losers.iter().all(|&count| count > 10), "{losers:?}");
}

/// strongSwan ignores our answer if it comes while strongSwan processes our request. It learns of
/// the losing SA only when it retransmits, four seconds later.
#[test]
fn a_peer_that_is_not_ready_for_the_end_of_what_lost_a_race_is_told_again() {
    for order in 0..4 {
        let mut pair = connected();
        rekey_ike(&mut pair, Side::Left);
        rekey_ike(&mut pair, Side::Right);
        pair.cross(order);
        pair.lose();
        pair.hop.lost = 1000;
        pair.run_for(Duration::from_secs(5));
        pair.hop.lost = 0;
        pair.run_for(Duration::from_secs(5));
        for host in [&pair.left, &pair.right] {
            let mut states = host.engine.sas.values().map(|sa| &sa.state);
            let waits = |state: &State| {
                matches!(
                    state,
                    State::Ending(Ending::Closing(_) | Ending::Retired(_))
                )
            };
            assert!(!states.any(waits), "{order}");
            assert_eq!(host.ike_rekeys(), 1, "{order}");
        }
    }
}

/// Section 2.8.2: the end that did not notice the collision is closing the old SA when the other
/// end's request arrives.
#[test]
fn an_ike_rekey_that_only_one_end_notices_to_be_double_ends_in_the_other_one() {
    let mut pair = connected();
    rekey_ike(&mut pair, Side::Left);
    pair.intercept();
    rekey_ike(&mut pair, Side::Right);
    pair.run_for(Duration::from_secs(120));
    assert!(is_settled(&mut pair), "{:?}", pair.left.events);
    assert_eq!((pair.left.ike_rekeys(), pair.right.ike_rekeys()), (1, 1));
}

#[test]
fn simultaneous_rekeys_of_everything_settle_whatever_the_network_does() {
    for seed in 0..60 {
        let mut pair = Pair::seeded(mobile(), gateway(), seed);
        pair.connect();
        pair.hop = pair.hop.losing(250).repeating(200).delaying(200);
        for _ in 0..3 {
            for side in BOTH {
                rekey_child(&mut pair, side);
                rekey_ike(&mut pair, side);
            }
            pair.run_for(Duration::from_secs(20));
        }
        pair.run_for(Duration::from_secs(400));
        assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
        assert!(pair.left.down_reasons().is_empty(), "seed {seed}");
        assert!(pair.right.down_reasons().is_empty(), "seed {seed}");
    }
}

#[test]
fn a_rekey_that_meets_the_end_of_the_sa_ends_with_it() {
    for rekey in [rekey_child, rekey_ike] {
        let mut pair = connected();
        rekey(&mut pair, Side::Left);
        pair.with(Side::Right, |engine, now| engine.shutdown(now));
        pair.run_for(Duration::from_secs(120));
        assert_eq!(pair.left.down_reasons(), [&DownReason::ClosedByPeer]);
        assert!(pair.left.children().is_empty());
        let left = pair.left.engine.sas().count() + pair.right.engine.sas().count();
        assert_eq!(left, 0);
    }
}

#[test]
fn a_busy_peer_is_asked_again() {
    let mut pair = connected();
    // The right end waits for the answer to its own request.
    let right = pair.right.ike();
    pair.with(Side::Right, |engine, now| {
        engine.revoke(right, model::CsaId(1), now);
    });
    pair.intercept();
    rekey_ike(&mut pair, Side::Left);
    pair.deliver_next();
    let refusal = pair.intercept().remove(0);
    let id = pair.left.ike();
    let payloads = pair.left.engine.open_raw(id, &refusal.message).payloads;
    assert!(format!("{payloads:?}").contains("TEMPORARY_FAILURE"));
    pair.deliver(&refusal);
    pair.run_for(Duration::from_secs(120));
    assert!(is_settled(&mut pair));
    assert_eq!(pair.left.ike_rekeys(), 1);
    assert!(pair.left.refusals().is_empty());
}

/// The right end has answered and wants to rekey again before its answer has arrived.
#[test]
fn a_successor_that_is_not_known_yet_is_rekeyed_later() {
    let mut pair = connected();
    rekey_child(&mut pair, Side::Left);
    pair.deliver_next();
    pair.intercept();
    rekey_child(&mut pair, Side::Right);
    pair.run_for(Duration::from_secs(120));
    assert!(is_settled(&mut pair), "{:?}", pair.left.events);
    assert_eq!(pair.left.successors().len(), 2);
    assert!(pair.left.down_reasons().is_empty());
}

/// "The responder MUST remember each response until it receives a request whose sequence number is
/// larger than or equal to the sequence number in the response plus its window size" (section 2.3).
#[test]
fn who_asks_for_something_else_has_the_successor_it_asked_for() {
    for (window, unsure) in [(1, 1), (2, 2)] {
        let (left, mut right) = (mobile(), gateway());
        right.peers[0].window = window;
        let mut pair = Pair::new(left, right);
        pair.connect();
        let mut asked = Vec::new();
        for _ in 0..4 {
            rekey_child(&mut pair, Side::Left);
            pair.settle();
            asked.push(pair.right.newest().id);
            let sure = asked.len().saturating_sub(unsure);
            assert_eq!(pair.right.assured(), asked[..sure], "of {window}");
        }
        assert_eq!(pair.left.assured(), [], "it knows what it has");
    }
}

/// The peer may have nothing to send, and it may forget to delete the old SA.
#[test]
fn who_does_not_ask_again_has_the_successor_it_asked_for() {
    let mut pair = connected();
    rekey_child(&mut pair, Side::Left);
    pair.deliver_next();
    let successor = pair.right.newest().id;
    // All answers are lost.
    for _ in 0..5 {
        pair.lose();
        assert_eq!(pair.right.assured(), [], "at {:?}", pair.now);
        while pair.is_quiet() {
            pair.now += Duration::from_millis(100);
            pair.timeout(Side::Right);
            pair.timeout(Side::Left);
        }
        pair.deliver_next();
    }
    assert!(pair.now.since_origin() > Duration::from_secs(7));
    pair.deliver_next();
    assert!(fit(pair.left.newest(), pair.right.newest()));
    // The peer is heard for a while on the old SA. Then all its messages are lost.
    pair.lose();
    for _ in 0..10 {
        pair.now += Duration::from_secs(1);
        let sa = pair.right.ike();
        pair.with(Side::Right, |engine, now| engine.note_inbound(sa, now));
        pair.timeout(Side::Right);
        pair.lose();
    }
    assert_eq!(pair.right.assured(), []);
    let answered = pair.now;
    while pair.right.assured().is_empty() {
        pair.lose();
        pair.timeout(Side::Right);
        pair.now += Duration::from_millis(100);
    }
    let waited = pair.now.since(answered);
    assert_eq!(pair.right.assured(), [successor]);
    assert!(waited < Duration::from_secs(6), "{waited:?}");
}

#[test]
fn a_repeated_request_makes_one_successor() {
    for rekey in [rekey_child, rekey_ike] {
        let mut pair = connected();
        rekey(&mut pair, Side::Left);
        let request = pair.intercept().remove(0);
        for _ in 0..3 {
            pair.deliver(&request);
        }
        let answers = pair.intercept();
        assert!(
            answers
                .windows(2)
                .all(|two| two[0].message == two[1].message)
        );
        answers.iter().for_each(|answer| pair.deliver(answer));
        pair.run_for(Duration::from_secs(60));
        assert!(is_settled(&mut pair));
    }
}

#[test]
fn a_child_that_does_not_exist_is_not_rekeyed() {
    use super::attack::ask_sealed;
    use crate::exchange::create_child::rekey_sa;
    use wire::ike::{ExchangeType, Payload};
    let mut pair = connected();
    let id = pair.left.ike();
    let request = |spi| {
        let proposals = crate::proposal::offer_esp(
            &crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]),
            model::Spi(4096),
        );
        let mut payloads = vec![
            Payload::SecurityAssociation(proposals),
            Payload::Nonce(vec![7; 32]),
        ];
        payloads.extend(spi);
        payloads
    };
    let kind = ExchangeType::CREATE_CHILD_SA;
    let named = request(Some(rekey_sa(model::Spi(0x1234_5678))));
    let answer = ask_sealed(&mut pair, id, kind, named);
    let [Payload::Notify(notify)] = &answer[..] else {
        panic!("{answer:?}");
    };
    assert_eq!(notify.kind, NotifyType::CHILD_SA_NOT_FOUND);
    assert_eq!(notify.spi, 0x1234_5678_u32.to_be_bytes());
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

/// Sends a rekey request without a KE payload for the IKE SA, or without selectors for a child.
pub(crate) fn lacking(about_ike: bool) -> Pair {
    use super::attack::ask_sealed;
    use crate::exchange::create_child::rekey_sa;
    use crate::proposal::{offer_esp, offer_successor};
    use wire::ike::{ExchangeType, Payload};
    let mut pair = connected();
    pair.begin_story();
    let id = pair.left.ike();
    let menu = crate::allowed_suites::AllowedIkeSuites::of(&mobile().peers[0]);
    let (proposals, named) = match about_ike {
        true => (offer_successor(&menu, 7), None),
        false => {
            let old = pair.left.newest().inbound.spi;
            let offer = offer_esp(
                &crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]),
                model::Spi(4096),
            );
            (offer, Some(rekey_sa(old)))
        }
    };
    let mut payloads = vec![
        Payload::SecurityAssociation(proposals),
        Payload::Nonce(vec![7; 32]),
    ];
    payloads.extend(named);
    let answer = ask_sealed(&mut pair, id, ExchangeType::CREATE_CHILD_SA, payloads);
    let fatal = crate::exchange::notify(NotifyType::INVALID_SYNTAX, Vec::new());
    assert_eq!(answer, [fatal]);
    pair
}

/// RFC 7296 section 2.21.3: both the sender and the receiver of INVALID_SYNTAX forget the SA.
#[test]
fn a_renewal_that_lacks_what_it_needs_ends_the_sa_at_both_ends() {
    for about_ike in [false, true] {
        let pair = lacking(about_ike);
        assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
        assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
    }
}

#[test]
fn a_licensed_nodes_sa_is_rekeyed_with_its_grants_and_gets_no_child() {
    let gateway = host("gateway", peer("node", PeerRole::Licensed));
    let node = host("node", peer("gateway", PeerRole::Gateway));
    for side in BOTH {
        let mut pair = Pair::new(gateway.clone(), node.clone());
        let id = pair.connect();
        let grant = grant(1);
        pair.with(Side::Left, |engine, now| engine.distribute(id, grant, now));
        pair.settle();
        rekey_ike(&mut pair, side);
        pair.settle();
        assert!(ikes_fit(&pair));
        // The successor knows the grant, so the grant can be revoked, once.
        for _ in 0..2 {
            pair.with(Side::Left, |engine, now| {
                engine.revoke(id, model::CsaId(77), now);
            });
        }
        pair.settle();
        let revoked = |event: &&Event| matches!(event, Event::Revoked { .. });
        assert_eq!(pair.right.events.iter().filter(revoked).count(), 1);
    }
}

#[test]
fn a_peer_that_refuses_new_keys_is_left_before_the_old_ones_are_too_old() {
    let hour = Duration::from_secs(3600);
    let (mut left, right) = (mobile(), gateway());
    left.peers[0].lifetimes.child = hour;
    left.peers[0].suites = vec![Suite::Aes128Gcm16];
    let mut pair = Pair::new(left, right);
    pair.connect();
    // The gateway's policy has changed and no longer accepts the suite.
    let mut strict = gateway();
    strict.peers[0].suites = vec![Suite::Aes256Gcm16];
    *pair.right.engine.config = strict;
    pair.run_for(hour);
    assert!(
        pair.left.refusals()[0].contains("NO_PROPOSAL_CHOSEN"),
        "{:?}",
        pair.left.refusals()
    );
    assert_eq!(pair.left.children().len(), 1, "the old keys do for now");
    pair.run_for(hour / 2);
    assert_eq!(pair.left.down_reasons(), [&DownReason::LifetimeOver]);
}

#[test]
fn a_rekey_has_the_licences_that_both_policies_have_then() {
    for (side, other) in [(Side::Left, Side::Right), (Side::Right, Side::Left)] {
        let mut pair = zoned(MapKind::Changeable);
        let [node, thief] = ["node.example.net", "thief.example.net"].map(licence);
        let agreed = |pair: &mut Pair| {
            rekey_child(pair, side);
            pair.settle();
            assert!(fit(pair.left.newest(), pair.right.newest()));
            pair.left.newest().agreement.clone().unwrap().licences
        };
        let both = vec![node.clone(), thief];
        for (of, has, common) in [
            (side, both.clone(), vec![node.clone()]),
            (other, both.clone(), both.clone()),
            (other, Vec::new(), Vec::new()),
            (other, vec![node.clone()], vec![node]),
        ] {
            zones_of(&mut pair.host(of).engine.config).licences = has;
            assert_eq!(agreed(&mut pair), common);
        }
    }
}

#[test]
fn a_peer_that_asks_without_end_gets_a_bounded_number_of_children() {
    let mut pair = connected();
    for _ in 0..100 {
        rekey_child(&mut pair, Side::Left);
        pair.settle();
    }
    let most = pair.right.engine.config.limits.children;
    assert!(pair.right.children().len() <= most);
    pair.run_for(Duration::from_secs(300));
    assert!(is_settled(&mut pair));
}

#[test]
fn a_peer_that_never_deletes_what_it_replaced_is_helped() {
    let mut pair = connected();
    rekey_child(&mut pair, Side::Left);
    pair.settle();
    // The left end never deletes the old child.
    pair.left.engine.config.timers.drain = Duration::from_secs(86_400);
    let before = pair.right.children().len();
    pair.run_for(Duration::from_secs(120));
    assert!(before == 2 && pair.right.children().len() == 1);
}
