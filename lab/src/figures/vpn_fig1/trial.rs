//! Downloads of one file by several clients at once, with curl, which takes the time and counts.

use crate::host::Host;
use crate::process::{DEADLINE, Process, until};
use crate::testbed::find_command;
use anyhow::{Context, Result, ensure};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::ops::Sub;
use std::os::unix::fs::OpenOptionsExt;

/// Processor time of the programs on a gateway, in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Work {
    /// The web server, with the TCP of its kernel.
    pub web: f64,
    /// The daemon, with the calls of its kernel.
    pub daemon: f64,
}

impl Work {
    pub fn all(self) -> f64 {
        self.web + self.daemon
    }
}

impl Sub for Work {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            web: self.web - before.web,
            daemon: self.daemon - before.daemon,
        }
    }
}

/// One download by all clients of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trial {
    /// Trials with this number took turns.
    pub round: u64,
    /// Time of each client, in seconds.
    pub times: Vec<f64>,
    /// Work of the gateway.
    pub work: Work,
}

/// Downloads a file of this length to all hosts at once. Returns the time of each, in seconds.
pub(super) fn fetch(hosts: &[&Host], url: &str, octets: u64) -> Result<Vec<f64>> {
    let ready = hosts.iter().map(|host| Ready::start(host));
    let ready = ready.collect::<Result<Vec<_>>>()?;
    let started = ready.into_iter().map(|ready| ready.go(url));
    let mut started = started.collect::<Result<Vec<_>>>()?;
    let finished = started.iter_mut().map(|curl| finish(curl, octets));
    finished.collect()
}

/// A curl that waits for the rest of its configuration, which it reads from a pipe.
struct Ready {
    curl: Process,
    pipe: File,
}

impl Ready {
    fn start(host: &Host) -> Result<Self> {
        // Those of an earlier download would otherwise be read as those of this one.
        let [log, pipe] = ["curl.log", "curl.pipe"].map(|name| host.directory().join(name));
        for path in [&log, &pipe] {
            let _ = fs::remove_file(path);
        }
        mkfifo(&pipe, Mode::S_IRWXU)?;
        let mut command = host.command(find_command("curl", "curl")?);
        command.args(["--silent", "--show-error", "--fail", "--noproxy", "*"]);
        command.args(["--max-time", &DEADLINE.as_secs().to_string()]);
        command.args(["--output", "/dev/null"]);
        command.args(["--write-out", "%{size_download} %{time_total}"]);
        command.arg("--config").arg(&pipe);
        let curl = host.start("curl", command)?;
        // A pipe cannot be opened for writing before its reader has opened it.
        let mut options = File::options();
        options.write(true).custom_flags(OFlag::O_NONBLOCK.bits());
        let pipe = until("curl to start", DEADLINE, || Ok(options.open(&pipe).ok()))?;
        Ok(Self { curl, pipe })
    }

    fn go(mut self, url: &str) -> Result<Process> {
        writeln!(self.pipe, "url = \"{url}\"")?;
        Ok(self.curl)
    }
}

fn finish(curl: &mut Process, octets: u64) -> Result<f64> {
    let status = curl.wait(2 * DEADLINE)?;
    let said = curl.log();
    ensure!(status.success(), "curl: {status}: {said}");
    let counted = said.trim().strip_prefix(&format!("{octets} "));
    let time = counted.with_context(|| format!("curl, of {octets} octets: {said}"))?;
    time.parse().with_context(|| format!("curl: {said}"))
}
