//! Re-authentication of both ends, in an IKE SA that replaces the old one.

use super::addresses::{borrower, lender};
use super::pair::{Host, Pair, Side, fit, keys_of};
use super::rekey::{rekey_child, rekey_ike};
use super::*;
use crate::{CannotReauthenticate, DownReason, Event, Inside};
use model::{ChildSaId, IkeSaId};

/// Longer than any drain time with its Delete.
const MINUTE: Duration = Duration::from_secs(60);

/// Returns a pair whose authentications are valid for these seconds; zero means unlimited.
fn counting(left: u64, right: u64) -> Pair {
    let (mut mobile, mut gateway) = (mobile(), gateway());
    mobile.peers[0].lifetimes.reauth = Duration::from_secs(left);
    gateway.peers[0].lifetimes.reauth = Duration::from_secs(right);
    let mut pair = Pair::new(mobile, gateway);
    pair.connect();
    pair
}

/// Re-authenticates from the left end.
pub(crate) fn reauthenticate(pair: &mut Pair) -> IkeSaId {
    let sa = pair.left.current();
    let begun = pair.with(Side::Left, |engine, now| engine.reauthenticate(sa, now));
    begun.expect("it is up, and ours")
}

/// Returns true if both ends have the same single IKE SA and child, and nothing else.
pub(crate) fn is_settled(pair: &Pair) -> bool {
    let spis = |host: &Host| {
        let sas = host.engine.sas().map(|sa| (sa.spi_i, sa.spi_r, sa.leaving));
        sas.collect::<Vec<_>>()
    };
    let (left, right) = (spis(&pair.left), spis(&pair.right));
    let one = left.len() == 1 && left == right && !left[0].2;
    one && fit(pair.left.child(), pair.right.child())
}

impl Host {
    /// Returns the IKE SA that is up and not about to leave.
    pub(crate) fn current(&self) -> IkeSaId {
        let mut sas = self.engine.sas();
        let current = sas.find(|sa| sa.since.is_some() && !sa.leaving);
        current.expect("one is up").id
    }

    /// Returns pairs of an IKE SA and its replacement.
    fn replaced(&self) -> Vec<(IkeSaId, IkeSaId)> {
        let replaced = self.events.iter().filter_map(|event| match event {
            Event::IkeReplaced { old, sa, .. } => Some((*old, *sa)),
            _ => None,
        });
        replaced.collect()
    }

    /// Returns the children that were replaced.
    fn succeeded(&self) -> Vec<ChildSaId> {
        let succeeded = self.events.iter().filter_map(|event| match event {
            Event::ChildRekeyed { old, .. } => Some(*old),
            _ => None,
        });
        succeeded.collect()
    }

    fn lent(&self) -> Vec<Inside> {
        let lent = self.events.iter().filter_map(|event| match event {
            Event::Configured { inside, .. } => Some(inside.clone()),
            _ => None,
        });
        lent.collect()
    }
}

#[test]
fn a_new_ike_sa_takes_the_place_of_the_old_one_and_its_child_that_of_the_old_child() {
    let mut pair = counting(0, 0);
    let before = keys_of(&pair.left.child().inbound);
    let (old, child) = (pair.left.current(), pair.left.child().id);
    let new = reauthenticate(&mut pair);
    pair.settle();
    assert_eq!(pair.left.replaced(), [(old, new)]);
    assert_eq!(pair.left.succeeded(), [child]);
    for host in [&pair.left, &pair.right] {
        assert_eq!((host.up(), host.children().len()), (2, 2), "both are there");
        assert_eq!(host.replaced().len(), 1);
        assert!(host.down_reasons().is_empty());
    }
    let newest = |host: &Host| keys_of(&host.children()[1].inbound);
    assert_ne!(newest(&pair.left), before);
    pair.run_for(MINUTE);
    assert!(is_settled(&pair));
    assert_eq!(pair.left.down_reasons(), [&DownReason::Replaced]);
    assert_eq!(pair.right.down_reasons(), [&DownReason::Replaced]);
}

#[test]
fn the_old_child_is_received_on_until_the_delete_was_answered_and_a_little_longer() {
    let mut pair = counting(0, 0);
    reauthenticate(&mut pair);
    pair.settle();
    pair.run_for(pair.left.engine.config.timers.drain);
    let children = |pair: &Pair| (pair.left.children().len(), pair.right.children().len());
    assert_eq!((pair.is_quiet(), children(&pair)), (false, (2, 2)));
    let retired = |host: &Host| {
        let retired = |event: &&Event| matches!(event, Event::ChildRetired { .. });
        host.events.iter().filter(retired).count()
    };
    assert_eq!(retired(&pair.right), 0);
    pair.deliver_next();
    assert_eq!(retired(&pair.right), 1, "it is not sent on any more");
    pair.deliver_next();
    assert_eq!(children(&pair), (2, 2), "stragglers may come");
    pair.run_for(pair.left.engine.config.timers.stragglers);
    assert_eq!(children(&pair), (1, 1));
}

#[test]
fn a_lost_answer_to_the_delete_is_given_again() {
    let mut pair = counting(0, 0);
    reauthenticate(&mut pair);
    pair.settle();
    pair.run_for(pair.left.engine.config.timers.drain);
    pair.deliver_next();
    pair.longest[Side::Left as usize] = 0;
    pair.lose();
    pair.run_for(Duration::from_secs(10));
    assert_eq!((pair.left.up(), pair.right.up()), (2, 1));
    pair.longest[Side::Left as usize] = usize::MAX;
    pair.run_for(MINUTE / 3);
    assert!(is_settled(&pair));
}

#[test]
fn who_began_repeats_an_authentication_before_its_time_is_over() {
    let mut pair = counting(100, 0);
    pair.run_for(Duration::from_secs(89));
    assert_eq!(pair.left.replaced(), []);
    pair.run_for(Duration::from_secs(12));
    assert_eq!(pair.left.replaced().len(), 1);
    pair.run_for(Duration::from_secs(1000));
    let repeated = pair.left.replaced().len();
    assert!((10..=13).contains(&repeated), "{repeated} times");
    pair.run_for(MINUTE / 2);
    assert!(pair.left.refusals().is_empty() && pair.right.refusals().is_empty());
    assert!(fit(
        pair.left.children().last().expect("one is there"),
        pair.right.children().last().expect("one is there")
    ));
}

/// RFC 4478.
#[test]
fn what_the_responder_announces_is_obeyed_with_time_to_spare() {
    let mut pair = counting(0, 100);
    pair.run_for(Duration::from_secs(80));
    assert_eq!(pair.left.replaced(), []);
    pair.run_for(Duration::from_secs(12));
    assert_eq!(pair.left.replaced().len(), 1);
}

#[test]
fn an_announcement_during_the_sa_counts_as_well_and_lengthens_nothing() {
    for (seconds, repeated) in [(20, 1), (4000, 0)] {
        let mut pair = counting(1000, 0);
        let lifetime = Duration::from_secs(seconds);
        let said = crate::extension::reauth::announcement(lifetime);
        let sa = pair.right.current();
        pair.with(Side::Right, |engine, now| {
            let exchange = wire::ike::ExchangeType::INFORMATIONAL;
            engine.request_raw(sa, exchange, said.into_iter().collect(), now);
        });
        pair.run_for(Duration::from_secs(30));
        assert_eq!(pair.left.replaced().len(), repeated, "{seconds} s");
        pair.run_for(Duration::from_secs(1000));
        assert!(!pair.left.replaced().is_empty());
    }
}

// Refuses: reauth
#[test]
fn an_authentication_that_cannot_be_repeated_ends_the_ike_sa() {
    let mut pair = counting(100, 0);
    pair.right.engine.config.peers[0].psk = Some(Secret::new(b"another".to_vec()));
    pair.run_for(Duration::from_secs(105));
    let refusals = pair.left.refusals();
    let told = |refusal: &String| refusal.contains("re-authentication failed");
    assert!(refusals.iter().any(told), "{refusals:?}");
    assert!(pair.left.down_reasons().is_empty());
    assert!(is_settled(&pair), "all is as it was");
    pair.run_for(MINUTE);
    assert_eq!(pair.left.down_reasons(), [&DownReason::ProofTooOld]);
    assert_eq!(pair.right.down_reasons(), [&DownReason::ClosedByPeer]);
    let tried = pair.left.refusals().into_iter().filter(|it| told(it));
    assert!((3..=9).contains(&tried.count()));
}

#[test]
fn a_responder_ends_what_is_not_repeated() {
    let mut pair = counting(0, 100);
    pair.hop.lost = 1000;
    pair.run_for(Duration::from_secs(159));
    assert!(pair.right.down_reasons().is_empty());
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.right.down_reasons(), [&DownReason::ProofTooOld]);
}

#[test]
fn what_cannot_be_repeated_is_refused() {
    let mut pair = counting(0, 0);
    let ask =
        |pair: &mut Pair, side, sa| pair.with(side, |engine, now| engine.reauthenticate(sa, now));
    let (ours, theirs) = (pair.left.current(), pair.right.current());
    let not_ours = ask(&mut pair, Side::Right, theirs);
    assert_eq!(not_ours, Err(CannotReauthenticate::NotOurs));
    let nobodys = ask(&mut pair, Side::Left, IkeSaId(99));
    assert_eq!(nobodys, Err(CannotReauthenticate::NotUp));
    assert!(ask(&mut pair, Side::Left, ours).is_ok());
    let twice = ask(&mut pair, Side::Left, ours);
    assert_eq!(twice, Err(CannotReauthenticate::UnderWay));
    pair.settle();
    let leaving = ask(&mut pair, Side::Left, ours);
    assert_eq!(leaving, Err(CannotReauthenticate::UnderWay));
}

/// Re-authenticates, but once the initiator has sent IKE_AUTH, loses all answers longer than a
/// liveness check.
fn unanswered(pair: &mut Pair) {
    pair.longest[Side::Left as usize] = usize::MAX;
    reauthenticate(pair);
    pair.deliver_next();
    pair.deliver_next();
    pair.longest[Side::Left as usize] = 120;
    pair.run_for(Duration::from_secs(150));
}

#[test]
fn a_new_ike_sa_whose_answer_never_came_leaves_both_ends_with_the_old_one() {
    let mut pair = counting(0, 0);
    pair.right.engine.config.peers[0].liveness = Duration::from_secs(30);
    unanswered(&mut pair);
    assert_eq!(pair.right.replaced().len(), 1, "there it came about");
    let told = &pair.left.refusals()[0];
    assert!(told.contains("re-authentication failed"), "{told}");
    assert!(matches!(
        pair.right.down_reasons()[..],
        [DownReason::PeerGone { .. }]
    ));
    assert!(is_settled(&pair));
}

#[test]
fn what_was_never_used_gives_way_to_the_next_attempt() {
    let mut pair = counting(0, 0);
    let old = pair.right.current();
    for _ in 0..3 {
        unanswered(&mut pair);
        assert_eq!(pair.right.up(), 2, "the one in use, and the newest");
        assert!(pair.right.engine.sa(old).is_some());
    }
    pair.longest[Side::Left as usize] = usize::MAX;
    reauthenticate(&mut pair);
    pair.run_for(MINUTE);
    assert!(is_settled(&pair));
}

// Recovers: reauth
#[test]
fn an_authentication_crosses_with_new_keys_and_both_ends_agree() {
    const OTHERS: [fn(&mut Pair); 4] = [
        |pair| rekey_child(pair, Side::Left),
        |pair| rekey_child(pair, Side::Right),
        |pair| rekey_ike(pair, Side::Left),
        |pair| rekey_ike(pair, Side::Right),
    ];
    for seed in 0..80 {
        let mut pair = Pair::seeded(mobile(), gateway(), seed);
        pair.connect();
        pair.hop = pair.hop.losing(150).repeating(100).delaying(200);
        let other = OTHERS[usize::from(seed % 4)];
        // The rekey starts before the re-authentication, with it, or while the answer to IKE_AUTH
        // is awaited.
        let ahead = Duration::from_millis(u64::from(seed / 8) * 10);
        match seed % 8 < 4 {
            true => {
                other(&mut pair);
                pair.run_for(ahead);
                reauthenticate(&mut pair);
            }
            false => {
                reauthenticate(&mut pair);
                pair.run_for(ahead);
                other(&mut pair);
            }
        }
        pair.run_for(Duration::from_secs(300));
        assert!(is_settled(&pair), "seed {seed}");
        assert_eq!(pair.left.replaced().len(), 1, "seed {seed}");
    }
}

#[test]
fn a_peer_that_is_closed_meanwhile_is_closed_with_both_sas() {
    for delivered in 0..8 {
        for side in [Side::Left, Side::Right] {
            let mut pair = counting(0, 0);
            reauthenticate(&mut pair);
            for _ in 0..delivered {
                pair.deliver_next();
            }
            pair.with(side, |engine, now| {
                for peer in ["mobile", "gateway"] {
                    engine.bar(peer_id(peer), true, now);
                }
                engine.shutdown(now);
            });
            pair.run_for(MINUTE * 5);
            let host = pair.host(side);
            assert_eq!(host.engine.sas().count(), 0, "{side:?} after {delivered}");
            assert_eq!(host.children().len(), 0, "{side:?} after {delivered}");
        }
    }
}

#[test]
fn a_lent_address_stays_with_who_proves_itself_anew() {
    let mut pair = Pair::new(borrower(), lender(&["10.9.0.0/24", "fd00:9::/64"]));
    pair.connect();
    reauthenticate(&mut pair);
    pair.run_for(MINUTE);
    assert!(is_settled(&pair));
    let lent = pair.left.lent();
    assert_eq!(lent.len(), 2);
    assert_eq!(lent[0], lent[1]);
    let leases: Vec<_> = pair.right.engine.leases().collect();
    assert_eq!((leases.len(), leases[0].free_from), (1, None));
}
