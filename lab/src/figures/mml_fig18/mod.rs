//! Figure 18 of "Mobile multi-layered IPsec": the overhead if every n-th packet is encrypted.

use super::common::{PAPER, colour, dots, exactly};
use super::level::{Lengths, PERIODS, measure, name, of, ratio};
use crate::experiment::{Basis, Claim, Column, Filled, Finding, Grid, Row, Table};
use crate::plot::{Axis, Lines, Look, Plot, Series, Ticks};
use crate::scene::Setup;
use std::time::Duration;

/// The figure.
pub const TABLE: Table = Table {
    name: "mml-fig18",
    title: "Overhead of dynamic MML-IPsec, by how many packets are encrypted",
    claims: &[
        Claim {
            says: "If all packets are encrypted the overhead over pure IPsec is about 7 %.",
            judged_by: &["overhead of all packets encrypted over pure IPsec"],
        },
        Claim {
            says: "It decreases as the interval increases.",
            judged_by: &["overhead of all packets encrypted over that of every *"],
        },
        Claim {
            says: "If every 10th packet is encrypted it is 0.75 %.",
            judged_by: &["overhead of every 10th packet encrypted over pure IPsec"],
        },
    ],
    setting: "A gateway's worker seals TCP segments of 1380 octets in memory, every so many-th in \
              two zones of AES-128-GCM and all others authenticated alone, and its peer opens \
              them. The paper's other packets are plaintext: that column is computed, as if those \
              segments had gone around the tunnel, as in mml-fig17. Overhead is octets on the wire \
              with UDP and IPv4, in parts of ten thousand: over the same segments of which none is \
              encrypted, which is what the period decides about, and over pure IPsec (ESP with \
              AES-128-GCM and implicit IVs). A packet that is authenticated alone has no padding \
              and no pad length, so it is shorter than that, and the second number becomes \
              negative; so it does with plaintext. The paper does not say what its overhead is \
              made of; in 3DES and on machines of its day time is a part of it. What must hold is \
              that nothing of the overhead remains between the encrypted packets: it shrinks as \
              the period grows, in proportion.",
    duration: |_| Duration::from_secs(1),
    rests_on: &[Basis::Zones],
    check: || Ok(()),
    measure,
    judge: |raw| Ok(judged(&raw.data::<Vec<_>>()?)),
};

/// Overhead of the paper over pure IPsec by period, in percent (section 5.5).
const PAPER_OVERHEAD: [(u32, f64); 2] = [(1, 7.0), (10, 0.75)];

fn judged(lengths: &[Lengths]) -> Filled {
    let none = of(lengths, 0).map(|lengths| lengths.here);
    let parts = |octets: f64, over: f64| ((octets / over - 1.0) * 10_000.0).round() as i64;
    let row = |lengths: &Lengths| Row {
        subject: "1/10000".to_owned(),
        name: name(lengths.every),
        numbers: vec![
            paper(lengths.every).map(|percent| (percent * 100.0).round() as i64),
            none.map(|none| parts(lengths.here, none)),
            Some(parts(lengths.here, lengths.plain)),
            Some(parts(lengths.plaintext, lengths.plain)),
        ],
    };
    Filled {
        grid: Grid {
            columns: vec![
                Column::new("paper", "IPsec"),
                Column::new("here", "none"),
                Column::new("here", "IPsec"),
                Column::new("plaintext", "IPsec"),
            ],
            rows: lengths.iter().map(row).collect(),
        },
        findings: findings(lengths),
        faults: Vec::new(),
        plots: vec![plot(lengths)],
    }
}

fn paper(every: u32) -> Option<f64> {
    let said = PAPER_OVERHEAD.iter().find(|(period, _)| *period == every);
    said.map(|(_, percent)| *percent)
}

/// Returns the overhead over pure IPsec, in percent.
fn overhead(lengths: &[Lengths], every: u32, octets: fn(&Lengths) -> f64) -> Option<f64> {
    let lengths = of(lengths, every)?;
    Some((octets(lengths) / lengths.plain - 1.0) * 100.0)
}

fn findings(lengths: &[Lengths]) -> Vec<Finding> {
    let none = of(lengths, 0).map(|lengths| lengths.here);
    let over_none = |every| Some(of(lengths, every)?.here - none?);
    let shrinks = |which: &str, every, bound| {
        let measured = ratio(over_none(1), over_none(every));
        let what = format!("overhead of all packets encrypted over that of every {which}");
        Finding::at_least(what, bound, measured)
    };
    let over_ipsec = |which: &str, every, paper: f64| {
        let percent = overhead(lengths, every, |lengths| lengths.here);
        let what = format!("overhead of {which} encrypted over pure IPsec");
        Finding::quantity(what, "%", paper, percent.map(exactly))
    };
    let [all, tenth] = PAPER_OVERHEAD;
    vec![
        shrinks("2nd", 2, 1.99),
        shrinks("10th", 10, 9.9).paper(format!("{:.1}", all.1 / tenth.1)),
        over_ipsec("all packets", all.0, all.1),
        over_ipsec("every 10th packet", tenth.0, tenth.1),
    ]
}

fn plot(lengths: &[Lengths]) -> Plot {
    let line = |name: &str, setup, octets: fn(&Lengths) -> f64| Series {
        name: name.to_owned(),
        colour: colour(setup),
        look: Look::Marked,
        dots: dots(&PERIODS, |every| {
            overhead(lengths, every, octets).map(exactly)
        }),
    };
    let ticks = PERIODS.map(|every| match every {
        0 => "none".to_owned(),
        1 => "all".to_owned(),
        every => format!("1 of {every}"),
    });
    let lines = Lines {
        title: "Overhead over pure IPsec".to_owned(),
        x: Axis::of_names("packets in zones", ticks.into()),
        y: Axis {
            label: "overhead in percent".to_owned(),
            range: -6.0..8.0,
            ticks: Ticks::Numbers,
        },
        series: vec![
            line("others integrity-only", Setup::Zoned, |lengths| {
                lengths.here
            }),
            line("others plaintext", Setup::None, |lengths| lengths.plaintext),
            Series {
                name: "paper".to_owned(),
                colour: PAPER,
                look: Look::Diamonds,
                dots: dots(&PERIODS, |every| paper(every).map(exactly)),
            },
        ],
    };
    Plot::lines("overhead", lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Plan;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    fn verdicts(zones: bool) -> Vec<Verdict> {
        let plan = Plan {
            zones,
            ..Plan::QUICK
        };
        let filled = (TABLE.judge)(&measure(&plan)).unwrap();
        let findings = filled.findings.iter();
        findings.map(|finding| finding.verdict).collect()
    }

    #[test]
    fn the_overhead_shrinks_with_the_period_and_without_zones_the_verdict_fails() {
        assert_eq!(verdicts(true), [Holds, Holds, Consistent, Consistent]);
        assert_eq!(verdicts(false)[..2], [Fails; 2]);
        assert!(findings(&[]).iter().all(|finding| finding.verdict == Fails));
    }
}
