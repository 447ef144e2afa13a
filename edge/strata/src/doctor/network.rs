//! Checks of the network as configured: paths on which packets would be lost.

use super::finding::Finding;
use config::{Config, Divert, Need, PathMtu, Peer, Setting, ZONED_OVERHEAD};
use os::{Error, Family, Netlink, divert, routes, sysctl};
use std::net::{IpAddr, UdpSocket};

/// Largest overhead of plain ESP, in octets, with an outer IPv6 header; 20 fewer with IPv4.
const PLAIN_OVERHEAD: u16 = 117;

/// The same with AES-CBC: 4 octets more, because it pads to whole blocks.
const CBC_OVERHEAD: u16 = 121;

/// The MTU that IPv6 demands of a link.
const LEAST_MTU: u32 = 1280;

/// Runs all checks of the network.
pub fn examine(config: &Config, runs: bool) -> Vec<Finding> {
    let device = &config.tunnel.name;
    let needs = config.needs().into_iter();
    let mut findings: Vec<_> = needs.map(|need| setting(&need, device)).collect();
    findings.extend(config.peers.iter().filter_map(|peer| mtu(config, peer)));
    if let Some(divert) = &config.divert {
        findings.extend(diversion(divert, runs));
    }
    findings.extend(places(config));
    findings
}

/// Checks a kernel setting that a role needs. One of several is enough.
fn setting(need: &Need, device: &str) -> Finding {
    let check = match need.settings.first() {
        Some(Setting::LooseReversePath { .. }) => "rp_filter",
        _ => "forwarding",
    };
    let unmet = |setting: &Setting| unmet(setting, device);
    let unmet: Option<Vec<_>> = need.settings.iter().map(unmet).collect();
    let Some(unmet) = unmet else {
        return Finding::good(check, need.to_string());
    };
    let (seen, fixes): (Vec<_>, Vec<_>) = unmet.into_iter().unzip();
    let (seen, fix) = (seen.join(", "), format!("sysctl -w {}", fixes.join(" ")));
    match need.is_vital {
        true => Finding::fail(check, seen, need.why, fix),
        false => Finding::doubt(check, seen, need.why, fix),
    }
}

/// Returns the observation and the settings that correct it, unless a setting is as it should be.
fn unmet(setting: &Setting, device: &str) -> Option<(String, String)> {
    let strict = match setting {
        Setting::ForwardIpv4 => return forwarding(Family::V4, setting),
        Setting::ForwardIpv6 => return forwarding(Family::V6, setting),
        Setting::LooseReversePath { interface } => routes::strict_among(interface, device),
    };
    let fix = |interface: &String| {
        let interface = interface.clone();
        Setting::LooseReversePath { interface }.to_string()
    };
    let fixes: Vec<_> = strict.iter().map(fix).collect();
    (!strict.is_empty()).then(|| {
        let seen = format!("strict reverse-path filtering at {}", strict.join(", "));
        (seen, fixes.join(" "))
    })
}

fn forwarding(family: Family, setting: &Setting) -> Option<(String, String)> {
    let error = sysctl::require_forwarding(family).err()?;
    let seen = match error {
        Error::NotForwarding { family } => format!("this machine does not forward {family}"),
        error => error.to_string(),
    };
    Some((seen, setting.to_string()))
}

/// Checks that interfaces and addresses of the configuration exist. Those of `[divert]` have a
/// check of their own.
fn places(config: &Config) -> Vec<Finding> {
    const CHECK: &str = "interfaces";
    const WAITS: &str = "stratad waits for it";
    let netlink = Netlink::open();
    let (links, addresses) = match &netlink {
        Ok(netlink) => (netlink.links(), netlink.all_addresses()),
        Err(_) => return Vec::new(),
    };
    let (Ok(links), Ok(addresses)) = (links, addresses) else {
        return Vec::new();
    };
    let interfaces = config.interfaces().into_iter();
    let interfaces = interfaces.filter(|(key, name)| {
        !key.starts_with("divert.") && !links.iter().any(|link| link == name)
    });
    let absent = |key: &str, name: &str, why| {
        let fix = format!("correct `{key}`; `ip link` shows the names");
        Finding::doubt(CHECK, format!("there is no interface {name}"), why, fix)
    };
    let interfaces = interfaces.map(|(key, name)| absent(key, name, WAITS));
    let linked = config.linked_hosts();
    let linked = linked.filter(|host| !links.contains(&host.at.interface));
    let linked = linked.map(|host| absent(&host.key(), &host.at.interface, WAITS));
    let traffic = config.interfaces_of_traffic();
    let traffic = traffic.filter(|(_, name)| !links.iter().any(|link| link == name));
    let traffic = traffic.map(|(key, name)| absent(&key, name, "its traffic takes other paths"));
    let missing = config.addresses().into_iter();
    let missing = missing.filter(|(_, address)| !addresses.contains(address));
    let missing = missing.map(|(key, address)| {
        let fix = format!("correct `{key}`; `ip address` shows the addresses");
        let seen = format!("no interface has the address {address}");
        Finding::doubt(CHECK, seen, WAITS, fix)
    });
    let interfaces = interfaces.chain(linked).chain(traffic);
    interfaces.chain(missing).collect()
}

/// Checks that the longest sealed packet fits the interface towards a peer.
fn mtu(config: &Config, peer: &Peer) -> Option<Finding> {
    let suites = &peer.party.suites;
    let plain = match suites.iter().any(|suite| suite.hash().is_some()) {
        true => CBC_OVERHEAD,
        false => PLAIN_OVERHEAD,
    };
    let overhead = u32::from(plain.max(ZONED_OVERHEAD + peer.zone_overhead()));
    let address = peer.address.as_ref()?;
    let on = address.link();
    let peer = address.ip()?;
    let overhead = if peer.is_ipv4() {
        overhead - 20
    } else {
        overhead
    };
    let wanted = u32::from(config.tunnel.mtu) + overhead;
    let way = on.map_or_else(|| way_to(peer), |on| way_by(&on.interface));
    let Some((interface, mtu)) = way else {
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
    // With less outside, packets of 1280 octets are fragmented.
    let is_handled = config.tunnel.path_mtu == PathMtu::Probe && mtu >= LEAST_MTU + overhead;
    Some(match mtu >= wanted {
        true => Finding::good("mtu", seen),
        // Sources are told of the length that fits, and TCP is clamped to it.
        false if is_handled => Finding::good("mtu", format!("{seen}; packets are made to fit")),
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

/// Returns the interface of a link-local address, and its MTU in octets.
fn way_by(interface: &str) -> Option<(String, u32)> {
    let mtu = Netlink::open().ok()?.mtu(interface).ok()?;
    Some((interface.to_owned(), mtu))
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
            let why = "stratad waits for this interface, and diverts nothing meanwhile";
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
