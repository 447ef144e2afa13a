//! The end of an IKE SA that another one has replaced (RFC 7296 section 2.8.3).
//!
//! The end that initiated both SAs takes down the old one as soon as the new one is up:
//!
//! 1. It creates the other child SAs on the new SA. It sends nothing more on old child SAs with a
//!    successor, receives packets in flight on them for a drain time, and answers the peer's
//!    requests, but does not rekey.
//! 2. It deletes the SA. From then on at the latest, the peer sends on the new child SAs. It may
//!    have done so before, once a packet arrived on one of them.
//! 3. Both ends receive for a little longer, for packets that the other one sent before it saw the
//!    Delete or its answer.
//!
//! The other end cannot know if its last answer arrived, so it treats the old SA as valid until it
//! is deleted.

use crate::extension::delete;
use crate::sa::turn::{Context, Turn};
use crate::session::Session;
use crate::session::children::Age;
use crate::session::replacement::Leaving;
use crate::session::task::{Answer, Subject, Task, Then};
use std::time::Duration;
use wire::ike::Payload;

/// Maximum time for the new SA to create its additional child SAs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Deletion of the IKE SA, which another one has replaced.
pub(crate) struct Leave;

impl Task for Leave {
    fn subject(&self) -> Subject {
        Subject::Whole
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        vec![delete::ike_sa()]
    }

    fn conclude(self: Box<Self>, _: &Answer<'_>, _: &mut Session, _: &mut Turn<'_, '_>) -> Then {
        Then::Leave
    }
}

/// Marks the SA as replaced by another one, which will create all of its child SAs.
pub(crate) fn relieve(session: &mut Session, ctx: &Context<'_>) {
    session.replacement.leaving = Some(Leaving::At(ctx.now + PATIENCE));
    (session.lifetime.keys, session.lifetime.proof) = (Age::default(), Age::default());
    session.children.stop_ageing();
}

/// Schedules the end of the SA, as the other SA has all child SAs that it is going to have.
pub(crate) fn set_free(session: &mut Session, ctx: &Context<'_>) {
    // No packet is under way from a peer that has lost the SA.
    let drained = match session.liveness.is_doubtful {
        true => ctx.now,
        false => ctx.now + session.children.drain_time(&ctx.config.timers),
    };
    if let Some(Leaving::At(at)) = &mut session.replacement.leaving {
        *at = drained.min(*at);
    }
}

/// Deletes the SA once its drain time is over.
pub(crate) fn leave(session: &mut Session, turn: &mut Turn<'_, '_>) {
    if session
        .replacement
        .leaves_at()
        .is_some_and(|at| at <= turn.ctx.now)
    {
        session.replacement.leaving = Some(Leaving::Deleting);
        session.ask(Leave, turn);
    }
}
