//! Child SAs that the operator opened or closed, whether the IKE SA is up or not.
//!
//! Without a command of the operator, the configuration applies. Opening a child SA requests it,
//! even if the peer initiated the IKE SA. Closing one deletes it and refuses it to the peer.

use crate::engine::Engine;
use crate::misuse::UnknownChild;
use model::{IkeSaId, Instant};
use std::collections::BTreeMap;

/// Overrides, by the names of peer and child SA.
#[derive(Default)]
pub(crate) struct ChildOverrides(BTreeMap<(String, String), Override>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Override {
    /// Keep it up.
    Open,
    /// Keep it down, and refuse it to the peer.
    Closed,
    /// We do not need it. The peer may request it.
    Released,
}

impl ChildOverrides {
    /// Returns true if the operator opened a child SA, false if closed or released, and `None`
    /// without a command. The first child SA alone has no commands.
    pub(crate) fn of(&self, peer: &str, child: Option<&str>) -> Option<bool> {
        self.get(peer, child)
            .map(|command| command == Override::Open)
    }

    /// Returns true if the peer may not have it either.
    pub(crate) fn is_closed(&self, peer: &str, child: Option<&str>) -> bool {
        self.get(peer, child) == Some(Override::Closed)
    }

    fn get(&self, peer: &str, child: Option<&str>) -> Option<Override> {
        let key = (peer.to_owned(), child?.to_owned());
        self.0.get(&key).copied()
    }

    /// Reverts closed child SAs to the configuration.
    pub(crate) fn let_in(&mut self, peer: &str) {
        self.0
            .retain(|(of, _), command| of != peer || *command != Override::Closed);
    }

    pub(crate) fn retain(&mut self, keeps: impl Fn(&str, &str) -> bool) {
        self.0.retain(|(peer, child), _| keeps(peer, child));
    }
}

/// Commands.
impl Engine {
    /// Requests an additional child SA, and keeps it up while there is an IKE SA. Ends in
    /// [`crate::Event::ChildUp`], or in [`crate::Event::Refused`] and further attempts.
    pub fn open_child(
        &mut self,
        peer: &str,
        child: &str,
        now: Instant,
    ) -> Result<(), UnknownChild> {
        self.command(peer, child, Override::Open)?;
        for sa in self.up_with(peer) {
            self.with_established(sa, now, |up, turn| {
                up.retry(Some(child));
                up.maintain(turn);
            });
        }
        Ok(())
    }

    /// Deletes an additional child SA, and refuses it until [`Self::open_child`] or [`Self::bar`]
    /// allows it again. Ends in [`crate::Event::ChildDown`].
    pub fn close_child(
        &mut self,
        peer: &str,
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
        peer: &str,
        child: &str,
        now: Instant,
    ) -> Result<(), UnknownChild> {
        self.command(peer, child, Override::Released)?;
        self.drop_children(peer, &[child.to_owned()], now);
        Ok(())
    }
}

impl Engine {
    fn command(&mut self, peer: &str, child: &str, command: Override) -> Result<(), UnknownChild> {
        let known = self.config.peer(peer);
        known
            .and_then(|peer| peer.policy(Some(child)))
            .ok_or(UnknownChild)?;
        let key = (peer.to_owned(), child.to_owned());
        self.overrides.0.insert(key, command);
        Ok(())
    }

    /// Deletes the child SAs with these names, and requests missing ones.
    pub(crate) fn drop_children(&mut self, peer: &str, names: &[String], now: Instant) {
        for sa in self.up_with(peer) {
            self.with_established(sa, now, |up, turn| {
                for name in names {
                    up.drop_child(Some(name), turn);
                }
                up.maintain(turn);
            });
        }
    }

    fn up_with(&self, peer: &str) -> Vec<IkeSaId> {
        let up = self.sas_with(peer).filter(|sa| sa.established().is_some());
        up.map(|sa| sa.core.id).collect()
    }
}
