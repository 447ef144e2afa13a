//! Errors of the store's file, with their remedies.

use crate::VERSION;
use redb::{DatabaseError, StorageError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The reason why the file cannot be used. Each message ends with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has the file open.
    #[error(
        "{} is in use by another stratad, in another network namespace: give each its own `file` in [{}]",
        file.display(),
        content.table()
    )]
    InUse {
        /// Path of the file.
        file: PathBuf,
        /// What is in the file.
        content: Content,
    },
    /// Another release wrote the file.
    #[error(
        "{} has format {found}, and this stratad supports {VERSION}: start the release that wrote it, or move the file away (all {} are then lost)",
        file.display(),
        content.noun()
    )]
    OtherVersion {
        /// Path of the file.
        file: PathBuf,
        /// What is in the file.
        content: Content,
        /// Format version of the file.
        found: u64,
    },
    /// The file is damaged or not a store.
    #[error(
        "{} is damaged or not a store ({why}): move it away to start with a new file without {}",
        file.display(),
        content.noun()
    )]
    Damaged {
        /// Path of the file.
        file: PathBuf,
        /// What is in the file.
        content: Content,
        /// The contradiction that was found.
        why: String,
    },
    /// Group or others have access to the file.
    #[error("others may read {0}: run `chmod 600 {0}`", file.display())]
    ReadByOthers {
        /// Path of the file.
        file: PathBuf,
    },
    /// The key of a file of sessions is gone.
    #[error(
        "{} cannot be read without {}, which is missing: restore the key, or move the file away (all sessions are then lost)",
        file.display(),
        key.display()
    )]
    KeyLost {
        /// Path of the file.
        file: PathBuf,
        /// Path of its key.
        key: PathBuf,
    },
    /// A system call failed.
    #[error(
        "{doing} {} failed: {source}; set `file` in [{}] to use another path",
        file.display(),
        content.table()
    )]
    Os {
        /// What is in the file.
        content: Content,
        /// The attempted operation.
        doing: &'static str,
        /// Path of the file.
        file: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// What a file keeps.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Leases of addresses.
    Leases,
    /// Sessions that peers may resume.
    Sessions,
    /// Addresses of peers whose address is a name.
    Addresses,
}

impl Content {
    /// Returns the table of the configuration that names the file.
    const fn table(self) -> &'static str {
        match self {
            Self::Leases | Self::Addresses => "store",
            Self::Sessions => "sessions",
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Leases => "leases",
            Self::Sessions => "sessions",
            Self::Addresses => "addresses",
        }
    }
}

/// An operation and its file, for error messages.
pub(crate) struct Doing<'a> {
    doing: &'static str,
    file: &'a Path,
    content: Content,
}

impl<'a> Doing<'a> {
    pub(crate) const fn new(doing: &'static str, file: &'a Path, content: Content) -> Self {
        Self {
            doing,
            file,
            content,
        }
    }

    pub(crate) fn io(&self, source: io::Error) -> Error {
        match source.kind() {
            ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
                self.damaged(source.to_string())
            }
            _ => Error::Os {
                content: self.content,
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
                content: self.content,
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
            content: self.content,
            why,
        }
    }

    pub(crate) fn of_version(&self, found: u64) -> Error {
        Error::OtherVersion {
            file: self.file.into(),
            content: self.content,
            found,
        }
    }
}
