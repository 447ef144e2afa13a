//! Figure 17 of "Mobile multi-layered IPsec": throughput if every n-th packet is encrypted.

use super::common::{PAPER, colour, dots, exactly, in_megabits};
use super::level::{PERIODS, name};
use super::parameters;
use crate::experiment::{Claim, Condition, Figure, Finding, Results};
use crate::plot::{Axis, Lines, Look, Plot, Series, Ticks};
use crate::scene::{Level, Others, Sender, Setup};

/// The figure.
pub const FIGURE: Figure = Figure {
    name: "mml-fig17",
    title: "Throughput of dynamic MML-IPsec, by how many packets are encrypted",
    claims: &[
        Claim {
            says: "When all packets are encrypted the throughput is about 1.25 Mb/s.",
            judged_by: &["goodput with every packet encrypted"],
        },
        Claim {
            says: "It increases as fewer packets are encrypted.",
            judged_by: &["others plaintext: *", "others integrity-only: *"],
        },
    ],
    setting: "As mml-fig14, with Reno, without bit errors and without SNOOP. In both directions \
              every so many-th packet is in zones. The others are authenticated in the tunnel and \
              not encrypted, which is what a grant of both configurations allows; or they are \
              plaintext, as in the paper, which Strata never sends: the kernels of gateway and \
              mobile node lead them around the tunnel. A packet of 1380 octets is 1453 on the \
              wireless link in zones, 1433 without encryption, and as long as it is in plaintext, \
              so 1.4 % and 5.3 % are to be won at most. What goes beside the tunnel overtakes what \
              is being sealed or opened, so TCP sends some segments twice. The paper's absolute \
              number has losses in it, 3DES, and machines of its day.",
    parameters: parameters::TABLE_4,
    conditions: |quick| conditions(if quick { &QUICK } else { &PERIODS }),
    findings,
    plots,
    traces: false,
    zones: true,
};

/// Throughput of the paper with every packet encrypted, in Mb/s (section 5.5).
const PAPER_ALL: f64 = 1.25;

/// Periods of a quick run, a subset of [`PERIODS`].
const QUICK: [u32; 4] = [1, 2, 10, 0];

/// Comparisons of throughput by periods, each with a lower bound. A bound is at least half of the
/// gain in octets, except where most packets overtake each other.
const BOUNDS: [(Others, u32, u32, f64); 6] = [
    (Others::Integrity, 2, 1, 1.004),
    (Others::Integrity, 10, 2, 1.003),
    (Others::Integrity, 0, 1, 1.01),
    (Others::Plaintext, 2, 1, 1.01),
    (Others::Plaintext, 10, 2, 1.012),
    (Others::Plaintext, 0, 1, 1.035),
];

/// Returns a condition for each period and each protection of the other packets. If all packets are
/// in zones, there is one condition.
fn conditions(periods: &[u32]) -> Vec<Condition> {
    let mut all = vec![condition(1, Others::Integrity)];
    for others in Others::ALL {
        let fewer = periods.iter().filter(|&&every| every != 1);
        all.extend(fewer.map(|&every| condition(every, others)));
    }
    all
}

fn condition(every: u32, others: Others) -> Condition {
    Condition {
        level: (every != 1).then_some(Level { every, others }),
        ..Condition::new(Setup::Zoned, Sender::Reno, 0)
    }
}

fn findings(results: &Results) -> Vec<Finding> {
    let finding = |(others, fewer, more, bound): (Others, u32, u32, f64)| {
        let [above, below] = [fewer, more].map(name);
        let what = format!("others {}: {above} over {below}", others.name());
        let [fewer, more] = [fewer, more].map(|every| condition(every, others));
        let finding = Finding::at_least(what, bound, results.gain(&fewer, &more));
        let megabits = |condition| Some(in_megabits(results.goodput(condition)?).value);
        match megabits(&fewer).zip(megabits(&more)) {
            Some((fewer, more)) => finding.detail(format!("{fewer:.3} over {more:.3} Mb/s")),
            None => finding,
        }
    };
    let all = results.goodput(&condition(1, Others::Integrity));
    let what = "goodput with every packet encrypted";
    let all = Finding::quantity(what, "Mb/s", PAPER_ALL, all.map(in_megabits));
    [all].into_iter().chain(BOUNDS.map(finding)).collect()
}

fn plots(results: &Results) -> Vec<Plot> {
    let is_measured = |every: &u32| {
        results
            .goodput(&condition(*every, Others::Integrity))
            .is_some()
    };
    let periods: Vec<_> = PERIODS.into_iter().filter(is_measured).collect();
    let mut series = Vec::from(Others::ALL.map(|others| line(results, &periods, others)));
    series.push(Series {
        name: "paper".to_owned(),
        colour: PAPER,
        look: Look::Diamonds,
        dots: dots(&periods, |every| (every == 1).then(|| exactly(PAPER_ALL))),
    });
    let ticks = periods.iter().map(|&every| tick(every)).collect();
    let lines = Lines {
        title: "Dynamic MML-IPsec".to_owned(),
        x: Axis::of_names("packets in zones", ticks),
        // On an axis from zero the differences would be invisible.
        y: Axis {
            label: "goodput in Mb/s".to_owned(),
            range: 1.2..2.0,
            ticks: Ticks::Numbers,
        },
        series,
    };
    vec![Plot::lines("goodput", lines)]
}

fn line(results: &Results, periods: &[u32], others: Others) -> Series {
    Series {
        name: format!("others {}", others.name()),
        colour: match others {
            Others::Integrity => colour(Setup::Zoned),
            Others::Plaintext => colour(Setup::None),
        },
        look: Look::Marked,
        dots: dots(periods, |every| {
            let goodput = results.goodput(&condition(every, others));
            goodput.map(in_megabits)
        }),
    }
}

fn tick(every: u32) -> String {
    match every {
        0 => "none".to_owned(),
        1 => "all".to_owned(),
        every => format!("1 of {every}"),
    }
}
