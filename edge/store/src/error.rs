//! What can be wrong with the file, and what to do about it.

use crate::VERSION;
use redb::{DatabaseError, StorageError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why the file cannot be used. Each text ends with what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody has it open.
    #[error(
        "{} is in use by another stratad, in another network namespace: name a `file` for each of them in [store]",
        file.display()
    )]
    InUse {
        /// The file.
        file: PathBuf,
    },
    /// It was written by another release.
    #[error(
        "{} has format {found}, and this stratad knows {VERSION}: start the release that wrote it, or move the file away (then addresses are lent anew)",
        file.display()
    )]
    OtherVersion {
        /// The file.
        file: PathBuf,
        /// Its format.
        found: u64,
    },
    /// It is not what it should be.
    #[error(
        "{} is damaged, or no file of ours ({why}): move it away, then a new one is made and addresses are lent anew",
        file.display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// How that shows.
        why: String,
    },
    /// Its mode is not 0600.
    #[error("others may read {0}: run `chmod 600 {0}`", file.display())]
    ReadByOthers {
        /// The file.
        file: PathBuf,
    },
    /// The system refuses.
    #[error("{doing} {} failed: {source}; name another `file` in [store] if it cannot be there", file.display())]
    Os {
        /// What was tried.
        doing: &'static str,
        /// The file.
        file: PathBuf,
        /// What it says.
        source: io::Error,
    },
}

/// What is done to which file, to tell where it failed.
pub(crate) struct Doing<'a> {
    doing: &'static str,
    file: &'a Path,
}

impl<'a> Doing<'a> {
    pub(crate) const fn new(doing: &'static str, file: &'a Path) -> Self {
        Self { doing, file }
    }

    pub(crate) fn io(&self, source: io::Error) -> Error {
        match source.kind() {
            ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
                self.damaged(source.to_string())
            }
            _ => Error::Os {
                doing: self.doing,
                file: self.file.into(),
                source,
            },
        }
    }

    pub(crate) fn database(&self, source: DatabaseError) -> Error {
        match source {
            DatabaseError::DatabaseAlreadyOpen => Error::InUse {
                file: self.file.into(),
            },
            DatabaseError::Storage(StorageError::Io(source)) => self.io(source),
            other => self.damaged(other.to_string()),
        }
    }

    pub(crate) fn storage(&self, source: redb::Error) -> Error {
        match source {
            redb::Error::Io(source) => self.io(source),
            other => self.damaged(other.to_string()),
        }
    }

    pub(crate) fn damaged(&self, why: String) -> Error {
        Error::Damaged {
            file: self.file.into(),
            why,
        }
    }
}
