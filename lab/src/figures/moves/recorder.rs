//! A tap that is read all the time, so that the kernel's buffer never overflows.

use super::trace::Packet;
use crate::host::Host;
use crate::wiretap::Wiretap;
use anyhow::{Result, ensure};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time after which a recorder without packets looks for its end.
const LOOK: Duration = Duration::from_millis(50);

/// A running recorder; it stops when dropped.
pub(super) struct Recorder {
    packets: Arc<Mutex<Vec<Packet>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    pub fn start(host: &Host) -> Result<Self> {
        let tap = Wiretap::open(host)?;
        let packets = Arc::<Mutex<Vec<_>>>::default();
        let over = Arc::<AtomicBool>::default();
        let (kept, stop) = (Arc::clone(&packets), Arc::clone(&over));
        let thread = thread::spawn(move || {
            while !stop.load(Relaxed) {
                let Ok(seen) = tap.wait(LOOK).and_then(|()| tap.rest()) else {
                    return;
                };
                let read = seen.iter().filter_map(Packet::read);
                let mut packets = kept.lock().unwrap_or_else(PoisonError::into_inner);
                packets.extend(read);
            }
        });
        Ok(Self {
            packets,
            over,
            thread: Some(thread),
        })
    }

    /// Returns the packets since the last call.
    ///
    /// # Errors
    /// The tap cannot be read any more.
    pub fn take(&self) -> Result<Vec<Packet>> {
        let is_over = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        ensure!(!is_over, "the tap of a host cannot be read");
        let mut packets = self.packets.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(mem::take(&mut packets))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread's panic has already been printed.
            let _ = thread.join();
        }
    }
}
