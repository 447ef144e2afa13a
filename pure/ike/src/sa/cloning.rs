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
use super::pace::Pace;
use super::queue::Queue;
use super::rekey_ike::{IkeRekey, conclude_successor};
use super::successor::Successor;
use super::task::Task;
use super::unsure::Unsure;
use super::upkeep::Upkeep;
use super::{Arrived, Context, Sa, State, Turn};
use crate::allowed_suites::groups_of;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::exchange::create_child::wanted_group;
use crate::exchange::{first_error, notify};
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
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), CannotMove> {
        // "the initiator SHOULD NOT retry cloning an IKE SA until some of the existing SAs with the
        // responder are deleted" (section 5.3).
        if self.enough.is_some_and(|then| self.count(turn.ctx) >= then) {
            return Err(CannotMove::Enough);
        }
        if self.queue.tasks().any(is_clone) {
            return Err(CannotMove::UnderWay);
        }
        let peer = turn.core.peer(turn.ctx.config).ok_or(CannotMove::NotUp)?;
        if let Some(group) = groups_of(peer).first() {
            self.request_successor(*group, false, Some(to), turn);
        }
        Ok(())
    }

    /// Evaluates the peer's answer.
    pub(super) fn conclude_clone(
        mut self: Box<Self>,
        rekey: IkeRekey,
        to: Path,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        if let Some(error) = first_error(response) {
            let ours = turn
                .core
                .peer(turn.ctx.config)
                .map_or_else(Vec::new, groups_of);
            let wanted = wanted_group(response).filter(|group| ours.contains(group));
            match (error, wanted) {
                (NotifyType::INVALID_KE_PAYLOAD, Some(group)) if !rekey.corrected => {
                    self.request_successor(group, true, Some(to), turn);
                }
                _ => self.note_no_clone(error, turn),
            }
            self.send_next(turn);
            return State::Established(self);
        }
        match conclude_successor(rekey, response, turn) {
            None => self.close(DownReason::NotOffered("clone of the IKE SA"), turn),
            Some(successor) if successor.is_complete() => self.bear(successor, turn),
            Some(successor) => self.follow_up(successor, response, turn),
        }
    }

    /// Handles a refusal.
    pub(super) fn note_no_clone(&mut self, error: NotifyType, turn: &mut Turn<'_, '_>) {
        match error {
            NotifyType::TEMPORARY_FAILURE => self.note_busy(turn),
            NotifyType::NO_ADDITIONAL_SAS => self.enough = Some(self.count(turn.ctx)),
            _ => {}
        }
        turn.ctx
            .refused(Some(turn.core.name()), Refusal::CloneRefused(error));
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
        turn: &mut Turn<'_, '_>,
    ) -> State {
        if let Err((kind, why)) = self.admit_clone(turn.ctx) {
            if let Some(why) = why {
                turn.ctx.refused(Some(turn.core.name()), why);
            }
            self.respond(vec![notify(kind, Vec::new())], arrived, turn);
            return State::Established(self);
        }
        match self.agree_on_successor(request, Some(Purpose::Theirs), turn) {
            Err(refusal) => self.answer_renewal(vec![refusal], arrived, turn),
            Ok((successor, answer)) => {
                self.respond(answer, arrived, turn);
                self.promise(successor, turn)
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
        successor: Successor,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let mut next = successor.core(turn);
        let (old, sa, peer) = (turn.core.id, next.id, turn.core.name());
        let purpose = successor.purpose;
        let mut clone = self.cloned(successor, turn);
        turn.ctx.pools.share(old, sa);
        turn.ctx.out.attempts.cloned(&next);
        turn.ctx.event(Event::IkeCloned { old, sa, peer });
        clone.tell_window(&mut next, turn.ctx.config);
        match purpose {
            Some(Purpose::HandOver(to)) => {
                let until = turn.ctx.now + PATIENCE;
                let from = Box::new(next.path);
                clone.aside = Some(Aside::Ours { until, from });
                clone.inherit_children(self.current_names());
                // Cannot fail, as this SA may move.
                let _ = clone.move_to(to, &mut turn.of(&mut next));
                clone.maintain(&mut turn.of(&mut next));
            }
            Some(Purpose::Theirs) | None => clone.send_next(&mut turn.of(&mut next)),
        }
        let state = State::Established(clone);
        turn.ctx.out.successors.push(Sa { core: next, state });
        self.send_next(turn);
        State::Established(self)
    }

    /// Creates the state of a clone from that of this SA. "peers MUST NOT transfer existing Child
    /// SAs" (section 5.2).
    fn cloned(&self, successor: Successor, turn: &mut Turn<'_, '_>) -> Box<Self> {
        let lifetime = lifetimes(turn.core, turn.ctx.config).ike;
        let mut mobike = self.mobike.clone();
        if let Some(mobike) = &mut mobike {
            // A path that is being verified has to be verified on the clone too.
            mobike.pending |= self.queue.runs(|task| matches!(task, Task::Move(_)));
            mobike.silent = false;
            mobike.count_anew();
        }
        Box::new(Self {
            keys: successor.keys(&self.keys),
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
            follows: Some(turn.core.id),
            age: Age::begin(lifetime, turn.ctx.config, turn.ctx.rng, turn.ctx.now),
            proof: self.proof,
            clones: self.clones,
            resources: self.resources,
            enough: None,
            aside: Some(Aside::Theirs),
            leaving: None,
            has_successor: false,
            willing: self.willing,
            private: self.private,
            queue: Queue::default(),
            promised: None,
            heard: turn.ctx.now,
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
    pub(crate) fn conclude_trial(&mut self, turn: &mut Turn<'_, '_>) {
        self.aside = None;
        if let Some(old) = self.follows {
            let (sa, peer) = (turn.core.id, turn.core.name());
            turn.ctx.out.attempts.hand_over(old, turn.core);
            turn.ctx.event(Event::IkeHandedOver { old, sa, peer });
        }
        self.tell_addresses(turn);
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
    pub(super) fn turn_back(self: Box<Self>, why: DownReason, turn: &mut Turn<'_, '_>) -> State {
        if let Some(Aside::Ours { from, .. }) = &self.aside {
            turn.core.switch_to(**from, turn.ctx);
        }
        self.close(why, turn)
    }

    /// Reports a failed hand-over when the clone ends.
    pub(super) fn note_in_vain(&self, why: &DownReason, turn: &mut Turn<'_, '_>) {
        if self.is_on_trial() {
            let why = Box::new(why.clone());
            turn.ctx
                .refused(Some(turn.core.name()), Refusal::NotHandedOver(why));
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
