//! Claims that must hold, and the verdicts on them.

use super::statistics::Estimate;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The ratio is on the paper's side of one. Its size depends on parameters that the paper
    /// leaves open.
    Consistent,
    /// The claim holds.
    Holds,
    /// The bound is within the interval of the measurement: chance decides on which side of it the
    /// ratio is. More runs are needed.
    NotDecided,
    /// The claim fails.
    Fails,
}

/// Factor by which a ratio must differ from the paper's to be called a contradiction. Processors
/// and algorithms of today account for less.
pub const CONTRADICTION: f64 = 2.0;

/// How a measurement contradicts the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contradiction {
    /// By more than [`CONTRADICTION`].
    Factor(f64),
    /// It is on the other side of one, or of zero if it is no ratio.
    Opposite,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Factor(factor) => write!(f, "by a factor of {factor:.1}"),
            Self::Opposite => f.write_str("the other way"),
        }
    }
}

/// A measured ratio or quantity, and what must hold for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The comparison, as a sentence.
    pub what: String,
    /// Unit of a quantity; `None` for a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Numbers behind the ratio, if they are meaningful by themselves.
    pub detail: Option<String>,
    /// Lower bound of the ratio; `None` for a mere comparison with the paper.
    pub at_least: Option<f64>,
    /// Measured value.
    pub measured: Option<Estimate>,
    /// Value in the paper: a number, `a to b`, `more than a`, or a quotient and `= ` its value.
    pub paper: Option<String>,
    /// Value in the simulator, judged in the same way.
    pub simulated: Option<f64>,
    /// Verdict on the claim.
    pub verdict: Verdict,
}

impl Finding {
    fn new(what: impl Into<String>, measured: Option<Estimate>, verdict: Verdict) -> Self {
        Self {
            what: what.into(),
            unit: None,
            detail: None,
            at_least: None,
            measured,
            paper: None,
            simulated: None,
            verdict,
        }
    }

    /// Claims that the ratio is at least `bound`.
    pub fn at_least(what: impl Into<String>, bound: f64, measured: Option<Estimate>) -> Self {
        let verdict = match measured {
            Some(measured) if is_across(measured, bound) => Verdict::NotDecided,
            Some(measured) if measured.value >= bound => Verdict::Holds,
            _ => Verdict::Fails,
        };
        Self {
            at_least: Some(bound),
            ..Self::new(what, measured, verdict)
        }
    }

    /// Claims that the ratio is on the same side of one as the paper's. Its size depends on
    /// parameters that the paper does not give.
    pub fn compared(what: impl Into<String>, paper: f64, measured: Option<Estimate>) -> Self {
        let agrees = |measured: Estimate| (measured.value > 1.0) == (paper > 1.0);
        let verdict = match measured {
            Some(measured) if is_across(measured, 1.0) => Verdict::NotDecided,
            Some(measured) if agrees(measured) => Verdict::Consistent,
            _ => Verdict::Fails,
        };
        Self::new(what, measured, verdict).paper(format!("{paper}"))
    }

    /// Shows a ratio beside the paper's, of which nothing is claimed. It may contradict the paper.
    pub fn beside(
        what: impl Into<String>,
        paper: impl ToString,
        measured: Option<Estimate>,
    ) -> Self {
        let verdict = match measured {
            Some(_) => Verdict::Consistent,
            None => Verdict::Fails,
        };
        Self::new(what, measured, verdict).paper(paper.to_string())
    }

    /// Shows a quantity beside the paper's, of which nothing is claimed.
    pub fn quantity(
        what: impl Into<String>,
        unit: &str,
        paper: impl ToString,
        measured: Option<Estimate>,
    ) -> Self {
        Self {
            unit: Some(unit.to_owned()),
            ..Self::beside(what, paper, measured)
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

    /// Returns the reason of a failure, or what is undecided, for readers; `None` otherwise.
    pub fn reason(&self) -> Option<String> {
        match self.verdict {
            Verdict::Consistent | Verdict::Holds => None,
            Verdict::NotDecided => self.undecided(),
            Verdict::Fails => Some(self.failure()),
        }
    }

    fn undecided(&self) -> Option<String> {
        let [low, high] = self.measured?.interval?;
        Some(format!(
            "{}: {low:.2} to {high:.2} times does not decide about {}; more runs would (`--seeds`)",
            self.what,
            self.at_least.unwrap_or(1.0)
        ))
    }

    fn failure(&self) -> String {
        match (self.measured, self.at_least) {
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
        }
    }

    /// Returns how the measurement contradicts the paper, if it does by more than chance.
    pub fn contradiction(&self) -> Option<Contradiction> {
        let [low, high] = said(self.paper.as_ref()?)?;
        let Estimate {
            value, interval, ..
        } = self.measured?;
        let [least, most] = interval.unwrap_or([value; 2]);
        if least <= high && low <= most {
            return None;
        }
        let nearest = if value < low { low } else { high };
        let factor = (value / nearest).max(nearest / value);
        let origin = if self.unit.is_some() { 0.0 } else { 1.0 };
        let is_opposite = (origin <= low && most < origin) || (high <= origin && origin < least);
        if factor > CONTRADICTION && value > 0.0 {
            Some(Contradiction::Factor(factor))
        } else {
            is_opposite.then_some(Contradiction::Opposite)
        }
    }
}

/// Returns the least and the largest value that a paper gives.
fn said(paper: &str) -> Option<[f64; 2]> {
    let value = paper.rsplit("= ").next()?;
    if let Some(least) = value.strip_prefix("more than ") {
        return Some([least.parse().ok()?, f64::INFINITY]);
    }
    let (low, high) = value.split_once(" to ").unwrap_or((value, value));
    Some([low.parse().ok()?, high.parse().ok()?])
}

/// Returns true if a bound is within the interval of a measurement.
fn is_across(measured: Estimate, bound: f64) -> bool {
    let interval = measured.interval;
    interval.is_some_and(|[low, high]| low < bound && bound <= high)
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
        let met = Finding::at_least("a over b", 3.5, estimate(3.6));
        assert_eq!((met.verdict, met.reason()), (Verdict::Holds, None));
        let missed = Finding::at_least("a over b", 3.5, estimate(3.39));
        assert_eq!(missed.verdict, Verdict::Fails);
        let reason = missed.reason().unwrap();
        assert_eq!(reason, "a over b: 3.39 times, not at least 3.5");
    }

    /// The measured value may be on either side of the bound.
    #[test]
    fn a_bound_within_the_interval_is_not_decided() {
        for value in [3.45, 3.5, 3.55] {
            let finding = Finding::at_least("a over b", 3.5, estimate(value));
            assert_eq!(finding.verdict, Verdict::NotDecided, "{value}");
        }
        let reason = Finding::at_least("a over b", 3.5, estimate(3.55)).reason();
        let expected =
            "a over b: 3.45 to 3.65 times does not decide about 3.5; more runs would (`--seeds`)";
        assert_eq!(reason.unwrap(), expected);
        let finding = Finding::compared("a over b", 2.0, estimate(1.05));
        assert_eq!(finding.verdict, Verdict::NotDecided);
    }

    #[test]
    fn one_run_without_an_interval_decides_by_its_value() {
        let one = |value| Estimate {
            value,
            interval: None,
            runs: 1,
        };
        let verdict = |value| Finding::at_least("", 2.0, Some(one(value))).verdict;
        assert_eq!(
            (verdict(2.0), verdict(1.9)),
            (Verdict::Holds, Verdict::Fails)
        );
    }

    #[test]
    fn a_ratio_far_from_the_papers_contradicts_it_unless_chance_may_explain_it() {
        use Contradiction::{Factor, Opposite};
        let how = |paper, value| {
            let finding = Finding::at_least("", 1.0, estimate(value));
            finding.paper(paper).contradiction()
        };
        assert_eq!(how("3", 5.9), None);
        assert_eq!(how("3", 12.0), Some(Factor(4.0)));
        assert_eq!(how("6", 2.0), Some(Factor(3.0)));
        assert_eq!(how("35 / 6 = 6", 24.0), Some(Factor(4.0)));
        assert_eq!(how("1 to 2", 12.0), Some(Factor(6.0)));
        assert_eq!(how("1 to 2", 1.5), None);
        assert_eq!(how("1.2", 0.85), Some(Opposite));
        assert_eq!(how("1.2", 0.95), None, "one is within the interval");
        assert_eq!(how("more than 1", 40.0), None);
        assert_eq!(how("more than 1", 0.6), Some(Opposite));
        assert_eq!(how("nothing that has a number", 12.0), None);
        let wide = Estimate {
            value: 10.4,
            interval: Some([2.6, 41.9]),
            runs: 2,
        };
        let wide = Finding::compared("", 3.0, Some(wide));
        assert_eq!(wide.contradiction(), None);
        let beside = Finding::beside("", 3.0, estimate(0.8));
        assert_eq!(beside.verdict, Verdict::Consistent);
        assert_eq!(beside.contradiction(), Some(Factor(3.0 / 0.8)));
    }

    #[test]
    fn a_quantity_points_the_other_way_if_its_sign_differs() {
        let how = |value| Finding::quantity("", "cycles", 966.6, estimate(value)).contradiction();
        assert_eq!(how(700.0), None);
        assert_eq!(how(0.5), Some(Contradiction::Factor(966.6 / 0.5)));
        assert_eq!(how(-236.0), Some(Contradiction::Opposite));
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
        let other = Finding::compared("a over b", 5.0, estimate(0.8));
        assert!(other.reason().unwrap().ends_with("where the paper has 5"));
    }

    #[test]
    fn the_worst_finding_decides() {
        let holds = || Finding::at_least("", 1.0, estimate(2.0));
        let consistent = || Finding::compared("", 2.0, estimate(2.0));
        let open = || Finding::at_least("", 2.05, estimate(2.0));
        let fails = || Finding::at_least("", 3.0, estimate(2.0));
        assert_eq!(overall(&[consistent()]), Verdict::Consistent);
        assert_eq!(overall(&[holds(), consistent()]), Verdict::Holds);
        assert_eq!(overall(&[holds(), open()]), Verdict::NotDecided);
        assert_eq!(overall(&[open(), fails(), consistent()]), Verdict::Fails);
    }
}
