//! A value over all rounds of a benchmark.

use crate::experiment::median;
use serde::Serialize;

/// The median of a value, with its extremes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest value.
    pub least: f64,
    /// Largest value.
    pub most: f64,
}

impl Spread {
    /// Returns the spread of values, if there are any.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<_> = values.into_iter().collect();
        Some(Self {
            median: median(&values)?,
            least: values.iter().copied().min_by(f64::total_cmp)?,
            most: values.iter().copied().max_by(f64::total_cmp)?,
        })
    }

    /// Returns the median, and the smallest and the largest value.
    pub(super) fn text(self, digits: usize) -> String {
        let Self {
            median,
            least,
            most,
        } = self;
        format!("{median:.digits$} {least:.digits$}-{most:.digits$}")
    }
}
