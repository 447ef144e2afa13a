//! The child SAs of all peers. A host may have a hundred thousand: what concerns one peer visits
//! that peer's only.

use crate::status::ChildStatus;
use model::{ChildSaId, IkeSaId, Instant, Path, PeerId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// All child SAs, with indices by peer and by path.
#[derive(Default)]
pub(crate) struct Children {
    all: BTreeMap<ChildSaId, Child>,
    /// The ids of each peer's child SAs, in order.
    by_peer: FxHashMap<PeerId, Vec<ChildSaId>>,
    by_path: BTreeSet<(Path, ChildSaId)>,
    /// Number of visits to all child SAs.
    #[cfg(test)]
    pub(crate) walks: std::cell::Cell<usize>,
}

/// State of a child SA.
pub(crate) struct Child {
    pub(crate) peer: PeerId,
    pub(crate) ike: IkeSaId,
    /// Arrival of the newest packet that `ike` was notified of.
    pub(crate) heard: Option<Instant>,
    /// True if nothing may be sent on the SA any more.
    pub(crate) retired: bool,
    pub(crate) status: ChildStatus,
}

impl Children {
    pub(crate) fn insert(&mut self, id: ChildSaId, child: Child) {
        let of_peer = self.by_peer.entry(child.peer).or_default();
        if let Err(place) = of_peer.binary_search(&id) {
            of_peer.insert(place, id);
        }
        self.by_path.insert((child.status.path, id));
        self.all.insert(id, child);
    }

    pub(crate) fn remove(&mut self, id: ChildSaId) -> Option<Child> {
        let child = self.all.remove(&id)?;
        self.by_path.remove(&(child.status.path, id));
        if let Some(of_peer) = self.by_peer.get_mut(&child.peer) {
            of_peer.retain(|other| *other != id);
            if of_peer.is_empty() {
                self.by_peer.remove(&child.peer);
            }
        }
        Some(child)
    }

    pub(crate) fn get(&self, id: ChildSaId) -> Option<&Child> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ChildSaId) -> Option<&mut Child> {
        self.all.get_mut(&id)
    }

    /// Returns the child SAs of a peer, the oldest first.
    pub(crate) fn of_peer(
        &self,
        peer: PeerId,
    ) -> impl DoubleEndedIterator<Item = (ChildSaId, &Child)> {
        let ids = self.by_peer.get(&peer).into_iter().flatten();
        ids.filter_map(|id| Some((*id, self.all.get(id)?)))
    }

    /// Moves a child SA to another path.
    pub(crate) fn move_to(&mut self, id: ChildSaId, path: Path) {
        if let Some(child) = self.all.get_mut(&id) {
            let before = child.status.path;
            child.status.take_path(path);
            self.by_path.remove(&(before, id));
            self.by_path.insert((path, id));
        }
    }

    /// Returns the child SAs on a path.
    pub(crate) fn on(&self, path: Path) -> impl Iterator<Item = ChildSaId> {
        let from = self.by_path.range((path, ChildSaId(0))..);
        let on = from.take_while(move |(other, _)| *other == path);
        on.map(|(_, id)| *id)
    }

    /// Returns all child SAs, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ChildSaId, &Child)> {
        #[cfg(test)]
        self.walks.update(|walks| walks + 1);
        self.all.iter().map(|(id, child)| (*id, child))
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Child {
    /// Returns true if both SAs carry the same traffic of the same peer.
    pub(crate) fn is_for_the_same(&self, other: &Self) -> bool {
        (&self.peer, &self.status.name) == (&other.peer, &other.status.name)
    }
}
