//! Messages of neighbours before any route leads to them: router discovery, and a UDP port.

use crate::line::{await_readable, bind, comes, give};
use os::discovery::{ALL_HOSTS, ALL_ROUTERS, LINK_ONLY, Role};
use os::{Datagrams, Discovery, Ends, Error, LinkAddress, LocalUdp, NetNs, Tun, netns};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// A router, and a host on its link without an address of that link. Neither has a route.
struct Meeting {
    router: NetNs,
    host: NetNs,
}

const ROUTER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 7);

/// As in RFC 1256, without an extension; its content is not checked here.
const ADVERTISEMENT: &[u8] = &[9, 0, 0, 0, 1, 2, 0, 30, 198, 51, 100, 2, 0, 0, 0, 0];
const SOLICITATION: &[u8] = &[10, 0, 0xf5, 0xff, 0, 0, 0, 0];

impl Meeting {
    fn new(rp_filter: &str) -> Self {
        let meeting = Self {
            router: NetNs::new().unwrap(),
            host: NetNs::new().unwrap(),
        };
        for host in [&meeting.router, &meeting.host] {
            for of in ["all", "default"] {
                let name = format!("net.ipv4.conf.{of}.rp_filter");
                host.sysctl(&name, rp_filter).unwrap();
            }
        }
        netns::veth(&meeting.router, "r", &meeting.host, "h").unwrap();
        give(&meeting.router, "r", &["198.51.100.2/24"]);
        give(&meeting.host, "lo", &["10.66.0.7/32"]);
        meeting
    }

    fn discovery(&self) -> [Discovery; 2] {
        let open = |host: &NetNs, interface, role| {
            host.enter(|| Discovery::open(interface, role))
                .unwrap()
                .unwrap()
        };
        [
            open(&self.router, "r", Role::Router),
            open(&self.host, "h", Role::Host),
        ]
    }

    fn local_udp(&self) -> [LocalUdp; 2] {
        [local_udp(&self.router, "r"), local_udp(&self.host, "h")]
    }
}

fn local_udp(host: &NetNs, interface: &str) -> LocalUdp {
    host.enter(|| LocalUdp::open(interface, 434))
        .unwrap()
        .unwrap()
}

/// Returns the addresses and the content of the next message.
fn heard(discovery: &mut Discovery) -> (Ends, Vec<u8>) {
    await_readable(discovery);
    let mut heard = None;
    let read = discovery.recv(|ends, message| heard = Some((ends, message.to_vec())));
    read.unwrap();
    heard.unwrap()
}

fn came(local_udp: &mut LocalUdp) -> (Ends, u16, Vec<u8>) {
    await_readable(local_udp);
    let mut came = None;
    let read = local_udp.recv(|ends, port, payload| came = Some((ends, port, payload.to_vec())));
    read.unwrap();
    came.unwrap()
}

/// Checks that nothing arrives within a short time.
fn assert_silent(what: &impl AsFd) {
    assert!(!comes(what, false));
}

/// Returns the addresses of a packet to or from a station.
const fn ends(source: Ipv4Addr, destination: Ipv4Addr, link: LinkAddress, ttl: u8) -> Ends {
    Ends {
        source,
        destination,
        link,
        ttl,
    }
}

#[test]
fn a_host_and_a_router_without_routes_to_each_other_hear_each_other_however_paths_are_checked() {
    for rp_filter in ["0", "1", "2"] {
        let meeting = Meeting::new(rp_filter);
        let [mut router, mut host] = meeting.discovery();
        host.send_to_all(HOST, ALL_ROUTERS, SOLICITATION).unwrap();
        let (asked, message) = heard(&mut router);
        assert_eq!(message, SOLICITATION);
        assert_eq!(asked, ends(HOST, ALL_ROUTERS, asked.link, LINK_ONLY));
        for to in [ALL_HOSTS, Ipv4Addr::BROADCAST] {
            router.send_to_all(ROUTER, to, ADVERTISEMENT).unwrap();
            let (told, message) = heard(&mut host);
            assert_eq!(message, ADVERTISEMENT);
            assert_eq!(told, ends(ROUTER, to, told.link, LINK_ONLY));
        }
        let answer = ends(ROUTER, HOST, asked.link, LINK_ONLY);
        router.send(answer, ADVERTISEMENT).unwrap();
        let (told, _) = heard(&mut host);
        assert_eq!(told, ends(ROUTER, HOST, told.link, LINK_ONLY));
    }
}

/// The control: the kernel's ICMP socket receives nothing from a neighbour without a route to it.
#[test]
fn where_paths_are_checked_the_kernel_itself_hears_nothing() {
    for (rp_filter, hears) in [("0", true), ("1", false), ("2", false)] {
        let meeting = Meeting::new(rp_filter);
        let [router, mut host] = meeting.discovery();
        let icmp = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
        let icmp = meeting.host.enter(icmp).unwrap();
        router
            .send_to_all(ROUTER, ALL_HOSTS, ADVERTISEMENT)
            .unwrap();
        heard(&mut host);
        assert_eq!(comes(&icmp, hears), hears);
    }
}

#[test]
fn nothing_wakes_who_waits_but_the_message_that_is_waited_for() {
    let meeting = Meeting::new("0");
    let [router, host] = meeting.discovery();
    // A socket's own message, which only the other role receives.
    host.send_to_all(HOST, ALL_ROUTERS, ADVERTISEMENT).unwrap();
    router.send_to_all(ROUTER, ALL_HOSTS, SOLICITATION).unwrap();
    assert_silent(&router);
    assert_silent(&host);
    // Another type of ICMP, another protocol, and a packet to another station.
    let echo = [8, 0, 0, 0, 0, 1, 0, 1];
    router.send_to_all(ROUTER, ALL_HOSTS, &echo).unwrap();
    let [port, _] = meeting.local_udp();
    let all = ends(ROUTER, ALL_HOSTS, LinkAddress::of_group(ALL_HOSTS), 1);
    port.send(all, 9, ADVERTISEMENT).unwrap();
    let strangers = ends(ROUTER, HOST, LinkAddress([2, 0, 0, 0, 0, 9]), 1);
    router.send(strangers, ADVERTISEMENT).unwrap();
    assert_silent(&host);
}

#[test]
fn a_request_comes_with_its_time_to_live_and_the_answer_finds_back_without_a_route() {
    for rp_filter in ["0", "1", "2"] {
        let meeting = Meeting::new(rp_filter);
        let [mut router, mut host] = meeting.local_udp();
        for ttl in [1, 64, 255] {
            let request = ends(HOST, ROUTER, LinkAddress::BROADCAST, ttl);
            host.send(request, 434, b"request").unwrap();
            let (asked, port, payload) = came(&mut router);
            assert_eq!((port, payload.as_slice()), (434, &b"request"[..]));
            assert_eq!(asked, ends(HOST, ROUTER, asked.link, ttl));
            let reply = ends(ROUTER, HOST, asked.link, 64);
            router.send(reply, port, b"reply").unwrap();
            let (told, port, payload) = came(&mut host);
            assert_eq!((port, payload.as_slice()), (434, &b"reply"[..]));
            assert_eq!(told, ends(ROUTER, HOST, told.link, 64));
            // From here on to the station itself, as after an advertisement.
            host.send(ends(HOST, ROUTER, told.link, ttl), 434, b"again")
                .unwrap();
            assert_eq!(came(&mut router).2, b"again");
        }
    }
}

/// The kernel accepts sent datagrams, and its own datagrams, which leave the checksum to the
/// device, are read.
#[test]
fn a_socket_of_the_kernel_s_is_understood_and_understands() {
    let meeting = Meeting::new("0");
    give(&meeting.host, "h", &["198.51.100.7/24"]);
    let [mut router, _] = meeting.local_udp();
    let theirs = || UdpSocket::bind("198.51.100.7:5000").unwrap();
    let theirs = meeting.host.enter(theirs).unwrap();
    theirs
        .set_read_timeout(Some(crate::line::PATIENCE))
        .unwrap();
    for payload in [&b""[..], b"odd", &[0xa5; 1400]] {
        theirs.send_to(payload, "198.51.100.2:434").unwrap();
        let (asked, port, octets) = came(&mut router);
        assert_eq!((port, octets.as_slice()), (5000, payload));
        let reply = ends(ROUTER, asked.source, asked.link, 64);
        router.send(reply, port, payload).unwrap();
        let mut octets = [0; 2000];
        let (len, from) = theirs.recv_from(&mut octets).unwrap();
        assert_eq!(&octets[..len], payload);
        assert_eq!(from, SocketAddr::from((ROUTER, 434)));
    }
}

#[test]
fn what_was_changed_on_the_way_is_not_shown() {
    let meeting = Meeting::new("0");
    let [mut router, _] = meeting.local_udp();
    // A packet with an invalid UDP checksum, 1.
    let raw = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(17))).unwrap();
    give(&meeting.host, "h", &["198.51.100.7/24"]);
    let raw = meeting.host.enter(raw).unwrap();
    let mut segment = [1, 0xb2, 1, 0xb2, 0, 12, 0, 1, 1, 2, 3, 4];
    let to = SocketAddr::from((ROUTER, 0)).into();
    raw.send_to(&segment, &to).unwrap();
    await_readable(&router);
    let shown = router.recv(|_, _, payload| panic!("{payload:?}"));
    shown.unwrap();
    // A packet without a checksum (RFC 768) is valid; one with a length beyond its end is not.
    segment[7] = 0;
    raw.send_to(&segment, &to).unwrap();
    assert_eq!(came(&mut router).2, [1, 2, 3, 4]);
    segment[5] = 13;
    raw.send_to(&segment, &to).unwrap();
    await_readable(&router);
    let shown = router.recv(|_, _, payload| panic!("{payload:?}"));
    shown.unwrap();
}

#[test]
fn each_interface_has_the_port_for_itself_and_nobody_else_takes_it() {
    let meeting = Meeting::new("1");
    netns::veth(&meeting.router, "r2", &meeting.host, "h2").unwrap();
    let [mut first, one] = meeting.local_udp();
    let (mut second, other) = (
        local_udp(&meeting.router, "r2"),
        local_udp(&meeting.host, "h2"),
    );
    let request = ends(HOST, ROUTER, LinkAddress::BROADCAST, 255);
    for (host, payload) in [(&one, b"first"), (&other, b"other")] {
        host.send(request, 434, payload).unwrap();
    }
    assert_eq!(came(&mut first).2, b"first");
    assert_eq!(came(&mut second).2, b"other");
    assert_silent(&first);
    let taken = meeting.router.enter(|| LocalUdp::open("r", 434)).unwrap();
    assert!(matches!(
        taken.err(),
        Some(Error::PortTaken { port: 434, .. })
    ));
}

/// Routed peers reach a socket of that address. It receives neighbours' datagrams too, and a
/// process with both sockets can distinguish them.
#[test]
fn beside_neighbours_the_port_of_one_address_is_for_whom_routes_lead_to() {
    let meeting = Meeting::new("0");
    give(&meeting.host, "h", &["198.51.100.7/24"]);
    let address = SocketAddr::from((ROUTER, 434));
    let open = || {
        let neighbours = LocalUdp::open_beside("r", 434).unwrap();
        (neighbours, Datagrams::udp_beside(address, None).unwrap())
    };
    let (mut neighbours, mut routed) = meeting.router.enter(open).unwrap();
    let theirs = || UdpSocket::bind("198.51.100.7:5000").unwrap();
    let theirs = meeting.host.enter(theirs).unwrap();
    theirs.send_to(b"who is there", address).unwrap();
    assert_eq!(came(&mut neighbours).2, b"who is there");
    await_readable(&routed);
    let mut heard = Vec::new();
    routed
        .recv(|arrival, octets| heard.push((arrival.path.remote, octets.to_vec())))
        .unwrap();
    let from = SocketAddr::from(([198, 51, 100, 7], 5000));
    assert_eq!(heard, [(from, b"who is there".to_vec())]);
    let taken = meeting.router.enter(|| Datagrams::udp(address, None));
    assert!(matches!(
        taken.unwrap().err(),
        Some(Error::PortTaken { port: 434, .. })
    ));
}

/// The kernel's socket does not receive these datagrams; it would return them again, or report an
/// unreachable port.
#[test]
fn neighbours_are_not_told_that_the_port_is_closed() {
    let meeting = Meeting::new("0");
    give(&meeting.host, "h", &["198.51.100.7/24"]);
    let [mut router, _] = meeting.local_udp();
    let theirs = || {
        let socket = UdpSocket::bind("198.51.100.7:5000").unwrap();
        socket.connect("198.51.100.2:434").unwrap();
        socket
    };
    let theirs = meeting.host.enter(theirs).unwrap();
    theirs.send(b"who is there").unwrap();
    assert_eq!(came(&mut router).2, b"who is there");
    assert_silent(&theirs);
    drop(router);
    theirs.send(b"and now").unwrap();
    await_readable(&theirs);
    assert!(theirs.recv(&mut [0; 9]).is_err(), "it is told");
}

#[test]
fn an_interface_that_goes_down_and_comes_back_is_heard_again() {
    let meeting = Meeting::new("1");
    let [router, mut host] = meeting.discovery();
    let netlink = meeting.host.netlink().unwrap();
    netlink.link_down("h").unwrap();
    let down = host.send_to_all(HOST, ALL_ROUTERS, SOLICITATION);
    assert!(down.is_err());
    host.recv(|_, message| panic!("{message:?}")).unwrap();
    netlink.link_up("h").unwrap();
    router
        .send_to_all(ROUTER, ALL_HOSTS, ADVERTISEMENT)
        .unwrap();
    assert_eq!(heard(&mut host).1, ADVERTISEMENT);
}

#[test]
fn an_interface_that_is_gone_is_told_when_something_is_sent() {
    let meeting = Meeting::new("1");
    let [_router, mut host] = meeting.discovery();
    let netlink = meeting.host.netlink().unwrap();
    netlink.delete_link("h").unwrap();
    // The socket reports once that the interface is down.
    host.recv(|_, message| panic!("{message:?}")).unwrap();
    let gone = host.send_to_all(HOST, ALL_ROUTERS, SOLICITATION);
    assert!(gone.is_err());
}

#[test]
fn a_message_that_is_too_long_for_the_link_is_refused() {
    let meeting = Meeting::new("1");
    let [router, _] = meeting.local_udp();
    let to = ends(ROUTER, HOST, LinkAddress::BROADCAST, 255);
    for len in [1473, 65_508, 100_000] {
        let refused = router.send(to, 434, &vec![0; len]).unwrap_err();
        assert!(os::is_too_long(&refused), "{refused}");
    }
    router.send(to, 434, &[0; 1472]).unwrap();
}

#[test]
fn an_interface_without_ethernet_or_that_is_not_there_is_named() {
    let host = NetNs::new().unwrap();
    let tun = host.enter(|| Tun::open("t0", 1400).unwrap()).unwrap();
    let open = |name| host.enter(|| Discovery::open(name, Role::Host)).unwrap();
    let refused = open(tun.name()).err().unwrap();
    assert!(
        matches!(&refused, Error::NoEthernet { interface } if interface == "t0"),
        "{refused}"
    );
    let refused = open("wlan7").err().unwrap().to_string();
    assert!(refused.contains("wlan7"), "{refused}");
    let _other = bind(&host, "0.0.0.0:434");
    let taken = host.enter(|| LocalUdp::open("lo", 434)).unwrap();
    assert!(matches!(taken.err(), Some(Error::PortTaken { .. })));
}
