//! Errors of commands.

use crate::placed::Unplaced;

/// A command that the caller must not give in this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiMisuse {
    /// An IKE SA with that peer is being established already, and was not refused.
    #[error("an IKE SA with that peer is already being established")]
    AlreadyInitiating,
    /// No configured peer has that name.
    #[error("the configuration has no peer of that name")]
    UnknownPeer,
}

/// The command named a child SA that the configuration does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has no such peer, or the peer has no such child")]
pub struct UnknownChild;

/// Reason for which an IKE SA cannot move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotMove {
    /// The IKE SA is not up.
    #[error("the peer is not up")]
    NotUp,
    /// MOBIKE was not negotiated: an end does not support it, or does not allow it.
    #[error("MOBIKE was not negotiated, so the tunnel cannot move (RFC 4555)")]
    NotAgreed,
    /// A child SA is bound to the outer addresses (RFC 4555 section 1.2), and MOBIKE-X was not
    /// negotiated.
    #[error("the peer has a tunnel in transport mode, which cannot move")]
    Transport,
    /// The configuration does not allow the addresses of a child SA in transport mode.
    #[error("a tunnel in transport mode cannot move there: {0}")]
    Unplaced(Unplaced),
    /// A cloned IKE SA cannot take over a child SA in transport mode.
    #[error("the peer has a tunnel in transport mode, which no cloned IKE SA can take over")]
    NotByClone,
    /// The peer chooses the path.
    #[error("the peer initiated the tunnel, so only the peer can move it")]
    NotOurs,
    /// Cloning was not negotiated.
    #[error("cloning of the IKE SA was not negotiated (RFC 7791)")]
    NotCloned,
    /// Another IKE SA is about to replace it.
    #[error("another IKE SA is already replacing that of the peer")]
    UnderWay,
    /// The peer refused further IKE SAs, and none has been deleted since.
    #[error("the peer accepts no more IKE SAs")]
    Enough,
}

/// Reason for which an IKE SA cannot be re-authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotReauthenticate {
    /// The IKE SA is not up.
    #[error("the peer is not up")]
    NotUp,
    /// The peer initiated the IKE SA.
    #[error("the peer initiated the IKE SA, so only the peer can re-authenticate")]
    NotOurs,
    /// Re-authentication is in progress.
    #[error("re-authentication is already in progress")]
    UnderWay,
}

impl From<ApiMisuse> for CannotReauthenticate {
    fn from(misuse: ApiMisuse) -> Self {
        match misuse {
            ApiMisuse::AlreadyInitiating => Self::UnderWay,
            ApiMisuse::UnknownPeer => Self::NotUp,
        }
    }
}

/// Reason for which a peer cannot be redirected to another gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotRedirect {
    /// The IKE SA is not up.
    #[error("the peer is not up")]
    NotUp,
    /// We initiated the IKE SA.
    #[error("we initiated the IKE SA, and only the responder can redirect")]
    NotTheirs,
    /// The peer did not announce support for RFC 5685.
    #[error("the peer did not announce support for redirects (RFC 5685)")]
    NotWilling,
}
