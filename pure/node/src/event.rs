//! What a node tells its driver.

use crate::migration::TOKEN;
use crate::{HeldGrant, KeyLog, mobile_ip};
use model::{
    CsaId, Exchanges, Identity, InnerAddresses, Licence, Mode, Path, Right, Spi, Zone,
    ZoneAgreement, ZoneId, ZoneSelector,
};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A composite SA, as its endpoint tells it from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composite {
    /// Its name towards licensed nodes.
    pub csa: CsaId,
    /// Name of the peer's table.
    pub peer: String,
    /// Name of the child's; `None` for the first.
    pub child: Option<String>,
    /// SPI towards us.
    pub inbound: Spi,
    /// SPI towards the peer.
    pub outbound: Spi,
}

/// Why a licensed node's keys are of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The tunnel has new keys.
    Rekeyed,
    /// The configuration wants it otherwise.
    Reconfigured,
    /// The tunnel's keys were too old.
    LifetimeOver,
    /// The tunnel is down, for a reason that a person can read.
    Down(String),
    /// The IKE SA with the node is gone, for a reason that a person can read. It is given keys again
    /// when it comes back.
    NodeGone(String),
}

/// Why a licensed node has forgotten keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The gateway took them back.
    Revoked,
    /// Their time was over.
    Expired,
    /// The IKE SA with the gateway is gone.
    GatewayGone,
}

/// Something an operator or the driver wants to know. Reasons are texts because they end in a
/// log, in `strata status` and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An IKE SA with a peer is up.
    PeerUp {
        /// Name of the peer's table.
        peer: String,
    },
    /// Both ends proved anew who they are: a new IKE SA takes the place of the one that is up.
    Reauthenticated {
        /// Name of the peer's table.
        peer: String,
    },
    /// There is another IKE SA with a peer, cloned from the one that is up. It carries nothing yet.
    Cloned {
        /// Name of the peer's table.
        peer: String,
    },
    /// A tunnel takes another path without a pause: a clone of the IKE SA that is up takes its place.
    HandedOver {
        /// Name of the peer's table.
        peer: String,
        /// The path.
        path: Path,
    },
    /// A gateway sent us to another one, where we begin instead.
    Redirected {
        /// Name of the peer's table.
        peer: String,
        /// The other gateway.
        to: IpAddr,
    },
    /// Nobody answered by UDP, and we begin again in a stream.
    FellBack {
        /// Name of the peer's table.
        peer: String,
        /// Where it is to listen.
        to: SocketAddr,
    },
    /// A tunnel passes somewhere else: what is sealed for a peer from now on is for this licensed node besides, of
    /// those that have licences in some places alone. If it shares keys with others, those that have them can read too.
    SealedFor {
        /// Name of the peer's table.
        peer: String,
        /// The node; `None` if it is for none of them.
        node: Option<Identity>,
    },
    /// An IKE SA with a peer is gone, and no other has its place; or it could not be made.
    PeerDown {
        /// Name of the peer's table.
        peer: String,
        /// Why, for a person.
        why: String,
    },
    /// A peer lends us addresses inside, or other ones than before; [`crate::Node::inside`] has all of
    /// them.
    Configured {
        /// Name of the peer's table.
        peer: String,
        /// What it lends.
        addresses: InnerAddresses,
    },
    /// A child SA carries packets now.
    ChildUp {
        /// Name of the peer's table.
        peer: String,
        /// Name of the child's; `None` for the first.
        child: Option<String>,
        /// SPI towards us.
        inbound: Spi,
        /// SPI towards the peer.
        outbound: Spi,
        /// Whether it is a composite SA.
        zoned: bool,
        /// What of a datagram it seals.
        mode: Mode,
    },
    /// A child SA has a successor with new keys.
    ChildRekeyed {
        /// Name of the peer's table.
        peer: String,
        /// Name of the child's; `None` for the first.
        child: Option<String>,
        /// SPI towards us.
        inbound: Spi,
        /// SPI towards the peer.
        outbound: Spi,
        /// The key exchanges of its own that the keys come from.
        exchanges: Exchanges,
    },
    /// An IKE SA has new keys.
    IkeRekeyed {
        /// Name of the peer's table.
        peer: String,
    },
    /// The first packet of a child SA came whose ECN field outside does not fit that inside (RFC 6040
    /// section 4.2).
    EcnUnused {
        /// Name of the peer's table.
        peer: String,
        /// Name of the child's; `None` for the first.
        child: Option<String>,
    },
    /// The lengths of what a child SA carries were to be hidden, and the peer takes no padding.
    Unpadded {
        /// Name of the peer's table.
        peer: String,
        /// Name of the child's; `None` for the first.
        child: Option<String>,
    },
    /// Nothing more goes without encryption on a child SA: what was granted of that is used up.
    LevelSpent {
        /// Name of the peer's table.
        peer: String,
        /// Name of the child's; `None` for the first.
        child: Option<String>,
    },
    /// The first packet of a child SA came without encryption that may not.
    LevelRefused {
        /// Name of the peer's table.
        peer: String,
        /// Name of the child's; `None` for the first.
        child: Option<String>,
    },
    /// A child SA is gone, and no other has its place.
    ChildDown {
        /// Name of the peer's table.
        peer: String,
        /// Name of the child's; `None` for the first.
        child: Option<String>,
    },
    /// Both ends agreed that licensed nodes may read what a child SA carries.
    Licensed {
        /// The child SA.
        sa: Composite,
        /// Who may do what with which zone.
        agreement: ZoneAgreement,
        /// New keys are made after this time.
        lifetime: Duration,
    },
    /// A licence of ours is not the peer's as well: no key leaves for it.
    NotLicensed {
        /// Name of the peer's table.
        peer: String,
        /// The licence.
        licence: Licence,
        /// What its zone asks for.
        zone: ZoneSelector,
        /// Why, for a person.
        why: String,
    },
    /// Gateway: keys, or mobile node: a token, are to leave for a licensed node as soon as [`crate::Node::give`] says that this
    /// is recorded. Told after [`crate::Node::set_recording`] alone.
    Giving {
        /// What they open.
        sa: Composite,
        /// The node.
        node: Identity,
        /// What it may do.
        rights: Vec<(Zone, Right)>,
        /// For how long it may keep them.
        lifetime: Duration,
        /// The grant's number; 0 if the node gets a token instead ([`Event::TokenGiven`]).
        grant: u16,
    },
    /// Mobile node: a licensed node to which it goes may have the keys of what both ends go on in, from the node before
    /// and once: it was given a token.
    TokenGiven {
        /// What they open.
        sa: Composite,
        /// The node before.
        holder: Identity,
        /// Who may ask it.
        asker: Identity,
    },
    /// Licensed node: another one, to which the mobile node has gone, has keys from us.
    KeysHandedOn {
        /// What they are.
        held: HeldGrant,
        /// Who has them.
        node: Identity,
    },
    /// Gateway: a licensed node acknowledged keys. The audit trail of invariant 4.
    Granted {
        /// What it can now read.
        sa: Composite,
        /// The node.
        node: Identity,
        /// What it may do.
        rights: Vec<(ZoneId, Right)>,
    },
    /// Gateway: a licensed node refused keys.
    GrantRefused {
        /// What they would have opened.
        sa: Composite,
        /// The node.
        node: Identity,
        /// Why, for a person.
        why: String,
    },
    /// What was agreed about a licensed node has ended.
    GrantEnded {
        /// What it could read.
        sa: Composite,
        /// The node.
        node: Identity,
        /// Whether it may have had keys of us.
        given: bool,
        /// Why.
        why: Ending,
    },
    /// Licensed node: keys arrived.
    GrantHeld(HeldGrant),
    /// Licensed node: keys arrived that are of no use.
    GrantUnusable {
        /// Name of the gateway's table.
        gateway: String,
        /// The composite SA.
        csa: CsaId,
        /// Why, for a person.
        why: String,
    },
    /// Licensed node: keys are gone.
    GrantDropped {
        /// What they were.
        held: HeldGrant,
        /// Why.
        why: Dropped,
    },
    /// Licensed node: a composite SA goes between two hosts; its fragments, which show no
    /// port, should take the same way so that nothing is reordered.
    PairLearnt {
        /// The host towards the gateway.
        wired: IpAddr,
        /// The host towards the mobile nodes.
        wireless: IpAddr,
    },
    /// Licensed node: no composite SA goes between two hosts any more.
    PairForgotten {
        /// The host towards the gateway.
        wired: IpAddr,
        /// The host towards the mobile nodes.
        wireless: IpAddr,
    },
    /// What the path to a peer takes is known now, or not any more.
    PathMtu {
        /// Name of the peer's table.
        peer: String,
        /// The longest packet.
        outside: Option<u16>,
        /// The longest datagram that has room in it.
        inside: Option<u16>,
    },
    /// Somebody said of a path that it takes less than any path does.
    PathMtuForged {
        /// The path.
        path: Path,
        /// How much.
        mtu: u16,
    },
    /// A tunnel takes another path, because one of its ends moved.
    PathMoved {
        /// Name of the peer's table.
        peer: String,
        /// The path.
        path: Path,
    },
    /// There is a tunnel of which the driver should say by which ways it can leave:
    /// [`crate::Node::handle_ways`].
    WaysWanted,
    /// A peer or the network did something that is refused, with a reason.
    Refused {
        /// Name of the peer's table, if one could be told.
        peer: Option<String>,
        /// What and why, for a person.
        why: String,
    },
    /// Something happened in Mobile IPv4.
    MobileIp(mobile_ip::Event),
    /// A line for Wireshark's key tables; only if the configuration asked for it.
    KeyLog(KeyLog),
}

impl Event {
    /// Whether it waits for a record of a token, which is to leave with what is polled next.
    pub const fn is_of_token(&self) -> bool {
        matches!(self, Self::Giving { grant: TOKEN, .. })
    }

    /// Returns true for events of a home agent or foreign agent, which install or remove its routes.
    pub const fn is_of_agent(&self) -> bool {
        use mobile_ip::Event::{ForeignAgent, HomeAgent};
        matches!(self, Self::MobileIp(ForeignAgent(_) | HomeAgent(_)))
    }
}
