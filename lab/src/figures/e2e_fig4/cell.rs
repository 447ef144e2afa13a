//! Set-ups and moves with one protection, and the quantities of the figure.

use super::Subject;
use crate::experiment::{Estimate, Row};
use crate::figures::moves::{Contender, Passage, Protection, quartiles};
use serde::{Deserialize, Serialize};

/// Quantities of set-ups and moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Ike,
    System,
    First,
    Stalled,
    Lost,
}

impl Quantity {
    pub const ALL: [Self; 5] = [
        Self::Ike,
        Self::System,
        Self::First,
        Self::Stalled,
        Self::Lost,
    ];

    /// Those of the paper's figure, without that of SCTP.
    pub const PLOTTED: [Self; 3] = [Self::Ike, Self::System, Self::Stalled];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Ike => "T_IKE",
            Self::System => "T_SYS",
            Self::First => "first data",
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

    /// Returns the time that the paper prints, in milliseconds. Of T_SYS it prints what IPsec adds.
    pub const fn paper(self, protection: Protection) -> Option<f64> {
        match (self, protection) {
            (Self::Ike, Protection::None) => None,
            (Self::Ike, _) => Some(255.0),
            (Self::Stalled, Protection::None) => Some(30.0325),
            (Self::Stalled, _) => Some(199.587),
            (Self::System | Self::First | Self::Lost, _) => None,
        }
    }
}

/// Set-ups and moves of a subject.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    protection: Protection,
    contender: Contender,
    /// T_IKE of each set-up, in microseconds.
    pub set_ups: Vec<f64>,
    pub moves: Vec<Passage>,
}

impl Cell {
    pub const fn new(subject: Subject) -> Self {
        Self {
            protection: subject.protection,
            contender: subject.contender,
            set_ups: Vec::new(),
            moves: Vec::new(),
        }
    }

    pub const fn subject(&self) -> Subject {
        Subject {
            protection: self.protection,
            contender: self.contender,
        }
    }

    /// Returns all values of a quantity, in microseconds if it is a time.
    pub fn values(&self, quantity: Quantity) -> Vec<f64> {
        let of = |value: fn(&Passage) -> Option<f64>| {
            let values = self.moves.iter().filter_map(value);
            values.collect()
        };
        match quantity {
            Quantity::Ike => self.set_ups.clone(),
            Quantity::System => of(|one| one.system),
            Quantity::First => of(|one| one.first),
            Quantity::Stalled => of(|one| one.stalled[0]),
            Quantity::Lost => of(|one| one.lost[0]),
        }
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

    /// Returns the row of a quantity, behind that of the paper if there is one. Without IPsec there
    /// is no negotiation.
    pub fn rows(&self, quantity: Quantity) -> Vec<Row> {
        if quantity == Quantity::Ike && self.protection == Protection::None {
            return Vec::new();
        }
        let row = |name: String, numbers: [Option<f64>; 5]| Row {
            subject: format!("{}, {}", quantity.name(), quantity.unit()),
            name,
            numbers: numbers
                .map(|number| number.map(|number| number.round() as i64))
                .into(),
        };
        let values = self.values(quantity);
        let count = Some(values.len() as f64);
        let [first, median, third, longest] = quartiles(values);
        let measured = row(
            self.subject().name(),
            [count, first, median, third, longest],
        );
        // It is that of both contenders.
        let printed = quantity.paper(self.protection);
        let printed = printed.filter(|_| self.contender == Contender::Strata);
        let printed = printed.map(|ms| {
            let name = format!("{}, the paper", self.protection.name());
            row(name, [None, None, Some(ms * 1e3), None, None])
        });
        printed.into_iter().chain([measured]).collect()
    }
}
