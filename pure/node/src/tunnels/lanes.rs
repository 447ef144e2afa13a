//! One live path to a peer, with its child SAs.

use super::own_traffic::OwnTraffic;
use super::path_health::{Health, Seen};
use crate::effects::{Effect, Turn};
use ike::{is_slot, live_path};
use model::{ChildSaId, Instant, Path};
use std::net::IpAddr;
use std::time::Duration;

/// Time of use after which the next pause is short again.
const LASTS: Duration = Duration::from_secs(60);

/// Number of the path of the IKE SA.
pub(super) const FIRST: u8 = 1;

/// A pair of addresses, ours and the peer's.
pub(super) type Ends = (IpAddr, IpAddr);

/// A path, and its child SAs.
pub(super) struct Lane {
    pub(super) path: Path,
    /// The newest child SA that is no slot, and those that it has replaced.
    pub(super) current: ChildSaId,
    pub(super) older: Vec<ChildSaId>,
    /// The slots on the path of the IKE SA, and the one that sends instead of the current child SA.
    pub(super) slots: Vec<ChildSaId>,
    pub(super) slot: Option<ChildSaId>,
    pub(super) health: Health,
    /// Number of datagrams received.
    opened: u64,
    /// Time since which the path is up, or down.
    pub(super) since: Instant,
    /// Time since which the IKE SA has the same addresses.
    pub(super) double: Option<Instant>,
    /// Traffic that the path carries before all others.
    pub(super) own: OwnTraffic,
    /// True if the path was reported as down.
    pub(super) is_down: bool,
    /// True if the child SAs are not sent on, apart from those with traffic of the path's own.
    pub(super) is_off: bool,
    pub(super) is_leaving: bool,
    /// True if the signal of our address is weak.
    pub(super) is_weak: bool,
    /// True if the path works, but others carry what we send, as its signal is weak.
    pub(super) is_avoided: bool,
}

/// The child SAs of a path that send or may send, the oldest first.
pub(super) struct Found {
    pub(super) path: Path,
    pub(super) children: Vec<ChildSaId>,
    pub(super) slots: Vec<ChildSaId>,
}

impl Found {
    pub(super) const fn new(path: Path) -> Self {
        Self {
            path,
            children: Vec::new(),
            slots: Vec::new(),
        }
    }

    pub(super) fn enter(&mut self, id: ChildSaId, name: Option<&str>, path: Path) {
        match is_slot(name) {
            true => self.slots.push(id),
            false => {
                self.path = path;
                self.children.push(id);
            }
        }
    }
}

impl Lane {
    pub(super) const fn new(path: Path, current: ChildSaId, now: Instant) -> Self {
        Self {
            path,
            current,
            older: Vec::new(),
            slots: Vec::new(),
            slot: None,
            health: Health::new(),
            opened: 0,
            since: now,
            double: None,
            own: OwnTraffic::NONE,
            is_down: false,
            is_off: false,
            is_leaving: false,
            is_weak: false,
            is_avoided: false,
        }
    }

    /// Returns true if the path was of use for a while.
    pub(super) fn lasted(&self, now: Instant) -> bool {
        !self.health.is_down() && self.since + LASTS <= now
    }

    /// Returns the child SA that sends.
    pub(super) fn sending(&self) -> ChildSaId {
        self.slot.unwrap_or(self.current)
    }

    /// Returns the child SAs that send or may send.
    pub(super) fn senders(&self) -> impl Iterator<Item = ChildSaId> {
        std::iter::once(self.sending()).chain(self.own.sending())
    }

    /// Returns all child SAs for all traffic.
    pub(super) fn all(&self) -> impl Iterator<Item = ChildSaId> {
        let own = self.older.iter().chain([&self.current]);
        own.chain(&self.slots).copied()
    }

    /// Begins or stops to send. `is_down`: nothing is sent on this path; `yields`: nothing but its
    /// own traffic. The child SAs that stop sending are added to `retired`, for the end of the
    /// review: there is always one to send on.
    pub(super) fn switch(
        &mut self,
        is_down: bool,
        yields: bool,
        retired: &mut Vec<ChildSaId>,
        turn: &mut Turn<'_>,
    ) {
        let is_off = is_down || yields && self.own.is_reserved();
        if std::mem::replace(&mut self.is_off, is_off) != is_off {
            match is_off {
                true => retired.extend(self.all()),
                false => turn.add(Effect::Prefer(self.current)),
            }
        }
        self.own.switch(is_down, retired, turn);
    }

    /// Returns what the data plane has seen since the last call.
    pub(super) fn look(&mut self, round_trip: Option<Duration>, turn: &Turn<'_>) -> Seen {
        let (mut heard, mut opened) = (None, 0);
        for id in self.all().chain(self.own.all()) {
            let seen = turn.plane.observed(id);
            heard = heard.max(seen.heard);
            opened += seen.traffic.opened.packets;
        }
        let receives = std::mem::replace(&mut self.opened, opened) != opened;
        // An answer may come on another child SA of the path.
        let owes = self.senders().any(|id| {
            let unanswered = turn.plane.observed(id).unanswered;
            unanswered.is_some_and(|[_, last]| heard.is_none_or(|heard| heard <= last))
        });
        Seen {
            heard,
            owes,
            is_busy: owes || receives,
            round_trip,
        }
    }
}

/// Returns the number of the path of a child SA for the traffic of the first one.
pub(super) fn number(name: Option<&str>) -> Option<u8> {
    match name {
        None => Some(FIRST),
        name if is_slot(name) => Some(FIRST),
        name => live_path(name),
    }
}

pub(super) const fn ends(path: Path) -> Ends {
    (path.local.ip(), path.remote.ip())
}
