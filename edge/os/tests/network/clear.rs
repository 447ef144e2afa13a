//! Packets of host `b`, over the cable and out of host `a`'s tunnel.

use crate::line::{Line, address, await_datagram, bind, give, ip, path, readable_within, until};
use model::Path;
use os::clear::{self, Flow, Guard, Ports, Source, Target};
use os::netlink::{Route, Via};
use os::routes::Service;
use os::{Changes, Datagrams, NetNs, Prefix, Tun, netns, sysctl};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

const ALL: Ports = Ports {
    first: 0,
    last: u16::MAX,
};

/// Addresses that are reachable only through a tunnel: those of peers, at `b`, and ours.
const PEERS: [&str; 2] = ["10.8.0.9", "fd08::9"];
const OURS: [&str; 2] = ["10.1.0.1", "fd01::1"];

fn flow(source: &str, first: &str, last: &str) -> Flow {
    Flow {
        source: source.parse().unwrap(),
        target: Target {
            first: ip(first),
            last: ip(last),
            protocol: 0,
            from: ALL,
            to: ALL,
        },
    }
}

fn guard() -> Guard {
    Guard {
        device: "t0".into(),
        protected: BTreeSet::from([
            flow("10.8.0.0/16", "10.1.0.1", "10.1.0.1"),
            flow("fd08::/64", "fd01::1", "fd01::ffff"),
        ]),
        ports: vec![4500],
        ..Guard::default()
    }
}

fn nft(host: &NetNs, line: &str) {
    let mut command = host.command("nft");
    let status = command.arg(line).status().unwrap();
    assert!(status.success(), "nft {line}");
}

/// A line whose host `b` has the peers' addresses, and `a` a filter.
struct Guarded {
    line: Line,
}

impl Guarded {
    fn new(guard: &Guard) -> Self {
        let line = Line::new();
        give(&line.b, "vb", &["10.8.0.9/32", "fd08::9/128"]);
        line.a.enter(|| guard.start().unwrap()).unwrap();
        Self { line }
    }

    fn set(&self, guard: &Guard) {
        self.line.a.enter(|| guard.set().unwrap()).unwrap();
    }

    fn dropped(&self) -> Option<u64> {
        self.line.a.enter(|| clear::dropped().unwrap()).unwrap()
    }

    fn sources(&self) -> Vec<Source> {
        self.line.a.enter(|| clear::sources().unwrap()).unwrap()
    }

    /// Sends from an address of `b` to one of `a`; returns true if the packet arrived, false if it
    /// was dropped.
    fn arrives(&self, from: &str, to: &str) -> bool {
        let mut at = bind(&self.line.a, to);
        let before = self.dropped();
        let sender = bind(&self.line.b, from);
        sender.send(path(&sender, to), 0, b"claim").unwrap();
        until("a verdict", || {
            readable_within(&at, Duration::ZERO) || self.dropped() != before
        });
        let arrived = readable_within(&at, Duration::ZERO);
        if arrived {
            await_datagram(&mut at);
        }
        arrived
    }

    fn arrives_in_each_family(&self) -> [bool; 2] {
        [0, 1].map(|family| {
            let at = |address: &str, port| match address.parse::<IpAddr>().unwrap() {
                IpAddr::V4(v4) => format!("{v4}:{port}"),
                IpAddr::V6(v6) => format!("[{v6}]:{port}"),
            };
            self.arrives(&at(PEERS[family], 9000), &at(OURS[family], 9001))
        })
    }
}

#[test]
fn what_claims_to_come_out_of_a_tunnel_is_dropped_and_counted_with_its_source() {
    let guarded = Guarded::new(&guard());
    assert_eq!(guarded.arrives_in_each_family(), [false, false]);
    assert_eq!(guarded.arrives_in_each_family(), [false, false]);
    assert_eq!(guarded.dropped(), Some(4));
    let sources = guarded.sources();
    let claimed: Vec<_> = sources.iter().map(|source| source.claimed).collect();
    assert_eq!(claimed, PEERS.map(ip));
    for source in &sources {
        assert_eq!((source.packets, source.interface.as_str()), (2, "va"));
        assert!(source.ago < Duration::from_secs(60), "{source:?}");
        let link = source.link.unwrap();
        let netlink = guarded.line.a.netlink().unwrap();
        let known = netlink.addresses_of("va", link).unwrap();
        assert!(
            known.iter().all(|address| *address != ip(OURS[0])),
            "{known:?}"
        );
    }
    // The outer address belongs to no tunnel. A packet to an inner address must come out of the
    // tunnel.
    assert!(guarded.arrives("10.1.0.2:9000", "10.1.0.1:9002"));
    assert!(guarded.arrives("[fd01::2]:9000", "[fd01::1]:9002"));
    assert_eq!(guarded.dropped(), Some(4));
}

#[test]
fn without_a_guard_and_with_one_of_other_selectors_the_same_packets_arrive() {
    let guarded = Guarded::new(&guard());
    guarded.set(&Guard {
        protected: BTreeSet::from([flow("10.8.0.0/16", "10.2.0.0", "10.2.255.255")]),
        ..guard()
    });
    assert_eq!(guarded.arrives_in_each_family(), [true, true]);
    guarded.set(&guard());
    assert_eq!(guarded.arrives_in_each_family(), [false, false]);
    guarded.line.a.enter(|| clear::remove().unwrap()).unwrap();
    assert_eq!(guarded.dropped(), None);
    assert_eq!(guarded.arrives_in_each_family(), [true, true]);
    guarded.line.a.enter(|| clear::remove().unwrap()).unwrap();
}

#[test]
fn a_change_keeps_what_was_counted_and_a_start_begins_at_zero() {
    let guarded = Guarded::new(&guard());
    guarded.arrives_in_each_family();
    guarded.set(&guard());
    assert_eq!((guarded.dropped(), guarded.sources().len()), (Some(2), 2));
    guarded.arrives_in_each_family();
    assert_eq!((guarded.dropped(), guarded.sources().len()), (Some(4), 2));
    guarded.line.a.enter(|| guard().start().unwrap()).unwrap();
    assert_eq!((guarded.dropped(), guarded.sources().len()), (Some(0), 0));
}

// Weakness: 118
#[test]
fn the_longest_prefix_decides_and_of_equal_ones_the_protected() {
    let bypassed = |prefixes: &[&str]| Guard {
        bypassed: prefixes.iter().map(|p| p.parse().unwrap()).collect(),
        ..guard()
    };
    let guarded = Guarded::new(&bypassed(&["10.8.0.0/24", "fd08::9/128"]));
    assert_eq!(guarded.arrives_in_each_family(), [true, true]);
    guarded.set(&bypassed(&["10.0.0.0/8", "::/0"]));
    assert_eq!(guarded.arrives_in_each_family(), [false, false]);
    guarded.set(&bypassed(&["10.8.0.0/16", "fd08::/64"]));
    assert_eq!(guarded.arrives_in_each_family(), [false, false]);
}

#[test]
fn a_longer_prefix_whose_tunnel_does_not_carry_the_destination_leaves_it_to_the_next() {
    let mut wide = guard();
    wide.protected = BTreeSet::from([
        flow("10.8.0.9/32", "10.9.0.0", "10.9.0.255"),
        flow("0.0.0.0/0", "10.1.0.1", "10.1.0.1"),
        flow("::/0", "fd01::1", "fd01::1"),
    ]);
    let guarded = Guarded::new(&wide);
    assert_eq!(guarded.arrives_in_each_family(), [false, false]);
}

#[test]
fn of_a_narrow_selector_only_its_protocol_and_ports_are_dropped() {
    let mut narrow = guard();
    let mut only = flow("10.8.0.0/16", "10.1.0.1", "10.1.0.1");
    only.target.protocol = 17;
    only.target.from = Ports {
        first: 100,
        last: 200,
    };
    only.target.to = Ports {
        first: 9000,
        last: 9001,
    };
    narrow.protected = BTreeSet::from([only]);
    let guarded = Guarded::new(&narrow);
    for (from, to, arrives) in [
        (100, 9000, false),
        (200, 9001, false),
        (99, 9000, true),
        (201, 9000, true),
        (150, 8999, true),
        (150, 9002, true),
    ] {
        let (from, to) = (format!("10.8.0.9:{from}"), format!("10.1.0.1:{to}"));
        assert_eq!(guarded.arrives(&from, &to), arrives, "{from} {to}");
    }
}

#[test]
fn what_carries_tunnels_and_what_is_bypassed_by_its_ports_arrives() {
    let mut services = guard();
    services.services = vec![Service {
        prefix: "10.8.0.0/24".parse().unwrap(),
        protocol: 17,
        ports: Some(53..=53),
    }];
    services.mobile = vec![434, 40_434];
    let guarded = Guarded::new(&services);
    for (from, to, arrives) in [
        ("10.8.0.9:9000", "10.1.0.1:4500", true),
        ("[fd08::9]:9000", "[fd01::1]:4500", true),
        ("10.8.0.9:67", "10.1.0.1:68", true),
        ("[fd08::9]:547", "[fd01::1]:546", true),
        ("10.8.0.9:53", "10.1.0.1:9000", true),
        ("10.8.0.9:54", "10.1.0.1:9000", false),
        ("10.8.0.9:4500", "10.1.0.1:9000", false),
        ("10.8.0.9:9000", "10.1.0.1:434", true),
        ("10.8.0.9:434", "10.1.0.1:40434", true),
    ] {
        assert_eq!(guarded.arrives(from, to), arrives, "{from} {to}");
    }
}

/// A sender chooses its port. Both families: Mobile IP itself has IPv4 only.
// Weakness: 170
#[test]
fn a_claimed_source_with_a_port_of_mobile_ip_reaches_no_other_service() {
    let mut role = guard();
    role.mobile = vec![434];
    let guarded = Guarded::new(&role);
    for family in [0, 1] {
        let at = |ip: &str, port: u16| match ip.contains(':') {
            true => format!("[{ip}]:{port}"),
            false => format!("{ip}:{port}"),
        };
        let (from, to) = (at(PEERS[family], 434), at(OURS[family], 9000));
        assert!(!guarded.arrives(&from, &to), "{from} {to}");
    }
    let mut other = role.clone();
    other.protected.clear();
    guarded.set(&other);
    assert!(guarded.arrives("10.8.0.9:434", "10.1.0.1:9000"), "control");
}

// Works: no-clear-input
#[test]
fn any_number_of_peers_is_one_lookup_and_holds() {
    let mut many = guard();
    many.protected = (0..10_000_u32)
        .map(|peer| {
            let [_, _, high, low] = peer.to_be_bytes();
            let mut flow = flow("10.8.0.0/32", "10.1.0.1", "10.1.0.1");
            flow.source = Prefix::host(IpAddr::from([10, 8, high, low]));
            flow
        })
        .collect();
    let guarded = Guarded::new(&many);
    assert!(!guarded.arrives("10.8.0.9:9000", "10.1.0.1:9001"));
    guarded.set(&many);
    give(&guarded.line.b, "vb", &["10.9.0.9/32"]);
    assert!(guarded.arrives("10.9.0.9:9000", "10.1.0.1:9001"));
}

/// Routes a host's packets for a prefix to a gateway.
fn gateway(host: &NetNs, prefix: &str, gateway: &str) {
    let route = Route {
        prefix: prefix.parse().unwrap(),
        via: Via::Gateway(ip(gateway)),
        table: 254,
        metric: 0,
        source: None,
    };
    host.netlink().unwrap().add_route(&route).unwrap();
}

/// Host `c` is behind `a`: forwarded packets are filtered like those for the host itself.
#[test]
fn what_is_forwarded_is_judged_as_well_and_what_the_tunnel_brings_passes() {
    let mut forwarded = guard();
    forwarded.protected = BTreeSet::from([flow("10.8.0.0/16", "10.2.0.0", "10.2.0.255")]);
    let guarded = Guarded::new(&forwarded);
    let line = &guarded.line;
    let c = NetNs::new().unwrap();
    netns::veth(&line.a, "vac", &c, "vca").unwrap();
    give(&line.a, "vac", &["10.2.0.1/24"]);
    give(&c, "vca", &["10.2.0.2/24"]);
    line.a
        .enter(|| sysctl::set("net.ipv4.ip_forward", "1").unwrap())
        .unwrap();
    gateway(&line.b, "10.2.0.0/24", "10.1.0.1");
    let tun = line.a.enter(|| Tun::open("t0", 1400).unwrap()).unwrap();
    let mut at = bind(&c, "10.2.0.2:9000");
    let send = |from: &str| {
        let sender: Datagrams = bind(&line.b, from);
        sender
            .send(
                Path::udp(address(from), address("10.2.0.2:9000")),
                0,
                from.as_bytes(),
            )
            .unwrap();
    };
    for (drops, port) in [(1, 9001), (2, 500), (3, 4500)] {
        send(&format!("10.8.0.9:{port}"));
        until("a drop", || guarded.dropped() == Some(drops));
    }
    send("10.1.0.2:9001");
    assert_eq!(await_datagram(&mut at).1, b"10.1.0.2:9001");
    // The same source address, out of the tunnel.
    tun.send(&datagram()).unwrap();
    assert_eq!(await_datagram(&mut at).1, b"sealed");
    assert_eq!(guarded.dropped(), Some(3));
}

/// Returns UDP from 10.8.0.9:9001 to 10.2.0.2:9000, without a UDP checksum.
fn datagram() -> Vec<u8> {
    let mut packet = vec![
        0x45, 0, 0, 34, 0, 0, 0, 0, 64, 17, 0, 0, 10, 8, 0, 9, 10, 2, 0, 2,
    ];
    let words = packet
        .chunks(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend([0x23, 0x29, 0x23, 0x28, 0, 14, 0, 0]);
    packet.extend(b"sealed");
    packet
}

/// Returns an ICMP error of a kind, about a packet of a protocol from a port.
fn report(kind: u8, family: usize, protocol: u8, port: u16) -> Vec<u8> {
    let (length, place) = if family == 0 { (20, 9) } else { (40, 6) };
    let mut report = vec![0; 8 + length];
    report[0] = kind;
    report[8] = if family == 0 { 0x45 } else { 0x60 };
    report[8 + place] = protocol;
    report.extend(port.to_be_bytes());
    report.extend([0x11, 0x94, 0, 0, 0, 0]);
    report
}

#[test]
fn reports_about_outer_packets_pass_and_reports_about_others_do_not() {
    let mut streams = guard();
    streams.streams = vec![address("10.8.0.9:4500")];
    streams.mobile = vec![434];
    let guarded = Guarded::new(&streams);
    let kinds = [
        (Domain::IPV4, Protocol::ICMPV4, 3),
        (Domain::IPV6, Protocol::ICMPV6, 2),
    ];
    let mut expected = 0;
    for (family, (domain, protocol, kind)) in kinds.into_iter().enumerate() {
        let send = |report: &[u8]| {
            let open = || Socket::new(domain, Type::RAW, Some(protocol)).unwrap();
            let socket = guarded.line.b.enter(open).unwrap();
            let at = |ip| SockAddr::from(std::net::SocketAddr::new(ip, 0));
            socket.bind(&at(ip(PEERS[family]))).unwrap();
            socket.send_to(report, &at(ip(OURS[family]))).unwrap();
        };
        for (about, port, passes) in [
            (17, 4500, true),
            (17, 434, true),
            (50, 0, true),
            (6, 9000, true),
            (17, 9000, false),
            (1, 4500, false),
        ] {
            send(&report(kind, family, about, port));
            expected += u64::from(!passes);
            // A packet that is always dropped follows the report on the same cable.
            send(&report(if family == 0 { 8 } else { 128 }, family, 17, 4500));
            expected += 1;
            until("a drop", || guarded.dropped() >= Some(expected));
            assert_eq!(guarded.dropped(), Some(expected), "{about} {port}");
        }
    }
}

#[test]
fn a_stream_of_ours_goes_on_and_its_far_end_opens_none() {
    let mut streams = guard();
    streams.streams = vec![address("10.8.0.9:4500"), address("10.8.0.9:4501")];
    let guarded = Guarded::new(&streams);
    let open = |host: &NetNs, at: &str| {
        let bound = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let socket = host.enter(bound).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&SockAddr::from(address(at))).unwrap();
        socket
    };
    let far = open(&guarded.line.b, "10.8.0.9:4500");
    far.listen(1).unwrap();
    let near = open(&guarded.line.a, "10.1.0.1:7001");
    gateway(&guarded.line.a, "10.8.0.9/32", "10.1.0.2");
    near.connect(&SockAddr::from(address("10.8.0.9:4500")))
        .unwrap();
    assert_eq!(guarded.dropped(), Some(0));
    let listener = open(&guarded.line.a, "10.1.0.1:7002");
    listener.listen(1).unwrap();
    let back = open(&guarded.line.b, "10.8.0.9:4501");
    back.set_nonblocking(true).unwrap();
    back.connect(&SockAddr::from(address("10.1.0.1:7002")))
        .unwrap_err();
    until("a drop", || guarded.dropped() == Some(1));
}

/// One change of each kind by another program.
// Recovers: no-clear-input
// Weakness: 119
#[test]
fn what_others_change_of_it_looks_different_is_told_and_is_put_back_with_what_was_counted() {
    let guarded = Guarded::new(&guard());
    let host = &guarded.line.a;
    let look = || host.enter(|| clear::fingerprint().unwrap()).unwrap();
    let changes = host.enter(|| Changes::watch("t0").unwrap()).unwrap();
    assert_eq!(guarded.arrives_in_each_family(), [false, false]);
    assert!(look().is_some());
    for (line, believed, counted) in [
        ("flush table inet strata_clear", true, Some(2)),
        ("flush chain inet strata_clear judge4", true, Some(2)),
        ("insert rule inet strata_clear judge accept", true, Some(2)),
        (
            "add table inet strata_clear { flags dormant; }",
            true,
            Some(2),
        ),
        ("delete chain inet strata_clear input", true, Some(2)),
        (
            "chain inet strata_clear forward { policy drop; }",
            false,
            Some(2),
        ),
        ("delete table inet strata_clear", true, None),
        ("flush ruleset", true, None),
    ] {
        host.enter(|| guard().start().unwrap()).unwrap();
        assert_eq!(guarded.arrives_in_each_family(), [false, false]);
        let before = look();
        changes.read().unwrap();
        if line.starts_with("delete chain") {
            nft(host, "flush chain inet strata_clear input");
        }
        nft(host, line);
        assert!(changes.read().unwrap().removed, "{line} is not told");
        assert_ne!(look(), before, "{line} is not seen");
        assert_eq!(guarded.dropped(), counted, "{line}");
        if believed {
            let [control, _] = guarded.arrives_in_each_family();
            assert!(control, "{line}");
        }
        let counted = guarded.dropped();
        host.enter(|| guard().set().unwrap()).unwrap();
        assert_eq!(guarded.dropped(), counted.or(Some(0)), "{line}");
        assert_eq!(guarded.arrives_in_each_family(), [false, false], "{line}");
        let restored = look();
        assert_eq!(look(), restored);
    }
}

#[test]
fn what_packets_change_of_it_is_no_change_and_is_not_told() {
    let guarded = Guarded::new(&guard());
    let host = &guarded.line.a;
    let look = || host.enter(|| clear::fingerprint().unwrap()).unwrap();
    let changes = host.enter(|| Changes::watch("t0").unwrap()).unwrap();
    let before = look();
    assert_eq!(guarded.arrives_in_each_family(), [false, false]);
    assert_eq!(look(), before);
    nft(host, "add table inet others");
    assert_eq!(look(), before);
    assert!(!changes.read().unwrap().removed);
    host.enter(|| clear::remove().unwrap()).unwrap();
    assert_eq!(look(), None);
}
