//! Several child SAs for the same traffic, one for each resource, such as a processor, that works at it
//! (RFC 9611).
//!
//! Both ends say SA_RESOURCE_INFO where they make the first child, which is as always: "the fallback SA".
//! Then who began asks for as many more as its configuration wants, each with the notify, and with what it
//! calls the resource, which is for people to read. The other end makes so many as its own configuration
//! wants, and refuses all beyond by TS_MAX_QUEUE: then it is not asked again until one of them is deleted.
//! Everything else goes on. A peer that does not know the notify would take a second child for a successor
//! of the first, so it is never asked.
//!
//! To us these children are as those with a table of their own, and have names that no table can have:
//! each is kept, gets new keys, and goes alone. Which packet goes on which is for `esp` to choose.

use crate::config::{Limits, Peer};
use crate::exchange::{find_notify, notify};
use crate::policy::Policy;
use model::MOST_RESOURCES;
use std::sync::LazyLock;
use wire::ike::{Message, NotifyType, Payload};

/// What those beside the first are called.
static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| (2..=MOST_RESOURCES).map(|n| format!("#{n}")).collect());

/// Which of the children for the same traffic one of a name is, from 0; `None` if it has a table.
pub(crate) fn number(name: Option<&str>) -> Option<u8> {
    match name {
        None => Some(0),
        Some(name) => name.strip_prefix('#')?.parse::<u8>().ok()?.checked_sub(1),
    }
}

/// Whether a child of a name is there beside the first for the same traffic.
pub(crate) fn is_additional(name: Option<&str>) -> bool {
    name.is_some() && number(name).is_some()
}

/// What says in IKE_AUTH that there may be more.
pub(crate) fn supported(peer: &Peer) -> Option<Payload> {
    (peer.resources > 1).then(|| info(None))
}

/// What goes with a child for a resource; a name says which.
pub(crate) fn info(name: Option<&str>) -> Payload {
    let resource = name.unwrap_or_default().as_bytes().to_vec();
    notify(NotifyType::SA_RESOURCE_INFO, resource)
}

/// Whether a message speaks of resources. What they are called is nobody's to understand.
pub(crate) fn is_named(message: &Message) -> bool {
    find_notify(message, NotifyType::SA_RESOURCE_INFO).is_some()
}

/// Whether both ends want several children: we do, and so does the sender of a message of IKE_AUTH.
pub(crate) fn is_agreed(peer: &Peer, message: &Message) -> bool {
    peer.resources > 1 && is_named(message)
}

impl Peer {
    /// How many children one of its IKE SAs may have: what the limit is for, and room for those that its
    /// configuration wants and for their successors.
    pub(crate) fn most_children(&self, limits: &Limits) -> usize {
        limits.children + 2 * usize::from(self.resources.saturating_sub(1))
    }
}

impl<'p> Policy<'p> {
    /// The children for the same traffic as this one.
    pub(crate) fn additional(self, resources: u8) -> impl Iterator<Item = Policy<'p>> {
        let more = usize::from(resources.saturating_sub(1));
        NAMES.iter().take(more).map(move |name| Policy {
            name: Some(name),
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PeerRole;
    use crate::tests::{peer, saying};

    fn peer_with(resources: u8) -> Peer {
        let peer = peer("gateway", PeerRole::Gateway);
        Peer { resources, ..peer }
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
