//! Sessions that are resumed without a full key exchange (DESIGN section 8): the entry that a
//! gateway caches of an IKE SA, the lifetimes of entries, and the store that has them.
//!
//! An [`Entry`] is named by a random [`Handle`]. A client presents the handle together with a MAC
//! ([`Reference`]), so that a made-up one costs one MAC and no access to the store. A [`Strategy`]
//! decides how long an entry may be used, by the counters in the entry ([`Usage`]). They run from
//! the last full authentication, and the entry of a resumed IKE SA inherits them.
//!
//! A [`Ticket`] is a reference, or has the entry itself, encrypted with one of the
//! [`TicketKeys`]. Of the latter, the store has only those that are void.
//!
//! The store is a [`Store`], whose answers may take time and may not come. Its one promise: an
//! entry is taken at most once. [`Memory`] is the store of a gateway whose sessions need not
//! survive the process. A store outside the process has entries that a [`Sealer`] has encrypted.

mod entry;
mod memory;
mod reference;
mod sealed;
mod store;
mod strategy;
mod ticket;
mod voided;

pub use entry::{Entry, Fingerprint, Keys, MOST_OCTETS, Proof, Unreadable, Way};
pub use memory::Memory;
pub use reference::{Handle, Reference, ReferenceKey};
pub use sealed::{Sealer, StoreKey};
pub use store::{Kept, Operation, OperationId, Outcome, Store};
pub use strategy::{Spent, Strategy, Usage};
pub use ticket::{LONGEST, Ticket, TicketKeys};
