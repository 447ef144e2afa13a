//! Status of a node, in plain values. The daemon converts them into the types of its API.

use crate::tunnels::desired::{PeerState, Refused};
use crate::tunnels::rivals::InTurns;
use crate::{Cause, GrantState};
use crypto::Secret;
use esp::{Pace, Rates, SaTraffic, Traffic};
use ike::Windows;
use model::{
    Allowance, Carrier, ChildSa, CsaId, EspSuite, Exchanges, Identity, InnerAddresses, Instant,
    Kem, Licence, Mode, PeerId, Signal, Spi, TrafficSelector, ZoneAgreement, ZoneId,
};
use std::net::SocketAddr;
use std::time::Duration;

/// Number of times that a request is sent before its peer counts as silent.
pub const SILENT: u32 = 3;

/// Status of one configured peer.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// The peer.
    pub name: String,
    /// The table of a user: a peer that proved one of the identities for which it stands.
    pub table: Option<String>,
    /// The users of a table that stands for many identities. The table itself is never up.
    pub users: Option<UserCount>,
    /// Identity that the peer has to prove.
    pub identity: Identity,
    /// State of the connection.
    pub state: PeerState,
    /// Address and port of the peer, if known.
    pub remote: Option<SocketAddr>,
    /// The name of the peer, and what is known of it; `None` if its address is known.
    pub naming: Option<crate::NameStatus>,
    /// Transport of the IKE messages and ESP packets: UDP or TCP.
    pub carrier: Carrier,
    /// Time at which the IKE SA was established.
    pub since: Option<Instant>,
    /// True if a PPK was mixed into the keys of the IKE SA, and so into those of its children.
    pub ppk: bool,
    /// Additional key exchanges of the IKE SA.
    pub kems: Vec<Kem>,
    /// True if the IKE SA may be cloned.
    pub clones: bool,
    /// Number of IKE SAs that are up: more than one while one replaces another, or after the peer
    /// cloned one.
    pub sas: usize,
    /// Limits on outstanding IKE requests and the current number of them.
    pub windows: Option<Windows>,
    /// Time at which an authentic message or packet of the peer last arrived, while it is up.
    pub heard: Option<Instant>,
    /// True if the peer owes an answer to a request that was sent at least [`SILENT`] times.
    pub silent: bool,
    /// Addresses from which the peer connects in turns, as if two machines had its key.
    pub rivals: Option<InTurns>,
    /// The latest refusal or failure since the peer was last up.
    pub refusal: Option<Refused>,
    /// Inner addresses that one end assigned to the other.
    pub addresses: InnerAddresses,
    /// Its child SAs.
    pub children: Vec<ChildStatus>,
    /// Names of configured child SAs that are not up although the peer is.
    pub missing: Vec<String>,
}

/// Numbers of one peer, for metrics. They cost less than a [`PeerStatus`].
#[derive(Clone, Copy, Debug)]
pub struct PeerNumbers {
    /// The peer.
    pub peer: PeerId,
    /// As in [`PeerStatus::users`].
    pub users: Option<UserCount>,
    /// True if it is the other end of tunnels, and no licensed node, gateway or neighbour.
    pub has_tunnels: bool,
    /// State of the connection.
    pub state: PeerState,
    /// Number of child SAs that packets are sealed on, or that stand by for that.
    pub tunnels: usize,
    /// True if one of them is not encrypted.
    pub unencrypted: bool,
    /// As in [`PeerStatus::silent`].
    pub silent: bool,
    /// As in [`PeerStatus::heard`].
    pub heard: Option<Instant>,
    /// Smoothed time from an IKE request to its response, if it was measured on this path.
    pub round_trip: Option<Duration>,
    /// Smallest known path MTU of its child SAs, in octets.
    pub path_mtu: Option<u16>,
    /// Traffic of all its child SAs, including those that are gone.
    pub traffic: SaTraffic,
    /// Share of requests that the path loses, in per cent, if the path is measured.
    pub lost: Option<u8>,
    /// Number of paths that carry packets at the same time, if there may be several.
    pub live_paths: Option<usize>,
    /// Rekeys of the IKE SA and of child SAs.
    pub rekeys: u64,
    /// Moves to another path without a pause.
    pub hand_overs: u64,
}

/// Numbers of peers and SAs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Configured peers of all kinds.
    pub peers: usize,
    /// Users of tables that stand for many identities.
    pub users: usize,
    /// Peers with an established IKE SA.
    pub up: usize,
    /// Child SAs.
    pub children: usize,
    /// Grants held as a licensed node.
    pub grants: usize,
}

/// Number of users of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCount {
    /// Users now.
    pub here: u32,
    /// Most users at once.
    pub most: u32,
}

/// One child SA.
#[derive(Clone, Debug)]
pub struct ChildStatus {
    /// Name of the child's table; `None` for the first child.
    pub name: Option<String>,
    /// Inbound SPI.
    pub inbound: Spi,
    /// Outbound SPI.
    pub outbound: Spi,
    /// True for a composite SA.
    pub zoned: bool,
    /// Cipher suite of a plain SA; the zones of a composite SA have one each.
    pub suite: Option<EspSuite>,
    /// Packets that may still go without encryption, here and on the peer's other child SAs; `None`
    /// if it encrypts.
    pub allowance: Option<Allowance>,
    /// True if sequence numbers are extended to 64 bits.
    pub esn: bool,
    /// Key exchanges of this child SA itself, if it had any.
    pub exchanges: Exchanges,
    /// Mode of the SA: tunnel, transport or BEET.
    pub mode: Mode,
    /// True if a newer SA replaced this one, which only waits for packets in flight.
    pub draining: bool,
    /// True for a slot that does not send, because the tunnel does not pass its node.
    pub waiting: bool,
    /// Selectors of the local traffic.
    pub local: Vec<TrafficSelector>,
    /// Selectors of the remote traffic.
    pub remote: Vec<TrafficSelector>,
    /// Path of the packets.
    pub path: model::Path,
    /// Path MTU in octets, if known.
    pub path_mtu: Option<u16>,
    /// Origin of the path MTU.
    pub path_mtu_origin: Option<crate::Origin>,
    /// Longest inner datagram that fits, in octets, if known.
    pub mtu: Option<u16>,
    /// Time at which the last packet arrived.
    pub heard: Option<Instant>,
    /// Packets and octets opened.
    pub received: Traffic,
    /// Packets and octets sealed.
    pub sent: Traffic,
    /// Earlier samples of both.
    pub(crate) pace: Pace,
}

impl ChildStatus {
    /// Returns the status of a new child SA, without traffic.
    pub(crate) fn new(child: &ChildSa<Secret>) -> Self {
        Self {
            name: child.name.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            zoned: child.agreement.is_some(),
            suite: child.outbound.keys.plain_suite(),
            allowance: child.allowance.clone(),
            esn: child.outbound.keys.is_extended(),
            exchanges: child.exchanges.clone(),
            mode: child.mode,
            draining: false,
            waiting: false,
            local: child.local.clone(),
            remote: child.remote.clone(),
            path: child.path,
            path_mtu: None,
            path_mtu_origin: None,
            mtu: None,
            heard: None,
            received: Traffic::default(),
            sent: Traffic::default(),
            pace: Pace::default(),
        }
    }

    /// Notes another path. In transport mode, its addresses are the selectors.
    pub(crate) fn take_path(&mut self, path: model::Path) {
        self.path = path;
        if self.mode == Mode::Transport {
            let ends = [
                (&mut self.local, path.local),
                (&mut self.remote, path.remote),
            ];
            for (selectors, end) in ends {
                *selectors = selectors.iter().map(|one| one.at(end.ip())).collect();
            }
        }
    }

    /// Returns the rates of its traffic over the last seconds.
    pub fn rates(&self, now: Instant) -> Rates {
        let traffic = SaTraffic {
            sealed: self.sent,
            opened: self.received,
        };
        self.pace.rates(traffic, now)
    }
}

/// One composite SA of this endpoint.
#[derive(Clone, Debug)]
pub struct CsaStatus {
    /// Identifier of the SA, shared with licensed nodes.
    pub csa: CsaId,
    /// The peer.
    pub peer: PeerId,
    /// Name of the child SA; `None` for the first.
    pub child: Option<String>,
    /// Inbound SPI.
    pub inbound: Spi,
    /// Outbound SPI.
    pub outbound: Spi,
    /// Inbound and outbound SPI of the opaque companion SA, if the map is fixed.
    pub opaque: Option<(Spi, Spi)>,
    /// Inbound and outbound SPI of the companion SA for unencrypted packets, if any are allowed.
    pub integrity: Option<(Spi, Spi)>,
    /// Use of the grant for unencrypted packets, if there is one.
    pub level: Option<esp::LevelStatus>,
    /// Protection level that the operator requests.
    pub signal: Signal,
    /// Quality of the path, if the choice of the level depends on it.
    pub link: Option<esp::Link>,
    /// The agreed zones and licences.
    pub agreement: ZoneAgreement,
    /// Configured licences that this SA lacks. Empty while the SA drains.
    pub missing: Vec<Licence>,
    /// Grants to licensed nodes. Empty if the other endpoint distributes the keys.
    pub grants: Vec<GrantStatus>,
}

/// A grant, as the gateway sees it.
#[derive(Clone, Debug)]
pub struct GrantStatus {
    /// The node as a peer.
    pub peer: PeerId,
    /// Identity of the node.
    pub node: Identity,
    /// State of the grant.
    pub state: GrantState,
    /// The cause of a refusal.
    pub refusal: Option<Cause>,
    /// Time of the last change of `state`.
    pub since: Instant,
    /// Licences of the node.
    pub licences: Vec<Licence>,
}

/// A grant, as the licensed node holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldGrant {
    /// Identifier of the composite SA, chosen by the gateway.
    pub csa: CsaId,
    /// The gateway.
    pub gateway: PeerId,
    /// Identity of the gateway.
    pub identity: Identity,
    /// SPI of packets from the gateway.
    pub from_gateway: Spi,
    /// SPI of packets to the gateway.
    pub to_gateway: Spi,
    /// Zones that the keys open.
    pub zones: Vec<ZoneId>,
    /// The payload zone, which stays closed unless `zones` contains it.
    pub payload_zone: ZoneId,
    /// Number of the grant.
    pub grant: u16,
    /// True if the node may write.
    pub writes: bool,
    /// True if the node may inject.
    pub injects: bool,
    /// Time at which the keys are discarded.
    pub until: Instant,
}
