//! Figure 14 of "Mobile multi-layered IPsec": five configurations over the error rate.

use super::common::{
    ERRORS, MIDDLE, MOST, PAPER, colour, conditions, dots, error_axis, exactly, gain, goodput,
    measured_errors,
};
use super::parameters;
use crate::experiment::{Claim, Condition, Figure, Finding, Results, bits};
use crate::plot::{Axis, Lines, Look, Plot, Series};
use crate::scene::{Sender, Setup};

/// The figure.
pub const FIGURE: Figure = Figure {
    name: "mml-fig14",
    title: "Throughput of five configurations over the bit error rate",
    claims: &[
        Claim {
            says: "Without errors IPsec costs about 5 % of plain TCP's throughput, and zones about \
                   9 %.",
            judged_by: &[
                "Reno, no errors: IPsec over none",
                "Reno, no errors: zoned over none",
            ],
        },
        Claim {
            says: "With errors both collapse alike, because TCP takes losses for congestion: by 27 \
                   % at one error in 2 Mbit, and by 62 % at one in 64 kbit.",
            judged_by: &[
                "Reno: IPsec at 2M over IPsec without errors",
                "Reno: zoned at 2M over zoned without errors",
                "Reno: IPsec at 64k over IPsec without errors",
                "Reno: zoned at 64k over zoned without errors",
                "Reno: zoned at 2M over IPsec at 2M",
                "Reno: zoned at 64k over IPsec at 64k",
            ],
        },
        Claim {
            says: "With SNOOP at a licensed node, zones are up to 5 times as fast as without.",
            judged_by: &["Reno: zoned + SNOOP at 64k over zoned at 64k"],
        },
        Claim {
            says: "At one error in 512 kbit it is 2.7 times.",
            judged_by: &["Reno, 512k: zoned + SNOOP over zoned"],
        },
        Claim {
            says: "Even at the lowest error rate it is 19 %, and 14 % over IPsec.",
            judged_by: &[
                "Reno: zoned + SNOOP at 8M over zoned at 8M",
                "Reno: zoned + SNOOP at 8M over IPsec at 8M",
            ],
        },
        Claim {
            says: "Zones with SNOOP are faster than plain TCP at every error rate, by 3 % to 108 \
                   %.",
            judged_by: &[
                "Reno, *: zoned + SNOOP over none",
                "Reno: zoned + SNOOP over none, the least of all error rates",
                "Reno: zoned + SNOOP over none, the most of all error rates",
            ],
        },
    ],
    setting: "Server, a wired hop of 100 ms each way without errors, the licensed node, a wireless \
              hop of 2 Mb/s and 1 ms whose bit errors are Poisson in both directions, the mobile \
              node. TCP is the kernel's, IPsec is stratad's, with AES-GCM and authentication (the \
              paper measured 3DES with authentication off). Goodput is what the receiver reads \
              after the first quarter of a download, at most 5 s, in which slow start ends. \
              Configurations with the same seed meet the same bit errors.",
    parameters: parameters::TABLE_4,
    conditions: |quick| match quick {
        true => conditions(&Setup::ALL, &[0, MIDDLE, MOST]),
        false => conditions(&Setup::ALL, &ERRORS),
    },
    findings,
    plots,
    traces: false,
    zones: false,
};

/// The lowest error rate.
const LEAST: u64 = 8 << 20;

/// Throughput of the paper over that without errors (section 5.4.1), with IPsec as with zones.
const COLLAPSE: [(u64, f64); 2] = [(2 << 20, 0.73), (MOST, 0.38)];

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = costs(results);
    findings.extend(gains(results));
    findings.extend(against_plain_tcp(results));
    findings.extend(bbr(results));
    findings.extend(as_the_paper(results));
    findings
}

/// Shows the other numbers of the paper beside those measured here. How far TCP collapses depends
/// on delay and buffers.
fn as_the_paper(results: &Results) -> Vec<Finding> {
    let of = |setup, errors| Condition::new(setup, Sender::Reno, errors);
    let measured = measured_errors(results);
    let mut pairs = vec![
        (of(Setup::ZonedSnoop, MOST), of(Setup::Zoned, MOST), 5.0),
        (of(Setup::ZonedSnoop, LEAST), of(Setup::Zoned, LEAST), 1.19),
        (of(Setup::ZonedSnoop, LEAST), of(Setup::Ipsec, LEAST), 1.14),
    ];
    for (errors, paper) in COLLAPSE {
        let collapse = |setup| (of(setup, errors), of(setup, 0), paper);
        pairs.extend([Setup::Ipsec, Setup::Zoned].map(collapse));
        pairs.push((of(Setup::Zoned, errors), of(Setup::Ipsec, errors), 1.0));
    }
    let name = |condition: &Condition| match condition.one_error_in {
        0 => format!("{} without errors", condition.name()),
        errors => format!("{} at {}", condition.name(), bits(errors)),
    };
    let is_measured = |(above, below, _): &(Condition, Condition, f64)| {
        let errors = [above.one_error_in, below.one_error_in];
        errors.iter().all(|errors| measured.contains(errors))
    };
    let beside = |(above, below, paper): (Condition, Condition, f64)| {
        let what = format!("Reno: {} over {}", name(&above), name(&below));
        Finding::beside(what, paper, results.gain(&above, &below))
    };
    let pairs = pairs.into_iter().filter(is_measured);
    pairs.map(beside).chain(extremes(results)).collect()
}

/// Shows the least and the largest gain over plain TCP, of a run with all error rates.
fn extremes(results: &Results) -> Vec<Finding> {
    if measured_errors(results) != ERRORS {
        return Vec::new();
    }
    let gains = ERRORS[1..].iter().filter_map(|&errors| {
        let condition = Condition::new(Setup::ZonedSnoop, Sender::Reno, errors);
        results.gain(&condition, &condition.with(Setup::None))
    });
    let mut gains: Vec<_> = gains.collect();
    gains.sort_by(|a, b| a.value.total_cmp(&b.value));
    [("least", 1.03, gains.first()), ("most", 2.08, gains.last())]
        .map(|(which, paper, gain)| {
            let what = format!("Reno: zoned + SNOOP over none, the {which} of all error rates");
            Finding::beside(what, paper, gain.copied())
        })
        .into()
}

/// Claims about the cost of zones on a link without errors.
fn costs(results: &Results) -> Vec<Finding> {
    let ipsec = Condition::new(Setup::Ipsec, Sender::Reno, 0);
    let gain = results.gain(&ipsec, &ipsec.with(Setup::None));
    let mut findings = vec![Finding::beside(
        "Reno, no errors: IPsec over none",
        0.95,
        gain,
    )];
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

/// Claims about the gain from SNOOP with zones in the middle of the axis, and at its end.
fn gains(results: &Results) -> Vec<Finding> {
    let measured = measured_errors(results);
    [
        (Sender::Reno, MIDDLE, 3.5),
        (Sender::Reno, MOST, 3.5),
        (Sender::Cubic, MIDDLE, 2.0),
    ]
    .into_iter()
    .filter(|(_, errors, _)| measured.contains(errors))
    .map(|(sender, errors, bound)| {
        let name = (sender.name(), bits(errors));
        let what = format!("{}, {}: zoned + SNOOP over zoned", name.0, name.1);
        let condition = Condition::new(Setup::ZonedSnoop, sender, errors);
        let gain = results.gain(&condition, &condition.with(Setup::Zoned));
        let finding = Finding::at_least(what, bound, gain);
        match (sender, errors) {
            (Sender::Reno, MIDDLE) => finding.paper("2.7"),
            _ => finding,
        }
    })
    .collect()
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
            let finding = Finding::at_least(what, least(sender, errors), measured);
            findings.push(match sender {
                Sender::Reno => finding.paper("1.03 to 2.08"),
                Sender::Cubic | Sender::Bbr => finding,
            });
        }
    }
    findings
}

/// Returns the least gain. Where losses are many, a gain of nothing at all would be near one.
fn least(sender: Sender, errors: u64) -> f64 {
    match (sender, errors) {
        (Sender::Reno, MIDDLE | MOST) => 1.5,
        _ => 1.0,
    }
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
    let paper = [(LEAST, 1.19), (MIDDLE, 2.7), (MOST, 5.0)];
    let pair = [Setup::ZonedSnoop, Setup::Zoned];
    let lines = gain(results, "Zoned + SNOOP over zoned", pair, &paper);
    plots.push(Plot::lines("gain", lines));
    plots.push(Plot::lines("collapse", collapse(results)));
    plots
}

/// Plots the share of throughput that errors leave, beside the paper's.
fn collapse(results: &Results) -> Lines {
    let errors = measured_errors(results);
    let share = |setup| Series {
        name: Setup::name(setup).to_owned(),
        colour: colour(setup),
        look: Look::Marked,
        dots: dots(&errors, |errors| {
            let of = |errors| Condition::new(setup, Sender::Reno, errors);
            results.gain(&of(errors), &of(0))
        }),
    };
    let said = |errors: u64| COLLAPSE.iter().find(|(at, _)| *at == errors);
    let paper = Series {
        name: "paper (both)".to_owned(),
        colour: PAPER,
        look: Look::Diamonds,
        dots: dots(&errors, |errors| said(errors).map(|said| exactly(said.1))),
    };
    let setups = [Setup::None, Setup::Ipsec, Setup::Zoned, Setup::ZonedSnoop];
    Lines {
        title: "Throughput over that without errors, Reno".to_owned(),
        x: error_axis(&errors),
        y: Axis::from_zero("share", [1.0]),
        series: setups.into_iter().map(share).chain([paper]).collect(),
    }
}
