//! The paths of an IKE SA beside its own, each with a child SA, and requests on paths of their own.

use crate::event::Event;
use crate::extension::live_path;
use crate::extension::path_traffic::path_of;
use crate::refusal::Refusal;
use crate::sa::turn::Turn;
use model::Path;
use std::net::SocketAddr;
use wire::ike::NotifyType;

/// Number of transmissions of a request on its own path. Then it goes on the path of the IKE SA,
/// because the window waits for the answer.
const ALONE: u8 = 2;

/// The further paths. There are three at most.
#[derive(Default)]
pub(crate) struct LivePaths(Vec<LivePath>);

/// A further path.
#[derive(Clone, Copy)]
pub(crate) struct LivePath {
    pub(crate) number: u8,
    pub(crate) path: Path,
    /// The peer's address when the path was added.
    pub(crate) home: SocketAddr,
    /// True if the peer has answered on this path alone.
    pub(crate) proved: bool,
    /// Number of checks without an answer on the path.
    pub(crate) failures: u8,
}

impl LivePaths {
    /// Sets the path with a number, which is to be checked.
    pub(crate) fn set(&mut self, number: u8, path: Path) {
        self.0.retain(|known| known.number != number);
        // There is one, nearly always.
        self.0.reserve_exact(1);
        self.0.push(LivePath {
            number,
            path,
            home: path.remote,
            proved: false,
            failures: 0,
        });
    }

    pub(crate) fn get(&self, number: u8) -> Option<&LivePath> {
        self.0.iter().find(|known| known.number == number)
    }

    pub(crate) fn get_mut(&mut self, number: u8) -> Option<&mut LivePath> {
        self.0.iter_mut().find(|known| known.number == number)
    }

    /// Returns the path of the child SA with this name, if it has one of its own.
    pub(crate) fn of(&self, name: Option<&str>) -> Option<&LivePath> {
        self.get(live_path::live_path(name)?)
    }

    /// Returns the further path that a child SA with this name takes: one of its own, or that whose
    /// traffic it carries.
    pub(crate) fn carrying(&self, name: Option<&str>) -> Option<&LivePath> {
        self.get(path_of(name)?)
    }

    /// Returns true if the path of a child SA with this name has not been verified.
    pub(crate) fn is_unproved(&self, name: Option<&str>) -> bool {
        self.carrying(name).is_some_and(|known| !known.proved)
    }

    /// Notes that a child SA was not created. Its path is not added, if it was to have one.
    pub(crate) fn note_refused(
        &self,
        name: Option<&str>,
        error: Option<NotifyType>,
        turn: &mut Turn<'_, '_>,
    ) {
        if let Some(known) = self.of(name) {
            let full = error == Some(NotifyType::NO_ADDITIONAL_SAS);
            tell_not_added(known.path, full, turn);
            if full {
                let peer = turn.core.peer_id();
                turn.ctx.refused(Some(peer), Refusal::NoMorePaths);
            }
        }
    }

    /// Returns all paths, also those whose child SAs are gone.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &LivePath> {
        self.0.iter()
    }
}

/// Reports a path that is not added. `full`: the peer allows no more.
pub(crate) fn tell_not_added(path: Path, full: bool, turn: &mut Turn<'_, '_>) {
    let sa = turn.core.id;
    turn.ctx.event(Event::PathNotAdded { sa, path, full });
}

/// The path of a request that is sent on a path of its own.
#[derive(Clone, Copy)]
pub(crate) struct Apart {
    pub(crate) path: Path,
    /// Number of transmissions that are left for the path alone.
    left: u8,
    /// True if none of them was answered in time.
    unanswered: bool,
}

impl Apart {
    /// Begins with the first transmission.
    pub(crate) const fn new(path: Path) -> Self {
        Self {
            path,
            left: ALONE,
            unanswered: false,
        }
    }

    /// Returns true if the request was sent on its own path only, so that its answer proves that
    /// the path works.
    pub(crate) const fn is_alone(&self) -> bool {
        self.left > 0
    }

    /// Counts a retransmission. Returns true if the request goes nowhere else.
    pub(crate) const fn repeat(&mut self) -> bool {
        self.unanswered |= self.left == 1;
        self.left = self.left.saturating_sub(1);
        self.is_alone()
    }

    /// Returns true if its own path has answered no transmission in time.
    pub(crate) const fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    /// Notes that the request was sent on another path too.
    pub(crate) const fn join(&mut self) {
        self.left = 0;
    }
}
