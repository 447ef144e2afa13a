//! The configuration of a host.

use crypto::TrustStore;
use esp::{Protected, Spd};
use model::{
    Dscp, Encapsulation, Identity, LevelChoice, PeerId, PeerNames, Shared, Sizes, TrafficSelector,
};
use std::collections::BTreeMap;
use std::mem::take;
use std::time::Duration;

pub use esp::{Action, Policy};
pub use ike::{
    Addressing, BadDestination, CertificateTerms, ChildPolicy, Credential, Destination, Elsewhere,
    FRAGMENT, Inside, Lifetimes, PathRule, PeerRole as Role, PeerTerms, Pool, Ppk, Signer, Stance,
    Tcp, ZonePolicy,
};
pub use pep::{Config as SnoopConfig, Patience};

/// Time for which a licensed node may keep the keys of a grant, unless configured otherwise.
const GRANT_LIFETIME: Duration = Duration::from_secs(8 * 3600);

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
    /// Our UDP port for IKE only; the peer's is 500.
    pub ike_port: u16,
    /// Our UDP port for IKE and ESP; the peer's is 4500 unless its [`Peer::port`] is set.
    pub natt_port: u16,
    /// Additional addresses at which mobile peers can reach us.
    pub addresses: Vec<std::net::IpAddr>,
    /// Maximum IP datagram size, in octets, for IKE messages to peers that support fragmentation
    /// (RFC 7383): at least 576, or 0 to disable fragmentation.
    pub fragment: u16,
    /// How long peers may resume their sessions.
    pub resumption: resumption::Strategy,
    /// Gateway to which initiators that support it are redirected (RFC 5685).
    pub elsewhere: Option<Elsewhere>,
    /// Number of threads that seal and open packets ([`crate::Node::worker`]).
    pub workers: std::num::NonZeroU8,
    /// Exceptions to protection; the first match wins (RFC 4301 section 4.4.1).
    pub policies: Vec<Policy>,
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
    pub grant_lifetime: Duration,
    /// True to report the keys of new SAs by [`crate::Event::KeyLog`].
    pub key_log: bool,
}

/// A configured peer.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Name of the peer's table in the configuration.
    pub name: String,
    /// The part for IKE. The node sets its identifier.
    pub ike: ike::Peer,
    /// Name to look up for the address at which the peer listens; `None` if that is known, or if
    /// the peer initiates.
    pub host: Option<Box<str>>,
    /// UDP port at which the peer listens for IKE and ESP; `None` for the usual ones.
    pub port: Option<u16>,
    /// DSCP of the outer header.
    pub dscp: Dscp,
    /// Lengths to which datagrams are padded; `None` for no padding.
    pub sizes: Option<Sizes>,
    /// Interval without a sealed packet after which a dummy packet is sent; `None` for no dummies.
    pub cover: Option<Duration>,
    /// Choice among the agreed protection levels. An operator's signal overrides it.
    pub level: LevelChoice,
    /// Locations of the licensed nodes that have slots.
    pub places: Option<crate::Places>,
}

impl Peer {
    /// Creates a peer with the usual settings: see [`ike::Peer::new`].
    pub fn new(name: &str, identity: Identity, role: Role) -> Self {
        Self {
            name: name.to_owned(),
            ike: ike::Peer::new(PeerId::NONE, identity, role),
            host: None,
            port: None,
            dscp: Dscp::default(),
            sizes: None,
            cover: None,
            level: LevelChoice::default(),
            places: None,
        }
    }
}

/// The settings of peers that IKE does not need.
#[derive(Default)]
pub(crate) struct Settings {
    /// Peers to bring up at the start and to keep up.
    pub start: Vec<PeerId>,
    /// Settings of packets, of the peers that do not use the default.
    pub packets: BTreeMap<PeerId, esp::PeerSettings>,
    pub cover: BTreeMap<PeerId, Duration>,
    pub hosts: BTreeMap<PeerId, Box<str>>,
    pub ports: BTreeMap<PeerId, u16>,
    /// Locations of the licensed nodes. Users share those of their table.
    pub places: BTreeMap<PeerId, Shared<crate::Places>>,
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
            resumption: ike::Config::SESSIONS,
            workers: std::num::NonZeroU8::MIN,
            policies: Vec::new(),
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

    /// Takes out the peers, each with its identifier: what the IKE engine needs, and their other
    /// settings.
    pub(crate) fn take_peers(&mut self, names: &mut PeerNames) -> (ike::Config, Settings) {
        names.enter(self.peers.iter().map(|peer| peer.name.as_str()));
        let start = take(&mut self.start);
        let mut settings = Settings {
            start: start.iter().filter_map(|name| names.id(name)).collect(),
            ..Settings::default()
        };
        let mut peers = Vec::with_capacity(self.peers.len());
        for mut peer in take(&mut self.peers) {
            let Some(id) = names.id(&peer.name) else {
                continue;
            };
            peer.ike.id = id;
            settings.take(id, &mut peer);
            peers.push(peer.ike);
        }
        (self.take_ike(peers), settings)
    }

    fn take_ike(&mut self, peers: Vec<ike::Peer>) -> ike::Config {
        ike::Config {
            encapsulation: self.encapsulation,
            natt_port: self.natt_port,
            addresses: take(&mut self.addresses),
            bypassed: bypassed(&self.policies),
            fragment: self.fragment,
            elsewhere: self.elsewhere.take(),
            resumption: self.resumption,
            workers: self.workers,
            credential: self.credential.take(),
            trust: take(&mut self.trust),
            ..ike::Config::new(self.identity.clone(), peers)
        }
    }
}

impl Settings {
    /// Returns the settings of a peer.
    pub(crate) fn of(&self, peer: PeerId) -> PeerSettings {
        PeerSettings {
            packets: self.packets.get(&peer).copied().unwrap_or_default(),
            cover: self.cover.get(&peer).copied(),
            places: self.places.get(&peer).cloned(),
            host: self.hosts.get(&peer).cloned(),
            port: self.ports.get(&peer).copied(),
        }
    }

    /// Returns the settings of the peers that stand for many identities.
    pub(crate) fn of_tables(&self, peers: &[ike::Peer]) -> Self {
        let mut tables = Self::default();
        for table in peers.iter().filter(|peer| peer.users.is_some()) {
            tables.put(table.id, self.of(table.id));
        }
        tables
    }

    /// Gives users the settings of their tables.
    pub(crate) fn add_users(&mut self, users: &[(PeerId, PeerId)]) {
        for (user, table) in users {
            self.put(*user, self.of(*table));
        }
    }

    fn put(&mut self, peer: PeerId, settings: PeerSettings) {
        if settings.packets != esp::PeerSettings::default() {
            self.packets.insert(peer, settings.packets);
        }
        self.cover.extend(settings.cover.map(|cover| (peer, cover)));
        let places = settings.places;
        self.places.extend(places.map(|places| (peer, places)));
        self.hosts.extend(settings.host.map(|host| (peer, host)));
        self.ports.extend(settings.port.map(|port| (peer, port)));
    }

    fn take(&mut self, id: PeerId, peer: &mut Peer) {
        let packets = esp::PeerSettings {
            dscp: peer.dscp,
            sizes: peer.sizes,
            level: peer.level,
        };
        let settings = PeerSettings {
            packets,
            cover: peer.cover,
            places: peer.places.take().map(Shared::from),
            host: peer.host.take(),
            port: peer.port,
        };
        self.put(id, settings);
    }
}

/// Returns the prefixes that are reached outside of all tunnels.
pub(crate) fn bypassed(policies: &[Policy]) -> Vec<TrafficSelector> {
    let bypasses = policies.iter();
    let bypasses = bypasses.filter(|policy| policy.action == Action::Bypass);
    bypasses.map(|policy| policy.remote.clone()).collect()
}

/// The settings of one peer that IKE does not need.
#[derive(Default)]
pub(crate) struct PeerSettings {
    pub packets: esp::PeerSettings,
    pub cover: Option<Duration>,
    pub places: Option<Shared<crate::Places>>,
    pub host: Option<Box<str>>,
    pub port: Option<u16>,
}

/// Builds the policy database from the host's policies and the selectors of its peers.
pub(crate) fn spd(policies: Vec<Policy>, peers: &[ike::Peer]) -> Spd {
    Spd::new(policies, peers.iter().flat_map(protected).collect())
}

/// Returns the selectors that must never leave unencrypted, even while the peer is down.
fn protected(peer: &ike::Peer) -> impl Iterator<Item = (PeerId, Protected)> {
    let first = match &peer.role {
        Role::Vpn { local, remote, .. } => Some((local.clone(), remote.clone())),
        Role::Licensed | Role::Gateway | Role::Neighbour => None,
    };
    let others = peer.children.iter();
    let others = others.map(|child| (child.local.clone().into(), child.remote.clone().into()));
    let all = first.into_iter().chain(others);
    all.map(|(local, remote)| (peer.id, Protected { local, remote }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table may have thousands of users, and a domain hundreds of nodes.
    #[test]
    fn users_share_the_places_of_their_table() {
        let [table, alice, bob] = [1, 2, 3].map(PeerId);
        let mut settings = Settings::default();
        settings
            .places
            .insert(table, crate::Places::default().into());
        settings.add_users(&[(alice, table), (bob, table)]);
        let places = [table, alice, bob].map(|peer| &*settings.places[&peer]);
        assert!(places.iter().all(|own| std::ptr::eq(*own, places[0])));
    }
}
