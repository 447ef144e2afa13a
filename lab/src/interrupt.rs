//! Ctrl-C: the processes of a run die with it, and its files are removed.

use crate::obstacle::Obstacle;
use crate::testbed;
use os::poll::{Interest, Poller};
use os::signals::{Signal, Signals};
use std::thread;

/// Makes a signal that asks this process to end remove its testbeds first. Call it before any other
/// thread exists.
///
/// # Errors
/// The kernel refuses.
pub fn tidy() -> Result<(), Obstacle> {
    let signals = Signals::take(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])?;
    let mut poller = Poller::new()?;
    poller
        .add(&signals, 0, Interest::Read)
        .map_err(|error| Obstacle::new(format!("waiting for signals: {error}"), "free memory"))?;
    thread::spawn(move || {
        let mut ready = Vec::new();
        loop {
            // Fails only if the process has no memory left; then it is about to end anyway.
            let _ = poller.wait(None, &mut ready);
            if let Some(signal) = signals.next_signal() {
                testbed::remove_all();
                eprintln!("\ninterrupted");
                // The exit status that a shell reports for a signal.
                std::process::exit(128 + signal as i32);
            }
        }
    });
    Ok(())
}
