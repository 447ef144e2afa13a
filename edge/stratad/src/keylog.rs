//! Keys for analysis, written as Wireshark's preference tables.
//!
//! Key export is off unless requested, to files of our own that other users cannot read. Each line
//! is appended as its SA comes up, so a capture can be decrypted while it is taken. Copy both files
//! into a Wireshark profile.

use node::KeyLog;
use os::files::{Access, open_own};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder that receives keys, if any.
#[derive(Default)]
pub struct Keys(Option<PathBuf>);

impl Keys {
    /// Writes keys to `esp_sa` and `ikev2_decryption_table` in this folder from now on. The folder
    /// is created with mode 0700 if it is missing; `None` stops the export. Returns an error if the
    /// files cannot be written.
    pub fn set(&mut self, folder: Option<PathBuf>) -> io::Result<()> {
        if let Some(folder) = &folder {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
            append(folder, ESP, "")?;
            append(folder, IKE, "")?;
        }
        self.0 = folder;
        Ok(())
    }

    /// Appends one line to its table.
    pub fn write(&self, line: &KeyLog) -> io::Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        match line {
            KeyLog::Ike(line) => append(folder, IKE, &format!("{line}\n")),
            KeyLog::Esp(line) => append(folder, ESP, &format!("{line}\n")),
        }
    }
}

const ESP: &str = "esp_sa";
const IKE: &str = "ikev2_decryption_table";

fn append(folder: &Path, file: &str, text: &str) -> io::Result<()> {
    let file = folder.join(file);
    let opened = open_own(&file, Access::None, OpenOptions::new().append(true));
    let about = |error: io::Error| {
        let message = format!("{}: {error}", file.display());
        io::Error::new(error.kind(), message)
    };
    opened.map_err(about)?.write_all(text.as_bytes())
}
