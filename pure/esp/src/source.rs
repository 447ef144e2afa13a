//! The source of an SA's packets, where it differs from the destination of its own.
//!
//! The outer header is not authenticated, so a source proves nothing: control is told and asks the peer. Reports are
//! rare, because an attacker on the path can write another source into each packet.

use model::{Instant, Path, Stray};
use std::time::Duration;

/// Shortest pause between two reports. Between reports of the same path it doubles with each, until the SA moves.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two reports.
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// The source of the newest packet.
#[derive(Default)]
pub(crate) struct Source {
    /// Its path, if the SA sends elsewhere.
    stray: Option<Stray>,
    reported: Option<Reported>,
}

/// The last report of a stray.
struct Reported {
    path: Path,
    at: Instant,
    pause: Duration,
}

impl Source {
    /// Notes that the newest authentic packet came `from` a path, while the SA sends `to` another. Returns true
    /// if this has to be reported.
    pub(crate) fn note(&mut self, from: Path, to: Path, now: Instant) -> bool {
        let strays = from.remote != to.remote && from.carrier == to.carrier;
        let before = self.stray;
        let same = before.filter(|stray| stray.path == from);
        self.stray = strays.then(|| Stray {
            path: from,
            since: same.map_or(now, |stray| stray.since),
            away: before.map_or(now, |stray| stray.away),
        });
        strays && self.report(from, now)
    }

    fn report(&mut self, path: Path, now: Instant) -> bool {
        let pause = match &self.reported {
            None => FIRST_PAUSE,
            Some(last) => {
                let again = last.path == path;
                let rest = if again { last.pause } else { FIRST_PAUSE };
                if now < last.at + rest {
                    return false;
                }
                if again { rest * 2 } else { FIRST_PAUSE }
            }
        };
        self.reported = Some(Reported {
            path,
            at: now,
            pause: pause.min(LAST_PAUSE),
        });
        true
    }

    /// Returns the path of the newest packet, if the SA sends elsewhere.
    pub(crate) const fn stray(&self) -> Option<Stray> {
        self.stray
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    fn path(port: u16) -> Path {
        let ends = ["192.0.2.1:4500", "198.51.100.9:4500"].map(|end| end.parse().unwrap());
        let mut path = Path::udp(ends[0], ends[1]);
        path.remote.set_port(port);
        path
    }

    #[test]
    fn strays_are_told_with_growing_pauses_however_many_there_are() {
        let mut source = Source::default();
        let told = (0..30_000).filter(|millis| source.note(path(5000), path(4500), at(*millis)));
        let told: Vec<_> = told.collect();
        assert_eq!(told[..5], [0, 100, 300, 700, 1500]);
        assert!(told.len() < 12, "{told:?}");
    }

    #[test]
    fn another_path_is_told_soon_and_ten_times_a_second_at_most() {
        let mut source = Source::default();
        for millis in 0..3000 {
            source.note(path(5000), path(4500), at(millis));
        }
        assert!(source.note(path(5001), path(4500), at(3000)));
        let changing = |millis: &u64| path(5000 + *millis as u16 % 7);
        let told =
            (3001..4001).filter(|millis| source.note(changing(millis), path(4500), at(*millis)));
        assert_eq!(told.count(), 10);
    }

    #[test]
    fn the_newest_packet_counts() {
        let mut source = Source::default();
        assert!(source.note(path(5000), path(4500), at(0)));
        assert!(!source.note(path(5000), path(4500), at(1)));
        let stray = |port, since, away| {
            let [since, away] = [since, away].map(at);
            let path = path(port);
            Some(Stray { path, since, away })
        };
        assert_eq!(source.stray(), stray(5000, 0, 0));
        source.note(path(5001), path(4500), at(2));
        assert_eq!(source.stray(), stray(5001, 2, 0));
        assert!(!source.note(path(4500), path(4500), at(3)));
        assert_eq!(source.stray(), None);
        source.note(path(5000), path(4500), at(4));
        assert_eq!(source.stray(), stray(5000, 4, 4));
    }
}
