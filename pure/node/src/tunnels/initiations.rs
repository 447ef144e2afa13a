//! Initiations without an answer, which are reported after [`OVERDUE`]. An initiation is given up
//! much later, so without the report nothing would say why a peer is not up.

use crate::Event;
use crate::effects::Turn;
use ike::SaState;
use model::{Deadline, IkeSaId, Instant};
use std::collections::BTreeSet;
use std::time::Duration;

/// Time after which a missing answer is reported.
pub const OVERDUE: Duration = Duration::from_secs(5);

/// Initiations that are younger than [`OVERDUE`].
#[derive(Default)]
pub(crate) struct Initiations(BTreeSet<(Instant, IkeSaId)>);

impl Initiations {
    /// Notes a new initiation.
    pub(crate) fn begun(&mut self, sa: IkeSaId, now: Instant) {
        self.0.insert((now + OVERDUE, sa));
    }

    /// Reports initiations that have not been answered in time.
    pub(crate) fn handle_timeout(&mut self, turn: &mut Turn<'_>) {
        while let Some(id) = self.pop_due(turn.now) {
            let Some(sa) = turn.ike.sa(id) else {
                continue;
            };
            let pending = matches!(sa.state, SaState::Connecting | SaState::Authenticating);
            let unanswered = pending && sa.tries > 1 && !sa.refused;
            if let Some(peer) = sa.peer.filter(|_| unanswered) {
                turn.add(Event::Unanswered {
                    peer,
                    to: sa.path.remote,
                    tries: sa.tries,
                });
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let (at, _) = self.0.first()?;
        Some(Deadline {
            at: *at,
            reason: "report an initiation without an answer",
        })
    }

    fn pop_due(&mut self, now: Instant) -> Option<IkeSaId> {
        let (at, _) = self.0.first()?;
        (*at <= now).then(|| self.0.pop_first())?.map(|(_, sa)| sa)
    }
}
