//! The optional features of an IKE SA that a peer's configuration chooses.

use std::time::Duration;

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
    /// Interval at which the ways to the peer are measured, if the tunnel can move without a pause.
    /// Zero: never.
    pub probes: Duration,
    /// Maximum number of child SAs for the traffic of the first child SA, including the first, if
    /// the peer wants several too (RFC 9611). One: no additional child SAs.
    pub resources: u8,
    /// Maximum number of paths that carry packets at the same time, if the peer supports this too.
    /// One: the path of the IKE SA.
    pub paths: u8,
    /// True if child SAs use extended, 64-bit sequence numbers (RFC 4303 section 2.2.1), given that
    /// the peer wants them too. Zoned child SAs never do.
    pub esn: bool,
    /// True if a NAT on the path counts as an attack: the end then sends NO_NATS_ALLOWED (RFC 4555
    /// section 3.9).
    pub forbids_nat: bool,
}

impl Features {
    /// Usual interval of [`Self::probes`]: two requests each, for any number of ways.
    pub const PROBES: Duration = Duration::from_secs(10);

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
            probes: Self::PROBES,
            resources: 1,
            paths: 1,
            esn: false,
            forbids_nat: false,
        }
    }
}
