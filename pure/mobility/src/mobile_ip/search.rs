//! Solicitations for agents on a link (RFC 5944 section 2.4): three within three seconds, then at
//! increasing intervals.

use super::part_of;
use crypto::Rng;
use model::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// "At a maximum rate of one per second while searching for an agent".
const FIRST: Duration = Duration::from_secs(1);
/// "This maximum interval SHOULD be at least one minute".
const DOUBLINGS: u32 = 6;
/// Solicitations sent before the interval grows.
const INITIAL: u32 = 3;
/// Longest delay of the first solicitation on a new link. The delay is random, so that hosts do not
/// all send at once.
const HASTE: Duration = Duration::from_millis(100);

/// The interfaces that are up.
#[derive(Debug)]
pub(super) struct Search(BTreeMap<u32, InterfaceSearch>);

/// The solicitations sent on an interface.
#[derive(Clone, Copy, Debug)]
struct InterfaceSearch {
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

    /// Starts the search on an interface that came up or moved to a new link.
    pub(super) fn begin(&mut self, interface: u32, rng: &mut Rng, now: Instant) {
        let at = now + part_of(HASTE, rng);
        self.0.insert(interface, InterfaceSearch { sent: 0, at });
    }

    pub(super) fn lose(&mut self, interface: u32) {
        self.0.remove(&interface);
    }

    pub(super) fn contains(&self, interface: u32) -> bool {
        self.0.contains_key(&interface)
    }

    /// "After successfully registering with an agent, the mobile node SHOULD also increase the
    /// rate".
    pub(super) fn succeed(&mut self, interface: u32) {
        if let Some(hunt) = self.0.get_mut(&interface) {
            hunt.sent = 0;
        }
    }

    /// Returns the interfaces to solicit on now, among those without a known agent.
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
