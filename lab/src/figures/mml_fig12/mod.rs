//! Figure 12 of "Mobile multi-layered IPsec": SNOOP against plain TCP, without IPsec.

use super::common::{ERRORS, MIDDLE, MOST, conditions, gain, goodput, measured_errors};
use super::parameters;
use crate::experiment::{Claim, Condition, Figure, Finding, Results, bits};
use crate::plot::Plot;
use crate::scene::{Sender, Setup};

/// The figure.
pub const FIGURE: Figure = Figure {
    name: "mml-fig12",
    title: "SNOOP against plain TCP over the bit error rate",
    claims: &[
        Claim {
            says: "TCP Reno with SNOOP is faster than without at every error rate.",
            judged_by: &["Reno, *: SNOOP over none"],
        },
        Claim {
            says: "At one error in 8 Mbit it is 10 % faster.",
            judged_by: &["Reno, 8M: SNOOP over none, as the paper"],
        },
        Claim {
            says: "At one error in 64 kbit it is 3 times as fast.",
            judged_by: &["Reno, 64k: SNOOP over none, as the paper"],
        },
    ],
    setting: "As mml-fig14, without any IPsec: the node at the wireless hop runs SNOOP on TCP in \
              clear, or only forwards. The paper downloaded 5 MB from a server on the Internet \
              whose delay it does not give; here the wired hop takes 100 ms each way, as in its \
              other figures. It takes the figure for the proof that its SNOOP is that of \
              Balakrishnan and others.",
    parameters: parameters::TABLE_4,
    conditions: |quick| match quick {
        true => conditions(&SETUPS, &[MIDDLE, MOST]),
        false => conditions(&SETUPS, &ERRORS[1..]),
    },
    findings,
    plots,
    traces: false,
    zones: false,
};

const SETUPS: [Setup; 2] = [Setup::None, Setup::Snoop];

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for sender in Sender::ALL {
        for errors in measured_errors(results) {
            let condition = Condition::new(Setup::Snoop, sender, errors);
            let name = (sender.name(), bits(errors));
            if sender == Sender::Bbr {
                let what = format!("{}, {}: median of SNOOP over none", name.0, name.1);
                let measured = results.median_gain(&condition, &condition.with(Setup::None));
                findings.push(Finding::at_least(what, 0.95, measured));
            } else if errors <= 4 << 20 {
                let what = format!("{}, {}: SNOOP over none", name.0, name.1);
                let measured = results.gain(&condition, &condition.with(Setup::None));
                findings.push(Finding::at_least(what, bound(sender, errors), measured));
            }
        }
    }
    findings.extend(as_the_paper(results));
    findings
}

/// Returns the least gain. Where losses are many, a gain of nothing at all would be near one.
fn bound(sender: Sender, errors: u64) -> f64 {
    match (sender, errors) {
        (Sender::Reno, MIDDLE | MOST) => 1.5,
        _ => 1.0,
    }
}

/// Values of the paper, in section 5.4.1.
const PAPER: [(u64, f64); 2] = [(8 << 20, 1.1), (MOST, 3.0)];

/// Compares the gain at both ends of the axis, which depends on delay and buffers.
fn as_the_paper(results: &Results) -> Vec<Finding> {
    let measured = measured_errors(results);
    PAPER
        .into_iter()
        .filter(|(errors, _)| measured.contains(errors))
        .map(|(errors, paper)| {
            let condition = Condition::new(Setup::Snoop, Sender::Reno, errors);
            let what = format!("Reno, {}: SNOOP over none, as the paper", bits(errors));
            let gain = results.gain(&condition, &condition.with(Setup::None));
            Finding::compared(what, paper, gain)
        })
        .collect()
}

fn plots(results: &Results) -> Vec<Plot> {
    let mut plots: Vec<_> = Sender::ALL
        .into_iter()
        .map(|sender| {
            let lines = goodput(results, "SNOOP and plain TCP", &SETUPS, sender);
            Plot::lines(format!("goodput-{}", sender.key()), lines)
        })
        .collect();
    let pair = [Setup::Snoop, Setup::None];
    plots.push(Plot::lines(
        "gain",
        gain(results, "SNOOP over none", pair, &PAPER),
    ));
    plots
}
