use crate::line::{Line, give, rules_and_routes, run_ip};
use os::netlink::{Mark, Route, Rule, Via};
use os::{Error, Family, LinkAddress, NetNs, Netlink, Tun};

/// Returns a namespace with a TUN that has addresses of both families.
fn host() -> (Netlink, Tun) {
    let namespace = NetNs::new().unwrap();
    let tun = namespace.enter(|| Tun::open("t0", 1400)).unwrap().unwrap();
    give(&namespace, "t0", &["10.9.0.1/24", "fd09::1/64"]);
    (namespace.netlink().unwrap(), tun)
}

#[test]
fn what_is_set_on_an_interface_can_be_read_back() {
    let (netlink, tun) = host();
    assert_eq!(netlink.mtu(tun.name()).unwrap(), 1400);
    netlink.set_mtu("t0", 1300).unwrap();
    assert_eq!(netlink.mtu("t0").unwrap(), 1300);
    let mut addresses = netlink.addresses("t0").unwrap();
    addresses.sort();
    let expected = ["10.9.0.1/24", "fd09::1/64"].map(|text| text.parse().unwrap());
    assert_eq!(addresses, expected);
    netlink.delete_address("t0", expected[0]).unwrap();
    assert_eq!(netlink.addresses("t0").unwrap(), expected[1..]);
    netlink.delete_link("t0").unwrap();
    assert_eq!(netlink.links().unwrap(), ["lo"]);
}

#[test]
fn an_address_of_a_family_that_is_switched_off_is_told_apart_from_missing_rights() {
    let namespace = NetNs::new().unwrap();
    namespace
        .sysctl("net.ipv6.conf.all.disable_ipv6", "1")
        .unwrap();
    let netlink = namespace.netlink().unwrap();
    let refused = netlink.add_address("lo", "fd00::1/64".parse().unwrap());
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::NoFamily { family: Family::V6 }));
    assert!(error.to_string().contains("disable_ipv6=0"), "{error}");
}

#[test]
fn an_interface_that_is_down_loses_its_routes() {
    let (netlink, _tun) = host();
    let route = Route::new(
        "10.8.0.0/16".parse::<os::Prefix>().unwrap(),
        Via::Device("t0".into()),
    );
    netlink.add_route(&route).unwrap();
    netlink.link_down("t0").unwrap();
    assert!(!netlink.routes(Route::MAIN).unwrap().contains(&route));
}

#[test]
fn a_route_that_moves_is_there_once_whatever_others_made_of_the_first() {
    let namespace = NetNs::new().unwrap();
    let open = || ["t0", "t1", "t2"].map(|name| Tun::open(name, 1400).unwrap());
    let _tuns = namespace.enter(open).unwrap();
    let netlink = namespace.netlink().unwrap();
    for prefix in ["10.8.0.0/16", "fd08::/32"] {
        let by = |device: &str| Route {
            metric: 10,
            table: 200,
            ..Route::new(
                prefix.parse::<os::Prefix>().unwrap(),
                Via::Device(device.into()),
            )
        };
        let found = || netlink.routes(200).unwrap();
        let (from, to) = (by("t0"), by("t1"));
        netlink.add_route(&from).unwrap();
        netlink.move_route(&from, &to).unwrap();
        assert!(found().iter().eq([&to]));
        netlink.move_route(&to, &to).unwrap();
        assert!(found().iter().eq([&to]));
        // Another program put its own in the place of the first.
        netlink.replace_route(&by("t2")).unwrap();
        netlink.move_route(&to, &from).unwrap();
        assert!(found().iter().eq([&from]));
        netlink.delete_route(&from).unwrap();
        netlink.move_route(&from, &to).unwrap();
        assert!(found().iter().eq([&to]));
        netlink.delete_route(&to).unwrap();
    }
    let route = |device: &str| {
        let prefix = "10.8.0.0/16".parse::<os::Prefix>().unwrap();
        Route::new(prefix, Via::Device(device.into()))
    };
    netlink.add_route(&route("t0")).unwrap();
    netlink.link_down("t1").unwrap();
    netlink.move_route(&route("t0"), &route("t1")).unwrap_err();
    assert!(netlink.routes(Route::MAIN).unwrap().contains(&route("t0")));
}

#[test]
fn routes_come_back_as_they_were_added() {
    let (netlink, _tun) = host();
    let device = || Via::Device("t0".into());
    let cases = [
        ("0.0.0.0/0", device(), 10, Some("10.9.0.1")),
        ("0.0.0.0/0", Via::Blackhole, 4096, None),
        ("10.0.0.0/8", Via::Throw, 10, None),
        (
            "10.2.0.0/16",
            Via::Gateway("10.9.0.7".parse().unwrap()),
            0,
            None,
        ),
        ("::/0", device(), 10, Some("fd09::1")),
        ("::/0", Via::Blackhole, 4096, None),
        ("fd00:8::/32", Via::Throw, 10, None),
        (
            "fd00:9::/32",
            Via::Gateway("fd09::7".parse().unwrap()),
            10,
            None,
        ),
        (
            "10.3.0.0/16",
            Via::Onlink {
                gateway: "198.51.100.2".parse().unwrap(),
                device: "t0".into(),
            },
            0,
            Some("10.9.0.1"),
        ),
    ];
    // One table number fits the message's header, the other does not.
    for table in [200, 7296] {
        let routes = cases.clone().map(|(prefix, via, metric, source)| Route {
            prefix: prefix.parse().unwrap(),
            via,
            table,
            metric,
            source: source.map(|address| address.parse().unwrap()),
        });
        for route in &routes {
            netlink.add_route(route).unwrap();
        }
        let found = netlink.routes(table).unwrap();
        for route in &routes {
            assert!(found.contains(route), "{route} is not among {found:?}");
        }
        assert_eq!(found.len(), routes.len());
        for route in &routes {
            netlink.delete_route(route).unwrap();
        }
        assert_eq!(netlink.routes(table).unwrap(), []);
    }
}

#[test]
fn rules_come_back_as_they_were_added() {
    let (netlink, _tun) = host();
    let host = |family| match family {
        Family::V4 => ("10.0.0.0/8", "10.2.0.1/32"),
        Family::V6 => ("fd00::/16", "fd00::1/128"),
    };
    for family in Family::ALL {
        let rule = |table| Rule::new(family, 7296, table);
        let (from, to) = host(family);
        let rules = [
            rule(7296).mark(Mark::IsNot(0x7296)),
            rule(200).mark(Mark::Is(7)),
            rule(200).mark(Mark::Is(0)).protocol(17),
            rule(7297)
                .iif("t0")
                .protocol(17)
                .destination_ports(4500..=4500),
            rule(7297).iif("t0").protocol(17).source_ports(4500..=4500),
            rule(7297).iif("lo").protocol(50),
            rule(254).but_default(),
            rule(7297).from(os::Prefix {
                length: family.bits(),
                ..os::Prefix::everything(family)
            }),
            rule(7297)
                .protocol(17)
                .from(from.parse::<os::Prefix>().unwrap())
                .to(to.parse::<os::Prefix>().unwrap()),
        ];
        for rule in &rules {
            netlink.add_rule(rule).unwrap();
        }
        let found = netlink.rules().unwrap();
        for rule in &rules {
            assert!(found.contains(rule), "{rule} is not among {found:?}");
        }
        for rule in &rules {
            netlink.delete_rule(rule).unwrap();
        }
        assert_eq!(rules_and_routes(&netlink, 7297).0, 0);
    }
}

/// No prefix of the host contains the neighbour, so without `onlink` the route is refused.
#[test]
fn a_neighbour_is_a_gateway_where_no_address_says_that_it_is_one() {
    let (netlink, _tun) = host();
    let gateway = "198.51.100.2".parse().unwrap();
    let everything = os::Prefix::everything(Family::V4);
    let plain = Route::new(everything, Via::Gateway(gateway));
    assert!(netlink.add_route(&plain).is_err());
    let device = "t0".into();
    let onlink = Route::new(everything, Via::Onlink { gateway, device });
    netlink.add_route(&onlink).unwrap();
    assert!(netlink.routes(Route::MAIN).unwrap().contains(&onlink));
}

#[test]
fn where_a_neighbour_is_is_noted_and_forgotten() {
    let line = Line::new();
    let netlink = line.a.netlink().unwrap();
    let neighbour = "198.51.100.2".parse().unwrap();
    for link in [
        LinkAddress([2, 0, 0, 0, 0, 1]),
        LinkAddress([2, 0, 0, 0, 0, 2]),
    ] {
        netlink.set_neighbour("va", neighbour, link).unwrap();
        assert_eq!(netlink.neighbours("va").unwrap(), [(neighbour, link)]);
    }
    // This also holds for an unknown neighbour, and for an interface that does not exist.
    for device in ["va", "va", "vx"] {
        netlink.forget_neighbour(device, neighbour).unwrap();
    }
    assert_eq!(netlink.neighbours("va").unwrap(), []);
}

/// Whatever the priority of other rules, and however much they resemble ours.
#[test]
fn cleanup_removes_ours_and_nothing_else() {
    let namespace = NetNs::new().unwrap();
    let netlink = namespace.netlink().unwrap();
    for family in ["-4", "-6"] {
        for rule in [
            "priority 7290 table 100",
            "priority 7296 fwmark 1 table 7296",
        ] {
            run_ip(&namespace, &format!("{family} rule add {rule}"));
        }
    }
    let before = (
        netlink.rules().unwrap(),
        netlink.routes(Route::MAIN).unwrap(),
    );
    for family in Family::ALL {
        for priority in [7290, 7296] {
            netlink
                .add_rule(&Rule::new(family, priority, 7296))
                .unwrap();
        }
        let prefix = os::Prefix::everything(family);
        let mut route = Route::new(prefix, Via::Blackhole);
        (route.table, route.metric) = (7296, 4096);
        netlink.add_route(&route).unwrap();
    }
    assert_eq!(netlink.cleanup(7296, 7290..=7296).unwrap(), 6);
    assert_eq!(netlink.cleanup(7296, 7290..=7296).unwrap(), 0);
    let after = (
        netlink.rules().unwrap(),
        netlink.routes(Route::MAIN).unwrap(),
    );
    assert_eq!(before, after);
}
