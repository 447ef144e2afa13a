//! Lines with error bars, and single points from other sources for comparison.

use super::{Area, FAINT, FONT, INK, heading, page, refused};
use anyhow::Result;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::ops::Range;

const SIZE: (u32, u32) = (580, 400);

/// Height above the plot for the title and the legend, in pixels.
const HEADING: i32 = 66;

/// A plot of lines.
pub struct Lines {
    /// Title of the plot.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, drawn in this order.
    pub series: Vec<Series>,
}

/// An axis.
pub struct Axis {
    /// Quantity on the axis, with its unit.
    pub label: String,
    /// First and last value.
    pub range: Range<f64>,
    /// Labels along the axis.
    pub ticks: Ticks,
}

/// Labels along an axis.
pub enum Ticks {
    /// Numbers, at round values.
    Numbers,
    /// Names, at 0, 1, 2 and so on.
    Names(Vec<String>),
}

/// A line.
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Colour of the line and its points.
    pub colour: RGBColor,
    /// Style of the line.
    pub look: Look,
    /// Points, from left to right.
    pub dots: Vec<Dot>,
}

/// Style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A line through marked points.
    Marked,
    /// A line through very many points.
    Thin,
    /// Hollow diamonds, for values of a paper.
    Diamonds,
    /// Crosses, for values of the simulator.
    Crosses,
}

/// A point, with its interval if it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Bounds of the confidence interval.
    pub interval: Option<[f64; 2]>,
}

/// Fewest points that a line is drawn through.
const CURVE: usize = 3;

type Plane = Cartesian2d<RangedCoordf64, RangedCoordf64>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Plane>;

impl Lines {
    pub(super) fn svg(&self) -> Result<String> {
        page(SIZE, |area| {
            heading(area, &self.title)?;
            self.draw_legend(area)?;
            self.draw(area)
        })
    }

    fn draw(&self, area: &Area<'_>) -> Result<()> {
        let mut chart = ChartBuilder::on(area)
            .margin(14)
            .margin_top(HEADING)
            .x_label_area_size(42)
            .y_label_area_size(self.y_labels())
            .build_cartesian_2d(self.x.range.clone(), self.y.range.clone())
            .map_err(refused)?;
        self.draw_mesh(&mut chart)?;
        self.series
            .iter()
            .try_for_each(|series| series.draw(&mut chart))
    }

    /// Returns the width left of the plot: of the longest number, and of the label beside it.
    fn y_labels(&self) -> i32 {
        let Range { start, end } = self.y.range;
        let numbers = [start, end, (start + end) / 2.0].map(|at| self.y.text(at));
        let longest = numbers.iter().map(|text| text.chars().count()).max();
        32 + 8 * longest.unwrap_or_default() as i32
    }

    /// Draws one row above the plot, where it cannot cover a line.
    fn draw_legend(&self, area: &Area<'_>) -> Result<()> {
        let mut left = 16;
        for series in &self.series {
            let at = (left, 44);
            series.look.draw_sign(area, at, series.colour)?;
            let text = (FONT, 15).into_font().color(&INK);
            area.draw_text(&series.name, &text, (left + 26, 38))
                .map_err(refused)?;
            left += 26 + 8 * series.name.chars().count() as i32 + 12;
        }
        Ok(())
    }

    fn draw_mesh(&self, chart: &mut Chart<'_, '_>) -> Result<()> {
        let text = (FONT, 15).into_font().color(&INK);
        let name = |x: &f64| self.x.text(*x);
        let number = |y: &f64| self.y.text(*y);
        let ticks = match &self.x.ticks {
            Ticks::Numbers => 8,
            // One label for each half: those between the names stay empty.
            Ticks::Names(names) => 2 * names.len() + 1,
        };
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .x_labels(ticks)
            .y_labels(8)
            .x_label_formatter(&name)
            .y_label_formatter(&number)
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .label_style(text.clone())
            .axis_desc_style(text);
        mesh.draw().map_err(refused)
    }
}

impl Axis {
    /// Creates an axis of numbers from zero to the largest of these values, with some room above.
    pub fn from_zero(label: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        let largest = values.into_iter().fold(0.0, f64::max);
        Self {
            label: label.into(),
            range: 0.0..if largest > 0.0 { largest * 1.08 } else { 1.0 },
            ticks: Ticks::Numbers,
        }
    }

    /// Creates an axis of names at equal distances.
    pub fn of_names(label: impl Into<String>, names: Vec<String>) -> Self {
        Self {
            label: label.into(),
            range: -0.5..names.len() as f64 - 0.5,
            ticks: Ticks::Names(names),
        }
    }

    fn text(&self, at: f64) -> String {
        match &self.ticks {
            Ticks::Numbers => {
                let text = format!("{at:.1}");
                text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
            }
            Ticks::Names(names) => {
                let is_whole = (at - at.round()).abs() < 1e-6 && at > -0.25;
                let name = is_whole.then(|| names.get(at.round() as usize)).flatten();
                name.cloned().unwrap_or_default()
            }
        }
    }
}

impl Series {
    fn draw(&self, chart: &mut Chart<'_, '_>) -> Result<()> {
        let points: Vec<_> = self.dots.iter().map(|dot| (dot.x, dot.y)).collect();
        let signs = self
            .look
            .has_mark()
            .then_some(&points)
            .into_iter()
            .flatten();
        let signs = signs.map(|&at| EmptyElement::at(at) + self.look.mark((0, 0), self.colour));
        let bars = self.dots.iter().filter_map(|dot| {
            let [low, high] = dot.interval?;
            let style = self.colour.stroke_width(1);
            Some(ErrorBar::new_vertical(dot.x, low, dot.y, high, style, 6))
        });
        // Two points are no curve.
        if let Some(width) = self.look.line().filter(|_| points.len() >= CURVE) {
            let line = LineSeries::new(points.clone(), self.colour.stroke_width(width));
            chart.draw_series(line).map_err(refused)?;
        }
        chart.draw_series(bars).map_err(refused)?;
        chart.draw_series(signs).map_err(refused)?;
        Ok(())
    }
}

impl Look {
    /// Returns the width of its line.
    fn line(self) -> Option<u32> {
        match self {
            Self::Marked => Some(2),
            Self::Thin => Some(2),
            Self::Diamonds | Self::Crosses => None,
        }
    }

    fn has_mark(self) -> bool {
        self != Self::Thin
    }

    /// Returns its mark, around a pixel.
    fn mark(self, (x, y): (i32, i32), colour: RGBColor) -> PathElement<(i32, i32)> {
        let corners: &[(i32, i32)] = match self {
            Self::Marked | Self::Thin => &[(-3, -3), (3, -3), (3, 3), (-3, 3)],
            Self::Diamonds => &[(-6, 0), (0, -6), (6, 0), (0, 6), (-6, 0)],
            Self::Crosses => &[(-4, -4), (4, 4), (0, 0), (-4, 4), (4, -4)],
        };
        let corners: Vec<_> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        match self {
            Self::Marked | Self::Thin => PathElement::new(corners, colour.filled()),
            Self::Diamonds | Self::Crosses => PathElement::new(corners, colour.stroke_width(2)),
        }
    }

    /// Draws its sign in the legend.
    fn draw_sign(self, area: &Area<'_>, (x, y): (i32, i32), colour: RGBColor) -> Result<()> {
        if let Some(width) = self.line() {
            let line = PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(width + 1));
            area.draw(&line).map_err(refused)?;
        }
        if self.has_mark() {
            area.draw(&self.mark((x + 10, y), colour))
                .map_err(refused)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(dots: usize, largest: f64) -> Lines {
        let dot = |place: usize| Dot {
            x: place as f64,
            y: largest,
            interval: None,
        };
        Lines {
            title: "a plot".to_owned(),
            x: Axis::from_zero("x", [dots as f64]),
            y: Axis::from_zero("cycles", [largest]),
            series: vec![Series {
                name: "a line".to_owned(),
                colour: RGBColor(1, 2, 3),
                look: Look::Marked,
                dots: (0..dots).map(dot).collect(),
            }],
        }
    }

    /// Each point adds a mark.
    #[test]
    fn a_line_is_drawn_through_three_points_and_not_through_two() {
        let drawn = |dots| {
            let svg = plot(dots, 1.0).svg().unwrap();
            svg.matches("#010203").count()
        };
        let mark = drawn(2) - drawn(1);
        assert_eq!(drawn(3), drawn(2) + mark + 1);
        assert_eq!(drawn(4), drawn(3) + mark);
    }

    #[test]
    fn long_numbers_leave_room_for_the_label() {
        assert_eq!(plot(3, 1.0).y_labels(), 32 + 8 * 3);
        assert_eq!(plot(3, 100_000.0).y_labels(), 32 + 8 * 6);
    }
}
