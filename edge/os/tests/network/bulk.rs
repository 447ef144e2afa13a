use crate::line::{
    Line, await_datagrams, await_either, await_readable, bind, give, path, transfer,
};
use model::Df;
use os::{Bulk, MOST_AT_ONCE, NetNs, Outline, SEGMENTS, is_too_long};
use std::io::ErrorKind;
use wire::checksum::Checksum;

const MTU: usize = 1400;

/// Returns a host whose only interface is ours.
fn host(address: &str, offload: bool) -> (NetNs, Bulk) {
    let namespace = NetNs::new().unwrap();
    let open = || Bulk::open("t0", MTU as u16, offload, false);
    let bulk = namespace.enter(open).unwrap().unwrap();
    give(&namespace, "t0", &[address]);
    (namespace, bulk)
}

/// A carrier of packets, with the most packets of one read, and the number of checksums that were
/// left.
struct Carrier {
    spaces: Vec<Vec<u8>>,
    most: usize,
    left: usize,
}

impl Carrier {
    fn new() -> Self {
        // Enough room that one read is one system call, which may return many packets.
        let spaces = vec![vec![0; 65_535]; SEGMENTS];
        Self {
            spaces,
            most: 0,
            left: 0,
        }
    }

    /// Carries all pending packets from one device to the other.
    fn carry(&mut self, from: &mut Bulk, to: &mut Bulk) {
        let mut outlines = vec![Outline::default(); self.spaces.len()];
        loop {
            let mut spaces: Vec<&mut [u8]> = self.spaces.iter_mut().map(Vec::as_mut).collect();
            let (count, failed) = from.recv(&mut spaces, &mut outlines);
            for (space, outline) in self.spaces.iter().zip(&outlines).take(count) {
                let Outline { len, checksum } = *outline;
                assert!(len <= MTU, "{len}");
                self.left += usize::from(checksum == Checksum::Left);
                assert_eq!(to.push(&space[..len], checksum), 0);
            }
            assert_eq!(to.flush(), 0);
            self.most = self.most.max(count);
            if let Some(error) = failed {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                return;
            }
        }
    }
}

/// Transfers data between two hosts by the kernel's TCP; returns the carrier.
fn carry_a_transfer(offload: bool) -> Carrier {
    let (near, mut near_tun) = host("10.9.0.1/24", offload);
    let (far, mut far_tun) = host("10.9.0.2/24", offload);
    assert_eq!(near_tun.is_offloaded(), offload);
    let mut carrier = Carrier::new();
    transfer(&near, &far, "10.9.0.2:5000", || {
        await_either([&near_tun, &far_tun]);
        carrier.carry(&mut near_tun, &mut far_tun);
        carrier.carry(&mut far_tun, &mut near_tun);
    });
    carrier
}

/// The kernel verifies packets that were segmented, and joined again without their checksums.
// Works: offload
#[test]
fn a_kernel_s_tcp_passes_in_bulk() {
    let Carrier { most, left, .. } = carry_a_transfer(true);
    assert!(most > 1 && left > most, "{most}, {left}");
}

/// Without offload, every segment is a call of its own.
#[test]
fn a_kernel_s_tcp_passes_one_by_one() {
    assert_eq!(carry_a_transfer(false).left, 0);
}

/// Each kind of packet alone, and many in one. The receiving programs get a packet only if its
/// checksum is right.
#[test]
fn a_checksum_that_is_left_is_made_where_the_device_does_not_make_it() {
    for (near_offload, far_offload) in [(true, false), (false, true)] {
        let (near, mut near_tun) = host("10.9.0.1/24", near_offload);
        let (far, mut far_tun) = host("10.9.0.2/24", far_offload);
        let mut carrier = Carrier::new();
        transfer(&near, &far, "10.9.0.2:5000", || {
            await_either([&near_tun, &far_tun]);
            carrier.carry(&mut near_tun, &mut far_tun);
            carrier.carry(&mut far_tun, &mut near_tun);
        });
        assert!(carrier.left > 0);
    }
}

// Works: offload
#[test]
fn datagrams_that_are_sent_in_one_call_are_cut_and_put_together() {
    let (near, mut near_tun) = host("10.9.0.1/24", true);
    let (far, mut far_tun) = host("10.9.0.2/24", true);
    let (sender, mut receiver) = (bind(&near, "10.9.0.1:5000"), bind(&far, "10.9.0.2:5000"));
    let octets: Vec<u8> = (0..50 * 1000 + 7)
        .map(|index| (index / 1000) as u8)
        .collect();
    let to = path(&sender, "10.9.0.2:5000");
    sender.send_run(to, (0, Df::Clear), 1000, &octets).unwrap();
    await_readable(&near_tun);
    let mut carrier = Carrier::new();
    carrier.carry(&mut near_tun, &mut far_tun);
    assert_eq!(carrier.most, 51);
    let mut came = Vec::new();
    while came.len() < 51 {
        came.extend(await_datagrams(&mut receiver));
    }
    let expected: Vec<&[u8]> = octets.chunks(1000).collect();
    let came: Vec<&[u8]> = came.iter().map(|(_, payload)| payload.as_slice()).collect();
    assert_eq!(came, expected);
}

/// Packets of no known kind, and packets with inconsistent headers, pass unchanged or are refused.
// Refuses: offload
#[test]
fn what_is_no_packet_of_anything_harms_no_other() {
    let (_near, mut tun) = host("10.9.0.1/24", true);
    for packet in [&[0x45_u8][..], &[0x60; 39], &[0x45; 1400], &[0xff; 64], &[]] {
        tun.push(packet, Checksum::Made);
    }
    tun.flush();
    assert_eq!(tun.flush(), 0);
}

// Recovers: offload
#[test]
fn a_device_that_is_down_takes_nothing_and_that_is_counted() {
    let (namespace, mut tun) = host("10.9.0.1/24", true);
    namespace.netlink().unwrap().link_down("t0").unwrap();
    for _ in 0..SEGMENTS - 1 {
        assert_eq!(tun.push(&[0x45; 100], Checksum::Made), 0);
    }
    assert_eq!(tun.push(&[0x45; 100], Checksum::Made), SEGMENTS as u64);
    assert_eq!(tun.flush(), 0);
}

// Works: offload
#[test]
fn a_run_arrives_as_datagrams_of_its_length_with_its_class() {
    let line = Line::new();
    for (near, far) in [
        ("10.1.0.1:5000", "10.1.0.2:5000"),
        ("[fd01::1]:5000", "[fd01::2]:5000"),
    ] {
        let (sender, mut receiver) = (bind(&line.a, near), bind(&line.b, far));
        for header in [
            (0, Df::Clear),
            (1, Df::Set),
            (0xb9, Df::Clear),
            (0xb8, Df::Probe),
        ] {
            let class = header.0;
            let octets: Vec<u8> = (0..MOST_AT_ONCE * 900 - 1)
                .map(|i| (i / 900) as u8)
                .collect();
            let to = path(&sender, far);
            sender.send_run(to, header, 900, &octets).unwrap();
            let mut came = Vec::new();
            while came.len() < MOST_AT_ONCE {
                came.extend(await_datagrams(&mut receiver));
            }
            let fields: Vec<u8> = came.iter().map(|(arrival, _)| arrival.ecn).collect();
            assert_eq!(fields, [class & 3; MOST_AT_ONCE], "{near}, {class:#x}");
            let came: Vec<&[u8]> = came.iter().map(|(_, payload)| payload.as_slice()).collect();
            assert_eq!(came, octets.chunks(900).collect::<Vec<_>>());
        }
    }
}

/// After the refusal, the datagrams can be sent one by one.
// Recovers: offload
#[test]
fn a_run_that_would_have_to_be_cut_further_is_refused_and_nothing_of_it_arrives() {
    let line = Line::new();
    let (sender, mut receiver) = (
        bind(&line.a, "10.1.0.1:5000"),
        bind(&line.b, "10.1.0.2:5000"),
    );
    let to = path(&sender, "10.1.0.2:5000");
    for df in [Df::Clear, Df::Set, Df::Probe] {
        let refused = sender.send_run(to, (0, df), 1480, &[7; 4000]).unwrap_err();
        assert!(is_too_long(&refused), "{refused}");
    }
    sender.send(to, 0, &[7; 1480]).unwrap();
    let came = await_datagrams(&mut receiver);
    assert_eq!(came.len(), 1);
    assert_eq!(came[0].1, [7; 1480]);
}

/// Sends datagrams from several ports to a host with two queues; returns the number that each queue
/// received.
fn of_two_queues(ports: u16) -> [usize; 2] {
    let namespace = NetNs::new().unwrap();
    let open = || Bulk::open("t0", MTU as u16, true, true);
    let first = namespace.enter(open).unwrap().unwrap();
    give(&namespace, "t0", &["10.9.0.1/24"]);
    let second = namespace.enter(|| first.queue()).unwrap().unwrap();
    let send = || {
        for port in 0..ports {
            let socket = std::net::UdpSocket::bind(("10.9.0.1", 5000 + port)).unwrap();
            socket.send_to(b"one", "10.9.0.2:9").unwrap();
        }
    };
    namespace.enter(send).unwrap();
    [first, second].map(|mut queue| {
        let mut spaces = vec![vec![0; 65_535]; 2 * SEGMENTS];
        let mut spaces: Vec<&mut [u8]> = spaces.iter_mut().map(Vec::as_mut).collect();
        let mut outlines = vec![Outline::default(); spaces.len()];
        queue.recv(&mut spaces, &mut outlines).0
    })
}

#[test]
fn flows_are_shared_out_between_the_queues_of_a_device() {
    // The chance that all of them use one queue is 1 in 2^31.
    let got = of_two_queues(32);
    assert_eq!(got[0] + got[1], 32);
    assert!(got[0] > 0 && got[1] > 0, "{got:?}");
}

#[test]
fn a_flow_stays_on_one_queue() {
    let [one, other] = of_two_queues(1);
    assert_eq!((one.max(other), one.min(other)), (1, 0));
}

#[test]
fn a_device_that_was_not_opened_for_several_queues_has_one() {
    let (namespace, bulk) = host("10.9.0.1/24", true);
    let second = namespace.enter(|| bulk.queue().err()).unwrap();
    assert!(second.unwrap().to_string().contains("another queue of t0"));
}
