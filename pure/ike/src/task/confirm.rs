//! The third message of SKID3 (`extension/skid.rs`): the initiator proves that it is there now.
//!
//! It is the first request of an IKE SA that is up at this end. The responder answers once it has
//! taken the entry. An authentic refusal means that another one was faster, or that the entry is no
//! good any more: a full exchange follows.
//!
//! Without an answer, the responder may have lost what it needs to give one, as it was overloaded
//! or killed. Another IKE SA is then begun beside, and the first one to be up counts.

use crate::config::Timers;
use crate::down_reason::DownReason;
use crate::exchange::first_error;
use crate::extension::ticket;
use crate::sa::established;
use crate::sa::turn::{NotResumed, Turn};
use crate::session::Session;
use crate::session::task::{Answer, Subject, Task, Then};
use crate::task::crash::note_token;
use crate::task::renew;
use crate::task::ticket::note_given;
use model::Deadline;
use resumption::Way;
use std::time::Duration;
use wire::ike::{Authentication, ExchangeType, Payload};

/// The proof of the initiator.
struct Confirm {
    proof: Authentication,
    way: Way,
}

impl Task for Confirm {
    fn subject(&self) -> Subject {
        Subject::Whole
    }

    fn exchange(&self) -> ExchangeType {
        ExchangeType::SKID_RESUME
    }

    fn payloads(&self, session: &Session, turn: &mut Turn<'_, '_>) -> Vec<Payload> {
        let peer = turn.core.peer(turn.ctx.config);
        let request = peer.and_then(|peer| ticket::request(peer, session.terms.private));
        let proof = Payload::Authentication(self.proof.clone());
        std::iter::once(proof).chain(request).collect()
    }

    /// A responder that was there a round trip ago, and is not, has lost what it needs.
    fn allowed(&self, _: &Session, timers: &Timers) -> Duration {
        timers.give_up_check
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        session: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        session.liveness.confirmed_by = None;
        if first_error(answer.message).is_some() {
            turn.ctx.out.not_resumed.push(NotResumed::from(&*turn.core));
            return Then::End(DownReason::NotResumed);
        }
        note_given(session, answer.message, turn);
        note_token(session, answer.message);
        if self.way == Way::Skid3Pfs {
            renew::begin(session, turn);
        }
        Then::Stay
    }
}

/// Sends the proof.
pub(crate) fn send(
    session: &mut Session,
    proof: Authentication,
    way: Way,
    turn: &mut Turn<'_, '_>,
) {
    session.liveness.confirmed_by = Some(turn.ctx.now + ticket::LOST);
    established::send(session, Box::new(Confirm { proof, way }), turn);
}

/// Returns the time at which an answer is overdue.
pub(crate) fn overdue_at(session: &Session) -> Option<Deadline> {
    Some(Deadline {
        at: session.liveness.confirmed_by?,
        reason: "the third message of SKID3 is not answered",
    })
}

/// Has another IKE SA begun if the answer is overdue, once.
pub(crate) fn doubt(session: &mut Session, turn: &mut Turn<'_, '_>) {
    let (by, now) = (&mut session.liveness.confirmed_by, turn.ctx.now);
    if by.take_if(|by| *by <= now).is_some() {
        turn.ctx.out.lost.push(turn.core.id);
    }
}
