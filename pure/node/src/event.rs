//! Events that a node reports to its driver.

use crate::{Cause, HeldGrant, KeyLog, mobile_ip};
use mobility::Reported;
use model::{
    CsaId, EspSuite, Exchanges, Identity, InnerAddresses, Licence, Mode, Path, PeerId, Right, Spi,
    Zone, ZoneAgreement, ZoneId, ZoneSelector,
};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Value in place of a grant's number if [`Event::Giving`] concerns a token.
pub(crate) const TOKEN: u16 = 0;

/// The names and SPIs of a composite SA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composite {
    /// Identifier of the SA, shared with licensed nodes.
    pub csa: CsaId,
    /// The peer.
    pub peer: PeerId,
    /// Name of the child's table; `None` for the first child.
    pub child: Option<String>,
    /// Inbound SPI.
    pub inbound: Spi,
    /// Outbound SPI.
    pub outbound: Spi,
}

/// The reason why an endpoint ended a licensed node's access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The tunnel was rekeyed.
    Rekeyed,
    /// The configuration changed.
    Reconfigured,
    /// The lifetime of the tunnel's keys was over.
    LifetimeOver,
    /// The mobile node is bound nowhere any more: its registration at this home agent has ended.
    Unbound,
    /// The path that the node was on has other addresses now.
    Moved,
    /// The tunnel is down.
    Down(Cause),
    /// The IKE SA with the node is down. The node receives new keys when the IKE SA is up again.
    NodeGone(Cause),
}

impl From<&ike::DownReason> for Ending {
    /// Returns the end of the child SAs of an IKE SA that ended.
    fn from(why: &ike::DownReason) -> Self {
        match why {
            ike::DownReason::Reconfigured | ike::DownReason::Removed => Self::Reconfigured,
            ike::DownReason::LifetimeOver => Self::LifetimeOver,
            why => Self::Down(why.clone().into()),
        }
    }
}

/// The reason why a licensed node discarded keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The gateway revoked the grant.
    Revoked,
    /// The grant's lifetime was over.
    Expired,
    /// The IKE SA with the gateway is down.
    GatewayGone,
}

/// An event for the operator or the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An IKE SA with a peer is up.
    PeerUp {
        /// The peer.
        peer: PeerId,
    },
    /// Both ends re-authenticated: a new IKE SA replaced the one that was up.
    Reauthenticated {
        /// The peer.
        peer: PeerId,
    },
    /// The IKE SA with a peer was cloned. The clone does not carry any child SA yet.
    Cloned {
        /// The peer.
        peer: PeerId,
    },
    /// A tunnel moved to another path without interruption: a clone replaced the IKE SA that was
    /// up.
    HandedOver {
        /// The peer.
        peer: PeerId,
        /// The new path.
        path: Path,
    },
    /// A gateway redirected us. We initiate with the other gateway instead.
    Redirected {
        /// The peer.
        peer: PeerId,
        /// Address of the other gateway.
        to: IpAddr,
    },
    /// A session was resumed, without a full exchange.
    Resumed {
        /// The peer.
        peer: PeerId,
    },
    /// The peer does not accept our ticket, or has not answered, so a full exchange begins.
    NotResumed {
        /// The peer.
        peer: PeerId,
    },
    /// There was no answer over UDP, so we initiate again over TCP.
    FellBack {
        /// The peer.
        peer: PeerId,
        /// Address and port on which the peer is expected to listen.
        to: SocketAddr,
    },
    /// The traffic of a tunnel is now sealed for another licensed node, or for none. Concerns only
    /// nodes whose licences are limited to certain places. If nodes share the slot, all nodes that
    /// hold its keys can read.
    SealedFor {
        /// The peer.
        peer: PeerId,
        /// The node that can read now; `None` if no such node can.
        node: Option<Identity>,
    },
    /// A peer that we initiated to has not answered for [`crate::OVERDUE`]. The attempt continues.
    Unanswered {
        /// The peer.
        peer: PeerId,
        /// Address and port of the peer.
        to: SocketAddr,
        /// Number of times that the request was sent.
        tries: u32,
    },
    /// The driver should look up where the name of a peer is told, and pass that to
    /// [`crate::Node::handle_name_sources`].
    NameWanted {
        /// The peer.
        peer: PeerId,
        /// The name.
        name: String,
    },
    /// The name of a peer has addresses, and others than at the last lookup.
    NameFound {
        /// The peer.
        peer: PeerId,
        /// The name.
        name: String,
        /// The addresses.
        addresses: Vec<IpAddr>,
        /// The name server that told them; `None` for the machine's list of hosts.
        by: Option<IpAddr>,
    },
    /// The name of a peer has no address, for another reason than at the last lookup.
    NameNotFound {
        /// The peer.
        peer: PeerId,
        /// The name.
        name: String,
        /// The reason.
        why: crate::NotFound,
        /// The address that is tried instead: the peer was up there last.
        instead: Option<IpAddr>,
    },
    /// A peer is up at an address of its name. The address should be kept: a later process tries
    /// it if no name server answers.
    NameProved {
        /// The peer.
        peer: PeerId,
        /// The name.
        name: String,
        /// The address.
        address: IpAddr,
    },
    /// A peer connected from another address while it was up, and its previous IKE SA ended.
    Displaced {
        /// The peer.
        peer: PeerId,
        /// Source of the IKE SA that ended.
        old: SocketAddr,
        /// Source of the new one.
        new: SocketAddr,
        /// True if the peer had been displaced from `new` shortly before: two machines have its
        /// key, and take turns.
        in_turns: bool,
    },
    /// The last IKE SA with a peer ended, or could not be established.
    PeerDown {
        /// The peer.
        peer: PeerId,
        /// The cause.
        why: Cause,
        /// True if a command or the configuration of this host asked for it.
        intended: bool,
    },
    /// A peer assigned inner addresses, or changed them. [`crate::Node::inside`] returns all of
    /// them.
    Configured {
        /// The peer.
        peer: PeerId,
        /// The assigned addresses.
        addresses: InnerAddresses,
    },
    /// A child SA is established and carries packets.
    ChildUp {
        /// The peer.
        peer: PeerId,
        /// Name of the child's table; `None` for the first child.
        child: Option<String>,
        /// Inbound SPI.
        inbound: Spi,
        /// Outbound SPI.
        outbound: Spi,
        /// True for a composite SA.
        zoned: bool,
        /// Mode of the SA: tunnel, transport or BEET.
        mode: Mode,
    },
    /// A child SA that authenticates and does not encrypt is established. Follows `ChildUp` or
    /// `ChildRekeyed`.
    Unencrypted {
        /// The peer.
        peer: PeerId,
        /// Name of the child's table; `None` for the first child.
        child: Option<String>,
        /// Inbound SPI.
        inbound: Spi,
        /// Outbound SPI.
        outbound: Spi,
        /// The suite.
        suite: EspSuite,
    },
    /// Of the packets that the child SAs with a peer may carry without encryption, a tenth is left.
    /// They are rekeyed to encryption.
    UnencryptedLow {
        /// The peer.
        peer: PeerId,
    },
    /// A child SA was rekeyed.
    ChildRekeyed {
        /// The peer.
        peer: PeerId,
        /// Name of the child's table; `None` for the first child.
        child: Option<String>,
        /// Inbound SPI of the new SA.
        inbound: Spi,
        /// Outbound SPI of the new SA.
        outbound: Spi,
        /// Key exchanges of the rekey itself, if it had any.
        exchanges: Exchanges,
    },
    /// An IKE SA was rekeyed.
    IkeRekeyed {
        /// The peer.
        peer: PeerId,
    },
    /// A packet arrived on a child SA with an outer ECN field that contradicts the inner one
    /// (RFC 6040 section 4.2). Reported once per SA.
    EcnUnused {
        /// The peer.
        peer: PeerId,
        /// Name of the child's table; `None` for the first child.
        child: Option<String>,
    },
    /// The configuration pads the datagrams of a child SA, but the peer does not accept padding.
    Unpadded {
        /// The peer.
        peer: PeerId,
        /// Name of the child's table; `None` for the first child.
        child: Option<String>,
    },
    /// A child SA stops sending unencrypted packets: the grant for them is used up.
    LevelSpent {
        /// The peer.
        peer: PeerId,
        /// Name of the child's table; `None` for the first child.
        child: Option<String>,
    },
    /// An unencrypted packet arrived on a child SA without a grant for it. Reported once per SA.
    LevelRefused {
        /// The peer.
        peer: PeerId,
        /// Name of the child's table; `None` for the first child.
        child: Option<String>,
    },
    /// A child SA ended and has no successor.
    ChildDown {
        /// The peer.
        peer: PeerId,
        /// Name of the child's table; `None` for the first child.
        child: Option<String>,
    },
    /// Both ends agreed that licensed nodes may read a child SA.
    Licensed {
        /// The child SA.
        sa: Composite,
        /// The agreed zones and licences.
        agreement: ZoneAgreement,
        /// Time after which the child SA is rekeyed.
        lifetime: Duration,
    },
    /// The peer does not accept a licence of ours. No keys are distributed for it.
    NotLicensed {
        /// The peer.
        peer: PeerId,
        /// The licence.
        licence: Licence,
        /// Selector of the licence's zone.
        zone: ZoneSelector,
        /// The cause.
        why: Cause,
    },
    /// Gateway: keys are ready to leave for a licensed node. Mobile node: a token is ready to
    /// leave. Either one leaves as soon as [`crate::Node::give`] confirms the record. Emitted only
    /// while [`crate::Node::set_recording`] is on.
    Giving {
        /// The SA that the keys open.
        sa: Composite,
        /// Identity of the licensed node.
        node: Identity,
        /// Rights of the node, by zone.
        rights: Vec<(Zone, Right)>,
        /// Time for which the node may keep the keys.
        lifetime: Duration,
        /// Number of the grant; 0 for a token ([`Event::TokenGiven`]).
        grant: u16,
    },
    /// Mobile node: a token was sent to the agent that we are moving to. The token entitles `asker`
    /// to fetch the keys of the SA in use from `holder`, once.
    TokenGiven {
        /// The SA that the keys open.
        sa: Composite,
        /// The previous licensed node, which holds the keys.
        holder: Identity,
        /// The new licensed node, which may request the keys.
        asker: Identity,
    },
    /// Licensed node: the node that a mobile node moved to received keys from us.
    KeysHandedOn {
        /// The grant that the keys are from.
        held: HeldGrant,
        /// Identity of the node that received the keys.
        node: Identity,
    },
    /// Gateway: a licensed node acknowledged keys. The audit trail of invariant 4.
    Granted {
        /// The SA that the node can now read.
        sa: Composite,
        /// Identity of the licensed node.
        node: Identity,
        /// Rights of the node, by zone.
        rights: Vec<(ZoneId, Right)>,
    },
    /// Gateway: a licensed node refused keys.
    GrantRefused {
        /// The SA that the keys open.
        sa: Composite,
        /// Identity of the licensed node.
        node: Identity,
        /// The cause.
        why: Cause,
    },
    /// A licensed node lost its access to a composite SA.
    GrantEnded {
        /// The SA that the node was licensed to read.
        sa: Composite,
        /// Identity of the licensed node.
        node: Identity,
        /// True if the node may hold keys that we sent.
        given: bool,
        /// The reason.
        why: Ending,
    },
    /// Licensed node: keys were received and installed.
    GrantHeld(HeldGrant),
    /// Licensed node: keys were received that cannot be used.
    GrantUnusable {
        /// The gateway.
        gateway: PeerId,
        /// The composite SA.
        csa: CsaId,
        /// Human-readable reason.
        why: String,
    },
    /// Licensed node: keys were discarded.
    GrantDropped {
        /// The grant that the keys were from.
        held: HeldGrant,
        /// The reason.
        why: Dropped,
    },
    /// Licensed node: a composite SA runs between two hosts. Their fragments, which show no port,
    /// should be diverted as well so that packets are not reordered.
    PairLearnt {
        /// Address of the host on the gateway's side.
        wired: IpAddr,
        /// Address of the host on the mobile nodes' side.
        wireless: IpAddr,
    },
    /// Licensed node: no composite SA runs between two hosts any more.
    PairForgotten {
        /// Address of the host on the gateway's side.
        wired: IpAddr,
        /// Address of the host on the mobile nodes' side.
        wireless: IpAddr,
    },
    /// The path MTU towards a peer was discovered, or expired.
    PathMtu {
        /// The peer.
        peer: PeerId,
        /// Longest packet on the path, in octets; `None` if unknown.
        outside: Option<u16>,
        /// Longest inner datagram that fits into such a packet, in octets.
        inside: Option<u16>,
    },
    /// A path MTU was reported that is smaller than any path can have. Such a report may be forged.
    PathMtuForged {
        /// The path.
        path: Path,
        /// The reported path MTU, in octets.
        mtu: u16,
    },
    /// A tunnel moved to another path because one of its ends moved.
    PathMoved {
        /// The peer.
        peer: PeerId,
        /// The new path.
        path: Path,
    },
    /// A path of a peer with several live paths is used, or is not any more because the peer does
    /// not answer there. Packets take the other paths then.
    LivePath {
        /// The peer.
        peer: PeerId,
        /// The path.
        path: Path,
        /// True if it is used.
        works: bool,
    },
    /// The signal of a network is weak, or it is not any more because it is good again or no longer
    /// reported.
    Signal {
        /// Local addresses in the network, at least one.
        locals: Vec<IpAddr>,
        /// The newest report; `None` if it does not hold any more.
        reported: Option<Reported>,
    },
    /// The driver should look up the routes to the peers of tunnels and pass them to
    /// [`crate::Node::handle_ways`], or those to the peer of one tunnel and pass them to
    /// [`crate::Node::handle_ways_of`].
    WaysWanted {
        /// The IKE SA of the tunnel; `None` for all.
        of: Option<model::IkeSaId>,
    },
    /// A request of a peer, or an input from the network, was refused.
    Refused {
        /// The peer, if it is known. A refused initiator only claims to be
        /// that peer.
        peer: Option<PeerId>,
        /// Source of the refused message, if its sender is not authenticated.
        from: Option<SocketAddr>,
        /// Cause, which says what was refused.
        why: Cause,
    },
    /// An event of Mobile IPv4.
    MobileIp(mobile_ip::Event),
    /// A line for Wireshark's key tables; only while the key log is on.
    KeyLog(KeyLog),
}

impl Event {
    /// Returns true if this event asks to record a token. The token leaves with the next
    /// registration that is polled.
    pub const fn is_of_token(&self) -> bool {
        matches!(self, Self::Giving { grant: TOKEN, .. })
    }

    /// Returns true for events of a home agent or foreign agent, which install or remove its
    /// routes.
    pub const fn is_of_agent(&self) -> bool {
        use mobile_ip::Event::{ForeignAgent, HomeAgent};
        matches!(self, Self::MobileIp(ForeignAgent(_) | HomeAgent(_)))
    }
}
