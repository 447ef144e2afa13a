//! The child SAs of an IKE SA, from their exchange until no packet of them can arrive.
//!
//! ```text
//!  Current ── a successor is agreed ──> Replaced ── drained ──> Deleting ── answered ──> Straggling
//!     │                                    └────── deleted by the peer ───────────────────┘  │
//!     ├── deleted by us ──────────────────────────────────────> Deleting                 │
//!     └── deleted by the peer, or the IKE SA ends ──────────────────────────────> gone <─────┘
//! ```
//!
//! The end that initiated the replacement deletes the old child SA (RFC 7296 section 2.8). The
//! other end does so after a longer time, so that it need not keep keys forever if the peer
//! forgets.

use crate::child::{Before, ChildTerms};
use crate::config::{Lifetimes, Timers, Unencrypted};
use crate::event::Event;
use crate::extension::path_traffic::{path_of, path_traffic};
use crate::peer_table::PeerTable;
use crate::sa::core::Core;
use crate::sa::turn::Context;
use crypto::Rng;
use model::{ChildSaId, Instant, Licence, Mode, Spi, ZoneAgreement};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::ike::NotifyType;

/// Maximum number of child SAs of one name that we replaced and that are drained at the same time.
/// Beyond that, the oldest is deleted at once.
const MOST_DRAINED: usize = 4;

/// Minimum grace period. If the peer cannot or does not want to rekey, keys are used for a quarter
/// longer than their lifetime, but at least for this long.
const LEAST_GRACE: Duration = Duration::from_secs(60);

/// Maximum delay between rekey requests that the peer refuses.
const LAST_PAUSE: Duration = Duration::from_secs(300);

/// The child SAs, oldest first.
#[derive(Default)]
pub(crate) struct Children(Vec<Child>);

/// A child SA.
pub(crate) struct Child {
    pub(crate) id: ChildSaId,
    /// Name of the child SA; `None` for the first.
    pub(crate) name: Option<String>,
    pub(crate) inbound: Spi,
    pub(crate) outbound: Spi,
    pub(crate) agreement: Option<ZoneAgreement>,
    /// The licences of our policy at the time of the negotiation.
    pub(crate) asked: Vec<Licence>,
    mode: Mode,
    /// True if its packets are encrypted.
    pub(crate) encrypted: bool,
    pub(crate) life: Life,
}

/// The life cycle of a child SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// In use, without a successor.
    Current(Age),
    /// Replaced by a successor, and to be deleted.
    Replaced {
        /// Time of its deletion.
        delete_at: Instant,
        /// True if we initiated the replacement, so that the deletion is our task.
        ours: bool,
    },
    /// Its Delete is queued, or awaits an answer.
    Deleting,
    /// Deleted at both ends. Packets in flight are received until this time.
    Straggling(Instant),
}

/// Times at which keys have to be replaced, if ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Age {
    /// Time of the rekey. `None` while it is in progress.
    pub(crate) renew_at: Option<Instant>,
    /// Time after which the keys must not be used.
    pub(crate) over_at: Option<Instant>,
    /// Number of failed rekeys.
    failures: u32,
    /// The refusal that was reported last.
    told: Option<NotifyType>,
}

/// An action that is due for a child SA.
pub(crate) enum Due {
    Rekey(ChildSaId),
    Delete(ChildSaId),
    Forget(ChildSaId),
    /// The keys of the child SA have expired, and it has no successor.
    End(ChildSaId),
}

impl Age {
    /// Starts the lifetime of new keys. A gateway that distributes keys to licensed nodes rekeys
    /// earlier than its peer: only the gateway knows when the nodes have the new keys.
    pub(crate) fn begin(
        lifetime: Duration,
        config: &PeerTable,
        rng: &mut Rng,
        now: Instant,
    ) -> Self {
        if lifetime.is_zero() {
            return Self::default();
        }
        let least = if config.grants() { 750 } else { 900 };
        let permille = least + rng.u32() % 100;
        Self {
            renew_at: Some(now + lifetime * permille / 1000),
            over_at: Some(now + lifetime + LEAST_GRACE.max(lifetime / 4)),
            ..Self::default()
        }
    }

    /// Ends the keys after this time, and rekeys with this notice.
    pub(crate) fn end_within(&mut self, left: Duration, notice: Duration, now: Instant) {
        let sooner = |at: Option<Instant>, by: Instant| at.map_or(Some(by), |at| Some(at.min(by)));
        self.renew_at = sooner(self.renew_at, now + left.saturating_sub(notice));
        self.over_at = sooner(self.over_at, now + left);
    }

    /// Schedules another attempt after a refusal. The delay doubles with each failure.
    pub(crate) fn try_again(&mut self, timers: &Timers, rng: &mut Rng, now: Instant) {
        let permille = 1000 + rng.u32() % 1000;
        let pause = timers.retry.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        self.renew_at = Some(now + pause.min(LAST_PAUSE) * permille / 1000);
    }

    /// Returns true if a refusal differs from the last one reported.
    pub(crate) fn is_news(&mut self, why: NotifyType) -> bool {
        self.told.replace(why) != Some(why)
    }

    /// Rekeys at once. If a licence was withdrawn, the old keys expire soon, regardless of the
    /// peer.
    pub(crate) fn hasten(&mut self, taken_back: bool, now: Instant) {
        self.renew_at = Some(now);
        if taken_back {
            let soon = now + LEAST_GRACE;
            self.over_at = self.over_at.map_or(Some(soon), |at| Some(at.min(soon)));
        }
    }

    pub(crate) fn next(self) -> Option<Instant> {
        self.renew_at.into_iter().chain(self.over_at).min()
    }
}

impl Children {
    pub(crate) fn ids(&self) -> Vec<ChildSaId> {
        self.0.iter().map(|child| child.id).collect()
    }

    /// Returns the child SAs that send on the path of the IKE SA.
    pub(crate) fn on_path_of_ike(&self) -> Vec<ChildSaId> {
        let is_there =
            |child: &&Child| path_of(child.name.as_deref()).is_none_or(|number| number == 1);
        let there = self.0.iter().filter(is_there);
        there.map(|child| child.id).collect()
    }

    /// Returns the child SAs on a further path, including those that are being replaced or deleted.
    pub(crate) fn on_path(&self, number: u8) -> Vec<ChildSaId> {
        let is_there = |child: &&Child| path_of(child.name.as_deref()) == Some(number);
        let there = self.0.iter().filter(is_there);
        there.map(|child| child.id).collect()
    }

    /// Returns true if there is a child SA with a name that is not deleted at both ends.
    pub(crate) fn has(&self, name: Option<&str>) -> bool {
        let lives = |child: &&Child| !matches!(child.life, Life::Straggling(_));
        let mut living = self.0.iter().filter(lives);
        living.any(|child| child.name.as_deref() == name)
    }

    /// Returns the child SAs without a successor.
    pub(crate) fn all_current(&self) -> impl Iterator<Item = &Child> {
        let current = |child: &&Child| matches!(child.life, Life::Current(_));
        self.0.iter().filter(current)
    }

    pub(crate) fn all_current_mut(&mut self) -> impl Iterator<Item = &mut Child> {
        let current = |child: &&mut Child| matches!(child.life, Life::Current(_));
        self.0.iter_mut().filter(current)
    }

    /// Returns the child SA of a name that has no successor.
    pub(crate) fn current(&self, name: Option<&str>) -> Option<ChildSaId> {
        let mut current = self.all_current();
        let found = current.find(|child| child.name.as_deref() == name);
        found.map(|child| child.id)
    }

    /// Returns the names of the child SAs that have no successor.
    pub(crate) fn current_names(&self) -> BTreeSet<Option<String>> {
        self.all_current().map(|child| child.name.clone()).collect()
    }

    /// Schedules another rekey of a child SA whose rekey failed.
    pub(crate) fn renew_later(&mut self, old: Option<ChildSaId>, ctx: &mut Context<'_>) {
        let child = old.and_then(|old| self.get_mut(old));
        if let Some(Life::Current(age)) = child.map(|child| &mut child.life)
            && age.over_at.is_some()
            && age.renew_at.is_none()
        {
            age.try_again(&ctx.config.timers, ctx.rng, ctx.now);
        }
    }

    /// Returns true if one is bound to the outer addresses, and moves with MOBIKE-X alone.
    pub(crate) fn are_fixed(&self) -> bool {
        self.0.iter().any(|child| child.mode == Mode::Transport)
    }

    /// Returns the names of those that are bound to the outer addresses.
    pub(crate) fn fixed(&self) -> impl Iterator<Item = Option<&str>> {
        let fixed = self.0.iter().filter(|child| child.mode == Mode::Transport);
        fixed.map(|child| child.name.as_deref())
    }

    /// Returns the child SAs in a mode that have no successor.
    pub(crate) fn current_in(&self, mode: Mode) -> Vec<ChildSaId> {
        let current = self.all_current().filter(|child| child.mode == mode);
        current.map(|child| child.id).collect()
    }

    /// Returns the number of child SAs, including those that are being replaced or deleted.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the maximum time that packets in flight on any of them may take.
    pub(crate) fn drain_time(&self, timers: &Timers) -> Duration {
        let times = self.0.iter().map(|child| child.drain_time(timers));
        times.max().unwrap_or(timers.drain)
    }

    /// Stops rekeying, as the child SAs end with their IKE SA.
    pub(crate) fn stop_ageing(&mut self) {
        for child in &mut self.0 {
            if let Life::Current(age) = &mut child.life {
                *age = Age::default();
            }
        }
    }

    /// Returns true if no child SA is left that could carry traffic. One with the traffic of a path
    /// does not stay without the others.
    pub(crate) fn is_over(&self) -> bool {
        let over = |child: &Child| {
            let has_ended = matches!(child.life, Life::Deleting | Life::Straggling(_));
            has_ended || path_traffic(child.name.as_deref()).is_some()
        };
        self.0.iter().all(over)
    }

    /// Marks a child SA without a successor for deletion by us. Returns true if there was one.
    pub(crate) fn end(&mut self, id: ChildSaId) -> bool {
        let child = self.get_mut(id);
        let current = child.filter(|child| matches!(child.life, Life::Current(_)));
        current.is_some_and(|child| {
            child.life = Life::Deleting;
            true
        })
    }

    /// Returns true if a child SA is marked for deletion by us.
    pub(crate) fn is_deleting(&self, id: ChildSaId) -> bool {
        let deleting = |child: &Child| child.id == id && child.life == Life::Deleting;
        self.0.iter().any(deleting)
    }

    pub(crate) fn get(&self, id: ChildSaId) -> Option<&Child> {
        self.0.iter().find(|child| child.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: ChildSaId) -> Option<&mut Child> {
        self.0.iter_mut().find(|child| child.id == id)
    }

    /// Returns the child SA with an outbound SPI, unless it is deleted.
    pub(crate) fn by_outbound(&mut self, spi: Spi) -> Option<&mut Child> {
        let lives = |child: &&mut Child| !matches!(child.life, Life::Straggling(_));
        self.0
            .iter_mut()
            .filter(lives)
            .find(|child| child.outbound == spi)
    }

    /// Returns true if a child SA without a successor sends with this SPI.
    pub(crate) fn sends_on(&self, spi: Spi) -> bool {
        self.all_current().any(|child| child.outbound == spi)
    }

    /// Returns true if a child SA has no successor.
    pub(crate) fn is_current(&self, id: ChildSaId) -> bool {
        let current = |child: &Child| child.id == id && matches!(child.life, Life::Current(_));
        self.0.iter().any(current)
    }

    pub(crate) fn add(&mut self, id: ChildSaId, terms: &ChildTerms, age: Age) {
        // There is one, or briefly two.
        self.0.reserve_exact(1);
        self.0.push(Child {
            id,
            name: terms.name.clone(),
            inbound: terms.inbound.spi,
            outbound: terms.outbound.spi,
            agreement: terms.agreement.clone(),
            asked: terms.asked.clone(),
            mode: terms.mode,
            encrypted: !terms.is_unencrypted(),
            life: Life::Current(age),
        });
    }

    /// Rekeys the child SAs without encryption now, and ends them after the notice.
    pub(crate) fn end_unencrypted(&mut self, now: Instant) {
        for child in self.0.iter_mut().filter(|child| !child.encrypted) {
            if let Life::Current(age) = &mut child.life {
                age.end_within(Unencrypted::NOTICE, Unencrypted::NOTICE, now);
            }
        }
    }

    pub(crate) fn remove(&mut self, id: ChildSaId) {
        self.0.retain(|child| child.id != id);
    }

    /// Removes and returns all child SAs.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Child> {
        self.0.drain(..)
    }

    /// Marks a child SA as replaced. `ours`: we initiated the replacement.
    pub(crate) fn replace(&mut self, id: ChildSaId, ours: bool, timers: &Timers, now: Instant) {
        let Some(child) = self.get_mut(id) else {
            return;
        };
        let drain = child.drain_time(timers);
        // The end that should delete it has this time, and as much again.
        let delete_at = now
            + if ours {
                drain
            } else {
                timers.drain_licensed * 2
            };
        child.life = Life::Replaced { delete_at, ours };
        let line = child.name.clone();
        self.hasten(line.as_deref(), now);
    }

    /// Marks a replaced child SA as deleted at both ends. We send nothing more on it.
    pub(crate) fn keep_for_stragglers(&mut self, id: Option<ChildSaId>, ctx: &mut Context<'_>) {
        let until = ctx.now + ctx.config.timers.stragglers;
        if let Some(child) = id.and_then(|id| self.get_mut(id)) {
            child.life = Life::Straggling(until);
            ctx.event(Event::ChildRetired { child: child.id });
        }
    }

    /// Returns the next action that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        let due = |child: &&mut Child| child.next().is_some_and(|at| at <= now);
        let child = self.0.iter_mut().find(due)?;
        Some(match &mut child.life {
            Life::Current(age) if age.over_at.is_some_and(|at| at <= now) => {
                *age = Age::default();
                Due::End(child.id)
            }
            Life::Current(age) => {
                age.renew_at = None;
                Due::Rekey(child.id)
            }
            Life::Replaced { .. } | Life::Deleting => {
                child.life = Life::Deleting;
                Due::Delete(child.id)
            }
            Life::Straggling(_) => Due::Forget(child.id),
        })
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.iter().filter_map(Child::next).min()
    }

    fn hasten(&mut self, line: Option<&str>, now: Instant) {
        let drained = |child: &&mut Child| {
            let ours = matches!(child.life, Life::Replaced { ours: true, .. });
            ours && child.name.as_deref() == line
        };
        let many = self.0.iter_mut().filter(drained).count();
        let oldest = self.0.iter_mut().filter(drained);
        for child in oldest.take(many.saturating_sub(MOST_DRAINED)) {
            let (delete_at, ours) = (now, true);
            child.life = Life::Replaced { delete_at, ours };
        }
    }
}

impl Child {
    /// Returns what a successor depends on.
    pub(crate) fn before(&self) -> Before<'_> {
        Before {
            agreement: self.agreement.as_ref(),
            asked: &self.asked,
            encrypted: self.encrypted,
        }
    }

    /// Returns true if its Delete is queued or awaits an answer.
    pub(crate) fn is_ending(&self) -> bool {
        self.life == Life::Deleting
    }

    /// Returns the maximum time that packets in flight on it may take.
    fn drain_time(&self, timers: &Timers) -> Duration {
        let agreement = self.agreement.as_ref();
        match agreement.is_some_and(|agreement| !agreement.licences.is_empty()) {
            true => timers.drain_licensed,
            false => timers.drain,
        }
    }

    fn next(&self) -> Option<Instant> {
        match self.life {
            Life::Current(age) => age.next(),
            Life::Replaced { delete_at, .. } => Some(delete_at),
            Life::Deleting => None,
            Life::Straggling(until) => Some(until),
        }
    }
}

/// Returns the lifetimes of a peer, or the defaults if the peer is no longer configured.
pub(crate) fn lifetimes(core: &Core, config: &PeerTable) -> Lifetimes {
    core.peer(config)
        .map_or_else(Lifetimes::default, |peer| peer.lifetimes)
}
