//! Strata with two versions of strongSwan, one of them also on a kernel that has ESP, each pair of
//! choices in some cell; `--full` plays all of them.
//!
//! Writes `interop.md` into the target folder: which cell has which witness. With `UPDATE_DOCS` set it is
//! written to `docs/` instead; without, a run fails if the page there has other cells.

use anyhow::Result;
use lab::matrix::{Cell, meet, table};
use lab::runner;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let is_full = std::env::args().any(|word| word == "--full");
    let cells = if is_full {
        Cell::all()
    } else {
        Cell::pairwise()
    };
    let witnesses = RefCell::new(BTreeMap::new());
    let spare = RefCell::new(None);
    let outcome = runner::run_each(&cells, ToString::to_string, |cell| {
        let mut witnesses = witnesses.borrow_mut();
        let witness = witnesses.entry(cell.to_string()).or_insert(None);
        *witness = Some(meet(cell, &mut spare.borrow_mut())?);
        Ok(())
    });
    let witnesses = witnesses.into_inner();
    if witnesses.is_empty() {
        return outcome;
    }
    let played = cells.iter().filter_map(|cell| {
        let witness = witnesses.get(&cell.to_string())?;
        Some((cell, witness.as_deref()))
    });
    match write(
        &table::page(played),
        witnesses.len() == cells.len() && !is_full,
    ) {
        Ok(()) => outcome,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the page, or compares it with the one in `docs`: only if it `is_whole`.
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
        let fix = "UPDATE_DOCS=1 ./x interop";
        anyhow::ensure!(
            known == table::cells(page),
            "docs/interop.md has other cells: {fix}"
        );
    }
    Ok(())
}

/// The folder that everything built is in.
fn folder() -> PathBuf {
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.ancestors().nth(3);
    folder.map_or_else(std::env::temp_dir, Path::to_owned)
}
