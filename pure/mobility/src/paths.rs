//! Path selection for one tunnel.

use crate::quality::Quality;
use crate::soft::{CALM, Failure, Fate, Handing, Soft, View, Why};
use model::{Carrier, Deadline, Instant, Path};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Interval between probes of other paths: a round trip over a slow link.
const PAUSE: Duration = Duration::from_millis(300);

/// An address pair that packets can leave by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The local address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
}

/// A carrier for packets to the peer, and its ports, for any way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carriage {
    /// The carrier.
    pub carrier: Carrier,
    /// The local port; zero if the caller chooses one when it opens the path.
    pub local: u16,
    /// The peer's port, for peer addresses that have not been used yet.
    pub remote: u16,
}

/// The state of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No failure is known.
    Fresh,
    /// No answer came back.
    Silent,
    /// The peer refused it.
    Refused,
}

/// A way that the tunnel could take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The address pair.
    pub way: Way,
    /// The carrier.
    pub carrier: Carrier,
    /// The state of the way.
    pub standing: Standing,
    /// Round trip and loss, if the way is measured.
    pub quality: Quality,
    /// True if the signal of the local address is weak.
    pub is_weak: bool,
    /// Time since which the way exists, with a signal that is not weak.
    pub(crate) since: Instant,
}

/// An action for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Move the tunnel to this path.
    Take(Path),
    /// Probe this path for an answer.
    Try(Path),
    /// Hand the tunnel over to this path without a pause, while the current one works.
    HandOver(Path),
    /// Send a request on this path alone, and report its fate by [`Paths::handle_measured`].
    Measure(Path),
}

/// No packet can leave from the address that an operator chose.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packets to the peer cannot leave from that address")]
pub struct NoWay {
    /// The local addresses that packets can leave from.
    pub from: Vec<IpAddr>,
}

/// The path selector of one tunnel.
#[derive(Clone, Debug)]
pub struct Paths {
    current: Path,
    /// Available carriers, best first.
    carriages: Vec<Carriage>,
    candidates: Vec<Candidate>,
    /// The local address that an operator chose.
    chosen: Option<IpAddr>,
    /// Local addresses with a weak signal.
    weak: BTreeSet<IpAddr>,
    search: Option<Search>,
    step: Option<Step>,
    /// Why the current path was chosen.
    why: Why,
    /// Hand-overs without a pause, if both ends allow them.
    soft: Option<Box<Soft>>,
}

/// The search for another path while the current path is silent.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Index of the next candidate to probe.
    next: usize,
    at: Instant,
}

impl Paths {
    /// Creates the selector for a tunnel on path `current`, with the available carriers, best
    /// first.
    pub const fn new(current: Path, carriages: Vec<Carriage>) -> Self {
        Self {
            current,
            carriages,
            candidates: Vec::new(),
            chosen: None,
            weak: BTreeSet::new(),
            search: None,
            step: None,
            why: Why::Route,
            soft: None,
        }
    }

    // Inputs.

    /// Replaces the list of available ways, best first.
    pub fn handle_ways(&mut self, ways: &[Way], now: Instant) {
        let known = |way: Way, carrier| {
            let mut known = self.candidates.iter();
            known.find(|known| known.is(way, carrier)).copied()
        };
        let new = |way, carrier| Candidate {
            way,
            carrier,
            standing: self.first_standing(way, carrier),
            quality: Quality::UNKNOWN,
            is_weak: self.weak.contains(&way.local),
            since: now,
        };
        let candidates = self.carriages.iter().flat_map(|carriage| {
            let carrier = carriage.carrier;
            let ways = ways.iter().copied();
            ways.map(move |way| known(way, carrier).unwrap_or_else(|| new(way, carrier)))
        });
        self.candidates = candidates.collect();
        if let Some(chosen) = self.chosen
            && !ways.iter().any(|way| way.local == chosen)
        {
            self.chosen = None;
        }
        match self.has_time() {
            true => self.judge(now),
            false => self.take_best(now),
        }
    }

    /// Replaces the local addresses with a weak signal.
    pub fn handle_weak(&mut self, weak: &BTreeSet<IpAddr>, now: Instant) {
        self.weak.clone_from(weak);
        for candidate in &mut self.candidates {
            let is_weak = self.weak.contains(&candidate.way.local);
            if candidate.is_weak && !is_weak {
                candidate.since = now;
            }
            candidate.is_weak = is_weak;
        }
        let is_doubtful = self.view().is_doubtful();
        if let Some(soft) = self.soft.as_mut().filter(|_| is_doubtful) {
            soft.hasten(now);
        }
        self.judge(now);
    }

    /// Records that no answer comes back on the current path, and starts to probe the others.
    pub fn handle_silence(&mut self, now: Instant) {
        self.note(self.current, Standing::Silent);
        self.search = Some(Search { next: 0, at: now });
    }

    /// Records an answer on a path. Moves the tunnel there if the current path was silent.
    pub fn handle_answer(&mut self, path: Path, now: Instant) {
        // Ignore unlisted addresses: they come from a NAT or a forger.
        let known = self.exists(path);
        let current = is_alike(path, self.current);
        if self.search.is_none() || !(known || current) {
            return;
        }
        self.search = None;
        self.note(path, Standing::Fresh);
        if !current {
            self.chosen = None;
            self.take(path, Why::Silent, now);
        }
    }

    /// Records that the peer refused the current path, and moves to the best remaining one.
    pub fn handle_refusal(&mut self, now: Instant) {
        self.note(self.current, Standing::Refused);
        self.chosen = None;
        self.take_best(now);
    }

    /// Permits hand-overs without a pause, for which ways are measured at this interval; zero if
    /// none is.
    pub fn allow_soft(&mut self, every: Duration, now: Instant) {
        if self.soft.is_none() {
            self.soft = Some(Box::new(Soft::new(every, now)));
        }
    }

    /// Returns the state of these paths after a hand-over to a path that [`Step::HandOver`] named,
    /// unless that is no longer due.
    pub fn handed_over(&self, to: Path, now: Instant) -> Option<Self> {
        let handing = self.handing().filter(|handing| handing.to == to)?;
        let mut next = self.clone();
        next.step = None;
        next.settle(to, handing.why, now);
        self.exists(to).then_some(next)
    }

    /// Records that a hand-over to a path that an operator chose has begun. If the peer refuses
    /// it, the tunnel stays, or it moves with a pause.
    pub fn note_handing(&mut self, to: Path, or_hard: bool, now: Instant) {
        if let Some(soft) = &mut self.soft {
            soft.begin(to, Why::Asked, or_hard, now);
        }
    }

    /// Records the end of a hand-over that did not take place.
    pub fn handle_not_handed_over(&mut self, why: Failure, now: Instant) {
        let Some(handing) = self.soft.as_mut().and_then(|soft| soft.end(why, now)) else {
            return;
        };
        match why {
            Failure::Busy => {}
            Failure::Silent => {
                let mut candidates = self.candidates.iter_mut();
                if let Some(known) = candidates.find(|known| known.leads_along(handing.to)) {
                    known.standing = Standing::Silent;
                    known.quality.distrust();
                }
            }
            Failure::Refused if handing.or_hard && self.exists(handing.to) => {
                let asked = handing.why == Why::Asked;
                self.chosen = asked.then_some(handing.to.local.ip()).or(self.chosen);
                self.take(handing.to, handing.why, now);
            }
            Failure::Refused if handing.why == Why::Weak => self.put_off(handing.to, now),
            Failure::Refused => {}
        }
    }

    /// Has a way that the peer refused a tunnel on wait, as long as a calm tunnel lasts, before it
    /// counts as steady.
    fn put_off(&mut self, path: Path, now: Instant) {
        let mut candidates = self.candidates.iter_mut();
        if let Some(known) = candidates.find(|known| known.leads_along(path)) {
            known.since = now + CALM;
        }
    }

    /// Records the fate of a request on one path, after [`Step::Measure`].
    pub fn handle_measured(&mut self, path: Path, fate: Fate, now: Instant) {
        let took = match fate {
            Fate::Answered(took) => Some(Some(took)),
            Fate::Lost => Some(None),
            Fate::Unknown => None,
        };
        let mut candidates = self.candidates.iter_mut();
        let known = candidates.find(|known| known.leads_along(path));
        if let Some((known, took)) = known.zip(took) {
            known.quality.note(took);
            if known.standing == Standing::Silent && known.quality.is_trusted() {
                known.standing = Standing::Fresh;
            }
        }
        let is_doubtful = self.view().is_doubtful();
        if let Some(soft) = &mut self.soft {
            soft.note_measured(is_doubtful, now);
        }
        self.judge(now);
    }

    /// Moves the tunnel to an operator's source address, or to the best way if `from` is `None`.
    /// Clears the state of all ways. Emits [`Step::Take`] even for the current path, so that the
    /// peer is notified.
    pub fn choose(&mut self, from: Option<IpAddr>, now: Instant) -> Result<Path, NoWay> {
        let fits = |candidate: &&Candidate| from.is_none_or(|from| candidate.way.local == from);
        let mut fitting = self.candidates.iter().filter(fits);
        let same_end = |way: &Way| way.remote == self.current.remote.ip();
        let first = fitting.clone().find(|candidate| same_end(&candidate.way));
        let Some(best) = first.or_else(|| fitting.next()).copied() else {
            let mut from: Vec<IpAddr> = Vec::new();
            for local in self.candidates.iter().map(|candidate| candidate.way.local) {
                if !from.contains(&local) {
                    from.push(local);
                }
            }
            return Err(NoWay { from });
        };
        for candidate in &mut self.candidates {
            candidate.standing = Standing::Fresh;
            candidate.quality = Quality::UNKNOWN;
        }
        self.chosen = from;
        self.search = None;
        self.take(self.path(best), Why::Asked, now);
        Ok(self.current)
    }

    /// Probes or measures the next candidate if its time has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.measure_next(now);
        let current = self.current;
        let Some(search) = self.search.as_mut().filter(|search| search.at <= now) else {
            return;
        };
        search.at = now + PAUSE;
        let others = (0..self.candidates.len()).map(|i| (search.next + i) % self.candidates.len());
        let mut others = others.filter(|&i| !self.candidates[i].leads_along(current));
        if let Some(next) = others.next() {
            search.next = next + 1;
            let next = self.candidates[next];
            self.step = Some(Step::Try(self.path(next)));
        }
    }

    // Outputs.

    /// Returns the next action for the caller.
    pub const fn poll_step(&mut self) -> Option<Step> {
        self.step.take()
    }

    /// Returns the time of the next call to [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let search = self.search.filter(|_| self.candidates.len() > 1);
        let search = search.map(|search| Deadline {
            at: search.at,
            reason: "try another path",
        });
        search.into_iter().chain(self.measures_at()).min()
    }

    // Getters.

    /// Returns the current path.
    pub const fn current(&self) -> Path {
        self.current
    }

    /// Returns the reason for the current path. A fault of the path before is none any more once
    /// all ways are sound and this one is preferred.
    pub fn why(&self) -> Why {
        let is_fault = matches!(self.why, Why::Faded(_) | Why::Weak | Why::Silent);
        let settled = is_fault.then(|| self.view().settled());
        settled.flatten().unwrap_or(self.why)
    }

    /// Returns true if the tunnel can be handed over without a pause.
    pub const fn hands_over(&self) -> bool {
        self.soft.is_some()
    }

    /// Returns the available ways, best first.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns the initial state of a new way. A tunnel runs in a stream because UDP got no answer
    /// on the current way, so UDP starts as silent there.
    fn first_standing(&self, way: Way, carrier: Carrier) -> Standing {
        let other = Candidate {
            way,
            carrier: self.current.carrier,
            standing: Standing::Fresh,
            quality: Quality::UNKNOWN,
            is_weak: false,
            since: Instant::ZERO,
        };
        match (carrier, self.current.carrier) {
            (Carrier::Udp, Carrier::Tcp) if other.leads_along(self.current) => Standing::Silent,
            _ => Standing::Fresh,
        }
    }

    /// Returns true if the tunnel can be handed over, because the current path works.
    fn has_time(&self) -> bool {
        let works = |here: Candidate| here.standing == Standing::Fresh;
        self.soft.is_some()
            && self.search.is_none()
            && !self.current.is_stream()
            && self.view().here().is_some_and(works)
    }

    /// Has the tunnel handed over, if another way is to be used.
    fn judge(&mut self, now: Instant) {
        if !self.has_time() || self.step.is_some() {
            return;
        }
        let Some(mut soft) = self.soft.take() else {
            return;
        };
        if let Some((to, why)) = soft.target(&self.view(), now) {
            let path = self.path(to);
            // A forecast is no reason for a pause.
            soft.begin(path, why, why != Why::Weak, now);
            self.step = Some(Step::HandOver(path));
        }
        self.soft = Some(soft);
    }

    /// Measures the next way, if its time has come.
    fn measure_next(&mut self, now: Instant) {
        self.judge(now);
        if !self.has_time() || self.step.is_some() {
            return;
        }
        let Some(mut soft) = self.soft.take() else {
            return;
        };
        let next = soft.next(&self.view(), now);
        self.soft = Some(soft);
        self.step = next.map(|next| Step::Measure(self.path(next)));
    }

    fn measures_at(&self) -> Option<Deadline> {
        let soft = self.soft.as_ref().filter(|_| self.has_time())?;
        Some(Deadline {
            at: soft.poll_timeout(&self.view())?,
            reason: "measure a path",
        })
    }

    fn view(&self) -> View<'_> {
        View {
            current: self.current,
            candidates: &self.candidates,
            chosen: self.chosen,
        }
    }

    fn handing(&self) -> Option<Handing> {
        self.soft.as_ref()?.handing()
    }

    fn exists(&self, path: Path) -> bool {
        let mut candidates = self.candidates.iter();
        candidates.any(|known| known.leads_along(path))
    }

    /// Notes that the tunnel uses a path from now on.
    fn settle(&mut self, path: Path, why: Why, now: Instant) {
        (self.current, self.why) = (path, why);
        if let Some(soft) = &mut self.soft {
            soft.settle(now);
        }
    }

    fn note(&mut self, path: Path, standing: Standing) {
        let mut candidates = self.candidates.iter_mut();
        if let Some(known) = candidates.find(|known| known.leads_along(path)) {
            known.standing = standing;
        }
    }

    /// Takes the best way without a known failure, if possible one that does not fade and has no
    /// weak signal. If all have failed, keeps the current path, because the network may recover.
    fn take_best(&mut self, now: Instant) {
        let chosen = self.chosen;
        let fits = |candidate: &&Candidate| {
            candidate.standing == Standing::Fresh
                && chosen.is_none_or(|chosen| candidate.way.local == chosen)
        };
        let fitting = || self.candidates.iter().filter(fits);
        let sound = || fitting().filter(|candidate| !candidate.quality.fades());
        // Only hand-overs follow a signal: it is no reason for a pause.
        let follows = self.soft.is_some() && !self.current.is_stream();
        let strong = sound().find(|candidate| !(follows && candidate.is_weak));
        let best = strong.or_else(|| sound().next());
        let best = best.or_else(|| fitting().next()).copied();
        if let Some(best) = best.filter(|best| !best.leads_along(self.current)) {
            self.search = None;
            let why = chosen.map_or(Why::Route, |_| Why::Asked);
            self.take(self.path(best), why, now);
        }
    }

    /// Moves the tunnel at once.
    fn take(&mut self, path: Path, why: Why, now: Instant) {
        self.settle(path, why, now);
        self.step = Some(Step::Take(path));
    }

    fn path(&self, to: Candidate) -> Path {
        let Candidate { way, carrier, .. } = to;
        if to.leads_along(self.current) {
            return self.current;
        }
        let mut carriages = self.carriages.iter();
        let carriage = carriages.find(|carriage| carriage.carrier == carrier);
        let (mut local, mut remote) = carriage.map_or((0, 0), |known| (known.local, known.remote));
        if carrier == self.current.carrier {
            // All datagrams share one socket; each stream has its own.
            if carrier == Carrier::Udp {
                local = self.current.local.port();
            }
            if way.remote == self.current.remote.ip() {
                remote = self.current.remote.port();
            }
        }
        Path {
            local: SocketAddr::new(way.local, local),
            remote: SocketAddr::new(way.remote, remote),
            carrier,
        }
    }
}

impl Candidate {
    /// Returns true if a path uses this way and carrier.
    pub fn leads_along(&self, path: Path) -> bool {
        let way = Way {
            local: path.local.ip(),
            remote: path.remote.ip(),
        };
        self.is(way, path.carrier)
    }

    /// Returns the reason to leave the way while it works, if there is one.
    pub(crate) fn fault(&self) -> Option<Why> {
        match (self.quality.fades(), self.is_weak) {
            (true, _) => Some(Why::Faded(self.quality.lost().unwrap_or_default())),
            (false, true) => Some(Why::Weak),
            (false, false) => None,
        }
    }

    pub(crate) fn is(&self, way: Way, carrier: Carrier) -> bool {
        (self.way, self.carrier) == (way, carrier)
    }
}

/// Returns true if two paths differ at most in their ports.
fn is_alike(path: Path, other: Path) -> bool {
    let ends = |path: Path| (path.local.ip(), path.remote.ip(), path.carrier);
    ends(path) == ends(other)
}
