//! The place of new files: keys, certificates, requests and bundles.

use crate::files::{self, New};
use control::Failure;
use std::path::{Path, PathBuf};

/// A folder, and the name of new files in it without their extensions.
pub(super) struct Place<'a> {
    pub(super) folder: &'a Path,
    pub(super) name: &'a str,
    /// True if existing files are replaced.
    pub(super) force: bool,
}

impl Place<'_> {
    /// Returns the name of the file with an extension.
    pub(super) fn name(&self, extension: &str) -> String {
        format!("{}.{extension}", self.name)
    }

    /// Refuses files that exist, unless they are to be replaced.
    pub(super) fn check(&self, extensions: &[&str]) -> Result<(), Failure> {
        let names: Vec<_> = extensions.iter().map(|one| self.name(one)).collect();
        self.refuse(names.iter().map(String::as_str))
    }

    /// Writes the files.
    pub(super) fn save(&self, files: &[New]) -> Result<Vec<PathBuf>, Failure> {
        self.refuse(files.iter().map(|file| file.name.as_str()))?;
        files::save(self.folder, files)
    }

    fn refuse<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), Failure> {
        const FIX: &str = "choose another folder with `--out`, or replace the files with `--force`";
        match self.force {
            true => Ok(()),
            false => files::refuse_existing(self.folder, names, FIX),
        }
    }
}
