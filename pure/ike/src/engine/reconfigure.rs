//! Reconfiguration of a running engine.
//!
//! An IKE SA refers to its peer by identifier, so no change of the peer list can assign the SA to
//! another peer. An SA stays up, without interruption, if its negotiated terms still match the new
//! configuration. Otherwise the engine deletes it in an orderly way, with its child SAs, and the
//! caller decides when to initiate again. An additional child SA that is gone from the
//! configuration, or has other selectors or another mode, is deleted alone, and so is a slot that
//! was removed, whose node has another place, or whose node a domain does not license any more.
//! Changed licences cause a rekey of the child SAs. An IKE SA is also deleted if the certificate
//! that authenticated its peer is now revoked. Other certificate checks apply only when an IKE SA
//! is established.

use crate::bad_proof::BadProof;
use crate::config::{Config, Peer, Slot};
use crate::down_reason::DownReason;
use crate::engine::Engine;
use crate::extension::path_traffic;
use crate::peer_table::PeerTable;
use crate::sa::Sa;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::children::Life;
use crate::task::licences;
use model::{ChildSaId, Identity, IkeSaId, Instant, PeerId};
use std::collections::BTreeSet;

/// Commands.
impl Engine {
    /// Replaces the configuration. Returns the peers whose terms changed. The NAT-T
    /// port stays, because sockets are bound to it.
    pub fn reconfigure(&mut self, config: Config, now: Instant) -> Vec<PeerId> {
        let natt_port = self.config.natt_port;
        let mut new = PeerTable::new(Config {
            natt_port,
            ..config
        });
        new.version = self.config.version + 1;
        let tables = |identity: &Identity| match new.named(identity).next() {
            Some(_) => Vec::new(),
            None => new.tables_for(identity),
        };
        let (users, left) = self.config.users.under(tables);
        new.users = users;
        new.keep_counting(&self.config);
        let old = std::mem::replace(&mut self.config, new);
        let same_self = old.identity == self.config.identity;
        let all_old = || old.peers.iter().chain(old.users.iter());
        let kept = all_old().filter_map(|before| {
            let after = self.config.peer(before.id)?;
            Some((before, after))
        });
        let changed: Vec<_> = kept
            .filter(|(before, after)| !same_self || !before.agrees(after))
            .map(|(before, _)| before.id)
            .collect();
        for (id, why) in self.outdated(&changed) {
            self.close_for(id, why, now);
        }
        for before in all_old() {
            self.renew_children(before, now);
            self.relicense(before, now);
        }
        self.out.attempts.retain(&self.config);
        let config = &self.config;
        self.tickets.retain(|peer, held| {
            let peer = config.peer(peer).filter(|_| !changed.contains(&peer));
            let uses = peer.is_some_and(|peer| peer.resumption.allows(held.keys.way));
            let trust = peer.map(|peer| peer.certificate.trust(&config.trust));
            let revoked = trust.and_then(|trust| trust.revoked_since(&held.chain, held.believed));
            uses && revoked.is_none()
        });
        self.tickets.adopt(&config.resumption, now);
        self.barred.retain(|peer| self.config.peer(*peer).is_some());
        let config = &self.config;
        self.overrides.retain(|peer, child| {
            let peer = config.peer(peer);
            peer.is_some_and(|peer| peer.policy(Some(child)).is_some())
        });
        left.into_iter().for_each(|user| self.note_left(user));
        // Timers may have changed.
        for (id, sa) in &self.sas {
            self.deadlines.set(*id, sa.poll_timeout(&self.config));
        }
        changed
    }

    /// Deletes an IKE SA and its child SAs because the negotiated terms are no longer wanted.
    pub fn renew(&mut self, sa: IkeSaId, now: Instant) {
        self.close_for(sa, DownReason::Reconfigured, now);
    }

    /// Deletes additional child SAs and slots that are gone or whose terms changed, and those of
    /// changed rules, which the caller requests again.
    fn renew_children(&mut self, before: &Peer, now: Instant) {
        let rules = self.config.peer(before.id).map(|after| &after.rules);
        if rules.is_some_and(|rules| *rules != before.rules) {
            let names = path_traffic::names_of_rules().map(str::to_owned);
            self.drop_children(before.id, &names.collect::<Vec<_>>(), now);
        }
        let Some(after) = self.config.peer(before.id) else {
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
        // The peer learns another place with another offer.
        let gone = before.slots.iter().filter(|old| {
            let new = after.slot(&old.name);
            new.is_none_or(|new| new.place != old.place || self.loses_node(before.id, old, new))
        });
        let gone = gone.map(|slot| &slot.name);
        let outdated = outdated.map(|old| &old.name).chain(gone);
        let outdated: Vec<_> = outdated.cloned().collect();
        self.drop_children(before.id, &outdated, now);
    }

    /// Returns true if the node of a domain's slot is not licensed by the domain any more. If a
    /// licence names it by now, the peer's next offer is for a slot of its own.
    fn loses_node(&self, peer: PeerId, old: &Slot, new: &Slot) -> bool {
        let mut up = self.sas_with(peer).filter_map(Sa::established);
        up.any(|session| {
            let asked = session.asked(&old.name);
            old.node_of(asked) != new.node_of(asked)
        })
    }

    /// Rekeys child SAs whose licences changed.
    fn relicense(&mut self, before: &Peer, now: Instant) {
        let after = self.config.peer(before.id);
        let same = |after: &Peer| (&after.role, &after.slots) == (&before.role, &before.slots);
        if after.is_none_or(same) {
            return;
        }
        self.with_all_of(before.id, now, |session, turn| {
            licences::relicense(session, turn)
        });
    }

    /// Rekeys a child SA at once, because somebody has its keys who must not open anything more. It
    /// ends after a minute, with or without a successor.
    pub fn replace_child(&mut self, sa: IkeSaId, child: ChildSaId, now: Instant) {
        self.with_established(sa, now, |session, turn| {
            let mut current = session.children.all_current_mut();
            let child = current.find(|current| current.id == child);
            if let Some(Life::Current(age)) = child.map(|child| &mut child.life) {
                age.hasten(true, turn.ctx.now);
            }
        });
    }

    /// Rekeys the child SAs of a peer that are not encrypted, and ends those that are left after a
    /// minute: few packets are left to them.
    pub fn end_unencrypted(&mut self, peer: PeerId, now: Instant) {
        self.with_all_of(peer, now, |session, turn| {
            session.children.end_unencrypted(turn.ctx.now);
        });
    }

    /// Runs a function on every IKE SA with a peer that is up.
    fn with_all_of(
        &mut self,
        peer: PeerId,
        now: Instant,
        run: impl Fn(&mut Session, &mut Turn<'_, '_>),
    ) {
        let sas: Vec<_> = self.sas_with(peer).map(|sa| sa.core.id).collect();
        for sa in sas {
            self.with_established(sa, now, &run);
        }
    }

    fn outdated(&self, changed: &[PeerId]) -> Vec<(IkeSaId, DownReason)> {
        let changed: BTreeSet<_> = changed.iter().collect();
        let why = |sa: &Sa, peer: PeerId| match self.config.peer(peer) {
            None => Some(DownReason::Removed),
            Some(_) if changed.contains(&peer) => Some(DownReason::Reconfigured),
            Some(_) => self.revoked(sa),
        };
        let outdated = self.sas.iter();
        let outdated = outdated.filter_map(|(id, sa)| Some((*id, why(sa, sa.core.peer?)?)));
        outdated.collect()
    }

    fn revoked(&self, sa: &Sa) -> Option<DownReason> {
        let up = sa.established()?;
        let peer = self.config.peer(sa.core.peer?)?;
        let trust = peer.certificate.trust(&self.config.trust);
        let revoked = trust.revoked_since(&up.terms.chain, up.terms.believed)?;
        Some(BadProof::from(revoked).into())
    }
}
