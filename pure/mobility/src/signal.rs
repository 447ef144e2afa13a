//! Signals of the networks of local addresses, as external sources report them: a connection
//! manager, or a script that reads the state of a modem.
//!
//! A signal below [`WEAK`] is weak until it is [`GOOD`]. A report expires after [`HOLDS`], so that
//! the last one of a source that has stopped has no effect.

use model::{Deadline, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Bounds in per cent: a signal below the first is weak, and good again from the second.
const WEAK: u8 = 30;
const GOOD: u8 = 45;

/// Time for which a report holds.
const HOLDS: Duration = Duration::from_secs(30);

/// The newest signals of all local addresses.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    all: BTreeMap<IpAddr, Reported>,
}

/// A signal that a source has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The signal, in per cent.
    pub percent: u8,
    /// True if tunnels should leave the network.
    pub is_weak: bool,
    /// Name of the source, if it was given.
    pub by: Option<String>,
    until: Instant,
}

impl Signals {
    /// Records a report about a network, with all local addresses there. Returns the addresses for
    /// which it crosses a threshold.
    pub fn note(
        &mut self,
        locals: &[IpAddr],
        percent: u8,
        by: Option<&str>,
        now: Instant,
    ) -> Vec<IpAddr> {
        let weak = self.weak();
        // An address that is new in a weak network is weak too.
        let was_weak = locals.iter().any(|local| weak.contains(local));
        let is_weak = percent < if was_weak { GOOD } else { WEAK };
        for local in locals {
            let reported = Reported {
                percent,
                is_weak,
                by: by.map(str::to_owned),
                until: now + HOLDS,
            };
            self.all.insert(*local, reported);
        }
        let changed = locals.iter();
        changed
            .filter(|local| weak.contains(*local) != is_weak)
            .copied()
            .collect()
    }

    /// Removes expired reports, and returns the weak ones.
    pub fn expire(&mut self, now: Instant) -> BTreeMap<IpAddr, Reported> {
        let over = self.all.extract_if(.., |_, reported| reported.until <= now);
        over.filter(|(_, reported)| reported.is_weak).collect()
    }

    /// Returns the time of the next call to [`Self::expire`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let until = self.all.values().map(|reported| reported.until).min();
        until.map(|at| Deadline {
            at,
            reason: "a signal was not reported again",
        })
    }

    /// Returns the signal of a local address.
    pub fn reported(&self, local: IpAddr) -> Option<&Reported> {
        self.all.get(&local)
    }

    /// Returns the local addresses with a weak signal.
    pub fn weak(&self) -> BTreeSet<IpAddr> {
        let weak = self.all.iter().filter(|(_, reported)| reported.is_weak);
        weak.map(|(local, _)| *local).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIFI: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 1, 2));

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn a_signal_that_was_weak_has_to_be_well_above_the_bound() {
        let mut signals = Signals::default();
        let reports = [30, 29, 30, 44, 0, 45, 30, 100, 29];
        let changes =
            reports.map(|percent| !signals.note(&[WIFI], percent, None, at(0)).is_empty());
        let [o, x] = [false, true];
        assert_eq!(changes, [o, x, o, o, o, x, o, o, x]);
        assert_eq!(signals.weak(), [WIFI].into());
    }

    #[test]
    fn a_new_address_of_a_weak_network_is_weak() {
        let new = IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 1, 3));
        let mut signals = Signals::default();
        assert_eq!(signals.note(&[WIFI], 20, None, at(0)), [WIFI]);
        assert_eq!(signals.note(&[WIFI, new], 40, None, at(1)), [new]);
        assert_eq!(signals.weak(), [WIFI, new].into());
        assert_eq!(signals.note(&[WIFI, new], 45, None, at(2)), [WIFI, new]);
    }

    #[test]
    fn a_report_holds_for_thirty_seconds() {
        let mut signals = Signals::default();
        assert_eq!(signals.poll_timeout(), None);
        signals.note(&[WIFI], 10, Some("iw"), at(0));
        signals.note(&[WIFI], 20, Some("iw"), at(5));
        assert_eq!(signals.poll_timeout().map(|due| due.at), Some(at(35)));
        assert!(signals.expire(at(34)).is_empty());
        assert_eq!(signals.reported(WIFI).map(|held| held.percent), Some(20));
        let over = signals.expire(at(35));
        assert_eq!(over[&WIFI].by.as_deref(), Some("iw"));
        assert_eq!(
            (signals.reported(WIFI), signals.poll_timeout()),
            (None, None)
        );
        // A good signal is forgotten as well.
        signals.note(&[WIFI], 90, None, at(40));
        assert!(signals.expire(at(70)).is_empty());
        assert_eq!(signals.reported(WIFI), None);
    }
}
