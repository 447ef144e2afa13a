//! What an operator wants of children beside the first, be the IKE SA up or not.
//!
//! Without a word from the operator the configuration holds. Who is told to open a child asks for it,
//! also if the peer began the IKE SA; who is told to close one deletes it and lets the peer make none.

use crate::engine::Engine;
use crate::misuse::UnknownChild;
use model::{IkeSaId, Instant};
use std::collections::BTreeMap;

/// By the names of peer and child: whether it is to be up.
#[derive(Default)]
pub(crate) struct Wishes(BTreeMap<(String, String), bool>);

impl Wishes {
    /// What was said of a child; nothing can be said of the first alone.
    pub(crate) fn of(&self, peer: &str, child: Option<&str>) -> Option<bool> {
        let key = (peer.to_owned(), child?.to_owned());
        self.0.get(&key).copied()
    }

    pub(crate) fn is_closed(&self, peer: &str, child: Option<&str>) -> bool {
        self.of(peer, child) == Some(false)
    }

    /// All that was closed is as the configuration has it.
    pub(crate) fn let_in(&mut self, peer: &str) {
        self.0.retain(|(of, _), open| of != peer || *open);
    }

    pub(crate) fn retain(&mut self, keeps: impl Fn(&str, &str) -> bool) {
        self.0.retain(|(peer, child), _| keeps(peer, child));
    }
}

/// Commands.
impl Engine {
    /// Wants a child beside the first up, and keeps it up while there is an IKE SA. Ends in
    /// [`crate::Event::ChildUp`] or [`crate::Event::Refused`]; then it is tried again.
    pub fn open_child(
        &mut self,
        peer: &str,
        child: &str,
        now: Instant,
    ) -> Result<(), UnknownChild> {
        self.wish(peer, child, true)?;
        for sa in self.up_with(peer) {
            self.with_established(sa, now, |core, up, ctx| {
                up.retry(Some(child));
                up.tend(core, ctx);
            });
        }
        Ok(())
    }

    /// Deletes a child beside the first, and refuses it until [`Self::open_child`] or
    /// [`Self::bar`] lets it in. Ends in [`crate::Event::ChildDown`].
    pub fn close_child(
        &mut self,
        peer: &str,
        child: &str,
        now: Instant,
    ) -> Result<(), UnknownChild> {
        self.wish(peer, child, false)?;
        self.drop_children(peer, &[child.to_owned()], now);
        Ok(())
    }
}

impl Engine {
    fn wish(&mut self, peer: &str, child: &str, open: bool) -> Result<(), UnknownChild> {
        let known = self.config.peer(peer);
        known
            .and_then(|peer| peer.policy(Some(child)))
            .ok_or(UnknownChild)?;
        let key = (peer.to_owned(), child.to_owned());
        self.wishes.0.insert(key, open);
        Ok(())
    }

    /// Deletes children of these names, and asks for those that are missing.
    pub(crate) fn drop_children(&mut self, peer: &str, names: &[String], now: Instant) {
        for sa in self.up_with(peer) {
            self.with_established(sa, now, |core, up, ctx| {
                for name in names {
                    up.drop_child(Some(name), core, ctx);
                }
                up.tend(core, ctx);
            });
        }
    }

    fn up_with(&self, peer: &str) -> Vec<IkeSaId> {
        let up = self.sas_with(peer).filter(|sa| sa.established().is_some());
        up.map(|sa| sa.core.id).collect()
    }
}
