//! Clones of an IKE SA: the rules of RFC 7791, and the soft hand-overs built on them.

use super::addresses::{borrower, lender};
use super::attack::ask_sealed;
use super::children;
use super::mobike::{CELL, TRAIN, move_to, roaming, to};
use super::pair::{Flying, Host, LEFT, Pair, Side, fit, keys_of};
use super::reauth::{is_settled, reauthenticate};
use super::rekey::{rekey_child, rekey_ike};
use super::*;
use crate::exchange::create_child::Offered;
use crate::exchange::{find_notify, notify};
use crate::extension::clone;
use crate::sa::established;
use crate::task;
use crate::{CannotMove, CannotReauthenticate, DownReason, Event};
use model::{IkeSaId, Kem};
use std::net::IpAddr;
use wire::ike::{ExchangeType, NotifyType, Payload};

/// Longer than any drain time with its Delete.
const MINUTE: Duration = Duration::from_secs(60);

/// Longer than a hand-over keeps trying its clone.
const TRIED: Duration = Duration::from_secs(40);

const BOTH: [Side; 2] = [Side::Left, Side::Right];

/// Returns ends that allow clones.
pub(crate) fn ends() -> (Config, Config) {
    allowing(roaming())
}

fn allowing((mut left, mut right): (Config, Config)) -> (Config, Config) {
    for config in [&mut left, &mut right] {
        (
            config.peers[0].features.mobike,
            config.peers[0].features.clones,
        ) = (true, true);
    }
    (left, right)
}

fn up((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

fn connected() -> Pair {
    up(ends())
}

/// Hands the left end's IKE SA over to another local address.
pub(crate) fn hand_over(pair: &mut Pair, local: &str) {
    assert_eq!(try_to(pair, Side::Left, local), Ok(()));
}

fn try_to(pair: &mut Pair, side: Side, local: &str) -> Result<(), CannotMove> {
    let sa = pair.host(side).current();
    pair.with(side, |engine, now| engine.hand_over(sa, to(local), now))
}

/// Requests a clone without a hand-over.
fn ask_for_clone(pair: &mut Pair, side: Side) {
    let sa = pair.host(side).current();
    pair.with(side, |engine, now| {
        engine.with_established(sa, now, |up, turn| {
            let asked = task::clone::request(up, to(CELL), turn);
            asked.expect("nothing is under way");
        });
    });
}

/// Requests a clone from the left end and keeps it together with the old IKE SA.
fn keep_clone(pair: &mut Pair) -> IkeSaId {
    ask_for_clone(pair, Side::Left);
    pair.settle_one_round();
    let (_, clone) = pair.left.cloned()[0];
    pair.with(Side::Left, |engine, now| {
        engine.with_established(clone, now, established::conclude_trial);
    });
    pair.settle();
    clone
}

/// Returns a request for a clone, as no task would send it.
fn request(spi: u64) -> Vec<Payload> {
    let menu = crate::allowed_suites::AllowedIkeSuites::of(&mobile().peers[0]);
    let mut rng = crypto::Rng::from_seed([3; 32]);
    let key = Offered::new(crate::allowed_suites::group_id(Group::X25519), &mut rng)
        .expect("a group of ours");
    vec![
        clone::payload(),
        Payload::SecurityAssociation(crate::proposal::offer_successor(&menu, spi)),
        Payload::Nonce(vec![spi as u8; 32]),
        key.payload(),
    ]
}

fn ask(pair: &mut Pair, spi: u64) -> Vec<Payload> {
    let sa = pair.left.current();
    ask_sealed(pair, sa, ExchangeType::CREATE_CHILD_SA, request(spi))
}

fn refusal(kind: NotifyType) -> Vec<Payload> {
    vec![notify(kind, Vec::new())]
}

/// Returns the left end's address on which each end sends children's packets.
fn carried_by(pair: &Pair) -> [IpAddr; 2] {
    let path = |host: &Host| host.engine.sa(host.current()).expect("it is up").path;
    [path(&pair.left).local.ip(), path(&pair.right).remote.ip()]
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

impl Host {
    /// Returns pairs of an IKE SA and its clone.
    fn cloned(&self) -> Vec<(IkeSaId, IkeSaId)> {
        let cloned = self.events.iter().filter_map(|event| match event {
            Event::IkeCloned { old, sa, .. } => Some((*old, *sa)),
            _ => None,
        });
        cloned.collect()
    }

    /// Returns pairs of an IKE SA and the clone that replaced it.
    fn handed_over(&self) -> Vec<(IkeSaId, IkeSaId)> {
        let handed = self.events.iter().filter_map(|event| match event {
            Event::IkeHandedOver { old, sa, .. } => Some((*old, *sa)),
            _ => None,
        });
        handed.collect()
    }

    fn told(&self, text: &str) -> bool {
        self.refusals().iter().any(|refusal| refusal.contains(text))
    }
}

/// Checks that nothing changed and nothing was lost.
fn is_as_it_was(pair: &Pair) {
    assert!(is_settled(pair));
    for host in [&pair.left, &pair.right] {
        assert!(host.handed_over().is_empty());
        let rekeyed = |event: &Event| matches!(event, Event::ChildRekeyed { .. });
        assert!(!host.events.iter().any(rekeyed));
    }
    assert_eq!(carried_by(pair), [address(LEFT); 2]);
}

#[test]
fn both_ends_say_in_ike_auth_that_they_allow_it() {
    let pair = connected();
    for host in [&pair.left, &pair.right] {
        let sa = host.engine.sa(host.current()).expect("it is up");
        assert!(sa.clones);
    }
}

/// "In the other case, the IKE SA MUST NOT be cloned" (section 5.1).
#[test]
fn where_one_end_does_not_allow_it_nothing_is_cloned() {
    for unwilling in BOTH {
        let (mut left, mut right) = ends();
        match unwilling {
            Side::Left => left.peers[0].features.clones = false,
            Side::Right => right.peers[0].features.clones = false,
        }
        let mut pair = up((left, right));
        let asked = try_to(&mut pair, Side::Left, CELL);
        assert_eq!(asked, Err(CannotMove::NotCloned));
        let answer = ask(&mut pair, 7);
        assert_eq!(answer, refusal(NotifyType::NO_ADDITIONAL_SAS));
        assert!(
            pair.right
                .told("clone its IKE SA (RFC 7791), which was not negotiated")
        );
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
        is_as_it_was(&pair);
    }
}

/// An old responder does not announce support although the initiator did. A responder does not
/// announce support unless the initiator did.
#[test]
fn a_responder_says_so_only_to_who_said_it() {
    for (says, answers) in [(true, true), (false, false)] {
        let (mut left, right) = ends();
        left.peers[0].features.clones = says;
        let mut pair = Pair::new(left, right);
        pair.initiate(Side::Left);
        pair.deliver_next();
        pair.deliver_next();
        pair.deliver_next();
        let answer = pair.intercept().remove(0);
        let message = pair
            .left
            .engine
            .peek(&answer.message)
            .expect("sealed whole");
        assert_eq!(clone::is_supported(&message), answers);
    }
}

#[test]
fn a_hand_over_takes_all_to_another_path_and_the_old_ike_sa_leaves() {
    let mut pair = connected();
    let (old, before) = (pair.left.current(), keys_of(&pair.left.child().inbound));
    hand_over(&mut pair, CELL);
    pair.settle();
    let (_, new) = pair.left.cloned()[0];
    assert_eq!(pair.left.handed_over(), [(old, new)]);
    assert_eq!(pair.right.handed_over().len(), 1);
    for host in [&pair.left, &pair.right] {
        assert_eq!((host.up(), host.children().len()), (2, 2), "both are there");
        assert!(host.down_reasons().is_empty());
        assert!(host.refusals().is_empty());
    }
    let newest = |host: &Host| keys_of(&host.children()[1].inbound);
    assert_ne!(newest(&pair.left), before);
    pair.run_for(MINUTE);
    assert!(is_settled(&pair));
    assert_eq!(carried_by(&pair), [address(CELL); 2]);
    assert_eq!(pair.left.down_reasons(), [&DownReason::Replaced]);
    assert_eq!(pair.right.down_reasons(), [&DownReason::Replaced]);
    assert_eq!(pair.left.child().path.local.ip(), address(CELL));
}

/// The hand-over waits until the peer answers on the new path (RFC 4555 section 3.7).
#[test]
fn nothing_of_the_old_one_changes_before_the_clone_has_arrived() {
    let mut pair = connected();
    let (sa, child) = (pair.left.current(), pair.left.child().id);
    hand_over(&mut pair, CELL);
    // CREATE_CHILD_SA and UPDATE_SA_ADDRESSES, each with its answer.
    for _ in 0..4 {
        assert_eq!(pair.left.child().id, child);
        let old = pair.left.engine.sa(sa).expect("it stays");
        assert_eq!((old.leaving, old.path.local.ip()), (false, address(LEFT)));
        pair.deliver_next();
    }
    let clones = pair.left.engine.sas().filter(|sa| sa.aside);
    assert_eq!(clones.count(), 1);
}

#[test]
fn several_hand_overs_follow_each_other() {
    let mut pair = up(allowing(children::ends()));
    for local in [CELL, TRAIN, LEFT, CELL] {
        hand_over(&mut pair, local);
        pair.run_for(MINUTE);
        assert!(children::agree(&pair, &[None, Some("voice")]), "{local}");
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
        assert_eq!(carried_by(&pair), [address(local); 2]);
    }
    assert!(pair.left.refusals().is_empty() && pair.right.refusals().is_empty());
}

/// "peers MUST NOT transfer existing Child SAs that were created by the old IKE SA" (section 5.2).
#[test]
fn children_stay_with_the_ike_sa_that_made_them() {
    let mut pair = connected();
    let child = pair.right.child().id;
    let old = pair.right.current();
    let answer = ask(&mut pair, 7);
    assert_eq!(answer.len(), 3, "HDR, SK {{SA, Nr, KEr}}: {answer:?}");
    let (of, clone) = pair.right.cloned()[0];
    assert_eq!(of, old);
    let sa = |id| pair.right.engine.sa(id).expect("it is up");
    assert_eq!(
        (sa(old).children, sa(clone).children),
        (vec![child], vec![])
    );
    rekey_child(&mut pair, Side::Left);
    pair.run_for(MINUTE);
    assert_eq!(
        pair.right.engine.sa(old).expect("it stays").children.len(),
        1
    );
}

#[test]
fn a_clone_has_all_but_keys_spis_and_children_of_what_it_came_of() {
    let (mut left, mut right) = allowing((borrower(), lender(&["10.9.0.0/24"])));
    for config in [&mut left, &mut right] {
        config.peers[0].window = 4;
    }
    let mut pair = up((left, right));
    let clone = keep_clone(&mut pair);
    for host in [&pair.left, &pair.right] {
        let sas: Vec<_> = host.engine.sas().collect();
        let [old, new] = &sas[..] else {
            panic!("two: {sas:?}");
        };
        assert_eq!((old.peer, old.nat, old.ppk), (new.peer, new.nat, new.ppk));
        assert_eq!((old.moves, old.addresses), (new.moves, new.addresses));
        assert_eq!((old.windows.theirs, new.windows.theirs), (4, 4));
        assert!(old.addresses.is_some() && new.clones);
        assert_ne!((old.spi_i, old.spi_r), (new.spi_i, new.spi_r));
        let keys = |sa| host.engine.key_log(sa).expect("it is up").sk_ei;
        assert_ne!(keys(old.id).expose(), keys(new.id).expose());
    }
    assert!(pair.left.engine.sa(clone).is_some());
}

#[test]
fn a_lent_address_stays_with_who_is_handed_over_and_is_free_after_both_are_gone() {
    let mut pair = up(allowing((borrower(), lender(&["10.9.0.0/24"]))));
    hand_over(&mut pair, CELL);
    pair.run_for(MINUTE);
    assert!(is_settled(&pair));
    let leases = |pair: &Pair| pair.right.engine.leases().collect::<Vec<_>>();
    assert_eq!(leases(&pair)[0].free_from, None);
    let sa = pair.left.current();
    pair.with(Side::Left, |engine, now| engine.close(sa, now));
    pair.run_for(MINUTE);
    assert!(leases(&pair)[0].free_from.is_some());
}

/// "If the CLONE_IKE_SA notification appears in any other message, it MUST be ignored" (section
/// 5.2).
// Refuses: clone
#[test]
fn in_any_other_message_the_notify_is_ignored() {
    let mut pair = connected();
    let sa = pair.left.current();
    let informational = vec![clone::payload(), clone::supported()];
    let answer = ask_sealed(&mut pair, sa, ExchangeType::INFORMATIONAL, informational);
    assert!(answer.is_empty());
    rekey_child(&mut pair, Side::Left);
    let asked = pair.intercept().remove(0);
    let asked = forged(&mut pair, Side::Left, &asked);
    pair.deliver(&asked);
    pair.settle();
    rekey_ike(&mut pair, Side::Left);
    pair.deliver_next();
    let answer = pair.intercept().remove(0);
    let answer = forged(&mut pair, Side::Right, &answer);
    pair.deliver(&answer);
    pair.run_for(MINUTE);
    for host in [&pair.left, &pair.right] {
        assert_eq!((host.up(), host.cloned().len()), (1, 0));
        assert_eq!((host.ike_rekeys(), host.children().len()), (1, 1));
    }
}

/// Returns the message with CLONE_IKE_SA added, sealed by its sender.
fn forged(pair: &mut Pair, from: Side, flying: &Flying) -> Flying {
    let reader = pair.host(from.other());
    let message = reader.engine.peek(&flying.message);
    let mut message = message.expect("sealed whole");
    message.payloads.insert(0, clone::payload());
    let sealed = pair.host(from).engine.seal(&message);
    Flying {
        message: sealed.expect("it has the keys"),
        ..flying.clone()
    }
}

/// Section 8: "a single end user may populate multiple IKE SAs".
// Refuses: clone
#[test]
fn a_peer_that_clones_for_ever_has_a_bounded_number_of_ike_sas() {
    let (left, mut right) = ends();
    right.peers[0].liveness = Duration::from_secs(30);
    let mut pair = up((left, right));
    let most = pair.right.engine.config.limits.clones;
    let answers: Vec<_> = (1..=20).map(|spi| ask(&mut pair, spi)).collect();
    let refused = |answer: &&Vec<Payload>| **answer == refusal(NotifyType::NO_ADDITIONAL_SAS);
    assert_eq!(answers.iter().filter(refused).count(), 20 - most);
    assert_eq!(pair.right.up(), 1 + most);
    assert!(
        pair.right
            .told("wants to clone its IKE SA, but already has 3 more")
    );
    // The clones are idle, and the right end's liveness checks delete them.
    pair.run_for(Duration::from_secs(600));
    assert!(is_settled(&pair));
}

/// Section 8: "Such a system should evaluate the number of Child SAs over the number of all IKE
/// SAs".
#[test]
fn children_are_counted_over_all_ike_sas_of_a_peer() {
    let (left, mut right) = ends();
    right.limits.children = 1;
    let mut pair = up((left, right));
    keep_clone(&mut pair);
    pair.run_for(MINUTE / 2);
    let children = |pair: &Pair| pair.right.children().len();
    assert_eq!(children(&pair), 2, "one may take the place of the other");
    let third = pair.left.cloned()[0].1;
    pair.with(Side::Left, |engine, now| {
        engine.with_established(third, now, |up, turn| {
            let asked = task::clone::request(up, to(CELL), turn);
            asked.expect("nothing is under way");
        });
    });
    pair.run_for(MINUTE / 2);
    assert_eq!(children(&pair), 2);
    assert!(
        pair.right
            .told("requests another tunnel, but already has 1")
    );
}

/// "the initiator SHOULD NOT retry cloning an IKE SA until some of the existing SAs with the
/// responder are deleted" (section 5.3).
#[test]
fn who_was_refused_for_good_asks_again_when_something_was_deleted() {
    let (left, mut right) = allowing(children::ends());
    right.limits.clones = 0;
    let mut pair = up((left, right));
    hand_over(&mut pair, CELL);
    pair.settle();
    assert!(
        pair.left.told("NO_ADDITIONAL_SAS"),
        "{:?}",
        pair.left.refusals()
    );
    let again = try_to(&mut pair, Side::Left, CELL);
    assert_eq!(again, Err(CannotMove::Enough));
    pair.right.engine.config.limits.clones = 1;
    children::close(&mut pair, Side::Left);
    pair.run_for(MINUTE);
    hand_over(&mut pair, CELL);
    pair.run_for(MINUTE);
    assert!(is_settled(&pair));
    assert_eq!(carried_by(&pair), [address(CELL); 2]);
}

#[test]
fn what_cannot_be_handed_over_is_refused() {
    let mut pair = connected();
    let theirs = try_to(&mut pair, Side::Right, CELL);
    assert_eq!(theirs, Err(CannotMove::NotOurs));
    let nobodys = pair.with(Side::Left, |engine, now| {
        engine.hand_over(IkeSaId(99), to(CELL), now)
    });
    assert_eq!(nobodys, Err(CannotMove::NotUp));
    hand_over(&mut pair, CELL);
    let twice = try_to(&mut pair, Side::Left, TRAIN);
    assert_eq!(twice, Err(CannotMove::UnderWay));
    pair.settle_one_round();
    let twice = try_to(&mut pair, Side::Left, TRAIN);
    assert_eq!(twice, Err(CannotMove::UnderWay), "the clone is on its way");
    let sa = pair.left.current();
    let anew = pair.with(Side::Left, |engine, now| engine.reauthenticate(sa, now));
    assert_eq!(anew, Err(CannotReauthenticate::UnderWay));
    pair.settle();
    let (old, new) = pair.left.handed_over()[0];
    for sa in [old, new] {
        let twice = pair.with(Side::Left, |engine, now| {
            engine.hand_over(sa, to(TRAIN), now)
        });
        assert_eq!(twice, Err(CannotMove::UnderWay), "the old one is leaving");
    }
    pair.run_for(MINUTE);
    reauthenticate(&mut pair);
    let twice = try_to(&mut pair, Side::Left, TRAIN);
    assert_eq!(
        twice,
        Err(CannotMove::UnderWay),
        "another one is being made"
    );
    pair.run_for(MINUTE);
    assert!(is_settled(&pair));
}

#[test]
fn without_mobike_nothing_is_handed_over() {
    let (mut left, right) = ends();
    left.peers[0].features.mobike = false;
    let mut pair = up((left, right));
    let asked = try_to(&mut pair, Side::Left, CELL);
    assert_eq!(asked, Err(CannotMove::NotAgreed));
}

#[test]
fn a_clone_to_where_nobody_answers_turns_back_and_all_stays() {
    let mut pair = connected();
    pair.away = vec![address(CELL)];
    hand_over(&mut pair, CELL);
    pair.run_for(TRIED);
    assert!(
        pair.left
            .told("the tunnel stays on its path, as the handover failed")
    );
    is_as_it_was(&pair);
    assert_eq!(pair.left.down_reasons(), [&DownReason::NotFollowed]);
    assert_eq!(pair.right.down_reasons(), [&DownReason::ClosedByPeer]);
    pair.away.clear();
    hand_over(&mut pair, CELL);
    pair.run_for(MINUTE);
    assert!(is_settled(&pair));
}

/// The peer has followed, but its answers are lost.
#[test]
fn a_clone_whose_answers_are_lost_there_turns_back_and_all_stays() {
    let mut pair = connected();
    hand_over(&mut pair, CELL);
    pair.settle_one_round();
    pair.deliver_next();
    pair.away = vec![address(CELL)];
    pair.lose();
    pair.run_for(TRIED * 2);
    is_as_it_was(&pair);
}

#[test]
fn a_peer_that_must_be_at_an_address_is_not_handed_over_elsewhere() {
    let (left, mut right) = ends();
    right.peers[0].address = Some(address(LEFT));
    let mut pair = up((left, right));
    hand_over(&mut pair, CELL);
    pair.run_for(MINUTE);
    assert!(
        pair.left.told("refused to move to our new address"),
        "{:?}",
        pair.left.refusals()
    );
    assert!(pair.left.told("the tunnel stays on its path"));
    assert!(pair.right.told("its configured address is"));
    is_as_it_was(&pair);
}

/// A hand-over moves all tunnels or none.
#[test]
fn a_clone_that_does_not_get_all_tunnels_turns_back_and_all_stays() {
    let mut pair = up(allowing(children::ends()));
    let before = [Side::Left, Side::Right].map(|side| pair.host(side).children().len());
    pair.right.engine.config.peers[0].children[0].local = vec![prefix("192.168.9.0/24")];
    hand_over(&mut pair, CELL);
    pair.settle();
    assert!(
        pair.left.told("TS_UNACCEPTABLE"),
        "{:?}",
        pair.left.refusals()
    );
    pair.run_for(MINUTE);
    assert!(pair.left.told("the tunnel stays on its path"));
    assert!(pair.left.handed_over().is_empty());
    assert!(children::agree(&pair, &[None, Some("voice")]));
    assert_eq!(before, [2, 2]);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert_eq!(carried_by(&pair), [address(LEFT); 2]);
}

/// The old IKE SA's child is rekeyed while the clone's child is in its place, and the new keys do
/// not count. If the hand-over is undone, the child is rekeyed again.
// Weakness: 102
#[test]
fn a_child_whose_new_keys_met_a_hand_over_that_turned_back_gets_others() {
    let (mut left, mut right) = allowing(children::ends());
    for config in [&mut left, &mut right] {
        config.peers[0].kems = vec![Some(Kem::MlKem512)];
    }
    left.peers[0].lifetimes.child = Duration::from_secs(100);
    let mut pair = up((left, right));
    pair.right.engine.config.peers[0].children[0].local = vec![prefix("192.168.9.0/24")];
    let (sa, old) = (pair.left.current(), pair.left.named(None).unwrap().id);
    pair.run_for(Duration::from_secs(89));
    hand_over(&mut pair, CELL);
    // The clone is up and its first child is requested when the old child's lifetime ends.
    while pair.left.cloned().is_empty() {
        pair.deliver_next();
    }
    let clones = pair.intercept();
    pair.now += Duration::from_secs(11);
    pair.timeout(Side::Left);
    let mut requests = pair.intercept();
    requests.retain(|flying| {
        let request = pair.right.engine.peek(&flying.message);
        request.is_some_and(|request| find_notify(&request, NotifyType::REKEY_SA).is_some())
    });
    pair.deliver(&requests.remove(0));
    let answer = pair.intercept().remove(0);
    for message in clones {
        pair.deliver(&message);
    }
    while pair.left.named(None).is_some_and(|child| child.ike == sa) {
        assert!(pair.deliver_next());
    }
    pair.deliver(&answer);
    // Long enough for a later rekey to be drained.
    pair.run_for(MINUTE * 2 + Duration::from_secs(5));
    assert!(pair.left.told("the tunnel stays on its path"));
    let new = pair.left.named(None).unwrap();
    assert!(new.id != old && new.ike == sa, "it has new keys");
    assert_eq!(new.exchanges.kems, [Kem::MlKem512]);
    assert!(children::agree(&pair, &[None, Some("voice")]));
}

#[test]
fn whichever_message_of_a_hand_over_is_lost_it_comes_about() {
    for lost in 0..8 {
        let mut pair = connected();
        hand_over(&mut pair, CELL);
        for _ in 0..lost {
            pair.deliver_next();
        }
        pair.lose();
        pair.run_for(MINUTE * 2);
        assert!(is_settled(&pair), "without message {lost}");
        assert_eq!(carried_by(&pair), [address(CELL); 2]);
        assert_eq!(
            pair.right.cloned().len(),
            1,
            "a repeated request is one request"
        );
    }
}

/// An additional key exchange follows, and only then is the clone up.
#[test]
fn a_clone_has_the_additional_key_exchanges_as_well() {
    let (mut left, mut right) = ends();
    for config in [&mut left, &mut right] {
        config.peers[0].kems = vec![Some(Kem::MlKem512)];
    }
    for lost in 0..12 {
        let mut pair = up((left.clone(), right.clone()));
        hand_over(&mut pair, CELL);
        for _ in 0..lost {
            pair.deliver_next();
        }
        pair.lose();
        pair.run_for(MINUTE * 2);
        assert!(is_settled(&pair), "without message {lost}");
        assert_eq!(carried_by(&pair), [address(CELL); 2]);
        let sa = pair.left.engine.sa(pair.left.current()).expect("it is up");
        assert_eq!(sa.kems, [Kem::MlKem512]);
    }
}

#[test]
fn a_clone_in_the_wrong_group_is_asked_for_in_the_right_one() {
    let (left, mut right) = ends();
    right.peers[0].groups = vec![Group::P256];
    let mut pair = up((left, right));
    hand_over(&mut pair, CELL);
    pair.run_for(MINUTE);
    assert!(is_settled(&pair));
    assert_eq!(carried_by(&pair), [address(CELL); 2]);
}

/// With two clones at once, each end refuses the other's request until its own is answered.
#[test]
fn a_clone_that_crosses_a_clone_is_refused_for_the_moment() {
    for order in 0..4 {
        let mut pair = connected();
        ask_for_clone(&mut pair, Side::Left);
        ask_for_clone(&mut pair, Side::Right);
        pair.cross(order);
        pair.run_for(MINUTE);
        for host in [&pair.left, &pair.right] {
            assert!(host.told("TEMPORARY_FAILURE"), "{order}");
            assert!(host.cloned().is_empty());
        }
        is_as_it_was(&pair);
    }
}

#[test]
fn a_clone_that_crosses_new_keys_of_the_ike_sa_loses_neither() {
    for order in 0..4 {
        let mut pair = connected();
        hand_over(&mut pair, CELL);
        rekey_ike(&mut pair, Side::Right);
        pair.cross(order);
        pair.run_for(MINUTE);
        assert!(is_settled(&pair), "{order}");
        assert!(
            pair.left
                .told("refused to clone the IKE SA (TEMPORARY_FAILURE)"),
            "{order}"
        );
        hand_over(&mut pair, CELL);
        pair.run_for(MINUTE);
        assert!(is_settled(&pair), "{order}");
        assert_eq!(carried_by(&pair), [address(CELL); 2]);
    }
}

// Recovers: clone
#[test]
fn a_hand_over_meets_new_keys_moves_and_children_and_both_ends_agree() {
    const OTHERS: [fn(&mut Pair); 5] = [
        |pair| rekey_child(pair, Side::Left),
        |pair| rekey_child(pair, Side::Right),
        |pair| rekey_ike(pair, Side::Left),
        |pair| rekey_ike(pair, Side::Right),
        |pair| move_to(pair, to(TRAIN)),
    ];
    for seed in 0..120 {
        let (left, right) = ends();
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        pair.hop = pair.hop.losing(150).repeating(100).delaying(200);
        let other = OTHERS[usize::from(seed % 5)];
        // The other operation starts before the hand-over, with it, or during it.
        let ahead = Duration::from_millis(u64::from(seed / 10) * 15);
        match seed % 2 == 0 {
            true => {
                other(&mut pair);
                pair.run_for(ahead);
                hand_over(&mut pair, CELL);
            }
            false => {
                hand_over(&mut pair, CELL);
                pair.run_for(ahead);
                other(&mut pair);
            }
        }
        pair.hop = pair.hop.healed();
        pair.run_for(Duration::from_secs(300));
        assert!(is_settled(&pair), "seed {seed}");
    }
}

#[test]
fn whoever_closes_meanwhile_closes_both() {
    for delivered in 0..10 {
        for side in BOTH {
            let mut pair = connected();
            for config in [&mut pair.left, &mut pair.right] {
                config.engine.config.peers[0].liveness = Duration::from_secs(30);
            }
            hand_over(&mut pair, CELL);
            for _ in 0..delivered {
                pair.deliver_next();
            }
            pair.with(side, |engine, now| {
                for peer in ["mobile", "gateway"] {
                    engine.bar(peer_id(peer), true, now);
                }
                engine.shutdown(now);
            });
            pair.run_for(MINUTE * 10);
            for side in BOTH {
                let host = pair.host(side);
                assert_eq!(host.engine.sas().count(), 0, "{side:?} after {delivered}");
                assert_eq!(host.children().len(), 0, "{side:?} after {delivered}");
            }
        }
    }
}

/// The peer has created a clone, but its answer never arrives. The peer's liveness check of the
/// clone fails and ends it.
#[test]
fn a_clone_whose_answer_never_came_is_nobodys_and_ends() {
    let (left, mut right) = ends();
    right.peers[0].liveness = Duration::from_secs(30);
    let mut pair = up((left, right));
    ask_for_clone(&mut pair, Side::Left);
    pair.deliver_next();
    pair.lose();
    let sa = pair.left.current();
    pair.with(Side::Left, |engine, now| engine.close(sa, now));
    pair.run_for(Duration::from_secs(600));
    assert_eq!(pair.right.engine.sas().count(), 0);
    assert_eq!(pair.right.cloned().len(), 1);
}

/// "two parallel IKE SAs are expected to coexist" (section 5.2).
// Recovers: clone
#[test]
fn a_peer_that_keeps_both_has_a_path_for_each_and_one_may_die() {
    let mut pair = connected();
    pair.right.engine.config.peers[0].liveness = Duration::from_secs(30);
    let (old, first) = (pair.right.current(), pair.right.child().id);
    let clone = keep_clone(&mut pair);
    pair.run_for(MINUTE);
    assert_eq!((pair.left.up(), pair.right.up()), (2, 2));
    let replaced = pair
        .right
        .events
        .iter()
        .any(|event| matches!(event, Event::ChildRekeyed { old, .. } if *old == first));
    assert!(replaced, "what comes there is answered there");
    let [left, right] = [&pair.left, &pair.right].map(|host| host.children());
    assert_eq!((left.len(), right.len()), (2, 2));
    assert!(fit(left[0], right[0]) && fit(left[1], right[1]));
    // The new path fails.
    pair.with(Side::Left, |engine, now| {
        engine.with_established(clone, now, |up, turn| drop(established::abandon(up, turn)));
    });
    pair.away = vec![address(CELL)];
    pair.run_for(Duration::from_secs(600));
    assert_eq!(pair.right.up(), 1);
    assert_eq!(pair.right.child().id, first);
    assert!(pair.right.engine.sa(old).is_some());
}

/// A clone is no authentication, so it does not extend the lifetime of the last one.
#[test]
fn a_clone_does_not_lengthen_an_authentication() {
    let (mut left, right) = ends();
    left.peers[0].lifetimes.reauth = Duration::from_secs(100);
    let mut pair = up((left, right));
    pair.run_for(Duration::from_secs(40));
    hand_over(&mut pair, CELL);
    pair.run_for(Duration::from_secs(61));
    let anew = |event: &&Event| matches!(event, Event::IkeReplaced { .. });
    assert_eq!(pair.left.events.iter().filter(anew).count(), 1);
    pair.run_for(MINUTE / 3);
    assert!(is_settled(&pair));
}

/// A peer that has lost its state has lost the clones as well.
#[test]
fn a_peer_that_begins_anew_replaces_all_of_them() {
    let mut pair = connected();
    for spi in 1..=3 {
        ask(&mut pair, spi);
    }
    let (left, _) = ends();
    pair.restart(Side::Left, Host::seeded(left, 9, 9));
    pair.connect();
    pair.run_for(MINUTE);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert!(fit(pair.left.child(), pair.right.child()));
}

/// For the pages: a hand-over to another path.
pub(crate) fn story() -> Pair {
    let mut pair = connected();
    pair.begin_story();
    hand_over(&mut pair, CELL);
    pair.run_for(Duration::from_secs(8));
    pair
}

/// For the pages: a hand-over that fails, because the peer does not follow.
pub(crate) fn in_vain() -> Pair {
    let (left, mut right) = ends();
    right.peers[0].address = Some(address(LEFT));
    let mut pair = up((left, right));
    pair.begin_story();
    hand_over(&mut pair, CELL);
    pair.run_for(Duration::from_secs(1));
    pair
}
