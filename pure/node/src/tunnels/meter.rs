//! The traffic of peers whose sessions may be resumed only until their tunnels have carried so much
//! (`[sessions] data`).
//!
//! Looks at the child SAs of these peers at an interval. What an SA has carried since the last look
//! is counted when it is removed.

use super::children::Children;
use crate::effects::{IkeCommand, Turn};
use model::{ChildSaId, Deadline, IkeSaId, Instant};
use std::time::Duration;

/// Time between two looks. What a gateway that is killed has carried since the last one is lost to
/// the count, beyond what the session was charged in advance.
const PAUSE: Duration = Duration::from_secs(10);

/// Looks at the traffic of child SAs.
#[derive(Default)]
pub(crate) struct Meter {
    /// Time of the next look, if any traffic is metered.
    next: Option<Instant>,
}

impl Meter {
    /// Begins to look, if there is anything to meter and it has not begun.
    pub fn begin(&mut self, turn: &Turn<'_>) {
        if self.next.is_none() && turn.ike.metered().next().is_some() {
            self.next = Some(turn.now + PAUSE);
        }
    }

    pub fn handle_timeout(&mut self, children: &Children, turn: &mut Turn<'_>) {
        if self.next.take_if(|at| *at <= turn.now).is_none() {
            return;
        }
        let sas: Vec<_> = turn.ike.metered().collect();
        for sa in sas {
            count(sa, children, turn);
        }
        self.begin(turn);
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        Some(Deadline {
            at: self.next?,
            reason: "count what tunnels have carried",
        })
    }

    /// Counts the traffic of the IKE SA of a child SA that is about to be removed.
    pub fn settle(&self, child: ChildSaId, children: &Children, turn: &mut Turn<'_>) {
        if let Some(child) = children.get(child).filter(|_| self.next.is_some()) {
            count(child.ike, children, turn);
        }
    }
}

/// Counts what all child SAs of an IKE SA have carried, including those that only drain.
fn count(sa: IkeSaId, children: &Children, turn: &mut Turn<'_>) {
    let Some(peer) = turn.peer(sa) else { return };
    let its = children.of_peer(peer).filter(|(_, child)| child.ike == sa);
    let carried = its.map(|(id, _)| {
        let traffic = turn.plane.observed(id).traffic;
        (id, traffic.sealed.octets + traffic.opened.octets)
    });
    let carried = carried.collect();
    turn.add(IkeCommand::Meter(sa, carried));
}
