//! Imports of files as the documentation of each program shows them, which are the seeds of the
//! fuzz target too.

mod included;
mod ipsec;
mod swanctl;
mod wg;

use crate::{Draft, File, Found, Import, Missing, Weight};
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for one test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    /// Returns a folder with an import in it.
    fn with(import: &Import) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("strata-import-{}-{unique}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(folder.0.join("strata.toml"), &import.toml).unwrap();
        for secret in &import.secrets {
            let mut options = fs::OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o600);
            let mut file = file.open(folder.0.join(&secret.file)).unwrap();
            std::io::Write::write_all(&mut file, secret.text.as_bytes()).unwrap();
        }
        folder
    }

    /// Returns the configuration, or the faults that `strata check` finds.
    fn check(&self) -> Result<config::Config, Vec<String>> {
        config::load(&self.0.join("strata.toml")).map_err(|error| match error {
            config::Error::Invalid(faults) => {
                let faults = faults.faults.iter();
                faults
                    .map(|fault| format!("{}: {}", fault.key, fault.problem))
                    .collect()
            }
            error => vec![error.to_string()],
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a file with a name.
fn file(name: &str, text: &str) -> File {
    File {
        name: name.to_owned(),
        text: text.to_owned().into(),
    }
}

/// Finds no file.
fn alone(_: &str, _: &str) -> Vec<Result<File, Missing>> {
    Vec::new()
}

fn finished(draft: Draft) -> Import {
    draft.finish(&Found::default())
}

/// Returns the configuration without its comments and empty lines.
fn rows(import: &Import) -> String {
    let lines = import.toml.lines();
    let rows = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| format!("{row}\n")).collect()
}

/// Returns the lines of the imported file that have no place, each with its weight.
fn places(import: &Import) -> Vec<(usize, Weight)> {
    let mut places: Vec<_> = import
        .notes
        .iter()
        .map(|note| (note.line, note.weight))
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

#[track_caller]
fn has_no_secret(import: &Import, secrets: &[&str]) {
    for secret in secrets {
        assert!(!import.toml.contains(secret), "{}", import.toml);
        let notes = format!("{:?}", import.notes);
        assert!(!notes.contains(secret), "{notes}");
        assert!(!format!("{import:?}").contains(secret));
    }
}
