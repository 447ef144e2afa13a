//! A quota of lines: a peer that can cause any number of them fills neither the disk nor the quotas
//! of others.

use model::{Bucket, Instant};
use std::time::Duration;

/// Time after which one more line is available.
const EACH: Duration = Duration::from_millis(250);

/// 64 more lines that may be written at once.
const BURST: Duration = Duration::from_millis(64 * 250);

#[derive(Default)]
pub struct Quota {
    lines: Bucket,
    left_out: u64,
}

impl Quota {
    /// Uses one line, and returns the number of lines omitted before it. `None` if this one is
    /// omitted too.
    pub fn take(&mut self, now: Instant) -> Option<u64> {
        match self.lines.take(EACH, BURST, now) {
            true => Some(std::mem::take(&mut self.left_out)),
            false => {
                self.left_out += 1;
                None
            }
        }
    }

    /// Returns true if the quota is unused.
    pub fn is_whole(&self, now: Instant) -> bool {
        self.lines.is_full(now)
    }
}
