//! Nodes that `licences` name together: no two of them may share a key (DESIGN section 4, invariant
//! 5), unless `shared` allows it.
//!
//! Every node recognises the packets that it may open by the first zone, so all nodes hold that
//! zone's key. The keys of a node's other zones are its own, and at most one node has no other
//! zone. A node that shares a key can forge data that the key's other holders accept, although
//! neither endpoint does.

use crate::reader::Value;
use crate::{Peer, ZonePolicy};
use model::{Identity, Licence, ZoneId};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the rules between the licences of a peer.
pub(crate) fn check(peer: &Peer, root: &Value<'_>) {
    let licences = root.at(&["peer", &peer.party.name, "licences"]);
    let Some(value) = licences.filter(|_| !peer.zones.shared) else {
        return;
    };
    for (zone, [one, other]) in sharing(peer) {
        value.fault::<()>(
            format!("{one} and {other} would share the key of `{}`", peer.zones.name(zone)),
            "license one of them, or split `layout` so that each has its own zone: \
             [\"ip\", \"transport\", \"payload\"] is enough for one node with `ip` and one with both; \
             or write `shared = true`, and each can forge data that the other accepts",
        );
    }
}

/// Returns the zones whose keys two nodes would hold, with both nodes. Each place is checked
/// together with the licences that apply everywhere.
pub(crate) fn sharing(peer: &Peer) -> Vec<(ZoneId, [&Identity; 2])> {
    let ZonePolicy {
        licences,
        slots,
        domains,
        ..
    } = &peer.zones;
    let everywhere = sharing_among(licences.iter());
    let slots = slots.iter().map(|slot| (&slot.node, &slot.licences));
    let domains = domains
        .iter()
        .map(|domain| (&domain.node, &domain.licences));
    let there = slots.chain(domains).flat_map(|(node, there)| {
        let all = sharing_among(licences.iter().chain(there));
        all.into_iter()
            .filter(move |(_, nodes)| nodes.contains(&node))
    });
    everywhere.into_iter().chain(there).collect()
}

fn sharing_among<'a>(
    licences: impl Iterator<Item = &'a Licence>,
) -> Vec<(ZoneId, [&'a Identity; 2])> {
    let mut nodes: BTreeMap<&Identity, BTreeSet<ZoneId>> = BTreeMap::new();
    for licence in licences {
        let zones = nodes.entry(&licence.node).or_default();
        zones.insert(licence.zone);
    }
    let mut owners: BTreeMap<ZoneId, &Identity> = BTreeMap::new();
    let mut sharing = Vec::new();
    for (node, zones) in &nodes {
        let own = |zone: &&ZoneId| **zone != ZoneId::DESIGNATED || zones.len() == 1;
        for zone in zones.iter().filter(own) {
            let other = owners.insert(*zone, node);
            sharing.extend(other.map(|other| (*zone, [other, *node])));
        }
    }
    sharing
}
