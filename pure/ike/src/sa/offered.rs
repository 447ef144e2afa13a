//! Requests that await an answer of the caller.

use super::established::Established;
use super::{Arrived, Turn};
use model::{CsaId, Path};
use wire::ike::{Datagram, Payload};

/// A request that awaits an answer of the caller.
pub(super) struct Offered {
    question: Question,
    octets: Vec<u8>,
    path: Path,
}

/// The question that the caller has to answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Acceptance of a grant, by its composite SA and number.
    Grant((CsaId, u16)),
    /// Keys for a neighbour, by the nonce of its token.
    Keys([u8; 16]),
}

impl Offered {
    pub(super) fn new(question: Question, arrived: &Arrived<'_>) -> Self {
        Self {
            question,
            octets: arrived.octets.to_vec(),
            path: arrived.path,
        }
    }

    pub(super) fn answer(
        &self,
        state: &mut Established,
        answer: Vec<Payload>,
        turn: &mut Turn<'_, '_>,
    ) {
        let datagram = Datagram::decode(&self.octets).expect("it was decoded when it came");
        let arrived = Arrived::new(datagram, &self.octets, self.path);
        state.respond(answer, &arrived, turn);
    }
}

impl Established {
    pub(super) fn remove_offered(&mut self, question: Question) -> Option<Offered> {
        let asked = |offered: &Offered| offered.question == question;
        let at = self.offered.iter().position(asked)?;
        Some(self.offered.remove(at))
    }
}
