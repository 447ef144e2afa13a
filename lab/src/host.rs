//! A host: one network namespace, a folder for its files, and the processes that run there.

use crate::process::{DEADLINE, Process, until};
use anyhow::{Context, Result, bail};
use os::netlink::{Route, Via};
use os::{Family, NetNs, Prefix};
use std::fs::{self, File};
use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A host of a [`crate::testbed::Testbed`]. Its namespace disappears with the last clone and the
/// last process inside.
#[derive(Clone)]
pub struct Host {
    name: String,
    directory: PathBuf,
    netns: NetNs,
}

/// One end of a planned wire: a host, a name for the device there, and its addresses.
pub struct End<'a> {
    /// Host of this end.
    pub host: &'a Host,
    /// The device's name, at most 15 octets.
    pub device: &'a str,
    /// Addresses with prefix lengths.
    pub addresses: &'a [&'a str],
}

impl Host {
    pub(crate) fn new(name: &str, directory: PathBuf) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            directory,
            netns: NetNs::new()?,
        })
    }

    /// Returns the host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the folder of the host's files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the host's namespace.
    pub fn netns(&self) -> &NetNs {
        &self.netns
    }

    /// Describes an end of a wire for [`crate::wire`].
    pub fn end<'a>(&'a self, device: &'a str, addresses: &'a [&'a str]) -> End<'a> {
        End {
            host: self,
            device,
            addresses,
        }
    }

    /// Runs a function in the host's namespace, on a separate thread. Start processes with
    /// [`Host::spawn`] instead: the kernel would kill them when that thread ends.
    pub fn inside<T: Send>(&self, function: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        self.netns.enter(function)?
    }

    /// Sets a kernel parameter of the namespace, named with dots as sysctl(8) does.
    pub fn sysctl(&self, name: &str, value: &str) -> Result<()> {
        Ok(self.netns.sysctl(name, value)?)
    }

    /// Adds a route: a prefix (or `default`) through a neighbour's address.
    pub fn route(&self, prefix: &str, via: &str) -> Result<()> {
        let gateway: IpAddr = via.parse()?;
        let prefix = match prefix {
            "default" => Prefix::everything(Family::from_address(gateway)),
            prefix => prefix.parse()?,
        };
        let route = Route::new(prefix, Via::Gateway(gateway));
        Ok(self.netns.netlink()?.add_route(&route)?)
    }

    /// Writes a file that only its owner can read, for keys. Returns its path.
    pub fn secret(&self, name: &str, content: &str) -> Result<PathBuf> {
        self.write(name, content, 0o600)
    }

    /// Writes a file into the host's folder. Returns its path.
    pub fn file(&self, name: &str, content: &str) -> Result<PathBuf> {
        self.write(name, content, 0o644)
    }

    fn write(&self, name: &str, content: &str, mode: u32) -> Result<PathBuf> {
        let path = self.directory.join(name);
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(mode);
        let mut file = options.open(&path)?;
        file.write_all(content.as_bytes())?;
        Ok(path)
    }

    /// Prepares a command that starts in this host's namespace and dies with the thread that starts
    /// it.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.netns.command(program.as_ref());
        command.current_dir(&self.directory);
        command
    }

    /// Starts a command line (words separated by spaces, no quoting). Its output goes to `NAME.log`
    /// in the host's folder, where `NAME` is that of the program.
    pub fn spawn(&self, line: &str) -> Result<Process> {
        let (program, arguments) = words(line)?;
        let mut command = self.command(program);
        command.args(arguments);
        self.start(program, command)
    }

    /// Starts a command made by [`Host::command`]. Its output goes to `NAME.log`.
    pub fn start(&self, name: &str, command: Command) -> Result<Process> {
        let name = name.rsplit('/').next().unwrap_or(name);
        let log = self.directory.join(format!("{name}.log"));
        Process::start(&self.process_name(name), command, log)
    }

    /// Starts a command as [`Host::start`] does, but the caller reads its output from the child's
    /// pipe.
    pub fn start_piped(&self, name: &str, command: Command) -> Result<Process> {
        let log = self.directory.join(format!("{name}.log"));
        Process::start_piped(&self.process_name(name), command, log)
    }

    /// Reads a counter of TCP in its network namespace (`TcpExt` of `/proc/net/netstat`).
    ///
    /// # Errors
    /// There is no such counter.
    pub fn tcp_count(&self, name: &str) -> Result<u64> {
        self.kernel_count("netstat", "TcpExt: ", name)
    }

    /// Reads a counter of UDP over IPv4 in its network namespace (`Udp` of `/proc/net/snmp`).
    ///
    /// # Errors
    /// There is no such counter.
    pub fn udp_count(&self, name: &str) -> Result<u64> {
        self.kernel_count("snmp", "Udp: ", name)
    }

    /// Reads a counter from a file of `/proc/net` that has a line of names above each line of
    /// values.
    fn kernel_count(&self, file: &str, group: &str, name: &str) -> Result<u64> {
        let file = format!("/proc/thread-self/net/{file}");
        let text = self.inside(|| Ok(fs::read_to_string(&file)?))?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
        let (names, values) = lines.next().zip(lines.next()).context("no counters")?;
        let mut counts = names.split(' ').zip(values.split(' '));
        let found = counts.find(|(known, _)| *known == name);
        let (_, count) = found.with_context(|| format!("no counter {group}{name} in {file}"))?;
        Ok(count.parse()?)
    }

    /// Runs a command line to its end and returns its output.
    ///
    /// # Errors
    /// The command failed (the message has its output) or did not end within two minutes.
    pub fn run(&self, line: &str) -> Result<String> {
        let (program, arguments) = words(line)?;
        let mut command = self.command(program);
        command.args(arguments);
        self.run_command(command, DEADLINE)
    }

    /// Runs a command made by [`Host::command`] to its end and returns its output.
    ///
    /// # Errors
    /// The command failed (the message has its output) or the deadline passed.
    pub fn run_command(&self, command: Command, deadline: Duration) -> Result<String> {
        let shown = format!("{command:?}");
        let program = command.get_program().to_string_lossy().into_owned();
        let name = program.rsplit('/').next().unwrap_or("command").to_owned();
        let log = self.unused_log(&name)?;
        let mut process = Process::start(&self.process_name(&name), command, log.clone())?;
        let status = process.wait(deadline)?;
        let output = process.log();
        fs::remove_file(log)?;
        if !status.success() {
            bail!("{shown} in {}: {status}\n{output}", self.name);
        }
        Ok(output)
    }

    /// Waits until a program listens on a TCP port of this host.
    pub fn wait_for_port(&self, address: &str, deadline: Duration) -> Result<()> {
        let what = format!("{address} on {}", self.name);
        until(&what, deadline, || {
            self.inside(|| Ok(TcpStream::connect(address).is_ok().then_some(())))
        })
    }

    fn process_name(&self, program: &str) -> String {
        format!("{program} on {}", self.name)
    }

    /// Creates a log file with an unused name: commands of one name may run at the same time.
    fn unused_log(&self, name: &str) -> Result<PathBuf> {
        for number in 0.. {
            let path = self.directory.join(format!("{name}-{number}.out"));
            let made = File::options().write(true).create_new(true).open(&path);
            match made {
                Ok(_) => return Ok(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).context("cannot make a file for output"),
            }
        }
        bail!("no name left for the output of {name}")
    }
}

fn words(line: &str) -> Result<(&str, impl Iterator<Item = &str>)> {
    let mut words = line.split_whitespace();
    let program = words.next().context("an empty command line")?;
    Ok((program, words))
}
