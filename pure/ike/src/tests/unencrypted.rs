//! Child SAs without encryption: accepted by name at both ends, until a certain time and for a
//! number of packets, and never where one end offers encryption.

use super::attack::ask_sealed;
use super::pair::{Host, Pair, Side, fit};
use super::reauth::reauthenticate;
use super::rekey::{rekey_child, rekey_ike};
use super::*;
use crate::allowed_suites::AllowedEspSuites;
use crate::exchange::notify;
use crate::proposal::{check_esp, choose_esp, offer_esp};
use crate::{DownReason, Unencrypted};
use crypto::UnixTime;
use model::{Allowance, EspSuite, Sha2, Spi};
use wire::ike::{
    EncryptionId, ExchangeType, NotifyType, Payload, Proposal, Transform, TransformType,
};

const NULL: EspSuite = EspSuite::Null(Sha2::Sha256);
const GMAC: EspSuite = EspSuite::Aes128Gmac;
const SPI: Spi = Spi(0x1000_0000);

/// Wall-clock time at which the tests begin, and an end far from it.
const TODAY: UnixTime = UnixTime(1_800_000_000);
const LATER: UnixTime = UnixTime(TODAY.0 + 100_000);

/// Packets that each end allows.
const PACKETS: u32 = 1000;

fn accepting(suites: &[EspSuite], until: UnixTime) -> Option<Box<Unencrypted>> {
    let accepted = Unencrypted {
        suites: suites.to_vec(),
        until,
        packets: Allowance::new(PACKETS),
    };
    (!suites.is_empty()).then_some(Box::new(accepted))
}

/// Returns both ends with the suites without encryption that each accepts.
fn ends(left: &[EspSuite], right: &[EspSuite], until: UnixTime) -> Pair {
    let (mut one, mut other) = (mobile(), gateway());
    one.peers[0].unencrypted = accepting(left, until);
    other.peers[0].unencrypted = accepting(right, until);
    let mut pair = Pair::new(one, other);
    set_clock(&mut pair, TODAY);
    pair
}

fn set_clock(pair: &mut Pair, today: UnixTime) {
    for side in [Side::Left, Side::Right] {
        pair.with(side, |engine, _| engine.set_wall_clock(today));
    }
}

/// Returns the suite of an end's newest child SA, in both directions.
fn suite(host: &Host) -> EspSuite {
    let child = host.newest();
    let suites = [&child.inbound, &child.outbound].map(|half| half.keys.plain_suite());
    assert_eq!(suites[0], suites[1]);
    suites[0].unwrap()
}

fn is_encrypted(pair: &Pair) -> bool {
    assert!(fit(pair.left.newest(), pair.right.newest()));
    suite(&pair.left).encrypts()
}

#[test]
fn every_suite_is_kept_by_all_successors_over_a_bad_hop() {
    for clear in EspSuite::UNENCRYPTED {
        let mut pair = ends(&[clear], &EspSuite::UNENCRYPTED, LATER);
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        let id = pair.connect();
        pair.run_for(Duration::from_secs(30));
        // The IKE SA is encrypted as always.
        assert_eq!(
            pair.left.engine.key_log(id).unwrap().suite,
            Suite::Aes128Gcm16
        );
        for rekey in [rekey_child, rekey_ike, rekey_child] {
            for side in [Side::Left, Side::Right] {
                rekey(&mut pair, side);
                pair.run_for(Duration::from_secs(60));
                assert!(fit(pair.left.newest(), pair.right.newest()));
                assert_eq!(suite(&pair.left), clear);
            }
        }
    }
}

#[test]
fn another_proof_keeps_it() {
    let mut pair = ends(&[NULL], &[NULL], LATER);
    pair.connect();
    reauthenticate(&mut pair);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(suite(&pair.left), NULL);
}

#[test]
fn an_end_that_accepts_none_refuses_with_a_reason() {
    for (right, told) in [
        (&[][..], "only ESP without encryption"),
        (&[GMAC], "no ESP suite that is allowed here (aes128gmac "),
    ] {
        let mut pair = ends(&[NULL], right, LATER);
        pair.connect();
        assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
        let refusals = pair.right.refusals().concat();
        assert!(refusals.contains(told), "{refusals}");
        let refused = DownReason::ChildRefused {
            notify: NotifyType::NO_PROPOSAL_CHOSEN,
        };
        assert_eq!(*pair.left.down_reasons()[0], refused);
    }
}

/// An offer of both would let the other end choose.
#[test]
fn no_offer_has_suites_of_both_kinds() {
    let mut config = mobile();
    let peer = &mut config.peers[0];
    peer.unencrypted = accepting(&EspSuite::UNENCRYPTED, LATER);
    for (today, encrypts) in [(TODAY, false), (LATER, true)] {
        let menu = AllowedEspSuites::to_offer(peer, Vec::new(), peer.unencrypted_now(today));
        let offered = offer_esp(&menu, SPI);
        let transforms = offered.iter().flat_map(|proposal| &proposal.transforms);
        let mut ciphers = transforms.filter(|one| one.kind == TransformType::ENCR);
        assert!(ciphers.all(|cipher| cipher.encrypts() == encrypts));
    }
}

/// RFC 7296 section 3.3: NULL is a cipher without a key length, and needs an HMAC; AES-GMAC is a
/// combined mode, with a key length and without an HMAC (RFC 4543 section 3).
#[test]
fn suites_are_offered_as_their_rfcs_say() {
    let offer = |suite| {
        let menu = AllowedEspSuites {
            suites: vec![suite],
            ..AllowedEspSuites::plain(&[])
        };
        let [proposal] = <[_; 1]>::try_from(offer_esp(&menu, SPI)).unwrap();
        let of = |kind| {
            let mut all = proposal
                .transforms
                .iter()
                .filter(move |one| one.kind == kind);
            let one = all.next().cloned();
            assert!(all.next().is_none());
            one
        };
        (of(TransformType::ENCR).unwrap(), of(TransformType::INTEG))
    };
    let (cipher, hmac) = offer(EspSuite::Null(Sha2::Sha384));
    assert_eq!((cipher.id, cipher.key_bits), (11, None));
    assert_eq!(hmac, Some(Transform::hmac(Sha2::Sha384)));
    let (cipher, hmac) = offer(EspSuite::Aes256Gmac);
    assert_eq!((cipher.id, cipher.key_bits, hmac), (21, Some(256), None));
}

/// NULL without an HMAC would be no protection at all, and an offer with a cipher that is not
/// supported is no reason to do without one.
// Weakness: 16
// Weakness: 70
#[test]
fn an_offer_with_any_cipher_or_without_an_hmac_is_not_answered_by_null() {
    let mut config = gateway();
    let peer = &mut config.peers[0];
    peer.unencrypted = accepting(&EspSuite::UNENCRYPTED, LATER);
    let choose = |proposals: &[Proposal]| {
        let accepted = peer.unencrypted_now(TODAY);
        let menu = AllowedEspSuites::to_choose(peer, Vec::new(), accepted, proposals);
        choose_esp(proposals, &menu, SPI).map(|choice| choice.suite)
    };
    let of = |suites: &[EspSuite]| {
        let menu = AllowedEspSuites {
            suites: suites.to_vec(),
            ..AllowedEspSuites::plain(&[])
        };
        offer_esp(&menu, SPI)
    };
    assert_eq!(choose(&of(&[NULL])), Some(NULL));
    assert_eq!(choose(&of(&[NULL, GMAC])), Some(GMAC));
    // With encryption, in either order: never without.
    let both = [NULL, Suite::Aes128Gcm16.into()];
    assert_eq!(choose(&of(&both)), Some(both[1]));
    let unknown = [EncryptionId(18), EncryptionId::CHACHA20_POLY1305];
    for cipher in unknown {
        let mut offered = of(&[NULL]);
        let mut other = offered[0].clone();
        other.transforms[0] = Transform::plain(TransformType::ENCR, cipher.0);
        other.number = 2;
        offered.push(other);
        assert_eq!(choose(&offered), None, "{cipher}");
    }
    // NULL alone, and NULL in the proposal of a cipher.
    let mut bare = of(&[NULL]);
    bare[0]
        .transforms
        .retain(|one| one.kind != TransformType::INTEG);
    assert_eq!(choose(&bare), None);
    let mut mixed = of(&[Suite::Aes128Cbc(Sha2::Sha256).into()]);
    let null = Transform::plain(TransformType::ENCR, EncryptionId::NULL.0);
    mixed[0].transforms.insert(0, null);
    assert_ne!(choose(&mixed), Some(NULL));
}

/// A responder that answers with NULL what was offered with encryption, as after a change on the
/// way.
// Weakness: 15
#[test]
fn an_answer_without_encryption_to_an_offer_with_encryption_is_not_accepted() {
    let encrypted = AllowedEspSuites::plain(&[Suite::Aes128Cbc(Sha2::Sha256)]);
    let mut answer = offer_esp(&encrypted, SPI);
    assert!(check_esp(&answer, &encrypted).is_some());
    answer[0].transforms[0] = Transform::plain(TransformType::ENCR, EncryptionId::NULL.0);
    assert_eq!(check_esp(&answer, &encrypted), None);
}

/// An authenticated peer with bad will: it has an encrypted child SA, and requests a successor
/// without encryption. Both ends accepted that at first, so only the rule refuses it.
// Weakness: 15
#[test]
fn an_encrypted_child_gets_no_successor_without_encryption() {
    for (left, is_refused) in [(&[][..], true), (&[NULL], false)] {
        let mut pair = ends(left, &[NULL], LATER);
        pair.connect();
        assert_eq!(is_encrypted(&pair), is_refused);
        let menu = AllowedEspSuites {
            suites: vec![NULL],
            ..AllowedEspSuites::plain(&[])
        };
        let child = pair.left.child();
        let selectors = |all: &[TrafficSelector]| wire::ike::TrafficSelectors(all.to_vec());
        let payloads = vec![
            crate::exchange::create_child::rekey_sa(child.inbound.spi),
            Payload::SecurityAssociation(offer_esp(&menu, SPI)),
            Payload::Nonce(vec![7; 32]),
            Payload::TsInitiator(selectors(&child.local)),
            Payload::TsResponder(selectors(&child.remote)),
        ];
        let sa = pair.left.ike();
        let answer = ask_sealed(&mut pair, sa, ExchangeType::CREATE_CHILD_SA, payloads);
        let refused = answer == [notify(NotifyType::NO_PROPOSAL_CHOSEN, Vec::new())];
        assert_eq!(refused, is_refused, "{answer:?}");
        assert_eq!(suite(&pair.right).encrypts(), is_refused);
    }
}

/// Invariant 6: the SA is rekeyed a minute before the end, by the end whose time comes first, and
/// no later rekey brings it back.
#[test]
fn before_its_end_it_is_rekeyed_to_encryption_for_good() {
    for (first, second) in [(200, 100_000), (100_000, 200)] {
        let mut pair = ends(&[NULL], &[NULL], LATER);
        for (side, after) in [(Side::Left, first), (Side::Right, second)] {
            let until = UnixTime(TODAY.0 + after);
            let host = match side {
                Side::Left => &mut pair.left,
                Side::Right => &mut pair.right,
            };
            host.engine.config.peers[0].unencrypted = accepting(&[NULL], until);
        }
        pair.connect();
        pair.run_for(Duration::from_secs(130));
        set_clock(&mut pair, UnixTime(TODAY.0 + 130));
        assert!(!is_encrypted(&pair));
        set_clock(&mut pair, UnixTime(TODAY.0 + 141));
        pair.run_for(Duration::from_secs(20));
        assert!(is_encrypted(&pair));
        for side in [Side::Left, Side::Right] {
            rekey_child(&mut pair, side);
            pair.run_for(Duration::from_secs(10));
            assert!(is_encrypted(&pair));
        }
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    }
}

/// A peer that never encrypts loses the tunnel at the end.
#[test]
fn without_a_common_suite_that_encrypts_it_ends_with_its_time() {
    let until = UnixTime(TODAY.0 + 200);
    let mut pair = ends(&[NULL], &[NULL], until);
    pair.connect();
    pair.left.engine.config.peers[0].suites = vec![Suite::Aes256Gcm16];
    pair.right.engine.config.peers[0].suites = vec![Suite::ChaCha20Poly1305];
    set_clock(&mut pair, UnixTime(until.0 - 59));
    pair.run_for(Duration::from_secs(199));
    assert!(!is_encrypted(&pair));
    pair.run_for(Duration::from_secs(3));
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
}

/// Returns the packets of an end's child SAs.
fn packets(pair: &Pair, side: Side) -> Allowance {
    let host = match side {
        Side::Left => &pair.left,
        Side::Right => &pair.right,
    };
    let accepted = host.engine.config.peers[0].unencrypted.as_ref();
    accepted.unwrap().packets.clone()
}

fn spend(pair: &Pair, side: Side, count: u32) {
    let packets = packets(pair, side);
    (0..count).for_each(|_| assert!(packets.spend().is_some()));
}

/// Tells an end's engine, as the data path does, that few of its packets are left.
fn tell(pair: &mut Pair, side: Side) {
    pair.with(side, |engine, now| {
        let peer = engine.config.peers[0].id;
        engine.end_unencrypted(peer, now);
    });
}

/// Invariant 6: no rekey and no other proof begins the count again, and each end has its own.
#[test]
fn when_a_tenth_of_its_packets_is_left_it_is_rekeyed_to_encryption_for_good() {
    for side in [Side::Left, Side::Right] {
        let mut pair = ends(&[NULL], &[NULL], LATER);
        pair.connect();
        for rekey in [rekey_child, rekey_ike] {
            spend(&pair, side, PACKETS * 4 / 10);
            rekey(&mut pair, Side::Left);
            pair.run_for(Duration::from_secs(60));
        }
        reauthenticate(&mut pair);
        pair.run_for(Duration::from_secs(60));
        spend(&pair, side, PACKETS / 10 - 1);
        rekey_child(&mut pair, side);
        pair.run_for(Duration::from_secs(60));
        assert!(!is_encrypted(&pair));
        spend(&pair, side, 1);
        tell(&mut pair, side);
        pair.run_for(Duration::from_secs(5));
        assert!(is_encrypted(&pair));
        for side in [Side::Left, Side::Right] {
            rekey_child(&mut pair, side);
            pair.run_for(Duration::from_secs(60));
            assert!(is_encrypted(&pair));
        }
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    }
}

/// A peer that never encrypts loses the tunnel a minute later.
#[test]
fn without_a_common_suite_that_encrypts_it_ends_with_its_packets() {
    let mut pair = ends(&[NULL], &[NULL], LATER);
    pair.connect();
    pair.left.engine.config.peers[0].suites = vec![Suite::Aes256Gcm16];
    pair.right.engine.config.peers[0].suites = vec![Suite::ChaCha20Poly1305];
    spend(&pair, Side::Left, PACKETS);
    tell(&mut pair, Side::Left);
    pair.run_for(Duration::from_secs(59));
    assert!(!is_encrypted(&pair));
    pair.run_for(Duration::from_secs(3));
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
}

/// A line that changes is another consent.
#[test]
fn a_reload_goes_on_counting_unless_the_line_has_changed() {
    for (until, left) in [(LATER, 10), (UnixTime(LATER.0 + 1), PACKETS)] {
        let mut pair = ends(&[NULL], &[NULL], LATER);
        pair.connect();
        spend(&pair, Side::Left, PACKETS - 10);
        let mut again = mobile();
        again.peers[0].unencrypted = accepting(&[NULL], until);
        let changed = pair.with(Side::Left, |engine, now| engine.reconfigure(again, now));
        assert_eq!(changed.is_empty(), until == LATER);
        assert_eq!(packets(&pair, Side::Left).left(), u64::from(left));
    }
}

/// The end that is late has nothing to answer with.
#[test]
fn after_its_end_nothing_begins_without_encryption() {
    let mut pair = ends(&[NULL], &[NULL], LATER);
    pair.with(Side::Right, |engine, _| engine.set_wall_clock(LATER));
    pair.connect();
    let refusals = pair.right.refusals().concat();
    assert!(refusals.contains("or no longer"), "{refusals}");
    let mut pair = ends(&[NULL], &[NULL], LATER);
    set_clock(&mut pair, LATER);
    pair.connect();
    assert!(is_encrypted(&pair));
}
