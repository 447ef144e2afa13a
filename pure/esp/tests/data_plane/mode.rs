//! Transport and BEET mode: the parts that are not sent, the parts that are rebuilt, and the
//! datagrams that are dropped.

use crate::bench::*;
use crate::datagram::{ICMP, TCP, UDP, tcp, udp, v4, v4_with, v6};
use crypto::Secret;
use esp::{DropReason, Packet, Sink, Spd, Unusable, Worker};
use model::{ChildSa, EspSuite, Half, Instant, Keys, Mode, Path, TrafficSelector};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wire::checksum::Sum;
use wire::ip::Header;

pub const BOTH: [Mode; 2] = [Mode::Transport, Mode::Beet];
pub const V4: [&str; 2] = ["10.1.0.1/32", "10.8.0.1/32"];
pub const V6: [&str; 2] = ["fd00:1::1/128", "fd00:8::1/128"];

/// Both ends of an SA in a mode between two addresses.
pub fn moded(mode: Mode, kind: &Kind, addresses: [&str; 2]) -> [ChildSa<Secret>; 2] {
    let (mut alices, mut bobs) = (alices_sa(kind), bobs_sa(kind));
    let host = |text: &str| prefixes(&[text])[0].first;
    set_mode([&mut alices, &mut bobs], mode, addresses.map(host));
    [alices, bobs]
}

/// Sets an SA's mode and its two addresses.
pub fn set_mode(sas: [&mut ChildSa<Secret>; 2], mode: Mode, [alice, bob]: [IpAddr; 2]) {
    let host = |address: IpAddr| {
        let length = if address.is_ipv4() { 32 } else { 128 };
        vec![TrafficSelector::from_prefix(address, length).unwrap()]
    };
    for (sa, [local, remote]) in sas.into_iter().zip([[alice, bob], [bob, alice]]) {
        (sa.mode, sa.local, sa.remote) = (mode, host(local), host(remote));
    }
}

fn ends(mode: Mode, addresses: [&str; 2]) -> [Worker; 2] {
    moded(mode, &EXPLICIT, addresses).map(endpoint)
}

/// Returns the octets behind a datagram's IP header.
pub fn payload(datagram: &[u8]) -> Vec<u8> {
    Header::parse(datagram).unwrap().payload().to_vec()
}

#[test]
fn what_follows_the_header_arrives_under_a_header_of_the_same_addresses() {
    let datagrams = [
        (V4, v4(TCP, &tcp(&[], b"hello"))),
        (V4, v4(UDP, &udp(b"hello"))),
        (V4, v4(ICMP, &[8, 0, 0, 0, 0, 1, 0, 1])),
        (V4, v4(UDP, &udp(&[7; 1400]))),
        (V4, v4(253, &[])),
        (V6, v6(TCP, &tcp(&[], b"hello"))),
        (V6, v6(UDP, &udp(b"hello"))),
    ];
    for mode in BOTH {
        for (addresses, datagram) in &datagrams {
            let [mut alice, mut bob] = ends(mode, *addresses);
            let sealed = seal(&mut alice, datagram).unwrap();
            let opened = open(&mut bob, &sealed).unwrap();
            let (sent, came) = (
                Header::parse(datagram).unwrap(),
                Header::parse(&opened).unwrap(),
            );
            assert_eq!(sent.payload(), came.payload());
            assert_eq!(sent.flow(), came.flow());
            assert!(came.checksum_is_right() && !came.has_options() && !came.is_fragment());
            assert_eq!((came.ttl(), came.tos()), (64, 0), "of no header that came");
        }
    }
}

#[test]
fn every_plain_suite_carries_both_modes() {
    let keyed = |half: &mut Half<Secret>, suite: EspSuite, (implicit_iv, esn)| {
        half.keys = Keys::Plain {
            suite,
            implicit_iv,
            esn,
            key: Secret::new(vec![half.spi.0 as u8; suite.keymat_len()]),
        };
    };
    let datagrams = [
        (V4, v4(TCP, &tcp(&[], b"x"))),
        (V6, v6(TCP, &tcp(&[], b"x"))),
    ];
    for suite in EspSuite::all() {
        let forms = [false, true].map(|esn| (suite.may_omit_iv(), esn));
        for form in [(false, false)].into_iter().chain(forms) {
            for (addresses, datagram) in &datagrams {
                let mut sas = moded(Mode::Beet, &EXPLICIT, *addresses);
                for sa in &mut sas {
                    keyed(&mut sa.inbound, suite, form);
                    keyed(&mut sa.outbound, suite, form);
                }
                let [mut alice, mut bob] = sas.map(endpoint);
                let sealed = seal(&mut alice, datagram).unwrap();
                let opened = open(&mut bob, &sealed).unwrap();
                assert_eq!(payload(&opened), payload(datagram), "{suite}");
            }
        }
    }
}

/// BEET mode exists to save the header (RFC 7402 appendix B).
#[test]
fn the_header_is_not_in_the_packet() {
    let datagram = v4(UDP, &udp(&[7; 92]));
    let tunnel = seal(&mut endpoint(alices_sa(&EXPLICIT)), &datagram).unwrap();
    for mode in BOTH {
        let [mut alice, _] = ends(mode, V4);
        let sealed = seal(&mut alice, &datagram).unwrap();
        assert_eq!(tunnel.len() - sealed.len(), 20);
    }
}

#[test]
fn a_packet_written_by_the_rules_opens() {
    let segment = payload(&v4(TCP, &tcp(&[], b"hello!")));
    let text = [&segment[..], &[0, TCP]].concat();
    let [_, mut bob] = ends(Mode::Transport, V4);
    let opened = open(&mut bob, &plain_packet(1, &text)).unwrap();
    assert_eq!(payload(&opened), segment);
    assert_eq!(Header::parse(&opened).unwrap().protocol(), TCP);
}

#[test]
fn a_tunnel_and_the_other_modes_do_not_open_for_each_other() {
    let datagram = v4(TCP, &tcp(&[], b"hello"));
    for mode in BOTH {
        let [mut alice, mut bob] = ends(mode, V4);
        let (mut tunnel, mut far) = pair(&EXPLICIT);
        let bare = seal(&mut alice, &datagram).unwrap();
        assert!(open(&mut far, &bare).is_err());
        // To the other mode a whole datagram is IP in IP: it goes to that protocol, not to its own
        // destination.
        let whole = seal(&mut tunnel, &datagram).unwrap();
        let opened = open(&mut bob, &whole).unwrap();
        assert_eq!(Header::parse(&opened).unwrap().protocol(), 4);
        assert_eq!(payload(&opened), datagram);
    }
}

/// "Transport mode ESP is applied only to whole IP datagrams" (RFC 4303 section 3.3.4).
#[test]
fn fragments_are_dropped_in_both_directions() {
    for mode in BOTH {
        let [mut alice, mut bob] = ends(mode, V4);
        for fragment in [0x2000, 0x0010] {
            let datagram = v4_with(&[], fragment, UDP, &[7; 64]);
            assert_eq!(seal(&mut alice, &datagram), Err(DropReason::Fragment));
        }
        // Tunnel mode has no such rule.
        let first = v4_with(&[], 0x2000, UDP, &[7; 64]);
        assert!(seal(&mut endpoint(alices_sa(&EXPLICIT)), &first).is_ok());
        let text = [17, 0, 0, 1, 0, 0, 0, 0, 1, 2, 2, 44];
        assert_eq!(
            open(&mut bob, &plain_packet(1, &text)),
            Err(DropReason::Fragment)
        );
    }
}

/// The fragment header is behind other extension headers. The packet's next header names only the
/// first of those.
#[test]
fn a_fragment_header_behind_destination_options_is_found() {
    let [_, mut bob] = ends(Mode::Beet, V6);
    let options = [44, 0, 1, 4, 0, 0, 0, 0];
    let text = [&options[..], &[17, 0, 0, 1, 0, 0, 0, 0, 1, 2, 2, 60]].concat();
    let opened = open(&mut bob, &plain_packet(1, &text));
    assert_eq!(opened, Err(DropReason::Fragment));
}

#[test]
fn options_and_extension_headers_are_dropped_in_both_directions() {
    for mode in BOTH {
        let [mut alice, mut bob] = ends(mode, V4);
        let datagram = v4_with(&[1, 1, 1, 1], 0x4000, UDP, &udp(b"x"));
        assert_eq!(seal(&mut alice, &datagram), Err(DropReason::HeaderOptions));
        let [mut alice, _] = ends(mode, V6);
        let datagram = v6(60, &[17, 0, 1, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0, 8, 0, 0]);
        assert_eq!(seal(&mut alice, &datagram), Err(DropReason::HeaderOptions));
        for (seq, next_header) in (1..).zip([0, 43, 94]) {
            let text = [17, 1, 0, 0, 0, 0, 0, 0, 1, 2, 2, next_header];
            assert_eq!(
                open(&mut bob, &plain_packet(seq, &text)),
                Err(DropReason::HeaderOptions)
            );
        }
    }
}

/// RFC 4303 section 2.6 (59), and protocols that need a header; IPv4 may carry any of them.
#[test]
fn what_the_other_end_would_take_for_something_else_is_not_sent() {
    for mode in BOTH {
        let [mut alice, _] = ends(mode, V4);
        for protocol in [0, 43, 59, 94] {
            let refused = seal(&mut alice, &v4(protocol, &[7; 64]));
            assert_eq!(refused, Err(DropReason::HeaderOptions), "{protocol}");
        }
        let refused = seal(&mut alice, &v4(44, &[7; 64]));
        assert_eq!(refused, Err(DropReason::Fragment));
        assert!(seal(&mut alice, &v4(60, &[7; 64])).is_ok());
        let mut tunnel = endpoint(alices_sa(&EXPLICIT));
        assert!(seal(&mut tunnel, &v4(59, &[7; 64])).is_ok());
    }
}

#[test]
fn a_dummy_packet_is_no_datagram() {
    let [_, mut bob] = ends(Mode::Beet, V4);
    assert_eq!(
        open(&mut bob, &plain_packet(1, &[7, 7, 7, 7, 1, 2, 2, 59])),
        Err(DropReason::Dummy)
    );
}

/// The header comes from the SA alone, so a peer cannot choose addresses. Protocol and ports are
/// checked against the selectors.
#[test]
fn what_the_sa_may_not_carry_is_dropped() {
    for mode in BOTH {
        let sas = moded(mode, &EXPLICIT, V4);
        let only_tcp = |selectors: &mut Vec<TrafficSelector>| selectors[0].protocol = TCP;
        let [mut alices, mut bobs] = sas.clone();
        only_tcp(&mut bobs.local);
        only_tcp(&mut bobs.remote);
        let (mut alice, mut bob) = (endpoint(alices.clone()), endpoint(bobs));
        let sealed = seal(&mut alice, &v4(UDP, &udp(b"x"))).unwrap();
        assert_eq!(
            open(&mut bob, &sealed),
            Err(DropReason::InnerSelectorMismatch)
        );
        let sealed = seal(&mut alice, &v4(TCP, &tcp(&[], b"x"))).unwrap();
        assert!(open(&mut bob, &sealed).is_ok());
        // The same holds for outbound datagrams.
        only_tcp(&mut alices.local);
        only_tcp(&mut alices.remote);
        let left = seal(&mut endpoint(alices), &v4(UDP, &udp(b"x")));
        assert_eq!(left, Err(DropReason::NoPolicy));
    }
}

#[test]
fn a_replayed_or_forged_packet_is_dropped() {
    for mode in BOTH {
        let [mut alice, mut bob] = ends(mode, V4);
        let sealed = seal(&mut alice, &v4(TCP, &tcp(&[], b"x"))).unwrap();
        for at in 8..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert_eq!(open(&mut bob, &forged), Err(DropReason::BadIcv));
        }
        assert!(open(&mut bob, &sealed).is_ok());
        assert_eq!(open(&mut bob, &sealed), Err(DropReason::Replayed));
    }
}

#[test]
fn an_sa_without_one_pair_of_addresses_is_not_installed() {
    let refused = |sa: &ChildSa<Secret>| Worker::new(Spd::default()).install(sa.clone());
    for mode in BOTH {
        let [good, _] = moded(mode, &EXPLICIT, V4);
        assert_eq!(refused(&good), Ok(()));
        let changes: [fn(&mut ChildSa<Secret>); 4] = [
            |sa| sa.local = alices(),
            |sa| sa.remote = Vec::new(),
            |sa| sa.remote.extend(prefixes(&["10.8.0.2/32"])),
            |sa| sa.remote = prefixes(&["fd00:8::1/128"]),
        ];
        for change in changes {
            let mut bad = good.clone();
            change(&mut bad);
            assert_eq!(refused(&bad), Err(Unusable::Mode));
        }
    }
}

/// With any length and any next header: no panic, and every delivered datagram is between the two
/// addresses.
// Refuses: modes
#[test]
fn no_authentic_text_makes_a_packet_of_anybody_else() {
    for addresses in [V4, V6] {
        let [_, mut bob] = ends(Mode::Beet, addresses);
        let mut seq = 0;
        for next_header in 0..=255 {
            for len in [2, 6, 10, 22, 42, 62] {
                seq += 1;
                let mut text = vec![next_header; len - 2];
                text.extend([0, next_header]);
                let Ok(opened) = open(&mut bob, &plain_packet(seq, &text)) else {
                    continue;
                };
                let header = Header::parse(&opened).unwrap();
                let ends = [header.source(), header.destination()];
                let [alice, bob] = addresses.map(|text| prefixes(&[text])[0].first);
                assert_eq!(ends, [alice, bob]);
                assert_eq!(header.total_len(), opened.len());
            }
        }
    }
}

/// A buffer of exactly the packet's length still has room for the header.
#[test]
fn a_packet_as_long_as_its_buffer_is_opened() {
    for (addresses, datagram) in [
        (V4, v4(UDP, &udp(&[7; 1400]))),
        (V6, v6(UDP, &udp(&[7; 1400]))),
    ] {
        let [mut alice, mut bob] = ends(Mode::Transport, addresses);
        let sealed = seal(&mut alice, &datagram).unwrap();
        let exact = Packet::from_slice(&sealed);
        assert_eq!(exact.len(), sealed.len());
        assert!(open(&mut bob, &sealed).is_ok());
    }
}

/// Records the packets on any path.
#[derive(Default)]
struct Anywhere {
    sent: Vec<Vec<u8>>,
    delivered: Vec<Vec<u8>>,
    dropped: Vec<DropReason>,
}

impl Sink for Anywhere {
    fn transmit(&mut self, packet: &mut Packet, _: Path) {
        self.sent.push(packet.octets().to_vec());
    }

    fn deliver(&mut self, packet: &mut Packet) {
        self.delivered.push(packet.octets().to_vec());
    }

    fn dropped(&mut self, _: &mut Packet, why: DropReason) {
        self.dropped.push(why);
    }
}

fn between([local, remote]: [&str; 2]) -> Path {
    let end = |address: &str| SocketAddr::new(address.parse().unwrap(), 4500);
    Path::udp(end(local), end(remote))
}

/// Returns a datagram between other addresses than those of its network.
fn readdressed(mut datagram: Vec<u8>, ends: [&str; 2]) -> Vec<u8> {
    for (address, at) in ends.into_iter().zip([12, 16]) {
        let address: Ipv4Addr = address.parse().unwrap();
        datagram[at..at + 4].copy_from_slice(&address.octets());
    }
    datagram[10..12].fill(0);
    let sum = Sum::default().with(&datagram[..20]).finish();
    datagram[10..12].copy_from_slice(&sum.to_be_bytes());
    datagram
}

fn seal_anywhere(worker: &mut Worker, datagram: &[u8]) -> Result<Vec<u8>, DropReason> {
    let mut packet = Packet::with_capacity(2000);
    packet.fill(datagram);
    let mut outcome = Anywhere::default();
    worker.seal(&mut [packet], &mut outcome, Instant::ZERO);
    outcome.sent.pop().ok_or_else(|| outcome.dropped[0])
}

fn open_from(worker: &mut Worker, packet: &[u8], path: Path) -> Result<Vec<u8>, DropReason> {
    let mut packet = Packet::from_slice(packet);
    packet.path = Some(path);
    let mut outcome = Anywhere::default();
    worker.open(&mut [packet], &mut outcome, Instant::ZERO);
    outcome.delivered.pop().ok_or_else(|| outcome.dropped[0])
}

/// A moved SA takes its own services along and no others. Until both ends have moved, no packet
/// passes, and so no packet arrives between the addresses of before.
#[test]
fn an_sa_in_transport_mode_carries_the_same_services_between_other_addresses() {
    let (ends, backward) = (["10.1.0.2", "10.8.0.1"], ["10.8.0.1", "10.1.0.2"]);
    let mut sas = moded(Mode::Transport, &EXPLICIT, V4);
    for sa in &mut sas {
        let selectors = sa.local.iter_mut().chain(&mut sa.remote);
        selectors.for_each(|selector| selector.protocol = UDP);
    }
    let id = sas[0].id;
    let [mut alice, mut bob] = sas.map(endpoint);
    alice.move_path(id, between(ends));
    let moved = readdressed(v4(UDP, &udp(b"hello")), ends);
    let sealed = seal_anywhere(&mut alice, &moved).unwrap();
    for other in [
        v4(UDP, &udp(b"hello")),
        readdressed(v4(TCP, &tcp(&[], b"hello")), ends),
    ] {
        assert!(seal_anywhere(&mut alice, &other).is_err());
    }
    let mismatch = Err(DropReason::InnerSelectorMismatch);
    assert_eq!(open_from(&mut bob, &sealed, between(backward)), mismatch);
    bob.move_path(id, between(backward));
    let sealed = seal_anywhere(&mut alice, &moved).unwrap();
    let opened = open_from(&mut bob, &sealed, between(backward)).unwrap();
    assert_eq!(payload(&opened), payload(&moved));
    let [sent, came] = [&moved, &opened].map(|octets| Header::parse(octets).unwrap().flow());
    assert_eq!(sent, came);
    // Another family would need another header.
    alice.move_path(id, between(["fd00:1::1", "fd00:8::1"]));
    assert!(seal_anywhere(&mut alice, &moved).is_ok());
}

/// In BEET mode, the addresses are inner ones.
#[test]
fn an_sa_in_beet_mode_carries_the_same_wherever_it_moves() {
    let [mut alice, mut bob] = ends(Mode::Beet, V4);
    let elsewhere = between(["192.0.2.77", "198.51.100.7"]);
    alice.move_path(model::ChildSaId(1), elsewhere);
    let datagram = v4(UDP, &udp(b"hello"));
    let sealed = seal_anywhere(&mut alice, &datagram).unwrap();
    let opened = open_from(&mut bob, &sealed, elsewhere.reversed()).unwrap();
    assert_eq!(payload(&opened), payload(&datagram));
}
