//! Bounded set of unauthenticated peers, shared fairly among the networks they come from.
//!
//! A customer of an ISP has at least a /64 of IPv6 and often a /48 (RFC 8019 section 4.2), so a
//! limit per address is no limit. Members are counted by *host* (an IPv4 address or an IPv6 /64)
//! and by *site* (an IPv4 /24 or an IPv6 /48). When the set is full, the oldest member of the most
//! crowded site and host is evicted, so a peer from another network always finds a place.

use crate::Instant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::net::IpAddr;
use std::time::Duration;

/// Limits on the number of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Most members in total.
    pub total: usize,
    /// Most members from one IPv4 /24 or IPv6 /48.
    pub per_site: usize,
    /// Most members from one IPv4 address or IPv6 /64.
    pub per_host: usize,
    /// Time for which a member keeps its place against newcomers of an equally crowded network.
    /// Newcomers of less crowded networks do not wait.
    pub patience: Duration,
}

/// The answer to a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<K> {
    /// There is a free place.
    Free,
    /// The newcomer takes the place of this member.
    Instead(K),
    /// No place: the newcomer's own network occupies them, with members younger than
    /// [`Room::patience`].
    Refused,
}

/// The members, by source network. Every call takes time for the logarithm of their number: who
/// floods a crowd chooses how many networks it has.
#[derive(Clone, Debug)]
pub struct Crowd<K> {
    sites: BTreeMap<u128, Site<K>>,
    ranks: Ranks,
    places: BTreeMap<K, Place>,
    /// Number of insertions so far.
    arrivals: u64,
}

/// The members from one site.
#[derive(Clone, Debug)]
struct Site<K> {
    /// Number of members.
    members: usize,
    /// Members of each host, in the order of their arrival.
    hosts: BTreeMap<u128, Members<K>>,
    ranks: Ranks,
}

type Members<K> = BTreeMap<u64, Member<K>>;

#[derive(Clone, Copy, Debug)]
struct Member<K> {
    key: K,
    host: u128,
    since: Instant,
}

/// Position of a member.
#[derive(Clone, Copy, Debug)]
struct Place {
    host: u128,
    /// Position in the order of all insertions.
    arrival: u64,
}

/// Number of members of a site and of a host. The site decides first.
type Crowding = (usize, usize);

impl<K> Default for Crowd<K> {
    fn default() -> Self {
        Self {
            sites: BTreeMap::new(),
            ranks: Ranks::default(),
            places: BTreeMap::new(),
            arrivals: 0,
        }
    }
}

impl<K> Default for Site<K> {
    fn default() -> Self {
        Self {
            members: 0,
            hosts: BTreeMap::new(),
            ranks: Ranks::default(),
        }
    }
}

impl<K: Copy + Ord> Crowd<K> {
    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if there are no members.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns true if `key` is a member.
    pub fn contains(&self, key: K) -> bool {
        self.places.contains_key(&key)
    }

    /// Returns the number of members from the host of an address.
    pub fn members_of_host(&self, address: IpAddr) -> usize {
        self.crowding(host(address)).1
    }

    /// Decides whether one more member from an address may enter.
    pub fn entry(&self, address: IpAddr, room: &Room, now: Instant) -> Entry<K> {
        let host = host(address);
        let own = self.crowding(host);
        let site = |site: Option<u128>| self.sites.get(&site?);
        let own_site = || site(Some(self::site(host)));
        let oldest = if own.1 >= room.per_host {
            own_site().and_then(|site| site.oldest_of(host))
        } else if own.0 >= room.per_site {
            own_site().and_then(Site::most_crowded)
        } else if self.len() >= room.total {
            site(self.ranks.most()).and_then(Site::most_crowded)
        } else {
            return Entry::Free;
        };
        match oldest {
            Some(oldest)
                if own < self.crowding(oldest.host) || now >= oldest.since + room.patience =>
            {
                Entry::Instead(oldest.key)
            }
            _ => Entry::Refused,
        }
    }

    /// Returns the oldest member of the least crowded site and host, and how crowded they are.
    pub fn least_crowded(&self) -> Option<(Crowding, K)> {
        let least = self.sites.get(&self.ranks.least()?)?.least_crowded()?;
        Some((self.crowding(least.host), least.key))
    }

    /// Adds a member. A key that is a member already keeps its place.
    pub fn insert(&mut self, key: K, address: IpAddr, now: Instant) {
        if self.places.contains_key(&key) {
            return;
        }
        let host = host(address);
        let since = now;
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.places.insert(key, Place { host, arrival });
        let site = self.sites.entry(site(host)).or_default();
        let before = site.standing();
        site.insert(arrival, Member { key, host, since });
        self.ranks
            .replace(self::site(host), before, site.standing());
    }

    /// Removes a member. Returns true if it was one.
    pub fn remove(&mut self, key: K) -> bool {
        let Some(Place { host, arrival }) = self.places.remove(&key) else {
            return false;
        };
        if let btree_map::Entry::Occupied(mut site) = self.sites.entry(site(host)) {
            let before = site.get().standing();
            site.get_mut().remove(arrival, host);
            self.ranks
                .replace(*site.key(), before, site.get().standing());
            if site.get().members == 0 {
                site.remove();
            }
        }
        true
    }

    fn crowding(&self, host: u128) -> Crowding {
        let site = self.sites.get(&site(host));
        site.map_or((0, 0), |site| {
            let of_host = site.hosts.get(&host).map_or(0, BTreeMap::len);
            (site.members, of_host)
        })
    }
}

impl<K: Copy> Site<K> {
    fn standing(&self) -> Option<Standing> {
        let (host, _) = self.ranks.0.last()?;
        Some(Standing {
            members: self.members,
            of_host: host.members,
            ..*host
        })
    }

    fn oldest_of(&self, host: u128) -> Option<Member<K>> {
        let (_, oldest) = self.hosts.get(&host)?.first_key_value()?;
        Some(*oldest)
    }

    fn most_crowded(&self) -> Option<Member<K>> {
        self.oldest_of(self.ranks.most()?)
    }

    fn least_crowded(&self) -> Option<Member<K>> {
        self.oldest_of(self.ranks.least()?)
    }

    fn insert(&mut self, arrival: u64, member: Member<K>) {
        let of_host = self.hosts.entry(member.host).or_default();
        let before = Standing::of(of_host);
        of_host.insert(arrival, member);
        self.ranks
            .replace(member.host, before, Standing::of(of_host));
        self.members += 1;
    }

    fn remove(&mut self, arrival: u64, host: u128) {
        if let btree_map::Entry::Occupied(mut of_host) = self.hosts.entry(host) {
            let before = Standing::of(of_host.get());
            let removed = of_host.get_mut().remove(&arrival);
            self.members -= usize::from(removed.is_some());
            self.ranks
                .replace(host, before, Standing::of(of_host.get()));
            if of_host.get().is_empty() {
                of_host.remove();
            }
        }
    }
}

/// Sites, or the hosts of one, ranked by how crowded they are.
#[derive(Clone, Debug, Default)]
struct Ranks(BTreeSet<(Standing, u128)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    members: usize,
    /// Members of the most crowded host of a site; 0 for a host.
    of_host: usize,
    /// Arrival of the oldest member of a host, or of a site's most crowded one.
    oldest: Reverse<u64>,
}

impl Standing {
    fn of<K>(members: &Members<K>) -> Option<Self> {
        let (oldest, _) = members.first_key_value()?;
        Some(Self {
            members: members.len(),
            of_host: 0,
            oldest: Reverse(*oldest),
        })
    }
}

impl Ranks {
    /// Replaces the standing of a network, which has one unless it has no members.
    fn replace(&mut self, network: u128, before: Option<Standing>, after: Option<Standing>) {
        if let Some(before) = before {
            self.0.remove(&(before, network));
        }
        self.0.extend(after.map(|after| (after, network)));
    }

    /// Returns the most crowded network; of several the one with the oldest member.
    fn most(&self) -> Option<u128> {
        self.0.last().map(|(_, network)| *network)
    }

    /// Returns the least crowded network; of several the one with the oldest member.
    fn least(&self) -> Option<u128> {
        let (least, _) = self.0.first()?;
        let oldest = Reverse(0);
        let last = (Standing { oldest, ..*least }, u128::MAX);
        let mut as_few = self.0.range(..=last);
        as_few.next_back().map(|(_, network)| *network)
    }
}

/// Returns the host of an address as one number: an IPv4-mapped IPv6 address, or an IPv6 /64.
fn host(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits() & !HOST_OF_IPV6,
    }
}

/// Returns the site of an address as one number: an IPv4 /24 or an IPv6 /48.
pub fn site_of(address: IpAddr) -> u128 {
    site(host(address))
}

const HOST_OF_IPV6: u128 = (1 << 64) - 1;
const SITE_OF_IPV6: u128 = (1 << 80) - 1;
const SITE_OF_IPV4: u128 = (1 << 8) - 1;

/// Returns the mask of the bits within a site. An IPv6 /64 ends in zeros, a mapped address does
/// not.
const fn own_part(host: u128) -> u128 {
    match host & HOST_OF_IPV6 == 0 {
        true => SITE_OF_IPV6,
        false => SITE_OF_IPV4,
    }
}

const fn site(host: u128) -> u128 {
    host & !own_part(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        total: 12,
        per_site: 8,
        per_host: 4,
        patience: Duration::from_secs(2),
    };

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    /// Admits a member if there is a place, and removes the member that it replaces.
    fn arrive(crowd: &mut Crowd<u32>, key: u32, from: &str, now: Instant) -> Entry<u32> {
        let from = from.parse().unwrap();
        let entry = crowd.entry(from, &ROOM, now);
        if let Entry::Instead(old) = entry {
            assert!(crowd.remove(old));
        }
        if entry != Entry::Refused {
            crowd.insert(key, from, now);
        }
        entry
    }

    #[test]
    fn members_are_counted_by_64_and_by_48_in_ipv6_and_by_address_and_24_in_ipv4() {
        let mut crowd = Crowd::default();
        let from = [
            "2001:db8:0:1::1",
            "2001:db8:0:1:ffff::2",
            "2001:db8:0:2::1",
            "2001:db8:1::1",
            "192.0.2.1",
            "192.0.2.2",
            "::ffff:192.0.2.2",
            "192.0.3.1",
        ];
        for (key, address) in from.iter().enumerate() {
            crowd.insert(key, address.parse().unwrap(), at(0));
        }
        let counts = |address: &str| {
            let address = address.parse().unwrap();
            (
                crowd.members_of_host(address),
                crowd.crowding(host(address)).0,
            )
        };
        assert_eq!(counts("2001:db8:0:1::9"), (2, 3));
        assert_eq!(counts("2001:db8:0:3::9"), (0, 3));
        assert_eq!(counts("2001:db8:1:0::9"), (1, 1));
        assert_eq!(counts("192.0.2.2"), (2, 3));
        assert_eq!(counts("192.0.2.3"), (0, 3));
        assert_eq!(counts("0.0.0.0"), (0, 0));
        assert_eq!(crowd.len(), from.len());
    }

    #[test]
    fn a_newcomer_from_elsewhere_takes_the_oldest_place_of_the_most_crowded_site() {
        let mut crowd = Crowd::default();
        arrive(&mut crowd, 0, "198.51.100.1", at(0));
        for key in 1..9 {
            let from = format!("2001:db8:0:{key}::1");
            assert_eq!(arrive(&mut crowd, key, &from, at(0)), Entry::Free);
        }
        for key in 9..12 {
            arrive(&mut crowd, key, "203.0.113.7", at(0));
        }
        assert_eq!(crowd.len(), ROOM.total);
        for (key, gives_way) in [(20, 1), (21, 2), (22, 3)] {
            let from = format!("192.0.{key}.1");
            let entry = arrive(&mut crowd, key, &from, at(0));
            assert_eq!(entry, Entry::Instead(gives_way));
        }
    }

    #[test]
    fn no_site_and_no_host_has_more_than_its_own_places() {
        for hosts in [1, 2, 5] {
            let mut crowd = Crowd::default();
            for key in 0..100 {
                let from = format!("2001:db8:0:{:x}::{key:x}", key % hosts);
                arrive(&mut crowd, key, &from, at(u64::from(key)));
            }
            let most = (hosts as usize * ROOM.per_host).min(ROOM.per_site);
            assert_eq!(crowd.len(), most, "{hosts} hosts");
        }
    }

    #[test]
    fn within_one_network_a_place_is_kept_for_a_time_and_then_goes_to_the_next() {
        let mut crowd = Crowd::default();
        for key in 0..4 {
            arrive(&mut crowd, key, "192.0.2.1", at(0));
        }
        let from = "192.0.2.1";
        assert_eq!(arrive(&mut crowd, 4, from, at(1)), Entry::Refused);
        assert_eq!(arrive(&mut crowd, 4, from, at(2)), Entry::Instead(0));
        assert_eq!(arrive(&mut crowd, 5, from, at(2)), Entry::Instead(1));
    }

    #[test]
    fn where_every_network_has_one_place_the_oldest_gives_way() {
        let mut crowd = Crowd::default();
        for key in 0..100_u32 {
            let expected = match key.checked_sub(12) {
                Some(oldest) => Entry::Instead(oldest),
                None => Entry::Free,
            };
            let from = format!("10.{key}.0.1");
            assert_eq!(arrive(&mut crowd, key, &from, at(0)), expected);
        }
    }

    #[test]
    fn the_least_crowded_network_is_served_first_and_in_it_the_oldest_member() {
        let mut crowd = Crowd::default();
        let sources = [
            (0, "192.0.2.1"),
            (1, "198.51.100.1"),
            (2, "198.51.100.1"),
            (3, "198.51.100.2"),
            (4, "203.0.113.1"),
            (5, "192.0.2.2"),
            (6, "203.0.113.1"),
        ];
        for (key, from) in sources {
            crowd.insert(key, from.parse().unwrap(), at(0));
        }
        let mut served = Vec::new();
        while let Some((_, key)) = crowd.least_crowded() {
            served.push(key);
            crowd.remove(key);
        }
        assert_eq!(served, [0, 5, 4, 6, 3, 1, 2]);
    }

    /// Compares with a search among all members, for any order of arrivals and departures.
    #[test]
    fn ranks_agree_with_a_search() {
        let mut crowd = Crowd::default();
        let mut members: Vec<(u32, IpAddr)> = Vec::new();
        let mut seed = 7_u32;
        let mut draw = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as usize % below
        };
        for key in 0..600 {
            if draw(5) < 2 && !members.is_empty() {
                let (gone, _) = members.remove(draw(members.len()));
                assert!(crowd.remove(gone));
            } else {
                let from: IpAddr = format!("10.0.{}.{}", draw(6), draw(3)).parse().unwrap();
                crowd.insert(key, from, at(0));
                members.push((key, from));
            }
            let count = |same: &dyn Fn(IpAddr) -> bool| {
                members.iter().filter(|(_, from)| same(*from)).count()
            };
            let crowding = |from: IpAddr| {
                let in_site = count(&|other| site_of(other) == site_of(from));
                (in_site, count(&|other| other == from))
            };
            // Of members that are equally crowded, the first is the oldest.
            let least = members.iter().min_by_key(|(_, from)| crowding(*from));
            let least = least.map(|(_, from)| crowding(*from).0);
            let served = crowd.least_crowded();
            assert_eq!(served.map(|((in_site, _), _)| in_site), least);
            let most = members.iter().rev().max_by_key(|(_, from)| crowding(*from));
            let room = Room {
                total: members.len(),
                patience: Duration::ZERO,
                per_site: usize::MAX,
                per_host: usize::MAX,
            };
            let elsewhere = "192.0.2.1".parse().unwrap();
            let expected = most.map_or(Entry::Refused, |(key, _)| Entry::Instead(*key));
            assert_eq!(crowd.entry(elsewhere, &room, at(0)), expected);
        }
    }

    #[test]
    fn nothing_is_left_of_members_that_are_gone() {
        let mut crowd = Crowd::default();
        for key in 0..50 {
            let from = format!("2001:db8:{:x}:{key:x}::1", key % 3);
            crowd.insert(key, from.parse().unwrap(), at(0));
        }
        assert!((0..50).all(|key| crowd.remove(key)));
        assert!(!crowd.remove(0) && crowd.is_empty());
        assert!(crowd.sites.is_empty() && crowd.ranks.0.is_empty());
    }

    #[test]
    fn without_any_place_everybody_is_refused() {
        let room = Room { total: 0, ..ROOM };
        let from = "192.0.2.1".parse().unwrap();
        let entry = Crowd::<u32>::default().entry(from, &room, at(9));
        assert_eq!(entry, Entry::Refused);
    }
}
