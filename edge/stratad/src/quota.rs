//! A quota of lines: a peer can cause as many as it likes, and fills neither the disk
//! nor the places of others.

use model::Instant;
use std::time::Duration;

/// Lines that are written at once.
const BURST: u32 = 64;

/// How long each of them is made up for.
const EACH: Duration = Duration::from_millis(250);

#[derive(Default)]
pub struct Quota {
    /// When all lines are made up for.
    even: Instant,
    left_out: u64,
}

impl Quota {
    /// Takes a line, and gives how many before it were left out. `None` if this one is left out as well.
    pub fn take(&mut self, now: Instant) -> Option<u64> {
        if self.even > now + EACH * BURST {
            self.left_out += 1;
            return None;
        }
        self.even = self.even.max(now) + EACH;
        Some(std::mem::take(&mut self.left_out))
    }

    /// Whether nothing of it is used.
    pub fn is_whole(&self, now: Instant) -> bool {
        self.even <= now
    }
}
