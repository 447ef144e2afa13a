//! Which IKE SAs there are with each peer: found without a look at those with all others.

use crate::sa::Core;
use model::IkeSaId;
use std::collections::BTreeMap;

/// The SAs of each peer, by its name in the configuration. There is one, or for a moment two.
#[derive(Default)]
pub(crate) struct Roster(BTreeMap<String, Vec<IkeSaId>>);

impl Roster {
    /// Enters an SA whose peer is known; it may be there already.
    pub(crate) fn enter(&mut self, core: &Core) {
        let Some(peer) = &core.peer else {
            return;
        };
        match self.0.get_mut(peer) {
            Some(sas) if sas.contains(&core.id) => {}
            Some(sas) => sas.push(core.id),
            None => drop(self.0.insert(peer.clone(), vec![core.id])),
        }
    }

    /// Forgets an SA that is gone.
    pub(crate) fn leave(&mut self, core: &Core) {
        let Some(peer) = &core.peer else {
            return;
        };
        let Some(sas) = self.0.get_mut(peer) else {
            return;
        };
        sas.retain(|id| *id != core.id);
        if sas.is_empty() {
            self.0.remove(peer);
        }
    }

    /// The SAs with a peer.
    pub(crate) fn with(&self, peer: &str) -> impl Iterator<Item = IkeSaId> + '_ {
        self.0.get(peer).into_iter().flatten().copied()
    }
}
