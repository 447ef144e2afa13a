//! Goals of a benchmark, and the distance to them.

use crate::text::paragraph;
use serde::Serialize;

/// Width of the column of names.
pub(super) const LABEL: usize = 40;

/// A goal of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Name of the goal.
    pub goal: &'static str,
    /// Limit that the measured value is compared with.
    pub limit: f64,
    /// Side of the limit that the value must be on.
    pub bound: Bound,
    /// Measured value.
    pub measured: Option<f64>,
    /// True if the goal is reached.
    pub reached: bool,
}

/// Side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The value must not be above the limit.
    AtMost,
    /// The value must not be below the limit.
    AtLeast,
}

impl Goal {
    pub(super) fn new(goal: &'static str, bound: Bound, limit: f64, measured: Option<f64>) -> Self {
        let reached = measured.is_some_and(|measured| match bound {
            Bound::AtMost => measured <= limit,
            Bound::AtLeast => measured >= limit,
        });
        Self {
            goal,
            limit,
            bound,
            measured,
            reached,
        }
    }

    /// Returns the goal as a line of text.
    pub(super) fn line(&self) -> String {
        let bound = match self.bound {
            Bound::AtMost => "at most",
            Bound::AtLeast => "at least",
        };
        let reached = if self.reached { "reached" } else { "missed" };
        let measured = unit(self.measured, "", 2);
        let aim = format!("{bound} {}", self.limit);
        format!("{:LABEL$}{measured:>14}   {aim:<16}{reached}\n", self.goal)
    }
}

/// Returns the goals with their results, one line each. If the run failed, returns only the
/// measured goals and the reason.
pub(super) fn verdict(goals: &[Goal], failed: Option<String>, optimised: bool) -> String {
    let shown = |goal: &&Goal| failed.is_none() || goal.measured.is_some();
    let mut text: String = goals.iter().filter(shown).map(Goal::line).collect();
    if let Some(why) = &failed {
        text += &paragraph("", 0, &format!("FAILED: {why}"));
    }
    if !optimised {
        let warning = "This is a build without optimisation: its figures say nothing. `./x build` makes \
                       one with.";
        text += &paragraph("", 0, warning);
    }
    text
}

/// Formats a value with its unit, or a dash.
pub(super) fn unit(value: Option<f64>, unit: &str, digits: usize) -> String {
    match value {
        Some(value) => format!("{value:.digits$} {unit}").trim_end().to_owned(),
        None => "-".to_owned(),
    }
}
