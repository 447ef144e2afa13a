//! What we ask of a peer on an established IKE SA, one request each.

use super::{Context, Core};
use crate::config::Timers;
use crate::event::{Event, GrantRefusal};
use crate::extension::distribute;
use crypto::Secret;
use model::{CsaId, Grant};
use wire::ike::{ExchangeType, Message, Payload};

/// One request.
pub(crate) enum Task {
    /// Whether the peer is there.
    Liveness,
    /// Keys for a licensed node.
    Distribute(Box<Grant<Secret>>),
    /// The end of a licence.
    Revoke(CsaId),
}

impl Task {
    /// How often it is sent before the peer counts as gone.
    pub(super) const fn attempts(&self, timers: &Timers) -> u32 {
        match self {
            Self::Liveness => timers.liveness_attempts,
            Self::Distribute(_) | Self::Revoke(_) => timers.attempts,
        }
    }

    pub(super) const fn exchange(&self) -> ExchangeType {
        match self {
            Self::Liveness | Self::Revoke(_) => ExchangeType::INFORMATIONAL,
            Self::Distribute(_) => ExchangeType::KEY_DISTRIBUTE,
        }
    }

    pub(super) fn payloads(&self) -> Vec<Payload> {
        match self {
            Self::Liveness => Vec::new(),
            Self::Distribute(grant) => distribute::payloads(grant),
            Self::Revoke(csa) => vec![distribute::revocation(*csa)],
        }
    }

    /// The response came. An answer to the other two says nothing beyond that the peer is there.
    pub(super) fn conclude(self, response: &Message, core: &Core, ctx: &mut Context<'_>) {
        let Self::Distribute(grant) = self else {
            return;
        };
        let sa = core.id;
        ctx.event(match distribute::outcome(&grant, response) {
            Ok(()) => Event::GrantAccepted {
                sa,
                csa: grant.csa,
                grant: grant.grant,
            },
            Err(why) => refused(&grant, why, core),
        });
    }
}

/// The event for a grant that was not taken.
pub(crate) fn refused(grant: &Grant<Secret>, why: GrantRefusal, core: &Core) -> Event {
    Event::GrantRefused {
        sa: core.id,
        csa: grant.csa,
        grant: grant.grant,
        why,
    }
}
