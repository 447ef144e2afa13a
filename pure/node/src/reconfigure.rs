//! Applies another configuration to a running node. Only differences have an effect.
//!
//! Policies, classes of service, padding, levels, cover traffic, MSS clamping, path MTU discovery,
//! SNOOP's limits, liveness timers and the list of peers to keep up change in place. A new peer is
//! initiated as at a start. A removed peer is deleted in an orderly way. A peer whose terms changed
//! gets new SAs. So does a peer whose keys are held by a licensed node that was removed. A peer
//! whose licences changed is rekeyed, and a removed licence is unusable at once. All other peers
//! are unaffected.

use crate::config::{Config, Peer, Role};
use crate::node::{Node, is_reachable, spd, wanted};
use model::Instant;
use std::collections::BTreeSet;

impl Node {
    /// Applies another configuration. Returns the names of the peers whose SAs are replaced. Ports,
    /// the key log and the role in Mobile IPv4 do not change.
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

    /// Removes licensed nodes that are no longer configured. Returns the peers whose packets they
    /// could read.
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

    /// Adds licensed nodes. They are owed grants at once for everything that already licenses them.
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
        self.rivals
            .retain(|name| peers.iter().any(|peer| peer.name == name));
        for peer in peers {
            self.wishes.know(&peer.name, is_reachable(peer));
        }
        for name in anew {
            self.wishes.renew(name, now);
        }
        // Only a changed entry overrides an earlier command of the operator.
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

/// Returns true if both tables describe the same licensed node.
fn is_same(node: &Peer, other: &Peer) -> bool {
    is_licensed(other) && (&node.name, &node.identity) == (&other.name, &other.identity)
}
