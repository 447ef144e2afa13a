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

use super::rekey_ike::{IkeRekey, conclude_successor};
use super::{crash, follow_up, liveness, rekey_ike, upkeep, window};
use crate::allowed_suites::groups_of;
use crate::down_reason::DownReason;
use crate::event::{Event, NotHandedOver};
use crate::exchange::{first_error, notify};
use crate::misuse::CannotMove;
use crate::refusal::Refusal;
use crate::sa::arrived::Arrived;
use crate::sa::core::Core;
use crate::sa::turn::{Context, Turn};
use crate::session::children::{Age, lifetimes};
use crate::session::replacement::Aside;
use crate::session::successor::{Purpose, Successor};
use crate::session::task::{Makes, Task, Then};
use crate::session::{Lifetime, Session};
use model::Path;
use std::time::Duration;
use wire::ike::{Message, NotifyType};

/// Maximum time for a clone of ours to move, and to create all child SAs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns `Ok` if we may clone the SA for a hand-over.
pub(crate) fn is_possible(session: &Session) -> Result<(), CannotMove> {
    let fixed = session.children.are_fixed();
    let chooses_path = session.chooses_path().ok_or(match fixed {
        true => CannotMove::Transport,
        false => CannotMove::NotAgreed,
    })?;
    if fixed {
        return Err(CannotMove::NotByClone);
    }
    match (
        chooses_path && session.terms.contact.ours,
        session.terms.clones,
    ) {
        (false, _) => Err(CannotMove::NotOurs),
        (true, false) => Err(CannotMove::NotCloned),
        (true, true) => Ok(()),
    }
}

/// Requests a clone that moves to another path and takes over the traffic of this SA.
pub(crate) fn request(
    session: &mut Session,
    to: Path,
    turn: &mut Turn<'_, '_>,
) -> Result<(), CannotMove> {
    // "the initiator SHOULD NOT retry cloning an IKE SA until some of the existing SAs with the
    // responder are deleted" (section 5.3).
    if session
        .replacement
        .enough
        .is_some_and(|then| count(session, turn.ctx) >= then)
    {
        return Err(CannotMove::Enough);
    }
    if session.queue.tasks().any(is_clone) {
        return Err(CannotMove::UnderWay);
    }
    let peer = turn.core.peer(turn.ctx.config).ok_or(CannotMove::NotUp)?;
    if let Some(group) = groups_of(peer).first() {
        rekey_ike::ask(session, *group, false, Some(to), turn);
    }
    Ok(())
}

/// Evaluates the peer's answer.
pub(crate) fn conclude(
    session: &mut Session,
    rekey: IkeRekey,
    to: Path,
    response: &Message,
    turn: &mut Turn<'_, '_>,
) -> Then {
    if let Some(error) = first_error(response) {
        match rekey_ike::group_to_try(error, rekey.corrected, response, turn) {
            Some(group) => rekey_ike::ask(session, group, true, Some(to), turn),
            None => note_refused(session, error, turn),
        }
        return Then::Stay;
    }
    match conclude_successor(rekey, response, turn) {
        None => Then::Close(DownReason::NotOffered("clone of the IKE SA")),
        Some(successor) if successor.is_complete() => Then::succeed(successor),
        Some(successor) => follow_up::ask(session, successor, response),
    }
}

/// Handles a refusal.
pub(crate) fn note_refused(session: &mut Session, error: NotifyType, turn: &mut Turn<'_, '_>) {
    match error {
        NotifyType::TEMPORARY_FAILURE => liveness::note_busy(session, turn),
        NotifyType::NO_ADDITIONAL_SAS => {
            session.replacement.enough = Some(count(session, turn.ctx))
        }
        _ => {}
    }
    turn.ctx
        .refused(Some(turn.core.peer_id()), Refusal::CloneRefused(error));
    let why = match error {
        NotifyType::TEMPORARY_FAILURE => NotHandedOver::Busy,
        _ => NotHandedOver::Refused,
    };
    let sa = turn.core.id;
    turn.ctx.event(Event::NotHandedOver { sa, why });
}

/// Returns the number of IKE SAs and child SAs with the peer.
fn count(session: &Session, ctx: &Context<'_>) -> usize {
    1 + ctx.beside.sas + session.children.len() + ctx.beside.children
}

/// Answers a request for a clone.
pub(crate) fn answer(
    session: &mut Session,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Then {
    if let Err((kind, why)) = admit(session, turn.ctx) {
        if let Some(why) = why {
            turn.ctx.refused(Some(turn.core.peer_id()), why);
        }
        session.respond(vec![notify(kind, Vec::new())], arrived, turn);
        return Then::Stay;
    }
    match rekey_ike::agree(request, Some(Purpose::Theirs), turn) {
        Err(refusal) => session.respond_renewal(vec![refusal], arrived, turn),
        Ok((successor, answer)) => {
            session.respond(answer, arrived, turn);
            Then::succeed(successor)
        }
    }
}

fn admit(session: &Session, ctx: &Context<'_>) -> Result<(), (NotifyType, Option<Refusal>)> {
    if !session.terms.clones {
        let why = Refusal::CloneNotAgreed;
        return Err((NotifyType::NO_ADDITIONAL_SAS, Some(why)));
    }
    if session.is_rekeying()
        || session.queue.runs(is_clone)
        || session.replacement.promised.is_some()
    {
        return Err((NotifyType::TEMPORARY_FAILURE, None));
    }
    if ctx.beside.sas >= ctx.config.limits.clones {
        let why = Refusal::TooManyClones(ctx.beside.sas);
        return Err((NotifyType::NO_ADDITIONAL_SAS, Some(why)));
    }
    Ok(())
}

/// Creates a clone with its own core. This SA stays.
pub(crate) fn bear(
    session: &Session,
    successor: Successor,
    turn: &mut Turn<'_, '_>,
) -> (Core, Box<Session>) {
    let mut next = successor.core(turn);
    let (old, sa, peer) = (turn.core.id, next.id, turn.core.peer_id());
    let purpose = successor.purpose;
    let mut clone = of(session, successor, turn);
    turn.ctx.pools.share(old, sa);
    turn.ctx.tickets.share(old, sa, turn.ctx.now);
    turn.ctx.out.attempts.cloned(&next);
    turn.ctx.event(Event::IkeCloned { old, sa, peer });
    window::tell(&mut clone, &mut next, turn.ctx.config);
    crash::give_token(&mut clone, turn.ctx);
    if let Some(Purpose::HandOver(_)) = purpose {
        let until = turn.ctx.now + PATIENCE;
        let from = Box::new(next.path);
        clone.replacement.aside = Some(Aside::Ours { until, from });
        clone.upkeep.inherit(session.children.current_names());
    }
    (next, clone)
}

/// Creates the session of a clone from that of this SA. "peers MUST NOT transfer existing Child
/// SAs" (section 5.2).
fn of(session: &Session, successor: Successor, turn: &mut Turn<'_, '_>) -> Box<Session> {
    let lifetime = lifetimes(turn.core, turn.ctx.config).ike;
    let lifetime = Lifetime {
        keys: Age::begin(lifetime, turn.ctx.config, turn.ctx.rng, turn.ctx.now),
        proof: session.lifetime.proof,
    };
    let (keys, terms) = (successor.keys(&session.keys), session.terms.clone());
    let home = session.follow.home;
    let mut clone = Session::new(keys, terms, lifetime, home, turn.ctx.now);
    clone.replacement.follows = Some(turn.core.id);
    clone.replacement.aside = Some(Aside::Theirs);
    clone.gives_tickets = session.gives_tickets;
    clone.liveness.heeds_from = session.liveness.heeds_from;
    clone.liveness.hint_pause = session.liveness.hint_pause;
    clone
}

/// Returns true if the clone has the requested path and all child SAs.
pub(crate) fn is_in_place(session: &Session) -> bool {
    !session.is_moving() && upkeep::has_inherited(session)
}

/// Makes the clone the replacement of its original.
pub(crate) fn conclude_trial(session: &mut Session, turn: &mut Turn<'_, '_>) {
    session.replacement.aside = None;
    if let Some(old) = session.replacement.follows {
        let (sa, peer) = (turn.core.id, turn.core.peer_id());
        turn.ctx.out.attempts.hand_over(old, turn.core);
        turn.ctx.event(Event::IkeHandedOver { old, sa, peer });
    }
}

/// Reports a failed hand-over when the clone ends.
pub(crate) fn note_in_vain(session: &Session, why: &DownReason, turn: &mut Turn<'_, '_>) {
    if session.is_on_trial() {
        let why = Box::new(why.clone());
        turn.ctx
            .refused(Some(turn.core.peer_id()), Refusal::NotHandedOver(why));
        if let Some(sa) = session.replacement.follows {
            let why = NotHandedOver::Failed;
            turn.ctx.event(Event::NotHandedOver { sa, why });
        }
    }
}

/// Returns true if a task is about a clone.
fn is_clone(task: &dyn Task) -> bool {
    task.makes() == Some(Makes::Clone)
}
