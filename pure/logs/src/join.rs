//! Pairs the notes about a session: begin, octets, end.
//!
//! The duration that a log states is trusted more than the difference of two of its times, as it
//! holds when the clock is set. An identifier is used again by a later session, or the record of a
//! begin is repeated: what is the same session is decided by the time of its begin.

use crate::{Kind, Note, Notes, Octets, Session, Span};
use crypto::UnixTime;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

/// Two records of one begin differ by no more than this, in seconds.
const REPEATED: u64 = 30;

/// Most open sessions of a user among which one goes on.
const MOST_OF_USER: usize = 64;

/// What is doubtful about the sessions of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Sessions that were up too long ago: without room, the oldest is reported as not ended.
    pub evicted: u64,
    /// Sessions whose end is before their begin, as the clock was set. Reported as not ended.
    pub backwards: u64,
    /// Ends of sessions without a user: the begin was before the log, and only it has the name.
    pub nameless: u64,
}

/// Open sessions, at most a given number.
pub struct Join {
    open: BTreeMap<Arc<str>, Open>,
    /// Keys of the open sessions in the order in which they were opened.
    ages: BTreeMap<u64, Arc<str>>,
    /// The same of each user.
    by_user: BTreeMap<Arc<str>, BTreeSet<u64>>,
    most: usize,
    opened: u64,
    doubts: Doubts,
    gateways: Gateways,
}

#[derive(Clone)]
struct Open {
    age: u64,
    gateway: Arc<str>,
    user: Arc<str>,
    /// The user when it was opened, who is in the index.
    indexed: Arc<str>,
    address: Option<IpAddr>,
    begin: UnixTime,
    octets: Option<Octets>,
    /// True if it goes on under another identifier: its end is none.
    moved: bool,
}

/// The name of the last gateway, as most sessions of a log share it.
#[derive(Default)]
struct Gateways(Arc<str>);

impl Gateways {
    fn name(&mut self, name: &str) -> Arc<str> {
        if *self.0 != *name {
            self.0 = name.into();
        }
        Arc::clone(&self.0)
    }
}

impl Join {
    /// Creates a table for at most this many open sessions.
    pub fn new(most: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            ages: BTreeMap::new(),
            by_user: BTreeMap::new(),
            most: most.max(1),
            opened: 0,
            doubts: Doubts::default(),
            gateways: Gateways::default(),
        }
    }

    /// Returns what is doubtful so far.
    pub const fn doubts(&self) -> Doubts {
        self.doubts
    }

    /// Takes a note, and hands out the sessions that are over.
    pub fn note(&mut self, note: Note<'_>, out: &mut dyn FnMut(Session)) {
        let key = key(&note);
        match note.kind {
            Kind::Begun => self.begin(&key, &note, out),
            Kind::Seen if !self.open.contains_key(&*key) => {
                if note.lasted.is_some() {
                    self.begin(&key, &note, out);
                }
            }
            Kind::Seen | Kind::Carried => {
                if let Some(open) = self.open.get_mut(&*key) {
                    open.learn(&note);
                }
            }
            Kind::Continued => self.continue_as(&key, &note, out),
            Kind::Ended => self.end(&key, &note, out),
            Kind::Lost => {
                if self.open.contains_key(&*key) {
                    self.end(&key, &note, out);
                }
            }
            Kind::Refused => drop(self.remove(&key)),
            Kind::Replaced => self.replace(&note, out),
            Kind::Stopped => self.stop(&note, out),
            Kind::Restarted => self.restart(note.gateway, out),
        }
    }

    /// Hands out the sessions that have not ended.
    pub fn finish(&mut self, out: &mut dyn FnMut(Session)) {
        // In the order of their begins, which says nothing about names.
        for key in std::mem::take(&mut self.ages).into_values() {
            if let Some(open) = self.remove(&key).filter(|open| !open.moved) {
                out(open.unended());
            }
        }
    }

    fn begin(&mut self, key: &str, note: &Note<'_>, out: &mut dyn FnMut(Session)) {
        let begin = begin_of(note);
        let known = self.open.get_mut(key).filter(|open| !open.moved);
        if let Some(known) = known
            && known.begin.0.abs_diff(begin.0) <= REPEATED
        {
            return known.learn(note);
        }
        if let Some(before) = self.remove(key).filter(|before| !before.moved) {
            out(before.unended());
        }
        let open = Open {
            age: 0,
            gateway: self.gateways.name(note.gateway),
            user: note.user.into(),
            indexed: Arc::default(),
            address: note.address,
            begin,
            octets: note.octets,
            moved: false,
        };
        self.insert(key, open, out);
    }

    fn continue_as(&mut self, key: &str, note: &Note<'_>, out: &mut dyn FnMut(Session)) {
        let known = self.open.get(key).filter(|open| !open.moved);
        if known.is_some_and(|open| *open.user == *note.user) {
            return;
        }
        let ages = self.by_user.get(note.user).into_iter().flatten();
        let keys = ages
            .rev()
            .take(MOST_OF_USER)
            .filter_map(|age| self.ages.get(age));
        let open = keys.filter_map(|key| Some((key, self.open.get(key)?)));
        let open = open.filter(|(_, open)| *open.gateway == *note.gateway && !open.moved);
        // A client may have moved, but not to the address of another of the same user.
        let meant = open.max_by_key(|(_, open)| (open.address == note.address, open.age));
        let Some(before) = meant.map(|(key, _)| Arc::clone(key)) else {
            return;
        };
        let Some(before) = self.open.get_mut(&before) else {
            return;
        };
        let after = before.clone();
        before.moved = true;
        self.remove(key);
        self.insert(key, after, out);
    }

    fn end(&mut self, key: &str, note: &Note<'_>, out: &mut dyn FnMut(Session)) {
        let Some(mut open) = self.remove(key) else {
            return self.end_unknown(note, out);
        };
        if open.moved {
            return;
        }
        open.learn(note);
        let begin = note.lasted.map_or(open.begin, |_| begin_of(note));
        if note.at < begin {
            self.doubts.backwards += 1;
            return out(open.unended());
        }
        let end = note.at;
        out(open.session(Span::Whole { begin, end }));
    }

    /// Reports a session that the log has no begin of.
    fn end_unknown(&mut self, note: &Note<'_>, out: &mut dyn FnMut(Session)) {
        if note.user.is_empty() {
            self.doubts.nameless += 1;
            return;
        }
        let end = note.at;
        let begin = begin_of(note);
        out(Session {
            user: note.user.into(),
            gateway: self.gateways.name(note.gateway),
            address: note.address,
            span: match note.lasted {
                Some(_) => Span::Whole { begin, end },
                None => Span::BeganBefore { end },
            },
            octets: note.octets,
        });
    }

    fn replace(&mut self, note: &Note<'_>, out: &mut dyn FnMut(Session)) {
        let ages = self.by_user.get(note.user).into_iter().flatten();
        let keys = ages.rev().take(MOST_OF_USER);
        let keys = keys.filter_map(|age| self.ages.get(age));
        let keys = keys.filter(|key| self.is_at(key, note.gateway));
        let earlier: Vec<_> = keys.skip(1).cloned().collect();
        for key in earlier {
            self.end(&key, note, out);
        }
    }

    fn stop(&mut self, note: &Note<'_>, out: &mut dyn FnMut(Session)) {
        for key in self.keys_at(note.gateway) {
            self.end(&key, note, out);
        }
    }

    fn restart(&mut self, gateway: &str, out: &mut dyn FnMut(Session)) {
        for key in self.keys_at(gateway) {
            if let Some(open) = self.remove(&key).filter(|open| !open.moved) {
                out(open.unended());
            }
        }
    }

    /// Returns the keys of the open sessions at a gateway, the oldest first.
    fn keys_at(&self, gateway: &str) -> Vec<Arc<str>> {
        let prefix = format!("{gateway}\0");
        let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        let at = self.open.range::<str, _>(from);
        let at = at.take_while(|(key, _)| key.starts_with(&prefix));
        let mut keys: Vec<_> = at.map(|(key, open)| (open.age, Arc::clone(key))).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }

    fn is_at(&self, key: &str, gateway: &str) -> bool {
        let open = self.open.get(key);
        open.is_some_and(|open| *open.gateway == *gateway)
    }

    fn insert(&mut self, key: &str, open: Open, out: &mut dyn FnMut(Session)) {
        if self.open.len() >= self.most
            && let Some(oldest) = self.ages.first_key_value().map(|(_, key)| Arc::clone(key))
            && let Some(open) = self.remove(&oldest).filter(|open| !open.moved)
        {
            self.doubts.evicted += 1;
            out(open.unended());
        }
        let key: Arc<str> = key.into();
        self.opened += 1;
        self.ages.insert(self.opened, Arc::clone(&key));
        let age = self.opened;
        let ages = self.by_user.entry(Arc::clone(&open.user)).or_default();
        ages.insert(age);
        let indexed = Arc::clone(&open.user);
        self.open.insert(
            key,
            Open {
                age,
                indexed,
                ..open
            },
        );
    }

    fn remove(&mut self, key: &str) -> Option<Open> {
        let open = self.open.remove(key)?;
        self.ages.remove(&open.age);
        if let Some(ages) = self.by_user.get_mut(&open.indexed) {
            ages.remove(&open.age);
            if ages.is_empty() {
                self.by_user.remove(&open.indexed);
            }
        }
        Some(open)
    }
}

impl Open {
    fn learn(&mut self, note: &Note<'_>) {
        if self.user.is_empty() {
            self.user = note.user.into();
        }
        self.address = self.address.or(note.address);
        self.octets = match (note.kind, self.octets, note.octets) {
            (Kind::Carried, Some(before), Some(more)) => Some(before.and(more)),
            (_, before, now) => now.or(before),
        };
    }

    fn unended(self) -> Session {
        let begin = self.begin;
        self.session(Span::NotEnded { begin })
    }

    fn session(self, span: Span) -> Session {
        Session {
            user: self.user,
            gateway: self.gateway,
            address: self.address,
            span,
            octets: self.octets,
        }
    }
}

/// Returns the begin of a session that began, or has lasted for some time, at the time of a note.
fn begin_of(note: &Note<'_>) -> UnixTime {
    let lasted = note.lasted.map_or(0, |lasted| lasted.as_secs());
    UnixTime(note.at.0.saturating_sub(lasted))
}

/// Returns the name of a session among those of all gateways.
fn key(note: &Note<'_>) -> String {
    format!("{}\0{}", note.gateway, note.id)
}

/// A table of open sessions together with the receiver of those that are over.
pub(crate) struct Joining<'a> {
    pub(crate) join: &'a mut Join,
    pub(crate) out: &'a mut dyn FnMut(Session),
}

impl Notes for Joining<'_> {
    fn note(&mut self, note: Note<'_>) {
        self.join.note(note, self.out);
    }

    fn session(&mut self, session: Session) {
        (self.out)(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const OCTETS: Octets = Octets {
        received: 10,
        sent: 20,
    };

    fn note(kind: Kind, at: u64, id: &str) -> Note<'_> {
        Note {
            user: "ann",
            ..Note::new(kind, UnixTime(at), id)
        }
    }

    /// Returns the spans of the sessions that come of the notes.
    fn spans(most: usize, notes: &[Note<'_>]) -> (Vec<Span>, Doubts) {
        let (mut join, mut found) = (Join::new(most), Vec::new());
        let mut out = |session: Session| found.push(session.span);
        notes.iter().for_each(|note| join.note(*note, &mut out));
        join.finish(&mut out);
        (found, join.doubts())
    }

    fn whole(begin: u64, end: u64) -> Span {
        Span::Whole {
            begin: UnixTime(begin),
            end: UnixTime(end),
        }
    }

    fn unended(begin: u64) -> Span {
        let begin = UnixTime(begin);
        Span::NotEnded { begin }
    }

    #[test]
    fn a_begin_and_an_end_are_a_session() {
        let notes = [note(Kind::Begun, 10, "1"), note(Kind::Ended, 25, "1")];
        assert_eq!(spans(9, &notes).0, [whole(10, 25)]);
    }

    #[test]
    fn a_session_that_began_before_the_log_has_no_begin_unless_its_duration_is_known() {
        let end = note(Kind::Ended, 100, "1");
        let lasted = Some(Duration::from_secs(70));
        let before = Span::BeganBefore { end: UnixTime(100) };
        assert_eq!(spans(9, &[end]).0, [before]);
        assert_eq!(spans(9, &[Note { lasted, ..end }]).0, [whole(30, 100)]);
        let (none, doubts) = spans(9, &[Note { user: "", ..end }]);
        assert_eq!((none.len(), doubts.nameless), (0, 1));
    }

    #[test]
    fn sessions_that_never_end_are_reported_at_the_end_and_at_a_restart() {
        let begins = [note(Kind::Begun, 10, "1"), note(Kind::Begun, 20, "2")];
        assert_eq!(spans(9, &begins).0, [unended(10), unended(20)]);
        let restarted = [
            begins[0],
            note(Kind::Restarted, 30, ""),
            note(Kind::Lost, 31, "1"),
        ];
        assert_eq!(spans(9, &restarted).0, [unended(10)]);
    }

    #[test]
    fn an_identifier_that_is_used_again_is_another_session_and_a_repeated_begin_is_not() {
        let repeated = [note(Kind::Begun, 10, "1"), note(Kind::Begun, 12, "1")];
        assert_eq!(spans(9, &repeated).0, [unended(10)]);
        let again = [note(Kind::Begun, 10, "1"), note(Kind::Begun, 100, "1")];
        assert_eq!(spans(9, &again).0, [unended(10), unended(100)]);
    }

    #[test]
    fn the_duration_of_the_log_holds_when_the_clock_was_set() {
        let begin = note(Kind::Begun, 5000, "1");
        let end = note(Kind::Ended, 4000, "1");
        let lasted = Some(Duration::from_secs(60));
        let (found, doubts) = spans(9, &[begin, end]);
        assert_eq!((found, doubts.backwards), (vec![unended(5000)], 1));
        let (found, doubts) = spans(9, &[begin, Note { lasted, ..end }]);
        assert_eq!((found, doubts.backwards), (vec![whole(3940, 4000)], 0));
    }

    #[test]
    fn a_session_continues_under_another_identifier() {
        let notes = [
            note(Kind::Begun, 10, "1"),
            note(Kind::Continued, 50, "2"),
            note(Kind::Ended, 51, "1"),
            note(Kind::Ended, 90, "2"),
        ];
        assert_eq!(spans(9, &notes).0, [whole(10, 90)]);
    }

    #[test]
    fn a_session_that_is_known_already_does_not_continue_another() {
        let notes = [
            note(Kind::Begun, 10, "1"),
            note(Kind::Begun, 20, "2"),
            note(Kind::Continued, 50, "1"),
            note(Kind::Ended, 50, "1"),
        ];
        assert_eq!(spans(9, &notes).0, [whole(10, 50), unended(20)]);
    }

    #[test]
    fn the_latest_session_of_a_user_replaces_the_earlier_ones_at_its_gateway() {
        let elsewhere = Note {
            gateway: "b",
            ..note(Kind::Begun, 5, "1")
        };
        let other = Note {
            user: "bob",
            ..note(Kind::Begun, 6, "9")
        };
        let notes = [
            elsewhere,
            other,
            note(Kind::Begun, 10, "1"),
            note(Kind::Begun, 20, "2"),
            note(Kind::Replaced, 20, ""),
        ];
        let expected = [whole(10, 20), unended(5), unended(6), unended(20)];
        assert_eq!(spans(9, &notes).0, expected);
    }

    #[test]
    fn a_gateway_that_stops_ends_its_sessions_and_one_that_refuses_has_none() {
        let begins = [note(Kind::Begun, 10, "1"), note(Kind::Begun, 20, "2")];
        let stopped = [begins[0], begins[1], note(Kind::Stopped, 30, "")];
        assert_eq!(spans(9, &stopped).0, [whole(10, 30), whole(20, 30)]);
        let refused = [begins[0], begins[1], note(Kind::Refused, 30, "1")];
        assert_eq!(spans(9, &refused).0, [unended(20)]);
    }

    #[test]
    fn octets_are_totals_or_added() {
        let mut join = Join::new(9);
        let mut found = Vec::new();
        let mut out = |session: Session| found.extend(session.octets);
        let with = |kind, at| Note {
            octets: Some(OCTETS),
            ..note(kind, at, "1")
        };
        for kind in [Kind::Begun, Kind::Seen, Kind::Carried, Kind::Carried] {
            join.note(with(kind, 1), &mut out);
        }
        join.note(note(Kind::Ended, 2, "1"), &mut out);
        assert_eq!(found, [OCTETS.and(OCTETS).and(OCTETS)]);
    }

    #[test]
    fn without_room_the_oldest_session_is_reported_and_counted() {
        let notes: Vec<_> = ["1", "2", "3"]
            .into_iter()
            .zip([10, 20, 30])
            .map(|(id, at)| note(Kind::Begun, at, id))
            .collect();
        let (found, doubts) = spans(2, &notes);
        assert_eq!(found, [unended(10), unended(20), unended(30)]);
        assert_eq!(doubts.evicted, 1);
    }

    proptest! {
        /// Whatever the notes: the table keeps its limit, and no session ends before its begin.
        #[test]
        fn any_notes_keep_the_limit(notes in proptest::collection::vec(
            (0..10_usize, 0..500_u64, 0..6_u8, proptest::option::of(0..90_u64)), 0..200)
        ) {
            const KINDS: [Kind; 10] = [
                Kind::Begun, Kind::Seen, Kind::Carried, Kind::Continued, Kind::Ended, Kind::Lost,
                Kind::Restarted, Kind::Refused, Kind::Replaced, Kind::Stopped,
            ];
            let mut join = Join::new(3);
            let mut begins = 0;
            let mut sessions = Vec::new();
            for (kind, at, id, lasted) in notes {
                let id = id.to_string();
                let lasted = lasted.map(Duration::from_secs);
                begins += usize::from(kind < 2 || kind == 4);
                let note = Note { lasted, ..note(KINDS[kind], at, &id) };
                join.note(note, &mut |session| sessions.push(session));
                prop_assert!(join.open.len() <= 3 && join.ages.len() == join.open.len());
            }
            join.finish(&mut |session| sessions.push(session));
            prop_assert!(sessions.len() <= begins);
            for session in sessions {
                if let Span::Whole { begin, end } = session.span {
                    prop_assert!(begin <= end);
                }
            }
        }
    }
}
