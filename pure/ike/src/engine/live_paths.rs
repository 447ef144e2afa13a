//! Commands about further paths to a peer (`task/live_path.rs`).

use super::Engine;
use crate::task::{live_path, path_traffic};
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

    /// Requests a child SA for the traffic of one of our rules, by its index, on a live path of an
    /// IKE SA whose path we choose. Ends in [`crate::Event::ChildUp`], or in
    /// [`crate::Event::Refused`]. Without effect while the path has such a child SA.
    pub fn add_path_traffic(&mut self, sa: IkeSaId, number: u8, rule: u8, now: Instant) {
        self.with_established(sa, now, |up, turn| {
            path_traffic::request(up, number, rule, turn);
        });
    }

    /// Removes the child SA with the traffic of a live path. Ends in [`crate::Event::ChildDown`].
    pub fn remove_path_traffic(&mut self, sa: IkeSaId, number: u8, now: Instant) {
        self.with_established(sa, now, |up, turn| path_traffic::remove(up, number, turn));
    }

    /// Returns true if both ends of an IKE SA support selectors for the traffic of live paths.
    pub fn has_path_selectors(&self, sa: IkeSaId) -> bool {
        let up = self.sas.get(&sa).and_then(|sa| sa.established());
        up.is_some_and(|up| up.has_path_selectors())
    }

    /// Returns the most paths of an IKE SA, including its own: one, unless both ends support more.
    pub fn most_paths(&self, sa: IkeSaId) -> u8 {
        let sa = self.sas.get(&sa);
        let up = sa.and_then(|sa| Some((sa.established()?, sa.core.peer(&self.config))));
        up.map_or(1, |(up, peer)| up.most_paths(peer))
    }
}
