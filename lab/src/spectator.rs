//! Demos from outside, as people run them: their leftovers, and their messages when they cannot
//! run.

use crate::process::until;
use crate::testbed::{find_binary, find_command};
use anyhow::{Context, Result, bail, ensure};
use nix::unistd::Pid;
use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Shell lines that forbid new user namespaces and drop all capabilities.
pub const FORBID: &str = "echo 0 >/proc/sys/user/max_user_namespaces
                          set -- setpriv --inh-caps=-all --bounding-set=-all \"$@\"";

/// Runs a demo (`demo` and more words) after a shell has removed a right or resource. Returns the
/// error output.
///
/// # Errors
/// The demo is not refused (exit status 2).
pub fn refused(words: &str, namespaces: &[&str], take_away: &str) -> Result<String> {
    let mut command = Command::new(find_command("unshare", "util-linux")?);
    command.args(namespaces).args(["sh", "-ec"]);
    command.arg(format!("{take_away}\nexec \"$@\"")).arg("sh");
    command.arg(find_binary("strata-lab")?);
    command.args(words.split_whitespace());
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(2), "{}: {said}", output.status);
    Ok(said)
}

/// Returns `strata-lab` as a command of an ordinary user. For such a user it is the program as it
/// is; for root, it runs as one without rights, from copies of the programs in this folder, because
/// the build folder may be inaccessible to other users.
///
/// # Errors
/// A program is not built, or cannot be copied.
pub fn as_ordinary_user(folder: &Folder) -> Result<Command> {
    let lab = find_binary("strata-lab")?;
    if !is_root()? {
        return Ok(Command::new(lab));
    }
    for program in [&lab, &find_binary("strata")?, &find_binary("stratad")?] {
        let name = program.file_name().context("a program has a name")?;
        fs::copy(program, folder.path.join(name))?;
    }
    let mut command = Command::new(find_command("setpriv", "util-linux")?);
    let words = "--reuid=nobody --regid=nogroup --clear-groups --no-new-privs";
    command.args(words.split(' '));
    command.arg(folder.path.join("strata-lab"));
    Ok(command)
}

/// Returns true for root of the machine, not of an ordinary user's namespace.
fn is_root() -> Result<bool> {
    let map = fs::read_to_string("/proc/self/uid_map")?;
    Ok(map.split_whitespace().eq(["0", "0", "4294967295"]))
}

/// A folder that any user may use, and a mark on the processes that got it as their `TMPDIR`. These
/// processes, their namespaces and their files are all that a run could leave behind.
pub struct Folder {
    /// Path of the folder.
    pub path: PathBuf,
}

impl Folder {
    /// Creates a folder; `name` becomes part of its name.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(name: &str) -> Result<Self> {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let path = PathBuf::from(format!("/tmp/lab-demo-{process}-{name}-{number}"));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o1777))?;
        Ok(Self { path })
    }

    /// Waits until at least `number` marked processes run, and returns their number.
    ///
    /// # Errors
    /// The demo has ended, or the processes do not start in time.
    pub fn wait_for_processes(&self, number: usize, demo: &mut Child) -> Result<usize> {
        until("the demo's processes", Duration::from_secs(60), || {
            ensure!(demo.try_wait()?.is_none(), "the demo has ended");
            let found = self.processes()?.len();
            Ok((found >= number).then_some(found))
        })
    }

    /// Returns the processes and files that are left.
    ///
    /// # Errors
    /// `/proc` or the folder cannot be read.
    pub fn left(&self) -> Result<Vec<String>> {
        let mut left = self.processes()?;
        for entry in fs::read_dir(&self.path)? {
            left.push(entry?.path().display().to_string());
        }
        Ok(left)
    }

    /// Returns the command lines of the marked processes.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn processes(&self) -> Result<Vec<String>> {
        let found = self.find()?;
        Ok(found.into_iter().map(|(_, line)| line).collect())
    }

    /// Returns the process whose command line contains `words`.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn process(&self, words: &str) -> Result<Pid> {
        let mut found = self.find()?;
        found.retain(|(_, line)| line.contains(words));
        match found[..] {
            [(process, _)] => Ok(process),
            _ => bail!("{words:?} is in {found:?}"),
        }
    }

    fn find(&self) -> Result<Vec<(Pid, String)>> {
        let mark = format!("TMPDIR={}\0", self.path.display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let entry = entry?;
            let process = entry.path();
            // Not a process, already gone, or another user's.
            let Ok(environment) = fs::read(process.join("environ")) else {
                continue;
            };
            if String::from_utf8_lossy(&environment).contains(&mark) {
                let line = fs::read(process.join("cmdline")).unwrap_or_default();
                let number = entry.file_name().to_string_lossy().parse()?;
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                found.push((Pid::from_raw(number), line));
            }
        }
        Ok(found)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The leftovers of a failed test stay for inspection.
        let _ = fs::remove_dir_all(&self.path);
    }
}
