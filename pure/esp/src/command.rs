//! Commands of control to a data path. With [`Report`](crate::Report) and
//! [`Observed`](crate::Observed) they are the seam between both: another data path takes the same
//! commands, and makes the same reports.

use crate::policy::Spd;
use model::{ChildSaId, Dscp, LevelChoice, Path, PeerId, Sizes};

/// A command that has no answer. Commands about an SA that does not exist have no effect.
#[derive(Clone, Debug)]
pub enum Command {
    /// Sends on an SA from now on, before all others for the same traffic.
    Prefer(ChildSaId),
    /// Stops sending on an SA. It still receives.
    Retire(ChildSaId),
    /// Seals every datagram as a whole in the payload zone from now on.
    MakeOpaque(ChildSaId),
    /// Removes an SA.
    Remove(ChildSaId),
    /// Sends the packets of an SA on another path.
    Move(ChildSaId, Path),
    /// Reports the next datagram that an SA seals.
    Watch(ChildSaId),
    /// Skips the outbound sequence numbers of an SA up to this one, as if packets had been sent.
    SkipTo(ChildSaId, u64),
    /// Replaces the policy database.
    Policies(Spd),
    /// Sets the settings of one peer's packets.
    Settings(PeerId, PeerSettings),
    /// Sets the choice among the protection levels agreed with a peer.
    Level(PeerId, LevelChoice),
    /// Sets the MTU to which the MSS of TCP connections is clamped, if it is.
    Clamp(Option<u16>),
}

/// Settings of the packets to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerSettings {
    /// DSCP of the outer header.
    pub dscp: Dscp,
    /// Lengths to which datagrams are padded; `None` for no padding.
    pub sizes: Option<Sizes>,
    /// Choice among the agreed protection levels.
    pub level: LevelChoice,
}
