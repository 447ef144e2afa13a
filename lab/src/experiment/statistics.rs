//! Statistics of few runs: means and ratios with their 95 % intervals.
//!
//! Configurations are compared in pairs, run by run with the same bit errors. The ratio of two
//! goodputs is taken in each pair and averaged geometrically (half as fast and twice as fast cancel
//! out); its interval is Student's for the logarithms. Medians have the interval of a bootstrap
//! over the pairs. The bootstrap has a fixed seed: the same results give the same numbers.

use serde::{Deserialize, Serialize};

/// Resamplings of a bootstrap.
const RESAMPLINGS: usize = 2000;

/// Student's t for 95 %, by degrees of freedom from 1 on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Student's t for more degrees of freedom: the value of the normal distribution.
const NORMAL: f64 = 1.960;

/// A number and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Value of the estimate.
    pub value: f64,
    /// 95 % interval; `None` for a single run.
    pub interval: Option<[f64; 2]>,
    /// Number of runs, or of pairs of runs.
    pub runs: usize,
}

/// Returns the mean.
pub fn mean(values: &[f64]) -> Option<Estimate> {
    let (value, margin) = mean_and_margin(values)?;
    Some(Estimate {
        value,
        interval: margin.map(|margin| [value - margin, value + margin]),
        runs: values.len(),
    })
}

/// Returns the geometric mean of the ratios, first over second.
pub fn ratio(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let logarithms: Vec<_> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
    let (value, margin) = mean_and_margin(&logarithms)?;
    Some(Estimate {
        value: value.exp(),
        interval: margin.map(|margin| [(value - margin).exp(), (value + margin).exp()]),
        runs: pairs.len(),
    })
}

/// Returns the ratio of the medians, first over second.
pub fn median_ratio(pairs: &[(f64, f64)]) -> Option<Estimate> {
    if pairs.is_empty() {
        return None;
    }
    let mut state = 1;
    let mut resampled: Vec<_> = (0..RESAMPLINGS)
        .map(|_| {
            let draw = |_| pairs[(split_mix(&mut state) % pairs.len() as u64) as usize];
            ratio_of_medians(&(0..pairs.len()).map(draw).collect::<Vec<_>>())
        })
        .collect();
    resampled.sort_by(f64::total_cmp);
    let quantile = |per_mille: usize| resampled[RESAMPLINGS * per_mille / 1000];
    Some(Estimate {
        value: ratio_of_medians(pairs),
        interval: (pairs.len() > 1).then(|| [quantile(25), quantile(975)]),
        runs: pairs.len(),
    })
}

fn ratio_of_medians(pairs: &[(f64, f64)]) -> f64 {
    let firsts = pairs.iter().map(|pair| pair.0).collect();
    let seconds = pairs.iter().map(|pair| pair.1).collect();
    middle(firsts) / middle(seconds)
}

/// Returns the least and the most; `None` without values.
pub fn extremes(values: &[f64]) -> Option<[f64; 2]> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let most = values.iter().copied().max_by(f64::total_cmp)?;
    Some([least, most])
}

/// Returns the median; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| middle(values.to_vec()))
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

/// Returns the mean, and half the width of its interval.
fn mean_and_margin(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let number = values.len();
    if number == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / number as f64;
    let margin = (number > 1).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let student = STUDENT.get(number - 2).copied().unwrap_or(NORMAL);
        student * (squares / (number - 1) as f64 / number as f64).sqrt()
    });
    Some((mean, margin))
}

/// Sebastiano Vigna's SplitMix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-3, "{a} {b}");
    }

    #[test]
    fn a_mean_has_students_interval() {
        // By hand: deviation 1, t for two degrees of freedom 4.303, root of three 1.732.
        let estimate = mean(&[1.0, 2.0, 3.0]).unwrap();
        assert_near(estimate.value, 2.0);
        let [low, high] = estimate.interval.unwrap();
        assert_near(low, 2.0 - 4.303 / 3f64.sqrt());
        assert_near(high, 2.0 + 4.303 / 3f64.sqrt());
    }

    #[test]
    fn one_run_has_no_interval_and_none_has_no_mean() {
        assert_eq!(mean(&[7.0]).unwrap().interval, None);
        assert_eq!(median_ratio(&[(7.0, 1.0)]).unwrap().interval, None);
        assert_eq!(mean(&[]), None);
        assert_eq!(ratio(&[]), None);
        assert_eq!(median_ratio(&[]), None);
    }

    #[test]
    fn half_and_twice_as_fast_cancel_out() {
        let estimate = ratio(&[(1.0, 2.0), (2.0, 1.0)]).unwrap();
        assert_near(estimate.value, 1.0);
    }

    #[test]
    fn pairs_take_out_what_both_have_in_common() {
        let pairs: Vec<_> = (1..=10)
            .map(|n| (2.0 * f64::from(n), f64::from(n)))
            .collect();
        let [low, high] = ratio(&pairs).unwrap().interval.unwrap();
        assert_near(low, 2.0);
        assert_near(high, 2.0);
    }

    #[test]
    fn a_ratio_of_medians_ignores_one_wild_run_and_is_the_same_each_time() {
        let mut pairs = vec![(3.0, 2.0); 9];
        pairs.push((1000.0, 2.0));
        let estimate = median_ratio(&pairs).unwrap();
        assert_near(estimate.value, 1.5);
        assert_eq!(estimate.interval, Some([1.5, 1.5]));
        assert_eq!(median_ratio(&pairs), Some(estimate));
    }
}
