//! Claims that must hold, and the verdicts on them.

use super::statistics::Estimate;
use serde::{Deserialize, Serialize};

/// Outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The ratio is on the paper's side of one. Its size depends on parameters that the paper
    /// leaves open.
    Consistent,
    /// The claim holds.
    Holds,
    /// The claim fails.
    Fails,
}

/// One claim about a ratio, and its measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The comparison, as a sentence.
    pub what: String,
    /// Numbers behind the ratio, if they are meaningful by themselves.
    pub detail: Option<String>,
    /// Lower bound of the ratio; `None` for a mere comparison with the paper.
    pub at_least: Option<f64>,
    /// Measured ratio.
    pub measured: Option<Estimate>,
    /// Ratio in the paper.
    pub paper: Option<String>,
    /// Ratio in the simulator, judged in the same way.
    pub simulated: Option<f64>,
    /// Verdict on the claim.
    pub verdict: Verdict,
}

impl Finding {
    /// Claims that the ratio is at least `bound`.
    pub fn at_least(what: impl Into<String>, bound: f64, measured: Option<Estimate>) -> Self {
        let holds = measured.is_some_and(|measured| measured.value >= bound);
        Self {
            what: what.into(),
            detail: None,
            at_least: Some(bound),
            measured,
            paper: None,
            simulated: None,
            verdict: if holds {
                Verdict::Holds
            } else {
                Verdict::Fails
            },
        }
    }

    /// Claims that the ratio is on the same side of one as the paper's. Its size depends on
    /// parameters that the paper does not give.
    pub fn compared(what: impl Into<String>, paper: f64, measured: Option<Estimate>) -> Self {
        let agrees = measured.is_some_and(|measured| (measured.value > 1.0) == (paper > 1.0));
        Self {
            what: what.into(),
            detail: None,
            at_least: None,
            measured,
            paper: Some(format!("{paper}")),
            simulated: None,
            verdict: match agrees {
                true => Verdict::Consistent,
                false => Verdict::Fails,
            },
        }
    }

    /// Adds the value of the paper.
    #[must_use]
    pub fn paper(self, paper: impl Into<String>) -> Self {
        Self {
            paper: Some(paper.into()),
            ..self
        }
    }

    /// Adds the numbers behind the ratio.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self {
            detail: Some(detail.into()),
            ..self
        }
    }

    /// Returns the reason of a failure, for readers; `None` if the claim does not fail.
    pub fn reason(&self) -> Option<String> {
        if self.verdict != Verdict::Fails {
            return None;
        }
        Some(match (self.measured, self.at_least) {
            (None, _) => format!("{}: not measured", self.what),
            (Some(measured), Some(bound)) => format!(
                "{}: {:.2} times, not at least {bound}",
                self.what, measured.value
            ),
            (Some(measured), None) => format!(
                "{}: {:.2} times, where the paper has {}",
                self.what,
                measured.value,
                self.paper.as_deref().unwrap_or("nothing")
            ),
        })
    }

    /// Returns true if chance may have decided: the bound is within the interval.
    pub fn is_close(&self) -> bool {
        let (Some(bound), Some(measured)) = (self.at_least, self.measured) else {
            return false;
        };
        measured
            .interval
            .is_some_and(|[low, high]| low < bound && bound <= high)
    }
}

/// Returns the verdict on a figure: the worst of its findings.
pub fn overall(findings: &[Finding]) -> Verdict {
    let verdicts = findings.iter().map(|finding| finding.verdict);
    verdicts.max().unwrap_or(Verdict::Consistent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64) -> Option<Estimate> {
        Some(Estimate {
            value,
            interval: Some([value - 0.1, value + 0.1]),
            runs: 10,
        })
    }

    #[test]
    fn a_bound_is_met_or_the_reason_says_by_how_much_not() {
        let met = Finding::at_least("a over b", 3.5, estimate(3.5));
        assert_eq!((met.verdict, met.reason()), (Verdict::Holds, None));
        let missed = Finding::at_least("a over b", 3.5, estimate(3.49));
        assert_eq!(missed.verdict, Verdict::Fails);
        let reason = missed.reason().unwrap();
        assert_eq!(reason, "a over b: 3.49 times, not at least 3.5");
    }

    #[test]
    fn what_was_not_measured_fails() {
        let missing = Finding::at_least("a over b", 1.0, None);
        assert_eq!(missing.reason().unwrap(), "a over b: not measured");
        let missing = Finding::compared("a over b", 2.0, None);
        assert_eq!(missing.verdict, Verdict::Fails);
    }

    #[test]
    fn a_comparison_asks_for_the_direction_only() {
        let same = Finding::compared("a over b", 5.0, estimate(1.2));
        assert_eq!(same.verdict, Verdict::Consistent);
        let other = Finding::compared("a over b", 5.0, estimate(0.9));
        assert!(other.reason().unwrap().ends_with("where the paper has 5"));
    }

    #[test]
    fn the_worst_finding_decides() {
        let holds = || Finding::at_least("", 1.0, estimate(2.0));
        let consistent = || Finding::compared("", 2.0, estimate(2.0));
        let fails = || Finding::at_least("", 3.0, estimate(2.0));
        assert_eq!(overall(&[consistent()]), Verdict::Consistent);
        assert_eq!(overall(&[holds(), consistent()]), Verdict::Holds);
        assert_eq!(overall(&[holds(), fails(), consistent()]), Verdict::Fails);
    }

    #[test]
    fn an_interval_across_the_bound_is_close() {
        assert!(Finding::at_least("", 2.05, estimate(2.0)).is_close());
        assert!(!Finding::at_least("", 1.0, estimate(2.0)).is_close());
    }
}
