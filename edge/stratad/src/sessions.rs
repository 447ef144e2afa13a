//! The store of the sessions that peers may resume: in memory, or in a file.
//!
//! A write to a file waits for the disk, so a thread does it, and takes all operations together
//! that have queued meanwhile. Tunnels never wait for it: the node waits half a second for an
//! entry, and the peer then sets its tunnel up in full. An operation that fails has the outcome
//! that there is no such session.

use anyhow::{Context, Result};
use config::Config;
use crypto::UnixTime;
use model::{Identity, Instant};
use node::Node;
use os::{Waker, entropy};
use resumption::{Handle, Memory, Operation, Outcome, Store, Strategy, Usage};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Most sessions. Each takes about 300 octets in memory or 200 in a file, and its certificates.
const MOST: u32 = 100_000;

/// Most queued operations that a peer waits for, or that add an entry. Further ones fail. Of those
/// that end a session, twice as many are queued. If there are still more, they end all sessions
/// instead: a disk that stands still costs neither memory nor the end of a session.
const QUEUED: usize = 4096;

/// Time until a write that failed is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// The store.
pub enum Sessions {
    /// In memory. Sessions end with the daemon.
    Memory(Memory),
    /// In a file.
    File(Thread),
}

/// The thread that writes the file.
pub struct Thread {
    queue: Arc<Queue>,
    results: Receiver<Batch>,
    outcomes: VecDeque<Outcome>,
    /// The result of the last write, until it is reported.
    written: Option<Result<(), store::Error>>,
    waker: Arc<Waker>,
    reader: store::Reader,
    handle: Option<JoinHandle<()>>,
}

/// The result of a batch of operations, with their outcomes.
struct Batch {
    outcomes: Vec<Outcome>,
    written: Result<(), store::Error>,
}

/// Operations on their way to the thread.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    operations: Vec<Operation>,
    ends: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an operation, or returns its outcome if there is no room.
    fn add(&self, operation: Operation) -> Option<Outcome> {
        let mut waiting = self.lock();
        let is_full = waiting.operations.len() >= QUEUED;
        if is_full && !must_succeed(&operation) {
            return failed(&operation);
        }
        if waiting.operations.len() >= 2 * QUEUED {
            waiting.operations = vec![Operation::Revoke(None)];
        } else {
            waiting.operations.push(operation);
        }
        self.changed.notify_one();
        None
    }

    /// Puts operations back that failed and have to be tried again.
    fn put_back(&self, operations: Vec<Operation>) {
        let mut waiting = self.lock();
        let later = std::mem::replace(&mut waiting.operations, operations);
        waiting.operations.extend(later);
    }

    /// Waits before another try. Returns true if there is none, as the daemon ends: what could not
    /// be written is lost, and the operator was told.
    fn waits_or_ends(&self) -> bool {
        let waiting = self.lock();
        let woken = self
            .changed
            .wait_timeout_while(waiting, PAUSE, |waiting| !waiting.ends);
        woken.unwrap_or_else(PoisonError::into_inner).0.ends
    }

    /// Waits for operations. `None`: there are no more to come.
    fn take(&self) -> Option<Vec<Operation>> {
        let mut waiting = self.lock();
        while waiting.operations.is_empty() {
            if waiting.ends {
                return None;
            }
            let woken = self.changed.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
        Some(std::mem::take(&mut waiting.operations))
    }
}

impl Sessions {
    /// Opens the store that the configuration asks for, and hands the keys of its tickets to the
    /// node if they outlive the daemon.
    pub fn open(config: &Config, node: &mut Node, now: Instant) -> Result<Self> {
        let Some(file) = &config.sessions.file else {
            return Ok(Self::Memory(Memory::new(MOST as usize)));
        };
        let opened = store::Sessions::open(file, MOST.into(), entropy::seed())?;
        node.refer_by(opened.references);
        node.seal_by(opened.tickets, now);
        Ok(Self::File(Thread::start(opened.sessions)?))
    }

    /// Returns the descriptor that is readable when there are outcomes.
    pub fn waker(&self) -> Option<&Waker> {
        match self {
            Self::Memory(_) => None,
            Self::File(thread) => Some(&thread.waker),
        }
    }

    /// Returns all sessions that may be resumed, sorted by identity. `up` knows the use of those
    /// whose tunnels are up.
    pub fn list(
        &self,
        strategy: &Strategy,
        up: impl Fn(&Handle) -> Option<Usage>,
        now: UnixTime,
    ) -> Result<Vec<control::Session>, store::Error> {
        let session = |handle: &Handle, identity: &Identity, usage: &Usage, ends: UnixTime| {
            let usage = up(handle).unwrap_or(*usage);
            control::Session {
                name: handle.to_string(),
                identity: identity.to_string(),
                age_seconds: now.0.saturating_sub(usage.since.0),
                established_seconds: usage.established.as_secs(),
                carried_octets: usage.data,
                left_seconds: strategy.left(&usage, ends, now).as_secs(),
            }
        };
        let mut sessions: Vec<_> = match self {
            Self::Memory(memory) => {
                let entries = memory.iter();
                let entries = entries.map(|(handle, entry)| {
                    session(handle, &entry.identity, &entry.usage, entry.ends)
                });
                entries.collect()
            }
            Self::File(thread) => {
                let listed = thread.reader.list()?.into_iter();
                let listed = listed.map(|listed| {
                    session(&listed.handle, &listed.identity, &listed.usage, listed.ends)
                });
                listed.collect()
            }
        };
        sessions.retain(|session| session.left_seconds > 0);
        sessions.sort_by(|a, b| (&a.identity, &a.name).cmp(&(&b.identity, &b.name)));
        Ok(sessions)
    }

    /// Returns the result of the last write, once.
    pub fn written(&mut self) -> Option<Result<(), store::Error>> {
        match self {
            Self::Memory(_) => None,
            Self::File(thread) => thread.written.take(),
        }
    }
}

impl Store for Sessions {
    fn submit(&mut self, operation: Operation, now: UnixTime) {
        match self {
            Self::Memory(memory) => memory.submit(operation, now),
            Self::File(thread) => thread.submit(operation),
        }
    }

    fn poll(&mut self) -> Option<Outcome> {
        match self {
            Self::Memory(memory) => memory.poll(),
            Self::File(thread) => thread.poll(),
        }
    }
}

impl Thread {
    fn start(mut sessions: store::Sessions) -> Result<Self> {
        let reader = sessions.reader();
        let queue = Arc::new(Queue::default());
        let waker = Arc::new(Waker::new()?);
        let (sender, results) = channel();
        let (its_queue, its_waker) = (Arc::clone(&queue), Arc::clone(&waker));
        let work = move || work(&mut sessions, &its_queue, &sender, &its_waker);
        let handle = Builder::new().name("sessions".to_owned()).spawn(work);
        Ok(Self {
            queue,
            results,
            outcomes: VecDeque::new(),
            written: None,
            waker,
            reader,
            handle: Some(handle.context("starting a thread")?),
        })
    }

    fn submit(&mut self, operation: Operation) {
        self.outcomes.extend(self.queue.add(operation));
    }

    fn poll(&mut self) -> Option<Outcome> {
        self.waker.heard();
        while let Ok(batch) = self.results.try_recv() {
            self.outcomes.extend(batch.outcomes);
            self.written = Some(batch.written);
        }
        self.outcomes.pop_front()
    }
}

/// Returns true if an operation ends sessions, or keeps what the next daemon needs. It is tried
/// again until it succeeds.
const fn must_succeed(operation: &Operation) -> bool {
    match operation {
        Operation::Remove(_) | Operation::Void(..) | Operation::Revoke(_) | Operation::Keep(_) => {
            true
        }
        Operation::Add(_) | Operation::Charge(_) | Operation::Read(..) | Operation::Take(..) => {
            false
        }
    }
}

/// Returns the outcome of an operation that failed, if it has one.
const fn failed(operation: &Operation) -> Option<Outcome> {
    match operation {
        Operation::Read(id, _) => Some(Outcome::Read(*id, None)),
        Operation::Take(id, _) => Some(Outcome::Taken(*id, false)),
        Operation::Add(_)
        | Operation::Charge(_)
        | Operation::Remove(_)
        | Operation::Void(..)
        | Operation::Revoke(_)
        | Operation::Keep(_) => None,
    }
}

/// What is queued is written before the daemon ends.
impl Drop for Thread {
    fn drop(&mut self) {
        self.queue.lock().ends = true;
        self.queue.changed.notify_one();
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

fn work(sessions: &mut store::Sessions, queue: &Queue, results: &Sender<Batch>, waker: &Waker) {
    while let Some(operations) = queue.take() {
        let batch = match sessions.perform(&operations, config::today()) {
            Ok(outcomes) => Batch {
                outcomes,
                written: Ok(()),
            },
            Err(why) => {
                let outcomes = operations.iter().filter_map(failed).collect();
                queue.put_back(operations.into_iter().filter(must_succeed).collect());
                Batch {
                    outcomes,
                    written: Err(why),
                }
            }
        };
        let has_failed = batch.written.is_err();
        let _ = results.send(batch);
        waker.wake();
        if has_failed && queue.waits_or_ends() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resumption::OperationId;

    fn handle(number: usize) -> Handle {
        let mut octets = [0; 16];
        octets[..8].copy_from_slice(&number.to_be_bytes());
        Handle::from(octets)
    }

    fn read(number: usize) -> Operation {
        Operation::Read(OperationId(number as u64), handle(number).into())
    }

    /// While the disk stands still, nobody waits for more than it will do.
    // Weakness: 184
    #[test]
    fn what_has_no_room_in_the_queue_has_an_outcome_at_once() {
        let queue = Queue::default();
        assert!((0..QUEUED).all(|number| queue.add(read(number)).is_none()));
        let id = OperationId(QUEUED as u64);
        assert_eq!(queue.add(read(QUEUED)), Some(Outcome::Read(id, None)));
        let take = Operation::Take(id, handle(1).into());
        assert_eq!(queue.add(take), Some(Outcome::Taken(id, false)));
        assert_eq!(queue.take().unwrap().len(), QUEUED);
        assert_eq!(queue.add(read(1)), None);
    }

    /// No end of a session is lost, and the queue does not grow.
    // Weakness: 184
    #[test]
    fn too_many_ends_of_sessions_end_all_of_them() {
        let queue = Queue::default();
        let ends = |count| (0..count).for_each(|n| drop(queue.add(Operation::Remove(handle(n)))));
        ends(2 * QUEUED);
        assert_eq!(queue.lock().operations.len(), 2 * QUEUED);
        ends(2);
        let expected = [Operation::Revoke(None), Operation::Remove(handle(1))];
        assert_eq!(queue.take().unwrap(), expected);
    }

    #[test]
    fn ends_that_failed_are_tried_before_what_came_later() {
        let queue = Queue::default();
        assert_eq!(queue.add(read(2)), None);
        queue.put_back(vec![Operation::Revoke(None)]);
        assert_eq!(queue.take().unwrap(), [Operation::Revoke(None), read(2)]);
    }
}
