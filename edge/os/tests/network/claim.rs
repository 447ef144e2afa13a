use crate::line::{Line, ip, until};
use os::routes::{RoutePlan, Routes};
use os::{Claim, Error, NetNs, claim};

const FIRST: &str = "stratad (process 1234, /etc/strata/strata.toml)";

fn take(namespace: &NetNs, holder: &str) -> Result<Claim, Error> {
    namespace.enter(|| Claim::take(holder)).unwrap()
}

fn holder(namespace: &NetNs) -> Option<String> {
    namespace.enter(Claim::holder).unwrap().unwrap()
}

#[test]
fn a_claim_is_taken_once_and_the_second_process_is_told_the_first() {
    let namespace = NetNs::new().unwrap();
    let claim = take(&namespace, FIRST).unwrap();
    let error = take(&namespace, "stratad (process 99)").err().unwrap();
    let told = format!("another {FIRST} serves this network namespace");
    assert!(error.to_string().starts_with(&told), "{error}");
    // The attempt changes nothing.
    assert_eq!(holder(&namespace).as_deref(), Some(FIRST));
    drop(claim);
    until("a claim that is free", || holder(&namespace).is_none());
    take(&namespace, FIRST).map(drop).unwrap();
}

#[test]
fn each_namespace_has_a_claim_of_its_own() {
    let namespaces = [NetNs::new().unwrap(), NetNs::new().unwrap()];
    let claims = namespaces.each_ref().map(|one| take(one, FIRST).unwrap());
    assert_eq!(claims.len(), 2);
}

#[test]
fn a_claim_leaves_nothing_and_no_packet_takes_its_device() {
    let namespace = NetNs::new().unwrap();
    let claim = take(&namespace, FIRST).unwrap();
    let netlink = namespace.netlink().unwrap();
    assert_eq!(netlink.running(claim::DEVICE), None);
    assert_eq!(netlink.addresses(claim::DEVICE).unwrap(), []);
    drop(claim);
    // A process started by another test shares the descriptor until its exec.
    until("a device that is gone", || {
        netlink.links().unwrap() == ["lo"]
    });
}

/// The rule also holds if another program brings the device up.
#[test]
fn the_device_of_a_claim_has_no_address_when_it_is_up() {
    let namespace = NetNs::new().unwrap();
    let _claim = take(&namespace, FIRST).unwrap();
    let netlink = namespace.netlink().unwrap();
    netlink.link_up(claim::DEVICE).unwrap();
    assert_eq!(netlink.addresses(claim::DEVICE).unwrap(), []);
}

#[test]
fn a_holder_with_a_long_name_is_told_in_part() {
    let namespace = NetNs::new().unwrap();
    let long = format!("stratad (process 1234, /{})", "x".repeat(300));
    let _claim = take(&namespace, &long).unwrap();
    let seen = holder(&namespace).unwrap();
    assert_eq!(seen, long[..254]);
}

/// Packets of peers never arrive on the claim's device.
#[test]
fn a_claim_is_no_interface_that_checks_reverse_paths() {
    let line = Line::new();
    for interface in ["default", "all"] {
        let setting = format!("net.ipv4.conf.{interface}.rp_filter");
        line.a.sysctl(&setting, "0").unwrap();
    }
    line.a
        .sysctl("net.ipv4.conf.default.rp_filter", "1")
        .unwrap();
    let _claim = take(&line.a, FIRST).unwrap();
    let routes = line.a.enter(|| Routes::open("t0")).unwrap().unwrap();
    let plan = RoutePlan {
        protected: vec![("10.0.0.0/8".parse().unwrap(), None)],
        ..RoutePlan::default()
    };
    let checked = line.a.enter(|| routes.check_peers(&plan, [ip("10.1.0.2")]));
    checked.unwrap().unwrap();
}
