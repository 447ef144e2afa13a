//! Waiting for a descriptor or a deadline on our clock, whichever comes first.
//!
//! epoll's timeouts are in milliseconds and stop while the machine sleeps. So the deadline is a
//! timerfd on CLOCK_BOOTTIME: in nanoseconds, absolute, and due at once after a resume.

use crate::{Error, clock};
use model::Instant;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Most events of one system call; further ones come with the next.
const BATCH: usize = 64;

/// The timer's own token, never handed out.
const TIMER: u64 = u64::MAX;

/// The readiness to wait for. Hang-ups and errors count as both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Hang-ups and errors alone.
    None,
    /// Readable.
    Read,
    /// Readable or writable.
    ReadWrite,
}

/// A descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token that the caller chose.
    pub token: u64,
    /// Reading will not block.
    pub readable: bool,
    /// Writing will not block.
    pub writable: bool,
}

/// A set of descriptors and one deadline. Readiness is level-triggered: unread input is reported
/// again.
pub struct Poller {
    epoll: Epoll,
    timer: TimerFd,
    armed: Option<Instant>,
}

impl Poller {
    /// Creates an empty set.
    pub fn new() -> Result<Self, Error> {
        let failed = || Error::os("preparing to wait for events");
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed())?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags).map_err(failed())?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, TIMER);
        epoll.add(&timer, event).map_err(failed())?;
        Ok(Self {
            epoll,
            timer,
            armed: None,
        })
    }

    /// Adds a descriptor under a token of the caller's choice (not `u64::MAX`). A closed descriptor
    /// leaves the set by itself.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        debug_assert_ne!(token, TIMER, "the timer's own token");
        let event = EpollEvent::new(flags(interest), token);
        Ok(self.epoll.add(fd, event)?)
    }

    /// Changes the interest in a descriptor.
    pub fn change(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let mut event = EpollEvent::new(flags(interest), token);
        Ok(self.epoll.modify(fd, &mut event)?)
    }

    /// Removes a descriptor from the set.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(self.epoll.delete(fd)?)
    }

    /// Waits until a descriptor is ready or `until` has come (`None`: without a limit) and fills
    /// `ready`. It stays empty if the deadline came first or a signal interrupted.
    pub fn wait(&mut self, until: Option<Instant>, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        // A deadline that has passed needs no timer: a caller with more work passes one in every
        // turn.
        let timeout = match until.is_some_and(|until| until <= clock::now()) {
            true => EpollTimeout::ZERO,
            false => {
                self.arm(until)?;
                EpollTimeout::NONE
            }
        };
        let mut events = [EpollEvent::empty(); BATCH];
        let count = match self.epoll.wait(&mut events, timeout) {
            Err(Errno::EINTR) => 0,
            result => result?,
        };
        let fired = events.iter().take(count);
        ready.extend(fired.filter(|event| event.data() != TIMER).map(|event| {
            let failed = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
            let has = |flag| event.events().intersects(flag | failed);
            Ready {
                token: event.data(),
                readable: has(EpollFlags::EPOLLIN),
                writable: has(EpollFlags::EPOLLOUT),
            }
        }));
        Ok(())
    }

    /// Arms the timer, which also clears an expiry. An unchanged deadline is left armed, if it was
    /// in the future when it was set.
    fn arm(&mut self, until: Option<Instant>) -> io::Result<()> {
        if self.armed == until {
            return Ok(());
        }
        match until {
            // Zero would disarm, so the clock's origin becomes one nanosecond later.
            Some(until) => self.timer.set(
                Expiration::OneShot(TimeSpec::from(
                    until.since_origin().max(Duration::from_nanos(1)),
                )),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            )?,
            None => self.timer.unset()?,
        }
        self.armed = until;
        Ok(())
    }
}

fn flags(interest: Interest) -> EpollFlags {
    match interest {
        Interest::None => EpollFlags::empty(),
        Interest::Read => EpollFlags::EPOLLIN,
        Interest::ReadWrite => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn wait(poller: &mut Poller, until: Option<Instant>) -> Vec<Ready> {
        let mut ready = Vec::new();
        poller.wait(until, &mut ready).unwrap();
        ready
    }

    #[test]
    fn a_readable_descriptor_ends_the_wait_until_it_is_read() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&near, 7, Interest::Read).unwrap();
        far.write_all(b"x").unwrap();
        let expected = [Ready {
            token: 7,
            readable: true,
            writable: false,
        }];
        assert_eq!(wait(&mut poller, None), expected);
        assert_eq!(wait(&mut poller, None), expected, "level-triggered");
        near.read_exact(&mut [0]).unwrap();
        assert_eq!(wait(&mut poller, Some(clock::now())), []);
    }

    #[test]
    fn a_deadline_ends_the_wait_and_not_before() {
        let mut poller = Poller::new().unwrap();
        for delay in [0, 300, 2_000] {
            let until = clock::now() + Duration::from_micros(delay);
            assert_eq!(wait(&mut poller, Some(until)), []);
            assert!(clock::now() >= until);
            // The same deadline, now past, must not wait either.
            assert_eq!(wait(&mut poller, Some(until)), []);
        }
        assert_eq!(wait(&mut poller, Some(Instant::ZERO)), []);
    }

    #[test]
    fn a_deadline_that_fired_is_forgotten() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        assert_eq!(wait(&mut poller, Some(clock::now())), []);
        poller.add(&near, 1, Interest::ReadWrite).unwrap();
        far.write_all(b"x").unwrap();
        let ready = wait(&mut poller, None);
        assert!(ready[0].readable && ready[0].writable);
        poller.remove(&near).unwrap();
        let soon = clock::now() + Duration::from_millis(1);
        assert_eq!(wait(&mut poller, Some(soon)), []);
        assert!(clock::now() >= soon, "the old deadline must not end it");
    }
}
