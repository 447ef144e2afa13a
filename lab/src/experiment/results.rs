//! All cells of a figure, with queries over them.

use super::cell::{Cell, Condition, Measured};
use super::statistics::{self, Estimate};
use std::collections::BTreeMap;

/// Smallest goodput that counts, in bits per second: a ratio to zero would be infinite.
const LEAST: f64 = 1000.0;

/// Measured cells by condition and seed.
#[derive(Clone, Debug, Default)]
pub struct Results(BTreeMap<Condition, BTreeMap<u64, Measured>>);

impl FromIterator<Measured> for Results {
    fn from_iter<T: IntoIterator<Item = Measured>>(cells: T) -> Self {
        let mut results = Self::default();
        for measured in cells {
            let Cell {
                condition, seed, ..
            } = measured.cell;
            results
                .0
                .entry(condition)
                .or_default()
                .insert(seed, measured);
        }
        results
    }
}

impl Results {
    /// Iterates over all cells, ordered by condition, then seed.
    pub fn iter(&self) -> impl Iterator<Item = &Measured> {
        self.0.values().flat_map(BTreeMap::values)
    }

    /// Iterates over the measured conditions.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.0.keys()
    }

    /// Iterates over the cells of a condition, ordered by seed.
    pub fn measured(&self, condition: &Condition) -> impl Iterator<Item = &Measured> {
        self.0.get(condition).into_iter().flat_map(BTreeMap::values)
    }

    /// Returns the mean of a quantity over the seeds of a condition.
    pub fn mean(
        &self,
        condition: &Condition,
        quantity: impl Fn(&Measured) -> f64,
    ) -> Option<Estimate> {
        let values: Vec<_> = self.measured(condition).map(quantity).collect();
        statistics::mean(&values)
    }

    /// Returns the mean goodput, in bits per second.
    pub fn goodput(&self, condition: &Condition) -> Option<Estimate> {
        self.mean(condition, |measured| measured.goodput)
    }

    /// Returns the ratio of the goodputs of two conditions.
    pub fn gain(&self, of: &Condition, over: &Condition) -> Option<Estimate> {
        self.ratio(of, over, goodput)
    }

    /// Returns the ratio of another quantity than goodput.
    pub fn ratio(
        &self,
        of: &Condition,
        over: &Condition,
        quantity: impl Fn(&Measured) -> f64,
    ) -> Option<Estimate> {
        statistics::ratio(&self.pairs(of, over, quantity))
    }

    /// Returns the ratio of two goodputs for each seed.
    pub fn gains(&self, of: &Condition, over: &Condition) -> BTreeMap<u64, f64> {
        let others = self.0.get(over);
        let gains = self.measured(of).filter_map(|first| {
            let seed = first.cell.seed;
            Some((seed, goodput(first) / goodput(others?.get(&seed)?)))
        });
        gains.collect()
    }

    /// Returns the ratio of the medians of the goodput.
    pub fn median_gain(&self, of: &Condition, over: &Condition) -> Option<Estimate> {
        statistics::median_ratio(&self.pairs(of, over, goodput))
    }

    fn pairs(
        &self,
        a: &Condition,
        b: &Condition,
        quantity: impl Fn(&Measured) -> f64,
    ) -> Vec<(f64, f64)> {
        let others = self.0.get(b);
        self.measured(a)
            .filter_map(|first| {
                let second = others?.get(&first.cell.seed)?;
                Some((quantity(first), quantity(second)))
            })
            .collect()
    }
}

fn goodput(measured: &Measured) -> f64 {
    measured.goodput.max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{cell, measured};
    use super::*;
    use crate::scene::Setup;

    #[test]
    fn only_cells_with_the_same_seed_are_pairs() {
        let with_snoop = |seed| {
            let mut cell = cell(seed);
            cell.condition.setup = Setup::ZonedSnoop;
            cell
        };
        let results: Results = [
            measured(&cell(1), 4e5),
            measured(&cell(2), 1.0),
            measured(&with_snoop(1), 1.6e6),
            measured(&with_snoop(3), 5e5),
        ]
        .into_iter()
        .collect();
        let (of, over) = (with_snoop(1).condition, cell(1).condition);
        let gain = results.gain(&of, &over).unwrap();
        assert_eq!(gain.runs, 1);
        assert!((gain.value - 4.0).abs() < 1e-9, "{gain:?}");
    }
}
