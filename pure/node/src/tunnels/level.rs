//! Choice among the agreed protection levels of the packets to a peer.
//!
//! The configuration decides until an operator overrides it. The override lasts as long as the node
//! runs, independently of any SA.

use crate::config::{Role, Stance, ZonePolicy};
use esp::PeerSettings;
use model::{Level, LevelChoice, PeerId, Signal};
use std::collections::BTreeMap;

/// Level choices of the configuration and the operator.
#[derive(Default)]
pub(crate) struct Levels {
    configured: BTreeMap<PeerId, LevelChoice>,
    signals: BTreeMap<PeerId, Signal>,
}

impl Levels {
    /// Replaces the configured choices by those in the settings, and overrides these.
    pub(crate) fn set(&mut self, settings: &mut BTreeMap<PeerId, PeerSettings>) {
        let configured = settings.iter();
        let configured = configured.map(|(peer, settings)| (*peer, settings.level));
        self.configured = configured.collect();
        for peer in self.signals.keys() {
            settings.entry(*peer).or_default();
        }
        for (peer, settings) in settings {
            settings.level = self.choice(*peer);
        }
    }

    /// Sets the configured choice for one peer. Without one, the operator's is forgotten as well.
    pub(crate) fn set_configured(&mut self, peer: PeerId, choice: Option<LevelChoice>) {
        match choice {
            Some(choice) => drop(self.configured.insert(peer, choice)),
            None => {
                self.configured.remove(&peer);
                self.signals.remove(&peer);
            }
        }
    }

    /// Returns the effective choice for a peer.
    pub(crate) fn choice(&self, peer: PeerId) -> LevelChoice {
        LevelChoice {
            signal: self.signal(peer),
            ..self.configured.get(&peer).copied().unwrap_or_default()
        }
    }

    /// Sets the operator's signal for a peer in some role. `agreed` tells for each composite SA of
    /// the peer whether unencrypted packets are allowed.
    pub(crate) fn choose(
        &mut self,
        peer: PeerId,
        role: Option<&Role>,
        agreed: impl Iterator<Item = bool>,
        signal: Signal,
    ) -> Result<(), NoLevel> {
        let zones = match role {
            Some(Role::Vpn { zones, .. }) => zones,
            Some(Role::Licensed | Role::Gateway | Role::Neighbour) => return Err(NoLevel::NoZones),
            None => return Err(NoLevel::UnknownPeer),
        };
        is_open(zones, agreed, signal)?;
        self.signals.insert(peer, signal);
        Ok(())
    }

    /// Returns the operator's signal for a peer.
    pub(crate) fn signal(&self, peer: PeerId) -> Signal {
        self.signals.get(&peer).copied().unwrap_or_default()
    }
}

/// The reason why a level cannot be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLevel {
    /// The peer is not configured.
    #[error("no peer has this name")]
    UnknownPeer,
    /// The peer's packets have no zones, so there is only one level.
    #[error("the tunnel has no zones, so it has only one level")]
    NoZones,
    /// The configuration does not allow unencrypted packets.
    #[error("the configuration here allows no unencrypted traffic")]
    NotGranted,
    /// The peer did not agree to unencrypted packets, or the grant for them cannot be renewed any
    /// more.
    #[error("the peer did not agree to unencrypted traffic, or no renewal of the grant is left")]
    NotAgreed,
}

/// Checks that a level is available.
fn is_open(
    zones: &ZonePolicy,
    mut agreed: impl Iterator<Item = bool>,
    signal: Signal,
) -> Result<(), NoLevel> {
    if zones.stance == Stance::Refuse || zones.zones.is_empty() {
        return Err(NoLevel::NoZones);
    }
    if signal != Signal::Only(Level::Integrity) {
        return Ok(());
    }
    match (zones.level, agreed.next()) {
        (None, _) => Err(NoLevel::NotGranted),
        (_, Some(false)) if !agreed.any(|level| level) => Err(NoLevel::NotAgreed),
        _ => Ok(()),
    }
}
