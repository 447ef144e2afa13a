//! Narrowing traffic selectors (RFC 7296 section 2.9): what is agreed lies inside what was offered
//! and inside the policy, and nothing else is ever agreed.

use model::TrafficSelector;

/// More selectors than this are not answered; the rest of the traffic is simply not agreed.
const MAX_SELECTORS: usize = 64;

/// The parts of the offer that the policy allows, without those that another one covers. Empty if
/// there are none.
pub(crate) fn narrow(
    offered: &[TrafficSelector],
    policy: &[TrafficSelector],
) -> Vec<TrafficSelector> {
    let mut agreed: Vec<TrafficSelector> = Vec::new();
    let pairs = offered
        .iter()
        .flat_map(|offer| policy.iter().filter_map(|rule| offer.intersection(rule)));
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

/// Whether an answer says nothing that was not offered, and says something.
pub(crate) fn is_narrowed(answer: &[TrafficSelector], offered: &[TrafficSelector]) -> bool {
    let inside = |part: &TrafficSelector| offered.iter().any(|offer| covers(offer, part));
    !answer.is_empty() && answer.iter().all(inside)
}

fn covers(outer: &TrafficSelector, inner: &TrafficSelector) -> bool {
    outer.intersection(inner).as_ref() == Some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// An initiator may put the packet that began it all first (section 2.9).
    #[test]
    fn a_specific_first_selector_is_absorbed() {
        let mut packet = prefix("10.1.2.3/32");
        packet.protocol = 6;
        let offered = [packet, prefix("10.1.0.0/16")];
        let policy = prefixes(&["10.0.0.0/8"]);
        assert_eq!(narrow(&offered, &policy), prefixes(&["10.1.0.0/16"]));
    }

    #[test]
    fn a_wider_answer_is_not_narrowed() {
        let offered = prefixes(&["10.0.0.0/8"]);
        assert!(is_narrowed(&prefixes(&["10.1.0.0/16"]), &offered));
        assert!(!is_narrowed(&prefixes(&["10.0.0.0/7"]), &offered));
        assert!(!is_narrowed(&prefixes(&["10.0.0.0/8", "::/0"]), &offered));
        assert!(!is_narrowed(&[], &offered));
    }

    #[test]
    fn the_answer_is_bounded() {
        let offered: Vec<_> = (0..=255)
            .map(|n| prefix(&format!("10.{n}.0.0/24")))
            .collect();
        let policy = prefixes(&["0.0.0.0/0"]);
        assert_eq!(narrow(&offered, &policy).len(), MAX_SELECTORS);
    }
}
