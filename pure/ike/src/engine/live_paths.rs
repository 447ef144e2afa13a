//! Commands about further paths to a peer (`task/live_path.rs`).

use super::Engine;
use crate::task::live_path;
use model::{IkeSaId, Instant, Path};

impl Engine {
    /// Checks a further path of an IKE SA whose path we choose, and creates a child SA for it. Ends
    /// in [`crate::Event::ChildUp`], or in [`crate::Event::PathNotAdded`].
    pub fn add_path(&mut self, sa: IkeSaId, path: Path, now: Instant) {
        self.with_established(sa, now, |up, turn| live_path::add(up, path, turn));
    }

    /// Removes a further path at both ends. Ends in [`crate::Event::ChildDown`].
    pub fn remove_path(&mut self, sa: IkeSaId, number: u8, now: Instant) {
        self.with_established(sa, now, |up, turn| live_path::remove(up, number, turn));
    }

    /// Notes that the newest packet of a child SA on a further path arrived from another address
    /// than the child SA sends to, and checks that address.
    pub fn note_path_stray(&mut self, sa: IkeSaId, number: u8, from: Path, now: Instant) {
        self.with_established(sa, now, |up, turn| {
            live_path::note_stray(up, number, from, turn);
        });
    }

    /// Returns the most paths of an IKE SA, including its own: one, unless both ends support more.
    pub fn most_paths(&self, sa: IkeSaId) -> u8 {
        let sa = self.sas.get(&sa);
        let up = sa.and_then(|sa| Some((sa.established()?, sa.core.peer(&self.config))));
        up.map_or(1, |(up, peer)| up.most_paths(peer))
    }
}
