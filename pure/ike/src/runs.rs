//! A set of addresses as runs of consecutive ones: the first address outside the set is found
//! without visiting those inside.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// The last address of each run, by its first. Runs do not touch each other.
#[derive(Default)]
pub(crate) struct Runs(BTreeMap<IpAddr, IpAddr>);

impl Runs {
    /// Adds an address. Returns false if the set has it already.
    pub(crate) fn insert(&mut self, address: IpAddr) -> bool {
        if self.run_of(address).is_some() {
            return false;
        }
        let before = previous(address).and_then(|before| self.run_of(before));
        let after = next(address).and_then(|after| self.0.remove(&after));
        let first = before.map_or(address, |(first, _)| first);
        self.0.insert(first, after.unwrap_or(address));
        true
    }

    /// Removes an address, if the set has it.
    pub(crate) fn remove(&mut self, address: IpAddr) {
        let Some((first, last)) = self.run_of(address) else {
            return;
        };
        self.0.remove(&first);
        if let Some(before) = previous(address).filter(|_| first < address) {
            self.0.insert(first, before);
        }
        if let Some(after) = next(address).filter(|_| address < last) {
            self.0.insert(after, last);
        }
    }

    /// Returns the first address outside the set, from this one on, if its family has one.
    pub(crate) fn first_outside(&self, from: IpAddr) -> Option<IpAddr> {
        match self.run_of(from) {
            Some((_, last)) => next(last),
            None => Some(from),
        }
    }

    fn run_of(&self, address: IpAddr) -> Option<(IpAddr, IpAddr)> {
        let (first, last) = self.0.range(..=address).next_back()?;
        (address <= *last).then_some((*first, *last))
    }
}

/// Returns the next address of the family.
pub(crate) fn next(address: IpAddr) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => IpAddr::V4(address.to_bits().checked_add(1)?.into()),
        IpAddr::V6(address) => IpAddr::V6(address.to_bits().checked_add(1)?.into()),
    })
}

fn previous(address: IpAddr) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => IpAddr::V4(address.to_bits().checked_sub(1)?.into()),
        IpAddr::V6(address) => IpAddr::V6(address.to_bits().checked_sub(1)?.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Addresses at the ends of both families, and some between.
    fn address() -> impl Strategy<Value = IpAddr> {
        let v4 = |bits: u32| IpAddr::V4(bits.into());
        let v6 = |bits: u128| IpAddr::V6(bits.into());
        prop_oneof![
            (0..12_u32).prop_map(v4),
            (0..12_u32).prop_map(move |back| v4(u32::MAX - back)),
            (0..12_u128).prop_map(v6),
            (0..12_u128).prop_map(move |back| v6(u128::MAX - back)),
        ]
    }

    proptest! {
        /// A search address by address finds the same.
        #[test]
        fn the_first_address_outside_is_found(steps in vec((address(), any::<bool>()), 1..120)) {
            let (mut runs, mut all) = (Runs::default(), BTreeSet::new());
            for (address, goes) in steps {
                if goes {
                    runs.remove(address);
                    all.remove(&address);
                } else {
                    prop_assert_eq!(runs.insert(address), all.insert(address));
                }
                for from in &all {
                    let mut outside = Some(*from);
                    while let Some(next_one) = outside.filter(|one| all.contains(one)) {
                        outside = next(next_one);
                    }
                    prop_assert_eq!(runs.first_outside(*from), outside);
                }
                prop_assert_eq!(runs.first_outside(address).is_some_and(|one| one == address), goes);
            }
        }
    }

    #[test]
    fn a_hundred_thousand_consecutive_addresses_are_one_run() {
        let addresses = || (0..100_000_u32).map(|number| IpAddr::V4((0x0a00_0000 + number).into()));
        let mut runs = Runs::default();
        assert!(addresses().all(|address| runs.insert(address)));
        assert_eq!(runs.0.len(), 1);
        let first = addresses().next().expect("there is a first address");
        assert_eq!(runs.first_outside(first), Some([10, 1, 134, 160].into()));
        addresses().for_each(|address| runs.remove(address));
        assert!(runs.0.is_empty());
    }
}
