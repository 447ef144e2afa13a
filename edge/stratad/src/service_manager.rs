//! Messages to the service manager that started this daemon (sd_notify(3), `Type=notify`).
//!
//! The manager learns when the daemon is ready, how many tunnels are up, and that the main loop
//! still runs. That loop alone calls [`ServiceManager::handle_timeout`], so a loop that hangs is
//! found. Without a manager nothing is sent, and no timer runs.

use model::{Deadline, Instant};
use sd_notify::NotifyState;
use std::fmt;
use std::time::Duration;

/// Minimum time between two counts of the tunnels, each of which visits every peer.
const APART: Duration = Duration::from_secs(1);

/// The service manager, if there is one.
#[derive(Debug, Default)]
pub struct ServiceManager {
    is_there: bool,
    watchdog: Option<Watchdog>,
    /// Time of the next count of the tunnels, if one has changed.
    count_at: Option<Instant>,
    counted_at: Option<Instant>,
    told: Option<Tunnels>,
}

/// The watchdog of the manager, which restarts a daemon that is silent for too long.
#[derive(Clone, Copy, Debug)]
struct Watchdog {
    /// Half of the silence that the manager tolerates.
    interval: Duration,
    next: Instant,
}

/// The tunnels of the configuration, and those that are up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnels {
    pub up: usize,
    pub all: usize,
}

impl fmt::Display for Tunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { up, all } = self;
        match all {
            0 => f.write_str("no tunnel is configured"),
            _ => write!(f, "{up} of {all} tunnels up"),
        }
    }
}

/// Returns the watchdog that the environment asks for.
fn watchdog(now: Instant) -> Option<Watchdog> {
    let interval = sd_notify::watchdog_enabled()? / 2;
    (!interval.is_zero()).then_some(Watchdog {
        interval,
        next: now,
    })
}

impl ServiceManager {
    /// Returns the manager that the environment names.
    pub fn of_this_process(now: Instant) -> Self {
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Self::default();
        }
        Self {
            is_there: true,
            watchdog: watchdog(now),
            ..Self::default()
        }
    }

    /// Reports that sockets and devices exist. Tunnels come up later.
    pub fn ready(&mut self, now: Instant) {
        self.send(&[NotifyState::Ready]);
        self.note_change(now);
    }

    /// Reports the begin of a reload, which ends with [`Self::ready`].
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(begun) => self.send(&[NotifyState::Reloading, begun]),
            Err(error) => tracing::debug!("cannot tell the service manager: {error}"),
        }
    }

    /// Reports an orderly end.
    pub fn stopping(&self) {
        self.send(&[NotifyState::Stopping]);
    }

    /// Has the tunnels counted soon: the state of one has changed.
    pub fn note_change(&mut self, now: Instant) {
        if self.is_there && self.count_at.is_none() {
            let next = self.counted_at.map_or(now, |counted| counted + APART);
            self.count_at = Some(next.max(now));
        }
    }

    /// Returns the time of the next message.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let watchdog = self.watchdog.map(|watchdog| watchdog.next);
        let at = watchdog.into_iter().chain(self.count_at).min()?;
        Some(Deadline {
            at,
            reason: "tell the service manager",
        })
    }

    /// Sends what is due.
    pub fn handle_timeout(&mut self, count: impl FnOnce() -> Tunnels, now: Instant) {
        if let Some(watchdog) = self.watchdog.as_mut().filter(|dog| dog.next <= now) {
            watchdog.next = now + watchdog.interval;
            self.send(&[NotifyState::Watchdog]);
        }
        if self.count_at.take_if(|due| *due <= now).is_some() {
            self.counted_at = Some(now);
            let tunnels = count();
            if self.told.replace(tunnels) != Some(tunnels) {
                self.send(&[NotifyState::Status(&tunnels.to_string())]);
            }
        }
    }

    /// Sends a message. A manager that does not hear it acts on its own: no error of ours.
    fn send(&self, message: &[NotifyState<'_>]) {
        if self.is_there
            && let Err(error) = sd_notify::notify(message)
        {
            tracing::debug!("cannot tell the service manager: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::ZERO;
    const SILENCE: Duration = Duration::from_secs(30);

    fn watched() -> ServiceManager {
        ServiceManager {
            is_there: true,
            watchdog: Some(Watchdog {
                interval: SILENCE / 2,
                next: START,
            }),
            ..ServiceManager::default()
        }
    }

    fn next(manager: &ServiceManager) -> Option<Instant> {
        manager.poll_timeout().map(|deadline| deadline.at)
    }

    fn nobody_counts() -> Tunnels {
        panic!("nothing has changed")
    }

    #[test]
    fn without_a_manager_no_timer_runs() {
        let mut nobody = ServiceManager::default();
        nobody.ready(START);
        nobody.note_change(START);
        assert_eq!(next(&nobody), None);
    }

    #[test]
    fn the_watchdog_hears_twice_as_often_as_it_must() {
        let mut manager = watched();
        manager.handle_timeout(nobody_counts, START);
        assert_eq!(next(&manager), Some(START + SILENCE / 2));
        manager.handle_timeout(nobody_counts, START + SILENCE / 4);
        assert_eq!(next(&manager), Some(START + SILENCE / 2));
        // A loop that was busy is late once; the next message is not.
        let late = START + SILENCE;
        manager.handle_timeout(nobody_counts, late);
        assert_eq!(next(&manager), Some(late + SILENCE / 2));
    }

    #[test]
    fn many_changes_are_counted_once_a_second() {
        let mut manager = watched();
        manager.watchdog = None;
        let mut counts = 0;
        for change in 0..100_u32 {
            let now = START + change * Duration::from_millis(10);
            manager.note_change(now);
            let count = || {
                counts += 1;
                Tunnels { up: 1, all: 2 }
            };
            manager.handle_timeout(count, now);
        }
        assert_eq!(counts, 1);
        assert_eq!(next(&manager), Some(START + APART));
    }

    #[test]
    fn the_status_is_in_words() {
        let told = |up, all| Tunnels { up, all }.to_string();
        assert_eq!(told(3, 4), "3 of 4 tunnels up");
        assert_eq!(told(0, 0), "no tunnel is configured");
    }
}
