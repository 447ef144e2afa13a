//! Rate limits on answers, by mobile node and by sender of its requests. Any host can repeat a
//! request that it has heard, or make one up, so answers to one sender are not taken from another.

use model::{Instant, most_crowded};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

const SPACING: Duration = Duration::from_secs(1);
/// Denials within a second, at most.
const MOST: usize = 64;

/// Answers per second to one sender of a mobile node's requests that change nothing: as many
/// requests as it sends on the worst links, and too few to serve as a reflector.
const MOST_OF_OLD: u32 = 8;
/// Senders of one mobile node's requests that are answered within a second, at most, besides its
/// agents.
const MOST_SENDERS: usize = 32;

/// The times of the last denials, by mobile node and sender: "Except in cases where the foreign
/// agent would be required to send out more than one such denial per second to the same mobile
/// node" (RFC 5944 section 3.7.2).
#[derive(Debug)]
pub(super) struct Denials<S>(BTreeMap<(S, Ipv4Addr), Instant>);

impl<S> Default for Denials<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: Copy + Ord> Denials<S> {
    /// Returns true if a sender may be denied a request for a mobile node now, and counts the
    /// denial.
    pub(super) fn allow(&mut self, sender: S, home: Ipv4Addr, now: Instant) -> bool {
        self.0.retain(|_, told| now.since(*told) < SPACING);
        if self.0.contains_key(&(sender, home)) || !self.make_room(sender) {
            return false;
        }
        self.0.insert((sender, home), now);
        true
    }

    /// If there is no room, forgets the oldest denial to the sender with the most. A sender with
    /// one keeps its place, or new senders would be answered without limit.
    fn make_room(&mut self, sender: S) -> bool {
        if self.0.len() < MOST {
            return true;
        }
        let own = self.0.keys().filter(|(other, _)| *other == sender).count();
        let mut oldest: Vec<_> = self.0.iter().map(|(key, told)| (*told, *key)).collect();
        oldest.sort();
        let members = oldest.iter().map(|(_, key)| (key.0, *key));
        match most_crowded(members).filter(|(_, most)| *most > own + 1) {
            Some((key, _)) => self.0.remove(&key).is_some(),
            None => false,
        }
    }
}

/// Counts answers to one mobile node's requests that change nothing, by sender.
#[derive(Debug, Default)]
pub(super) struct OldAnswers(BTreeMap<Sender, (Instant, u32)>);

/// The sender of a mobile node's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sender {
    pub(super) address: Ipv4Addr,
    /// True for a foreign agent that is configured, or that the mobile node is registered through.
    /// It has answers of its own, whatever others send.
    pub(super) is_agent: bool,
}

impl OldAnswers {
    /// Returns true if one more answer may be sent now, and counts it. The configuration and the
    /// bindings limit the number of agents.
    pub(super) fn allow(&mut self, sender: Sender, now: Instant) -> bool {
        self.0.retain(|_, (since, _)| now.since(*since) < SPACING);
        let others = self.0.keys().filter(|other| !other.is_agent);
        let has_room = sender.is_agent || others.count() < MOST_SENDERS;
        if !has_room && !self.0.contains_key(&sender) {
            return false;
        }
        let (_, answers) = self.0.entry(sender).or_insert((now, 0));
        *answers += 1;
        *answers <= MOST_OF_OLD
    }
}
