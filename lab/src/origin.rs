//! Origins of a peer's programs, and the machines that they run on.

use crate::guest::Guest;
use crate::obstacle::Obstacle;
use std::path::{Path, PathBuf};

/// Origin of a charon.
pub enum Origin {
    /// Installed on this machine.
    Installed,
    /// Unpacked into a folder from packages of another Debian release (`lab/unpack`). It runs
    /// there on its own libraries.
    Unpacked(PathBuf),
    /// Installed on this machine, but run in a guest whose kernel has ESP.
    Guest(Guest),
}

impl Origin {
    /// Returns the origin of the [`unpacked`] packages.
    ///
    /// # Errors
    /// No packages are unpacked.
    pub fn newer() -> Result<Self, Obstacle> {
        unpacked().map(Self::Unpacked)
    }

    /// Returns the guest that charon runs in, if it runs in one.
    pub fn guest(&self) -> Option<&Guest> {
        match self {
            Self::Guest(guest) => Some(guest),
            Self::Installed | Self::Unpacked(_) => None,
        }
    }
}

/// Returns the folder that `lab/unpack` unpacked into: `$STRATA_UNPACKED`, or `unpacked` in
/// the folder of this executable or up to two folders above.
///
/// # Errors
/// There is no such folder.
pub fn unpacked() -> Result<PathBuf, Obstacle> {
    let named = std::env::var_os("STRATA_UNPACKED").map(PathBuf::from);
    let executable = std::env::current_exe().unwrap_or_default();
    let above = executable.ancestors().skip(1).take(3);
    let above = above.map(|folder| folder.join("unpacked"));
    let found = named
        .into_iter()
        .chain(above)
        .find(|root| is_unpacked(root));
    found.ok_or_else(|| {
        let fix = "run `lab/unpack target/unpacked`, or set STRATA_UNPACKED to such a folder";
        Obstacle::new("no packages of another release are unpacked", fix)
    })
}

/// Checks for the file that `unpack` creates last.
fn is_unpacked(root: &Path) -> bool {
    root.join("unpacked").is_file()
}
