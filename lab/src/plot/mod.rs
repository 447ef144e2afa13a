//! Plots as SVG, for white paper.

mod lines;
mod map;

pub use lines::{Axis, Dot, Lines, Look, Series, Ticks};
pub use map::{Map, Tile};

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Font of every plot.
const FONT: &str = "sans-serif";

/// Ink of text and axes.
const INK: RGBColor = RGBColor(40, 44, 52);

/// Ink of grid lines.
const FAINT: RGBColor = RGBColor(222, 225, 230);

/// A plot and the name of its file, without `.svg`.
pub struct Plot {
    /// The file's name.
    pub name: String,
    /// Content of the plot.
    pub drawing: Drawing,
}

/// Content of a plot.
pub enum Drawing {
    /// Lines over an axis.
    Lines(Lines),
    /// Coloured tiles.
    Map(Map),
}

impl Plot {
    /// Creates a plot of lines with this file name.
    pub fn lines(name: impl Into<String>, lines: Lines) -> Self {
        Self {
            name: name.into(),
            drawing: Drawing::Lines(lines),
        }
    }

    /// Creates a plot of a map with this file name.
    pub fn map(name: impl Into<String>, map: Map) -> Self {
        Self {
            name: name.into(),
            drawing: Drawing::Map(map),
        }
    }

    /// Renders the plot as SVG.
    ///
    /// # Errors
    /// The plotting library refuses, as it does for numbers that are not finite.
    pub fn svg(&self) -> Result<String> {
        match &self.drawing {
            Drawing::Lines(lines) => lines.svg(),
            Drawing::Map(map) => map.svg(),
        }
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the title above everything.
fn heading(area: &Area<'_>, title: &str) -> Result<()> {
    let font = (FONT, 19).into_font().style(FontStyle::Bold).color(&INK);
    area.draw_text(title, &font, (16, 12)).map_err(refused)
}

/// Runs a drawing on a white page and returns its SVG.
fn page(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE).map_err(refused)?;
        draw(&area)?;
        area.present().map_err(refused)?;
    }
    Ok(svg)
}

fn refused(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw a plot: {error}")
}
