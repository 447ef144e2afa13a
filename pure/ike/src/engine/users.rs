//! Users (`users.rs`), and the limits on the tunnels of one identity.
//!
//! The state of an IKE SA whose initiator has proved itself may ask whether it may come: if its
//! identity is one of many that a table stands for, or may have one tunnel only. The engine then
//! decides, and the state continues. No proof is verified twice.

use super::Engine;
use crate::config::Peer;
use crate::event::Event;
use crate::peer_table::{tables, tables_in};
use crate::refusal::Refusal;
use crate::sa::Sa;
use crate::sa::turn::{Applicant, Verdict};
use crate::task::liveness;
use crate::users::{Full, kept};
use model::{Identity, IkeSaId, Instant, PeerId, Unique};

/// Getters.
impl Engine {
    /// Returns all users.
    pub fn users(&self) -> impl Iterator<Item = &Peer> {
        self.config.users.iter()
    }

    /// Returns the users of a table that stands for many identities.
    pub fn users_of(&self, table: PeerId) -> impl Iterator<Item = PeerId> {
        self.config.users.of(table)
    }

    /// Returns the number of users of a table.
    pub fn count_users(&self, table: PeerId) -> u32 {
        self.config.users.count(table)
    }

    /// Returns the users that these peers would have, each with its table.
    pub fn users_under(&self, peers: &[Peer]) -> Vec<(PeerId, PeerId)> {
        let tables = tables(peers);
        let users = self.users();
        let users = users.filter_map(|user| {
            let current = self.config.users.table(user.id)?;
            Some((
                user.id,
                kept(&tables_in(&tables, &user.identity), current)?.id,
            ))
        });
        users.collect()
    }

    /// Returns the table of a user.
    pub fn table_of(&self, user: PeerId) -> Option<PeerId> {
        self.config.users.table(user)
    }
}

impl Engine {
    /// Decides about the initiator of an IKE SA, if its state asks.
    pub(crate) fn decide(&mut self, id: IkeSaId, now: Instant) {
        let Some(applicant) = self.out.applicant.take() else {
            return;
        };
        let verdict = self.judge(&applicant, id, now);
        let peer = verdict.peer;
        self.run(id, now, |sa, ctx| {
            sa.handle_verdict(verdict, ctx);
            Vec::new()
        });
        self.forget_user(peer);
    }

    fn judge(&mut self, applicant: &Applicant, id: IkeSaId, now: Instant) -> Verdict {
        let peer = applicant.peer;
        let refused = |refusal| Verdict {
            peer,
            refusal: Some(refusal),
        };
        let Some(found) = self.config.peer(peer) else {
            return refused(Refusal::UnknownIdentity(applicant.identity.clone()));
        };
        if found.users.is_some() {
            let entered = self.leave_other_tables(applicant, now);
            return match entered.and_then(|()| self.enter_user(applicant)) {
                Ok(peer) => Verdict {
                    peer,
                    refusal: None,
                },
                Err(why) => refused(why),
            };
        }
        if found.unique == Unique::Keep
            && let Some(older) = self.up_elsewhere(applicant, id)
        {
            let (older, at) = (older.core.id, older.core.path.remote.ip());
            // If nothing answers there any more, the next attempt finds it gone.
            self.with_established(older, now, liveness::doubt);
            return refused(Refusal::UpElsewhere { at });
        }
        Verdict {
            peer,
            refusal: None,
        }
    }

    /// Returns an IKE SA of the same peer that came from another address.
    fn up_elsewhere(&self, applicant: &Applicant, id: IkeSaId) -> Option<&Sa> {
        let mut others = self.sas_with(applicant.peer);
        others.find(|sa| {
            let up = sa.established().is_some_and(|up| !up.is_leaving());
            sa.core.id != id && up && sa.core.path.remote.ip() != applicant.from
        })
    }

    /// Removes what is left of an identity as the user of other tables, from the time of another
    /// certificate. An identity is the user of one table at once: its tunnel there stays.
    fn leave_other_tables(&mut self, applicant: &Applicant, now: Instant) -> Result<(), Refusal> {
        let users = &self.config.users;
        let is_other = |user: &PeerId| users.table(*user) != Some(applicant.peer);
        let others = users.alike(&applicant.identity).filter(is_other);
        for user in others.collect::<Vec<_>>() {
            let live = self.sas_with(user).find(|sa| !sa.has_ended());
            if let Some((id, at)) = live.map(|sa| (sa.core.id, sa.core.path.remote.ip())) {
                // If nothing answers there any more, the next attempt finds it gone.
                self.with_established(id, now, liveness::doubt);
                return Err(Refusal::UpElsewhere { at });
            }
            self.drop_user(user);
        }
        Ok(())
    }

    /// Removes a user of whom only ended IKE SAs are left.
    fn drop_user(&mut self, user: PeerId) {
        let sas: Vec<_> = self.sas_with(user).map(|sa| sa.core.id).collect();
        sas.into_iter().for_each(|sa| self.drop_ended(sa));
        self.forget_user(user);
    }

    /// Adds a user of a table.
    fn enter_user(&mut self, applicant: &Applicant) -> Result<PeerId, Refusal> {
        let (table, identity) = (applicant.peer, &applicant.identity);
        let is_barred = |peer: &PeerId| self.barred.contains(peer);
        if is_barred(&table)
            || self
                .config
                .users
                .alike(identity)
                .any(|peer| is_barred(&peer))
        {
            return Err(Refusal::TakenDown);
        }
        let Some(known) = self.config.peer(table).cloned() else {
            return Err(Refusal::UnknownIdentity(identity.clone()));
        };
        if let Err(full) = self.config.users.check_room(&known, identity) {
            let refusal = || refusal(full, identity.clone());
            self.give_place(table, identity).ok_or_else(refusal)?;
        }
        let users = &mut self.config.users;
        let peer = users.enter(&known, identity);
        let name = users.lessee(peer).unwrap_or_else(|| identity.clone());
        self.out.events.push_back(Event::UserEntered {
            peer,
            table,
            name: name.canonical().to_string(),
        });
        Ok(peer)
    }

    /// Removes a user of whom only ended IKE SAs are left, to give its place to another. One of the
    /// same identity goes first.
    fn give_place(&mut self, table: PeerId, identity: &Identity) -> Option<()> {
        let has_ended =
            |user: &PeerId| !self.barred.contains(user) && self.sas_with(*user).all(Sa::has_ended);
        let is_alike = |user: &PeerId| {
            let peer = self.config.peer(*user);
            peer.is_some_and(|peer| peer.identity == *identity)
        };
        let mut ended: Vec<_> = self.users_of(table).filter(has_ended).collect();
        ended.sort_by_key(|user| !is_alike(user));
        let user = *ended.first()?;
        self.drop_user(user);
        let known = self.config.peer(table)?;
        self.config.users.check_room(known, identity).ok()
    }

    /// Removes a user of whom nothing is left, unless the operator took it down.
    pub(crate) fn forget_user(&mut self, peer: PeerId) {
        let is_left = self.peer_index.with(peer).next().is_some() || self.barred.contains(&peer);
        if is_left || !peer.is_user() || self.config.users.get(peer).is_none() {
            return;
        }
        self.config.users.remove(peer);
        self.note_left(peer);
    }

    /// Removes what is known of a user that is no more.
    pub(crate) fn note_left(&mut self, peer: PeerId) {
        self.out.attempts.forget(peer);
        self.overrides.retain(|of, _| of != peer);
        self.out.events.push_back(Event::UserLeft { peer });
    }
}

fn refusal(full: Full, identity: Identity) -> Refusal {
    match full {
        Full::Table { most } => Refusal::TooManyUsers { identity, most },
        Full::Identity { most } => Refusal::TooManyTunnels { identity, most },
    }
}
