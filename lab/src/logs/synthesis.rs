//! A synthetic log with the characteristics of the paper's (004, table II): users, connections,
//! their mean duration and volume, and a rhythm of days and weeks.
//!
//! Table II has means and no distributions. What it leaves open is in [`Open`]: how soon a user
//! comes back, and how far durations and volumes spread. Claims that hang on these are tried over a
//! range.

use super::MOST_OPEN;
use crate::obstacle::Obstacle;
use crypto::{Rng, UnixTime};
use logs::{Clock, Format, Logs, Session, Zone};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// Length of the paper's logs, and their first day.
const DAYS: u64 = 30;
const BEGIN: UnixTime = UnixTime::from_date(2006, 8, 19);

/// Connections of each hour of a day, as parts of the mean hour, in tenths.
const HOURS: [u32; 24] = [
    6, 4, 3, 2, 2, 2, 3, 6, 10, 13, 15, 15, 14, 15, 15, 15, 14, 13, 12, 13, 14, 14, 12, 8,
];

/// Connections of each day of a week, from that of [`BEGIN`] on, a Saturday, in tenths.
const WEEK: [u32; 7] = [6, 7, 12, 12, 12, 11, 10];

/// Spread of users: some come a hundred times as often as others.
const USERS_SPREAD: f64 = 1.0;

/// Seconds after which a user comes back who comes back soon, as a median, and their spread.
const SOON: f64 = 1200.0;
const SOON_SPREAD: f64 = 1.0;

/// Means of a log of 30 days.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Users.
    pub users: u64,
    /// Connections.
    pub connections: u64,
    /// Mean duration, in seconds.
    pub seconds: f64,
    /// Mean of the octets that the gateway receives in a connection.
    pub received: f64,
    /// Mean of the octets that it sends.
    pub sent: f64,
}

/// What the means leave open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Open {
    /// Part of the connections after which the user soon comes back, from 0 to less than 1.
    pub returns: f64,
    /// Spread of durations: standard deviation of their natural logarithm.
    pub durations: f64,
    /// Spread of volumes.
    pub volumes: f64,
}

const MIB: f64 = 1_048_576.0;

impl Workload {
    /// The column "wireless" of table II. Its GB are 2³⁰ octets, as its means show.
    pub const WIRELESS: Self = Self {
        users: 11_250,
        connections: 149_564,
        seconds: 6577.83 * 86_400.0 / 149_564.0,
        received: 452.1 * 1024.0 * MIB / 149_564.0,
        sent: 1010.45 * 1024.0 * MIB / 149_564.0,
    };

    /// The column "remote".
    pub const REMOTE: Self = Self {
        users: 15_579,
        connections: 241_291,
        seconds: 31_628.64 * 86_400.0 / 241_291.0,
        received: 2008.2 * 1024.0 * MIB / 241_291.0,
        sent: 4907.79 * 1024.0 * MIB / 241_291.0,
    };

    /// Returns the workload of a gateway with so many connections, and users in proportion.
    pub fn scaled(self, connections: u64) -> Self {
        let part = connections as f64 / self.connections as f64;
        Self {
            users: ((self.users as f64 * part).round() as u64).max(1),
            connections,
            ..self
        }
    }
}

impl Open {
    /// What fits the paper's sentences about its figures 3 and 4: most connections last ten minutes
    /// to three hours, some are shorter than five minutes, and most carry no more than 1 MB.
    pub const USUAL: Self = Self {
        returns: 0.5,
        durations: 1.5,
        volumes: 2.4,
    };
}

/// A connection that the log will have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Connection {
    begin: u64,
    user: u64,
    seconds: u64,
}

/// Writes the log as a table, in the order of the begins. The same seed makes the same log.
///
/// # Errors
/// It cannot be written.
pub fn write(
    workload: Workload,
    open: Open,
    seed: u64,
    to: &mut dyn Write,
) -> Result<(), Obstacle> {
    Synthesis::new(workload, open, seed)
        .write(to)
        .map_err(|error| {
            let message = format!("cannot write the log: {error}");
            Obstacle::new(message, "name a file that can be written")
        })
}

/// Writes a log, and reads it as the analysis reads those of gateways.
///
/// # Errors
/// It cannot be written or read.
pub(crate) fn read(
    workload: Workload,
    open: Open,
    seed: u64,
    take: &mut dyn FnMut(Session),
) -> anyhow::Result<()> {
    let mut log = Vec::new();
    write(workload, open, seed, &mut log)?;
    let clock = Clock::new(Zone::UTC, BEGIN);
    let mut logs = Logs::new(Format::Csv.reader(), clock, MOST_OPEN);
    logs.read("synthetic", log.as_slice(), take)?;
    logs.finish(take);
    Ok(())
}

struct Synthesis {
    workload: Workload,
    open: Open,
    rng: Rng,
    /// Sums of the weights of the users up to each.
    weights: Vec<f64>,
    /// Users who come back soon, the first on top.
    returning: BinaryHeap<Reverse<Connection>>,
}

impl Synthesis {
    fn new(workload: Workload, open: Open, seed: u64) -> Self {
        let mut octets = [0; 32];
        octets[..8].copy_from_slice(&seed.to_be_bytes());
        let mut rng = Rng::from_seed(octets);
        let mut sum = 0.0;
        let mut next = |_| {
            sum += lognormal(&mut rng, 1.0, USERS_SPREAD);
            sum
        };
        let weights = (0..workload.users).map(&mut next).collect();
        Self {
            workload,
            open,
            rng,
            weights,
            returning: BinaryHeap::new(),
        }
    }

    fn write(mut self, to: &mut dyn Write) -> io::Result<()> {
        writeln!(to, "user,begin,end,received,sent")?;
        let firsts = self.workload.connections as f64 * (1.0 - self.open.returns);
        let hours = (0..DAYS).flat_map(|day| (0..24).map(move |hour| (day, hour)));
        let weight = |(day, hour): (u64, usize)| {
            f64::from(HOURS[hour]) * f64::from(WEEK[(day % 7) as usize])
        };
        let all: f64 = hours.clone().map(weight).sum();
        let mut due = 0.5;
        for (day, hour) in hours {
            due += firsts * weight((day, hour)) / all;
            let mut begins = Vec::new();
            while due >= 1.0 {
                due -= 1.0;
                begins.push(day * DAY + hour as u64 * HOUR + (self.uniform() * HOUR as f64) as u64);
            }
            begins.sort_unstable();
            for begin in begins {
                self.write_until(begin, to)?;
                let first = Connection {
                    begin,
                    user: self.user(),
                    seconds: self.seconds(),
                };
                self.visit(first, to)?;
            }
        }
        self.write_until(DAYS * DAY, to)?;
        to.flush()
    }

    /// Writes the connections of users who come back before a time.
    fn write_until(&mut self, time: u64, to: &mut dyn Write) -> io::Result<()> {
        while let Some(Reverse(next)) = self.returning.peek().copied()
            && next.begin < time
        {
            self.returning.pop();
            self.visit(next, to)?;
        }
        Ok(())
    }

    /// Writes a connection, and decides whether its user comes back soon.
    fn visit(&mut self, connection: Connection, to: &mut dyn Write) -> io::Result<()> {
        let Connection {
            begin,
            user,
            seconds,
        } = connection;
        let volume = lognormal(&mut self.rng, 1.0, self.open.volumes);
        let [received, sent] = [self.workload.received, self.workload.sent];
        writeln!(
            to,
            "user{user},{},{},{:.0},{:.0}",
            BEGIN.0 + begin,
            BEGIN.0 + begin + seconds,
            received * volume,
            sent * volume,
        )?;
        if self.uniform() < self.open.returns {
            let pause = SOON * normal(&mut self.rng, SOON_SPREAD).exp();
            let next = Connection {
                begin: begin + seconds + 1 + pause as u64,
                user,
                seconds: self.seconds(),
            };
            self.returning.push(Reverse(next));
        }
        Ok(())
    }

    fn user(&mut self) -> u64 {
        let all = self.weights.last().copied().unwrap_or_default();
        let at = self.uniform() * all;
        let user = self.weights.partition_point(|sum| *sum <= at);
        user.min(self.weights.len().saturating_sub(1)) as u64
    }

    fn seconds(&mut self) -> u64 {
        let seconds = lognormal(&mut self.rng, self.workload.seconds, self.open.durations);
        // No connection is longer than the log.
        (seconds as u64).min(DAYS * DAY)
    }

    fn uniform(&mut self) -> f64 {
        uniform(&mut self.rng)
    }
}

/// Returns a number from 0 to less than 1.
fn uniform(rng: &mut Rng) -> f64 {
    (rng.u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a number of a normal distribution around zero (Box and Muller 1958).
fn normal(rng: &mut Rng, deviation: f64) -> f64 {
    let [radius, angle] = [1.0 - uniform(rng), uniform(rng)];
    deviation * (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Returns a number of a lognormal distribution with this mean.
fn lognormal(rng: &mut Rng, mean: f64, deviation: f64) -> f64 {
    mean * (normal(rng, deviation) - deviation * deviation / 2.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(workload: Workload, open: Open, seed: u64) -> String {
        let mut log = Vec::new();
        write(workload, open, seed, &mut log).unwrap();
        String::from_utf8(log).unwrap()
    }

    #[test]
    fn the_same_seed_makes_the_same_log_and_another_one_another() {
        let small = Workload::WIRELESS.scaled(500);
        let logs = [1, 1, 2].map(|seed| log(small, Open::USUAL, seed));
        assert_eq!(logs[0], logs[1]);
        assert_ne!(logs[0], logs[2]);
    }

    #[test]
    fn rows_are_in_the_order_of_their_begins_and_within_the_month() {
        let log = log(Workload::REMOTE.scaled(3000), Open::USUAL, 7);
        let begin = |row: &str| row.split(',').nth(1).unwrap().parse::<u64>().unwrap();
        let begins: Vec<_> = log.lines().skip(1).map(begin).collect();
        assert!(begins.is_sorted());
        let month = BEGIN.0..BEGIN.0 + DAYS * DAY;
        assert!(begins.iter().all(|begin| month.contains(begin)));
    }
}
