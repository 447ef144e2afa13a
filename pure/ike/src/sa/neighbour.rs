//! Key requests between two licensed nodes, with tokens of mobile nodes (`extension/migration.rs`).

use super::established::Established;
use super::offered::{Offered, Question};
use super::task::Task;
use super::{Arrived, Turn};
use crate::config::PeerRole;
use crate::event::Event;
use crate::extension::migration;
use crate::refusal::KeyRefusal;
use crypto::Secret;
use model::Grant;
use wire::ike::{Message, RefusalCode, Token};

/// Maximum number of unanswered requests. Any host on our link can cause requests with its tokens.
const MOST_REQUESTS: usize = 4;

impl Established {
    /// Requests keys from a neighbour, and from no other peer.
    pub(crate) fn request_keys(&mut self, token: Token, turn: &mut Turn<'_, '_>) {
        let is_request = |task: &&Task| matches!(task, Task::RequestKeys(_));
        let refusal = if !self.is_with_neighbour(turn) {
            KeyRefusal::NotANeighbour
        } else if self.queue.tasks().filter(is_request).count() >= MOST_REQUESTS {
            KeyRefusal::TooMany
        } else {
            return self.ask(Task::RequestKeys(Box::new(token)), turn);
        };
        let (sa, answer) = (turn.core.id, Err(refusal));
        turn.ctx.event(Event::KeysAnswered { sa, token, answer });
    }

    pub(super) fn conclude_request(token: Token, response: &Message, turn: &mut Turn<'_, '_>) {
        let (sa, answer) = (turn.core.id, migration::outcome(response));
        turn.ctx.event(Event::KeysAnswered { sa, token, answer });
    }

    /// Handles a neighbour's request. The caller accepts or refuses it.
    pub(super) fn accept_key_request(
        &mut self,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), RefusalCode> {
        let peer = turn.core.peer(turn.ctx.config);
        let peer = peer.filter(|peer| peer.role == PeerRole::Neighbour);
        let node = peer.ok_or(RefusalCode::NOT_A_NEIGHBOUR)?.identity.clone();
        let token = migration::read(request).ok_or(RefusalCode::INVALID_TOKEN)?;
        self.offered
            .push(Offered::new(Question::Keys(token.nonce), arrived));
        let sa = turn.core.id;
        turn.ctx.event(Event::KeysAsked { sa, node, token });
        Ok(())
    }

    /// Answers a neighbour's request.
    pub(crate) fn answer_request(
        &mut self,
        nonce: [u8; 16],
        answer: &Result<Grant<Secret>, RefusalCode>,
        turn: &mut Turn<'_, '_>,
    ) {
        if let Some(offered) = self.remove_offered(Question::Keys(nonce)) {
            offered.answer(self, migration::answer(answer), turn);
        }
    }

    fn is_with_neighbour(&self, turn: &Turn<'_, '_>) -> bool {
        let peer = turn.core.peer(turn.ctx.config);
        self.private && peer.is_some_and(|peer| peer.role == PeerRole::Neighbour)
    }
}
