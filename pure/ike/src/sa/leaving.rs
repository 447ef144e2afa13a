//! The lifetime of an authentication, and the end of an IKE SA that another one has replaced (RFC
//! 7296 section 2.8.3).
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

use super::children::{Age, lifetimes};
use super::closing::Lingering;
use super::established::Established;
use super::task::Task;
use super::{Context, State, Turn};
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::extension::reauth;
use model::{ChildSaId, Instant};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::ike::Message;

/// After a failure, re-authentication is tried again when this part of the remaining time has
/// passed.
const PART: u32 = 8;

/// Minimum delay before that.
const PAUSE: Duration = Duration::from_secs(10);

/// Maximum time for the new SA to create its additional child SAs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stage of an SA that another one has replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Packets and exchanges in flight are awaited until this time.
    At(Instant),
    /// Its Delete is queued, or awaits an answer.
    Deleting,
}

/// Starts the lifetime of a new authentication, which the responder may have limited. Only the
/// initiator renews it.
pub(super) fn age(theirs: Option<Duration>, initiator: bool, turn: &mut Turn<'_, '_>) -> Age {
    let ours = lifetimes(turn.core, turn.ctx.config).reauth;
    let limits = theirs.into_iter().chain((!ours.is_zero()).then_some(ours));
    let lifetime = limits.min().unwrap_or_default();
    let mut age = Age::begin(lifetime, turn.ctx.config, turn.ctx.rng, turn.ctx.now);
    age.renew_at.take_if(|_| !initiator);
    age
}

impl Established {
    /// Marks the SA as replaced by another one, which will create all of its child SAs.
    pub(crate) fn relieve(&mut self, ctx: &Context<'_>) {
        self.leaving = Some(Leaving::At(ctx.now + PATIENCE));
        (self.age, self.proof) = (Age::default(), Age::default());
        self.children.stop_ageing();
    }

    /// Schedules the end of the SA, as the other SA has all child SAs that it is going to have.
    pub(crate) fn set_free(&mut self, ctx: &Context<'_>) {
        // No packet is under way from a peer that has lost the SA.
        let drained = match self.is_doubtful {
            true => ctx.now,
            false => ctx.now + self.children.drain_time(&ctx.config.timers),
        };
        if let Some(Leaving::At(at)) = &mut self.leaving {
            *at = drained.min(*at);
        }
    }

    /// Returns true if another SA has replaced this one.
    pub(crate) const fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Returns true if its Delete waits to be sent, or for its answer.
    pub(super) fn is_deleting(&self) -> bool {
        self.leaving == Some(Leaving::Deleting)
    }

    /// Returns true if a packet of the peer arrived after the SA came up.
    pub(crate) fn was_heard(&self) -> bool {
        self.contact.since < self.heard
    }

    /// Returns the child SA of a name that has no successor.
    pub(crate) fn current_child(&self, name: Option<&str>) -> Option<ChildSaId> {
        self.children.current(name)
    }

    /// Returns the names of the child SAs that have no successor.
    pub(crate) fn current_names(&self) -> BTreeSet<Option<String>> {
        let current = self.children.all_current();
        current.map(|child| child.name.clone()).collect()
    }

    /// Requests re-authentication if it is due. Returns true if the authentication has expired.
    pub(super) fn is_unproved(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let past = |at: Option<Instant>| at.is_some_and(|at| at <= turn.ctx.now);
        if past(self.proof.over_at) {
            return true;
        }
        if past(self.proof.renew_at) {
            let next = |over: Instant| turn.ctx.now + ((over - turn.ctx.now) / PART).max(PAUSE);
            self.proof.renew_at = self.proof.over_at.map(next);
            turn.ctx.out.unproved.push(turn.core.id);
        }
        false
    }

    /// Handles a responder's announcement that limits the lifetime of the authentication (RFC
    /// 4478).
    pub(super) fn note_lifetime(&mut self, request: &Message, turn: &mut Turn<'_, '_>) {
        let theirs = reauth::announced(request).filter(|_| self.contact.ours);
        if theirs.is_some() && !self.is_leaving() {
            let sooner = |a: Option<Instant>, b: Option<Instant>| a.into_iter().chain(b).min();
            let new = age(theirs, true, turn);
            self.proof.renew_at = sooner(self.proof.renew_at, new.renew_at);
            self.proof.over_at = sooner(self.proof.over_at, new.over_at);
        }
    }

    /// Deletes the SA once its drain time is over.
    pub(super) fn leave(&mut self, turn: &mut Turn<'_, '_>) {
        if self.leaves_at().is_some_and(|at| at <= turn.ctx.now) {
            self.leaving = Some(Leaving::Deleting);
            self.ask(Task::Leave, turn);
        }
    }

    pub(super) const fn leaves_at(&self) -> Option<Instant> {
        match self.leaving {
            Some(Leaving::At(at)) => Some(at),
            Some(Leaving::Deleting) | None => None,
        }
    }

    /// Ends the SA, as the peer has answered our Delete.
    pub(super) fn left(mut self: Box<Self>, ctx: &Context<'_>) -> State {
        let children = std::mem::take(&mut self.children);
        State::Lingering(Lingering::replaced(children, ctx))
    }

    /// Ends the SA, as the peer has deleted it, on its own or because another SA has replaced it.
    pub(super) fn deleted(self: Box<Self>, turn: &mut Turn<'_, '_>) -> State {
        if !self.has_successor || !turn.ctx.is_acquainted() {
            return self.end(DownReason::ClosedByPeer, turn);
        }
        for child in self.children.ids() {
            turn.ctx.event(Event::ChildRetired { child });
        }
        turn.core.requests.abandon();
        self.left(turn.ctx)
    }
}
