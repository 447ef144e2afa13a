//! Rekeys of a child SA (RFC 7296 sections 1.3.3 and 2.8).
//!
//! No packet is lost, because the old child SA stays until its successor works. Both ends accept
//! packets on the old and the new child SA as soon as they know it, the caller decides when to send
//! on which, and the old one is deleted only after a drain time.
//!
//! Both ends may rekey at once. Then there are two successors, and the one "created with the lowest
//! of the four nonces" is deleted by the end that requested it (section 2.8.1). No packet was ever
//! sent on it.

use super::delete::DeleteChild;
use super::{child, child_terms, licences, liveness, opening, upkeep};
use crate::allowed_suites::AllowedEspSuites;
use crate::child::{Before, ChildConfig, ChildTerms, Offer, unencrypted};
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::exchange::create_child::about;
use crate::exchange::{first_error, notify};
use crate::refusal::Refusal;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::child_request::{Attempt, ChildRequest, Settled};
use crate::session::children::{Child, Life};
use crate::session::task::{Answer, Subject, Task, Then, Wanted};
use model::{ChildSaId, Spi};
use wire::ike::{ExchangeType, Message, NotifyType, Payload};

/// Our request for a successor.
pub(crate) struct ChildRekey {
    old: ChildSaId,
    name: Option<String>,
    request: ChildRequest,
}

impl Task for ChildRekey {
    fn subject(&self) -> Subject {
        Subject::Child(self.old)
    }

    fn exchange(&self) -> ExchangeType {
        self.request.exchange()
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        self.request.payloads.clone()
    }

    fn is_moot(&self, session: &Session) -> bool {
        let old = session.children.get(self.old);
        let opening = old.is_some_and(|old| session.openings.is_open(old.name.as_deref()));
        opening || !session.children.is_current(self.old)
    }

    fn wants(&self) -> Option<Wanted<'_>> {
        Some(Wanted {
            request: &self.request,
            old: Some(self.old),
            name: self.name.as_deref(),
        })
    }

    fn child_mut(&mut self) -> Option<&mut ChildRequest> {
        Some(&mut self.request)
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        session: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        conclude(session, *self, answer.message, turn).into()
    }
}

/// Requests a successor of a child SA, unless that is in progress.
pub(crate) fn request(session: &mut Session, id: ChildSaId, turn: &mut Turn<'_, '_>) {
    let is_same = |rekey: &ChildRekey| rekey.old == id;
    let asked = session.queue.tasks_of().any(is_same);
    if session.is_leaving() || asked {
        return;
    }
    let (peer, child) = (turn.core.peer(turn.ctx.config), session.children.get(id));
    let Some((peer, child)) = peer.zip(child) else {
        return;
    };
    let name = child.name.as_deref();
    if session.openings.is_open(name) {
        return;
    }
    if session.paths.is_unproved(name) {
        return session.children.renew_later(Some(id), turn.ctx);
    }
    if let Some(policy) = session.policy(peer, name) {
        let attempt = Attempt::first(peer, &policy);
        ask(session, id, attempt, turn);
    }
}

/// Requests a successor, unless the configuration no longer allows the child SA.
fn ask(session: &mut Session, id: ChildSaId, attempt: Attempt, turn: &mut Turn<'_, '_>) {
    let (peer, old) = (turn.core.peer(turn.ctx.config), session.children.get(id));
    let Some((peer, old)) = peer.zip(old) else {
        return;
    };
    let policy = session.policy(peer, old.name.as_deref());
    let offered = policy.and_then(|policy| {
        let unencrypted = unencrypted(peer, Some(old.before()), turn.ctx.today);
        let menu = AllowedEspSuites::to_offer(peer, attempt.groups(peer), unencrypted);
        let ground = session.mode_context(turn.core);
        let offer = {
            let spis = turn.ctx.spis(turn.core.id, policy.name);
            Offer::again(menu, &policy, ground, old.before(), spis)?
        };
        Some((policy, offer))
    });
    let Some((policy, offer)) = offered else {
        return;
    };
    let config = ChildConfig {
        peer,
        policy: &policy,
        addresses: session.terms.addresses,
        today: turn.ctx.today,
    };
    let request = ChildRequest::new(offer, attempt, Some(old.inbound), config, turn.ctx.rng);
    let name = old.name.clone();
    let rekey = ChildRekey {
        old: id,
        name,
        request,
    };
    session.ask(rekey, turn);
}

/// Answers a request for a successor of the child SA on which the peer receives with `spi`.
pub(crate) fn answer(
    session: &mut Session,
    spi: Spi,
    request: &Message,
    turn: &mut Turn<'_, '_>,
) -> Vec<Payload> {
    let later = || vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
    let peer = turn.core.peer(turn.ctx.config);
    let full = peer.is_none_or(|peer| opening::check_room(session, peer, turn).is_err());
    // An unknown child SA may be one whose answer has not arrived yet.
    let expecting = session.queue.runs(|task| task.wants().is_some());
    let Some(old) = session.children.by_outbound(spi) else {
        if expecting {
            return later();
        }
        return vec![about(NotifyType::CHILD_SA_NOT_FOUND, spi)];
    };
    // A replaced child SA is about to be deleted (section 2.25.1).
    let current = matches!(old.life, Life::Current(_));
    let (id, name) = (old.id, old.name.clone());
    let (agreement, asked) = (old.agreement.clone(), old.asked.clone());
    let before = Before {
        agreement: agreement.as_ref(),
        asked: &asked,
        encrypted: old.encrypted,
    };
    let inherited = turn.ctx.is_inherited(turn.core.id, name.as_deref());
    let unproved = session.paths.is_unproved(name.as_deref());
    if !current || inherited || full || unproved || session.is_rekeying() {
        return later();
    }
    let policy = turn.core.peer(turn.ctx.config);
    let Some(policy) = policy.and_then(|peer| session.policy(peer, name.as_deref())) else {
        return later();
    };
    match child_terms::agree(session, &policy, Some(before), request, turn) {
        Err(refusal) => vec![refusal],
        Ok((payloads, agreed, lower_nonce)) => {
            opening::open(session, Some(id), payloads, agreed, lower_nonce, turn)
        }
    }
}

/// Evaluates the peer's answer. An error ends the IKE SA.
fn conclude(
    session: &mut Session,
    rekey: ChildRekey,
    response: &Message,
    turn: &mut Turn<'_, '_>,
) -> Result<(), DownReason> {
    // Child SAs of an SA that another one has replaced get no successors.
    if session.is_leaving() {
        return Ok(());
    }
    if let Some(error) = first_error(response) {
        return note_refused(session, &rekey, error, response, turn);
    }
    let ChildRekey { old, name, request } = rekey;
    child_terms::note_exchange(session, &request, turn);
    let (spi, rival) = (request.spi, request.rival());
    let peer = turn.core.peer(turn.ctx.config);
    let policy = peer.and_then(|peer| Some((peer, session.policy(peer, name.as_deref())?)));
    // The child SA may not be wanted any more.
    let ended = |id| session.children.get(id).is_some_and(Child::is_ending);
    let dropped = session.children.current(name.as_deref()).is_none()
        && (ended(old) || rival.is_some_and(ended));
    // The successor would replace a child SA by which another IKE SA has replaced the old one.
    let inherited = turn.ctx.is_inherited(turn.core.id, name.as_deref());
    let Some((peer, policy)) = policy.filter(|_| !dropped && !inherited) else {
        session.ask(DeleteChild::unused(spi), turn);
        // In case the other IKE SA does not stay.
        session.children.renew_later(Some(old), turn.ctx);
        return Ok(());
    };
    let config = ChildConfig {
        peer,
        policy: &policy,
        addresses: session.terms.addresses,
        today: turn.ctx.today,
    };
    match request.conclude(config, response, &session.keys)? {
        Settled::Stays(terms) => {
            if let Some(rival) = rival {
                let timers = &turn.ctx.config.timers;
                session.children.replace(rival, false, timers, turn.ctx.now);
            }
            succeed(session, old, *terms, true, turn);
            child::assure(session, name.as_deref(), turn);
        }
        Settled::Follows(request) => {
            session.openings.close(name.as_deref());
            let request = *request;
            let rekey = ChildRekey { old, name, request };
            session.queue.push_first(Box::new(rekey));
        }
        Settled::Goes => session.ask(DeleteChild::unused(spi), turn),
        // In case the peer does not continue its own request.
        Settled::Stops => session.children.renew_later(Some(old), turn.ctx),
        Settled::Deleted => upkeep::delete_current(session, old, turn),
    }
    Ok(())
}

/// Handles a refusal. "When A receives this error, it already knows there was simultaneous
/// rekeying, so it can ignore the error message" (section 2.8.1).
fn note_refused(
    session: &mut Session,
    rekey: &ChildRekey,
    error: NotifyType,
    response: &Message,
    turn: &mut Turn<'_, '_>,
) -> Result<(), DownReason> {
    if rekey.request.rival().is_some() || !session.children.is_current(rekey.old) {
        return Ok(());
    }
    let peer = turn.core.peer(turn.ctx.config);
    let attempt = peer.and_then(|peer| rekey.request.after(error, response, peer));
    if let Some(attempt) = attempt {
        ask(session, rekey.old, attempt, turn);
        return Ok(());
    }
    let passes = match error {
        // The end "SHOULD silently delete the Child SA (if it still exists) and send a request
        // to create a new Child SA from scratch" (section 2.25).
        NotifyType::CHILD_SA_NOT_FOUND => {
            upkeep::lose_child(session, rekey.old, turn.ctx);
            return match session.children.is_over() {
                true => Err(DownReason::ChildDeleted),
                false => Ok(()),
            };
        }
        NotifyType::STATE_NOT_FOUND => true,
        NotifyType::TEMPORARY_FAILURE => {
            liveness::note_busy(session, turn);
            true
        }
        _ => rekey.request.is_contested(),
    };
    if let Some(Life::Current(age)) = session.children.get_mut(rekey.old).map(|c| &mut c.life) {
        if !passes && age.is_news(error) {
            turn.ctx
                .refused(Some(turn.core.peer_id()), Refusal::RekeyRefused(error));
        }
        age.try_again(&turn.ctx.config.timers, turn.ctx.rng, turn.ctx.now);
    }
    Ok(())
}

/// Installs a successor. `ours`: we requested it.
pub(crate) fn succeed(
    session: &mut Session,
    old: ChildSaId,
    terms: ChildTerms,
    ours: bool,
    turn: &mut Turn<'_, '_>,
) -> ChildSaId {
    let id = turn.ctx.child_id();
    let age = child_terms::age_of(session, &terms, turn);
    licences::tell_unlicensed(session, old, &terms, turn);
    session
        .children
        .replace(old, ours, &turn.ctx.config.timers, turn.ctx.now);
    session.children.add(id, &terms, age);
    if !ours {
        session
            .openings
            .unsure
            .add(id, &turn.core.responses, turn.ctx.now);
    }
    let new = Box::new(child_terms::described(session, id, terms, ours, turn));
    turn.ctx.event(Event::ChildRekeyed { old, new });
    id
}
