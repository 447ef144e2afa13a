//! Threads that only wait, to distinguish a machine that stalls from a program that is slow.
//!
//! A hypervisor preempts the processors of a virtual machine now and then, and everything on the
//! machine is late alike. One thread per processor, with the emulator's priority, waits from one
//! millisecond to the next and records how late it woke. A packet that was due at that time would
//! have been as late if the machine alone had delayed it.

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

/// Interval between two wake-ups.
const STEP: Duration = Duration::from_millis(1);

/// One thread on each processor; they end when the bystander is dropped.
pub struct Bystander {
    seen: Arc<Seen>,
    /// Senders of the threads. Each thread ends when its sender is dropped.
    stops: Vec<mpsc::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    late: AtomicU64,
    lateness: Histogram,
}

/// Moments at which a thread was due to wake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Number of all moments.
    pub waited_for: u64,
    /// Number of moments at which the thread woke more than [`LATE`] after they were due.
    pub missed: u64,
}

impl Bystander {
    /// Starts the threads.
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
                // If the first call is refused, the emulator lacks this priority as well. If the
                // second is refused, the thread observes whichever processor it runs on.
                let _ = priority::make_real_time();
                let _ = priority::stay_on(core);
                seen.wait(&stopped);
            }));
        }
        bystander
    }

    /// Returns all moments since the start.
    pub fn moments(&self) -> Moments {
        Moments {
            waited_for: self.lateness().count,
            missed: self.seen.late.load(Relaxed),
        }
    }

    /// Returns the distribution of the lateness.
    pub fn lateness(&self) -> Quantiles {
        self.seen.lateness.quantiles()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.stops.clear();
        for thread in self.threads.drain(..) {
            // The panic of a thread has already been printed.
            let _ = thread.join();
        }
    }
}

impl Seen {
    /// Waits from moment to moment until the sender is dropped.
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
    /// Returns the fraction of time in which the machine itself was late, 0 to 1.
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
