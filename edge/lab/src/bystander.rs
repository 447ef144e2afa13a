//! Somebody who only waits, and so tells a machine that stands still from a program that is slow.
//!
//! A virtual machine has its processors taken away now and then, and everything on it is late
//! alike. So on each processor a thread with the emulator's priority waits from one millisecond to
//! the next and takes down how late it was each time: as late as a packet that was due just then
//! would have been, had nothing but the machine delayed it.

use crate::emulator::LATE;
use crate::histogram::{Histogram, Quantiles};
use os::priority;
use serde::{Deserialize, Serialize};
use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// From one moment to the next.
const STEP: Duration = Duration::from_millis(1);

/// One thread on each processor; they end when it is dropped.
pub struct Bystander {
    seen: Arc<Seen>,
    /// Each thread ends when its sender is gone.
    stops: Vec<mpsc::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    late: AtomicU64,
    lateness: Histogram,
}

/// Moments that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// All of them.
    pub waited_for: u64,
    /// Those that were over by more than [`LATE`] when the thread woke.
    pub missed: u64,
}

impl Bystander {
    /// Begins to wait.
    pub fn start() -> Self {
        let mut bystander = Self {
            seen: Arc::default(),
            stops: Vec::new(),
            threads: Vec::new(),
        };
        for core in 0..priority::processors() {
            let (stop, stopped) = mpsc::channel();
            let seen = bystander.seen.clone();
            bystander.stops.push(stop);
            bystander.threads.push(thread::spawn(move || {
                // Where the first is refused, the emulator has no such priority either; where the
                // second is, it sees the processor it happens to be on.
                let _ = priority::make_real_time();
                let _ = priority::stay_on(core);
                seen.wait(&stopped);
            }));
        }
        bystander
    }

    /// Everything since the start.
    pub fn moments(&self) -> Moments {
        Moments {
            waited_for: self.lateness().count,
            missed: self.seen.late.load(Relaxed),
        }
    }

    /// How late it was.
    pub fn lateness(&self) -> Quantiles {
        self.seen.lateness.quantiles()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.stops.clear();
        for thread in self.threads.drain(..) {
            // A panic in it has been printed already.
            let _ = thread.join();
        }
    }
}

impl Seen {
    /// Until the sender is gone.
    fn wait(&self, stopped: &mpsc::Receiver<()>) {
        let mut due = Instant::now();
        loop {
            due += STEP;
            let left = due.saturating_duration_since(Instant::now());
            let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(left) else {
                return;
            };
            let lateness = due.elapsed();
            self.late.fetch_add(u64::from(lateness > LATE), Relaxed);
            self.lateness.record(lateness);
        }
    }
}

impl Moments {
    /// The part of time that the machine itself was late in, 0 to 1.
    pub fn share(&self) -> f64 {
        self.missed as f64 / self.waited_for.max(1) as f64
    }
}

impl Sub for Moments {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            waited_for: self.waited_for - earlier.waited_for,
            missed: self.missed - earlier.missed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bystander_waits_for_moments_until_it_is_dropped() {
        let bystander = Bystander::start();
        let seen = bystander.seen.clone();
        while bystander.moments().waited_for < 20 {
            thread::yield_now();
        }
        drop(bystander);
        let count = seen.lateness.quantiles().count;
        assert_eq!(Arc::strong_count(&seen), 1);
        assert_eq!(seen.lateness.quantiles().count, count);
    }

    #[test]
    fn a_share_is_that_of_the_moments_between() {
        let [early, late] =
            [(100, 1), (300, 3)].map(|(waited_for, missed)| Moments { waited_for, missed });
        assert_eq!((late - early).share(), 0.01);
        assert_eq!(Moments::default().share(), 0.0);
    }
}
