//! The optional features of an IKE SA that a peer's configuration chooses.

/// The features that we offer a peer when an IKE SA is established. The SA keeps them, so a change
/// takes another SA: comparing two of these decides that. The configuration and the engine share
/// the type: a new feature is a field here, its key, and its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// True if the IKE SA may move to other addresses (RFC 4555), given that the peer supports this
    /// too.
    pub mobike: bool,
    /// True if either end may clone the IKE SA (RFC 7791), given that the peer allows this too. The
    /// tunnel can then move without a pause.
    pub clones: bool,
    /// Maximum number of child SAs for the traffic of the first child SA, including the first, if
    /// the peer wants several too (RFC 9611). One: no additional child SAs.
    pub resources: u8,
    /// True if child SAs use extended, 64-bit sequence numbers (RFC 4303 section 2.2.1), given that
    /// the peer wants them too. Zoned child SAs never do.
    pub esn: bool,
    /// True if a NAT on the path counts as an attack: the end then sends NO_NATS_ALLOWED (RFC 4555
    /// section 3.9).
    pub forbids_nat: bool,
}

impl Features {
    /// Returns the features that a daemon offers unless its configuration says otherwise.
    pub fn offered() -> Self {
        Self {
            mobike: true,
            ..Self::default()
        }
    }
}

impl Default for Features {
    /// Returns no feature.
    fn default() -> Self {
        Self {
            mobike: false,
            clones: false,
            resources: 1,
            esn: false,
            forbids_nat: false,
        }
    }
}
