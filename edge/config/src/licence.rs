//! Which nodes `licences` name together: no two of them share a key (DESIGN section 4, invariant 5).
//!
//! By the first zone every node tells the packets that it may open, so all of them have that key. What
//! a node has beside it is its own, and one at most has nothing beside it.

use crate::Peer;
use crate::reader::Value;
use model::{Identity, ZoneId};
use std::collections::{BTreeMap, BTreeSet};

/// Rules between the licences of a peer.
pub(crate) fn check(peer: &Peer, root: &Value<'_>) {
    let mut nodes: BTreeMap<&Identity, BTreeSet<ZoneId>> = BTreeMap::new();
    for licence in &peer.zones.licences {
        let zones = nodes.entry(&licence.node).or_default();
        zones.insert(licence.zone);
    }
    let mut owners: BTreeMap<ZoneId, &Identity> = BTreeMap::new();
    for (node, zones) in &nodes {
        let own = |zone: &&ZoneId| **zone != ZoneId::DESIGNATED || zones.len() == 1;
        for zone in zones.iter().filter(own) {
            if let Some(other) = owners.insert(*zone, node)
                && let Some(value) = root.at(&["peer", &peer.party.name, "licences"])
            {
                value.fault::<()>(
                    format!("{other} and {node} would share the key of `{}`", peer.zones.name(*zone)),
                    "license one of them, or cut `layout` so that each has a zone of its own: \
                     [\"ip\", \"transport\", \"payload\"] is enough for one that has `ip` and one that has both",
                );
            }
        }
    }
}
