//! The pairs of addresses that a live path could have, and the pauses before one is used again.
//!
//! A path by an interface with traffic of its own comes first, then the one that shares least with
//! those in use: from another address of ours, and then to another one of the peer.

use super::lanes::Ends;
use model::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// The first and the longest pause before a path is added again.
const PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(64);

/// The pauses of one peer's paths.
#[derive(Default)]
pub(super) struct Pauses {
    all: BTreeMap<Ends, Pause>,
    /// The pairs of addresses on which packets could leave at the last review.
    ways: BTreeSet<Ends>,
}

struct Pause {
    until: Instant,
    length: Duration,
}

impl Pauses {
    /// Notes the pairs of addresses that packets can leave on. A pause begins when one returns.
    pub(super) fn note_ways(&mut self, ways: &[Ends], now: Instant) {
        for ends in ways.iter().filter(|ends| !self.ways.contains(ends)) {
            if let Some(pause) = self.all.get_mut(ends) {
                pause.until = now + pause.length;
            }
        }
        self.ways = ways.iter().copied().collect();
    }

    /// Has a pair of addresses wait before it is used again. Returns the end of the pause.
    pub(super) fn put_off(&mut self, ends: Ends, lasted: bool, now: Instant) -> Instant {
        let before = self.all.get(&ends).filter(|_| !lasted);
        let length = before.map_or(PAUSE, |pause| (pause.length * 2).min(LONGEST_PAUSE));
        let until = now + length;
        self.all.insert(ends, Pause { until, length });
        // A host has few addresses. Those that were used long ago are forgotten.
        self.all
            .retain(|_, pause| now < pause.until + 2 * LONGEST_PAUSE);
        until
    }

    /// Returns the ends of all pauses.
    pub(super) fn ends(&self) -> impl Iterator<Item = Instant> {
        self.all.values().map(|pause| pause.until)
    }

    /// Returns the best way without a pause. Of several, the first.
    pub(super) fn best(
        &self,
        ways: &[Ends],
        used: &[Ends],
        rules: &BTreeMap<IpAddr, u8>,
        now: Instant,
    ) -> Option<Ends> {
        let is_paused = |way: &Ends| self.all.get(way).is_some_and(|pause| now < pause.until);
        best(ways.iter().filter(|way| !is_paused(way)), used, rules)
    }
}

/// Returns true if a way is by an interface with a rule, and none in use is.
fn is_lacking(way: Ends, used: &[Ends], rules: &BTreeMap<IpAddr, u8>) -> bool {
    let rule = |way: &Ends| rules.get(&way.0);
    let own = rule(&way);
    own.is_some() && used.iter().all(|used| rule(used) != own)
}

fn best<'w>(
    ways: impl Iterator<Item = &'w Ends>,
    used: &[Ends],
    rules: &BTreeMap<IpAddr, u8>,
) -> Option<Ends> {
    let shared = |way: &Ends| {
        let local = used.iter().any(|(local, _)| *local == way.0);
        let remote = used.iter().any(|(_, remote)| *remote == way.1);
        (local, remote)
    };
    let ways = ways.copied().filter(|way| shared(way) != (true, true));
    ways.min_by_key(|way| (!is_lacking(*way, used, rules), shared(way)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(local: u8, remote: u8) -> Ends {
        ([10, 0, 0, local].into(), [192, 0, 2, remote].into())
    }

    #[test]
    fn a_path_from_another_address_is_better_than_one_to_another_address() {
        let all = [way(1, 1), way(1, 2), way(2, 1), way(2, 2)];
        let none = BTreeMap::new();
        let next = |used: &[Ends]| best(all.iter(), used, &none);
        assert_eq!(next(&[way(1, 1)]), Some(way(2, 2)));
        assert_eq!(next(&[way(1, 1), way(2, 2)]), None);
        let one_peer = [way(1, 1), way(2, 1), way(3, 1)];
        let next = |used: &[Ends]| best(one_peer.iter(), used, &none);
        assert_eq!(next(&[way(1, 1)]), Some(way(2, 1)));
        assert_eq!(next(&[way(1, 1), way(2, 1)]), Some(way(3, 1)));
        assert_eq!(
            best([way(1, 1), way(1, 2)].iter(), &[way(1, 1)], &none),
            Some(way(1, 2))
        );
    }

    #[test]
    fn a_path_with_a_rule_is_better_unless_another_has_the_same() {
        let all = [way(1, 1), way(2, 1), way(3, 1), way(4, 1)];
        let rules = BTreeMap::from([(way(3, 1).0, 0), (way(4, 1).0, 0)]);
        let next = |used: &[Ends]| best(all.iter(), used, &rules);
        assert_eq!(next(&[way(1, 1)]), Some(way(3, 1)));
        assert_eq!(next(&[way(1, 1), way(4, 1)]), Some(way(2, 1)));
    }

    #[test]
    fn a_pause_doubles_until_the_path_has_lasted() {
        let mut pauses = Pauses::default();
        let length = |pauses: &Pauses| pauses.all[&way(1, 1)].length.as_secs();
        let mut lengths = Vec::new();
        for lasted in [false, false, false, true, false] {
            pauses.put_off(way(1, 1), lasted, Instant::ZERO);
            lengths.push(length(&pauses));
        }
        assert_eq!(lengths, [2, 4, 8, 2, 4]);
        for _ in 0..20 {
            pauses.put_off(way(1, 1), false, Instant::ZERO);
        }
        assert_eq!(length(&pauses), 64);
    }

    #[test]
    fn a_pause_begins_when_the_address_is_there_again() {
        let mut pauses = Pauses::default();
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        pauses.note_ways(&[way(1, 1)], at(0));
        pauses.put_off(way(1, 1), true, at(0));
        pauses.note_ways(&[], at(0));
        pauses.note_ways(&[way(1, 1)], at(60));
        assert_eq!(pauses.all[&way(1, 1)].until, at(62));
        pauses.note_ways(&[way(1, 1)], at(61));
        assert_eq!(pauses.all[&way(1, 1)].until, at(62), "it was there before");
    }
}
