//! A network on one machine: hosts are network namespaces, made and held by file descriptors.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use lab::testbed::{self, Testbed};
//! use lab::wire;
//!
//! testbed::enter()?; // first thing in main: we are root here from now on
//! let bed = Testbed::new("two")?;
//! let alice = bed.host("alice")?;
//! let bob = bed.host("bob")?;
//! wire::veth(alice.end("eth0", &["10.0.0.1/24"]), bob.end("eth0", &["10.0.0.2/24"]))?;
//! alice.run("ping -c 1 10.0.0.2")?;
//! # Ok(())
//! # }
//! ```
//!
//! A testbed owns a temporary directory with a folder per host for configurations and logs. The
//! directory is removed with the testbed, unless a test panicked or [`Testbed::keep`] was called.

use crate::host::Host;
use crate::obstacle::Obstacle;
use crate::process;
use anyhow::{Context, Result, ensure};
use os::{Tun, netns};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Attempts to remove a folder into which other processes still write.
const REMOVALS: usize = 1000;

/// Time that child processes get to stop.
const STOP: Duration = Duration::from_secs(10);

/// Makes this process root in its own network and mount namespaces, where changes to devices and
/// routes affect no other process. Call it first in `main`: an ordinary user also needs a user
/// namespace, which the kernel grants only to a process with a single thread.
///
/// # Errors
/// The kernel refuses namespaces, or `/dev/net/tun` cannot be used; the message says what to do.
pub fn enter() -> Result<(), Obstacle> {
    netns::become_root_in_user_namespace()?;
    // Opens an unused device, to fail now rather than much later.
    Tun::open("probe", 1500).map(drop)?;
    Ok(())
}

/// Finds a command of the system. It also searches the directories for administrators, which the
/// `PATH` of an ordinary user lacks.
///
/// # Errors
/// The command is missing; the message names the Debian package to install.
pub fn find_command(name: &str, package: &str) -> Result<PathBuf, Obstacle> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            let fix = format!("run `sudo apt-get install {package}`");
            Obstacle::new(format!("{name} is missing"), fix)
        })
}

/// Finds a program of this workspace: in `$STRATA_BIN_DIR`, or in the folder of this executable
/// (for a test, one folder up).
///
/// # Errors
/// The program has not been built.
pub fn find_binary(name: &str) -> Result<PathBuf, Obstacle> {
    let named = std::env::var_os("STRATA_BIN_DIR").map(PathBuf::from);
    let executable = std::env::current_exe().unwrap_or_default();
    let beside = executable.ancestors().skip(1).take(2).map(Path::to_owned);
    named
        .into_iter()
        .chain(beside)
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            let fix = "run `cargo build --workspace --bins`, or set STRATA_BIN_DIR to its folder";
            Obstacle::new(format!("{name} is not built"), fix)
        })
}

/// True if this process is about to end, after which no testbed or process starts any more.
static ENDING: Mutex<bool> = Mutex::new(false);

/// Keeps this process from ending while a testbed or process starts.
///
/// # Errors
/// [`remove_all`] was called.
pub(crate) fn beginning() -> Result<MutexGuard<'static, bool>> {
    let ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(!*ending, "the process is about to end");
    Ok(ending)
}

/// Removes the temporary directories of this process's testbeds, for a process that ends without
/// dropping them. No new testbed can be made afterwards.
pub fn remove_all() {
    *ENDING.lock().unwrap_or_else(PoisonError::into_inner) = true;
    // A running daemon creates missing folders for its files, parents included. A daemon that does
    // not stop is killed at our end, and may have created them again by then.
    let _ = process::stop_children(STOP);
    remove_of(std::process::id());
}

/// Removes the temporary directories of the testbeds of a process.
pub(crate) fn remove_of(process: u32) {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
    let ours = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let parts: Vec<_> = name.to_str().unwrap_or_default().split('-').collect();
        matches!(parts[..], ["strata", .., pid, _] if pid == process.to_string())
    });
    for entry in ours {
        // A running process may put a file into a folder that was just emptied, but not into a
        // removed one: this loop ends.
        let gone = || fs::remove_dir_all(entry.path()).is_ok() || !entry.path().exists();
        let _ = (0..REMOVALS).any(|_| gone());
    }
}

/// A temporary directory and the hosts that keep their files in it.
pub struct Testbed {
    directory: PathBuf,
    keep: AtomicBool,
}

impl Testbed {
    /// Creates a testbed; `name` becomes part of its directory's name.
    ///
    /// # Errors
    /// The directory cannot be made, or [`remove_all`] was called.
    pub fn new(name: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unique = format!("strata-{name}-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(unique);
        let beginning = beginning()?;
        // The directory holds secrets, and another user must not be able to place files here first.
        DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        drop(beginning);
        let keep = AtomicBool::new(false);
        Ok(Self { directory, keep })
    }

    /// Returns the temporary directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Keeps the directory for inspection when the testbed is dropped.
    pub fn keep(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    /// Creates a host with nothing but a loopback device.
    ///
    /// # Errors
    /// The kernel refuses a namespace.
    pub fn host(&self, name: &str) -> Result<Host> {
        let directory = self.directory.join(name);
        fs::create_dir(&directory)?;
        Host::new(name, directory).with_context(|| format!("cannot make the host {name}"))
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // Tests are built to unwind. A panic of a released program ends it, and keeps the logs.
        if self.keep.load(Ordering::Relaxed) || std::thread::panicking() {
            eprintln!("logs are in {}", self.directory.display());
        } else {
            // Leftovers are removed when the system cleans its temporary files.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}
