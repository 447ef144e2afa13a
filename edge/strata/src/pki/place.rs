//! The place of new files: keys, certificates, requests and bundles.

use super::folder;
use control::Failure;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// A folder, and the name of new files in it without their extensions.
pub(super) struct Place<'a> {
    pub(super) folder: &'a Path,
    pub(super) name: &'a str,
    /// True if existing files are replaced.
    pub(super) force: bool,
}

/// A new file.
pub(super) struct File<'a> {
    extension: &'a str,
    content: Zeroizing<Vec<u8>>,
    mode: u32,
}

impl<'a> File<'a> {
    /// A file that all users may read.
    pub(super) fn public(extension: &'a str, text: &str) -> Self {
        let content = Zeroizing::new(text.as_bytes().to_vec());
        Self {
            extension,
            content,
            mode: 0o644,
        }
    }

    /// A private key (PKCS #8 in DER), which only its owner may read.
    pub(super) fn key(der: &[u8]) -> Self {
        let text = Zeroizing::new(pem::encode(&pem::Pem::new("PRIVATE KEY", der)));
        Self::secret("key", text.as_bytes())
    }

    /// A file that only its owner may read.
    pub(super) fn secret(extension: &'a str, content: &[u8]) -> Self {
        Self {
            extension,
            content: Zeroizing::new(content.to_vec()),
            mode: 0o600,
        }
    }
}

impl Place<'_> {
    /// Refuses files that exist, unless they are to be replaced.
    pub(super) fn check(&self, extensions: &[&str]) -> Result<(), Failure> {
        let mut files = extensions.iter().map(|extension| self.file(extension));
        match files.find(|file| !self.force && file.exists()) {
            Some(there) => Err(Failure::new(
                format!("{} already exists", there.display()),
                "choose another folder with `--out`, or replace the files with `--force`",
            )),
            None => Ok(()),
        }
    }

    /// Writes the files.
    pub(super) fn save(&self, files: &[File<'_>]) -> Result<Vec<PathBuf>, Failure> {
        let extensions: Vec<_> = files.iter().map(|file| file.extension).collect();
        self.check(&extensions)?;
        fs::create_dir_all(self.folder).map_err(|error| unwritable(self.folder, &error))?;
        let write = |file: &File<'_>| {
            let path = self.file(file.extension);
            let written = folder::write(&path, &file.content, file.mode);
            written.map_err(|error| unwritable(&path, &error))?;
            Ok(path)
        };
        files.iter().map(write).collect()
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", self.name))
    }
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        format!("cannot write {}: {error}", file.display()),
        "choose a folder that you may write to with `--out`",
    )
}
