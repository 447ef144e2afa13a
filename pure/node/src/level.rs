//! How packets to a peer are protected, among the levels that were agreed on: as the configuration says
//! until an operator says something else. That is remembered for as long as the node runs, whatever SAs come
//! and go.

use crate::config::{Role, Stance, ZonePolicy};
use crate::node::Node;
use model::{Level, LevelChoice, Signal};
use std::collections::BTreeMap;

/// What the configuration and the operator say, by the names of peers.
#[derive(Default)]
pub(crate) struct Levels {
    configured: BTreeMap<String, LevelChoice>,
    signals: BTreeMap<String, Signal>,
}

impl Levels {
    pub(crate) fn new(configured: BTreeMap<String, LevelChoice>) -> Self {
        let signals = BTreeMap::new();
        Self {
            configured,
            signals,
        }
    }

    /// Another configuration.
    pub(crate) fn set(&mut self, configured: BTreeMap<String, LevelChoice>) {
        self.configured = configured;
    }

    /// What each peer's SAs go by.
    pub(crate) fn choices(&self) -> BTreeMap<String, LevelChoice> {
        let names = self.configured.keys().chain(self.signals.keys());
        let choice = |name: &String| LevelChoice {
            signal: self.signal(name),
            ..self.configured.get(name).copied().unwrap_or_default()
        };
        names.map(|name| (name.clone(), choice(name))).collect()
    }

    /// What the operator wants of a peer.
    pub(crate) fn signal(&self, peer: &str) -> Signal {
        self.signals.get(peer).copied().unwrap_or_default()
    }
}

/// Why packets are not to be protected in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLevel {
    /// There is no such table.
    #[error("no peer has this name")]
    UnknownPeer,
    /// Without zones there are no levels.
    #[error("its packets have no zones, so there is one level")]
    NoZones,
    /// Nothing may go without encryption by our configuration.
    #[error("nothing may go without encryption by the configuration here")]
    NotGranted,
    /// The peer sees it differently.
    #[error(
        "the other end did not agree that anything goes without encryption, or no renewal is left of it"
    )]
    NotAgreed,
}

impl Node {
    /// Protects packets to a peer in this way from now on. It is chosen among what was agreed on: what may not
    /// go without encryption goes in zones.
    pub fn choose_level(&mut self, peer: &str, signal: Signal) -> Result<(), NoLevel> {
        let known = self.peers.iter().find(|known| known.name == peer);
        let zones = match known.map(|peer| &peer.role) {
            Some(Role::Vpn { zones, .. }) => zones,
            Some(Role::Licensed | Role::Gateway | Role::Neighbour) => return Err(NoLevel::NoZones),
            None => return Err(NoLevel::UnknownPeer),
        };
        self.is_open(peer, zones, signal)?;
        self.levels.signals.insert(peer.to_owned(), signal);
        self.workers.set_levels(&self.levels.choices());
        Ok(())
    }

    /// Whether a level can be had.
    fn is_open(&self, peer: &str, zones: &ZonePolicy, signal: Signal) -> Result<(), NoLevel> {
        if zones.stance == Stance::Refuse || zones.zones.is_empty() {
            return Err(NoLevel::NoZones);
        }
        if signal != Signal::Only(Level::Integrity) {
            return Ok(());
        }
        let theirs = self.grants.iter().filter(|(_, csa)| csa.peer == peer);
        let mut agreed = theirs.map(|(_, csa)| csa.agreement.level.is_some());
        match (zones.level, agreed.next()) {
            (None, _) => Err(NoLevel::NotGranted),
            (_, Some(false)) if !agreed.any(|level| level) => Err(NoLevel::NotAgreed),
            _ => Ok(()),
        }
    }
}
