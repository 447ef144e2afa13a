//! What a node shows of itself. Plain values: the daemon turns them into its API's types.

use crate::config::{Inside, Peer};
use crate::node::{Child, Node};
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
    /// What carries its messages.
    pub carrier: Carrier,
    /// Since when it is up.
    pub since: Option<Instant>,
    /// Whether a PPK is in the keys of its IKE SA, and so in those of its children.
    pub ppk: bool,
    /// The additional key exchanges in the same keys.
    pub kems: Vec<Kem>,
    /// Whether its IKE SA may be cloned.
    pub clones: bool,
    /// How many IKE SAs with it are up: more than one while one takes the place of another, or if it has
    /// cloned them.
    pub sas: usize,
    /// How many requests may be under way on it, and are.
    pub windows: Option<Windows>,
    /// The newest refusal or failure since it was last up.
    pub refusal: Option<(Instant, String)>,
    /// The addresses inside that one end lends the other.
    pub addresses: InnerAddresses,
    /// Its child SAs.
    pub children: Vec<ChildStatus>,
    /// The names of those of the configuration that are not up while it is.
    pub missing: Vec<String>,
}

/// One child SA.
#[derive(Clone, Debug)]
pub struct ChildStatus {
    /// Which of the peer's it is, by the name of its table; `None` for the first.
    pub name: Option<String>,
    /// SPI towards us.
    pub inbound: Spi,
    /// SPI towards the peer.
    pub outbound: Spi,
    /// Whether it is a composite SA.
    pub zoned: bool,
    /// Whether its sequence numbers are extended.
    pub esn: bool,
    /// The key exchanges of its own that its keys come from.
    pub exchanges: Exchanges,
    /// What of a datagram it seals.
    pub mode: Mode,
    /// Whether a newer one has its place: it only waits for what is under way.
    pub draining: bool,
    /// Whether it is a slot that is not sent on, for the tunnel does not pass its node.
    pub waiting: bool,
    /// What of ours it carries.
    pub local: Vec<TrafficSelector>,
    /// What of the peer's it carries.
    pub remote: Vec<TrafficSelector>,
    /// Where its packets go.
    pub path: model::Path,
    /// The longest packet that this takes, if that is known.
    pub path_mtu: Option<u16>,
    /// The longest datagram that has room in it.
    pub mtu: Option<u16>,
    /// What was opened.
    pub received: Traffic,
    /// What was sealed.
    pub sent: Traffic,
}

impl ChildStatus {
    /// That of one that has carried nothing yet.
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
            mtu: None,
            received: Traffic::default(),
            sent: Traffic::default(),
        }
    }
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
    /// Both of the opaque SA beside, that towards us first, if the map is fixed.
    pub opaque: Option<(Spi, Spi)>,
    /// Both of the SA beside for what goes without encryption, that towards us first, if anything may.
    pub integrity: Option<(Spi, Spi)>,
    /// How that stands.
    pub level: Option<esp::LevelStatus>,
    /// What the operator wants of the levels.
    pub signal: Signal,
    /// How good its way is, if that says which level it is.
    pub link: Option<esp::Link>,
    /// What was agreed.
    pub agreement: ZoneAgreement,
    /// The licences of the configuration that it has not, unless it only waits for what is under way.
    pub missing: Vec<Licence>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The grant's number.
    pub grant: u16,
    /// Whether it may write.
    pub writes: bool,
    /// Whether it may inject.
    pub injects: bool,
    /// When the keys are forgotten.
    pub until: Instant,
}

impl Node {
    /// Every configured peer, in the order of the configuration.
    pub fn peers(&self) -> Vec<PeerStatus> {
        let mut children: BTreeMap<&str, Vec<ChildStatus>> = BTreeMap::new();
        for (id, child) in &self.children {
            let of_peer = children.entry(&child.peer).or_default();
            of_peer.push(self.child_status(*id, child));
        }
        let status = |peer: &Peer| {
            let children = children.remove(peer.name.as_str());
            self.peer_status(peer, children.unwrap_or_default())
        };
        self.peers.iter().filter_map(status).collect()
    }

    /// Whether any tunnel is up.
    pub fn has_tunnel(&self) -> bool {
        !self.children.is_empty()
    }

    /// When and why somebody who is no configured peer was last refused.
    pub const fn refused_stranger(&self) -> Option<&(Instant, String)> {
        self.stranger.as_ref()
    }

    /// What the last attempt with a peer showed.
    pub fn attempt(&self, peer: &str) -> Option<ike::Attempt> {
        self.ike.attempt(peer)
    }

    /// What the last attempt of somebody showed who has not proved to be any peer.
    pub const fn stranger(&self) -> Option<&ike::Attempt> {
        self.ike.stranger()
    }

    /// What peers lend us, with their names.
    pub fn inside(&self) -> impl Iterator<Item = &(String, Inside)> {
        self.inside.values()
    }

    /// Every lease of our pools.
    pub fn leases(&self) -> impl Iterator<Item = Lease> {
        self.ike.leases()
    }

    /// Composite SAs of this endpoint.
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
            let child = self.children.get(child);
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

    /// Grants that this licensed node holds.
    pub fn held_grants(&self) -> Vec<HeldGrant> {
        self.transit.held().collect()
    }

    /// Flows under SNOOP.
    pub fn flows(&self) -> Vec<pep::FlowStatus> {
        self.transit
            .snoop()
            .map_or_else(Vec::new, |snoop| snoop.flows().collect())
    }

    /// The streams that are in use. Any other is of no use any more, or not yet.
    pub fn streams(&self) -> impl Iterator<Item = model::Path> {
        self.ike.streams()
    }

    /// Counters of the data plane.
    pub fn esp_counters(&self) -> esp::Counters {
        self.workers.counters()
    }

    /// Counters of the IKE engine.
    pub fn ike_counters(&self) -> &ike::Counters {
        self.ike.counters()
    }

    /// Counters of the licensed node.
    pub fn transit_counters(&self) -> &TransitCounters {
        self.transit.counters()
    }

    /// Counters of SNOOP, if it is on.
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
            ppk: current.as_ref().is_some_and(|sa| sa.ppk),
            kems: kems.unwrap_or_default(),
            refusal: entry.refusal.clone(),
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
            received: carried.opened,
            sent: carried.sealed,
            ..child.status.clone()
        }
    }
}

/// Where the IKE SA's messages go; before there is one, where the configuration says.
fn remote(peer: &Peer, sa: Option<&SaStatus>) -> Option<SocketAddr> {
    let configured = peer
        .address
        .map(|address| SocketAddr::new(address, ike::PORT));
    sa.map(|sa| sa.path.remote).or(configured)
}
