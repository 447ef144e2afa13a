//! Figure 15 of "Mobile multi-layered IPsec": the sequence number over time.

use super::common::{MIDDLE, conditions, over_time, time_plot};
use super::parameters;
use crate::experiment::{Claim, Condition, Figure, Finding, Measured, Results};
use crate::plot::Plot;
use crate::scene::{Sender, Setup};

/// The figure.
pub const FIGURE: Figure = Figure {
    name: "mml-fig15",
    title: "Sequence number over time at one error in 512 kbit",
    claims: &[
        Claim {
            says: "With SNOOP the sequence number grows much faster than without.",
            judged_by: &[
                "Reno: octets of SNOOP over none",
                "Reno: octets of zoned + SNOOP over zoned",
            ],
        },
        Claim {
            says: "With zones and SNOOP it grows 2 times as fast as with IPsec.",
            judged_by: &["Reno: octets of zoned + SNOOP over IPsec"],
        },
    ],
    setting: "As mml-fig14. The sequence number is what the server's kernel counts as acknowledged \
              (TCP_INFO), sampled ten times a second; the ratios compare what is acknowledged at \
              the end of the download, slow start included. Drawn is the first seed.",
    parameters: parameters::TABLE_4,
    conditions: |_| conditions(&Setup::ALL, &[MIDDLE]),
    findings,
    plots,
    traces: true,
    zones: false,
};

fn findings(results: &Results) -> Vec<Finding> {
    let acknowledged = |cell: &Measured| {
        let last = cell.trace.last().map_or(0, |sample| sample.acknowledged);
        last.max(1) as f64
    };
    let ratio = |sender: Sender, of: Setup, over: Setup| {
        let condition = Condition::new(of, sender, MIDDLE);
        let what = format!(
            "{}: octets of {} over {}",
            sender.name(),
            of.name(),
            over.name()
        );
        let ratio = results.ratio(&condition, &condition.with(over), acknowledged);
        (what, ratio)
    };
    let reno = Sender::Reno;
    let (what, zoned) = ratio(reno, Setup::ZonedSnoop, Setup::Ipsec);
    let mut findings = vec![Finding::at_least(what, 2.0, zoned).paper("2")];
    for sender in [Sender::Reno, Sender::Cubic] {
        for (of, over) in [
            (Setup::Snoop, Setup::None),
            (Setup::ZonedSnoop, Setup::Zoned),
        ] {
            let (what, ratio) = ratio(sender, of, over);
            findings.push(Finding::at_least(what, 1.5, ratio));
        }
    }
    findings
}

fn plots(results: &Results) -> Vec<Plot> {
    let plot = |sender: Sender| {
        let series = Setup::ALL.map(|setup| {
            let condition = Condition::new(setup, sender, MIDDLE);
            over_time(results, &condition, |sample| {
                sample.acknowledged as f64 / 1e6
            })
        });
        let title = format!("Sequence number, {}", sender.name());
        let lines = time_plot(title, "acknowledged, in MB", series.into());
        Plot::lines(format!("sequence-{}", sender.key()), lines)
    };
    Sender::ALL.map(plot).into()
}
