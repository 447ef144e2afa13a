//! Lookup of the SA that protects a packet: the newest one that covers its destination.
//!
//! A gateway has an SA for each mobile node, and most of them cover a few addresses. Those are
//! found in a hash table, by the address folded to 64 bits; the SAs' selectors resolve collisions.
//! Only SAs for whole networks are searched linearly. The hash needs no secret, because only
//! authenticated peers add entries.

use model::{Spi, TrafficSelector};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use std::iter::from_fn;
use std::net::IpAddr;

/// The key of SAs that cover more than single addresses.
const NETWORKS: u64 = 0;

/// SAs in the order of their turns. Nearly always there is one, and two during a rekey.
type Turns = SmallVec<[(u64, Spi); 2]>;

/// The SAs eligible for sending, by remote address and turn. A later turn means a newer SA.
#[derive(Default)]
pub(crate) struct Order {
    places: FxHashMap<u64, Turns>,
    /// The turn of the next SA.
    next: u64,
}

impl Order {
    /// Adds an SA, and returns its turn.
    pub fn push(&mut self, remote: &[TrafficSelector], spi: Spi) -> u64 {
        let turn = self.next;
        self.next += 1;
        for place in places(remote) {
            let turns = self.places.entry(place).or_default();
            if turns.last() != Some(&(turn, spi)) {
                turns.push((turn, spi));
            }
        }
        turn
    }

    /// Removes an SA.
    pub fn remove(&mut self, remote: &[TrafficSelector], turn: u64) {
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
    }

    /// Returns the SAs that may cover packets to an address, newest first.
    pub fn newest_first(&self, destination: IpAddr) -> impl Iterator<Item = Spi> + '_ {
        let at = |place| self.places.get(&place).map_or(&[][..], SmallVec::as_slice);
        let (mut host, mut networks) = (at(place(destination)), at(NETWORKS));
        from_fn(move || {
            let later = match networks.last() > host.last() {
                true => &mut networks,
                false => &mut host,
            };
            let ((_, spi), earlier) = later.split_last()?;
            *later = earlier;
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

    /// Steps that add an SA or remove an existing one.
    fn steps() -> impl Strategy<Value = Vec<(Vec<TrafficSelector>, Option<prop::sample::Index>)>> {
        vec(
            (vec(selector(), 0..3), any::<Option<prop::sample::Index>>()),
            1..30,
        )
    }

    proptest! {
        /// A linear search over all SAs finds the same ones in the same order.
        #[test]
        fn whatever_covers_a_packet_is_found_the_newest_first(steps in steps()) {
            let (mut order, mut all) = (Order::default(), Vec::new());
            for (number, (remote, leaving)) in (0..).zip(steps) {
                match leaving.filter(|_| !all.is_empty()) {
                    Some(index) => {
                        let (remote, turn, _): (Vec<_>, _, _) = all.remove(index.index(all.len()));
                        order.remove(&remote, turn);
                    }
                    None => {
                        let turn = order.push(&remote, Spi(number));
                        all.push((remote, turn, Spi(number)));
                    }
                }
                for last in 0..7 {
                    let address = IpAddr::from([10, 0, 0, last]);
                    let covers = |remote: &[TrafficSelector]| {
                        remote.iter().any(|selector| selector.contains(address, 6, Some(80)))
                    };
                    let wanted = all.iter().rev().filter(|(remote, ..)| covers(remote));
                    let remote_of = |spi| all.iter().find(|(.., one)| *one == spi).map(|(remote, ..)| remote);
                    let found = order.newest_first(address);
                    let found = found.filter(|spi| remote_of(*spi).is_some_and(|remote| covers(remote)));
                    prop_assert!(found.eq(wanted.map(|(.., spi)| *spi)));
                }
            }
            let left: usize = all.iter().map(|(remote, ..)| places(remote).len()).sum();
            let kept: usize = order.places.values().map(|turns| turns.len()).sum();
            prop_assert!(kept <= left, "what has gone is forgotten");
            prop_assert!(order.places.values().all(|turns| !turns.is_empty()));
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

    #[test]
    fn an_sa_for_a_network_that_is_newer_comes_before_one_for_the_host() {
        let host: IpAddr = [10, 0, 0, 1].into();
        let of = |length| vec![TrafficSelector::from_prefix(host, length).unwrap()];
        let mut order = Order::default();
        order.push(&of(32), Spi(1));
        order.push(&of(24), Spi(2));
        order.push(&of(32), Spi(3));
        assert_eq!(
            order
                .newest_first(host)
                .map(|spi| spi.0)
                .collect::<Vec<_>>(),
            [3, 2, 1]
        );
        let other = [10, 0, 0, 2].into();
        assert_eq!(
            order
                .newest_first(other)
                .map(|spi| spi.0)
                .collect::<Vec<_>>(),
            [2]
        );
    }
}
