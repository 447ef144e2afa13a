//! What the daemon tells its service manager, whose socket the tests hold: when it is ready, how
//! many tunnels are up, reloads, the watchdog, the end.

use anyhow::{Context, Result, ensure};
use lab::host::Host;
use lab::pair::{self, DEADLINE, Pair, Terms};
use lab::process::Process;
use lab::testbed::find_binary;
use nix::sys::signal::Signal;
use os::Family;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Silence after which this manager would restart the daemon.
const SILENCE: Duration = Duration::from_millis(600);

/// Starts the daemon as a service manager does: with the environment of sd_notify(3).
const START: &str = "export WATCHDOG_PID=$$ && exec \"$0\" --config \"$1\"";

/// A mobile node's daemon and its service manager.
struct Service {
    process: Process,
    manager: UnixDatagram,
    config: PathBuf,
}

impl Service {
    fn start(host: &Host, watchdog: Option<Duration>) -> Result<Self> {
        host.secret("tunnel.psk", pair::TUNNEL_KEY)?;
        let control = host.directory().join("api.sock");
        let text = pair::mobile_config(Family::V4, Terms::PLAIN, "auto");
        let text = format!("{text}[control]\nsocket = \"{}\"\n", control.display());
        let config = host.file("strata.toml", &text)?;
        let socket = host.directory().join("notify.sock");
        let manager = UnixDatagram::bind(&socket)?;
        manager.set_read_timeout(Some(DEADLINE))?;
        let mut command = host.command("/bin/sh");
        command.args(["-c", START]);
        command.arg(find_binary("stratad")?).arg(&config);
        command.env("NOTIFY_SOCKET", &socket);
        if let Some(silence) = watchdog {
            command.env("WATCHDOG_USEC", silence.as_micros().to_string());
        }
        Ok(Self {
            process: host.start("stratad", command)?,
            manager,
            config,
        })
    }

    /// Returns the next message that is not about the watchdog or the store of descriptors
    /// (`kept.rs`), its lines joined by spaces.
    fn next(&self) -> Result<String> {
        loop {
            let message = self.hear()?.context("the manager heard nothing")?;
            let others = ["WATCHDOG=", "FDSTORE", "BARRIER="];
            if !others.iter().any(|other| message.starts_with(other)) {
                return Ok(message);
            }
        }
    }

    /// Fails unless the next message is this one.
    fn expect(&self, expected: &str) -> Result<()> {
        let message = self.next()?;
        ensure!(message == expected, "{message:?}, not {expected:?}");
        Ok(())
    }

    /// Returns the next message, or `None` if none comes in time.
    fn hear(&self) -> Result<Option<String>> {
        let mut room = [0; 256];
        match self.manager.recv(&mut room) {
            Ok(length) => {
                let text = String::from_utf8_lossy(&room[..length]);
                Ok(Some(text.trim_end().replace('\n', " ")))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Fails unless messages to the watchdog come in time, three times in a row.
    fn is_watched(&self) -> Result<()> {
        for _ in 0..3 {
            let begun = Instant::now();
            while self.hear()?.as_deref() != Some("WATCHDOG=1") {
                ensure!(begun.elapsed() < SILENCE, "the watchdog heard nothing");
            }
        }
        Ok(())
    }

    /// Reads what was sent so far.
    fn drain(&self) -> Result<()> {
        self.manager.set_nonblocking(true)?;
        while self.hear()?.is_some() {}
        Ok(self.manager.set_nonblocking(false)?)
    }
}

// Works: service
#[lab::test]
fn the_manager_learns_of_the_start_the_tunnels_a_reload_and_the_end() -> Result<()> {
    let pair = Pair::new("service-manager")?;
    let mut service = Service::start(&pair.mobile, None)?;
    service.expect("READY=1")?;
    // What needs the daemon may start now.
    pair.mobile.run("ip link show strata0")?;
    let sockets = pair.mobile.run("ss --udp --listening --numeric")?;
    ensure!(sockets.contains(":500 "), "{sockets}");
    service.expect("STATUS=0 of 1 tunnels up")?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    service.expect("STATUS=1 of 1 tunnels up")?;
    service.process.signal(Signal::SIGHUP)?;
    let reloading = service.next()?;
    let (first, begun) = reloading.split_once(' ').context("one line")?;
    ensure!(first == "RELOADING=1", "{reloading}");
    // Of the clock that systemd compares it with (systemd 253, `Type=notify-reload`).
    let begun = begun.strip_prefix("MONOTONIC_USEC=");
    let begun: u128 = begun.context("no time of the reload")?.parse()?;
    let uptime = os::clock::now().since_origin().as_micros();
    ensure!(begun > 0 && begun <= uptime, "{begun}, now {uptime}");
    service.expect("READY=1")?;
    service.process.signal(Signal::SIGTERM)?;
    service.expect("STOPPING=1")?;
    // The daemon waits until the manager has emptied its store.
    while service.hear()?.context("no end")? != "BARRIER=1" {}
    ensure!(service.process.wait(DEADLINE)?.success());
    Ok(())
}

/// The manager would wait for the end of a reload, and then kill the daemon.
// Refuses: service
#[lab::test]
fn a_reload_of_a_faulty_file_ends_too() -> Result<()> {
    let pair = Pair::new("service-manager")?;
    let mut service = Service::start(&pair.mobile, None)?;
    service.expect("READY=1")?;
    service.expect("STATUS=0 of 1 tunnels up")?;
    std::fs::write(&service.config, "[node]\nid = 1\n")?;
    service.process.signal(Signal::SIGHUP)?;
    ensure!(service.next()?.starts_with("RELOADING=1 "));
    service.expect("READY=1")?;
    service.process.wait_for_log("nothing changed", DEADLINE)
}

// Recovers: service
#[lab::test(quiet)]
fn a_daemon_that_hangs_is_silent_to_the_watchdog() -> Result<()> {
    let pair = Pair::new("service-manager")?;
    let mut service = Service::start(&pair.mobile, Some(SILENCE))?;
    service.expect("READY=1")?;
    service.is_watched()?;
    service.process.signal(Signal::SIGSTOP)?;
    lab::process::stop_children(DEADLINE)?;
    service.drain()?;
    service.manager.set_read_timeout(Some(SILENCE))?;
    let heard = service.hear()?;
    ensure!(heard.is_none(), "{heard:?}");
    service.process.signal(Signal::SIGCONT)?;
    service.is_watched()
}

/// Control: a manager that asks for no watchdog hears of none.
#[lab::test]
fn without_a_watchdog_an_idle_daemon_is_silent() -> Result<()> {
    let pair = Pair::new("service-manager")?;
    let service = Service::start(&pair.mobile, None)?;
    service.expect("READY=1")?;
    service.expect("STATUS=0 of 1 tunnels up")?;
    service.manager.set_read_timeout(Some(SILENCE))?;
    let heard = service.hear()?;
    ensure!(heard.is_none(), "{heard:?}");
    Ok(())
}
