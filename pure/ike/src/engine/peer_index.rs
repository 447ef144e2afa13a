//! Index of the IKE SAs with each peer, so that a lookup does not scan all SAs.

use crate::sa::core::Core;
use model::{IkeSaId, PeerId};
use rustc_hash::FxHashMap;

/// IDs of the SAs of each peer. Usually one, briefly two.
#[derive(Default)]
pub(crate) struct PeerIndex(FxHashMap<PeerId, Vec<IkeSaId>>);

impl PeerIndex {
    /// Adds an SA whose peer is known, unless it is there already.
    pub(crate) fn enter(&mut self, core: &Core) {
        let Some(peer) = core.peer else {
            return;
        };
        match self.0.get_mut(&peer) {
            Some(sas) if sas.contains(&core.id) => {}
            Some(sas) => sas.push(core.id),
            None => drop(self.0.insert(peer, vec![core.id])),
        }
    }

    /// Removes an SA that is gone.
    pub(crate) fn leave(&mut self, core: &Core) {
        let Some(peer) = core.peer else {
            return;
        };
        let Some(sas) = self.0.get_mut(&peer) else {
            return;
        };
        sas.retain(|id| *id != core.id);
        if sas.is_empty() {
            self.0.remove(&peer);
        }
    }

    /// Returns the SAs with a peer.
    pub(crate) fn with(&self, peer: PeerId) -> impl Iterator<Item = IkeSaId> + '_ {
        self.0.get(&peer).into_iter().flatten().copied()
    }
}
