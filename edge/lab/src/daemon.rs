//! `stratad` in a host, and `strata` to talk to it.

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

/// A running `stratad`. Killed when dropped; [`Daemon::stop`] ends it as an operator would.
pub struct Daemon {
    host: Host,
    config: PathBuf,
    socket: PathBuf,
    process: Process,
}

impl Host {
    /// Starts `stratad` with this configuration, to which a `[control]` table with a socket in the
    /// host's folder is added, and waits until its API answers. Keys are files beside the
    /// configuration: write them with [`Host::secret`] first.
    ///
    /// # Errors
    /// It is not built, or it ended; the message has its log.
    pub fn stratad(&self, config: &str) -> Result<Daemon> {
        self.stratad_with(config, &[])
    }

    /// The same with more arguments, which it does not get again when it is started again.
    ///
    /// # Errors
    /// As [`Host::stratad`].
    pub fn stratad_with(&self, config: &str, arguments: &[&str]) -> Result<Daemon> {
        let socket = self.directory().join("api.sock");
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
    /// Runs `strata` with these words and `--json`, and returns what it answers.
    ///
    /// # Errors
    /// It failed (the message has what it said), or answered something that is not JSON.
    pub fn strata(&self, words: &str) -> Result<Value> {
        let answer = self.strata_text(&format!("{words} --json"))?;
        serde_json::from_str(&answer)
            .with_context(|| format!("`strata {words} --json` answered: {answer}"))
    }

    /// Runs `strata` with these words and returns what it prints.
    ///
    /// # Errors
    /// It failed; the message has what it said.
    pub fn strata_text(&self, words: &str) -> Result<String> {
        self.host.run_command(self.command(words)?, DEADLINE)
    }

    /// Removes the table that drops packets in clear, until the daemon no longer puts it back.
    ///
    /// # Errors
    /// It is put back for ever, or the kernel refuses.
    pub fn unguard(&self) -> Result<()> {
        until("the end of the guard", DEADLINE, || {
            self.host.inside(|| Ok(os::clear::remove()?))?;
            let status = self.strata("status")?;
            let removed = status["status"]["removed"].as_array();
            Ok(removed.filter(|removed| !removed.is_empty()).map(|_| ()))
        })
    }

    /// `strata` with these words, not yet started.
    ///
    /// # Errors
    /// It is not built.
    pub fn command(&self, words: &str) -> Result<Command> {
        let mut command = self.host.command(find_binary("strata")?);
        command.arg("--socket").arg(&self.socket);
        command.args(words.split_whitespace());
        Ok(command)
    }

    /// Runs `strata` with these words, which has to fail and to say this of how to go on.
    ///
    /// # Errors
    /// It did not fail, or said something else.
    pub fn refuses(&self, words: &str, fix: &str) -> Result<()> {
        let Err(refusal) = self.strata_text(words) else {
            bail!("`strata {words}` was not refused");
        };
        let refusal = format!("{refusal:?}");
        ensure!(refusal.contains(fix), "{fix:?} is not in {refusal}");
        Ok(())
    }

    /// Asks the API directly, `{"version":1,"request":NAME}` with more fields if `words` has them
    /// (`{"peer":"office"}`), and returns the answer's line as it came.
    ///
    /// # Errors
    /// It does not answer within a minute, or with an error.
    pub fn ask(&self, request: &str, words: Value) -> Result<String> {
        let mut question = json!({"version": 1, "request": request});
        if let (Some(fields), Some(more)) = (question.as_object_mut(), words.as_object()) {
            fields.extend(more.clone());
        }
        let asked = ask(&self.socket, &question);
        asked.with_context(|| format!("{} was asked {question}", self.host.name()))
    }

    /// Asks `strata` again and again until its answer satisfies `enough`.
    ///
    /// # Errors
    /// The deadline passed; the message has the last answer.
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

    /// Writes another configuration, which it reads when it is told to.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn configure(&self, config: &str) -> Result<()> {
        write(&self.host, config, &self.socket).map(drop)
    }

    /// Writes another configuration and has it read, and returns what is said to that.
    ///
    /// # Errors
    /// As [`Daemon::configure`], or it is refused.
    pub fn change(&self, config: &str) -> Result<String> {
        self.configure(config)?;
        self.strata_text("reload")
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The file its log goes to.
    pub fn log_path(&self) -> &Path {
        self.process.log_path()
    }

    /// The process, to look at its log, to wait for it and to signal it.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Its API's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Sends SIGTERM and waits for an orderly end.
    ///
    /// # Errors
    /// It did not end, or not well; the message has its log.
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

    /// Starts it again with the same configuration, after [`Daemon::stop`] or
    /// [`Process::crash`].
    ///
    /// # Errors
    /// As [`Host::stratad`].
    pub fn start_again(&mut self) -> Result<()> {
        self.process = start(&self.host, &self.config, &self.socket, &[])?;
        Ok(())
    }
}

fn write(host: &Host, config: &str, socket: &Path) -> Result<PathBuf> {
    let control = format!("\n[control]\nsocket = \"{}\"\n", socket.display());
    host.file("strata.toml", &format!("{config}{control}"))
}

fn start(host: &Host, config: &Path, socket: &Path, arguments: &[&str]) -> Result<Process> {
    let mut command = host.command(find_binary("stratad")?);
    command.arg("--config").arg(config).args(arguments);
    let mut process = host.start("stratad", command)?;
    let what = format!("the API of stratad on {}", host.name());
    // Its socket is there before it knows whether it has everything else that it needs.
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
