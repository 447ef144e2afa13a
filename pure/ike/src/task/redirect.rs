//! Redirection of the peer of an SA that is up (`extension/redirect.rs`).

use crate::destination::Destination;
use crate::extension::redirect;
use crate::misuse::CannotRedirect;
use crate::refusal::Refusal;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::task::{Subject, Task};
use wire::ike::{Message, Payload};

/// Redirection to another gateway.
struct Redirect(Destination);

impl Task for Redirect {
    fn subject(&self) -> Subject {
        Subject::Whole
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        vec![redirect::payload(&self.0)]
    }
}

/// Redirects the peer to another gateway.
pub(crate) fn request(
    session: &mut Session,
    to: Destination,
    turn: &mut Turn<'_, '_>,
) -> Result<(), CannotRedirect> {
    if session.terms.contact.ours {
        return Err(CannotRedirect::NotTheirs);
    }
    if !session.terms.willing {
        return Err(CannotRedirect::NotWilling);
    }
    session.ask(Redirect(to), turn);
    Ok(())
}

/// Handles a redirection by the gateway. This SA stays until the one with the other gateway is
/// up.
pub(crate) fn note(session: &Session, request: &Message, turn: &mut Turn<'_, '_>) {
    if !session.terms.contact.ours || session.is_leaving() {
        return;
    }
    match redirect::sent(request, &[], turn) {
        Some(Ok(to)) => turn.follow_redirect(to, true),
        Some(Err(why)) => {
            turn.ctx.refused(
                Some(turn.core.peer_id()),
                Refusal::RedirectNotFollowed(Box::new(why)),
            );
        }
        None => {}
    }
}
