//! The table as a map: green is better than Strata with plain ESP, red is worse.

use super::{Entrant, Report, Row};
use crate::plot::{Map, Plot, Tile};

/// A column: its name, its value, its format, and true if more is better.
type Column = (&'static str, fn(&Row) -> f64, fn(f64) -> String, bool);

const COLUMNS: [Column; 6] = [
    ("Gb/s, one", |row| row.one_gbps, fine, true),
    ("Gb/s, four", |row| row.four_gbps, fine, true),
    ("CPU s a GB", |row| row.cpu_s_per_gb, fine, false),
    ("1000 small/s", |row| row.packets_per_s / 1e3, whole, true),
    ("µs at rest", |row| row.rtt_us, whole, false),
    ("µs loaded", |row| row.loaded_rtt_us, whole, false),
];

impl Report {
    /// Returns the measurements as a map; `None` if nothing was measured.
    pub fn plot(&self) -> Option<Plot> {
        let plain = self.rows.iter().find(|row| row.entrant == Entrant::Plain)?;
        let tiles = self.rows.iter().map(|row| {
            let tiles = COLUMNS.iter().map(|column| tile(column, row, plain));
            tiles.collect()
        });
        let names = self.rows.iter().map(|row| row.entrant.short_name());
        let columns = COLUMNS.iter().map(|(name, ..)| (*name).to_owned());
        let map = Map {
            title: "What a tunnel carries, and how many times Strata's that is".to_owned(),
            columns: ("measured".to_owned(), columns.collect()),
            rows: ("carrier".to_owned(), names.map(str::to_owned).collect()),
            tiles: tiles.collect(),
        };
        Some(Plot::map("peers", map))
    }
}

fn tile((_, value, written, more_is_better): &Column, row: &Row, plain: &Row) -> Tile {
    let times = value(row) / value(plain);
    Tile {
        ratio: Some(if *more_is_better {
            times
        } else {
            times.recip()
        }),
        text: [written(value(row)), format!("{times:.2}")],
    }
}

fn fine(value: f64) -> String {
    format!("{value:.2}")
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn what_is_better_is_above_one_whether_more_of_it_is_or_less() {
        let plot = report().plot().unwrap();
        let crate::plot::Drawing::Map(map) = &plot.drawing else {
            panic!("it is a map");
        };
        let of = |name: &str| &map.tiles[map.rows.1.iter().position(|row| row == name).unwrap()];
        assert!(of("plain").iter().all(|tile| tile.ratio == Some(1.0)));
        let roofline: Vec<_> = of("roofline")
            .iter()
            .map(|tile| tile.ratio > Some(1.0))
            .collect();
        assert_eq!(roofline[..4], [true; 4]);
        assert!(plot.svg().unwrap().contains("wireguard-go"));
    }

    #[test]
    fn who_carried_nothing_is_not_drawn() {
        assert!(Report::failed(None).plot().is_none());
    }
}
