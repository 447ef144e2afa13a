//! "Except in cases where the foreign agent would be required to send out more than one such denial per
//! second to the same mobile node" (RFC 5944 section 3.7.2).

use model::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

const SPACING: Duration = Duration::from_secs(1);
/// So many mobile nodes are told something within a second, and no more.
const MOST: usize = 64;

/// So many answers a mobile node has within a second to requests that are not new: as many as it asks for on the worst of
/// links, and no reflector to speak of.
const MOST_OF_OLD: u32 = 8;

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

/// Answers to requests that change nothing: any host can send a copy of one again, from whatever source address.
#[derive(Debug, Default)]
pub(super) struct OldAnswers(BTreeMap<Ipv4Addr, (Instant, u32)>);

impl OldAnswers {
    /// Whether one more is sent now, which then counts. Asked for mobile nodes alone that are configured.
    pub(super) fn allow(&mut self, home: Ipv4Addr, now: Instant) -> bool {
        let (since, answers) = self.0.entry(home).or_insert((now, 0));
        if now.since(*since) >= SPACING {
            (*since, *answers) = (now, 0);
        }
        *answers += 1;
        *answers <= MOST_OF_OLD
    }
}
