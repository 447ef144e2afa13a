//! One live path to a peer, with its child SAs.

use super::path_health::{Health, Seen};
use crate::effects::Turn;
use ike::live_path;
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
    /// The child SA that sends, and those that it has replaced.
    pub(super) current: ChildSaId,
    pub(super) older: Vec<ChildSaId>,
    pub(super) health: Health,
    /// Number of datagrams received.
    opened: u64,
    /// Time since which the path is up, or down.
    pub(super) since: Instant,
    /// Time since which the IKE SA has the same addresses.
    pub(super) double: Option<Instant>,
    /// True if the child SAs are not sent on.
    pub(super) is_off: bool,
    pub(super) is_leaving: bool,
}

impl Lane {
    pub(super) const fn new(path: Path, current: ChildSaId, now: Instant) -> Self {
        Self {
            path,
            current,
            older: Vec::new(),
            health: Health::new(),
            opened: 0,
            since: now,
            double: None,
            is_off: false,
            is_leaving: false,
        }
    }

    /// Returns true if the path was of use for a while.
    pub(super) fn lasted(&self, now: Instant) -> bool {
        !self.health.is_down() && self.since + LASTS <= now
    }

    /// Returns what the data plane has seen since the last call.
    pub(super) fn look(&mut self, round_trip: Option<Duration>, turn: &Turn<'_>) -> Seen {
        let current = turn.plane.observed(self.current);
        let older = self
            .older
            .iter()
            .map(|child| turn.plane.observed(*child).heard);
        let opened = current.traffic.opened.packets;
        let receives = std::mem::replace(&mut self.opened, opened) != opened;
        let owes = current.unanswered.is_some();
        Seen {
            heard: older.chain([current.heard]).max().flatten(),
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
        name => live_path(name),
    }
}

pub(super) const fn ends(path: Path) -> Ends {
    (path.local.ip(), path.remote.ip())
}
