//! A quota of lines: a peer that can cause any number of them fills neither the disk nor the quotas
//! of others.

use model::Instant;
use std::time::Duration;

/// Lines that may be written at once.
const BURST: u32 = 64;

/// Time after which one more line is available.
const EACH: Duration = Duration::from_millis(250);

#[derive(Default)]
pub struct Quota {
    /// Time at which the quota is full again.
    even: Instant,
    left_out: u64,
}

impl Quota {
    /// Uses one line, and returns the number of lines omitted before it. `None` if this one is
    /// omitted too.
    pub fn take(&mut self, now: Instant) -> Option<u64> {
        if self.even > now + EACH * BURST {
            self.left_out += 1;
            return None;
        }
        self.even = self.even.max(now) + EACH;
        Some(std::mem::take(&mut self.left_out))
    }

    /// Returns true if the quota is unused.
    pub fn is_whole(&self, now: Instant) -> bool {
        self.even <= now
    }
}
