//! A name server: dnsmasq, which knows the names that a test sets.

use crate::host::Host;
use crate::process::{DEADLINE, Process};
use crate::testbed::find_command;
use anyhow::Result;
use nix::sys::signal::Signal;

/// A running dnsmasq. It is killed when dropped.
pub struct NameServer {
    host: Host,
    process: Process,
}

impl NameServer {
    /// Starts dnsmasq at an address of a host. `names` are lines as in `/etc/hosts`. No name below
    /// `example.net` exists but these.
    ///
    /// # Errors
    /// dnsmasq is not installed (the message names the package), or it did not start.
    pub fn start(host: &Host, address: &str, names: &str) -> Result<Self> {
        let dnsmasq = find_command("dnsmasq", "dnsmasq-base")?;
        let line = format!(
            "{} --keep-in-foreground --conf-file=/dev/null --pid-file= --user=root --no-hosts \
             --no-resolv --addn-hosts={} --local=/example.net/ --bind-interfaces \
             --listen-address={address} --log-queries --log-facility=-",
            dnsmasq.display(),
            host.file("names", names)?.display()
        );
        let mut process = host.spawn(&line)?;
        process.wait_for_log("started", DEADLINE)?;
        Ok(Self {
            host: host.clone(),
            process,
        })
    }

    /// Replaces the names.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set(&mut self, names: &str) -> Result<()> {
        self.host.file("names", names)?;
        self.process.signal(Signal::SIGHUP)
    }

    /// Waits until dnsmasq was asked for the records of this type (`A`, `AAAA`) of a name.
    ///
    /// # Errors
    /// The deadline passed; the message has the log.
    pub fn wait_for_query(&mut self, kind: &str, name: &str) -> Result<()> {
        self.process
            .wait_for_log(&format!("query[{kind}] {name}"), DEADLINE)
    }
}
