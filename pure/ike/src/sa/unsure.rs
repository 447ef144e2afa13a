//! Successors of children that the peer asked for, until it is certain that it has our answer.
//!
//! What the peer sends on one says so, which the owner of the engine sees, and so does the deletion of the
//! one it replaced (RFC 7296 section 2.8). But a peer may have nothing to send, and some forget to delete:
//! it would be sent to for ever on what it does not have any more. So two more things are signs.
//!
//! * A request a window later: we have to "remember each response until" then (section 2.3), because who
//!   sends that has the answer.
//! * That for [`SILENCE`] it has not asked again, and sent nothing on another child either: "the responder MAY
//!   begin sending on an SA as soon as it sends its response" (section 2.8), and by then hardly anything is
//!   lost by it.

use super::Context;
use crate::event::Event;
use crate::window::Responses;
use model::{ChildSaId, Instant};
use std::collections::BTreeMap;
use std::time::Duration;

/// After so long everybody has repeated a request that was not answered: strongSwan waits longest, 4 s.
const SILENCE: Duration = Duration::from_secs(5);

/// The children.
#[derive(Default)]
pub(super) struct Unsure(BTreeMap<ChildSaId, Asked>);

/// What asked for one.
struct Asked {
    message_id: u32,
    /// How often it came again.
    repeats: u32,
    until: Instant,
}

impl Unsure {
    /// The request that is being answered makes a child.
    pub(super) fn add(&mut self, child: ChildSaId, responses: &Responses, now: Instant) {
        let Some(message_id) = responses.latest() else {
            return;
        };
        let asked = Asked {
            message_id,
            repeats: 0,
            until: now + SILENCE,
        };
        self.0.insert(child, asked);
    }

    /// Tells which of them the peer has now, which was `heard` last then.
    pub(super) fn settle(&mut self, responses: &Responses, heard: Instant, ctx: &mut Context<'_>) {
        self.0.retain(|child, asked| {
            let repeats = responses.repeats(asked.message_id);
            if let Some(repeats) = repeats.filter(|repeats| *repeats > asked.repeats) {
                asked.repeats = repeats;
                asked.until = ctx.now + SILENCE;
            }
            asked.until = asked.until.max(heard + SILENCE);
            let unsure = repeats.is_some() && ctx.now < asked.until;
            if !unsure {
                ctx.event(Event::ChildAssured { child: *child });
            }
            unsure
        });
    }

    /// When one of them is to be settled.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.values().map(|asked| asked.until).min()
    }
}
