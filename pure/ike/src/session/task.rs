//! Our requests on an IKE SA that is up, one task each.

use super::Session;
use super::child_request::ChildRequest;
use super::live_paths::Apart;
use super::successor::Successor;
use crate::config::Timers;
use crate::down_reason::DownReason;
use crate::sa::core::Core;
use crate::sa::turn::Turn;
use model::{ChildSaId, CsaId, Path};
use std::any::Any;
use std::time::Duration;
use wire::ike::{ExchangeType, Message, Payload};

/// A request: what it contains, and what its answer leads to. Each concern implements this for a
/// type of its own. `Send`, because an engine may move to another thread.
pub(crate) trait Task: Any + Send {
    /// Returns the subject, which determines the tasks that may be outstanding at the same time.
    fn subject(&self) -> Subject {
        Subject::Nothing
    }

    fn exchange(&self) -> ExchangeType {
        ExchangeType::INFORMATIONAL
    }

    fn payloads(&self, session: &Session, turn: &mut Turn<'_, '_>) -> Vec<Payload>;

    /// Returns the time after which the request is given up, and the peer is considered gone.
    fn allowed(&self, _: &Session, timers: &Timers) -> Duration {
        timers.give_up
    }

    /// Returns the path on which the request is sent.
    fn path(&self, _: &Session, core: &Core) -> Path {
        self.apart().map_or(core.path, |apart| apart.path)
    }

    /// Returns the own path of a request that is about another path than that of the IKE SA.
    fn apart(&self) -> Option<&Apart> {
        None
    }

    /// Returns the same mutably.
    fn apart_mut(&mut self) -> Option<&mut Apart> {
        None
    }

    /// Returns true if a queued task is no longer necessary.
    fn is_moot(&self, _: &Session) -> bool {
        false
    }

    /// Returns true if the task is meaningless under new keys of the IKE SA.
    fn ends_with_keys(&self) -> bool {
        false
    }

    /// Returns true if the task reports its refusal by the peer.
    fn tells_refusal(&self) -> bool {
        false
    }

    /// Returns true if the task moves the SA to another path, or checks the path of the peer.
    fn moves(&self) -> bool {
        false
    }

    /// Returns true if the task measures a path, and is not retransmitted for a while.
    fn measures(&self) -> bool {
        false
    }

    /// Returns true if the answer shows our address as the peer sees it.
    fn shows_our_address(&self) -> bool {
        false
    }

    /// Returns the IKE SA that the task creates.
    fn makes(&self) -> Option<Makes> {
        None
    }

    /// Returns the child SA that the task creates.
    fn wants(&self) -> Option<Wanted<'_>> {
        None
    }

    /// Returns the request mutably, if it is for a child SA.
    fn child_mut(&mut self) -> Option<&mut ChildRequest> {
        None
    }

    /// Evaluates the answer. Without an implementation, it only shows that the peer is alive.
    fn conclude(self: Box<Self>, _: &Answer<'_>, _: &mut Session, _: &mut Turn<'_, '_>) -> Then {
        Then::Stay
    }
}

/// The subject of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The IKE SA as a whole: its keys, its path or its end.
    Whole,
    /// A child SA.
    Child(ChildSaId),
    /// A child SA that does not exist yet. The existing ones determine its identity when it is
    /// requested.
    NewChild,
    /// The keys of a composite SA, for a licensed node.
    Csa(CsaId),
    /// Our neighbours.
    Neighbours,
    /// No subject: the task excludes no other.
    Nothing,
}

impl Subject {
    /// Returns true if two tasks must not be outstanding together.
    pub(super) fn excludes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Whole, _) | (_, Self::Whole) => true,
            (Self::Nothing, _) | (_, Self::Nothing) => false,
            (Self::Child(_) | Self::NewChild | Self::Csa(_) | Self::Neighbours, _) => self == other,
        }
    }
}

/// An IKE SA that a task creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makes {
    /// One that replaces this one.
    Successor,
    /// One that exists in parallel.
    Clone,
}

/// The child SA that a task creates.
pub(crate) struct Wanted<'t> {
    pub(crate) request: &'t ChildRequest,
    /// The child SA to replace.
    pub(crate) old: Option<ChildSaId>,
    pub(crate) name: Option<&'t str>,
}

impl Wanted<'_> {
    /// Returns true if this is a new child SA with a name, or the replacement of `old`.
    pub(crate) fn is(&self, old: Option<ChildSaId>, name: Option<&str>) -> bool {
        self.old == old && (old.is_some() || self.name == name)
    }
}

/// The answer to a request.
pub(crate) struct Answer<'a> {
    pub(crate) message: &'a Message,
    /// The path on which it arrived.
    pub(crate) path: Path,
}

/// What the dispatch does after a request or an answer.
pub(crate) enum Then {
    Stay,
    /// Deletes the SA at both ends.
    Close(DownReason),
    /// Ends the SA, as the peer knows that it does.
    End(DownReason),
    /// Ends the SA, which another one has replaced, as the peer has answered our Delete.
    Leave,
    /// Sends a request ahead of all others.
    Send(Box<dyn Task>),
    /// Lets another IKE SA replace this one, or exist beside it.
    Succeed(Box<Succession>),
}

/// The successors that both ends know of.
#[derive(Default)]
pub(crate) struct Succession {
    /// The successor that stays. A successor of the peer's may have to wait.
    pub(crate) stays: Option<Successor>,
    /// The successor that the end that requested it deletes.
    pub(crate) lost: Option<Successor>,
}

impl Then {
    /// Lets a successor replace the SA.
    pub(crate) fn succeed(successor: Successor) -> Self {
        Self::Succeed(Box::new(Succession {
            stays: Some(successor),
            lost: None,
        }))
    }
}

impl From<Result<(), DownReason>> for Then {
    fn from(concluded: Result<(), DownReason>) -> Self {
        concluded.map_or_else(Self::Close, |()| Self::Stay)
    }
}
