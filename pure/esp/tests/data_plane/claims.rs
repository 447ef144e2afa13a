//! Several peers whose configuration allows them to carry the same packets. A peer that another one
//! trusts less is authenticated all the same, and negotiates and rekeys as it likes.

use crate::bench::*;
use crate::datagram::{reversed, segment};
use crypto::Secret;
use esp::{DropReason, Protected, Spd, Worker};
use model::{ChildSa, ChildSaId, PeerId};

const OFFICE_PEER: PeerId = PeerId(4);

const HUB: PeerId = PeerId(5);

const EAST: PeerId = PeerId(6);

const WEST: PeerId = PeerId(7);

/// The first octets of a packet say which peer it is for.
const SPI: usize = 4;

fn claim(peer: PeerId, remote: &[&str]) -> (PeerId, Protected) {
    let traffic = Protected {
        local: alices().into(),
        remote: prefixes(remote).into(),
    };
    (peer, traffic)
}

/// Alice's SA with a peer, number `number` of hers.
fn sa(peer: PeerId, number: u32, remote: &[&str]) -> ChildSa<Secret> {
    ChildSa {
        id: ChildSaId(number.into()),
        peer,
        remote: prefixes(remote),
        inbound: half(TO_ALICE + number, &EXPLICIT),
        outbound: half(TO_BOB + number, &EXPLICIT),
        ..alices_sa(&EXPLICIT)
    }
}

/// The other end of an SA of Alice's.
fn far_end(sa: &ChildSa<Secret>) -> Worker {
    endpoint(ChildSa {
        local: sa.remote.clone(),
        remote: sa.local.clone(),
        inbound: sa.outbound.clone(),
        outbound: sa.inbound.clone(),
        initiator: false,
        ..sa.clone()
    })
}

/// Returns the number of the SA that protects a segment to 10.8.0.1.
fn protecting(alice: &mut Worker) -> Result<u32, DropReason> {
    let packet = seal(alice, &segment())?;
    let spi: [u8; SPI] = packet[..SPI].try_into().unwrap();
    Ok(u32::from_be_bytes(spi) - TO_BOB)
}

const OFFICE: &[&str] = &["10.8.0.0/16"];
const ANYWHERE: &[&str] = &["10.0.0.0/8"];

// Weakness: 135
#[test]
fn a_peer_takes_over_no_packets_of_a_tunnel_whose_peer_is_configured_more_narrowly() {
    let claims = vec![claim(OFFICE_PEER, OFFICE), claim(HUB, ANYWHERE)];
    let mut alice = Worker::new(Spd::new(vec![], claims));
    alice.install(sa(OFFICE_PEER, 1, OFFICE)).unwrap();
    alice.install(sa(HUB, 2, ANYWHERE)).unwrap();
    assert_eq!(protecting(&mut alice), Ok(1));
    // It negotiates the very host: what is configured counts.
    alice.install(sa(HUB, 3, &["10.8.0.1/32"])).unwrap();
    assert_eq!(protecting(&mut alice), Ok(1));
    // While the tunnel is down, its packets are dropped and leave through no other tunnel.
    alice.remove(ChildSaId(1));
    assert_eq!(protecting(&mut alice), Err(DropReason::NoSa));
    alice.install(sa(OFFICE_PEER, 4, OFFICE)).unwrap();
    assert_eq!(protecting(&mut alice), Ok(4));
    alice.install(sa(OFFICE_PEER, 5, OFFICE)).unwrap();
    assert_eq!(protecting(&mut alice), Ok(5));
}

// Weakness: 135
#[test]
fn of_equal_claims_that_of_the_established_tunnel_counts_until_it_is_gone() {
    let claims = vec![claim(EAST, OFFICE), claim(WEST, OFFICE)];
    let mut alice = Worker::new(Spd::new(vec![], claims));
    alice.install(sa(WEST, 1, OFFICE)).unwrap();
    for number in 2..5 {
        alice.install(sa(EAST, number, OFFICE)).unwrap();
        assert_eq!(protecting(&mut alice), Ok(1));
    }
    // Its own rekey, and its old SA taking over again, keep its place.
    alice.install(sa(WEST, 5, OFFICE)).unwrap();
    assert_eq!(protecting(&mut alice), Ok(5));
    alice.prefer(ChildSaId(1));
    assert_eq!(protecting(&mut alice), Ok(1));
    alice.remove(ChildSaId(5));
    alice.prefer(ChildSaId(1));
    assert_eq!(protecting(&mut alice), Ok(1));
    alice.remove(ChildSaId(1));
    assert_eq!(protecting(&mut alice), Ok(4));
}

// Weakness: 135
#[test]
fn a_peer_sends_nothing_in_the_name_of_hosts_that_another_claims_more_narrowly() {
    let claims = vec![claim(OFFICE_PEER, OFFICE), claim(HUB, ANYWHERE)];
    let mut alice = Worker::new(Spd::new(vec![], claims));
    let (office, hub) = (sa(OFFICE_PEER, 1, OFFICE), sa(HUB, 2, ANYWHERE));
    let (mut from_office, mut from_hub) = (far_end(&office), far_end(&hub));
    alice.install(hub).unwrap();
    let reply = reversed(&segment());
    let arrives = |alice: &mut Worker, from: &mut Worker| {
        let packet = seal(from, &reply).unwrap();
        open(alice, &packet).map(|_| ())
    };
    let refused = Err(DropReason::InnerSelectorMismatch);
    assert_eq!(arrives(&mut alice, &mut from_hub), refused);
    alice.install(office).unwrap();
    assert_eq!(arrives(&mut alice, &mut from_office), Ok(()));
    assert_eq!(arrives(&mut alice, &mut from_hub), refused);
    // Without the office's table, the hub may carry its packets.
    alice.set_policies(Spd::new(vec![], vec![claim(HUB, ANYWHERE)]));
    assert_eq!(arrives(&mut alice, &mut from_hub), Ok(()));
}

// Weakness: 135
#[test]
fn claims_of_another_configuration_count_for_established_tunnels() {
    let mut alice = Worker::new(Spd::new(vec![], vec![claim(HUB, ANYWHERE)]));
    alice.install(sa(HUB, 1, ANYWHERE)).unwrap();
    let both = vec![claim(OFFICE_PEER, OFFICE), claim(HUB, ANYWHERE)];
    assert_eq!(protecting(&mut alice), Ok(1));
    alice.set_policies(Spd::new(vec![], both));
    assert_eq!(protecting(&mut alice), Err(DropReason::NoSa));
    alice.install(sa(OFFICE_PEER, 2, OFFICE)).unwrap();
    alice.install(sa(HUB, 3, ANYWHERE)).unwrap();
    assert_eq!(protecting(&mut alice), Ok(2));
}
