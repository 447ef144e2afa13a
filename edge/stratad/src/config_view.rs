//! Facts of the configuration that the node does not know.

use crate::assigned::AssignedAddresses;
use crate::clear::{Claimants, Dropped};
use crate::kept::Gap;
use crate::view::texts;
use crate::{plan, restorer, setup};
use config::{Config, Mobility, Peer, Places, Routing};
use control::{PeerKind, Restart, Role, Routes, RoutesReason, Trouble};
use crypto::{Certificate, RevocationList};
use model::Instant;
use os::Links;
use resumption::Strategy;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Facts of the configuration that the node does not know.
pub struct ConfigView {
    config: Arc<Config>,
    /// Our identity.
    pub identity: String,
    /// The roles of this host.
    pub roles: Vec<Role>,
    warnings: Vec<String>,
    /// Our certificates and those of CAs, whose expiry causes a warning in advance.
    certificates: Vec<Certificate>,
    /// Prefixes that are reachable only through tunnels.
    pub locked: Vec<String>,
    /// System state that another program keeps removing and that the daemon no longer restores.
    pub removed: Vec<String>,
    /// Failures of the daemon and its host, except for that of a mobile node without an agent, and
    /// for `removed` and `unguarded`.
    pub errors: Vec<Trouble>,
    /// The peers by the addresses that they may claim.
    pub claimants: Claimants,
    /// The reason that unencrypted packets are not filtered, if the filter could not be set up.
    pub unguarded: Option<String>,
    /// The pools that we lease from.
    pub pools: Vec<node::Pool>,
    /// Time of the start of the daemon.
    pub started: Instant,
    /// The gap of the restart with which the daemon began.
    pub gap: Option<Gap>,
    /// The interfaces of hosts with link-local addresses.
    pub links: Links,
    /// Routes into the tunnels of peers that announce their subnets.
    routes: BTreeMap<String, Routes>,
}

impl ConfigView {
    /// Returns how long peers may resume their sessions.
    pub fn strategy(&self) -> Strategy {
        setup::strategy(&self.config)
    }

    /// Collects the facts of a daemon that starts now.
    pub fn new(config: &Arc<Config>, now: Instant) -> Self {
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
        Self {
            config: Arc::clone(config),
            identity: config.identity.to_string(),
            roles: roles
                .into_iter()
                .filter(|(has, _)| *has)
                .map(|(_, role)| role)
                .chain(mobile)
                .collect(),
            warnings: config.warnings.iter().map(ToString::to_string).collect(),
            locked: plan::plan(config, &AssignedAddresses::default(), &[])
                .held
                .iter()
                .map(ToString::to_string)
                .collect(),
            removed: Vec::new(),
            errors: Vec::new(),
            unguarded: None,
            claimants: Claimants::new(config),
            certificates: config.certificates().cloned().collect(),
            pools: setup::pools(config),
            started: now,
            gap: None,
            links: Links::default(),
            routes: routes(config, &AssignedAddresses::default()),
        }
    }

    /// Returns true if any prefix is locked.
    pub fn is_locked(&self) -> bool {
        !self.locked.is_empty()
    }

    /// Returns the warnings that need a person's attention today.
    pub fn warnings(&self) -> Vec<String> {
        let expiry = config::expiry(&self.certificates, self.lists(), config::today());
        let expiry = expiry.iter().map(ToString::to_string);
        expiry.chain(self.warnings.iter().cloned()).collect()
    }

    /// Returns all failures that last, those that let packets pass in clear first.
    pub fn failures(&self, dropped: &Dropped) -> Vec<Trouble> {
        let removed = (!self.removed.is_empty()).then(|| restorer::trouble(&self.removed));
        let unguarded = self.claimants.fault(self.unguarded.as_deref(), dropped);
        let open = removed.into_iter().chain(unguarded);
        open.chain(self.errors.iter().cloned()).collect()
    }

    /// Returns our certificates and those of CAs.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// Returns the revocation lists of CAs.
    pub fn lists(&self) -> &[RevocationList] {
        &self.config.lists
    }

    /// Replaces the facts after a change of the configuration.
    pub fn reconfigure(&mut self, config: &Arc<Config>) {
        *self = Self {
            gap: self.gap,
            links: self.links.clone(),
            ..Self::new(config, self.started)
        };
    }

    /// Returns the restart with which the daemon began, while it is news.
    pub fn restart(&self, now: Instant) -> Option<Restart> {
        self.gap.and_then(|gap| gap.shown(now))
    }

    /// Updates the routes into the tunnels.
    pub fn set_routes(&mut self, config: &Config, inside: &AssignedAddresses) {
        self.routes = routes(config, inside);
    }

    /// Returns the routes into the tunnel of a peer that announces its subnets.
    pub fn routes(&self, peer: &str) -> Option<&Routes> {
        self.routes.get(peer)
    }

    /// Returns the name of a mobile node's interface.
    pub fn interface(&self, number: u32) -> String {
        let name = self.all_interfaces().get(number as usize);
        name.cloned().unwrap_or_default()
    }

    /// Returns the names of all interfaces of a mobile node.
    pub fn interfaces(&self) -> String {
        self.all_interfaces().join(", ")
    }

    fn all_interfaces(&self) -> &[String] {
        match &self.config.mobility {
            Some(Mobility::MobileNode(node)) => &node.interfaces,
            _ => &[],
        }
    }

    /// Returns a VPN peer. The configuration has them sorted by name.
    fn tunnel(&self, name: &str) -> Option<&Peer> {
        let peers = &self.config.peers;
        let place = peers.binary_search_by(|peer| peer.party.name.as_str().cmp(name));
        place.ok().map(|place| &peers[place])
    }

    /// Returns the names of all VPN peers.
    pub fn tunnels(&self) -> Vec<String> {
        let peers = self.config.peers.iter();
        peers.map(|peer| peer.party.name.clone()).collect()
    }

    /// Returns the names of the VPN peers that we can connect to.
    pub fn reachable(&self) -> Vec<String> {
        let peers = self.config.peers.iter();
        let reachable = peers.filter(|peer| peer.address.is_some());
        reachable.map(|peer| peer.party.name.clone()).collect()
    }

    /// Returns true if we connect to a peer by UDP only.
    pub fn is_by_udp(&self, peer: &str) -> bool {
        let peer = self.tunnel(peer);
        peer.is_some_and(|peer| peer.address.is_some() && peer.tcp == config::Tcp::Off)
    }

    /// Returns true if the file of a peer's pre-shared key encodes the key behind `0s` or `0x`.
    pub fn decodes_psk(&self, peer: &str) -> bool {
        let psk = self.tunnel(peer).and_then(|peer| peer.party.psk.as_ref());
        psk.is_some_and(config::Psk::is_decoded)
    }

    /// Returns the interface that an address belongs to, if it is link-local.
    pub fn link(&self, place: SocketAddr) -> Option<String> {
        self.links.name(place)
    }

    /// Returns the lines of the keys in the file.
    pub fn places(&self) -> &Places {
        &self.config.places
    }

    /// Returns the table of a peer in dotted form.
    pub fn table(&self, name: &str) -> String {
        let kind = match self.kind(name) {
            PeerKind::Vpn => "peer",
            PeerKind::Licensed => "licensed",
            PeerKind::Gateway => "gateway",
            PeerKind::Neighbour => "neighbour",
        };
        format!("{kind}.{name}")
    }

    /// Returns the kind of a peer.
    pub fn kind(&self, name: &str) -> PeerKind {
        let (licensed, adjacent) = (&self.config.licensed, &self.config.adjacent);
        if self.tunnel(name).is_some() {
            PeerKind::Vpn
        } else if licensed.iter().any(|node| node.party.name == name) {
            PeerKind::Licensed
        } else if adjacent.iter().any(|node| node.party.name == name) {
            PeerKind::Neighbour
        } else {
            PeerKind::Gateway
        }
    }
}

fn routes(config: &Config, inside: &AssignedAddresses) -> BTreeMap<String, Routes> {
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
