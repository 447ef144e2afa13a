//! The configuration of a host.

use crypto::TrustStore;
use esp::{Protected, Spd};
use model::{Dscp, Encapsulation, Identity, Sizes};
use std::mem::take;

pub use esp::{Action, Policy};
pub use ike::{
    Addressing, ChildPolicy, Credential, Elsewhere, FRAGMENT, Inside, Lifetimes, Peer,
    PeerRole as Role, PeerTerms, Pool, Ppk, Signer, Stance, Tcp, ZonePolicy,
};
pub use pep::{Config as SnoopConfig, Patience};

/// Time for which a licensed node may keep the keys of a grant, unless configured otherwise.
const GRANT_LIFETIME: std::time::Duration = std::time::Duration::from_secs(8 * 3600);

/// The complete configuration of a [`crate::Node`].
pub struct Config {
    /// Our identity, presented to every peer.
    pub identity: Identity,
    /// Credential that proves our identity to peers without a pre-shared key.
    pub credential: Option<Credential>,
    /// Trust anchors for the certificates of peers.
    pub trust: TrustStore,
    /// VPN peers, licensed nodes that we distribute keys to, gateways whose grants we accept, and
    /// neighbours: licensed nodes that exchange keys with us. We initiate with each peer that has
    /// an address, except with gateways.
    pub peers: Vec<Peer>,
    /// Names of the peers to bring up at the start and to keep up.
    pub start: Vec<String>,
    /// Policy for UDP encapsulation of ESP on paths without a NAT.
    pub encapsulation: Encapsulation,
    /// Our UDP port for IKE only; the peer's is always 500.
    pub ike_port: u16,
    /// Our UDP port for IKE and ESP; the peer's is always 4500.
    pub natt_port: u16,
    /// Additional addresses at which mobile peers can reach us.
    pub addresses: Vec<std::net::IpAddr>,
    /// Maximum IP datagram size, in octets, for IKE messages to peers that support fragmentation
    /// (RFC 7383): at least 576, or 0 to disable fragmentation.
    pub fragment: u16,
    /// Gateway to which initiators that support it are redirected (RFC 5685).
    pub elsewhere: Option<Elsewhere>,
    /// Number of threads that seal and open packets ([`crate::Node::worker`]).
    pub workers: std::num::NonZeroU8,
    /// Exceptions to protection; the first match wins (RFC 4301 section 4.4.1).
    pub policies: Vec<Policy>,
    /// DSCP of the outer header by peer name, for peers that do not use the default.
    pub classes: std::collections::BTreeMap<String, Dscp>,
    /// Lengths to which datagrams are padded, by peer name. Peers without an entry get no padding.
    pub sizes: std::collections::BTreeMap<String, Sizes>,
    /// Interval without a sealed packet after which a dummy packet is sent, by peer name. Peers
    /// without an entry get no dummies.
    pub cover: std::collections::BTreeMap<String, std::time::Duration>,
    /// Choice among the agreed protection levels, by peer name, for peers that do not use the
    /// default. An operator's signal overrides it.
    pub levels: std::collections::BTreeMap<String, model::LevelChoice>,
    /// Locations of the licensed nodes that have slots, by peer name.
    pub places: std::collections::BTreeMap<String, crate::Places>,
    /// Licensed nodes that mobile nodes can move to from this one; announced to gateways.
    pub neighbours: Vec<Identity>,
    /// MTU of the tunnel device if the MSS of TCP connections is clamped to it; `None` to leave the
    /// MSS alone.
    pub clamp: Option<u16>,
    /// The way in which path MTUs are discovered.
    pub path_mtu: crate::Discovery,
    /// Configuration of a licensed node's SNOOP; `None` to only forward.
    pub snoop: Option<SnoopConfig>,
    /// Limit, in octets, to which a licensed node lowers TCP windows; `None` to leave windows
    /// alone.
    pub window: Option<u32>,
    /// Limits within which a licensed node acts for a silent endpoint; `None` to never do so.
    pub stand_in: Option<Patience>,
    /// Role in Mobile IPv4, if any. A reconfiguration does not change it.
    pub mobile_ip: Option<crate::mobile_ip::Config>,
    /// Time for which a licensed node may keep the keys of a grant.
    pub grant_lifetime: std::time::Duration,
    /// True to report the keys of new SAs by [`crate::Event::KeyLog`].
    pub key_log: bool,
}

impl Config {
    /// Creates a configuration with the usual ports and limits, which brings up no peer.
    pub fn new(identity: Identity, peers: Vec<Peer>) -> Self {
        Self {
            identity,
            credential: None,
            trust: TrustStore::default(),
            peers,
            start: Vec::new(),
            encapsulation: Encapsulation::default(),
            ike_port: ike::PORT,
            natt_port: ike::NATT_PORT,
            addresses: Vec::new(),
            fragment: FRAGMENT,
            elsewhere: None,
            workers: std::num::NonZeroU8::MIN,
            policies: Vec::new(),
            classes: Default::default(),
            sizes: Default::default(),
            cover: Default::default(),
            levels: Default::default(),
            places: Default::default(),
            neighbours: Vec::new(),
            clamp: None,
            path_mtu: crate::Discovery::default(),
            snoop: None,
            window: None,
            stand_in: None,
            mobile_ip: None,
            grant_lifetime: GRANT_LIFETIME,
            key_log: false,
        }
    }

    /// Takes out the part of the configuration that the IKE engine needs, with all peers.
    pub(crate) fn take_ike(&mut self) -> ike::Config {
        ike::Config {
            encapsulation: self.encapsulation,
            natt_port: self.natt_port,
            addresses: take(&mut self.addresses),
            fragment: self.fragment,
            elsewhere: self.elsewhere,
            workers: self.workers,
            credential: self.credential.take(),
            trust: take(&mut self.trust),
            ..ike::Config::new(self.identity.clone(), take(&mut self.peers))
        }
    }
}

/// Builds the policy database from the host's policies and the selectors of its peers.
pub(crate) fn spd(policies: Vec<Policy>, peers: &[Peer]) -> Spd {
    Spd::new(policies, peers.iter().flat_map(protected).collect())
}

/// Returns the selectors that must never leave unencrypted, even while the peer is down.
fn protected(peer: &Peer) -> impl Iterator<Item = (String, Protected)> {
    let first = match &peer.role {
        Role::Vpn { local, remote, .. } => Some((local.clone(), remote.clone())),
        Role::Licensed | Role::Gateway | Role::Neighbour => None,
    };
    let others = peer.children.iter();
    let others = others.map(|child| (child.local.clone().into(), child.remote.clone().into()));
    let all = first.into_iter().chain(others);
    all.map(|(local, remote)| (peer.name.clone(), Protected { local, remote }))
}
