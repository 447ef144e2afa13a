//! The lifetime of an authentication (`extension/reauth.rs`).

use crate::extension::reauth;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::children::{Age, lifetimes};
use model::Instant;
use std::time::Duration;
use wire::ike::Message;

/// After a failure, re-authentication is tried again when this part of the remaining time has
/// passed.
const PART: u32 = 8;

/// Minimum delay before that.
const PAUSE: Duration = Duration::from_secs(10);

/// Starts the lifetime of a new authentication, which the responder may have limited. Only the
/// initiator renews it.
pub(crate) fn age(theirs: Option<Duration>, initiator: bool, turn: &mut Turn<'_, '_>) -> Age {
    let ours = lifetimes(turn.core, turn.ctx.config).reauth;
    let limits = theirs.into_iter().chain((!ours.is_zero()).then_some(ours));
    let lifetime = limits.min().unwrap_or_default();
    let mut age = Age::begin(lifetime, turn.ctx.config, turn.ctx.rng, turn.ctx.now);
    age.renew_at.take_if(|_| !initiator);
    age
}

/// Requests re-authentication if it is due. Returns true if the authentication has expired.
pub(crate) fn is_due(session: &mut Session, turn: &mut Turn<'_, '_>) -> bool {
    let past = |at: Option<Instant>| at.is_some_and(|at| at <= turn.ctx.now);
    if past(session.lifetime.proof.over_at) {
        return true;
    }
    if past(session.lifetime.proof.renew_at) {
        let next = |over: Instant| turn.ctx.now + ((over - turn.ctx.now) / PART).max(PAUSE);
        session.lifetime.proof.renew_at = session.lifetime.proof.over_at.map(next);
        let (out, id) = (&mut turn.ctx.out, turn.core.id);
        match std::mem::take(&mut session.liveness.may_resume) {
            true => out.lost.push(id),
            false => out.unproved.push(id),
        }
    }
    false
}

/// Handles a responder's announcement that limits the lifetime of the authentication (RFC
/// 4478).
pub(crate) fn note_lifetime(session: &mut Session, request: &Message, turn: &mut Turn<'_, '_>) {
    let theirs = reauth::announced(request).filter(|_| session.terms.contact.ours);
    if theirs.is_some() && !session.is_leaving() {
        let sooner = |a: Option<Instant>, b: Option<Instant>| a.into_iter().chain(b).min();
        let new = age(theirs, true, turn);
        session.lifetime.proof.renew_at = sooner(session.lifetime.proof.renew_at, new.renew_at);
        session.lifetime.proof.over_at = sooner(session.lifetime.proof.over_at, new.over_at);
    }
}
