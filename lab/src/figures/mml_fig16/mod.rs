//! Figure 16 of "Mobile multi-layered IPsec": the congestion window over time.

use super::common::{MIDDLE, PAPER, conditions, over_time, time_plot};
use super::parameters;
use crate::experiment::{Claim, Condition, Figure, Finding, Measured, Results};
use crate::plot::{Dot, Look, Plot, Series};
use crate::scene::{Sender, Setup};

/// The figure.
pub const FIGURE: Figure = Figure {
    name: "mml-fig16",
    title: "Congestion window over time at one error in 512 kbit",
    claims: &[
        Claim {
            says: "On average the window has 35 segments with SNOOP, and 6 with plain TCP.",
            judged_by: &[
                "Reno: mean window of SNOOP over none",
                "Reno: mean window of SNOOP",
                "Reno: mean window of none",
            ],
        },
        Claim {
            says: "With zones it has 26 segments with SNOOP, and 5 without.",
            judged_by: &[
                "Reno: mean window of zoned + SNOOP over zoned",
                "Reno: mean window of zoned + SNOOP",
                "Reno: mean window of zoned",
            ],
        },
        Claim {
            says: "With SNOOP it falls to 2 segments now and then, where many losses in one window \
                   end in a timeout of the sender.",
            judged_by: &["Reno: least window of SNOOP"],
        },
    ],
    setting: "As mml-fig14. The window is that of the server's socket (TCP_INFO), sampled ten \
              times a second and averaged after slow start; drawn is the first seed. At most \
              65,535 octets are under way, as in the paper, but Linux lets the window grow to \
              twice of what is under way. BBR's window is a limit on what it paces, not what it \
              sends by.",
    parameters: parameters::TABLE_4,
    conditions: |_| conditions(&Setup::ALL, &[MIDDLE]),
    findings,
    plots,
    traces: true,
    zones: false,
};

const CLEAR: [Setup; 2] = [Setup::None, Setup::Snoop];
const SEALED: [Setup; 3] = [Setup::Ipsec, Setup::Zoned, Setup::ZonedSnoop];

/// Returns the windows after slow start.
fn windows(cell: &Measured) -> impl Iterator<Item = f64> {
    let after = cell.cell.skipped().as_millis() as u64;
    let samples = cell.trace.iter().filter(move |sample| sample.ms >= after);
    samples.map(|sample| f64::from(sample.window))
}

/// Returns the mean window after slow start.
fn window(cell: &Measured) -> f64 {
    windows(cell).sum::<f64>().max(1.0) / windows(cell).count().max(1) as f64
}

/// Returns the least window after slow start.
fn least(cell: &Measured) -> f64 {
    windows(cell).reduce(f64::min).unwrap_or(0.0)
}

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (of, over, [above, below]) in PAIRS {
        let paper = format!("{above} / {below} = {:.1}", above / below);
        for (sender, bound) in [(Sender::Reno, 3.0), (Sender::Cubic, 1.5)] {
            let condition = Condition::new(of, sender, MIDDLE);
            let name = (of.name(), over.name());
            let what = format!(
                "{}: mean window of {} over {}",
                sender.name(),
                name.0,
                name.1
            );
            let ratio = results.ratio(&condition, &condition.with(over), window);
            let finding = Finding::at_least(what, bound, ratio);
            findings.push(match sender {
                Sender::Reno => finding.paper(paper.clone()),
                Sender::Cubic | Sender::Bbr => finding,
            });
        }
        findings.extend([(of, above), (over, below)].map(|(setup, paper)| {
            let mean = results.mean(&Condition::new(setup, Sender::Reno, MIDDLE), window);
            let what = format!("Reno: mean window of {}", setup.name());
            Finding::quantity(what, "segments", paper, mean)
        }));
    }
    let snoop = Condition::new(Setup::Snoop, Sender::Reno, MIDDLE);
    let least = results.mean(&snoop, least);
    let what = "Reno: least window of SNOOP";
    findings.push(Finding::quantity(what, "segments", 2, least));
    findings
}

/// Setups that are compared, with the mean windows of the paper (section 5.4.3).
const PAIRS: [(Setup, Setup, [f64; 2]); 2] = [
    (Setup::Snoop, Setup::None, [35.0, 6.0]),
    (Setup::ZonedSnoop, Setup::Zoned, [26.0, 5.0]),
];

fn plots(results: &Results) -> Vec<Plot> {
    let plot = |sender: Sender, name: &str, setups: &[Setup], paper: [f64; 2]| {
        let mut series: Vec<_> = setups
            .iter()
            .map(|&setup| {
                let condition = Condition::new(setup, sender, MIDDLE);
                over_time(results, &condition, |sample| f64::from(sample.window))
            })
            .collect();
        if sender == Sender::Reno {
            series.push(means(&series, paper));
        }
        let title = format!("Congestion window {name}, {}", sender.name());
        let lines = time_plot(title, "congestion window, in segments", series);
        Plot::lines(
            format!("window-{}-{}", name.replace(' ', "-"), sender.key()),
            lines,
        )
    };
    let both = |sender| {
        [
            plot(sender, "in clear", &CLEAR, PAIRS[0].2),
            plot(sender, "sealed", &SEALED, PAIRS[1].2),
        ]
    };
    Sender::ALL.into_iter().flat_map(both).collect()
}

/// Returns the paper's means, at both ends of the time axis.
fn means(series: &[Series], paper: [f64; 2]) -> Series {
    let last = series.iter().flat_map(|series| &series.dots);
    let last = last.map(|dot| dot.x).fold(1.0, f64::max);
    let dot = |(x, y)| Dot {
        x,
        y,
        interval: None,
    };
    Series {
        name: "paper, means".to_owned(),
        colour: PAPER,
        look: Look::Diamonds,
        dots: paper
            .into_iter()
            .flat_map(|mean| [(0.0, mean), (last, mean)])
            .map(dot)
            .collect(),
    }
}
