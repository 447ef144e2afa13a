//! The traffic that an SA carries, independent of the worker that owns the SA.

use crate::claims::Claims;
use crate::lane::Lane;
use crate::order::Turn;
use crate::policy::Protected;
use crate::sa::Sa;
use crypto::Secret;
use model::{ChildSa, ChildSaId, PeerId};

/// A worker's record of an SA that another worker owns.
#[derive(Clone)]
pub(crate) struct RemoteSa {
    pub(crate) id: ChildSaId,
    pub(crate) peer: PeerId,
    pub(crate) carries: Protected,
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
            carries: Protected {
                local: sa.local.clone().into(),
                remote: sa.remote.clone().into(),
            },
            lane: Lane::from_sa(sa),
            turn: None,
            owner,
        }
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
