//! Asking who is on a link (RFC 5944 section 2.4): three times within three seconds, then ever less often.

use super::part_of;
use crypto::Rng;
use model::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// "At a maximum rate of one per second while searching for an agent".
const FIRST: Duration = Duration::from_secs(1);
/// "This maximum interval SHOULD be at least one minute".
const DOUBLINGS: u32 = 6;
/// How many are sent before the interval grows.
const INITIAL: u32 = 3;
/// Whoever finds a new link does not wait longer, and does not speak at once with all others.
const HASTE: Duration = Duration::from_millis(100);

/// The interfaces that are there.
#[derive(Debug)]
pub(super) struct Search(BTreeMap<u32, Hunt>);

/// What was asked on an interface.
#[derive(Clone, Copy, Debug)]
struct Hunt {
    sent: u32,
    at: Instant,
}

impl Search {
    pub(super) fn new(interfaces: &[u32], rng: &mut Rng, now: Instant) -> Self {
        let mut search = Self(BTreeMap::new());
        for &interface in interfaces {
            search.begin(interface, rng, now);
        }
        search
    }

    /// An interface is there, or on a new link.
    pub(super) fn begin(&mut self, interface: u32, rng: &mut Rng, now: Instant) {
        let at = now + part_of(HASTE, rng);
        self.0.insert(interface, Hunt { sent: 0, at });
    }

    pub(super) fn lose(&mut self, interface: u32) {
        self.0.remove(&interface);
    }

    pub(super) fn contains(&self, interface: u32) -> bool {
        self.0.contains_key(&interface)
    }

    /// "After successfully registering with an agent, the mobile node SHOULD also increase the rate".
    pub(super) fn succeed(&mut self, interface: u32) {
        if let Some(hunt) = self.0.get_mut(&interface) {
            hunt.sent = 0;
        }
    }

    /// The interfaces on which to ask now, of those where nobody is heard.
    pub(super) fn due(
        &mut self,
        is_quiet: impl Fn(u32) -> bool,
        rng: &mut Rng,
        now: Instant,
    ) -> Vec<u32> {
        let mut due = Vec::new();
        for (&interface, hunt) in &mut self.0 {
            if !is_quiet(interface) || hunt.at > now {
                continue;
            }
            due.push(interface);
            hunt.sent = hunt.sent.saturating_add(1);
            let doublings = hunt.sent.saturating_sub(INITIAL).min(DOUBLINGS);
            let interval = FIRST * 2_u32.pow(doublings);
            hunt.at = now + interval + part_of(interval / 4, rng);
        }
        due
    }

    pub(super) fn next(&self, is_quiet: impl Fn(u32) -> bool) -> Option<Instant> {
        let hunts = self.0.iter().filter(|&(&interface, _)| is_quiet(interface));
        hunts.map(|(_, hunt)| hunt.at).min()
    }
}
