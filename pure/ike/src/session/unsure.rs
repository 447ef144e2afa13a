//! Child SAs that the peer requested, until it is certain that the peer has our answer.
//!
//! A packet of the peer on the new child SA proves this, which the caller sees, and so does the
//! deletion of a replaced child SA (RFC 7296 section 2.8). But a peer may have nothing to send, and
//! some forget to delete. We would then keep sending on a child SA that the peer no longer has.
//! Therefore two more signs count.
//!
//! * A request with a message ID one window later: we have to "remember each response until" then
//!   (section 2.3), because a peer that sends it has the answer.
//! * For [`SILENCE`], the peer has neither retransmitted its request nor sent anything on another
//!   child SA: "the responder MAY begin sending on an SA as soon as it sends its response" (section
//!   2.8), and by then few packets can be lost by doing so.

use crate::event::Event;
use crate::sa::turn::Context;
use crate::window::Responses;
use model::{ChildSaId, Instant};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time after which every known implementation has retransmitted an unanswered request: strongSwan
/// waits longest, 4 s.
const SILENCE: Duration = Duration::from_secs(5);

/// The child SAs, with the requests that created them.
#[derive(Default)]
pub(crate) struct Unsure(BTreeMap<ChildSaId, Asked>);

/// The request that created a child SA.
struct Asked {
    message_id: u32,
    /// Number of its retransmissions.
    repeats: u32,
    until: Instant,
}

impl Unsure {
    /// Adds a child SA that is created by the request being answered.
    pub(crate) fn add(&mut self, child: ChildSaId, responses: &Responses, now: Instant) {
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

    /// Reports the child SAs that the peer certainly has. `heard` is the time of the last packet
    /// from the peer.
    pub(crate) fn resolve(&mut self, responses: &Responses, heard: Instant, ctx: &mut Context<'_>) {
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

    /// Returns the time of the next decision.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.values().map(|asked| asked.until).min()
    }
}
