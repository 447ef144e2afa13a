//! The number of this start of the node.
//!
//! A file beside the socket of the API holds the number of the last start, and a secret. Both show
//! peers that this process was killed and started again ([`Incarnation`]). The file outlives
//! `kill -9`, but not the machine: a runtime folder is in memory. A daemon that ends in order
//! removes it, as it deletes all IKE SAs.
//!
//! ```text
//! number, 4 octets | secret, 32 octets
//! ```

use config::Config;
use crypto::Secret;
use node::Incarnation;
use os::entropy;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const SECRET_LEN: usize = 32;

/// The file of one daemon, which is removed with this.
pub struct Start {
    file: PathBuf,
}

impl Start {
    /// Counts this start. `None`, with a warning, if the file cannot be written: peers then find
    /// out by other means that this process was killed.
    pub fn count(config: &Config) -> Option<(Self, Incarnation)> {
        if !config.sessions.crash_tokens {
            return None;
        }
        let file = config.socket.with_extension("start");
        match count(&file) {
            Ok(incarnation) => Some((Self { file }, incarnation)),
            Err(error) => {
                tracing::warn!(
                    "cannot write {}: {error}; if stratad is killed, peers notice later\n  fix: make \
                     the folder writable, or set `crash_tokens = false` in [sessions]",
                    file.display()
                );
                None
            }
        }
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// Writes the next number to the file, with the secret that is there or a new one.
fn count(file: &Path) -> io::Result<Incarnation> {
    let (last, secret) = fs::read(file)
        .ok()
        .and_then(|octets| read(&octets))
        .unwrap_or_else(|| (0, entropy::seed().to_vec()));
    let number = last.wrapping_add(1);
    let new = file.with_extension("start.new");
    let _ = fs::remove_file(&new);
    let mut options = OpenOptions::new();
    let mut written = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    written.write_all(&number.to_be_bytes())?;
    written.write_all(&secret)?;
    fs::rename(&new, file)?;
    Ok(Incarnation::new(Secret::new(secret), number))
}

/// Returns the last number and the secret, unless the file is damaged.
fn read(octets: &[u8]) -> Option<(u32, Vec<u8>)> {
    let (number, secret) = octets.split_first_chunk::<4>()?;
    (secret.len() == SECRET_LEN).then(|| (u32::from_be_bytes(*number), secret.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn written(file: &Path) -> (u32, Vec<u8>) {
        read(&fs::read(file).unwrap()).unwrap()
    }

    #[test]
    fn each_start_has_the_next_number_and_the_same_secret() {
        let folder = std::env::temp_dir().join(format!("strata-start-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("strata.start");
        count(&file).unwrap();
        let (first, secret) = written(&file);
        count(&file).unwrap();
        assert_eq!(written(&file), (first + 1, secret.clone()));
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // A damaged file is none.
        fs::write(&file, b"short").unwrap();
        count(&file).unwrap();
        let (number, another) = written(&file);
        assert_eq!(number, 1);
        assert_ne!(another, secret);
        drop(Start { file: file.clone() });
        assert!(!file.exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(count(Path::new("/nowhere/strata.start")).is_err());
    }
}
