//! The successor of an IKE SA, before it replaces the SA.
//!
//! With negotiated additional key exchanges, the successor is complete only after one
//! IKE_FOLLOWUP_KE for each (`task/follow_up.rs`). The end that requested the successor initiates
//! them.

use crate::extension::followup::{self, Series};
use crate::extension::fragment::Inbox;
use crate::extension::intermediate::AuthTranscript;
use crate::keys::{Inputs, ProvedKeys};
use crate::sa::core::Core;
use crate::sa::turn::Turn;
use crate::window::Responses;
use crypto::{Prf, Secret};
use model::{Instant, Path, Suite};
use wire::ike::{Message, Payload};

/// A successor that has not replaced its SA yet.
pub(crate) struct Successor {
    pub(crate) suite: Suite,
    pub(crate) prf: Prf,
    /// Purpose of the successor, if it is a clone.
    pub(crate) purpose: Option<Purpose>,
    /// True if we requested it, and are thus its original initiator.
    pub(crate) ours: bool,
    pub(crate) spi_i: u64,
    pub(crate) spi_r: u64,
    pub(crate) nonce_i: Vec<u8>,
    pub(crate) nonce_r: Vec<u8>,
    /// Shared secret of the group.
    pub(crate) shared: Secret,
    /// The additional key exchanges.
    pub(crate) series: Series,
    /// Time at which it is dropped, if the peer has to continue it.
    pub(crate) until: Instant,
}

/// Purpose of a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The peer requested it, for its own purpose.
    Theirs,
    /// Hand-over: move the traffic of the original to this path.
    HandOver(Path),
}

impl Successor {
    /// Returns the path that a clone of ours moves to.
    pub(crate) const fn destination(&self) -> Option<Path> {
        match self.purpose {
            Some(Purpose::HandOver(to)) => Some(to),
            Some(Purpose::Theirs) | None => None,
        }
    }

    /// Returns true if all key exchanges have taken place.
    pub(crate) fn is_complete(&self) -> bool {
        self.series.is_complete()
    }

    /// Returns the nonce that decides between two successors (RFC 7296 section 2.8.2).
    pub(crate) fn lower_nonce(&self) -> &[u8] {
        self.nonce_i.as_slice().min(&self.nonce_r)
    }

    /// Derives its keys; `old` are those of the SA that it replaces.
    pub(crate) fn keys(self, old: &ProvedKeys) -> ProvedKeys {
        let inputs = Inputs {
            suite: self.suite,
            prf: self.prf,
            nonce_i: &self.nonce_i,
            nonce_r: &self.nonce_r,
            spi_i: self.spi_i,
            spi_r: self.spi_r,
            initiator: self.ours,
        };
        old.successor(&self.shared, &self.series.secrets(), &inputs)
    }

    /// Creates its core: "The first message ... will have Message ID 0" (RFC 7296 section 2.18), so
    /// the windows are new too.
    pub(crate) fn core(&self, turn: &mut Turn<'_, '_>) -> Core {
        let old = &*turn.core;
        Core {
            id: turn.ctx.sa_id(),
            peer: old.peer,
            initiator: self.ours,
            began: old.began,
            anew: false,
            raced: false,
            spi_i: self.spi_i,
            spi_r: self.spi_r,
            path: old.path,
            proved: old.proved,
            esp: old.esp,
            nat: old.nat,
            limit: old.limit,
            port: old.port,
            lost: old.lost,
            refused: false,
            requests: old.requests.successor(),
            responses: Responses::new(),
            inbox: Inbox::default(),
            transcript: AuthTranscript::default(),
        }
    }

    /// Returns the notify that identifies the successor to the end that requested it, if another
    /// key exchange has to follow. The data is our SPI, which is unambiguous because there is one
    /// such request at a time.
    pub(crate) fn link(&self) -> Option<Payload> {
        self.series.link(&self.spi_r.to_be_bytes())
    }

    pub(crate) fn is_named_in(&self, request: &Message) -> bool {
        followup::is_for(request, &self.spi_r.to_be_bytes())
    }
}
