//! "Except in cases where the foreign agent would be required to send out more than one such denial per
//! second to the same mobile node" (RFC 5944 section 3.7.2).

use model::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

const SPACING: Duration = Duration::from_secs(1);
/// So many mobile nodes are told something within a second, and no more.
const MOST: usize = 64;

/// Who was told something when.
#[derive(Debug, Default)]
pub(super) struct Limiter(BTreeMap<Ipv4Addr, Instant>);

impl Limiter {
    /// Whether this one may be told something now. It then counts as told.
    pub(super) fn allows(&mut self, home: Ipv4Addr, now: Instant) -> bool {
        self.0.retain(|_, told| now.since(*told) < SPACING);
        if self.0.len() >= MOST || self.0.contains_key(&home) {
            return false;
        }
        self.0.insert(home, now);
        true
    }
}
