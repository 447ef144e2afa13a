use crate::divert::{OPTIONS, Row, read};
use crate::line::{await_datagrams, await_either, bind, path, transfer};
use model::Df;
use os::divert::{Options, Side};
use os::{Datagrams, Divert};
use std::io::ErrorKind;
use wire::checksum;
use wire::ip::Header;

const ENDS: [(&str, &str); 2] = [
    ("10.1.0.1:4500", "10.2.0.1:4500"),
    ("[fd01::1]:4500", "[fd02::1]:4500"),
];

/// Octets of each datagram but the last, which has [`REST`].
const LENGTH: usize = 1000;
const REST: usize = 7;
const COUNT: usize = 51;

/// Returns numbered datagrams.
fn datagrams() -> Vec<u8> {
    let octets = 0..(COUNT - 1) * LENGTH + REST;
    octets.map(|index| (index / LENGTH) as u8).collect()
}

/// Sends all datagrams to the mobile node with one call, and reads them in between with one call.
fn pass(row: &Row, (near, far): (&str, &str), divert: &mut Divert) -> (Datagrams, usize) {
    let (mobile, gateway) = (bind(&row.mobile, near), bind(&row.gateway, far));
    send_all(&gateway, near);
    let (from, count) = read(divert);
    assert_eq!(from, Side::Wired);
    (mobile, count)
}

fn send_all(gateway: &Datagrams, near: &str) {
    let sent = gateway.send_run(
        path(gateway, near),
        (0, Df::Clear),
        LENGTH as u16,
        &datagrams(),
    );
    assert_eq!(sent.unwrap(), COUNT);
}

/// Receives this many datagrams, and returns the first octet and the length of each.
fn arrive(socket: &mut Datagrams, count: usize) -> Vec<(u8, usize)> {
    let mut came = Vec::new();
    while came.len() < count {
        let datagrams = await_datagrams(socket);
        came.extend(
            datagrams
                .iter()
                .map(|(_, octets)| (octets[0], octets.len())),
        );
    }
    came
}

/// Returns the sent datagrams without those.
fn all_but(missing: &[u8]) -> Vec<(u8, usize)> {
    let all = (0..COUNT as u8).map(|number| {
        let last = usize::from(number) == COUNT - 1;
        (number, if last { REST } else { LENGTH })
    });
    all.filter(|(number, _)| !missing.contains(number))
        .collect()
}

/// Each packet has the form that it has on the wire.
#[test]
fn what_one_call_brings_is_shown_packet_by_packet() {
    for ends in ENDS {
        let row = Row::new("1");
        let mut divert = row.divert();
        let (_mobile, count) = pass(&row, ends, &mut divert);
        assert_eq!(count, COUNT);
        for (index, (number, len)) in all_but(&[]).into_iter().enumerate() {
            let header = Header::parse(divert.passage.packet(index)).unwrap();
            let payload = &header.payload()[8..];
            assert_eq!((payload[0], payload.len()), (number, len));
            assert!(header.checksum_is_right() && header.ttl() == 64);
            let checksum = checksum::of_transport(&header).unwrap();
            assert_eq!(header.payload()[6..8], checksum.to_be_bytes());
        }
    }
}

// Works: licensed-node
#[test]
fn what_passes_as_a_whole_arrives_as_a_whole() {
    for ends in ENDS {
        let row = Row::new("1");
        let mut divert = row.divert();
        let (mut mobile, count) = pass(&row, ends, &mut divert);
        (0..count).for_each(|index| divert.passage.pass(index));
        assert_eq!(divert.passage.flush(), 0);
        assert_eq!(arrive(&mut mobile, COUNT), all_but(&[]));
    }
}

/// Whichever packets do not pass, the others do, in order.
// Works: licensed-node
#[test]
fn what_does_not_pass_is_missing_and_nothing_else() {
    for missing in [&[0][..], &[50], &[7, 8, 30], &[0, 1, 2, 49, 50]] {
        let row = Row::new("1");
        let mut divert = row.divert();
        let (mut mobile, count) = pass(&row, ENDS[0], &mut divert);
        for index in (0..count).filter(|index| !missing.contains(&(*index as u8))) {
            divert.passage.pass(index);
        }
        assert_eq!(divert.passage.flush(), 0);
        let rest = all_but(missing);
        assert_eq!(arrive(&mut mobile, rest.len()), rest);
    }
}

/// Packets of the node itself keep their place among those that pass.
// Works: licensed-node
#[test]
fn what_is_sent_in_between_arrives_in_between() {
    let row = Row::new("1");
    let mut divert = row.divert();
    let (mut mobile, count) = pass(&row, ENDS[0], &mut divert);
    for index in 0..count {
        divert.passage.pass(index);
        if index == 20 {
            let third = divert.passage.packet(3).to_vec();
            divert.passage.send(Side::Wireless, &third);
        }
    }
    assert_eq!(divert.passage.flush(), 0);
    let mut expected = all_but(&[]);
    expected.insert(21, (3, LENGTH));
    assert_eq!(arrive(&mut mobile, COUNT + 1), expected);
}

/// A packet that returns to its origin delays no other.
#[test]
fn what_is_sent_back_arrives_as_well() {
    let row = Row::new("1");
    let mut divert = row.divert();
    let (mut mobile, mut gateway) = (bind(&row.mobile, ENDS[0].0), bind(&row.gateway, ENDS[0].1));
    let back = path(&mobile, ENDS[0].1);
    mobile.send(back, 0, b"x").unwrap();
    assert_eq!(read(&mut divert), (Side::Wireless, 1));
    let back = divert.passage.packet(0).to_vec();
    send_all(&gateway, ENDS[0].0);
    assert_eq!(read(&mut divert), (Side::Wired, COUNT));
    for index in 0..COUNT {
        divert.passage.pass(index);
        if index == 20 {
            divert.passage.send(Side::Wired, &back);
        }
    }
    assert_eq!(divert.passage.flush(), 0);
    assert_eq!(arrive(&mut gateway, 1), [(b'x', 1)]);
    assert_eq!(arrive(&mut mobile, COUNT), all_but(&[]));
}

/// A packet with one hop left arrives: the detour costs none.
#[test]
fn the_detour_costs_no_hop_as_a_whole_or_one_by_one() {
    for whole in [true, false] {
        let row = Row::new("1");
        (row.gateway)
            .sysctl("net.ipv4.ip_default_ttl", "2")
            .unwrap();
        let mut divert = row.divert();
        let (mut mobile, count) = pass(&row, ENDS[0], &mut divert);
        let missing: &[u8] = if whole { &[] } else { &[5] };
        for index in (0..count).filter(|index| !missing.contains(&(*index as u8))) {
            divert.passage.pass(index);
        }
        assert_eq!(divert.passage.flush(), 0);
        let expected = all_but(missing);
        assert_eq!(arrive(&mut mobile, expected.len()), expected);
    }
}

/// Transfers data, whose packets the kernel verifies. Returns the most packets of one call.
fn most_of_a_transfer(offload: bool) -> usize {
    let row = Row::new("1");
    let options = Options {
        clear_tcp: true,
        offload,
        ..OPTIONS
    };
    let mut divert = row.open(&options).unwrap();
    let passage = &mut divert.passage;
    let mut most = 0;
    transfer(&row.gateway, &row.mobile, "10.1.0.1:5000", || {
        await_either(Side::ALL.map(|side| passage.device(side)));
        for side in Side::ALL {
            let failed = loop {
                let count = match passage.recv(side) {
                    Ok(count) => count,
                    Err(error) => break error,
                };
                (0..count).for_each(|index| passage.pass(index));
                most = most.max(count);
            };
            assert_eq!(failed.kind(), ErrorKind::WouldBlock, "{failed}");
        }
        assert_eq!(passage.flush(), 0);
    });
    most
}

#[test]
fn a_kernel_s_tcp_passes_as_it_came() {
    let most = most_of_a_transfer(true);
    assert!(most > 1, "{most}");
}

/// Without offload, every packet is a call of its own.
#[test]
fn without_offload_packets_pass_one_by_one() {
    assert_eq!(most_of_a_transfer(false), 1);
}

// Recovers: offload
#[test]
fn what_a_device_that_is_down_does_not_take_is_counted() {
    let row = Row::new("1");
    let mut divert = row.divert();
    let (_mobile, count) = pass(&row, ENDS[0], &mut divert);
    let down = divert.passage.device(Side::Wireless).name().to_owned();
    row.node.netlink().unwrap().link_down(&down).unwrap();
    (0..count).for_each(|index| divert.passage.pass(index));
    assert_eq!(divert.passage.flush(), COUNT as u64);
}
