//! Contents of the package, as the programs of a Debian system read them: shells, groff, systemd.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod folders;
mod manual;
mod unit;

use std::path::PathBuf;
use std::{env, fs, process};

/// A folder that is removed with this.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("strata-pack-{name}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}
