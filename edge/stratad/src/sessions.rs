//! The store of the sessions that peers may resume: in memory, or in a file.
//!
//! A write to a file waits for the disk, so a thread does it, and takes all operations together
//! that have queued meanwhile. The daemon never waits for it: the node gives up an operation
//! without an outcome after half a second, and the peer then sets its tunnel up in full.

use anyhow::{Context, Result};
use config::Config;
use crypto::UnixTime;
use model::Identity;
use os::{Waker, entropy};
use resumption::{Handle, Memory, Operation, Outcome, ReferenceKey, Store, Usage};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle};

/// Most sessions, of about 300 octets each in memory and 200 in a file.
const MOST: u32 = 100_000;

/// Most queued operations that a peer waits for, or that add an entry. Further ones are dropped, so
/// that a disk that stands still costs no memory. Operations that end a session are never dropped.
const QUEUED: usize = 4096;

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
    results: Receiver<Result<Vec<Outcome>, store::Error>>,
    outcomes: VecDeque<Outcome>,
    /// The result of the last write, until it is reported.
    written: Option<Result<(), store::Error>>,
    waker: Arc<Waker>,
    reader: store::Reader,
    handle: Option<JoinHandle<()>>,
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
    /// Opens the store that the configuration asks for. Also returns the key of the references that
    /// name its entries, if that outlives the daemon.
    pub fn open(config: &Config) -> Result<(Self, Option<ReferenceKey>)> {
        let Some(file) = &config.sessions.file else {
            return Ok((Self::Memory(Memory::new(MOST as usize)), None));
        };
        let (sessions, key) = store::Sessions::open(file, MOST.into(), entropy::seed())?;
        Ok((Self::File(Thread::start(sessions)?), Some(key)))
    }

    /// Returns the descriptor that is readable when there are outcomes.
    pub fn waker(&self) -> Option<&Waker> {
        match self {
            Self::Memory(_) => None,
            Self::File(thread) => Some(&thread.waker),
        }
    }

    /// Returns all sessions that have not ended, sorted by identity.
    pub fn list(&self, now: UnixTime) -> Result<Vec<control::Session>, store::Error> {
        let session = |handle: &Handle, identity: &Identity, usage: &Usage, ends: UnixTime| {
            control::Session {
                name: handle.to_string(),
                identity: identity.to_string(),
                age_seconds: now.0.saturating_sub(usage.since.0),
                established_seconds: usage.established.as_secs(),
                left_seconds: ends.0.saturating_sub(now.0),
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
        let mut waiting = self.queue.lock();
        let is_optional = matches!(
            operation,
            Operation::Add(_) | Operation::Read(..) | Operation::Take(..) | Operation::Charge(..)
        );
        if is_optional && waiting.operations.len() >= QUEUED {
            return;
        }
        waiting.operations.push(operation);
        self.queue.changed.notify_one();
    }

    fn poll(&mut self) -> Option<Outcome> {
        self.waker.heard();
        while let Ok(result) = self.results.try_recv() {
            match result {
                Ok(outcomes) => {
                    self.outcomes.extend(outcomes);
                    self.written = Some(Ok(()));
                }
                Err(why) => self.written = Some(Err(why)),
            }
        }
        self.outcomes.pop_front()
    }
}

/// What is queued is written before the daemon ends.
impl Drop for Thread {
    fn drop(&mut self) {
        self.queue.lock().ends = true;
        self.queue.changed.notify_one();
        if let Some(handle) = self.handle.take() {
            // A thread that panicked has already reported that.
            let _ = handle.join();
        }
    }
}

fn work(
    sessions: &mut store::Sessions,
    queue: &Queue,
    results: &Sender<Result<Vec<Outcome>, store::Error>>,
    waker: &Waker,
) {
    while let Some(operations) = queue.take() {
        let result = sessions.perform(&operations, config::today());
        if result.is_err() {
            // Sessions that are to end have to be tried again.
            let ends = |operation: &Operation| {
                matches!(operation, Operation::Remove(_) | Operation::Revoke(_))
            };
            let mut waiting = queue.lock();
            let again = operations.into_iter().filter(ends);
            let again: Vec<_> = again.take(QUEUED).collect();
            let later = std::mem::replace(&mut waiting.operations, again);
            waiting.operations.extend(later);
            let is_over = waiting.ends;
            drop(waiting);
            let _ = results.send(result);
            waker.wake();
            if is_over {
                return;
            }
            thread::sleep(std::time::Duration::from_millis(200));
            continue;
        }
        let _ = results.send(result);
        waker.wake();
    }
}
