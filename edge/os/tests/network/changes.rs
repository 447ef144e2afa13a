use crate::line::{Line, give, ip, run_ip, until};
use os::netlink::{Route, Rule, Via};
use os::routes::{PRIORITY, RoutePlan, Routes, Service, TABLE};
use os::{Changes, Family, Lock, NetNs, Netlink, News, Prefix, Tun, lock};

const DEVICE: &str = "t0";

/// Host `a` of a line with all state of a tunnel.
struct Endpoint {
    line: Line,
    netlink: Netlink,
    routes: Routes,
    changes: Changes,
    _tun: Tun,
}

impl Endpoint {
    fn new() -> Self {
        let line = Line::new();
        let open = || {
            let tun = Tun::open(DEVICE, 1400).unwrap();
            give(&line.a, DEVICE, &["10.9.0.1/24", "fd09::1/64"]);
            let routes = Routes::open(DEVICE).unwrap();
            routes.set(&plan()).unwrap();
            (Changes::watch(DEVICE).unwrap(), routes, tun)
        };
        let (changes, routes, tun) = line.a.enter(open).unwrap();
        // The kernel makes addresses of its own, which it reports when it has tried them.
        until("news to end", || {
            run_ip(&line.a, "-6 address show tentative").is_empty()
                && changes.read().unwrap() == News::default()
        });
        Self {
            netlink: line.a.netlink().unwrap(),
            line,
            routes,
            changes,
            _tun: tun,
        }
    }

    /// Returns the news after a change.
    fn news(&self, happen: impl FnOnce(&Netlink)) -> News {
        happen(&self.netlink);
        self.changes.read().unwrap()
    }

    fn missing(&self) -> Vec<String> {
        self.routes.missing(&plan()).unwrap()
    }

    fn route(&self, via: &Via) -> Route {
        let mut routes = self.netlink.routes(TABLE).unwrap().into_iter();
        routes.find(|route| route.via == *via).unwrap()
    }
}

/// Returns a plan with one entry of each kind.
fn plan() -> RoutePlan {
    RoutePlan {
        protected: vec![
            ("10.8.0.0/16".parse().unwrap(), Some(ip("10.9.0.1"))),
            ("10.7.0.0/16".parse().unwrap(), None),
            ("fd08::/64".parse().unwrap(), Some(ip("fd09::1"))),
            ("fd07::/64".parse().unwrap(), None),
        ],
        bypassed: prefixes(&["10.8.1.0/24", "fd08::1:0/112"]),
        services: prefixes(&["10.8.2.0/24", "fd08::2:0/112"])
            .into_iter()
            .map(|prefix| Service {
                prefix,
                protocol: 17,
                ports: Some(53..=53),
            })
            .collect(),
        held: prefixes(&["0.0.0.0/0", "::/0"]),
    }
}

fn prefixes(texts: &[&str]) -> Vec<Prefix> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn nft(host: &NetNs, line: &str) {
    let mut command = host.command("nft");
    let status = command.args(line.split_whitespace()).status().unwrap();
    assert!(status.success(), "nft {line}");
}

// Weakness: 120
#[test]
fn a_removal_of_what_is_ours_is_told_and_what_is_missing_is_put_back() {
    let endpoint = Endpoint::new();
    let removals: [&dyn Fn(&Netlink); 7] = [
        &|netlink| {
            let tunnel = endpoint.route(&Via::Device(DEVICE.into()));
            netlink.delete_route(&tunnel).unwrap();
        },
        &|netlink| {
            let hole = endpoint.route(&Via::Blackhole);
            netlink.delete_route(&hole).unwrap();
        },
        &|netlink| netlink.delete_route(&endpoint.route(&Via::Throw)).unwrap(),
        &|netlink| {
            let mut tunnel = endpoint.route(&Via::Device(DEVICE.into()));
            tunnel.via = Via::Device("va".into());
            netlink.replace_route(&tunnel).unwrap();
        },
        &|netlink| {
            netlink.cleanup(TABLE, PRIORITY..=PRIORITY).unwrap();
        },
        &|netlink| {
            let ours = |rule: &Rule| rule.priority == PRIORITY - 1;
            let rule = netlink.rules().unwrap().into_iter().find(ours).unwrap();
            netlink.delete_rule(&rule).unwrap();
        },
        &|netlink| {
            netlink.link_down(DEVICE).unwrap();
            assert!(!netlink.is_up(DEVICE).unwrap());
            netlink.link_up(DEVICE).unwrap();
            give(&endpoint.line.a, DEVICE, &["fd09::1/64"]);
        },
    ];
    for (turn, removal) in removals.into_iter().enumerate() {
        assert_eq!(endpoint.missing(), [""; 0], "before {turn}");
        let news = endpoint.news(removal);
        assert!(news.ways && news.removed, "{turn}: {news:?}");
        assert_ne!(endpoint.missing(), [""; 0], "{turn}");
        endpoint.routes.set(&plan()).unwrap();
    }
    assert_eq!(endpoint.missing(), [""; 0]);
}

#[test]
fn an_address_that_is_removed_is_told() {
    let endpoint = Endpoint::new();
    for address in ["10.9.0.1/24", "fd09::1/64"] {
        let address = address.parse().unwrap();
        let news = endpoint.news(|netlink| netlink.drop_address(DEVICE, address).unwrap());
        assert!(news.removed, "{address}");
        // By now the address is gone.
        endpoint.netlink.drop_address(DEVICE, address).unwrap();
    }
}

#[test]
fn removals_of_others_and_additions_are_told_as_no_removals() {
    let endpoint = Endpoint::new();
    let route = Route::new(
        "10.20.0.0/16".parse::<Prefix>().unwrap(),
        Via::Device("va".into()),
    );
    let rule = Rule::new(Family::V6, 1000, 100);
    let harmless: [&dyn Fn(&Netlink); 6] = [
        &|netlink| netlink.add_route(&route).unwrap(),
        &|netlink| netlink.delete_route(&route).unwrap(),
        &|netlink| netlink.add_rule(&rule).unwrap(),
        &|netlink| netlink.delete_rule(&rule).unwrap(),
        &|netlink| netlink.set_mtu(DEVICE, 1390).unwrap(),
        &|_| give(&endpoint.line.a, "va", &["10.30.0.1/24"]),
    ];
    for (turn, change) in harmless.into_iter().enumerate() {
        let news = endpoint.news(change);
        assert!(news.ways && !news.removed, "{turn}: {news:?}");
    }
}

// Weakness: 120
#[test]
fn a_lock_that_others_change_is_told_and_looks_different() {
    if !lock::is_possible() {
        return;
    }
    let endpoint = Endpoint::new();
    let host = &endpoint.line.a;
    let ours = Lock {
        device: DEVICE.into(),
        protected: prefixes(&["10.8.0.0/16", "fd08::/64"]),
        ..Lock::default()
    };
    let listing = || host.enter(lock::listing).unwrap().unwrap();
    let set = || {
        host.enter(|| ours.set()).unwrap().unwrap();
        endpoint.changes.read().unwrap();
        listing()
    };
    assert_eq!(listing(), None);
    let before = set();
    assert!(before.is_some());
    assert_eq!(set(), before);
    for line in [
        "flush ruleset",
        "delete table inet strata",
        "flush chain inet strata leaving",
        "flush table inet strata",
    ] {
        let news = endpoint.news(|_| nft(host, line));
        assert!(news.removed && !news.ways, "{line}: {news:?}");
        assert_ne!(listing(), before, "{line}");
        assert_eq!(set(), before, "{line}");
    }
    for line in ["add table inet stratagem", "delete table inet stratagem"] {
        let news = endpoint.news(|_| nft(host, line));
        assert_eq!(news, News::default(), "{line}");
    }
    assert_eq!(listing(), before);
}
