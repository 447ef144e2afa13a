//! Status of a node, in plain values. The daemon converts them into the types of its API.

use crate::children::Child;
use crate::config::{Inside, Peer};
use crate::node::Node;
use crate::peers::Refused;
use crate::rivals::InTurns;
use crate::{GrantState, TransitCounters};
use crypto::Secret;
use esp::Traffic;
use ike::{SaStatus, Windows, is_slot};
use model::{
    Carrier, ChildSa, ChildSaId, CsaId, Exchanges, Identity, InnerAddresses, Instant, Kem, Lease,
    Licence, Mode, Signal, Spi, TrafficSelector, ZoneAgreement, ZoneId,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Number of times that a request is sent before its peer counts as silent.
pub const SILENT: u32 = 3;

/// State of the connection to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// There is no IKE SA.
    Down,
    /// An IKE SA is being established.
    Connecting,
    /// The IKE SA is established.
    Up,
}

/// Status of one configured peer.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Name of the peer's table.
    pub name: String,
    /// Identity that the peer has to prove.
    pub identity: Identity,
    /// State of the connection.
    pub state: PeerState,
    /// Address and port of the peer, if known.
    pub remote: Option<SocketAddr>,
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
}

impl ChildStatus {
    /// Returns the status of a new child SA, without traffic.
    pub(crate) fn new(child: &ChildSa<Secret>) -> Self {
        Self {
            name: child.name.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            zoned: child.agreement.is_some(),
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
        }
    }
}

/// One composite SA of this endpoint.
#[derive(Clone, Debug)]
pub struct CsaStatus {
    /// Identifier of the SA, shared with licensed nodes.
    pub csa: CsaId,
    /// Name of the peer's table.
    pub peer: String,
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
    /// Name of the node's table.
    pub name: String,
    /// Identity of the node.
    pub node: Identity,
    /// State of the grant.
    pub state: GrantState,
    /// Human-readable reason of a refusal.
    pub refusal: Option<String>,
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
    /// Name of the gateway's table.
    pub gateway: String,
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

impl Node {
    /// Returns the status of every configured peer, in the order of the configuration.
    pub fn peers(&self) -> Vec<PeerStatus> {
        let mut children: BTreeMap<&str, Vec<ChildStatus>> = BTreeMap::new();
        for (id, child) in self.children.iter() {
            let of_peer = children.entry(&child.peer).or_default();
            of_peer.push(self.child_status(id, child));
        }
        let status = |peer: &Peer| {
            let children = children.remove(peer.name.as_str());
            self.peer_status(peer, children.unwrap_or_default())
        };
        self.ike.peers().iter().filter_map(status).collect()
    }

    /// Returns the status of the peer with a name, without visiting others.
    pub fn peer_named(&self, name: &str) -> Option<PeerStatus> {
        let children = self.children.of_peer(name);
        let children = children.map(|(id, child)| self.child_status(id, child));
        self.peer_status(self.peer(name)?, children.collect())
    }

    /// Returns true if any child SA is up.
    pub fn has_tunnel(&self) -> bool {
        !self.children.is_empty()
    }

    /// Returns the last refusal of an unknown peer.
    pub const fn refused_stranger(&self) -> Option<&Refused> {
        self.stranger.as_ref()
    }

    /// Returns the last attempt to establish an IKE SA with a peer.
    pub fn attempt(&self, peer: &str) -> Option<ike::Attempt> {
        self.ike.attempt(peer)
    }

    /// Returns the last attempt of an initiator that has not authenticated as any peer.
    pub const fn stranger(&self) -> Option<&ike::Attempt> {
        self.ike.stranger()
    }

    /// Returns the addresses and other settings that peers assign to us, with the names of the
    /// peers.
    pub fn inside(&self) -> impl Iterator<Item = &(String, Inside)> {
        self.inside.values()
    }

    /// Returns every lease of our pools.
    pub fn leases(&self) -> impl Iterator<Item = Lease> {
        self.ike.leases()
    }

    /// Returns the composite SAs of this endpoint.
    pub fn composite_sas(&self) -> Vec<CsaStatus> {
        let holders = |csa: &crate::grants::Csa| {
            let status = |holder: &crate::grants::Holder| GrantStatus {
                name: holder.name.clone(),
                node: holder.node.clone(),
                state: holder.state,
                refusal: holder.refusal.clone(),
                since: holder.since,
                licences: csa.licences(&holder.node).cloned().collect(),
            };
            csa.holders.iter().map(status).collect()
        };
        let missing = |child: &ChildSaId, csa: &crate::grants::Csa| {
            let child = self.children.get(*child);
            let current = child.is_some_and(|child| !child.status.draining);
            let mut ours = self.licences(&csa.peer, csa.child.as_deref());
            ours.retain(|licence| current && !csa.agreement.licences.contains(licence));
            ours
        };
        let status = |(child, csa): (&ChildSaId, &crate::grants::Csa)| CsaStatus {
            missing: missing(child, csa),
            csa: csa.id,
            peer: csa.peer.clone(),
            inbound: csa.inbound.spi,
            outbound: csa.outbound.spi,
            opaque: csa.opaque,
            integrity: csa.integrity,
            level: self.workers.level(*child),
            signal: self.levels.signal(&csa.peer),
            link: self.workers.link(*child),
            agreement: csa.agreement.clone(),
            grants: holders(csa),
        };
        self.grants.iter().map(status).collect()
    }

    /// Returns the grants that this licensed node holds.
    pub fn held_grants(&self) -> Vec<HeldGrant> {
        self.transit.held().collect()
    }

    /// Returns the flows under SNOOP.
    pub fn flows(&self) -> Vec<pep::FlowStatus> {
        self.transit
            .snoop()
            .map_or_else(Vec::new, |snoop| snoop.flows().collect())
    }

    /// Returns the streams that IKE SAs use. Any other stream is obsolete, or not yet in use.
    pub fn streams(&self) -> impl Iterator<Item = model::Path> {
        self.ike.streams()
    }

    /// Returns the counters of the data plane.
    pub fn esp_counters(&self) -> esp::Counters {
        self.workers.counters()
    }

    /// Returns the name of the peer whose IKE SA a message belongs to, if the peer is known. The
    /// message, sent or received, is not necessarily authentic.
    pub fn peer_of(&self, message: &[u8]) -> Option<&str> {
        self.ike.peer_of(message)
    }

    /// Returns the counters of the IKE engine.
    pub fn ike_counters(&self) -> &ike::Counters {
        self.ike.counters()
    }

    /// Returns the counters of the licensed node.
    pub fn transit_counters(&self) -> &TransitCounters {
        self.transit.counters()
    }

    /// Returns the counters of SNOOP, if it is on.
    pub fn snoop_counters(&self) -> Option<&pep::Counters> {
        self.transit.snoop().map(pep::Snoop::counters)
    }

    fn peer_status(&self, peer: &Peer, children: Vec<ChildStatus>) -> Option<PeerStatus> {
        let entry = self.wishes.get(&peer.name)?;
        let state = match (entry.up_since, entry.sa) {
            (Some(_), _) => PeerState::Up,
            (None, Some(_)) => PeerState::Connecting,
            (None, None) => PeerState::Down,
        };
        let current = entry.sa.and_then(|sa| self.ike.sa(sa));
        let kems = current.as_ref().map(|sa| sa.kems.clone());
        let up = current.as_ref().filter(|_| state == PeerState::Up);
        let is_up = |name: &String| {
            children
                .iter()
                .any(|child| child.name.as_ref() == Some(name))
        };
        let named = peer.children.iter().map(|child| &child.name);
        let missing = named.filter(|name| state == PeerState::Up && !is_up(name));
        let missing = missing.cloned().collect();
        let packets = children.iter().filter_map(|child| child.heard);
        let heard = up.and_then(|sa| packets.chain(sa.heard).max());
        Some(PeerStatus {
            name: peer.name.clone(),
            windows: up.map(|sa| sa.windows),
            clones: up.is_some_and(|sa| sa.clones),
            sas: self.ike.count_up(&peer.name),
            identity: peer.identity.clone(),
            state,
            remote: remote(peer, current.as_ref()),
            carrier: current.as_ref().map_or(Carrier::Udp, |sa| sa.path.carrier),
            since: entry.up_since,
            heard,
            silent: current.as_ref().is_some_and(|sa| sa.tries >= SILENT),
            rivals: self.rivals.of(&peer.name),
            ppk: current.as_ref().is_some_and(|sa| sa.ppk),
            kems: kems.unwrap_or_default(),
            refusal: entry.refusal.as_deref().cloned(),
            addresses: current.and_then(|sa| sa.addresses).unwrap_or_default(),
            children,
            missing,
        })
    }

    fn child_status(&self, id: ChildSaId, child: &Child) -> ChildStatus {
        let carried = self.workers.traffic(id).unwrap_or_default();
        let is_slot = is_slot(child.status.name.as_deref());
        ChildStatus {
            waiting: is_slot && self.whereabouts.sent_on(&child.peer) != Some(id),
            heard: self.workers.last_inbound(id),
            path_mtu_origin: self.path_mtu_origin(child.status.path),
            received: carried.opened,
            sent: carried.sealed,
            ..child.status.clone()
        }
    }
}

/// Returns the remote address of the IKE SA or, without an IKE SA, the configured one.
fn remote(peer: &Peer, sa: Option<&SaStatus>) -> Option<SocketAddr> {
    let configured = peer
        .address
        .map(|address| SocketAddr::new(address, ike::PORT));
    sa.map(|sa| sa.path.remote).or(configured)
}
