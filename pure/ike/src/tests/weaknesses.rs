//! Weaknesses of other implementations that no other test covers. `docs/weaknesses.md` lists all
//! known ones.

use super::pair::{Flying, Pair, Side};
use super::rekey::rekey_child;
use super::*;
use model::Identity;
use std::time::Duration;
use wire::ike::{
    Datagram, ExchangeType, Message, Notify, NotifyType, Payload, PayloadType, Protocol,
};

/// Returns another initiator's first message: the genuine one with another SPI, after `change`.
fn strangers(genuine: &Flying, change: impl FnOnce(&mut Vec<Payload>)) -> Flying {
    let Ok(Datagram::Clear(mut message)) = Datagram::decode(&genuine.message) else {
        panic!("IKE_SA_INIT is in the clear");
    };
    message.header.spi_i ^= 1;
    change(&mut message.payloads);
    Flying {
        message: message.encode(),
        ..genuine.clone()
    }
}

/// Checks that a payload does no harm in a first message and in a message of an authenticated peer:
/// both ends agree if the SA is up, and the next set-up works.
fn is_harmless(payload: &Payload) {
    let (mut left, right) = (mobile(), gateway());
    // A peer that reports that it could not read our message has lost its SA. A liveness check
    // reveals this.
    left.peers[0].liveness = Duration::from_secs(30);
    let mut pair = Pair::new(left, right);
    pair.initiate(Side::Left);
    let genuine = pair.intercept().remove(0);
    pair.deliver(&strangers(&genuine, |payloads| {
        payloads.push(payload.clone());
    }));
    pair.intercept();
    pair.deliver(&genuine);
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "{payload:?}");

    let id = pair.left.engine.sas().next().unwrap().id;
    let payloads = vec![payload.clone()];
    pair.with(Side::Left, |engine, now| {
        engine.request_raw(id, ExchangeType::INFORMATIONAL, payloads, now);
    });
    pair.run_for(Duration::from_secs(300));
    assert_eq!(pair.left.up(), pair.right.up(), "{payload:?}");
    if pair.left.up() == 0 {
        pair.connect();
    }
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "{payload:?}");
    assert_eq!(pair.left.children().len(), 1, "{payload:?}");
}

fn raw(kind: PayloadType, data: Vec<u8>) -> Payload {
    Payload::Other {
        kind,
        critical: false,
        data,
    }
}

/// CVE-2015-3991: payloads of IKEv1 and of all other types.
// Weakness: 2
// Weakness: 10
// Weakness: 18
#[test]
fn a_payload_of_any_type_in_any_message_is_harmless() {
    for kind in 1..=u8::MAX {
        for data in [vec![], vec![0; 4], vec![255; 40]] {
            is_harmless(&raw(PayloadType(kind), data));
        }
    }
}

/// VPP 58e3a98: notifies whose data are too short for their type, and SPIs where none belong.
// Weakness: 12
#[test]
fn a_notify_of_any_kind_and_length_is_harmless() {
    let kinds = (1..=47).chain(16384..=16450).chain(41100..=41111);
    for kind in kinds.map(u16::to_be_bytes) {
        for (protocol, spi, length) in [(0, 0, 0), (0, 0, 19), (1, 8, 8), (3, 4, 3), (3, 255, 1)] {
            let head = [protocol, spi, kind[0], kind[1]];
            let data = [&head[..], &vec![7; length]].concat();
            is_harmless(&raw(PayloadType::NOTIFY, data));
        }
    }
}

/// CVE-2013-6075: identities were compared only up to the length of the shorter one. Names are
/// equal regardless of case (RFC 4343).
// Weakness: 17
// Weakness: 18
#[test]
fn an_identity_that_only_resembles_a_known_one_is_nobodys() {
    let genuine = b"mobile.example.net";
    let mut resembling = vec![Vec::new(), genuine.to_vec()];
    resembling.extend((1..genuine.len()).step_by(4).map(|n| genuine[..n].to_vec()));
    resembling.push([&genuine[..], b"\0"].concat());
    resembling.push([&genuine[..], b".evil.example"].concat());
    resembling.push(genuine.to_ascii_uppercase());
    for kind in 0..=12 {
        for data in &resembling {
            let is_genuine = kind == 2 && data.eq_ignore_ascii_case(genuine);
            let identity = Identity::Opaque {
                kind,
                data: data.clone(),
            };
            let mut left = mobile();
            left.identity = identity;
            let mut pair = Pair::new(left, gateway());
            pair.connect();
            let up = usize::from(is_genuine);
            assert_eq!(pair.right.up(), up, "type {kind}, {data:?}");
            assert_eq!(pair.right.refusals().len(), 1 - up, "type {kind}, {data:?}");
        }
    }
}

/// CVE-2025-9242, CVE-2025-14733: an identity larger than any buffer, before authentication.
// Weakness: 7
// Weakness: 24
// Weakness: 25
#[test]
fn an_identity_of_any_length_is_refused_like_a_short_one() {
    for length in [1_000, 4_000, 16_000] {
        let mut left = mobile();
        left.identity = Identity::Opaque {
            kind: 2,
            data: vec![b'a'; length],
        };
        let mut pair = Pair::new(left, gateway());
        pair.connect();
        assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
        let said = pair.right.refusals().concat();
        assert!(said.len() < 1_000, "{} octets in the log", said.len());
        assert_eq!(pair.right.engine.counters().refused, 1);
    }
}

/// CVE-2023-30570: after a refusal the responder's SPI referred to a half-deleted SA.
// Weakness: 37
// Weakness: 40
#[test]
fn the_spi_of_a_refused_attempt_names_nothing_any_more() {
    let mut left = mobile();
    left.peers[0].psk = Some(Secret::new(b"not what the gateway knows".to_vec()));
    let mut pair = Pair::new(left, gateway());
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.deliver_next();
    let request = pair.intercept().remove(0);
    let sealed = request.message.clone();
    let spi_r = u64::from_be_bytes(sealed[8..16].try_into().unwrap());
    pair.deliver(&request);
    let refusal = pair.intercept();
    assert_eq!(refusal.len(), 1);
    // A repeat gets at most the same answer. The next message, and a new first message, get none.
    pair.deliver(&request);
    let again = pair.intercept();
    assert!(
        again
            .iter()
            .all(|flying| flying.message == refusal[0].message)
    );
    let mut next = request.clone();
    next.message[20..24].copy_from_slice(&2u32.to_be_bytes());
    pair.deliver(&next);
    let mut beginning = pair.sent[0].clone();
    beginning.message[8..16].copy_from_slice(&spi_r.to_be_bytes());
    pair.deliver(&beginning);
    assert!(pair.intercept().is_empty());
    assert_eq!(pair.right.up(), 0);
    assert!(pair.right.children().is_empty());
}

/// Changes a protected message of one end and seals it with that end's keys.
pub(crate) fn resealed(
    pair: &mut Pair,
    flying: &Flying,
    change: impl FnOnce(&mut Message),
) -> Flying {
    let sender = flying.to.other();
    let mut message = pair.host(flying.to).engine.peek(&flying.message).unwrap();
    change(&mut message);
    Flying {
        message: pair.host(sender).engine.seal(&message).unwrap(),
        ..flying.clone()
    }
}

/// CVE-2023-38710: REKEY_SA for an SA without a protocol, and of other protocols.
// Weakness: 38
#[test]
fn a_rekey_of_an_sa_of_another_protocol_replaces_nothing() {
    for protocol in [0, 1, 2, 4, 255] {
        let mut pair = Pair::new(mobile(), gateway());
        pair.connect();
        let before = pair.right.child().inbound.spi;
        rekey_child(&mut pair, Side::Left);
        let genuine = pair.intercept().remove(0);
        let forged = resealed(&mut pair, &genuine, |message| {
            let notifies = message
                .payloads
                .iter_mut()
                .filter_map(|payload| match payload {
                    Payload::Notify(notify) => Some(notify),
                    _ => None,
                });
            let rekey = |notify: &&mut Notify| notify.kind == NotifyType::REKEY_SA;
            for notify in notifies.filter(rekey) {
                notify.protocol = Protocol(protocol);
            }
        });
        assert_ne!(forged.message, genuine.message);
        pair.deliver(&forged);
        pair.settle();
        assert_eq!(
            pair.right.child().inbound.spi,
            before,
            "protocol {protocol}"
        );
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    }
}

/// Weakness 80: an answer to a rekey with wider selectors, or of another address family, does not
/// widen the traffic.
// Weakness: 80
#[test]
fn an_answer_to_a_rekey_never_widens_the_selectors() {
    for wider in ["10.0.0.0/7", "0.0.0.0/0", "2001:db8::/32"] {
        let mut pair = Pair::new(mobile(), gateway());
        pair.connect();
        let before = pair.left.child().remote.clone();
        rekey_child(&mut pair, Side::Left);
        pair.deliver_next();
        let genuine = pair.intercept().remove(0);
        let forged = resealed(&mut pair, &genuine, |message| {
            for payload in &mut message.payloads {
                if let Payload::TsResponder(selectors) = payload {
                    selectors.0 = vec![prefix(wider)];
                }
            }
        });
        assert_ne!(forged.message, genuine.message);
        pair.deliver(&forged);
        pair.settle();
        let held = pair.left.children();
        assert!(held.iter().all(|child| child.remote == before), "{wider}");
    }
}
