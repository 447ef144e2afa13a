//! Figure 14 of "Mobile multi-layered IPsec": five configurations over the error rate.

use super::common::{ERRORS, MIDDLE, conditions, gain, goodput, measured_errors};
use crate::experiment::{Condition, Figure, Finding, Results, bits};
use crate::plot::Plot;
use crate::scene::{Sender, Setup};

/// The figure.
pub const FIGURE: Figure = Figure {
    name: "mml-fig14",
    title: "Throughput of five configurations over the bit error rate",
    claim: "Without errors IPsec costs about 5 % of plain TCP's throughput and zones about 9 %. With \
            errors both collapse alike, by 27 % at one error in 2 Mbit and by 62 % at one in 64 kbit, \
            because TCP takes losses for congestion. A licensed node that runs SNOOP repairs them: \
            zones with SNOOP are up to five times as fast as without (2.7 times at one error in \
            512 kbit), 19 % faster even at the lowest error rate (14 % faster than IPsec), and 3 % \
            to 108 % faster than plain TCP at every error rate.",
    setting: "Server, a wired hop of 100 ms each way without errors, the licensed node, a wireless \
              hop of 2 Mb/s and 1 ms whose bit errors are Poisson in both directions, the mobile \
              node. TCP is the kernel's, IPsec is stratad's, with AES-GCM and authentication (the \
              paper measured 3DES with authentication off). Goodput is what the receiver reads \
              after the first quarter of a download, at most 5 s, in which slow start ends. \
              Configurations with the same seed meet the same bit errors.",
    conditions: |quick| match quick {
        true => conditions(&Setup::ALL, &[0, MIDDLE]),
        false => conditions(&Setup::ALL, &ERRORS),
    },
    findings,
    plots,
    traces: false,
    zones: false,
};

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = costs(results);
    findings.extend(gains(results));
    findings.extend(against_plain_tcp(results));
    findings.extend(bbr(results));
    findings.extend(as_the_paper(results));
    findings
}

/// Shows the other numbers of the paper beside those measured here. How far TCP collapses depends on
/// delay and buffers.
fn as_the_paper(results: &Results) -> Vec<Finding> {
    const LEAST: u64 = 64 << 10;
    const MANY: u64 = 2 << 20;
    const MOST: u64 = 8 << 20;
    let of = |setup, errors| Condition::new(setup, Sender::Reno, errors);
    let measured = measured_errors(results);
    [
        (of(Setup::Ipsec, MANY), of(Setup::Ipsec, 0), 0.73),
        (of(Setup::Ipsec, LEAST), of(Setup::Ipsec, 0), 0.38),
        (of(Setup::ZonedSnoop, LEAST), of(Setup::Zoned, LEAST), 5.0),
        (of(Setup::ZonedSnoop, MOST), of(Setup::Zoned, MOST), 1.19),
        (of(Setup::ZonedSnoop, MOST), of(Setup::Ipsec, MOST), 1.14),
    ]
    .into_iter()
    .filter(|(above, ..)| measured.contains(&above.one_error_in))
    .map(|(above, below, paper)| {
        let name = |condition: &Condition| match condition.one_error_in {
            0 => format!("{} without errors", condition.name()),
            errors => format!("{} at {}", condition.name(), bits(errors)),
        };
        let what = format!("Reno: {} over {}", name(&above), name(&below));
        Finding::beside(what, paper, results.gain(&above, &below))
    })
    .collect()
}

/// Claims about the cost of zones on a link without errors.
fn costs(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for sender in Sender::ALL {
        let zoned = Condition::new(Setup::Zoned, sender, 0);
        for (over, bound, paper) in [(Setup::Ipsec, 0.95, "0.96"), (Setup::None, 0.9, "0.91")] {
            let name = (sender.name(), over.name());
            let what = format!("{}, no errors: zoned over {}", name.0, name.1);
            let measured = results.gain(&zoned, &zoned.with(over));
            let finding = Finding::at_least(what, bound, measured);
            findings.push(match sender {
                Sender::Reno => finding.paper(paper),
                Sender::Cubic | Sender::Bbr => finding,
            });
        }
    }
    findings
}

/// Claims about the gain from SNOOP with zones in the middle of the axis.
fn gains(results: &Results) -> [Finding; 2] {
    [(Sender::Reno, 3.5), (Sender::Cubic, 2.0)].map(|(sender, bound)| {
        let what = format!("{}, 512k: zoned + SNOOP over zoned", sender.name());
        let condition = Condition::new(Setup::ZonedSnoop, sender, MIDDLE);
        let measured = results.gain(&condition, &condition.with(Setup::Zoned));
        let finding = Finding::at_least(what, bound, measured);
        match sender {
            Sender::Reno => finding.paper("2.7"),
            Sender::Cubic | Sender::Bbr => finding,
        }
    })
}

/// Claims that protection with repair is better than neither.
fn against_plain_tcp(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for sender in [Sender::Reno, Sender::Cubic] {
        for errors in measured_errors(results) {
            if !(1..=4 << 20).contains(&errors) {
                continue;
            }
            let what = format!(
                "{}, {}: zoned + SNOOP over none",
                sender.name(),
                bits(errors)
            );
            let condition = Condition::new(Setup::ZonedSnoop, sender, errors);
            let measured = results.gain(&condition, &condition.with(Setup::None));
            let finding = Finding::at_least(what, 1.0, measured);
            findings.push(match sender {
                Sender::Reno => finding.paper("1.03 to 2.08"),
                Sender::Cubic | Sender::Bbr => finding,
            });
        }
    }
    findings
}

/// Claims that SNOOP does not slow down a sender that tolerates losses.
fn bbr(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (of, over) in [
        (Setup::Snoop, Setup::None),
        (Setup::ZonedSnoop, Setup::Zoned),
    ] {
        for errors in measured_errors(results) {
            let (of_name, over_name) = (of.name(), over.name());
            let what = format!(
                "BBR, {}: median of {of_name} over {over_name}",
                bits(errors)
            );
            let condition = Condition::new(of, Sender::Bbr, errors);
            let measured = results.median_gain(&condition, &condition.with(over));
            findings.push(Finding::at_least(what, 0.95, measured));
        }
    }
    findings
}

fn plots(results: &Results) -> Vec<Plot> {
    let mut plots: Vec<_> = Sender::ALL
        .into_iter()
        .map(|sender| {
            let lines = goodput(results, "Five configurations", &Setup::ALL, sender);
            Plot::lines(format!("goodput-{}", sender.key()), lines)
        })
        .collect();
    let paper = [(8 << 20, 1.19), (MIDDLE, 2.7), (64 << 10, 5.0)];
    let pair = [Setup::ZonedSnoop, Setup::Zoned];
    let lines = gain(results, "Zoned + SNOOP over zoned", pair, &paper);
    plots.push(Plot::lines("gain", lines));
    plots
}
