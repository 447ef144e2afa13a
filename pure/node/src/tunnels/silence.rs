//! Peers that child SAs send to and receive nothing from.
//!
//! Neither a killed gateway nor a NAT with a new mapping sends a notice, and liveness waits for
//! silence in both directions. So a peer that owes an answer is checked after [`FIRST`]. One-way
//! traffic looks the same, so the pauses between further checks grow, and no check ends an SA
//! earlier than liveness does.
//!
//! Nothing is looked at while nothing is sent: the data plane reports the first datagram, and
//! reports the next one only after an answer or a check. So a tunnel that rests after a packet of
//! ours costs one check.

use crate::effects::{IkeCommand, Turn};
use esp::Command;
use model::{ChildSaId, Deadline, IkeSaId, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time that an answer to sent packets may take.
const FIRST: Duration = Duration::from_secs(3);

/// Pause after the first check. It doubles with each check until a packet arrives.
const PAUSE: Duration = Duration::from_secs(6);

/// Longest pause after a check.
const LAST: Duration = Duration::from_secs(60);

/// IKE SAs whose child SAs send.
#[derive(Default)]
pub(crate) struct Silences {
    of: BTreeMap<IkeSaId, Silence>,
    due: BTreeSet<(Instant, IkeSaId)>,
}

struct Silence {
    /// Time of the next look, if a child SA has sent.
    until: Option<Instant>,
    /// Time of the last check.
    asked: Option<Instant>,
    /// Time before which no other check is sent, unless a packet arrives.
    not_before: Option<Instant>,
    /// Pause after the next check.
    pause: Duration,
    /// Child SAs that have reported a datagram.
    children: BTreeSet<ChildSaId>,
}

/// Action at the end of a pause.
enum Next {
    /// Wait on.
    Wait,
    /// Send a check.
    Ask,
    /// Have these child SAs report their next datagram.
    Watch(BTreeSet<ChildSaId>),
}

impl Silences {
    /// Notes that a child SA sent its first datagram since it was watched.
    pub(crate) fn sends(&mut self, sa: IkeSaId, child: ChildSaId, now: Instant) {
        let silence = self.of.entry(sa).or_insert_with(|| Silence {
            until: None,
            asked: None,
            not_before: None,
            pause: PAUSE,
            children: BTreeSet::new(),
        });
        silence.children.insert(child);
        if silence.until.is_none() {
            silence.until = Some(now + FIRST);
            self.due.insert((now + FIRST, sa));
        }
    }

    /// Forgets an IKE SA.
    pub(crate) fn forget(&mut self, sa: IkeSaId) {
        if let Some(until) = self.of.remove(&sa).and_then(|silence| silence.until) {
            self.due.remove(&(until, sa));
        }
    }

    /// Sends checks to peers that have been silent for too long. Returns their child SAs, because
    /// packets as long as those may be lost on their paths.
    pub(crate) fn handle_timeout(&mut self, turn: &mut Turn<'_>) -> Vec<ChildSaId> {
        let mut silent = Vec::new();
        while let Some(sa) = self.pop_due(turn.now) {
            let children = turn.ike.children(sa);
            self.keep(sa, &children);
            let seen = children.iter().map(|child| turn.plane.observed(*child));
            let seen: Vec<_> = seen.collect();
            let heard = seen.iter().filter_map(|seen| seen.heard).max();
            let asked = self.of.get(&sa).and_then(|silence| silence.asked);
            // An answer may arrive on any of several child SAs for the same traffic.
            let sent = seen.iter().filter_map(|seen| seen.unanswered);
            let awaited = sent.filter(|[_, last]| Some(*last) >= heard && Some(*last) > asked);
            let since = awaited
                .map(|[first, _]| heard.unwrap_or(first).max(first))
                .min();
            match self.judge(sa, heard, since, turn.now) {
                Some(Next::Ask) => {
                    turn.add(IkeCommand::Doubt(sa));
                    silent.extend(children);
                }
                Some(Next::Watch(children)) => {
                    let watch = children.into_iter().map(Command::Watch);
                    watch.for_each(|watch| turn.add(watch));
                }
                Some(Next::Wait) | None => {}
            }
        }
        silent
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let (at, _) = self.due.first()?;
        Some(Deadline {
            at: *at,
            reason: "check a silent peer",
        })
    }

    fn pop_due(&mut self, now: Instant) -> Option<IkeSaId> {
        let (at, sa) = *self.due.first()?;
        (at <= now).then(|| {
            self.due.pop_first();
            sa
        })
    }

    /// Forgets child SAs that an IKE SA has no more.
    fn keep(&mut self, sa: IkeSaId, children: &[ChildSaId]) {
        if let Some(silence) = self.of.get_mut(&sa) {
            silence.children.retain(|child| children.contains(child));
        }
    }

    /// Decides at the end of a pause. The last packet arrived at `heard`; an answer to a packet
    /// that was sent after the last check is awaited `since`.
    fn judge(
        &mut self,
        sa: IkeSaId,
        heard: Option<Instant>,
        since: Option<Instant>,
        now: Instant,
    ) -> Option<Next> {
        let silence = self.of.get_mut(&sa)?;
        if heard >= silence.asked {
            silence.pause = PAUSE;
            silence.not_before = None;
        }
        let Some(since) = since else {
            silence.until = None;
            return Some(Next::Watch(std::mem::take(&mut silence.children)));
        };
        let due = silence.not_before.unwrap_or(since).max(since + FIRST);
        let (next, until) = match due <= now {
            true => (Next::Ask, now + silence.pause),
            false => (Next::Wait, due),
        };
        if let Next::Ask = next {
            (silence.asked, silence.not_before) = (Some(now), Some(until));
            silence.pause = (silence.pause * 2).min(LAST);
        }
        silence.until = Some(until);
        self.due.insert((until, sa));
        Some(next)
    }
}
