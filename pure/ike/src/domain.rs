//! Licences for every node of a domain (DESIGN section 5).
//!
//! An end may license all nodes of a domain without their names. The other end, which distributes
//! the keys, offers a slot for each node by its name, and the agreement names that node alone. The
//! pattern is thus a rule about the answer to an offer, and in no message: the keys of each node
//! are its own, and both ends can tell afterwards which node had them.

use crate::config::ZonePolicy;
use model::{Identity, Licence, Right, Wildcard, ZoneId};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Licences for every node of a domain. Each node that is offered gets a slot of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Identities of the nodes.
    pub names: Wildcard,
    /// Nodes among them that the peer's other licences name. Those hold in place of the domain's.
    pub named: BTreeSet<Identity>,
    /// Zones and rights of each node.
    pub rights: Vec<(ZoneId, Right)>,
}

impl Domain {
    /// Returns the licences of a node, none if the node is not in the domain.
    pub fn licences(&self, node: &Identity) -> Vec<Licence> {
        let rights = self.rights.iter().filter(|_| self.includes(node));
        let licence = |&(zone, right): &(ZoneId, Right)| Licence {
            node: node.clone(),
            zone,
            right,
        };
        rights.map(licence).collect()
    }

    /// Returns true if a node is licensed by the domain: no licence names it.
    pub fn includes(&self, node: &Identity) -> bool {
        self.names.matches(node) && !self.named.contains(node)
    }

    /// Returns the zones of a slot with the licences of the node that `licences` are for, if the
    /// node is licensed by the domain.
    pub(crate) fn zones_for<'z>(
        &self,
        zones: &'z ZonePolicy,
        licences: &[Licence],
    ) -> Cow<'z, ZonePolicy> {
        let Some(node) = self.node_of(licences) else {
            return Cow::Borrowed(zones);
        };
        let mut zones = zones.clone();
        zones.licences.extend(self.licences(node));
        Cow::Owned(zones)
    }

    /// Returns the node that `licences` are for, as far as it is licensed by the domain.
    pub(crate) fn node_of<'l>(&self, licences: &'l [Licence]) -> Option<&'l Identity> {
        let mut nodes = licences.iter().map(|licence| &licence.node);
        nodes.find(|node| self.includes(node))
    }
}
