//! The measurement of one path, current or not.
//!
//! An empty request is sent on this path alone: "Implementations MAY do path testing even if the
//! path currently being used is working" (RFC 4555 section 3.10). If it is not answered after
//! [`PATIENCE`], a loss is reported, and it is retransmitted on the current path like any other
//! request, so a dead path delays the next requests no longer than that.
//! The request never ends the SA earlier than liveness does, and is not sent if liveness checks are
//! disabled.

use crate::config::Timers;
use crate::event::{Event, Measured};
use crate::sa::core::{Core, is_same_route};
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::task::{Answer, Task, Then};
use model::{Instant, Path};
use std::time::Duration;
use wire::ike::Payload;

/// Time after which the request, or its answer, counts as lost.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// A request that is sent on one path.
pub(crate) struct Measure {
    path: Path,
    since: Instant,
    is_reported: bool,
}

impl Task for Measure {
    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        Vec::new()
    }

    fn allowed(&self, _: &Session, _: &Timers) -> Duration {
        Duration::MAX
    }

    fn path(&self, _: &Session, _: &Core) -> Path {
        self.path
    }

    fn measures(&self) -> bool {
        true
    }

    fn ends_with_keys(&self) -> bool {
        true
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        _: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        if self.is_reported {
            return Then::Stay;
        }
        let took = turn.ctx.now - self.since;
        let measured = match took < PATIENCE {
            true if is_same_route(answer.path, self.path) => Measured::Answered(took),
            // An earlier retransmission on the current path may have been answered.
            true => Measured::Unknown,
            false => Measured::Lost,
        };
        report(self.path, measured, turn);
        Then::Stay
    }
}

/// Sends a request on a path, unless others are outstanding or the SA is changing.
pub(crate) fn begin(session: &mut Session, path: Path, turn: &mut Turn<'_, '_>) -> bool {
    let peer = turn.core.peer(turn.ctx.config);
    let is_checked = peer.is_some_and(|peer| !peer.liveness.is_zero());
    let is_replacing = session.is_leaving() || session.is_on_trial();
    let is_busy = is_replacing || session.is_to_move() || session.is_to_follow();
    let is_possible = session.chooses_path() == Some(true) && !path.is_stream();
    if !is_checked || is_busy || !is_possible || !turn.core.requests.is_idle() {
        report(path, Measured::Unknown, turn);
        return false;
    }
    let since = turn.ctx.now;
    let request = Measure {
        path,
        since,
        is_reported: false,
    };
    session.ask(request, turn);
    true
}

/// Reports the loss of a request that has had no answer for [`PATIENCE`]. On a path that fades, the
/// retransmission may be lost too, and its answer would tell of the loss too late.
pub(crate) fn note_loss(session: &mut Session, turn: &mut Turn<'_, '_>) {
    for request in session.queue.running_of_mut::<Measure>() {
        let is_overdue = request.since + PATIENCE <= turn.ctx.now;
        if is_overdue && !std::mem::replace(&mut request.is_reported, true) {
            report(request.path, Measured::Lost, turn);
        }
    }
}

fn report(path: Path, measured: Measured, turn: &mut Turn<'_, '_>) {
    let sa = turn.core.id;
    turn.ctx.event(Event::PathMeasured { sa, path, measured });
}
