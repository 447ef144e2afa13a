//! Inner addresses that peers assign to us, and the subnets and name servers that they announce, as
//! far as the configuration accepts them; in transport mode our outer address, which is the inner
//! one.

use config::{Config, Peer, Routing};
use model::{Mode, TrafficSelector};
use node::Node;
use os::Prefix;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Our inner addresses by the name of the peer that assigns them, name servers, and the subnets
/// behind each peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssignedAddresses {
    addresses: BTreeMap<String, Vec<IpAddr>>,
    servers: Vec<IpAddr>,
    behind: BTreeMap<String, Behind>,
    /// Our outer addresses by the name of the peer that we have tunnels in transport mode with.
    outside: BTreeMap<String, IpAddr>,
}

/// The subnets that a peer announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// Announced subnets that the tunnel carries; `None` if the peer announces none, or too many.
    pub reachable: Option<Vec<TrafficSelector>>,
    /// Announced subnets that the tunnel does not carry, or not as a whole.
    pub beyond: Vec<TrafficSelector>,
}

impl AssignedAddresses {
    /// Collects the current assignments. Two SAs with a peer may coexist for a moment, and both
    /// assign addresses; the newer one determines the subnets.
    pub fn new(node: &Node, config: &Config) -> Self {
        let mut all = Self::default();
        for (peer, inside) in node.inside() {
            let name = node.name(*peer);
            let Some(peer) = config.peers.iter().find(|peer| peer.party.name == name) else {
                continue;
            };
            let addresses = all.addresses.entry(name.to_owned()).or_default();
            for address in inside.addresses.iter() {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            all.behind.insert(name.to_owned(), Behind::new(inside));
            // A server outside the tunnel would be queried in clear.
            let mut led = all.led(peer);
            led.extend(peer.all_remote().skip(peer.remote.len()).cloned());
            let behind = |server: &&IpAddr| led.iter().any(|led| led.contains(**server, 0, None));
            let servers = inside.dns.iter().filter(|_| peer.dns_from_peer);
            for server in servers.filter(behind) {
                if !all.servers.contains(server) {
                    all.servers.push(*server);
                }
            }
        }
        all.outside = outside(node, config);
        all
    }

    /// Reconstructs the subnets that a killed predecessor routed into tunnels from the black holes
    /// that it left. They stand for the last announcement of those peers.
    pub fn left(black_holes: &[Prefix], config: &Config) -> Self {
        let left = black_holes.iter();
        let left = left.filter_map(|left| TrafficSelector::from_prefix(left.address, left.length));
        let left: Vec<_> = left.collect();
        let split = config.peers.iter();
        let split = split.filter(|peer| peer.routes == Routing::Subnets);
        let behind = split.map(|peer| (peer, common(&left, &peer.remote)));
        let behind = behind.filter(|(_, reachable)| !reachable.is_empty());
        let behind = behind.map(|(peer, reachable)| {
            let behind = Behind {
                reachable: Some(reachable),
                beyond: Vec::new(),
            };
            (peer.party.name.clone(), behind)
        });
        Self {
            behind: behind.collect(),
            ..Self::default()
        }
    }

    /// Keeps the last announcement of peers that announce nothing now: while a tunnel is lost, the
    /// traffic that was routed into it does not bypass it.
    #[must_use]
    pub fn remembering(mut self, before: &Self, config: &Config) -> Self {
        for peer in &config.peers {
            let name = &peer.party.name;
            if let Some(behind) = before.behind.get(name) {
                let entry = self.behind.entry(name.clone());
                entry.or_insert_with(|| behind.clone());
            }
        }
        self
    }

    /// Returns the part of a peer's prefixes that is routed into the tunnel; never more than
    /// `remote`.
    pub fn led(&self, peer: &Peer) -> Vec<TrafficSelector> {
        match (peer.routes, self.behind(peer)) {
            (Routing::Remote, _) => peer.remote.to_vec(),
            (Routing::Subnets, None) => Vec::new(),
            (Routing::Subnets, Some(behind)) => match &behind.reachable {
                Some(reachable) => common(reachable, &peer.remote),
                None => peer.remote.to_vec(),
            },
        }
    }

    /// Returns the subnets that a peer announces; `None` until the peer has assigned an address.
    pub fn behind(&self, peer: &Peer) -> Option<&Behind> {
        self.behind.get(&peer.party.name)
    }

    /// Returns our outer address of the tunnels in transport mode with a peer.
    pub fn outside(&self, peer: &str) -> Option<IpAddr> {
        self.outside.get(peer).copied()
    }

    /// Returns true if a peer assigns settings to us.
    pub fn is_from(&self, peer: &str) -> bool {
        self.addresses.contains_key(peer)
    }

    /// Returns the inner addresses that a peer assigns to us.
    pub fn from(&self, peer: &str) -> &[IpAddr] {
        self.addresses.get(peer).map_or(&[], Vec::as_slice)
    }

    /// Returns the inner addresses that all peers assign to us.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.values().flatten().copied()
    }

    /// Returns the name servers of peers that the configuration accepts.
    pub fn servers(&self) -> &[IpAddr] {
        &self.servers
    }
}

impl Behind {
    fn new(inside: &node::Inside) -> Self {
        Self {
            reachable: inside.reachable(),
            beyond: inside.beyond(),
        }
    }
}

/// Returns our outer addresses of the tunnels in transport mode that are up.
fn outside(node: &Node, config: &Config) -> BTreeMap<String, IpAddr> {
    let is_outside = |peer: &&Peer| {
        let mut others = peer.children.iter().map(|child| child.mode);
        peer.mode == Mode::Transport || others.any(|mode| mode == Mode::Transport)
    };
    let peers = config.peers.iter().filter(is_outside);
    let ours = peers.filter_map(|peer| {
        let up = node.peer_named(&peer.party.name)?;
        let mut children = up.children.iter();
        let child = children.find(|child| child.mode == Mode::Transport && !child.draining)?;
        Some((up.name.clone(), child.path.local.ip()))
    });
    ours.collect()
}

/// Returns the selectors that both lists have in common.
fn common(some: &[TrafficSelector], others: &[TrafficSelector]) -> Vec<TrafficSelector> {
    let parts = some
        .iter()
        .flat_map(|one| others.iter().filter_map(|other| one.intersection(other)));
    parts.collect()
}
