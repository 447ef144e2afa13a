//! Lookup of the SA that protects a packet, in order of preference.
//!
//! Of one peer's SAs the newest comes first. Of two peers' SAs, those of the peer come first that
//! has had one for longer: an authenticated peer cannot take over packets of an established tunnel
//! by another SA of its own.
//!
//! A gateway has an SA for each mobile node, and most of them cover a few addresses. Those are
//! found in a hash table, by the address folded to 64 bits; the SAs' selectors resolve collisions.
//! Only SAs for whole networks are searched linearly. The hash needs no secret, because only
//! authenticated peers add entries.

use model::{Spi, TrafficSelector};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::iter::from_fn;
use std::net::IpAddr;

/// The key of SAs that cover more than single addresses.
const NETWORKS: u64 = 0;

/// SAs in the order of their turns. Nearly always there is one, and two during a rekey.
type Turns = SmallVec<[(Turn, Spi); 2]>;

/// Position of an SA. The lowest one is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    /// Number of the peer's first SA.
    joined: u64,
    /// Number of this SA.
    number: Reverse<u64>,
}

/// The SAs eligible for sending, by remote address and turn.
#[derive(Default)]
pub(crate) struct Order {
    places: FxHashMap<u64, Turns>,
    /// Peers with SAs here.
    peers: FxHashMap<String, Joined>,
    /// The number of the next SA.
    next: u64,
}

/// One peer's SAs.
struct Joined {
    /// Number of the first one.
    at: u64,
    sas: usize,
}

impl Turn {
    /// Returns the number of the SA: a later one is newer.
    pub const fn number(self) -> u64 {
        self.number.0
    }
}

impl Order {
    /// Adds an SA, and returns its turn.
    pub fn push(&mut self, peer: &str, remote: &[TrafficSelector], spi: Spi) -> Turn {
        let number = self.next;
        self.next += 1;
        let joined = self.peers.entry(peer.to_owned());
        let joined = joined.or_insert(Joined { at: number, sas: 0 });
        joined.sas += 1;
        let turn = Turn {
            joined: joined.at,
            number: Reverse(number),
        };
        for place in places(remote) {
            let turns = self.places.entry(place).or_default();
            if let Err(index) = turns.binary_search_by_key(&turn, |(turn, _)| *turn) {
                turns.insert(index, (turn, spi));
            }
        }
        turn
    }

    /// Removes an SA.
    pub fn remove(&mut self, peer: &str, remote: &[TrafficSelector], turn: Turn) {
        for place in places(remote) {
            if let Entry::Occupied(mut turns) = self.places.entry(place) {
                if let Ok(index) = turns.get().binary_search_by_key(&turn, |(turn, _)| *turn) {
                    turns.get_mut().remove(index);
                }
                if turns.get().is_empty() {
                    turns.remove();
                }
            }
        }
        if let Some(joined) = self.peers.get_mut(peer) {
            joined.sas -= 1;
            if joined.sas == 0 {
                self.peers.remove(peer);
            }
        }
    }

    /// Returns the SAs that may cover packets to an address, in order of preference.
    pub fn preferred(&self, destination: IpAddr) -> impl Iterator<Item = Spi> + '_ {
        let at = |place| self.places.get(&place).map_or(&[][..], SmallVec::as_slice);
        let (mut host, mut networks) = (at(place(destination)), at(NETWORKS));
        from_fn(move || {
            let turn = |turns: &[(Turn, Spi)]| turns.first().map(|(turn, _)| Reverse(*turn));
            let earlier = match turn(networks) > turn(host) {
                true => &mut networks,
                false => &mut host,
            };
            let ((_, spi), later) = earlier.split_first()?;
            *earlier = later;
            Some(*spi)
        })
    }
}

/// Returns the keys of an SA.
fn places(remote: &[TrafficSelector]) -> Vec<u64> {
    let hosts = remote
        .iter()
        .map(|selector| (selector.first == selector.last).then_some(place(selector.first)));
    hosts
        .collect::<Option<_>>()
        .unwrap_or_else(|| vec![NETWORKS])
}

/// Returns the key of an address, which is never [`NETWORKS`].
fn place(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => u64::from(v4.to_bits()) + 1,
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            ((bits >> 64) as u64).rotate_left(32) ^ bits as u64 | 1 << 63
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Selectors in the first addresses of 10.0.0.0, so that many SAs overlap.
    fn selector() -> impl Strategy<Value = TrafficSelector> {
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        (0..4_u8, 0..3_u8).prop_map(move |(first, more)| TrafficSelector {
            protocol: 0,
            ports: 0..=u16::MAX,
            first: address(first),
            last: address(first + more),
        })
    }

    /// A step adds an SA of a peer, or removes an existing one.
    type Step = (u8, Vec<TrafficSelector>, Option<prop::sample::Index>);

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let leaving = any::<Option<prop::sample::Index>>();
        vec((0..4_u8, vec(selector(), 0..3), leaving), 1..30)
    }

    proptest! {
        /// A linear search over all SAs finds the same ones in the same order.
        #[test]
        fn whatever_covers_a_packet_is_found_in_order(steps in steps()) {
            let (mut order, mut all) = (Order::default(), Vec::new());
            for (number, (peer, remote, leaving)) in (0..).zip(steps) {
                match leaving.filter(|_| !all.is_empty()) {
                    Some(index) => {
                        let (turn, peer, remote, _): (_, String, Vec<_>, _) = all.remove(index.index(all.len()));
                        order.remove(&peer, &remote, turn);
                    }
                    None => {
                        let peer = peer.to_string();
                        let turn = order.push(&peer, &remote, Spi(number));
                        all.push((turn, peer, remote, Spi(number)));
                    }
                }
                all.sort_by_key(|(turn, ..)| *turn);
                for last in 0..7 {
                    let address = IpAddr::from([10, 0, 0, last]);
                    let covers = |remote: &[TrafficSelector]| {
                        remote.iter().any(|selector| selector.contains(address, 6, Some(80)))
                    };
                    let wanted = all.iter().filter(|(.., remote, _)| covers(remote));
                    let remote_of = |spi| all.iter().find(|(.., one)| *one == spi).map(|(.., remote, _)| remote);
                    let found = order.preferred(address);
                    let found = found.filter(|spi| remote_of(*spi).is_some_and(|remote| covers(remote)));
                    prop_assert!(found.eq(wanted.map(|(.., spi)| *spi)));
                }
            }
            let left: usize = all.iter().map(|(.., remote, _)| places(remote).len()).sum();
            let kept: usize = order.places.values().map(|turns| turns.len()).sum();
            prop_assert!(kept <= left, "what has gone is forgotten");
            prop_assert!(order.places.values().all(|turns| !turns.is_empty()));
            let peers: BTreeSet<_> = all.iter().map(|(_, peer, ..)| peer).collect();
            prop_assert_eq!(order.peers.len(), peers.len());
        }
    }

    #[test]
    fn no_address_is_where_networks_are() {
        for address in [
            "0.0.0.0",
            "255.255.255.255",
            "::",
            "::1",
            "8000::8000:0:0:0",
        ] {
            assert_ne!(place(address.parse().unwrap()), NETWORKS, "{address}");
        }
    }

    const HOST: [u8; 4] = [10, 0, 0, 1];

    fn prefix(length: u8) -> Vec<TrafficSelector> {
        vec![TrafficSelector::from_prefix(HOST.into(), length).unwrap()]
    }

    fn preferred(order: &Order, address: [u8; 4]) -> Vec<u32> {
        order.preferred(address.into()).map(|spi| spi.0).collect()
    }

    #[test]
    fn an_sa_for_a_network_that_is_newer_comes_before_one_for_the_host() {
        let mut order = Order::default();
        order.push("a", &prefix(32), Spi(1));
        order.push("a", &prefix(24), Spi(2));
        order.push("a", &prefix(32), Spi(3));
        assert_eq!(preferred(&order, HOST), [3, 2, 1]);
        assert_eq!(preferred(&order, [10, 0, 0, 2]), [2]);
    }

    #[test]
    fn the_peer_that_was_there_first_keeps_its_place_through_rekeys_until_it_is_gone() {
        let mut order = Order::default();
        let first = order.push("a", &prefix(24), Spi(1));
        order.push("b", &prefix(32), Spi(2));
        let second = order.push("a", &prefix(24), Spi(3));
        order.push("b", &prefix(24), Spi(4));
        assert_eq!(preferred(&order, HOST), [3, 1, 4, 2]);
        order.remove("a", &prefix(24), first);
        assert_eq!(preferred(&order, HOST), [3, 4, 2]);
        order.remove("a", &prefix(24), second);
        order.push("a", &prefix(24), Spi(5));
        assert_eq!(preferred(&order, HOST), [4, 2, 5]);
    }
}
