//! Initiations without an answer. One is given up after 103 s, which is too late twice: for the
//! operator, so it is reported after [`OVERDUE`], and if the peer has lost the half-open IKE SA, so
//! another attempt may begin beside it after [`LOST`].

use crate::Event;
use crate::effects::Turn;
use ike::SaState;
use model::{Deadline, IkeSaId, Instant, PeerId};
use std::collections::BTreeSet;
use std::time::Duration;

/// Time after which a missing answer is reported.
pub const OVERDUE: Duration = Duration::from_secs(5);

/// Time after which a peer that does not answer may have lost the IKE SA. A peer that is up is
/// checked after the same time (`silence.rs`).
const LOST: Duration = Duration::from_secs(3);

/// Initiations that are younger than [`OVERDUE`].
#[derive(Default)]
pub(crate) struct Initiations(BTreeSet<(Instant, IkeSaId, Age)>);

/// Age at which an initiation is judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Lost,
    Overdue,
}

impl Initiations {
    /// Notes a new initiation.
    pub(crate) fn begun(&mut self, sa: IkeSaId, now: Instant) {
        let lost = (now + LOST, sa, Age::Lost);
        self.0.extend([lost, (now + OVERDUE, sa, Age::Overdue)]);
    }

    /// Reports initiations that have not been answered in time. Returns the peers of all that are
    /// without an answer.
    pub(crate) fn handle_timeout(&mut self, turn: &mut Turn<'_>) -> Vec<PeerId> {
        let mut peers = Vec::new();
        while let Some((id, age)) = self.pop_due(turn.now) {
            let Some(sa) = turn.ike.sa(id) else {
                continue;
            };
            let pending = matches!(sa.state, SaState::Connecting | SaState::Authenticating);
            let unanswered = pending && sa.tries > 1 && !sa.refused;
            let Some(peer) = sa.peer.filter(|_| unanswered) else {
                continue;
            };
            peers.push(peer);
            if age == Age::Overdue {
                turn.add(Event::Unanswered {
                    peer,
                    to: sa.path.remote,
                    tries: sa.tries,
                });
            }
        }
        peers
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let (at, ..) = self.0.first()?;
        Some(Deadline {
            at: *at,
            reason: "judge an initiation without an answer",
        })
    }

    fn pop_due(&mut self, now: Instant) -> Option<(IkeSaId, Age)> {
        let (at, ..) = self.0.first()?;
        let (_, sa, age) = (*at <= now).then(|| self.0.pop_first())??;
        Some((sa, age))
    }
}
