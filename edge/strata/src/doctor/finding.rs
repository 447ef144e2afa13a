//! What was looked at, what was seen, and what to do about it.

use crate::text::{Paint, clean};
use serde_json::{Value, json};
use std::fmt::Write;

/// What a look told. `Doubt` is also said where we may not look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Something will not work.
    Fail,
    /// It may not be meant, or cannot be told.
    Doubt,
    /// Nothing to do.
    Good,
}

/// One look at one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: one word or two, the same in every version.
    pub check: &'static str,
    /// What it told.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// Why it matters; empty if there is nothing to do.
    pub why: &'static str,
    /// The command or the line that changes it; empty if there is nothing to do.
    pub fix: String,
}

impl Finding {
    /// Nothing to do.
    pub fn good(check: &'static str, seen: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Good,
            seen: seen.into(),
            why: "",
            fix: String::new(),
        }
    }

    /// Something will not work.
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

    /// It may not be meant, or cannot be told.
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

    /// For programs.
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

    /// For people.
    pub fn show(&self, paint: Paint) -> String {
        let verdict = match self.verdict {
            Verdict::Fail => paint.bad("fail"),
            Verdict::Doubt => paint.doubtful("warn"),
            Verdict::Good => paint.good("ok  "),
        };
        let mut text = format!("{verdict}  {}: {}\n", self.check, clean(&self.seen));
        // Writing to a String cannot fail.
        if !self.why.is_empty() {
            let _ = writeln!(text, "      why: {}", self.why);
        }
        if !self.fix.is_empty() {
            let _ = writeln!(text, "      fix: {}", clean(&self.fix));
        }
        text
    }
}
