//! An authentication that gets old, and an IKE SA whose place another has taken (RFC 7296 section
//! 2.8.3).
//!
//! Who began both lets the old one leave as soon as the new one is up:
//!
//! 1. it makes the new one's other children. It sends nothing more on the old children that have a
//!    successor, receives for a time of draining what is under way
//!    on them, and answers whatever the peer asks, but makes no new keys;
//! 2. it deletes the SA. The peer sends on the new child from then on, if it has not done so before,
//!    when something came on that;
//! 3. both receive for a little longer what the other had sent before it saw the Delete, or its
//!    answer.
//!
//! The other end cannot know whether its last answer arrived, so to it the old SA is as good as ever
//! until it is deleted.

use super::children::{Age, lifetimes};
use super::closing::Lingering;
use super::established::Established;
use super::task::Task;
use super::{Context, Core, State};
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::extension::reauth;
use model::{ChildSaId, Instant};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::ike::Message;

/// After a failure it is tried again when this part of the time that is left has passed.
const PART: u32 = 8;

/// But not earlier than this.
const PAUSE: Duration = Duration::from_secs(10);

/// So long the other SA may take to get children of its own beside the first.
const PATIENCE: Duration = Duration::from_secs(60);

/// How far an SA is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Until then what is under way arrives.
    At(Instant),
    /// Its Delete waits to be sent, or for its answer.
    Deleting,
}

/// The age of an authentication made now, of which the responder may have said how long it counts.
/// Only who began repeats it.
pub(super) fn age(
    theirs: Option<Duration>,
    initiator: bool,
    core: &Core,
    ctx: &mut Context<'_>,
) -> Age {
    let ours = lifetimes(core, ctx.config).reauth;
    let limits = theirs.into_iter().chain((!ours.is_zero()).then_some(ours));
    let lifetime = limits.min().unwrap_or_default();
    let mut age = Age::begin(lifetime, ctx.config, ctx.rng, ctx.now);
    age.renew_at.take_if(|_| !initiator);
    age
}

impl Established {
    /// Another SA has its place, and will have all of its children.
    pub(crate) fn relieve(&mut self, ctx: &Context<'_>) {
        self.leaving = Some(Leaving::At(ctx.now + PATIENCE));
        (self.age, self.proof) = (Age::default(), Age::default());
        self.children.stop_ageing();
    }

    /// The other SA has all of its children that it is going to have.
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

    /// Whether another SA has its place.
    pub(crate) const fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Returns true if its Delete waits to be sent, or for its answer.
    pub(super) fn is_deleting(&self) -> bool {
        self.leaving == Some(Leaving::Deleting)
    }

    /// Whether the peer gave a sign of life since it is up.
    pub(crate) fn was_heard(&self) -> bool {
        self.contact.since < self.heard
    }

    /// The child of a name that has no newer one.
    pub(crate) fn current_child(&self, name: Option<&str>) -> Option<ChildSaId> {
        self.children.current(name)
    }

    /// The names of those that have no newer one.
    pub(crate) fn current_names(&self) -> BTreeSet<Option<String>> {
        let current = self.children.all_current();
        current.map(|child| child.name.clone()).collect()
    }

    /// Asks for another SA if it is time for one; `true` if it is too late.
    pub(super) fn is_unproved(&mut self, core: &Core, ctx: &mut Context<'_>) -> bool {
        let past = |at: Option<Instant>| at.is_some_and(|at| at <= ctx.now);
        if past(self.proof.over_at) {
            return true;
        }
        if past(self.proof.renew_at) {
            let left = self.proof.over_at.map_or(PAUSE, |over| over - ctx.now);
            self.proof.renew_at = Some(ctx.now + (left / PART).max(PAUSE));
            ctx.out.unproved.push(core.id);
        }
        false
    }

    /// The responder says how long it counts the authentication from now on (RFC 4478).
    pub(super) fn note_lifetime(&mut self, request: &Message, core: &Core, ctx: &mut Context<'_>) {
        let theirs = reauth::announced(request).filter(|_| self.contact.ours);
        if theirs.is_some() && !self.is_leaving() {
            let sooner = |a: Option<Instant>, b: Option<Instant>| a.into_iter().chain(b).min();
            let new = age(theirs, true, core, ctx);
            self.proof.renew_at = sooner(self.proof.renew_at, new.renew_at);
            self.proof.over_at = sooner(self.proof.over_at, new.over_at);
        }
    }

    /// Deletes the SA once nothing that we know of is under way on it.
    pub(super) fn leave(&mut self, core: &mut Core, ctx: &mut Context<'_>) {
        if self.leaves_at().is_some_and(|at| at <= ctx.now) {
            self.leaving = Some(Leaving::Deleting);
            self.ask(Task::Leave, core, ctx);
        }
    }

    pub(super) const fn leaves_at(&self) -> Option<Instant> {
        match self.leaving {
            Some(Leaving::At(at)) => Some(at),
            Some(Leaving::Deleting) | None => None,
        }
    }

    /// The peer has seen our Delete.
    pub(super) fn left(mut self: Box<Self>, ctx: &Context<'_>) -> State {
        let children = std::mem::take(&mut self.children);
        State::Lingering(Lingering::replaced(children, ctx))
    }

    /// The peer has deleted it, as it is down, or because another SA has its place.
    pub(super) fn deleted(self: Box<Self>, core: &mut Core, ctx: &mut Context<'_>) -> State {
        if !self.has_heir || !ctx.is_acquainted() {
            return self.end(DownReason::ClosedByPeer, core, ctx);
        }
        for child in self.children.ids() {
            ctx.event(Event::ChildRetired { child });
        }
        core.requests.abandon();
        self.left(ctx)
    }
}
