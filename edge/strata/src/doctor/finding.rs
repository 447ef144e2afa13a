//! A finding of `strata doctor`: the item checked, the observation, and the remedy.

use crate::text::{Paint, clean};
use serde_json::{Value, json};
use std::fmt::Write;

/// Result of a check. `Doubt` also stands for a check without permission to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Something will not work.
    Fail,
    /// The state may be unintended, or it is unknown.
    Doubt,
    /// The check passed.
    Good,
}

/// Result of one check on one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the check: one or two words, stable across versions.
    pub check: &'static str,
    /// Result of the check.
    pub verdict: Verdict,
    /// The observation.
    pub seen: String,
    /// Consequence of the problem; empty if there is none.
    pub why: &'static str,
    /// Command or configuration line that fixes the problem; empty if there is none.
    pub fix: String,
}

impl Finding {
    /// Creates a finding without a problem.
    pub fn good(check: &'static str, seen: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Good,
            seen: seen.into(),
            why: "",
            fix: String::new(),
        }
    }

    /// Creates a finding of a definite problem.
    pub fn fail(
        check: &'static str,
        seen: impl Into<String>,
        why: &'static str,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Fail,
            why,
            fix: fix.into(),
            ..Self::good(check, seen)
        }
    }

    /// Creates a finding of a possible problem.
    pub fn doubt(
        check: &'static str,
        seen: impl Into<String>,
        why: &'static str,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Doubt,
            ..Self::fail(check, seen, why, fix)
        }
    }

    /// Returns the finding as JSON.
    pub fn json(&self) -> Value {
        let verdict = match self.verdict {
            Verdict::Fail => "fail",
            Verdict::Doubt => "warn",
            Verdict::Good => "ok",
        };
        json!({
            "check": self.check,
            "verdict": verdict,
            "seen": self.seen,
            "why": self.why,
            "fix": self.fix,
        })
    }

    /// Returns the finding as text.
    pub fn show(&self, paint: Paint) -> String {
        let verdict = match self.verdict {
            Verdict::Fail => paint.bad("fail"),
            Verdict::Doubt => paint.doubtful("warn"),
            Verdict::Good => paint.good("ok  "),
        };
        let mut text = format!("{verdict}  {}: {}\n", self.check, clean(&self.seen));
        // Writing to a `String` cannot fail.
        if !self.why.is_empty() {
            let _ = writeln!(text, "      why: {}", self.why);
        }
        if !self.fix.is_empty() {
            let _ = writeln!(text, "      fix: {}", clean(&self.fix));
        }
        text
    }
}
