//! Checksums left to offload. A sealed packet does not show that its checksum was left, and only a
//! sink that computes checksums gets a datagram without one.

use crate::bench::*;
use crate::datagram::{ICMP, TCP, UDP, segment, segment_with_secret, tcp, udp, v4, v4_with, v6};
use crate::level::everything;
use crate::mode::{BOTH, V4, moded};
use crypto::Secret;
use esp::{DropReason, Packet, PathMtu, Sink, Worker};
use model::{ChildSa, ChildSaId, Instant, Path, Sizes};
use proptest::prelude::*;
use wire::checksum::{Checksum, place, restore};
use wire::ip::Header;

const ID: ChildSaId = ChildSaId(1);

/// Datagrams of every kind with a checksum.
fn datagrams() -> Vec<Vec<u8>> {
    let timestamps = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    let mut syn = tcp(&[2, 4, 5, 0xb4], b"");
    syn[13] = 0x02;
    // The UDP length is wrong.
    let mut short = udp(b"some octets");
    short[5] -= 1;
    vec![
        segment(),
        segment_with_secret(),
        v4(TCP, &tcp(&timestamps, &[7; 1200])),
        v4(TCP, &syn),
        v6(TCP, &tcp(&[], b"odd")),
        v4(UDP, &udp(b"")),
        v6(UDP, &udp(b"even")),
        v4_with(&[1, 1, 1, 0], 0x4000, TCP, &tcp(&[], b"options of IP")),
        v4(UDP, &short),
    ]
}

/// The datagram as a device delivers it, with other octets in place of its checksum.
fn left(datagram: &[u8], instead: [u8; 2]) -> Packet {
    let at = place(&Header::parse(datagram).unwrap()).unwrap();
    let mut packet = Packet::with_capacity(2000);
    packet.fill(datagram);
    packet.octets_mut()[at..at + 2].copy_from_slice(&instead);
    packet.checksum = Checksum::Left;
    packet
}

fn whole(datagram: &[u8]) -> Packet {
    let mut packet = Packet::with_capacity(2000);
    packet.fill(datagram);
    packet
}

/// Sealing workers of every kind, two identical ones each.
fn sealers() -> Vec<(&'static str, [Worker; 2])> {
    let twice = |make: &dyn Fn() -> Worker| [make(), make()];
    let alice = |kind: &Kind| endpoint(alices_sa(kind));
    let granted = |kind: Kind| granting((alices_sa(&kind), bobs_sa(&kind)), everything()).0;
    let changed = |change: &dyn Fn(&mut Worker)| {
        twice(&|| {
            let mut worker = alice(&two_zones());
            change(&mut worker);
            worker
        })
    };
    let sizes = |worker: &mut Worker, size| {
        worker.set_peers(padded(BOB, Sizes::one(size)));
    };
    let mut all = vec![
        ("plain", twice(&|| alice(&EXPLICIT))),
        ("two zones", twice(&|| alice(&two_zones()))),
        ("three zones", twice(&|| alice(&three_zones()))),
        ("eight zones", twice(&|| alice(&eight_zones()))),
        ("a fixed map", twice(&|| endpoint(fixed_sas(&[(1, 52)]).0))),
        ("in clear", twice(&|| endpoint(granted(two_zones())))),
        ("made opaque", changed(&|worker| worker.make_opaque(ID))),
        ("clamped", changed(&|worker| worker.set_clamp(Some(1300)))),
        ("padded", changed(&|worker| sizes(worker, 1380))),
        ("padded just so", changed(&|worker| sizes(worker, 62))),
    ];
    for mode in BOTH {
        for kind in [EXPLICIT, ports()] {
            let sa = || -> ChildSa<Secret> { moded(mode, &kind, V4)[0].clone() };
            all.push(("without headers", twice(&|| endpoint(sa()))));
        }
    }
    all
}

/// Zones of the octets behind the IP header.
fn ports() -> Kind {
    let Kind::Zoned(mut zones) = two_zones() else {
        unreachable!()
    };
    zones[0].0 = model::ZoneSelector::Transport;
    Kind::Zoned(zones)
}

/// Plain ESP never carries an omitted checksum, nor does a packet whose single zone only an
/// endpoint opens: the receiver could not recognise it.
#[test]
fn a_datagram_with_a_left_checksum_is_sealed_to_the_same_octets_as_one_with_a_made_one() {
    for (name, [mut one, mut other]) in sealers() {
        let mut sealed = 0;
        for datagram in datagrams() {
            for instead in [[0, 0], [0xff, 0xff], [0xab, 0xcd]] {
                let expected = seal_in(&mut one, &mut whole(&datagram));
                let mut packet = left(&datagram, instead);
                let came = seal_in(&mut other, &mut packet);
                assert!(came == expected, "{name}: {datagram:02x?}");
                if came.is_ok() {
                    assert_eq!(
                        packet.checksum,
                        Checksum::Made,
                        "of what is sent nothing is left"
                    );
                    sealed += 1;
                }
            }
        }
        assert!(sealed > 9, "{name}");
    }
}

/// A wrong but complete checksum is still checked.
#[test]
fn a_wrong_checksum_that_is_made_hides_all_and_arrives_as_it_was() {
    let (mut alice, mut bob) = pair(&two_zones());
    let mut datagram = segment();
    *datagram.last_mut().unwrap() ^= 1;
    let packet = seal(&mut alice, &datagram).unwrap();
    assert_eq!(alice.counters().opaque, 1);
    assert_eq!(open(&mut bob, &packet), Ok(datagram));
}

#[test]
fn what_has_no_place_for_a_checksum_and_is_to_have_one_is_dropped() {
    for kind in [EXPLICIT, two_zones()] {
        let (mut alice, _) = pair(&kind);
        let mut packet = whole(&v4(ICMP, &[8, 0, 0, 0]));
        packet.checksum = Checksum::Left;
        let refused = seal_in(&mut alice, &mut packet);
        assert_eq!(refused, Err(DropReason::ChecksumNotRestorable));
        assert_eq!(
            alice.counters().dropped(DropReason::ChecksumNotRestorable),
            1
        );
    }
}

/// A sink that may compute checksums.
struct Device {
    makes: bool,
    delivered: Vec<Packet>,
}

impl Sink for Device {
    fn transmit(&mut self, _: &mut Packet, _: Path) {}

    fn deliver(&mut self, packet: &mut Packet) {
        self.delivered.push(packet.clone());
    }

    fn dropped(&mut self, _: &mut Packet, why: DropReason) {
        panic!("{why}");
    }

    fn makes_checksums(&self) -> bool {
        self.makes
    }
}

fn opened(worker: &mut Worker, packet: &[u8], makes: bool) -> Packet {
    let delivered = Vec::new();
    let mut device = Device { makes, delivered };
    let mut batch = [Packet::from_slice(packet)];
    worker.open(&mut batch, &mut device, Instant::ZERO);
    device.delivered.remove(0)
}

#[test]
fn a_checksum_that_zones_left_out_is_left_to_a_device_that_makes_it_and_to_no_other() {
    for (kind, expected) in [
        (EXPLICIT, Checksum::Made),
        (two_zones(), Checksum::Left),
        (eight_zones(), Checksum::Left),
    ] {
        for makes in [true, false] {
            let (mut alice, mut bob) = pair(&kind);
            let sealed = seal(&mut alice, &segment()).unwrap();
            let mut came = opened(&mut bob, &sealed, makes);
            let expected = if makes { expected } else { Checksum::Made };
            assert_eq!(came.checksum, expected);
            came.make_checksum().unwrap();
            assert_eq!(came.octets(), segment());
        }
    }
}

/// A checksum computed later covers the clamped segment size of a SYN, and a window that a writer
/// lowered.
#[test]
fn what_is_changed_where_a_packet_arrives_is_covered_by_a_checksum_that_is_left() {
    let mut syn = tcp(&[2, 4, 5, 0xb4], b"");
    syn[13] = 0x02;
    let (mut alice, mut bob) = pair(&two_zones());
    bob.set_clamp(Some(1300));
    let sealed = seal(&mut alice, &v4(TCP, &syn)).unwrap();
    let mut came = opened(&mut bob, &sealed, true);
    assert_eq!(came.checksum, Checksum::Left);
    came.make_checksum().unwrap();
    syn[22..24].copy_from_slice(&1260_u16.to_be_bytes());
    assert_eq!(came.octets(), v4(TCP, &syn));
}

/// The error message quotes the datagram as it would have been sent.
#[test]
fn who_hears_of_a_datagram_that_is_too_long_sees_its_checksum() {
    let heard = |packet: Packet| {
        let mut alice = endpoint(alices_sa(&two_zones()));
        alice.set_path_mtu(ID, PathMtu::Octets(1400));
        let mut outcome = Outcome::default();
        alice.seal(&mut [packet], &mut outcome, Instant::ZERO);
        outcome.delivered.remove(0)
    };
    let datagram = v4(TCP, &tcp(&[], &[7; 1400]));
    assert_eq!(heard(left(&datagram, [1, 2])), heard(whole(&datagram)));
}

/// Datagrams with a checksum that a device can leave to be made.
fn restorable() -> impl Strategy<Value = Vec<u8>> {
    let restored = |mut datagram: Vec<u8>| restore(&mut datagram).then_some(datagram);
    crate::identity::datagram().prop_filter_map("no checksum of TCP or UDP", restored)
}

proptest! {
    #[test]
    fn whatever_a_device_leaves_arrives_whole(
        datagram in restorable(),
        kind in crate::identity::kind(),
        instead in any::<[u8; 2]>(),
    ) {
        let (mut alice, mut bob) = pair(&kind);
        let sealed = seal_in(&mut alice, &mut left(&datagram, instead));
        let came = sealed.and_then(|packet| open(&mut bob, &packet));
        prop_assert_eq!(came, Ok(datagram));
    }
}
