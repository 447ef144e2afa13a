//! The folder that a first configuration is written into.

use crate::files::{self, New};
use crate::pki::Credential;
use control::Failure;
use model::Identity;
use std::path::{Path, PathBuf};

/// Name of the configuration.
pub(super) const CONFIG: &str = "strata.toml";

/// Refuses identities that no host has, and files that exist.
pub(super) fn check(ids: &[&Identity], folder: &Path, names: &[&str]) -> Result<(), Failure> {
    ids.iter().try_for_each(|id| Credential::check(id))?;
    let fix = "choose another folder with `--out`, or remove the files of an earlier attempt";
    files::refuse_existing(folder, names.iter().copied(), fix)
}

/// Writes files, of which the configuration is the last.
pub(super) fn save(folder: &Path, new: Vec<New>, config: &str) -> Result<Vec<PathBuf>, Failure> {
    let config = New::public(CONFIG, config);
    files::save(folder, &new.into_iter().chain([config]).collect::<Vec<_>>())
}
