//! New files: configurations, keys, certificates and what else a verb writes.

use control::Failure;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// A new file.
pub struct New {
    /// Name of the file in its folder.
    pub name: String,
    content: Zeroizing<Vec<u8>>,
    mode: u32,
}

impl New {
    /// A file that all users may read.
    pub fn public(name: impl Into<String>, text: &str) -> Self {
        Self {
            name: name.into(),
            content: Zeroizing::new(text.as_bytes().to_vec()),
            mode: 0o644,
        }
    }

    /// A file that only its owner may read.
    pub fn secret(name: impl Into<String>, content: &[u8]) -> Self {
        Self {
            name: name.into(),
            content: Zeroizing::new(content.to_vec()),
            mode: 0o600,
        }
    }

    /// A private key (PKCS #8 in DER), which only its owner may read.
    pub fn key(name: impl Into<String>, der: &[u8]) -> Self {
        let text = Zeroizing::new(pem::encode(&pem::Pem::new("PRIVATE KEY", der)));
        Self::secret(name, text.as_bytes())
    }

    /// Returns the content.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Returns the mode.
    pub const fn mode(&self) -> u32 {
        self.mode
    }
}

/// Refuses the first of these files that exists, with advice.
pub fn refuse_existing<'a>(
    folder: &Path,
    names: impl IntoIterator<Item = &'a str>,
    fix: &str,
) -> Result<(), Failure> {
    let mut files = names.into_iter().map(|name| folder.join(name));
    match files.find(|file| file.exists()) {
        Some(there) => Err(Failure::new(
            format!("{} already exists", there.display()),
            fix,
        )),
        None => Ok(()),
    }
}

/// Writes files into a folder, which is created, and returns their paths.
pub fn save(folder: &Path, files: &[New]) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let write = |file: &New| {
        let path = folder.join(&file.name);
        let written = write(&path, &file.content, file.mode);
        written.map_err(|error| unwritable(&path, &error))?;
        Ok(path)
    };
    files.iter().map(write).collect()
}

/// Writes a file to the disk. Removes an old file first, because it would keep its mode.
pub fn write(file: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(file)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Returns the failure of a file that cannot be written.
pub fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        format!("cannot write {}: {error}", file.display()),
        "choose a folder that you may write to with `--out`",
    )
}
