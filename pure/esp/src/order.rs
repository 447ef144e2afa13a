//! Lookup of the SA that protects a packet, in order of preference.
//!
//! Of one peer's SAs the newest comes first. Of two peers' SAs, those of the peer come first that
//! has had one for longer: an authenticated peer cannot take over packets of an established tunnel
//! by another SA of its own.
//!
//! A gateway has an SA for each mobile node or branch. They are found in a hash table, by the
//! smallest prefix around the addresses that they cover: a packet has one key for each length of a
//! prefix that is in use, which are few, and the SAs' selectors resolve collisions. The hash needs
//! no secret, because only authenticated peers add entries.

use model::{PeerId, Spi, TrafficSelector};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::iter::from_fn;
use std::net::IpAddr;

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
    /// The kinds of prefixes in use, each with the number of its entries.
    kinds: SmallVec<[(Kind, usize); 4]>,
    /// Peers with SAs here.
    peers: FxHashMap<PeerId, Joined>,
    /// The number of the next SA.
    next: u64,
}

/// Family and length of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    is_ipv4: bool,
    length: u8,
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
    pub fn push(&mut self, peer: PeerId, remote: &[TrafficSelector], spi: Spi) -> Turn {
        let number = self.next;
        self.next += 1;
        let joined = self.peers.entry(peer);
        let joined = joined.or_insert(Joined { at: number, sas: 0 });
        joined.sas += 1;
        let turn = Turn {
            joined: joined.at,
            number: Reverse(number),
        };
        self.enter(remote, turn, spi);
        turn
    }

    /// Removes an SA.
    pub fn remove(&mut self, peer: PeerId, remote: &[TrafficSelector], turn: Turn) {
        self.leave(remote, turn);
        if let Some(joined) = self.peers.get_mut(&peer) {
            joined.sas -= 1;
            if joined.sas == 0 {
                self.peers.remove(&peer);
            }
        }
    }

    /// Has an SA that keeps its turn cover other addresses.
    pub fn relocate(
        &mut self,
        from: &[TrafficSelector],
        to: &[TrafficSelector],
        turn: Turn,
        spi: Spi,
    ) {
        self.leave(from, turn);
        self.enter(to, turn, spi);
    }

    fn enter(&mut self, remote: &[TrafficSelector], turn: Turn, spi: Spi) {
        for (kind, place) in places(remote) {
            let turns = self.places.entry(place).or_default();
            if let Err(index) = turns.binary_search_by_key(&turn, |(turn, _)| *turn) {
                turns.insert(index, (turn, spi));
            }
            self.count(kind);
        }
    }

    fn leave(&mut self, remote: &[TrafficSelector], turn: Turn) {
        for (kind, place) in places(remote) {
            if let Entry::Occupied(mut turns) = self.places.entry(place) {
                if let Ok(index) = turns.get().binary_search_by_key(&turn, |(turn, _)| *turn) {
                    turns.get_mut().remove(index);
                }
                if turns.get().is_empty() {
                    turns.remove();
                }
            }
            self.discount(kind);
        }
    }

    /// Returns the SAs that may cover packets to an address, in order of preference.
    pub fn preferred(&self, destination: IpAddr) -> impl Iterator<Item = Spi> + '_ {
        let mut lists = self.around(destination);
        // Nearly always, all SAs around an address have one prefix.
        let mut only = match (lists.next(), lists.next()) {
            (only, None) => Some(only.unwrap_or_default()),
            (_, Some(_)) => None,
        };
        let mut last = None;
        from_fn(move || {
            let Some(rest) = &mut only else {
                let (turn, spi) = self.after(last, destination)?;
                last = Some(turn);
                return Some(spi);
            };
            let ((_, spi), later) = rest.split_first()?;
            *rest = later;
            Some(*spi)
        })
    }

    /// Returns the SAs of each prefix around an address.
    fn around(&self, address: IpAddr) -> impl Iterator<Item = &[(Turn, Spi)]> {
        let kinds = self.kinds.iter().map(|(kind, _)| *kind);
        let kinds = kinds.filter(move |kind| kind.is_ipv4 == address.is_ipv4());
        let lists = kinds.filter_map(move |kind| self.places.get(&kind.place(address)));
        lists.map(SmallVec::as_slice)
    }

    /// Returns the first SA around an address whose turn comes after another. Nothing is stored
    /// between two calls, so that no packet allocates.
    fn after(&self, last: Option<Turn>, address: IpAddr) -> Option<(Turn, Spi)> {
        let lists = self.around(address);
        let next = lists.filter_map(|list| {
            let next = list.partition_point(|(turn, _)| Some(*turn) <= last);
            list.get(next).copied()
        });
        next.min()
    }

    fn count(&mut self, kind: Kind) {
        match self.kinds.iter_mut().find(|(one, _)| *one == kind) {
            Some((_, entries)) => *entries += 1,
            None => self.kinds.push((kind, 1)),
        }
    }

    fn discount(&mut self, kind: Kind) {
        let Some(index) = self.kinds.iter().position(|(one, _)| *one == kind) else {
            return;
        };
        self.kinds[index].1 -= 1;
        if self.kinds[index].1 == 0 {
            self.kinds.swap_remove(index);
        }
    }
}

impl Kind {
    /// Returns the kind of the smallest prefix around a selector's addresses.
    fn around(remote: &TrafficSelector) -> Self {
        let is_ipv4 = remote.first.is_ipv4();
        let differ = bits(remote.first) ^ bits(remote.last);
        let host = u128::BITS - differ.leading_zeros();
        let length = if is_ipv4 { 32 } else { u128::BITS } - host;
        Self {
            is_ipv4,
            length: length as u8,
        }
    }

    /// Returns the key of the prefix of this kind around an address: family, length and the first
    /// bits of the address, folded to 64 bits.
    fn place(self, address: IpAddr) -> u64 {
        let host = if self.is_ipv4 { 32 } else { u128::BITS } - u32::from(self.length);
        let prefix = bits(address).checked_shr(host).unwrap_or(0);
        let folded = ((prefix >> 64) as u64).rotate_left(32) ^ prefix as u64;
        folded ^ u64::from(self.length) << 56 ^ u64::from(self.is_ipv4) << 55
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Returns the keys of an SA, each once.
fn places(remote: &[TrafficSelector]) -> SmallVec<[(Kind, u64); 2]> {
    let mut places = SmallVec::new();
    for selector in remote {
        let kind = Kind::around(selector);
        let place = (kind, kind.place(selector.first));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
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
                        let (turn, peer, remote, _): (_, PeerId, Vec<_>, _) = all.remove(index.index(all.len()));
                        order.remove(peer, &remote, turn);
                    }
                    None => {
                        let peer = PeerId(peer.into());
                        let turn = order.push(peer, &remote, Spi(number));
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
            let counted: usize = order.kinds.iter().map(|(_, entries)| entries).sum();
            prop_assert_eq!(counted, left);
            prop_assert!(order.kinds.iter().all(|(_, entries)| *entries > 0));
            let peers: BTreeSet<_> = all.iter().map(|(_, peer, ..)| peer).collect();
            prop_assert_eq!(order.peers.len(), peers.len());
        }
    }

    /// However many other branches have a tunnel, one SA is found for a packet.
    #[test]
    fn a_network_among_a_thousand_is_found_without_the_others() {
        let mut order = Order::default();
        let branch = |number: u32| {
            let first = IpAddr::from((0x0a00_0000 + (number << 8)).to_be_bytes());
            vec![TrafficSelector::from_prefix(first, 24).unwrap()]
        };
        for number in 0..1000 {
            order.push(PeerId(number), &branch(number), Spi(number));
        }
        order.push(PeerId(5000), &prefix(0), Spi(5000));
        assert_eq!(preferred(&order, [10, 1, 7, 9]), [0x107, 5000]);
        assert_eq!(preferred(&order, [192, 0, 2, 1]), [5000]);
        let other: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!(order.preferred(other).count(), 0);
    }

    #[test]
    fn ranges_are_found_by_the_prefix_around_them() {
        let range = |first: [u8; 4], last: [u8; 4]| TrafficSelector {
            first: first.into(),
            last: last.into(),
            ..prefix(32)[0].clone()
        };
        let kind = |first, last| Kind::around(&range(first, last)).length;
        assert_eq!(kind([10, 0, 0, 1], [10, 0, 0, 1]), 32);
        assert_eq!(kind([10, 0, 0, 1], [10, 0, 0, 2]), 30);
        assert_eq!(kind([10, 0, 0, 0], [10, 0, 0, 255]), 24);
        assert_eq!(kind([0; 4], [255; 4]), 0);
        let all = TrafficSelector::from_prefix("::".parse().unwrap(), 0).unwrap();
        assert_eq!(Kind::around(&all).length, 0);
        assert_ne!(Kind::around(&all), Kind::around(&prefix(0)[0]));
    }

    const HOST: [u8; 4] = [10, 0, 0, 1];

    const A: PeerId = PeerId(0);

    const B: PeerId = PeerId(1);

    fn prefix(length: u8) -> Vec<TrafficSelector> {
        vec![TrafficSelector::from_prefix(HOST.into(), length).unwrap()]
    }

    fn preferred(order: &Order, address: [u8; 4]) -> Vec<u32> {
        order.preferred(address.into()).map(|spi| spi.0).collect()
    }

    #[test]
    fn an_sa_for_a_network_that_is_newer_comes_before_one_for_the_host() {
        let mut order = Order::default();
        order.push(A, &prefix(32), Spi(1));
        order.push(A, &prefix(24), Spi(2));
        order.push(A, &prefix(32), Spi(3));
        assert_eq!(preferred(&order, HOST), [3, 2, 1]);
        assert_eq!(preferred(&order, [10, 0, 0, 2]), [2]);
    }

    #[test]
    fn an_sa_at_another_address_keeps_its_turn() {
        let other = |last| vec![TrafficSelector::from_prefix([10, 0, 0, last].into(), 32).unwrap()];
        let mut order = Order::default();
        let first = order.push(A, &prefix(32), Spi(1));
        order.push(B, &prefix(24), Spi(2));
        order.relocate(&prefix(32), &other(7), first, Spi(1));
        assert_eq!(preferred(&order, HOST), [2]);
        assert_eq!(preferred(&order, [10, 0, 0, 7]), [1, 2]);
        order.relocate(&other(7), &prefix(32), first, Spi(1));
        assert_eq!(preferred(&order, HOST), [1, 2]);
        assert_eq!(preferred(&order, [10, 0, 0, 7]), [2]);
    }

    // Weakness: 135
    #[test]
    fn the_peer_that_was_there_first_keeps_its_place_through_rekeys_until_it_is_gone() {
        let mut order = Order::default();
        let first = order.push(A, &prefix(24), Spi(1));
        order.push(B, &prefix(32), Spi(2));
        let second = order.push(A, &prefix(24), Spi(3));
        order.push(B, &prefix(24), Spi(4));
        assert_eq!(preferred(&order, HOST), [3, 1, 4, 2]);
        order.remove(A, &prefix(24), first);
        assert_eq!(preferred(&order, HOST), [3, 4, 2]);
        order.remove(A, &prefix(24), second);
        order.push(A, &prefix(24), Spi(5));
        assert_eq!(preferred(&order, HOST), [4, 2, 5]);
    }
}
