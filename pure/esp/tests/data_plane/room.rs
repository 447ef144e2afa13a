//! Datagrams that fit a path, to the octet, are sealed and sent whole. For others the source is
//! notified.

use crate::bench::*;
use crate::datagram::{TCP, UDP, tcp, udp, v4, v4_with, v6};
use crate::mode::{V4, V6, moded};
use esp::{DropReason, Packet, PathMtu, Report, Searched, Sink, Worker};
use model::{ChildSaId, Df, EspSuite, Hmac, Instant, Mode, Path, Sha2, Sizes, Suite, ZoneSuite};
use wire::checksum::{self, Sum};
use wire::ip::Header;
use wire::probe::{self, Probe};

const ID: ChildSaId = ChildSaId(1);
/// Octets of the outer IPv4 and UDP headers.
const OUTSIDE: usize = 28;

/// The outcome for a datagram.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// Sent: octets of its packet, and true if it must not be fragmented.
    Sent(usize, bool),
    /// Too long: the message to its source.
    Told(Vec<u8>),
    Dropped(DropReason),
}

#[derive(Default)]
struct Watch(Vec<Fate>);

impl Sink for Watch {
    fn transmit(&mut self, packet: &mut Packet, _: Path) {
        self.0
            .push(Fate::Sent(packet.len(), packet.df != Df::Clear));
    }

    fn deliver(&mut self, packet: &mut Packet) {
        self.0.push(Fate::Told(packet.octets().to_vec()));
    }

    fn dropped(&mut self, _: &mut Packet, why: DropReason) {
        self.0.push(Fate::Dropped(why));
    }
}

/// Returns a packet in a buffer with room for any datagram, as the daemon's are.
fn packet(datagram: &[u8]) -> Packet {
    let mut packet = Packet::with_capacity(65_535);
    packet.fill(datagram);
    packet
}

fn fate(worker: &mut Worker, datagram: &[u8]) -> Fate {
    let mut watch = Watch::default();
    worker.seal(&mut [packet(datagram)], &mut watch, Instant::ZERO);
    assert_eq!(watch.0.len(), 1);
    watch.0.remove(0)
}

/// A datagram of this length with fragmentation forbidden.
fn of(len: usize) -> Vec<u8> {
    v4(UDP, &udp(&vec![7; len - 28]))
}

/// A TCP segment of this length with fragmentation forbidden, its headers included.
fn segment(len: usize) -> Vec<u8> {
    v4(TCP, &tcp(&[], &vec![7; len - 40]))
}

fn plain(suite: impl Into<EspSuite>, implicit_iv: bool) -> Kind {
    Kind::Plain {
        suite: suite.into(),
        implicit_iv,
        esn: false,
    }
}

fn worker(kind: &Kind, mtu: PathMtu) -> (Worker, Option<u16>) {
    let mut alice = endpoint(alices_sa(kind));
    let longest = alice.set_path_mtu(ID, mtu);
    (alice, longest)
}

/// One octet more does not fit, and the reported length is not too small: sealing confirms both.
#[test]
fn of_plain_packets_the_longest_datagram_that_fits_is_known_to_the_octet() {
    for suite in [
        plain(Suite::Aes128Gcm16, false),
        plain(Suite::ChaCha20Poly1305, true),
        plain(Suite::Aes256Cbc(Sha2::Sha256), false),
        plain(Suite::Aes128Cbc(Sha2::Sha512), false),
        plain(EspSuite::Null(Sha2::Sha512), false),
        plain(EspSuite::Aes128Gmac, false),
    ] {
        for mtu in 1380..1450 {
            let (mut alice, longest) = worker(&suite, PathMtu::Octets(mtu));
            let (mtu, longest) = (usize::from(mtu), usize::from(longest.unwrap()));
            let Fate::Sent(packet, true) = fate(&mut alice, &of(longest)) else {
                panic!("{suite:?} {longest}");
            };
            assert!(packet + OUTSIDE <= mtu, "{suite:?} {mtu}");
            alice.set_path_mtu(ID, PathMtu::Unknown);
            let Fate::Sent(packet, true) = fate(&mut alice, &of(longest + 1)) else {
                panic!("{suite:?} {longest}");
            };
            assert!(packet + OUTSIDE > mtu, "{suite:?} {mtu}");
        }
    }
}

/// For all padding sizes, and for dummies too.
#[test]
fn padding_makes_no_packet_longer_than_the_path_takes() {
    for kind in [plain(Suite::Aes128Gcm16, false), two_zones(), three_zones()] {
        for sizes in [Sizes::one(1380), Sizes::doubling(1380)] {
            let mut alice = endpoint(alices_sa(&kind));
            alice.set_peers(padded(BOB, sizes));
            let mtu = 1400;
            let longest = alice.set_path_mtu(ID, PathMtu::Octets(mtu)).unwrap();
            for len in [40, 1279, 1280, longest.into()] {
                let Fate::Sent(packet, true) = fate(&mut alice, &of(len)) else {
                    panic!("{kind:?} {len}");
                };
                assert!(
                    packet > len && packet + OUTSIDE <= mtu.into(),
                    "{kind:?} {len}"
                );
            }
            let mut dummy = Packet::with_capacity(2000);
            assert!(
                alice.cover(BOB, &mut dummy).is_none(),
                "there was no silence"
            );
            assert!(alice.cover(BOB, &mut dummy).is_some());
            assert!(
                dummy.df == Df::Whole && dummy.len() + OUTSIDE <= mtu.into(),
                "{kind:?}"
            );
        }
    }
}

/// The length of the map and the number of zones depend on the datagram. The reported length fits
/// with the greatest of both.
#[test]
fn of_zoned_packets_what_is_told_fits_whatever_the_datagram_is() {
    let blocks = ZoneSuite::Aes128Cbc(Hmac {
        hash: Sha2::Sha512,
        whole: true,
    });
    for kind in [
        two_zones(),
        three_zones(),
        eight_zones(),
        old_zones(),
        zones_of(blocks),
    ] {
        let (mut alice, longest) = worker(&kind, PathMtu::Octets(1600));
        let longest = usize::from(longest.unwrap());
        let payload = vec![7; longest - 40];
        for datagram in [
            of(longest),
            v4(TCP, &tcp(&[], &payload)),
            v6(UDP, &udp(&payload[8..])),
        ] {
            let Fate::Sent(packet, true) = fate(&mut alice, &datagram) else {
                panic!("{kind:?}");
            };
            assert!(packet + OUTSIDE <= 1600, "{kind:?} {packet}");
        }
    }
}

/// The IP header counts in a datagram's length but is not in its packet. Two zones of TCP without
/// options need four octets of map, out of a maximum of twenty-eight.
#[test]
fn in_transport_and_beet_mode_the_ip_header_leaves_its_room_to_the_datagram() {
    let spare = |kind: &Kind| {
        if matches!(kind, Kind::Plain { .. }) {
            0
        } else {
            24
        }
    };
    for (mode, addresses, whole, header) in [
        (Mode::Transport, V4, v4 as fn(u8, &[u8]) -> Vec<u8>, 20),
        (Mode::Beet, V6, v6, 40),
    ] {
        for kind in [plain(Suite::ChaCha20Poly1305, true), two_zones()] {
            let [sa, _] = moded(mode, &kind, addresses);
            let mut alice = endpoint(sa);
            let longest = alice.set_path_mtu(ID, PathMtu::Octets(1600)).unwrap();
            let in_a_tunnel = worker(&kind, PathMtu::Octets(1600)).1.unwrap();
            let of = |len: usize| whole(TCP, &tcp(&[], &vec![7; len - header - 20]));
            let Fate::Sent(packet, true) = fate(&mut alice, &of(longest.into())) else {
                panic!("{kind:?} {longest}");
            };
            let room = 1600 - OUTSIDE - packet;
            assert!(room < spare(&kind) + 4, "{kind:?} {room}");
            assert_eq!(usize::from(longest - in_a_tunnel), header);
            let told = fate(&mut alice, &of(usize::from(longest) + 1));
            assert!(matches!(told, Fate::Told(_)), "{told:?}");
        }
    }
}

#[test]
fn nothing_is_asked_of_who_does_not_ask() {
    let (mut alice, longest) = worker(&EXPLICIT, PathMtu::Any);
    assert_eq!(longest, None);
    assert!(matches!(fate(&mut alice, &of(9000)), Fate::Sent(_, false)));
    // There is no limit before the MTU is known.
    let (mut alice, longest) = worker(&EXPLICIT, PathMtu::Unknown);
    assert_eq!(longest, None);
    assert!(matches!(fate(&mut alice, &of(9000)), Fate::Sent(_, true)));
}

/// Cases 1 and 3 of RFC 4301 section 8.2.1: "discard the packet and send a PMTU ICMP message".
#[test]
fn the_source_of_what_does_not_fit_hears_what_would() {
    let (mut alice, longest) = worker(&EXPLICIT, PathMtu::Octets(1400));
    let longest = longest.unwrap();
    for datagram in [of(1339), v6(UDP, &udp(&[7; 1339 - 48]))] {
        let Fate::Told(message) = fate(&mut alice, &datagram) else {
            panic!("not told");
        };
        let (about, to) = (
            Header::parse(&datagram).unwrap(),
            Header::parse(&message).unwrap(),
        );
        assert_eq!(to.destination(), about.source());
        assert_eq!(to.payload()[6..8], longest.to_be_bytes());
        let pseudo = match to.version() {
            4 => Sum::default(),
            _ => {
                let len = to.payload().len();
                Sum::pseudo_header(to.source(), to.destination(), 58, len)
            }
        };
        assert_eq!(pseudo.with(to.payload()).finish(), 0);
    }
    assert_eq!(alice.counters().too_long, 2);
    assert_eq!(alice.counters().sealed.packets, 0);
}

/// Sequence numbers have no gap: a datagram that is not sealed takes none. Otherwise the receiver
/// would assume a loss.
#[test]
fn what_does_not_fit_costs_no_number() {
    let (mut alice, _) = worker(&EXPLICIT, PathMtu::Octets(1400));
    fate(&mut alice, &of(1339));
    let packet = seal(&mut alice, &of(100)).unwrap();
    assert_eq!(packet[4..8], [0, 0, 0, 1]);
}

/// Case 2: "fragment (before or after encryption …)", and "NOT send a PMTU ICMP message".
#[test]
fn a_datagram_that_may_be_cut_is_cut_before_it_is_sealed() {
    let datagram = v4_with(&[], 0, UDP, &udp(&[7; 1400]));
    for kind in [EXPLICIT, two_zones(), three_zones()] {
        let (mut alice, _) = worker(&kind, PathMtu::Octets(1400));
        let mut watch = Watch::default();
        alice.seal(&mut [packet(&datagram)], &mut watch, Instant::ZERO);
        assert_eq!(watch.0.len(), 2, "{kind:?}");
        for fate in &watch.0 {
            let Fate::Sent(len, true) = fate else {
                panic!("{kind:?} {fate:?}");
            };
            assert!(len + OUTSIDE <= 1400, "{kind:?} {len}");
        }
        assert_eq!(alice.counters().cut, 1);
        // A datagram that fits is sent whole.
        let datagram = v4_with(&[], 0, UDP, &udp(&[7; 100]));
        assert!(matches!(fate(&mut alice, &datagram), Fate::Sent(_, true)));
    }
}

/// "Transport mode ESP is applied only to whole IP datagrams (not to IP fragments)" (RFC 4303
/// section
/// 3.3.4), and only the first piece has the ports that a selector asks for.
#[test]
fn where_the_sa_carries_no_pieces_the_packet_may_be_cut() {
    let [sa, _] = moded(Mode::Transport, &EXPLICIT, V4);
    let mut alice = endpoint(sa);
    alice.set_path_mtu(ID, PathMtu::Octets(1400));
    let datagram = v4_with(&[], 0, UDP, &udp(&[7; 1400]));
    assert!(matches!(fate(&mut alice, &datagram), Fate::Sent(_, false)));
    let mut sa = alices_sa(&EXPLICIT);
    for selector in &mut sa.remote {
        selector.ports = 0..=65_534;
        selector.protocol = UDP;
    }
    let mut alice = endpoint(sa);
    alice.set_path_mtu(ID, PathMtu::Octets(1400));
    assert!(matches!(fate(&mut alice, &datagram), Fate::Sent(_, false)));
}

/// While a path is searched, packets up to the proved length are whole, and longer ones may be cut
/// on the way. Afterwards none is longer.
#[test]
fn a_search_limits_what_it_has_decided() {
    let limit = |whole, most, segments| {
        PathMtu::Searched(Searched {
            whole,
            most,
            segments,
            settled: true,
            presumed: false,
        })
    };
    let (mut alice, segments) = worker(&EXPLICIT, limit(1280, 1500, 1500));
    assert_eq!(segments, Some(1438));
    for (len, fate_of_it) in [(1218, true), (1219, false), (1438, false)] {
        let Fate::Sent(_, whole) = fate(&mut alice, &of(len)) else {
            panic!("{len}");
        };
        assert_eq!(whole, fate_of_it, "{len}");
    }
    assert!(matches!(fate(&mut alice, &of(1439)), Fate::Told(_)));
    let (mut alice, segments) = worker(&EXPLICIT, limit(1280, 1280, 1280));
    assert_eq!(segments, Some(1218));
    assert!(matches!(fate(&mut alice, &of(1218)), Fate::Sent(_, true)));
    assert!(matches!(fate(&mut alice, &of(1219)), Fate::Told(_)));
    // No source of IPv6 is told of less than its minimum.
    let datagram = |len: usize| v6(UDP, &udp(&vec![7; len - 48]));
    let fates = [1280, 1281].map(|len| fate(&mut alice, &datagram(len)));
    assert!(matches!(fates[..], [Fate::Sent(_, false), Fate::Told(_)]));
}

/// Before probes have decided, the base is a presumption. TCP is told of it and repeats; what it is
/// told is never less than 1280 octets. A datagram would be lost, so it is sent, and may be cut on
/// the path.
#[test]
fn before_a_search_has_decided_only_tcp_is_told_of_a_limit() {
    let limit = Searched {
        whole: 1280,
        most: 1280,
        segments: 1500,
        settled: false,
        presumed: true,
    };
    let (mut alice, segments) = worker(&EXPLICIT, PathMtu::Searched(limit));
    assert_eq!(segments, Some(1438));
    for (len, whole) in [(1218, true), (1219, false), (1280, false), (1281, false)] {
        assert!(
            matches!(fate(&mut alice, &of(len)), Fate::Sent(_, is) if is == whole),
            "{len}"
        );
    }
    let datagram = v6(UDP, &udp(&vec![7; 1281 - 48]));
    assert!(matches!(fate(&mut alice, &datagram), Fate::Sent(_, false)));
    for len in [1280, 1281] {
        let is_told = len == 1281;
        for datagram in [segment(len), v6(TCP, &tcp(&[], &vec![7; len - 60]))] {
            let fate = fate(&mut alice, &datagram);
            assert_eq!(matches!(fate, Fate::Told(_)), is_told, "{len} {fate:?}");
        }
    }
}

/// Its source may send nothing else before a search shows that the path carries more.
#[test]
fn a_segment_that_is_too_long_is_one_that_a_search_begins_with() {
    let limit = Searched {
        whole: 1280,
        most: 1280,
        segments: 1500,
        settled: false,
        presumed: true,
    };
    let (mut alice, _) = worker(&EXPLICIT, PathMtu::Searched(limit));
    alice.watch(ID);
    for sends in [true, false] {
        assert!(matches!(fate(&mut alice, &segment(1400)), Fate::Told(_)));
        let reports: Vec<_> = std::iter::from_fn(|| alice.poll_report()).collect();
        assert_eq!(reports.contains(&Report::Sends(ID)), sends, "{reports:?}");
    }
}

/// A peer that answers no probes leaves the limit of the interface, which is no presumption.
#[test]
fn of_an_interface_every_source_is_told() {
    let limit = Searched {
        whole: 1280,
        most: 1500,
        segments: 1280,
        settled: false,
        presumed: false,
    };
    let (mut alice, _) = worker(&EXPLICIT, PathMtu::Searched(limit));
    assert!(matches!(fate(&mut alice, &of(1438)), Fate::Sent(_, false)));
    assert!(matches!(fate(&mut alice, &of(1439)), Fate::Told(_)));
}

/// Anyone can have the system believe in a short path, so its word does not count.
#[test]
fn whole_packets_do_not_depend_on_what_the_system_has_heard() {
    let limit = Searched {
        whole: 1500,
        most: 1500,
        segments: 1500,
        settled: true,
        presumed: false,
    };
    for mtu in [
        PathMtu::Unknown,
        PathMtu::Octets(1500),
        PathMtu::Searched(limit),
    ] {
        let (mut alice, _) = worker(&EXPLICIT, mtu);
        let mut sealed = packet(&of(1400));
        alice.seal(
            std::slice::from_mut(&mut sealed),
            &mut Watch::default(),
            Instant::ZERO,
        );
        assert_eq!(sealed.df, Df::Whole);
    }
}

/// If a probe comes through, so does every packet with a datagram up to the limit that it proves.
#[test]
fn a_probe_is_as_long_as_the_longest_packet_and_its_echo_is_short() {
    for kind in [
        EXPLICIT,
        plain(Suite::Aes256Cbc(Sha2::Sha256), false),
        two_zones(),
        three_zones(),
        eight_zones(),
    ] {
        for mtu in 1540..1560 {
            let (mut alice, mut bob) = pair(&kind);
            let longest = alice.set_path_mtu(ID, PathMtu::Octets(mtu)).unwrap();
            let Fate::Sent(data, true) = fate(&mut alice, &of(longest.into())) else {
                panic!("{kind:?}");
            };
            let sent = Probe {
                kind: probe::Kind::Probe,
                octets: mtu,
                number: 7,
            };
            let mut asks = Packet::with_capacity(9000);
            assert_eq!(alice.probe(ID, sent, &mut asks), Some(path()));
            assert_eq!(asks.df, Df::Probe);
            let len = asks.len() + OUTSIDE;
            assert!(len <= mtu.into() && asks.len() >= data, "{kind:?} {len}");
            // It is no datagram, and the second is a repetition.
            for _ in 0..2 {
                let opened = open(&mut bob, asks.octets());
                assert!(opened.is_err());
            }
            let reports: Vec<_> = std::iter::from_fn(|| bob.poll_report()).collect();
            assert!(reports.contains(&Report::Probe(ID, sent)), "{reports:?}");
            let mut echo = Packet::with_capacity(9000);
            bob.probe(ID, sent.echo(), &mut echo).unwrap();
            assert!(echo.len() < 200 && echo.df == Df::Clear, "{kind:?}");
            assert_eq!(open(&mut alice, echo.octets()), Err(DropReason::Dummy));
            let reports = std::iter::from_fn(|| alice.poll_report());
            let echoed = Report::Probe(ID, sent.echo());
            assert!(reports.into_iter().any(|report| report == echoed));
            assert_eq!((bob.counters().probes, bob.counters().dummies()), (1, 0));
        }
    }
}

/// A burst gets one message, and a flood does not cause another flood.
#[test]
fn of_a_batch_one_datagram_is_answered() {
    let (mut alice, _) = worker(&EXPLICIT, PathMtu::Octets(1400));
    let mut watch = Watch::default();
    let mut batch: Vec<_> = (0..8).map(|_| Packet::from_slice(&of(1350))).collect();
    batch.insert(3, Packet::from_slice(&of(100)));
    alice.seal(&mut batch, &mut watch, Instant::ZERO);
    let told = watch.0.iter().filter(|fate| matches!(fate, Fate::Told(_)));
    assert_eq!(told.count(), 1);
    assert!(matches!(watch.0[0], Fate::Told(_)));
    assert!(matches!(watch.0[3], Fate::Sent(_, true)));
    assert_eq!(alice.counters().dropped(DropReason::TooLong), 7);
}

/// Error messages about error messages would never end (RFC 1812 section 4.3.2.7).
#[test]
fn what_does_not_fit_and_may_not_be_answered_is_dropped_under_its_reason() {
    let (mut alice, _) = worker(&EXPLICIT, PathMtu::Octets(1400));
    let error = v4(1, &[3; 1400]);
    assert_eq!(fate(&mut alice, &error), Fate::Dropped(DropReason::TooLong));
    assert_eq!(alice.counters().dropped(DropReason::TooLong), 1);
    assert_eq!(alice.counters().too_long, 0);
}

/// Every link carries 1280 octets (RFC 8200 section 5), so a tunnel does. An attacker who forges
/// router messages (RFC 4301 section 8.2.1) can cause fragmentation, but stops no traffic.
// Recovers: path-mtu
// Weakness: 82
#[test]
fn datagrams_of_1280_octets_always_fit() {
    for mtu in [0, 68, 576, 1280, 1343] {
        let (mut alice, longest) = worker(&EXPLICIT, PathMtu::Octets(mtu));
        assert_eq!(longest, Some(1280), "{mtu}");
        assert!(matches!(fate(&mut alice, &of(1280)), Fate::Sent(_, false)));
        assert!(matches!(fate(&mut alice, &of(1281)), Fate::Told(_)));
    }
    let (mut alice, longest) = worker(&EXPLICIT, PathMtu::Octets(1344));
    assert_eq!(longest, Some(1282));
    assert!(matches!(fate(&mut alice, &of(1282)), Fate::Sent(_, true)));
}

#[test]
fn over_ipv6_the_header_outside_is_longer() {
    let mut sa = alices_sa(&EXPLICIT);
    let ends = ["[2001:db8::1]:4500", "[2001:db8::2]:4500"];
    let [local, remote] = ends.map(|end| end.parse().unwrap());
    sa.path = Path::udp(local, remote);
    let mut alice = endpoint(sa);
    assert_eq!(alice.set_path_mtu(ID, PathMtu::Octets(1400)), Some(1318));
}

#[test]
fn what_is_known_of_a_path_is_not_known_of_another() {
    let (mut alice, _) = worker(&EXPLICIT, PathMtu::Octets(1400));
    alice.move_path(ID, path().reversed());
    assert!(matches!(fate(&mut alice, &of(1400)), Fate::Sent(_, false)));
}

#[test]
fn a_stream_takes_everything() {
    let mut sa = alices_sa(&EXPLICIT);
    sa.path = Path::tcp(sa.path.local, sa.path.remote);
    let mut alice = endpoint(sa);
    assert_eq!(alice.set_path_mtu(ID, PathMtu::Octets(1400)), None);
    assert!(matches!(fate(&mut alice, &of(1400)), Fate::Sent(_, false)));
}

#[test]
fn connections_are_clamped_to_what_fits_the_path() {
    let mut segment = tcp(&[2, 4, 5, 0xb4], b"");
    segment[13] = 0x02;
    let datagram = v4(TCP, &segment);
    let offered = |octets: &[u8]| {
        let header = Header::parse(octets).unwrap();
        let sum = checksum::of_transport(&header).unwrap();
        assert_eq!(header.payload()[16..18], sum.to_be_bytes());
        u16::from_be_bytes([header.payload()[22], header.payload()[23]])
    };
    // Both sealed and opened segments are clamped, but only if clamping is on.
    for (clamp, fits) in [(Some(1380), 1298), (Some(1300), 1260), (None, 1460)] {
        let (mut alice, mut bob) = pair(&EXPLICIT);
        alice.set_clamp(clamp);
        alice.set_path_mtu(ID, PathMtu::Octets(1400));
        let packet = seal(&mut alice, &datagram).unwrap();
        assert_eq!(offered(&open(&mut bob, &packet).unwrap()), fits);
        let (mut alice, mut bob) = pair(&EXPLICIT);
        bob.set_clamp(clamp);
        bob.set_path_mtu(ID, PathMtu::Octets(1400));
        let packet = seal(&mut alice, &datagram).unwrap();
        assert_eq!(offered(&open(&mut bob, &packet).unwrap()), fits);
    }
}
