//! Identifiers of peers, and their names. A name belongs to the edges: configuration, control and
//! log. Everything between them has the identifier.

use std::collections::BTreeSet;

/// Identifier of a configured peer, from [`PeerNames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u32);

impl PeerId {
    /// The identifier of no peer.
    pub const NONE: Self = Self(u32::MAX);
}

/// The names of peers, by identifier. A name keeps its identifier for as long as the host runs,
/// and no other name gets it. So an event about a peer that is no longer configured still has its
/// name, and a peer that is configured again has its identifier.
#[derive(Clone, Debug, Default)]
pub struct PeerNames {
    /// In the order of the identifiers.
    names: Vec<Box<str>>,
    /// In the order of the names.
    by_name: Vec<PeerId>,
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

    /// Returns the identifier of a name that was ever configured.
    pub fn id(&self, name: &str) -> Option<PeerId> {
        let place = self.by_name.binary_search_by(|id| self.name(*id).cmp(name));
        self.by_name.get(place.ok()?).copied()
    }

    /// Returns the name of a peer. It is empty for an identifier from elsewhere.
    pub fn name(&self, id: PeerId) -> &str {
        self.names.get(id.0 as usize).map_or("", |name| name)
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
}
