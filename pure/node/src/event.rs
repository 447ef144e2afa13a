//! What a node tells its driver.

use crate::{KeyLog, Side};
use model::{Exchanges, Identity, InnerAddresses, Mode, Path, Right, Spi, ZoneId};
use std::net::{IpAddr, SocketAddr};

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
    /// A child SA is gone, and no other has its place.
    ChildDown {
        /// Name of the peer's table.
        peer: String,
        /// Name of the child's; `None` for the first.
        child: Option<String>,
    },
    /// Gateway: a licensed node acknowledged keys. The audit trail of invariant 4.
    Granted {
        /// The node.
        node: Identity,
        /// The peer whose traffic it can now read.
        peer: String,
        /// What it may do.
        rights: Vec<(ZoneId, Right)>,
    },
    /// Gateway: a licensed node refused keys.
    GrantRefused {
        /// The node.
        node: Identity,
        /// Why, for a person.
        why: String,
    },
    /// Licensed node: keys arrived.
    GrantHeld {
        /// Name of the gateway's table.
        gateway: String,
        /// The zones that can be opened now.
        zones: Vec<ZoneId>,
    },
    /// Licensed node: keys are gone.
    GrantDropped {
        /// Name of the gateway's table.
        gateway: String,
    },
    /// Licensed node: a pair of UDP sockets carries a composite SA; its fragments, which show no
    /// port, should take the same way so that nothing is reordered.
    PairLearnt {
        /// The side the packet came from.
        from: Side,
        /// Its sender.
        source: IpAddr,
        /// Its destination.
        destination: IpAddr,
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
    /// A line for Wireshark's key tables; only if the configuration asked for it.
    KeyLog(KeyLog),
}
