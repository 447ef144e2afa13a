//! Finished cells on disk. An interrupted run continues where it stopped, and figures share common
//! cells. Every file records the build of the programs that measured it. Cells of another build say
//! nothing about this one and are measured again.

use super::cell::{Cell, Measured};
use super::scheduler::Job;
use crate::testbed::find_binary;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A folder with one file for each cell.
pub(super) struct Store {
    folder: PathBuf,
    build: String,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    build: String,
    measured: Measured,
}

impl Store {
    /// Opens or creates a folder in the output folder.
    pub fn open(out: &Path, name: &str) -> Result<Self> {
        let folder = out.join(name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(Self {
            folder,
            build: build()?.to_owned(),
        })
    }

    /// Opens the folder of cells that another build measured, to judge them again.
    pub fn of_build(out: &Path, name: &str, build: &str) -> Self {
        Self {
            folder: out.join(name),
            build: build.to_owned(),
        }
    }

    /// Returns the build whose cells the folder holds.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// Returns a cell that was measured before. A file that cannot be read counts as missing.
    pub fn load(&self, cell: &Cell) -> Option<Measured> {
        let text = fs::read_to_string(self.path(cell)).ok()?;
        let kept: Kept = serde_json::from_str(&text).ok()?;
        (kept.build == self.build && kept.measured.cell == *cell).then_some(kept.measured)
    }

    /// Returns the remaining work: cells that were never measured first, then late cells that may
    /// be repeated.
    pub fn jobs(&self, cells: &[Cell]) -> Vec<Job> {
        let (mut jobs, mut late) = (Vec::new(), Vec::new());
        for cell in cells {
            match self.load(cell) {
                None => jobs.push(Job::new(*cell)),
                Some(measured) if measured.reason_to_repeat().is_some() => {
                    late.push(Job::again(&measured));
                }
                Some(_) => {}
            }
        }
        jobs.append(&mut late);
        jobs
    }

    /// Stores a cell. An interruption leaves no partial file.
    pub fn save(&self, measured: &Measured) -> Result<()> {
        let path = self.path(&measured.cell);
        let kept = Kept {
            build: self.build.clone(),
            measured: measured.clone(),
        };
        let half = path.with_extension("half");
        fs::write(&half, serde_json::to_string(&kept)?)
            .and_then(|()| fs::rename(&half, &path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    pub fn path(&self, cell: &Cell) -> PathBuf {
        self.folder.join(cell.key() + ".json")
    }
}

/// Returns a name for the programs that measure, this one and stratad, by version, profile and
/// content. The content is read once.
pub(super) fn build() -> Result<&'static str> {
    static BUILD: OnceLock<String> = OnceLock::new();
    if let Some(build) = BUILD.get() {
        return Ok(build);
    }
    let mut hasher = DefaultHasher::new();
    let programs = [env::current_exe().ok(), find_binary("stratad").ok()];
    for program in programs.into_iter().flatten() {
        let content =
            fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
        hasher.write(&content);
    }
    let version = env!("CARGO_PKG_VERSION");
    let profile = match cfg!(debug_assertions) {
        true => "debug build",
        false => "release build",
    };
    Ok(BUILD.get_or_init(|| format!("{version}, {profile} ({:016x})", hasher.finish())))
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{Folder, cell, measured};
    use super::*;

    #[test]
    fn what_was_kept_is_found_again_and_nothing_else() {
        let folder = Folder::new("store");
        let store = Store::open(&folder.0, "cells").unwrap();
        let kept = measured(&cell(1), 1.5e6);
        store.save(&kept).unwrap();
        assert_eq!(store.load(&cell(1)), Some(kept));
        assert_eq!(store.load(&cell(2)), None);
    }

    #[test]
    fn what_was_late_is_to_be_done_again_after_what_was_never_done() {
        let folder = Folder::new("late");
        let store = Store::open(&folder.0, "cells").unwrap();
        let mut late = measured(&cell(1), 1.5e6);
        late.hops.late = late.hops.packets;
        store.save(&late).unwrap();
        store.save(&measured(&cell(2), 1.5e6)).unwrap();
        let jobs = store.jobs(&[1, 2, 3].map(cell));
        assert_eq!(jobs, [Job::new(cell(3)), Job::again(&late)]);
    }

    #[test]
    fn what_is_damaged_or_of_another_build_is_measured_again() {
        let folder = Folder::new("damaged");
        let store = Store::open(&folder.0, "cells").unwrap();
        store.save(&measured(&cell(1), 1.5e6)).unwrap();
        let path = store.path(&cell(1));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(store.load(&cell(1)), None);
        fs::write(&path, text.replace(&store.build, "another")).unwrap();
        assert_eq!(store.load(&cell(1)), None);
    }
}
