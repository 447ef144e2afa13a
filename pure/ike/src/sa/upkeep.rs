//! Which children an IKE SA should have, and when the peer is asked for those that are missing.
//!
//! Who began the IKE SA sees to the children of its configuration, and to those that an SA had whose
//! place this one has taken; beyond that each end to what its operator said. What is refused, or
//! deleted by the peer, is asked for again after growing pauses; everything else stays as it is.

use super::cloning::Aside;
use super::established::Established;
use super::task::Task;
use super::{Context, Core};
use crate::event::Event;
use crate::extension::{resource, slot};
use crate::policy::Policy;
use model::{ChildSaId, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::ike::NotifyType;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// What is known of the children beside themselves.
#[derive(Default)]
pub(crate) struct Upkeep {
    /// Those of the SA whose place this one has taken.
    inherited: BTreeSet<Option<String>>,
    pauses: BTreeMap<Option<String>, Pause>,
    /// Whether the peer makes no more children for the same traffic.
    pub(super) is_full: bool,
    /// Whether the peer refuses a key exchange for a child, which was told.
    pub(super) is_without_exchange: bool,
    /// When the next pause is over.
    pub(super) next: Option<Instant>,
}

struct Pause {
    failures: u32,
    until: Instant,
    /// The refusal that was told last.
    told: Option<NotifyType>,
}

impl Upkeep {
    /// One more failure.
    fn put_off(&mut self, name: Option<&str>, now: Instant) -> u32 {
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
        failures
    }

    /// Whether a refusal is another one than the last that was told, not long ago.
    pub(super) fn is_news(&mut self, name: Option<&str>, why: NotifyType) -> bool {
        let pause = self.pauses.get_mut(&name.map(str::to_owned));
        pause.is_none_or(|pause| pause.told.replace(why) != Some(why))
    }

    fn until(&self, name: Option<&str>) -> Option<Instant> {
        let pause = self.pauses.get(&name.map(str::to_owned))?;
        Some(pause.until)
    }
}

impl Established {
    /// Asks for the children that are wanted and missing, if it is time.
    pub(crate) fn tend(&mut self, core: &mut Core, ctx: &mut Context<'_>) {
        self.upkeep.next = None;
        let served = self.has_heir || self.aside == Some(Aside::Theirs);
        if self.is_leaving() || (served && ctx.is_acquainted()) {
            return;
        }
        let Some(peer) = core.peer(ctx.config) else {
            return;
        };
        for policy in peer.policies() {
            if !self.is_missing(&policy, &peer.name, ctx) {
                continue;
            }
            match self.upkeep.until(policy.name) {
                Some(until) if ctx.now < until => {
                    let next = self.upkeep.next.into_iter().chain([until]);
                    self.upkeep.next = next.min();
                }
                _ => self.ask_for_new(policy.name, core, ctx),
            }
        }
    }

    /// Whether all that was asked for is there, or was refused.
    pub(crate) fn is_tended(&self) -> bool {
        !self
            .queue
            .tasks()
            .any(|task| matches!(task, Task::NewChild(_)))
    }

    /// This SA has the place of another one with these children; what that one had is asked for. Slots are for who
    /// wants them to ask for.
    pub(crate) fn inherit_children(&mut self, mut names: BTreeSet<Option<String>>) {
        names.retain(|name| !slot::is_slot(name.as_deref()));
        self.upkeep.inherited = names;
    }

    /// Whether it has all of those without which something would not be carried.
    pub(super) fn has_inherited(&self) -> bool {
        let current = self.current_names();
        let has = |name: &Option<String>| {
            resource::is_additional(name.as_deref()) || current.contains(name)
        };
        self.upkeep.inherited.iter().all(has)
    }

    /// A child is asked for at once.
    pub(crate) fn retry(&mut self, name: Option<&str>) {
        self.upkeep.pauses.remove(&name.map(str::to_owned));
    }

    /// A child did not come about, or was deleted. Whether that was so before, not long ago.
    pub(super) fn put_off(&mut self, name: Option<&str>, ctx: &Context<'_>) -> bool {
        self.upkeep.put_off(name, ctx.now) > 0
    }

    /// Deletes a child that is not wanted any more.
    pub(crate) fn drop_child(
        &mut self,
        name: Option<&str>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        self.upkeep.inherited.remove(&name.map(str::to_owned));
        self.retry(name);
        self.close_opening(name);
        if let Some(id) = self.children.current(name) {
            self.delete_current(id, core, ctx);
        }
    }

    /// Nothing is sent any more on a child that has no successor; what is under way to us may come.
    pub(super) fn delete_current(&mut self, id: ChildSaId, core: &mut Core, ctx: &mut Context<'_>) {
        if self.children.end(id) {
            self.note_room(id);
            ctx.event(Event::ChildRetired { child: id });
            self.delete_child(id, core, ctx);
        }
    }

    /// The peer does not have a child any more.
    pub(crate) fn lose_child(&mut self, id: ChildSaId, ctx: &mut Context<'_>) {
        self.note_room(id);
        self.children.remove(id);
        ctx.event(Event::ChildDown {
            child: id,
            why: None,
        });
    }

    /// A child goes: if it is one of several for the same traffic, the peer may make another one.
    fn note_room(&mut self, id: ChildSaId) {
        let name = self.children.get(id).map(|child| child.name.as_deref());
        if name.and_then(resource::number).is_some() {
            self.upkeep.is_full = false;
        }
    }

    /// Whether the peer may be asked for a child: for one of several only if it said that it makes these,
    /// and "the fallback SA" is there; for a slot only beside a first child with zones.
    fn is_possible(&self, name: Option<&str>) -> bool {
        let first = self.children.current(None);
        let first = first.and_then(|first| self.children.get(first));
        if slot::is_slot(name) {
            return first.is_some_and(|first| first.agreement.is_some());
        }
        let several = self.resources && !self.upkeep.is_full && first.is_some();
        several || !resource::is_additional(name)
    }

    fn is_missing(&self, policy: &Policy<'_>, peer: &str, ctx: &Context<'_>) -> bool {
        let name = policy.name;
        let inherited = || {
            self.upkeep
                .inherited
                .iter()
                .any(|old| old.as_deref() == name)
        };
        let ours = || self.contact.ours && (policy.auto || inherited());
        let asked =
            |task: &Task| matches!(task, Task::NewChild(new) if new.name.as_deref() == name);
        self.is_possible(name)
            && ctx.wishes.of(peer, name).unwrap_or_else(ours)
            && self.children.current(name).is_none()
            && !self.is_opening(name)
            && !self.queue.tasks().any(asked)
    }
}
