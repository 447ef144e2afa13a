//! Strata with two versions of strongSwan, one of them also with a kernel's ESP. Each pair of
//! choices occurs in some cell. The long form also runs about a hundred other cells, and
//! `STRATA_CELLS=all` runs every combination.
//!
//! Writes `interop.md` into the target folder: the cells with their evidence. With `UPDATE_DOCS`
//! set, the test writes the file to `docs/` instead. Otherwise it fails if the file there has other
//! cells.

use anyhow::{Result, ensure};
use lab::guest::Guest;
use lab::matrix::{Cell, meet, table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// Cells that run at once. In each of them both ends wait most of the time.
const AT_ONCE: usize = 3;

/// Step of the long form through all cells. It is prime, so it reaches every level of every factor.
const DISTANCE: usize = 89;

/// Results of cells: the evidence or the error.
type Seen<'c> = BTreeMap<usize, (&'c Cell, Result<String>)>;

#[lab::test(limit(900))]
fn each_pair_of_choices_meets_in_some_cell() -> Result<()> {
    let is_full = std::env::var("STRATA_CELLS").is_ok_and(|cells| cells == "all");
    let is_long = std::env::var_os("STRATA_LONG").is_some();
    let mut cells = Cell::pairwise();
    let mut shown = cells.len();
    if is_full {
        cells = Cell::all();
        shown = cells.len();
    } else if is_long {
        cells.extend(Cell::all().into_iter().step_by(DISTANCE));
    }
    let seen = play(&cells);
    let witnesses = seen
        .values()
        .take(shown)
        .map(|(cell, outcome)| (*cell, outcome.as_deref().ok()));
    write(&table::page(witnesses), !is_full)?;
    let failed = seen.values().filter(|(_, outcome)| outcome.is_err());
    let failed: Vec<_> = failed.map(|(cell, _)| cell.to_string()).collect();
    ensure!(failed.is_empty(), "failed twice: {failed:#?}");
    Ok(())
}

/// Runs all cells, several at once.
fn play(cells: &[Cell]) -> Seen<'_> {
    let queue = Mutex::new(cells.iter().enumerate());
    let seen = Mutex::new(Seen::new());
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.next()
    };
    let work = || {
        let mut spare = None;
        while let Some((number, cell)) = next() {
            let outcome = meet_in(cell, &mut spare);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(number, (cell, outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    seen.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a cell, a second time if it fails.
fn meet_in(cell: &Cell, spare: &mut Option<Guest>) -> Result<String> {
    let mut attempt = |word: &str| {
        let start = Instant::now();
        let outcome = meet(cell, spare);
        let seconds = start.elapsed().as_secs_f64();
        match &outcome {
            Ok(_) => println!("cell {cell}: ok{word} ({seconds:.1} s)"),
            Err(error) => println!("cell {cell}: FAILED{word} ({seconds:.1} s)\n{error:#}"),
        }
        outcome
    };
    attempt("").or_else(|_| attempt(", repeated"))
}

/// Writes the page, or compares it with the one in `docs`. A page with only some cells is not
/// compared.
fn write(page: &str, is_whole: bool) -> Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/interop.md");
    if is_whole && std::env::var_os("UPDATE_DOCS").is_some() {
        return Ok(std::fs::write(docs, page)?);
    }
    let path = folder().join("interop.md");
    std::fs::write(&path, page)?;
    println!("{}", path.display());
    if is_whole {
        let known = table::cells(&std::fs::read_to_string(docs)?);
        ensure!(
            known == table::cells(page),
            "docs/interop.md has other cells: run `UPDATE_DOCS=1 ./x interop`"
        );
    }
    Ok(())
}

/// Returns the build's target folder.
fn folder() -> PathBuf {
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.ancestors().nth(3);
    folder.map_or_else(std::env::temp_dir, Path::to_owned)
}
