//! The traffic that an SA carries, independent of the worker that owns the SA.

use crate::claims::Claims;
use crate::lane::Lane;
use crate::order::Turn;
use crate::pair::Pair;
use crate::policy::Protected;
use crate::sa::Sa;
use crypto::Secret;
use model::{ChildSa, ChildSaId, Mode, Path, PeerId};

/// A worker's record of an SA that another worker owns.
#[derive(Clone)]
pub(crate) struct RemoteSa {
    pub(crate) id: ChildSaId,
    pub(crate) peer: PeerId,
    pub(crate) carries: Protected,
    /// True in transport mode: it carries traffic between the outer addresses.
    outside: bool,
    /// The peer's claims, if other peers contest them.
    pub(crate) claims: Option<Claims>,
    pub(crate) lane: Option<Lane>,
    /// Its turn among the SAs eligible for sending.
    pub(crate) turn: Option<Turn>,
    pub(crate) owner: usize,
}

/// The traffic that an SA carries.
#[derive(Clone, Copy)]
pub(crate) struct Reach<'a> {
    pub(crate) carries: &'a Protected,
    /// The peer's claims, if other peers contest them.
    pub(crate) claims: Option<&'a [Protected]>,
    pub(crate) lane: Option<&'a Lane>,
    pub(crate) is_elsewhere: bool,
}

impl RemoteSa {
    pub(crate) fn new(sa: &ChildSa<Secret>, owner: usize) -> Self {
        Self {
            id: sa.id,
            peer: sa.peer,
            claims: None,
            outside: sa.mode == Mode::Transport,
            carries: Protected {
                local: sa.local.clone().into(),
                remote: sa.remote.clone().into(),
            },
            lane: Lane::from_sa(sa),
            turn: None,
            owner,
        }
    }

    /// Carries the same traffic between the addresses of another path, in transport mode. Returns
    /// what it carried before, if that changes.
    pub(crate) fn take_path(&mut self, path: Path) -> Option<Protected> {
        let moved = Pair::from(path).between(&self.carries);
        let moved = moved.filter(|_| self.outside)?;
        Some(std::mem::replace(&mut self.carries, moved))
    }
}

impl<'a> Reach<'a> {
    pub(crate) fn here(sa: &'a Sa) -> Self {
        Self {
            claims: sa.claims.as_deref(),
            carries: &sa.carries,
            lane: sa.lane.as_ref(),
            is_elsewhere: false,
        }
    }

    pub(crate) fn elsewhere(sa: &'a RemoteSa) -> Self {
        Self {
            claims: sa.claims.as_deref(),
            carries: &sa.carries,
            lane: sa.lane.as_ref(),
            is_elsewhere: true,
        }
    }
}
