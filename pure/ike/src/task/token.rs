//! Key requests between two licensed nodes, with tokens of mobile nodes (`extension/migration.rs`).

use crate::config::PeerRole;
use crate::event::Event;
use crate::extension::migration;
use crate::refusal::KeyRefusal;
use crate::sa::arrived::Arrived;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::grants::Question;
use crate::session::task::{Answer, Task, Then};
use crypto::Secret;
use model::Grant;
use wire::ike::{ExchangeType, Message, Payload, RefusalCode, Token};

/// Maximum number of unanswered requests. Any host on our link can cause requests with its tokens.
const MOST_REQUESTS: usize = 4;

/// Request for keys from the previous node, with a mobile node's token.
struct RequestKeys(Token);

impl Task for RequestKeys {
    fn exchange(&self) -> ExchangeType {
        ExchangeType::KEY_REQUEST
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        vec![migration::request(&self.0)]
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        _: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        let (sa, token) = (turn.core.id, self.0);
        let answer = migration::outcome(answer.message);
        turn.ctx.event(Event::KeysAnswered { sa, token, answer });
        Then::Stay
    }
}

/// Requests keys from a neighbour, and from no other peer.
pub(crate) fn request(session: &mut Session, token: Token, turn: &mut Turn<'_, '_>) {
    let refusal = if !is_with_neighbour(session, turn) {
        KeyRefusal::NotANeighbour
    } else if session.queue.tasks_of::<RequestKeys>().count() >= MOST_REQUESTS {
        KeyRefusal::TooMany
    } else {
        return session.ask(RequestKeys(token), turn);
    };
    let (sa, answer) = (turn.core.id, Err(refusal));
    turn.ctx.event(Event::KeysAnswered { sa, token, answer });
}

/// Handles a neighbour's request. The caller accepts or refuses it.
pub(crate) fn accept(
    session: &mut Session,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Result<(), RefusalCode> {
    let peer = turn.core.peer(turn.ctx.config);
    let peer = peer.filter(|peer| peer.role == PeerRole::Neighbour);
    let node = peer.ok_or(RefusalCode::NOT_A_NEIGHBOUR)?.identity.clone();
    let token = migration::read(request).ok_or(RefusalCode::INVALID_TOKEN)?;
    let question = Question::Keys(token.nonce);
    session.grants.offer(question, arrived);
    let sa = turn.core.id;
    turn.ctx.event(Event::KeysAsked { sa, node, token });
    Ok(())
}

/// Answers a neighbour's request.
pub(crate) fn answer(
    session: &mut Session,
    nonce: [u8; 16],
    answer: &Result<Grant<Secret>, RefusalCode>,
    turn: &mut Turn<'_, '_>,
) {
    if let Some(offered) = session.grants.take(Question::Keys(nonce)) {
        session.respond_late(migration::answer(answer), &offered, turn);
    }
}

fn is_with_neighbour(session: &Session, turn: &Turn<'_, '_>) -> bool {
    let peer = turn.core.peer(turn.ctx.config);
    session.terms.private && peer.is_some_and(|peer| peer.role == PeerRole::Neighbour)
}
