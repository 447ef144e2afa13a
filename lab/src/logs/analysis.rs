//! The result of an analysis, for programs as it is, and the source of text, plots and page.

use super::advice::{Advice, advise};
use super::{Cost, strategies};
use logs::{Bound, Fault, Format, Histogram, Logs, Outcome, Summary};
use resumption::Strategy;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Unreadable lines that are shown with their place.
const SHOWN: usize = 10;

/// Load and users of the logs, and the exchanges that remain with caching.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// Files and lines.
    pub source: Source,
    /// Table II of the paper.
    pub table: Table,
    /// Connections that began on each day (figure 2).
    pub days: Vec<Day>,
    /// Durations in seconds (figure 3).
    pub durations: Vec<Class>,
    /// Octets that gateways received in a connection (figure 4).
    pub received: Vec<Class>,
    /// Octets that gateways sent in a connection (figure 4).
    pub sent: Vec<Class>,
    /// Visits of a user (figure 5).
    pub visits: Vec<Class>,
    /// Connections whose begin is known, which the strategies are played with.
    pub played: u64,
    /// CPU time of the gateway for all of them without resumption, in seconds, if the cost is
    /// known.
    pub cpu_seconds_without: Option<f64>,
    /// What remains with each strategy (figure 6, and those that the paper leaves out).
    pub strategies: Vec<Remaining>,
    /// The strategy to choose.
    pub advice: Advice,
}

/// Files and lines, and doubts about them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Source {
    /// The files, in the order in which they were read.
    pub files: Vec<Read>,
    /// Lines of all files.
    pub lines: u64,
    /// Lines that concern a session and cannot be read.
    pub unreadable: u64,
    /// The first of them.
    pub first_unreadable: Vec<Place>,
    /// Files that end early, as their compression is damaged.
    pub cut: Vec<String>,
    /// Times at which the clock of a log went back.
    pub clock_went_back: u64,
    /// Connections that came after one that begins later, from too far away to be put in order.
    pub late: u64,
    /// Connections of which the log does not have the end, as too many were up.
    pub evicted: u64,
    /// Connections that end before they begin, as the clock was set.
    pub backwards: u64,
    /// Ends of connections whose user is in an earlier log.
    pub nameless: u64,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Read {
    /// Its name.
    pub file: String,
    /// Its format.
    pub format: &'static str,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// File.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// Reason.
    pub reason: String,
}

/// Table II of the paper.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// All connections.
    pub connections: u64,
    /// Those that began before the log.
    pub began_before: u64,
    /// Those that do not end in it.
    pub not_ended: u64,
    /// Different users.
    pub users: usize,
    /// Connections of further users, for whom there was no room.
    pub users_left_out: u64,
    /// Octets that the gateways received, of connections whose octets are known.
    pub received: Total,
    /// Octets that the gateways sent.
    pub sent: Total,
    /// Seconds of connections whose begin and end are known.
    pub seconds: Total,
}

/// A sum and its mean.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Total {
    /// Number of connections.
    pub connections: u64,
    /// Sum.
    pub sum: f64,
    /// Mean, if there are any.
    pub mean: Option<f64>,
}

/// Connections of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Day {
    /// The day, as in `2026-11-30`.
    pub day: String,
    /// Connections that began on it.
    pub connections: u64,
}

/// A class of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Upper bound, which is part of it; `None` if there is none.
    pub up_to: Option<u64>,
    /// Number of members.
    pub count: u64,
}

/// What remains with a strategy.
#[derive(Clone, Debug, Serialize)]
pub struct Remaining {
    /// Name, such as `clocked 8 h`.
    pub name: String,
    /// Longest time since the full exchange, in seconds.
    pub clocked: u64,
    /// Longest time with a tunnel, in seconds.
    pub established: Option<u64>,
    /// Most octets.
    pub data: Option<u64>,
    /// Full exchanges that remain.
    pub exchanges: u64,
    /// Their part of all connections, from 0 to 1.
    pub share: f64,
    /// Those of them for which the entry had no room in the cache, at least.
    pub evicted: u64,
    /// Most entries in the cache.
    pub most_entries: usize,
    /// Entries in the cache over time: seconds since 1970, and number.
    pub entries: Vec<(u64, usize)>,
    /// Seconds until nothing can be resumed any more under a secret, of 95 % of all.
    pub life: Limit,
    /// Octets under one secret, of 95 % of all, if the log has the octets of nearly all.
    pub burden: Option<Limit>,
    /// CPU time of the gateway in seconds, if the cost of exchanges is known.
    pub cpu_seconds: Option<f64>,
    /// The strategy itself.
    #[serde(skip)]
    pub(super) strategy: Strategy,
}

/// A limit that most members of a distribution keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Limit {
    /// True if they are above the value, and nothing says how far.
    pub more: bool,
    /// Value.
    pub than: u64,
}

impl Analysis {
    pub(super) fn new(
        source: Source,
        summary: &Summary,
        outcomes: Vec<Outcome>,
        cost: Option<Cost>,
    ) -> Self {
        // Of a part of the sessions nothing follows for data.
        let has_octets = summary.sent.count() * 10 >= summary.connections() * 9;
        let played = outcomes.first().map_or(0, |outcome| outcome.connections);
        let strategies: Vec<_> = outcomes
            .into_iter()
            .filter(|outcome| has_octets || outcome.strategy.data.is_none())
            .map(|outcome| Remaining::new(outcome, has_octets, cost))
            .collect();
        let day = |(begin, connections): (crypto::UnixTime, u64)| Day {
            day: begin.rfc3339().chars().take(10).collect(),
            connections,
        };
        Self {
            table: Table {
                connections: summary.connections(),
                began_before: summary.began_before,
                not_ended: summary.not_ended,
                users: summary.visits.users(),
                users_left_out: summary.visits.left_out,
                received: Total::new(&summary.received),
                sent: Total::new(&summary.sent),
                seconds: Total::new(&summary.durations),
            },
            days: summary.days.iter().map(day).collect(),
            durations: classes(&summary.durations),
            received: classes(&summary.received),
            sent: classes(&summary.sent),
            visits: classes(&summary.visits.histogram()),
            advice: advise(&strategies, played, summary),
            cpu_seconds_without: cost.map(|cost| played as f64 * cost.full.as_secs_f64()),
            played,
            strategies,
            source,
        }
    }
}

impl Source {
    pub(super) fn note(&mut self, file: &str, format: Format) {
        self.files.push(Read {
            file: file.to_owned(),
            format: format.name(),
        });
    }

    /// Adds what a log of several files says about itself.
    pub(super) fn end(&mut self, logs: &Logs) {
        let (faults, doubts) = (logs.faults(), logs.doubts());
        self.lines += logs.lines();
        self.unreadable += faults.count();
        let room = SHOWN.saturating_sub(self.first_unreadable.len());
        let places = faults.first().iter().take(room).map(Place::new);
        self.first_unreadable.extend(places);
        self.clock_went_back += logs.steps();
        self.evicted += doubts.evicted;
        self.backwards += doubts.backwards;
        self.nameless += doubts.nameless;
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.reason)
    }
}

impl Place {
    fn new(fault: &Fault) -> Self {
        Self {
            file: fault.file.to_string(),
            line: fault.line,
            reason: fault.why.to_string(),
        }
    }
}

impl Total {
    fn new(histogram: &Histogram) -> Self {
        Self {
            connections: histogram.count(),
            sum: histogram.sum() as f64,
            mean: histogram.mean(),
        }
    }
}

impl Remaining {
    fn new(outcome: Outcome, has_octets: bool, cost: Option<Cost>) -> Self {
        let Outcome {
            strategy,
            connections,
            exchanges,
            evicted,
            ..
        } = outcome;
        let resumed = connections - exchanges;
        let cpu = |cost: Cost| {
            let (full, resumed) = (exchanges as f64, resumed as f64);
            full * cost.full.as_secs_f64() + resumed * cost.resumed.as_secs_f64()
        };
        let entries = outcome.sizes.iter();
        Self {
            name: strategies::name(&strategy),
            clocked: strategy.clocked.as_secs(),
            established: strategy.established.map(|time| time.as_secs()),
            data: strategy.data,
            exchanges,
            share: outcome.share().unwrap_or(1.0),
            evicted,
            most_entries: outcome.most_entries,
            entries: entries
                .map(|sample| (sample.at.0, sample.entries))
                .collect(),
            life: Limit::new(outcome.exposure.seconds.percentile(95)),
            burden: has_octets.then(|| Limit::new(outcome.exposure.octets.percentile(95))),
            cpu_seconds: cost.map(cpu),
            strategy,
        }
    }
}

impl Limit {
    fn new(bound: Option<Bound>) -> Self {
        match bound {
            Some(Bound::AtMost(than)) => Self { more: false, than },
            Some(Bound::MoreThan(than)) => Self { more: true, than },
            None => Self {
                more: false,
                than: 0,
            },
        }
    }
}

/// Returns the classes of a distribution.
pub(crate) fn classes(histogram: &Histogram) -> Vec<Class> {
    let classes = histogram.classes();
    classes
        .map(|(up_to, count)| Class { up_to, count })
        .collect()
}
