//! Signals as a readable descriptor, so that a main loop waits for them as for packets.

use crate::Error;
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{AsFd, BorrowedFd};

pub use nix::sys::signal::Signal;

/// Signals that are queued instead of interrupting.
pub struct Signals(SignalFd);

impl Signals {
    /// Takes over these signals. They are blocked in the calling thread and in those it starts
    /// later, so call it before any other thread exists. [`crate::NetNs::command`] unblocks them
    /// again for programs.
    pub fn take(signals: &[Signal]) -> Result<Self, Error> {
        let set: SigSet = signals.iter().copied().collect();
        set.thread_block().map_err(Error::os("blocking signals"))?;
        SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .map(Self)
            .map_err(Error::os("receiving signals"))
    }

    /// Returns the next signal that has arrived, if any.
    pub fn next_signal(&self) -> Option<Signal> {
        let information = self.0.read_signal().ok()??;
        Signal::try_from(information.ssi_signo as i32).ok()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::raise;

    #[test]
    fn a_signal_waits_to_be_taken() {
        let signals = Signals::take(&[Signal::SIGUSR1]).unwrap();
        assert_eq!(signals.next_signal(), None);
        raise(Signal::SIGUSR1).unwrap();
        assert_eq!(signals.next_signal(), Some(Signal::SIGUSR1));
        assert_eq!(signals.next_signal(), None);
    }
}
