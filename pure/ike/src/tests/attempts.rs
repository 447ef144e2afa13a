//! An attempt beside one that was refused without proof.

use super::pair::{Flying, Host, Pair, Side, fit};
use super::skid::{answer, first};
use super::ticket::{lost_as, resuming};
use super::*;
use crate::{ApiMisuse, DownReason, End, Event, Ppk, Resumption};
use model::IkeSaId;
use wire::ike::{ExchangeType, Header, Notify, NotifyType};

fn ppk() -> Option<Box<Ppk>> {
    Some(Box::new(Ppk {
        id: "office2026".to_owned(),
        secret: Secret::new(vec![7; 32]),
        required: true,
    }))
}

/// For the pages: the gateway gets the PPK that it lacked while an attempt is in progress.
pub(crate) fn mended() -> Pair {
    let (mut left, mut right) = (mobile(), gateway());
    left.peers[0].ppk = ppk();
    let mut pair = Pair::new(left, right.clone());
    pair.connect();
    right.peers[0].ppk = ppk();
    pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
    pair.connect();
    pair
}

fn refusal(request: &Flying, kind: NotifyType) -> Flying {
    request.forged_answer(&[Notify::new(kind, Vec::new())])
}

/// Initiates and has a stranger refuse that. Returns the request, which is held back.
fn begin_refused(pair: &mut Pair) -> (IkeSaId, Flying) {
    let id = pair.initiate(Side::Left);
    let request = pair.intercept().remove(0);
    pair.deliver(&refusal(&request, NotifyType::NO_PROPOSAL_CHOSEN));
    (id, request)
}

/// Returns the reason why another attempt cannot begin.
fn begin_again(pair: &mut Pair) -> Option<ApiMisuse> {
    let path = pair.left.engine.sas().next().unwrap().path;
    pair.with(Side::Left, |engine, now| {
        engine.initiate(peer_id("gateway"), path, now).err()
    })
}

fn is_one_tunnel(pair: &Pair) {
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    let sas = [&pair.left, &pair.right].map(|host| host.engine.sas().count());
    assert_eq!(sas, [1, 1]);
    assert!(fit(pair.left.child(), pair.right.child()));
}

#[test]
fn an_answer_that_lacks_something_is_repeated_and_a_new_attempt_gets_another() {
    let mut pair = mended();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert_eq!(pair.left.down_reasons(), [&DownReason::ClosedHere; 0]);
    pair.run_for(Duration::from_secs(120));
    is_one_tunnel(&pair);
}

#[test]
fn another_attempt_begins_only_beside_one_that_was_refused() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    assert_eq!(begin_again(&mut pair), Some(ApiMisuse::AlreadyInitiating));
    // The answer arrives after all, so IKE_AUTH is under way.
    let request = pair.intercept().remove(0);
    pair.deliver(&refusal(&request, NotifyType::NO_PROPOSAL_CHOSEN));
    pair.deliver(&request);
    pair.deliver_next();
    assert_eq!(begin_again(&mut pair), Some(ApiMisuse::AlreadyInitiating));
    // One whose IKE_AUTH is refused in clear may have another beside it.
    let request = pair.intercept().remove(0);
    pair.deliver(&refusal(&request, NotifyType::INVALID_IKE_SPI));
    assert_eq!(begin_again(&mut pair), None);
    pair.settle();
    assert_eq!(pair.left.up(), 1);
    assert_eq!(
        begin_again(&mut pair),
        None,
        "no tunnel that is up is in the way"
    );
}

// Weakness: 179
#[test]
fn another_attempt_begins_beside_one_that_the_responder_may_have_lost() {
    const REPEATED: Duration = Duration::from_millis(1500);
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.lose();
    pair.restart(Side::Right, Host::seeded(gateway(), 8, 2));
    // Nobody has answered yet, so nothing is lost there.
    pair.now += REPEATED;
    pair.timeout(Side::Left);
    assert_eq!(begin_again(&mut pair), Some(ApiMisuse::AlreadyInitiating));
    pair.deliver_next();
    pair.deliver_next();
    pair.lose();
    assert_eq!(begin_again(&mut pair), Some(ApiMisuse::AlreadyInitiating));
    pair.restart(Side::Right, Host::seeded(gateway(), 9, 2));
    pair.now += REPEATED;
    pair.timeout(Side::Left);
    assert_eq!(begin_again(&mut pair), None);
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    pair.run_for(Duration::from_secs(120));
    is_one_tunnel(&pair);
}

/// Returns a pair whose right end has the IKE SA of the first attempt, and whose answer is late.
/// Others begin beside that attempt, and send IKE_AUTH in vain.
fn answered_late(others: usize) -> (Pair, Flying) {
    let mut pair = Pair::new(mobile(), gateway());
    let mut late = Vec::new();
    for attempt in 0..=others {
        match attempt {
            0 => drop(pair.initiate(Side::Left)),
            _ => assert_eq!(begin_again(&mut pair), None),
        }
        let request = pair.intercept().remove(0);
        pair.deliver(&request);
        pair.deliver_next();
        let proof = pair.intercept().remove(0);
        if attempt == 0 {
            pair.deliver(&proof);
            late = pair.intercept();
        }
        // It is repeated, so another attempt may begin.
        pair.now += Duration::from_millis(1500);
        pair.timeout(Side::Left);
        pair.lose();
    }
    (pair, late.remove(0))
}

/// Otherwise the responder would have an IKE SA that nobody deletes, and might send on its child.
// Weakness: 188
#[test]
fn an_attempt_that_sent_its_proof_goes_on_beside_others() {
    let (mut pair, late) = answered_late(3);
    pair.deliver(&late);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    pair.run_for(Duration::from_secs(200));
    is_one_tunnel(&pair);
}

#[test]
fn at_most_five_attempts_are_under_way() {
    let (pair, _) = answered_late(9);
    assert_eq!(pair.left.engine.sas().count(), 5);
}

// Weakness: 178
#[test]
fn the_first_attempt_to_be_answered_wins_and_the_other_ends_without_a_word() {
    for first in [0, 1] {
        let mut pair = Pair::new(mobile(), gateway());
        let mut requests = Vec::new();
        for _ in 0..2 {
            requests.push(begin_refused(&mut pair));
        }
        let (winner, genuine) = requests.swap_remove(first);
        pair.deliver(&genuine);
        pair.settle();
        is_one_tunnel(&pair);
        assert_eq!(pair.left.engine.sas().next().unwrap().id, winner);
        let attempt = pair.left.engine.attempt(peer_id("gateway")).unwrap();
        assert_eq!(attempt.end, Some(End::Up));
        // The other one's request arrives late.
        pair.deliver(&requests[0].1);
        pair.run_for(Duration::from_secs(120));
        is_one_tunnel(&pair);
        let down = |event: &Event| matches!(event, Event::IkeDown { .. } | Event::ChildDown { .. });
        assert!(!pair.left.events.iter().any(down));
    }
}

/// Their answers arrive in the order of the requests.
#[test]
fn of_two_attempts_that_both_sent_ike_auth_both_ends_keep_the_same() {
    for reverse in [false, true] {
        let mut pair = Pair::new(mobile(), gateway());
        let requests = [(); 2].map(|()| begin_refused(&mut pair).1);
        for request in &requests {
            pair.deliver(request);
            pair.deliver_next();
        }
        let mut requests = pair.intercept();
        assert_eq!(requests.len(), 2);
        if reverse {
            requests.reverse();
        }
        requests.iter().for_each(|request| pair.deliver(request));
        pair.run_for(Duration::from_secs(120));
        is_one_tunnel(&pair);
    }
}

// Weakness: 178
#[test]
fn of_many_attempts_that_are_refused_the_two_newest_continue() {
    let mut pair = Pair::new(mobile(), gateway());
    let mut newest = Vec::new();
    for _ in 0..10 {
        newest.push(begin_refused(&mut pair).0);
        let mut left: Vec<_> = pair.left.engine.sas().map(|sa| sa.id).collect();
        left.sort_unstable();
        assert_eq!(left, newest[newest.len().saturating_sub(2)..]);
    }
    pair.run_for(Duration::from_secs(120));
    is_one_tunnel(&pair);
}

// Recovers: tunnel
#[test]
fn two_attempts_over_a_network_that_loses_doubles_and_reorders_make_one_tunnel() {
    for seed in 0..40 {
        let mut pair = Pair::seeded(mobile(), gateway(), seed);
        begin_refused(&mut pair);
        pair.hop = pair.hop.losing(200).repeating(300).delaying(300);
        pair.run_for(Duration::from_secs(1));
        if pair.left.up() == 0 && begin_again(&mut pair).is_none() {
            pair.run_for(Duration::from_secs(1));
        }
        pair.run_for(Duration::from_secs(300));
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "seed {seed}");
        assert!(fit(pair.left.child(), pair.right.child()), "seed {seed}");
    }
}

/// Has the left end take up the next thing that is due, and returns what it sends in this exchange.
fn next_due(pair: &mut Pair, exchange: ExchangeType) -> Flying {
    let is_meant = |flying: &Flying| Header::peek(&flying.message).unwrap().exchange == exchange;
    for _ in 0..10 {
        pair.now += Duration::from_millis(500);
        pair.timeout(Side::Left);
        if let Some(found) = pair.intercept().into_iter().find(is_meant) {
            return found;
        }
    }
    panic!("nothing of the kind is sent");
}

/// Delivers a message a while later, and returns the answer to it.
fn answer_later(pair: &mut Pair, flying: &Flying) -> Flying {
    pair.now += Duration::from_millis(20);
    answer(pair, flying)
}

/// Checks that the tunnel that the client uses is there at the gateway, and that the others go.
fn is_the_same(pair: &mut Pair, which: &str) {
    pair.settle();
    let used = pair.left.children().pop().unwrap();
    let has = pair.right.children().into_iter().any(|one| fit(used, one));
    assert!(has, "{which}");
    pair.run_for(Duration::from_secs(200));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "{which}");
    assert!(fit(pair.left.child(), pair.right.child()), "{which}");
}

/// The gateway is slow: the client has begun in full beside its session, and both come up. What
/// the gateway sees last, the client may see first.
// Weakness: 191
#[test]
fn of_two_attempts_that_cross_both_ends_keep_the_same_one() {
    for way in [Resumption::Tickets, Resumption::Skid3] {
        for gateways in [0, 1] {
            for clients in [0, 1] {
                let mut pair = lost_as(resuming((mobile(), gateway()), way));
                let resume = first(&mut pair);
                let init = next_due(&mut pair, ExchangeType::IKE_SA_INIT);
                let init = answer_later(&mut pair, &init);
                let auth = answer_later(&mut pair, &init);
                let resumed = answer_later(&mut pair, &resume);
                let mut last = [auth, answer_later(&mut pair, &resumed)];
                last.rotate_left(gateways);
                let mut answers = last.map(|request| answer_later(&mut pair, &request));
                answers.rotate_left(clients);
                answers.iter().for_each(|answer| pair.deliver(answer));
                is_the_same(&mut pair, &format!("{way:?}, {gateways}, {clients}"));
            }
        }
    }
}

/// The first one is up at the gateway, and its answer comes last.
// Weakness: 191
#[test]
fn an_attempt_that_may_be_up_at_the_gateway_is_not_disowned_by_the_next_one() {
    let resumes = lost_as(resuming((mobile(), gateway()), Resumption::Tickets));
    for mut pair in [Pair::new(mobile(), gateway()), resumes] {
        let request = first(&mut pair);
        let response = answer_later(&mut pair, &request);
        let auth = answer_later(&mut pair, &response);
        let late = answer_later(&mut pair, &auth);
        // The node begins again beside what is not answered.
        pair.now += Duration::from_secs(5);
        pair.timeout(Side::Left);
        pair.intercept();
        pair.initiate(Side::Left);
        let init = pair.intercept().remove(0);
        let init = answer_later(&mut pair, &init);
        let auth = answer_later(&mut pair, &init);
        let response = answer_later(&mut pair, &auth);
        pair.deliver(&response);
        pair.deliver(&late);
        is_the_same(&mut pair, "the first one comes last");
    }
}
