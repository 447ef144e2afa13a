//! A wake-up from one thread to another that polls descriptors.

use crate::Error;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsFd, BorrowedFd};

/// A descriptor that is readable from [`Waker::wake`] until [`Waker::heard`].
pub struct Waker(EventFd);

impl Waker {
    /// Creates a waker that is not readable.
    pub fn new() -> Result<Self, Error> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let made = EventFd::from_value_and_flags(0, flags);
        made.map(Self).map_err(Error::os("creating an eventfd"))
    }

    /// Wakes the polling thread. Repeated calls count as one.
    pub fn wake(&self) {
        // Fails only after 2^64 - 2 pending calls; the descriptor is readable then.
        let _ = self.0.write(1);
    }

    /// Clears the wake-up.
    pub fn heard(&self) {
        // Fails without a pending wake-up.
        let _ = self.0.read();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Poller;
    use crate::poll::Interest;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn another_thread_wakes_who_waits_and_it_is_heard_once() {
        let waker = Arc::new(Waker::new().unwrap());
        let mut poller = Poller::new().unwrap();
        poller.add(&*waker, 7, Interest::Read).unwrap();
        let other = Arc::clone(&waker);
        let thread = thread::spawn(move || [(); 3].map(|()| other.wake()));
        let mut ready = Vec::new();
        poller.wait(None, &mut ready).unwrap();
        assert_eq!(ready[0].token, 7);
        thread.join().unwrap();
        waker.heard();
        poller.wait(Some(crate::clock::now()), &mut ready).unwrap();
        assert!(ready.is_empty());
    }
}
