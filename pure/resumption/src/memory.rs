//! A store in memory. Entries end with the process.

use crate::voided::Voided;
use crate::{Entry, Handle, Kept, Operation, Outcome, Store, Ticket};
use crypto::UnixTime;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Entries in memory, at most a given number. Without room, the entry that ends first goes.
pub struct Memory {
    /// Boxed, as entries are large and the tree moves what it has.
    entries: BTreeMap<Handle, Box<Kept>>,
    /// The entries by their ends.
    ends: BTreeSet<(UnixTime, Handle)>,
    most: usize,
    voided: Voided,
    outcomes: VecDeque<Outcome>,
}

impl Memory {
    /// Creates a store for this many entries.
    pub fn new(most: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            ends: BTreeSet::new(),
            most,
            voided: Voided::new(most),
            outcomes: VecDeque::new(),
        }
    }

    /// Returns the entries, in the order of their handles.
    pub fn iter(&self) -> impl Iterator<Item = (&Handle, &Entry)> {
        let entries = self.entries.iter();
        entries.map(|(handle, kept)| (handle, &kept.entry))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes the entries that have ended.
    pub fn expunge(&mut self, now: UnixTime) {
        while let Some((_, handle)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.remove(&handle);
        }
    }

    fn add(&mut self, kept: Box<Kept>, now: UnixTime) {
        self.expunge(now);
        while self.entries.len() >= self.most {
            let Some((_, first)) = self.ends.first().copied() else {
                return;
            };
            self.remove(&first);
        }
        let (handle, ends) = (kept.handle, kept.entry.ends);
        self.remove(&handle);
        self.ends.insert((ends, handle));
        self.entries.insert(handle, kept);
    }

    fn read(&self, ticket: Ticket, now: UnixTime) -> Option<Entry> {
        match ticket {
            Ticket::Reference(handle) => {
                let entry = self.entries.get(&handle).map(|kept| &kept.entry);
                entry.filter(|entry| now < entry.ends).cloned()
            }
            Ticket::Value(kept) => (!self.voided.has(&kept, now)).then_some(kept.entry),
        }
    }

    fn take(&mut self, ticket: &Ticket, now: UnixTime) -> bool {
        match ticket {
            Ticket::Reference(handle) => {
                let taken = self.remove(handle);
                taken.is_some_and(|kept| now < kept.entry.ends)
            }
            Ticket::Value(kept) => {
                let is_good = !self.voided.has(kept, now);
                is_good && self.voided.add(kept.handle, kept.entry.ends, now)
            }
        }
    }

    fn remove(&mut self, handle: &Handle) -> Option<Box<Kept>> {
        let kept = self.entries.remove(handle)?;
        self.ends.remove(&(kept.entry.ends, *handle));
        Some(kept)
    }
}

impl Store for Memory {
    fn submit(&mut self, operation: Operation, now: UnixTime) {
        match operation {
            Operation::Add(kept) => self.add(kept, now),
            Operation::Read(id, ticket) => {
                let entry = self.read(ticket, now).map(Box::new);
                self.outcomes.push_back(Outcome::Read(id, entry));
            }
            Operation::Take(id, ticket) => {
                let taken = self.take(&ticket, now);
                self.outcomes.push_back(Outcome::Taken(id, taken));
            }
            Operation::Charge(charges) => {
                for (handle, usage) in charges {
                    if let Some(kept) = self.entries.get_mut(&handle) {
                        kept.entry.usage = usage;
                    }
                }
            }
            Operation::Remove(handle) => drop(self.remove(&handle)),
            Operation::Void(handle, ends) => drop(self.voided.add(handle, ends, now)),
            // The engine has it, and nothing here outlives the engine.
            Operation::Keep(_) => {}
            Operation::Revoke(whom) => {
                self.voided.revoke(whom.as_ref(), now);
                let is_meant = |entry: &Entry| whom.as_ref().is_none_or(|id| *id == entry.identity);
                let meant = self.iter().filter(|(_, entry)| is_meant(entry));
                let meant: Vec<_> = meant.map(|(handle, _)| *handle).collect();
                for handle in meant {
                    self.remove(&handle);
                }
            }
        }
    }

    fn poll(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Keys, OperationId, Proof, Strategy, Usage, Way};
    use crypto::{Prf, Secret};
    use model::{Group, Identity, Suite};
    use std::time::Duration;

    const NOW: UnixTime = UnixTime(1000);

    fn handle(number: u8) -> Handle {
        Handle::from([number; 16])
    }

    fn entry(identity: &str, ends: u64) -> Entry {
        Entry {
            identity: identity.parse().unwrap(),
            proof: Proof::Psk,
            chain: Vec::new(),
            group: Group::X25519,
            credential: [3; 8],
            keys: Keys {
                way: Way::Ticket,
                suite: Suite::Aes128Gcm16,
                prf: Prf::HmacSha256,
                kems: Vec::new(),
                ppk: false,
                secret: Secret::new(vec![1; 32]),
            },
            usage: Usage::new(UnixTime(900)),
            ends: UnixTime(ends),
        }
    }

    fn add(store: &mut Memory, number: u8, identity: &str, ends: u64) {
        let kept = Kept {
            handle: handle(number),
            entry: entry(identity, ends),
        };
        store.submit(Operation::Add(Box::new(kept)), NOW);
    }

    fn take(store: &mut Memory, number: u8, now: UnixTime) -> bool {
        store.submit(Operation::Take(OperationId(7), handle(number).into()), now);
        match store.poll() {
            Some(Outcome::Taken(OperationId(7), taken)) => taken,
            other => panic!("{other:?}"),
        }
    }

    fn read(store: &mut Memory, number: u8, now: UnixTime) -> Option<Box<Entry>> {
        store.submit(Operation::Read(OperationId(8), handle(number).into()), now);
        match store.poll() {
            Some(Outcome::Read(OperationId(8), entry)) => entry,
            other => panic!("{other:?}"),
        }
    }

    fn handles(store: &Memory) -> Vec<Handle> {
        store.iter().map(|(handle, _)| *handle).collect()
    }

    #[test]
    fn an_entry_is_read_as_often_as_wanted_and_taken_once() {
        let mut store = Memory::new(10);
        add(&mut store, 1, "a.example", 2000);
        assert_eq!(*read(&mut store, 1, NOW).unwrap(), entry("a.example", 2000));
        assert!(read(&mut store, 1, NOW).is_some());
        let taken = [1, 1, 2].map(|number| take(&mut store, number, NOW));
        assert_eq!(taken, [true, false, false]);
        assert_eq!(read(&mut store, 1, NOW), None);
    }

    #[test]
    fn an_entry_that_has_ended_is_neither_read_nor_taken_nor_kept() {
        let mut store = Memory::new(10);
        add(&mut store, 1, "a.example", 2000);
        add(&mut store, 2, "a.example", 2001);
        let end = UnixTime(2000);
        assert_eq!(read(&mut store, 1, end), None);
        assert!(!take(&mut store, 1, end) && take(&mut store, 2, end));
        add(&mut store, 3, "a.example", 1000);
        add(&mut store, 4, "a.example", 2000);
        assert_eq!(handles(&store), [handle(4)]);
    }

    #[test]
    fn without_room_the_entry_goes_that_ends_first() {
        let mut store = Memory::new(2);
        for (number, ends) in [(1, 3000), (2, 2000), (3, 4000)] {
            add(&mut store, number, "a.example", ends);
        }
        assert_eq!(handles(&store), [handle(1), handle(3)]);
        let mut nothing = Memory::new(0);
        add(&mut nothing, 1, "a.example", 3000);
        assert_eq!(handles(&nothing), []);
    }

    #[test]
    fn a_charge_replaces_the_usage_and_brings_nothing_back() {
        let mut store = Memory::new(2);
        add(&mut store, 1, "a.example", 3000);
        let usage = Usage::new(UnixTime(900)).and(Duration::from_secs(60), 9);
        store.submit(Operation::Charge(vec![(handle(1), usage)]), NOW);
        assert_eq!(read(&mut store, 1, NOW).unwrap().usage, usage);
        assert!(take(&mut store, 1, NOW));
        store.submit(Operation::Charge(vec![(handle(1), usage)]), NOW);
        assert_eq!(handles(&store), []);
    }

    #[test]
    fn entries_of_one_identity_or_of_everybody_are_revoked() {
        let mut store = Memory::new(9);
        for (number, identity) in [(1, "a.example"), (2, "b.example"), (3, "a.example")] {
            add(&mut store, number, identity, 3000);
        }
        let whom: Identity = "A.example".parse().unwrap();
        store.submit(Operation::Revoke(Some(whom)), NOW);
        assert_eq!(handles(&store), [handle(2)]);
        store.submit(Operation::Remove(handle(9)), NOW);
        store.submit(Operation::Revoke(None), NOW);
        assert_eq!((handles(&store).len(), store.ends.len()), (0, 0));
    }

    fn by_value(number: u8, identity: &str, ends: u64) -> Ticket {
        Ticket::Value(Box::new(Kept {
            handle: handle(number),
            entry: entry(identity, ends),
        }))
    }

    fn takes(store: &mut Memory, ticket: &Ticket, now: UnixTime) -> bool {
        let id = OperationId(9);
        store.submit(Operation::Read(id, ticket.clone()), now);
        let Some(Outcome::Read(_, entry)) = store.poll() else {
            panic!("no outcome");
        };
        store.submit(Operation::Take(id, ticket.clone()), now);
        let taken = store.poll() == Some(Outcome::Taken(id, true));
        assert_eq!(entry.is_some(), taken, "what is read can be taken");
        taken
    }

    #[test]
    fn a_ticket_by_value_is_taken_once_and_not_after_its_end() {
        let mut store = Memory::new(10);
        let ticket = by_value(1, "a.example", 2000);
        assert!(!takes(&mut store, &ticket, UnixTime(2000)));
        let taken = [(); 2].map(|()| takes(&mut store, &ticket, NOW));
        assert_eq!(taken, [true, false]);
        store.submit(Operation::Void(handle(2), UnixTime(2000)), NOW);
        assert!(!takes(&mut store, &by_value(2, "a.example", 2000), NOW));
        assert!(takes(&mut store, &by_value(3, "a.example", 2000), NOW));
        assert_eq!(handles(&store), [], "nothing else is kept of it");
    }

    #[test]
    fn tickets_by_value_are_revoked_with_the_authentication_that_they_come_from() {
        let mut store = Memory::new(10);
        let whom: Identity = "A.example".parse().unwrap();
        store.submit(Operation::Revoke(Some(whom)), NOW);
        assert!(!takes(&mut store, &by_value(1, "a.example", 2000), NOW));
        assert!(takes(&mut store, &by_value(2, "b.example", 2000), NOW));
        let mut newer = entry("a.example", 2000);
        newer.usage = Usage::new(UnixTime(1001));
        let handle = handle(3);
        let newer = Ticket::Value(Box::new(Kept {
            handle,
            entry: newer,
        }));
        assert!(takes(&mut store, &newer, UnixTime(1001)));
        store.submit(Operation::Revoke(None), NOW);
        assert!(!takes(&mut store, &by_value(4, "b.example", 2000), NOW));
    }

    /// A used ticket whose mark had gone would be good again.
    #[test]
    fn without_room_for_what_is_void_all_tickets_by_value_are() {
        let mut store = Memory::new(2);
        let tickets: Vec<_> = (0..4).map(|n| by_value(n, "a.example", 2000)).collect();
        let taken: Vec<_> = tickets.iter().map(|t| takes_only(&mut store, t)).collect();
        assert_eq!(taken, [true, true, false, false]);
        for ticket in &tickets {
            assert!(!takes_only(&mut store, ticket));
        }
        let mut newer = entry("a.example", 3000);
        newer.usage = Usage::new(UnixTime(1001));
        let kept = Kept {
            handle: handle(9),
            entry: newer,
        };
        let newer = Ticket::Value(Box::new(kept));
        assert!(takes(&mut store, &newer, UnixTime(1002)), "there is room");
    }

    #[test]
    fn what_has_ended_makes_room_for_what_is_void() {
        let mut store = Memory::new(1);
        assert!(takes(&mut store, &by_value(1, "a.example", 2000), NOW));
        let later = UnixTime(2000);
        assert!(takes(&mut store, &by_value(2, "a.example", 2500), later));
    }

    /// A clock that is ahead has marks go too early.
    #[test]
    fn a_clock_that_was_ahead_makes_no_used_ticket_good_again() {
        let mut store = Memory::new(10);
        let (used, ahead) = (by_value(1, "a.example", 2000), UnixTime(9000));
        assert!(takes(&mut store, &used, NOW));
        store.submit(Operation::Void(handle(2), UnixTime(9500)), ahead);
        assert!(!takes(&mut store, &used, NOW));
        assert!(!takes(&mut store, &by_value(3, "a.example", 1999), NOW));
        assert!(takes(&mut store, &by_value(4, "a.example", 2001), NOW));
    }

    #[test]
    fn a_clock_that_was_ahead_makes_no_revoked_ticket_good_again() {
        let mut store = Memory::new(10);
        let revoke = |whom: &str| Operation::Revoke(Some(whom.parse().unwrap()));
        store.submit(revoke("a.example"), NOW);
        let later = Strategy::latest_end(NOW);
        store.submit(revoke("b.example"), UnixTime(later.0 + 1));
        let ends = later.0;
        assert!(!takes(&mut store, &by_value(1, "a.example", ends), NOW));
        // No ticket of that time ends later, and another identity has not been revoked.
        assert!(takes(&mut store, &by_value(2, "c.example", ends + 1), NOW));
    }

    fn takes_only(store: &mut Memory, ticket: &Ticket) -> bool {
        let id = OperationId(9);
        store.submit(Operation::Take(id, ticket.clone()), NOW);
        store.poll() == Some(Outcome::Taken(id, true))
    }
}
