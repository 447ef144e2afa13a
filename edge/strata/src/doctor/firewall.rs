//! Checks for firewalls of this host that drop packets by default.

use super::finding::Finding;
use config::{Config, MOBILE_DEVICE, Mobility};
use os::divert::Side;
use os::firewall::{self, Closed, Hook};

const CHECK: &str = "firewall";

/// Runs the check. `up`: a peer is up, so messages of IKE pass.
pub fn examine(config: &Config, up: bool) -> Vec<Finding> {
    let (ike, nat) = (config.listen.ike, config.listen.nat);
    let devices = devices(config);
    // Without nftables, or permission to read it, there is nothing to say.
    firewall::closed().map_or_else(
        |_| Vec::new(),
        |closed| judge(&closed, [ike, nat], up, &devices),
    )
}

/// Returns the devices between which and others this host forwards packets, in nft's notation;
/// empty if its roles need no forwarding.
fn devices(config: &Config) -> String {
    if !config.forwards() {
        return String::new();
    }
    let tunnel = (!config.peers.is_empty()).then_some(config.tunnel.name.as_str());
    let agent = match config.mobility {
        Some(Mobility::ForeignAgent(_) | Mobility::HomeAgent(_)) => Some(MOBILE_DEVICE),
        Some(Mobility::MobileNode(_)) | None => None,
    };
    let divert = Side::ALL.map(Side::device);
    let divert = divert.into_iter().filter(|_| config.divert.is_some());
    let devices: Vec<_> = tunnel.into_iter().chain(agent).chain(divert).collect();
    devices.join(", ")
}

/// Judges chains that drop by default, as far as they see packets that pass this host in its roles.
/// Their rules may accept those packets.
fn judge(closed: &[Closed], ports: [u16; 2], up: bool, devices: &str) -> Vec<Finding> {
    let findings: Vec<_> = closed
        .iter()
        .filter_map(|chain| finding(chain, ports, up, devices))
        .collect();
    match findings.is_empty() {
        true => vec![Finding::good(
            CHECK,
            "none that drops by default is in the way",
        )],
        false => findings,
    }
}

fn finding(closed: &Closed, ports: [u16; 2], up: bool, devices: &str) -> Option<Finding> {
    let Closed { table, chain, hook } = closed;
    let [ike, nat] = ports;
    let accept = |port: &str| {
        format!(
            "if no rule does: nft add rule {table} {chain} udp {port} '{{ {ike}, {nat} }}' accept"
        )
    };
    let (why, fix) = match hook {
        Hook::Input if !up => (
            "messages and packets of peers arrive at these UDP ports",
            accept("dport"),
        ),
        Hook::Output if !up => (
            "messages and packets to peers leave from these UDP ports",
            accept("sport"),
        ),
        Hook::Forward if !devices.is_empty() => (
            "this host forwards packets of other hosts, as its configuration requires",
            format!(
                "if no rule accepts them: nft insert rule {table} {chain} iifname \
                 '{{ {devices} }}' accept, and the same with oifname"
            ),
        ),
        Hook::Input | Hook::Output | Hook::Forward => return None,
    };
    let seen = format!("table {table}, chain {chain} drops what no rule accepts");
    Some(Finding::doubt(CHECK, seen, why, fix))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    fn closed(hook: Hook) -> Closed {
        Closed {
            table: "inet filter".to_owned(),
            chain: "all".to_owned(),
            hook,
        }
    }

    fn verdict(hook: Hook, up: bool, devices: &str) -> Verdict {
        judge(&[closed(hook)], [500, 4500], up, devices)[0].verdict
    }

    #[test]
    fn a_firewall_in_the_way_is_told_with_a_rule_and_one_that_lets_a_peer_pass_is_not() {
        for hook in [Hook::Input, Hook::Output] {
            let findings = judge(&[closed(hook)], [500, 4500], false, "");
            assert_eq!(findings[0].verdict, Verdict::Doubt);
            let rule = "nft add rule inet filter all udp";
            assert!(findings[0].fix.contains(rule), "{}", findings[0].fix);
            assert!(findings[0].fix.contains("'{ 500, 4500 }' accept"));
            assert_eq!(verdict(hook, true, "strata0"), Verdict::Good);
        }
    }

    #[test]
    fn a_firewall_between_networks_concerns_a_host_that_forwards() {
        assert_eq!(verdict(Hook::Forward, true, "strata0"), Verdict::Doubt);
        assert_eq!(verdict(Hook::Forward, false, ""), Verdict::Good);
        let none = judge(&[], [500, 4500], false, "strata0");
        assert_eq!(none[0].verdict, Verdict::Good);
    }
}
