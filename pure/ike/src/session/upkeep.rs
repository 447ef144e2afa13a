//! The times of requests for child SAs that are missing.

use crate::config;
use crate::extension::path_traffic::is_of_paths;
use model::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::ike::NotifyType;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// Additional state about child SAs.
#[derive(Default)]
pub(crate) struct Upkeep {
    /// Names of the child SAs of the SA that this one has replaced.
    pub(crate) inherited: BTreeSet<Option<String>>,
    pauses: BTreeMap<Option<String>, Pause>,
    /// True if the peer creates no more child SAs for the same traffic.
    pub(crate) is_full: bool,
    /// True if the peer refuses key exchanges for child SAs, which has been reported.
    pub(crate) is_without_exchange: bool,
    /// Time at which the next delay is over.
    pub(crate) next: Option<Instant>,
}

struct Pause {
    failures: u32,
    until: Instant,
    /// The refusal that was reported last.
    told: Option<NotifyType>,
}

impl Upkeep {
    /// Delays the next request for a child SA that was refused or deleted. Returns true if this
    /// happened before recently.
    pub(crate) fn put_off(&mut self, name: Option<&str>, now: Instant) -> bool {
        let before = self.pauses.get(&name.map(str::to_owned));
        let recent = before.filter(|pause| now < pause.until + LAST_PAUSE);
        let failures = recent.map_or(0, |pause| pause.failures);
        let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(6));
        let pause = Pause {
            failures: failures.saturating_add(1),
            until: now + pause.min(LAST_PAUSE),
            told: recent.and_then(|pause| pause.told),
        };
        self.pauses.insert(name.map(str::to_owned), pause);
        failures > 0
    }

    /// Returns true if a refusal differs from the last one reported recently.
    pub(crate) fn is_news(&mut self, name: Option<&str>, why: NotifyType) -> bool {
        let pause = self.pauses.get_mut(&name.map(str::to_owned));
        pause.is_none_or(|pause| pause.told.replace(why) != Some(why))
    }

    pub(crate) fn until(&self, name: Option<&str>) -> Option<Instant> {
        let pause = self.pauses.get(&name.map(str::to_owned))?;
        Some(pause.until)
    }

    /// Allows a child SA to be requested at once.
    pub(crate) fn retry(&mut self, name: Option<&str>) {
        self.pauses.remove(&name.map(str::to_owned));
    }

    /// Requests the child SAs with these names, which an SA had that this one replaces. Slots and
    /// further paths are left to the caller.
    pub(crate) fn inherit(&mut self, mut names: BTreeSet<Option<String>>) {
        names.retain(|name| {
            let name = name.as_deref();
            !config::is_slot(name) && !is_of_paths(name)
        });
        self.inherited = names;
    }
}
