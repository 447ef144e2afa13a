//! A picture of memory over time.

use super::{Report, Sample};
use crate::plot::{Axis, Dot, Lines, Look, Plot, Series, Ticks};
use plotters::style::RGBColor;

/// A line: name of the daemon, its memory, and its colour.
type Line = (&'static str, fn(&Sample) -> u64, RGBColor);

const LINES: [Line; 3] = [
    ("mobile node", |sample| sample.mobile, RGBColor(0, 114, 178)),
    ("licensed node", |sample| sample.node, RGBColor(213, 94, 0)),
    ("gateway", |sample| sample.gateway, RGBColor(0, 158, 115)),
];

impl Report {
    /// Plots the memory of each daemon over time; `None` without samples.
    pub fn plot(&self) -> Option<Plot> {
        let last = self.samples.last()?;
        let all = LINES.map(|(name, of, colour)| Series {
            name: name.to_owned(),
            colour,
            look: Look::Thin,
            dots: self.samples.iter().map(|sample| dot(sample, of)).collect(),
        });
        let most = all.iter().flat_map(|series| &series.dots);
        let most = most.map(|dot| dot.y).fold(1.0, f64::max);
        let axis = |label: &str, end: f64| Axis {
            label: label.to_owned(),
            range: 0.0..end,
            ticks: Ticks::Numbers,
        };
        let lines = Lines {
            title: "Memory of each daemon, with new keys every 10 s".to_owned(),
            x: axis("s", last.s),
            y: axis("MiB", 1.2 * most),
            series: all.into(),
        };
        Some(Plot::lines("soak", lines))
    }
}

fn dot(sample: &Sample, of: fn(&Sample) -> u64) -> Dot {
    Dot {
        x: sample.s,
        y: of(sample) as f64 / f64::from(1 << 20),
        interval: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn each_daemon_has_a_line_and_nothing_is_drawn_of_nothing() {
        let svg = report([0; 3]).plot().unwrap().svg().unwrap();
        assert!(LINES.iter().all(|(name, ..)| svg.contains(name)), "{svg}");
        assert!(Report::new(60).plot().is_none());
    }
}
