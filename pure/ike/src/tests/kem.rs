//! Additional key exchanges with ML-KEM (RFC 9370) in IKE_INTERMEDIATE (RFC 9242).

use super::certificates::{self, TODAY, by_certificate};
use super::pair::{Flying, NAT, Pair, Side, fit, keys_of};
use super::rekey::{is_settled, rekey_child, rekey_ike};
use super::*;
use crate::{DownReason, DropReason, Ppk};
use model::Kem;
use wire::ike::{
    Datagram, ExchangeType, GroupId, Header, KeyExchange, Message, Notify, NotifyType, Payload,
};

/// A KEM that is required, or (as `OPTIONAL`) used only if the peer wants it too.
pub(crate) const WANTED: Wish = &[Some(Kem::MlKem768)];
pub(crate) const OPTIONAL: Wish = &[Some(Kem::MlKem768), None];
pub(crate) const NONE: Wish = &[None];

pub(crate) type Wish = &'static [Option<Kem>];

/// Returns a mobile node and a gateway that want these KEMs.
pub(crate) fn between(left: &[Option<Kem>], right: &[Option<Kem>]) -> Pair {
    let (left, right) = ends(left, right);
    Pair::new(left, right)
}

pub(crate) fn ends(left: &[Option<Kem>], right: &[Option<Kem>]) -> (Config, Config) {
    let (mut mobile, mut gateway) = (mobile(), gateway());
    (mobile.peers[0].kems, gateway.peers[0].kems) = (left.to_vec(), right.to_vec());
    (mobile, gateway)
}

/// Like [`between`], without fragmentation of messages.
pub(crate) fn uncut(left: Wish, right: Wish) -> Pair {
    let (mut left, mut right) = ends(left, right);
    (left.fragment, right.fragment) = (0, 0);
    Pair::new(left, right)
}

/// For the pages: a tunnel with an additional key exchange.
pub(crate) fn story() -> Pair {
    let mut pair = uncut(WANTED, WANTED);
    pair.connect();
    pair
}

/// For the pages: the initiator sends an invalid public key.
pub(crate) fn broken() -> Pair {
    let mut pair = uncut(WANTED, WANTED);
    let request = asked(&mut pair);
    let wrong = forged(&mut pair, &request, |message| {
        message.payloads = bad(GroupId::ML_KEM_768, vec![0xff; 1184]);
    });
    pair.deliver(&wrong);
    pair.settle();
    pair
}

pub(crate) fn bad(group: GroupId, public: Vec<u8>) -> Vec<Payload> {
    vec![Payload::KeyExchange(KeyExchange { group, public })]
}

/// Returns the KEMs in the IKE SA's keys, on which both ends have to agree.
fn used(pair: &Pair) -> Vec<Kem> {
    let [left, right] = [&pair.left, &pair.right].map(|host| {
        let up = host.engine.sas().find(|sa| sa.since.is_some());
        up.expect("it is up").kems
    });
    assert_eq!(left, right);
    left
}

fn assert_up(pair: &Pair, kems: &[Kem]) {
    assert_eq!(used(pair), kems);
    assert!(fit(pair.left.child(), pair.right.child()));
}

fn assert_down(pair: &Pair) {
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
}

/// Returns an IKE_SA_INIT message as an attacker on the path modifies it.
fn changed(flying: &Flying, change: impl Fn(&mut Message)) -> Flying {
    let Ok(Datagram::Clear(mut message)) = Datagram::decode(&flying.message) else {
        panic!("IKE_SA_INIT is in the clear");
    };
    let before = message.clone();
    change(&mut message);
    assert_ne!(message, before, "there was something to change");
    Flying {
        message: message.encode(),
        ..flying.clone()
    }
}

fn without_notify(message: &mut Message) {
    let kind = NotifyType::INTERMEDIATE_EXCHANGE_SUPPORTED;
    let notify = Payload::Notify(Notify::new(kind, Vec::new()));
    message.payloads.retain(|payload| *payload != notify);
}

fn without_transforms(message: &mut Message) {
    for payload in &mut message.payloads {
        if let Payload::SecurityAssociation(proposals) = payload {
            for proposal in proposals {
                let transforms = &mut proposal.transforms;
                transforms.retain(|transform| !transform.kind.is_additional());
            }
        }
    }
}

/// Returns a request of the left host as another holder of its keys would send it.
pub(crate) fn forged(pair: &mut Pair, flying: &Flying, change: impl Fn(&mut Message)) -> Flying {
    let mut message = pair
        .right
        .engine
        .peek(&flying.message)
        .expect("sealed whole");
    change(&mut message);
    let sealed = pair.left.engine.seal(&message);
    Flying {
        message: sealed.expect("it has the keys"),
        ..flying.clone()
    }
}

/// Takes the request of IKE_INTERMEDIATE, unfragmented, out of the network.
fn asked(pair: &mut Pair) -> Flying {
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.deliver_next();
    let flying = pair.intercept();
    let [request] = <[Flying; 1]>::try_from(flying).expect("one datagram");
    let header = Header::peek(&request.message).unwrap();
    let first = (ExchangeType::IKE_INTERMEDIATE, 1);
    assert_eq!((header.exchange, header.message_id), first);
    request
}

#[test]
fn a_kem_of_both_ends_is_in_their_keys_and_in_all_that_come_of_them() {
    let mut pair = between(WANTED, WANTED);
    pair.connect();
    assert_up(&pair, &[Kem::MlKem768]);
    for side in [Side::Left, Side::Right] {
        rekey_ike(&mut pair, side);
        pair.run_for(Duration::from_secs(60));
        rekey_child(&mut pair, side);
        pair.run_for(Duration::from_secs(60));
        assert_up(&pair, &[Kem::MlKem768]);
    }
}

/// Takes the next message out of the network; it has to be of this exchange.
pub(crate) fn next_is(pair: &mut Pair, exchange: ExchangeType) -> Flying {
    let flying = pair.intercept();
    let [message] = <[Flying; 1]>::try_from(flying).expect("one datagram");
    assert_eq!(Header::peek(&message.message).unwrap().exchange, exchange);
    message
}

/// Returns an established pair, and the first IKE_FOLLOWUP_KE of a rekey by the left end.
fn following_up() -> (Pair, Flying) {
    let mut pair = uncut(WANTED, WANTED);
    pair.connect();
    rekey_ike(&mut pair, Side::Left);
    for _ in 0..2 {
        let message = next_is(&mut pair, ExchangeType::CREATE_CHILD_SA);
        pair.deliver(&message);
    }
    let request = next_is(&mut pair, ExchangeType::IKE_FOLLOWUP_KE);
    (pair, request)
}

/// For the pages: an IKE SA is rekeyed with an additional key exchange.
pub(crate) fn renewal() -> Pair {
    let mut pair = uncut(WANTED, WANTED);
    pair.connect();
    pair.begin_story();
    rekey_ike(&mut pair, Side::Left);
    pair.settle();
    pair
}

/// RFC 9370 section 2.2.4.
#[test]
fn a_successor_has_a_key_exchange_of_its_own_and_waits_for_it() {
    let (mut pair, request) = following_up();
    let before = pair.right.picture();
    assert_eq!(
        pair.left.engine.sas().count(),
        1,
        "the old one is still the one"
    );
    pair.deliver(&request);
    assert_ne!(pair.right.picture(), before);
    pair.settle();
    assert!(is_settled(&mut pair));
    assert_up(&pair, &[Kem::MlKem768]);
}

#[test]
fn a_successor_of_an_sa_without_an_exchange_gets_one_once_both_want_it() {
    let mut pair = between(NONE, OPTIONAL);
    pair.connect();
    assert_up(&pair, &[]);
    pair.left.engine.config.peers[0].kems = OPTIONAL.to_vec();
    rekey_ike(&mut pair, Side::Left);
    pair.run_for(Duration::from_secs(60));
    assert_up(&pair, &[Kem::MlKem768]);
}

#[test]
fn rekeys_with_an_exchange_survive_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..30 {
        let (left, right) = ends(WANTED, WANTED);
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        for side in [Side::Left, Side::Right, Side::Left] {
            rekey_ike(&mut pair, side);
            pair.run_for(Duration::from_secs(60));
        }
        pair.run_for(Duration::from_secs(300));
        assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
        assert_up(&pair, &[Kem::MlKem768]);
        for host in [&pair.left, &pair.right] {
            assert!(host.down_reasons().is_empty(), "seed {seed}");
        }
    }
}

/// RFC 7296 section 2.8.2, with every order of the first four messages: of two successors one
/// remains, and only the end that requested it continues its exchange.
#[test]
fn of_two_successors_asked_for_at_once_one_is_finished() {
    let mut winners = [0, 0];
    for seed in 0..20 {
        for order in 0..4 {
            let (left, right) = ends(WANTED, WANTED);
            let mut pair = Pair::seeded(left, right, seed);
            pair.connect();
            rekey_ike(&mut pair, Side::Left);
            rekey_ike(&mut pair, Side::Right);
            for reversed in [order % 2 == 1, order / 2 == 1] {
                let mut messages = pair.intercept();
                if reversed {
                    messages.reverse();
                }
                messages.iter().for_each(|message| pair.deliver(message));
            }
            pair.run_for(Duration::from_secs(120));
            assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
            assert_up(&pair, &[Kem::MlKem768]);
            let id = pair.left.ike();
            let ours = pair.left.engine.sas().find(|sa| sa.id == id).unwrap();
            winners[usize::from(ours.initiator)] += 1;
        }
    }
    assert!(winners.iter().all(|&count| count > 10), "{winners:?}");
}

#[test]
fn simultaneous_rekeys_with_an_exchange_settle_whatever_the_network_does() {
    for seed in 0..60 {
        let (left, right) = ends(WANTED, OPTIONAL);
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        pair.hop = pair.hop.losing(250).repeating(200).delaying(200);
        for _ in 0..3 {
            for side in [Side::Left, Side::Right] {
                rekey_child(&mut pair, side);
                rekey_ike(&mut pair, side);
            }
            pair.run_for(Duration::from_secs(20));
        }
        pair.run_for(Duration::from_secs(400));
        assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
        assert_up(&pair, &[Kem::MlKem768]);
        for host in [&pair.left, &pair.right] {
            assert!(host.down_reasons().is_empty(), "seed {seed}");
        }
    }
}

/// Section 2.2.4: a peer that does not know the successor reports this, and the other end requests
/// a new one.
// Recovers: ml-kem
#[test]
fn a_successor_that_the_peer_does_not_know_is_asked_for_anew() {
    let (mut pair, request) = following_up();
    let stranger = forged(&mut pair, &request, |message| {
        for payload in &mut message.payloads {
            if let Payload::Notify(notify) = payload {
                notify.data = vec![7; 8];
            }
        }
    });
    pair.deliver(&stranger);
    pair.settle();
    assert!(pair.left.refusals().is_empty() && pair.left.down_reasons().is_empty());
    let before = pair.left.engine.key_log(pair.left.ike()).unwrap().spi_i;
    pair.run_for(Duration::from_secs(300));
    assert!(is_settled(&mut pair));
    let after = pair.left.engine.key_log(pair.left.ike()).unwrap().spi_i;
    assert_ne!(before, after, "it was rekeyed later");
}

#[test]
fn a_value_that_is_none_makes_no_successor_and_leaves_the_old_one_up() {
    let (mut pair, request) = following_up();
    let wrong = forged(&mut pair, &request, |message| {
        for payload in &mut message.payloads {
            if let Payload::KeyExchange(key) = payload {
                key.public = vec![0xff; 1184];
            }
        }
    });
    pair.deliver(&wrong);
    pair.settle();
    assert_eq!(pair.right.refusals().len(), 1);
    assert_eq!(pair.left.refusals().len(), 1, "a peer's refusal is told");
    assert!(pair.left.down_reasons().is_empty() && pair.right.down_reasons().is_empty());
    assert_up(&pair, &[Kem::MlKem768]);
}

/// Section 2.2.2: all keys depend on the KEM, including those of the IKE SA. The group's secret is
/// the same in both runs, because only the KEM is random in a pair.
#[test]
fn a_kem_changes_the_keys_of_the_ike_sa_and_of_its_children() {
    let keys = || {
        let mut pair = between(WANTED, WANTED);
        let id = pair.connect();
        let ike = pair.left.engine.key_log(id).unwrap().sk_ei;
        (ike, keys_of(&pair.left.child().inbound))
    };
    let (one, other) = (keys(), keys());
    assert_ne!(one.0, other.0);
    assert_ne!(one.1, other.1);
}

// Weakness: 15
#[test]
fn every_method_connects_and_the_responders_order_decides() {
    let all: Wish = &[
        Some(Kem::MlKem512),
        Some(Kem::MlKem768),
        Some(Kem::MlKem1024),
    ];
    for kem in Kem::ALL {
        let mut pair = between(all, &[Some(kem)]);
        pair.connect();
        assert_up(&pair, &[kem]);
    }
    let mut pair = between(&[Some(Kem::MlKem1024), Some(Kem::MlKem512)], all);
    pair.connect();
    assert_up(&pair, &[Kem::MlKem512]);
}

#[test]
fn what_both_ends_want_decides_whether_there_is_an_sa_and_whether_the_kem_is_in_it() {
    const UP: Option<bool> = Some(false);
    const USED: Option<bool> = Some(true);
    const REFUSED: Option<bool> = None;
    let another: Wish = &[Some(Kem::MlKem1024)];
    let table = [
        (NONE, NONE, UP),
        (NONE, OPTIONAL, UP),
        (NONE, WANTED, REFUSED),
        (OPTIONAL, NONE, UP),
        (OPTIONAL, OPTIONAL, USED),
        (OPTIONAL, WANTED, USED),
        (OPTIONAL, another, REFUSED),
        (WANTED, NONE, REFUSED),
        (WANTED, OPTIONAL, USED),
        (WANTED, WANTED, USED),
        (WANTED, another, REFUSED),
    ];
    for (left, right, expected) in table {
        let told = format!("{left:?} with {right:?}");
        let mut pair = between(left, right);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(300));
        let Some(is_used) = expected else {
            assert_down(&pair);
            continue;
        };
        assert_eq!(!used(&pair).is_empty(), is_used, "{told}");
        assert!(fit(pair.left.child(), pair.right.child()), "{told}");
        let audited = [&pair.left, &pair.right].map(|host| {
            let refusals = host.refusals();
            refusals.iter().any(|why| why.contains("not protected"))
        });
        let alone = [left, right].map(|wish| wish == OPTIONAL && !is_used);
        assert_eq!(audited, alone, "{told}");
    }
}

/// An initiator is identified only in IKE_AUTH. Until then, everything that any peer may do is
/// allowed.
#[test]
fn a_kem_that_only_another_peer_requires_is_not_required_and_does_no_harm() {
    for (left, kems) in [(NONE, &[][..]), (OPTIONAL, &[Kem::MlKem768][..])] {
        let (left, mut right) = ends(left, NONE);
        let mut other = peer("other", PeerRole::Licensed);
        other.kems = WANTED.to_vec();
        right.peers.push(other);
        let mut pair = Pair::new(left, right);
        pair.connect();
        assert_up(&pair, kems);
    }
}

#[test]
fn a_kem_that_is_required_of_this_peer_is_missed_once_it_is_known_who_asks() {
    let (left, mut right) = ends(NONE, WANTED);
    right.peers.push(peer("other", PeerRole::Licensed));
    let (_, right) = refusal::refused(left, right);
    assert!(right.contains("x25519 or p256, and mlkem768)"), "{right}");
}

// Recovers: ml-kem
#[test]
fn a_kem_comes_through_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        for fragment in [0, 576, crate::FRAGMENT] {
            let (mut left, mut right) = ends(WANTED, WANTED);
            (left.fragment, right.fragment) = (fragment, fragment);
            let mut pair = Pair::seeded(left, right, seed);
            pair.hop = pair.hop.losing(150).repeating(300).delaying(300);
            pair.initiate(Side::Left);
            pair.run_for(Duration::from_secs(300));
            assert_up(&pair, &[Kem::MlKem768]);
        }
    }
}

/// The responder seals its answer again after its keys have changed (RFC 7383 section 2.5.2).
#[test]
fn an_answer_that_is_too_long_for_the_path_is_cut_again_with_the_keys_it_had() {
    for longest in [[600, usize::MAX], [usize::MAX, 600], [600, 600]] {
        let mut pair = between(WANTED, WANTED);
        pair.longest = longest;
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(60));
        assert_up(&pair, &[Kem::MlKem768]);
        let cut = [&pair.left, &pair.right].map(|host| host.engine.counters().cut_smaller);
        assert!(cut[0] >= 1, "{longest:?}: {cut:?}");
    }
}

/// AUTH covers the content of a message, not its fragmentation (RFC 9242 section 3.3.2).
#[test]
fn a_request_that_is_cut_in_another_way_proves_the_same() {
    let mut pair = between(WANTED, WANTED);
    pair.longest = [usize::MAX, 600];
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(60));
    assert_up(&pair, &[Kem::MlKem768]);
    assert_eq!(pair.right.engine.counters().reassembled, 1);
}

#[test]
fn a_request_that_comes_again_gets_the_same_answer_and_no_second_exchange() {
    let mut pair = uncut(WANTED, WANTED);
    let request = asked(&mut pair);
    pair.deliver(&request);
    let first = pair.intercept().remove(0);
    pair.deliver(&request);
    let second = pair.intercept().remove(0);
    assert_eq!(first.message, second.message);
    assert_eq!(pair.right.engine.counters().answered_again, 1);
    pair.deliver(&second);
    pair.settle();
    assert_up(&pair, &[Kem::MlKem768]);
}

/// Nothing is authenticated yet, so an initiator that stops here stays half open and is forgotten
/// in time.
#[test]
fn an_initiator_that_stops_after_the_exchange_stays_half_open_and_not_for_long() {
    let mut pair = uncut(WANTED, WANTED);
    let request = asked(&mut pair);
    assert_eq!(pair.right.engine.half_open(), 1);
    pair.deliver(&request);
    pair.intercept();
    assert_eq!(pair.right.engine.half_open(), 1);
    pair.hop.lost = 1000;
    pair.run_for(Duration::from_secs(61));
    assert_eq!(pair.right.engine.half_open(), 0);
}

#[test]
fn a_message_that_is_not_genuine_changes_nothing_but_a_counter() {
    let mut pair = uncut(WANTED, WANTED);
    let request = asked(&mut pair);
    let before = (pair.left.picture(), pair.right.picture());
    for at in [32, 100, request.message.len() - 1] {
        let mut damaged = request.clone();
        damaged.message[at] ^= 1;
        pair.deliver(&damaged);
    }
    assert_eq!(pair.right.dropped(DropReason::BadIcv), 3);
    assert!(pair.is_quiet(), "and nobody answers");
    assert_eq!((pair.left.picture(), pair.right.picture()), before);
    pair.deliver(&request);
    pair.settle();
    assert_up(&pair, &[Kem::MlKem768]);
}

/// Section 2.2.2: all exchanges "MUST all be completed before the IKE_AUTH exchange is initiated"
/// (RFC 9242 section 3.2).
#[test]
fn ike_auth_before_the_exchange_is_dropped() {
    let mut pair = uncut(WANTED, WANTED);
    let request = asked(&mut pair);
    let early = forged(&mut pair, &request, |message| {
        message.header.exchange = ExchangeType::IKE_AUTH;
    });
    pair.deliver(&early);
    assert_eq!(pair.right.dropped(DropReason::UnexpectedExchange), 1);
    assert!(pair.is_quiet());
    pair.deliver(&request);
    pair.settle();
    assert_up(&pair, &[Kem::MlKem768]);
}

/// RFC 9242 section 5: no "unlimited number of these exchanges ... at the initiator's discretion".
#[test]
fn an_exchange_that_was_not_agreed_is_dropped() {
    for wish in [NONE, WANTED] {
        let mut pair = uncut(wish, wish);
        pair.initiate(Side::Left);
        for _ in 0..2 + 2 * wish.iter().flatten().count() {
            pair.deliver_next();
        }
        let auth = pair.intercept().remove(0);
        let another = forged(&mut pair, &auth, |message| {
            message.header.exchange = ExchangeType::IKE_INTERMEDIATE;
        });
        pair.deliver(&another);
        assert_eq!(pair.right.dropped(DropReason::UnexpectedExchange), 1);
        assert!(pair.is_quiet());
        pair.deliver(&auth);
        pair.settle();
        assert!(fit(pair.left.child(), pair.right.child()));
    }
}

// Refuses: ml-kem
#[test]
fn a_value_that_is_none_ends_it_with_a_reason() {
    let (short, long) = (vec![1; 1183], vec![1; 1185]);
    // A coefficient of the key exceeds the modulus.
    let beyond = vec![0xff; 1184];
    for payloads in [
        bad(GroupId::ML_KEM_768, short),
        bad(GroupId::ML_KEM_768, long),
        bad(GroupId::ML_KEM_768, beyond),
        bad(GroupId::ML_KEM_768, Vec::new()),
        bad(GroupId::ML_KEM_512, vec![1; 800]),
        bad(GroupId::CURVE25519, vec![9; 32]),
        Vec::new(),
    ] {
        let mut pair = uncut(WANTED, WANTED);
        let request = asked(&mut pair);
        let wrong = forged(&mut pair, &request, |message| {
            message.payloads.clone_from(&payloads);
        });
        pair.deliver(&wrong);
        let refusals = pair.right.refusals().join("; ");
        assert!(refusals.contains("violated the protocol"), "{refusals}");
        pair.settle();
        assert_down(&pair);
        let told = pair.left.down_reasons();
        let notify = NotifyType::INVALID_SYNTAX;
        assert_eq!(told, [&DownReason::KemRefused { notify }]);
    }
}

/// An attacker that breaks the group during the handshake can open and seal its messages. AUTH
/// reveals any modification (RFC 9242 section 5).
// Refuses: ml-kem
#[test]
fn what_is_changed_in_the_exchange_is_found_out_before_anything_is_up() {
    let mut pair = uncut(WANTED, WANTED);
    let request = asked(&mut pair);
    let more = forged(&mut pair, &request, |message| {
        message.payloads.push(Payload::VendorId(vec![7; 16]));
    });
    pair.deliver(&more);
    pair.settle();
    assert_down(&pair);
    let refusals = pair.right.refusals().join("; ");
    assert!(refusals.contains("pre-shared key"), "{refusals}");
}

/// RFC 9370 section 4: AUTH covers the first messages, so two ends to which the KEM is optional
/// cannot be downgraded.
// Refuses: ml-kem
#[test]
fn the_exchange_taken_out_of_the_request_is_found_out_before_anything_is_up() {
    for change in [without_notify, without_transforms] {
        let mut pair = between(OPTIONAL, OPTIONAL);
        pair.initiate(Side::Left);
        for request in pair.intercept() {
            pair.deliver(&changed(&request, change));
        }
        pair.settle();
        assert_down(&pair);
    }
}

/// After the drop the genuine answer is still awaited.
#[test]
fn an_answer_with_the_transform_and_without_the_notify_is_dropped() {
    for change in [without_notify, without_transforms] {
        let mut pair = between(WANTED, WANTED);
        pair.initiate(Side::Left);
        pair.deliver_next();
        let answer = pair.intercept().remove(0);
        pair.deliver(&changed(&answer, change));
        assert_eq!(pair.left.dropped(DropReason::WrongAnswer), 1);
        pair.deliver(&answer);
        pair.settle();
        assert_up(&pair, &[Kem::MlKem768]);
    }
}

/// Neither forged refusals in clear nor silence after them end the exchange.
#[test]
fn a_refusal_in_the_clear_is_told_and_outwaited() {
    let mut pair = uncut(WANTED, WANTED);
    let request = asked(&mut pair);
    let mut header = Header::peek(&request.message).unwrap();
    (header.flags.response, header.flags.initiator) = (true, false);
    let notify = Notify::new(NotifyType::NO_PROPOSAL_CHOSEN, Vec::new());
    let payloads = vec![Payload::Notify(notify)];
    pair.deliver(&Flying {
        to: Side::Left,
        path: request.path.reversed(),
        message: Message { header, payloads }.encode(),
    });
    assert!(pair.left.refusals().join("; ").contains("still trying"));
    pair.deliver(&request);
    pair.settle();
    assert_up(&pair, &[Kem::MlKem768]);
}

/// Without IKE fragmentation, IP has to fragment the message, and the fragments are lost. The
/// reason names the option to enable.
#[test]
fn a_message_that_ip_has_to_cut_is_named_as_the_reason() {
    let large: Wish = &[Some(Kem::MlKem1024)];
    let mut pair = uncut(large, large);
    pair.longest = [1500, 1500];
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(300));
    let why = pair.left.down_reasons()[0];
    let told = why.to_string();
    assert!(told.contains("the additional key exchange of"), "{told}");
    let ours = matches!(why, DownReason::LongKemUnanswered(uncut) if uncut.ours);
    assert!(ours, "{told}");
}

#[test]
fn a_cookie_and_a_corrected_group_leave_the_kem_as_it_was() {
    let (left, mut right) = ends(WANTED, WANTED);
    right.limits.half_open_without_cookie = 0;
    right.peers[0].groups = vec![Group::P256];
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert!(pair.right.dropped(DropReason::CookieWanted) >= 1);
    assert_up(&pair, &[Kem::MlKem768]);
}

#[test]
fn certificates_prove_both_ends_after_the_exchange() {
    let (left, right) = ends(WANTED, WANTED);
    let left = by_certificate(left, &["mobile-ca"]);
    let right = by_certificate(right, &["gateway"]);
    let mut pair = certificates::pair(left, right, TODAY, 1);
    pair.connect();
    assert_up(&pair, &[Kem::MlKem768]);
}

/// The PPK is mixed into the keys of the last exchange (RFC 8784 section 3, RFC 9370 section
/// 2.2.2).
#[test]
fn a_ppk_and_a_kem_are_in_the_keys_together() {
    let (mut left, mut right) = ends(WANTED, WANTED);
    for config in [&mut left, &mut right] {
        config.peers[0].ppk = Some(Box::new(Ppk {
            id: "office2026".to_owned(),
            secret: Secret::new(vec![7; 32]),
            required: true,
        }));
    }
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert_up(&pair, &[Kem::MlKem768]);
    assert!(pair.left.engine.sas().all(|sa| sa.ppk));
}

#[test]
fn a_kem_passes_a_nat() {
    let mut pair = between(WANTED, WANTED);
    pair.nat = Some(NAT.with_shift(1000));
    pair.connect();
    assert_up(&pair, &[Kem::MlKem768]);
}

#[test]
fn an_account_of_the_attempt_names_the_kems_of_both_ends() {
    let mut pair = between(WANTED, OPTIONAL);
    pair.connect();
    let named = |offer: &crate::Offer| {
        let mut all = offer.ike.iter().map(ToString::to_string);
        all.any(|transform| transform == "ML_KEM_768")
    };
    let initiator = pair.left.engine.attempt(peer_id("gateway")).unwrap();
    let responder = pair.right.engine.attempt(peer_id("mobile")).unwrap();
    for offer in [
        &initiator.ours,
        &initiator.theirs,
        &responder.ours,
        &responder.theirs,
    ] {
        assert!(named(offer), "{offer:?}");
    }
}
