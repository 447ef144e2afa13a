//! The children of an IKE SA, from the exchange that made each until nothing of it can arrive.
//!
//! ```text
//!  Current ── a successor is agreed ──> Replaced ── drained ──> Deleting ── answered ──> Straggling
//!     │                                    └────── deleted by the peer ───────────────────┘  │
//!     ├── deleted by us ──────────────────────────────────────> Deleting                 │
//!     └── deleted by the peer, or the IKE SA ends ──────────────────────────────> gone <─────┘
//! ```
//!
//! Who began the exchange that made the successor deletes the one it replaced (RFC 7296 section
//! 2.8). The other end would do it in the end, so that a peer which forgets does not make us keep
//! keys for ever.

use super::Context;
use crate::child::Terms;
use crate::config::{Lifetimes, Timers};
use crate::directory::Directory;
use crate::event::Event;
use crypto::Rng;
use model::{ChildSaId, Instant, Licence, Mode, Spi, ZoneAgreement};
use std::time::Duration;
use wire::ike::NotifyType;

/// So many of one line that we replaced are drained at once; then the oldest has had its time.
const MOST_DRAINED: usize = 4;

/// Keys are used for a quarter longer than their lifetime, but at least for so long, while the peer
/// cannot or does not want to make new ones.
const LEAST_GRACE: Duration = Duration::from_secs(60);

/// Pauses between requests that the peer refuses grow to this.
const LAST_PAUSE: Duration = Duration::from_secs(300);

/// The children, oldest first.
#[derive(Default)]
pub(crate) struct Children(Vec<Child>);

/// One of them.
pub(crate) struct Child {
    pub(crate) id: ChildSaId,
    /// Which of the peer's it is; `None` for the first.
    pub(crate) name: Option<String>,
    pub(crate) inbound: Spi,
    pub(crate) outbound: Spi,
    pub(crate) agreement: Option<ZoneAgreement>,
    /// The licences of our policy when that was agreed on.
    pub(crate) asked: Vec<Licence>,
    mode: Mode,
    pub(crate) life: Life,
}

/// How far a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// There is no newer one.
    Current(Age),
    /// A newer one has its place; it is deleted then.
    Replaced {
        /// When.
        delete_at: Instant,
        /// Whether it is for us to do it.
        ours: bool,
    },
    /// Its Delete waits to be sent, or for its answer.
    Deleting,
    /// Deleted at both ends; what is under way may arrive until then.
    Straggling(Instant),
}

/// When keys have to be replaced, if ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Age {
    /// When the peer is asked for new ones. `None` while it is being asked.
    pub(crate) renew_at: Option<Instant>,
    /// When they must not be used any longer.
    pub(crate) over_at: Option<Instant>,
    /// Requests in vain.
    failures: u32,
    /// The refusal that was told last.
    told: Option<NotifyType>,
}

/// What a child's time has come for.
pub(crate) enum Due {
    Rekey(ChildSaId),
    Delete(ChildSaId),
    Forget(ChildSaId),
    /// It is too old, and there is no newer one.
    End(ChildSaId),
}

impl Age {
    /// The age of keys made now. Who hands keys to licensed nodes asks first: it alone knows when
    /// the nodes hold the new ones.
    pub(crate) fn begin(
        lifetime: Duration,
        config: &Directory,
        rng: &mut Rng,
        now: Instant,
    ) -> Self {
        if lifetime.is_zero() {
            return Self::default();
        }
        let least = if config.grants { 750 } else { 900 };
        let permille = least + rng.u32() % 100;
        Self {
            renew_at: Some(now + lifetime * permille / 1000),
            over_at: Some(now + lifetime + LEAST_GRACE.max(lifetime / 4)),
            ..Self::default()
        }
    }

    /// The peer could not do it just now, or does not want to: each pause is twice as long as the one
    /// before.
    pub(crate) fn try_again(&mut self, timers: &Timers, rng: &mut Rng, now: Instant) {
        let permille = 1000 + rng.u32() % 1000;
        let pause = timers.retry.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        self.renew_at = Some(now + pause.min(LAST_PAUSE) * permille / 1000);
    }

    /// Whether a refusal is another one than the last that was told.
    pub(crate) fn is_news(&mut self, why: NotifyType) -> bool {
        self.told.replace(why) != Some(why)
    }

    /// New keys are asked for at once. If somebody must not have the old ones any more, they are not
    /// used for long whatever the peer does.
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

    /// Those that have no newer one.
    pub(crate) fn all_current(&self) -> impl Iterator<Item = &Child> {
        let current = |child: &&Child| matches!(child.life, Life::Current(_));
        self.0.iter().filter(current)
    }

    pub(crate) fn all_current_mut(&mut self) -> impl Iterator<Item = &mut Child> {
        let current = |child: &&mut Child| matches!(child.life, Life::Current(_));
        self.0.iter_mut().filter(current)
    }

    /// The one of a name that has no newer one.
    pub(crate) fn current(&self, name: Option<&str>) -> Option<ChildSaId> {
        let mut current = self.all_current();
        let found = current.find(|child| child.name.as_deref() == name);
        found.map(|child| child.id)
    }

    /// Whether they stay where they are: the addresses outside are a part of one.
    pub(crate) fn are_fixed(&self) -> bool {
        self.0.iter().any(|child| child.mode == Mode::Transport)
    }

    /// How many there are, those that go as well.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How long what is under way on any of them may take.
    pub(crate) fn drain_time(&self, timers: &Timers) -> Duration {
        let times = self.0.iter().map(|child| child.drain_time(timers));
        times.max().unwrap_or(timers.drain)
    }

    /// They end with their SA: no new keys are made for them.
    pub(crate) fn stop_ageing(&mut self) {
        for child in &mut self.0 {
            if let Life::Current(age) = &mut child.life {
                *age = Age::default();
            }
        }
    }

    /// Whether none is left that could carry anything.
    pub(crate) fn is_over(&self) -> bool {
        let over = |child: &Child| matches!(child.life, Life::Deleting | Life::Straggling(_));
        self.0.iter().all(over)
    }

    /// One that has no newer one is to be deleted by us; whether there was one.
    pub(crate) fn end(&mut self, id: ChildSaId) -> bool {
        let child = self.get_mut(id);
        let current = child.filter(|child| matches!(child.life, Life::Current(_)));
        current.is_some_and(|child| {
            child.life = Life::Deleting;
            true
        })
    }

    /// Whether one waits to be deleted by us.
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

    /// The one whose packets from us carry an SPI, unless it is deleted.
    pub(crate) fn by_outbound(&mut self, spi: Spi) -> Option<&mut Child> {
        let lives = |child: &&mut Child| !matches!(child.life, Life::Straggling(_));
        self.0
            .iter_mut()
            .filter(lives)
            .find(|child| child.outbound == spi)
    }

    /// Whether a child has no newer one.
    pub(crate) fn is_current(&self, id: ChildSaId) -> bool {
        let current = |child: &Child| child.id == id && matches!(child.life, Life::Current(_));
        self.0.iter().any(current)
    }

    pub(crate) fn add(&mut self, id: ChildSaId, terms: &Terms, age: Age) {
        // There is one, or two for a while.
        self.0.reserve_exact(1);
        self.0.push(Child {
            id,
            name: terms.name.clone(),
            inbound: terms.inbound.spi,
            outbound: terms.outbound.spi,
            agreement: terms.agreement.clone(),
            asked: terms.asked.clone(),
            mode: terms.mode,
            life: Life::Current(age),
        });
    }

    pub(crate) fn remove(&mut self, id: ChildSaId) {
        self.0.retain(|child| child.id != id);
    }

    /// Takes all of them out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Child> {
        self.0.drain(..)
    }

    /// A newer child has its place. `ours`: because we asked for it.
    pub(crate) fn replace(&mut self, id: ChildSaId, ours: bool, timers: &Timers, now: Instant) {
        let Some(child) = self.get_mut(id) else {
            return;
        };
        let drain = child.drain_time(timers);
        // The end that should delete it has this time and as much again.
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

    /// One that was replaced is deleted at both ends: we send nothing more on it.
    pub(crate) fn straggle(&mut self, id: Option<ChildSaId>, ctx: &mut Context<'_>) {
        let until = ctx.now + ctx.config.timers.stragglers;
        if let Some(child) = id.and_then(|id| self.get_mut(id)) {
            child.life = Life::Straggling(until);
            ctx.event(Event::ChildRetired { child: child.id });
        }
    }

    /// What is due, one at a time.
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
    /// Whether its Delete waits to be sent, or for its answer.
    pub(crate) fn is_ending(&self) -> bool {
        self.life == Life::Deleting
    }

    /// How long what is under way on it may take.
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

/// A peer's lifetimes, for a peer that the configuration has.
pub(crate) fn lifetimes(core: &super::Core, config: &Directory) -> Lifetimes {
    core.peer(config)
        .map_or_else(Lifetimes::default, |peer| peer.lifetimes)
}
