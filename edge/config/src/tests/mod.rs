//! A folder with a configuration and its keys.

mod addresses;
mod certificates;
mod children;
mod diff;
mod domain;
mod esn;
mod examples;
mod faults;
mod handover;
mod level;
mod live_paths;
mod machine;
mod mobility;
mod mode;
mod names;
mod reference;
mod traffic;
mod unencrypted;
mod users;
mod workers;
mod zones;

pub(crate) use reference::Schema;

use crate::{Config, Error, Fault, Faults, load};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The shortest valid configuration with one peer.
const OFFICE: &str = r#"[node]
id = "alice@example.net"
[peer.office]
address = "192.0.2.1"
id = "gw.example.net"
psk = "office.psk"
local = ["10.1.0.2/32"]
remote = ["10.8.0.0/16"]
"#;

/// Returns octets of an alphabet, in an order without rows and repetitions.
pub(crate) fn varied(alphabet: &[u8], length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        alphabet[(state >> 16) as usize % alphabet.len()]
    };
    (0..length).map(|_| next()).collect()
}

/// The folder of one test, removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    /// Makes a folder with good keys for every name that the examples use.
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("strata-config-{}-{unique}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        for name in ["office.psk", "alice.psk", "fa.psk", "gw.psk", "home.key"] {
            folder.key(name, b"9f86d081884c7d659a2feaa0c55ad015\n", 0o600);
        }
        folder
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn key(&self, name: &str, octets: &[u8], mode: u32) {
        let path = self.0.join(name);
        fs::write(&path, octets).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn load(&self, text: &str) -> Result<Config, Error> {
        let file = self.0.join("strata.toml");
        fs::write(&file, text).unwrap();
        load(&file)
    }

    fn faults(&self, text: &str) -> Faults {
        match self.load(text) {
            Err(Error::Invalid(faults)) => faults,
            other => panic!("expected faults, not {other:?}"),
        }
    }

    /// Returns faults as `line:column key | problem | fix`.
    fn lines(&self, text: &str) -> Vec<String> {
        let faults = self.faults(text).faults.into_iter();
        let line = |f: Fault| {
            format!(
                "{}:{} {} | {} | {}",
                f.line, f.column, f.key, f.problem, f.fix
            )
        };
        faults.map(line).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
