//! Commands about child SAs, which apply whether the IKE SA is up or not (`child_overrides.rs`).

use super::Engine;
use crate::child_overrides::Override;
use crate::extension::path_traffic::is_of_paths;
use crate::misuse::UnknownChild;
use crate::task::upkeep;
use model::{IkeSaId, Instant, PeerId};

/// Commands.
impl Engine {
    /// Requests an additional child SA, and keeps it up while there is an IKE SA. Ends in
    /// [`crate::Event::ChildUp`], or in [`crate::Event::Refused`] and further attempts.
    pub fn open_child(
        &mut self,
        peer: PeerId,
        child: &str,
        now: Instant,
    ) -> Result<(), UnknownChild> {
        self.command(peer, child, Override::Open)?;
        for sa in self.up_with(peer) {
            self.with_established(sa, now, |up, turn| {
                up.upkeep.retry(Some(child));
                upkeep::maintain(up, turn);
            });
        }
        Ok(())
    }

    /// Deletes an additional child SA, and refuses it until [`Self::open_child`] or [`Self::bar`]
    /// allows it again. Ends in [`crate::Event::ChildDown`].
    pub fn close_child(
        &mut self,
        peer: PeerId,
        child: &str,
        now: Instant,
    ) -> Result<(), UnknownChild> {
        self.command(peer, child, Override::Closed)?;
        self.drop_children(peer, &[child.to_owned()], now);
        Ok(())
    }

    /// Deletes an additional child SA that we requested and no longer need. The peer may request
    /// it.
    pub fn release_child(
        &mut self,
        peer: PeerId,
        child: &str,
        now: Instant,
    ) -> Result<(), UnknownChild> {
        self.command(peer, child, Override::Released)?;
        self.drop_children(peer, &[child.to_owned()], now);
        Ok(())
    }
}

impl Engine {
    fn command(
        &mut self,
        peer: PeerId,
        child: &str,
        command: Override,
    ) -> Result<(), UnknownChild> {
        let known = self.config.peer(peer);
        known
            .filter(|_| !is_of_paths(Some(child)))
            .and_then(|peer| peer.policy(Some(child)))
            .ok_or(UnknownChild)?;
        self.overrides.insert(peer, child, command);
        Ok(())
    }

    /// Deletes the child SAs with these names, and requests missing ones.
    pub(crate) fn drop_children(&mut self, peer: PeerId, names: &[String], now: Instant) {
        for sa in self.up_with(peer) {
            self.with_established(sa, now, |up, turn| {
                for name in names {
                    upkeep::drop_child(up, Some(name), turn);
                }
                upkeep::maintain(up, turn);
            });
        }
    }

    fn up_with(&self, peer: PeerId) -> Vec<IkeSaId> {
        let up = self.sas_with(peer).filter(|sa| sa.established().is_some());
        up.map(|sa| sa.core.id).collect()
    }
}
