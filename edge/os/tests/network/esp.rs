//! IP protocol 50 through a raw socket.

use crate::line::{Line, await_datagram, await_datagrams, await_readable, give};
use model::{Df, Path};
use os::{Arrival, Datagrams, NetNs};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const ENDS: [(&str, &str); 2] = [("10.1.0.1", "10.1.0.2"), ("fd01::1", "fd01::2")];

fn bind(host: &NetNs, address: impl Into<IpAddr>) -> Datagrams {
    let address = address.into();
    host.enter(|| Datagrams::esp(address, None))
        .unwrap()
        .unwrap()
}

/// Binds to all addresses of a family.
fn bind_any(host: &NetNs, like: IpAddr) -> Datagrams {
    match like {
        IpAddr::V4(_) => bind(host, Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => bind(host, Ipv6Addr::UNSPECIFIED),
    }
}

fn path(from: IpAddr, to: IpAddr) -> Path {
    let end = |ip| SocketAddr::new(ip, 0);
    Path::udp(end(from), end(to)).without_udp()
}

fn ends((from, to): (&str, &str)) -> (IpAddr, IpAddr) {
    (from.parse().unwrap(), to.parse().unwrap())
}

// Works: plain-esp
#[test]
fn a_packet_comes_as_it_was_sent_without_an_ip_header_and_the_answer_finds_back() {
    let line = Line::new();
    for (from, to) in ENDS.map(ends) {
        let (mut near, mut far) = (bind_any(&line.a, from), bind_any(&line.b, to));
        for octets in [&[0x45; 8][..], &[0xff; 1400], b"SPI and more"] {
            near.send(path(from, to), 0, octets).unwrap();
            let (arrival, payload) = await_datagram(&mut far);
            assert_eq!(arrival.path, path(to, from));
            assert_eq!(payload, octets);
            far.send(arrival.path, 0, b"back").unwrap();
            let (answer, payload) = await_datagram(&mut near);
            assert_eq!(
                (answer.path, payload.as_slice()),
                (path(from, to), &b"back"[..])
            );
        }
    }
}

#[test]
fn the_congestion_field_and_the_source_are_carried_with_a_class_and_without() {
    let line = Line::new();
    give(&line.a, "va", &["10.1.0.8/24", "fd01::8/64"]);
    for (from, to) in [("10.1.0.8", "10.1.0.2"), ("fd01::8", "fd01::2")].map(ends) {
        let (near, mut far) = (bind_any(&line.a, from), bind_any(&line.b, to));
        for class in [0, 1, 2, 3, 46 << 2 | 1, 63 << 2 | 3] {
            near.send(path(from, to), class, b"class").unwrap();
            let (arrival, payload) = await_datagram(&mut far);
            assert_eq!(
                (arrival.ecn, payload.as_slice()),
                (class & 3, &b"class"[..])
            );
            assert_eq!(arrival.path.remote.ip(), from);
        }
    }
}

#[test]
fn what_is_to_go_whole_and_is_too_long_is_refused_and_otherwise_cut() {
    let line = Line::new();
    for (from, to) in ENDS.map(ends) {
        let (near, mut far) = (bind_any(&line.a, from), bind_any(&line.b, to));
        let long = [7; 3000];
        let refused = near.send_whole(path(from, to), 0, &long).unwrap_err();
        assert!(os::is_too_long(&refused), "{refused}");
        near.send(path(from, to), 0, &long).unwrap();
        let (_, payload) = await_datagram(&mut far);
        assert_eq!(payload, long);
    }
}

/// Returns numbered packets; the last is shorter.
fn run(count: usize, length: usize) -> Vec<u8> {
    let octets = 0..count * length - 7;
    octets.map(|index| (index / length) as u8).collect()
}

fn await_run(socket: &mut Datagrams, count: usize) -> Vec<(Arrival, Vec<u8>)> {
    let mut came = Vec::new();
    while came.len() < count {
        came.extend(await_datagrams(socket));
    }
    came
}

// Works: offload
#[test]
fn many_packets_leave_with_one_call_with_their_class_and_source() {
    let line = Line::new();
    give(&line.a, "va", &["10.1.0.8/24", "fd01::8/64"]);
    let anybody = [("0.0.0.0", "10.1.0.2"), ("::", "fd01::2")];
    let another = [("10.1.0.8", "10.1.0.2"), ("fd01::8", "fd01::2")];
    for (from, to) in anybody.into_iter().chain(another).map(ends) {
        let (near, mut far) = (bind_any(&line.a, from), bind_any(&line.b, to));
        for (class, count) in [(0, 2), (2, 64), (46 << 2 | 1, 33)] {
            let octets = run(count, 900);
            let header = (class, Df::Clear);
            let sent = near.send_run(path(from, to), header, 900, &octets);
            assert_eq!(sent.unwrap(), count);
            let came = await_run(&mut far, count);
            let packets: Vec<_> = came.iter().map(|(_, octets)| &octets[..]).collect();
            assert_eq!(packets, octets.chunks(900).collect::<Vec<_>>());
            for (arrival, _) in came {
                let source = arrival.path.remote.ip();
                assert!(from.is_unspecified() || source == from, "{source}");
                assert_eq!(arrival.ecn, class & 3);
            }
        }
    }
}

#[test]
fn of_many_that_are_to_go_whole_and_are_too_long_none_is_sent_and_otherwise_all_are_cut() {
    let line = Line::new();
    for (from, to) in ENDS.map(ends) {
        let (near, mut far) = (bind_any(&line.a, from), bind_any(&line.b, to));
        let octets = run(5, 3000);
        let refused = near.send_run(path(from, to), (0, Df::Set), 3000, &octets);
        assert!(os::is_too_long(&refused.unwrap_err()));
        let sent = near.send_run(path(from, to), (0, Df::Clear), 3000, &octets);
        assert_eq!(sent.unwrap(), 5);
        let came = await_run(&mut far, 5);
        let packets: Vec<_> = came.iter().map(|(_, octets)| &octets[..]).collect();
        assert_eq!(packets, octets.chunks(3000).collect::<Vec<_>>());
    }
}

#[test]
fn nothing_of_udp_is_heard_and_a_short_packet_is_no_harm() {
    let line = Line::new();
    for (from, to) in ENDS.map(ends) {
        let (near, mut far) = (bind_any(&line.a, from), bind_any(&line.b, to));
        let udp = SocketAddr::new(from, 4500);
        let udp = line.a.enter(|| Datagrams::udp(udp, None)).unwrap().unwrap();
        let other = Path::udp(udp.local(), SocketAddr::new(to, 4500));
        udp.send(other, 0, b"not for it").unwrap();
        near.send(path(from, to), 0, b"").unwrap();
        await_readable(&far);
        let (_, payload) = await_datagram(&mut far);
        assert!(payload.is_empty(), "{payload:?}");
        let rest = far.recv(|_, payload| panic!("{payload:?}"));
        assert_eq!(rest.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn a_socket_waits_for_an_address_of_either_family() {
    let line = Line::new();
    for away in ["192.0.2.1", "2001:db8::1"] {
        let away: IpAddr = away.parse().unwrap();
        let waiting = line.a.enter(|| Datagrams::esp(away, None)).unwrap();
        assert_eq!(waiting.unwrap().local().ip(), away);
    }
}
