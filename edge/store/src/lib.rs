//! What a daemon remembers beyond its end: the addresses that its pools have lent.
//!
//! One file, a database of redb: a transaction is there as a whole or not at all, whenever the
//! process or the machine dies. It says which version of our format it holds, so that an older
//! daemon does not misread what a newer one wrote. Only its owner may read it.

mod error;
mod record;

pub use error::Error;

use error::Doing;
use model::{Lease, LeaseChange};
use record::{Key, Value};
use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The format that is written here. Another number is another format.
pub const VERSION: u64 = 1;

/// Leases are few and small.
const CACHE: usize = 1 << 20;

const FORMAT: TableDefinition<'_, &str, u64> = TableDefinition::new("format");
const LEASES: TableDefinition<'_, Key<'_>, Value> = TableDefinition::new("leases");

/// The opened file. Nobody else opens it meanwhile.
pub struct Store {
    file: PathBuf,
    database: Database,
}

impl Store {
    /// Opens the file with every lease in it, or makes one, with its folder.
    pub fn open(file: &Path) -> Result<(Self, Vec<Lease>), Error> {
        let failed = Doing::new("opening", file);
        if let Some(folder) = file.parent().filter(|folder| !folder.is_dir()) {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|source| failed.io(source))?;
        }
        let opened = open_private(file).map_err(|source| failed.io(source))?;
        let metadata = opened.metadata().map_err(|source| failed.io(source))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(Error::ReadByOthers { file: file.into() });
        }
        // Where a file is damaged redb may also assert what does not hold any more.
        let read = AssertUnwindSafe(|| Self::read(file, opened));
        match catch_unwind(read) {
            Ok(read) => read,
            Err(_) => Err(failed.damaged("it contradicts itself".to_owned())),
        }
    }

    /// A damaged file is noticed now and not when somebody waits for an address.
    fn read(file: &Path, opened: File) -> Result<(Self, Vec<Lease>), Error> {
        let failed = Doing::new("opening", file);
        let database = Builder::new().set_cache_size(CACHE).create_file(opened);
        let mut database = database.map_err(|source| failed.database(source))?;
        let whole = database.check_integrity();
        whole.map_err(|source| failed.database(source))?;
        let store = Self {
            file: file.to_owned(),
            database,
        };
        store.settle_version()?;
        let leases = store.leases()?;
        Ok((store, leases))
    }

    fn leases(&self) -> Result<Vec<Lease>, Error> {
        let failed = Doing::new("reading", &self.file);
        let read = || -> Result<Vec<_>, redb::Error> {
            let table = self.database.begin_read()?.open_table(LEASES)?;
            let entries = table.iter()?.map(|entry| {
                let (key, value) = entry?;
                Ok(record::read(key.value(), value.value()))
            });
            entries.collect()
        };
        let leases = read().map_err(|source| failed.storage(source))?;
        let leases: Option<Vec<Lease>> = leases.into_iter().collect();
        leases.ok_or_else(|| failed.damaged("a lease is none".to_owned()))
    }

    /// Keeps all of the changes, or none if it fails. They are on the disk when this returns.
    pub fn keep(&self, changes: &[LeaseChange]) -> Result<(), Error> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            let mut table = transaction.open_table(LEASES)?;
            for change in changes {
                match change {
                    LeaseChange::Kept(lease) => {
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
        };
        write().map_err(|source| Doing::new("writing", &self.file).storage(source))
    }

    /// A new file gets our version; any other must have it.
    fn settle_version(&self) -> Result<(), Error> {
        let settle = || -> Result<u64, redb::Error> {
            let transaction = self.database.begin_write()?;
            let mut format = transaction.open_table(FORMAT)?;
            let found = format.get("version")?.map(|version| version.value());
            if found.is_none() {
                format.insert("version", VERSION)?;
                transaction.open_table(LEASES)?;
            }
            drop(format);
            transaction.commit()?;
            Ok(found.unwrap_or(VERSION))
        };
        let failed = Doing::new("opening", &self.file);
        match settle().map_err(|source| failed.storage(source))? {
            VERSION => Ok(()),
            found => Err(Error::OtherVersion {
                file: self.file.clone(),
                found,
            }),
        }
    }
}

fn open_private(file: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    // A link would let whoever may write there choose which file is ours.
    match fs::symlink_metadata(file) {
        Ok(found) if !found.is_file() => Err(std::io::ErrorKind::InvalidInput.into()),
        _ => options.open(file),
    }
}

#[cfg(test)]
mod tests;
