//! A table with tiles coloured by a ratio: green if it is more than one, red if it is less.

use super::{FONT, INK, heading, page, refused};
use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const TILE: (i32, i32) = (116, 62);

/// Space left of the tiles and above them, in pixels.
const MARGIN: (i32, i32) = (96, 72);

/// Ratio at which a tile has the full colour.
const FULL: f64 = 4.0;

const GOOD: (f64, f64, f64) = (27.0, 120.0, 85.0);
const BAD: (f64, f64, f64) = (178.0, 40.0, 40.0);

/// A map.
pub struct Map {
    /// Title of the map.
    pub title: String,
    /// Quantity of the columns, with its unit, and their names.
    pub columns: (String, Vec<String>),
    /// Quantity of the rows, with its unit, and their names.
    pub rows: (String, Vec<String>),
    /// The tiles, row by row.
    pub tiles: Vec<Vec<Tile>>,
}

/// A tile.
#[derive(Clone, Debug, Default)]
pub struct Tile {
    /// Ratio that determines the colour; `None` leaves the tile grey.
    pub ratio: Option<f64>,
    /// Text of the tile: a large line and a small one.
    pub text: [String; 2],
}

impl Map {
    pub(super) fn svg(&self) -> Result<String> {
        let (columns, rows) = (self.columns.1.len() as i32, self.rows.1.len() as i32);
        let width = MARGIN.0 + columns * TILE.0 + 16;
        let height = MARGIN.1 + rows * TILE.1 + 44;
        page((width as u32, height as u32), |area| {
            heading(area, &self.title)?;
            let text = |size: i32, weight: FontStyle, ink: RGBColor| {
                let font = (FONT, size).into_font().style(weight).color(&ink);
                font.pos(Pos::new(HPos::Center, VPos::Center))
            };
            let small = text(15, FontStyle::Normal, INK);
            let write = |what: &str, style: &TextStyle<'_>, at| {
                area.draw_text(what, style, at).map_err(refused)
            };
            let middle = MARGIN.0 + columns * TILE.0 / 2;
            write(&self.columns.0, &small, (middle, height - 16))?;
            write(&self.rows.0, &small, (MARGIN.0 / 2, MARGIN.1 - 18))?;
            for (name, row) in self.rows.1.iter().zip(0..) {
                let at = (MARGIN.0 / 2, MARGIN.1 + row * TILE.1 + TILE.1 / 2);
                write(name, &small, at)?;
            }
            for (name, column) in self.columns.1.iter().zip(0..) {
                let at = (MARGIN.0 + column * TILE.0 + TILE.0 / 2, height - 34);
                write(name, &small, at)?;
            }
            for (tiles, row) in self.tiles.iter().zip(0..) {
                for (tile, column) in tiles.iter().zip(0..) {
                    let (x, y) = (MARGIN.0 + column * TILE.0, MARGIN.1 + row * TILE.1);
                    let corners = [(x + 1, y + 1), (x + TILE.0 - 1, y + TILE.1 - 1)];
                    let (ground, ink) = tile.colours();
                    area.draw(&Rectangle::new(corners, ground.filled()))
                        .map_err(refused)?;
                    let centre = x + TILE.0 / 2;
                    let large = text(21, FontStyle::Bold, ink);
                    write(&tile.text[0], &large, (centre, y + 24))?;
                    let small = text(14, FontStyle::Normal, ink);
                    write(&tile.text[1], &small, (centre, y + 45))?;
                }
            }
            Ok(())
        })
    }
}

impl Tile {
    /// Returns the ground colour, and an ink that is legible on it.
    fn colours(&self) -> (RGBColor, RGBColor) {
        let Some(ratio) = self.ratio else {
            return (RGBColor(238, 239, 242), INK);
        };
        // A difference of up to a twentieth is not coloured.
        let strength = (ratio.ln().abs() / FULL.ln()).min(1.0);
        let strength = if ratio.ln().abs() < 0.05 {
            0.0
        } else {
            strength
        };
        let (red, green, blue) = if ratio > 1.0 { GOOD } else { BAD };
        let mix = |part: f64| (246.0 + (part - 246.0) * strength) as u8;
        let ink = if strength > 0.55 { WHITE } else { INK };
        (RGBColor(mix(red), mix(green), mix(blue)), ink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground(ratio: f64) -> RGBColor {
        let tile = Tile {
            ratio: Some(ratio),
            ..Tile::default()
        };
        tile.colours().0
    }

    #[test]
    fn a_gain_is_green_a_loss_is_red_and_neither_is_pale() {
        let RGBColor(red, green, _) = ground(4.0);
        assert!(green > red);
        let RGBColor(red, green, _) = ground(0.25);
        assert!(red > green);
        assert_eq!(ground(1.02), ground(0.97));
    }
}
