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
use model::{Identity, Instant};
use std::collections::BTreeSet;

/// Name and identity of a licensed node.
type Licensed = (String, Identity);

impl Node {
    /// Applies another configuration. Returns the names of the peers whose SAs are replaced. Ports,
    /// the key log and the role in Mobile IPv4 do not change.
    pub fn reconfigure(&mut self, mut config: Config, now: Instant) -> BTreeSet<String> {
        let ike = config.take_ike();
        self.workers.set_policies(&spd(config.policies, &ike.peers));
        self.workers.set_classes(&config.classes);
        let hidden = self.workers.set_sizes(&config.sizes);
        self.levels.set(config.levels);
        self.workers.set_levels(&self.levels.choices());
        let up = self.children.iter();
        let up = up.map(|(_, child)| child.peer.as_str());
        self.cover.set(config.cover, up, now);
        self.workers.set_clamp(config.clamp);
        self.discover_path_mtus(config.path_mtu);
        hidden.iter().for_each(|peer| self.lengths_changed(peer));
        self.transit.set_snoop(config.snoop);
        self.transit.set_window(config.window);
        self.transit.set_stand_in(config.stand_in);
        self.grant_lifetime = config.grant_lifetime;
        let start = wanted(config.start, &ike.peers);
        let old_start = std::mem::replace(&mut self.start, start);
        let old_nodes = licensed(self.ike.licensed());
        let nodes = licensed(ike.peers.iter().filter(|peer| is_licensed(peer)));
        let mut anew = self.dismiss_nodes(old_nodes.difference(&nodes));
        for sa in anew.iter().filter_map(|name| self.wishes.get(name)?.sa) {
            self.ike.renew(sa, now);
        }
        anew.extend(self.ike.reconfigure(ike, now));
        self.reserve();
        self.drain(now);
        self.limit_all(now);
        self.relocate(config.places, config.neighbours, now);
        self.update_wishes(&old_start, &anew, now);
        self.admit_nodes(nodes.difference(&old_nodes), now);
        self.initiate_known(now);
        anew
    }

    /// Removes licensed nodes that are no longer configured. Returns the peers whose packets they
    /// could read.
    fn dismiss_nodes<'a>(&mut self, gone: impl Iterator<Item = &'a Licensed>) -> BTreeSet<String> {
        let mut read = BTreeSet::new();
        for (name, node) in gone {
            let children = self.grants.dismiss(name, node);
            let peers = children
                .iter()
                .filter_map(|child| self.children.get(*child));
            read.extend(peers.map(|child| child.peer.clone()));
        }
        read
    }

    /// Adds licensed nodes. They are owed grants at once for everything that already licenses them.
    fn admit_nodes<'a>(&mut self, new: impl Iterator<Item = &'a Licensed>, now: Instant) {
        let mut grants = std::mem::take(&mut self.grants);
        for (name, node) in new {
            let is_given = |peer: &str, child: Option<&str>| self.is_given(peer, child, node);
            grants.admit(name, node, is_given, now);
        }
        self.grants = grants;
    }

    fn update_wishes(
        &mut self,
        old_start: &BTreeSet<String>,
        anew: &BTreeSet<String>,
        now: Instant,
    ) {
        self.wishes.retain(|name| self.ike.peer(name).is_some());
        self.rivals.retain(|name| self.ike.peer(name).is_some());
        for peer in self.ike.peers() {
            self.wishes.know(&peer.name, is_reachable(peer));
        }
        for name in anew {
            self.wishes.renew(name, now);
        }
        // Only a changed entry overrides an earlier command of the operator.
        for name in self.start.difference(old_start) {
            self.wishes.want(name, true, now);
            self.ike.bar(name, false, now);
        }
        for name in old_start.difference(&self.start) {
            self.wishes.release(name);
        }
    }
}

const fn is_licensed(peer: &Peer) -> bool {
    matches!(peer.role, Role::Licensed)
}

/// Returns the names and identities of licensed nodes.
fn licensed<'p>(nodes: impl Iterator<Item = &'p Peer>) -> BTreeSet<Licensed> {
    let named = nodes.map(|node| (node.name.clone(), node.identity.clone()));
    named.collect()
}
