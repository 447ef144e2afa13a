//! The paths of one tunnel.

use model::{Deadline, Instant, Path};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Between two tries of other paths: a round trip over a slow link.
const PAUSE: Duration = Duration::from_millis(300);

/// A pair of addresses between which packets can leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// One of ours.
    pub local: IpAddr,
    /// One of the peer's.
    pub remote: IpAddr,
}

/// What is known of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing that speaks against it.
    Fresh,
    /// Nobody answered.
    Silent,
    /// The peer does not want it.
    Refused,
}

/// A way that could be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// From where to where.
    pub way: Way,
    /// What is known of it.
    pub standing: Standing,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Take this path from now on.
    Take(Path),
    /// See whether somebody answers there.
    Try(Path),
}

/// No packet can leave from the address that an operator chose.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no packet to the peer can leave from there")]
pub struct NoWay {
    /// The addresses from which some can.
    pub from: Vec<IpAddr>,
}

/// The paths of one tunnel.
#[derive(Clone, Debug)]
pub struct Paths {
    current: Path,
    /// The port of addresses of the peer that were not used yet.
    port: u16,
    candidates: Vec<Candidate>,
    /// Where an operator wants it to leave from.
    chosen: Option<IpAddr>,
    search: Option<Search>,
    step: Option<Step>,
}

/// The current path is silent.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// The candidate to be tried next.
    next: usize,
    at: Instant,
}

impl Paths {
    /// A tunnel that takes a path. Other addresses of the peer are reached at `port`.
    pub const fn new(current: Path, port: u16) -> Self {
        Self {
            current,
            port,
            candidates: Vec::new(),
            chosen: None,
            search: None,
            step: None,
        }
    }

    // Inputs.

    /// The ways that there are now, the best first.
    pub fn handle_ways(&mut self, ways: &[Way]) {
        let known = |way: &Way| {
            let mut known = self.candidates.iter();
            known.find(|candidate| candidate.way == *way).copied()
        };
        let fresh = |way: &Way| Candidate {
            way: *way,
            standing: Standing::Fresh,
        };
        let candidates = ways.iter().map(|way| known(way).unwrap_or(fresh(way)));
        self.candidates = candidates.collect();
        if let Some(chosen) = self.chosen
            && !ways.iter().any(|way| way.local == chosen)
        {
            self.chosen = None;
        }
        self.take_best();
    }

    /// Nobody answers on the current path.
    pub fn handle_silence(&mut self, now: Instant) {
        self.note(self.way(), Standing::Silent);
        self.search = Some(Search { next: 0, at: now });
    }

    /// Somebody answers, and there.
    pub fn handle_answer(&mut self, path: Path) {
        let way = Way {
            local: path.local.ip(),
            remote: path.remote.ip(),
        };
        // An address that nobody told us of is a translator's, or a forger's.
        let known = self.candidates.iter().any(|known| known.way == way);
        if self.search.is_none() || !(known || way == self.way()) {
            return;
        }
        self.search = None;
        self.note(way, Standing::Fresh);
        if way != self.way() {
            self.chosen = None;
            self.take(way);
        }
    }

    /// The peer does not want the current path.
    pub fn handle_refusal(&mut self) {
        self.note(self.way(), Standing::Refused);
        self.chosen = None;
        self.take_best();
    }

    /// An operator wants it to leave from an address, or by the best way whatever was known; even if
    /// that is the current one, the peer is told.
    pub fn choose(&mut self, from: Option<IpAddr>) -> Result<Path, NoWay> {
        let fits = |candidate: &&Candidate| from.is_none_or(|from| candidate.way.local == from);
        let mut fitting = self.candidates.iter().filter(fits);
        let same_end = |way: &Way| way.remote == self.current.remote.ip();
        let first = fitting.clone().find(|candidate| same_end(&candidate.way));
        let Some(best) = first.or_else(|| fitting.next()).map(|best| best.way) else {
            let mut from: Vec<_> = self.candidates.iter().map(|c| c.way.local).collect();
            from.dedup();
            return Err(NoWay { from });
        };
        for candidate in &mut self.candidates {
            candidate.standing = Standing::Fresh;
        }
        self.chosen = from;
        self.search = None;
        self.take(best);
        Ok(self.current)
    }

    /// Tries the next one, if it is time.
    pub fn handle_timeout(&mut self, now: Instant) {
        let current = self.way();
        let Some(search) = self.search.as_mut().filter(|search| search.at <= now) else {
            return;
        };
        search.at = now + PAUSE;
        let others = (0..self.candidates.len()).map(|i| (search.next + i) % self.candidates.len());
        let mut others = others.filter(|&i| self.candidates[i].way != current);
        if let Some(next) = others.next() {
            search.next = next + 1;
            let way = self.candidates[next].way;
            self.step = Some(Step::Try(self.path(way)));
        }
    }

    // Outputs.

    /// What is to be done next.
    pub const fn poll_step(&mut self) -> Option<Step> {
        self.step.take()
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let search = self.search.filter(|_| self.candidates.len() > 1)?;
        Some(Deadline {
            at: search.at,
            reason: "another path is tried",
        })
    }

    // Getters.

    /// The path it takes.
    pub const fn current(&self) -> Path {
        self.current
    }

    /// The ways there are, the best first.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    const fn way(&self) -> Way {
        Way {
            local: self.current.local.ip(),
            remote: self.current.remote.ip(),
        }
    }

    fn note(&mut self, way: Way, standing: Standing) {
        let known = self.candidates.iter_mut().find(|known| known.way == way);
        if let Some(known) = known {
            known.standing = standing;
        }
    }

    /// Takes the best way of those that nothing speaks against. Without one it stays where it is: the
    /// network may come back.
    fn take_best(&mut self) {
        let chosen = self.chosen;
        let fits = |candidate: &&Candidate| {
            candidate.standing == Standing::Fresh
                && chosen.is_none_or(|chosen| candidate.way.local == chosen)
        };
        let best = self.candidates.iter().find(fits).map(|best| best.way);
        if let Some(best) = best.filter(|best| *best != self.way()) {
            self.search = None;
            self.take(best);
        }
    }

    fn take(&mut self, way: Way) {
        self.current = self.path(way);
        self.step = Some(Step::Take(self.current));
    }

    fn path(&self, way: Way) -> Path {
        let port = match way.remote == self.current.remote.ip() {
            true => self.current.remote.port(),
            false => self.port,
        };
        Path::udp(
            SocketAddr::new(way.local, self.current.local.port()),
            SocketAddr::new(way.remote, port),
        )
    }
}
