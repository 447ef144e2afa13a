//! Locations of licensed nodes whose licences hold only there.

use ike::slot_name;
use model::{Identity, TrafficSelector};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Time and source of the keys for the licensed nodes that a tunnel moves to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handover {
    /// After the move, from the gateway.
    #[default]
    Push,
    /// Before the move, from the gateway (proactive key distribution).
    Pkd,
    /// After the move, from the previous node (directed key migration).
    Dkm,
}

/// Locations of the licensed nodes on a peer's tunnel, for licences that hold only there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Time and source of the keys.
    pub handover: Handover,
    /// Limit of nodes that hold the keys of a shared slot; `None` if no slot is shared.
    pub holders: Option<usize>,
    /// The nodes, each with the addresses that identify its location. The nodes of a domain are
    /// learned from the end that distributes their keys.
    pub nodes: Vec<(Identity, Vec<TrafficSelector>)>,
    /// The domains whose nodes we distribute keys to.
    pub limits: Vec<Limit>,
}

/// A limit of the nodes of one domain that have keys at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Names of the slots of all its nodes.
    pub slots: BTreeSet<String>,
    /// Most slots at once.
    pub most: usize,
}

/// A node, and the addresses that identify its location.
pub(super) type Placed = (Identity, Vec<TrafficSelector>);

impl Places {
    /// Returns the nodes at the location of an address.
    pub(super) fn at(&self, address: IpAddr) -> impl Iterator<Item = &Identity> {
        let nodes = self.nodes.iter();
        nodes.filter_map(move |placed| node_at(placed, address))
    }

    /// Limits the nodes of each domain to as many as may have keys at once, the first ones.
    pub(super) fn limit(&self, nodes: &mut Vec<Identity>) {
        for limit in &self.limits {
            let mut count = 0;
            nodes.retain(|node| {
                let is_of = limit.slots.contains(&slot_name([node]));
                count += usize::from(is_of);
                !is_of || count <= limit.most
            });
        }
    }

    /// Returns the nodes at the location of any of these addresses, with those of the `learned`
    /// ones.
    pub(super) fn at_any(&self, addresses: &[IpAddr], learned: &[&Placed]) -> Vec<Identity> {
        let mut nodes = Vec::new();
        for address in addresses {
            let learned = learned.iter();
            let learned = learned.filter_map(|placed| node_at(placed, *address));
            for node in self.at(*address).chain(learned) {
                if !nodes.contains(node) {
                    nodes.push(node.clone());
                }
            }
        }
        nodes
    }
}

/// Returns a node if an address is at its location.
fn node_at(placed: &Placed, address: IpAddr) -> Option<&Identity> {
    let (node, selectors) = placed;
    let mut selectors = selectors.iter();
    let is_there = selectors.any(|selector| selector.contains(address, 0, None));
    is_there.then_some(node)
}
