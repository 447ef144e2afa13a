//! Licences that change while a tunnel is up (DESIGN section 4, invariants 4 and 5).

use super::pair::{Pair, Side, fit};
use super::zones::zoned;
use super::*;
use crate::{DownReason, Event};

const NODE: &str = "node.example.net";
const OTHER: &str = "other.example.net";
const BOTH: [Side; 2] = [Side::Left, Side::Right];

fn connected() -> Pair {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

/// Reloads one end's configuration with these licences.
pub(super) fn license(pair: &mut Pair, side: Side, nodes: &[&str]) {
    let mut config = (*pair.host(side).engine.config).clone();
    zones_of(&mut config).licences = nodes.iter().map(|node| licence(node)).collect();
    let anew = pair.with(side, |engine, now| engine.reconfigure(config, now));
    assert_eq!(anew, [], "nothing is made anew");
}

/// Returns the licences of the newest tunnel, on which both ends agree.
pub(super) fn licensed(pair: &Pair) -> Vec<Licence> {
    let (left, right) = (pair.left.newest(), pair.right.newest());
    assert!(fit(left, right));
    left.agreement.clone().unwrap().licences
}

/// Returns the number of rekeyed children.
fn rekeys(pair: &mut Pair, side: Side) -> usize {
    let rekeyed = |event: &&Event| matches!(event, Event::ChildRekeyed { .. });
    pair.host(side).events.iter().filter(rekeyed).count()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn either_end_alone_takes_a_licence_back_by_new_keys_and_nothing_ends() {
    for side in BOTH {
        let mut pair = connected();
        assert_eq!(licensed(&pair), [licence(NODE)]);
        license(&mut pair, side, &[]);
        pair.run_for(seconds(1));
        assert_eq!(licensed(&pair), []);
        assert_eq!((rekeys(&mut pair, side), pair.left.up()), (1, 1));
        let refusals = pair.host(side.other()).refusals().join("");
        assert!(
            refusals.contains("zone 1 to node.example.net"),
            "{refusals}"
        );
        pair.run_for(seconds(600));
        assert_eq!(rekeys(&mut pair, side), 1, "once is enough");
        assert_eq!(pair.left.down_reasons(), [] as [&DownReason; 0]);
    }
}

#[test]
fn a_licence_is_given_when_the_second_end_has_it() {
    for side in BOTH {
        let mut pair = connected();
        license(&mut pair, side, &[NODE, OTHER]);
        pair.run_for(seconds(1));
        assert_eq!(licensed(&pair), [licence(NODE)]);
        let refusals = pair.host(side).refusals().join("");
        assert!(
            refusals.contains("zone 1 to other.example.net"),
            "{refusals}"
        );
        license(&mut pair, side.other(), &[OTHER, NODE]);
        pair.run_for(seconds(1));
        assert_eq!(licensed(&pair), [NODE, OTHER].map(licence));
        assert_eq!(pair.host(side).refusals().len(), 1, "it is told once");
    }
}

#[test]
fn another_rekey_does_not_tell_again_what_is_not_licensed() {
    let mut pair = connected();
    license(&mut pair, Side::Right, &[]);
    pair.run_for(seconds(1));
    let told = pair.left.refusals().len();
    for side in [BOTH, BOTH].concat() {
        let host = pair.host(side);
        let (ike, child) = (host.engine.sas().next().unwrap().id, host.newest().id);
        pair.with(side, |engine, now| engine.rekey_child(ike, child, now));
        pair.run_for(seconds(60));
    }
    assert_eq!(rekeys(&mut pair, Side::Left), 5);
    assert_eq!(pair.left.refusals().len(), told);
}

#[test]
fn a_file_that_says_the_same_licences_in_another_order_takes_no_new_keys() {
    let mut pair = connected();
    license(&mut pair, Side::Left, &[NODE, NODE]);
    pair.run_for(seconds(10));
    assert_eq!(rekeys(&mut pair, Side::Left), 0);
}

/// The peer answered an offer whose licence is revoked before the answer arrives.
#[test]
fn what_was_agreed_while_a_licence_was_taken_back_gets_new_keys_again() {
    for asks in BOTH {
        for revokes in BOTH {
            let mut pair = connected();
            let host = pair.host(asks);
            let (ike, child) = (host.engine.sas().next().unwrap().id, host.newest().id);
            pair.with(asks, |engine, now| engine.rekey_child(ike, child, now));
            assert!(pair.deliver_next());
            license(&mut pair, revokes, &[]);
            pair.run_for(seconds(60));
            assert_eq!(licensed(&pair), [], "{asks:?} asks, {revokes:?} takes back");
            assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
        }
    }
}

#[test]
fn licences_taken_back_and_given_again_at_once_are_there_in_the_end() {
    for side in BOTH {
        let mut pair = connected();
        for nodes in [&[][..], &[NODE], &[], &[NODE]] {
            license(&mut pair, side, nodes);
            pair.run_for(Duration::from_millis(5));
        }
        pair.run_for(seconds(60));
        assert_eq!(licensed(&pair), [licence(NODE)]);
    }
}

// Recovers: licence-changes
#[test]
fn both_ends_may_change_their_licences_at_once_over_any_network() {
    for seed in 0..40 {
        let (left, right) = zoned(Stance::Require, Stance::Require);
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        for side in BOTH {
            license(&mut pair, side, &[OTHER]);
        }
        pair.run_for(seconds(50));
        assert_eq!(licensed(&pair), [licence(OTHER)], "seed {seed}");
    }
}

/// The end that revoked the licence cannot know that the peer obeys, so its wait is limited.
// Recovers: licence-changes
#[test]
fn a_peer_that_makes_no_new_keys_is_left_within_a_minute() {
    for refuses in [false, true] {
        let mut pair = connected();
        match refuses {
            // The peer's policy has changed and no longer accepts the suite.
            true => pair.right.engine.config.peers[0].suites = vec![Suite::Aes256Gcm16],
            false => pair.away.push(pair::RIGHT.parse().unwrap()),
        }
        if refuses {
            pair.left.engine.config.peers[0].suites = vec![Suite::Aes128Gcm16];
        }
        license(&mut pair, Side::Left, &[]);
        pair.run_for(seconds(59));
        assert_eq!(pair.left.up(), 1);
        pair.run_for(seconds(2));
        assert_eq!(pair.left.down_reasons(), [&DownReason::Reconfigured]);
    }
}

/// No node reads more than before, so there is no limit on the wait for an additional licence.
#[test]
fn a_licence_that_is_only_added_ends_no_tunnel_whose_peer_makes_no_new_keys() {
    let mut pair = connected();
    pair.left.engine.config.peers[0].suites = vec![Suite::Aes128Gcm16];
    pair.right.engine.config.peers[0].suites = vec![Suite::Aes256Gcm16];
    license(&mut pair, Side::Left, &[NODE, OTHER]);
    pair.run_for(seconds(600));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert!(pair.left.refusals().join("").contains("NO_PROPOSAL_CHOSEN"));
}

#[test]
fn an_attempt_under_way_ends_with_the_licences_of_now() {
    for passed in 0..4 {
        for side in BOTH {
            let (left, right) = zoned(Stance::Require, Stance::Require);
            let mut pair = Pair::new(left, right);
            pair.initiate(Side::Left);
            (0..passed).for_each(|_| assert!(pair.deliver_next()));
            license(&mut pair, side, &[]);
            pair.run_for(seconds(60));
            assert_eq!(licensed(&pair), [], "{side:?} after {passed}");
        }
    }
}

#[test]
fn a_plain_tunnel_does_not_notice_that_licences_change() {
    let (left, right) = zoned(Stance::Accept, Stance::Refuse);
    let mut pair = Pair::new(left, right);
    pair.connect();
    let before = pair.sent.len();
    license(&mut pair, Side::Left, &[OTHER]);
    assert_eq!(pair.sent.len(), before);
}
