//! Another configuration for a running node: only the difference has consequences.
//!
//! Policies, classes of service, padding, levels, cover, MSS clamping, path MTU discovery, SNOOP's limits, liveness
//! and the wish to be up take effect in place. A peer that is new is initiated like at a start, one that is
//! gone is deleted in an orderly way. A peer whose terms changed gets new SAs, and so does one whose keys a
//! licensed node holds that the configuration does not know any more. One whose licences alone changed
//! gets new keys, and a licence that is gone is of no use from then on. All others do not notice.

use crate::config::{Config, Peer, Role};
use crate::node::{Node, is_reachable, spd, wanted};
use model::Instant;
use std::collections::BTreeSet;

impl Node {
    /// Works by another configuration from now on; gives the names of the peers whose SAs are made
    /// anew for it. Ports, the key log and what we are to Mobile IPv4 stay as they are.
    pub fn reconfigure(&mut self, config: Config, now: Instant) -> BTreeSet<String> {
        let ike = config.for_ike();
        self.workers
            .set_policies(&spd(config.policies, &config.peers));
        self.workers.set_classes(&config.classes);
        self.workers.set_sizes(&config.sizes);
        self.levels.set(config.levels);
        self.workers.set_levels(&self.levels.choices());
        let up = self.children.values().map(|child| child.peer.as_str());
        self.cover.set(config.cover, up, now);
        self.workers.set_clamp(config.clamp);
        self.discover_path_mtus(config.path_mtu);
        self.transit.set_snoop(config.snoop);
        self.transit.set_window(config.window);
        self.transit.set_stand_in(config.stand_in);
        self.grant_lifetime = config.grant_lifetime;
        let old_start = std::mem::replace(&mut self.start, wanted(&config.start, &config.peers));
        let old_peers = std::mem::replace(&mut self.peers, config.peers);
        self.reserve();
        let mut anew = self.dismiss_nodes(&old_peers);
        for sa in anew.iter().filter_map(|name| self.wishes.get(name)?.sa) {
            self.ike.renew(sa, now);
        }
        anew.extend(self.ike.reconfigure(ike, now));
        self.drain(now);
        self.limit_all(now);
        self.relocate(config.places, config.neighbours, now);
        self.update_wishes(&old_start, &anew, now);
        self.admit_nodes(&old_peers, now);
        self.initiate_known(now);
        anew
    }

    /// Licensed nodes that are known no more; gives the peers whose packets they could read.
    fn dismiss_nodes(&mut self, old: &[Peer]) -> BTreeSet<String> {
        let gone = old
            .iter()
            .filter(|node| is_licensed(node) && !self.peers.iter().any(|peer| is_same(node, peer)));
        let mut read = BTreeSet::new();
        for node in gone {
            let children = self.grants.dismiss(&node.name, &node.identity);
            let peers = children.iter().filter_map(|child| self.children.get(child));
            read.extend(peers.map(|child| child.peer.clone()));
        }
        read
    }

    /// Licensed nodes that are new: what is licensed to them already is theirs at once.
    fn admit_nodes(&mut self, old: &[Peer], now: Instant) {
        let new = self
            .peers
            .iter()
            .filter(|node| is_licensed(node) && !old.iter().any(|peer| is_same(node, peer)));
        let mut grants = std::mem::take(&mut self.grants);
        for node in new {
            let is_given =
                |peer: &str, child: Option<&str>| self.is_given(peer, child, &node.identity);
            grants.admit(&node.name, &node.identity, is_given, now);
        }
        self.grants = grants;
    }

    fn update_wishes(&mut self, old_start: &[String], anew: &BTreeSet<String>, now: Instant) {
        let peers = &self.peers;
        self.wishes
            .retain(|name| peers.iter().any(|peer| peer.name == name));
        for peer in peers {
            self.wishes.know(&peer.name, is_reachable(peer));
        }
        for name in anew {
            self.wishes.renew(name, now);
        }
        // Only a changed line overrules what the operator said meanwhile.
        for name in self.start.iter().filter(|name| !old_start.contains(name)) {
            self.wishes.want(name, true, now);
            self.ike.bar(name, false, now);
        }
        for name in old_start.iter().filter(|name| !self.start.contains(name)) {
            self.wishes.release(name);
        }
    }
}

const fn is_licensed(peer: &Peer) -> bool {
    matches!(peer.role, Role::Licensed)
}

/// Whether two tables speak of the same licensed node.
fn is_same(node: &Peer, other: &Peer) -> bool {
    is_licensed(other) && (&node.name, &node.identity) == (&other.name, &other.identity)
}
