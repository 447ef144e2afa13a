//! Finished cells on disk: a run that was broken off goes on where it was, and figures share what
//! they have in common.

use super::cell::{Cell, Measured};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with one file for each cell.
pub(super) struct Store {
    folder: PathBuf,
}

/// What another version measured says nothing about this one.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: String,
    measured: Measured,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Store {
    /// Opens or makes the folder `cells` in the output folder.
    pub fn open(out: &Path) -> Result<Self> {
        let folder = out.join("cells");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(Self { folder })
    }

    /// A cell that was measured before. One that cannot be read is measured again.
    pub fn load(&self, cell: &Cell) -> Option<Measured> {
        let text = fs::read_to_string(self.path(cell)).ok()?;
        let kept: Kept = serde_json::from_str(&text).ok()?;
        (kept.version == VERSION && kept.measured.cell == *cell).then_some(kept.measured)
    }

    /// Keeps a cell. Whoever is interrupted meanwhile leaves no half of a file.
    pub fn save(&self, measured: &Measured) -> Result<()> {
        let path = self.path(&measured.cell);
        let kept = Kept {
            version: VERSION.to_owned(),
            measured: measured.clone(),
        };
        let half = path.with_extension("half");
        fs::write(&half, serde_json::to_string(&kept)?)
            .and_then(|()| fs::rename(&half, &path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn path(&self, cell: &Cell) -> PathBuf {
        self.folder.join(cell.key() + ".json")
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{Folder, cell, measured};
    use super::*;

    #[test]
    fn what_was_kept_is_found_again_and_nothing_else() {
        let folder = Folder::new("store");
        let store = Store::open(&folder.0).unwrap();
        let kept = measured(&cell(1), 1.5e6);
        store.save(&kept).unwrap();
        assert_eq!(store.load(&cell(1)), Some(kept));
        assert_eq!(store.load(&cell(2)), None);
    }

    #[test]
    fn what_is_damaged_or_of_another_version_is_measured_again() {
        let folder = Folder::new("damaged");
        let store = Store::open(&folder.0).unwrap();
        store.save(&measured(&cell(1), 1.5e6)).unwrap();
        let path = store.path(&cell(1));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(store.load(&cell(1)), None);
        fs::write(&path, text.replace(VERSION, "0.0.1")).unwrap();
        assert_eq!(store.load(&cell(1)), None);
    }
}
