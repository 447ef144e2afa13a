//! Extended sequence numbers (RFC 4303 section 2.2.1): used only if both ends want them.

use super::attack::ask_sealed;
use super::pair::{Host, Pair, Side, fit};
use super::reauth::reauthenticate;
use super::rekey::{rekey_child, rekey_ike};
use super::resource::all_fit;
use super::*;
use crate::allowed_suites::AllowedEspSuites;
use crate::exchange::notify;
use crate::proposal::offer_esp;
use model::Spi;
use wire::ike::{EsnId, ExchangeType, NotifyType, Payload, Transform, TransformType};

const BOTH: [Side; 2] = [Side::Left, Side::Right];

fn ends(left: bool, right: bool) -> (Config, Config) {
    let (mut one, mut other) = (mobile(), gateway());
    one.peers[0].features.esn = left;
    other.peers[0].features.esn = right;
    (one, other)
}

fn up((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

/// Returns true if all children of an end have extended numbers in both directions, and false if
/// none has.
fn extended(host: &Host) -> bool {
    let children = host.children();
    let halves = children
        .iter()
        .flat_map(|child| [&child.inbound, &child.outbound]);
    let all: Vec<_> = halves.map(|half| half.keys.is_extended()).collect();
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    all[0]
}

#[test]
fn numbers_are_extended_if_both_ends_want_it_and_only_then() {
    for (left, right) in [(false, false), (false, true), (true, false), (true, true)] {
        let pair = up(ends(left, right));
        assert!(fit(pair.left.child(), pair.right.child()));
        for host in [&pair.left, &pair.right] {
            assert_eq!(extended(host), left && right, "{left}, {right}");
            assert!(host.refusals().is_empty());
        }
    }
}

#[test]
fn every_suite_and_all_successors_have_them_over_a_bad_hop() {
    for (suite, side) in Suite::ALL.into_iter().zip(BOTH.into_iter().cycle()) {
        let (mut left, mut right) = ends(true, true);
        (left.peers[0].suites, right.peers[0].suites) = (vec![suite], vec![suite]);
        let mut pair = Pair::new(left, right);
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        pair.connect();
        pair.run_for(Duration::from_secs(30));
        assert!(extended(&pair.left) && extended(&pair.right), "{suite}");
        for rekey in [rekey_child, rekey_ike, rekey_child] {
            rekey(&mut pair, side);
            pair.run_for(Duration::from_secs(60));
            assert!(fit(pair.left.newest(), pair.right.newest()));
            assert!(extended(&pair.left) && extended(&pair.right), "{suite}");
        }
    }
}

#[test]
fn children_for_the_same_traffic_and_of_new_proofs_have_them_too() {
    let (mut left, mut right) = ends(true, true);
    (
        left.peers[0].features.resources,
        right.peers[0].features.resources,
    ) = (3, 3);
    let mut pair = up((left, right));
    assert!(all_fit(&pair, 3));
    assert!(extended(&pair.left) && extended(&pair.right));
    reauthenticate(&mut pair);
    pair.run_for(Duration::from_secs(60));
    assert!(all_fit(&pair, 3));
    assert!(extended(&pair.left) && extended(&pair.right));
}

/// RFC 7296 section 3.3.2: "normal (non-extended) sequence numbers is not acceptable".
// Refuses: esn
#[test]
fn who_insists_on_them_is_refused_by_who_has_none_with_a_reason() {
    for esn in [false, true] {
        let mut pair = up(ends(esn, esn));
        let menu = AllowedEspSuites::plain(&[Suite::Aes128Gcm16]);
        let mut offer = offer_esp(&menu, Spi(0x1000_0000));
        let transforms = &mut offer[0].transforms;
        transforms.retain(|transform| transform.kind != TransformType::ESN);
        transforms.push(Transform::esn(EsnId::YES));
        let old = pair.left.child().inbound.spi;
        let selectors = |all: &[TrafficSelector]| wire::ike::TrafficSelectors(all.to_vec());
        let child = pair.left.child();
        let payloads = vec![
            crate::exchange::create_child::rekey_sa(old),
            Payload::SecurityAssociation(offer),
            Payload::Nonce(vec![7; 32]),
            Payload::TsInitiator(selectors(&child.local)),
            Payload::TsResponder(selectors(&child.remote)),
        ];
        let sa = pair.left.ike();
        let answer = ask_sealed(&mut pair, sa, ExchangeType::CREATE_CHILD_SA, payloads);
        let refused = answer == [notify(NotifyType::NO_PROPOSAL_CHOSEN, Vec::new())];
        assert_eq!(refused, !esn, "{answer:?}");
        let told = pair.right.refusals().concat();
        let says = "without extended sequence numbers)";
        assert_eq!(told.contains(says), !esn, "{told}");
        assert_eq!(pair.right.newest().inbound.keys.is_extended(), esn);
    }
}
