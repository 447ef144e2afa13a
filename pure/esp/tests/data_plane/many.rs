//! More SAs than a processor cache holds, so that they are prefetched per batch.

use crate::bench::*;
use crate::datagram::{UDP, udp, v4};
use crypto::Secret;
use esp::{DropReason, Packet, Protected, Spd, Worker};
use model::{ChildSa, ChildSaId, Instant};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use wire::checksum::{Sum, restore};

/// Hosts of Bob's with an SA of their own.
const HOSTS: u16 = 300;

/// Alice's SA with a host.
fn sa(host: u16, kind: &Kind) -> ChildSa<Secret> {
    let [high, low] = host.to_be_bytes();
    let number = u32::from(host) << 16;
    ChildSa {
        id: ChildSaId(u64::from(host) + 1),
        remote: prefixes(&[&format!("10.8.{high}.{low}/32")]),
        inbound: half(TO_ALICE + number, kind),
        outbound: half(TO_BOB + number, kind),
        ..alices_sa(kind)
    }
}

/// Bob's SA with a host.
fn theirs(host: u16, kind: &Kind) -> ChildSa<Secret> {
    let alices = sa(host, kind);
    ChildSa {
        local: alices.remote,
        remote: alices.local,
        inbound: alices.outbound,
        outbound: alices.inbound,
        initiator: false,
        ..alices
    }
}

fn worker(sas: impl Iterator<Item = ChildSa<Secret>>) -> Worker {
    let protected = Protected {
        local: alices().into(),
        remote: bobs().into(),
    };
    let mut worker = Worker::new(Spd::new(vec![], vec![(PEER, protected)]));
    sas.for_each(|sa| worker.install(sa).unwrap());
    worker
}

fn datagram(host: u16, octets: usize) -> Vec<u8> {
    let mut datagram = v4(UDP, &udp(&vec![7; octets]));
    datagram[18..20].copy_from_slice(&host.to_be_bytes());
    datagram[10..12].fill(0);
    let sum = Sum::default().with(&datagram[..20]).finish();
    datagram[10..12].copy_from_slice(&sum.to_be_bytes());
    assert!(restore(&mut datagram));
    datagram
}

fn batch<'o>(of: impl Iterator<Item = &'o Vec<u8>>) -> Vec<Packet> {
    let packet = |octets: &Vec<u8>| {
        let mut packet = Packet::with_capacity(2000);
        packet.fill(octets);
        packet
    };
    of.map(packet).collect()
}

/// Sends a short datagram to each of these hosts in one batch; all arrive in order.
fn carry([alice, bob]: &mut [Worker; 2], hosts: &[u16]) {
    let datagrams: Vec<_> = hosts.iter().map(|host| datagram(*host, 36)).collect();
    let (mut sealed, mut opened) = (Outcome::default(), Outcome::default());
    alice.seal(&mut batch(datagrams.iter()), &mut sealed, Instant::ZERO);
    bob.open(&mut batch(sealed.sent.iter()), &mut opened, Instant::ZERO);
    assert_eq!(opened.delivered, datagrams);
    assert!(sealed.dropped.is_empty() && opened.dropped.is_empty());
}

/// Remaining SAs carry traffic before and after each change, and removed ones leave no state.
#[test]
fn ten_thousand_sas_come_and_go_under_load_and_nothing_is_lost() {
    const FLEET: u16 = 10_000;
    for kind in [IMPLICIT, two_zones()] {
        let mut ends = [sa(0, &kind), theirs(0, &kind)].map(|sa| worker([sa].into_iter()));
        for host in 1..=FLEET {
            let [alice, bob] = &mut ends;
            bob.install(theirs(host, &kind)).unwrap();
            alice.install(sa(host, &kind)).unwrap();
            carry(&mut ends, &[0, host, host / 2]);
        }
        for host in 1..=FLEET {
            for end in &mut ends {
                end.remove(ChildSaId(u64::from(host) + 1));
            }
            assert_eq!(
                seal(&mut ends[0], &datagram(host, 36)),
                Err(DropReason::NoSa)
            );
            carry(&mut ends, &[0]);
        }
        assert!(ends.iter().all(|end| end.sa_status().count() == 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// To hosts with and without an SA.
    #[test]
    fn a_batch_among_many_sas_is_sealed_as_each_datagram_is_alone(
        sent in vec((0..HOSTS + 20, 0..1300_usize), 1..100),
        zoned: bool,
    ) {
        let kind = if zoned { two_zones() } else { IMPLICIT };
        let mut many = worker((0..HOSTS).map(|host| sa(host, &kind)));
        let mut alone = BTreeMap::<u16, Worker>::new();
        let datagrams: Vec<_> = sent.iter().map(|(host, octets)| datagram(*host, *octets)).collect();
        let one_by_one = datagrams.iter().zip(&sent).map(|(datagram, (host, _))| {
            let own = || worker((*host..HOSTS).take(1).map(|host| sa(host, &kind)));
            seal(alone.entry(*host).or_insert_with(own), datagram)
        });
        let (sealed, refused): (Vec<_>, Vec<_>) = one_by_one.partition(Result::is_ok);
        let mut together = Outcome::default();
        many.seal(&mut batch(datagrams.iter()), &mut together, Instant::ZERO);
        prop_assert_eq!(together.sent, sealed.into_iter().flatten().collect::<Vec<_>>());
        prop_assert!(refused.iter().all(|why| *why == Err(DropReason::NoSa)));
        prop_assert_eq!(together.dropped, vec![DropReason::NoSa; refused.len()]);
    }

    /// A duplicate is refused, even though it is prefetched together with the original.
    #[test]
    fn a_packet_that_is_twice_in_a_batch_is_delivered_once(
        sent in vec((0..HOSTS, 0..1300_usize), 1..60),
        zoned: bool,
    ) {
        let kind = if zoned { two_zones() } else { IMPLICIT };
        let mut alice = worker((0..HOSTS).map(|host| sa(host, &kind)));
        let mut bob = worker((0..HOSTS).map(|host| theirs(host, &kind)));
        let datagrams: Vec<_> = sent.iter().map(|(host, octets)| datagram(*host, *octets)).collect();
        let mut sealed = Outcome::default();
        alice.seal(&mut batch(datagrams.iter()), &mut sealed, Instant::ZERO);
        let stranger = [0xff; 60].to_vec();
        let mut opened = Outcome::default();
        let twice = sealed.sent.iter().chain(&sealed.sent).chain([&stranger]);
        bob.open(&mut batch(twice), &mut opened, Instant::ZERO);
        prop_assert_eq!(opened.delivered, datagrams);
        let mut why = vec![DropReason::Replayed; sent.len()];
        why.push(DropReason::UnknownSpi);
        prop_assert_eq!(opened.dropped, why);
    }
}
