//! Additional key exchanges of children (RFC 9370 section 2.2.4), in IKE_FOLLOWUP_KE.

use super::attack::ask_sealed;
use super::children::{agree, close, open, rekey, waiting};
use super::kem::{NONE, OPTIONAL, WANTED, Wish, bad, ends, forged, next_is, uncut};
use super::pair::{Flying, Pair, Side, keys_of};
use super::rekey::{is_settled, rekey_child, rekey_ike};
use super::*;
use crate::DownReason;
use crate::exchange::create_child::{Offered, Renewal, rekey_sa};
use crate::exchange::key_exchange;
use crate::extension::intermediate::Asked;
use model::{Exchanges, Kem};
use wire::ike::{ExchangeType, GroupId, Header, Message, NotifyType, Payload, TransformType};

const BOTH: [Side; 2] = [Side::Left, Side::Right];
const VOICE: Option<&str> = Some("voice");

/// Returns an established pair without fragmentation.
fn up(left: Wish, right: Wish) -> Pair {
    let mut pair = uncut(left, right);
    pair.connect();
    pair
}

/// Like [`up`], with window size `window` and a second child that waits for an operator.
fn two(window: u8) -> Pair {
    let (mut left, mut right) = waiting();
    for config in [&mut left, &mut right] {
        config.peers[0].kems = WANTED.to_vec();
        config.peers[0].window = window;
        config.fragment = 0;
    }
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

/// Starts a rekey by the left end and returns its first IKE_FOLLOWUP_KE.
fn following(pair: &mut Pair) -> Flying {
    rekey_child(pair, Side::Left);
    begun(pair)
}

/// Returns the first IKE_FOLLOWUP_KE of the exchange that the left end has just requested.
fn begun(pair: &mut Pair) -> Flying {
    for _ in 0..2 {
        let message = next_is(pair, ExchangeType::CREATE_CHILD_SA);
        pair.deliver(&message);
    }
    next_is(pair, ExchangeType::IKE_FOLLOWUP_KE)
}

/// Returns the number of distinct IKE_FOLLOWUP_KE requests.
fn followed(pair: &Pair) -> usize {
    let requests = pair.sent.iter().filter(|flying| {
        let header = Header::peek(&flying.message).unwrap();
        header.exchange == ExchangeType::IKE_FOLLOWUP_KE && !header.flags.response
    });
    let mut requests: Vec<_> = requests.map(|flying| &flying.message).collect();
    requests.sort();
    requests.dedup();
    requests.len()
}

/// Returns the key exchanges of a child, on which both ends have to agree.
fn exchanges(pair: &Pair, name: Option<&str>) -> Exchanges {
    let both = [&pair.left, &pair.right].map(|host| &host.named(name).unwrap().exchanges);
    assert_eq!(both[0], both[1]);
    both[0].clone()
}

pub(super) fn hybrid() -> Exchanges {
    Exchanges {
        group: Some(Group::X25519),
        kems: vec![Kem::MlKem768],
    }
}

fn is_up(pair: &Pair) {
    for host in [&pair.left, &pair.right] {
        assert!(host.down_reasons().is_empty(), "{:?}", host.down_reasons());
    }
}

/// For the pages: a child is rekeyed with an additional key exchange.
pub(crate) fn story() -> Pair {
    let mut pair = up(WANTED, WANTED);
    pair.begin_story();
    rekey_child(&mut pair, Side::Left);
    pair.settle();
    pair
}

/// For the pages: both ends rekey at once.
pub(crate) fn both() -> Pair {
    let mut pair = up(WANTED, WANTED);
    pair.begin_story();
    rekey_child(&mut pair, Side::Left);
    rekey_child(&mut pair, Side::Right);
    pair.settle();
    pair
}

/// For the pages: the responder has forgotten the exchange.
pub(crate) fn late() -> Pair {
    let mut pair = up(WANTED, WANTED);
    pair.begin_story();
    following(&mut pair);
    pair.hop.lost = 1000;
    pair.run_for(Duration::from_secs(21));
    pair.hop.lost = 0;
    pair.run_for(Duration::from_secs(15));
    pair
}

/// "The SAs are not yet created when the CREATE_CHILD_SA is completed."
#[test]
fn a_child_with_another_key_exchange_is_there_after_it_and_not_before() {
    for side in BOTH {
        let mut pair = up(WANTED, WANTED);
        rekey_child(&mut pair, side);
        pair.settle_one_round();
        assert!(agree(&pair, &[None]), "nothing new is there yet");
        pair.settle();
        assert_eq!((pair.left.children().len(), followed(&pair)), (2, 1));
        pair.run_for(Duration::from_secs(60));
        assert!(is_settled(&mut pair));
        assert_eq!(exchanges(&pair, None), hybrid());
    }
}

#[test]
fn a_child_beside_the_first_has_an_exchange_of_its_own_as_well() {
    for side in BOTH {
        let mut pair = two(1);
        open(&mut pair, side);
        pair.settle();
        assert!(agree(&pair, &[None, VOICE]));
        assert_eq!(exchanges(&pair, VOICE), hybrid());
        assert_eq!(exchanges(&pair, None), Exchanges::default());
    }
}

/// RFC 7296 section 1.2: the child's keys derive from those of the IKE SA, which already include
/// the KEM.
#[test]
fn the_child_of_ike_auth_has_no_key_exchange_of_its_own() {
    let pair = up(WANTED, WANTED);
    assert_eq!(exchanges(&pair, None), Exchanges::default());
    assert_eq!(followed(&pair), 0);
}

/// Everything except the KEM is the same in both runs.
#[test]
fn an_additional_key_exchange_changes_the_keys_of_the_child() {
    let keys = |wish| {
        let mut pair = up(wish, wish);
        rekey_child(&mut pair, Side::Left);
        pair.settle();
        let child = pair.left.named(None).unwrap();
        (child.inbound.spi, keys_of(&child.inbound))
    };
    assert_eq!(keys(NONE), keys(NONE), "nothing else is by chance");
    let (one, other) = (keys(WANTED), keys(WANTED));
    assert_eq!(one.0, other.0);
    assert_ne!(one.1, other.1);
}

/// `pfs` decides if an end wants a key exchange, `kems` which additional ones.
// Refuses: ml-kem-rekey
#[test]
fn what_both_ends_want_decides_what_a_childs_keys_are_made_of() {
    let plain = || Exchanges {
        kems: Vec::new(),
        ..hybrid()
    };
    // KEMs of the right end, KEMs of the left end, the left end's `pfs`, and the resulting
    // exchanges.
    let table: [(Wish, Wish, bool, Option<Exchanges>); 8] = [
        (OPTIONAL, WANTED, true, Some(hybrid())),
        (OPTIONAL, OPTIONAL, true, Some(hybrid())),
        (OPTIONAL, NONE, true, Some(plain())),
        (OPTIONAL, WANTED, false, Some(Exchanges::default())),
        (WANTED, WANTED, true, Some(hybrid())),
        // The proposal is refused, and the retry has no key exchange.
        (WANTED, NONE, true, Some(Exchanges::default())),
        (WANTED, NONE, false, Some(Exchanges::default())),
        (NONE, WANTED, true, None),
    ];
    for (right, left, pfs, expected) in table {
        let told = format!("{left:?}, {pfs} with {right:?}");
        let mut pair = up(right, right);
        let peer = &mut pair.left.engine.config.peers[0];
        (peer.kems, peer.lifetimes.pfs) = (left.to_vec(), pfs);
        rekey_child(&mut pair, Side::Left);
        pair.run_for(Duration::from_secs(1));
        let count = pair.left.children().len();
        assert_eq!(count, 1 + usize::from(expected.is_some()), "{told}");
        assert_eq!(
            exchanges(&pair, None),
            expected.unwrap_or_default(),
            "{told}"
        );
        let refused = [&pair.left, &pair.right].map(|host| host.refusals().len());
        let smooth = count == 2 && (right, left, pfs) != (WANTED, NONE, true);
        assert_eq!(refused == [0, 0], smooth, "{told}: {refused:?}");
        is_up(&pair);
    }
}

/// A responder must not drop an exchange that was offered.
// Refuses: ml-kem-rekey
#[test]
fn an_answer_without_the_exchange_that_was_asked_for_ends_the_sa() {
    let without = |transform: &wire::ike::Transform| !transform.kind.is_additional();
    let no_group = |transform: &wire::ike::Transform| transform.kind != TransformType::KE;
    for keeps in [without, no_group] {
        let mut pair = up(WANTED, WANTED);
        rekey_child(&mut pair, Side::Left);
        pair.deliver_next();
        let answer = next_is(&mut pair, ExchangeType::CREATE_CHILD_SA);
        let wrong = changed(&mut pair, &answer, |message| {
            for payload in &mut message.payloads {
                if let Payload::SecurityAssociation(proposals) = payload {
                    proposals[0].transforms.retain(keeps);
                }
            }
        });
        pair.deliver(&wrong);
        let told = pair.left.down_reasons();
        assert!(matches!(told[..], [DownReason::NotOffered(_)]), "{told:?}");
    }
}

/// Returns an answer of the right host as another holder of its keys would send it.
fn changed(pair: &mut Pair, flying: &Flying, change: impl Fn(&mut Message)) -> Flying {
    let peeked = pair.left.engine.peek(&flying.message);
    let mut message = peeked.expect("sealed whole");
    change(&mut message);
    let sealed = pair.right.engine.seal(&message);
    Flying {
        message: sealed.expect("it has the keys"),
        ..flying.clone()
    }
}

/// "The responder MUST include this notification ... in case the next IKE_FOLLOWUP_KE exchange is
/// expected."
#[test]
fn an_answer_that_names_nothing_to_go_on_with_ends_the_sa() {
    let mut pair = up(WANTED, WANTED);
    rekey_child(&mut pair, Side::Left);
    pair.deliver_next();
    let answer = next_is(&mut pair, ExchangeType::CREATE_CHILD_SA);
    let wrong = changed(&mut pair, &answer, |message| {
        message.payloads.retain(|payload| match payload {
            Payload::Notify(notify) => notify.kind != NotifyType::ADDITIONAL_KEY_EXCHANGE,
            _ => true,
        });
    });
    pair.deliver(&wrong);
    let why = DownReason::NotOffered("no link to the next key exchange");
    assert_eq!(pair.left.down_reasons(), [&why]);
}

/// "The initiator MUST send back this notification intact", whatever its content.
#[test]
fn what_names_it_is_the_responders_affair_and_sent_back_as_it_is() {
    let mut pair = up(WANTED, WANTED);
    rekey_child(&mut pair, Side::Left);
    pair.deliver_next();
    let answer = next_is(&mut pair, ExchangeType::CREATE_CHILD_SA);
    let name = vec![0xa5; 300];
    let long = changed(&mut pair, &answer, |message| named(message, &name));
    pair.deliver(&long);
    let request = next_is(&mut pair, ExchangeType::IKE_FOLLOWUP_KE);
    let message = pair.right.engine.peek(&request.message).unwrap();
    assert_eq!(link_of(&message), name);
}

fn named(message: &mut Message, name: &[u8]) {
    for payload in &mut message.payloads {
        if let Payload::Notify(notify) = payload {
            notify.data = name.to_vec();
        }
    }
}

/// Returns the responder's error notify for one request of the left end.
fn refusal(pair: &mut Pair, request: &Flying) -> Option<NotifyType> {
    pair.deliver(request);
    let answer = next_is(pair, ExchangeType::IKE_FOLLOWUP_KE);
    let message = pair.left.engine.peek(&answer.message).unwrap();
    pair.deliver(&answer);
    crate::exchange::first_error(&message)
}

/// The link may have any length: that of a child's, that of a successor's, or another.
// Refuses: ml-kem-rekey
#[test]
fn a_name_that_we_did_not_give_is_answered_state_not_found_and_begun_anew() {
    for name in [vec![], vec![0; 4], vec![0; 8], vec![7; 300]] {
        let mut pair = up(WANTED, WANTED);
        let request = following(&mut pair);
        let stranger = forged(&mut pair, &request, |message| named(message, &name));
        let told = refusal(&mut pair, &stranger);
        assert_eq!(told, Some(NotifyType::STATE_NOT_FOUND), "{name:?}");
        assert!(pair.left.refusals().is_empty() && pair.right.refusals().is_empty());
        is_up(&pair);
        assert!(agree(&pair, &[None]));
    }
}

// Recovers: ml-kem-rekey
#[test]
fn a_child_that_the_responder_forgot_is_asked_for_anew() {
    let mut pair = late();
    pair.run_for(Duration::from_secs(60));
    assert!(is_settled(&mut pair), "{:?}", pair.left.events);
    assert_eq!((exchanges(&pair, None), followed(&pair)), (hybrid(), 2));
    assert!(pair.left.refusals().is_empty());
    is_up(&pair);
}

/// "After some reasonable period of time": an exchange that a peer starts and abandons expires. If
/// the child has to be rekeyed, this end does it.
#[test]
fn what_an_initiator_does_not_go_on_with_is_forgotten_after_20_seconds() {
    for (seconds, known) in [(19, true), (20, false)] {
        let mut pair = up(WANTED, WANTED);
        let request = following(&mut pair);
        let due = pair.right.engine.poll_timeout().unwrap();
        assert!(due.at <= pair.now + Duration::from_secs(20));
        pair.now += Duration::from_secs(seconds);
        pair.timeout(Side::Right);
        let told = refusal(&mut pair, &request);
        let expected = (!known).then_some(NotifyType::STATE_NOT_FOUND);
        assert_eq!(told, expected);
        assert_eq!(pair.right.children().len(), 1 + usize::from(known));
    }
}

/// The same rule for the IKE SA.
#[test]
fn a_successor_that_an_initiator_does_not_go_on_with_is_forgotten_after_20_seconds() {
    let mut pair = up(WANTED, WANTED);
    rekey_ike(&mut pair, Side::Left);
    let request = begun(&mut pair);
    pair.now += Duration::from_secs(20);
    pair.timeout(Side::Right);
    let told = refusal(&mut pair, &request);
    assert_eq!(told, Some(NotifyType::STATE_NOT_FOUND));
    pair.run_for(Duration::from_secs(60));
    assert!(is_settled(&mut pair));
    assert_eq!(pair.left.ike_rekeys(), 1);
}

/// "If the initiator continues to receive STATE_NOT_FOUND notifications after several retries, it
/// MUST treat this situation as a fatal error and delete IKE SA."
// Recovers: ml-kem-rekey
#[test]
fn a_responder_that_always_forgets_is_left() {
    let mut pair = up(WANTED, WANTED);
    for _ in 0..5 {
        assert!(pair.left.down_reasons().is_empty());
        let request = following(&mut pair);
        let stranger = forged(&mut pair, &request, |message| named(message, &[1, 2, 3]));
        pair.deliver(&stranger);
        let answer = next_is(&mut pair, ExchangeType::IKE_FOLLOWUP_KE);
        pair.deliver(&answer);
    }
    assert_eq!(pair.left.down_reasons(), [&DownReason::Forgetful]);
    pair.run_for(Duration::from_secs(60));
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
}

#[test]
fn a_responder_that_forgets_now_and_then_is_not_left() {
    let mut pair = up(WANTED, WANTED);
    for round in 0..12 {
        let request = following(&mut pair);
        let name = [round, 2, 3];
        match round % 4 {
            3 => pair.deliver(&request),
            _ => {
                let stranger = forged(&mut pair, &request, |message| named(message, &name));
                pair.deliver(&stranger);
            }
        }
        pair.settle();
    }
    is_up(&pair);
}

// Refuses: ml-kem-rekey
#[test]
fn a_value_that_is_none_makes_no_child_and_is_told_at_both_ends() {
    let beyond = vec![0xff; 1184];
    for (group, public) in [
        (GroupId::ML_KEM_768, beyond),
        (GroupId::ML_KEM_768, vec![1; 1183]),
        (GroupId::ML_KEM_768, Vec::new()),
        (GroupId::ML_KEM_512, vec![1; 800]),
        (GroupId::CURVE25519, vec![9; 32]),
    ] {
        let mut pair = up(WANTED, WANTED);
        let request = following(&mut pair);
        let wrong = forged(&mut pair, &request, |message| {
            for payload in &mut message.payloads {
                if let Payload::KeyExchange(key) = payload {
                    (key.group, key.public) = (group, public.clone());
                }
            }
        });
        let told = refusal(&mut pair, &wrong);
        assert_eq!(told, Some(NotifyType::NO_PROPOSAL_CHOSEN));
        let refused = [&pair.left, &pair.right].map(|host| host.refusals().len());
        assert_eq!(refused, [1, 1]);
        is_up(&pair);
        assert!(agree(&pair, &[None]));
        let again = forged(&mut pair, &request, |message| {
            message.header.message_id += 1
        });
        let told = refusal(&mut pair, &again);
        assert_eq!(told, Some(NotifyType::STATE_NOT_FOUND), "there is one try");
    }
}

/// The peer believes that the child is up, with other keys than ours.
#[test]
fn an_answer_with_a_value_that_is_none_ends_the_sa() {
    let mut pair = up(WANTED, WANTED);
    let request = following(&mut pair);
    pair.deliver(&request);
    let answer = next_is(&mut pair, ExchangeType::IKE_FOLLOWUP_KE);
    let wrong = changed(&mut pair, &answer, |message| {
        for payload in &mut message.payloads {
            if let Payload::KeyExchange(key) = payload {
                key.public.pop();
            }
        }
    });
    pair.deliver(&wrong);
    let told = pair.left.down_reasons();
    assert!(matches!(told[..], [DownReason::Misbehaved(_)]), "{told:?}");
}

#[test]
fn a_request_that_comes_again_gets_the_same_answer_and_makes_one_child() {
    let mut pair = up(WANTED, WANTED);
    let request = following(&mut pair);
    let answers = [0, 1].map(|_| {
        pair.deliver(&request);
        next_is(&mut pair, ExchangeType::IKE_FOLLOWUP_KE)
    });
    assert_eq!(answers[0].message, answers[1].message);
    answers.iter().for_each(|answer| pair.deliver(answer));
    pair.run_for(Duration::from_secs(60));
    assert!(is_settled(&mut pair));
}

/// A peer that repeats its request continues with the new one; the old one takes no memory.
#[test]
fn a_request_for_the_same_child_takes_the_place_of_the_one_before() {
    let mut pair = up(WANTED, WANTED);
    let mut first = None;
    for _ in 0..100 {
        rekey_child(&mut pair, Side::Left);
        pair.deliver_next();
        let answer = next_is(&mut pair, ExchangeType::CREATE_CHILD_SA);
        let message = pair.left.engine.peek(&answer.message).unwrap();
        first.get_or_insert(link_of(&message));
        // As if the left end had forgotten its request.
        let failure = crate::exchange::notify(NotifyType::TEMPORARY_FAILURE, Vec::new());
        let lost = changed(&mut pair, &answer, |message| {
            message.payloads = vec![failure.clone()];
        });
        pair.deliver(&lost);
        assert_eq!(pair.right.engine.openings(), 1);
    }
    let request = following(&mut pair);
    let old = forged(&mut pair, &request, |message| {
        named(message, &first.clone().unwrap());
    });
    let told = refusal(&mut pair, &old);
    assert_eq!(told, Some(NotifyType::STATE_NOT_FOUND));
    pair.run_for(Duration::from_secs(60));
    assert!(is_settled(&mut pair));
}

fn link_of(message: &Message) -> Vec<u8> {
    let link = NotifyType::ADDITIONAL_KEY_EXCHANGE;
    let link = crate::exchange::find_notify(message, link);
    link.expect("it names what is to go on").data.clone()
}

// Recovers: ml-kem-rekey
#[test]
fn rekeys_of_children_survive_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        let (left, right) = ends(WANTED, OPTIONAL);
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        for side in [Side::Left, Side::Right, Side::Left] {
            rekey_child(&mut pair, side);
            pair.run_for(Duration::from_secs(90));
        }
        pair.hop = pair.hop.healed();
        pair.run_for(Duration::from_secs(300));
        assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
        assert_eq!(exchanges(&pair, None), hybrid());
        is_up(&pair);
    }
}

/// RFC 7296 section 2.8.1 with every order of the first four messages: "the initiator of this
/// exchange just stops the rekeying process, and it MUST NOT initiate the IKE_FOLLOWUP_KE
/// exchange".
#[test]
fn of_two_rekeys_at_once_that_with_the_lowest_nonce_does_not_go_on() {
    let mut winners = [0, 0];
    for seed in 0..20 {
        for order in 0..4 {
            let (left, right) = ends(WANTED, WANTED);
            let mut pair = Pair::seeded(left, right, seed);
            pair.connect();
            rekey_child(&mut pair, Side::Left);
            rekey_child(&mut pair, Side::Right);
            pair.cross(order);
            pair.run_for(Duration::from_secs(120));
            assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
            assert_eq!(
                (exchanges(&pair, None), followed_exchanges(&pair)),
                (hybrid(), 1)
            );
            winners[usize::from(pair.left.named(None).unwrap().initiator)] += 1;
            is_up(&pair);
        }
    }
    assert!(winners.iter().all(|&count| count > 10), "{winners:?}");
}

/// Returns the number of distinct IKE_FOLLOWUP_KE requests, which may be in fragments.
fn followed_exchanges(pair: &Pair) -> usize {
    let headers = pair.sent.iter().map(|flying| Header::peek(&flying.message));
    let requests = headers.flatten().filter(|header| {
        header.exchange == ExchangeType::IKE_FOLLOWUP_KE && !header.flags.response
    });
    let mut ids: Vec<_> = requests
        .map(|header| (header.flags.initiator, header.message_id))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

#[test]
fn of_two_children_asked_for_at_once_one_is_finished() {
    for seed in 0..10 {
        for order in 0..4 {
            let mut pair = two(1);
            pair.reseed(seed);
            open(&mut pair, Side::Left);
            open(&mut pair, Side::Right);
            pair.cross(order);
            pair.run_for(Duration::from_secs(120));
            assert!(agree(&pair, &[None, VOICE]), "{:?}", pair.left.events);
            assert_eq!((exchanges(&pair, VOICE), followed(&pair)), (hybrid(), 1));
            is_up(&pair);
        }
    }
}

/// One end rekeys with a key exchange, the other without. The rekey that would complete at once is
/// refused, so that no child is deleted before its successor is up.
#[test]
fn of_two_rekeys_at_once_of_which_one_is_longer_the_longer_one_stays() {
    for seed in 0..20 {
        for order in 0..4 {
            let (left, mut right) = ends(WANTED, WANTED);
            right.peers[0].lifetimes.pfs = false;
            let mut pair = Pair::seeded(left, right, seed);
            pair.connect();
            rekey_child(&mut pair, Side::Left);
            rekey_child(&mut pair, Side::Right);
            pair.cross(order);
            pair.settle();
            assert_eq!(exchanges(&pair, None), hybrid(), "seed {seed}");
            pair.run_for(Duration::from_secs(120));
            assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
            assert!(pair.left.refusals().is_empty() && pair.right.refusals().is_empty());
            is_up(&pair);
        }
    }
}

/// RFC 7296 section 2.8.1, the second sequence of events, with the other end continuing its own
/// rekey.
#[test]
fn a_request_that_comes_late_is_refused_by_who_goes_on() {
    let mut pair = up(WANTED, WANTED);
    rekey_child(&mut pair, Side::Right);
    let late = pair.intercept().remove(0);
    let request = following(&mut pair);
    pair.deliver(&late);
    let answer = next_is(&mut pair, ExchangeType::CREATE_CHILD_SA);
    let message = pair.right.engine.peek(&answer.message).unwrap();
    let told = crate::exchange::first_error(&message);
    assert_eq!(told, Some(NotifyType::TEMPORARY_FAILURE));
    pair.deliver(&request);
    pair.deliver(&answer);
    pair.run_for(Duration::from_secs(60));
    assert!(is_settled(&mut pair));
    assert!(pair.right.refusals().is_empty() && pair.left.refusals().is_empty());
    assert_eq!(followed(&pair), 1);
}

#[test]
fn who_is_asked_for_a_successor_does_not_ask_for_one_too() {
    let mut pair = up(WANTED, WANTED);
    let request = following(&mut pair);
    rekey_child(&mut pair, Side::Right);
    assert!(pair.is_quiet());
    pair.deliver(&request);
    pair.run_for(Duration::from_secs(60));
    assert!(is_settled(&mut pair));
}

/// "SHOULD reply with TEMPORARY_FAILURE" (RFC 7296 section 2.25.1): the rekeyed child is not up
/// yet.
#[test]
fn new_keys_for_the_ike_sa_wait_until_a_child_is_finished() {
    let mut pair = up(WANTED, WANTED);
    let request = following(&mut pair);
    rekey_ike(&mut pair, Side::Right);
    let early = next_is(&mut pair, ExchangeType::CREATE_CHILD_SA);
    pair.deliver(&early);
    let answer = next_is(&mut pair, ExchangeType::CREATE_CHILD_SA);
    let message = pair.right.engine.peek(&answer.message).unwrap();
    let told = crate::exchange::first_error(&message);
    assert_eq!(told, Some(NotifyType::TEMPORARY_FAILURE));
    pair.deliver(&answer);
    pair.deliver(&request);
    pair.run_for(Duration::from_secs(120));
    assert!(is_settled(&mut pair));
    let both = (exchanges(&pair, None), pair.left.ike_rekeys());
    assert_eq!(both, (hybrid(), 1));
}

/// Either end deletes the child, before the request arrives or before its answer does.
#[test]
fn a_child_that_is_deleted_while_its_successor_waits_gets_none() {
    for side in BOTH {
        for answered in [false, true] {
            let mut pair = two(4);
            open(&mut pair, Side::Left);
            pair.settle();
            rekey(&mut pair, Side::Left, VOICE);
            let request = begun(&mut pair);
            let mut held = vec![request];
            if answered {
                pair.deliver(&held.remove(0));
                held = pair.intercept();
            }
            close(&mut pair, side);
            pair.settle();
            held.iter().for_each(|flying| pair.deliver(flying));
            for closing in BOTH {
                close(&mut pair, closing);
            }
            pair.run_for(Duration::from_secs(300));
            assert!(agree(&pair, &[None]), "{side:?}: {:?}", pair.left.events);
            is_up(&pair);
        }
    }
}

#[test]
fn a_child_that_is_closed_before_its_exchange_is_done_does_not_come_up() {
    for side in BOTH {
        let mut pair = two(1);
        open(&mut pair, Side::Left);
        let request = begun(&mut pair);
        for closing in [side, side.other()] {
            close(&mut pair, closing);
        }
        pair.deliver(&request);
        pair.run_for(Duration::from_secs(300));
        assert!(agree(&pair, &[None]), "{side:?}: {:?}", pair.left.events);
        is_up(&pair);
    }
}

#[test]
fn an_sa_that_ends_while_a_child_waits_leaves_nothing() {
    for side in BOTH {
        let mut pair = up(WANTED, WANTED);
        let request = following(&mut pair);
        let sa = pair.host(side).ike();
        pair.with(side, |engine, now| engine.close(sa, now));
        pair.deliver(&request);
        pair.run_for(Duration::from_secs(300));
        for host in [&pair.left, &pair.right] {
            assert_eq!((host.children().len(), host.engine.sas().count()), (0, 0));
        }
    }
}

/// With a window above one, only the link identifies the exchange that a request continues.
#[test]
fn two_children_are_finished_side_by_side_in_any_order() {
    for reversed in [false, true] {
        let mut pair = two(4);
        open(&mut pair, Side::Left);
        pair.settle();
        rekey(&mut pair, Side::Left, None);
        rekey(&mut pair, Side::Left, VOICE);
        for _ in 0..4 {
            let mut flying = pair.intercept();
            assert_eq!(flying.len(), 2, "they are under way together");
            if reversed {
                flying.reverse();
            }
            flying.iter().for_each(|flying| pair.deliver(flying));
        }
        pair.run_for(Duration::from_secs(60));
        assert!(agree(&pair, &[None, VOICE]));
        for name in [None, VOICE] {
            assert_eq!(exchanges(&pair, name), hybrid());
        }
    }
}

/// Each value is valid for ML-KEM, so both children come up, but their packets cannot be opened. A
/// holder of the keys can always do that to itself.
#[test]
fn names_that_are_exchanged_harm_nobody_but_who_exchanged_them() {
    let mut pair = two(4);
    open(&mut pair, Side::Left);
    pair.settle();
    rekey(&mut pair, Side::Left, None);
    rekey(&mut pair, Side::Left, VOICE);
    for _ in 0..2 {
        let flying = pair.intercept();
        flying.iter().for_each(|flying| pair.deliver(flying));
    }
    let requests = pair.intercept();
    let links: Vec<_> = requests
        .iter()
        .map(|request| link_of(&pair.right.engine.peek(&request.message).unwrap()))
        .collect();
    for (request, link) in requests.iter().zip(links.iter().rev()) {
        let exchanged = forged(&mut pair, request, |message| named(message, link));
        pair.deliver(&exchanged);
    }
    pair.settle();
    assert!(!agree(&pair, &[None, VOICE]));
    for name in [None, VOICE] {
        assert_eq!(exchanges(&pair, name), hybrid());
    }
    is_up(&pair);
}

#[test]
fn an_exchange_that_nobody_agreed_on_is_answered_state_not_found() {
    let mut pair = up(NONE, NONE);
    let sa = pair.left.ike();
    let payloads = bad(GroupId::ML_KEM_768, vec![1; 1184]);
    let exchange = ExchangeType::IKE_FOLLOWUP_KE;
    let answer = ask_sealed(&mut pair, sa, exchange, payloads);
    let notify = crate::exchange::notify(NotifyType::STATE_NOT_FOUND, Vec::new());
    assert_eq!(answer, [notify]);
}

/// A peer written out by hand, with two methods, in the order of the types and not of the proposal.
/// KEYMAT is prf+(SK_d, SK(0) | Ni | Nr | SK(1) | SK(2)).
#[test]
fn the_keys_are_those_of_section_2_2_4_computed_by_hand() {
    let all: Wish = &[Some(Kem::MlKem768), Some(Kem::MlKem1024), None];
    let mut pair = up(all, all);
    let sa = pair.left.ike();
    let mut rng = crypto::Rng::from_seed([3; 32]);
    let key = Offered::new(GroupId::CURVE25519, &mut rng).unwrap();
    let old = rekey_sa(pair.left.child().inbound.spi);
    let (payloads, nonce_i) = by_hand(old, &key);
    let exchange = ExchangeType::CREATE_CHILD_SA;
    let mut answer = saying(ask_sealed(&mut pair, sa, exchange, payloads));
    let theirs = Renewal::read(&answer).unwrap();
    let nonce_r = theirs.nonce.to_vec();
    let (_, first) = key.agree(theirs.key.unwrap()).unwrap();
    let secrets = [Kem::MlKem1024, Kem::MlKem768].map(|kem| {
        let asked = Asked::new(kem).unwrap();
        let link = crate::exchange::notify(NotifyType::ADDITIONAL_KEY_EXCHANGE, link_of(&answer));
        let payloads = vec![asked.payload(), link];
        let exchange = ExchangeType::IKE_FOLLOWUP_KE;
        let last = ask_sealed(&mut pair, sa, exchange, payloads);
        assert_eq!(last.len(), 1 + usize::from(kem == Kem::MlKem1024));
        let said = saying(last);
        let (_, secret) = asked.agree(key_exchange(&said).unwrap()).unwrap();
        if kem == Kem::MlKem1024 {
            answer = said;
        }
        secret.expose().to_vec()
    });
    let child = pair.right.children().pop().unwrap();
    assert_eq!(child.exchanges.kems, [Kem::MlKem1024, Kem::MlKem768]);
    let keys = [keys_of(&child.inbound), keys_of(&child.outbound)].concat();
    let [second, third] = &secrets;
    let (sk_d, zero) = (pair.left.engine.sk_d(), first.expose());
    let right = keymat(sk_d, &[zero, &nonce_i, &nonce_r, second, third]);
    assert_eq!(keys.concat(), right);
    for wrong in [
        vec![zero, &nonce_i, &nonce_r],
        vec![zero, &nonce_i, &nonce_r, second],
        vec![zero, &nonce_i, &nonce_r, third, second],
        vec![zero, second, third, &nonce_i, &nonce_r],
        vec![&nonce_i, &nonce_r, second, third],
        vec![zero, &nonce_r, &nonce_i, second, third],
    ] {
        assert_ne!(keys.concat(), keymat(sk_d, &wrong));
    }
}

/// Returns the request to rekey the child, with two types of additional key exchange.
fn by_hand(old: Payload, key: &Offered) -> (Vec<Payload>, Vec<u8>) {
    let menu = crate::allowed_suites::AllowedEspSuites {
        groups: vec![GroupId::CURVE25519],
        ..crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16])
    };
    let mut proposals = crate::proposal::offer_esp(&menu, model::Spi(0x1000_0000));
    let methods = [
        (TransformType::ADDKE6, GroupId::ML_KEM_768),
        (TransformType::ADDKE2, GroupId::ML_KEM_1024),
    ];
    let additional = methods.map(|(kind, id)| wire::ike::Transform::plain(kind, id.0));
    proposals[0].transforms.extend(additional);
    let selectors = |text| wire::ike::TrafficSelectors(vec![prefix(text)]);
    let nonce = vec![0x4e; 32];
    let payloads = vec![
        old,
        Payload::SecurityAssociation(proposals),
        Payload::Nonce(nonce.clone()),
        key.payload(),
        Payload::TsInitiator(selectors("10.8.0.2/32")),
        Payload::TsResponder(selectors("10.0.0.0/8")),
    ];
    (payloads, nonce)
}

/// Returns prf+ of RFC 7296 section 2.13 with HMAC-SHA-256, written out. Keys and salts for AES-128
/// in both directions have 40 octets.
fn keymat(sk_d: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let seed = parts.concat();
    let hmac = |octets: Vec<u8>| crypto::Prf::HmacSha256.mac(sk_d, &[&octets]);
    let t1 = hmac([seed.as_slice(), &[1]].concat());
    let t2 = hmac([t1.expose(), &seed, &[2]].concat());
    [t1.expose(), t2.expose()].concat()[..40].to_vec()
}
