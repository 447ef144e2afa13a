//! The keys of tickets by value, in a file of their own beside that of the sessions.
//!
//! ```text
//! for each key: hour (4) | key (32)
//! ```
//!
//! They are written over earlier ones, and zeros over the rest: the file has what opens the tickets
//! that are still good, and nothing that opens earlier ones. `redb` would leave that in its free
//! pages.

use crate::error::{Content, Doing, Error};
use crate::{check_private, open_private};
use crypto::Secret;
use resumption::TicketKeys;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Length of an hour with its key.
const LEN: usize = 4 + TicketKeys::LEN;

/// Largest file that is read, far more than the keys of the longest lifetime.
const MOST: u64 = 1 << 16;

/// Reads the keys beside a file of sessions. What is no key counts as none: its tickets are
/// refused, and their peers begin in full.
pub fn read(sessions: &Path) -> Result<TicketKeys, Error> {
    let file = beside(sessions);
    if !file.exists() {
        return Ok(TicketKeys::default());
    }
    let failed = Doing::new("opening", &file, Content::Sessions);
    let opened = open_private(&file).map_err(|source| failed.io(source))?;
    check_private(&opened, &file)?;
    let octets = content(&opened).map_err(|source| failed.io(source))?;
    let (keys, _) = octets.expose().as_chunks::<LEN>();
    let keys = keys.iter().filter_map(|key| {
        let (hour, key) = key.split_first_chunk()?;
        let hour = u32::from_be_bytes(*hour);
        (hour > 0).then(|| (hour, Secret::new(key.to_vec())))
    });
    Ok(TicketKeys::restored(keys))
}

/// Writes keys over earlier ones. They are on disk when this returns.
pub fn write(sessions: &Path, keys: &TicketKeys) -> Result<(), Error> {
    let file = beside(sessions);
    let failed = Doing::new("writing", &file, Content::Sessions);
    let write = || -> std::io::Result<()> {
        let opened = open_private(&file)?;
        let before = usize::try_from(opened.metadata()?.len()).unwrap_or(usize::MAX);
        let length = before.clamp(LEN * keys.iter().count(), MOST as usize);
        // A vector that grows leaves copies of the secrets behind.
        let mut octets = Vec::with_capacity(length);
        for (hour, key) in keys.iter() {
            octets.extend(hour.to_be_bytes());
            octets.extend(key.expose());
        }
        octets.resize(length, 0);
        opened.write_all_at(Secret::new(octets).expose(), 0)?;
        opened.sync_all()
    };
    write().map_err(|source| failed.io(source))
}

fn content(file: &File) -> std::io::Result<Secret> {
    let length = usize::try_from(file.metadata()?.len().min(MOST)).unwrap_or_default();
    let mut octets = Vec::with_capacity(length + 1);
    let mut limited = file.take(MOST);
    limited.read_to_end(&mut octets)?;
    Ok(Secret::new(octets))
}

fn beside(sessions: &Path) -> PathBuf {
    let mut name = sessions.as_os_str().to_owned();
    name.push(".tickets");
    PathBuf::from(name)
}
