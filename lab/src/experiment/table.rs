//! Tables: their numbers are the same each time, so each is measured once and none is stored.

use super::claim::Claim;
use super::environment::Environment;
use super::finding::Finding;
use super::record::Record;
use super::report::{Evidence, Outcome, Report};
use super::{Exhibit, Options, Plan, csv, store};
use crate::obstacle::Obstacle;
use crate::plot::Plot;
use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A table: a claim of a paper, and its reproduction here.
pub struct Table {
    /// Its name on the command line.
    pub name: &'static str,
    /// Title of the table.
    pub title: &'static str,
    /// Claims of the paper, with their numbers.
    pub claims: &'static [Claim],
    /// Reproduction of the table here, with the differences.
    pub setting: &'static str,
    /// Estimated duration; shorter for a quick run.
    pub duration: fn(quick: bool) -> Duration,
    /// Features that the table depends on, so that it must fail without one of them.
    pub rests_on: &'static [Basis],
    /// Checks for the programs that the table needs.
    pub check: fn() -> Result<(), Obstacle>,
    /// Measures.
    pub measure: fn(&Plan) -> Raw,
    /// Judges what was measured. Raw data without any measurement have all findings.
    pub judge: fn(&Raw) -> Result<Filled>,
}

/// Raw data of a table, from which everything else follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Raw {
    /// Reasons for missing measurements.
    pub faults: Vec<String>,
    /// The measurements, in the table's own form.
    pub data: Value,
}

impl Raw {
    /// Creates raw data from measurements of numbers and names.
    pub fn new<T: Serialize>(data: &T, faults: Vec<String>) -> Self {
        let data = serde_json::to_value(data).expect("measurements are numbers and names");
        Self { faults, data }
    }

    /// Creates raw data from measurements, or from the reason why there are none.
    pub fn from_result<T: Serialize>(measured: Result<T>) -> Self {
        match measured {
            Ok(data) => Self::new(&data, Vec::new()),
            Err(error) => Self {
                faults: vec![format!("{error:#}")],
                data: Value::Null,
            },
        }
    }

    /// Returns the measurements; the default if there are none.
    ///
    /// # Errors
    /// They are those of another table, or damaged.
    pub fn data<T: DeserializeOwned + Default>(&self) -> Result<T> {
        if self.data.is_null() {
            return Ok(T::default());
        }
        T::deserialize(&self.data).context("the raw data are none of this table")
    }
}

/// Features that can be disabled to make a table fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Zones.
    Zones,
    /// Simultaneous bindings.
    Bindings,
    /// Resumption of sessions.
    Resumption,
    /// Tunnels that move.
    Mobike,
    /// Transport mode.
    Transport,
    /// Clones of IKE SAs.
    Clones,
    /// Several live paths.
    Paths,
    /// Tunnels at all.
    Tunnels,
}

/// Result of filling a table.
pub struct Filled {
    /// The numbers.
    pub grid: Grid,
    /// Claims that must hold.
    pub findings: Vec<Finding>,
    /// Wrong numbers, with the reasons.
    pub faults: Vec<String>,
    /// Plots of the numbers.
    pub plots: Vec<Plot>,
}

/// The numbers of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// Meanings of the numbers in a row.
    pub columns: Vec<Column>,
    /// Rows from top to bottom; rows of one subject are adjacent.
    pub rows: Vec<Row>,
}

/// Meaning of the numbers in a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Common name of the column and its neighbours; empty for a single column.
    pub group: String,
    /// Its own name.
    pub name: String,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Subject of the row and of its neighbours.
    pub subject: String,
    /// Its own name.
    pub name: String,
    /// Numbers by column; `None` if one is missing.
    pub numbers: Vec<Option<i64>>,
}

impl Column {
    /// A column of a group.
    pub fn new(group: &str, name: &str) -> Self {
        Self {
            group: group.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns the full name.
    pub fn key(&self) -> String {
        match self.group.as_str() {
            "" => self.name.clone(),
            group => format!("{group}_{}", self.name),
        }
    }
}

impl Grid {
    /// Returns the column groups from left to right, with the number of columns of each.
    pub fn groups(&self) -> Vec<(&str, usize)> {
        let groups = self.columns.chunk_by(|a, b| a.group == b.group);
        groups
            .map(|columns| (columns[0].group.as_str(), columns.len()))
            .collect()
    }

    /// Iterates over the rows, subject by subject.
    pub fn subjects(&self) -> impl Iterator<Item = &[Row]> {
        self.rows.chunk_by(|a, b| a.subject == b.subject)
    }
}

impl Table {
    /// Measures, judges and writes the table.
    ///
    /// # Errors
    /// The output folder cannot be written.
    pub(super) fn report(&'static self, options: &Options) -> Result<Report> {
        let start = Instant::now();
        let raw = (self.measure)(&options.plan);
        let environment = Environment::new(&options.plan, store::build()?, start.elapsed());
        let record = Record::of_table(options, raw).kept(&options.out, self.name)?;
        let outcome = self.outcome(record.raw()?, environment)?;
        outcome.write(&options.out)
    }

    /// Returns everything that follows from raw data.
    ///
    /// # Errors
    /// They are those of another table, or damaged.
    pub(super) fn outcome(&'static self, raw: &Raw, environment: Environment) -> Result<Outcome> {
        let filled = (self.judge)(raw)?;
        let rows = csv::grid(&filled.grid);
        let faults = raw.faults.iter().cloned().chain(filled.faults);
        let report = Report::new(
            Exhibit::Table(self),
            filled.findings,
            faults,
            Evidence::Table(filled.grid),
            environment,
        );
        Ok(Outcome {
            report,
            files: vec![("rows.csv", rows)],
            plots: filled.plots,
        })
    }
}
