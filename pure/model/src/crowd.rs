//! Bounded set of unauthenticated peers, shared fairly among the networks they come from.
//!
//! A customer of an ISP has at least a /64 of IPv6 and often a /48 (RFC 8019 section 4.2), so a
//! limit per address is no limit. Members are counted by *host* (an IPv4 address or an IPv6 /64)
//! and by *site* (an IPv4 /24 or an IPv6 /48). When the set is full, the oldest member of the most
//! crowded site and host is evicted, so a peer from another network always finds a place.

use crate::Instant;
use std::collections::{BTreeMap, VecDeque};
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

/// The members, by source network.
#[derive(Clone, Debug)]
pub struct Crowd<K> {
    /// Members of each host, oldest first.
    hosts: BTreeMap<u128, VecDeque<Member<K>>>,
    /// Number of members of each site.
    sites: BTreeMap<u128, usize>,
    host_of: BTreeMap<K, u128>,
    /// Number of insertions so far.
    arrivals: u64,
}

#[derive(Clone, Debug)]
struct Member<K> {
    key: K,
    /// Position in the order of all insertions.
    arrival: u64,
    since: Instant,
}

/// Number of members of a site and of a host. The site decides first.
type Crowding = (usize, usize);

impl<K> Default for Crowd<K> {
    fn default() -> Self {
        Self {
            hosts: BTreeMap::new(),
            sites: BTreeMap::new(),
            host_of: BTreeMap::new(),
            arrivals: 0,
        }
    }
}

impl<K: Copy + Ord> Crowd<K> {
    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.host_of.len()
    }

    /// Returns true if there are no members.
    pub fn is_empty(&self) -> bool {
        self.host_of.is_empty()
    }

    /// Returns true if `key` is a member.
    pub fn contains(&self, key: K) -> bool {
        self.host_of.contains_key(&key)
    }

    /// Returns the number of members from the host of an address.
    pub fn members_of_host(&self, address: IpAddr) -> usize {
        self.hosts.get(&host(address)).map_or(0, VecDeque::len)
    }

    /// Returns the number of members from the site of an address.
    fn members_of_site(&self, address: IpAddr) -> usize {
        self.sites.get(&site_of(address)).copied().unwrap_or(0)
    }

    /// Decides whether one more member from an address may enter.
    pub fn entry(&self, address: IpAddr, room: &Room, now: Instant) -> Entry<K> {
        let (host, own) = (host(address), self.crowding(address));
        let oldest = if own.1 >= room.per_host {
            self.most_crowded(host, host)
        } else if own.0 >= room.per_site {
            self.most_crowded(site(host), last_of(site(host)))
        } else if self.len() >= room.total {
            self.most_crowded(u128::MIN, u128::MAX)
        } else {
            return Entry::Free;
        };
        match oldest {
            Some((crowding, oldest)) if own < crowding || now >= oldest.since + room.patience => {
                Entry::Instead(oldest.key)
            }
            _ => Entry::Refused,
        }
    }

    /// Adds a member. A key that is a member already keeps its place.
    pub fn insert(&mut self, key: K, address: IpAddr, now: Instant) {
        if self.host_of.contains_key(&key) {
            return;
        }
        let host = host(address);
        self.host_of.insert(key, host);
        *self.sites.entry(site(host)).or_default() += 1;
        self.arrivals += 1;
        self.hosts.entry(host).or_default().push_back(Member {
            key,
            arrival: self.arrivals,
            since: now,
        });
    }

    /// Removes a member. Returns true if it was one.
    pub fn remove(&mut self, key: K) -> bool {
        let Some(host) = self.host_of.remove(&key) else {
            return false;
        };
        if let Some(members) = self.hosts.get_mut(&host) {
            members.retain(|member| member.key != key);
            if members.is_empty() {
                self.hosts.remove(&host);
            }
        }
        if let Some(count) = self.sites.get_mut(&site(host)) {
            *count -= 1;
            if *count == 0 {
                self.sites.remove(&site(host));
            }
        }
        true
    }

    fn crowding(&self, address: IpAddr) -> Crowding {
        (self.members_of_site(address), self.members_of_host(address))
    }

    /// Returns the oldest member of the most crowded host in a range of hosts.
    fn most_crowded(&self, first: u128, last: u128) -> Option<(Crowding, &Member<K>)> {
        // Both maps are sorted by address, so one pass covers both.
        let mut sites = self.sites.range(site(first)..).peekable();
        let oldest = self
            .hosts
            .range(first..=last)
            .filter_map(|(host, members)| {
                while sites.next_if(|(at, _)| **at < site(*host)).is_some() {}
                let (_, in_site) = sites.peek()?;
                Some(((**in_site, members.len()), members.front()?))
            });
        oldest.max_by(|(a, x), (b, y)| a.cmp(b).then(y.arrival.cmp(&x.arrival)))
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

const fn last_of(site: u128) -> u128 {
    site | own_part(site)
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
                crowd.members_of_site(address),
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
    fn nothing_is_left_of_members_that_are_gone() {
        let mut crowd = Crowd::default();
        for key in 0..50 {
            let from = format!("2001:db8:{:x}:{key:x}::1", key % 3);
            crowd.insert(key, from.parse().unwrap(), at(0));
        }
        assert!((0..50).all(|key| crowd.remove(key)));
        assert!(!crowd.remove(0) && crowd.is_empty());
        assert!(crowd.hosts.is_empty() && crowd.sites.is_empty());
    }

    #[test]
    fn without_any_place_everybody_is_refused() {
        let room = Room { total: 0, ..ROOM };
        let from = "192.0.2.1".parse().unwrap();
        let entry = Crowd::<u32>::default().entry(from, &room, at(9));
        assert_eq!(entry, Entry::Refused);
    }
}
