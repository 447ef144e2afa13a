//! Applies another configuration to a running node. Only differences have an effect.
//!
//! Policies, classes of service, padding, levels, cover traffic, MSS clamping, path MTU discovery,
//! SNOOP's limits, liveness timers and the list of peers to keep up change in place. A new peer is
//! initiated as at a start. A removed peer is deleted in an orderly way. A peer whose terms changed
//! gets new SAs. So does a peer whose keys are held by a licensed node that was removed. A peer
//! whose licences changed is rekeyed, and a removed licence is unusable at once. All other peers
//! are unaffected.

use crate::config::{Config, Peer, Role};
use crate::node::{Node, spd};
use esp::Command;
use model::{Identity, Instant};
use std::collections::BTreeSet;

/// Name and identity of a licensed node.
type Licensed = (String, Identity);

impl Node {
    /// Applies another configuration. Returns the names of the peers whose SAs are replaced. Ports,
    /// the key log and the role in Mobile IPv4 do not change.
    pub fn reconfigure(&mut self, mut config: Config, now: Instant) -> BTreeSet<String> {
        let ike = config.take_ike();
        self.plane
            .apply(Command::Policies(spd(config.policies, &ike.peers)));
        self.plane.apply(Command::Classes(config.classes));
        let hidden = self.plane.set_sizes(&config.sizes);
        let levels = self.own.tunnels.set_levels(config.levels);
        self.plane.apply(Command::Levels(levels));
        self.own.tunnels.set_cover(config.cover, now);
        self.plane.apply(Command::Clamp(config.clamp));
        self.discover_path_mtus(config.path_mtu);
        hidden.iter().for_each(|peer| self.lengths_changed(peer));
        self.own.transit.set_snoop(config.snoop);
        self.own.transit.set_window(config.window);
        self.own.transit.set_stand_in(config.stand_in);
        let distribution = self.own.licensing.distribution();
        distribution.set_lifetime(config.grant_lifetime);
        let old_nodes = licensed(self.ike.licensed());
        let nodes = licensed(ike.peers.iter().filter(|peer| is_licensed(peer)));
        let mut anew = self.dismiss_nodes(old_nodes.difference(&nodes));
        for sa in anew
            .iter()
            .filter_map(|name| self.own.tunnels.current(name))
        {
            self.ike.renew(sa, now);
        }
        anew.extend(self.ike.reconfigure(ike, now));
        self.reserve();
        self.drain(now);
        self.turn(now, |own, turn| {
            own.licensing.limit_all(&own.tunnels, turn);
        });
        self.turn(now, |own, turn| {
            own.licensing
                .relocate(config.places, config.neighbours, &own.tunnels, turn);
        });
        let tunnels = &mut self.own.tunnels;
        for name in tunnels.set_peers(config.start, &anew, &self.ike, now) {
            self.ike.bar(&name, false, now);
        }
        for (name, node) in nodes.difference(&old_nodes) {
            self.own.licensing.admit(name, node, &self.ike, now);
        }
        self.initiate_known(now);
        anew
    }

    /// Removes licensed nodes that are no longer configured. Returns the peers whose packets they
    /// could read.
    fn dismiss_nodes<'a>(&mut self, gone: impl Iterator<Item = &'a Licensed>) -> BTreeSet<String> {
        let mut read = BTreeSet::new();
        for (name, node) in gone {
            let children = self.own.licensing.distribution().dismiss(name, node);
            let all = self.own.tunnels.children();
            let peers = children.iter().filter_map(|child| all.get(*child));
            read.extend(peers.map(|child| child.peer.clone()));
        }
        read
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
