//! Parts that several figures share: error rates, colours, axes, and the papers' testbed.

use crate::experiment::{Condition, Estimate, Results, bits};
use crate::plot::{Axis, Dot, Lines, Look, Series};
use crate::scene::{LOSSY_RATE, Sender, Setup};
use plotters::style::RGBColor;

/// Bits per bit error, as on the papers' axis; 0 for no errors.
pub(super) const ERRORS: [u64; 9] = [
    0,
    8 << 20,
    4 << 20,
    2 << 20,
    1 << 20,
    512 << 10,
    256 << 10,
    128 << 10,
    64 << 10,
];

/// The error rate of the paper's time series.
pub(super) const MIDDLE: u64 = 512 << 10;

/// The highest error rate.
pub(super) const MOST: u64 = 64 << 10;

/// Colour of the paper's values.
pub(super) const PAPER: RGBColor = RGBColor(20, 20, 20);

/// Returns the colour of a setup, the same in every figure.
pub(super) fn colour(setup: Setup) -> RGBColor {
    match setup {
        Setup::None => RGBColor(150, 150, 150),
        Setup::Snoop => RGBColor(40, 80, 220),
        Setup::Ipsec => RGBColor(240, 150, 0),
        Setup::Zoned => RGBColor(190, 20, 110),
        Setup::ZonedSnoop => RGBColor(0, 160, 60),
    }
}

/// Returns the colour of a sender in figures that compare senders.
pub(super) fn sender_colour(sender: Sender) -> RGBColor {
    match sender {
        Sender::Reno => RGBColor(0, 114, 178),
        Sender::Cubic => RGBColor(213, 148, 0),
        Sender::Bbr => RGBColor(190, 85, 140),
    }
}

/// Returns the conditions of every setup with every sender and error rate.
pub(super) fn conditions(setups: &[Setup], errors: &[u64]) -> Vec<Condition> {
    let mut all = Vec::new();
    for &one_error_in in errors {
        for sender in Sender::ALL {
            let with = |&setup| Condition::new(setup, sender, one_error_in);
            all.extend(setups.iter().map(with));
        }
    }
    all
}

/// Returns the error rates of [`ERRORS`] that a run has, from none to most.
pub(super) fn measured_errors(results: &Results) -> Vec<u64> {
    let has = |errors: &u64| results.conditions().any(|c| c.one_error_in == *errors);
    ERRORS.into_iter().filter(has).collect()
}

/// Returns the axis of error rates.
pub(super) fn error_axis(errors: &[u64]) -> Axis {
    let names = errors.iter().map(|&errors| bits(errors)).collect();
    Axis::of_names("bits for each bit error on the lossy hop", names)
}

/// Plots goodput over the error rate, with a line for each setup.
pub(super) fn goodput(results: &Results, title: &str, setups: &[Setup], sender: Sender) -> Lines {
    let errors = measured_errors(results);
    let series = setups.iter().map(|&setup| Series {
        name: setup.name().to_owned(),
        colour: colour(setup),
        look: Look::Marked,
        dots: dots(&errors, |errors| {
            let condition = Condition::new(setup, sender, errors);
            results.goodput(&condition).map(in_megabits)
        }),
    });
    Lines {
        title: format!("{title}, {}", sender.name()),
        x: error_axis(&errors),
        y: Axis::from_zero("goodput in Mb/s", [LOSSY_RATE as f64 / 1e6]),
        series: series.collect(),
    }
}

/// Returns the dots of estimates at equal distances along an axis.
pub(super) fn dots<T: Copy>(axis: &[T], value: impl Fn(T) -> Option<Estimate>) -> Vec<Dot> {
    let dot = |(place, &at): (usize, &T)| {
        let estimate = value(at)?;
        Some(Dot {
            x: place as f64,
            y: estimate.value,
            interval: estimate.interval,
        })
    };
    axis.iter().enumerate().filter_map(dot).collect()
}

/// Plots the ratio of two setups' goodputs over the error rate, with a line for each sender and the
/// paper's values for Reno.
pub(super) fn gain(
    results: &Results,
    title: &str,
    [of, over]: [Setup; 2],
    paper: &[(u64, f64)],
) -> Lines {
    let errors = measured_errors(results);
    let mut series: Vec<_> = Sender::ALL
        .into_iter()
        .map(|sender| Series {
            name: sender.name().to_owned(),
            colour: sender_colour(sender),
            look: Look::Marked,
            dots: dots(&errors, |errors| {
                let condition = Condition::new(of, sender, errors);
                results.gain(&condition, &condition.with(over))
            }),
        })
        .collect();
    let said = |errors: u64| paper.iter().find(|(at, _)| *at == errors);
    series.push(Series {
        name: "paper (Reno)".to_owned(),
        colour: PAPER,
        look: Look::Diamonds,
        dots: dots(&errors, |errors| said(errors).map(|said| exactly(said.1))),
    });
    let tops = series.iter().flat_map(|series| &series.dots);
    let tops: Vec<_> = tops
        .map(|dot| {
            dot.interval
                .map_or(dot.y, |[_, high]| high.min(1.5 * dot.y))
        })
        .collect();
    Lines {
        title: title.to_owned(),
        x: error_axis(&errors),
        y: Axis::from_zero("times as fast", tops),
        series,
    }
}

/// Returns a value without an interval.
pub(super) fn exactly(value: f64) -> Estimate {
    Estimate {
        value,
        interval: None,
        runs: 0,
    }
}

pub(super) fn in_megabits(estimate: Estimate) -> Estimate {
    Estimate {
        value: estimate.value / 1e6,
        interval: estimate.interval.map(|ends| ends.map(|end| end / 1e6)),
        ..estimate
    }
}

/// Returns one cell of a condition as a thin line over time. It is that of the first seed, as the
/// papers show one run.
pub(super) fn over_time(
    results: &Results,
    condition: &Condition,
    value: impl Fn(&crate::experiment::Sample) -> f64,
) -> Series {
    let trace = results.measured(condition).next().map(|cell| &cell.trace);
    let samples = trace.into_iter().flatten();
    Series {
        name: condition.setup.name().to_owned(),
        colour: colour(condition.setup),
        look: Look::Thin,
        dots: samples
            .map(|sample| Dot {
                x: sample.ms as f64 / 1000.0,
                y: value(sample),
                interval: None,
            })
            .collect(),
    }
}

/// Returns a plot of lines over time.
pub(super) fn time_plot(title: String, y: &str, series: Vec<Series>) -> Lines {
    let dots = || series.iter().flat_map(|series| &series.dots);
    let last = dots().map(|dot| dot.x).fold(1.0, f64::max);
    Lines {
        title,
        x: Axis {
            label: "time in s".to_owned(),
            range: 0.0..last,
            ticks: crate::plot::Ticks::Numbers,
        },
        y: Axis::from_zero(y, dots().map(|dot| dot.y).collect::<Vec<_>>()),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weighted distance of two colours (CompuPhase's approximation of CIELUV); of black and white
    /// it is 765.
    fn distance(a: RGBColor, b: RGBColor) -> f64 {
        let of = |a: u8, b: u8| f64::from(a) - f64::from(b);
        let red = f64::midpoint(f64::from(a.0), f64::from(b.0)) / 256.0;
        let (dr, dg, db) = (of(a.0, b.0), of(a.1, b.1), of(a.2, b.2));
        ((2.0 + red) * dr * dr + 4.0 * dg * dg + (3.0 - red) * db * db).sqrt()
    }

    #[test]
    fn lines_of_one_plot_differ_clearly_in_colour() {
        for (place, one) in Setup::ALL.iter().enumerate() {
            for other in &Setup::ALL[..place] {
                let apart = distance(colour(*one), colour(*other));
                assert!(apart > 200.0, "{} {} {apart}", one.name(), other.name());
            }
        }
        assert!(distance(RGBColor(0, 114, 178), RGBColor(0, 140, 100)) < 200.0);
    }
}
