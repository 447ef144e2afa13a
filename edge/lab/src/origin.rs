//! Where a peer's programs come from, and what they run on.

use crate::guest::Guest;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Where a charon comes from.
pub enum Origin {
    /// This machine has it installed.
    Installed,
    /// The packages of another Debian release were unpacked into a folder (`edge/lab/unpack`): it
    /// runs there on its own libraries.
    Unpacked(PathBuf),
    /// This machine's, on a kernel that has ESP.
    Guest(Guest),
}

impl Origin {
    /// That of the [`unpacked`] packages.
    ///
    /// # Errors
    /// There are none.
    pub fn newer() -> Result<Self> {
        unpacked().map(Self::Unpacked)
    }

    /// The machine that it runs on, if it has one of its own.
    pub fn guest(&self) -> Option<&Guest> {
        match self {
            Self::Guest(guest) => Some(guest),
            Self::Installed | Self::Unpacked(_) => None,
        }
    }
}

/// The folder that `edge/lab/unpack` unpacked into: `$STRATA_UNPACKED`, or `unpacked` beside this
/// executable or up to three folders up.
///
/// # Errors
/// It is not there.
pub fn unpacked() -> Result<PathBuf> {
    let named = std::env::var_os("STRATA_UNPACKED").map(PathBuf::from);
    let executable = std::env::current_exe().unwrap_or_default();
    let above = executable.ancestors().skip(1).take(3);
    let above = above.map(|folder| folder.join("unpacked"));
    let found = named
        .into_iter()
        .chain(above)
        .find(|root| is_unpacked(root));
    let fix = "run `edge/lab/unpack target/unpacked`, or set STRATA_UNPACKED to such a folder";
    found.with_context(|| format!("no packages of another release are unpacked: {fix}"))
}

/// `unpack` makes this file last.
fn is_unpacked(root: &Path) -> bool {
    root.join("unpacked").is_file()
}
