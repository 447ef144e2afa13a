//! What peers lend us for use inside their tunnels, as far as we want it.

use config::Config;
use node::Node;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses of ours, by the name of the peer that lends them, and name servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    addresses: BTreeMap<String, Vec<IpAddr>>,
    servers: Vec<IpAddr>,
}

impl Inside {
    /// What is lent now. There may be two SAs with a peer for a moment, and both lend.
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
            // A server that the tunnel does not lead to would be asked in clear.
            let behind = |server: &&IpAddr| {
                let mut remote = peer.remote.iter();
                remote.any(|remote| remote.contains(**server, 0, None))
            };
            let servers = inside.dns.iter().filter(|_| peer.dns_from_peer);
            for server in servers.filter(behind) {
                if !all.servers.contains(server) {
                    all.servers.push(*server);
                }
            }
        }
        all
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
