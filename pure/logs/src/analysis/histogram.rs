//! Distributions of numbers in classes.

/// Upper bounds of the classes of the paper's figures. What is above the last bound is a class too.
pub mod bounds {
    /// Durations in seconds (figure 3): 1, 5, 10 and 30 minutes, 1, 3, 6, 12 and 24 hours.
    pub const DURATIONS: &[u64] = &[60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400];

    /// Octets (figure 4): 1, 10 and 100 kB, 1, 10, 20, 50 and 100 MB, 1 GB.
    pub const VOLUMES: &[u64] = &[
        1_000,
        10_000,
        100_000,
        1_000_000,
        10_000_000,
        20_000_000,
        50_000_000,
        100_000_000,
        1_000_000_000,
    ];

    /// Visits of a user (figure 5).
    pub const VISITS: &[u64] = &[1, 5, 10, 20, 50, 100, 200];

    /// Seconds for which a secret is in use: hours up to two days, and days up to a month.
    pub const LIVES: &[u64] = &[
        3600, 7200, 14_400, 28_800, 43_200, 86_400, 172_800, 345_600, 604_800, 1_209_600, 2_592_000,
    ];

    /// Octets under one secret: 1 MB to 100 GB.
    pub const BURDENS: &[u64] = &[
        1_000_000,
        10_000_000,
        20_000_000,
        50_000_000,
        100_000_000,
        200_000_000,
        500_000_000,
        1_000_000_000,
        10_000_000_000,
        100_000_000_000,
    ];
}

/// Bound of a part of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// None of them is above this.
    AtMost(u64),
    /// The largest is above this, and nothing says how far.
    MoreThan(u64),
}

/// A distribution. Two of the same classes can be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    bounds: &'static [u64],
    counts: Vec<u64>,
    sum: u128,
}

impl Histogram {
    /// Creates an empty distribution with these upper bounds, which are part of their classes.
    pub fn new(bounds: &'static [u64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0,
        }
    }

    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        let class = self.bounds.partition_point(|bound| *bound < number);
        self.counts[class] += 1;
        self.sum += u128::from(number);
    }

    /// Adds all numbers of another distribution of the same classes.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.bounds, other.bounds, "classes differ");
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum += other.sum;
    }

    /// Returns each class: its upper bound, or `None` for the last one, and its count.
    pub fn classes(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let bounds = self.bounds.iter().copied().map(Some).chain([None]);
        bounds.zip(self.counts.iter().copied())
    }

    /// Returns the bound of so many per cent of the numbers, the smallest first, or `None` without
    /// numbers. It is the upper bound of a class.
    pub fn percentile(&self, percent: u64) -> Option<Bound> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        let last = self.bounds.last().copied().unwrap_or_default();
        reached.map(|class| match self.bounds.get(class) {
            Some(bound) => Bound::AtMost(*bound),
            None => Bound::MoreThan(last),
        })
    }

    /// Returns how many numbers there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all numbers.
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the mean, or `None` without numbers.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum as f64 / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_bound_of_its_class() {
        let mut histogram = Histogram::new(bounds::VISITS);
        assert_eq!(histogram.percentile(50), None);
        (1..=100).for_each(|number| histogram.add(number));
        let bounds = [0, 1, 2, 50, 51, 100].map(|percent| histogram.percentile(percent));
        let expected = [1, 1, 5, 50, 100, 100].map(|bound| Some(Bound::AtMost(bound)));
        assert_eq!(bounds, expected);
        histogram.add(201);
        assert_eq!(histogram.percentile(100), Some(Bound::MoreThan(200)));
    }
    use proptest::prelude::*;

    #[test]
    fn a_bound_belongs_to_its_class() {
        let mut visits = Histogram::new(&[1, 5]);
        for number in [1, 2, 5, 6, 600] {
            visits.add(number);
        }
        let classes: Vec<_> = visits.classes().collect();
        assert_eq!(classes, [(Some(1), 1), (Some(5), 2), (None, 2)]);
        assert_eq!((visits.sum(), visits.mean()), (614, Some(122.8)));
        assert_eq!(Histogram::new(&[1]).mean(), None);
    }

    proptest! {
        #[test]
        fn parts_merge_to_the_whole(
            numbers in proptest::collection::vec(any::<u64>(), 0..50), at in 0..50_usize
        ) {
            let of = |numbers: &[u64]| {
                let mut histogram = Histogram::new(bounds::VOLUMES);
                numbers.iter().for_each(|number| histogram.add(*number));
                histogram
            };
            let (one, other) = numbers.split_at(at.min(numbers.len()));
            let mut merged = of(one);
            merged.merge(&of(other));
            prop_assert_eq!(merged, of(&numbers));
        }
    }
}
