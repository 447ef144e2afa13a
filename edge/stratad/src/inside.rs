//! What peers lend us for use inside their tunnels and tell us of what is behind them, as far as we
//! want it.

use config::{Config, Peer, Routing};
use model::TrafficSelector;
use node::Node;
use os::Prefix;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses of ours, by the name of the peer that lends them, name servers, and what is behind
/// whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    addresses: BTreeMap<String, Vec<IpAddr>>,
    servers: Vec<IpAddr>,
    behind: BTreeMap<String, Behind>,
}

/// What a peer says is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// What of that the tunnel carries; `None` if it does not say, or says too much.
    pub reachable: Option<Vec<TrafficSelector>>,
    /// What of that it does not carry, or not as a whole.
    pub beyond: Vec<TrafficSelector>,
}

impl Inside {
    /// What is lent now. There may be two SAs with a peer for a moment, and both lend; what is
    /// behind it says the newer one.
    pub fn of(node: &Node, config: &Config) -> Self {
        let mut all = Self::default();
        for (name, inside) in node.inside() {
            let Some(peer) = config.peers.iter().find(|peer| peer.party.name == *name) else {
                continue;
            };
            let addresses = all.addresses.entry(name.clone()).or_default();
            for address in inside.addresses.iter() {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            all.behind.insert(name.clone(), Behind::of(inside));
            // A server that the tunnel does not lead to would be asked in clear.
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
        all
    }

    /// What a predecessor that was killed led into tunnels, by the black holes that it left: those
    /// peers' last word.
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

    /// The same, where who says nothing now is taken at its last word: while a tunnel is lost,
    /// what was led into it does not leave beside it.
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

    /// What of a peer's is led into the tunnel; never what `remote` does not have.
    pub fn led(&self, peer: &Peer) -> Vec<TrafficSelector> {
        match (peer.routes, self.behind(peer)) {
            (Routing::Remote, _) => peer.remote.clone(),
            (Routing::Subnets, None) => Vec::new(),
            (Routing::Subnets, Some(behind)) => match &behind.reachable {
                Some(reachable) => common(reachable, &peer.remote),
                None => peer.remote.clone(),
            },
        }
    }

    /// What a peer says is behind it; `None` until it has lent us an address.
    pub fn behind(&self, peer: &Peer) -> Option<&Behind> {
        self.behind.get(&peer.party.name)
    }

    /// What a peer lends us.
    pub fn from(&self, peer: &str) -> &[IpAddr] {
        self.addresses.get(peer).map_or(&[], Vec::as_slice)
    }

    /// What all peers lend us.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.values().flatten().copied()
    }

    /// The name servers of peers that we want to ask.
    pub fn servers(&self) -> &[IpAddr] {
        &self.servers
    }
}

impl Behind {
    fn of(inside: &node::Inside) -> Self {
        Self {
            reachable: inside.reachable(),
            beyond: inside.beyond(),
        }
    }
}

/// What both have.
fn common(some: &[TrafficSelector], others: &[TrafficSelector]) -> Vec<TrafficSelector> {
    let parts = some
        .iter()
        .flat_map(|one| others.iter().filter_map(|other| one.intersection(other)));
    parts.collect()
}
