use crate::line::{
    Line, address, await_datagram, await_datagrams, await_readable, bind, bind_marked, give, path,
    until,
};
use nix::errno::Errno;
use os::netlink::{Mark, Route, Rule, Via};
use os::{Datagrams, Error, Family, NetNs, Prefix};
use std::io::ErrorKind;

#[test]
fn an_answer_leaves_from_the_address_that_was_asked() {
    let line = Line::new();
    give(&line.b, "vb", &["10.1.0.9/24", "fd01::9/64"]);
    for (any, asked) in [
        ("0.0.0.0:4500", "10.1.0.9:4500"),
        ("[::]:4500", "[fd01::9]:4500"),
    ] {
        let (mut near, mut far) = (bind(&line.a, any), bind(&line.b, any));
        near.send(path(&near, asked), 0, b"who").unwrap();
        let (arrival, _) = await_datagram(&mut far);
        assert_eq!(arrival.path.local, address(asked));
        far.send(arrival.path, 0, b"me").unwrap();
        let (answer, payload) = await_datagram(&mut near);
        assert_eq!(
            (answer.path.remote, payload.as_slice()),
            (address(asked), &b"me"[..])
        );
    }
}

#[test]
fn the_congestion_field_is_carried_both_ways() {
    let line = Line::new();
    for (from, to) in [("10.1.0.1:1", "10.1.0.2:2"), ("[fd01::1]:1", "[fd01::2]:2")] {
        let (near, mut far) = (bind(&line.a, from), bind(&line.b, to));
        for ecn in 0..4 {
            near.send(path(&near, to), ecn, b"ecn").unwrap();
            assert_eq!(await_datagram(&mut far).0.ecn, ecn);
        }
    }
}

/// A datagram with a traffic class leaves from the chosen address too.
#[test]
fn a_class_of_service_changes_neither_the_congestion_field_nor_the_source() {
    let line = Line::new();
    give(&line.a, "va", &["10.1.0.8/24", "fd01::8/64"]);
    for (any, from, to) in [
        ("0.0.0.0:1", "10.1.0.8:1", "10.1.0.2:2"),
        ("[::]:1", "[fd01::8]:1", "[fd01::2]:2"),
    ] {
        let (near, mut far) = (bind(&line.a, any), bind(&line.b, to));
        for dscp in [0, 1, 46, 63] {
            for ecn in 0..4 {
                let path = model::Path::udp(address(from), address(to));
                near.send(path, dscp << 2 | ecn, b"class").unwrap();
                let (arrival, payload) = await_datagram(&mut far);
                assert_eq!((arrival.ecn, payload.as_slice()), (ecn, &b"class"[..]));
                assert_eq!(arrival.path.remote, address(from));
            }
        }
    }
}

#[test]
fn both_families_can_have_the_same_port() {
    let namespace = NetNs::new().unwrap();
    let _v4 = bind(&namespace, "0.0.0.0:500");
    let _v6 = bind(&namespace, "[::]:500");
}

// Weakness: 34
#[test]
fn coalesced_datagrams_are_split_again() {
    let namespace = NetNs::new().unwrap();
    let mut far = bind(&namespace, "127.0.0.1:4500");
    let socket = || std::net::UdpSocket::bind("127.0.0.1:0");
    let near = namespace.enter(socket).unwrap().unwrap();
    let state = quinn_udp::UdpSocketState::new((&near).into()).unwrap();
    let mut contents = Vec::new();
    (0..5).for_each(|number| contents.extend([number; 100]));
    contents.extend([5; 30]);
    let run = quinn_udp::Transmit {
        destination: far.local(),
        ecn: None,
        contents: &contents,
        segment_size: Some(100),
        src_ip: None,
    };
    state.try_send((&near).into(), &run).unwrap();
    let mut lengths = Vec::new();
    while lengths.len() < 6 {
        for (_, payload) in await_datagrams(&mut far) {
            let number = lengths.len() as u8;
            assert!(payload.iter().all(|octet| *octet == number));
            lengths.push(payload.len());
        }
    }
    assert_eq!(lengths, [100, 100, 100, 100, 100, 30]);
}

/// This holds even if each datagram is overwritten as soon as it is read, as when it is opened in
/// place.
// Weakness: 34
// Weakness: 72
#[test]
fn runs_of_any_length_and_content_are_split_and_no_datagram_reaches_into_another() {
    let namespace = NetNs::new().unwrap();
    let mut far = bind(&namespace, "127.0.0.1:4500");
    let socket = || std::net::UdpSocket::bind("127.0.0.1:0");
    let near = namespace.enter(socket).unwrap().unwrap();
    let state = quinn_udp::UdpSocketState::new((&near).into()).unwrap();
    let mut dice = 0x5eed_0001_u32;
    let mut roll = || {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (dice >> 24) as u8
    };
    for (length, count, last) in [
        (1, 63, 1),
        (2, 10, 1),
        (3, 63, 2),
        (100, 5, 30),
        (1023, 63, 1023),
        (1472, 44, 7),
        (9000, 7, 1),
        (32_000, 2, 500),
        (65_507, 0, 65_507),
    ] {
        let contents: Vec<u8> = (0..length * count + last).map(|_| roll()).collect();
        let run = quinn_udp::Transmit {
            destination: far.local(),
            ecn: None,
            contents: &contents,
            segment_size: (count > 0).then_some(length),
            src_ip: None,
        };
        state.try_send((&near).into(), &run).unwrap();
        let mut got = Vec::new();
        until("the whole run", || {
            // There may be nothing yet.
            let _ = far.recv(|_, payload| {
                got.push(payload.to_vec());
                payload.fill(0xff);
            });
            got.iter().map(Vec::len).sum::<usize>() >= contents.len()
        });
        assert!(
            got.iter().map(Vec::as_slice).eq(contents.chunks(length)),
            "{length}"
        );
    }
}

#[test]
fn a_datagram_longer_than_the_link_is_fragmented() {
    let line = Line::new();
    line.a.netlink().unwrap().set_mtu("va", 1280).unwrap();
    for (from, to) in [("10.1.0.1:1", "10.1.0.2:2"), ("[fd01::1]:1", "[fd01::2]:2")] {
        let (near, mut far) = (bind(&line.a, from), bind(&line.b, to));
        near.send(path(&near, to), 0, &[7; 4000]).unwrap();
        assert_eq!(await_datagram(&mut far).1, [7; 4000]);
    }
}

/// The datagram is refused at once, or after a router's report. In both cases the caller can query
/// the path MTU.
#[test]
fn a_datagram_that_is_to_go_whole_and_is_too_long_is_refused() {
    let line = Line::new();
    line.a.netlink().unwrap().set_mtu("va", 1280).unwrap();
    for (from, to, fits) in [
        ("10.1.0.1:1", "10.1.0.2:2", 1280 - 28),
        ("[fd01::1]:1", "[fd01::2]:2", 1280 - 48),
    ] {
        let (near, mut far) = (bind(&line.a, from), bind(&line.b, to));
        let path = path(&near, to);
        let refused = near.send_whole(path, 0, &vec![7; fits + 1]).unwrap_err();
        assert!(os::is_too_long(&refused), "{refused}");
        let asked = line.a.enter(|| os::path_mtu(path, None)).unwrap();
        assert_eq!(asked.unwrap(), 1280);
        near.send_whole(path, 0, &vec![7; fits]).unwrap();
        assert_eq!(await_datagram(&mut far).1.len(), fits);
        // Any number of fragmentable datagrams leaves the rule for the others in force.
        for _ in 0..1100 {
            near.send(path, 0, &[7; 1300]).unwrap();
            assert_eq!(await_datagram(&mut far).1, [7; 1300]);
        }
        let refused = near.send_whole(path, 0, &vec![7; fits + 1]).unwrap_err();
        assert!(os::is_too_long(&refused), "{refused}");
    }
}

#[test]
fn of_a_path_that_is_none_nothing_is_known() {
    let line = Line::new();
    let near = bind(&line.a, "10.1.0.1:1");
    let nowhere = path(&near, "192.0.2.1:2");
    let asked = line.a.enter(|| os::path_mtu(nowhere, None)).unwrap();
    assert_eq!(
        asked.unwrap_err().raw_os_error(),
        Some(Errno::ENETUNREACH as i32)
    );
}

#[test]
fn a_datagram_that_cannot_be_sent_is_an_error_of_its_own() {
    let line = Line::new();
    let near = bind(&line.a, "10.1.0.1:1");
    let refused = |to: &str, payload: &[u8]| {
        let error = near.send(path(&near, to), 0, payload).unwrap_err();
        Errno::from_raw(error.raw_os_error().unwrap())
    };
    assert_eq!(refused("10.1.0.2:2", &[0; 65_508]), Errno::EMSGSIZE);
    assert_eq!(refused("192.0.2.1:2", b"x"), Errno::ENETUNREACH);
    let stranger = model::Path::udp(address("10.1.0.77:1"), address("10.1.0.2:2"));
    let error = near.send(stranger, 0, b"x").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::ENETUNREACH as i32));
    assert_eq!(refused("10.1.0.2:0", b"x"), Errno::EINVAL);
    // The errors affect neither later datagrams nor their ECN field.
    let mut far = bind(&line.b, "10.1.0.2:2");
    near.send(path(&near, "10.1.0.2:2"), 3, b"fine").unwrap();
    let (arrival, payload) = await_datagram(&mut far);
    assert_eq!((arrival.ecn, payload.as_slice()), (3, &b"fine"[..]));
}

#[test]
fn nothing_to_read_would_block() {
    let namespace = NetNs::new().unwrap();
    let mut socket = bind(&namespace, "127.0.0.1:0");
    let error = socket.recv(|_, _| unreachable!()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[test]
fn an_empty_datagram_is_passed_on_once() {
    let namespace = NetNs::new().unwrap();
    let mut far = bind(&namespace, "127.0.0.1:4500");
    let near = bind(&namespace, "127.0.0.1:0");
    near.send(path(&near, "127.0.0.1:4500"), 0, b"").unwrap();
    await_readable(&far);
    let mut lengths = Vec::new();
    let read = far.recv(|_, payload| lengths.push(payload.len()));
    assert_eq!((read.unwrap(), lengths), (1, vec![0]));
    assert_eq!(
        far.recv(|_, _| unreachable!()).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
}

#[test]
fn a_marked_socket_obeys_rules_for_its_mark() {
    let line = Line::new();
    let netlink = line.a.netlink().unwrap();
    let rule = Rule::new(Family::V4, 100, 4242).mark(Mark::Is(0x7296));
    netlink.add_rule(&rule).unwrap();
    let everything = Prefix::everything(Family::V4);
    let mut route = Route::new(everything, Via::Blackhole);
    route.table = 4242;
    netlink.add_route(&route).unwrap();
    let to = "10.1.0.2:2";
    let marked = bind_marked(&line.a, "10.1.0.1:1", Some(0x7296));
    marked.send(path(&marked, to), 0, b"x").unwrap_err();
    let plain = bind(&line.a, "10.1.0.1:3");
    plain.send(path(&plain, to), 0, b"x").unwrap();
}

#[test]
fn a_taken_port_is_an_error_that_names_its_owner() {
    let namespace = NetNs::new().unwrap();
    let _first = bind(&namespace, "0.0.0.0:4500");
    let second = namespace.enter(|| Datagrams::udp(address("0.0.0.0:4500"), None));
    let error = second.unwrap().err().unwrap();
    assert!(matches!(error, Error::PortTaken { port: 4500, .. }));
    let text = error.to_string();
    let process = format!("(process {})", std::process::id());
    assert!(
        text.starts_with("UDP port 4500 is already taken by "),
        "{text}"
    );
    assert!(text.contains(&process), "{text}");
    assert!(text.contains("[listen]"), "{text}");
}

#[test]
fn a_socket_receives_at_an_address_that_its_interface_gets_later() {
    let line = Line::new();
    for (near, later, interface) in [
        ("10.1.0.1:1", "10.1.0.9:500", "10.1.0.9/24"),
        ("[fd01::1]:1", "[fd01::9]:500", "fd01::9/64"),
    ] {
        let near = bind(&line.a, near);
        let mut far = bind(&line.b, later);
        assert_eq!(far.local(), address(later));
        // Until then it cannot send.
        far.send(path(&far, &near.local().to_string()), 0, b"early")
            .unwrap_err();
        give(&line.b, "vb", &[interface]);
        near.send(path(&near, later), 0, b"there").unwrap();
        let (arrival, payload) = await_datagram(&mut far);
        assert_eq!(payload, b"there");
        assert_eq!(arrival.path.local, address(later));
    }
}

/// Returns the datagrams that each of three sockets with one port receives, for payloads that begin
/// with these octets.
fn shared_out(family: Family, payloads: &[&[u8]]) -> [Vec<Vec<u8>>; 3] {
    let line = Line::new();
    let (from, to) = match family {
        Family::V4 => ("10.1.0.1:1", "10.1.0.2:4500"),
        Family::V6 => ("[fd01::1]:1", "[fd01::2]:4500"),
    };
    let near = bind(&line.a, from);
    let beside = || Datagrams::udp_beside(address(to), None).unwrap();
    let mut sockets = [(); 3].map(|()| line.b.enter(beside).unwrap());
    sockets[0].share_out(3).unwrap();
    for payload in payloads {
        near.send(path(&near, to), 0, payload).unwrap();
    }
    let mut got = [const { Vec::new() }; 3];
    until("all of them", || {
        for (socket, got) in sockets.iter_mut().zip(&mut got) {
            // There may be nothing.
            let _ = socket.recv(|_, payload| got.push(payload.to_vec()));
        }
        got.iter().map(Vec::len).sum::<usize>() == payloads.len()
    });
    got
}

#[test]
fn what_comes_is_shared_out_by_what_remains_of_its_first_four_octets() {
    let payloads: Vec<_> = (1000..1030_u32)
        .map(|spi| [&spi.to_be_bytes(), &b"rest"[..]].concat())
        .collect();
    let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    for family in Family::ALL {
        let got = shared_out(family, &payloads);
        for (number, got) in got.iter().enumerate() {
            let of_number = (1000..1030_u32).filter(|spi| *spi as usize % 3 == number);
            let octets = of_number.map(|spi| [&spi.to_be_bytes(), &b"rest"[..]].concat());
            assert!(got.iter().cloned().eq(octets), "{family}, {number}");
        }
    }
}

/// Payloads without four octets, such as a keepalive (RFC 3948 section 2.3), or with zeros, such as
/// before IKE (section 2.2).
#[test]
fn what_has_no_number_is_for_the_first_socket() {
    let payloads: [&[u8]; 3] = [&[0xff], &[0; 40], &[9, 9, 9]];
    for family in Family::ALL {
        assert_eq!(
            shared_out(family, &payloads).map(|got| got.len()),
            [3, 0, 0]
        );
    }
}

/// The rule holds after the others are closed, for every number.
#[test]
fn the_socket_that_is_left_gets_everything() {
    let line = Line::new();
    let (near, to) = (bind(&line.a, "10.1.0.1:1"), "10.1.0.2:4500");
    let beside = || Datagrams::udp_beside(address(to), None).unwrap();
    let mut first = line.b.enter(beside).unwrap();
    first.share_out(2).unwrap();
    drop(line.b.enter(beside).unwrap());
    for spi in [1000_u32, 1001] {
        near.send(path(&near, to), 0, &spi.to_be_bytes()).unwrap();
        assert_eq!(await_datagram(&mut first).1, spi.to_be_bytes());
    }
}

#[test]
fn a_port_that_is_not_shared_is_taken() {
    let namespace = NetNs::new().unwrap();
    let _alone = bind(&namespace, "0.0.0.0:4500");
    let beside = || Datagrams::udp_beside(address("0.0.0.0:4500"), None);
    let taken = namespace.enter(beside).unwrap();
    assert!(matches!(taken.err(), Some(Error::PortTaken { .. })));
}
