//! Plays cells, several at once.

use super::cell::{Cell, Peer};
use super::meet;
use crate::guest::Guest;
use crate::obstacle::Obstacle;
use crate::origin::unpacked;
use crate::testbed::{find_binary, find_command};
use serde::Serialize;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// Cells that run at once. In each of them both ends wait most of the time.
const AT_ONCE: usize = 3;

/// A cell with its outcome.
#[derive(Debug, Serialize)]
pub struct Played {
    /// The cell.
    pub cell: Cell,
    /// Its witness, as [`meet`] returns it; `None` if the cell failed twice.
    pub witness: Option<String>,
    /// Duration of the last attempt, in seconds.
    pub seconds: f64,
    /// Errors of the failed attempts.
    pub errors: Vec<String>,
}

impl Played {
    /// Returns true if the cell did not fail twice.
    pub fn passed(&self) -> bool {
        self.witness.is_some()
    }
}

/// The attempts, a line for each and the error of each that failed.
impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cell, seconds) = (self.cell, self.seconds);
        let which = |attempt: usize| if attempt > 0 { ", repeated" } else { "" };
        for (attempt, error) in self.errors.iter().enumerate() {
            writeln!(f, "cell {cell}: FAILED{}\n{error}", which(attempt))?;
        }
        if self.passed() {
            let which = which(self.errors.len());
            writeln!(f, "cell {cell}: ok{which} ({seconds:.1} s)")?;
        }
        Ok(())
    }
}

/// Checks that the programs of both ends of these cells are here.
///
/// # Errors
/// A program is missing.
pub fn ready(cells: &[Cell]) -> Result<(), Obstacle> {
    find_binary("stratad")?;
    find_binary("strata")?;
    find_command("swanctl", "strongswan-swanctl")?;
    if cells.iter().any(|cell| cell.peer == Peer::Newer) {
        unpacked()?;
    }
    Ok(())
}

/// Runs all cells and returns their outcomes in the same order. A cell that fails runs once more.
/// Passes each outcome to `tell` as soon as it is known.
pub fn play(cells: &[Cell], tell: &(dyn Fn(&Played) + Sync)) -> Vec<Played> {
    let queue = Mutex::new(cells.iter().enumerate());
    let played = Mutex::new(Vec::new());
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.next()
    };
    let work = || {
        let mut spare = None;
        while let Some((number, cell)) = next() {
            let outcome = attempt_twice(*cell, &mut spare);
            tell(&outcome);
            let mut played = played.lock().unwrap_or_else(PoisonError::into_inner);
            played.push((number, outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    let mut played = played.into_inner().unwrap_or_else(PoisonError::into_inner);
    played.sort_by_key(|(number, _)| *number);
    played.into_iter().map(|(_, outcome)| outcome).collect()
}

fn attempt_twice(cell: Cell, spare: &mut Option<Guest>) -> Played {
    let mut played = Played {
        cell,
        witness: None,
        seconds: 0.0,
        errors: Vec::new(),
    };
    for _ in 0..2 {
        let start = Instant::now();
        let outcome = meet(&cell, spare);
        played.seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(witness) => {
                played.witness = Some(witness);
                break;
            }
            Err(error) => played.errors.push(format!("{error:#}")),
        }
    }
    played
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(witness: Option<&str>, errors: &[&str]) -> Played {
        Played {
            cell: Cell::pairwise()[0],
            witness: witness.map(str::to_owned),
            seconds: 3.1,
            errors: errors.iter().map(|&error| error.to_owned()).collect(),
        }
    }

    #[test]
    fn each_attempt_has_a_line() {
        let name = Cell::pairwise()[0].to_string();
        let twice = played(Some("charon"), &["no tunnel"]);
        assert_eq!(
            twice.to_string(),
            format!("cell {name}: FAILED\nno tunnel\ncell {name}: ok, repeated (3.1 s)\n")
        );
        let failed = played(None, &["no tunnel", "no octets"]);
        assert!(
            failed
                .to_string()
                .ends_with("FAILED, repeated\nno octets\n")
        );
        assert!(twice.passed() && !failed.passed());
    }

    #[test]
    fn the_json_has_stable_keys() {
        let json = serde_json::to_value(played(Some("charon"), &[])).unwrap();
        let keys: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["cell", "errors", "seconds", "witness"]);
        assert_eq!(json["cell"], Cell::pairwise()[0].to_string());
    }
}
