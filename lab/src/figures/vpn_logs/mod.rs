//! Table II and figures 2 to 6 of the paper on VPN servers, and the two that it leaves out, from
//! synthetic logs that have the means of its table II.

mod caching;
mod characteristics;

pub use caching::{DATA, ESTABLISHED, FIG6};
pub use characteristics::{FIG2, FIG3, FIG4, FIG5, TABLE2};

use crate::experiment::{Estimate, Plan, extremes};
use crate::logs::synthesis::{Open, Workload};
use anyhow::Result;
use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};

/// Seed of all logs.
const SEED: u64 = 1;

/// Connections of a quick run.
const QUICK: u64 = 5000;

/// The columns of table II.
const LOGS: [(&str, Workload, RGBColor); 2] = [
    ("wireless", Workload::WIRELESS, RGBColor(0, 114, 178)),
    ("remote", Workload::REMOTE, RGBColor(190, 20, 110)),
];

/// Assumptions that table II leaves open, the usual ones first.
const OPEN: [(&str, Open); 7] = [
    ("usual", Open::USUAL),
    ("no early return", returning(0.0)),
    ("90 % return early", returning(0.9)),
    ("durations spread less", spread(1.0, 2.4)),
    ("durations spread more", spread(2.0, 2.4)),
    ("volumes spread less", spread(1.5, 1.8)),
    ("volumes spread more", spread(1.5, 3.0)),
];

const fn returning(returns: f64) -> Open {
    Open {
        returns,
        ..Open::USUAL
    }
}

const fn spread(durations: f64, volumes: f64) -> Open {
    Open {
        durations,
        volumes,
        ..Open::USUAL
    }
}

/// What was found in a log.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cell<T> {
    /// Column of table II.
    log: String,
    /// Assumption that differs from the usual ones.
    open: String,
    found: T,
}

/// Looks at each log with each assumption.
fn cells<T>(plan: &Plan, find: impl Fn(Workload, Open) -> Result<T>) -> Result<Vec<Cell<T>>> {
    let logs = LOGS
        .into_iter()
        .flat_map(|log| OPEN.map(|open| (log, open)));
    let cells = logs.map(|((log, workload, _), (name, open))| {
        let workload = match plan.quick {
            true => workload.scaled(QUICK),
            false => workload,
        };
        Ok(Cell {
            log: log.to_owned(),
            open: name.to_owned(),
            found: find(workload, open)?,
        })
    });
    cells.collect()
}

/// Returns what was found with the usual assumptions.
fn usual<'a, T>(cells: &'a [Cell<T>], log: &str) -> Option<&'a T> {
    let cell = cells.iter().find(|cell| cell.log == log)?;
    Some(&cell.found)
}

/// Returns a value with the usual assumptions, and its least and most with any.
fn over_all<T>(
    cells: &[Cell<T>],
    log: &str,
    value: impl Fn(&T) -> Option<f64>,
) -> Option<Estimate> {
    let of_log = cells.iter().filter(|cell| cell.log == log);
    let all: Vec<_> = of_log.filter_map(|cell| value(&cell.found)).collect();
    Some(Estimate {
        value: *all.first()?,
        interval: extremes(&all),
        runs: all.len(),
    })
}
