//! What the configuration says and the node does not know.

use crate::clear::{Claimants, Dropped};
use crate::inside::Inside;
use crate::view::texts;
use crate::{plan, restorer, setup};
use config::{Config, Mobility, Places, Routing};
use control::{PeerKind, Role, Routes, RoutesReason};
use crypto::{Certificate, RevocationList};
use model::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// What the configuration says and the node does not know.
pub struct Facts {
    /// Who we are.
    pub identity: String,
    /// What we are.
    pub roles: Vec<Role>,
    warnings: Vec<String>,
    /// Ours and those of CAs, whose end is to be told beforehand.
    certificates: Vec<Certificate>,
    lists: Vec<RevocationList>,
    /// What leaves by tunnels or not at all.
    pub locked: Vec<String>,
    /// What another program removes and the daemon no longer puts back.
    pub removed: Vec<String>,
    /// Peers, by what they may claim.
    pub claimants: Claimants,
    /// Why packets in clear are not dropped as they ought to be, if that could not be set up.
    pub unguarded: Option<String>,
    /// The addresses that we lend.
    pub pools: Vec<node::Pool>,
    /// Since when we run.
    pub started: Instant,
    /// Names of VPN peers, and whether we can connect to them.
    tunnels: BTreeMap<String, bool>,
    /// A mobile node's, by number.
    interfaces: Vec<String>,
    /// Names of those that we connect to by UDP and nothing else.
    by_udp: BTreeSet<String>,
    /// What is led into the tunnels whose peers are asked what that is.
    routes: BTreeMap<String, Routes>,
    licensed: BTreeSet<String>,
    adjacent: BTreeSet<String>,
    /// Where the keys of the file stand.
    places: Places,
}

impl Facts {
    /// The facts of a daemon that starts now.
    pub fn new(config: &Config, now: Instant) -> Self {
        let roles = [
            (!config.peers.is_empty(), Role::Endpoint),
            (!config.licensed.is_empty(), Role::Gateway),
            (
                !config.gateways.is_empty() || config.divert.is_some(),
                Role::LicensedNode,
            ),
        ];
        let mobile = config.mobility.as_ref().map(|mobility| match mobility {
            Mobility::MobileNode(_) => Role::MobileNode,
            Mobility::ForeignAgent(_) => Role::ForeignAgent,
            Mobility::HomeAgent(_) => Role::HomeAgent,
        });
        let tunnels = config
            .peers
            .iter()
            .map(|peer| (peer.party.name.clone(), peer.address.is_some()));
        Self {
            identity: config.identity.to_string(),
            roles: roles
                .into_iter()
                .filter(|(has, _)| *has)
                .map(|(_, role)| role)
                .chain(mobile)
                .collect(),
            warnings: config.warnings.iter().map(ToString::to_string).collect(),
            locked: plan::plan(config, &Inside::default())
                .held
                .iter()
                .map(ToString::to_string)
                .collect(),
            removed: Vec::new(),
            unguarded: None,
            claimants: Claimants::new(config),
            certificates: config.certificates().cloned().collect(),
            lists: config.lists.clone(),
            pools: setup::pools(config),
            started: now,
            tunnels: tunnels.collect(),
            interfaces: match &config.mobility {
                Some(Mobility::MobileNode(node)) => node.interfaces.clone(),
                _ => Vec::new(),
            },
            by_udp: config
                .peers
                .iter()
                .filter(|peer| peer.address.is_some() && peer.tcp == config::Tcp::Off)
                .map(|peer| peer.party.name.clone())
                .collect(),
            routes: routes(config, &Inside::default()),
            licensed: config
                .licensed
                .iter()
                .map(|licensed| licensed.party.name.clone())
                .collect(),
            adjacent: config
                .adjacent
                .iter()
                .map(|neighbour| neighbour.party.name.clone())
                .collect(),
            places: config.places.clone(),
        }
    }

    /// Whether something is locked.
    pub fn is_locked(&self) -> bool {
        !self.locked.is_empty()
    }

    /// What a person should look at today.
    pub fn warnings(&self, dropped: &Dropped) -> Vec<String> {
        let expiry = config::expiry(&self.certificates, &self.lists, config::today());
        let expiry = expiry.iter().map(ToString::to_string);
        let removed = (!self.removed.is_empty()).then(|| restorer::warning(&self.removed));
        let unguarded = self.claimants.fault(self.unguarded.as_deref(), dropped);
        let faults = removed.into_iter().chain(unguarded);
        let others = expiry.chain(self.warnings.iter().cloned());
        faults.chain(others).collect()
    }

    /// Our certificates and those of CAs.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// What CAs have revoked.
    pub fn lists(&self) -> &[RevocationList] {
        &self.lists
    }

    /// The facts of another configuration of the same daemon.
    pub fn reconfigure(&mut self, config: &Config) {
        *self = Self::new(config, self.started);
    }

    /// What is led into the tunnels is another.
    pub fn lead(&mut self, config: &Config, inside: &Inside) {
        self.routes = routes(config, inside);
    }

    /// What is led into the tunnel with a peer that is asked what that is.
    pub fn routes(&self, peer: &str) -> Option<&Routes> {
        self.routes.get(peer)
    }

    /// The name of a mobile node's interface.
    pub fn interface(&self, number: u32) -> String {
        let name = self.interfaces.get(number as usize);
        name.cloned().unwrap_or_default()
    }

    /// Names of all VPN peers.
    pub fn tunnels(&self) -> Vec<String> {
        self.tunnels.keys().cloned().collect()
    }

    /// Names of the VPN peers that we can connect to.
    pub fn reachable(&self) -> Vec<String> {
        self.tunnels
            .iter()
            .filter(|(_, reachable)| **reachable)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Whether we connect to a peer by UDP and nothing else.
    pub fn is_by_udp(&self, peer: &str) -> bool {
        self.by_udp.contains(peer)
    }

    /// Where the keys of the file stand.
    pub const fn places(&self) -> &Places {
        &self.places
    }

    /// The table of a peer in dotted form.
    pub fn table(&self, name: &str) -> String {
        let kind = match self.kind(name) {
            PeerKind::Vpn => "peer",
            PeerKind::Licensed => "licensed",
            PeerKind::Gateway => "gateway",
            PeerKind::Neighbour => "neighbour",
        };
        format!("{kind}.{name}")
    }

    /// What a peer is to us.
    pub fn kind(&self, name: &str) -> PeerKind {
        if self.tunnels.contains_key(name) {
            PeerKind::Vpn
        } else if self.licensed.contains(name) {
            PeerKind::Licensed
        } else if self.adjacent.contains(name) {
            PeerKind::Neighbour
        } else {
            PeerKind::Gateway
        }
    }
}

fn routes(config: &Config, inside: &Inside) -> BTreeMap<String, Routes> {
    let asked = config.peers.iter();
    let asked = asked.filter(|peer| peer.routes == Routing::Subnets);
    let routes = asked.map(|peer| {
        let behind = inside.behind(peer);
        let reason = match behind.map(|behind| &behind.reachable) {
            None => RoutesReason::Awaited,
            Some(None) => RoutesReason::Unsaid,
            Some(Some(_)) => RoutesReason::Subnets,
        };
        let routes = Routes {
            reason,
            prefixes: texts(&inside.led(peer)),
            beyond: texts(behind.map_or(&[], |behind| &behind.beyond)),
        };
        (peer.party.name.clone(), routes)
    });
    routes.collect()
}
