//! The paths of one tunnel.

use model::{Carrier, Deadline, Instant, Path};
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

/// What can carry packets to the peer, whatever the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carriage {
    /// What.
    pub carrier: Carrier,
    /// Our port; zero if whoever takes the path chooses one.
    pub local: u16,
    /// The port of addresses of the peer that were not used yet.
    pub remote: u16,
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
    /// In what.
    pub carrier: Carrier,
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
    /// What can carry packets, the best first.
    carriages: Vec<Carriage>,
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
    /// A tunnel that takes a path, and can take others in these, the best first.
    pub const fn new(current: Path, carriages: Vec<Carriage>) -> Self {
        Self {
            current,
            carriages,
            candidates: Vec::new(),
            chosen: None,
            search: None,
            step: None,
        }
    }

    // Inputs.

    /// The ways that there are now, the best first.
    pub fn handle_ways(&mut self, ways: &[Way]) {
        let known = |way: Way, carrier| {
            let mut known = self.candidates.iter();
            known.find(|known| known.is(way, carrier)).copied()
        };
        let new = |way, carrier| Candidate {
            way,
            carrier,
            standing: self.first_standing(way, carrier),
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
        self.take_best();
    }

    /// Nobody answers on the current path.
    pub fn handle_silence(&mut self, now: Instant) {
        self.note(self.current, Standing::Silent);
        self.search = Some(Search { next: 0, at: now });
    }

    /// Somebody answers, and there.
    pub fn handle_answer(&mut self, path: Path) {
        // An address that nobody told us of is a translator's, or a forger's.
        let known = self.candidates.iter().any(|known| known.leads_along(path));
        let current = is_alike(path, self.current);
        if self.search.is_none() || !(known || current) {
            return;
        }
        self.search = None;
        self.note(path, Standing::Fresh);
        if !current {
            self.chosen = None;
            self.take(path);
        }
    }

    /// The peer does not want the current path.
    pub fn handle_refusal(&mut self) {
        self.note(self.current, Standing::Refused);
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
        }
        self.chosen = from;
        self.search = None;
        self.take(self.path(best));
        Ok(self.current)
    }

    /// Tries the next one, if it is time.
    pub fn handle_timeout(&mut self, now: Instant) {
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

    /// What is known of a way that is new. A tunnel is in a stream because nothing came back by UDP
    /// on the way it takes.
    fn first_standing(&self, way: Way, carrier: Carrier) -> Standing {
        let other = Candidate {
            way,
            carrier: self.current.carrier,
            standing: Standing::Fresh,
        };
        match (carrier, self.current.carrier) {
            (Carrier::Udp, Carrier::Tcp) if other.leads_along(self.current) => Standing::Silent,
            _ => Standing::Fresh,
        }
    }

    fn note(&mut self, path: Path, standing: Standing) {
        let mut candidates = self.candidates.iter_mut();
        if let Some(known) = candidates.find(|known| known.leads_along(path)) {
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
        let best = self.candidates.iter().find(fits).copied();
        if let Some(best) = best.filter(|best| !best.leads_along(self.current)) {
            self.search = None;
            self.take(self.path(best));
        }
    }

    const fn take(&mut self, path: Path) {
        self.current = path;
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
            // One socket serves all datagrams; of a stream each has its own.
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
    /// Whether it is the one that a path takes.
    pub fn leads_along(&self, path: Path) -> bool {
        let way = Way {
            local: path.local.ip(),
            remote: path.remote.ip(),
        };
        self.is(way, path.carrier)
    }

    fn is(&self, way: Way, carrier: Carrier) -> bool {
        (self.way, self.carrier) == (way, carrier)
    }
}

/// Whether two paths differ in nothing but ports.
fn is_alike(path: Path, other: Path) -> bool {
    let ends = |path: Path| (path.local.ip(), path.remote.ip(), path.carrier);
    ends(path) == ends(other)
}
