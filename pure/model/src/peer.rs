//! Identifiers of peers, and their names. A name belongs to the edges: configuration, control and
//! log. Everything between them has the identifier.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Most users that left whose names are kept, for events that are still to be told.
const MOST_LEFT: usize = 1024;

/// Identifier of a configured peer, from [`PeerNames`], or of a user, from the IKE engine. A user
/// is a peer that proved one of the many identities for which a table stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u32);

impl PeerId {
    /// The identifier of no peer.
    pub const NONE: Self = Self(u32::MAX);

    /// The first identifier of users. Those of configured peers are lower.
    pub const FIRST_USER: Self = Self(1 << 31);

    /// Returns true for the identifier of a user.
    pub fn is_user(self) -> bool {
        self >= Self::FIRST_USER && self != Self::NONE
    }
}

/// The names of peers, by identifier. The name of a configured peer keeps its identifier for as
/// long as the host runs, and no other name gets it. So an event about a peer that is no longer
/// configured still has its name, and a peer that is configured again has its identifier. Users
/// come and go, and each time have another identifier.
#[derive(Clone, Debug, Default)]
pub struct PeerNames {
    /// In the order of the identifiers.
    names: Vec<Box<str>>,
    /// In the order of the names.
    by_name: Vec<PeerId>,
    /// The names of users, and of the last ones that left.
    users: BTreeMap<PeerId, Arc<str>>,
    users_by_name: BTreeMap<Arc<str>, PeerId>,
    /// Users that left, oldest first.
    left: VecDeque<PeerId>,
}

impl PeerNames {
    /// Gives an identifier to each name that has none yet, in the order of the names.
    pub fn enter<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        let new = names.into_iter().filter(|name| self.id(name).is_none());
        let new: BTreeSet<_> = new.collect();
        let first = self.names.len() as u32;
        self.by_name.extend((first..).map(PeerId).take(new.len()));
        self.names.extend(new.into_iter().map(Box::from));
        let names = &self.names;
        self.by_name.sort_by_key(|id| &names[id.0 as usize]);
    }

    /// Gives a name to a user that came. It is another one if a configured peer has that name.
    pub fn enter_user(&mut self, user: PeerId, name: &str) {
        let is_taken = self.configured(name).is_some();
        let name = if is_taken {
            format!("{name} (user)")
        } else {
            name.to_owned()
        };
        let name = Arc::from(name);
        self.users_by_name.insert(Arc::clone(&name), user);
        self.users.insert(user, name);
    }

    /// Notes that a user left. Its name is kept for a while, but does not lead to it any more.
    pub fn leave(&mut self, user: PeerId) {
        let Some(name) = self.users.get(&user) else {
            return;
        };
        if self.users_by_name.get(name) == Some(&user) {
            self.users_by_name.remove(name);
        }
        self.left.push_back(user);
        if self.left.len() > MOST_LEFT
            && let Some(oldest) = self.left.pop_front()
        {
            self.users.remove(&oldest);
        }
    }

    /// Returns the identifier of a user that is here, or of a name that was ever configured.
    pub fn id(&self, name: &str) -> Option<PeerId> {
        if let Some(user) = self.users_by_name.get(name) {
            return Some(*user);
        }
        self.configured(name)
    }

    fn configured(&self, name: &str) -> Option<PeerId> {
        let place = self.by_name.binary_search_by(|id| self.name(*id).cmp(name));
        self.by_name.get(place.ok()?).copied()
    }

    /// Returns the name of a peer. It is empty for an identifier from elsewhere.
    pub fn name(&self, id: PeerId) -> &str {
        let configured = self.names.get(id.0 as usize).map(|name| &**name);
        let user = || self.users.get(&id).map(|name| &**name);
        configured.or_else(user).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &PeerNames, name: &str) -> Option<u32> {
        names.id(name).map(|id| id.0)
    }

    #[test]
    fn identifiers_have_the_order_of_the_names() {
        let mut names = PeerNames::default();
        names.enter(["office", "alice", "bob", "alice"]);
        let ids = ["alice", "bob", "office", "carol"].map(|name| named(&names, name));
        assert_eq!(ids, [Some(0), Some(1), Some(2), None]);
        let found = [2, 0, 1].map(|id| names.name(PeerId(id)));
        assert_eq!(found, ["office", "alice", "bob"]);
        assert_eq!(names.name(PeerId(3)), "");
    }

    #[test]
    fn a_name_keeps_its_identifier_over_other_configurations() {
        let mut names = PeerNames::default();
        names.enter(["bob", "carol"]);
        names.enter(["alice", "carol"]);
        names.enter([]);
        let ids = ["alice", "bob", "carol"].map(|name| named(&names, name));
        assert_eq!(ids, [Some(2), Some(0), Some(1)]);
    }

    #[test]
    fn no_name_gets_the_identifier_of_another_one_that_is_gone() {
        let mut names = PeerNames::default();
        let mut given = BTreeSet::new();
        for round in 0..50 {
            let some: Vec<_> = (0..10).map(|n| format!("peer-{}", round * 7 + n)).collect();
            names.enter(some.iter().map(String::as_str));
            for name in &some {
                let id = names.id(name).unwrap();
                assert_eq!(names.name(id), name);
                given.insert((id, name.clone()));
            }
        }
        let ids: BTreeSet<_> = given.iter().map(|(id, _)| id).collect();
        assert_eq!((ids.len(), given.len()), (353, 353));
    }

    #[test]
    fn a_user_has_a_name_while_here_and_for_the_events_after_that() {
        let mut names = PeerNames::default();
        names.enter(["staff"]);
        let [first, second] = [0, 1].map(|number| PeerId(PeerId::FIRST_USER.0 + number));
        assert!(first.is_user() && !PeerId(0).is_user() && !PeerId::NONE.is_user());
        names.enter_user(first, "alice@example.net");
        assert_eq!(names.id("alice@example.net"), Some(first));
        names.leave(first);
        assert_eq!(names.id("alice@example.net"), None);
        assert_eq!(names.name(first), "alice@example.net");
        names.enter_user(second, "alice@example.net");
        names.leave(first);
        assert_eq!(names.id("alice@example.net"), Some(second));
        names.enter_user(first, "staff");
        assert_eq!(named(&names, "staff"), Some(0));
        assert_eq!(names.id("staff (user)"), Some(first));
    }

    #[test]
    fn the_names_of_users_that_left_take_bounded_memory() {
        let mut names = PeerNames::default();
        for number in 0..10_000 {
            let user = PeerId(PeerId::FIRST_USER.0 + number);
            names.enter_user(user, &format!("u{number}@example.net"));
            names.leave(user);
        }
        assert_eq!(names.users.len(), MOST_LEFT);
        assert_eq!(
            (names.left.len(), names.users_by_name.len()),
            (MOST_LEFT, 0)
        );
    }
}
