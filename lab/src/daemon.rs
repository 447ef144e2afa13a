//! `stratad` in a host, and `strata` to control it.

use crate::host::Host;
use crate::process::{DEADLINE, Process, until};
use crate::testbed::find_binary;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A running `stratad`. It is killed when dropped; [`Daemon::stop`] ends it as an operator would.
pub struct Daemon {
    host: Host,
    config: PathBuf,
    socket: PathBuf,
    process: Process,
}

impl Host {
    /// Starts `stratad` with this configuration and waits until its API answers. A `[control]`
    /// table with a socket in the host's folder is added, unless there is one. Key files are
    /// relative to the configuration: write them with [`Host::secret`] first.
    ///
    /// # Errors
    /// `stratad` is not built, or it ended; the message has its log.
    pub fn stratad(&self, config: &str) -> Result<Daemon> {
        self.stratad_with(config, &[])
    }

    /// Starts `stratad` with additional arguments, which [`Daemon::start_again`] does not repeat.
    ///
    /// # Errors
    /// As [`Host::stratad`].
    pub fn stratad_with(&self, config: &str, arguments: &[&str]) -> Result<Daemon> {
        let socket = named_socket(config).unwrap_or_else(|| self.directory().join("api.sock"));
        let config = write(self, config, &socket)?;
        let process = start(self, &config, &socket, arguments)?;
        Ok(Daemon {
            host: self.clone(),
            config,
            socket,
            process,
        })
    }
}

impl Daemon {
    /// Runs `strata` with these words and `--json`, and returns its answer.
    ///
    /// # Errors
    /// `strata` failed (the message has its output), or its answer is not JSON.
    pub fn strata(&self, words: &str) -> Result<Value> {
        let answer = self.strata_text(&format!("{words} --json"))?;
        serde_json::from_str(&answer)
            .with_context(|| format!("`strata {words} --json` answered: {answer}"))
    }

    /// Runs `strata` with these words and returns its output.
    ///
    /// # Errors
    /// `strata` failed; the message has its output.
    pub fn strata_text(&self, words: &str) -> Result<String> {
        self.host.run_command(self.command(words)?, DEADLINE)
    }

    /// Removes the table that drops packets in clear, repeatedly until the daemon no longer
    /// restores it.
    ///
    /// # Errors
    /// The daemon keeps restoring it, or the kernel refuses.
    pub fn unguard(&self) -> Result<()> {
        until("the end of the guard", DEADLINE, || {
            self.host.inside(|| Ok(os::clear::remove()?))?;
            let status = self.strata("status")?;
            let removed = status["status"]["removed"].as_array();
            Ok(removed.filter(|removed| !removed.is_empty()).map(|_| ()))
        })
    }

    /// Prepares `strata` with these words, not yet started.
    ///
    /// # Errors
    /// `strata` is not built.
    pub fn command(&self, words: &str) -> Result<Command> {
        let mut command = self.host.command(find_binary("strata")?);
        command.arg("--socket").arg(&self.socket);
        command.args(words.split_whitespace());
        Ok(command)
    }

    /// Runs `strata` with these words and checks that it fails and that its message contains this
    /// fix.
    ///
    /// # Errors
    /// `strata` did not fail, or its message lacks the fix.
    pub fn refuses(&self, words: &str, fix: &str) -> Result<()> {
        let Err(refusal) = self.strata_text(words) else {
            bail!("`strata {words}` was not refused");
        };
        let refusal = format!("{refusal:?}");
        ensure!(refusal.contains(fix), "{fix:?} is not in {refusal}");
        Ok(())
    }

    /// Asks the API directly, with `{"version":1,"request":NAME}` and the fields of `words`
    /// (`{"peer":"office"}`), and returns the answer's line verbatim.
    ///
    /// # Errors
    /// The API does not answer within two minutes, or answers with an error.
    pub fn ask(&self, request: &str, words: Value) -> Result<String> {
        let mut question = json!({"version": 1, "request": request});
        if let (Some(fields), Some(more)) = (question.as_object_mut(), words.as_object()) {
            fields.extend(more.clone());
        }
        let asked = ask(&self.socket, &question);
        asked.with_context(|| format!("{} was asked {question}", self.host.name()))
    }

    /// Asks `strata` repeatedly until its answer satisfies `enough`.
    ///
    /// # Errors
    /// `strata` failed or the deadline passed; the message has the daemon's log.
    pub fn wait_until(
        &self,
        words: &str,
        deadline: Duration,
        enough: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut last = Value::Null;
        let what = format!("`strata {words}` on {}", self.host.name());
        let waited = until(&what, deadline, || {
            last = self.strata(words)?;
            Ok(enough(&last).then(|| last.clone()))
        });
        waited.with_context(|| format!("its log:\n{}", self.process.log()))
    }

    /// Writes another configuration, which the daemon reads at the next reload.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn configure(&self, config: &str) -> Result<()> {
        write(&self.host, config, &self.socket).map(drop)
    }

    /// Writes another configuration, reloads it, and returns the output of `strata reload`.
    ///
    /// # Errors
    /// As [`Daemon::configure`], or the configuration is refused.
    pub fn change(&self, config: &str) -> Result<String> {
        self.configure(config)?;
        self.strata_text("reload")
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the file that the log goes to.
    pub fn log_path(&self) -> &Path {
        self.process.log_path()
    }

    /// Returns the process, to read its log, to wait for it or to signal it.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Returns the path of the API's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Sends SIGTERM and waits for an orderly end.
    ///
    /// # Errors
    /// The daemon did not end, or ended with a failure; the message has its log.
    pub fn stop(&mut self) -> Result<()> {
        let status = self.process.terminate(DEADLINE)?;
        if !status.success() {
            bail!(
                "stratad on {}: {status}\n{}",
                self.host.name(),
                self.process.log()
            );
        }
        Ok(())
    }

    /// Starts the daemon again with the same configuration, after [`Daemon::stop`] or
    /// [`Process::crash`].
    ///
    /// # Errors
    /// As [`Host::stratad`].
    pub fn start_again(&mut self) -> Result<()> {
        self.process = start(&self.host, &self.config, &self.socket, &[])?;
        Ok(())
    }
}

/// Returns the socket that a configuration names.
fn named_socket(config: &str) -> Option<PathBuf> {
    let (_, table) = config.split_once("\n[control]\nsocket = \"")?;
    table.split('"').next().map(PathBuf::from)
}

fn write(host: &Host, config: &str, socket: &Path) -> Result<PathBuf> {
    let control = match named_socket(config) {
        Some(_) => String::new(),
        None => format!("\n[control]\nsocket = \"{}\"\n", socket.display()),
    };
    host.file("strata.toml", &format!("{config}{control}"))
}

fn start(host: &Host, config: &Path, socket: &Path, arguments: &[&str]) -> Result<Process> {
    let mut command = host.command(find_binary("stratad")?);
    command.arg("--config").arg(config).args(arguments);
    let mut process = host.start("stratad", command)?;
    let what = format!("the API of stratad on {}", host.name());
    // The socket exists before the daemon has checked its other requirements.
    let question = json!({"version": 1, "request": "version"});
    process.wait_for(&what, DEADLINE, |_| ask(socket, &question).ok())?;
    Ok(process)
}

fn ask(socket: &Path, question: &Value) -> Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    writeln!(stream, "{question}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    let refused = |answer: Value| answer.get("error").is_some();
    if serde_json::from_str(&answer).map_or(true, refused) {
        bail!("the answer is: {answer}");
    }
    Ok(answer)
}
