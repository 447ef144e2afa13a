//! A histogram of durations, recorded by several threads and readable at any time.
//!
//! Buckets are an eighth of an octave wide, so a quantile is at most 12.5 % too high and never too
//! low. One atomic addition records a value.

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const STEPS: u64 = 8;
const BUCKETS: usize = 62 * STEPS as usize;

/// A histogram of durations.
pub struct Histogram {
    buckets: Vec<AtomicU64>,
    max: AtomicU64,
}

/// Quantiles of a histogram, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Number of recorded durations.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Longest duration.
    pub max_us: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            max: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&self, duration: Duration) {
        let nanos = duration.as_nanos().try_into().unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)].fetch_add(1, Relaxed);
        self.max.fetch_max(nanos, Relaxed);
    }

    /// Returns the quantiles of everything recorded so far.
    pub fn quantiles(&self) -> Quantiles {
        let counts: Vec<u64> = self.buckets.iter().map(|b| b.load(Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let max = self.max.load(Relaxed);
        let quantile = |per_mille: u64| {
            let rank = (count * per_mille).div_ceil(1000).max(1);
            let mut seen = 0;
            let reached = counts.iter().position(|n| {
                seen += n;
                seen >= rank
            });
            micros(reached.map_or(0, |index| last_of(index).min(max)))
        };
        Quantiles {
            count,
            p50_us: quantile(500),
            p99_us: quantile(990),
            p999_us: quantile(999),
            max_us: micros(max),
        }
    }
}

/// Returns the bucket of a value. Values below 8 have their own buckets; above, the three bits
/// after the leading one choose.
fn bucket(nanos: u64) -> usize {
    let octave = u64::from(nanos.max(STEPS).ilog2()) - 3;
    (octave * STEPS + (nanos >> octave)) as usize
}

/// Returns the largest value in a bucket.
fn last_of(index: usize) -> u64 {
    let octave = (index as u64 / STEPS).saturating_sub(1);
    let first = (index as u64 - octave * STEPS) << octave;
    first + ((1 << octave) - 1)
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for value in (0..5000).chain([1 << 40, (1 << 40) + 12_345, u64::MAX / 2, u64::MAX]) {
            let index = bucket(value);
            assert!(last_of(index) >= value, "{value}");
            assert!(index == 0 || last_of(index - 1) < value, "{value}");
        }
    }

    #[test]
    fn quantiles_are_never_too_low_and_at_most_an_eighth_too_high() {
        let histogram = Histogram::default();
        (1..=10_000).for_each(|us| histogram.record(Duration::from_micros(us)));
        let q = histogram.quantiles();
        assert_eq!(q.count, 10_000);
        for (found, exact) in [
            (q.p50_us, 5_000.0),
            (q.p99_us, 9_900.0),
            (q.p999_us, 9_990.0),
        ] {
            assert!(exact <= found && found <= exact * 1.125, "{found} {exact}");
        }
        assert_eq!(q.max_us, 10_000.0);
    }

    #[test]
    fn an_empty_histogram_has_quantiles_of_zero() {
        assert_eq!(Histogram::default().quantiles(), Quantiles::default());
    }
}
