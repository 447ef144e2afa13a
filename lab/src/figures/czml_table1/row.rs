//! A row: the lengths of a segment by the paper, by computation and by measurement.

use super::cost::Cost;
use super::here::{computed, headers, ip_header, padding};
use super::paper::{self, AES_CBC, Sealed, corrected, printed};
use crate::experiment::{self, Column};
use model::Suite;
use os::Family;

/// Subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A suite that only the paper has.
    Papers(&'static str),
    /// A suite of Strata.
    Ours(Suite),
}

/// A row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Suite of the row.
    pub subject: Subject,
    /// IP version, inside and outside.
    pub family: Family,
    /// Octets of the segment, headers included.
    pub octets: usize,
    /// Lengths that the paper prints.
    pub printed: Option<Cost>,
    /// Lengths that the paper should print.
    pub corrected: Option<Cost>,
    /// Lengths that our packets must have.
    pub computed: Option<Cost>,
    /// Measured lengths.
    pub measured: Option<Cost>,
}

impl Subject {
    /// Returns the name for readers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Papers(name) => name,
            Self::Ours(suite) => suite.name(),
        }
    }
}

impl Row {
    /// Creates a row for a suite of the paper. Only AES-CBC is in the paper's table.
    pub fn of_the_paper(suite: &paper::Suite, octets: usize) -> Self {
        let row = Self::new(Subject::Papers(suite.name), Family::V4, octets, suite);
        let printed = row.printed.filter(|_| suite.block == AES_CBC.block);
        Self { printed, ..row }
    }

    /// Creates a row for a suite of Strata, next to the paper's table.
    pub fn of_ours(suite: Suite, family: Family, octets: usize, measured: Option<&Cost>) -> Self {
        Self {
            computed: computed(suite, family, octets),
            measured: measured.copied(),
            ..Self::new(Subject::Ours(suite), family, octets, &AES_CBC)
        }
    }

    fn new(subject: Subject, family: Family, octets: usize, suite: &paper::Suite) -> Self {
        let headers = headers(family);
        let payload = octets.saturating_sub(headers);
        let sealed = Sealed {
            headers,
            first: 0,
            second: payload,
        };
        Self {
            subject,
            family,
            octets,
            printed: (family == Family::V4).then(|| printed(0, payload)),
            corrected: Some(corrected(suite, ip_header(family), sealed)),
            computed: None,
            measured: None,
        }
    }

    /// Returns the octets that zones add without padding; `None` if the row was not measured.
    pub fn added_without_padding(&self) -> Option<i64> {
        let Subject::Ours(suite) = self.subject else {
            return None;
        };
        let padding = padding(suite, self.family, self.octets)?;
        Some(self.measured?.added() - padding.added())
    }

    /// Returns the fault of the row. A row that is only computed has none.
    pub fn fault(&self) -> Option<String> {
        let Subject::Ours(suite) = self.subject else {
            return None;
        };
        let name = format!(
            "{}, {}, {} octets",
            suite.name(),
            self.version(),
            self.octets
        );
        let told = |cost: Cost| format!("{} plain, {} in zones", cost.plain, cost.zoned);
        match (self.measured, self.computed) {
            (None, _) => Some(format!("{name}: not measured")),
            (Some(measured), computed) if Some(measured) == computed => None,
            (Some(measured), computed) => {
                let computed = computed.map_or("nothing".to_owned(), told);
                Some(format!("{name}: {}, computed {computed}", told(measured)))
            }
        }
    }

    /// Returns the columns of the table.
    pub fn columns() -> Vec<Column> {
        let groups = ["printed", "corrected", "computed", "measured"].into_iter();
        let both = |group| ["plain", "added"].map(|name| Column::new(group, name));
        [Column::new("", "octets")]
            .into_iter()
            .chain(groups.flat_map(both))
            .collect()
    }

    /// Returns the row of the table.
    pub fn shown(&self) -> experiment::Row {
        let costs = [self.printed, self.corrected, self.computed, self.measured];
        let numbers = costs.into_iter().flat_map(Cost::numbers);
        experiment::Row {
            subject: self.subject.name().to_owned(),
            name: self.version().to_owned(),
            numbers: [Some(self.octets as i64)]
                .into_iter()
                .chain(numbers)
                .collect(),
        }
    }

    /// Returns the IP version.
    pub const fn version(&self) -> &'static str {
        match self.family {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }
}
