//! Tables: numbers that are the same each time, so that each is measured once and none is kept.

use super::environment::Environment;
use super::finding::Finding;
use super::report::{Evidence, Report};
use super::{Exhibit, Options, Plan, csv, store};
use crate::obstacle::Obstacle;
use crate::plot::Plot;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A table: what somebody claims, and how it is tried here.
pub struct Table {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What the paper says, with its numbers.
    pub claim: &'static str,
    /// How it is rebuilt here, and what differs.
    pub setting: &'static str,
    /// How long it takes; less if it has to be quick.
    pub duration: fn(quick: bool) -> Duration,
    /// What has to be there for it to hold, so that it has to fail without.
    pub rests_on: Basis,
    /// Looks for the programs that it needs.
    pub check: fn() -> Result<(), Obstacle>,
    /// Measures and judges.
    pub fill: fn(&Plan) -> Filled,
}

/// What can be left off, for a table to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Zones.
    Zones,
    /// Simultaneous bindings.
    Bindings,
    /// Nothing of that.
    Nothing,
}

/// What came of filling a table.
pub struct Filled {
    /// The numbers.
    pub grid: Grid,
    /// What must hold.
    pub findings: Vec<Finding>,
    /// Which numbers are wrong or missing, and why.
    pub faults: Vec<String>,
    /// What is drawn.
    pub plots: Vec<Plot>,
}

/// The numbers of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// What the numbers of a row are.
    pub columns: Vec<Column>,
    /// From top to bottom; those of one subject stand together.
    pub rows: Vec<Row>,
}

/// What the numbers of a column are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// What it has in common with its neighbours; empty for one that stands alone.
    pub group: String,
    /// Its own name.
    pub name: String,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What it is about, as its neighbours are.
    pub subject: String,
    /// Its own name.
    pub name: String,
    /// One for each column; `None` where there is none.
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

    /// Its whole name.
    pub fn key(&self) -> String {
        match self.group.as_str() {
            "" => self.name.clone(),
            group => format!("{group}_{}", self.name),
        }
    }
}

impl Grid {
    /// The groups of columns, from left to right, with how many columns each has.
    pub fn groups(&self) -> Vec<(&str, usize)> {
        let groups = self.columns.chunk_by(|a, b| a.group == b.group);
        groups
            .map(|columns| (columns[0].group.as_str(), columns.len()))
            .collect()
    }

    /// The rows, subject by subject.
    pub fn subjects(&self) -> impl Iterator<Item = &[Row]> {
        self.rows.chunk_by(|a, b| a.subject == b.subject)
    }
}

impl Table {
    /// Measures, judges and writes.
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
