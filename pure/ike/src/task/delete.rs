//! Deletion of child SAs (RFC 7296 section 1.4.1).

use super::upkeep;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::extension::{delete, live_path};
use crate::sa::turn::{Context, Turn};
use crate::session::Session;
use crate::session::children::Life;
use crate::session::task::{Answer, Subject, Task, Then};
use model::{ChildSaId, Spi};
use wire::ike::{Message, Payload};

/// Deletion of a child SA.
pub(crate) struct DeleteChild {
    /// `None` if it never carried traffic, and thus has no id.
    pub(crate) child: Option<ChildSaId>,
    /// The SPI on which we receive.
    pub(crate) inbound: Spi,
}

impl DeleteChild {
    /// Creates the deletion of a child SA that never carried traffic.
    pub(crate) const fn unused(inbound: Spi) -> Self {
        let child = None;
        Self { child, inbound }
    }
}

impl Task for DeleteChild {
    fn subject(&self) -> Subject {
        self.child.map_or(Subject::Nothing, Subject::Child)
    }

    fn payloads(&self, session: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        let removal = removal(session, self.child);
        [vec![delete::child(self.inbound)], removal].concat()
    }

    fn is_moot(&self, session: &Session) -> bool {
        let deleting = |child| session.children.is_deleting(child);
        self.child.is_some_and(|child| !deleting(child))
    }

    fn conclude(
        self: Box<Self>,
        _: &Answer<'_>,
        session: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        session.children.keep_for_stragglers(self.child, turn.ctx);
        match self.child.is_some() && session.children.is_over() {
            true => Then::Close(DownReason::ClosedHere),
            false => Then::Stay,
        }
    }
}

/// Returns the notifies that accompany the deletion of the last child SA on a path of its own.
fn removal(session: &Session, child: Option<ChildSaId>) -> Vec<Payload> {
    let child = child.and_then(|child| session.children.get(child));
    let name = child.and_then(|child| child.name.as_deref());
    match session.paths.of(name) {
        Some(known) if session.children.current(name).is_none() => {
            live_path::remove(known.number, known.path)
        }
        _ => Vec::new(),
    }
}

/// Deletes a replaced child SA whose drain time is over, or a child SA that is no longer wanted.
pub(crate) fn request(session: &mut Session, id: ChildSaId, turn: &mut Turn<'_, '_>) {
    if let Some(inbound) = session.children.get(id).map(|child| child.inbound) {
        let child = Some(id);
        session.ask(DeleteChild { child, inbound }, turn);
    }
}

/// Ends all child SAs together with their IKE SA.
pub(crate) fn drop_all(session: &mut Session, why: &DownReason, ctx: &mut Context<'_>) {
    for child in session.children.drain() {
        let (child, why) = (child.id, Some(why.clone()));
        ctx.event(Event::ChildDown { child, why });
    }
}

/// Deletes the child SAs that a request names. Returns our inbound SPIs of them.
pub(crate) fn answer(session: &mut Session, request: &Message, ctx: &mut Context<'_>) -> Vec<Spi> {
    let mut deleted = Vec::new();
    for spi in delete::children(request) {
        let Some(child) = session.children.by_outbound(spi) else {
            note_unknown(session, spi);
            continue;
        };
        let (id, inbound, life) = (child.id, child.inbound, child.life);
        match life {
            Life::Current(_) => {
                let name = child.name.clone();
                session.upkeep.put_off(name.as_deref(), ctx.now);
                upkeep::lose_child(session, id, ctx);
            }
            Life::Replaced { .. } | Life::Deleting => {
                session.children.keep_for_stragglers(Some(id), ctx)
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
fn note_unknown(session: &mut Session, spi: Spi) {
    for task in session.queue.running_mut() {
        if let Some(request) = task.child_mut() {
            request.note_deleted(spi);
        }
    }
}
