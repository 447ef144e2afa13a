//! The question for the peer's counters of pings, and the answer to the peer's
//! (`extension/ping.rs`).

use crate::config::Timers;
use crate::event::Event;
use crate::extension::ping;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::task::{Answer, Task, Then};
use std::time::Duration;
use wire::ike::{Message, Payload};

/// The most unanswered questions. An operator may repeat the command.
const MOST: usize = 2;

/// The question, with the number that the caller gave it.
struct AskCounts(u64);

impl Task for AskCounts {
    fn payloads(&self, session: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        match session.terms.private {
            true => vec![ping::question()],
            false => Vec::new(),
        }
    }

    /// It only asks: liveness alone decides how long the peer may be silent.
    fn allowed(&self, _: &Session, _: &Timers) -> Duration {
        Duration::MAX
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        _: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        turn.ctx.event(Event::PingCounts {
            sa: turn.core.id,
            question: self.0,
            counts: ping::told(answer.message),
        });
        Then::Stay
    }
}

/// Asks the peer for its counters, or for a sign of life.
pub(crate) fn ask(session: &mut Session, question: u64, turn: &mut Turn<'_, '_>) {
    if session.queue.tasks_of::<AskCounts>().count() < MOST {
        session.ask(AskCounts(question), turn);
    }
}

/// Returns our counters, if the peer asks for them.
pub(crate) fn answer(session: &Session, request: &Message) -> Option<Payload> {
    ping::is_asked(request).then(|| ping::counts(&session.pings))
}
