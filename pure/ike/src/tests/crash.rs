//! Peers that lose their IKE SAs, and prove it (`extension/crash.rs`).

use super::certificates::TODAY;
use super::pair::{Flying, Host, Pair, Side, fit};
use super::rekey::rekey_ike;
use super::ticket::{connected_as, lose, resuming, set_clocks};
use super::{clone, *};
use crate::extension::crash;
use crate::{DropReason, Event, Incarnation, Resumption};
use model::{Path, Spi};
use resumption::ReferenceKey;
use wire::ike::{Header, Notify, NotifyType};
use world::Hop;

const SECOND: Duration = Duration::from_secs(1);

/// Returns the start of a gateway with this number.
pub(super) fn start(number: u32) -> Incarnation {
    Incarnation::new(Secret::new(vec![7; 32]), number)
}

/// Has the right end be killed and started again.
fn kill(pair: &mut Pair, incarnation: Option<Incarnation>) {
    let config = (*pair.right.engine.config).clone();
    pair.restart(Side::Right, Host::seeded(config, 9, 2));
    if let Some(incarnation) = incarnation {
        pair.right.engine.set_incarnation(incarnation);
    }
}

fn connected_with((mut left, right): (Config, Config)) -> Pair {
    left.peers[0].liveness = 600 * SECOND;
    let mut pair = Pair::new(left, right);
    pair.right.engine.set_incarnation(start(5));
    pair.connect();
    pair
}

fn connected() -> Pair {
    connected_with((mobile(), gateway()))
}

/// Returns the token that the left end holds.
fn token(pair: &Pair) -> Option<Box<[u8]>> {
    let sas = pair.left.engine.sas.values();
    let mut up = sas.filter_map(|sa| sa.established());
    up.next()?.liveness.token.clone()
}

/// Returns a liveness check of the left end, which is taken out of the network.
fn question(pair: &mut Pair) -> Flying {
    let id = pair.left.engine.sas().next().unwrap().id;
    pair.with(Side::Left, |engine, now| engine.doubt(id, now));
    pair.intercept().remove(0)
}

/// Returns INVALID_IKE_SPI in clear as the answer to a question, with this token.
fn error(question: &Flying, token: &[u8]) -> Flying {
    question.forged_answer(&[
        Notify::new(NotifyType::INVALID_IKE_SPI, Vec::new()),
        Notify::new(NotifyType::QCD_TOKEN, token.to_vec()),
    ])
}

/// Returns true if the right end, started again, proves that the SA of the left end is lost.
fn is_proved_lost(pair: &mut Pair) -> bool {
    let given = token(pair).expect("a token");
    let asked = question(pair);
    kill(pair, Some(start(6)));
    pair.deliver(&asked);
    let answer = pair.intercept().remove(0);
    assert!(answer.message.len() <= asked.message.len());
    crash::is_proved(&answer.clear(), Some(&given))
}

/// Returns the number of first messages that the left end sends because of a message.
fn begun_by(pair: &mut Pair, message: &Flying) -> usize {
    pair.deliver(message);
    pair.timeout(Side::Left);
    let is_first = |flying: &&Flying| Header::peek(&flying.message).unwrap().is_first();
    pair.intercept().iter().filter(is_first).count()
}

/// An error without a token may be forged, so it begins nothing so soon after another IKE SA.
#[test]
fn an_sa_that_is_lost_in_its_first_second_is_proved_lost() {
    for (incarnation, up) in [(Some(start(6)), 1), (None, 0)] {
        let mut pair = connected();
        let asked = question(&mut pair);
        kill(&mut pair, incarnation);
        pair.deliver(&asked);
        pair.run_for(SECOND);
        assert_eq!(pair.right.up(), up);
        if up == 1 {
            let told = pair.left.refusals();
            assert!(told.last().unwrap().contains("started again"), "{told:?}");
            pair.run_for(120 * SECOND);
            assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
            assert!(fit(pair.left.child(), pair.right.child()));
        }
    }
}

/// The answer is no longer than the shortest question.
// Weakness: 186
#[test]
fn a_token_does_not_make_an_answer_longer_than_its_question() {
    for mobike in [false, true] {
        let (mut left, mut right) = (mobile(), gateway());
        for config in [&mut left, &mut right] {
            config.peers[0].features.mobike = mobike;
        }
        assert!(is_proved_lost(&mut connected_with((left, right))));
    }
}

/// RFC 6290 section 4.3: other SPIs, another token. The messages that give it may be lost.
#[test]
fn each_new_ike_sa_has_its_token() {
    for (by, lost) in [
        (Side::Left, 0),
        (Side::Right, 0),
        (Side::Left, 300),
        (Side::Right, 300),
    ] {
        let mut pair = connected();
        let first = token(&pair).expect("a token");
        pair.hop.lost = lost;
        rekey_ike(&mut pair, by);
        pair.run_for(20 * SECOND);
        pair.hop.lost = 0;
        pair.run_for(60 * SECOND);
        let second = token(&pair).expect("another token");
        assert_ne!(first, second);
        assert!(is_proved_lost(&mut pair), "rekeyed by {by:?}");
    }
}

#[test]
fn a_clone_has_its_token() {
    let mut pair = connected_with(clone::ends());
    let first = token(&pair).expect("a token");
    clone::hand_over(&mut pair, "198.51.100.7");
    pair.run_for(60 * SECOND);
    assert_eq!(pair.left.up(), 1);
    let second = token(&pair).expect("another token");
    assert_ne!(first, second);
}

#[test]
fn a_resumed_session_has_its_token() {
    for way in [Resumption::Tickets, Resumption::Skid3] {
        let mut pair = connected_as(resuming((mobile(), gateway()), way));
        assert_eq!(token(&pair), None);
        pair.right.engine.set_incarnation(start(5));
        lose(&mut pair);
        pair.connect();
        assert_eq!(pair.left.up(), 1);
        assert!(token(&pair).is_some(), "{way:?}");
    }
}

// Weakness: 186
#[test]
fn a_token_is_heeded_once_and_only_as_the_answer_to_a_question() {
    let mut pair = connected();
    let given = token(&pair).unwrap();
    let asked = question(&mut pair);
    // One that is wrong, cut, or absent.
    for wrong in [vec![0; 16], given[..15].to_vec(), Vec::new()] {
        assert_eq!(begun_by(&mut pair, &error(&asked, &wrong)), 0);
    }
    // The answer comes after all, so nothing is asked any more.
    pair.deliver(&asked);
    pair.settle();
    assert_eq!(begun_by(&mut pair, &error(&asked, &given)), 0);
    let asked = question(&mut pair);
    assert_eq!(begun_by(&mut pair, &error(&asked, &given)), 1);
    assert_eq!(begun_by(&mut pair, &error(&asked, &given)), 0);
    assert_eq!(pair.left.up(), 1, "the old one stays");
}

/// Whoever sees a liveness check can send it to another node, or again.
// Weakness: 186
#[test]
fn no_token_can_be_had_of_an_sa_that_is_up_or_was_deleted_or_from_another_node() {
    let mut pair = connected();
    let mut asked = question(&mut pair);
    // The gateway itself, while the SA is up. The last octet is wrong, so that it is no request.
    *asked.message.last_mut().unwrap() ^= 1;
    pair.deliver(&asked);
    assert!(pair.is_quiet());
    // A gateway with another secret, and one that shares the secret and started earlier.
    for incarnation in [
        Incarnation::new(Secret::new(vec![8; 32]), 6),
        start(5),
        start(4),
    ] {
        let mut elsewhere = connected();
        kill(&mut elsewhere, Some(incarnation));
        elsewhere.deliver(&asked);
        for answer in elsewhere.intercept() {
            assert_eq!(crash::given(&answer.clear()), None);
        }
    }
    let id = pair.right.engine.sas().next().unwrap().id;
    pair.with(Side::Right, |engine, now| engine.close(id, now));
    pair.run_for(600 * SECOND);
    pair.deliver(&asked);
    assert!(pair.is_quiet());
}

/// A responder does not initiate, so it needs no token.
#[test]
fn only_initiators_are_given_tokens() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.left.engine.set_incarnation(start(1));
    pair.connect();
    let right = pair.right.engine.sas.values();
    let mut right = right.filter_map(|sa| sa.established());
    assert_eq!(right.next().unwrap().liveness.token, None);
    assert_eq!(token(&pair), None);
}

/// Returns the path of ESP packets of the left end, as the right one sees it.
fn esp_path(pair: &Pair) -> Path {
    let sa = pair.left.engine.sas.values().next().unwrap();
    sa.core.esp.reversed()
}

/// For the pages: the gateway is killed, and the initiator sends ESP.
pub(crate) fn story() -> Pair {
    let mut pair = connected();
    pair.run_for(10 * SECOND);
    let spi = pair.left.child().outbound.spi;
    let path = esp_path(&pair);
    kill(&mut pair, Some(start(6)));
    pair.begin_story();
    pair.with(Side::Right, |engine, now| {
        engine.handle_unknown_spi(spi, path, 100, now);
    });
    pair.run_for(120 * SECOND);
    pair
}

/// RFC 7296 section 1.5: INVALID_SPI without protection.
#[test]
fn a_gateway_that_was_started_again_is_asked_as_soon_as_it_sees_esp() {
    let mut pair = connected();
    pair.run_for(10 * SECOND);
    let spi = pair.left.child().outbound.spi;
    let path = esp_path(&pair);
    kill(&mut pair, Some(start(6)));
    pair.with(Side::Right, |engine, now| {
        engine.handle_unknown_spi(spi, path, 100, now);
    });
    pair.run_for(SECOND);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    let told = pair.left.refusals();
    assert!(told.last().unwrap().contains("started again"), "{told:?}");
    pair.run_for(120 * SECOND);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

// Weakness: 187
#[test]
fn forged_hints_cost_one_question_in_two_seconds_and_end_nothing() {
    let mut pair = connected();
    pair.run_for(10 * SECOND);
    let (spi, sent) = (pair.left.child().outbound.spi, pair.sent.len());
    let hint = Flying {
        to: Side::Left,
        path: esp_path(&pair).reversed(),
        message: crash::unknown_spi(spi).encode(),
    };
    for _ in 0..100 {
        pair.deliver(&hint);
        pair.run_for(SECOND / 10);
    }
    let questions = pair.sent.len() - sent;
    assert!(
        (2 * 5..=2 * 6).contains(&questions),
        "{questions} messages in 10 s"
    );
    // Of an SPI that is not ours, or from elsewhere.
    let sent = pair.sent.len();
    let other = crash::unknown_spi(Spi(spi.0 ^ 1)).encode();
    let mut strange = Flying {
        message: other,
        ..hint.clone()
    };
    pair.run_for(3 * SECOND);
    pair.deliver(&strange);
    strange.message = hint.message;
    strange.path.remote.set_ip([203, 0, 113, 9].into());
    pair.deliver(&strange);
    pair.settle();
    assert_eq!(pair.sent.len(), sent);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert_eq!(pair.left.dropped(DropReason::UnknownSa), 2);
}

/// A packet may overtake what the gateway needs to know its SPI.
#[test]
fn a_hint_sends_a_request_again_only_after_it_was_repeated() {
    let mut pair = connected();
    let hint = Flying {
        to: Side::Left,
        path: esp_path(&pair).reversed(),
        message: crash::unknown_spi(pair.left.child().outbound.spi).encode(),
    };
    question(&mut pair);
    pair.deliver(&hint);
    pair.run_for(SECOND / 10);
    assert_eq!(pair.intercept().len(), 0);
    pair.hop.lost = 1000;
    pair.run_for(7 * SECOND);
    pair.hop.lost = 0;
    let sent = pair.sent.len();
    pair.deliver(&hint);
    pair.run_for(SECOND / 10);
    assert_eq!(pair.sent.len(), sent + 2, "a request and its answer");
}

/// Source addresses can be forged.
// Weakness: 187
#[test]
fn hints_are_no_longer_than_what_they_answer_and_64_a_second_go_to_a_network() {
    let mut pair = connected();
    let (spi, path) = (Spi(0x1234_5678), esp_path(&pair));
    let mut tell = |octets: usize, times: usize| {
        for _ in 0..times {
            pair.with(Side::Right, |engine, now| {
                engine.handle_unknown_spi(spi, path, octets, now);
            });
        }
        pair.intercept().len()
    };
    assert_eq!(tell(39, 1), 0);
    assert_eq!(tell(40, 200), 64);
}

/// Returns the round trips from the token that proves the loss to the IKE SA that the left end has
/// then. The gateway has kept its sessions.
fn round_trips(way: Resumption) -> f64 {
    const DELAY: Duration = Duration::from_millis(300);
    let key = || ReferenceKey::restored(Secret::new(vec![5; 32]));
    let (mut left, right) = resuming((mobile(), gateway()), way);
    left.peers[0].liveness = 600 * SECOND;
    let mut pair = Pair::new(left, right);
    set_clocks(&mut pair, TODAY);
    pair.right.engine.refer_by(key());
    pair.right.engine.set_incarnation(start(5));
    pair.connect();
    let asked = question(&mut pair);
    let store = pair.right.store.take();
    kill(&mut pair, Some(start(6)));
    pair.right.store = store;
    pair.right.engine.refer_by(key());
    pair.right.engine.set_wall_clock(TODAY);
    pair.hop = Hop {
        delay: DELAY,
        ..Hop::PERFECT
    };
    pair.deliver(&asked);
    let noticed = pair.now + DELAY;
    let resumes = way != Resumption::Off;
    let is_new =
        |event: &Event| matches!(event, Event::IkeReplaced { resumed, .. } if *resumed == resumes);
    while !pair.left.events.iter().any(is_new) {
        assert!(pair.now < noticed + 10 * SECOND, "{:?}", pair.left.events);
        pair.run_for(Duration::from_millis(1));
    }
    (pair.now - noticed).as_secs_f64() / (2.0 * DELAY.as_secs_f64())
}

/// The time of computing is not in it.
#[test]
fn a_proved_loss_costs_one_round_trip_by_skid3_and_two_by_ticket_or_in_full() {
    for (way, least, most) in [
        (Resumption::Skid3, 1.0, 1.2),
        (Resumption::Tickets, 2.0, 2.2),
        (Resumption::Off, 2.0, 2.2),
    ] {
        let took = round_trips(way);
        assert!((least..most).contains(&took), "{way:?}: {took} round trips");
    }
}

/// ESP has no port.
#[test]
fn a_hint_about_esp_without_udp_goes_to_the_port_for_both() {
    let mut pair = connected();
    let path = esp_path(&pair).without_udp();
    let spi = Spi(0x1234_5678);
    pair.with(Side::Right, |engine, now| {
        engine.handle_unknown_spi(spi, path, 100, now);
    });
    let told = pair.intercept().remove(0);
    assert_eq!(told.path.local.port(), crate::NATT_PORT);
    assert_eq!(told.path.remote.ip(), path.local.ip());
}
