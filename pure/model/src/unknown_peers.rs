//! Unauthenticated peers, in two crowds: sources that are addresses of configured peers have
//! reserved places, which no packet from elsewhere can occupy.

use crate::Instant;
use crate::crowd::{Crowd, Entry, Room};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Source address of an unauthenticated peer.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    address: IpAddr,
    /// Number of addresses of configured peers, if `address` is one of them.
    expected: Option<usize>,
}

impl Origin {
    /// Classifies a source address by the addresses of configured peers.
    pub fn new(address: IpAddr, peers: &BTreeSet<IpAddr>) -> Self {
        let address = address.to_canonical();
        let expected = peers.contains(&address).then_some(peers.len());
        Self { address, expected }
    }

    /// Returns the limits for this origin. All configured peers may connect at once, even if many
    /// of them share a network.
    fn room(&self, room: &Room) -> Room {
        match self.expected {
            Some(peers) => {
                let total = room.total.max(peers);
                let per_site = total;
                Room {
                    total,
                    per_site,
                    ..*room
                }
            }
            None => *room,
        }
    }
}

/// Unauthenticated peers of both crowds.
#[derive(Clone, Debug)]
pub struct UnknownPeers<K> {
    expected: Crowd<K>,
    others: Crowd<K>,
}

impl<K> Default for UnknownPeers<K> {
    fn default() -> Self {
        Self {
            expected: Crowd::default(),
            others: Crowd::default(),
        }
    }
}

impl<K: Copy + Ord> UnknownPeers<K> {
    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.expected.len() + self.others.len()
    }

    /// Returns true if there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if `key` is a member.
    pub fn contains(&self, key: K) -> bool {
        self.others.contains(key) || self.expected.contains(key)
    }

    /// Returns the number of members in the crowd of an origin, and how many of them share its
    /// host.
    pub fn beside(&self, from: Origin) -> (usize, usize) {
        let crowd = match from.expected {
            Some(_) => &self.expected,
            None => &self.others,
        };
        (crowd.len(), crowd.members_of_host(from.address))
    }

    /// Decides whether one more member from an origin may enter.
    pub fn entry(&self, from: Origin, room: &Room, now: Instant) -> Entry<K> {
        let crowd = match from.expected {
            Some(_) => &self.expected,
            None => &self.others,
        };
        crowd.entry(from.address, &from.room(room), now)
    }

    /// Returns the oldest member of the least crowded network.
    pub fn least_crowded(&self) -> Option<K> {
        let crowds = [&self.expected, &self.others];
        let least = crowds.into_iter().filter_map(Crowd::least_crowded);
        least
            .min_by_key(|(crowding, _)| *crowding)
            .map(|(_, key)| key)
    }

    /// Adds a member.
    pub fn insert(&mut self, key: K, from: Origin, now: Instant) {
        let crowd = match from.expected {
            Some(_) => &mut self.expected,
            None => &mut self.others,
        };
        crowd.insert(key, from.address, now);
    }

    /// Removes a member that has authenticated or has gone. Returns true if it was a member.
    pub fn remove(&mut self, key: K) -> bool {
        // A key can be in both crowds after a change of the configured peers.
        self.others.remove(key) | self.expected.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    const ROOM: Room = Room {
        total: 4,
        per_site: 4,
        per_host: 2,
        patience: Duration::from_secs(2),
    };

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + n).into()
    }

    #[test]
    fn unknown_peers_take_no_place_of_a_configured_address_and_it_takes_none_of_theirs() {
        let peers = BTreeSet::from([address(1)]);
        let mut unknown_peers = UnknownPeers::default();
        for n in 2..100_u32 {
            let from = Origin::new(address(n << 8), &peers);
            if let Entry::Instead(old) = unknown_peers.entry(from, &ROOM, Instant::ZERO) {
                unknown_peers.remove(old);
            }
            unknown_peers.insert(n, from, Instant::ZERO);
        }
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        for (key, address) in [(0, address(1)), (1, mapped)] {
            let from = Origin::new(address, &peers);
            let entry = unknown_peers.entry(from, &ROOM, Instant::ZERO);
            assert_eq!(entry, Entry::Free);
            unknown_peers.insert(key, from, Instant::ZERO);
        }
        assert_eq!(unknown_peers.len(), ROOM.total + 2);
        assert!(
            unknown_peers.contains(0) && unknown_peers.contains(99) && !unknown_peers.contains(2)
        );
    }

    #[test]
    fn all_configured_peers_may_begin_at_once() {
        let peers: BTreeSet<_> = (0..200).map(address).collect();
        let mut unknown_peers = UnknownPeers::default();
        for (key, peer) in peers.iter().enumerate() {
            let from = Origin::new(*peer, &peers);
            let entry = unknown_peers.entry(from, &ROOM, Instant::ZERO);
            assert_eq!(entry, Entry::Free, "{peer}");
            unknown_peers.insert(key, from, Instant::ZERO);
        }
        assert_eq!(
            unknown_peers.beside(Origin::new(address(9), &peers)),
            (200, 1)
        );
    }
}
