use crate::line::{
    PATIENCE, address, await_datagram, await_datagrams, await_readable, bind, give, ip, path,
    readable_within, rules_and_routes, until,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use os::divert::{self, Options, Side};
use os::netlink::{Route, Via};
use os::{Datagrams, Divert, Error, Family, NetNs, Prefix, netns};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::time::Duration;

/// A mobile node, the licensed node and a gateway in a row; only the licensed node has special
/// routing.
pub struct Row {
    pub mobile: NetNs,
    pub node: NetNs,
    pub gateway: NetNs,
}

impl Row {
    pub fn new(rp_filter: &str) -> Self {
        let row = Self {
            mobile: NetNs::new().unwrap(),
            node: NetNs::new().unwrap(),
            gateway: NetNs::new().unwrap(),
        };
        for of in ["all", "default"] {
            let name = format!("net.ipv4.conf.{of}.rp_filter");
            row.node.sysctl(&name, rp_filter).unwrap();
        }
        row.node.sysctl("net.ipv4.ip_forward", "1").unwrap();
        row.node
            .sysctl("net.ipv6.conf.all.forwarding", "1")
            .unwrap();
        netns::veth(&row.mobile, "m", &row.node, "wl0").unwrap();
        netns::veth(&row.gateway, "g", &row.node, "eth0").unwrap();
        give(&row.mobile, "m", &["10.1.0.1/24", "fd01::1/64"]);
        give(&row.node, "wl0", &["10.1.0.2/24", "fd01::2/64"]);
        give(&row.node, "eth0", &["10.2.0.2/24", "fd02::2/64"]);
        give(&row.gateway, "g", &["10.2.0.1/24", "fd02::1/64"]);
        for (host, gateways) in [
            (&row.mobile, ["10.1.0.2", "fd01::2"]),
            (&row.gateway, ["10.2.0.2", "fd02::2"]),
        ] {
            let netlink = host.netlink().unwrap();
            for gateway in gateways.map(ip) {
                let everything = Prefix::everything(Family::from_address(gateway));
                let route = Route::new(everything, Via::Gateway(gateway));
                netlink.add_route(&route).unwrap();
            }
        }
        row
    }

    pub fn divert(&self) -> Divert {
        self.open(&OPTIONS).unwrap()
    }

    pub fn open(&self, options: &Options<'_>) -> Result<Divert, Error> {
        self.node.enter(|| Divert::open(options)).unwrap()
    }
}

pub const OPTIONS: Options<'_> = Options {
    wired: "eth0",
    wireless: "wl0",
    clear_tcp: false,
    offload: true,
};

// Weakness: 120
#[test]
fn what_another_program_removes_is_missing_and_put_back() {
    let row = Row::new("0");
    let mut divert = row.divert();
    for (from, to) in [("10.1.0.1", "10.2.0.1"), ("fd01::1", "fd02::1")] {
        divert.learn(Side::Wireless, ip(from), ip(to)).unwrap();
    }
    let netlink = row.node.netlink().unwrap();
    let address = |name: &str| netlink.addresses(name).unwrap()[0];
    let removals: [&dyn Fn(); 3] = [
        &|| {
            let rules = divert::PRIORITY..=divert::PRIORITY;
            assert!(netlink.cleanup(7291, rules).unwrap() > 0);
        },
        &|| netlink.link_down("strata-wireless").unwrap(),
        &|| {
            netlink
                .drop_address("strata-wired", address("strata-wired"))
                .unwrap()
        },
    ];
    let before = (netlink.rules().unwrap(), netlink.routes(7291).unwrap());
    for (turn, removal) in removals.into_iter().enumerate() {
        assert_eq!(divert.missing().unwrap(), [""; 0], "before {turn}");
        removal();
        assert_ne!(divert.missing().unwrap(), [""; 0], "{turn}");
        divert.restore().unwrap();
    }
    assert_eq!(divert.missing().unwrap(), [""; 0]);
    let after = (netlink.rules().unwrap(), netlink.routes(7291).unwrap());
    assert_eq!((after.0.len(), after.1), (before.0.len(), before.1));
}

/// A packet as the licensed node sees it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    from: Side,
    length: usize,
    hop_limit: u8,
}

/// Waits for a packet on either side and returns it. A TUN may be readable although its packet is
/// dropped.
fn take(divert: &mut Divert) -> (Side, Vec<u8>) {
    let (side, count) = read(divert);
    assert_eq!(count, 1);
    (side, divert.passage.packet(0).to_vec())
}

/// Waits for packets on either side and reads once.
pub fn read(divert: &mut Divert) -> (Side, usize) {
    loop {
        for side in Side::ALL {
            if let Ok(count) = divert.passage.recv(side) {
                return (side, count);
            }
        }
        let tuns = Side::ALL.map(|side| divert.passage.device(side).as_fd());
        let mut fds = tuns.map(|tun| PollFd::new(tun, PollFlags::POLLIN));
        let patience = PollTimeout::try_from(PATIENCE).unwrap();
        assert!(
            poll(&mut fds, patience).unwrap() > 0,
            "nothing was diverted"
        );
    }
}

fn forward_one(divert: &mut Divert) -> Seen {
    let (from, packet) = take(divert);
    divert.passage.pass(0);
    assert_eq!(divert.passage.flush(), 0);
    Seen {
        from,
        length: packet.len(),
        hop_limit: packet[if packet[0] >> 4 == 4 { 8 } else { 7 }],
    }
}

fn assert_idle(divert: &mut Divert) {
    for side in Side::ALL {
        let result = divert.passage.recv(side);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

/// Addresses of mobile node and gateway, and the length of headers before the UDP payload.
const FAMILIES: [(&str, &str, usize); 2] =
    [("10.1.0.1", "10.2.0.1", 28), ("[fd01::1]", "[fd02::1]", 48)];

/// Sends one datagram in each direction, which must pass through the node.
fn exchange(divert: &mut Divert, mobile: &mut Datagrams, gateway: &mut Datagrams, headers: usize) {
    let there = path(mobile, &gateway.local().to_string());
    mobile.send(there, 0, b"there").unwrap();
    let seen = forward_one(divert);
    assert_eq!((seen.from, seen.length), (Side::Wireless, headers + 5));
    let (arrival, payload) = await_datagram(gateway);
    assert_eq!(payload, b"there");
    gateway.send(arrival.path, 0, b"back").unwrap();
    let seen = forward_one(divert);
    assert_eq!((seen.from, seen.length), (Side::Wired, headers + 4));
    assert_eq!(await_datagram(mobile).1, b"back");
}

#[test]
fn packets_pass_through_whatever_the_reverse_path_check() {
    for rp_filter in ["0", "1", "2"] {
        let row = Row::new(rp_filter);
        let mut divert = row.divert();
        assert_eq!(divert.families(), Family::ALL);
        for (near, far, headers) in FAMILIES {
            // Behind a NAT the mobile node's port differs; the gateway's does not.
            for port in [4500, 40_000] {
                let mut mobile = bind(&row.mobile, &format!("{near}:{port}"));
                let mut gateway = bind(&row.gateway, &format!("{far}:4500"));
                exchange(&mut divert, &mut mobile, &mut gateway, headers);
            }
        }
        assert_idle(&mut divert);
    }
}

#[test]
fn written_back_on_the_side_it_came_from_a_packet_fails_the_strict_check() {
    let row = Row::new("1");
    let mut divert = row.divert();
    let mobile = bind(&row.mobile, "10.1.0.1:4500");
    let mut gateway = bind(&row.gateway, "10.2.0.1:4500");
    for right in [false, true] {
        let payload = [u8::from(right); 3];
        mobile
            .send(path(&mobile, "10.2.0.1:4500"), 0, &payload)
            .unwrap();
        let (from, packet) = take(&mut divert);
        let to = if right { from.opposite() } else { from };
        divert.passage.send(to, &packet);
        assert_eq!(divert.passage.flush(), 0);
    }
    assert_eq!(await_datagram(&mut gateway).1, [1; 3]);
}

#[test]
fn the_detour_costs_no_hop_more_than_a_router() {
    let row = Row::new("2");
    let mut divert = row.divert();
    let mobile = bind(&row.mobile, "10.1.0.1:4500");
    mobile
        .send(path(&mobile, "10.2.0.1:4500"), 0, b"x")
        .unwrap();
    assert_eq!(forward_one(&mut divert).hop_limit, 64);
}

#[test]
fn esp_without_udp_is_diverted_too() {
    for rp_filter in ["0", "1", "2"] {
        let row = Row::new(rp_filter);
        let mut divert = row.divert();
        let raw = |domain| Socket::new(domain, Type::RAW, Some(Protocol::from(50))).unwrap();
        for (domain, to) in [(Domain::IPV4, "10.2.0.1:0"), (Domain::IPV6, "[fd02::1]:0")] {
            let mobile = row.mobile.enter(|| raw(domain)).unwrap();
            let mut gateway = row.gateway.enter(|| raw(domain)).unwrap();
            mobile.send_to(&[9; 60], &address(to).into()).unwrap();
            assert_eq!(forward_one(&mut divert).from, Side::Wireless);
            await_readable(&gateway);
            let mut packet = [0; 200];
            let length = gateway.read(&mut packet).unwrap();
            assert!(packet[..length].ends_with(&[9; 60]));
        }
    }
}

#[test]
fn fragments_follow_once_the_pair_is_learnt() {
    for rp_filter in ["0", "1", "2"] {
        let row = Row::new(rp_filter);
        let mut divert = row.divert();
        for (near, far, _) in FAMILIES {
            let mobile = bind(&row.mobile, &format!("{near}:40000"));
            let mut gateway = bind(&row.gateway, &format!("{far}:4500"));
            let (near, far) = (mobile.local().ip(), gateway.local().ip());
            let there = path(&mobile, &gateway.local().to_string());
            // Rules see no port in a fragment, not even in the first.
            mobile.send(there, 0, &[1; 4000]).unwrap();
            assert_eq!(await_datagram(&mut gateway).1, [1; 4000]);
            assert_idle(&mut divert);
            assert!(divert.learn(Side::Wireless, near, far).unwrap());
            assert!(
                !divert.learn(Side::Wired, far, near).unwrap(),
                "known from either side"
            );
            mobile.send(there, 0, &[2; 4000]).unwrap();
            for _ in 0..3 {
                assert_eq!(forward_one(&mut divert).from, Side::Wireless);
            }
            assert_eq!(await_datagram(&mut gateway).1, [2; 4000]);
            gateway
                .send(path(&gateway, &mobile.local().to_string()), 0, &[3; 4000])
                .unwrap();
            for _ in 0..3 {
                assert_eq!(forward_one(&mut divert).from, Side::Wired);
            }
            divert.forget(Side::Wired, far, near).unwrap();
            mobile.send(there, 0, &[4; 4000]).unwrap();
            assert_eq!(await_datagram(&mut gateway).1, [4; 4000]);
            assert_idle(&mut divert);
        }
    }
}

#[test]
fn learnt_pairs_are_bounded() {
    let row = Row::new("0");
    let mut divert = row.divert();
    let mut learn = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let host = std::net::Ipv4Addr::new(10, 3, high, low);
        divert.learn(Side::Wireless, host.into(), ip("10.2.0.1"))
    };
    for number in 0..256 {
        assert!(learn(number).unwrap());
    }
    assert!(!learn(7).unwrap(), "a known one needs no room");
    assert!(matches!(learn(256), Err(Error::Limit { limit: 256, .. })));
}

#[test]
fn other_packets_and_those_for_the_node_itself_pass_by() {
    let row = Row::new("2");
    let mut divert = row.divert();
    let mobile = bind(&row.mobile, "10.1.0.1:4500");
    let mut node = bind(&row.node, "0.0.0.0:4500");
    mobile
        .send(path(&mobile, "10.1.0.2:4500"), 0, b"ike")
        .unwrap();
    assert_eq!(await_datagram(&mut node).1, b"ike");
    let other = bind(&row.mobile, "10.1.0.1:5000");
    let mut gateway = bind(&row.gateway, "10.2.0.1:5000");
    other
        .send(path(&other, "10.2.0.1:5000"), 0, b"dns")
        .unwrap();
    assert_eq!(await_datagram(&mut gateway).1, b"dns");
    assert_idle(&mut divert);
}

#[test]
fn clear_tcp_is_diverted_only_on_request() {
    for clear_tcp in [false, true] {
        let row = Row::new("1");
        let options = Options {
            clear_tcp,
            ..OPTIONS
        };
        let mut divert = row.open(&options).unwrap();
        let listen = || std::net::TcpListener::bind("10.2.0.1:80");
        let listener = row.gateway.enter(listen).unwrap().unwrap();
        let client = row.mobile.enter(|| {
            let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            client.set_nonblocking(true).unwrap();
            client
        });
        let client = client.unwrap();
        let _in_progress = client.connect(&address("10.2.0.1:80").into());
        if clear_tcp {
            let handshake = [Side::Wireless, Side::Wired];
            assert_eq!(handshake.map(|_| forward_one(&mut divert).from), handshake);
            assert_eq!(forward_one(&mut divert).from, Side::Wireless);
        }
        await_readable(&listener);
        let _connection = listener.accept().unwrap();
        assert_idle(&mut divert);
    }
}

#[test]
fn after_the_end_packets_take_the_ordinary_way() {
    let row = Row::new("1");
    let netlink = row.node.netlink().unwrap();
    let before = (netlink.rules().unwrap(), netlink.links().unwrap());
    let mobile = bind(&row.mobile, "10.1.0.1:4500");
    let mut gateway = bind(&row.gateway, "10.2.0.1:4500");
    // A datagram in transit may be lost with the device, so each pass sends until one arrives.
    let mut passes = |octet| {
        until("a datagram", || {
            let to = path(&mobile, "10.2.0.1:4500");
            mobile.send(to, 0, &[octet]).unwrap();
            readable_within(&gateway, Duration::from_millis(100))
                && (await_datagrams(&mut gateway).iter()).any(|(_, payload)| *payload == [octet])
        });
    };
    // After a kill the rules stay without effect, and the next start removes them.
    drop(row.divert());
    passes(1);
    assert!(netlink.rules().unwrap().len() > before.0.len());
    row.divert().close().unwrap();
    passes(2);
    let after = (netlink.rules().unwrap(), netlink.links().unwrap());
    assert_eq!(before, after);
    for table in [7291, 7292] {
        assert_eq!(rules_and_routes(&netlink, table), (0, 0));
    }
}

// Refuses: licensed-node
#[test]
fn a_machine_that_does_not_forward_is_told_how() {
    let row = Row::new("0");
    row.node
        .sysctl("net.ipv6.conf.all.forwarding", "0")
        .unwrap();
    assert_eq!(row.divert().families(), [Family::V4]);
    row.node
        .sysctl("net.ipv6.conf.all.disable_ipv6", "1")
        .unwrap();
    assert_eq!(row.divert().families(), [Family::V4]);
    row.node.sysctl("net.ipv4.ip_forward", "0").unwrap();
    let error = row.open(&OPTIONS).err().unwrap();
    assert!(
        error
            .to_string()
            .contains("sysctl -w net.ipv4.ip_forward=1"),
        "{error}"
    );
}

// Recovers: licensed-node
#[test]
fn an_interface_may_come_later_and_come_back() {
    let row = Row::new("0");
    let options = Options {
        wired: "eth7",
        ..OPTIONS
    };
    let mut divert = row.open(&options).unwrap();
    let netlink = row.node.netlink().unwrap();
    for _ in 0..2 {
        let far = NetNs::new().unwrap();
        netns::veth(&far, "far", &row.node, "eth7").unwrap();
        give(&row.node, "eth7", &["10.7.0.2/24"]);
        give(&far, "far", &["10.7.0.1/24"]);
        let everything = Prefix::everything(Family::V4);
        let route = Route::new(everything, Via::Gateway(ip("10.7.0.2")));
        far.netlink().unwrap().add_route(&route).unwrap();
        let sender = bind(&far, "10.7.0.1:4500");
        sender
            .send(path(&sender, "10.1.0.1:4500"), 0, b"esp")
            .unwrap();
        await_readable(divert.passage.device(Side::Wired));
        let read = divert.passage.recv(Side::Wired).unwrap();
        assert!(read > 0);
        assert_eq!(divert.missing().unwrap(), Vec::<String>::new());
        netlink.delete_link("eth7").unwrap();
    }
}
