//! Grants on this IKE SA, and requests that await an answer of the caller.

use crate::sa::arrived::Arrived;
use model::{CsaId, Path};
use std::collections::BTreeSet;

/// Licensed node: grants and requests.
#[derive(Default)]
pub(crate) struct Grants {
    /// The composite SAs whose keys arrived on this SA.
    pub(crate) held: BTreeSet<CsaId>,
    /// Grants and requests that await an answer of the caller.
    pub(crate) offered: Vec<Offered>,
}

/// A request that awaits an answer of the caller.
pub(crate) struct Offered {
    question: Question,
    pub(crate) octets: Vec<u8>,
    pub(crate) path: Path,
}

/// The question that the caller has to answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// Acceptance of a grant, by its composite SA and number.
    Grant((CsaId, u16)),
    /// Keys for a neighbour, by the nonce of its token.
    Keys([u8; 16]),
}

impl Grants {
    pub(crate) fn offer(&mut self, question: Question, arrived: &Arrived<'_>) {
        self.offered.push(Offered {
            question,
            octets: arrived.octets.to_vec(),
            path: arrived.path,
        });
    }

    pub(crate) fn take(&mut self, question: Question) -> Option<Offered> {
        let asked = |offered: &Offered| offered.question == question;
        let at = self.offered.iter().position(asked)?;
        Some(self.offered.remove(at))
    }
}
