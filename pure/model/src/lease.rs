//! Inner addresses that one end of a tunnel assigns to the other (RFC 7296 section 2.19).

use crate::{Identity, TrafficSelector};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Inner addresses, at most one of each family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InnerAddresses {
    /// The IPv4 address.
    pub v4: Option<Ipv4Addr>,
    /// The IPv6 address.
    pub v6: Option<Ipv6Addr>,
}

impl InnerAddresses {
    /// Iterates over the addresses, IPv4 first.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> {
        let v4 = self.v4.map(IpAddr::V4);
        v4.into_iter().chain(self.v6.map(IpAddr::V6))
    }

    /// Returns true if there is no address.
    pub const fn is_empty(&self) -> bool {
        self.v4.is_none() && self.v6.is_none()
    }

    /// Returns the address of a family.
    pub fn address(&self, is_ipv4: bool) -> Option<IpAddr> {
        self.iter().find(|address| address.is_ipv4() == is_ipv4)
    }

    /// Replaces the address of the same family.
    pub const fn set(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.v4 = Some(address),
            IpAddr::V6(address) => self.v6 = Some(address),
        }
    }

    /// Returns one traffic selector for each address, with every protocol and port.
    pub fn selectors(&self) -> Vec<TrafficSelector> {
        let only = |address| TrafficSelector {
            protocol: 0,
            ports: 0..=u16::MAX,
            first: address,
            last: address,
        };
        self.iter().map(only).collect()
    }
}

/// The addresses that an identity holds from a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Name of the pool.
    pub pool: String,
    /// Identity that holds the lease.
    pub identity: Identity,
    /// Leased addresses.
    pub addresses: InnerAddresses,
    /// Time from which the pool may lease the addresses to another identity, in seconds since 1970.
    /// `None` while the lease is in use.
    pub free_from: Option<u64>,
}

/// A change of a pool's leases that has to survive the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseChange {
    /// A lease has addresses that it did not have before. It is stored before they are announced.
    Kept(Lease),
    /// The use of a lease began or ended, and its addresses are stored already. It may be stored
    /// later.
    Used(Lease),
    /// A lease was removed.
    Forgotten {
        /// Name of the pool.
        pool: String,
        /// Identity that held the lease.
        identity: Identity,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_routed_for_each_address_in_it_and_for_no_other() {
        let (v4, v6) = ([10, 8, 0, 5].into(), "fd00:8::5".parse().unwrap());
        let mut lent = InnerAddresses::default();
        assert!(lent.is_empty() && lent.selectors().is_empty());
        for address in [v4, v6] {
            lent.set(address);
        }
        assert!(!lent.is_empty());
        assert_eq!(
            (lent.address(true), lent.address(false)),
            (Some(v4), Some(v6))
        );
        let routed: Vec<_> = lent.selectors().iter().map(ToString::to_string).collect();
        assert_eq!(routed, ["10.8.0.5/32", "fd00:8::5/128"]);
    }

    #[test]
    fn an_address_takes_the_place_of_one_of_its_family() {
        let (first, second) = ([10, 8, 0, 5].into(), [10, 8, 0, 6].into());
        let mut lent = InnerAddresses::default();
        lent.set(first);
        lent.set(second);
        assert_eq!(lent.iter().collect::<Vec<_>>(), [second]);
        assert_eq!(lent.address(false), None);
    }
}
