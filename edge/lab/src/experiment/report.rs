//! What a figure's run found: for programs, and as files.

use super::cell::{Cell, Condition};
use super::environment::Environment;
use super::finding::{Finding, Verdict, overall};
use super::results::Results;
use super::simulation::Agreement;
use super::statistics::Estimate;
use super::{Figure, csv};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The file that holds a report, in the folder of its figure.
pub const FILE: &str = "result.json";

/// A figure's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The figure.
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
    /// All conditions.
    pub points: Vec<Point>,
    /// How well the simulator agrees.
    pub agreement: Agreement,
    /// The plots' files.
    pub plots: Vec<String>,
    /// What it was measured on.
    pub environment: Environment,
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
    /// Judges what was measured. What could not be measured fails the figure that needs it.
    pub(super) fn new(
        figure: &Figure,
        cells: &[Cell],
        results: &Results,
        simulated: &Results,
        failures: &[(Cell, String)],
        environment: Environment,
    ) -> Self {
        let findings = findings(figure, results, simulated);
        let mut reasons: Vec<_> = findings.iter().filter_map(Finding::reason).collect();
        let unmeasured = failures.iter().filter(|(cell, _)| cells.contains(cell));
        reasons.extend(unmeasured.map(|(cell, why)| format!("{}: {why}", cell.key())));
        let verdict = match reasons.is_empty() {
            true => overall(&findings),
            false => Verdict::Fails,
        };
        Self {
            figure: figure.name.to_owned(),
            title: figure.title.to_owned(),
            claim: figure.claim.to_owned(),
            setting: figure.setting.to_owned(),
            verdict,
            reasons,
            findings,
            points: points(results, simulated),
            agreement: Agreement::new(results, simulated),
            plots: Vec::new(),
            environment,
        }
    }

    /// Writes everything into the figure's folder. Plots are named in the report.
    pub(super) fn write(&mut self, figure: &Figure, results: &Results, out: &Path) -> Result<()> {
        let folder = out.join(figure.name);
        let write = |name: &str, content: &str| {
            let path = folder.join(name);
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
        };
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        write("cells.csv", &csv::cells(results))?;
        if figure.traces {
            write("traces.csv", &csv::traces(results))?;
        }
        for plot in (figure.plots)(results) {
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

/// What must hold; the simulator's results are judged by the same rules and put beside.
fn findings(figure: &Figure, results: &Results, simulated: &Results) -> Vec<Finding> {
    let others = (figure.findings)(simulated);
    let mut findings = (figure.findings)(results);
    for finding in &mut findings {
        let other = others.iter().find(|other| other.what == finding.what);
        finding.simulated = other.and_then(|other| Some(other.measured?.value));
    }
    findings
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
