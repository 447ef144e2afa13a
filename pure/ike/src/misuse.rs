//! Errors of commands.

/// A command that the caller must not give in this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiMisuse {
    /// An IKE SA with that peer is being established already.
    #[error("an IKE SA with that peer is being made already")]
    AlreadyInitiating,
    /// No configured peer has that name.
    #[error("the configuration has no peer of that name")]
    UnknownPeer,
}

/// The command named a child SA that the configuration does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has no such peer, or not with such a child")]
pub struct UnknownChild;

/// Reason for which an IKE SA cannot move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotMove {
    /// The IKE SA is not up.
    #[error("it is not up")]
    NotUp,
    /// MOBIKE was not negotiated: an end does not support it, or does not allow it.
    #[error("it was not agreed that it may move (RFC 4555)")]
    NotAgreed,
    /// A child SA is bound to the outer addresses (RFC 4555 section 1.2).
    #[error("it has a tunnel in transport mode, which stays where it is; `mode = \"beet\"` moves")]
    Transport,
    /// The peer chooses the path.
    #[error("the other end began it, and decides where it goes")]
    NotOurs,
    /// Cloning was not negotiated.
    #[error("it was not agreed that its IKE SA may be cloned (RFC 7791)")]
    NotCloned,
    /// Another IKE SA is about to replace it.
    #[error("another IKE SA is just taking its place")]
    UnderWay,
    /// The peer refused further IKE SAs, and none has been deleted since.
    #[error("the peer wants no more IKE SAs with us than there are")]
    Enough,
}

/// Reason for which an IKE SA cannot be re-authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotReauthenticate {
    /// The IKE SA is not up.
    #[error("it is not up")]
    NotUp,
    /// The peer initiated the IKE SA.
    #[error("the other end began it, and only that end can begin anew")]
    NotOurs,
    /// Re-authentication is in progress.
    #[error("that is being done already")]
    UnderWay,
}

/// Reason for which a peer cannot be redirected to another gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotRedirect {
    /// The IKE SA is not up.
    #[error("it is not up")]
    NotUp,
    /// We initiated the IKE SA.
    #[error("we began it, and only who was called can send the other end elsewhere")]
    NotTheirs,
    /// The peer did not announce support for RFC 5685.
    #[error("it did not say that it goes elsewhere (RFC 5685)")]
    NotWilling,
}
