//! A plot of a walk: the download, the network that the tunnel is on, and what the call lost.

use super::network::{CELLULAR, UPLINKS, WIFI};
use super::report::{Report, Sample};
use crate::plot::{Axis, Dot, Lines, Look, Plot, Series, Ticks};
use plotters::style::RGBColor;

impl Report {
    /// Plots the walk; `None` if it has not begun.
    pub fn plot(&self) -> Option<Plot> {
        let last = self.timeline.last()?;
        let highest = rate(WIFI) * 1.2;
        let axis = |label: &str, end: f64| Axis {
            label: label.to_owned(),
            range: 0.0..end,
            ticks: Ticks::Numbers,
        };
        let series = |name: &str, colour, look, dots| Series {
            name: name.to_owned(),
            colour,
            look,
            dots,
        };
        let lines = Lines {
            title: "A download and a call, out of a Wi-Fi and back".to_owned(),
            x: axis("s", seconds(last) + 0.25),
            y: axis("Mb/s", highest),
            series: vec![
                series(
                    "rate of the tunnel's network",
                    RGBColor(150, 155, 165),
                    Look::Thin,
                    self.dots(|sample| Some(capacity(sample))),
                ),
                series(
                    "download",
                    RGBColor(0, 114, 178),
                    Look::Thin,
                    self.dots(|sample| Some(sample.goodput / 1e6)),
                ),
                series(
                    "the call lost datagrams",
                    RGBColor(213, 94, 0),
                    Look::Crosses,
                    self.dots(|sample| {
                        let lost = sample.call.to_host.lost + sample.call.to_server.lost;
                        (lost > 0).then_some(highest * 0.03)
                    }),
                ),
            ],
        };
        Some(Plot::lines("move", lines))
    }

    fn dots(&self, of: impl Fn(&Sample) -> Option<f64>) -> Vec<Dot> {
        let samples = self.timeline.iter();
        let dot = |sample| {
            Some(Dot {
                x: seconds(sample),
                y: of(sample)?,
                interval: None,
            })
        };
        samples.filter_map(dot).collect()
    }
}

fn seconds(sample: &Sample) -> f64 {
    sample.at_ms as f64 / 1e3
}

/// Returns the rate of a network, in Mb/s.
fn rate(uplink: usize) -> f64 {
    UPLINKS[uplink].hop.rate.map_or(0, |rate| rate.get()) as f64 / 1e6
}

/// Returns the rate of the networks that carried packets, in Mb/s.
fn capacity(sample: &Sample) -> f64 {
    let is_on = |uplink: usize| ["both", UPLINKS[uplink].name].contains(&sample.path);
    let on = [WIFI, CELLULAR].into_iter().filter(|uplink| is_on(*uplink));
    on.map(rate).sum()
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::super::record::Record;
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn the_plot_has_the_download_and_the_losses_and_nothing_is_drawn_of_nothing() {
        let report = report(400);
        let rates: Vec<_> = report.timeline.iter().map(capacity).collect();
        assert!(rates.contains(&12.0) && rates.contains(&5.0), "{rates:?}");
        let svg = report.plot().unwrap().svg().unwrap();
        for name in ["download", "the call lost datagrams"] {
            assert!(svg.contains(name), "{svg}");
        }
        let nothing = Report::new(&Options::default(), &Record::default());
        assert!(nothing.plot().is_none());
    }
}
