//! Losses of a move between two foreign agents, with one binding at home and with simultaneous
//! bindings (RFC 5944 section 3.6).

mod download;
mod flow;
mod journey;

use crate::experiment::{
    Basis, Claim, Column, Estimate, Filled, Finding, Grid, Plan, Raw, Row, Table, mean, median,
    median_ratio,
};
use crate::plot::{Axis, Dot, Lines, Look, Plot, Series};
use crate::testbed::find_binary;
use journey::{Carried, Kind, Load, PHASE, travel};
use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "mml-handoff-loss",
    title: "What moves between foreign agents lose, with one binding and with two at once",
    claims: &[
        Claim {
            says: "A hand-over with keys that were distributed in advance takes 52.7 ms.",
            judged_by: &["datagrams to the mobile node, one binding: longest gap of a round"],
        },
        Claim {
            says: "That is well within the range of a TCP time-out.",
            judged_by: &["TCP's least time-out over the longest gap of a round, one binding"],
        },
    ],
    setting: "The paper counts no packets; that none has to be lost where coverage overlaps is \
              what Mobile IP promises of simultaneous bindings. stratad in five namespaces: a \
              mobile node, two foreign agents, each 10 ms from home, and its home agent, which is \
              the tunnel's gateway. The tunnel has two zones; both agents are licensed nodes that \
              read the headers with keys distributed in advance (PKD), and run SNOOP. The mobile \
              node goes to and fro between both agents; the link to the one it goes to is there \
              for 1.1 s before the other is cut without a warning, with one binding as with two. A \
              round is there and back. Carried are a thousand datagrams of 160 octets a second \
              each way, and, on another walk, a TCP download whose reader takes 32 KiB at once, so \
              that no queue on the way is full. Lost datagrams are those whose number did not \
              come, lost packets of the download those that home's kernel put into the tunnel's \
              device and the mobile node's did not get out of it. A gap is the longest time of a \
              round in which nothing came, with whatever the machine was late. With two bindings \
              home sends each packet by both agents, and the tunnel drops the second copy; a \
              mobile node sends by one alone, and its kernel by the other as soon as that link is \
              down, so what it has sent on the link that is cut is told and not judged.",
    duration: |quick| {
        let plan = if quick { Plan::QUICK } else { Plan::FULL };
        let walks = 4 * plan.seeds as u32;
        (SETUP + 4 * PHASE * rounds(quick)) * walks
    },
    rests_on: &[Basis::Bindings, Basis::Zones],
    check: || {
        ["stratad", "strata"]
            .into_iter()
            .try_for_each(|name| find_binary(name).map(drop))
    },
    measure,
    judge: |raw| {
        let pairs: Vec<Pair> = raw.data()?;
        Ok(match pairs.is_empty() {
            true => judged(&nothing()),
            false => judged(&pairs),
        })
    },
};

/// Duration of namespaces, daemons, a tunnel, and its end.
const SETUP: Duration = Duration::from_secs(5);

/// Number of rounds in a walk. Each seed is one walk.
const fn rounds(quick: bool) -> u32 {
    if quick { 1 } else { 5 }
}

/// Smallest retransmission time-out of Linux's TCP. RFC 6298 has one second.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Ratio by which the gaps with one binding must exceed those with two, beyond the machine's own
/// delays.
const SHRINKS: f64 = 1.2;

/// Hand-over in the paper with keys distributed in advance, in milliseconds (table 3).
const PAPER_GAP: f64 = 52.7;

/// Subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Subject {
    Flow,
    FlowBack,
    Download,
}

impl Subject {
    const ALL: [Self; 3] = [Self::Flow, Self::FlowBack, Self::Download];

    const fn name(self) -> &'static str {
        match self {
            Self::Flow => "datagrams to the mobile node",
            Self::FlowBack => "datagrams from the mobile node",
            Self::Download => "TCP download",
        }
    }
}

/// Traffic of a subject over all walks, with one binding and with two.
#[derive(Serialize, Deserialize)]
struct Pair {
    subject: Subject,
    one: Carried,
    two: Carried,
}

fn nothing() -> [Pair; 3] {
    Subject::ALL.map(|subject| Pair {
        subject,
        one: Carried::default(),
        two: Carried::default(),
    })
}

fn measure(plan: &Plan) -> Raw {
    let mut pairs = nothing();
    let mut faults = Vec::new();
    for seed in 1..=plan.seeds {
        for (load, simultaneous) in [
            (Load::Flow, false),
            (Load::Flow, true),
            (Load::Download, false),
            (Load::Download, true),
        ] {
            let kind = Kind {
                zones: plan.zones,
                simultaneous: simultaneous && plan.simultaneous,
            };
            match travel(load, kind, rounds(plan.quick)) {
                Ok([there, back]) => {
                    let [to, from, download] = &mut pairs;
                    let both = match load {
                        Load::Flow => vec![(to, there), (from, back)],
                        Load::Download => vec![(download, there)],
                    };
                    for (pair, carried) in both {
                        let of = match simultaneous {
                            false => &mut pair.one,
                            true => &mut pair.two,
                        };
                        of.add(carried);
                    }
                }
                Err(error) => {
                    let bindings = if simultaneous { "two" } else { "one" };
                    faults.push(format!(
                        "walk {seed}, {load:?}, {bindings} at once: {error:#}"
                    ));
                }
            }
        }
    }
    Raw::new(&pairs, faults)
}

fn judged(pairs: &[Pair]) -> Filled {
    Filled {
        grid: Grid {
            columns: columns(),
            rows: pairs.iter().flat_map(Pair::rows).collect(),
        },
        findings: findings(pairs),
        faults: Vec::new(),
        plots: pairs
            .iter()
            .filter(|pair| pair.subject != Subject::FlowBack)
            .map(Pair::plot)
            .collect(),
    }
}

fn columns() -> Vec<Column> {
    let packets = ["sent", "lost", "resent", "read", "repaired"];
    let packets = packets.map(|name| Column::new("packets", name));
    let gaps = ["median", "longest"].map(|name| Column::new("gap us", name));
    packets
        .into_iter()
        .chain([Column::new("", "rounds")])
        .chain(gaps)
        .collect()
}

fn micros(gap: Duration) -> f64 {
    gap.as_secs_f64() * 1e6
}

impl Pair {
    fn rows(&self) -> [Row; 2] {
        [("one binding", &self.one), ("two at once", &self.two)].map(|(name, carried)| {
            let gaps: Vec<_> = carried.gaps.iter().copied().map(micros).collect();
            let longest = gaps.iter().copied().max_by(f64::total_cmp);
            let whole = |gap: Option<f64>| gap.map(|gap| gap.round() as i64);
            Row {
                subject: self.subject.name().to_owned(),
                name: name.to_owned(),
                numbers: vec![
                    Some(carried.sent as i64),
                    Some(carried.lost as i64),
                    carried.resent.map(|resent| resent as i64),
                    carried.read.map(|read| read as i64),
                    carried.repaired.map(|repaired| repaired as i64),
                    Some(gaps.len() as i64),
                    whole(median(&gaps)),
                    whole(longest),
                ],
            }
        })
    }

    /// Claims that with two bindings every packet arrives.
    fn nothing_is_lost(&self) -> Finding {
        let Carried { sent, lost, .. } = self.two;
        let came = (sent > 0).then(|| (sent - lost.min(sent)) as f64 / sent as f64);
        let what = format!("{}, two bindings: came over sent", self.subject.name());
        Finding::at_least(what, 1.0, estimate(came, self.two.gaps.len()))
            .detail(format!("{lost} of {sent} lost"))
    }

    /// Claims that one binding loses packets; otherwise two bindings would gain nothing.
    fn one_binding_loses(&self) -> Finding {
        let Carried { sent, lost, .. } = self.one;
        let rounds = self.one.gaps.len();
        let each = (rounds > 0).then(|| lost as f64 / rounds as f64);
        let what = format!("{}, one binding: lost in a round", self.subject.name());
        Finding::at_least(what, 1.0, estimate(each, rounds))
            .detail(format!("{lost} of {sent} lost"))
    }

    /// Claims that the agents read the headers of the download; acknowledgements are read as well.
    fn is_read(&self) -> [Finding; 2] {
        [("one binding", &self.one), ("two bindings", &self.two)].map(|(name, carried)| {
            let read = carried.read.filter(|_| carried.sent > 0);
            let ratio = read.map(|read| read as f64 / carried.sent as f64);
            let what = format!(
                "{}, {name}: segments that agents read over packets to the mobile node",
                self.subject.name()
            );
            Finding::at_least(what, 1.0, estimate(ratio, carried.gaps.len()))
        })
    }

    /// Shows the gaps with one binding beside the paper's hand-over.
    fn gap(&self) -> Finding {
        let gaps: Vec<_> = self
            .one
            .gaps
            .iter()
            .map(|gap| micros(*gap) / 1000.0)
            .collect();
        let what = format!(
            "{}, one binding: longest gap of a round",
            self.subject.name()
        );
        Finding::quantity(what, "ms", PAPER_GAP, mean(&gaps))
    }

    fn gap_shrinks(&self) -> Finding {
        let gaps = self.one.gaps.iter().zip(&self.two.gaps);
        let gaps: Vec<_> = gaps
            .map(|(one, two)| (micros(*one), micros(*two)))
            .collect();
        let what = format!(
            "{}: longest gap of a round with one binding over that with two",
            self.subject.name()
        );
        Finding::at_least(what, SHRINKS, median_ratio(&gaps))
    }

    /// Plots the share of rounds without a gap longer than a number of milliseconds.
    fn plot(&self) -> Plot {
        let series = [
            ("one binding", ONE, &self.one),
            ("two at once", TWO, &self.two),
        ]
        .map(|(name, colour, carried)| Series {
            name: name.to_owned(),
            colour,
            look: Look::Marked,
            dots: shares(&carried.gaps),
        });
        let longest = series.iter().flat_map(|series| &series.dots);
        let longest: Vec<_> = longest.map(|dot| dot.x).collect();
        let lines = Lines {
            title: format!("Longest gap of a round, {}", self.subject.name()),
            x: Axis::from_zero("gap in ms", longest),
            y: Axis::from_zero("share of the rounds that have no longer one", [1.0]),
            series: series.into(),
        };
        let name = match self.subject {
            Subject::Flow | Subject::FlowBack => "gaps-flow",
            Subject::Download => "gaps-download",
        };
        Plot::lines(name, lines)
    }
}

const ONE: RGBColor = RGBColor(213, 148, 0);
const TWO: RGBColor = RGBColor(0, 140, 100);

fn shares(gaps: &[Duration]) -> Vec<Dot> {
    let mut gaps = gaps.to_vec();
    gaps.sort_unstable();
    let dot = |(place, gap): (usize, &Duration)| Dot {
        x: micros(*gap) / 1000.0,
        y: (place + 1) as f64 / gaps.len() as f64,
        interval: None,
    };
    gaps.iter().enumerate().map(dot).collect()
}

fn estimate(value: Option<f64>, runs: usize) -> Option<Estimate> {
    value.map(|value| Estimate {
        value,
        interval: None,
        runs,
    })
}

fn findings(pairs: &[Pair]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let judged = pairs
        .iter()
        .filter(|pair| pair.subject != Subject::FlowBack);
    for pair in judged {
        findings.push(pair.nothing_is_lost());
        findings.push(pair.one_binding_loses());
        findings.push(pair.gap_shrinks());
        if pair.subject == Subject::Flow {
            findings.push(within_a_timeout(&pair.one));
            findings.push(pair.gap());
        } else {
            findings.extend(pair.is_read());
        }
    }
    findings
}

/// Claims that a gap with one binding is shorter than TCP's smallest time-out, as the paper
/// observes.
fn within_a_timeout(carried: &Carried) -> Finding {
    let gaps = carried.gaps.iter();
    let pairs: Vec<_> = gaps.map(|gap| (micros(TIMEOUT), micros(*gap))).collect();
    let paper = TIMEOUT.as_secs_f64() * 1000.0 / PAPER_GAP;
    let what = "TCP's least time-out over the longest gap of a round, one binding";
    Finding::at_least(what, 1.0, median_ratio(&pairs)).paper(format!("{paper:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    fn carried(lost: u64, gap: u64) -> Carried {
        Carried {
            sent: 1000,
            lost,
            gaps: vec![Duration::from_millis(gap); 3],
            ..Carried::default()
        }
    }

    fn verdicts(one: Carried, two: Carried) -> Vec<Verdict> {
        let pair = Pair {
            subject: Subject::Flow,
            one,
            two,
        };
        let findings = judged(&[pair]).findings;
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn a_walk_that_loses_with_one_binding_and_not_with_two_holds() {
        assert_eq!(
            verdicts(carried(90, 30), carried(0, 3)),
            [Holds, Holds, Holds, Holds, Consistent]
        );
    }

    #[test]
    fn one_packet_that_is_lost_with_two_bindings_fails() {
        let verdicts = verdicts(carried(90, 30), carried(1, 3));
        assert_eq!(verdicts, [Fails, Holds, Holds, Holds, Consistent]);
    }

    #[test]
    fn a_walk_that_loses_nothing_with_one_binding_shows_nothing() {
        let verdicts = verdicts(carried(0, 3), carried(0, 3));
        assert_eq!(verdicts, [Holds, Fails, Fails, Holds, Consistent]);
    }

    #[test]
    fn a_gap_that_is_longer_than_a_timeout_fails() {
        let verdicts = verdicts(carried(300, 300), carried(0, 3));
        assert_eq!(verdicts, [Holds, Holds, Holds, Fails, Consistent]);
    }

    #[test]
    fn what_was_not_measured_fails() {
        let none = || Carried::default();
        assert_eq!(verdicts(none(), none()), [Fails; 5]);
    }

    #[test]
    fn a_download_that_no_agent_reads_fails() {
        let read = |read| {
            let carried = Carried {
                read: Some(read),
                ..carried(0, 3)
            };
            let pair = Pair {
                subject: Subject::Download,
                one: carried.clone(),
                two: carried,
            };
            pair.is_read().map(|finding| finding.verdict)
        };
        assert_eq!(read(1500), [Holds; 2]);
        assert_eq!(read(0), [Fails; 2]);
    }

    #[test]
    fn the_share_of_rounds_grows_to_all_of_them() {
        let dots = shares(&[30, 10, 20, 40].map(Duration::from_millis));
        let points: Vec<_> = dots.iter().map(|dot| (dot.x, dot.y)).collect();
        assert_eq!(
            points,
            [(10.0, 0.25), (20.0, 0.5), (30.0, 0.75), (40.0, 1.0)]
        );
    }
}
