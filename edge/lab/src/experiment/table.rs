//! Tables: their numbers are the same each time, so each is measured once and none is stored.

use super::environment::Environment;
use super::finding::Finding;
use super::report::{Evidence, Report};
use super::{Exhibit, Options, Plan, csv, store};
use crate::obstacle::Obstacle;
use crate::plot::Plot;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A table: a claim of a paper, and its reproduction here.
pub struct Table {
    /// Its name on the command line.
    pub name: &'static str,
    /// Title of the table.
    pub title: &'static str,
    /// Claim of the paper, with its numbers.
    pub claim: &'static str,
    /// Reproduction of the table here, with the differences.
    pub setting: &'static str,
    /// Estimated duration; shorter for a quick run.
    pub duration: fn(quick: bool) -> Duration,
    /// Feature that the table depends on, so that it must fail without it.
    pub rests_on: Basis,
    /// Checks for the programs that the table needs.
    pub check: fn() -> Result<(), Obstacle>,
    /// Measures and judges.
    pub fill: fn(&Plan) -> Filled,
}

/// Features that can be disabled to make a table fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Zones.
    Zones,
    /// Simultaneous bindings.
    Bindings,
    /// None of these.
    Nothing,
}

/// Result of filling a table.
pub struct Filled {
    /// The numbers.
    pub grid: Grid,
    /// Claims that must hold.
    pub findings: Vec<Finding>,
    /// Wrong or missing numbers, with the reasons.
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
        let filled = (self.fill)(&options.plan);
        let environment = Environment::new(&options.plan, store::build()?, start.elapsed());
        let rows = csv::grid(&filled.grid);
        let mut report = Report::new(
            Exhibit::Table(self),
            filled.findings,
            filled.faults,
            Evidence::Table(filled.grid),
            environment,
        );
        report.write(&[("rows.csv", rows)], &filled.plots, &options.out)?;
        Ok(report)
    }
}
