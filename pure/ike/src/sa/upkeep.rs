//! The child SAs that an IKE SA should have, and the times of requests for missing ones.
//!
//! The initiator of the IKE SA creates the child SAs of its configuration, and those of an SA that
//! this one has replaced. In addition, each end creates those that its operator opened. A child SA
//! that the peer refused or deleted is requested again after growing delays. Everything else stays
//! up.

use super::cloning::Aside;
use super::established::Established;
use super::task::Task;
use super::{Context, Turn};
use crate::config;
use crate::event::Event;
use crate::extension::resource;
use crate::policy::Policy;
use model::{ChildSaId, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::ike::NotifyType;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// Additional state about child SAs.
#[derive(Default)]
pub(crate) struct Upkeep {
    /// Names of the child SAs of the SA that this one has replaced.
    inherited: BTreeSet<Option<String>>,
    pauses: BTreeMap<Option<String>, Pause>,
    /// True if the peer creates no more child SAs for the same traffic.
    pub(super) is_full: bool,
    /// True if the peer refuses key exchanges for child SAs, which has been reported.
    pub(super) is_without_exchange: bool,
    /// Time at which the next delay is over.
    pub(super) next: Option<Instant>,
}

struct Pause {
    failures: u32,
    until: Instant,
    /// The refusal that was reported last.
    told: Option<NotifyType>,
}

impl Upkeep {
    /// Records a failure. Returns the number of earlier ones.
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

    /// Returns true if a refusal differs from the last one reported recently.
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
    /// Requests the wanted child SAs that are missing, if it is time.
    pub(crate) fn maintain(&mut self, turn: &mut Turn<'_, '_>) {
        self.upkeep.next = None;
        let served = self.has_successor || self.aside == Some(Aside::Theirs);
        if self.is_leaving() || (served && turn.ctx.is_acquainted()) {
            return;
        }
        let Some(peer) = turn.core.peer(turn.ctx.config) else {
            return;
        };
        for policy in peer.policies() {
            if !self.is_missing(&policy, &peer.name, turn.ctx) {
                continue;
            }
            match self.upkeep.until(policy.name) {
                Some(until) if turn.ctx.now < until => {
                    let next = self.upkeep.next.into_iter().chain([until]);
                    self.upkeep.next = next.min();
                }
                _ => self.ask_for_new(policy.name, turn),
            }
        }
    }

    /// Returns true if no request for a new child SA is queued or outstanding.
    pub(crate) fn is_tended(&self) -> bool {
        !self
            .queue
            .tasks()
            .any(|task| matches!(task, Task::NewChild(_)))
    }

    /// Requests the child SAs with these names, which an SA had that this one replaces. Slots are
    /// left to the caller.
    pub(crate) fn inherit_children(&mut self, mut names: BTreeSet<Option<String>>) {
        names.retain(|name| !config::is_slot(name.as_deref()));
        self.upkeep.inherited = names;
    }

    /// Returns true if the SA has all child SAs that its traffic needs.
    pub(super) fn has_inherited(&self) -> bool {
        let current = self.current_names();
        let has = |name: &Option<String>| {
            resource::is_additional(name.as_deref()) || current.contains(name)
        };
        self.upkeep.inherited.iter().all(has)
    }

    /// Allows a child SA to be requested at once.
    pub(crate) fn retry(&mut self, name: Option<&str>) {
        self.upkeep.pauses.remove(&name.map(str::to_owned));
    }

    /// Delays the next request for a child SA that was refused or deleted. Returns true if this
    /// happened before recently.
    pub(super) fn put_off(&mut self, name: Option<&str>, ctx: &Context<'_>) -> bool {
        self.upkeep.put_off(name, ctx.now) > 0
    }

    /// Deletes a child SA that is no longer wanted.
    pub(crate) fn drop_child(&mut self, name: Option<&str>, turn: &mut Turn<'_, '_>) {
        self.upkeep.inherited.remove(&name.map(str::to_owned));
        self.retry(name);
        self.close_opening(name);
        if let Some(id) = self.children.current(name) {
            self.delete_current(id, turn);
        }
    }

    /// Deletes a child SA without a successor. Nothing more is sent on it; packets in flight to us
    /// may arrive.
    pub(super) fn delete_current(&mut self, id: ChildSaId, turn: &mut Turn<'_, '_>) {
        if self.children.end(id) {
            self.note_room(id);
            turn.ctx.event(Event::ChildRetired { child: id });
            self.delete_child(id, turn);
        }
    }

    /// Removes a child SA that the peer no longer has.
    pub(crate) fn lose_child(&mut self, id: ChildSaId, ctx: &mut Context<'_>) {
        self.note_room(id);
        self.children.remove(id);
        ctx.event(Event::ChildDown {
            child: id,
            why: None,
        });
    }

    /// Notes the end of a child SA. If it is one of several for the same traffic, the peer may
    /// accept another one.
    fn note_room(&mut self, id: ChildSaId) {
        let name = self.children.get(id).map(|child| child.name.as_deref());
        if name.and_then(resource::number).is_some() {
            self.upkeep.is_full = false;
        }
    }

    /// Returns true if the peer may be asked for a child SA. One of several for the same traffic
    /// requires the peer's support, and "the fallback SA". A slot requires a first child SA with
    /// zones.
    fn is_possible(&self, name: Option<&str>) -> bool {
        let first = self.children.current(None);
        let first = first.and_then(|first| self.children.get(first));
        if config::is_slot(name) {
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
            && ctx.overrides.of(peer, name).unwrap_or_else(ours)
            && self.children.current(name).is_none()
            && !self.is_opening(name)
            && !self.queue.tasks().any(asked)
    }
}
