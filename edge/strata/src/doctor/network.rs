//! Checks of the network as configured: paths on which packets would be lost.

use super::finding::Finding;
use config::{Action, Config, Divert, Peer, ZONED_OVERHEAD};
use os::{Family, Netlink, divert, routes, sysctl};
use std::net::{IpAddr, UdpSocket};

/// Largest overhead of plain ESP, in octets, with an outer IPv6 header; 20 fewer with IPv4.
const PLAIN_OVERHEAD: u16 = 117;

/// The same with AES-CBC: 4 octets more, because it pads to whole blocks.
const CBC_OVERHEAD: u16 = 121;

/// Runs all checks of the network.
pub fn examine(config: &Config, runs: bool) -> Vec<Finding> {
    let mut findings = reverse_paths(config);
    findings.extend(config.peers.iter().filter_map(|peer| mtu(config, peer)));
    if config.peers.iter().any(|peer| peer.address.is_none()) {
        findings.push(forwarding(
            "hosts behind this gateway are not reached",
            true,
        ));
    }
    if let Some(divert) = &config.divert {
        findings.push(forwarding(
            "a licensed node forwards packets of other hosts",
            false,
        ));
        findings.extend(diversion(divert, runs));
    }
    findings
}

/// Checks reverse-path filters. Packets from a peer fail a strict filter if the peer's own address
/// is protected, because the route to that address is the tunnel.
fn reverse_paths(config: &Config) -> Vec<Finding> {
    const CHECK: &str = "rp_filter";
    let is_inside = |peer: &Peer| {
        let inside = |address| protects(config, address);
        peer.address
            .is_some_and(|address| address.is_ipv4() && inside(address))
    };
    if !config.peers.iter().any(is_inside) {
        return vec![Finding::good(CHECK, "no tunnel covers its peer's address")];
    }
    let strict = Netlink::open()
        .and_then(|netlink| routes::strict_interfaces(&netlink, &config.tunnel.name));
    let mut findings: Vec<_> = strict
        .unwrap_or_default()
        .iter()
        .map(|link| {
            Finding::fail(
                CHECK,
                format!("strict reverse-path filtering at {link}"),
                "a tunnel covers its peer's address, so the kernel expects that peer's packets from \
                 the tunnel, and drops them",
                format!("sysctl -w net.ipv4.conf.{link}.rp_filter=2 net.ipv4.conf.all.rp_filter=2"),
            )
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::good(CHECK, "no strict reverse-path filtering"));
    }
    findings
}

fn protects(config: &Config, address: IpAddr) -> bool {
    let remote = config.peers.iter().flat_map(|peer| &peer.remote);
    let bypass = |policy: &&config::Policy| policy.action == Action::Bypass;
    let bypassed = config.policies.iter().filter(bypass);
    remote
        .into_iter()
        .any(|remote| remote.contains(address, 0, None))
        && !bypassed
            .into_iter()
            .any(|policy| policy.remote.contains(address, 0, None))
}

/// Checks that the longest sealed packet fits the interface towards a peer.
fn mtu(config: &Config, peer: &Peer) -> Option<Finding> {
    let suites = &peer.party.suites;
    let plain = match suites.iter().any(|suite| suite.hash().is_some()) {
        true => CBC_OVERHEAD,
        false => PLAIN_OVERHEAD,
    };
    let overhead = u32::from(plain.max(ZONED_OVERHEAD + peer.zone_overhead()));
    let peer = peer.address?;
    let overhead = if peer.is_ipv4() {
        overhead - 20
    } else {
        overhead
    };
    let wanted = u32::from(config.tunnel.mtu) + overhead;
    let Some((interface, mtu)) = way_to(peer) else {
        let why = "the tunnel cannot be set up from this network";
        let fix = format!("connect to a network; check with `ip route get {peer}`");
        return Some(Finding::doubt(
            "mtu",
            format!("no route to {peer}"),
            why,
            fix,
        ));
    };
    let seen =
        format!("{interface} has an MTU of {mtu} octets, the longest sealed packet {wanted}");
    Some(match mtu >= wanted {
        true => Finding::good("mtu", seen),
        false => Finding::doubt(
            "mtu",
            seen,
            "long packets are fragmented, which is slow and blocked by some firewalls",
            format!(
                "mtu = {} in [tunnel]",
                (mtu.saturating_sub(overhead)).max(1280)
            ),
        ),
    })
}

/// Returns the interface that the kernel would send from, and its MTU in octets. Sends nothing.
fn way_to(peer: IpAddr) -> Option<(String, u32)> {
    let any = if peer.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect((peer, 500)).ok()?;
    let ours = socket.local_addr().ok()?.ip();
    let netlink = Netlink::open().ok()?;
    let has_it = |link: &String| {
        let addresses = netlink.addresses(link).unwrap_or_default();
        addresses.iter().any(|prefix| prefix.address == ours)
    };
    let link = netlink.links().ok()?.into_iter().find(has_it)?;
    let mtu = netlink.mtu(&link).ok()?;
    Some((link, mtu))
}

fn forwarding(why: &'static str, may_be_meant: bool) -> Finding {
    const CHECK: &str = "forwarding";
    let refused = |family: Family| sysctl::require_forwarding(family).err();
    match (refused(Family::V4), refused(Family::V6)) {
        (Some(error), Some(_)) => {
            let seen = "this machine forwards neither IPv4 nor IPv6";
            let fix = error.to_string();
            let fix = fix.split('`').nth(1).unwrap_or(&fix).to_owned();
            match may_be_meant {
                true => Finding::doubt(CHECK, seen, why, fix),
                false => Finding::fail(CHECK, seen, why, fix),
            }
        }
        (None, None) => Finding::good(CHECK, "IPv4 and IPv6"),
        (None, Some(_)) => Finding::good(CHECK, "IPv4 only"),
        (Some(_), None) => Finding::good(CHECK, "IPv6 only"),
    }
}

/// Checks both interfaces of a licensed node and the rules that divert from them (DESIGN section
/// 7).
fn diversion(config: &Divert, runs: bool) -> Vec<Finding> {
    const CHECK: &str = "divert";
    let netlink = Netlink::open();
    let links = netlink
        .as_ref()
        .map_or_else(|_| Vec::new(), |n| n.links().unwrap_or_default());
    let rules = netlink
        .as_ref()
        .map_or_else(|_| Vec::new(), |n| n.rules().unwrap_or_default());
    let side = |interface: &String| {
        let ours = |rule: &&os::netlink::Rule| {
            rule.priority == divert::PRIORITY && rule.iif.as_ref() == Some(interface)
        };
        if !links.contains(interface) {
            let fix = "correct [divert]; `ip link` shows the names";
            let why = "stratad does not start without this interface";
            Finding::fail(
                CHECK,
                format!("there is no interface {interface}"),
                why,
                fix,
            )
        } else if runs && !rules.iter().any(|rule| ours(&rule)) {
            Finding::fail(
                CHECK,
                format!("no rule diverts packets that arrive at {interface}"),
                "without rules on both sides, no flow is repaired, and reverse-path filters drop packets",
                "run `strata reload`: another program removed the rule",
            )
        } else {
            Finding::good(CHECK, interface.clone())
        }
    };
    [&config.wired, &config.wireless]
        .into_iter()
        .map(side)
        .collect()
}
