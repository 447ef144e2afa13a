//! Licences for all nodes of a domain: `node = "*.sat.example.net"` in `licences`.
//!
//! Both ends write the domain. The end that distributes keys has a table for each node, which a
//! certificate of named CAs must prove, and offers each by its name. The other end has none.

use crate::reader::Value;
use crate::zone::Licences;
use crate::{Config, Handover, Licensed, Peer, Warning, ZonePolicy, handover};
use model::{Identity, Licence, Right, TrafficSelector, Wildcard, ZoneId};
use std::collections::BTreeSet;

/// Most nodes of a domain with keys at once, unless configured otherwise.
const AT_MOST: u8 = 4;

/// Most nodes of a domain that may have keys at once.
const MOST: u32 = 16;

/// Most addresses and prefixes of a node's place.
const MOST_RANGES: usize = 32;

/// The licences of all nodes of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The domain, as a pattern of its nodes.
    pub node: Identity,
    /// `at_most`: most nodes of the domain that have keys at once, 1 to 16, each its own. Default
    /// 4.
    pub most: u8,
    /// The licences of each node, in the name of the pattern, sorted and without duplicates.
    pub licences: Vec<Licence>,
}

impl Domain {
    /// Returns the identities of the nodes.
    pub fn names(&self) -> Wildcard {
        let pattern = Wildcard::read(&self.node);
        pattern.unwrap_or_else(|| Wildcard::One(self.node.clone()))
    }

    /// Returns the zones and rights of each node.
    pub fn rights(&self) -> Vec<(ZoneId, Right)> {
        let licences = self.licences.iter();
        licences.map(|one| (one.zone, one.right)).collect()
    }

    /// Returns the nodes to which we distribute keys: those with a table here, and without a
    /// licence by name.
    pub fn members<'a>(
        &'a self,
        config: &'a Config,
        peer: &'a Peer,
    ) -> impl Iterator<Item = &'a Licensed> {
        let nodes = config.licensed.iter();
        nodes.filter(move |node| self.licenses(&node.party.identity, peer))
    }

    /// Returns true if a node is licensed by the domain: the peer has no licence by its name.
    fn licenses(&self, node: &Identity, peer: &Peer) -> bool {
        self.names().matches(node) && named(peer).all(|named| named != node)
    }

    /// Returns the nodes below the domain that the peer has a licence for by name.
    pub fn named(&self, peer: &Peer) -> BTreeSet<Identity> {
        let names = self.names();
        let named = named(peer).filter(|node| names.matches(node));
        named.cloned().collect()
    }
}

/// Returns the nodes that the peer has a licence for by name, everywhere or at a place.
fn named(peer: &Peer) -> impl Iterator<Item = &Identity> {
    let ZonePolicy {
        licences, slots, ..
    } = &peer.zones;
    let everywhere = licences.iter().map(|licence| &licence.node);
    everywhere.chain(slots.iter().map(|slot| &slot.node))
}

/// Returns true if a licence for `licensed`, which may be a domain, is for a node.
pub(crate) fn includes(licensed: &Identity, node: &Identity) -> bool {
    let pattern = Wildcard::read(licensed);
    licensed == node || pattern.is_some_and(|names| names.matches(node))
}

/// Reads `at_most`.
pub(crate) fn most(value: &Value<'_>) -> Option<u8> {
    let most = value.number(1..=MOST)?;
    u8::try_from(most).ok()
}

/// Reads `at` of a node: the other end learns it with the offer of the node's slot.
pub(crate) fn place(value: &Value<'_>) -> Option<Vec<TrafficSelector>> {
    let place = handover::places(value)?;
    match place.len() {
        1..=MOST_RANGES => Some(place),
        0 => value.fault(
            "lists no place, so the node would never get keys",
            "list addresses or prefixes of mobile nodes there; without `at` it is the node's `address`",
        ),
        _ => value.fault(
            "lists more addresses than the mobile node accepts",
            "list at most 32 addresses or prefixes",
        ),
    }
}

/// Takes the licences of domains out of all licences.
pub(crate) fn split(value: &Value<'_>, all: Vec<Licences>) -> Option<(Vec<Domain>, Vec<Licences>)> {
    let is_domain = |licences: &Licences| Wildcard::read(&licences.node).is_some();
    let (of_domains, named): (Vec<_>, _) = all.into_iter().partition(is_domain);
    let mut domains: Vec<Domain> = Vec::new();
    for Licences {
        node,
        most,
        licences,
        ..
    } in of_domains
    {
        let most = most.unwrap_or(AT_MOST);
        match domains.iter_mut().find(|domain| domain.node == node) {
            Some(known) if known.most == most => known.licences.extend(licences),
            Some(_) => {
                return value.fault(
                    format!("the licences of {node} have different `at_most`"),
                    "write the same `at_most` in all of its licences",
                );
            }
            None => domains.push(Domain {
                node,
                most,
                licences,
            }),
        }
    }
    for domain in &mut domains {
        domain.licences.sort();
        domain.licences.dedup();
    }
    apart(value, &domains).then_some((domains, named))
}

/// Refuses a domain inside another one: both would license its nodes.
fn apart(value: &Value<'_>, domains: &[Domain]) -> bool {
    let below = |domain: &Domain| {
        domain
            .node
            .to_string()
            .replacen('*', "x", 1)
            .parse::<Identity>()
    };
    for outer in domains {
        let inner = domains.iter().find(|inner| {
            let Ok(node) = below(inner);
            inner.node != outer.node && outer.names().matches(&node)
        });
        if let Some(inner) = inner {
            value.fault::<()>(
                format!(
                    "{} is inside {}, and both have licences",
                    inner.node, outer.node
                ),
                "license one of the two domains",
            );
            return false;
        }
    }
    true
}

/// Returns a warning for each node with a place of its own that is licensed by its name alone.
pub(crate) fn unused_places(config: &Config) -> impl Iterator<Item = Warning> {
    let placed = config.licensed.iter().filter(|node| !node.at.is_empty());
    let is_unused = move |node: &&Licensed| {
        let node = &node.party.identity;
        let licenses = |peer: &Peer| {
            let mut domains = peer.zones.domains.iter();
            domains.any(|domain| domain.licenses(node, peer))
        };
        let names = |peer: &Peer| {
            let mut licences = peer.zones.all_licences();
            licences.any(|licence| licence.node == *node)
        };
        let peers = &config.peers;
        peers.iter().any(names) && !peers.iter().any(licenses)
    };
    let unused = placed.filter(is_unused);
    unused.map(|node| Warning::PlaceUnused {
        name: node.party.name.clone(),
        node: node.party.identity.clone(),
    })
}

/// Checks the nodes of licensed domains, and the hand-over.
pub(crate) fn check(config: &Config, root: &Value<'_>) {
    for peer in &config.peers {
        for domain in &peer.zones.domains {
            for node in domain.members(config, peer) {
                match peer.address.is_none() {
                    true => check_node(node, domain, root),
                    false => refuse_node(node, domain, peer, root),
                }
            }
        }
        let handover = root.at(&["peer", &peer.party.name, "handover"]);
        let is_refused = peer.zones.handover == Handover::Dkm && !peer.zones.domains.is_empty();
        if let Some(handover) = handover.filter(|_| is_refused) {
            handover.fault::<()>(
                "the nodes of a domain get their keys from the gateway alone, not from each other",
                "write \"push\" or \"pkd\", or license each node by its name",
            );
        }
    }
}

/// Refuses a node of a domain whose keys the other end distributes: that end accepts the tunnel. It
/// offers nodes by their names, and only an end without tables of them has slots for all.
fn refuse_node(node: &Licensed, domain: &Domain, peer: &Peer, root: &Value<'_>) {
    let (peer, name) = (&peer.party.name, &node.party.name);
    if let Some(table) = root.at(&["licensed", name]) {
        table.fault::<()>(
            format!(
                "{name} is a node of {}: [peer.{peer}] has an `address`, so the other end \
                 distributes the keys of that domain",
                domain.node
            ),
            format!(
                "license {name} by its name at both ends of that tunnel, or remove this table, or \
                 that `address`"
            ),
        );
    }
}

/// Refuses a node that other proofs than certificates of named CAs would prove, or without a place.
fn check_node(node: &Licensed, domain: &Domain, root: &Value<'_>) {
    let name = &node.party.name;
    let at = |key: &str| root.at(&["licensed", name, key]);
    let proof = ["psk", "pubkey"]
        .into_iter()
        .find_map(|key| Some((key, at(key)?)));
    if let Some((key, value)) = proof {
        value.fault::<()>(
            format!(
                "{} is licensed as a node of {}: `{key}` does not show that",
                name, domain.node
            ),
            format!(
                "remove `{key}` and write `ca = \"nodes-ca.pem\"`, or license the node by its name"
            ),
        );
    } else if node.party.authorities.is_empty()
        && let Some(table) = root.at(&["licensed", name])
    {
        table.fault::<()>(
            format!(
                "{name} is licensed as a node of {}, and any trusted CA may name it",
                domain.node
            ),
            "add `ca = \"nodes-ca.pem\"`, the CA that issues certificates to these nodes alone",
        );
    }
    if node.place().is_empty()
        && let Some(address) = at("address")
    {
        address.fault::<()>(
            format!("the place of {name} is not known, because its address is a name"),
            "add `at = [\"198.51.100.2\"]` with the addresses that mobile nodes have there",
        );
    }
}
