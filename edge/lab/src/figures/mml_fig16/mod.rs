//! Figure 16 of "Mobile multi-layered IPsec": the congestion window over time.

use super::common::{MIDDLE, conditions, over_time, time_plot};
use crate::experiment::{Condition, Figure, Finding, Measured, Results};
use crate::plot::Plot;
use crate::scene::{Sender, Setup};

/// The figure.
pub const FIGURE: Figure = Figure {
    name: "mml-fig16",
    title: "Congestion window over time at one error in 512 kbit",
    claim: "SNOOP keeps the congestion window large: on average 35 segments instead of 6 for plain \
            TCP, and 26 instead of 5 with zones. It falls to two now and then, where many losses in \
            one window end in a timeout of the sender.",
    setting: "As mml-fig14. The window is that of the server's socket (TCP_INFO), sampled ten \
              times a second and averaged after slow start; drawn is the first seed. How large it \
              can grow depends on the buffers: here a receive buffer of 250,000 octets, where the paper's \
              table 4 has a sender's buffer of 65,535 octets, 44 segments. BBR's window is a limit on what it paces, not what it sends by.",
    conditions: |_| conditions(&Setup::ALL, &[MIDDLE]),
    findings,
    plots,
    traces: true,
    zones: false,
};

const CLEAR: [Setup; 2] = [Setup::None, Setup::Snoop];
const SEALED: [Setup; 3] = [Setup::Ipsec, Setup::Zoned, Setup::ZonedSnoop];

/// Returns the mean window after slow start.
fn window(cell: &Measured) -> f64 {
    let after = cell.cell.skipped().as_millis() as u64;
    let samples = cell.trace.iter().filter(|sample| sample.ms >= after);
    let windows: Vec<_> = samples.map(|sample| f64::from(sample.window)).collect();
    windows.iter().sum::<f64>().max(1.0) / windows.len().max(1) as f64
}

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (of, over, paper) in [
        (Setup::Snoop, Setup::None, "35 / 6 = 5.8"),
        (Setup::ZonedSnoop, Setup::Zoned, "26 / 5 = 5.2"),
    ] {
        for (sender, bound) in [(Sender::Reno, 3.0), (Sender::Cubic, 1.5)] {
            let condition = Condition::new(of, sender, MIDDLE);
            let mean = |condition| {
                results
                    .mean(&condition, window)
                    .map_or(0.0, |mean| mean.value)
            };
            let what = format!(
                "{}: mean window of {} over {}",
                sender.name(),
                of.name(),
                over.name()
            );
            let windows = [mean(condition), mean(condition.with(over))];
            let ratio = results.ratio(&condition, &condition.with(over), window);
            let finding = Finding::at_least(what, bound, ratio)
                .detail(format!("{:.0} / {:.0} segments", windows[0], windows[1]));
            findings.push(match sender {
                Sender::Reno => finding.paper(paper),
                Sender::Cubic | Sender::Bbr => finding,
            });
        }
    }
    findings
}

fn plots(results: &Results) -> Vec<Plot> {
    let plot = |sender: Sender, name: &str, setups: &[Setup]| {
        let series = setups.iter().map(|&setup| {
            let condition = Condition::new(setup, sender, MIDDLE);
            over_time(results, &condition, |sample| f64::from(sample.window))
        });
        let title = format!("Congestion window {name}, {}", sender.name());
        let lines = time_plot(title, "congestion window, in segments", series.collect());
        Plot::lines(
            format!("window-{}-{}", name.replace(' ', "-"), sender.key()),
            lines,
        )
    };
    let both = |sender| {
        [
            plot(sender, "in clear", &CLEAR),
            plot(sender, "sealed", &SEALED),
        ]
    };
    Sender::ALL.into_iter().flat_map(both).collect()
}
