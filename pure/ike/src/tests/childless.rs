//! IKE SAs that begin without a child (RFC 6023).

use super::attack::ask_sealed;
use super::pair::{Pair, Side};
use super::weaknesses::resealed;
use super::*;
use crate::allowed_suites::AllowedEspSuites;
use crate::proposal::offer_esp;
use model::Spi;
use wire::ike::{ExchangeType, NotifyType, Payload, PayloadType, TrafficSelectors};

/// Returns a mobile node that requests no child in IKE_AUTH, and its gateway.
fn connected() -> (Pair, model::IkeSaId) {
    let left = host("mobile", peer("gateway", PeerRole::Neighbour));
    let mut pair = Pair::new(left, gateway());
    let id = pair.connect();
    (pair, id)
}

// Weakness: 96
#[test]
fn a_vpn_peer_may_begin_without_a_child_and_ask_for_it_later() {
    let (mut pair, id) = connected();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert!(pair.right.children().is_empty());
    assert!(pair.right.refusals().is_empty());
    let menu = AllowedEspSuites::to_offer(&mobile().peers[0], Vec::new(), &[]);
    let payloads = vec![
        Payload::SecurityAssociation(offer_esp(&menu, Spi(4096))),
        Payload::Nonce(vec![7; 32]),
        Payload::TsInitiator(TrafficSelectors(vec![prefix("10.8.0.2/32")])),
        Payload::TsResponder(TrafficSelectors(vec![prefix("10.0.0.0/8")])),
    ];
    let answer = ask_sealed(&mut pair, id, ExchangeType::CREATE_CHILD_SA, payloads);
    assert!(
        answer.iter().any(|p| p.kind() == PayloadType::SA),
        "{answer:?}"
    );
    assert_eq!(pair.right.children().len(), 1);
}

#[test]
fn an_ike_sa_without_a_child_stays_and_is_rekeyed() {
    let (mut pair, id) = connected();
    pair.run_for(Duration::from_secs(600));
    pair.with(Side::Left, |engine, now| engine.rekey_ike(id, now));
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

// Weakness: 96
#[test]
fn a_part_of_a_child_is_a_syntax_error() {
    let kinds = [PayloadType::SA, PayloadType::TSI, PayloadType::TSR];
    for left_out in kinds.iter().flat_map(|kind| {
        let others = kinds.iter().filter(|other| *other != kind).copied();
        [vec![*kind], others.collect()]
    }) {
        let mut pair = Pair::new(mobile(), gateway());
        pair.initiate(Side::Left);
        pair.settle_one_round();
        let genuine = pair.intercept().remove(0);
        let changed = resealed(&mut pair, &genuine, |message| {
            message.payloads.retain(|p| !left_out.contains(&p.kind()));
        });
        pair.deliver(&changed);
        let refused = pair.right.refusals().join("; ");
        assert!(
            refused.contains("without proposals or traffic selectors"),
            "{left_out:?}: {refused}"
        );
        pair.settle();
        let why = pair.left.down_reasons()[0].to_string();
        assert!(
            why.contains(&NotifyType::INVALID_SYNTAX.to_string()),
            "{why}"
        );
        assert!(pair.right.children().is_empty());
    }
}
