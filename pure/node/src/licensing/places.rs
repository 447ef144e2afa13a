//! Locations of licensed nodes whose licences hold only there.

use model::{Identity, TrafficSelector};
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
    /// The nodes, each with the addresses that identify its location.
    pub nodes: Vec<(Identity, Vec<TrafficSelector>)>,
}

impl Places {
    /// Returns the nodes at the location of an address.
    pub(super) fn at(&self, address: IpAddr) -> impl Iterator<Item = &Identity> {
        let at = move |selectors: &[TrafficSelector]| {
            let mut selectors = selectors.iter();
            selectors.any(|selector| selector.contains(address, 0, None))
        };
        let nodes = self.nodes.iter();
        nodes.filter_map(move |(node, selectors)| at(selectors).then_some(node))
    }

    /// Returns the nodes at the location of any of these addresses.
    pub(super) fn at_any(&self, addresses: &[IpAddr]) -> Vec<Identity> {
        let mut nodes = Vec::new();
        for node in addresses.iter().flat_map(|address| self.at(*address)) {
            if !nodes.contains(node) {
                nodes.push(node.clone());
            }
        }
        nodes
    }
}
