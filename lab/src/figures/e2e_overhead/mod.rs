//! Section V of the paper on end-to-end security (E2E): what transport mode saves of a packet, and
//! of the work for it.

mod lengths;

use super::common::{PAPER, dots};
use super::cost::nanoseconds;
use crate::bare::{Ends, Raw as Calls, Shape, segment};
use crate::experiment::{
    Basis, Claim, Column, Estimate, Filled, Finding, Grid, Plan, Raw, Row, Table, median,
    median_ratio,
};
use crate::plot::{Axis, Lines, Look, Plot, Series};
use crate::testbed::find_binary;
use anyhow::{Context, Result};
use model::Mode;
use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wire::ip;

/// The table.
pub const TABLE: Table = Table {
    name: "e2e-overhead",
    title: "What the inner IP header costs: tunnel mode beside transport mode",
    claims: &[
        Claim {
            says: "Tunnel mode adds at least 20 octets to each packet.",
            judged_by: &[AS_COMPUTED],
        },
        Claim {
            says: "Without the encryption of the inner header, datagrams of 60 to 180 octets take \
                   10 to 31 % fewer cycles with AES-NI.",
            judged_by: &[
                "datagram of 60 octets: cryptography saved",
                "datagram of 180 octets: cryptography saved",
                "datagram of 60 octets: encrypted octets saved",
                "datagram of 180 octets: encrypted octets saved",
            ],
        },
        Claim {
            says: "Transport mode saves 25 % of the cryptography.",
            judged_by: &["datagram of 60 octets: cryptography saved"],
        },
        Claim {
            says: "It takes 20 % less CPU.",
            judged_by: &["datagram of 60 octets: all work saved"],
        },
    ],
    setting: "The paper measures no packets: its 10 to 31 % are those of a gateway with AES-NI, in \
              another work, and are what 20 octets are of the encrypted ones. Lengths are those of \
              datagrams with their IP header. Packets pass between two daemons, with AES-128-GCM, \
              implicit IVs, and ESP in UDP over IPv4; the kernel of the gateway has their lengths. \
              Work is that of the worker that stratad runs, in memory, with replay window, \
              policies and counters, sealing and opening batches of 64 datagrams, with checksums \
              left to devices; the AEAD calls that a packet needs are timed beside it. Both modes \
              take turns. Times are processor time for a packet at both ends in nanoseconds, \
              medians of the rounds. In transport mode an end removes and rebuilds a header \
              instead of encrypting it. Times are those of a release build: a debug build marks \
              its own, and neither judges nor plots them.",
    duration: |quick| START + ROUND * (LENGTHS.len() as u32 * rounds(quick)),
    rests_on: &[Basis::Transport],
    check: || {
        ["stratad", "strata"]
            .into_iter()
            .try_for_each(|name| find_binary(name).map(drop))
    },
    measure: measure_all,
    judge: |raw| Ok(judged(&complete(raw.data()?))),
};

/// Name of the finding that judges lengths.
const AS_COMPUTED: &str =
    "packets as long as computed, those in transport mode 20 octets shorter, over all";

/// Octets of the datagrams.
const LENGTHS: [usize; 8] = [60, 100, 140, 180, 256, 576, 1024, 1400];

/// Lengths that the paper has numbers for, with the share that is saved there, in percent.
const SHORT: usize = 60;
const SMALL: usize = 180;
const OF_SHORT: &str = "31";
const OF_SMALL: &str = "10";
const BETWEEN: &str = "10 to 31";
const OF_CPU: &str = "20";

/// Durations of two tunnels and of a round, estimated generously.
const START: Duration = Duration::from_secs(5);
const ROUND: Duration = Duration::from_micros(500);

const fn rounds(quick: bool) -> u32 {
    if quick { 100 } else { 4000 }
}

/// A value in tunnel mode and in transport mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Both<T> {
    tunnel: T,
    transport: T,
}

/// Processor time of a packet in one round, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Work {
    /// Sealing and opening.
    all: f64,
    /// The AEAD calls for both.
    calls: f64,
}

/// Measurements of one length.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cell {
    octets: usize,
    /// Octets of a packet on the wire.
    packet: Option<Both<usize>>,
    rounds: Vec<Both<Work>>,
    /// True if a debug build measured the rounds, whose times say nothing.
    #[serde(default)]
    debug: bool,
}

/// Adds the lengths that were not measured.
fn complete(mut cells: Vec<Cell>) -> Vec<Cell> {
    for octets in LENGTHS {
        if cells.iter().all(|cell| cell.octets != octets) {
            cells.push(Cell {
                octets,
                packet: None,
                rounds: Vec::new(),
                debug: false,
            });
        }
    }
    cells
}

fn measure_all(plan: &Plan) -> Raw {
    let mut cells = complete(Vec::new());
    let mut faults = Vec::new();
    let mut note = |result: Result<()>| faults.extend(result.err().map(|why| format!("{why:#}")));
    note(measure_lengths(plan, &mut cells).context("lengths"));
    for cell in &mut cells {
        let octets = cell.octets;
        note(measure_work(plan, cell).with_context(|| format!("datagrams of {octets} octets")));
    }
    Raw::new(&cells, faults)
}

/// Returns the mode of SAs that should be in transport mode.
const fn transport(plan: &Plan) -> Mode {
    if plan.transport {
        Mode::Transport
    } else {
        Mode::Tunnel
    }
}

fn measure_lengths(plan: &Plan, cells: &mut [Cell]) -> Result<()> {
    let of = |mode| lengths::on_the_wire(mode, &LENGTHS);
    let (tunnel, transport) = (of(Mode::Tunnel)?, of(transport(plan))?);
    let pairs = tunnel.into_iter().zip(transport);
    for (cell, (tunnel, transport)) in cells.iter_mut().zip(pairs) {
        cell.packet = Some(Both { tunnel, transport });
    }
    Ok(())
}

fn measure_work(plan: &Plan, cell: &mut Cell) -> Result<()> {
    let mut tunnel = Bench::new(Mode::Tunnel, cell.octets)?;
    let mut transport = Bench::new(transport(plan), cell.octets)?;
    let datagrams = segment::datagrams(cell.octets);
    cell.debug = cfg!(debug_assertions);
    for _ in 0..rounds(plan.quick) {
        cell.rounds.push(Both {
            tunnel: tunnel.round(&datagrams)?,
            transport: transport.round(&datagrams)?,
        });
    }
    Ok(())
}

/// Both ends in one mode, and the AEAD calls of their packets.
struct Bench {
    ends: Ends,
    calls: Calls,
}

impl Bench {
    fn new(mode: Mode, octets: usize) -> Result<Self> {
        // The calls depend on the length of the text only.
        let inside = match mode {
            Mode::Tunnel => octets,
            Mode::Transport | Mode::Beet => octets - ip::V4_HEADER_LEN,
        };
        Ok(Self {
            ends: Ends::in_mode(mode)?,
            calls: Calls::new(Shape::Plain, &[inside])?,
        })
    }

    fn round(&mut self, datagrams: &[Vec<u8>]) -> Result<Work> {
        let carried = self.ends.carry(datagrams)?;
        let alone = self.calls.time()?;
        Ok(Work {
            all: nanoseconds(carried.sealing + carried.opening),
            calls: nanoseconds(alone.sealing + alone.opening),
        })
    }
}

fn judged(cells: &[Cell]) -> Filled {
    let of = |group| ["tunnel", "transport"].map(|name| Column::new(group, name));
    let columns = of("computed").into_iter().chain(of("measured"));
    let rows = Subject::ALL.into_iter();
    Filled {
        grid: Grid {
            columns: columns.chain([Column::new("saved", "per mille")]).collect(),
            rows: rows
                .flat_map(|subject| cells.iter().map(move |cell| cell.row(subject)))
                .collect(),
        },
        findings: findings(cells),
        faults: Vec::new(),
        plots: vec![plot(cells)],
    }
}

/// Quantities that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Packet,
    Encrypted,
    Cryptography,
    Work,
}

impl Subject {
    const ALL: [Self; 4] = [
        Self::Packet,
        Self::Encrypted,
        Self::Cryptography,
        Self::Work,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Packet => "octets of a packet",
            Self::Encrypted => "encrypted octets",
            Self::Cryptography => "cryptography",
            Self::Work => "all work",
        }
    }

    const fn is_time(self) -> bool {
        matches!(self, Self::Cryptography | Self::Work)
    }

    /// Returns what follows the name in a table.
    const fn unit(self, debug: bool) -> &'static str {
        match (self.is_time(), debug) {
            (false, _) => "",
            (true, false) => ", ns",
            (true, true) => ", ns of a debug build, which say nothing",
        }
    }

    const fn colour(self) -> RGBColor {
        match self {
            Self::Packet => RGBColor(150, 150, 150),
            Self::Encrypted => RGBColor(0, 114, 178),
            Self::Cryptography => RGBColor(213, 148, 0),
            Self::Work => RGBColor(190, 20, 110),
        }
    }
}

impl Cell {
    /// Returns what follows from the formats. Times do not.
    fn computed(&self, subject: Subject) -> Option<Both<usize>> {
        let of: fn(Mode, usize) -> usize = match subject {
            Subject::Packet => lengths::packet,
            Subject::Encrypted => lengths::encrypted,
            Subject::Cryptography | Subject::Work => return None,
        };
        Some(Both {
            tunnel: of(Mode::Tunnel, self.octets),
            transport: of(Mode::Transport, self.octets),
        })
    }

    /// Returns every measurement, tunnel mode first.
    fn measured(&self, subject: Subject) -> Vec<(f64, f64)> {
        let octets = |of: fn(usize) -> usize| {
            let packet = self.packet.iter();
            packet
                .map(|both| (of(both.tunnel) as f64, of(both.transport) as f64))
                .collect()
        };
        let times = |of: fn(&Work) -> f64| {
            let rounds = self.rounds.iter();
            rounds
                .map(|both| (of(&both.tunnel), of(&both.transport)))
                .collect()
        };
        match subject {
            Subject::Packet => octets(|packet| packet),
            Subject::Encrypted => octets(lengths::encrypted_in),
            Subject::Cryptography => times(|work| work.calls),
            Subject::Work => times(|work| work.all),
        }
    }

    /// Returns the share that transport mode saves, in percent.
    fn saved(&self, subject: Subject) -> Option<Estimate> {
        let measured = self.measured(subject).into_iter();
        let left = median_ratio(&measured.map(|(a, b)| (b, a)).collect::<Vec<_>>())?;
        let saved = |left: f64| (1.0 - left) * 100.0;
        Some(Estimate {
            value: saved(left.value),
            interval: left.interval.map(|[low, high]| [saved(high), saved(low)]),
            runs: left.runs,
        })
    }

    fn row(&self, subject: Subject) -> Row {
        let computed = self.computed(subject);
        let measured = self.measured(subject);
        let middle = |of: fn(&(f64, f64)) -> f64| {
            let all: Vec<_> = measured.iter().map(of).collect();
            median(&all).map(|middle| middle.round() as i64)
        };
        let saved = self.saved(subject);
        Row {
            subject: format!("{}{}", subject.name(), subject.unit(self.debug)),
            name: format!("{} octets", self.octets),
            numbers: vec![
                computed.map(|both| both.tunnel as i64),
                computed.map(|both| both.transport as i64),
                middle(|both| both.0),
                middle(|both| both.1),
                saved.map(|saved| (saved.value * 10.0).round() as i64),
            ],
        }
    }

    /// Returns how many of the two packets are as long as computed.
    fn as_computed(&self) -> Option<usize> {
        let (packet, computed) = (self.packet?, self.computed(Subject::Packet)?);
        let is_tunnel = packet.tunnel == computed.tunnel;
        let is_transport = packet.transport == computed.transport
            && packet.transport + ip::V4_HEADER_LEN == packet.tunnel;
        Some(usize::from(is_tunnel) + usize::from(is_transport))
    }
}

fn findings(cells: &[Cell]) -> Vec<Finding> {
    let saved = |octets: usize, subject: Subject, paper: &str| {
        let cell = cells.iter().find(|cell| cell.octets == octets);
        let what = format!("datagram of {octets} octets: {} saved", subject.name());
        let saved = cell.and_then(|cell| cell.saved(subject));
        Finding::quantity(what, "%", paper, saved)
    };
    let octets = [
        all_as_computed(cells),
        saved(SHORT, Subject::Encrypted, OF_SHORT),
        saved(SMALL, Subject::Encrypted, OF_SMALL),
    ];
    let times = [
        saved(SHORT, Subject::Cryptography, BETWEEN),
        saved(SMALL, Subject::Cryptography, BETWEEN),
        saved(SHORT, Subject::Work, OF_CPU),
    ];
    let times = times.into_iter().filter(|_| !is_debug(cells));
    octets.into_iter().chain(times).collect()
}

fn is_debug(cells: &[Cell]) -> bool {
    cells.iter().any(|cell| cell.debug)
}

/// Claims that every packet has the computed length, the same witness for both modes.
fn all_as_computed(cells: &[Cell]) -> Finding {
    let right: Vec<_> = cells.iter().filter_map(Cell::as_computed).collect();
    let (right, all) = (right.iter().sum::<usize>(), 2 * right.len());
    let share = (all > 0).then(|| Estimate {
        value: right as f64 / all as f64,
        interval: None,
        runs: all,
    });
    Finding::at_least(AS_COMPUTED, 1.0, share).detail(format!("{right} of {all}"))
}

/// Plots the share that is saved over the length.
fn plot(cells: &[Cell]) -> Plot {
    let places: Vec<_> = cells.iter().collect();
    let shown = Subject::ALL.into_iter();
    let shown = shown.filter(|subject| !subject.is_time() || !is_debug(cells));
    let measured = shown.map(|subject| Series {
        name: subject.name().to_owned(),
        colour: subject.colour(),
        look: Look::Marked,
        dots: dots(&places, |cell| cell.saved(subject)),
    });
    let said = [(SHORT, OF_SHORT), (SMALL, OF_SMALL)];
    let paper = Series {
        name: "paper".to_owned(),
        colour: PAPER,
        look: Look::Diamonds,
        dots: dots(&places, |cell| {
            let (_, said) = said.iter().find(|(octets, _)| *octets == cell.octets)?;
            Some(Estimate {
                value: said.parse().ok()?,
                interval: None,
                runs: 0,
            })
        }),
    };
    let series: Vec<_> = measured.chain([paper]).collect();
    let tops = series.iter().flat_map(|series| &series.dots);
    let tops: Vec<_> = tops.map(|dot| dot.y).collect();
    let lowest = tops.iter().copied().fold(0.0, f64::min);
    let names = cells.iter().map(|cell| cell.octets.to_string());
    let mut y = Axis::from_zero("saved in %", tops);
    y.range.start = lowest * 1.08;
    let lines = Lines {
        title: "What transport mode saves beside tunnel mode".to_owned(),
        x: Axis::of_names("octets of the datagram", names.collect()),
        y,
        series,
    };
    Plot::lines("saved", lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    /// Returns measurements in which transport mode takes this share of the work, and in which its
    /// packets are those of `mode`.
    fn made(mode: Mode, share: f64) -> Vec<Cell> {
        let work = |share: f64| Work {
            all: 1000.0 * share,
            calls: 400.0 * share,
        };
        let cell = |octets| Cell {
            octets,
            packet: Some(Both {
                tunnel: lengths::packet(Mode::Tunnel, octets),
                transport: lengths::packet(mode, octets),
            }),
            rounds: vec![
                Both {
                    tunnel: work(1.0),
                    transport: work(share),
                };
                3
            ],
            debug: false,
        };
        LENGTHS.map(cell).into()
    }

    fn verdicts(cells: &[Cell]) -> Vec<Verdict> {
        let findings = judged(cells).findings;
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn packets_as_long_as_computed_hold() {
        let verdicts = verdicts(&made(Mode::Transport, 0.8));
        assert_eq!(verdicts[0], Holds);
        assert_eq!(verdicts[1..], [Consistent; 5]);
    }

    #[test]
    fn packets_in_tunnel_mode_fail() {
        let cells = made(Mode::Tunnel, 1.0);
        let findings = judged(&cells).findings;
        assert_eq!(findings[0].verdict, Fails);
        assert_eq!(findings[0].detail.as_deref(), Some("8 of 16"));
    }

    #[test]
    fn one_octet_more_fails() {
        let mut cells = made(Mode::Transport, 0.8);
        cells[2].packet.iter_mut().for_each(|both| both.tunnel += 1);
        assert_eq!(verdicts(&cells)[0], Fails);
    }

    /// The paper's 31 and 10 % are what 20 octets are of the encrypted ones.
    #[test]
    fn encrypted_octets_are_those_of_the_paper() {
        let findings = judged(&made(Mode::Transport, 0.8)).findings;
        let saved = findings[1..3].iter().map(|one| one.measured.unwrap().value);
        let saved: Vec<_> = saved.map(f64::round).collect();
        assert_eq!(saved, [31.0, 11.0]);
        assert!(findings.iter().all(|one| one.contradiction().is_none()));
    }

    /// Its lengths are those of every build.
    #[test]
    fn times_of_a_debug_build_are_marked_and_neither_judged_nor_plotted() {
        let mut cells = made(Mode::Transport, 0.8);
        cells.iter_mut().for_each(|cell| cell.debug = true);
        let filled = judged(&cells);
        assert_eq!(verdicts(&cells), [Holds, Consistent, Consistent]);
        let marked = filled.grid.rows.iter();
        let marked = marked.filter(|row| row.subject.ends_with("debug build, which say nothing"));
        assert_eq!(marked.count(), 2 * LENGTHS.len());
        let plotted = |cells: &[Cell]| plot(cells).svg().unwrap();
        assert!(!plotted(&cells).contains("all work"));
        assert!(plotted(&made(Mode::Transport, 0.8)).contains("all work"));
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert_eq!(verdicts(&complete(Vec::new())), [Fails; 6]);
    }

    #[test]
    fn each_subject_has_a_row_for_each_length() {
        let rows = judged(&made(Mode::Transport, 0.75)).grid.rows;
        assert_eq!(rows.len(), 4 * LENGTHS.len());
        assert_eq!(rows[0].numbers, [116, 96, 116, 96, 172].map(Some));
        let last = rows.last().unwrap();
        let numbers = [None, None, Some(1000), Some(750), Some(250)];
        assert_eq!(last.numbers, numbers);
    }
}
