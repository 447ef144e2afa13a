use crate::line::{
    Line, await_datagram, await_readable, bind, bind_marked, ip, path, rules_and_routes, run_ip,
};
use os::netlink::{Route, Via};
use os::routes::{MARK, PRIORITY, RoutePlan, Routes, Service, TABLE};
use os::{Datagrams, Error, Family, Tun};
use std::io::ErrorKind;

/// Host `a` of a line with a TUN, and all destinations behind the cable protected.
struct Endpoint {
    line: Line,
    tun: Tun,
    routes: Routes,
}

fn plan() -> RoutePlan {
    RoutePlan {
        protected: vec![
            ("10.1.0.0/24".parse().unwrap(), Some(ip("10.1.0.1"))),
            ("fd01::/64".parse().unwrap(), None),
        ],
        bypassed: vec![],
        services: vec![],
        held: vec![],
    }
}

impl Endpoint {
    fn new() -> Self {
        let line = Line::new();
        let open = || (Tun::open("t0", 1400).unwrap(), Routes::open("t0").unwrap());
        let (tun, routes) = line.a.enter(open).unwrap();
        routes.set(&plan()).unwrap();
        Self { line, tun, routes }
    }

    fn left(&self) -> (usize, usize) {
        rules_and_routes(&self.line.a.netlink().unwrap(), TABLE)
    }
}

/// Destinations behind the cable, and the addresses to bind there.
const PEERS: [(&str, &str); 2] = [("0.0.0.0:7", "10.1.0.2:7"), ("[::]:7", "[fd01::2]:7")];

fn try_to_send(from: &Datagrams, to: &str, payload: &[u8]) -> std::io::Result<()> {
    from.send(path(from, to), 0, payload)
}

#[test]
fn protected_packets_enter_the_tunnel_and_marked_ones_do_not() {
    let endpoint = Endpoint::new();
    for (any, peer) in PEERS {
        let mut far = bind(&endpoint.line.b, any);
        let plain = bind(&endpoint.line.a, &any.replace(":7", ":0"));
        try_to_send(&plain, peer, b"clear").unwrap();
        await_readable(&endpoint.tun);
        endpoint.tun.recv(&mut [0; 1400]).unwrap();
        let marked = bind_marked(&endpoint.line.a, &any.replace(":7", ":0"), Some(MARK));
        try_to_send(&marked, peer, b"sealed").unwrap();
        // The datagram in clear would have arrived first.
        assert_eq!(await_datagram(&mut far).1, b"sealed");
    }
}

#[test]
fn nothing_leaks_after_the_daemon_was_killed() {
    let Endpoint { line, tun, routes } = Endpoint::new();
    // The kernel does this to a killed process: its TUN vanishes, and its routes stay.
    drop((tun, routes));
    for (any, peer) in PEERS {
        let mut far = bind(&line.b, any);
        let plain = bind(&line.a, &any.replace(":7", ":0"));
        try_to_send(&plain, peer, b"clear").unwrap_err();
        let marked = bind_marked(&line.a, &any.replace(":7", ":0"), Some(MARK));
        try_to_send(&marked, peer, b"sealed").unwrap();
        assert_eq!(await_datagram(&mut far).1, b"sealed");
    }
}

#[test]
fn without_a_black_hole_it_would_leak() {
    let Endpoint { line, tun, routes } = Endpoint::new();
    let netlink = line.a.netlink().unwrap();
    let holes = netlink.routes(TABLE).unwrap().into_iter();
    for hole in holes.filter(|route| route.via == Via::Blackhole) {
        netlink.delete_route(&hole).unwrap();
    }
    drop((tun, routes));
    let mut far = bind(&line.b, "0.0.0.0:7");
    let plain = bind(&line.a, "0.0.0.0:0");
    try_to_send(&plain, "10.1.0.2:7", b"clear").unwrap();
    assert_eq!(await_datagram(&mut far).1, b"clear");
}

#[test]
fn a_bypassed_prefix_goes_around_the_tunnel() {
    let endpoint = Endpoint::new();
    let mut with_bypass = plan();
    with_bypass.bypassed = vec!["10.1.0.2/32".parse().unwrap()];
    endpoint.routes.set(&with_bypass).unwrap();
    let mut far = bind(&endpoint.line.b, "0.0.0.0:7");
    let plain = bind(&endpoint.line.a, "0.0.0.0:0");
    try_to_send(&plain, "10.1.0.2:7", b"clear").unwrap();
    assert_eq!(await_datagram(&mut far).1, b"clear");
    endpoint.routes.set(&plan()).unwrap();
    try_to_send(&plain, "10.1.0.2:7", b"clear").unwrap();
    await_readable(&endpoint.tun);
    assert_eq!(
        far.recv(|_, _| unreachable!()).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
}

/// Datagrams to one port bypass the tunnel. Those to another port stay protected, and so do the
/// first after the service is removed.
#[test]
fn a_service_goes_around_the_tunnel() {
    let endpoint = Endpoint::new();
    let udp = |prefix: &str| Service {
        prefix: prefix.parse().unwrap(),
        protocol: 17,
        ports: Some(7..=8),
    };
    let with_services = RoutePlan {
        services: vec![udp("10.1.0.0/24"), udp("fd01::/64")],
        ..plan()
    };
    // A repetition changes nothing.
    for _ in 0..2 {
        endpoint.routes.set(&with_services).unwrap();
        assert_eq!(exceptions(&endpoint.line), 2, "one for each");
    }
    for (any, peer) in PEERS {
        let mut far = bind(&endpoint.line.b, any);
        let plain = bind(&endpoint.line.a, &any.replace(":7", ":0"));
        try_to_send(&plain, &peer.replace(":7", ":9"), b"protected").unwrap();
        await_readable(&endpoint.tun);
        endpoint.tun.recv(&mut [0; 1400]).unwrap();
        try_to_send(&plain, peer, b"around").unwrap();
        assert_eq!(await_datagram(&mut far).1, b"around");
    }
    endpoint.routes.set(&plan()).unwrap();
    assert_eq!(exceptions(&endpoint.line), 0);
    for (any, peer) in PEERS {
        let plain = bind(&endpoint.line.a, &any.replace(":7", ":0"));
        try_to_send(&plain, peer, b"protected").unwrap();
        await_readable(&endpoint.tun);
        endpoint.tun.recv(&mut [0; 1400]).unwrap();
    }
    endpoint.routes.set(&with_services).unwrap();
    endpoint.routes.close().unwrap();
    assert_eq!(exceptions(&endpoint.line), 0);
}

/// `ip rule add` without a priority takes the one before the first rule. So a rule of the operator
/// has the priority of bypassed services, or that of the rule to our table.
#[test]
fn a_rule_of_the_operator_stays_whatever_its_priority() {
    let endpoint = Endpoint::new();
    let host = &endpoint.line.a;
    let rules = ["-4", "-6"].map(|family| {
        let every = move || run_ip(host, &format!("{family} rule"));
        let before = every();
        let to = if family == "-4" {
            "10.1.0.0/24"
        } else {
            "fd01::/64"
        };
        for rule in [
            format!("from {to} lookup 100"),
            format!("to {to} ipproto udp dport 7-8 iif lo lookup main priority 7295"),
            format!("to {to} ipproto udp dport 9 lookup main priority 7295"),
            format!("from {to} lookup 100 priority 7296"),
        ] {
            run_ip(host, &format!("{family} rule add {rule}"));
        }
        assert!(every().contains("7295:\tfrom"), "without a priority");
        (every, before, every())
    });
    let services = ["10.1.0.0/24", "fd01::/64"].map(|prefix| Service {
        prefix: prefix.parse().unwrap(),
        protocol: 17,
        ports: Some(7..=8),
    });
    let with_services = RoutePlan {
        services: services.into(),
        ..plan()
    };
    for _ in 0..2 {
        endpoint.routes.set(&with_services).unwrap();
        assert_eq!(endpoint.routes.missing(&with_services).unwrap(), [""; 0]);
        endpoint.routes.set(&plan()).unwrap();
        for (every, _, with_theirs) in &rules {
            assert_eq!(every(), *with_theirs);
        }
    }
    endpoint.routes.close().unwrap();
    for (every, before, with_theirs) in &rules {
        let ours = |line: &&str| before.contains(*line) && line.contains("proto 72");
        let theirs: Vec<_> = with_theirs.lines().filter(|line| !ours(line)).collect();
        assert_eq!(every().lines().collect::<Vec<_>>(), theirs);
    }
}

/// A rule of the operator that does the same as one of ours is neither added again nor removed.
#[test]
fn a_rule_of_the_operator_may_be_that_of_a_service() {
    let endpoint = Endpoint::new();
    let rule = "to 10.1.0.0/24 ipproto udp dport 7 lookup main priority 7295";
    run_ip(&endpoint.line.a, &format!("rule add {rule}"));
    let service = Service {
        prefix: "10.1.0.0/24".parse().unwrap(),
        protocol: 17,
        ports: Some(7..=7),
    };
    let with_service = RoutePlan {
        services: vec![service],
        ..plan()
    };
    endpoint.routes.set(&with_service).unwrap();
    assert_eq!(endpoint.routes.missing(&with_service).unwrap(), [""; 0]);
    assert_eq!(exceptions(&endpoint.line), 1);
    endpoint.routes.close().unwrap();
    assert_eq!(exceptions(&endpoint.line), 1);
}

/// Counts the rules right before ours.
fn exceptions(line: &Line) -> usize {
    let rules = line.a.netlink().unwrap().rules().unwrap();
    let before = rules.iter().filter(|rule| rule.priority == PRIORITY - 1);
    before.count()
}

#[test]
fn a_successor_takes_over_what_a_killed_daemon_left() {
    let Endpoint { line, tun, routes } = Endpoint::new();
    drop((tun, routes));
    let netlink = line.a.netlink().unwrap();
    let hole = |prefix: &str| Route {
        prefix: prefix.parse().unwrap(),
        via: Via::Blackhole,
        table: TABLE,
        metric: 4096,
        source: None,
    };
    assert!(netlink.routes(TABLE).unwrap().contains(&hole("fd01::/64")));
    let mut smaller = plan();
    smaller.protected.truncate(1);
    let open = || (Tun::open("t0", 1400).unwrap(), Routes::open("t0").unwrap());
    let (_tun, routes) = line.a.enter(open).unwrap();
    routes.set(&smaller).unwrap();
    routes.set(&smaller).unwrap();
    let present = netlink.routes(TABLE).unwrap();
    assert_eq!(present.len(), 2);
    assert!(present.contains(&hole("10.1.0.0/24")));
    assert_eq!(rules_and_routes(&netlink, TABLE).0, Family::ALL.len());
}

#[test]
fn a_graceful_end_leaves_nothing() {
    let mut endpoint = Endpoint::new();
    assert_eq!(endpoint.left(), (2, 4));
    let open = || Routes::open("t0").unwrap();
    let spare = endpoint.line.a.enter(open).unwrap();
    std::mem::replace(&mut endpoint.routes, spare)
        .close()
        .unwrap();
    assert_eq!(endpoint.left(), (0, 0));
    let mut far = bind(&endpoint.line.b, "0.0.0.0:7");
    let plain = bind(&endpoint.line.a, "0.0.0.0:0");
    try_to_send(&plain, "10.1.0.2:7", b"clear").unwrap();
    assert_eq!(await_datagram(&mut far).1, b"clear");
}

#[test]
fn a_peer_inside_a_protected_prefix_needs_loose_reverse_paths() {
    let endpoint = Endpoint::new();
    let check = |plan: RoutePlan| {
        let check = || endpoint.routes.check_peers(&plan, [ip("10.1.0.2")]);
        endpoint.line.a.enter(check).unwrap()
    };
    let strictness = |value| {
        for of in ["all", "va"] {
            let name = format!("net.ipv4.conf.{of}.rp_filter");
            endpoint.line.a.sysctl(&name, value).unwrap();
        }
    };
    let mut far = bind(&endpoint.line.b, "10.1.0.2:7");
    let mut near = bind_marked(&endpoint.line.a, "10.1.0.1:7", Some(MARK));
    strictness("2");
    check(plan()).unwrap();
    far.send(path(&far, "10.1.0.1:7"), 0, b"loose").unwrap();
    assert_eq!(await_datagram(&mut near).1, b"loose");
    strictness("1");
    let error = check(plan()).unwrap_err();
    assert!(matches!(&error, Error::StrictReversePath { interface, .. } if interface == "va"));
    far.send(path(&far, "10.1.0.1:7"), 0, b"dropped").unwrap();
    // A bypass for the peer's address is the other solution.
    let mut bypass = plan();
    bypass.bypassed = vec!["10.1.0.2/32".parse().unwrap()];
    check(bypass.clone()).unwrap();
    endpoint.routes.set(&bypass).unwrap();
    far.send(path(&far, "10.1.0.1:7"), 0, b"bypass").unwrap();
    assert_eq!(await_datagram(&mut near).1, b"bypass");
    assert!(far.recv(|_, _| unreachable!()).is_err());
}
