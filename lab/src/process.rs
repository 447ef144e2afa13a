//! Processes inside hosts. Their output goes to files, they die with the lab, and every wait for
//! one has a deadline.

use crate::testbed;
use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};
use std::fs::{self, DirEntry, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Interval at which a condition is polled.
const LOOK: Duration = Duration::from_millis(5);

/// Longest wait for any event. A step that takes a second on an idle machine may take half a minute
/// on a busy one; only a broken one takes this long.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Polls `event` every few milliseconds until it yields a value.
///
/// # Errors
/// The deadline passed, or `event` itself failed. The message names the awaited event with `what`.
pub fn until<T>(
    what: &str,
    deadline: Duration,
    mut event: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = event().with_context(|| format!("while waiting for {what}"))? {
            return Ok(value);
        }
        if start.elapsed() > deadline {
            bail!("waited {deadline:?} for {what}, in vain");
        }
        std::thread::sleep(LOOK);
    }
}

/// Stops the children of this process (SIGSTOP) and waits until none of their threads runs. A
/// stopped process creates no more files, and a process that waits for its end keeps waiting.
///
/// # Errors
/// `/proc` cannot be read, or a child does not stop by the deadline.
pub fn stop_children(deadline: Duration) -> Result<()> {
    until("its children to stop", deadline, || {
        let mut running = children()?;
        running.retain(|&child| runs(child));
        for &child in &running {
            // Fails only if the child has ended meanwhile.
            let _ = kill(child, Signal::SIGSTOP);
        }
        Ok(running.is_empty().then_some(()))
    })
}

/// Returns the children of this process, started by any of its threads.
fn children() -> Result<Vec<Pid>> {
    let me = getpid().to_string();
    let child = |process: DirEntry| {
        let (_, parent) = state_and_parent(&process.path())?;
        let number = process.file_name().to_str()?.parse().ok()?;
        (parent == me).then_some(Pid::from_raw(number))
    };
    let processes = fs::read_dir("/proc")?;
    Ok(processes.flatten().filter_map(child).collect())
}

/// Returns true if a thread of this process is neither stopped nor ended.
fn runs(process: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten();
    let mut states = threads
        .flatten()
        .filter_map(|thread| state_and_parent(&thread.path()));
    states.any(|(state, _)| !["T", "t", "Z", "X"].contains(&state.as_str()))
}

/// Returns the state and the parent of a process or thread from `stat` (proc(5)), or `None` if it
/// is gone.
fn state_and_parent(folder: &Path) -> Option<(String, String)> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // The name, which precedes them, may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').map(str::to_owned);
    Some((fields.next()?, fields.next()?))
}

/// A process in a host. It is killed when dropped, and by the kernel when the thread that started
/// it ends.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command with its output and errors appended to `log`.
    pub(crate) fn start(name: &str, mut command: Command, log: PathBuf) -> Result<Self> {
        let out = File::options().create(true).append(true).open(&log)?;
        command.stdin(Stdio::null());
        command.stderr(out.try_clone()?).stdout(out);
        Self::adopt(name, command, log)
    }

    /// Starts a command whose output the caller reads from a pipe ([`Process::child`]); errors go
    /// to `log`.
    pub(crate) fn start_piped(name: &str, mut command: Command, log: PathBuf) -> Result<Self> {
        let errors = File::options().create(true).append(true).open(&log)?;
        command.stdin(Stdio::null());
        command.stderr(errors).stdout(Stdio::piped());
        Self::adopt(name, command, log)
    }

    fn adopt(name: &str, mut command: Command, log: PathBuf) -> Result<Self> {
        let _beginning = testbed::beginning()?;
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        let name = name.to_owned();
        Ok(Self { name, child, log })
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the file that the output goes to.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Returns the output so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Returns the child itself, for access to its pipe.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the output contains `text`.
    ///
    /// # Errors
    /// The process ended first, or the deadline passed; both show the end of its output.
    pub fn wait_for_log(&mut self, text: &str, deadline: Duration) -> Result<()> {
        let what = format!("{:?} from {}", text, self.name);
        self.wait_for(&what, deadline, |log| log.contains(text).then_some(()))
    }

    /// Waits until `event` yields a value. It is called with the output so far.
    ///
    /// # Errors
    /// As [`Process::wait_for_log`].
    pub fn wait_for<T>(
        &mut self,
        what: &str,
        deadline: Duration,
        mut event: impl FnMut(&str) -> Option<T>,
    ) -> Result<T> {
        let waited = until(what, deadline, || {
            // Checked before the log is read: the last output of an ended process still counts.
            let ended = self.child.try_wait()?;
            match (event(&self.log()), ended) {
                (None, Some(status)) => bail!("{} ended: {status}", self.name),
                (value, _) => Ok(value),
            }
        });
        let said = last_lines(&self.log(), 20);
        waited.map_err(|error| match said.is_empty() {
            true => error,
            false => anyhow!("{error:#}; it said:\n{said}"),
        })
    }

    /// Waits until the process ends by itself.
    ///
    /// # Errors
    /// The deadline passed.
    pub fn wait(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let what = format!("the end of {}", self.name);
        until(&what, deadline, || Ok(self.child.try_wait()?))
    }

    /// Sends SIGTERM and waits until the process ends.
    ///
    /// # Errors
    /// The deadline passed.
    pub fn terminate(&mut self, deadline: Duration) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM)?;
        self.wait(deadline)
    }

    /// Sends SIGKILL and waits until the process is gone, which looks like a crash to all others.
    ///
    /// # Errors
    /// The process had already ended for another reason.
    pub fn crash(&mut self) -> Result<()> {
        self.child.kill()?;
        let status = self.child.wait()?;
        if status.signal() != Some(Signal::SIGKILL as i32) {
            bail!("{} had already ended: {status}", self.name);
        }
        Ok(())
    }

    /// Sends a signal if the process still runs.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            kill(Pid::from_raw(self.child.id() as i32), signal)?;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process is already gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the last lines of a text.
fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, log: &str) -> Process {
        let log = std::env::temp_dir().join(format!("lab-{}-{log}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::start("the shell", command, log).unwrap()
    }

    fn forget(process: Process) {
        fs::remove_file(process.log_path()).unwrap();
    }

    #[test]
    fn waiting_ends_with_the_event() {
        let mut process = shell("echo ready; exec sleep 60", "event");
        let long = Duration::from_secs(50);
        process.wait_for_log("ready", long).unwrap();
        assert_eq!(
            process.terminate(long).unwrap().signal(),
            Some(Signal::SIGTERM as i32)
        );
        forget(process);
    }

    #[test]
    fn waiting_for_what_a_dead_process_never_says_fails_at_once_and_shows_its_last_words() {
        let mut process = shell("echo the reason >&2; exit 3", "dead");
        let error = process.wait_for_log("ready", Duration::from_secs(3600));
        let text = format!("{:?}", error.unwrap_err());
        assert!(text.contains("exit status: 3"), "{text}");
        assert!(text.contains("the reason"), "{text}");
        forget(process);
    }

    #[test]
    fn a_deadline_that_passes_is_an_error() {
        let error = until("rain", Duration::ZERO, || Ok(None::<()>)).unwrap_err();
        assert!(error.to_string().contains("rain"), "{error}");
    }

    #[test]
    fn a_dropped_process_is_dead() {
        let process = shell("exec sleep 60", "dropped");
        let (pid, log) = (process.pid(), process.log_path().to_owned());
        drop(process);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        fs::remove_file(log).unwrap();
    }
}
