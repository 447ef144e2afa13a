//! Hand-overs without a pause, and the measurement of ways that leads to them.
//!
//! The current way and the others are measured in turn, at a low rate. Once a request on the
//! current way is lost, the rate is ten times as high until the way is known to be good or bad.
//!
//! A way is left for the one that the routes or an operator prefer, or because it fades or its
//! signal is weak. Without a way that the routes prefer, the quicker of two others is used. Each
//! decision has a hysteresis: a way that is preferred, or taken instead of one with a weak signal,
//! has to exist for a while, for longer after each move that follows another one soon; a way that
//! faded has to answer for a while, for longer each time; a way whose signal is good again counts
//! as new; a quicker way has to be quicker by a quarter for a while.
//!
//! Loss counts for more than a signal: a way that fades is left for one with a weak signal that
//! answers, if there is no other.

use crate::paths::{Candidate, Standing, Way};
use model::{Carrier, Instant, Path};
use std::net::IpAddr;
use std::time::Duration;

/// Time that a way has to exist before it is preferred, or taken instead of a weak one. It doubles
/// with each move that follows another one within [`CALM`], [`MOST_FLAPS`] times at most.
const STEADY: Duration = Duration::from_secs(2);
pub(crate) const CALM: Duration = Duration::from_secs(60);
const MOST_FLAPS: u32 = 6;

/// Time for which another way has to be quicker.
const QUICKER: Duration = Duration::from_secs(30);

/// Time after which a measurement without a report is given up.
const UNREPORTED: Duration = Duration::from_secs(5);

/// Time after which a hand-over without a report is given up.
const OVERDUE: Duration = Duration::from_secs(90);

/// Pause after a hand-over for which the peer had no time.
const BUSY: Duration = Duration::from_secs(2);

/// Factor by which the rate rises on a doubtful way, and the shortest interval.
const HASTE: u32 = 10;
const SHORTEST: Duration = Duration::from_millis(100);

/// The reason for the path of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The system's routes prefer it.
    Route,
    /// An operator asked for it.
    Asked,
    /// The way before lost this share of the requests, in per cent.
    Faded(u8),
    /// The way before had a weak signal.
    Weak,
    /// The path before did not answer.
    Silent,
    /// It is quicker than the way before, and the routes prefer neither.
    Quicker,
}

/// The reason for which a hand-over did not take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer had no time.
    Busy,
    /// The peer refused it.
    Refused,
    /// The new path did not carry the tunnel.
    Silent,
}

/// The fate of a request on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was answered after this time.
    Answered(Duration),
    /// It, or the answer, was lost.
    Lost,
    /// It was not sent, or the answer may be to another transmission.
    Unknown,
}

/// The state of a tunnel that may be handed over.
#[derive(Clone, Debug)]
pub(crate) struct Soft {
    /// Interval at which the current way is measured; zero if none is.
    every: Duration,
    /// Time of the next measurement, and whether it is of the current way.
    at: Instant,
    is_current_next: bool,
    /// Number of measurements of other ways.
    others: usize,
    handing: Option<Handing>,
    /// Time before which nothing is handed over.
    rests_until: Instant,
    /// Time at which a preferred way will have existed for long enough, or the pause ends.
    steady_at: Option<Instant>,
    /// A quicker way, with the time since which it has been.
    quicker: Option<(Way, Instant)>,
    taken: Instant,
    flaps: u32,
}

/// A hand-over in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handing {
    pub(crate) to: Path,
    pub(crate) why: Why,
    /// True if a move with a pause is the alternative.
    pub(crate) or_hard: bool,
    until: Instant,
}

/// The ways among which a decision is made.
pub(crate) struct View<'a> {
    pub(crate) current: Path,
    pub(crate) candidates: &'a [Candidate],
    pub(crate) chosen: Option<IpAddr>,
}

impl Soft {
    pub(crate) const fn new(every: Duration, now: Instant) -> Self {
        Self {
            every,
            at: now,
            is_current_next: true,
            others: 0,
            handing: None,
            rests_until: now,
            steady_at: None,
            quicker: None,
            taken: now,
            flaps: 0,
        }
    }

    // Hand-overs.

    pub(crate) const fn handing(&self) -> Option<Handing> {
        self.handing
    }

    pub(crate) fn begin(&mut self, to: Path, why: Why, or_hard: bool, now: Instant) {
        self.handing = Some(Handing {
            to,
            why,
            or_hard,
            until: now + OVERDUE,
        });
    }

    /// Ends a hand-over that did not take place.
    pub(crate) fn end(&mut self, why: Failure, now: Instant) -> Option<Handing> {
        if why == Failure::Busy {
            self.rests_until = now + BUSY;
            self.steady_at = Some(self.rests_until);
        }
        self.handing.take()
    }

    /// Notes that the tunnel takes a path.
    pub(crate) fn settle(&mut self, now: Instant) {
        let soon = now < self.taken + CALM;
        self.flaps = if soon { self.flaps + 1 } else { 0 }.min(MOST_FLAPS);
        (self.taken, self.handing, self.quicker) = (now, None, None);
    }

    /// Returns the way that the tunnel should be handed over to, with the reason.
    pub(crate) fn target(&mut self, view: &View<'_>, now: Instant) -> Option<(Candidate, Why)> {
        self.steady_at = Some(self.rests_until).filter(|until| now < *until);
        if self.handing.is_some() || self.steady_at.is_some() {
            return None;
        }
        let here = view.here()?;
        if let Some(fault) = here.fault() {
            let other = view.alternative(here, !self.every.is_zero())?;
            // Loss does not wait.
            let goes = fault != Why::Weak || self.is_steady(other, now);
            return goes.then_some((other, fault));
        }
        match view.preferred() {
            Some((way, _)) if way.is(here.way, here.carrier) => None,
            Some((way, why)) => self.is_steady(way, now).then_some((way, why)),
            None => self.quicker(here, view, now),
        }
    }

    /// Returns true if a way has existed for long enough, with a signal that is not weak. Otherwise
    /// `steady_at` is the time at which it will have.
    fn is_steady(&mut self, way: Candidate, now: Instant) -> bool {
        let steady_at = way.since + STEADY * (1 << self.flaps.saturating_sub(1));
        self.steady_at = (now < steady_at).then_some(steady_at);
        self.steady_at.is_none()
    }

    fn quicker(
        &mut self,
        here: Candidate,
        view: &View<'_>,
        now: Instant,
    ) -> Option<(Candidate, Why)> {
        let other = view.cheapest(here, true).filter(|other| {
            let costs = other.quality.cost().zip(here.quality.cost());
            costs.is_some_and(|(other, here)| other * 4 < here * 3)
        });
        let before = self.quicker.take();
        let other = other?;
        let since = before.filter(|(way, _)| *way == other.way);
        let (_, since) = *self
            .quicker
            .insert((other.way, since.map_or(now, |(_, at)| at)));
        (since + QUICKER <= now).then_some((other, Why::Quicker))
    }

    // Measurement.

    /// Returns the time of the next action, if any is due by itself.
    pub(crate) fn poll_timeout(&self, view: &View<'_>) -> Option<Instant> {
        if let Some(handing) = self.handing {
            return Some(handing.until);
        }
        let measures = !self.every.is_zero() && view.measured().nth(1).is_some();
        let measured_at = measures.then_some(self.at);
        measured_at.into_iter().chain(self.steady_at).min()
    }

    /// Returns the next way to measure, if its time has come.
    pub(crate) fn next(&mut self, view: &View<'_>, now: Instant) -> Option<Candidate> {
        self.handing = self.handing.filter(|handing| now < handing.until);
        let is_due = self.handing.is_none() && !self.every.is_zero() && self.at <= now;
        if !is_due || view.measured().nth(1).is_none() {
            return None;
        }
        self.at = now + UNREPORTED;
        let is_current = self.is_current_next;
        self.is_current_next = !is_current;
        let others = view.measured().filter(|way| !way.leads_along(view.current));
        let count = others.clone().count();
        if is_current && let Some(here) = view.here() {
            return Some(here);
        }
        self.others = self.others.wrapping_add(1);
        others.clone().nth(self.others % count.max(1))
    }

    /// Notes that the fate of a request is known. The current way may be doubtful.
    pub(crate) fn note_measured(&mut self, is_doubtful: bool, now: Instant) {
        // The current way and the others take turns.
        let pause = match is_doubtful {
            true => self.shortest_pause(),
            false => self.every / 2,
        };
        self.at = now + pause;
    }

    /// Has the next measurement take place soon, as the current way is doubtful.
    pub(crate) fn hasten(&mut self, now: Instant) {
        self.at = self.at.min(now + self.shortest_pause());
    }

    fn shortest_pause(&self) -> Duration {
        (self.every / HASTE).max(SHORTEST) / 2
    }
}

impl View<'_> {
    /// Returns the current way, if it exists.
    pub(crate) fn here(&self) -> Option<Candidate> {
        let mut candidates = self.candidates.iter();
        candidates
            .find(|way| way.leads_along(self.current))
            .copied()
    }

    /// Returns the ways that are measured: those for datagrams.
    fn measured(&self) -> impl Iterator<Item = Candidate> + Clone {
        let ways = self.candidates.iter().copied();
        ways.filter(|way| way.carrier == Carrier::Udp)
    }

    /// Returns true if the ways should be measured more often: the current one loses requests, or
    /// has a weak signal while others were not measured for long enough.
    pub(crate) fn is_doubtful(&self) -> bool {
        let mut strong = self.strong();
        self.here().is_some_and(|here| {
            here.quality.is_doubtful() || here.is_weak && strong.any(|way| !way.quality.answers())
        })
    }

    fn sound(&self) -> impl Iterator<Item = Candidate> + Clone {
        let sound = |way: &Candidate| way.standing == Standing::Fresh && !way.quality.fades();
        self.measured().filter(sound)
    }

    /// Returns the sound ways without a weak signal.
    fn strong(&self) -> impl Iterator<Item = Candidate> + Clone {
        self.sound().filter(|way| !way.is_weak)
    }

    /// Returns the operator's way, or else that which the routes prefer, if it has no fault.
    fn preferred(&self) -> Option<(Candidate, Why)> {
        let asked = self.chosen.and_then(|chosen| {
            let here = self.here().filter(|here| here.way.local == chosen);
            let here = here.filter(|here| here.fault().is_none());
            here.or_else(|| self.strong().find(|way| way.way.local == chosen))
        });
        let asked = asked.map(|way| (way, Why::Asked));
        asked.or_else(|| {
            let first = self.candidates.first()?;
            let mut strong = self.strong();
            let way = strong.find(|way| way.is(first.way, first.carrier))?;
            Some((way, Why::Route))
        })
    }

    /// Returns the reason for which the current way is preferred, if no way has a fault.
    pub(crate) fn settled(&self) -> Option<Why> {
        let all_strong = self.measured().count() == self.strong().count();
        let (way, why) = self.preferred().filter(|_| all_strong)?;
        way.leads_along(self.current).then_some(why)
    }

    /// Returns the way to leave a faulty one for.
    fn alternative(&self, here: Candidate, is_measured: bool) -> Option<Candidate> {
        let preferred = self.preferred().map(|(way, _)| way);
        let preferred = preferred.filter(|way| !is_measured || way.quality.answers());
        let strong = preferred.or_else(|| self.cheapest(here, is_measured));
        strong.or_else(|| {
            let mut weak = self.sound().filter(|way| way.quality.answers());
            here.quality.fades().then(|| weak.next()).flatten()
        })
    }

    /// Returns the way other than this one that costs least, if any answers. If ways are not
    /// measured, returns the best according to the routes.
    fn cheapest(&self, here: Candidate, is_measured: bool) -> Option<Candidate> {
        let others = self.strong().filter(|way| !way.is(here.way, here.carrier));
        let answering = others.filter(|way| !is_measured || way.quality.answers());
        answering.min_by_key(|way| way.quality.cost())
    }
}
