//! The searches of all paths, each with the child SAs that send there.

use super::search::Search;
use model::{ChildSaId, Instant, Path};
use std::collections::{BTreeMap, BTreeSet};

/// The searches, with an index by time.
#[derive(Default)]
pub(super) struct Searches {
    all: BTreeMap<Path, Searching>,
    /// Times of the next steps.
    due: BTreeSet<(Instant, Path)>,
    /// Paths whose MTU the driver should ask the system for.
    wanted: BTreeSet<Path>,
}

/// The search of one path.
pub(super) struct Searching {
    pub search: Search,
    /// The child SAs on the path.
    users: BTreeSet<ChildSaId>,
    /// The time of its next step, if it has one.
    due: Option<Instant>,
    /// The result that was reported to the operator.
    told: Option<u16>,
}

impl Searches {
    pub fn get(&self, path: Path) -> Option<&Searching> {
        self.all.get(&path)
    }

    pub fn get_mut(&mut self, path: Path) -> Option<&mut Searching> {
        self.all.get_mut(&path)
    }

    /// Returns true if the search of a path is that of a child SA.
    pub fn has(&self, path: Path, id: ChildSaId) -> bool {
        let entry = self.all.get(&path);
        entry.is_some_and(|entry| entry.users.contains(&id))
    }

    /// Returns the child SAs of a path's search, the oldest first.
    pub fn users(&self, path: Path) -> impl Iterator<Item = ChildSaId> {
        let entry = self.all.get(&path);
        entry.into_iter().flat_map(|entry| &entry.users).copied()
    }

    /// Adds a child SA to the search of a path, which begins if it is the first.
    pub fn join(&mut self, path: Path, id: ChildSaId, search: impl FnOnce() -> Search) {
        let wanted = &mut self.wanted;
        let entry = self.all.entry(path).or_insert_with(|| {
            wanted.insert(path);
            Searching {
                search: search(),
                users: BTreeSet::new(),
                due: None,
                told: None,
            }
        });
        entry.users.insert(id);
    }

    /// Removes a child SA from the search of a path, which ends with the last.
    pub fn leave(&mut self, path: Path, id: ChildSaId) {
        let Some(entry) = self.all.get_mut(&path) else {
            return;
        };
        entry.users.remove(&id);
        if entry.users.is_empty() {
            let due = entry.due;
            self.all.remove(&path);
            self.wanted.remove(&path);
            if let Some(at) = due {
                self.due.remove(&(at, path));
            }
        }
    }

    /// Enters a search that took a step into the index by time.
    pub fn schedule(&mut self, path: Path) {
        let Some(entry) = self.all.get_mut(&path) else {
            return;
        };
        let next = entry.search.poll_timeout();
        if let Some(before) = std::mem::replace(&mut entry.due, next) {
            self.due.remove(&(before, path));
        }
        self.due.extend(next.map(|at| (at, path)));
    }

    /// Returns the next path whose search has a step to take.
    pub fn pop_due(&mut self, now: Instant) -> Option<Path> {
        let (_, path) = self.due.first().filter(|(at, _)| *at <= now)?;
        let path = *path;
        self.due.pop_first();
        Some(path)
    }

    /// Returns the next path whose MTU the system should be asked for.
    pub fn pop_wanted(&mut self) -> Option<Path> {
        self.wanted.pop_first()
    }

    /// Has the system asked for the MTUs of all paths.
    pub fn want_all(&mut self) {
        self.wanted.extend(self.all.keys());
    }

    /// Returns the time of the next step, or of the next question to the system.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let now = (!self.wanted.is_empty()).then_some(Instant::ZERO);
        now.or(self.due.first().map(|(at, _)| *at))
    }
}

impl Searching {
    /// Returns the result if it is new to the operator, who knows the MTU of the interface.
    pub fn take_news(&mut self) -> Option<u16> {
        let known = self.told.or(self.search.interface());
        let news = self.search.result();
        let news = news.filter(|result| Some(*result) != known);
        self.told = news.or(self.told);
        news
    }
}
