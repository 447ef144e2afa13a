//! Pre-shared keys: files in the configuration's folder that only their owner may read.

use crate::encoded;
use crate::reader::Value;
use crate::strength;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Fewest octets of a key. An attacker that poses as the responder once can try keys offline (RFC
/// 7296 section 2.15 and its section 5), so a memorable password is too weak.
const SHORTEST: usize = 16;
/// Most octets that are read.
const LONGEST: usize = 1024;

const MAKE_ONE: &str = "make one with `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`";

const CORRECT_IT: &str = "correct them, or write the key's octets as `0x` and hexadecimal digits: no key in plain text begins with `0s` or `0x`, because most implementations decode what follows";

/// A pre-shared key of any kind: the file's octets without the line's end, or what they encode
/// behind `0s` or `0x`. Zeroised when dropped, never displayed.
#[derive(Clone, Default)]
pub struct Psk {
    octets: Zeroizing<Vec<u8>>,
    is_decoded: bool,
}

impl Psk {
    /// Returns the key's octets.
    pub fn expose(&self) -> &[u8] {
        &self.octets
    }

    /// Returns true if the file encodes the key behind `0s` or `0x`.
    pub const fn is_decoded(&self) -> bool {
        self.is_decoded
    }
}

impl PartialEq for Psk {
    fn eq(&self, other: &Self) -> bool {
        self.octets == other.octets
    }
}

impl Eq for Psk {}

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Psk({} octets)", self.octets.len())
    }
}

/// The reason that a file holds no usable secret.
#[derive(Debug)]
enum Unusable {
    Missing,
    Unreadable(io::Error),
    NotAFile,
    Exposed(u32),
}

/// Reads the pre-shared key whose file a value names.
pub(crate) fn psk(value: &Value<'_>) -> Option<Psk> {
    key(value, weakness)
}

/// Returns the reason to refuse a key that is too short or easy to guess.
pub(crate) fn weakness(octets: &[u8]) -> Option<String> {
    let length = octets.len();
    let short = (length < SHORTEST).then(|| {
        format!("the key has {length} octets, fewer than {SHORTEST}: it could be guessed offline")
    });
    short.or_else(|| plainness(octets))
}

/// Returns the reason to refuse a key of sufficient length that is easy to guess.
pub(crate) fn plainness(octets: &[u8]) -> Option<String> {
    let (bits, least) = (strength::bits(octets), strength::LEAST);
    (bits < least).then(|| {
        format!(
            "the key has about {bits:.0} bits of entropy, fewer than {least}: its words, rows or repetitions could be guessed offline"
        )
    })
}

/// Reads the key whose file a value names, unless `weakness` returns a reason to refuse it.
pub(crate) fn key(
    value: &Value<'_>,
    weakness: impl FnOnce(&[u8]) -> Option<String>,
) -> Option<Psk> {
    let mut octets = secret(value, LONGEST, MAKE_ONE)?;
    for end in [b'\n', b'\r'] {
        if octets.last() == Some(&end) {
            octets.pop();
        }
    }
    if octets.len() > LONGEST {
        let problem = format!("the key has more than {LONGEST} octets");
        return value.fault(problem, MAKE_ONE);
    }
    let secret = match encoded::decode(octets) {
        Ok(secret) => secret,
        Err(problem) => return value.fault(problem, CORRECT_IT),
    };
    match weakness(&secret.octets) {
        None => Some(Psk {
            octets: secret.octets,
            is_decoded: secret.is_decoded,
        }),
        Some(problem) => value.fault(problem, MAKE_ONE),
    }
}

/// Reads the file that a value names, which only its owner may use; at most a few octets more than
/// the longest. Messages never include the value itself: it may be the secret, written here by
/// mistake.
pub(crate) fn secret(
    value: &Value<'_>,
    longest: usize,
    make_one: &str,
) -> Option<Zeroizing<Vec<u8>>> {
    value.accepts(|| "file, mode 0600".to_owned());
    let directory = &value.context.directory;
    let name = value.text()?;
    let (problem, fix) = match read(&directory.join(name), longest) {
        Ok(octets) => return Some(octets),
        Err(Unusable::Missing) => (
            format!("there is no such file in {}", shown(directory)),
            format!("name a file, never the key itself; {make_one}"),
        ),
        Err(Unusable::Unreadable(error)) => (
            format!("cannot read the file: {error}"),
            "run as the user that owns the file".to_owned(),
        ),
        Err(Unusable::NotAFile) => (
            "this is not a regular file".to_owned(),
            format!("name a file; {make_one}"),
        ),
        Err(Unusable::Exposed(mode)) => (
            format!("the file is accessible to users other than its owner (mode {mode:04o})"),
            "run `chmod 0600` on the file, and replace the key if others had access".to_owned(),
        ),
    };
    value.fault(problem, fix)
}

/// Returns a folder for people. That of a file in the working directory has no name.
fn shown(directory: &Path) -> std::path::Display<'_> {
    match directory.as_os_str().is_empty() {
        true => Path::new("the working directory").display(),
        false => directory.display(),
    }
}

fn read(path: &Path, longest: usize) -> Result<Zeroizing<Vec<u8>>, Unusable> {
    // The metadata is checked before the file is opened: opening a FIFO would wait for a writer.
    let metadata = path.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Unusable::NotAFile);
    }
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Unusable::Exposed(mode));
    }
    // Allocated at full size: a growing buffer would leave copies behind that are never zeroised.
    let mut octets = Zeroizing::new(Vec::with_capacity(longest + 3));
    file.take(longest as u64 + 3)
        .read_to_end(&mut octets)
        .map_err(unreadable)?;
    // Without the room that the key did not need: each of many peers has one.
    Ok(Zeroizing::new(octets.to_vec()))
}

fn unreadable(error: io::Error) -> Unusable {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            Unusable::Missing
        }
        _ => Unusable::Unreadable(error),
    }
}
