//! The characteristics of a log: table II and figures 2 to 5.

use super::{Histogram, bounds};
use crate::{Session, Zone};
use crypto::UnixTime;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most days of a log: eleven years.
const MOST_DAYS: usize = 4096;

/// The characteristics of a log. Those of several logs can be merged.
#[derive(Clone, Debug)]
pub struct Summary {
    zone: Zone,
    /// Sessions whose begin is before the log.
    pub began_before: u64,
    /// Sessions whose end is not in the log.
    pub not_ended: u64,
    /// Sessions that begin on each day (figure 2).
    pub days: Days,
    /// Durations in seconds (figure 3, and the total of table II), of sessions whose begin and end
    /// are known.
    pub durations: Histogram,
    /// Octets that gateways received (figure 4), of sessions whose octets are known.
    pub received: Histogram,
    /// Octets that gateways sent (figure 4).
    pub sent: Histogram,
    /// Visits of each user (figure 5).
    pub visits: Visits,
}

impl Summary {
    /// Creates the summary of no session. Days are those of the zone. At most so many users are
    /// told apart.
    pub fn new(zone: Zone, most_users: usize) -> Self {
        Self {
            zone,
            began_before: 0,
            not_ended: 0,
            days: Days::default(),
            durations: Histogram::new(bounds::DURATIONS),
            received: Histogram::new(bounds::VOLUMES),
            sent: Histogram::new(bounds::VOLUMES),
            visits: Visits::new(most_users),
        }
    }

    /// Adds a session.
    pub fn add(&mut self, session: &Session) {
        match session.span.begin() {
            Some(begin) => self.days.add(self.zone.day(begin), 1),
            None => self.began_before += 1,
        }
        match session.span.duration() {
            Some(duration) => self.durations.add(duration.as_secs()),
            None if session.span.begin().is_some() => self.not_ended += 1,
            None => {}
        }
        if let Some(octets) = session.octets {
            self.received.add(octets.received);
            self.sent.add(octets.sent);
        }
        self.visits.add(&session.user, 1);
    }

    /// Adds all sessions of another summary.
    pub fn merge(&mut self, other: &Self) {
        self.began_before += other.began_before;
        self.not_ended += other.not_ended;
        let days = other.days.counts.iter();
        days.for_each(|(day, count)| self.days.add(*day, *count));
        self.days.left_out += other.days.left_out;
        self.durations.merge(&other.durations);
        self.received.merge(&other.received);
        self.sent.merge(&other.sent);
        let users = other.visits.users.iter();
        users.for_each(|(user, visits)| self.visits.add(user, *visits));
        self.visits.left_out += other.visits.left_out;
    }

    /// Returns the number of sessions.
    pub fn connections(&self) -> u64 {
        self.visits.sum + self.visits.left_out
    }
}

/// Sessions on each day.
#[derive(Clone, Debug, Default)]
pub struct Days {
    counts: BTreeMap<u64, u64>,
    /// Sessions of further days, for which there is no room.
    pub left_out: u64,
}

impl Days {
    /// Returns each day, as its begin in UTC, with its sessions. Days without any are left out.
    pub fn iter(&self) -> impl Iterator<Item = (UnixTime, u64)> {
        let days = self.counts.iter();
        days.map(|(day, count)| (UnixTime(day * 86_400), *count))
    }

    fn add(&mut self, day: u64, sessions: u64) {
        if self.counts.len() >= MOST_DAYS && !self.counts.contains_key(&day) {
            self.left_out += sessions;
            return;
        }
        *self.counts.entry(day).or_default() += sessions;
    }
}

/// Visits of each user.
#[derive(Clone, Debug)]
pub struct Visits {
    users: BTreeMap<Arc<str>, u64>,
    most: usize,
    sum: u64,
    /// Sessions of further users, for which there is no room.
    pub left_out: u64,
}

impl Visits {
    fn new(most: usize) -> Self {
        Self {
            users: BTreeMap::new(),
            most,
            sum: 0,
            left_out: 0,
        }
    }

    /// Returns the number of users.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// Returns how many users came how often.
    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new(bounds::VISITS);
        self.users
            .values()
            .for_each(|visits| histogram.add(*visits));
        histogram
    }

    fn add(&mut self, user: &Arc<str>, visits: u64) {
        if let Some(known) = self.users.get_mut(user) {
            *known += visits;
        } else if self.users.len() < self.most {
            self.users.insert(Arc::clone(user), visits);
        } else {
            self.left_out += visits;
            return;
        }
        self.sum += visits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Octets, Span};

    fn session(user: &str, begin: u64, end: u64, sent: u64) -> Session {
        Session {
            user: user.into(),
            gateway: "".into(),
            address: None,
            span: Span::Whole {
                begin: UnixTime(begin),
                end: UnixTime(end),
            },
            octets: Some(Octets { received: 1, sent }),
        }
    }

    fn sessions() -> Vec<Session> {
        let end = UnixTime(400_000);
        let before = Session {
            span: Span::BeganBefore { end },
            octets: None,
            ..session("bob", 0, 0, 0)
        };
        let unended = Session {
            span: Span::NotEnded { begin: end },
            ..session("cid", 0, 0, 5)
        };
        vec![
            session("ann", 10, 250, 999),
            session("ann", 86_400, 90_000, 2_000_000),
            before,
            unended,
        ]
    }

    fn summary<'a>(sessions: impl IntoIterator<Item = &'a Session>, most: usize) -> Summary {
        let mut summary = Summary::new(Zone::UTC, most);
        sessions
            .into_iter()
            .for_each(|session| summary.add(session));
        summary
    }

    #[test]
    fn table_ii_and_figures_2_to_5() {
        let all = summary(&sessions(), 10);
        assert_eq!((all.connections(), all.visits.users()), (4, 3));
        assert_eq!((all.began_before, all.not_ended), (1, 1));
        let days: Vec<_> = all.days.iter().map(|(day, count)| (day.0, count)).collect();
        assert_eq!(days, [(0, 1), (86_400, 1), (4 * 86_400, 1)]);
        assert_eq!((all.durations.count(), all.durations.sum()), (2, 3840));
        assert_eq!((all.received.sum(), all.sent.sum()), (3, 2_001_004));
        let visits: Vec<_> = all.visits.histogram().classes().take(2).collect();
        assert_eq!(visits, [(Some(1), 2), (Some(5), 1)]);
    }

    #[test]
    fn parts_merge_to_the_whole() {
        let sessions = sessions();
        let mut merged = summary(&sessions[..1], 10);
        merged.merge(&summary(&sessions[1..], 10));
        assert_eq!(
            format!("{merged:?}"),
            format!("{:?}", summary(&sessions, 10))
        );
    }

    #[test]
    fn further_users_and_days_are_counted_and_not_kept() {
        let all = summary(&sessions(), 1);
        assert_eq!((all.visits.users(), all.visits.left_out), (1, 2));
        assert_eq!(all.connections(), 4);
        let mut days = Days::default();
        (0..5000).for_each(|day| days.add(day, 1));
        days.add(7, 1);
        assert_eq!((days.counts.len(), days.left_out), (MOST_DAYS, 904));
    }
}
