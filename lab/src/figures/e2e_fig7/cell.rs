//! Moves of one kind in one manner, and the quantities of the figure.

use super::manner::Manner;
use super::{NEAR, Passage};
use crate::experiment::{Estimate, Row};
use crate::figures::moves::{Kind, quartiles};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Moves that are measured at each distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub manner: Manner,
    pub kind: Kind,
}

impl Subject {
    pub const ALL: [Self; 8] = [
        Self::new(Manner::Mobike, Kind::Mobility),
        Self::new(Manner::Mobike, Kind::Multihoming),
        Self::new(Manner::Transport, Kind::Mobility),
        Self::new(Manner::Transport, Kind::Multihoming),
        Self::new(Manner::Strongswan, Kind::Mobility),
        Self::new(Manner::Strongswan, Kind::Multihoming),
        Self::new(Manner::LivePaths, Kind::Multihoming),
        Self::new(Manner::Soft, Kind::Multihoming),
    ];

    /// Those that the paper measures.
    pub const PRINTED: Self = Self::new(Manner::Transport, Kind::Mobility);

    pub const fn new(manner: Manner, kind: Kind) -> Self {
        Self { manner, kind }
    }
}

/// Quantities of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    System,
    Update,
    Check,
    Stalled,
    Lost,
}

impl Quantity {
    pub const ALL: [Self; 5] = [
        Self::System,
        Self::Update,
        Self::Check,
        Self::Stalled,
        Self::Lost,
    ];

    /// The times, which the paper has all.
    pub const PLOTTED: [Self; 4] = [Self::System, Self::Update, Self::Check, Self::Stalled];

    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "T_SYS",
            Self::Update => "T_UPDATE",
            Self::Check => "T_RRC",
            Self::Stalled => "T_STALLED",
            Self::Lost => "lost, to the node",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Lost => "datagrams",
            _ => "us",
        }
    }

    /// Returns true for a quantity of every move. The others time hard ones.
    const fn is_of_all(self) -> bool {
        matches!(self, Self::Stalled | Self::Lost)
    }

    /// Returns the time of the paper in milliseconds.
    pub fn paper(self, subject: Subject, round_trip: Duration) -> Option<f64> {
        if subject != Subject::PRINTED || round_trip != NEAR {
            return None;
        }
        match self {
            Self::System => Some(110.9095),
            Self::Update => Some(36.6035),
            Self::Check => Some(39.943),
            Self::Stalled => Some(264.0),
            Self::Lost => None,
        }
    }
}

/// Moves of a subject at one distance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    manner: Manner,
    kind: Kind,
    pub round_trip: Duration,
    pub moves: Vec<Passage>,
}

impl Cell {
    pub const fn new(Subject { manner, kind }: Subject, round_trip: Duration) -> Self {
        Self {
            manner,
            kind,
            round_trip,
            moves: Vec::new(),
        }
    }

    pub const fn subject(&self) -> Subject {
        Subject::new(self.manner, self.kind)
    }

    pub fn name(&self) -> String {
        let far = far(self.round_trip);
        match self.manner.is_hard() {
            true => format!("{}, {}, {far}", self.manner.name(), self.kind.name()),
            false => format!("{}, {far}", self.manner.name()),
        }
    }

    /// Returns all values of a quantity, in microseconds if it is a time.
    pub fn values(&self, quantity: Quantity) -> Vec<f64> {
        if !quantity.is_of_all() && !self.manner.is_hard() {
            return Vec::new();
        }
        let of = |one: &Passage| match quantity {
            Quantity::System => one.system,
            Quantity::Update => one.update,
            Quantity::Check => one.check,
            Quantity::Stalled => one.stalled[0],
            Quantity::Lost => one.lost[0],
        };
        self.moves.iter().filter_map(of).collect()
    }

    /// Returns the median of a time between its quartiles, in milliseconds.
    pub fn bar(&self, quantity: Quantity) -> Option<Estimate> {
        let values = self.values(quantity);
        let runs = values.len();
        let [first, median, third, _] = quartiles(values);
        Some(Estimate {
            value: median? / 1e3,
            interval: Some([first? / 1e3, third? / 1e3]),
            runs,
        })
    }

    /// Returns the rows of the quantities, each behind that of the paper if there is one.
    pub fn rows(&self) -> Vec<Row> {
        let all = Quantity::ALL.into_iter();
        let timed = all.filter(|one| one.is_of_all() || self.manner.is_hard());
        timed.flat_map(|quantity| self.rows_of(quantity)).collect()
    }

    fn rows_of(&self, quantity: Quantity) -> Vec<Row> {
        let row = |name: &str, numbers: [Option<f64>; 5]| Row {
            subject: self.name(),
            name: format!("{}, {}{name}", quantity.name(), quantity.unit()),
            numbers: numbers
                .map(|number| number.map(|number| number.round() as i64))
                .into(),
        };
        let values = self.values(quantity);
        let count = Some(values.len() as f64);
        let [first, median, third, longest] = quartiles(values);
        let measured = row("", [count, first, median, third, longest]);
        let printed = quantity.paper(self.subject(), self.round_trip);
        let printed =
            printed.map(|ms| row(", the paper", [None, None, Some(ms * 1e3), None, None]));
        printed.into_iter().chain([measured]).collect()
    }
}

/// Returns a round trip in words.
pub(super) fn far(round_trip: Duration) -> String {
    format!("{} ms a round trip", round_trip.as_secs_f64() * 1e3)
}
