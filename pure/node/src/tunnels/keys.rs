//! Reports of the keys of SAs, if the operator wants them.

use crate::Event;
use crate::effects::Turn;
use crate::keylog::{self, KeyLog};
use crypto::Secret;
use model::{ChildSa, IkeSaId};

/// True inside to report the keys of new SAs.
pub(crate) struct KeyReports(pub(super) bool);

impl KeyReports {
    /// Reports the keys of an IKE SA.
    pub fn ike(&self, sa: IkeSaId, turn: &mut Turn<'_>) {
        if let Some(keys) = self.of_ike(sa, turn.ike) {
            turn.add(keys);
        }
    }

    /// Reports the keys of a child SA.
    pub fn child(&self, child: &ChildSa<Secret>, turn: &mut Turn<'_>) {
        if self.0 {
            for line in keylog::esp_lines(child) {
                turn.add(Event::KeyLog(KeyLog::Esp(line)));
            }
        }
    }

    /// Returns the report of the keys of an IKE SA.
    pub(super) fn of_ike(&self, sa: IkeSaId, ike: &ike::Engine) -> Option<Event> {
        let keys = ike.key_log(sa).filter(|_| self.0)?;
        Some(Event::KeyLog(KeyLog::Ike(keylog::ike_line(&keys)?)))
    }
}
