//! Pools of inner addresses, and their leases (RFC 7296 section 2.19).
//!
//! A lease belongs to an identity, not to an SA. Two SAs of one identity share the same address,
//! whether one replaces the other or both ends initiated at once. The identity keeps the lease for
//! a time after the last SA has ended, and longer while no other identity needs the address. Then
//! the address that has been free for the longest time is leased again. An address is leased by one
//! pool at a time, even if several pools contain it.
//!
//! [`Pools::poll`] reports the lease changes to persist, and which of them no answer depends on: a
//! peer may set up and delete SAs as fast as it can, and each time uses the address that it has. An
//! SA is usable only after the caller could poll its lease: one call produces both. A caller that
//! persists leases before it sends packets therefore never has an address in use that is not
//! persisted.

use crate::runs::{Runs, next};
use crypto::UnixTime;
use model::{Identity, IkeSaId, InnerAddresses, Lease, LeaseChange, TrafficSelector};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// A pool of inner addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its name in the configuration.
    pub name: String,
    /// Addresses to lease.
    pub addresses: Vec<TrafficSelector>,
    /// Excluded addresses among them, which are in use elsewhere.
    pub reserved: Vec<IpAddr>,
    /// Name servers, announced to each lessee.
    pub dns: Vec<IpAddr>,
    /// Subnets behind us, announced to each lessee. Empty: all that the child SA may carry.
    pub subnets: Vec<TrafficSelector>,
    /// Time for which an identity keeps an address that it does not use.
    pub lease: Duration,
}

/// Every lease of every pool.
#[derive(Default)]
pub(crate) struct Pools {
    leases: BTreeMap<Name, Held>,
    /// Addresses of all leases.
    taken: Runs,
    /// Leases that no IKE SA uses, by the name of their pool.
    unused: BTreeMap<String, Unused>,
    users: BTreeMap<IkeSaId, Name>,
    changes: VecDeque<LeaseChange>,
}

/// Key of a lease: name of the pool, and identity.
type Name = (String, Identity);

/// Leases of a pool that no IKE SA uses.
#[derive(Default)]
struct Unused {
    /// The identities, by the time from which their addresses are free.
    leases: BTreeSet<(UnixTime, Identity)>,
    /// The lowest and the highest address of each family that was among the leases. So pools apart
    /// from each other visit none of each other's leases.
    extents: BTreeMap<bool, [IpAddr; 2]>,
}

#[cfg(test)]
thread_local! {
    /// Number of leases that searches of this thread have looked at.
    static VISITED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl Unused {
    fn insert(&mut self, since: UnixTime, identity: Identity, addresses: &InnerAddresses) {
        self.leases.insert((since, identity));
        for address in addresses.iter() {
            let extent = self.extents.entry(address.is_ipv4());
            let [first, last] = extent.or_insert([address; 2]);
            *first = address.min(*first);
            *last = address.max(*last);
        }
    }

    /// Returns true if a pool may lend an address of these leases.
    fn overlaps(&self, pool: &Pool, is_ipv4: bool) -> bool {
        self.extents.get(&is_ipv4).is_some_and(|[first, last]| {
            let mut ranges = pool.of(is_ipv4);
            ranges.any(|range| range.first <= *last && *first <= range.last)
        })
    }
}

#[derive(Default)]
struct Held {
    addresses: InnerAddresses,
    /// IKE SAs whose child SAs carry the addresses.
    users: BTreeSet<IkeSaId>,
    /// Time at which the addresses become free; `None` while an IKE SA uses them.
    free_from: Option<UnixTime>,
    lease: Duration,
}

impl Pool {
    fn lends(&self, address: IpAddr) -> bool {
        let inside = |range: &TrafficSelector| range.contains(address, 0, None);
        self.addresses.iter().any(inside) && !self.reserved.contains(&address)
    }

    /// Returns the number of addresses of a family that can be leased.
    pub fn size(&self, is_ipv4: bool) -> u128 {
        let ranges = self.of(is_ipv4);
        let all = ranges.map(|range| (bits(range.last) - bits(range.first)).saturating_add(1));
        let reserved = self.reserved.iter().filter(|address| {
            let inside = |range: &TrafficSelector| range.contains(**address, 0, None);
            address.is_ipv4() == is_ipv4 && self.addresses.iter().any(inside)
        });
        all.fold(0, u128::saturating_add)
            .saturating_sub(reserved.count() as u128)
    }

    fn of(&self, is_ipv4: bool) -> impl Iterator<Item = &TrafficSelector> {
        let ranges = self.addresses.iter();
        ranges.filter(move |range| range.first.is_ipv4() == is_ipv4)
    }
}

/// The address families that an initiator asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Families {
    pub(crate) ipv4: bool,
    pub(crate) ipv6: bool,
}

impl Families {
    /// Returns true for IPv4 and false for IPv6, as far as they are wanted.
    fn iter(self) -> impl Iterator<Item = bool> {
        let families = [(self.ipv4, true), (self.ipv6, false)].into_iter();
        families.filter_map(|(wanted, is_ipv4)| wanted.then_some(is_ipv4))
    }
}

impl Pools {
    /// Leases addresses to an identity, for an IKE SA with it. Returns `None` if no address of any
    /// wanted family is left.
    pub(crate) fn lend(
        &mut self,
        pool: &Pool,
        identity: &Identity,
        wanted: Families,
        sa: IkeSaId,
        today: UnixTime,
    ) -> Option<InnerAddresses> {
        let name = (pool.name.clone(), identity.clone());
        let before = self.leases.get(&name).map(|held| held.lease(&name));
        let mut lent = InnerAddresses::default();
        for is_ipv4 in wanted.iter() {
            if let Some(address) = self.provide(pool, &name, is_ipv4, today) {
                lent.set(address);
            }
        }
        if lent.is_empty() {
            return None;
        }
        let held = self.leases.entry(name.clone()).or_default();
        held.users.insert(sa);
        let unused_since = held.free_from.take();
        held.lease = pool.lease;
        let lease = held.lease(&name);
        if let Some(since) = unused_since {
            self.use_again(since, &name);
        }
        self.users.insert(sa, name);
        match before {
            Some(before) if before == lease => {}
            Some(before) if before.addresses == lease.addresses => {
                self.changes.push_back(LeaseChange::Used(lease));
            }
            _ => self.changes.push_back(LeaseChange::Kept(lease)),
        }
        Some(lent)
    }

    /// Returns the addresses of the wanted families that an identity has, if it has all that the
    /// pool could lease to it.
    pub(crate) fn held(
        &self,
        pool: &Pool,
        identity: &Identity,
        wanted: Families,
    ) -> Option<InnerAddresses> {
        let name = (pool.name.clone(), identity.clone());
        let held = &self.leases.get(&name)?.addresses;
        let mut lent = InnerAddresses::default();
        for is_ipv4 in wanted
            .iter()
            .filter(|is_ipv4| pool.of(*is_ipv4).next().is_some())
        {
            let address = held.address(is_ipv4);
            lent.set(address.filter(|address| pool.lends(*address))?);
        }
        (!lent.is_empty()).then_some(lent)
    }

    /// Adds a clone of an IKE SA as a user of its lease.
    pub(crate) fn share(&mut self, sa: IkeSaId, clone: IkeSaId) {
        if let Some(name) = self.users.get(&sa).cloned()
            && let Some(held) = self.leases.get_mut(&name)
        {
            held.users.insert(clone);
            self.users.insert(clone, name);
        }
    }

    /// Releases the lease of an IKE SA that is no longer up.
    pub(crate) fn release(&mut self, sa: IkeSaId, today: UnixTime) {
        let Some(name) = self.users.remove(&sa) else {
            return;
        };
        let Some(held) = self.leases.get_mut(&name) else {
            return;
        };
        held.users.remove(&sa);
        if held.users.is_empty() {
            let since = later(today, held.lease);
            held.free_from = Some(since);
            self.changes.push_back(LeaseChange::Used(held.lease(&name)));
            let (pool, identity) = name;
            let unused = self.unused.entry(pool).or_default();
            unused.insert(since, identity, &held.addresses);
        }
    }

    /// Restores persisted leases. Leases that were in use then are kept for their full time from
    /// now on, because the time of their last use is unknown. `pools` looks up a pool by name.
    pub(crate) fn restore<'p>(
        &mut self,
        leases: Vec<Lease>,
        pools: impl Fn(&str) -> Option<&'p Pool>,
        today: UnixTime,
    ) {
        for lease in leases {
            let kept = pools(&lease.pool).map_or(Duration::ZERO, |pool| pool.lease);
            let name = (lease.pool, lease.identity);
            let mut addresses = InnerAddresses::default();
            for address in lease.addresses.iter() {
                // The engine never persists two owners of one address. The first one counts if the
                // store says so anyway.
                if self.taken.insert(address) {
                    addresses.set(address);
                }
            }
            let free_from = lease.free_from.map(UnixTime);
            let free_from = free_from.unwrap_or_else(|| later(today, kept));
            let unused = self.unused.entry(name.0.clone()).or_default();
            unused.insert(free_from, name.1.clone(), &addresses);
            let held = Held {
                addresses,
                users: BTreeSet::new(),
                free_from: Some(free_from),
                lease: kept,
            };
            self.leases.insert(name, held);
        }
    }

    /// Returns the next change to persist.
    pub(crate) fn poll(&mut self) -> Option<LeaseChange> {
        self.changes.pop_front()
    }

    /// Returns every lease.
    pub(crate) fn leases(&self) -> impl Iterator<Item = Lease> {
        self.leases.iter().map(|(name, held)| held.lease(name))
    }

    /// Returns the address that an identity has, or assigns a free one.
    fn provide(
        &mut self,
        pool: &Pool,
        name: &Name,
        is_ipv4: bool,
        today: UnixTime,
    ) -> Option<IpAddr> {
        let has = self
            .leases
            .get(name)
            .and_then(|held| held.addresses.address(is_ipv4));
        if let Some(address) = has {
            // The pool may have changed.
            if pool.lends(address) {
                return Some(address);
            }
        }
        let unused = self.unused(pool, is_ipv4);
        let address = unused.or_else(|| self.reclaim(pool, is_ipv4, today))?;
        if let Some(old) = has {
            self.taken.remove(old);
        }
        self.taken.insert(address);
        let held = self.leases.entry(name.clone()).or_default();
        held.addresses.set(address);
        Some(address)
    }

    /// Returns the lowest address that is not leased.
    fn unused(&self, pool: &Pool, is_ipv4: bool) -> Option<IpAddr> {
        pool.of(is_ipv4).find_map(|range| {
            let mut candidate = self.taken.first_outside(range.first)?;
            while candidate <= range.last && pool.reserved.contains(&candidate) {
                candidate = self.taken.first_outside(next(candidate)?)?;
            }
            (candidate <= range.last).then_some(candidate)
        })
    }

    /// Removes a lease from the unused ones.
    fn use_again(&mut self, since: UnixTime, name: &Name) {
        let (pool, identity) = name;
        if let Some(unused) = self.unused.get_mut(pool) {
            unused.leases.remove(&(since, identity.clone()));
            if unused.leases.is_empty() {
                self.unused.remove(pool);
            }
        }
    }

    /// Ends the lease that has been free for the longest time, and returns its address. All
    /// addresses of the lease become free.
    fn reclaim(&mut self, pool: &Pool, is_ipv4: bool, today: UnixTime) -> Option<IpAddr> {
        let overlap = self.unused.iter();
        let overlap = overlap.filter(|(_, unused)| unused.overlaps(pool, is_ipv4));
        let oldest = overlap.filter_map(|(of, unused)| {
            let free = unused.leases.iter();
            let mut free = free.take_while(|(since, _)| *since <= today);
            free.find_map(|(since, identity)| {
                #[cfg(test)]
                VISITED.set(VISITED.get() + 1);
                let name = (of.clone(), identity.clone());
                let address = self.leases.get(&name)?.addresses.address(is_ipv4)?;
                pool.lends(address).then_some((*since, address, name))
            })
        });
        let (since, address, name) = oldest.min_by_key(|(since, ..)| *since)?;
        let held = self.leases.remove(&name)?;
        for address in held.addresses.iter() {
            self.taken.remove(address);
        }
        self.use_again(since, &name);
        let (pool, identity) = name;
        self.changes
            .push_back(LeaseChange::Forgotten { pool, identity });
        Some(address)
    }
}

impl Held {
    fn lease(&self, name: &Name) -> Lease {
        let (pool, identity) = name;
        Lease {
            pool: pool.clone(),
            identity: identity.clone(),
            addresses: self.addresses,
            free_from: self.free_from.map(|since| since.0),
        }
    }
}

const fn later(today: UnixTime, time: Duration) -> UnixTime {
    UnixTime(today.0.saturating_add(time.as_secs()))
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::Rng;

    const DAY: u64 = 86_400;
    const BOTH: Families = Families {
        ipv4: true,
        ipv6: true,
    };
    const V4: Families = Families {
        ipv4: true,
        ipv6: false,
    };

    fn prefix(text: &str) -> TrafficSelector {
        let (address, length) = text.split_once('/').unwrap();
        TrafficSelector::from_prefix(address.parse().unwrap(), length.parse().unwrap()).unwrap()
    }

    fn pool(addresses: &[&str]) -> Pool {
        Pool {
            name: "office".to_owned(),
            addresses: addresses.iter().map(|text| prefix(text)).collect(),
            reserved: Vec::new(),
            dns: Vec::new(),
            subnets: Vec::new(),
            lease: Duration::from_secs(DAY),
        }
    }

    fn who(number: u64) -> Identity {
        format!("host{number}.example.net").parse().unwrap()
    }

    fn texts(lent: Option<InnerAddresses>) -> Vec<String> {
        lent.iter()
            .flat_map(InnerAddresses::iter)
            .map(|address| address.to_string())
            .collect()
    }

    /// Applies all polled changes to `store`.
    fn remembered(pools: &mut Pools, store: &mut BTreeMap<Name, Lease>) {
        while let Some(change) = pools.poll() {
            match change {
                LeaseChange::Kept(lease) | LeaseChange::Used(lease) => {
                    let name = (lease.pool.clone(), lease.identity.clone());
                    store.insert(name, lease);
                }
                LeaseChange::Forgotten { pool, identity } => {
                    assert!(store.remove(&(pool, identity)).is_some());
                }
            }
        }
    }

    #[test]
    fn an_identity_gets_the_same_addresses_again_and_others_get_others() {
        let pool = Pool {
            reserved: vec!["10.9.0.0".parse().unwrap(), "fd00:9::1".parse().unwrap()],
            ..pool(&["10.9.0.0/29", "fd00:9::/126"])
        };
        let (mut pools, now) = (Pools::default(), UnixTime(1000));
        let first = pools.lend(&pool, &who(1), BOTH, IkeSaId(1), now);
        assert_eq!(texts(first), ["10.9.0.1", "fd00:9::"]);
        let second = pools.lend(&pool, &who(2), BOTH, IkeSaId(2), now);
        assert_eq!(texts(second), ["10.9.0.2", "fd00:9::2"]);
        pools.release(IkeSaId(1), now);
        assert_eq!(pools.lend(&pool, &who(1), BOTH, IkeSaId(3), now), first);
        // A request for one family gets one address.
        let third = pools.lend(&pool, &who(3), V4, IkeSaId(4), now);
        assert_eq!(texts(third), ["10.9.0.3"]);
    }

    /// RFC 7296 section 2.19 assigns addresses in IKE_AUTH, which a peer can repeat at will.
    // Weakness: 138
    #[test]
    fn new_addresses_alone_are_kept_before_the_answer() {
        let pool = pool(&["10.9.0.1/32", "fd00:9::1/128"]);
        let (mut pools, now) = (Pools::default(), UnixTime(0));
        let lend = |pools: &mut Pools, wanted, sa| {
            assert!(
                pools
                    .lend(&pool, &who(1), wanted, IkeSaId(sa), now)
                    .is_some()
            );
            pools.poll()
        };
        let is_kept = |change| matches!(change, Some(LeaseChange::Kept(_)));
        let is_used = |change| matches!(change, Some(LeaseChange::Used(_)));
        assert!(is_kept(lend(&mut pools, V4, 1)));
        assert_eq!(lend(&mut pools, V4, 2), None, "nothing has changed");
        assert!(
            is_kept(lend(&mut pools, BOTH, 3)),
            "an address of the other family"
        );
        assert_eq!(lend(&mut pools, BOTH, 4), None);
        for sa in 1..=4 {
            pools.release(IkeSaId(sa), now);
        }
        assert!(is_used(pools.poll()));
        assert!(is_used(lend(&mut pools, BOTH, 5)));
        assert_eq!(pools.poll(), None);
    }

    #[test]
    fn two_sas_of_one_identity_share_its_address_until_the_last_ends() {
        let pool = pool(&["10.9.0.1/32"]);
        let (mut pools, now) = (Pools::default(), UnixTime(0));
        let first = pools.lend(&pool, &who(1), V4, IkeSaId(1), now);
        assert_eq!(pools.lend(&pool, &who(1), V4, IkeSaId(2), now), first);
        pools.release(IkeSaId(1), now);
        let much_later = UnixTime(100 * DAY);
        assert_eq!(pools.lend(&pool, &who(2), V4, IkeSaId(3), much_later), None);
        pools.release(IkeSaId(2), much_later);
        assert_eq!(pools.lend(&pool, &who(2), V4, IkeSaId(4), much_later), None);
        let after = UnixTime(101 * DAY);
        assert_eq!(pools.lend(&pool, &who(2), V4, IkeSaId(5), after), first);
        // The first identity has lost the address now.
        assert_eq!(pools.lend(&pool, &who(1), V4, IkeSaId(6), after), None);
    }

    #[test]
    fn what_has_been_free_for_the_longest_is_lent_first() {
        let pool = pool(&["10.9.0.1/32", "10.9.0.2/32"]);
        let mut pools = Pools::default();
        let one = pools.lend(&pool, &who(1), V4, IkeSaId(1), UnixTime(0));
        let two = pools.lend(&pool, &who(2), V4, IkeSaId(2), UnixTime(0));
        pools.release(IkeSaId(2), UnixTime(10));
        pools.release(IkeSaId(1), UnixTime(20));
        let now = UnixTime(2 * DAY);
        assert_eq!(pools.lend(&pool, &who(3), V4, IkeSaId(3), now), two);
        assert_eq!(pools.lend(&pool, &who(4), V4, IkeSaId(4), now), one);
    }

    #[test]
    fn an_address_that_the_pool_has_no_more_is_replaced() {
        let (mut pools, now) = (Pools::default(), UnixTime(0));
        let old = pools.lend(&pool(&["10.9.0.1/32"]), &who(1), V4, IkeSaId(1), now);
        pools.release(IkeSaId(1), now);
        let new = pools.lend(&pool(&["10.9.0.2/32"]), &who(1), V4, IkeSaId(2), now);
        assert_ne!(new, old);
        let another = Pool {
            name: "another".to_owned(),
            ..pool(&["10.9.0.1/32", "10.9.0.2/32"])
        };
        assert_eq!(pools.lend(&another, &who(2), V4, IkeSaId(3), now), old);
        // Two pools may contain the same address, which is leased once.
        assert_eq!(pools.lend(&another, &who(3), V4, IkeSaId(4), now), None);
    }

    // Weakness: 151
    #[test]
    fn an_address_that_cannot_be_replaced_stays_that_of_its_identity() {
        let (first, second) = (pool(&["10.9.0.1/32"]), pool(&["10.9.0.2/32"]));
        let (mut pools, now) = (Pools::default(), UnixTime(0));
        let lent = pools.lend(&first, &who(1), V4, IkeSaId(1), now);
        pools.release(IkeSaId(1), now);
        assert!(pools.lend(&second, &who(2), V4, IkeSaId(2), now).is_some());
        assert_eq!(pools.lend(&second, &who(1), V4, IkeSaId(3), now), None);
        let both = pool(&["10.9.0.1/32", "10.9.0.2/32"]);
        assert_eq!(pools.lend(&both, &who(3), V4, IkeSaId(4), now), None);
        assert_eq!(pools.lend(&both, &who(1), V4, IkeSaId(5), now), lent);
    }

    /// A search that visits each lease would visit two billion here.
    // Weakness: 150
    #[test]
    fn a_large_pool_is_lent_completely_and_reclaimed_without_visiting_each_lease() {
        const ALL: u64 = 1 << 16;
        let pool = pool(&["10.9.0.0/16"]);
        let (mut pools, now) = (Pools::default(), UnixTime(0));
        for number in 0..ALL {
            let lent = pools.lend(&pool, &who(number), V4, IkeSaId(number), now);
            assert!(lent.is_some());
            pools.release(IkeSaId(number), UnixTime(number));
        }
        let later = UnixTime(2 * ALL + DAY);
        for number in ALL..2 * ALL {
            let lent = pools.lend(&pool, &who(number), V4, IkeSaId(number), later);
            assert!(lent.is_some());
        }
        assert_eq!(pools.lend(&pool, &who(0), V4, IkeSaId(0), later), None);
    }

    #[test]
    fn a_pool_visits_no_lease_of_a_pool_apart_from_it() {
        const OTHERS: u64 = 1000;
        let later = UnixTime(9 * DAY);
        for (range, visits) in [("10.9.8.0/22", 1), ("10.9.0.0/16", OTHERS + 1)] {
            let mut pools = Pools::default();
            let other = Pool {
                name: "branch".to_owned(),
                reserved: vec!["10.9.0.1".parse().unwrap()],
                ..pool(&[range])
            };
            let own = pool(&["10.9.0.1/32"]);
            for number in 0..OTHERS {
                pools.lend(&other, &who(number), V4, IkeSaId(number), UnixTime(0));
                pools.release(IkeSaId(number), UnixTime(0));
            }
            let mine = |pools: &mut Pools, number, today| {
                pools.lend(&own, &who(number), V4, IkeSaId(number), today)
            };
            assert!(mine(&mut pools, OTHERS, UnixTime(1)).is_some());
            pools.release(IkeSaId(OTHERS), UnixTime(1));
            let before = VISITED.get();
            assert!(mine(&mut pools, OTHERS + 1, later).is_some());
            assert_eq!(VISITED.get() - before, visits, "{range}");
        }
    }

    #[test]
    fn what_was_in_use_when_the_process_died_is_kept_for_its_time() {
        let pool = pool(&["10.9.0.1/32"]);
        let (mut pools, mut store) = (Pools::default(), BTreeMap::new());
        let lent = pools.lend(&pool, &who(1), V4, IkeSaId(1), UnixTime(0));
        remembered(&mut pools, &mut store);
        let mut pools = Pools::default();
        let leases = store.into_values().collect();
        pools.restore(leases, |_| Some(&pool), UnixTime(9 * DAY));
        let now = UnixTime(10 * DAY - 1);
        assert_eq!(pools.lend(&pool, &who(2), V4, IkeSaId(1), now), None);
        assert_eq!(pools.lend(&pool, &who(1), V4, IkeSaId(2), now), lent);
    }

    #[test]
    fn a_pool_has_as_many_as_it_can_lend() {
        let pool = Pool {
            reserved: vec!["10.9.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap()],
            ..pool(&["10.9.0.0/30", "::/0"])
        };
        assert_eq!((pool.size(true), pool.size(false)), (3, u128::MAX));
    }

    /// A thousand steps of leasing, releasing, waiting, crashing and restoring: no address ever has
    /// two owners, and the store holds exactly the leases.
    // Recovers: pools
    #[test]
    fn whatever_happens_no_address_has_two_owners() {
        let pool = pool(&["10.9.0.0/30", "fd00:9::/125"]);
        for seed in 0..20 {
            let mut rng = Rng::from_seed([seed; 32]);
            let (mut pools, mut store) = (Pools::default(), BTreeMap::new());
            let mut up: BTreeMap<IkeSaId, (Identity, InnerAddresses)> = BTreeMap::new();
            let mut now = 0;
            for step in 0..1000 {
                let person = who(u64::from(rng.u32() % 7));
                match rng.u32() % 10 {
                    0..6 => {
                        let (sa, today) = (IkeSaId(step), UnixTime(now));
                        let lent = pools.lend(&pool, &person, BOTH, sa, today);
                        if let Some(lent) = lent {
                            up.insert(sa, (person, lent));
                        }
                    }
                    6..8 => {
                        if let Some((sa, _)) = up.pop_first() {
                            pools.release(sa, UnixTime(now));
                        }
                    }
                    8 => now += DAY / 2,
                    _ => {
                        up.clear();
                        pools = Pools::default();
                        let leases = store.values().cloned().collect();
                        pools.restore(leases, |_| Some(&pool), UnixTime(now));
                    }
                }
                remembered(&mut pools, &mut store);
                let mut owners = BTreeMap::new();
                for (identity, lent) in up.values() {
                    for address in lent.iter() {
                        assert!(pool.lends(address));
                        let owner = owners.entry(address).or_insert(identity);
                        assert_eq!(*owner, identity, "{address} has two owners");
                    }
                }
                for (sa, (identity, lent)) in &up {
                    let kept = &store[&("office".to_owned(), identity.clone())];
                    assert_eq!(kept.free_from, None, "{sa:?} uses what is free");
                    assert!(lent.iter().all(|a| kept.addresses.iter().any(|b| a == b)));
                }
            }
        }
    }
}
