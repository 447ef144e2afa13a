//! Several child SAs for the same traffic, one for each resource that processes it, such as a CPU
//! (RFC 9611).
//!
//! Both ends send SA_RESOURCE_INFO with the first child SA, which is "the fallback SA". Then the
//! initiator requests as many further child SAs as its configuration allows. Each request has the
//! notify, with a name of the resource for people to read. The other end accepts as many as its own
//! configuration allows, and refuses all others by TS_MAX_QUEUE. It is then not asked again until
//! one of the child SAs is deleted. Everything else continues. A peer that does not know the notify
//! would mistake a second child SA for a replacement of the first, so it is never asked.
//!
//! The engine treats these child SAs like those with a table of their own, under names that no
//! table can have: each is kept up, rekeyed and deleted separately. `esp` chooses the SA of each
//! packet.

use crate::config::{Limits, Peer};
use crate::exchange::{find_notify, notify};
use model::MOST_RESOURCES;
use std::sync::LazyLock;
use wire::ike::{Message, NotifyType, Payload};

/// Names of the additional child SAs.
static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| (2..=MOST_RESOURCES).map(|n| format!("#{n}")).collect());

/// Returns the number of a child SA among those for the same traffic, from 0; `None` if it has a
/// table of its own.
pub(crate) fn number(name: Option<&str>) -> Option<u8> {
    match name {
        None => Some(0),
        Some(name) => name.strip_prefix('#')?.parse::<u8>().ok()?.checked_sub(1),
    }
}

/// Returns true if a child SA is an additional one for the traffic of the first.
pub(crate) fn is_additional(name: Option<&str>) -> bool {
    name.is_some() && number(name).is_some()
}

/// Returns the notify for IKE_AUTH that announces support for several child SAs.
pub(crate) fn supported(peer: &Peer) -> Option<Payload> {
    (peer.features.resources > 1).then(|| info(None))
}

/// Returns the notify for a child SA of a resource with this name.
pub(crate) fn info(name: Option<&str>) -> Payload {
    let resource = name.unwrap_or_default().as_bytes().to_vec();
    notify(NotifyType::SA_RESOURCE_INFO, resource)
}

/// Returns true if a message has SA_RESOURCE_INFO. The name of the resource is ignored.
pub(crate) fn is_named(message: &Message) -> bool {
    find_notify(message, NotifyType::SA_RESOURCE_INFO).is_some()
}

/// Returns true if both ends want several child SAs: the configuration says so, and the IKE_AUTH
/// message has the notify.
pub(crate) fn is_agreed(peer: &Peer, message: &Message) -> bool {
    peer.features.resources > 1 && is_named(message)
}

/// Returns the maximum number of child SAs of one of a peer's IKE SAs: the configured limit, plus
/// room for the additional ones, those on further paths, and their replacements.
pub(crate) fn most_children(peer: &Peer, limits: &Limits) -> usize {
    let [resources, paths] = [peer.features.resources, peer.features.paths];
    let more = [resources, paths].map(|most| usize::from(most.saturating_sub(1)));
    // Each path may have one for its own traffic as well.
    let narrowed = if paths > 1 { usize::from(paths) } else { 0 };
    limits.children + 2 * (more.iter().sum::<usize>() + narrowed)
}

/// Returns the names of the additional child SAs for the traffic of the first one.
pub(crate) fn names(resources: u8) -> impl Iterator<Item = &'static str> {
    let more = usize::from(resources.saturating_sub(1));
    NAMES.iter().take(more).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PeerRole;
    use crate::tests::{peer, saying};

    fn peer_with(resources: u8) -> Peer {
        let mut peer = peer("gateway", PeerRole::Gateway);
        peer.features.resources = resources;
        peer
    }

    #[test]
    fn who_wants_one_child_says_nothing_of_resources() {
        assert_eq!(supported(&peer_with(1)), None);
        let said = supported(&peer_with(2)).map(|said| saying(vec![said]));
        let said = said.expect("it wants two");
        assert!(is_agreed(&peer_with(2), &said));
        assert!(!is_agreed(&peer_with(1), &said));
        assert!(!is_agreed(&peer_with(2), &saying(Vec::new())));
    }

    #[test]
    fn a_resource_may_have_any_name_and_none() {
        for data in [&[][..], b"#2", &[0xff; 300]] {
            let said = notify(NotifyType::SA_RESOURCE_INFO, data.to_vec());
            assert!(is_named(&saying(vec![said])));
        }
    }

    #[test]
    fn children_for_the_same_traffic_are_numbered_and_others_are_not() {
        assert_eq!(number(None), Some(0));
        let numbers: Vec<_> = NAMES.iter().map(|name| number(Some(name))).collect();
        assert_eq!(numbers, (1..MOST_RESOURCES).map(Some).collect::<Vec<_>>());
        for other in ["voice", "2", "#", "#0", "#256", "#x"] {
            assert!(!is_additional(Some(other)), "{other}");
        }
        assert!(!is_additional(None));
    }
}
