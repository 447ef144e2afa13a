//! Tokens that prove the loss of an IKE SA, and hints that it may be lost (`extension/crash.rs`).
//! What an error with a token leads to is in `liveness.rs`.

use super::liveness::doubt;
use crate::extension::crash;
use crate::sa::turn::{Context, Turn};
use crate::session::Session;
use crate::session::task::Task;
use std::time::Duration;
use wire::ike::{Message, Payload};

/// Pause between two checks because of an unknown SPI.
const ASK_PAUSE: Duration = Duration::from_secs(2);

/// Asks the peer whether it is there, as somebody says that it does not know the SPI of a child SA.
/// Anybody can say so: it costs one check in a while, and never ends the SA.
pub(crate) fn note_unknown_spi(session: &mut Session, turn: &mut Turn<'_, '_>) {
    if !session.terms.contact.ours || turn.ctx.now < session.liveness.asks_from {
        return;
    }
    session.liveness.asks_from = turn.ctx.now + ASK_PAUSE;
    match turn.core.requests.tries() {
        0 => doubt(session, turn),
        // Its answer is on the way, unless that is lost.
        1 => {}
        // It was sent while the peer was down.
        _ => turn.core.requests.hasten(turn.ctx.now),
    }
}

/// Keeps the token that an authentic message of the responder gives.
pub(crate) fn note_token(session: &mut Session, message: &Message) {
    if session.terms.contact.ours {
        session.liveness.token = crash::given(message).or(session.liveness.token.take());
    }
}

/// Gives the initiator the token of an IKE SA with new SPIs.
pub(crate) fn give_token(session: &mut Session, ctx: &Context<'_>) {
    session.liveness.token = None;
    if !session.terms.contact.ours && ctx.ike_spis.makes_tokens() {
        session.queue.push(Box::new(GiveToken));
    }
}

/// A request that gives a token.
struct GiveToken;

impl Task for GiveToken {
    fn payloads(&self, _: &Session, turn: &mut Turn<'_, '_>) -> Vec<Payload> {
        token(turn).into_iter().collect()
    }

    fn ends_with_keys(&self) -> bool {
        true
    }
}

/// Returns the token of an IKE SA for its initiator, if the node counts its starts.
pub(crate) fn token(turn: &Turn<'_, '_>) -> Option<Payload> {
    let (spi_i, spi_r) = (turn.core.spi_i, turn.core.spi_r);
    turn.ctx.ike_spis.token(spi_i, spi_r).map(crash::payload)
}
