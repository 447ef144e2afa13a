//! `[pool.NAME]`: inner addresses that peers lease, and `[store]`, the file of the leases.

use crate::Prefix;
use crate::keys::POOL;
use crate::reader::{Table, Value};
use model::TrafficSelector;
use std::net::IpAddr;
use std::time::Duration;

/// Default path of the file of leases.
pub const DEFAULT_STORE: &str = "/var/lib/strata/strata.redb";

/// Most subnets that a pool announces.
const MAX_SUBNETS: usize = 256;

/// Addresses for the peers whose table names the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The table's name.
    pub name: String,
    /// `addresses`: prefixes to lease from. The first and last address of an IPv4 prefix, the first
    /// of an IPv6 prefix, and our own addresses are never leased.
    pub addresses: Vec<Prefix>,
    /// `dns`: name servers that are announced to peers. Default none.
    pub dns: Vec<IpAddr>,
    /// `subnets`: the networks behind us that are announced to peers, so that they can limit their
    /// routes to these (RFC 7296 section 3.15.2). Default the `local` of each peer.
    pub subnets: Vec<Prefix>,
    /// `lease`: time for which an unused address stays reserved for its peer, 1 min to 1 year.
    /// Default 24 h.
    pub lease: Duration,
}

impl Pool {
    pub(crate) fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let mut pool = Self {
            name: name.to_owned(),
            addresses: Vec::new(),
            dns: Vec::new(),
            subnets: Vec::new(),
            lease: Duration::from_secs(86_400),
        };
        let is_whole = table.read(POOL, &mut pool);
        table.finish();
        is_whole.then_some(pool)
    }

    /// Returns a selector for each prefix of the pool.
    pub fn selectors(&self) -> Vec<TrafficSelector> {
        let prefixes = self.addresses.iter();
        prefixes.map(|prefix| prefix.selector()).collect()
    }
}

pub(crate) fn prefixes(value: &Value<'_>) -> Option<Vec<Prefix>> {
    let prefixes = value.list(Value::prefix)?;
    match prefixes.is_empty() {
        true => value.fault("is empty", "list at least one prefix, like \"10.9.0.0/24\""),
        false => Some(prefixes),
    }
}

/// Reads `subnets`. The number is limited because peers ignore a longer list altogether.
pub(crate) fn subnets(value: &Value<'_>) -> Option<Vec<Prefix>> {
    let subnets = prefixes(value)?;
    match subnets.len() {
        0..=MAX_SUBNETS => Some(subnets),
        many => value.fault(
            format!("lists {many} networks, and peers accept at most {MAX_SUBNETS}"),
            "merge adjacent networks: 10.1.0.0/24 and 10.1.1.0/24 are 10.1.0.0/23",
        ),
    }
}
