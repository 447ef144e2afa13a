//! Users: peers that proved one of the many identities for which a table of the configuration
//! stands.
//!
//! A user is a peer of its own, with the settings of its table, from the proof of its identity
//! until nothing is left of its IKE SAs. Only a proof makes one. How many a table may have is
//! bounded, because an issuer of certificates chooses the names in them.
//!
//! The tunnels of one identity belong to one user. Under [`Unique::Never`] each tunnel has a user
//! of its own, with a number.

use crate::config::Peer;
use model::{Identity, PeerId, Unique};
use std::collections::{BTreeMap, BTreeSet};

/// Most users of one identity.
pub(crate) const MOST_ALIKE: usize = 16;

/// Reason for which there is no room for one user more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The table has as many as it may have.
    Table { most: u32 },
    /// The identity has as many as it may have.
    Identity { most: usize },
}

/// All users, with an index by identity.
#[derive(Default)]
pub(crate) struct Users {
    all: BTreeMap<PeerId, User>,
    /// The users of each identity.
    by_identity: BTreeMap<Identity, BTreeSet<PeerId>>,
    /// Number of users of each table.
    counts: BTreeMap<PeerId, u32>,
    /// Number of identifiers given so far.
    given: u32,
}

/// A user.
struct User {
    peer: Peer,
    table: PeerId,
    /// From 1 on, the number among the users of the identity.
    number: usize,
}

impl Users {
    pub(crate) fn get(&self, id: PeerId) -> Option<&Peer> {
        self.all.get(&id).map(|user| &user.peer)
    }

    /// Returns all users.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.all.values().map(|user| &user.peer)
    }

    /// Returns the table of a user.
    pub(crate) fn table(&self, id: PeerId) -> Option<PeerId> {
        self.all.get(&id).map(|user| user.table)
    }

    /// Returns the users of a table.
    pub(crate) fn of(&self, table: PeerId) -> impl Iterator<Item = PeerId> {
        let all = self.all.iter();
        all.filter(move |(_, user)| user.table == table)
            .map(|(id, _)| *id)
    }

    /// Returns the number of users of a table.
    pub(crate) fn count(&self, table: PeerId) -> u32 {
        self.counts.get(&table).copied().unwrap_or_default()
    }

    /// Returns all users of an identity.
    pub(crate) fn alike(&self, identity: &Identity) -> impl Iterator<Item = PeerId> {
        let alike = self.by_identity.get(identity);
        alike.into_iter().flatten().copied()
    }

    /// Returns the user of an identity, unless each of its tunnels has one.
    pub(crate) fn named(&self, identity: &Identity) -> Option<&Peer> {
        let alike = self.by_identity.get(identity)?;
        let peer = self.get(*alike.first()?)?;
        (peer.unique != Unique::Never).then_some(peer)
    }

    /// Returns the identity that a user's addresses are leased to. It is another one for each of
    /// several tunnels.
    pub(crate) fn lessee(&self, id: PeerId) -> Option<Identity> {
        let user = self.all.get(&id).filter(|user| user.number > 1)?;
        let text = format!("{} ({})", user.peer.identity, user.number);
        Some(match &user.peer.identity {
            Identity::Email(_) => Identity::Email(text),
            Identity::Address(_) | Identity::Fqdn(_) | Identity::Opaque { .. } => {
                Identity::Fqdn(text)
            }
        })
    }

    /// Returns an error if a table may not have a user more, of this identity.
    pub(crate) fn check_room(&self, table: &Peer, identity: &Identity) -> Result<(), Full> {
        let alike = self.by_identity.get(identity);
        if alike.is_some_and(|alike| alike.len() >= MOST_ALIKE) {
            return Err(Full::Identity { most: MOST_ALIKE });
        }
        let most = table.users.as_ref().map_or(0, |users| users.most);
        match self.count(table.id) < most {
            true => Ok(()),
            false => Err(Full::Table { most }),
        }
    }

    /// Adds a user of a table.
    pub(crate) fn enter(&mut self, table: &Peer, identity: &Identity) -> PeerId {
        let id = self.fresh();
        let alike = self.by_identity.get(identity).into_iter().flatten();
        let taken = alike.filter_map(|id| Some(self.all.get(id)?.number));
        let taken: BTreeSet<_> = taken.collect();
        let number = (1..).find(|number| !taken.contains(number));
        self.insert(User {
            peer: table.user(id, identity.clone()),
            table: table.id,
            number: number.unwrap_or(1),
        });
        id
    }

    /// Removes a user.
    pub(crate) fn remove(&mut self, id: PeerId) {
        let Some(user) = self.all.remove(&id) else {
            return;
        };
        if let Some(count) = self.counts.get_mut(&user.table) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&user.table);
            }
        }
        if let Some(alike) = self.by_identity.get_mut(&user.peer.identity) {
            alike.remove(&id);
            if alike.is_empty() {
                self.by_identity.remove(&user.peer.identity);
            }
        }
    }

    /// Returns the users under another configuration, which finds the tables of an identity: each
    /// with the settings of its table there, and those for whom no table stands any more.
    pub(crate) fn under<'c>(
        &self,
        tables: impl Fn(&Identity) -> Vec<&'c Peer>,
    ) -> (Self, Vec<PeerId>) {
        let mut users = Self {
            given: self.given,
            ..Self::default()
        };
        let mut gone = Vec::new();
        for (id, user) in &self.all {
            let identity = &user.peer.identity;
            // Of several, one stays if only one may.
            let is_known = users.named(identity).is_some();
            match kept(&tables(identity), user.table).filter(|_| !is_known) {
                Some(table) => users.insert(User {
                    peer: table.user(*id, identity.clone()),
                    table: table.id,
                    number: user.number,
                }),
                None => gone.push(*id),
            }
        }
        (users, gone)
    }

    /// Returns an identifier that no user has.
    fn fresh(&mut self) -> PeerId {
        loop {
            let id = PeerId(PeerId::FIRST_USER.0 | self.given);
            self.given = self.given.wrapping_add(1);
            if id.is_user() && !self.all.contains_key(&id) {
                return id;
            }
        }
    }

    fn insert(&mut self, user: User) {
        let id = user.peer.id;
        let alike = self.by_identity.entry(user.peer.identity.clone());
        alike.or_default().insert(id);
        *self.counts.entry(user.table).or_default() += 1;
        self.all.insert(id, user);
    }
}

/// Returns the table of a user among those that stand for its identity now: the same as before, or
/// the only one. Of several others, only a new proof tells which.
pub(crate) fn kept<'c>(tables: &[&'c Peer], current: PeerId) -> Option<&'c Peer> {
    let same = tables.iter().find(|table| table.id == current);
    match (same, tables) {
        (Some(table), _) | (None, [table]) => Some(table),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{PeerRole, UserPolicy};
    use crate::tests::peer;
    use model::Wildcard;

    fn table(most: u32, unique: Unique) -> Peer {
        let mut table = peer("staff", PeerRole::Gateway);
        table.unique = unique;
        table.users = Some(Box::new(UserPolicy {
            identities: Wildcard::Mailboxes("staff.example.net".to_owned()),
            most,
        }));
        table
    }

    fn identity(number: u32) -> Identity {
        Identity::Email(format!("u{number}@staff.example.net"))
    }

    /// An authority that issues certificates for any name, or whoever has its key.
    #[test]
    fn ten_thousand_names_take_the_places_of_one_table_and_no_more() {
        let table = table(100, Unique::Replace);
        let mut users = Users::default();
        let mut refused = 0;
        for number in 0..10_000 {
            match users.check_room(&table, &identity(number)) {
                Ok(()) => drop(users.enter(&table, &identity(number))),
                Err(_) => refused += 1,
            }
        }
        assert_eq!((users.all.len(), refused), (100, 9900));
        assert_eq!(users.count(table.id), 100);
        let all: Vec<_> = users.of(table.id).collect();
        all.into_iter().for_each(|id| users.remove(id));
        assert!(users.all.is_empty() && users.by_identity.is_empty() && users.counts.is_empty());
        assert!(users.check_room(&table, &identity(0)).is_ok());
    }

    #[test]
    fn the_tunnels_of_one_identity_have_numbers_and_addresses_of_their_own() {
        let table = table(100, Unique::Never);
        let mut users = Users::default();
        let first = users.enter(&table, &identity(1));
        let second = users.enter(&table, &identity(1));
        assert!(users.named(&identity(1)).is_none());
        assert_eq!(users.lessee(first), None);
        let lessee = users.lessee(second).map(|lessee| lessee.to_string());
        assert_eq!(lessee.as_deref(), Some("u1@staff.example.net (2)"));
        users.remove(first);
        let third = users.enter(&table, &identity(1));
        assert_eq!(users.lessee(third), None, "the number is free again");
        for _ in 0..MOST_ALIKE {
            if users.check_room(&table, &identity(1)).is_ok() {
                users.enter(&table, &identity(1));
            }
        }
        assert_eq!(users.all.len(), MOST_ALIKE);
        assert!(users.check_room(&table, &identity(2)).is_ok());
    }

    #[test]
    fn no_two_users_have_one_identifier_even_after_all_have_been_given() {
        let table = table(10, Unique::Replace);
        let mut users = Users::default();
        let first = users.enter(&table, &identity(1));
        assert!(first.is_user());
        users.given = u32::MAX - PeerId::FIRST_USER.0;
        let others: Vec<_> = (2..5).map(|n| users.enter(&table, &identity(n))).collect();
        let all: BTreeSet<_> = others.iter().chain([&first]).collect();
        assert_eq!(all.len(), 4);
        assert!(all.iter().all(|id| id.is_user()));
    }

    #[test]
    fn a_user_has_the_settings_of_its_table_and_stands_for_itself() {
        let table = table(10, Unique::Keep);
        let mut users = Users::default();
        let id = users.enter(&table, &identity(1));
        let user = users.get(id).unwrap();
        assert_eq!((&user.identity, &user.terms), (&identity(1), &table.terms));
        assert_eq!((&user.users, users.table(id)), (&None, Some(table.id)));
        assert_eq!(users.named(&identity(1)).map(|user| user.id), Some(id));
    }
}
