//! The sessions that peers may resume, in a file of their own.
//!
//! The entries are encrypted (`resumption::Sealer`) with a key in a second file, so that a copy of
//! the first one opens nothing. A batch of operations is one transaction. Its outcomes are known
//! once it is on disk: an entry that is taken stays so, whatever happens to process and machine.
//!
//! Of tickets by value, the file has those that are void. Their keys are in a third file
//! (`ticket_keys.rs`).

use crate::database::DatabaseFile;
use crate::error::{Content, Doing, Error};
use crate::record::{self, OwnedKey};
use crate::{open_private, ticket_keys};
use crypto::{Rng, Secret, UnixTime};
use model::Identity;
use redb::{ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction};
use resumption::{
    Entry, Handle, Kept, Operation, Outcome, ReferenceKey, Sealer, StoreKey, Strategy, Ticket,
    TicketKeys, Usage,
};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Version of the format that this release writes.
const VERSION: u64 = 1;

/// Cache size in octets: 50,000 entries of 100 octets.
const CACHE: usize = 5 << 20;

const FORMAT: TableDefinition<'_, &str, u64> = TableDefinition::new("format");
/// Sealed entries by handle, each with its end.
const ENTRIES: TableDefinition<'_, [u8; 16], (u64, &[u8])> = TableDefinition::new("entries");
/// Handles by the ends of their entries.
const ENDS: TableDefinition<'_, (u64, [u8; 16]), ()> = TableDefinition::new("ends");
/// The same for tickets by value that are void: handles, and handles by ends.
const VOID: TableDefinition<'_, [u8; 16], u64> = TableDefinition::new("void");
const VOID_ENDS: TableDefinition<'_, (u64, [u8; 16]), ()> = TableDefinition::new("ends of void");
/// Times of the last revocation, by identity, and of that of everybody ([`EVERYBODY`]).
const REVOKED: TableDefinition<'_, record::Key<'static>, u64> = TableDefinition::new("revoked");
/// No type of an identity is 0.
const EVERYBODY: record::Key<'static> = ("", 0, &[]);
/// The latest end of the tickets whose marks are forgotten.
const FORGOTTEN: record::Key<'static> = ("", 0, b"forgotten");

/// An open file of sessions. No other process can open it at the same time.
pub struct Sessions {
    path: PathBuf,
    file: DatabaseFile,
    key: StoreKey,
    sealer: Sealer,
    /// Most entries. Without room, the entry goes that ends first.
    most: u64,
}

/// A reader of a file of sessions.
pub struct Reader {
    file: DatabaseFile,
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

/// An opened file.
pub struct Opened {
    /// The file.
    pub sessions: Sessions,
    /// Key of the references that name its entries.
    pub references: ReferenceKey,
    /// Keys of the tickets by value.
    pub tickets: TicketKeys,
}

/// A table of a write transaction.
type Entries<'t> = Table<'t, [u8; 16], (u64, &'static [u8])>;
type Ends<'t> = Table<'t, (u64, [u8; 16]), ()>;

impl Sessions {
    /// Opens the file and its keys, or creates them. `seed` is fresh randomness.
    pub fn open(path: &Path, most: u64, seed: [u8; 32]) -> Result<Opened, Error> {
        let mut rng = Rng::from_seed(seed);
        let key = open_key(path, &mut rng)?;
        let sessions = Self {
            path: path.to_owned(),
            file: DatabaseFile::open(path, Content::Sessions, CACHE)?,
            sealer: key.sealer(rng),
            key: key.clone(),
            most,
        };
        sessions.establish_version()?;
        Ok(Opened {
            sessions,
            references: key.references(),
            tickets: ticket_keys::read(path)?,
        })
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
            Operation::Read(id, ticket) => Some((*id, ticket)),
            _ => None,
        });
        let reads: Option<Vec<_>> = reads.collect();
        let (most, sealer) = (self.most, &mut self.sealer);
        let outcomes = self.file.with("writing", |database| {
            if let Some(reads) = reads {
                let transaction = database.begin_read()?;
                let entries = transaction.open_table(ENTRIES)?;
                let void = transaction.open_table(VOID)?;
                let revoked = transaction.open_table(REVOKED)?;
                let outcomes = reads.into_iter().map(|(id, ticket)| {
                    let entry = look_up(&entries, &void, &revoked, ticket, sealer, now)?;
                    Ok(Outcome::Read(id, entry))
                });
                return outcomes.collect();
            }
            let transaction = database.begin_write()?;
            let outcomes = perform(&transaction, operations, most, sealer, now)?;
            transaction.commit()?;
            Ok(outcomes)
        })?;
        let newest = operations
            .iter()
            .rev()
            .find_map(|operation| match operation {
                Operation::Keep(keys) => Some(keys),
                _ => None,
            });
        newest.map_or(Ok(()), |keys| ticket_keys::write(&self.path, keys))?;
        Ok(outcomes)
    }

    /// Returns a reader of the file, for another thread.
    pub fn reader(&self) -> Reader {
        Reader {
            file: self.file.clone(),
            // A reader seals nothing.
            sealer: self.key.sealer(Rng::from_seed([0; 32])),
        }
    }

    fn establish_version(&self) -> Result<(), Error> {
        let found = self.file.with("opening", |database| {
            let transaction = database.begin_write()?;
            let is_new = transaction.list_tables()?.next().is_none();
            let mut format = transaction.open_table(FORMAT)?;
            let found = format.get("sessions")?.map(|version| version.value());
            let found = found.or(is_new.then_some(VERSION));
            if is_new {
                format.insert("sessions", VERSION)?;
            }
            if found == Some(VERSION) {
                transaction.open_table(ENTRIES)?;
                transaction.open_table(ENDS)?;
                VoidTables::open(&transaction)?;
            }
            drop(format);
            transaction.commit()?;
            Ok(found)
        })?;
        let failed = Doing::new("opening", &self.path, Content::Sessions);
        match found {
            Some(VERSION) => Ok(()),
            Some(found) => Err(failed.of_version(found)),
            None => Err(failed.damaged("it has something else".to_owned())),
        }
    }
}

impl Reader {
    /// Returns all entries that the key opens.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        self.file.with("reading", |database| {
            let table = database.begin_read()?.open_table(ENTRIES)?;
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
        })
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
    let mut void = VoidTables::open(transaction)?;
    let mut outcomes = Vec::new();
    for operation in operations {
        match operation {
            Operation::Add(kept) => {
                make_room(&mut entries, &mut ends, most, now)?;
                let (handle, entry) = (&kept.handle, &kept.entry);
                add(&mut entries, &mut ends, handle, entry, sealer)?;
            }
            Operation::Read(id, ticket) => {
                let entry = look_up(&entries, &void.handles, &void.revoked, ticket, sealer, now)?;
                outcomes.push(Outcome::Read(*id, entry));
            }
            Operation::Take(id, Ticket::Reference(handle)) => {
                let end = remove(&mut entries, &mut ends, handle)?;
                outcomes.push(Outcome::Taken(*id, end.is_some_and(|end| now < end)));
            }
            Operation::Take(id, Ticket::Value(kept)) => {
                let is_good = !is_void(&void.handles, &void.revoked, kept, now)?
                    && void.add(&kept.handle, kept.entry.ends, most, now)?;
                outcomes.push(Outcome::Taken(*id, is_good));
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
            Operation::Void(handle, ends) => drop(void.add(handle, *ends, most, now)?),
            // It has a file of its own, once this is written.
            Operation::Keep(_) => {}
            Operation::Revoke(whom) => {
                void.revoke(whom.as_ref(), now)?;
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

/// Returns the entry of a ticket, if it is good.
fn look_up(
    entries: &impl ReadableTable<[u8; 16], (u64, &'static [u8])>,
    void: &impl ReadableTable<[u8; 16], u64>,
    revoked: &impl ReadableTable<record::Key<'static>, u64>,
    ticket: &Ticket,
    sealer: &Sealer,
    now: UnixTime,
) -> Result<Option<Box<Entry>>, redb::Error> {
    match ticket {
        Ticket::Reference(handle) => read(entries, handle, sealer, now),
        Ticket::Value(kept) => {
            let is_good = !is_void(void, revoked, kept, now)?;
            Ok(is_good.then(|| Box::new(kept.entry.clone())))
        }
    }
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

/// The tables of tickets by value that are void. Their rules are those of `resumption::Memory`.
struct VoidTables<'t> {
    handles: Table<'t, [u8; 16], u64>,
    ends: Ends<'t>,
    revoked: Table<'t, record::Key<'static>, u64>,
}

impl<'t> VoidTables<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            handles: transaction.open_table(VOID)?,
            ends: transaction.open_table(VOID_ENDS)?,
            revoked: transaction.open_table(REVOKED)?,
        })
    }

    /// Voids a ticket. Returns false if there was no room, which voids those of everybody.
    fn add(
        &mut self,
        handle: &Handle,
        ends: UnixTime,
        most: u64,
        now: UnixTime,
    ) -> Result<bool, redb::Error> {
        use redb::ReadableTableMetadata;
        loop {
            let first = self.ends.first()?.map(|(key, _)| key.value());
            let Some((end, ended)) = first.filter(|(end, _)| *end <= now.0) else {
                break;
            };
            self.ends.remove((end, ended))?;
            self.handles.remove(ended)?;
            self.raise(FORGOTTEN, end)?;
        }
        let octets = handle.octets();
        let known = self.handles.get(octets)?.map(|end| end.value());
        if known.is_none() && self.handles.len()? >= most {
            self.revoke(None, now)?;
            return Ok(false);
        }
        if known.is_none_or(|known| known < ends.0) {
            if let Some(known) = known {
                self.ends.remove((known, *octets))?;
            }
            self.handles.insert(octets, ends.0)?;
            self.ends.insert((ends.0, *octets), ())?;
        }
        Ok(true)
    }

    fn revoke(&mut self, whom: Option<&Identity>, now: UnixTime) -> Result<(), redb::Error> {
        match whom {
            Some(whom) => {
                let mut forgotten = None;
                self.revoked.retain(|key, revoked| {
                    let end = Strategy::latest_end(UnixTime(revoked));
                    let stays = [EVERYBODY, FORGOTTEN].contains(&key) || now <= end;
                    if !stays {
                        forgotten = forgotten.max(Some(end.0));
                    }
                    stays
                })?;
                forgotten.map_or(Ok(()), |end| self.raise(FORGOTTEN, end))?;
                self.raise(OwnedKey::new("", whom).lent(), now.0)
            }
            None => {
                self.handles.retain(|_, _| false)?;
                self.ends.retain(|_, ()| false)?;
                let mut latest = now.0;
                self.revoked.retain(|key, revoked| {
                    let is_mark = key == FORGOTTEN;
                    latest = if is_mark { latest } else { latest.max(revoked) };
                    is_mark
                })?;
                self.raise(EVERYBODY, latest)
            }
        }
    }

    /// Sets a time, unless a later one is there.
    fn raise(&mut self, key: record::Key<'_>, time: u64) -> Result<(), redb::Error> {
        let known = self.revoked.get(key)?.map(|known| known.value());
        if known.is_none_or(|known| known < time) {
            self.revoked.insert(key, time)?;
        }
        Ok(())
    }
}

/// Returns true if a ticket by value is good for nothing.
fn is_void(
    void: &impl ReadableTable<[u8; 16], u64>,
    revoked: &impl ReadableTable<record::Key<'static>, u64>,
    kept: &Kept,
    now: UnixTime,
) -> Result<bool, redb::Error> {
    let entry = &kept.entry;
    let own = OwnedKey::new("", &entry.identity);
    for key in [EVERYBODY, own.lent()] {
        let is_revoked = revoked.get(key)?.map(|revoked| revoked.value());
        if is_revoked.is_some_and(|revoked| entry.usage.since.0 <= revoked) {
            return Ok(true);
        }
    }
    let forgotten = revoked.get(FORGOTTEN)?.map(|end| UnixTime(end.value()));
    let has_ended = entry.ends <= forgotten.map_or(now, |end| end.max(now));
    Ok(has_ended || void.get(kept.handle.octets())?.is_some())
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
