//! What is aimed at, and how far that is.

use crate::text::paragraph;
use serde::Serialize;

/// The column of names.
pub(super) const LABEL: usize = 40;

/// Something that is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// What.
    pub goal: &'static str,
    /// What it is held against.
    pub limit: f64,
    /// On which side of it it has to be.
    pub bound: Bound,
    /// What was measured.
    pub measured: Option<f64>,
    /// Whether it is reached.
    pub reached: bool,
}

/// On which side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Not above.
    AtMost,
    /// Not below.
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

    /// For people.
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

/// What is aimed at and how far that is, a line each; if it failed, what was measured nevertheless, and why.
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

/// A value with what it is counted in, or a dash.
pub(super) fn unit(value: Option<f64>, unit: &str, digits: usize) -> String {
    match value {
        Some(value) => format!("{value:.digits$} {unit}").trim_end().to_owned(),
        None => "-".to_owned(),
    }
}
