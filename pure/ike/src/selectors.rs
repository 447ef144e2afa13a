//! Narrowing of traffic selectors (RFC 7296 section 2.9): only traffic within both the offer and
//! the policy is ever negotiated.

use model::TrafficSelector;

/// Maximum number of selectors in an answer. Traffic of further selectors is not negotiated.
const MAX_SELECTORS: usize = 64;

/// Returns the parts of the offer that the policy allows, without those that another one covers and
/// those that no packet matches. Empty if there are none.
pub(crate) fn narrow(
    offered: &[TrafficSelector],
    policy: &[TrafficSelector],
) -> Vec<TrafficSelector> {
    let mut agreed: Vec<TrafficSelector> = Vec::new();
    let pairs = offered
        .iter()
        .flat_map(|offer| policy.iter().filter_map(|rule| offer.intersection(rule)))
        .filter(TrafficSelector::is_matchable);
    for part in pairs {
        if agreed.iter().any(|have| covers(have, &part)) {
            continue;
        }
        agreed.retain(|have| !covers(&part, have));
        agreed.push(part);
        if agreed.len() == MAX_SELECTORS {
            break;
        }
    }
    agreed
}

/// Returns true if an answer is not empty and lies within the offer.
pub(crate) fn is_narrowed(answer: &[TrafficSelector], offered: &[TrafficSelector]) -> bool {
    let inside = |part: &TrafficSelector| offered.iter().any(|offer| covers(offer, part));
    !answer.is_empty() && answer.iter().all(inside)
}

/// Returns true if an SA with these selectors can carry packets: a local and a remote selector have
/// the same family and a common protocol.
pub(crate) fn can_carry(local: &[TrafficSelector], remote: &[TrafficSelector]) -> bool {
    let matchable = |selectors: &&TrafficSelector| selectors.is_matchable();
    let mut local = local.iter().filter(matchable);
    local.any(|local| {
        remote
            .iter()
            .filter(matchable)
            .any(|far| local.reaches(far))
    })
}

fn covers(outer: &TrafficSelector, inner: &TrafficSelector) -> bool {
    outer.intersection(inner).as_ref() == Some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice;

    fn prefix(text: &str) -> TrafficSelector {
        let (address, length) = text.split_once('/').unwrap();
        TrafficSelector::from_prefix(address.parse().unwrap(), length.parse().unwrap()).unwrap()
    }

    fn prefixes(texts: &[&str]) -> Vec<TrafficSelector> {
        texts.iter().map(|text| prefix(text)).collect()
    }

    #[test]
    fn the_answer_is_what_both_allow() {
        let offered = prefixes(&["0.0.0.0/0", "::/0"]);
        let policy = prefixes(&["10.0.0.0/8", "192.168.0.0/16"]);
        assert_eq!(narrow(&offered, &policy), policy);
        assert!(narrow(&prefixes(&["172.16.0.0/12"]), &policy).is_empty());
    }

    /// An initiator may put the packet that triggered the negotiation first (section 2.9).
    #[test]
    fn a_specific_first_selector_is_absorbed() {
        let mut packet = prefix("10.1.2.3/32");
        packet.protocol = 6;
        let offered = [packet, prefix("10.1.0.0/16")];
        let policy = prefixes(&["10.0.0.0/8"]);
        assert_eq!(narrow(&offered, &policy), prefixes(&["10.1.0.0/16"]));
    }

    // Weakness: 80
    #[test]
    fn a_wider_answer_is_not_narrowed() {
        let offered = prefixes(&["10.0.0.0/8"]);
        assert!(is_narrowed(&prefixes(&["10.1.0.0/16"]), &offered));
        assert!(!is_narrowed(&prefixes(&["10.0.0.0/7"]), &offered));
        assert!(!is_narrowed(&prefixes(&["10.0.0.0/8", "::/0"]), &offered));
        assert!(!is_narrowed(&[], &offered));
    }

    // Weakness: 11
    #[test]
    fn the_answer_is_bounded() {
        let offered: Vec<_> = (0..=255)
            .map(|n| prefix(&format!("10.{n}.0.0/24")))
            .collect();
        let policy = prefixes(&["0.0.0.0/0"]);
        assert_eq!(narrow(&offered, &policy).len(), MAX_SELECTORS);
    }

    fn ranged(protocol: u8, ports: std::ops::RangeInclusive<u16>) -> TrafficSelector {
        TrafficSelector {
            protocol,
            ports,
            ..prefix("10.1.0.0/16")
        }
    }

    /// RFC 7296 section 3.13.1: "For protocols for which port is undefined (including protocol 0)
    /// [...] this field MUST be zero".
    #[test]
    fn a_selector_that_no_packet_matches_is_left_out() {
        let policy = prefixes(&["10.0.0.0/8"]);
        let echo = ranged(1, 0x0800..=0x0800);
        for protocol in [0, 4, 41, 47, 50, 51, 89, 112, 255] {
            let (dead, alive) = (ranged(protocol, 80..=80), ranged(protocol, 0..=u16::MAX));
            assert!(narrow(slice::from_ref(&dead), &policy).is_empty());
            let both = [dead, echo.clone()];
            assert_eq!(narrow(&both, &policy), slice::from_ref(&echo));
            assert_eq!(narrow(slice::from_ref(&alive), &policy), [alive]);
        }
        // With the protocol of the policy, the selector is one of TCP.
        let any = ranged(0, 80..=80);
        let web = narrow(&[any], &[ranged(6, 0..=u16::MAX)]);
        assert_eq!(web, [ranged(6, 80..=80)]);
    }

    #[test]
    fn ends_without_a_protocol_or_family_in_common_carry_nothing() {
        let (tcp, udp) = (ranged(6, 0..=u16::MAX), ranged(17, 0..=u16::MAX));
        let (all, v6) = (prefix("10.8.0.0/16"), prefix("::/0"));
        assert!(can_carry(
            slice::from_ref(&tcp),
            &[udp.clone(), all.clone()]
        ));
        assert!(can_carry(
            &[ranged(1, 0x0800..=0x0800)],
            &[ranged(1, 0..=0)]
        ));
        for (local, remote) in [
            (&[tcp.clone()][..], &[udp][..]),
            (slice::from_ref(&v6), &[all]),
            (&[tcp], &[]),
            (&[ranged(50, 1..=2)], slice::from_ref(&v6)),
        ] {
            assert!(!can_carry(local, remote));
        }
    }
}
