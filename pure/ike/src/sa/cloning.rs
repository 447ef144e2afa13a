//! Clones of an IKE SA (RFC 7791). A clone is requested and answered like a successor, but exists
//! in parallel to the original.
//!
//! A clone has everything of the original except child SAs, grants and queued requests: the peer
//! and its authentication, the lifetime of that, the inner addresses, the paths of both ends and
//! the end that chooses them. Keys, SPIs, message IDs and windows are new.
//!
//! A clone that we requested is on trial for [`PATIENCE`]: it moves to the requested path, and
//! requests the child SAs of the original. The peer decides about the use of a clone that it
//! requested.
//!
//! A clone replaces nothing, so a request for one does not conflict with other exchanges, except
//! those that rekey or clone the IKE SA. During such an exchange it is refused, by both ends if two
//! cross.

use super::children::{Age, Children, lifetimes};
use super::established::Established;
use super::heir::Heir;
use super::pace::Pace;
use super::queue::Queue;
use super::rekey_ike::{IkeRekey, settle_heir};
use super::task::Task;
use super::unsure::Unsure;
use super::upkeep::Upkeep;
use super::{Arrived, Context, Core, Sa, State};
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::exchange::create_child::wanted_group;
use crate::exchange::{first_error, notify};
use crate::menu::groups_of;
use crate::misuse::CannotMove;
use crate::refusal::Refusal;
use model::{Instant, Path};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::ike::{Message, NotifyType};

/// Maximum time for a clone of ours to move, and to create all child SAs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Purpose of a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The peer requested it, for its own purpose.
    Theirs,
    /// Hand-over: move the traffic of the original to this path.
    HandOver(Path),
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

/// Requesting end.
impl Established {
    /// Returns `Ok` if we may clone the SA for a hand-over.
    pub(crate) fn may_hand_over(&self) -> Result<(), CannotMove> {
        if self.children.are_fixed() {
            return Err(CannotMove::Transport);
        }
        let mobike = self.mobike.as_ref().ok_or(CannotMove::NotAgreed)?;
        match (mobike.decides && self.contact.ours, self.clones) {
            (false, _) => Err(CannotMove::NotOurs),
            (true, false) => Err(CannotMove::NotCloned),
            (true, true) => Ok(()),
        }
    }

    /// Requests a clone that moves to another path and takes over the traffic of this SA.
    pub(crate) fn ask_for_clone(
        &mut self,
        to: Path,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> Result<(), CannotMove> {
        // "the initiator SHOULD NOT retry cloning an IKE SA until some of the existing SAs with the
        // responder are deleted" (section 5.3).
        if self.enough.is_some_and(|then| self.count(ctx) >= then) {
            return Err(CannotMove::Enough);
        }
        if self.queue.tasks().any(is_clone) {
            return Err(CannotMove::UnderWay);
        }
        let peer = core.peer(ctx.config).ok_or(CannotMove::NotUp)?;
        if let Some(group) = groups_of(peer).first() {
            self.ask_for_heir(*group, (false, Some(to)), core, ctx);
        }
        Ok(())
    }

    /// Evaluates the peer's answer.
    pub(super) fn conclude_clone(
        mut self: Box<Self>,
        (rekey, to): (IkeRekey, Path),
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        if let Some(error) = first_error(response) {
            let ours = core.peer(ctx.config).map_or_else(Vec::new, groups_of);
            let wanted = wanted_group(response).filter(|group| ours.contains(group));
            match (error, wanted) {
                (NotifyType::INVALID_KE_PAYLOAD, Some(group)) if !rekey.corrected => {
                    self.ask_for_heir(group, (true, Some(to)), core, ctx);
                }
                _ => self.note_no_clone(error, core, ctx),
            }
            self.send_next(core, ctx);
            return State::Established(self);
        }
        match settle_heir(rekey, response, core, ctx) {
            None => self.close(DownReason::NotOffered("clone of the IKE SA"), core, ctx),
            Some(heir) if heir.is_complete() => self.bear(heir, core, ctx),
            Some(heir) => self.follow_up(heir, response, core, ctx),
        }
    }

    /// Handles a refusal.
    pub(super) fn note_no_clone(
        &mut self,
        error: NotifyType,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        match error {
            NotifyType::TEMPORARY_FAILURE => self.note_busy(core, ctx),
            NotifyType::NO_ADDITIONAL_SAS => self.enough = Some(self.count(ctx)),
            _ => {}
        }
        ctx.refused(Some(core.name()), Refusal::CloneRefused(error));
    }

    /// Returns the number of IKE SAs and child SAs with the peer.
    fn count(&self, ctx: &Context<'_>) -> usize {
        1 + ctx.beside.sas + self.children.len() + ctx.beside.children
    }
}

/// Answering end.
impl Established {
    /// Answers a request for a clone.
    pub(super) fn answer_clone(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        if let Err((kind, why)) = self.admit_clone(ctx) {
            if let Some(why) = why {
                ctx.refused(Some(core.name()), why);
            }
            self.respond(vec![notify(kind, Vec::new())], arrived, core, ctx);
            return State::Established(self);
        }
        match self.agree_on_heir(request, Some(Purpose::Theirs), core, ctx) {
            Err(refusal) => self.answer_renewal(vec![refusal], arrived, core, ctx),
            Ok((heir, answer)) => {
                self.respond(answer, arrived, core, ctx);
                self.promise(heir, core, ctx)
            }
        }
    }

    fn admit_clone(&self, ctx: &Context<'_>) -> Result<(), (NotifyType, Option<Refusal>)> {
        if !self.clones {
            let why = Refusal::CloneNotAgreed;
            return Err((NotifyType::NO_ADDITIONAL_SAS, Some(why)));
        }
        if self.is_rekeying_ike() || self.queue.runs(is_clone) || self.promised.is_some() {
            return Err((NotifyType::TEMPORARY_FAILURE, None));
        }
        if ctx.beside.sas >= ctx.config.limits.clones {
            let why = Refusal::TooManyClones(ctx.beside.sas);
            return Err((NotifyType::NO_ADDITIONAL_SAS, Some(why)));
        }
        Ok(())
    }
}

/// Both ends.
impl Established {
    /// Installs a clone. This SA stays.
    pub(super) fn bear(
        mut self: Box<Self>,
        heir: Heir,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let mut next = heir.core(core, ctx);
        let (old, sa, peer) = (core.id, next.id, core.name());
        let purpose = heir.purpose;
        let mut clone = self.cloned(heir, core, ctx);
        ctx.pools.share(old, sa);
        ctx.out.attempts.cloned(&next);
        ctx.event(Event::IkeCloned { old, sa, peer });
        clone.tell_window(&mut next, ctx.config);
        match purpose {
            Some(Purpose::HandOver(to)) => {
                let until = ctx.now + PATIENCE;
                let from = Box::new(next.path);
                clone.aside = Some(Aside::Ours { until, from });
                clone.inherit_children(self.current_names());
                // Cannot fail, as this SA may move.
                let _ = clone.move_to(to, &mut next, ctx);
                clone.tend(&mut next, ctx);
            }
            Some(Purpose::Theirs) | None => clone.send_next(&mut next, ctx),
        }
        let state = State::Established(clone);
        ctx.out.heirs.push(Sa { core: next, state });
        self.send_next(core, ctx);
        State::Established(self)
    }

    /// Creates the state of a clone from that of this SA. "peers MUST NOT transfer existing Child
    /// SAs" (section 5.2).
    fn cloned(&self, heir: Heir, core: &Core, ctx: &mut Context<'_>) -> Box<Self> {
        let lifetime = lifetimes(core, ctx.config).ike;
        let mut mobike = self.mobike.clone();
        if let Some(mobike) = &mut mobike {
            // A path that is being verified has to be verified on the clone too.
            mobike.pending |= self.queue.runs(|task| matches!(task, Task::Move(_)));
            mobike.silent = false;
            mobike.count_anew();
        }
        Box::new(Self {
            keys: heir.keys(&self.keys),
            mobike,
            following: None,
            pace: Pace::default(),
            home: self.home,
            heeds_from: self.heeds_from,
            hint_pause: self.hint_pause,
            is_doubtful: false,
            contact: self.contact.clone(),
            addresses: self.addresses,
            chain: self.chain.clone(),
            believed: self.believed,
            children: Children::default(),
            upkeep: Upkeep::default(),
            unsure: Unsure::default(),
            openings: Vec::new(),
            forgotten: 0,
            follows: Some(core.id),
            age: Age::begin(lifetime, ctx.config, ctx.rng, ctx.now),
            proof: self.proof,
            clones: self.clones,
            resources: self.resources,
            enough: None,
            aside: Some(Aside::Theirs),
            leaving: None,
            has_heir: false,
            willing: self.willing,
            private: self.private,
            queue: Queue::default(),
            promised: None,
            heard: ctx.now,
            grants: BTreeSet::new(),
            offered: Vec::new(),
        })
    }
}

/// The clone.
impl Established {
    /// Returns true if either end may clone the SA.
    pub(crate) const fn may_be_cloned(&self) -> bool {
        self.clones
    }

    /// Returns true if this is a clone that has not replaced its original.
    pub(crate) const fn is_aside(&self) -> bool {
        self.aside.is_some()
    }

    /// Returns true if this is such a clone, requested by us.
    pub(crate) const fn is_on_trial(&self) -> bool {
        matches!(self.aside, Some(Aside::Ours { .. }))
    }

    /// Returns true if the clone has the requested path and all child SAs.
    pub(crate) fn is_in_place(&self) -> bool {
        let moves = |task: &Task| matches!(task, Task::Move(_));
        !self.is_to_move() && !self.queue.runs(moves) && self.has_inherited()
    }

    /// Makes the clone the replacement of its original.
    pub(crate) fn settle(&mut self, core: &Core, ctx: &mut Context<'_>) {
        self.aside = None;
        if let Some(old) = self.follows {
            let (sa, peer) = (core.id, core.name());
            ctx.out.attempts.hand_over(old, core);
            ctx.event(Event::IkeHandedOver { old, sa, peer });
        }
        self.tell_addresses(core, ctx);
    }

    pub(super) const fn tried_until(&self) -> Option<Instant> {
        match self.aside {
            Some(Aside::Ours { until, .. }) => Some(until),
            Some(Aside::Theirs) | None => None,
        }
    }

    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        self.tried_until().is_some_and(|until| until <= now)
    }

    /// Closes a clone on the path of the original, because the new path may be the cause.
    pub(super) fn turn_back(
        self: Box<Self>,
        why: DownReason,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        if let Some(Aside::Ours { from, .. }) = &self.aside {
            core.take(**from, ctx);
        }
        self.close(why, core, ctx)
    }

    /// Reports a failed hand-over when the clone ends.
    pub(super) fn note_in_vain(&self, why: &DownReason, core: &Core, ctx: &mut Context<'_>) {
        if self.is_on_trial() {
            let why = Box::new(why.clone());
            ctx.refused(Some(core.name()), Refusal::NotHandedOver(why));
        }
    }

    /// Returns the number of child SAs, including those that are being replaced or deleted.
    pub(crate) fn count_children(&self) -> usize {
        self.children.len()
    }
}

/// Returns true if a task is about a clone.
fn is_clone(task: &Task) -> bool {
    matches!(task, Task::RekeyIke(_) | Task::FollowUp(_)) && !task.renews_ike()
}
