//! Commands that cannot be carried out.

/// A command that cannot be carried out: our caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiMisuse {
    /// An IKE SA with that peer is just being made.
    #[error("an IKE SA with that peer is being made already")]
    AlreadyInitiating,
    /// No peer of that name.
    #[error("the configuration has no peer of that name")]
    UnknownPeer,
}

/// A command named a child that the configuration does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has no such peer, or not with such a child")]
pub struct UnknownChild;

/// Why an IKE SA does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotMove {
    /// There is no IKE SA, or not yet.
    #[error("it is not up")]
    NotUp,
    /// One of the ends cannot do it, or does not want to.
    #[error("it was not agreed that it may move (RFC 4555)")]
    NotAgreed,
    /// What it carries is bound to the addresses outside (RFC 4555 section 1.2).
    #[error("it has a tunnel in transport mode, which stays where it is; `mode = \"beet\"` moves")]
    Transport,
    /// The peer decides.
    #[error("the other end began it, and decides where it goes")]
    NotOurs,
    /// One of the ends does not want that.
    #[error("it was not agreed that its IKE SA may be cloned (RFC 7791)")]
    NotCloned,
    /// Another IKE SA is on its way to take its place.
    #[error("another IKE SA is just taking its place")]
    UnderWay,
    /// The peer has refused it, and nothing has been deleted since.
    #[error("the peer wants no more IKE SAs with us than there are")]
    Enough,
}

/// Why an IKE SA is not authenticated anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotReauthenticate {
    /// There is no IKE SA, or not yet.
    #[error("it is not up")]
    NotUp,
    /// The peer began it.
    #[error("the other end began it, and only that end can begin anew")]
    NotOurs,
    /// It is being done.
    #[error("that is being done already")]
    UnderWay,
}

/// Why a peer is not sent to another gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotRedirect {
    /// There is no IKE SA, or not yet.
    #[error("it is not up")]
    NotUp,
    /// We began it.
    #[error("we began it, and only who was called can send the other end elsewhere")]
    NotTheirs,
    /// The peer did not say that it would go.
    #[error("it did not say that it goes elsewhere (RFC 5685)")]
    NotWilling,
}
