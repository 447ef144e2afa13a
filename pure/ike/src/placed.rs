//! Outer addresses as selectors: child SAs in transport mode carry the traffic of their peer's
//! address, so another peer must not move there.
//!
//! Two indices say who has an address. Neither is long: they have peers and SAs in transport mode
//! alone, and no datagram makes the engine visit all peers.

use crate::config::Peer;
use model::{IkeSaId, Mode, PeerId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Reason for which child SAs in transport mode cannot have the addresses of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unplaced {
    /// The selectors of the configuration do not have an address.
    #[error("{0} is not among the addresses of that tunnel in the configuration")]
    NotListed(IpAddr),
    /// Traffic with the address bypasses all tunnels.
    #[error("a policy lets the traffic with {0} bypass all tunnels")]
    Bypassed(IpAddr),
    /// The configuration of another peer has the address.
    #[error("{0} is in the configuration of another peer")]
    Claimed(IpAddr),
    /// Another peer has a child SA in transport mode at the address.
    #[error("another peer has a tunnel in transport mode at {0}")]
    Taken(IpAddr),
    /// The peer does not say that it has the address, so a NAT translates it.
    #[error("the peer does not name {0} as its address, so a NAT translates it")]
    Translated(IpAddr),
}

/// Peers whose configuration has single remote addresses, by these addresses; empty without
/// transport mode.
#[derive(Default)]
pub(crate) struct Hosts(BTreeMap<IpAddr, Vec<PeerId>>);

impl Hosts {
    pub(crate) fn new(peers: &[Peer]) -> Self {
        let is_outside = |peer: &Peer| peer.policies().any(|policy| policy.mode == Mode::Transport);
        let mut hosts = Self::default();
        if !peers.iter().any(is_outside) {
            return hosts;
        }
        for peer in peers {
            let remote = peer.policies().flat_map(|policy| policy.remote);
            for host in remote.filter(|selector| selector.first == selector.last) {
                hosts.0.entry(host.first).or_default().push(peer.id);
            }
        }
        hosts
    }

    /// Returns true if another peer has an address.
    pub(crate) fn is_anothers(&self, address: IpAddr, peer: PeerId) -> bool {
        let peers = self.0.get(&address);
        peers.is_some_and(|peers| peers.iter().any(|other| *other != peer))
    }
}

/// IKE SAs with child SAs in transport mode, by the peer's address of their packets.
#[derive(Default)]
pub(crate) struct Placed {
    by_address: BTreeSet<(IpAddr, PeerId, IkeSaId)>,
    by_sa: BTreeMap<IkeSaId, (IpAddr, PeerId)>,
}

impl Placed {
    /// Forgets an IKE SA that is gone.
    pub(crate) fn forget(&mut self, sa: IkeSaId) {
        self.put(sa, None);
    }

    /// Notes where the child SAs of an IKE SA are; `None` if none is in transport mode.
    pub(crate) fn put(&mut self, sa: IkeSaId, at: Option<(IpAddr, PeerId)>) {
        if self.by_sa.get(&sa).copied() == at {
            return;
        }
        if let Some((address, peer)) = self.by_sa.remove(&sa) {
            self.by_address.remove(&(address, peer, sa));
        }
        if let Some((address, peer)) = at {
            self.by_address.insert((address, peer, sa));
            self.by_sa.insert(sa, (address, peer));
        }
    }

    /// Returns true if another peer is at an address.
    pub(crate) fn is_anothers(&self, address: IpAddr, peer: PeerId) -> bool {
        let from = (address, PeerId(0), IkeSaId(0));
        let at = self.by_address.range(from..);
        let mut at = at.take_while(|(other, ..)| *other == address);
        at.any(|(_, other, _)| *other != peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PeerId = PeerId(1);
    const B: PeerId = PeerId(2);

    #[test]
    fn an_address_is_a_peers_while_one_of_its_sas_is_there() {
        let [here, there] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        let mut placed = Placed::default();
        placed.put(IkeSaId(1), Some((here, A)));
        placed.put(IkeSaId(2), Some((here, A)));
        assert!(placed.is_anothers(here, B) && !placed.is_anothers(here, A));
        assert!(!placed.is_anothers(there, B));
        placed.put(IkeSaId(1), Some((there, A)));
        placed.put(IkeSaId(2), None);
        assert!(!placed.is_anothers(here, B) && placed.is_anothers(there, B));
        placed.forget(IkeSaId(1));
        assert!(placed.by_address.is_empty() && placed.by_sa.is_empty());
    }
}
