//! What a figure's run found: for programs, and as files.

use super::Exhibit;
use super::cell::Condition;
use super::environment::Environment;
use super::finding::{Finding, Verdict, overall};
use super::results::Results;
use super::simulation::Agreement;
use super::statistics::Estimate;
use super::table::Grid;
use crate::plot::Plot;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The file that holds a report, in the folder of its figure.
pub const FILE: &str = "result.json";

/// The result of a figure or a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The figure's name, or the table's.
    pub figure: String,
    /// What it shows.
    pub title: String,
    /// What the paper says.
    pub claim: String,
    /// How it was rebuilt.
    pub setting: String,
    /// What follows.
    pub verdict: Verdict,
    /// Why it fails.
    pub reasons: Vec<String>,
    /// What must hold, and what was measured.
    pub findings: Vec<Finding>,
    /// All that was measured.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// The plots' files.
    pub plots: Vec<String>,
    /// What it was measured on.
    pub environment: Environment,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Evidence {
    /// Downloads.
    Downloads {
        /// All conditions.
        points: Vec<Point>,
        /// How well the simulator agrees.
        agreement: Agreement,
    },
    /// A table.
    Table(Grid),
}

/// What was measured under one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The condition.
    #[serde(flatten)]
    pub condition: Condition,
    /// Bits per second.
    pub goodput: Estimate,
    /// What the simulator gives.
    pub simulated: Option<f64>,
    /// Segments the server sent again, on average.
    pub resent: f64,
    /// Packets SNOOP sent again, on average.
    pub repaired: f64,
}

impl Report {
    /// Judges what was measured. `faults` fail it whatever the findings are.
    pub(super) fn new(
        exhibit: Exhibit,
        findings: Vec<Finding>,
        faults: impl IntoIterator<Item = String>,
        evidence: Evidence,
        environment: Environment,
    ) -> Self {
        let mut reasons: Vec<_> = findings.iter().filter_map(Finding::reason).collect();
        reasons.extend(faults);
        let verdict = match reasons.is_empty() {
            true => overall(&findings),
            false => Verdict::Fails,
        };
        Self {
            figure: exhibit.name().to_owned(),
            title: exhibit.title().to_owned(),
            claim: exhibit.claim().to_owned(),
            setting: exhibit.setting().to_owned(),
            verdict,
            reasons,
            findings,
            evidence,
            plots: Vec::new(),
            environment,
        }
    }

    /// Writes everything into a folder of its own. Plots are named in the report.
    pub(super) fn write(
        &mut self,
        tables: &[(&str, String)],
        plots: &[Plot],
        out: &Path,
    ) -> Result<()> {
        let folder = out.join(&self.figure);
        let write = |name: &str, content: &str| {
            let path = folder.join(name);
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
        };
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        for (name, content) in tables {
            write(name, content)?;
        }
        for plot in plots {
            let name = format!("{}.svg", plot.name);
            write(&name, &plot.svg()?)?;
            self.plots.push(name);
        }
        write(FILE, &serde_json::to_string_pretty(self)?)
    }

    /// All reports in an output folder, by the figures' names.
    ///
    /// # Errors
    /// The folder cannot be read, or a report in it not understood.
    pub fn read_all(out: &Path) -> Result<Vec<Self>> {
        let entries = fs::read_dir(out)
            .with_context(|| format!("cannot read the folder {}", out.display()))?;
        let mut reports = Vec::new();
        for entry in entries {
            let path = entry?.path().join(FILE);
            if path.is_file() {
                let text = fs::read_to_string(&path)?;
                let report: Self = serde_json::from_str(&text)
                    .with_context(|| format!("{} is no result of the lab", path.display()))?;
                reports.push(report);
            }
        }
        reports.sort_by(|a, b| a.figure.cmp(&b.figure));
        Ok(reports)
    }
}

impl Evidence {
    /// What downloads and their simulations gave.
    pub(super) fn of_downloads(results: &Results, simulated: &Results) -> Self {
        Self::Downloads {
            points: points(results, simulated),
            agreement: Agreement::new(results, simulated),
        }
    }
}

fn points(results: &Results, simulated: &Results) -> Vec<Point> {
    results
        .conditions()
        .filter_map(|condition| {
            let mean = |quantity: fn(&super::Measured) -> f64| results.mean(condition, quantity);
            Some(Point {
                condition: *condition,
                goodput: results.goodput(condition)?,
                simulated: simulated.goodput(condition).map(|mean| mean.value),
                resent: mean(|cell| cell.resent as f64)?.value,
                repaired: mean(|cell| cell.repaired as f64)?.value,
            })
        })
        .collect()
}
