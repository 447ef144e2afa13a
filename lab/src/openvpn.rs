//! OpenVPN: a server, and clients on other hosts.

use crate::host::Host;
use crate::openssl::{self, EC};
use crate::process::{DEADLINE, Process, until};
use crate::testbed::find_command;
use anyhow::Result;
use nix::sys::signal::Signal;
use std::fs;
use std::path::PathBuf;

/// Address of the server inside the tunnel.
pub const INNER: &str = "10.8.0.1";

/// What the log says once a server or a client is up.
const UP: &str = "Initialization Sequence Completed";

/// The server: TLS with certificates, over IPv4 and IPv6. A client that is silent for 15 seconds
/// is given up.
const SERVER: &str = "server 10.8.0.0 255.255.255.0
topology subnet
dev tun
proto udp6
ca ca.pem
cert server.pem
key server.key
dh none
verb 3
ping 1
ping-restart 15
push \"ping 1\"
push \"ping-restart 60\"
log-append server.log
status status 1
";

/// A running server. It is killed when dropped.
pub struct OpenVpn {
    host: Host,
    process: Process,
}

impl OpenVpn {
    /// Starts a server with additional lines in its configuration. It continues the log of an
    /// earlier one.
    ///
    /// # Errors
    /// OpenVPN is not installed (the message names the package), or it did not start.
    pub fn start(host: &Host, lines: &str) -> Result<Self> {
        if !host.directory().join("ca.pem").exists() {
            openssl::authority(host, EC, "Lab CA")?;
            openssl::named(host, "server", "gateway.example")?;
        }
        let before = fs::read_to_string(host.directory().join("server.log")).unwrap_or_default();
        let process = start(host, "server", &format!("{SERVER}{lines}"))?;
        let server = Self {
            host: host.clone(),
            process,
        };
        let ups = before.matches(UP).count() + 1;
        server.wait_for_log(UP, ups)?;
        Ok(server)
    }

    /// Connects a client from a host to an address of the server, with a certificate for this name
    /// and additional lines in its configuration.
    ///
    /// # Errors
    /// The client did not start.
    pub fn client(&self, from: &Host, address: &str, name: &str, lines: &str) -> Result<Process> {
        let folder = self.host.directory();
        let file = format!("client-{}", from.name());
        openssl::named(&self.host, &file, name)?;
        let path = |suffix: &str| {
            folder
                .join(format!("{file}.{suffix}"))
                .display()
                .to_string()
        };
        let configuration = format!(
            "client\ndev tun\nproto udp\nremote {address}\nnobind\nca {}\ncert {}\nkey {}\nverb 3\n\
             explicit-exit-notify 1\n{lines}",
            folder.join("ca.pem").display(),
            path("pem"),
            path("key"),
        );
        start(from, "client", &configuration)
    }

    /// Connects a client, and waits until its tunnel is up.
    ///
    /// # Errors
    /// It did not come up; the message has its log.
    pub fn connect(&self, from: &Host, address: &str, name: &str) -> Result<Process> {
        let ups = tunnels(from) + 1;
        let mut client = self.client(from, address, name, "")?;
        let is_up = |log: &str| (log.matches(UP).count() >= ups).then_some(());
        client.wait_for("the tunnel of OpenVPN", DEADLINE, is_up)?;
        Ok(client)
    }

    /// Waits until the log has a text this often.
    ///
    /// # Errors
    /// The deadline passed.
    pub fn wait_for_log(&self, text: &str, times: usize) -> Result<()> {
        let log = self.log_path();
        let what = format!("{times} of {text:?} in the log of OpenVPN");
        until(&what, DEADLINE, || {
            let log = fs::read_to_string(&log).unwrap_or_default();
            Ok((log.matches(text).count() >= times).then_some(()))
        })
    }

    /// Returns the path of the log.
    pub fn log_path(&self) -> PathBuf {
        self.host.directory().join("server.log")
    }

    /// Returns the path of the status file, which is written each second.
    pub fn status_path(&self) -> PathBuf {
        self.host.directory().join("status")
    }

    /// Stops the server in order.
    ///
    /// # Errors
    /// It did not end.
    pub fn stop(&mut self) -> Result<()> {
        self.process.signal(Signal::SIGTERM)?;
        self.process.wait(DEADLINE).map(drop)
    }

    /// Kills the server.
    ///
    /// # Errors
    /// It had already ended.
    pub fn crash(&mut self) -> Result<()> {
        self.process.crash()
    }
}

/// Returns how often clients on a host came up, as their own log says.
pub fn tunnels(host: &Host) -> usize {
    let log = fs::read_to_string(host.directory().join("openvpn.log"));
    log.map_or(0, |log| log.matches(UP).count())
}

fn start(host: &Host, name: &str, configuration: &str) -> Result<Process> {
    let openvpn = find_command("openvpn", "openvpn")?;
    let file = host.secret(&format!("{name}.conf"), configuration)?;
    host.spawn(&format!(
        "{} --config {}",
        openvpn.display(),
        file.display()
    ))
}
