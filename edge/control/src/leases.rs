//! `strata leases`: addresses leased from the pools.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// All address pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leases {
    /// The pools, sorted by name.
    pub pools: Vec<Pool>,
}

/// One address pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Name of the pool's table.
    pub name: String,
    /// Prefixes that the pool leases from.
    pub prefixes: Vec<String>,
    /// Use of the IPv4 addresses.
    pub ipv4: Fill,
    /// Use of the IPv6 addresses.
    pub ipv6: Fill,
    /// Leases, sorted by identity.
    pub leases: Vec<Lease>,
}

/// Use of a pool's addresses of one family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Leased addresses, in use or reserved.
    pub lent: u64,
    /// Addresses in the pool. Saturates at 2^64 - 1.
    pub size: u64,
}

/// Addresses leased to one identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Identity of the lease holder.
    pub identity: String,
    /// Leased addresses.
    pub addresses: Vec<IpAddr>,
    /// True if a tunnel uses the addresses.
    pub in_use: bool,
    /// Seconds for which unused addresses stay reserved for this identity; `None` while a tunnel
    /// uses them. After that time the pool may lease them to another identity.
    pub kept_seconds: Option<u64>,
}
