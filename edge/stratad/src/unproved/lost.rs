//! Messages of unauthenticated initiators that were dropped: their count, and a line of the log.
//!
//! Unknown hosts can send any number of them, so a line follows a pause, with the number of
//! messages since the last one.

use model::{Deadline, Instant};
use std::time::Duration;

/// Time for which messages are counted before the first line.
const DELAY: Duration = Duration::from_secs(1);

/// Minimum time between two lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Dropped messages.
#[derive(Default)]
pub struct Lost {
    /// Number of messages since the start.
    pub total: u64,
    /// Number of messages since the last line.
    untold: u64,
    /// Time of the next line, if there is anything to tell.
    due: Option<Instant>,
    /// End of the pause after the last line.
    quiet_until: Instant,
}

impl Lost {
    /// Counts messages.
    pub fn add(&mut self, messages: u64, now: Instant) {
        self.total += messages;
        self.untold += messages;
        if self.untold > 0 {
            let at = (now + DELAY).max(self.quiet_until);
            self.due.get_or_insert(at);
        }
    }

    /// Logs a line that is due.
    pub fn tell(&mut self, now: Instant) {
        if self.due.take_if(|due| *due <= now).is_some() {
            self.quiet_until = now + PAUSE;
            let count = std::mem::take(&mut self.untold);
            tracing::warn!(
                "dropped {count} IKE messages of unauthenticated initiators: too many waited, or \
                 packets left no time for them; initiators try again"
            );
        }
    }

    /// Returns the time of the next line.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let reason = "log how many messages of unauthenticated initiators were dropped";
        self.due.map(|at| Deadline { at, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::lines_of;

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    // Weakness: 160
    #[test]
    fn a_flood_has_a_line_each_ten_seconds_and_the_lines_count_each_message_once() {
        let mut lost = Lost::default();
        let lines = lines_of(|| {
            for millis in 0..60_000 {
                lost.add(u64::from(millis < 30_000), at(millis));
                if lost
                    .poll_timeout()
                    .is_some_and(|next| next.at <= at(millis))
                {
                    lost.tell(at(millis));
                }
            }
        });
        let counts = lines.iter().map(|line| {
            let words = line.strip_prefix("WARN dropped ").unwrap();
            words.split_once(' ').unwrap().0.parse().unwrap()
        });
        let counts: Vec<u64> = counts.collect();
        assert_eq!(counts, [1001, 10_000, 10_000, 8_999]);
        assert_eq!((lost.total, lost.poll_timeout()), (30_000, None));
    }

    #[test]
    fn without_a_loss_there_is_no_line() {
        let mut lost = Lost::default();
        let lines = lines_of(|| {
            lost.add(0, at(0));
            lost.tell(at(100_000));
        });
        assert!(lines.is_empty() && lost.poll_timeout().is_none());
    }
}
