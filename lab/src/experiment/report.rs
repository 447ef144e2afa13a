//! The result of a figure or table: for programs, and as files.

use super::Exhibit;
use super::cell::Condition;
use super::claim::Statement;
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

/// File of a report, in the folder of its figure.
pub const FILE: &str = "result.json";

/// The result of a figure or a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the figure or table.
    pub figure: String,
    /// Title of the figure.
    pub title: String,
    /// Claims of the paper, with what the measurements say of them.
    pub claims: Vec<Statement>,
    /// Reproduction of the figure.
    pub setting: String,
    /// Verdict on the figure.
    pub verdict: Verdict,
    /// Reasons of a failure.
    pub reasons: Vec<String>,
    /// Claims that must hold, and their measurements.
    pub findings: Vec<Finding>,
    /// All measurements.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// File names of the plots.
    pub plots: Vec<String>,
    /// Environment of the measurement.
    pub environment: Environment,
}

/// Measurements of an exhibit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Evidence {
    /// Downloads.
    Downloads {
        /// All conditions.
        points: Vec<Point>,
        /// Agreement of the simulator.
        agreement: Agreement,
    },
    /// A table.
    Table(Grid),
}

/// Measurements under one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The condition.
    #[serde(flatten)]
    pub condition: Condition,
    /// Goodput, in bits per second.
    pub goodput: Estimate,
    /// Goodput in the simulator, in bits per second.
    pub simulated: Option<f64>,
    /// Mean number of segments that the server retransmitted.
    pub resent: f64,
    /// Mean number of packets that SNOOP retransmitted.
    pub repaired: f64,
}

impl Report {
    /// Judges the measurements. Any `faults` fail the exhibit, independently of the findings.
    pub(super) fn new(
        exhibit: Exhibit,
        findings: Vec<Finding>,
        faults: impl IntoIterator<Item = String>,
        evidence: Evidence,
        environment: Environment,
    ) -> Self {
        let mut reasons: Vec<_> = findings.iter().filter_map(Finding::reason).collect();
        let open = reasons.len();
        reasons.extend(faults);
        let verdict = match reasons.len() == open {
            true => overall(&findings),
            false => Verdict::Fails,
        };
        Self {
            figure: exhibit.name().to_owned(),
            title: exhibit.title().to_owned(),
            claims: exhibit
                .claims()
                .iter()
                .map(|claim| claim.judge(&findings))
                .collect(),
            setting: exhibit.setting().to_owned(),
            verdict,
            reasons,
            findings,
            evidence,
            plots: Vec::new(),
            environment,
        }
    }

    /// Reads all reports in an output folder, sorted by the figures' names.
    ///
    /// # Errors
    /// The folder cannot be read, or a report in it cannot be parsed.
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

/// Everything that follows from the raw data of an exhibit.
pub(super) struct Outcome {
    pub report: Report,
    /// Tables for other programs, by the names of their files.
    pub files: Vec<(&'static str, String)>,
    pub plots: Vec<Plot>,
}

impl Outcome {
    /// Writes everything into the folder of the exhibit, and returns the report with the names of
    /// its plots.
    pub fn write(self, out: &Path) -> Result<Report> {
        let report = self.report_with_plots();
        let folder = out.join(&report.figure);
        let write = |name: &str, content: &str| {
            let path = folder.join(name);
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
        };
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        for (name, content) in &self.files {
            write(name, content)?;
        }
        for (name, plot) in report.plots.iter().zip(&self.plots) {
            write(name, &plot.svg()?)?;
        }
        write(FILE, &serde_json::to_string_pretty(&report)?)?;
        Ok(report)
    }

    /// Returns the report as it is written.
    pub fn report_with_plots(&self) -> Report {
        let plots = self.plots.iter();
        Report {
            plots: plots.map(|plot| format!("{}.svg", plot.name)).collect(),
            ..self.report.clone()
        }
    }
}

impl Evidence {
    /// Collects the results of downloads and of their simulations.
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
