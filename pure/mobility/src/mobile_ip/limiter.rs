//! Rate limits on answers. For denials: "Except in cases where the foreign agent would be required
//! to send out more than one such denial per second to the same mobile node" (RFC 5944 section
//! 3.7.2).

use model::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

const SPACING: Duration = Duration::from_secs(1);
/// Mobile nodes that are answered within a second, at most.
const MOST: usize = 64;

/// Answers per second to one mobile node's requests that change nothing: as many requests as it
/// sends on the worst links, and too few to serve as a reflector.
const MOST_OF_OLD: u32 = 8;

/// The times of the last answers, by mobile node.
#[derive(Debug, Default)]
pub(super) struct Limiter(BTreeMap<Ipv4Addr, Instant>);

impl Limiter {
    /// Returns true if a mobile node may be answered now, and counts the answer.
    pub(super) fn allows(&mut self, home: Ipv4Addr, now: Instant) -> bool {
        self.0.retain(|_, told| now.since(*told) < SPACING);
        if self.0.len() >= MOST || self.0.contains_key(&home) {
            return false;
        }
        self.0.insert(home, now);
        true
    }
}

/// Counts answers to requests that change nothing: any host can replay a request, from any source
/// address.
#[derive(Debug, Default)]
pub(super) struct OldAnswers(BTreeMap<Ipv4Addr, (Instant, u32)>);

impl OldAnswers {
    /// Returns true if one more answer may be sent now, and counts it. Only called for configured
    /// mobile nodes, which bounds the map.
    pub(super) fn allow(&mut self, home: Ipv4Addr, now: Instant) -> bool {
        let (since, answers) = self.0.entry(home).or_insert((now, 0));
        if now.since(*since) >= SPACING {
            (*since, *answers) = (now, 0);
        }
        *answers += 1;
        *answers <= MOST_OF_OLD
    }
}
