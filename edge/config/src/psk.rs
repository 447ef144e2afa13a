//! Pre-shared keys: files beside the configuration that nobody else may read.

use crate::reader::Value;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Fewest octets of a key. Whoever plays the responder once can try keys offline (RFC 7296 section
/// 2.15 and its section 5), so what a person can remember is too little.
const SHORTEST: usize = 16;
/// Most octets that are read.
const LONGEST: usize = 1024;

const MAKE_ONE: &str = "make one with `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`";

/// A pre-shared key: the file's octets without the line's end. Zeroised when dropped, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Psk(Zeroizing<Vec<u8>>);

impl Psk {
    /// The key's octets, at least 16.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Psk({} octets)", self.0.len())
    }
}

/// Why a file is no key.
#[derive(Debug)]
enum Unusable {
    Missing,
    Unreadable(io::Error),
    NotAFile,
    Exposed(u32),
    Short(usize),
    Long,
}

/// Reads the key whose file a value names. The value itself never gets into a message: it may be
/// the secret, written here by mistake.
pub(crate) fn psk(value: &Value<'_>) -> Option<Psk> {
    let directory = &value.context.directory;
    let name = value.text()?;
    let (problem, fix) = match read(&directory.join(name)) {
        Ok(psk) => return Some(psk),
        Err(Unusable::Missing) => (
            format!("there is no such file in {}", directory.display()),
            format!("name a file, never the key itself; {MAKE_ONE}"),
        ),
        Err(Unusable::Unreadable(error)) => (
            format!("cannot read the file: {error}"),
            "run as the user that owns it".to_owned(),
        ),
        Err(Unusable::NotAFile) => (
            "this is not a regular file".to_owned(),
            format!("name a file; {MAKE_ONE}"),
        ),
        Err(Unusable::Exposed(mode)) => (
            format!("others than its owner may use the file (mode {mode:04o})"),
            "chmod 0600 it, and replace the key if others had access".to_owned(),
        ),
        Err(Unusable::Short(octets)) => (
            format!(
                "the key has {octets} octets, fewer than {SHORTEST}: it could be guessed offline"
            ),
            MAKE_ONE.to_owned(),
        ),
        Err(Unusable::Long) => (
            format!("the key has more than {LONGEST} octets"),
            MAKE_ONE.to_owned(),
        ),
    };
    value.fault(problem, fix)
}

fn read(path: &Path) -> Result<Psk, Unusable> {
    // Looked at before it is opened: opening a FIFO would wait for a writer.
    let metadata = path.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Unusable::NotAFile);
    }
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Unusable::Exposed(mode));
    }
    // All the room at once: growing would leave copies behind that nobody zeroises.
    let mut octets = Zeroizing::new(Vec::with_capacity(LONGEST + 3));
    file.take(LONGEST as u64 + 3)
        .read_to_end(&mut octets)
        .map_err(unreadable)?;
    for end in [b'\n', b'\r'] {
        if octets.last() == Some(&end) {
            octets.pop();
        }
    }
    match octets.len() {
        ..SHORTEST => Err(Unusable::Short(octets.len())),
        SHORTEST..=LONGEST => Ok(Psk(octets)),
        _ => Err(Unusable::Long),
    }
}

fn unreadable(error: io::Error) -> Unusable {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            Unusable::Missing
        }
        _ => Unusable::Unreadable(error),
    }
}
