//! Changes of leases that wait to be written to disk.
//!
//! A new address is on disk before the answer that contains it leaves. That a peer comes and goes
//! with the address that it has is written in batches, because each write waits for the disk, and
//! the daemon with it: a peer that sets up and deletes IKE SAs as fast as it can costs one write a
//! second, and fewer if the disk is slow. A crash in between loses the time of the last use.
//!
//! Changes whose write failed wait for the next one, unless a later change replaces them.

use model::{Deadline, Identity, Instant, LeaseChange};
use std::collections::BTreeMap;
use std::time::Duration;

/// Shortest time between two writes, unless an answer depends on one.
const PAUSE: Duration = Duration::from_secs(1);

/// The same as a multiple of the time that a write took.
const SHARE: u32 = 20;

/// Changes to write.
#[derive(Debug, Default)]
pub struct Leases {
    /// The last change of each lease, by pool and identity.
    waiting: BTreeMap<(String, Identity), LeaseChange>,
    /// True if an answer depends on one of them.
    is_urgent: bool,
    /// Time of the next write, unless one is urgent.
    next: Instant,
}

impl Leases {
    /// Adds a change.
    pub fn add(&mut self, change: LeaseChange) {
        self.is_urgent |= !matches!(change, LeaseChange::Used(_));
        self.waiting.insert(owner(&change), change);
    }

    /// Takes back changes that could not be written.
    pub fn put_back(&mut self, changes: Vec<LeaseChange>) {
        for change in changes {
            self.waiting.entry(owner(&change)).or_insert(change);
        }
    }

    /// Makes all changes urgent, because the daemon ends.
    pub const fn hurry(&mut self) {
        self.is_urgent = true;
    }

    /// Returns the changes to write now, together.
    pub fn take(&mut self, now: Instant) -> Vec<LeaseChange> {
        if self.waiting.is_empty() || !self.is_urgent && now < self.next {
            return Vec::new();
        }
        self.is_urgent = false;
        std::mem::take(&mut self.waiting).into_values().collect()
    }

    /// Records a write, successful or not.
    pub fn wrote(&mut self, begun: Instant, ended: Instant) {
        self.next = ended + PAUSE.max((ended - begun) * SHARE);
    }

    /// Returns the time of the next write.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let deadline = || Deadline {
            at: self.next,
            reason: "leases are to be written",
        };
        (!self.waiting.is_empty()).then(deadline)
    }
}

/// Returns the pool and the identity of the lease that changes.
fn owner(change: &LeaseChange) -> (String, Identity) {
    let (pool, identity) = match change {
        LeaseChange::Kept(lease) | LeaseChange::Used(lease) => (&lease.pool, &lease.identity),
        LeaseChange::Forgotten { pool, identity } => (pool, identity),
    };
    (pool.clone(), identity.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{InnerAddresses, Lease};

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    fn lease(number: u64, free_from: Option<u64>) -> Lease {
        Lease {
            pool: "office".to_owned(),
            identity: format!("host{number}.example.net").parse().unwrap(),
            addresses: InnerAddresses::default(),
            free_from,
        }
    }

    fn used(number: u64, free_from: Option<u64>) -> LeaseChange {
        LeaseChange::Used(lease(number, free_from))
    }

    // Weakness: 138
    #[test]
    fn a_peer_that_comes_and_goes_without_end_costs_one_write_a_second() {
        let (mut leases, mut writes) = (Leases::default(), Vec::new());
        for millis in 0..10_000 {
            leases.add(used(1, Some(millis)));
            leases.add(used(2, None));
            let changes = leases.take(at(millis));
            if !changes.is_empty() {
                assert_eq!(changes, [used(1, Some(millis)), used(2, None)]);
                leases.wrote(at(millis), at(millis));
                writes.push(millis);
            }
        }
        assert_eq!(
            writes,
            (0..10).map(|second| second * 1000).collect::<Vec<_>>()
        );
        // The last change is not forgotten.
        let due = leases.poll_timeout().unwrap().at;
        assert_eq!((due, leases.take(due).len()), (at(10_000), 2));
        assert_eq!(leases.poll_timeout(), None);
    }

    // Weakness: 138
    #[test]
    fn a_slow_disk_has_a_twentieth_of_the_time() {
        let mut leases = Leases::default();
        leases.wrote(at(0), at(500));
        leases.add(used(1, None));
        assert_eq!(leases.take(at(10_499)), []);
        assert_eq!(leases.take(at(10_500)).len(), 1);
    }

    // Weakness: 138
    #[test]
    fn what_an_answer_depends_on_is_written_at_once_with_all_that_waits() {
        let mut leases = Leases::default();
        leases.wrote(at(0), at(0));
        leases.add(used(1, Some(7)));
        assert_eq!(leases.take(at(1)), []);
        let forgotten = LeaseChange::Forgotten {
            pool: "office".to_owned(),
            identity: lease(3, None).identity,
        };
        for urgent in [LeaseChange::Kept(lease(2, None)), forgotten] {
            leases.add(used(1, Some(7)));
            leases.add(urgent.clone());
            assert_eq!(leases.take(at(1)), [used(1, Some(7)), urgent]);
            assert_eq!(leases.take(at(1)), []);
        }
        // An address that is new and in use again is still new.
        leases.add(LeaseChange::Kept(lease(2, None)));
        leases.add(used(2, Some(9)));
        assert_eq!(leases.take(at(1)), [used(2, Some(9))]);
        leases.add(used(1, None));
        leases.hurry();
        assert_eq!(leases.take(at(1)), [used(1, None)]);
    }

    /// Otherwise a write that succeeds later would end the report of a failure whose leases are
    /// still not on disk.
    // Weakness: 169
    #[test]
    fn changes_that_could_not_be_written_are_written_with_the_next_ones() {
        let mut leases = Leases::default();
        let (first, second) = (LeaseChange::Kept(lease(1, None)), used(2, None));
        leases.add(first.clone());
        leases.add(second);
        let taken = leases.take(at(0));
        leases.put_back(taken);
        leases.wrote(at(0), at(0));
        assert_eq!(leases.take(at(999)), [], "no answer waits for them");
        leases.add(used(2, Some(7)));
        assert_eq!(leases.take(at(1000)), [first, used(2, Some(7))]);
        assert_eq!(leases.poll_timeout(), None);
    }
}
