//! IKE SAs that replace each other: by a rekey, a re-authentication, or a clone.

use super::successor::Successor;
use model::{IkeSaId, Instant, Path};

/// The part of an IKE SA in a replacement, at either side of it.
#[derive(Default)]
pub(crate) struct Replacement {
    /// A successor that the peer requested and that has not replaced this SA yet. Boxed because it
    /// is rare.
    pub(crate) promised: Option<Box<Successor>>,
    /// The IKE SA that this one replaces. The child SAs of this one replace those of the other.
    pub(crate) follows: Option<IkeSaId>,
    /// State of a clone that has not replaced its original.
    pub(crate) aside: Option<Aside>,
    /// Number of SAs at the time when the peer refused a clone as one too many.
    pub(crate) enough: Option<usize>,
    /// Set if another SA, which we initiated, has replaced this one.
    pub(crate) leaving: Option<Leaving>,
    /// True if the child SAs are rekeyed as soon as this SA has been.
    pub(crate) renews_children: bool,
    /// True if another SA, which the peer initiated, replaces this one as soon as the peer knows.
    pub(crate) has_successor: bool,
}

/// Stage of an SA that another one has replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Packets and exchanges in flight are awaited until this time.
    At(Instant),
    /// Its Delete is queued, or awaits an answer.
    Deleting,
}

/// State of a clone that has not replaced its original.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Aside {
    /// The peer requested the clone.
    Theirs,
    /// We requested the clone.
    Ours {
        /// Time at which the clone is given up.
        until: Instant,
        /// Path of the original, which is known to work.
        from: Box<Path>,
    },
}

impl Replacement {
    /// Returns true if this is a clone of ours that has not replaced its original.
    pub(crate) const fn is_on_trial(&self) -> bool {
        matches!(self.aside, Some(Aside::Ours { .. }))
    }

    /// Returns the time at which such a clone is given up.
    pub(crate) const fn tried_until(&self) -> Option<Instant> {
        match self.aside {
            Some(Aside::Ours { until, .. }) => Some(until),
            Some(Aside::Theirs) | None => None,
        }
    }

    /// Returns the time at which the Delete is sent.
    pub(crate) const fn leaves_at(&self) -> Option<Instant> {
        match self.leaving {
            Some(Leaving::At(at)) => Some(at),
            Some(Leaving::Deleting) | None => None,
        }
    }

    /// Returns true if its Delete waits to be sent, or for its answer.
    pub(crate) fn is_deleting(&self) -> bool {
        self.leaving == Some(Leaving::Deleting)
    }
}
