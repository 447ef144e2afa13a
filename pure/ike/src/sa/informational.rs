//! Handling of INFORMATIONAL requests: deletions, revocations and moves (RFC 7296 section 1.4).

use super::children::Life;
use super::closing::Lingering;
use super::established::Established;
use super::{Arrived, Context, State, Turn};
use crate::down_reason::DownReason;
use crate::exchange::first_error;
use crate::extension::{delete, overlap};
use model::Spi;
use wire::ike::{Message, NotifyType};

impl Established {
    pub(super) fn handle_informational(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let fatal = first_error(request).filter(|kind| is_fatal(*kind));
        let closes = delete::closes_ike_sa(request);
        let deleted = self.delete_children(request, turn.ctx);
        let childless = !deleted.is_empty() && self.children.is_over();
        self.revoke_grant(request, turn);
        self.note_neighbours(request, turn);
        self.note_lifetime(request, turn);
        self.note_redirect(request, turn);
        turn.core
            .overlap(overlap::announced(request), turn.ctx.config);
        let mut answer: Vec<_> = delete::paired(deleted).into_iter().collect();
        answer.extend(self.answer_mobike(request, arrived, turn));
        self.respond(answer, arrived, turn);
        match (fatal, closes, childless) {
            (Some(NotifyType::AUTHENTICATION_FAILED), _, _) => {
                let why = turn.core.proof_refused(request, None, turn.ctx);
                self.end(why, turn)
            }
            (Some(notify), _, _) => self.end(DownReason::Unreadable { notify }, turn),
            (None, true, _) => match self.inherit(turn) {
                Ok(()) => State::Lingering(Lingering::until(
                    turn.ctx.now + turn.ctx.config.timers.linger,
                )),
                Err(state) => state.deleted(turn),
            },
            (None, false, true) => self.close(DownReason::ChildDeleted, turn),
            (None, false, false) => {
                self.send_next(turn);
                State::Established(self)
            }
        }
    }

    /// Deletes the child SAs that a request names. Returns our inbound SPIs of them.
    fn delete_children(&mut self, request: &Message, ctx: &mut Context<'_>) -> Vec<Spi> {
        let mut deleted = Vec::new();
        for spi in delete::children(request) {
            let Some(child) = self.children.by_outbound(spi) else {
                self.note_unknown(spi);
                continue;
            };
            let (id, inbound, life) = (child.id, child.inbound, child.life);
            match life {
                Life::Current(_) => {
                    let name = child.name.clone();
                    self.put_off(name.as_deref(), ctx);
                    self.lose_child(id, ctx);
                }
                Life::Replaced { .. } | Life::Deleting => {
                    self.children.keep_for_stragglers(Some(id), ctx)
                }
                Life::Straggling(_) => {}
            }
            // Child SAs that we are deleting ourselves are left out of the answer (section 1.4.1).
            if life != Life::Deleting {
                deleted.push(inbound);
            }
        }
        deleted
    }

    /// Handles the Delete of an unknown child SA, which may be one whose answer has not arrived
    /// yet.
    fn note_unknown(&mut self, spi: Spi) {
        for task in self.queue.running_mut() {
            if let Some(request) = task.child_mut() {
                request.note_deleted(spi);
            }
        }
    }
}

/// Returns true for errors that end the SA even outside a response (RFC 7296 section 2.21.2: in the
/// INFORMATIONAL exchange that follows IKE_AUTH).
const fn is_fatal(kind: NotifyType) -> bool {
    matches!(
        kind,
        NotifyType::AUTHENTICATION_FAILED
            | NotifyType::INVALID_SYNTAX
            | NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD
    )
}
