//! The traffic of peers whose sessions may be resumed only until their tunnels have carried so much
//! (`[sessions] data`).
//!
//! Looks at the child SAs of these peers at an interval, a few at a time. What an SA has carried
//! since the last look is counted when it is removed.

use super::children::Children;
use crate::effects::{IkeCommand, Turn};
use model::{ChildSaId, Deadline, IkeSaId, Instant};
use std::time::Duration;

/// Time between two looks. What a gateway that is killed has carried since the last one is lost to
/// the count, beyond what the session was charged in advance.
const PAUSE: Duration = Duration::from_secs(10);

/// IKE SAs of one step of a look, and time until the next step: more of them would hold packets up.
const STEP: usize = 500;
const BREATH: Duration = Duration::from_millis(20);

/// Looks at the traffic of child SAs.
#[derive(Default)]
pub(crate) struct Meter {
    /// Time of the next step, if any traffic is metered.
    next: Option<Instant>,
    /// IKE SAs that the present look has not come to.
    rest: Vec<IkeSaId>,
}

impl Meter {
    /// Begins to look, if there is anything to meter and it has not begun.
    pub fn begin(&mut self, turn: &Turn<'_>) {
        if self.next.is_none() && turn.ike.metered().next().is_some() {
            self.next = Some(turn.now + PAUSE);
        }
    }

    pub fn handle_timeout(&mut self, children: &Children, turn: &mut Turn<'_>) {
        for sa in self.step(|| turn.ike.metered().collect(), turn.now) {
            count(sa, children, turn);
        }
    }

    /// Returns the IKE SAs to count now. A look at `all` begins if the last one has ended.
    fn step(&mut self, all: impl FnOnce() -> Vec<IkeSaId>, now: Instant) -> Vec<IkeSaId> {
        if self.next.take_if(|at| *at <= now).is_none() {
            return Vec::new();
        }
        if self.rest.is_empty() {
            self.rest = all();
        }
        let step = self.rest.split_off(self.rest.len().saturating_sub(STEP));
        let pause = if self.rest.is_empty() { PAUSE } else { BREATH };
        self.next = (!step.is_empty()).then(|| now + pause);
        step
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_many_are_looked_at_step_by_step_and_then_nobody_for_a_while() {
        let mut meter = Meter {
            next: Some(Instant::ZERO),
            ..Meter::default()
        };
        let all = || (0..1200).map(IkeSaId).collect::<Vec<_>>();
        let mut now = Instant::ZERO;
        let mut seen = Vec::new();
        let mut steps = Vec::new();
        while let Some(deadline) = meter.poll_timeout().filter(|next| next.at < now + PAUSE) {
            now = deadline.at;
            let step = meter.step(all, now);
            steps.push(step.len());
            seen.extend(step);
        }
        assert_eq!(steps, [500, 500, 200]);
        seen.sort_unstable();
        assert_eq!(seen, all());
        assert_eq!(meter.poll_timeout().map(|next| next.at), Some(now + PAUSE));
        assert_eq!(meter.step(all, now), []);
    }

    #[test]
    fn if_nothing_is_metered_any_more_the_looks_end() {
        let mut meter = Meter {
            next: Some(Instant::ZERO),
            ..Meter::default()
        };
        assert_eq!(meter.step(Vec::new, Instant::ZERO), []);
        assert_eq!(meter.poll_timeout(), None);
    }
}
