//! The downloads of one cell, and what follows from them.

use super::server::{Link, Server};
use super::trial::Trial;
use crate::experiment::{Estimate, Row, extremes, median};
use serde::{Deserialize, Serialize};

/// Downloads by a number of clients from one server over one kind of link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub link: Link,
    pub server: Server,
    pub clients: usize,
    pub trials: Vec<Trial>,
}

/// All measurements.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Octets of the file.
    pub octets: u64,
    /// True if a debug build measured, which is compared with native TCP alone.
    pub debug: bool,
    pub cells: Vec<Cell>,
    /// Time to seal an octet of the file, in nanoseconds, in each round.
    pub cryptography: Vec<f64>,
}

/// Meanings of the numbers in a row.
pub(super) const COLUMNS: [(&str, &str); 10] = [
    ("", "trials"),
    ("until all have it, ms", "median"),
    ("until all have it, ms", "most"),
    ("each client, kB/s", "median"),
    ("each client, kB/s", "least"),
    ("each client, kB/s", "most"),
    ("", "over single/N, per mille"),
    WORK,
    ("gateway", "% daemon"),
    ("gateway", "% of a core"),
];

const WORK: (&str, &str) = ("gateway", "ps for an octet");

impl Trial {
    /// Returns the time until every client has its file, in seconds.
    pub fn time(&self) -> f64 {
        self.times.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the octets per second of a client with the mean time.
    pub fn each(&self, octets: u64) -> f64 {
        let mean = self.times.iter().sum::<f64>() / self.times.len() as f64;
        octets as f64 / mean
    }

    /// Returns the share of the time in which a processor worked at the gateway.
    fn busy(&self) -> f64 {
        self.work.all() / self.time()
    }
}

impl Measured {
    pub fn cell(&self, link: Link, server: Server, clients: usize) -> Option<&Cell> {
        let is_it =
            |cell: &&Cell| (cell.link, cell.server, cell.clients) == (link, server, clients);
        self.cells.iter().find(is_it)
    }

    /// Returns the numbers of clients over a link, from the least on.
    pub fn clients(&self, link: Link) -> Vec<usize> {
        let cells = self.cells.iter().filter(|cell| cell.link == link);
        let mut all: Vec<_> = cells.map(|cell| cell.clients).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns a value of two cells for each round that both have.
    pub fn pairs<T>(
        &self,
        [one, other]: [Option<&Cell>; 2],
        value: impl Fn(&Trial, &Trial) -> T,
    ) -> Vec<T> {
        let Some((one, other)) = one.zip(other) else {
            return Vec::new();
        };
        let of = |trial: &Trial| {
            let other = other.trials.iter().find(|other| other.round == trial.round);
            other.map(|other| value(trial, other))
        };
        one.trials.iter().filter_map(of).collect()
    }

    /// Returns the throughput of each client over that of a single one divided by their number, in
    /// each round.
    pub fn over_law(&self, cell: &Cell) -> Vec<f64> {
        let single = self.cell(cell.link, cell.server, 1);
        self.pairs([Some(cell), single], |all, single| {
            all.each(self.octets) * cell.clients as f64 / single.each(self.octets)
        })
    }

    /// Returns the processor time of a gateway for an octet, in nanoseconds, in each round.
    pub fn work(&self, cell: &Cell) -> Vec<f64> {
        let octets = (self.octets * cell.clients as u64) as f64;
        let trials = cell.trials.iter();
        trials
            .map(|trial| trial.work.all() / octets * 1e9)
            .collect()
    }

    /// Returns the row of the cryptography alone, which has work and nothing else.
    pub fn row_of_cryptography(&self) -> Row {
        let mut numbers = vec![None; COLUMNS.len()];
        let work = COLUMNS.iter().position(|column| *column == WORK);
        if let Some(place) = work {
            let alone = median(&self.cryptography);
            numbers[place] = alone.map(|alone| milli(alone).round() as i64);
        }
        Row {
            subject: "the cryptography alone".to_owned(),
            name: "sealing".to_owned(),
            numbers,
        }
    }

    /// Returns the row of a cell.
    pub fn row(&self, cell: &Cell) -> Row {
        let of = |value: &dyn Fn(&Trial) -> f64| cell.trials.iter().map(value).collect::<Vec<_>>();
        let times = cell.trials.iter().flat_map(|trial| trial.times.clone());
        let times: Vec<_> = times.collect();
        let kilo = |time: f64| self.octets as f64 / time / 1e3;
        let [fastest, slowest] = extremes(&times).map_or([None; 2], |ends| ends.map(Some));
        let daemon = |trial: &Trial| trial.work.daemon / trial.work.all();
        let numbers = [
            Some(cell.trials.len() as f64),
            median(&of(&Trial::time)).map(milli),
            extremes(&of(&Trial::time)).map(|[_, most]| milli(most)),
            median(&of(&|trial| trial.each(self.octets))).map(|each| each / 1e3),
            slowest.map(kilo),
            fastest.map(kilo),
            median(&self.over_law(cell)).map(milli),
            median(&self.work(cell)).map(milli),
            median(&of(&daemon)).map(|share| share * 100.0),
            median(&of(&Trial::busy)).map(|share| share * 100.0),
        ];
        Row {
            subject: format!("{}, {}", cell.link.name(), cell.server.name()),
            name: counted(cell.clients),
            numbers: numbers
                .map(|number| number.map(|number| number.round() as i64))
                .into(),
        }
    }
}

impl Cell {
    /// Returns the median of a value of its trials, between the least and the most.
    pub fn bar(&self, value: impl Fn(&Trial) -> f64) -> Option<Estimate> {
        let all: Vec<_> = self.trials.iter().map(value).collect();
        spread(&all)
    }
}

/// Returns the median between the least and the most.
pub(super) fn spread(values: &[f64]) -> Option<Estimate> {
    Some(Estimate {
        value: median(values)?,
        interval: extremes(values),
        runs: values.len(),
    })
}

/// Returns a number of clients, for readers.
pub(super) fn counted(clients: usize) -> String {
    match clients {
        1 => "1 client".to_owned(),
        many => format!("{many} clients"),
    }
}

fn milli(value: f64) -> f64 {
    value * 1e3
}
