//! Another configuration for a running engine.
//!
//! An IKE SA remembers its peer by name, so no change of the list can make it belong to somebody
//! else. What was agreed with a peer stays as long as the new configuration asks for the same: such
//! SAs do not notice. Where it asks for something else they are deleted, in an orderly way and with
//! their children, and it is for our owner to begin anew. A child beside the first that is gone or
//! carries something else is deleted alone, a slot that is gone as well. Other licences take new keys of the children and no more. So are those whose peer has proved itself by
//! a certificate that is revoked now; anything else about certificates was settled when they began.

use crate::bad_proof::BadProof;
use crate::config::{Config, Peer};
use crate::directory::Directory;
use crate::down_reason::DownReason;
use crate::engine::Engine;
use crate::sa::Sa;
use model::{IkeSaId, Instant};

/// Commands.
impl Engine {
    /// Works by another configuration from now on; gives the names of the peers whose terms
    /// changed. Ports stay as they are: sockets are bound to them.
    pub fn reconfigure(&mut self, config: Config, now: Instant) -> Vec<String> {
        let natt_port = self.config.natt_port;
        let old = std::mem::replace(
            &mut self.config,
            Directory::new(Config {
                natt_port,
                ..config
            }),
        );
        let same_self = old.identity == self.config.identity;
        let kept = old.peers.iter().filter_map(|before| {
            let after = self.config.peer(&before.name)?;
            Some((before, after))
        });
        let changed: Vec<_> = kept
            .filter(|(before, after)| !same_self || !before.agrees(after))
            .map(|(before, _)| before.name.clone())
            .collect();
        for (id, why) in self.outdated(&changed) {
            self.close_for(id, why, now);
        }
        for before in &old.peers {
            self.renew_children(before, now);
            self.relicense(before, now);
        }
        self.out.attempts.retain(&self.config);
        self.barred.retain(|name| self.config.peer(name).is_some());
        let config = &self.config;
        self.wishes.retain(|peer, child| {
            let peer = config.peer(peer);
            peer.is_some_and(|peer| peer.policy(Some(child)).is_some())
        });
        // Times to wait may have changed.
        for (id, sa) in &self.sas {
            self.timeline.set(*id, sa.poll_timeout(&self.config));
        }
        changed
    }

    /// Deletes an IKE SA and its children because what was agreed is no longer wanted.
    pub fn renew(&mut self, sa: IkeSaId, now: Instant) {
        self.close_for(sa, DownReason::Reconfigured, now);
    }

    /// Children beside the first come and go one by one, and so do those that carry something else now.
    fn renew_children(&mut self, before: &Peer, now: Instant) {
        let Some(after) = self.config.peer(&before.name) else {
            return;
        };
        if (&before.children, &before.slots) == (&after.children, &after.slots) {
            return;
        }
        let outdated = before.children.iter().filter(|old| {
            let new = after.policy(Some(&old.name));
            new.is_none_or(|new| {
                (new.local, new.remote, new.mode) != (&old.local, &old.remote, old.mode)
            })
        });
        let slots = before.slots.iter().map(|slot| &slot.name);
        let gone = slots.filter(|name| after.policy(Some(name)).is_none());
        let outdated = outdated.map(|old| &old.name).chain(gone);
        let outdated: Vec<_> = outdated.cloned().collect();
        self.drop_children(&before.name, &outdated, now);
    }

    /// Children whose licences are others now get new keys.
    fn relicense(&mut self, before: &Peer, now: Instant) {
        let after = self.config.peer(&before.name);
        let same = |after: &Peer| (&after.role, &after.slots) == (&before.role, &before.slots);
        if after.is_none_or(same) {
            return;
        }
        let sas: Vec<_> = self.sas_with(&before.name).map(|sa| sa.core.id).collect();
        for sa in sas {
            self.with_established(sa, now, |core, state, ctx| state.relicense(core, ctx));
        }
    }

    fn outdated(&self, changed: &[String]) -> Vec<(IkeSaId, DownReason)> {
        let why = |sa: &Sa, name: &String| match self.config.peer(name) {
            None => Some(DownReason::Removed),
            Some(_) if changed.contains(name) => Some(DownReason::Reconfigured),
            Some(_) => self.revoked(sa),
        };
        let named = self.sas.iter().filter_map(|(id, sa)| {
            let name = sa.core.peer.as_ref()?;
            Some((*id, why(sa, name)?))
        });
        named.collect()
    }

    fn revoked(&self, sa: &Sa) -> Option<DownReason> {
        let up = sa.established()?;
        let revoked = self.config.trust.revoked_since(&up.chain, up.believed)?;
        Some(BadProof::from(revoked).into())
    }
}
