//! The figures of the paper, from these logs: 2 to 6, the two that it leaves out, and the cache.

use super::analysis::{Analysis, Class, Remaining};
use super::strategies::{self, Kind};
use super::text::bound_of_octets;
use crate::plot::{Axis, Dot, Lines, Look, Plot, Series};
use plotters::style::RGBColor;
use std::time::Duration;

const BLUE: RGBColor = RGBColor(40, 80, 220);
const GREEN: RGBColor = RGBColor(0, 140, 100);
const RED: RGBColor = RGBColor(190, 20, 110);

const HOUR: f64 = 3600.0;

impl Analysis {
    /// Returns the figures.
    pub(super) fn plots(&self) -> Vec<Plot> {
        let duration = |seconds| strategies::span(Duration::from_secs(seconds));
        let volumes = [
            ("received", BLUE, self.received.as_slice()),
            ("sent", GREEN, &self.sent),
        ];
        let mut plots = vec![
            self.days(),
            classes(
                "fig3-durations",
                "Duration of connections",
                &[("", BLUE, &self.durations)],
                duration,
            ),
            classes(
                "fig4-volumes",
                "Volume of connections",
                &volumes,
                bound_of_octets,
            ),
            classes(
                "fig5-visits",
                "Visits of a user",
                &[("", BLUE, &self.visits)],
                |visits| visits.to_string(),
            ),
        ];
        for (name, title, kind) in [
            (
                "fig6-clocked",
                "Exchanges that remain: clocked lifetime",
                Kind::Clocked,
            ),
            (
                "established",
                "Exchanges that remain: established lifetime",
                Kind::Established,
            ),
            ("data", "Exchanges that remain: data lifetime", Kind::Data),
        ] {
            if self
                .strategies
                .iter()
                .any(|one| strategies::kind(&one.strategy) == kind)
            {
                plots.push(self.remaining(name, title, kind));
            }
        }
        plots.extend(self.cache());
        plots
    }

    fn days(&self) -> Plot {
        let counts = self.days.iter().map(|day| day.connections as f64);
        let dots: Vec<_> = (0..)
            .zip(counts.clone())
            .map(|(x, y)| dot(f64::from(x), y))
            .collect();
        Plot::lines(
            "fig2-days",
            Lines {
                title: "Connections per day".to_owned(),
                x: Axis::from_zero("day", [dots.len() as f64]),
                y: Axis::from_zero("connections", counts),
                series: vec![series("", BLUE, Look::Marked, dots)],
            },
        )
    }

    fn remaining(&self, name: &str, title: &str, kind: Kind) -> Plot {
        let all = self.strategies.iter();
        let all: Vec<_> = all
            .filter(|one| strategies::kind(&one.strategy) == kind)
            .collect();
        let shares = all.iter().map(|one| one.share * 100.0);
        let dots = (0..).zip(shares).map(|(x, y)| dot(f64::from(x), y));
        let lifetime = |one: &&Remaining| {
            let limit = match kind {
                Kind::Established => one.strategy.established.map(strategies::span),
                Kind::Data => one.strategy.data.map(strategies::size),
                Kind::Clocked | Kind::Both => None,
            };
            limit.unwrap_or_else(|| strategies::span(one.strategy.clocked))
        };
        Plot::lines(
            name,
            Lines {
                title: title.to_owned(),
                x: Axis::of_names("lifetime", all.iter().map(lifetime).collect()),
                y: Axis::from_zero("% of all", [100.0]),
                series: vec![series("", GREEN, Look::Marked, dots.collect())],
            },
        )
    }

    /// Returns the entries over time with the recommended strategy, and with a clocked one.
    fn cache(&self) -> Option<Plot> {
        let advised = self.advice.strategy.as_deref();
        let named = |name: &str| self.strategies.iter().find(|one| one.name == name);
        let shown = [
            (named("clocked 24 h"), BLUE),
            (advised.and_then(named), RED),
        ];
        let shown = shown
            .into_iter()
            .filter_map(|(one, colour)| Some((one?, colour)));
        let shown: Vec<_> = shown.collect();
        let begin = shown.first()?.0.entries.first()?.0;
        let hours = |at: u64| at.saturating_sub(begin) as f64 / HOUR;
        let all = || shown.iter().flat_map(|(one, _)| &one.entries);
        let series = shown.iter().map(|(one, colour)| {
            let dots = one
                .entries
                .iter()
                .map(|(at, entries)| dot(hours(*at), *entries as f64));
            series(&one.name, *colour, Look::Thin, dots.collect())
        });
        Some(Plot::lines(
            "cache",
            Lines {
                title: "Entries in the cache".to_owned(),
                x: Axis::from_zero("hours", all().map(|(at, _)| hours(*at))),
                y: Axis::from_zero("entries", all().map(|(_, entries)| *entries as f64)),
                series: series.collect(),
            },
        ))
    }
}

/// Draws distributions over the same classes.
pub(crate) fn classes(
    name: &str,
    title: &str,
    all: &[(&str, RGBColor, &[Class])],
    bound: impl Fn(u64) -> String,
) -> Plot {
    let first = all.first().map_or(&[][..], |(.., classes)| classes);
    let names = first
        .iter()
        .map(|class| class.up_to.map_or("more".to_owned(), &bound));
    let counts = all.iter().flat_map(|(.., classes)| classes.iter());
    let series = all.iter().map(|(name, colour, classes)| {
        let dots = (0..).zip(classes.iter());
        let dots = dots.map(|(x, class)| dot(f64::from(x), class.count as f64));
        series(name, *colour, Look::Marked, dots.collect())
    });
    Plot::lines(
        name,
        Lines {
            title: title.to_owned(),
            x: Axis::of_names("up to", names.collect()),
            y: Axis::from_zero("number", counts.map(|class| class.count as f64)),
            series: series.collect(),
        },
    )
}

fn series(name: &str, colour: RGBColor, look: Look, dots: Vec<Dot>) -> Series {
    Series {
        name: name.to_owned(),
        colour,
        look,
        dots,
    }
}

const fn dot(x: f64, y: f64) -> Dot {
    Dot {
        x,
        y,
        interval: None,
    }
}
