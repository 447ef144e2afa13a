//! The sessions that peers may resume, in a file of their own.
//!
//! The entries are encrypted (`resumption::Sealer`) with a key in a second file, so that a copy of
//! the first one opens nothing. A batch of operations is one transaction. Its outcomes are known
//! once it is on disk: an entry that is taken stays so, whatever happens to process and machine.

use crate::error::{Content, Doing, Error};
use crate::open_private;
use crypto::{Rng, Secret, UnixTime};
use model::Identity;
use redb::{
    Builder, Database, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction,
};
use resumption::{Entry, Handle, Operation, Outcome, ReferenceKey, Sealer, StoreKey, Usage};
use std::fs;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Version of the format that this release writes.
const VERSION: u64 = 1;

/// Cache size in octets: 50,000 entries of 100 octets.
const CACHE: usize = 5 << 20;

const FORMAT: TableDefinition<'_, &str, u64> = TableDefinition::new("format");
/// Sealed entries by handle, each with its end.
const ENTRIES: TableDefinition<'_, [u8; 16], (u64, &[u8])> = TableDefinition::new("entries");
/// Handles by the ends of their entries.
const ENDS: TableDefinition<'_, (u64, [u8; 16]), ()> = TableDefinition::new("ends");

/// An open file of sessions. No other process can open it at the same time.
pub struct Sessions {
    file: PathBuf,
    database: Arc<Database>,
    key: StoreKey,
    sealer: Sealer,
    /// Most entries. Without room, the entry goes that ends first.
    most: u64,
}

/// A reader of a file of sessions.
pub struct Reader {
    file: PathBuf,
    database: Arc<Database>,
    sealer: Sealer,
}

/// An entry as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name of the entry.
    pub handle: Handle,
    /// Identity of the peer.
    pub identity: Identity,
    /// Its use so far.
    pub usage: Usage,
    /// Time from which it is void.
    pub ends: UnixTime,
}

/// A table of a write transaction.
type Entries<'t> = Table<'t, [u8; 16], (u64, &'static [u8])>;
type Ends<'t> = Table<'t, (u64, [u8; 16]), ()>;

impl Sessions {
    /// Opens the file and its key, or creates them. `seed` is fresh randomness. Also returns the
    /// key of the references that name the entries.
    pub fn open(file: &Path, most: u64, seed: [u8; 32]) -> Result<(Self, ReferenceKey), Error> {
        let failed = Doing::new("opening", file, Content::Sessions);
        let mut rng = Rng::from_seed(seed);
        let key = open_key(file, &mut rng)?;
        let opened = open_private(file).map_err(|source| failed.io(source))?;
        crate::check_private(&opened, file)?;
        let read = AssertUnwindSafe(|| {
            let database = Builder::new().set_cache_size(CACHE).create_file(opened);
            let mut database = database.map_err(|source| failed.database(source))?;
            let whole = database.check_integrity();
            whole.map_err(|source| failed.database(source))?;
            let store = Self {
                file: file.to_owned(),
                database: database.into(),
                sealer: key.sealer(rng),
                key: key.clone(),
                most,
            };
            store.establish_version()?;
            Ok(store)
        });
        // For a damaged file, redb may also fail an assertion.
        let store = match catch_unwind(read) {
            Ok(store) => store?,
            Err(_) => return Err(failed.damaged("its content is inconsistent".to_owned())),
        };
        Ok((store, key.references()))
    }

    /// Carries out operations in one transaction, and returns their outcomes. In case of an error,
    /// none of them is known to have taken effect. Where all of them are reads, nothing is written:
    /// who presents a ticket again and again costs no disk time.
    pub fn perform(
        &mut self,
        operations: &[Operation],
        now: UnixTime,
    ) -> Result<Vec<Outcome>, Error> {
        let reads = operations.iter().map(|operation| match operation {
            Operation::Read(id, handle) => Some((*id, handle)),
            _ => None,
        });
        let reads: Option<Vec<_>> = reads.collect();
        let (most, sealer) = (self.most, &mut self.sealer);
        let database = &self.database;
        let perform = AssertUnwindSafe(|| -> Result<Vec<Outcome>, redb::Error> {
            if let Some(reads) = reads {
                let entries = database.begin_read()?.open_table(ENTRIES)?;
                let read =
                    |(id, handle)| Ok(Outcome::Read(id, read(&entries, handle, sealer, now)?));
                return reads.into_iter().map(read).collect();
            }
            let transaction = database.begin_write()?;
            let outcomes = perform(&transaction, operations, most, sealer, now)?;
            transaction.commit()?;
            Ok(outcomes)
        });
        let failed = Doing::new("writing", &self.file, Content::Sessions);
        match catch_unwind(perform) {
            Ok(performed) => performed.map_err(|source| failed.storage(source)),
            Err(_) => Err(failed.damaged("its content is inconsistent".to_owned())),
        }
    }

    /// Returns a reader of the file, for another thread.
    pub fn reader(&self) -> Reader {
        Reader {
            file: self.file.clone(),
            database: Arc::clone(&self.database),
            // A reader seals nothing.
            sealer: self.key.sealer(Rng::from_seed([0; 32])),
        }
    }

    fn establish_version(&self) -> Result<(), Error> {
        let establish = || -> Result<Option<u64>, redb::Error> {
            let transaction = self.database.begin_write()?;
            let is_new = transaction.list_tables()?.next().is_none();
            let mut format = transaction.open_table(FORMAT)?;
            let found = format.get("sessions")?.map(|version| version.value());
            if is_new {
                format.insert("sessions", VERSION)?;
                transaction.open_table(ENTRIES)?;
                transaction.open_table(ENDS)?;
            }
            drop(format);
            transaction.commit()?;
            Ok(found.or(is_new.then_some(VERSION)))
        };
        let failed = Doing::new("opening", &self.file, Content::Sessions);
        match establish().map_err(|source| failed.storage(source))? {
            Some(VERSION) => Ok(()),
            Some(found) => Err(failed.of_version(found)),
            None => Err(failed.damaged("it has something else".to_owned())),
        }
    }
}

impl Reader {
    /// Returns all entries that the key opens.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let read = || -> Result<Vec<_>, redb::Error> {
            let table = self.database.begin_read()?.open_table(ENTRIES)?;
            let mut listed = Vec::new();
            for stored in table.iter()? {
                let (handle, value) = stored?;
                let handle = Handle::from(handle.value());
                let (_, sealed) = value.value();
                if let Ok(entry) = self.sealer.open(&handle, sealed) {
                    listed.push(Listed {
                        handle,
                        identity: entry.identity,
                        usage: entry.usage,
                        ends: entry.ends,
                    });
                }
            }
            Ok(listed)
        };
        let failed = Doing::new("reading", &self.file, Content::Sessions);
        read().map_err(|source| failed.storage(source))
    }
}

fn perform(
    transaction: &WriteTransaction,
    operations: &[Operation],
    most: u64,
    sealer: &mut Sealer,
    now: UnixTime,
) -> Result<Vec<Outcome>, redb::Error> {
    let mut entries = transaction.open_table(ENTRIES)?;
    let mut ends = transaction.open_table(ENDS)?;
    let mut outcomes = Vec::new();
    for operation in operations {
        match operation {
            Operation::Add(kept) => {
                make_room(&mut entries, &mut ends, most, now)?;
                let (handle, entry) = (&kept.handle, &kept.entry);
                add(&mut entries, &mut ends, handle, entry, sealer)?;
            }
            Operation::Read(id, handle) => {
                outcomes.push(Outcome::Read(*id, read(&entries, handle, sealer, now)?));
            }
            Operation::Take(id, handle) => {
                let end = remove(&mut entries, &mut ends, handle)?;
                outcomes.push(Outcome::Taken(*id, end.is_some_and(|end| now < end)));
            }
            Operation::Charge(charges) => {
                for (handle, usage) in charges {
                    if let Some(mut entry) = read(&entries, handle, sealer, now)? {
                        entry.usage = *usage;
                        add(&mut entries, &mut ends, handle, &entry, sealer)?;
                    }
                }
            }
            Operation::Remove(handle) => drop(remove(&mut entries, &mut ends, handle)?),
            Operation::Revoke(whom) => {
                revoke(&mut entries, &mut ends, whom.as_ref(), sealer)?;
            }
        }
    }
    Ok(outcomes)
}

fn add(
    entries: &mut Entries<'_>,
    ends: &mut Ends<'_>,
    handle: &Handle,
    entry: &Entry,
    sealer: &mut Sealer,
) -> Result<(), redb::Error> {
    remove(entries, ends, handle)?;
    let sealed = sealer.seal(handle, entry);
    entries.insert(handle.octets(), (entry.ends.0, sealed.as_slice()))?;
    ends.insert((entry.ends.0, *handle.octets()), ())?;
    Ok(())
}

/// Returns the entry, if the store has it, its key opens it, and it has not ended.
fn read(
    entries: &impl ReadableTable<[u8; 16], (u64, &'static [u8])>,
    handle: &Handle,
    sealer: &Sealer,
    now: UnixTime,
) -> Result<Option<Box<Entry>>, redb::Error> {
    let stored = entries.get(handle.octets())?;
    let entry = stored.and_then(|stored| {
        let (_, sealed) = stored.value();
        sealer.open(handle, sealed).ok()
    });
    Ok(entry.filter(|entry| now < entry.ends).map(Box::new))
}

/// Removes an entry, and returns its end.
fn remove(
    entries: &mut Entries<'_>,
    ends: &mut Ends<'_>,
    handle: &Handle,
) -> Result<Option<UnixTime>, redb::Error> {
    let end = entries
        .remove(handle.octets())?
        .map(|stored| stored.value().0);
    if let Some(end) = end {
        ends.remove((end, *handle.octets()))?;
    }
    Ok(end.map(UnixTime))
}

/// Removes entries that have ended, and those that end first if there are too many.
fn make_room(
    entries: &mut Entries<'_>,
    ends: &mut Ends<'_>,
    most: u64,
    now: UnixTime,
) -> Result<(), redb::Error> {
    use redb::ReadableTableMetadata;
    loop {
        let first = ends.first()?.map(|(key, _)| key.value());
        let Some((end, octets)) = first else {
            return Ok(());
        };
        if now.0 < end && entries.len()? < most {
            return Ok(());
        }
        remove(entries, ends, &Handle::from(octets))?;
    }
}

/// Removes the entries of an identity, or all. Of those that the key does not open nobody knows
/// whose they are, so they go too.
fn revoke(
    entries: &mut Entries<'_>,
    ends: &mut Ends<'_>,
    whom: Option<&Identity>,
    sealer: &Sealer,
) -> Result<(), redb::Error> {
    let mut meant = Vec::new();
    for stored in entries.iter()? {
        let (handle, value) = stored?;
        let handle = Handle::from(handle.value());
        let (_, sealed) = value.value();
        let entry = sealer.open(&handle, sealed);
        let other = |entry: Entry| whom.is_some_and(|whom| *whom != entry.identity);
        if !entry.is_ok_and(other) {
            meant.push(handle);
        }
    }
    for handle in meant {
        remove(entries, ends, &handle)?;
    }
    Ok(())
}

/// Reads the key beside a file of sessions, or creates both file and key.
fn open_key(file: &Path, rng: &mut Rng) -> Result<StoreKey, Error> {
    let mut name = file.as_os_str().to_owned();
    name.push(".key");
    let name = PathBuf::from(name);
    let failed = Doing::new("opening", &name, Content::Sessions);
    if let Some(folder) = file.parent().filter(|folder| !folder.is_dir()) {
        crate::make_folder(folder).map_err(|source| failed.io(source))?;
    }
    let mut opened = open_private(&name).map_err(|source| failed.io(source))?;
    crate::check_private(&opened, &name)?;
    // A vector that grows leaves copies of the secret behind.
    let mut secret = Vec::with_capacity(2 * StoreKey::LEN);
    let most = 2 * StoreKey::LEN as u64;
    let read = Read::by_ref(&mut opened)
        .take(most)
        .read_to_end(&mut secret);
    read.map_err(|source| failed.io(source))?;
    if secret.is_empty() {
        let length = fs::metadata(file).map_or(0, |metadata| metadata.len());
        if length > 0 {
            let (file, key) = (file.to_owned(), name);
            return Err(Error::KeyLost { file, key });
        }
        secret = rng.array::<{ StoreKey::LEN }>().to_vec();
        let written = opened.write_all(&secret).and_then(|()| opened.sync_all());
        written.map_err(|source| failed.io(source))?;
    }
    let key = StoreKey::new(Secret::new(secret));
    key.ok_or_else(|| failed.damaged(format!("it does not have {} octets", StoreKey::LEN)))
}
