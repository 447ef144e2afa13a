//! Persistent state of a daemon: the addresses that its pools have leased, and, in files of their
//! own, the sessions that peers may resume ([`Sessions`]) and the addresses at which peers with a
//! name were last up ([`Addresses`]).
//!
//! One file holds a redb database. A transaction takes effect as a whole or not at all, even if the
//! process or the machine crashes. The file contains the version of its format, so an older daemon
//! does not misread the file of a newer one. Only the file's owner may read it.

mod addresses;
mod database;
mod error;
mod record;
mod sessions;
mod ticket_keys;

pub use addresses::Addresses;
pub use database::damaged;
pub use error::{Content, Error};
pub use sessions::{Listed, Opened, Reader, Sessions};

use database::DatabaseFile;
use error::Doing;
use model::{Lease, LeaseChange};
use record::{Key, Value};
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Version of the format that this release writes. Any other number is another format.
pub const VERSION: u64 = 1;

/// Cache size in octets. Leases are few and small.
const CACHE: usize = 1 << 20;

const FORMAT: TableDefinition<'_, &str, u64> = TableDefinition::new("format");
const LEASES: TableDefinition<'_, Key<'_>, Value> = TableDefinition::new("leases");

/// An open store. No other process can open the file at the same time.
pub struct Store {
    path: PathBuf,
    file: DatabaseFile,
}

impl Store {
    /// Opens the file and reads every lease in it. Creates the file and its folder if they are
    /// missing.
    pub fn open(path: &Path) -> Result<(Self, Vec<Lease>), Error> {
        let failed = Doing::new("opening", path, Content::Leases);
        if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
            make_folder(folder).map_err(|source| failed.io(source))?;
        }
        let store = Self {
            path: path.to_owned(),
            file: DatabaseFile::open(path, Content::Leases, CACHE)?,
        };
        store.establish_version()?;
        let leases = store.leases()?;
        Ok((store, leases))
    }

    fn leases(&self) -> Result<Vec<Lease>, Error> {
        let leases = self.file.with("reading", |database| {
            let table = database.begin_read()?.open_table(LEASES)?;
            let entries = table.iter()?.map(|entry| {
                let (key, value) = entry?;
                Ok(record::read(key.value(), value.value()))
            });
            entries.collect::<Result<Vec<_>, redb::Error>>()
        })?;
        let leases: Option<Vec<Lease>> = leases.into_iter().collect();
        let failed = Doing::new("reading", &self.path, Content::Leases);
        leases.ok_or_else(|| failed.damaged("a lease cannot be decoded".to_owned()))
    }

    /// Writes all of the changes, or none in case of an error. They are on disk when this returns.
    pub fn keep(&self, changes: &[LeaseChange]) -> Result<(), Error> {
        self.file.with("writing", |database| {
            let transaction = database.begin_write()?;
            let mut table = transaction.open_table(LEASES)?;
            for change in changes {
                match change {
                    LeaseChange::Kept(lease) | LeaseChange::Used(lease) => {
                        let key = record::OwnedKey::new(&lease.pool, &lease.identity);
                        table.insert(key.lent(), record::value(lease))?;
                    }
                    LeaseChange::Forgotten { pool, identity } => {
                        table.remove(record::OwnedKey::new(pool, identity).lent())?;
                    }
                }
            }
            drop(table);
            Ok(transaction.commit()?)
        })
    }

    /// Writes our version into a new file, and checks the version of any other.
    fn establish_version(&self) -> Result<(), Error> {
        let found = self.file.with("opening", |database| {
            let transaction = database.begin_write()?;
            let mut format = transaction.open_table(FORMAT)?;
            let found = format.get("version")?.map(|version| version.value());
            if found.is_none() {
                format.insert("version", VERSION)?;
                transaction.open_table(LEASES)?;
            }
            drop(format);
            transaction.commit()?;
            Ok(found.unwrap_or(VERSION))
        })?;
        match found {
            VERSION => Ok(()),
            found => Err(Doing::new("opening", &self.path, Content::Leases).of_version(found)),
        }
    }
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Refuses a file to which group or others have access.
fn check_private(opened: &File, file: &Path) -> Result<(), Error> {
    let metadata = opened.metadata();
    let metadata =
        metadata.map_err(|source| Doing::new("opening", file, Content::Leases).io(source))?;
    match metadata.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => Err(Error::ReadByOthers { file: file.into() }),
    }
}

fn open_private(file: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    // Refuse links: a user who may write to the folder could redirect a link to any file.
    match fs::symlink_metadata(file) {
        Ok(found) if !found.is_file() => Err(std::io::ErrorKind::InvalidInput.into()),
        _ => options.open(file),
    }
}

#[cfg(test)]
mod tests;
