//! Limit on how often the daemon puts back what other programs remove.
//!
//! A firewall that loads its rules, or a network manager that starts again, removes what it does not know. That is over
//! at once, and what it removed is put back. A program that goes on removing would make a loop of the two: after
//! [`MOST`] times within [`SPAN`] nothing is put back any more, and a person has to decide.

use model::{Deadline, Instant};
use std::collections::VecDeque;
use std::time::Duration;

/// How many times within [`SPAN`] the daemon puts something back.
pub const MOST: usize = 3;

/// The time for which a restoration counts.
pub const SPAN: Duration = Duration::from_secs(60);

/// Time for a program to finish what it removes, so that all of it is put back at once and counts once.
const PAUSE: Duration = Duration::from_millis(100);

/// Time between two comparisons, each of which lists routes and rules.
const APART: Duration = Duration::from_secs(1);

/// When to compare what is installed with what ought to be, and whether to put back what is missing.
#[derive(Debug, Default)]
pub struct Restorer {
    /// Time of the next comparison.
    due: Option<Instant>,
    compared: Option<Instant>,
    /// Times of the last restorations, at most [`MOST`].
    restored: VecDeque<Instant>,
    gave_up: bool,
}

/// Consequence of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is missing.
    Intact,
    /// Put it back.
    Restore,
    /// Warn, and leave it as it is.
    GiveUp,
}

impl Restorer {
    /// Something may have been removed.
    pub fn suspect(&mut self, now: Instant) {
        if self.gave_up || self.due.is_some() {
            return;
        }
        let next = self.compared.map_or(now, |compared| compared + APART);
        self.due = Some(next.max(now + PAUSE));
    }

    /// Time of the next comparison.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let reason = "compare routes, rules and filters with what was removed";
        self.due.map(|at| Deadline { at, reason })
    }

    /// Whether to compare now. The answer is yes once for each suspicion.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let due = self.due.take_if(|due| *due <= now).is_some();
        if due {
            self.compared = Some(now);
        }
        due
    }

    /// What to do about the result of a comparison.
    pub fn judge(&mut self, is_intact: bool, now: Instant) -> Verdict {
        if is_intact {
            return Verdict::Intact;
        }
        self.restored.retain(|then| now.since(*then) < SPAN);
        if self.restored.len() >= MOST {
            self.gave_up = true;
            return Verdict::GiveUp;
        }
        self.restored.push_back(now);
        Verdict::Restore
    }
}

/// What a person is told of what is missing: a table may have had thousands of routes.
pub fn shorten(mut missing: Vec<String>) -> Vec<String> {
    const MOST: usize = 8;
    let more = missing.len().saturating_sub(MOST);
    missing.truncate(MOST);
    missing.extend((more > 0).then(|| format!("{more} more")));
    missing
}

/// What a person is told once this is put back no more.
pub fn warning(missing: &[String]) -> String {
    format!(
        "another program removed {} times within {} s what stratad had installed, and it is no longer put back: {}; packets \
         of protected prefixes may leave in clear, or arrive in clear and be believed; keep that program from changing \
         what it did not install, then `strata reload`",
        MOST + 1,
        SPAN.as_secs(),
        missing.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(milliseconds))
    }

    /// The time of the comparison that a removal leads to, and what that one leads to.
    fn removal(restorer: &mut Restorer, now: Instant) -> Option<(Instant, Verdict)> {
        restorer.suspect(now);
        let due = restorer.poll_timeout()?.at;
        assert!(restorer.is_due(due) && !restorer.is_due(due));
        Some((due, restorer.judge(false, due)))
    }

    #[test]
    fn what_is_missing_is_put_back_soon_and_counts_once_however_many_parts_it_has() {
        let mut restorer = Restorer::default();
        assert_eq!(restorer.poll_timeout(), None);
        for part in [0, 30, 60] {
            restorer.suspect(at(part));
        }
        assert!(!restorer.is_due(at(99)));
        assert!(restorer.is_due(at(100)));
        assert_eq!(restorer.judge(false, at(100)), Verdict::Restore);
        assert_eq!((restorer.restored.len(), restorer.due), (1, None));
    }

    #[test]
    fn comparisons_are_a_second_apart() {
        let mut restorer = Restorer::default();
        restorer.suspect(at(0));
        assert!(restorer.is_due(at(100)));
        assert_eq!(restorer.judge(true, at(100)), Verdict::Intact);
        restorer.suspect(at(200));
        assert!(!restorer.is_due(at(1099)));
        assert!(restorer.is_due(at(1100)));
        restorer.suspect(at(5000));
        assert!(restorer.is_due(at(5100)));
    }

    #[test]
    fn the_fourth_time_within_a_minute_it_gives_up_and_stays_so() {
        let mut restorer = Restorer::default();
        for second in [0, 20, 40] {
            let removal = removal(&mut restorer, at(second * 1000));
            assert!(matches!(removal, Some((_, Verdict::Restore))));
        }
        let fourth = removal(&mut restorer, at(59_900));
        assert_eq!(fourth, Some((at(60_000), Verdict::GiveUp)));
        assert_eq!(removal(&mut restorer, at(1_000_000)), None);
    }

    #[test]
    fn a_restoration_counts_for_a_minute() {
        let mut restorer = Restorer::default();
        for second in [0, 20, 40, 60, 80, 100, 160, 161, 162] {
            let removal = removal(&mut restorer, at(second * 1000));
            assert!(matches!(removal, Some((_, Verdict::Restore))), "{second}");
        }
        let fourth = removal(&mut restorer, at(163_000));
        assert!(matches!(fourth, Some((_, Verdict::GiveUp))));
    }

    #[test]
    fn a_long_list_is_shortened() {
        let list = |count: usize| (0..count).map(|number| number.to_string()).collect();
        assert_eq!(shorten(list(8)).len(), 8);
        let shortened = shorten(list(10_000));
        assert_eq!((shortened.len(), &shortened[8][..]), (9, "9992 more"));
    }

    #[test]
    fn what_is_there_counts_for_nothing() {
        let mut restorer = Restorer::default();
        for second in 0..100 {
            let now = at(second * 1000);
            assert_eq!(restorer.judge(true, now), Verdict::Intact);
        }
        assert_eq!(restorer.judge(false, at(100_000)), Verdict::Restore);
    }
}
