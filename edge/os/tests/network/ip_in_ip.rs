//! IP protocol 4: IP packets in IP packets.

use crate::line::{Line, await_datagram, await_datagrams, ip};
use model::{Df, Path};
use os::{Datagrams, NetNs};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};

fn bind(host: &NetNs) -> Datagrams {
    let any = Ipv4Addr::UNSPECIFIED.into();
    host.enter(|| Datagrams::ip_in_ip(any, None))
        .unwrap()
        .unwrap()
}

/// Returns the path between the two hosts of a line.
fn path(from: &str, to: &str) -> Path {
    let end = |text| SocketAddr::new(ip(text), 0);
    Path::udp(end(from), end(to)).without_udp()
}

/// Returns an inner packet. It begins like any IP packet, and must not be taken for the outer
/// header.
fn inner(len: usize) -> Vec<u8> {
    let mut inner = vec![0x45; len];
    inner[1..].fill(7);
    inner
}

#[test]
fn a_datagram_within_another_comes_as_it_was_sent_with_the_outer_source_and_congestion_field() {
    let line = Line::new();
    let (mut near, mut far) = (bind(&line.a), bind(&line.b));
    for (class, len) in [(0, 20), (1, 400), (46 << 2 | 3, 1480), (2, 3000)] {
        let way = path("10.1.0.1", "10.1.0.2");
        near.send(way, class, &inner(len)).unwrap();
        let (arrival, octets) = await_datagram(&mut far);
        assert_eq!(arrival.path, path("10.1.0.2", "10.1.0.1"));
        assert_eq!((arrival.ecn, octets), (class & 3, inner(len)));
        far.send(arrival.path, 0, &inner(20)).unwrap();
        assert_eq!(await_datagram(&mut near).1, inner(20));
    }
}

#[test]
fn many_leave_with_one_call() {
    let line = Line::new();
    let (near, mut far) = (bind(&line.a), bind(&line.b));
    let way = path("10.1.0.1", "10.1.0.2");
    let sent = near.send_run(way, (0, Df::Set), 1000, &inner(63_500));
    assert_eq!(sent.unwrap(), 64);
    let mut came = Vec::new();
    while came.len() < 63_500 {
        came.extend(
            await_datagrams(&mut far)
                .into_iter()
                .flat_map(|(_, octets)| octets),
        );
    }
    assert_eq!(came, inner(63_500));
}

/// Each protocol has its socket, which receives no packets of the other.
#[test]
fn what_is_esp_is_not_heard() {
    let line = Line::new();
    let esp = |host: &NetNs| {
        let open = || Datagrams::esp(Ipv4Addr::UNSPECIFIED.into(), None);
        host.enter(open).unwrap().unwrap()
    };
    let (near, mut far, mut other) = (esp(&line.a), esp(&line.b), bind(&line.b));
    near.send(path("10.1.0.1", "10.1.0.2"), 0, &inner(100))
        .unwrap();
    assert_eq!(await_datagram(&mut far).1, inner(100));
    let nothing = other.recv(|_, octets| panic!("{octets:?}"));
    assert_eq!(nothing.unwrap_err().kind(), ErrorKind::WouldBlock);
}
