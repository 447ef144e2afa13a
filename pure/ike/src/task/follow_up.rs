//! Additional key exchanges of a successor or a clone of the IKE SA (RFC 9370 section 2.2.4).
//!
//! The end that requested the successor initiates them, one IKE_FOLLOWUP_KE for each.

use super::{clone, opening, rekey_ike};
use crate::down_reason::DownReason;
use crate::exchange::{first_error, notify};
use crate::extension::intermediate::Asked;
use crate::refusal::Refusal;
use crate::sa::arrived::Arrived;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::successor::Successor;
use crate::session::task::{Answer, Makes, Subject, Task, Then};
use wire::ike::{ExchangeType, Message, NotifyType, Payload};

/// Our request for the next key exchange.
pub(crate) struct FollowUp {
    successor: Successor,
    asked: Asked,
    payloads: Vec<Payload>,
}

impl Task for FollowUp {
    fn subject(&self) -> Subject {
        Subject::Whole
    }

    fn exchange(&self) -> ExchangeType {
        ExchangeType::IKE_FOLLOWUP_KE
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        self.payloads.clone()
    }

    fn ends_with_keys(&self) -> bool {
        self.makes() == Some(Makes::Successor)
    }

    fn makes(&self) -> Option<Makes> {
        Some(match self.successor.purpose {
            None => Makes::Successor,
            Some(_) => Makes::Clone,
        })
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        session: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        conclude(session, *self, answer.message, turn)
    }
}

/// Requests the next key exchange, ahead of all queued requests.
pub(crate) fn ask(session: &mut Session, mut successor: Successor, response: &Message) -> Then {
    let Some((asked, payloads)) = successor.series.ask(response) else {
        return Then::Close(DownReason::NotOffered("no link to the next key exchange"));
    };
    session.queue.push_first(Box::new(FollowUp {
        successor,
        asked,
        payloads,
    }));
    Then::Stay
}

/// Evaluates the peer's answer.
fn conclude(
    session: &mut Session,
    follow_up: FollowUp,
    response: &Message,
    turn: &mut Turn<'_, '_>,
) -> Then {
    let FollowUp {
        mut successor,
        asked,
        ..
    } = follow_up;
    if let Some(error) = first_error(response) {
        match successor.purpose {
            None => rekey_ike::put_off(session, error, turn),
            Some(_) => clone::note_refused(session, error, turn),
        }
        return Then::Stay;
    }
    if let Err(why) = successor.series.conclude(asked, response) {
        return Then::Close(DownReason::Misbehaved(why));
    }
    match successor.is_complete() {
        true => Then::succeed(successor),
        false => ask(session, successor, response),
    }
}

/// Answers a peer's request for the next key exchange of a child SA, or of a successor.
pub(crate) fn answer(
    session: &mut Session,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Then {
    if let Some(answer) = opening::answer(session, request, turn) {
        session.respond(answer, arrived, turn);
        return Then::Stay;
    }
    let named =
        |successor: &mut Box<Successor>| !successor.is_complete() && successor.is_named_in(request);
    let late = !turn.core.responses.is_in_order(request.header.message_id);
    let busy = late || (!rekey_ike::is_awaiting(session) && !turn.core.requests.is_idle());
    let refusal = match session.replacement.promised.take_if(named) {
        None => NotifyType::STATE_NOT_FOUND,
        // Requests in flight of either end would be lost with the SA, as in CREATE_CHILD_SA.
        Some(_) if busy => NotifyType::TEMPORARY_FAILURE,
        Some(mut successor) => match successor.series.answer(request) {
            None => {
                turn.ctx
                    .refused(Some(turn.core.peer_id()), Refusal::KeyExchange);
                NotifyType::NO_PROPOSAL_CHOSEN
            }
            Some(answer) => {
                successor.until = turn.ctx.now + turn.ctx.config.timers.follow_up;
                let answer = std::iter::once(answer).chain(successor.link()).collect();
                session.respond(answer, arrived, turn);
                return Then::succeed(*successor);
            }
        },
    };
    session.respond(vec![notify(refusal, Vec::new())], arrived, turn);
    Then::Stay
}
