use crate::line::{PATIENCE, give};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use os::netlink::{Mark, Route, Rule, Via};
use os::{Changes, Family, NetNs, Netlink, News, Prefix, netns};
use std::net::IpAddr;

const REMOTE: &str = "192.0.2.1";
const MARK: u32 = 0x7296;

/// Returns a host with two links, whose default route uses the first.
fn host() -> (NetNs, NetNs, Netlink) {
    let (host, network) = (NetNs::new().unwrap(), NetNs::new().unwrap());
    for (device, address) in [("e0", "10.3.0.2/24"), ("e1", "10.4.0.2/24")] {
        netns::veth(&host, device, &network, &format!("far-{device}")).unwrap();
        give(&host, device, &[address]);
    }
    let netlink = host.netlink().unwrap();
    default_by(&netlink, "10.3.0.1", Route::MAIN, 0);
    (host, network, netlink)
}

fn default_by(netlink: &Netlink, gateway: &str, table: u32, metric: u32) {
    let via = Via::Gateway(ip(gateway));
    let route = Route::new(Prefix::everything(Family::V4), via);
    let route = Route {
        table,
        metric,
        ..route
    };
    netlink.add_route(&route).unwrap();
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn sources(netlink: &Netlink) -> Vec<IpAddr> {
    netlink.sources(ip(REMOTE), None, MARK).unwrap()
}

#[test]
fn the_address_that_routes_prefer_comes_first() {
    let (_host, _network, netlink) = host();
    assert_eq!(sources(&netlink), [ip("10.3.0.2")]);
}

#[test]
fn an_address_is_a_way_out_once_it_has_routes_of_its_own() {
    let (_host, _network, netlink) = host();
    default_by(&netlink, "10.4.0.1", 100, 0);
    let mut rule = Rule::new(Family::V4, 1000, 100);
    rule.from = Some("10.4.0.2/32".parse().unwrap());
    netlink.add_rule(&rule).unwrap();
    assert_eq!(sources(&netlink), [ip("10.3.0.2"), ip("10.4.0.2")]);
}

#[test]
fn an_interface_that_is_down_is_no_way_out() {
    let (_host, _network, netlink) = host();
    default_by(&netlink, "10.4.0.1", Route::MAIN, 4000);
    netlink.link_down("e0").unwrap();
    assert_eq!(sources(&netlink), [ip("10.4.0.2")]);
    netlink.link_down("e1").unwrap();
    assert!(sources(&netlink).is_empty());
    assert!(
        netlink
            .sources(ip("2001:db8::1"), None, MARK)
            .unwrap()
            .is_empty()
    );
}

/// Our own packets carry the mark, and may take another route than all others.
#[test]
fn the_way_is_that_of_marked_packets() {
    let (_host, _network, netlink) = host();
    default_by(&netlink, "10.4.0.1", 100, 0);
    let others = Rule::new(Family::V4, 1000, 100).mark(Mark::IsNot(MARK));
    netlink.add_rule(&others).unwrap();
    assert_eq!(sources(&netlink)[0], ip("10.3.0.2"));
    let unmarked = netlink.sources(ip(REMOTE), None, 0).unwrap();
    assert_eq!(unmarked[0], ip("10.4.0.2"));
}

#[test]
fn every_change_of_addresses_and_routes_is_told_and_nothing_else() {
    let (host, _network, netlink) = host();
    let changes = host.enter(|| Changes::watch("t0")).unwrap().unwrap();
    assert_eq!(changes.read().unwrap(), News::default());
    let happen: [&dyn Fn(); 3] = [
        &|| give(&host, "e0", &["10.3.0.9/24"]),
        &|| default_by(&netlink, "10.4.0.1", Route::MAIN, 4000),
        &|| netlink.link_down("e0").unwrap(),
    ];
    for happen in happen {
        happen();
        await_change(&changes);
    }
}

fn await_change(changes: &Changes) {
    let wanted = changes.descriptors();
    let mut wanted: Vec<_> = wanted
        .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
        .collect();
    let timeout = PollTimeout::try_from(PATIENCE).unwrap();
    assert_eq!(poll(&mut wanted, timeout), Ok(1), "no change is told");
    assert!(changes.read().unwrap().ways);
}

#[test]
fn a_machine_without_a_route_reaches_nothing() {
    let (_host, _network, netlink) = host();
    assert!(netlink.reaches(ip(REMOTE), None, MARK).unwrap());
    assert!(!netlink.reaches(ip("2001:db8::1"), None, MARK).unwrap());
    netlink.link_down("e0").unwrap();
    assert!(!netlink.reaches(ip(REMOTE), None, MARK).unwrap());
}

#[test]
fn a_route_may_prefer_any_global_address_of_an_interface_that_is_up() {
    let (host, _network, netlink) = host();
    give(&host, "e1", &["169.254.1.1/16", "fe80::7/64", "fd04::2/64"]);
    give(&host, "e0", &["10.3.0.3/24"]);
    let sources = |except| netlink.source_addresses(except).unwrap();
    let of_e1 = [ip("10.4.0.2"), ip("fd04::2")];
    let all = [&[ip("10.3.0.2"), ip("10.3.0.3")], &of_e1[..]].concat();
    assert_eq!(sources("t0"), all);
    assert_eq!(sources("e0"), of_e1);
    netlink.link_down("e0").unwrap();
    assert_eq!(sources("t0"), of_e1);
    let there = netlink.all_addresses().unwrap();
    for address in ["10.3.0.2", "10.4.0.2", "169.254.1.1", "fe80::7"].map(ip) {
        assert!(there.contains(&address), "{address}");
    }
}

/// Every link has a route to all link-local addresses, so the interface decides. Negative control:
/// without one there is no way.
// Works: link-local
#[test]
fn a_link_local_address_is_reached_from_those_of_its_link_alone() {
    let (host, _network, netlink) = host();
    give(&host, "e0", &["fe80::7/64", "fd03::7/64"]);
    give(&host, "e1", &["fe80::8/64"]);
    let remote = ip("fe80::1");
    let index = |name| host.enter(|| os::links::index(name)).unwrap();
    let sources = |link| netlink.sources(remote, link, MARK).unwrap();
    let (e0, e1) = (sources(index("e0")), sources(index("e1")));
    assert!(
        e0.contains(&ip("fe80::7")) && e1.contains(&ip("fe80::8")),
        "{e0:?} {e1:?}"
    );
    let is_bound =
        |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    assert!(e0.iter().all(is_bound), "{e0:?}");
    assert!(
        !e0.contains(&ip("fe80::8")) && !e1.contains(&ip("fe80::7")),
        "{e0:?} {e1:?}"
    );
    assert!(netlink.reaches(remote, index("e1"), MARK).unwrap());
    assert!(sources(None).is_empty());
    assert!(!netlink.reaches(remote, None, MARK).unwrap());
}
