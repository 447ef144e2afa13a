//! Strata with two versions of strongSwan, one of them also with a kernel's ESP. Each pair of
//! choices occurs in some cell. The long form also runs about a hundred other cells.
//!
//! Writes `interop.md` into the target folder: the cells with their evidence. Fails if the page in
//! `docs/`, which `strata-lab interop` prints, has other cells.

use anyhow::{Context, Result, ensure};
use lab::matrix::cell::Peer;
use lab::matrix::{Cell, play, table};
use lab::spectator::refused;
use lab::testbed::{find_binary, find_command};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Step of the long form through all cells. It is prime, so it reaches every level of every factor.
const DISTANCE: usize = 89;

// Works: interop
#[lab::test(limit(900))]
fn each_pair_of_choices_meets_in_some_cell() -> Result<()> {
    let mut cells = Cell::pairwise();
    let shown = cells.len();
    if std::env::var_os("STRATA_LONG").is_some() {
        cells.extend(Cell::all().into_iter().step_by(DISTANCE));
    }
    let played = play(&cells, &|played| print!("{played}"));
    compare(&table::page(&played[..shown]))?;
    let failed = played.iter().filter(|played| !played.passed());
    let failed: Vec<_> = failed.map(|played| played.cell.to_string()).collect();
    ensure!(failed.is_empty(), "failed twice: {failed:#?}");
    Ok(())
}

// Works: interop
#[lab::test(repeated)]
fn the_program_plays_a_cell_and_prints_its_witness() -> Result<()> {
    let cells = Cell::pairwise();
    let place = cells.iter().position(|cell| cell.peer == Peer::Installed);
    let place = place.context("a cell has the installed strongSwan")?;
    let output = interop(&["--only", &(place + 1).to_string(), "--json"])?;
    ensure!(output.status.success(), "{output:?}");
    let played: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(played["cell"] == cells[place].to_string(), "{played}");
    let witness = played["witness"].as_str().context("no witness")?;
    ensure!(witness.contains("strongSwan"), "{played}");
    Ok(())
}

// Refuses: interop
#[lab::test]
fn a_cell_that_does_not_exist_is_refused_with_those_there_are() -> Result<()> {
    for number in ["0", "9999"] {
        let output = interop(&["--only", number])?;
        ensure!(output.status.code() == Some(2), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(said.contains(&format!("no cell {number}")), "{said}");
        ensure!(said.contains("fix: name cells from 1 to "), "{said}");
    }
    Ok(())
}

// Refuses: interop
#[lab::test]
fn without_a_strongswan_it_says_how_to_get_it() -> Result<()> {
    let swanctl = find_command("swanctl", "strongswan-swanctl")?;
    let folder = swanctl.parent().context("a command is in a folder")?;
    let hide = format!("mount -t tmpfs none {}", folder.display());
    let said = refused("interop", &["--mount"], &hide)?;
    ensure!(said.contains("error: swanctl is missing"), "{said}");
    ensure!(said.contains("install strongswan-swanctl"), "{said}");
    Ok(())
}

fn interop(words: &[&str]) -> Result<Output> {
    let mut command = Command::new(find_binary("strata-lab")?);
    command.arg("interop").args(words);
    Ok(command.output()?)
}

/// Writes the page and compares its cells with those of the page in `docs`.
fn compare(page: &str) -> Result<()> {
    let path = folder().join("interop.md");
    std::fs::write(&path, page)?;
    println!("{}", path.display());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/interop.md");
    let known = table::cells(&std::fs::read_to_string(docs)?);
    ensure!(
        known == table::cells(page),
        "docs/interop.md has other cells: run `./x interop >docs/interop.md`"
    );
    Ok(())
}

/// Returns the build's target folder.
fn folder() -> PathBuf {
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.ancestors().nth(3);
    folder.map_or_else(std::env::temp_dir, Path::to_owned)
}
