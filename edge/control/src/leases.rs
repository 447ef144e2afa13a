//! `strata leases`: which addresses the pools have lent, and to whom.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Every pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leases {
    /// Sorted by name.
    pub pools: Vec<Pool>,
}

/// One pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Name of its table.
    pub name: String,
    /// What it lends from.
    pub prefixes: Vec<String>,
    /// How full it is of IPv4 addresses.
    pub ipv4: Fill,
    /// How full it is of IPv6 addresses.
    pub ipv6: Fill,
    /// Who has what, sorted by identity.
    pub leases: Vec<Lease>,
}

/// How full a pool is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Addresses that somebody has, in use or not.
    pub lent: u64,
    /// Addresses that there are; the largest number there is here stands for more as well.
    pub size: u64,
}

/// What somebody has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Whose it is.
    pub identity: String,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether a tunnel carries them.
    pub in_use: bool,
    /// If not: for how long nobody else gets them. After that they are lent to who needs them.
    pub kept_seconds: Option<u64>,
}
