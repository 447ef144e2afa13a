//! The times at which the kernel reports changes of interfaces, addresses and routes.

use crate::host::Host;
use anyhow::{Context, Result};
use os::{Changes, Poller, clock, priority};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

/// Time after which the thread checks whether it is over.
const CHECK: Duration = Duration::from_millis(100);

/// A subscription like that of any daemon on the host; it ends when dropped.
pub(super) struct Watch {
    times: Arc<Mutex<Vec<Duration>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub fn start(host: &Host) -> Result<Self> {
        // The name is that of no device.
        let changes = host.inside(|| Ok(Changes::watch("-")?))?;
        let mut poller = Poller::new()?;
        for descriptor in changes.descriptors() {
            poller.add(descriptor, 0, os::poll::Interest::Read)?;
        }
        let times = Arc::<Mutex<Vec<_>>>::default();
        let over = Arc::<AtomicBool>::default();
        let (noted, stop) = (Arc::clone(&times), Arc::clone(&over));
        let thread = thread::spawn(move || note(&changes, &mut poller, &noted, &stop));
        Ok(Self {
            times,
            over,
            thread: Some(thread),
        })
    }

    /// Returns the time since the epoch of the first change that was reported after this one.
    pub fn first_after(&self, begun: Duration) -> Result<Duration> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let first = times.iter().find(|at| **at >= begun);
        first.copied().context("the kernel reported no change")
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread's panic has already been printed.
            let _ = thread.join();
        }
    }
}

fn note(changes: &Changes, poller: &mut Poller, times: &Mutex<Vec<Duration>>, over: &AtomicBool) {
    // The kernel may refuse; then a time is as late as the thread is.
    let _ = priority::make_real_time();
    let mut ready = Vec::new();
    while !over.load(Relaxed) {
        if poller.wait(Some(clock::now() + CHECK), &mut ready).is_err() {
            return;
        }
        let at = now();
        if changes.read().is_ok_and(|news| news.ways) {
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            times.push(at);
        }
    }
}

/// Returns the time since the epoch, as packet sockets stamp packets.
pub(super) fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
