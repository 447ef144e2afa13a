//! Causes of failures and refusals, as facts.

use crate::naming::lookup::NotFound;
use ike::{DownReason, GrantRefusal, KeyRefusal, Refusal};
use model::Identity;
use wire::ike::RefusalCode;

/// Cause of a failure or a refusal. `Display` states the fact for people; what to do about it is up
/// to the driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The IKE SA is down.
    #[error("{0}")]
    Down(#[from] DownReason),
    /// A request was refused, by either end.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// A licensed node did not accept a grant.
    #[error("{0}")]
    Grant(#[from] GrantRefusal),
    /// Another licensed node gave us no keys.
    #[error("{0}")]
    Keys(#[from] KeyRefusal),
    /// This node gives no keys to another one.
    #[error("{0}")]
    NoKeys(#[from] NoKeys),
    /// The token of a visitor is not acceptable.
    #[error("a visitor: {0}")]
    Visitor(NoKeys),
    /// The node that a visitor names as its previous one is not up, or not configured.
    #[error("a visitor comes from {0}, which is not configured as a neighbour, or is not up")]
    UnknownHolder(Identity),
    /// A node near the tunnel is one too many to share its keys.
    #[error(
        "{node} is near the tunnel too, but {most} nodes share the keys already: it receives none until the tunnel passes it"
    )]
    LeftOut {
        /// The node.
        node: Identity,
        /// Maximum number of nodes that share the keys.
        most: usize,
    },
    /// The name of the peer has no address.
    #[error("cannot find {name}: {why}")]
    Name {
        /// The name.
        name: String,
        /// The reason.
        why: NotFound,
    },
    /// Another cause, which needs no advice.
    #[error("{0}")]
    Other(String),
}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

/// The reason why a node refuses keys to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum NoKeys {
    /// There are no such keys, or they may not be passed on.
    #[error("the peer requests keys that we do not have, or may not hand on")]
    Unknown,
    /// The MAC of the token is wrong.
    #[error("the token was not made by the mobile node, or not for this peer")]
    Wrong,
    /// This node does not know the time of day.
    #[error("the token cannot be checked, as the clock of this node is not set")]
    NoClock,
    /// The token has expired, or is valid for longer than allowed.
    #[error("the token is too old, or the mobile node's clock differs from ours")]
    Stale,
    /// The token was used before.
    #[error("the token was used before")]
    Used,
    /// One of the two ends has not licensed the requesting node.
    #[error("the gateway or the mobile node has no licence for the holder of the token to read")]
    NotLicensed,
    /// The limit of remembered tokens is reached.
    #[error("too many tokens are in use at once")]
    Busy,
}

impl NoKeys {
    /// Returns the label of the reason in metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
            Self::NoClock => "no_clock",
            Self::Stale => "stale",
            Self::Used => "used",
            Self::NotLicensed => "not_licensed",
            Self::Busy => "busy",
        }
    }

    pub(crate) const fn code(self) -> RefusalCode {
        match self {
            Self::Unknown => RefusalCode::UNKNOWN_GRANT,
            Self::Wrong => RefusalCode::WRONG_TOKEN,
            Self::NoClock | Self::Stale => RefusalCode::STALE_TOKEN,
            Self::Used => RefusalCode::USED_TOKEN,
            Self::NotLicensed => RefusalCode::NOT_LICENSED,
            Self::Busy => RefusalCode::BUSY,
        }
    }
}
