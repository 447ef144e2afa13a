//! Redirection of the peer of an SA that is up (`extension/redirect.rs`).

use super::established::Established;
use super::task::Task;
use super::{Context, Core};
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
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> Result<(), CannotRedirect> {
        if self.contact.ours {
            return Err(CannotRedirect::NotTheirs);
        }
        if !self.willing {
            return Err(CannotRedirect::NotWilling);
        }
        self.ask(Task::Redirect(to), core, ctx);
        Ok(())
    }

    /// Handles a redirection by the gateway. This SA stays until the one with the other gateway is
    /// up.
    pub(super) fn note_redirect(&self, request: &Message, core: &Core, ctx: &mut Context<'_>) {
        if !self.contact.ours || self.is_leaving() {
            return;
        }
        match redirect::sent(request, &[], core, ctx) {
            Some(Ok(to)) => core.follow_redirect(to, true, ctx),
            Some(Err(why)) => {
                ctx.refused(
                    Some(core.name()),
                    Refusal::RedirectNotFollowed(Box::new(why)),
                );
            }
            None => {}
        }
    }
}
