//! Table II and figures 2 to 5: what the analysis of a log says of users and connections.

use super::{Cell, LOGS, SEED, cells, over_all, usual};
use crate::experiment::{Claim, Column, Estimate, Filled, Finding, Grid, Raw, Row, Table};
use crate::logs::synthesis::{self, Open, Workload};
use crate::logs::{Class, classes, plots, strategies, text};
use crate::plot::{Axis, Dot, Lines, Look, Plot, Series};
use anyhow::Result;
use logs::{Summary, Zone};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Table II.
pub const TABLE2: Table = Table {
    name: "vpn-table2",
    title: "Characteristics of the logs",
    claims: &[
        Claim {
            says: "A connection lasts 1.05 hours on average (wireless), and 3.14 hours (remote).",
            judged_by: &["*: mean duration"],
        },
        Claim {
            says: "It carries 3.09 MB in and 6.91 MB out (wireless), 8.52 MB and 20.82 MB (remote).",
            judged_by: &["*: mean volume in", "*: mean volume out"],
        },
        Claim {
            says: "There are at least ten times as many connections as users.",
            judged_by: &["*: connections over users"],
        },
    ],
    judge: |raw| Ok(judged(&raw.data::<Vec<_>>()?, &MEANS)),
    ..BASE
};

/// Figure 2.
pub const FIG2: Table = Table {
    name: "vpn-fig2",
    title: "Connections per day",
    claims: &[Claim {
        says: "The number of connections varies widely from day to day.",
        judged_by: &["*: connections of the busiest day over the quietest"],
    }],
    judge: |raw| Ok(judged(&raw.data::<Vec<_>>()?, &DAYS)),
    ..BASE
};

/// Figure 3.
pub const FIG3: Table = Table {
    name: "vpn-fig3",
    title: "Duration of connections",
    claims: &[
        Claim {
            says: "Most connections last 10 minutes to 3 hours.",
            judged_by: &["*: connections of 10 minutes to 3 hours over all others"],
        },
        Claim {
            says: "A significant number lasts less than 5 minutes.",
            judged_by: &["*: connections of up to 5 minutes, of all"],
        },
        Claim {
            says: "Connections of wireless clients are shorter.",
            judged_by: &["wireless over remote: connections of up to an hour, of all"],
        },
    ],
    judge: |raw| Ok(judged(&raw.data::<Vec<_>>()?, &DURATIONS)),
    ..BASE
};

/// Figure 4.
pub const FIG4: Table = Table {
    name: "vpn-fig4",
    title: "Volume of data transferred to and from the gateways",
    claims: &[
        Claim {
            says: "Most connections transfer 1 MB or less.",
            judged_by: &["*: transfers of up to 1 MB over larger ones"],
        },
        Claim {
            says: "Wireless clients transfer less.",
            judged_by: &["wireless over remote: transfers of up to 1 MB, of all"],
        },
    ],
    judge: |raw| Ok(judged(&raw.data::<Vec<_>>()?, &VOLUMES)),
    ..BASE
};

/// Figure 5.
pub const FIG5: Table = Table {
    name: "vpn-fig5",
    title: "Visits of a user",
    claims: &[Claim {
        says: "The vast majority of users connect more than once.",
        judged_by: &["*: users who come more than once, of all"],
    }],
    judge: |raw| Ok(judged(&raw.data::<Vec<_>>()?, &VISITS)),
    ..BASE
};

/// Fields that the five share.
const BASE: Table = Table {
    name: "",
    title: "",
    claims: &[],
    setting: "The paper's logs are not available. Synthetic ones have the users, connections and \
              means of its table II; how durations and volumes spread was chosen so that the first \
              row of each log fits the paper's sentences about figures 3 and 4, and the rhythm of \
              days and weeks was assumed. Each log is written as a table and read by the analysis \
              that operators run. So this shows that the analysis counts what is in a log, and that \
              one log can have all that the paper says of its own; it is no evidence for the paper. \
              Claims are judged by the first row. The others change one thing that table II leaves \
              open, and show how much it matters. That the wireless log varies more from day to day \
              is not decided: both have one rhythm.",
    duration: |quick| Duration::from_secs(if quick { 20 } else { 60 }),
    rests_on: &[],
    check: || Ok(()),
    measure: |plan| Raw::from_result(cells(plan, characteristics)),
    judge: |_| Ok(judged(&[], &MEANS)),
};

const MEGABYTE: f64 = 1_048_576.0;

/// Least part of the connections that is a significant number.
const SIGNIFICANT: f64 = 0.02;

/// Least part of the users that is a vast majority.
const VAST: f64 = 0.8;

/// Least ratio of two days that vary widely.
const WIDELY: f64 = 1.5;

/// What the analysis says of a log.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Characteristics {
    connections: u64,
    users: u64,
    /// Mean duration, in seconds.
    seconds: Option<f64>,
    /// Mean of the octets that the gateway receives in a connection.
    received: Option<f64>,
    /// Mean of the octets that it sends.
    sent: Option<f64>,
    /// Connections of each day.
    days: Vec<u64>,
    durations: Vec<Class>,
    /// Octets in each direction of a connection.
    volumes: Vec<Class>,
    visits: Vec<Class>,
}

fn characteristics(workload: Workload, open: Open) -> Result<Characteristics> {
    let mut summary = Summary::new(Zone::UTC, workload.users as usize);
    synthesis::read(workload, open, SEED, &mut |session| summary.add(&session))?;
    let mut volumes = summary.received.clone();
    volumes.merge(&summary.sent);
    Ok(Characteristics {
        connections: summary.connections(),
        users: summary.visits.users() as u64,
        seconds: summary.durations.mean(),
        received: summary.received.mean(),
        sent: summary.sent.mean(),
        days: summary.days.iter().map(|(_, count)| count).collect(),
        durations: classes(&summary.durations),
        volumes: classes(&volumes),
        visits: classes(&summary.visits.histogram()),
    })
}

impl Characteristics {
    fn connections_of_a_user(&self) -> Option<f64> {
        ratio(self.connections, self.users)
    }

    fn widest(&self) -> Option<f64> {
        let (most, least) = (self.days.iter().max()?, self.days.iter().min()?);
        ratio(*most, *least)
    }

    fn of_usual_length(&self) -> Option<f64> {
        let up_to = |seconds| up_to(&self.durations, seconds);
        let usual = up_to(10_800) - up_to(600);
        ratio(usual, count(&self.durations) - usual)
    }

    fn small(&self) -> Option<f64> {
        let small = up_to(&self.volumes, 1_000_000);
        ratio(small, count(&self.volumes) - small)
    }

    fn part_of_connections(&self, seconds: u64) -> Option<f64> {
        ratio(up_to(&self.durations, seconds), count(&self.durations))
    }

    fn part_of_transfers(&self) -> Option<f64> {
        ratio(up_to(&self.volumes, 1_000_000), count(&self.volumes))
    }

    fn part_that_returns(&self) -> Option<f64> {
        let all = count(&self.visits);
        ratio(all - up_to(&self.visits, 1), all)
    }
}

fn count(classes: &[Class]) -> u64 {
    classes.iter().map(|class| class.count).sum()
}

/// Returns the number of members up to a bound, which is one of the classes'.
fn up_to(classes: &[Class], bound: u64) -> u64 {
    let below = classes.iter();
    let below = below.filter(|class| class.up_to.is_some_and(|most| most <= bound));
    below.map(|class| class.count).sum()
}

fn ratio(a: u64, b: u64) -> Option<f64> {
    (b > 0).then(|| a as f64 / b as f64)
}

/// What was found in all logs.
type Cells = [Cell<Characteristics>];

/// What one table or figure shows of the characteristics.
struct View {
    columns: fn() -> Vec<String>,
    numbers: fn(&Characteristics) -> Vec<Option<i64>>,
    findings: fn(&Cells) -> Vec<Finding>,
    plot: Option<fn(&Cells) -> Plot>,
}

fn judged(cells: &Cells, view: &View) -> Filled {
    let columns = (view.columns)().into_iter();
    let rows = cells.iter().map(|cell| Row {
        subject: cell.log.clone(),
        name: cell.open.clone(),
        numbers: (view.numbers)(&cell.found),
    });
    let plot = view.plot.filter(|_| !cells.is_empty());
    Filled {
        grid: Grid {
            columns: columns.map(|name| Column::new("", &name)).collect(),
            rows: rows.collect(),
        },
        findings: (view.findings)(cells),
        faults: Vec::new(),
        plots: plot.into_iter().map(|plot| plot(cells)).collect(),
    }
}

const MEANS: View = View {
    columns: || {
        let names = ["connections", "users", "seconds", "octets in", "octets out"];
        names.map(str::to_owned).into()
    },
    numbers: |found| {
        let whole = |mean: Option<f64>| Some(mean?.round() as i64);
        let counts = [found.connections, found.users].map(|count| Some(count as i64));
        let means = [found.seconds, found.received, found.sent].map(whole);
        counts.into_iter().chain(means).collect()
    },
    findings: |cells| {
        let paper = [("1.05", "3.09", "6.91"), ("3.14", "8.52", "20.82")];
        let logs = LOGS.iter().zip(paper);
        let findings = logs.flat_map(|((log, ..), (hours, received, sent))| {
            let mean = |what: &str, unit, paper, value: fn(&Characteristics) -> Option<f64>| {
                Finding::quantity(
                    format!("{log}: {what}"),
                    unit,
                    paper,
                    over_all(cells, log, value),
                )
            };
            [
                mean("mean duration", "h", hours, |found| {
                    Some(found.seconds? / 3600.0)
                }),
                mean("mean volume in", "MB", received, |found| {
                    Some(found.received? / MEGABYTE)
                }),
                mean("mean volume out", "MB", sent, |found| {
                    Some(found.sent? / MEGABYTE)
                }),
                at_least(cells, log, "connections over users", 10.0, |found| {
                    found.connections_of_a_user()
                }),
            ]
        });
        findings.collect()
    },
    plot: None,
};

const DAYS: View = View {
    columns: || {
        let names = ["days", "quietest", "busiest"];
        names.map(str::to_owned).into()
    },
    numbers: |found| {
        let days = found.days.iter();
        let [least, most] = [days.clone().min(), days.max()];
        let number = |count: &u64| *count as i64;
        vec![
            Some(found.days.len() as i64),
            least.map(number),
            most.map(number),
        ]
    },
    findings: |cells| {
        let what = "connections of the busiest day over the quietest";
        of_each(cells, what, WIDELY, Characteristics::widest)
    },
    plot: Some(draw_days),
};

const DURATIONS: View = View {
    columns: || names(logs::bounds::DURATIONS, length),
    numbers: |found| counts(&found.durations),
    findings: |cells| {
        let usual = "connections of 10 minutes to 3 hours over all others";
        let mut findings = of_each(cells, usual, 1.0, Characteristics::of_usual_length);
        let short = "connections of up to 5 minutes, of all";
        findings.extend(of_each(cells, short, SIGNIFICANT, |found| {
            found.part_of_connections(300)
        }));
        findings.push(wireless_over_remote(
            cells,
            "connections of up to an hour, of all",
            |found| found.part_of_connections(3600),
        ));
        findings
    },
    plot: Some(|cells| {
        let title = "Duration of connections";
        draw(cells, "durations", title, |found| &found.durations, length)
    }),
};

const VOLUMES: View = View {
    columns: || names(logs::bounds::VOLUMES, text::bound_of_octets),
    numbers: |found| counts(&found.volumes),
    findings: |cells| {
        let small = "transfers of up to 1 MB over larger ones";
        let mut findings = of_each(cells, small, 1.0, Characteristics::small);
        findings.push(wireless_over_remote(
            cells,
            "transfers of up to 1 MB, of all",
            Characteristics::part_of_transfers,
        ));
        findings
    },
    plot: Some(|cells| {
        let title = "Octets in each direction of a connection";
        draw(
            cells,
            "volumes",
            title,
            |found| &found.volumes,
            text::bound_of_octets,
        )
    }),
};

const VISITS: View = View {
    columns: || names(logs::bounds::VISITS, |visits| visits.to_string()),
    numbers: |found| counts(&found.visits),
    findings: |cells| {
        let what = "users who come more than once, of all";
        of_each(cells, what, VAST, Characteristics::part_that_returns)
    },
    plot: Some(|cells| {
        let title = "Visits of a user";
        draw(
            cells,
            "visits",
            title,
            |found| &found.visits,
            |visits| visits.to_string(),
        )
    }),
};

fn length(seconds: u64) -> String {
    strategies::span(Duration::from_secs(seconds))
}

fn names(bounds: &[u64], name: fn(u64) -> String) -> Vec<String> {
    let bounds = bounds.iter().map(|bound| name(*bound));
    bounds.chain(["more".to_owned()]).collect()
}

fn counts(classes: &[Class]) -> Vec<Option<i64>> {
    let classes = classes.iter();
    classes.map(|class| Some(class.count as i64)).collect()
}

/// Claims a bound for the usual assumptions of a log.
fn at_least(
    cells: &Cells,
    log: &str,
    what: &str,
    bound: f64,
    value: fn(&Characteristics) -> Option<f64>,
) -> Finding {
    let value = usual(cells, log).and_then(value);
    Finding::at_least(format!("{log}: {what}"), bound, value.map(single))
}

fn of_each(
    cells: &Cells,
    what: &str,
    bound: f64,
    value: fn(&Characteristics) -> Option<f64>,
) -> Vec<Finding> {
    let logs = LOGS.iter();
    logs.map(|(log, ..)| at_least(cells, log, what, bound, value))
        .collect()
}

fn wireless_over_remote(
    cells: &Cells,
    what: &str,
    part: fn(&Characteristics) -> Option<f64>,
) -> Finding {
    let [wireless, remote] = LOGS.map(|(log, ..)| usual(cells, log).and_then(part));
    let ratio = wireless
        .zip(remote)
        .map(|(wireless, remote)| wireless / remote);
    Finding::at_least(
        format!("wireless over remote: {what}"),
        1.0,
        ratio.map(single),
    )
}

const fn single(value: f64) -> Estimate {
    Estimate {
        value,
        interval: None,
        runs: 1,
    }
}

fn draw_days(cells: &Cells) -> Plot {
    let lines = LOGS.iter().filter_map(|(log, _, colour)| {
        let days = (1..).zip(&usual(cells, log)?.days);
        let dots = days.map(|(day, count)| Dot {
            x: f64::from(day),
            y: *count as f64,
            interval: None,
        });
        Some(Series {
            name: (*log).to_owned(),
            colour: *colour,
            look: Look::Marked,
            dots: dots.collect(),
        })
    });
    let series: Vec<_> = lines.collect();
    let dots = || series.iter().flat_map(|line| &line.dots);
    Plot::lines(
        "days",
        Lines {
            title: "Connections per day".to_owned(),
            x: Axis::from_zero("day", dots().map(|dot| dot.x)),
            y: Axis::from_zero("connections", dots().map(|dot| dot.y)),
            series,
        },
    )
}

/// Draws a distribution of both logs, in parts of all.
fn draw(
    cells: &Cells,
    name: &str,
    title: &str,
    of: fn(&Characteristics) -> &[Class],
    bound: fn(u64) -> String,
) -> Plot {
    let lines = LOGS
        .iter()
        .filter_map(|(log, _, colour)| Some((*log, *colour, of(usual(cells, log)?))));
    plots::classes(name, title, &Vec::from_iter(lines), bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Plan, Verdict};

    const ALL: [Table; 5] = [TABLE2, FIG2, FIG3, FIG4, FIG5];

    /// Returns the verdicts of what is claimed.
    fn verdicts(raw: &Raw, table: &Table) -> Vec<Verdict> {
        let findings = (table.judge)(raw).unwrap().findings.into_iter();
        let claimed = findings.filter(|finding| finding.at_least.is_some());
        claimed.map(|finding| finding.verdict).collect()
    }

    #[test]
    fn a_log_can_have_all_that_the_paper_says_of_its_own() {
        let raw = (BASE.measure)(&Plan::QUICK);
        for table in ALL {
            let filled = (table.judge)(&raw).unwrap();
            assert_eq!(filled.grid.rows.len(), 14);
            let contradicted = filled
                .findings
                .iter()
                .find(|finding| finding.contradiction().is_some());
            assert_eq!(contradicted, None);
            assert!(
                verdicts(&raw, &table)
                    .iter()
                    .all(|verdict| *verdict == Verdict::Holds)
            );
        }
    }

    /// One user a connection, each day alike, a wireless log with larger and longer connections.
    #[test]
    fn of_another_log_no_claim_holds() {
        let class = |up_to, count| Class {
            up_to: Some(up_to),
            count,
        };
        let other = |log: &str, durations, volumes| Cell {
            log: log.to_owned(),
            open: "usual".to_owned(),
            found: Characteristics {
                connections: 100,
                users: 100,
                seconds: Some(1.0),
                received: Some(1.0),
                sent: Some(1.0),
                days: vec![50, 50],
                durations,
                volumes,
                visits: vec![class(1, 100), class(5, 0)],
            },
        };
        let cells = [
            other(
                "wireless",
                vec![
                    class(300, 0),
                    class(600, 0),
                    class(3600, 10),
                    class(86_400, 90),
                ],
                vec![class(1_000_000, 10), class(10_000_000, 90)],
            ),
            other(
                "remote",
                vec![
                    class(300, 0),
                    class(600, 90),
                    class(3600, 5),
                    class(86_400, 5),
                ],
                vec![class(1_000_000, 20), class(10_000_000, 80)],
            ),
        ];
        let raw = Raw::new(&cells, Vec::new());
        for table in ALL {
            let verdicts = verdicts(&raw, &table);
            assert!(
                verdicts.iter().all(|verdict| *verdict == Verdict::Fails),
                "{}",
                table.name
            );
        }
    }
}
