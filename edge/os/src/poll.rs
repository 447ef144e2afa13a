//! Waiting for whichever comes first: a descriptor, or a moment on our own clock.
//!
//! epoll's timeouts are milliseconds and stand still while the machine sleeps, so the moment is a
//! timerfd on CLOCK_BOOTTIME: nanoseconds, absolute, and due at once after a resume.

use crate::{Error, clock};
use model::Instant;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Events taken by one system call; those that do not fit come with the next.
const BATCH: usize = 64;

/// The timer's own token, never handed out.
const TIMER: u64 = u64::MAX;

/// Which readiness to wait for. Hang-ups and errors count as both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Something can be read.
    Read,
    /// Something can be read or written.
    ReadWrite,
}

/// A descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The caller's name for it.
    pub token: u64,
    /// Reading will not block.
    pub readable: bool,
    /// Writing will not block.
    pub writable: bool,
}

/// A set of descriptors and one deadline. Readiness is level-triggered: what is not read now is
/// reported again.
pub struct Poller {
    epoll: Epoll,
    timer: TimerFd,
    armed: Option<Instant>,
}

impl Poller {
    /// An empty set.
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

    /// Adds a descriptor under a token of the caller's choice (not `u64::MAX`). It leaves the set
    /// by itself when it is closed.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        debug_assert_ne!(token, TIMER, "the timer's own token");
        let event = EpollEvent::new(flags(interest), token);
        Ok(self.epoll.add(fd, event)?)
    }

    /// Changes what a descriptor is waited for.
    pub fn change(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let mut event = EpollEvent::new(flags(interest), token);
        Ok(self.epoll.modify(fd, &mut event)?)
    }

    /// Takes a descriptor out of the set.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(self.epoll.delete(fd)?)
    }

    /// Waits until a descriptor is ready or `until` has come (`None`: however long it takes) and
    /// fills `ready`. It stays empty if the moment came first or a signal interrupted.
    pub fn wait(&mut self, until: Option<Instant>, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        // A moment that has come needs no timer: who has more to do asks so in every turn.
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

    /// Setting a timer also takes back that it fired. One that is to fire at the same moment is left as it is, if that
    /// was still to come when it was set.
    fn arm(&mut self, until: Option<Instant>) -> io::Result<()> {
        if self.armed == until {
            return Ok(());
        }
        match until {
            // Zero would disarm, so the clock's origin becomes the moment after it.
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
            // The same deadline, now past, must not wait for anything either.
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
