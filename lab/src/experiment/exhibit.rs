//! A named unit of the lab: a figure, whose downloads take an hour, or a table.

use super::{Basis, Claim, Figure, Parameter, Plan, Table};
use crate::obstacle::Obstacle;
use std::time::Duration;

/// A figure or a table.
#[derive(Clone, Copy)]
pub enum Exhibit {
    /// Downloads under conditions.
    Figure(&'static Figure),
    /// Rows of numbers.
    Table(&'static Table),
}

impl Exhibit {
    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Figure(figure) => figure.name,
            Self::Table(table) => table.name,
        }
    }

    /// Returns the title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Figure(figure) => figure.title,
            Self::Table(table) => table.title,
        }
    }

    /// Returns the claims of the paper, with their numbers.
    pub(crate) const fn claims(self) -> &'static [Claim] {
        match self {
            Self::Figure(figure) => figure.claims,
            Self::Table(table) => table.claims,
        }
    }

    /// Returns the parameters of the paper, beside those that run.
    pub(crate) const fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::Figure(figure) => figure.parameters,
            Self::Table(_) => &[],
        }
    }

    /// Returns the reproduction here, with the differences.
    pub(super) const fn setting(self) -> &'static str {
        match self {
            Self::Figure(figure) => figure.setting,
            Self::Table(table) => table.setting,
        }
    }

    /// Estimates the duration of a plan with this many networks at once if nothing was measured
    /// before.
    pub fn estimate(self, plan: &Plan, at_once: usize) -> Duration {
        match self {
            Self::Figure(figure) => figure.estimate(plan, at_once),
            Self::Table(table) => (table.duration)(plan.quick),
        }
    }

    /// Returns the figure, if it is one.
    pub const fn figure(self) -> Option<&'static Figure> {
        match self {
            Self::Figure(figure) => Some(figure),
            Self::Table(_) => None,
        }
    }

    /// Returns the table, if it is one.
    pub const fn table(self) -> Option<&'static Table> {
        match self {
            Self::Figure(_) => None,
            Self::Table(table) => Some(table),
        }
    }

    /// Returns the reason why this build or machine cannot measure it, as far as that is known
    /// before anything runs.
    pub fn obstacle(self) -> Option<Obstacle> {
        self.table().and_then(|table| (table.check)().err())
    }

    /// Checks that a plan is meaningful for this exhibit, and that the programs of a table are
    /// installed. The requirements of figures are checked once their missing cells are known.
    ///
    /// # Errors
    /// The plan disables a feature that the exhibit does not depend on, or a program is missing.
    pub(super) fn check(self, plan: &Plan) -> Result<(), Obstacle> {
        let rests_on = |basis| {
            self.table()
                .is_some_and(|table| table.rests_on.contains(&basis))
        };
        let [snoop, zones] = match self {
            Self::Figure(figure) => [!figure.zones, figure.zones],
            Self::Table(_) => [false, rests_on(Basis::Zones)],
        };
        let left_off = [
            (plan.snoop || snoop, "--no-snoop"),
            (plan.zones || zones, "--no-zones"),
            (
                plan.simultaneous || rests_on(Basis::Bindings),
                "--no-simultaneous",
            ),
            (
                plan.resumption || rests_on(Basis::Resumption),
                "--no-resumption",
            ),
            (plan.mobike || rests_on(Basis::Mobike), "--no-mobike"),
            (
                plan.transport || rests_on(Basis::Transport),
                "--no-transport",
            ),
            (plan.clones || rests_on(Basis::Clones), "--no-clones"),
            (plan.paths || rests_on(Basis::Paths), "--no-paths"),
            (plan.tunnels || rests_on(Basis::Tunnels), "--no-tunnels"),
        ];
        if let Some((_, option)) = left_off.iter().find(|(rests_on_it, _)| !rests_on_it) {
            let message = format!("{} does not rest on what {option} leaves off", self.name());
            let fix = format!("run it without {option}");
            return Err(Obstacle::new(message, fix));
        }
        self.table().map_or(Ok(()), |table| (table.check)())
    }
}
