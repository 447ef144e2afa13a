//! The store of a gateway's entries, as its users see it.
//!
//! An operation takes effect as a whole or not at all. Its outcome may come late or never: a file
//! system stalls, a server is gone. The user waits for a bounded time and then does without, so an
//! outcome that is not known counts as a refusal: an entry whose [`Operation::Take`] has no outcome
//! is spent.

use crate::{Entry, Handle, Ticket, TicketKeys, Usage};
use crypto::UnixTime;
use model::Identity;

/// Number of an operation that has an outcome, chosen by its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u64);

/// An entry with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub handle: Handle,
    /// The entry.
    pub entry: Entry,
}

/// A request to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Adds an entry. Without room, or without an outcome, the entry is not there later.
    Add(Box<Kept>),
    /// Reads the entry of a ticket. [`Outcome::Read`] follows.
    Read(OperationId, Ticket),
    /// Takes the entry of a ticket out, or voids a ticket by value. [`Outcome::Taken`] follows. Of
    /// several takes of one entry, at most one finds it.
    Take(OperationId, Ticket),
    /// Replaces the usage of entries. An entry that is gone stays so.
    Charge(Vec<(Handle, Usage)>),
    /// Removes an entry.
    Remove(Handle),
    /// Voids a ticket by value that would have ended at this time.
    Void(Handle, UnixTime),
    /// Removes all entries of an identity, or of everybody, and voids their tickets by value.
    Revoke(Option<Identity>),
    /// Keeps the keys of tickets by value, in place of earlier ones.
    Keep(TicketKeys),
}

/// The outcome of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The entry, if the store has it.
    Read(OperationId, Option<Box<Entry>>),
    /// True if the entry was there, and is spent now.
    Taken(OperationId, bool),
}

/// A store of entries.
pub trait Store {
    /// Begins an operation.
    fn submit(&mut self, operation: Operation, now: UnixTime);

    /// Returns the next outcome.
    fn poll(&mut self) -> Option<Outcome>;
}
