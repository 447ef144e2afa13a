//! Child SAs that the peer requested, until both ends have them.

use super::unsure::Unsure;
use crate::child::Agreed;
use crate::down_reason::DownReason;
use crate::exchange::first_error;
use crate::extension::followup::{MOST_FORGOTTEN, Series};
use model::{ChildSaId, Instant, Licence};
use wire::ike::{Message, NotifyType, Payload};

/// Child SAs that the peer requested.
#[derive(Default)]
pub(crate) struct Openings {
    /// Those that are not complete yet.
    pub(crate) incomplete: Vec<Opening>,
    /// Those that the peer may not know of.
    pub(crate) unsure: Unsure,
    /// Number of times in a row that the peer lost the state of our follow-up exchanges.
    forgotten: u8,
}

/// A child SA before all of its key exchanges have taken place.
pub(crate) struct Opening {
    /// The child SA to replace.
    pub(crate) old: Option<ChildSaId>,
    pub(crate) agreed: Agreed,
    pub(crate) series: Series,
    /// The lower nonce of its request and our answer.
    pub(crate) lower_nonce: Vec<u8>,
    /// Time at which it is dropped.
    pub(crate) until: Instant,
}

impl Opening {
    /// Returns the name for the peer: our inbound SPI.
    pub(crate) fn name(&self) -> [u8; 4] {
        self.agreed.spi.0.to_be_bytes()
    }

    pub(crate) fn link(&self) -> Option<Payload> {
        self.series.link(&self.name())
    }
}

impl Openings {
    /// Returns true if the peer is creating the child SA with this name.
    pub(crate) fn is_open(&self, name: Option<&str>) -> bool {
        let named = |opening: &Opening| opening.agreed.name.as_deref() == name;
        self.incomplete.iter().any(named)
    }

    /// Returns the licences that we asked for with an unfinished child SA.
    pub(crate) fn asked(&self, name: &str) -> Option<&[Licence]> {
        let named = |opening: &&Opening| opening.agreed.name.as_deref() == Some(name);
        let opening = self.incomplete.iter().find(named);
        opening.map(|opening| &opening.agreed.asked[..])
    }

    /// Drops the unfinished child SA with this name.
    pub(crate) fn close(&mut self, name: Option<&str>) {
        let named = |opening: &Opening| opening.agreed.name.as_deref() == name;
        self.incomplete.retain(|opening| !named(opening));
    }

    /// Counts the answers by which the peer lost the state of our follow-up exchanges. Returns an
    /// error after too many in a row.
    pub(crate) fn note_forgotten(&mut self, answer: &Message) -> Result<(), DownReason> {
        match first_error(answer) {
            None => self.forgotten = 0,
            Some(NotifyType::STATE_NOT_FOUND) => self.forgotten += 1,
            Some(_) => {}
        }
        match self.forgotten < MOST_FORGOTTEN {
            true => Ok(()),
            false => Err(DownReason::Forgetful),
        }
    }
}
