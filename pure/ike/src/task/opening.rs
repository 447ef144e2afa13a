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

use super::{child, rekey_child};
use crate::child::Agreed;
use crate::config::Peer;
use crate::exchange::notify;
use crate::extension::followup::{self, Series};
use crate::extension::resource;
use crate::refusal::Refusal;
use crate::sa::turn::{Context, Turn};
use crate::session::Session;
use crate::session::openings::Opening;
use crate::session::task::Task;
use model::{ChildSaId, Instant};
use wire::ike::{Message, NotifyType, Payload};

/// The notify that refuses a child SA, and what is reported.
pub(super) type Refused = (NotifyType, Option<Refusal>);

/// Returns the payloads that answer a request for a child SA. A refusal is reported.
pub(super) fn answered(
    accepted: Result<Vec<Payload>, Refused>,
    turn: &mut Turn<'_, '_>,
) -> Vec<Payload> {
    accepted.unwrap_or_else(|(kind, why)| {
        if let Some(why) = why {
            turn.ctx.refused(Some(turn.core.peer_id()), why);
        }
        vec![notify(kind, Vec::new())]
    })
}

/// Refuses another child SA if the IKE SA, or all IKE SAs with the peer, have as many as they may
/// have.
pub(super) fn check_room(
    session: &Session,
    peer: &Peer,
    turn: &Turn<'_, '_>,
) -> Result<(), Refused> {
    let own = session.children.len() + session.openings.incomplete.len();
    let most = resource::most_children(peer, &turn.ctx.config.limits);
    match own >= most || own + turn.ctx.beside.children >= 2 * most {
        true => {
            let why = Refusal::TooManyChildren(most);
            Err((NotifyType::NO_ADDITIONAL_SAS, Some(why)))
        }
        false => Ok(()),
    }
}

/// Answers a request for a child SA that both ends agree on. The child SA is complete now, or
/// after the follow-up key exchanges. `payloads` are those of the answer.
pub(crate) fn open(
    session: &mut Session,
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
    if goes_before(session, &opening) {
        return vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
    }
    session.openings.close(opening.agreed.name.as_deref());
    payloads.extend(opening.link());
    advance(session, opening, turn);
    payloads
}

/// Answers the next key exchange for a child SA. Returns `None` if the request names none.
pub(crate) fn answer(
    session: &mut Session,
    request: &Message,
    turn: &mut Turn<'_, '_>,
) -> Option<Vec<Payload>> {
    let named = |opening: &Opening| followup::is_for(request, &opening.name());
    let incomplete = &mut session.openings.incomplete;
    let mut opening = incomplete.remove(incomplete.iter().position(named)?);
    let answered = match () {
        () if !is_wanted(session, &opening, turn) => Err(NotifyType::STATE_NOT_FOUND),
        () if session.is_leaving() || session.is_rekeying() => Err(NotifyType::TEMPORARY_FAILURE),
        () => (opening.series.answer(request)).ok_or(NotifyType::NO_PROPOSAL_CHOSEN),
    };
    Some(match answered {
        Ok(value) => {
            opening.until = turn.ctx.now + turn.ctx.config.timers.follow_up;
            let answer = std::iter::once(value).chain(opening.link()).collect();
            advance(session, opening, turn);
            answer
        }
        Err(kind) => {
            if kind == NotifyType::NO_PROPOSAL_CHOSEN {
                turn.ctx
                    .refused(Some(turn.core.peer_id()), Refusal::KeyExchange);
            }
            session.children.renew_later(opening.old, turn.ctx);
            vec![notify(kind, Vec::new())]
        }
    })
}

/// Drops expired states: "The responder MUST handle this situation gracefully and delete the
/// associated state if it does not receive the next expected IKE_FOLLOWUP_KE request after some
/// reasonable period of time."
pub(crate) fn forget(session: &mut Session, ctx: &mut Context<'_>) {
    let late = session
        .openings
        .incomplete
        .extract_if(.., |opening| opening.until <= ctx.now);
    let olds: Vec<_> = late.map(|opening| opening.old).collect();
    for old in olds {
        session.children.renew_later(old, ctx);
    }
    let late = |until: Instant| until <= ctx.now;
    session
        .replacement
        .promised
        .take_if(|successor| !successor.is_complete() && late(successor.until));
}

/// Returns the time at which the next state is dropped.
pub(crate) fn forgets_at(session: &Session) -> Option<Instant> {
    let successor = session
        .replacement
        .promised
        .iter()
        .filter(|successor| !successor.is_complete());
    let openings = session
        .openings
        .incomplete
        .iter()
        .map(|opening| opening.until);
    successor
        .map(|successor| successor.until)
        .chain(openings)
        .min()
}

/// Returns true if either end is creating a child SA that is not complete yet.
pub(crate) fn is_making_child(session: &Session) -> bool {
    let follows = |task: &dyn Task| {
        task.wants()
            .is_some_and(|wanted| wanted.request.is_following())
    };
    !session.openings.incomplete.is_empty() || session.queue.tasks().any(follows)
}

/// Waits for the next key exchange, or completes the child SA.
fn advance(session: &mut Session, opening: Opening, turn: &mut Turn<'_, '_>) {
    let complete = opening.series.is_complete();
    let (old, lower_nonce) = (opening.old, opening.lower_nonce.clone());
    let name = opening.agreed.name.clone();
    let made = match (complete, old) {
        (false, _) => {
            session.openings.incomplete.push(opening);
            None
        }
        (true, old) => {
            let terms = opening.agreed.terms(opening.series.secrets());
            Some(match old {
                Some(old) => rekey_child::succeed(session, old, terms, false, turn),
                None => child::add(session, terms, false, turn),
            })
        }
    };
    let mut same = session.queue.running_mut();
    let same = same.find(|task| {
        let wanted = task.wants();
        wanted.is_some_and(|wanted| wanted.is(old, name.as_deref()))
    });
    if let Some(ours) = same.and_then(|task| task.child_mut()) {
        ours.meet(made, lower_nonce);
    }
}

/// Returns true if our own request for the same child SA has to finish first.
fn goes_before(session: &Session, opening: &Opening) -> bool {
    let name = opening.agreed.name.as_deref();
    let same = |task: &&dyn Task| {
        task.wants()
            .is_some_and(|wanted| wanted.is(opening.old, name))
    };
    let mut ours = session.queue.tasks().filter(same);
    let mut asked = session.queue.running().filter(same);
    let follows = |task: &dyn Task| {
        let wanted = task.wants();
        wanted.is_some_and(|wanted| wanted.request.is_following())
    };
    let is_hybrid = |task: &dyn Task| {
        let wanted = task.wants();
        wanted.is_some_and(|wanted| wanted.request.is_hybrid())
    };
    ours.any(follows) || (opening.series.is_complete() && asked.any(is_hybrid))
}

/// Returns true if the child SA is still wanted.
fn is_wanted(session: &Session, opening: &Opening, turn: &Turn<'_, '_>) -> bool {
    let name = opening.agreed.name.as_deref();
    let policy = turn
        .core
        .peer(turn.ctx.config)
        .and_then(|peer| peer.policy(name));
    let place = match opening.old {
        Some(old) => session.children.is_current(old),
        None => {
            let closed = turn.ctx.overrides.is_closed(turn.core.peer_id(), name);
            !closed && session.children.current(name).is_none()
        }
    };
    place && policy.is_some()
}
