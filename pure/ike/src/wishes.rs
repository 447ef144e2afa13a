//! What an operator wants of children beside the first, be the IKE SA up or not.
//!
//! Without a word from the operator the configuration holds. Who is told to open a child asks for it,
//! also if the peer began the IKE SA; who is told to close one deletes it and lets the peer make none.

use crate::engine::Engine;
use crate::misuse::UnknownChild;
use model::{IkeSaId, Instant};
use std::collections::BTreeMap;

/// By the names of peer and child.
#[derive(Default)]
pub(crate) struct Wishes(BTreeMap<(String, String), Wish>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// It is to be up.
    Open,
    /// It is not to be up, whoever asks for it.
    Closed,
    /// We have no use for it. The peer may.
    Released,
}

impl Wishes {
    /// Whether we want a child up, if that was said; nothing can be said of the first alone.
    pub(crate) fn of(&self, peer: &str, child: Option<&str>) -> Option<bool> {
        self.get(peer, child).map(|wish| wish == Wish::Open)
    }

    /// Whether the peer may not have it either.
    pub(crate) fn is_closed(&self, peer: &str, child: Option<&str>) -> bool {
        self.get(peer, child) == Some(Wish::Closed)
    }

    fn get(&self, peer: &str, child: Option<&str>) -> Option<Wish> {
        let key = (peer.to_owned(), child?.to_owned());
        self.0.get(&key).copied()
    }

    /// All that was closed is as the configuration has it.
    pub(crate) fn let_in(&mut self, peer: &str) {
        self.0
            .retain(|(of, _), wish| of != peer || *wish != Wish::Closed);
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
        self.wish(peer, child, Wish::Open)?;
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
        self.wish(peer, child, Wish::Closed)?;
        self.drop_children(peer, &[child.to_owned()], now);
        Ok(())
    }

    /// Deletes a child beside the first that we have asked for and do not need any more. The peer may ask for it.
    pub fn release_child(
        &mut self,
        peer: &str,
        child: &str,
        now: Instant,
    ) -> Result<(), UnknownChild> {
        self.wish(peer, child, Wish::Released)?;
        self.drop_children(peer, &[child.to_owned()], now);
        Ok(())
    }
}

impl Engine {
    fn wish(&mut self, peer: &str, child: &str, wish: Wish) -> Result<(), UnknownChild> {
        let known = self.config.peer(peer);
        known
            .and_then(|peer| peer.policy(Some(child)))
            .ok_or(UnknownChild)?;
        let key = (peer.to_owned(), child.to_owned());
        self.wishes.0.insert(key, wish);
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
