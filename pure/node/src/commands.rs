//! Arguments of commands, and the reasons why one is not possible.

use crate::tunnels::desired::UnknownPeer;

/// The SAs that [`crate::Node::rekey`] renews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rekey {
    /// The child SAs, which carry the traffic.
    Children,
    /// The IKE SA.
    Ike,
}

/// The reason why a rekey is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRekey {
    /// The peer is not configured.
    #[error("the configuration has no such peer")]
    UnknownPeer,
    /// The IKE SA is not up.
    #[error("the peer is not up")]
    NotUp,
    /// The peer is a licensed node or a gateway of ours, without child SAs.
    #[error("the peer has no tunnel, only an IKE SA")]
    NoChild,
}

/// The reason why a re-authentication is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotReauthenticate {
    /// The peer is not configured.
    #[error(transparent)]
    UnknownPeer(#[from] UnknownPeer),
    /// The IKE engine cannot re-authenticate the SA.
    #[error(transparent)]
    Ike(#[from] ike::CannotReauthenticate),
}

/// The reason why a redirection is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRedirect {
    /// The peer is not configured.
    #[error(transparent)]
    UnknownPeer(#[from] UnknownPeer),
    /// The IKE engine cannot redirect the peer.
    #[error(transparent)]
    Ike(#[from] ike::CannotRedirect),
}
