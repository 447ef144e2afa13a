//! `strata-lab interop`: plays cells of the matrix and prints the page with their witnesses.

use crate::args::Interop;
use lab::matrix::{self, Cell, Played, table};
use lab::obstacle::Obstacle;
use lab::{interrupt, testbed};
use terminal::{Exit, Output};

/// Runs the cells. Must be called before the first thread starts.
pub fn run(interop: &Interop, output: &Output) -> Result<Exit, Obstacle> {
    let cells = cells(interop)?;
    matrix::ready(&cells)?;
    testbed::enter()?;
    interrupt::tidy()?;
    let played = matrix::play(&cells, &|played| tell(played, output));
    if !output.json {
        output.print(&table::page(&played));
    }
    match played.iter().all(Played::passed) {
        true => Ok(Exit::Done),
        false => Ok(Exit::No),
    }
}

fn cells(interop: &Interop) -> Result<Vec<Cell>, Obstacle> {
    let all = match interop.full {
        true => Cell::all(),
        false => Cell::pairwise(),
    };
    if interop.only.is_empty() {
        return Ok(all);
    }
    let named = interop.only.iter().map(|&number| {
        let cell = number.checked_sub(1).and_then(|place| all.get(place));
        cell.copied().ok_or_else(|| {
            let fix = format!("name cells from 1 to {}", all.len());
            Obstacle::new(format!("there is no cell {number}"), fix)
        })
    });
    named.collect()
}

/// Prints the outcome of a cell as soon as it is known. Text goes to standard error, because
/// standard output is the page.
fn tell(played: &Played, output: &Output) {
    if output.json {
        let line = serde_json::to_string(played).expect("an outcome has only string keys");
        output.print_json(&line);
    } else {
        output.complain(&played.to_string());
    }
}
