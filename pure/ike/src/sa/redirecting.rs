//! Redirection of the peer of an SA that is up (`extension/redirect.rs`).

use super::Turn;
use super::established::Established;
use super::task::Task;
use crate::extension::redirect;
use crate::misuse::CannotRedirect;
use crate::refusal::Refusal;
use std::net::IpAddr;
use wire::ike::Message;

impl Established {
    /// Redirects the peer to another gateway.
    pub(crate) fn redirect(
        &mut self,
        to: IpAddr,
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), CannotRedirect> {
        if self.contact.ours {
            return Err(CannotRedirect::NotTheirs);
        }
        if !self.willing {
            return Err(CannotRedirect::NotWilling);
        }
        self.ask(Task::Redirect(to), turn);
        Ok(())
    }

    /// Handles a redirection by the gateway. This SA stays until the one with the other gateway is
    /// up.
    pub(super) fn note_redirect(&self, request: &Message, turn: &mut Turn<'_, '_>) {
        if !self.contact.ours || self.is_leaving() {
            return;
        }
        match redirect::sent(request, &[], turn) {
            Some(Ok(to)) => turn.core.follow_redirect(to, true, turn.ctx),
            Some(Err(why)) => {
                turn.ctx.refused(
                    Some(turn.core.name()),
                    Refusal::RedirectNotFollowed(Box::new(why)),
                );
            }
            None => {}
        }
    }
}
