//! What a node shows of itself. Plain values: the daemon turns them into its API's types.

use crate::GrantState;
use esp::Traffic;
use model::{CsaId, Identity, Instant, Licence, Spi, TrafficSelector, ZoneAgreement, ZoneId};
use std::net::SocketAddr;

/// How far a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// Nothing is going on.
    Down,
    /// An IKE SA is being made.
    Connecting,
    /// The IKE SA is established.
    Up,
}

/// One configured peer.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Name of its table.
    pub name: String,
    /// Who it must be.
    pub identity: Identity,
    /// How far it is.
    pub state: PeerState,
    /// Where it is, as far as known.
    pub remote: Option<SocketAddr>,
    /// Since when it is up.
    pub since: Option<Instant>,
    /// The newest refusal or failure since it was last up.
    pub refusal: Option<(Instant, String)>,
    /// Its child SAs.
    pub children: Vec<ChildStatus>,
}

/// One child SA.
#[derive(Clone, Debug)]
pub struct ChildStatus {
    /// SPI towards us.
    pub inbound: Spi,
    /// SPI towards the peer.
    pub outbound: Spi,
    /// Whether it is a composite SA.
    pub zoned: bool,
    /// Whether a newer one has its place: it only waits for what is under way.
    pub draining: bool,
    /// What of ours it carries.
    pub local: Vec<TrafficSelector>,
    /// What of the peer's it carries.
    pub remote: Vec<TrafficSelector>,
    /// Where its packets go.
    pub path: model::Path,
    /// What was opened.
    pub received: Traffic,
    /// What was sealed.
    pub sent: Traffic,
}

/// One composite SA of this endpoint.
#[derive(Clone, Debug)]
pub struct CsaStatus {
    /// Its name towards licensed nodes.
    pub csa: CsaId,
    /// Name of the peer's table.
    pub peer: String,
    /// SPI towards us.
    pub inbound: Spi,
    /// SPI towards the peer.
    pub outbound: Spi,
    /// What was agreed.
    pub agreement: ZoneAgreement,
    /// The nodes we hand keys to. Empty where the other endpoint does that.
    pub grants: Vec<GrantStatus>,
}

/// A grant as the gateway sees it.
#[derive(Clone, Debug)]
pub struct GrantStatus {
    /// Name of the node's table.
    pub name: String,
    /// Its identity.
    pub node: Identity,
    /// How far the grant is.
    pub state: GrantState,
    /// Why it was refused, for a person.
    pub refusal: Option<String>,
    /// Since when.
    pub since: Instant,
    /// What it allows.
    pub licences: Vec<Licence>,
}

/// A grant as the licensed node holds it.
#[derive(Clone, Debug)]
pub struct HeldGrant {
    /// Its name.
    pub csa: CsaId,
    /// Name of the gateway's table.
    pub gateway: String,
    /// The gateway's identity.
    pub identity: Identity,
    /// SPI of packets from the gateway.
    pub from_gateway: Spi,
    /// SPI of packets to the gateway.
    pub to_gateway: Spi,
    /// The zones that can be opened.
    pub zones: Vec<ZoneId>,
    /// The zone that must stay closed unless it is among `zones`.
    pub payload_zone: ZoneId,
    /// When the keys are forgotten.
    pub until: Instant,
}
