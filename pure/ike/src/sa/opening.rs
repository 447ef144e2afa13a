//! A child SA that the peer requested, before all of its key exchanges have taken place (RFC 9370
//! section 2.2.4).
//!
//! It is no child SA yet: nothing is received on it, and nothing has to be deleted if it fails.
//! There is at most one for each child SA of the configuration; a newer request replaces it. It is
//! dropped if the peer does not continue.
//!
//! Both ends may request the same child SA at once. The nonces of CREATE_CHILD_SA decide as usual
//! (RFC 7296 section 2.8.1), but earlier: the end whose request has the lowest of the four does not
//! continue. An end that continues, or may have to, refuses a child SA that would be complete at
//! once, because that one would be deleted before its own is complete.

use super::child_request::ChildRequest;
use super::children::Life;
use super::established::Established;
use super::task::Task;
use super::{Context, Turn};
use crate::child::Agreed;
use crate::down_reason::DownReason;
use crate::exchange::{first_error, notify};
use crate::extension::followup::{self, MOST_FORGOTTEN, Series};
use crate::refusal::Refusal;
use model::{ChildSaId, Instant};
use wire::ike::{Message, NotifyType, Payload};

pub(crate) struct Opening {
    /// The child SA to replace.
    old: Option<ChildSaId>,
    agreed: Agreed,
    series: Series,
    /// The lower nonce of its request and our answer.
    lower_nonce: Vec<u8>,
    /// Time at which it is dropped.
    until: Instant,
}

impl Opening {
    /// Returns the name for the peer: our inbound SPI.
    fn name(&self) -> [u8; 4] {
        self.agreed.spi.0.to_be_bytes()
    }

    fn link(&self) -> Option<Payload> {
        self.series.link(&self.name())
    }
}

impl Established {
    /// Answers a request for a child SA that both ends agree on. The child SA is complete now, or
    /// after the follow-up key exchanges. `payloads` are those of the answer.
    pub(super) fn open(
        &mut self,
        old: Option<ChildSaId>,
        mut payloads: Vec<Payload>,
        agreed: Agreed,
        lower_nonce: Vec<u8>,
        turn: &mut Turn<'_, '_>,
    ) -> Vec<Payload> {
        let opening = Opening {
            old,
            series: Series::new(agreed.kems()),
            agreed,
            lower_nonce,
            until: turn.ctx.now + turn.ctx.config.timers.follow_up,
        };
        if self.goes_before(&opening) {
            return vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
        }
        self.close_opening(opening.agreed.name.as_deref());
        payloads.extend(opening.link());
        self.advance(opening, turn);
        payloads
    }

    /// Answers the next key exchange for a child SA. Returns `None` if the request names none.
    pub(super) fn answer_opening(
        &mut self,
        request: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> Option<Vec<Payload>> {
        let named = |opening: &Opening| followup::is_for(request, &opening.name());
        let mut opening = self.openings.remove(self.openings.iter().position(named)?);
        let answered = match () {
            () if !self.is_wanted(&opening, turn) => Err(NotifyType::STATE_NOT_FOUND),
            () if self.is_leaving() || self.is_rekeying_ike() => Err(NotifyType::TEMPORARY_FAILURE),
            () => (opening.series.answer(request)).ok_or(NotifyType::NO_PROPOSAL_CHOSEN),
        };
        Some(match answered {
            Ok(value) => {
                opening.until = turn.ctx.now + turn.ctx.config.timers.follow_up;
                let answer = std::iter::once(value).chain(opening.link()).collect();
                self.advance(opening, turn);
                answer
            }
            Err(kind) => {
                if kind == NotifyType::NO_PROPOSAL_CHOSEN {
                    turn.ctx
                        .refused(Some(turn.core.name()), Refusal::KeyExchange);
                }
                self.renew_later(opening.old, turn.ctx);
                vec![notify(kind, Vec::new())]
            }
        })
    }

    /// Returns true if the peer is creating the child SA with this name.
    pub(super) fn is_opening(&self, name: Option<&str>) -> bool {
        let named = |opening: &Opening| opening.agreed.name.as_deref() == name;
        self.openings.iter().any(named)
    }

    /// Drops the unfinished child SA with this name.
    pub(super) fn close_opening(&mut self, name: Option<&str>) {
        let named = |opening: &Opening| opening.agreed.name.as_deref() == name;
        self.openings.retain(|opening| !named(opening));
    }

    /// Drops expired states: "The responder MUST handle this situation gracefully and delete the
    /// associated state if it does not receive the next expected IKE_FOLLOWUP_KE request after some
    /// reasonable period of time."
    pub(super) fn forget_openings(&mut self, ctx: &mut Context<'_>) {
        let late = self
            .openings
            .extract_if(.., |opening| opening.until <= ctx.now);
        let olds: Vec<_> = late.map(|opening| opening.old).collect();
        for old in olds {
            self.renew_later(old, ctx);
        }
        let late = |until: Instant| until <= ctx.now;
        self.promised
            .take_if(|successor| !successor.is_complete() && late(successor.until));
    }

    /// Returns the time at which the next state is dropped.
    pub(super) fn forgets_at(&self) -> Option<Instant> {
        let successor = self
            .promised
            .iter()
            .filter(|successor| !successor.is_complete());
        let openings = self.openings.iter().map(|opening| opening.until);
        successor
            .map(|successor| successor.until)
            .chain(openings)
            .min()
    }

    /// Returns true if either end is creating a child SA that is not complete yet.
    pub(super) fn is_making_child(&self) -> bool {
        let follows = |task: &Task| task.child().is_some_and(ChildRequest::is_following);
        !self.openings.is_empty() || self.queue.tasks().any(follows)
    }

    /// Counts the answers by which the peer lost the state of our follow-up exchanges. Returns an
    /// error after too many in a row.
    pub(super) fn note_forgotten(&mut self, answer: &Message) -> Result<(), DownReason> {
        match first_error(answer) {
            None => self.forgotten = 0,
            Some(NotifyType::STATE_NOT_FOUND) => self.forgotten += 1,
            Some(_) => {}
        }
        match self.forgotten < MOST_FORGOTTEN {
            true => Ok(()),
            false => Err(DownReason::Forgetful),
        }
    }

    /// Schedules another rekey of a child SA whose rekey failed.
    pub(super) fn renew_later(&mut self, old: Option<ChildSaId>, ctx: &mut Context<'_>) {
        let child = old.and_then(|old| self.children.get_mut(old));
        if let Some(Life::Current(age)) = child.map(|child| &mut child.life)
            && age.over_at.is_some()
            && age.renew_at.is_none()
        {
            age.try_again(&ctx.config.timers, ctx.rng, ctx.now);
        }
    }

    /// Waits for the next key exchange, or completes the child SA.
    fn advance(&mut self, opening: Opening, turn: &mut Turn<'_, '_>) {
        let complete = opening.series.is_complete();
        let (old, lower_nonce) = (opening.old, opening.lower_nonce.clone());
        let name = opening.agreed.name.clone();
        let made = match (complete, old) {
            (false, _) => {
                self.openings.push(opening);
                None
            }
            (true, old) => {
                let terms = opening.agreed.terms(opening.series.secrets());
                Some(match old {
                    Some(old) => self.succeed(old, terms, false, turn),
                    None => self.add_child(terms, false, turn),
                })
            }
        };
        let mut same = self.queue.running_mut();
        let same = same.find(|task| task.asks_for(old, name.as_deref()));
        if let Some(ours) = same.and_then(Task::child_mut) {
            ours.meet(made, lower_nonce);
        }
    }

    /// Returns true if our own request for the same child SA has to finish first.
    fn goes_before(&self, opening: &Opening) -> bool {
        let name = opening.agreed.name.as_deref();
        let same = |task: &&Task| task.asks_for(opening.old, name);
        let mut ours = self.queue.tasks().filter(same).filter_map(Task::child);
        let mut asked = self.queue.running().filter(same).filter_map(Task::child);
        ours.any(ChildRequest::is_following)
            || (opening.series.is_complete() && asked.any(ChildRequest::is_hybrid))
    }

    /// Returns true if the child SA is still wanted.
    fn is_wanted(&self, opening: &Opening, turn: &Turn<'_, '_>) -> bool {
        let name = opening.agreed.name.as_deref();
        let policy = turn
            .core
            .peer(turn.ctx.config)
            .and_then(|peer| peer.policy(name));
        let place = match opening.old {
            Some(old) => self.children.is_current(old),
            None => {
                let closed = turn.ctx.overrides.is_closed(&turn.core.name(), name);
                !closed && self.children.current(name).is_none()
            }
        };
        place && policy.is_some()
    }
}

#[cfg(test)]
impl crate::Engine {
    /// Returns the number of child SAs that peers are creating.
    pub(crate) fn openings(&self) -> usize {
        let up = self.sas.values().filter_map(|sa| sa.established());
        up.map(|up| up.openings.len()).sum()
    }

    /// Returns SK_d of the only IKE SA.
    pub(crate) fn sk_d(&self) -> &[u8] {
        let mut up = self.sas.values().filter_map(|sa| sa.established());
        up.next().expect("one is up").keys.sk_d()
    }
}
