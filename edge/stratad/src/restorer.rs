//! A limit on how often the daemon restores state that other programs remove.
//!
//! A firewall that reloads its rules, or a network manager that restarts, removes foreign state
//! once, and the daemon restores it. A program that keeps removing it would end up in a loop with
//! the daemon. After [`MOST`] restorations within [`SPAN`] the daemon stops, and a person must
//! decide.

use control::Trouble;
use model::{Deadline, Instant};
use std::collections::VecDeque;
use std::time::Duration;

/// Most restorations within [`SPAN`].
pub const MOST: usize = 3;

/// The time for which a restoration counts.
pub const SPAN: Duration = Duration::from_secs(60);

/// Time for a program to complete its removals, so that a single restoration covers all of them.
const PAUSE: Duration = Duration::from_millis(100);

/// Minimum time between two comparisons, each of which lists routes and rules.
const APART: Duration = Duration::from_secs(1);

/// Decides when to compare installed with expected state, and if missing state is restored.
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
    /// Restore the missing state.
    Restore,
    /// Warn, and leave the state as it is.
    GiveUp,
}

impl Restorer {
    /// Records that something may have been removed.
    pub fn suspect(&mut self, now: Instant) {
        if self.gave_up || self.due.is_some() {
            return;
        }
        let next = self.compared.map_or(now, |compared| compared + APART);
        self.due = Some(next.max(now + PAUSE));
    }

    /// Returns the time of the next comparison.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let reason = "compare routes, rules and filters with what was removed";
        self.due.map(|at| Deadline { at, reason })
    }

    /// Returns true if a comparison is due, once for each suspicion.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let due = self.due.take_if(|due| *due <= now).is_some();
        if due {
            self.compared = Some(now);
        }
        due
    }

    /// Decides on the result of a comparison.
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

/// Shortens a list of missing state for a person: a table may have had thousands of routes.
pub fn shorten(mut missing: Vec<String>) -> Vec<String> {
    const MOST: usize = 8;
    let more = missing.len().saturating_sub(MOST);
    missing.truncate(MOST);
    missing.extend((more > 0).then(|| format!("{more} more")));
    missing
}

/// Action after the last restoration.
const FIX: &str = "keep that program from removing them, then run `strata reload`";

/// Returns the line of the log after the last restoration.
pub fn warning(missing: &[String]) -> String {
    format!("{}; {FIX}", given_up(missing))
}

/// Returns the failure, which lasts until the next reload.
pub fn trouble(missing: &[String]) -> Trouble {
    Trouble {
        task: "removed".to_owned(),
        remote: None,
        what: given_up(missing),
        fix: FIX.to_owned(),
        seconds: None,
    }
}

fn given_up(missing: &[String]) -> String {
    format!(
        "another program removed routes or rules of stratad {} times within {} s; they are no \
         longer restored: {}; packets of protected prefixes may leave or arrive in clear",
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

    /// Returns the time of the comparison after a removal, and its verdict.
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
