//! Liveness checks (`extension/liveness.rs`), and errors that say that the peer has lost the IKE
//! SA.

use crate::config::Timers;
use crate::exchange::first_error;
use crate::extension::{crash, liveness, nat, padding};
use crate::peer_table::PeerTable;
use crate::refusal::Refusal;
use crate::sa::arrived::Arrived;
use crate::sa::core::Core;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::task::Task;
use model::Deadline;
use std::time::Duration;
use wire::ike::{Datagram, NotifyType, Payload};

/// The longest pause after an unauthenticated error.
const LAST_HINT_PAUSE: Duration = Duration::from_secs(64);

/// A request that only asks for a sign of life.
pub(crate) enum Check {
    Liveness,
    /// Because child SAs sent and received nothing.
    Doubt,
    /// Check of our address as the peer sees it, while the peer is alive.
    Whereabouts,
}

impl Task for Check {
    fn payloads(&self, session: &Session, turn: &mut Turn<'_, '_>) -> Vec<Payload> {
        payloads(session, turn)
    }

    fn allowed(&self, _: &Session, timers: &Timers) -> Duration {
        match self {
            Self::Liveness => timers.give_up_check,
            // One-way traffic is no fault: only liveness bounds the time.
            Self::Doubt => Duration::MAX,
            Self::Whereabouts => timers.give_up,
        }
    }

    fn shows_our_address(&self) -> bool {
        true
    }
}

/// Returns the payloads of a liveness check. The end that chooses the path includes NAT
/// detection (section 3.8): a NAT may have given it another address, or may be new.
fn payloads(session: &Session, turn: &mut Turn<'_, '_>) -> Vec<Payload> {
    match session.chooses_path() == Some(true) {
        true => nat::payloads(
            turn.core.spi_i,
            turn.core.spi_r,
            turn.core.path,
            turn.ctx.config,
            turn.ctx.rng,
        )
        .to_vec(),
        false if session.liveness.token.is_some() => vec![padding::of_check()],
        false => Vec::new(),
    }
}

/// Returns the time of the next liveness check, after a time without packets of the peer. An
/// outstanding request serves as the check: from then on, it gets no more time than a check
/// would.
pub(crate) fn due(session: &Session, core: &Core, config: &PeerTable) -> Option<Deadline> {
    let peer = core.peer(config)?;
    let allowed = allowed(session, &config.timers);
    let asks = core.requests.is_idle() || core.requests.may_exceed(allowed);
    asks.then(|| liveness::deadline(session.liveness.heard, peer.liveness))?
}

/// Returns the time after which a liveness check without a response ends the SA.
pub(crate) fn allowed(session: &Session, timers: &Timers) -> Duration {
    match session.is_patient() {
        true => timers.give_up_patient,
        false => timers.give_up_check,
    }
}

/// Sends a liveness check at once, because child SAs sent and received nothing. The check never
/// ends the SA earlier than liveness would, and is not sent if liveness checks are disabled.
pub(crate) fn doubt(session: &mut Session, turn: &mut Turn<'_, '_>) {
    let peer = turn.core.peer(turn.ctx.config);
    let asks = peer.is_some_and(|peer| !peer.liveness.is_zero());
    if asks && turn.core.requests.is_idle() && !session.is_leaving() {
        session.ask(Check::Doubt, turn);
    }
}

/// Handles an error in clear while a request is under way: the peer was restarted and has lost the
/// SA, which a token proves, or the error is forged. Starts another IKE SA, while this one stays
/// until the other is authenticated. Returns true if the error answers the Delete of an SA that
/// another one has replaced: nothing is lost if it ends now.
pub(crate) fn handle_clear_error(
    session: &mut Session,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> bool {
    let Datagram::Clear(message) = &arrived.datagram else {
        return false;
    };
    let error = first_error(message).filter(|_| turn.core.requests.awaits(&message.header));
    let Some(error) = error else {
        return false;
    };
    if session.is_leaving() {
        return error == NotifyType::INVALID_IKE_SPI && session.replacement.is_deleting();
    }
    let heeds = session.liveness.heeds_from <= turn.ctx.now;
    let is_proved = crash::is_proved(message, session.liveness.token.as_deref());
    if session.terms.contact.ours && (heeds || is_proved) {
        session.liveness.heeds_from = turn.ctx.now + session.liveness.hint_pause;
        session.liveness.hint_pause = (session.liveness.hint_pause * 2).min(LAST_HINT_PAUSE);
        session.liveness.is_doubtful = true;
        let why = match is_proved {
            true => Refusal::Restarted,
            false => Refusal::Unproved(error),
        };
        turn.ctx.refused(Some(turn.core.peer_id()), why);
        // It is heeded once: somebody else may send it again.
        if is_proved {
            session.liveness.token = None;
        }
        // As if a re-authentication were due, once.
        session.lifetime.proof.renew_at = Some(turn.ctx.now);
        session.liveness.may_resume = true;
    }
    false
}

/// Sends a liveness check if it is due. An outstanding request serves as the check.
pub(crate) fn check(session: &mut Session, turn: &mut Turn<'_, '_>) {
    let due = due(session, turn.core, turn.ctx.config);
    if due.is_none_or(|deadline| turn.ctx.now < deadline.at) {
        return;
    }
    let timers = &turn.ctx.config.timers;
    match turn.core.requests.is_idle() {
        true => session.ask(Check::Liveness, turn),
        false => {
            let allowed = allowed(session, timers);
            turn.core.requests.press(allowed, timers, turn.ctx.now);
        }
    }
}

/// Handles a refusal by a busy peer. The peer may be waiting for our response to a request that
/// it sends to our previous address behind a NAT. Its refusals count as signs of life, so no
/// liveness check would reveal our new address. The end that chooses the path therefore checks
/// its address now.
pub(crate) fn note_busy(session: &mut Session, turn: &mut Turn<'_, '_>) {
    if session.chooses_path() == Some(true) {
        session.ask(Check::Whereabouts, turn);
    }
}
