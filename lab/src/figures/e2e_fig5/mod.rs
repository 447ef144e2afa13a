//! Figure 5 of the paper on end-to-end security (E2E): the packets at the mobile node while its
//! tunnel moves.

use super::moves::{
    Contender, FIRST, Flow, Kind, Protection, RENUMBERED, SECOND, Stage, Terms, Way,
};
use crate::experiment::{
    Basis, Claim, Column, Estimate, Filled, Finding, Grid, Plan, Raw, Row, Table,
};
use crate::plot::{Axis, Dot, Lines, Look, Plot, Series};
use crate::testbed::{find_binary, find_command};
use anyhow::{Context, Result};
use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "e2e-fig5",
    title: "The packets of a tunnel that moves: MOBIKE of Strata and of strongSwan",
    claims: &[
        Claim {
            says: "Where an interface is lost, the mobile node checks return routability, and then \
                   sends UPDATE_SA_ADDRESSES.",
            judged_by: &[CHECKED_FIRST],
        },
        Claim {
            says: "Traffic is stalled for about 300 ms.",
            judged_by: &["*: datagrams within 300 ms of the change, Strata over strongSwan"],
        },
    ],
    setting: "The figure is a picture without numbers. Here it is one move of each kind: another \
              address on the only interface (mobility), and the loss of the interface in use \
              (multihoming), with a gateway 15 ms a round trip away, in turns by Strata at both \
              ends and by strongSwan at both ends on the same wires. A datagram is sent each \
              millisecond each way. The kernel's packet socket at the mobile node has all packets: \
              rows are the messages of IKE after the change that the kernel reported, in \
              microseconds; the plots count packets in 10 ms, inner and outer ones, as in the \
              paper. Strata sends UPDATE_SA_ADDRESSES at once, and its gateway checks the address \
              before it sends there. The times of many moves are those of e2e-fig6.",
    duration: |_| START * 4,
    rests_on: &[Basis::Mobike],
    check: || {
        find_command("swanctl", "strongswan-swanctl")?;
        find_binary("strata")?;
        find_binary("stratad").map(drop)
    },
    measure,
    judge: |raw| Ok(judged(&complete(raw.data()?))),
};

/// Duration of hosts, daemons and a move.
const START: Duration = Duration::from_secs(5);

/// Round trip of the paper's public hot spot.
const ROUND_TRIP: Duration = Duration::from_millis(15);

/// Time that traffic is stalled in the paper.
const STALLED: Duration = Duration::from_millis(300);

const CHECKED_FIRST: &str =
    "multihoming, strongSwan: time of UPDATE_SA_ADDRESSES over that of the routability check";

/// A move.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cell {
    kind: Kind,
    contender: Contender,
    flow: Option<Flow>,
}

/// Adds the moves that were not made.
fn complete(mut cells: Vec<Cell>) -> Vec<Cell> {
    for kind in Kind::ALL {
        for contender in Contender::ALL {
            let is_here = |cell: &Cell| (cell.kind, cell.contender) == (kind, contender);
            if !cells.iter().any(is_here) {
                cells.push(Cell {
                    kind,
                    contender,
                    flow: None,
                });
            }
        }
    }
    cells
}

fn measure(plan: &Plan) -> Raw {
    let mut cells = complete(Vec::new());
    let mut faults = Vec::new();
    for cell in &mut cells {
        match record(cell.kind, cell.contender, plan) {
            Ok(flow) => cell.flow = Some(flow),
            Err(why) => faults.push(format!("{}: {why:#}", cell.name())),
        }
    }
    Raw::new(&cells, faults)
}

fn record(kind: Kind, contender: Contender, plan: &Plan) -> Result<Flow> {
    let mut stage = Stage::new(Terms {
        contender,
        protection: Protection::EspTunnel,
        round_trip: ROUND_TRIP,
        recorded: Flow::AFTER,
        more: if plan.mobike {
            ""
        } else {
            "mobike = \"off\"\n"
        },
    })?;
    match kind {
        Kind::Mobility => {
            stage.take_down(SECOND)?;
            stage.renumber(FIRST, RENUMBERED)?;
        }
        Kind::Multihoming => drop(stage.hand_over(Way::Lost, FIRST, SECOND)?),
    }
    stage.flow().context("the packets of the move")
}

impl Cell {
    fn name(&self) -> String {
        format!("{}, {}", self.kind.name(), self.contender.name())
    }

    fn rows(&self) -> Vec<Row> {
        let messages = self.flow.iter().flat_map(|flow| &flow.messages);
        messages
            .map(|message| Row {
                subject: self.name(),
                name: message.name.clone(),
                numbers: vec![Some(message.at.round() as i64)],
            })
            .collect()
    }

    fn plot(&self) -> Option<Plot> {
        let flow = self.flow.as_ref()?;
        let series = [
            ("ESP, old address", OLD, &flow.esp[0]),
            ("ESP, new address", NEW, &flow.esp[1]),
            ("datagrams", INNER, &flow.datagrams),
        ];
        let series: Vec<_> = series
            .map(|(name, colour, counts)| Series {
                name: name.to_owned(),
                colour,
                look: Look::Thin,
                dots: dots(counts),
            })
            .into();
        let all = || series.iter().flat_map(|series| &series.dots);
        let [first, last] = all().fold([0.0f64, 1.0], |[first, last], dot| {
            [first.min(dot.x), last.max(dot.x)]
        });
        let mut x = Axis::from_zero("ms since the change", [last]);
        x.range = first..last;
        let lines = Lines {
            title: self.name(),
            x,
            y: Axis::from_zero(
                "packets in 10 ms",
                all().map(|dot| dot.y).collect::<Vec<_>>(),
            ),
            series,
        };
        Some(Plot::lines(
            self.name().replace(", ", "-").to_lowercase(),
            lines,
        ))
    }
}

const OLD: RGBColor = RGBColor(190, 20, 110);
const NEW: RGBColor = RGBColor(0, 140, 100);
const INNER: RGBColor = RGBColor(40, 80, 220);

fn dots(counts: &[u64]) -> Vec<Dot> {
    let dot = |(x, count)| Dot {
        x,
        y: count as f64,
        interval: None,
    };
    Flow::points(counts).map(dot).collect()
}

fn judged(cells: &[Cell]) -> Filled {
    Filled {
        grid: Grid {
            columns: vec![Column::new("", "us")],
            rows: cells.iter().flat_map(Cell::rows).collect(),
        },
        findings: findings(cells),
        faults: Vec::new(),
        plots: cells.iter().filter_map(Cell::plot).collect(),
    }
}

fn findings(cells: &[Cell]) -> Vec<Finding> {
    let of = |kind: Kind, contender: Contender| {
        let mut cells = cells.iter();
        let cell = cells.find(move |cell| (cell.kind, cell.contender) == (kind, contender));
        cell.and_then(|cell| cell.flow.as_ref())
    };
    let carried = |kind: Kind| {
        let [ours, theirs] = Contender::ALL.map(|contender| {
            let within = of(kind, contender).map(|flow| flow.datagrams_within(STALLED));
            // Of none there would be no ratio.
            within.map(|count| count.max(1) as f64)
        });
        let what = format!(
            "{}: datagrams within 300 ms of the change, Strata over strongSwan",
            kind.name()
        );
        Finding::at_least(what, 1.0, ratio(ours, theirs))
    };
    let time = |contender, name: &str| of(Kind::Multihoming, contender)?.time_of(name);
    let theirs = |name| time(Contender::Strongswan, name);
    let checked_first = ratio(
        theirs("UPDATE_SA_ADDRESSES, request from the node"),
        theirs("routability check, response to the node"),
    );
    let ours = |name| time(Contender::Strata, name);
    let at_once = ratio(
        ours("routability check, request to the node"),
        ours("UPDATE_SA_ADDRESSES, request from the node"),
    );
    vec![
        carried(Kind::Mobility),
        carried(Kind::Multihoming),
        Finding::at_least(CHECKED_FIRST, 1.0, checked_first),
        Finding::at_least(
            "multihoming, Strata: time of the routability check over that of UPDATE_SA_ADDRESSES",
            1.0,
            at_once,
        ),
    ]
}

fn ratio(above: Option<f64>, below: Option<f64>) -> Option<Estimate> {
    let (above, below) = (above?, below?);
    Some(Estimate {
        value: above / below,
        interval: None,
        runs: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{Fails, Holds};
    use crate::figures::moves::Message;

    fn message(at: f64, name: &str) -> Message {
        Message {
            at,
            name: name.to_owned(),
        }
    }

    /// Returns moves: the check of strongSwan is answered at 117 ms, and traffic is back after as
    /// many steps of 10 ms as are given for each.
    fn made(ours: usize, theirs: usize) -> Vec<Cell> {
        let mut cells = complete(Vec::new());
        for cell in &mut cells {
            let (back, messages) = match cell.contender {
                Contender::Strata => (
                    ours,
                    vec![
                        message(2e3, "UPDATE_SA_ADDRESSES, request from the node"),
                        message(17e3, "routability check, request to the node"),
                    ],
                ),
                Contender::Strongswan => (
                    theirs,
                    vec![
                        message(102e3, "routability check, request from the node"),
                        message(117e3, "routability check, response to the node"),
                        message(118e3, "UPDATE_SA_ADDRESSES, request from the node"),
                    ],
                ),
            };
            // The change is after ten steps.
            let count = |step| {
                if (10..10 + back).contains(&step) {
                    0
                } else {
                    10
                }
            };
            let counts: Vec<u64> = (0..60).map(count).collect();
            cell.flow = Some(Flow {
                messages,
                esp: [counts.clone(), counts.clone()],
                datagrams: counts,
            });
        }
        cells
    }

    fn verdicts(cells: &[Cell]) -> Vec<crate::experiment::Verdict> {
        let findings = judged(cells).findings;
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn moves_in_the_order_of_the_protocol_hold() {
        let filled = judged(&made(3, 13));
        assert_eq!(verdicts(&made(3, 13)), [Holds; 4]);
        assert_eq!(filled.grid.rows.len(), 2 * (2 + 3));
        assert_eq!(filled.plots.len(), 4);
        assert_eq!(filled.plots[1].name, "mobility-strongswan");
    }

    #[test]
    fn a_move_that_takes_longer_than_strongswans_fails() {
        assert_eq!(verdicts(&made(13, 3))[..2], [Fails; 2]);
    }

    /// So it is without MOBIKE.
    #[test]
    fn a_move_without_an_update_fails() {
        let mut cells = made(30, 13);
        for cell in &mut cells {
            cell.flow.iter_mut().for_each(|flow| flow.messages.clear());
        }
        assert_eq!(verdicts(&cells), [Fails; 4]);
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert_eq!(verdicts(&complete(Vec::new())), [Fails; 4]);
    }
}
