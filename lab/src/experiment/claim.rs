//! Statements of a paper, each with the findings that judge it.

use super::finding::{Finding, Verdict};
use serde::{Deserialize, Serialize};

/// A statement of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The statement, with its numbers.
    pub says: &'static str,
    /// Names of the findings that judge it. A `*` stands for any text.
    pub judged_by: &'static [&'static str],
}

/// A statement that was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The statement.
    pub says: String,
    /// Comparison with the measurements.
    pub standing: Standing,
}

/// How a statement compares with the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// This run has no measurement of it.
    NotMeasured,
    /// The measurements agree within the factor that makes a contradiction.
    Consistent,
    /// What must hold for it holds.
    Holds,
    /// Chance decides.
    NotDecided,
    /// A measurement contradicts it.
    Contradicts,
    /// What must hold for it does not.
    Fails,
}

impl Claim {
    /// Judges the statement by the worst of its findings.
    pub(super) fn judge(&self, findings: &[Finding]) -> Statement {
        let its = findings.iter().filter(|finding| self.covers(finding));
        Statement {
            says: self.says.to_owned(),
            standing: its
                .map(Standing::from)
                .max()
                .unwrap_or(Standing::NotMeasured),
        }
    }

    fn covers(&self, finding: &Finding) -> bool {
        let mut names = self.judged_by.iter();
        names.any(|name| is_named(&finding.what, name))
    }
}

/// Returns true if a finding has this name.
fn is_named(what: &str, name: &str) -> bool {
    match name.split_once('*') {
        None => what == name,
        Some((begin, end)) => what
            .strip_prefix(begin)
            .is_some_and(|rest| rest.ends_with(end)),
    }
}

impl From<&Finding> for Standing {
    fn from(finding: &Finding) -> Self {
        match (finding.verdict, finding.contradiction()) {
            (Verdict::Fails, _) => Self::Fails,
            (_, Some(_)) => Self::Contradicts,
            (Verdict::NotDecided, None) => Self::NotDecided,
            (Verdict::Holds, None) => Self::Holds,
            (Verdict::Consistent, None) => Self::Consistent,
        }
    }
}

impl Standing {
    /// Returns the word for readers.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotMeasured => "not measured",
            Self::Consistent => "consistent",
            Self::Holds => "holds",
            Self::NotDecided => "not decided",
            Self::Contradicts => "contradicts",
            Self::Fails => "FAILS",
        }
    }
}

/// Units of results. Other numbers of a statement are the conditions under which it holds.
#[cfg(test)]
const UNITS: [&str; 11] = [
    "%", "times", "ms", "s", "µs", "octets", "segments", "cycles", "Mb/s", "MHz", "packets",
];

/// Words before a number that make it a condition.
#[cfg(test)]
const CONDITIONS: [&str; 3] = ["at", "of", "with"];

/// Returns the results that a statement prints: numbers with a unit of [`UNITS`].
#[cfg(test)]
fn results(says: &str) -> usize {
    let words: Vec<_> = says
        .split([' ', ',', ';', ':', '(', ')'])
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty())
        .collect();
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let is_result = |place: &usize| {
        let before = place.checked_sub(1).map_or("", |before| words[before]);
        let unit = words.get(place + 1).copied().unwrap_or_default();
        is_number(words[*place])
            && UNITS.contains(&unit)
            && !CONDITIONS.contains(&&*before.to_lowercase())
    };
    (0..words.len()).filter(is_result).count()
}

/// Returns the faults of claims, given all findings of a full run: a claim without a finding, a
/// name without one, or more results than names.
#[cfg(test)]
pub(crate) fn unjudged(claims: &[Claim], findings: &[Finding]) -> Vec<String> {
    let mut faults = Vec::new();
    for claim in claims {
        let says = claim.says;
        if claim.judged_by.is_empty() {
            faults.push(format!("no finding judges: {says}"));
        }
        if results(says) > claim.judged_by.len() {
            faults.push(format!("more results than findings: {says}"));
        }
        let is_missing =
            |name: &&&str| !findings.iter().any(|finding| is_named(&finding.what, name));
        let missing = claim.judged_by.iter().filter(is_missing);
        faults.extend(missing.map(|name| format!("no finding is called {name}: {says}")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Estimate;

    fn finding(what: &str, bound: f64, value: f64) -> Finding {
        let measured = Estimate {
            value,
            interval: None,
            runs: 1,
        };
        Finding::at_least(what, bound, Some(measured))
    }

    const CLAIM: Claim = Claim {
        says: "SNOOP is faster at every error rate: by 10 % at one error in 8 Mbit.",
        judged_by: &["Reno, *: SNOOP over none", "8 Mbit"],
    };

    #[test]
    fn the_worst_finding_of_a_claim_is_its_standing() {
        let named = |one: f64, other: f64| {
            let findings = [
                finding("Reno, 8M: SNOOP over none", 1.0, one),
                finding("Reno, 64k: SNOOP over none", 1.0, other).paper("3"),
                finding("CUBIC, 64k: SNOOP over none", 1.0, 0.1),
            ];
            CLAIM.judge(&findings).standing
        };
        assert_eq!(named(1.1, 3.0), Standing::Holds);
        assert_eq!(named(1.1, 10.0), Standing::Contradicts);
        assert_eq!(named(0.9, 10.0), Standing::Fails);
        assert_eq!(CLAIM.judge(&[]).standing, Standing::NotMeasured);
    }

    #[test]
    fn a_claim_that_no_finding_judges_is_a_fault() {
        let judged = [
            finding("Reno, 8M: SNOOP over none", 1.0, 1.1),
            finding("8 Mbit", 1.0, 1.1),
        ];
        assert_eq!(unjudged(&[CLAIM], &judged), [""; 0]);
        let faults = unjudged(&[CLAIM], &judged[..1]);
        assert!(
            matches!(&faults[..], [one] if one.starts_with("no finding is called 8 Mbit")),
            "{faults:?}"
        );
        let none = Claim {
            judged_by: &[],
            ..CLAIM
        };
        assert_eq!(unjudged(&[none], &judged).len(), 2);
        let more = Claim {
            says: "It costs 5 %, or 9 % with zones, and takes 3 times as long.",
            judged_by: &["8 Mbit"],
        };
        let faults = unjudged(&[more], &judged);
        assert!(faults[0].starts_with("more results"), "{faults:?}");
    }

    #[test]
    fn numbers_of_conditions_are_no_results() {
        assert_eq!(
            results("at 64 octets, with one error in 512 kbit, of 20 octets"),
            0
        );
        assert_eq!(results("a hand-over takes 52.7 ms (2.1 times)."), 2);
        assert_eq!(results("figure 14 has 5 configurations"), 0);
    }
}
