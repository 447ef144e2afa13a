//! Hosts whose address is bound to a link of this host.

use crate::reader::Value;
use crate::{Address, Config, OnLink};
use std::collections::BTreeMap;

/// A host with a link-local address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedHost<'c> {
    /// The kind of its table.
    pub kind: &'static str,
    /// The name of its table.
    pub name: &'c str,
    /// Its address, with the interface that has to exist.
    pub at: &'c OnLink,
}

impl LinkedHost<'_> {
    /// Returns the key of the address in dotted form.
    pub fn key(&self) -> String {
        format!("{}.{}.address", self.kind, self.name)
    }
}

/// Returns the hosts with a link-local address.
pub(crate) fn hosts(config: &Config) -> impl Iterator<Item = LinkedHost<'_>> {
    let peers = config.peers.iter();
    let peers = peers.map(|peer| ("peer", &peer.party, peer.address.as_ref()));
    let licensed = config.licensed.iter();
    let licensed = licensed.map(|node| ("licensed", &node.party, Some(&node.address)));
    let gateways = config.gateways.iter();
    let gateways = gateways.map(|gateway| ("gateway", &gateway.party, gateway.address.as_ref()));
    let adjacent = config.adjacent.iter();
    let adjacent = adjacent.map(|node| ("neighbour", &node.party, node.address.as_ref()));
    let all = peers.chain(licensed).chain(gateways).chain(adjacent);
    all.filter_map(|(kind, party, address)| {
        let at = address.and_then(Address::link)?;
        let name = party.name.as_str();
        Some(LinkedHost { kind, name, at })
    })
}

/// Refuses one link-local address on two links, because the engines tell hosts apart by their
/// addresses; and such an address where no socket is bound to one.
pub(crate) fn check(config: &Config, root: &Value<'_>) {
    let mut first = BTreeMap::new();
    for host in hosts(config) {
        let OnLink { address, interface } = host.at;
        let Some(value) = root.at(&[host.kind, host.name, "address"]) else {
            continue;
        };
        if !config.listen.addresses.is_empty() {
            value.fault::<()>(
                format!("{} can only be reached from a link-local address", host.at),
                "remove `addresses` from [listen], or write a global address here",
            );
        }
        let other: &LinkedHost<'_> = first.entry(*address).or_insert_with(|| host.clone());
        if other.at.interface != *interface {
            let (kind, name) = (other.kind, other.name);
            value.fault::<()>(
                format!(
                    "[{kind}.{name}] has the same address on another link: {}",
                    other.at
                ),
                format!(
                    "give one of the two hosts another link-local address, like \
                     `ip address add fe80::2/64 dev {interface}` there"
                ),
            );
        }
    }
}
