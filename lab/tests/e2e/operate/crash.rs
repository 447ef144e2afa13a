//! `kill -9` at every marked point of set-up, rekey and teardown: the next start and an orderly
//! stop leave the machine as it was.
//!
//! The points are those of [`os::crash`]. A daemon started with such a point comes up, is stopped,
//! and must have died on the way. Its leftovers differ from point to point. After its successor has
//! stopped, the machine must be in the state from before the first start.

use anyhow::{Result, bail, ensure};
use lab::host::Host;
use lab::lending::{self, ALICE, Borrower, POOL};
use lab::pair::{self, DEADLINE, GATEWAY, Pair, Terms};
use lab::process::Process;
use lab::testbed::find_binary;
use lab::transfer::transfer;
use nix::sys::signal::Signal;
use os::Family;
use os::crash::POINTS;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

/// A peer that connects on its own.
const BORROWER: Borrower = Borrower {
    start: "auto",
    ..ALICE
};

const FORMER: &str = "nameserver 192.0.2.53\n";

// Recovers: dns
// Recovers: pools
#[lab::test]
fn a_crash_anywhere_leaves_nothing_after_the_next_stop() -> Result<()> {
    ensure!(POINTS.len() >= 12, "{POINTS:?}");
    for point in POINTS {
        println!("  {point}");
        let bed = Bed::new(point)?;
        let before = bed.traces()?;
        bed.crash_at(point)?;
        bed.start_and_stop()?;
        let after = bed.traces()?;
        if after != before {
            let left = after.iter().filter(|line| !before.contains(line));
            let lost = before.iter().filter(|line| !after.contains(line));
            let (left, lost): (Vec<_>, Vec<_>) = (left.collect(), lost.collect());
            bail!("{point}: left {left:#?}, lost {lost:#?}");
        }
    }
    Ok(())
}

/// Control: without the next start the same comparison fails.
#[lab::test]
fn a_crash_does_leave_something() -> Result<()> {
    let points = [
        "routes-set",
        "resolver-swapped",
        "rekey-ike-done",
        "divert-rule-added",
    ];
    for point in points {
        let bed = Bed::new(point)?;
        let before = bed.traces()?;
        bed.crash_at(point)?;
        ensure!(bed.traces()? != before, "{point} leaves nothing");
    }
    Ok(())
}

/// After the crash the gateway has keys that the mobile node lost, or waits for an answer.
// Recovers: rekey
#[lab::test]
fn after_a_crash_inside_a_rekey_the_tunnel_comes_back() -> Result<()> {
    for point in POINTS.into_iter().filter(is_rekey) {
        let bed = Bed::new(point)?;
        let gateway = bed.pair.start_gateway(Terms::PLAIN)?;
        bed.die_at(point)?;
        let mut process = bed.start_again()?;
        process.wait_for_log(bed.is_up(), DEADLINE)?;
        gateway.wait_until("status", DEADLINE, |status| {
            pair::is_up(status) && pair::children(status).len() == 1
        })?;
        transfer(&bed.pair.mobile, &bed.pair.gateway, GATEWAY[0], 10_000)?;
        let status = process.terminate(DEADLINE)?;
        ensure!(status.success(), "{point}: {status}: {}", process.log());
    }
    Ok(())
}

#[lab::test]
fn a_point_that_does_not_exist_is_refused() -> Result<()> {
    let bed = Bed::new("tun-made")?;
    let mut process = bed.start(&["--die-at", "nowhere"])?;
    let status = process.wait(DEADLINE)?;
    ensure!(status.code() == Some(2), "{status}");
    ensure!(
        process.log().contains("unknown crash point"),
        "{}",
        process.log()
    );
    Ok(())
}

/// One host with the daemon under test.
struct Bed {
    pair: Pair,
    role: Role,
    config: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Endpoint,
    Locked,
    Licensed,
    /// It leases addresses from a peer.
    Borrower,
    /// It leases addresses to a peer.
    Lender,
}

impl Bed {
    fn new(point: &str) -> Result<Self> {
        let pair = Pair::new("crash")?;
        let role = match point.split_once('-') {
            Some(("lock", _)) => Role::Locked,
            Some(("divert", _)) => Role::Licensed,
            Some(("leased", _)) => Role::Borrower,
            Some(("pool", _)) => Role::Lender,
            _ => Role::Endpoint,
        };
        let mut config = match role {
            Role::Licensed => pair::licensed_config(pair::LICENSED),
            Role::Borrower => lending::borrower_config(&BORROWER),
            Role::Lender => lending::lender_config(&pair.gateway, POOL),
            Role::Endpoint | Role::Locked => {
                let resolver = pair.mobile.file("resolv.conf", FORMER)?;
                let tunnel = format!(
                    "[tunnel]\ndns = [\"10.8.0.53\"]\nresolver = \"{}\"\n",
                    resolver.display()
                );
                pair::mobile_config(Family::V4, Terms::PLAIN, "auto").replace("[tunnel]\n", &tunnel)
            }
        };
        if role == Role::Locked {
            config.push_str("leak = \"never\"\n");
        }
        let bed = Self { pair, role, config };
        let host = bed.host();
        let socket = host.directory().join("api.sock");
        let control = format!("[control]\nsocket = \"{}\"\n", socket.display());
        host.file("strata.toml", &format!("{}{control}", bed.config))?;
        host.secret("tunnel.psk", pair::TUNNEL_KEY)?;
        host.secret("node.psk", "a key that nobody asks for")?;
        Ok(bed)
    }

    fn host(&self) -> &Host {
        match self.role {
            Role::Endpoint | Role::Locked | Role::Borrower => &self.pair.mobile,
            Role::Lender => &self.pair.gateway,
            Role::Licensed => &self.pair.between,
        }
    }

    fn start(&self, arguments: &[&str]) -> Result<Process> {
        let mut command = self.host().command(find_binary("stratad")?);
        command.arg("--config").arg("strata.toml").args(arguments);
        self.host().start("stratad", command)
    }

    fn crash_at(&self, point: &str) -> Result<()> {
        let _other = match self.role {
            Role::Borrower => self.pair.start_lender(POOL)?,
            Role::Lender => self.pair.start_borrower(&self.pair.mobile, &BORROWER)?,
            Role::Endpoint | Role::Locked | Role::Licensed => {
                self.pair.start_gateway(Terms::PLAIN)?
            }
        };
        self.die_at(point)
    }

    /// Runs the daemon through set-up, rekey and teardown until it dies.
    fn die_at(&self, point: &str) -> Result<()> {
        let mut process = self.start(&["--die-at", point])?;
        let up = |log: &str| log.contains(self.is_up()).then_some(());
        // If it died earlier, the checks below find it.
        let _ = process.wait_for("the daemon to be up", DEADLINE, up);
        let status = match is_rekey(&point) {
            true => {
                self.rekey(point.contains("-ike-"))?;
                process.wait(DEADLINE)?
            }
            false => process.terminate(DEADLINE)?,
        };
        let killed = status.signal() == Some(Signal::SIGKILL as i32);
        ensure!(
            killed,
            "{point} is never reached: {status}, {}",
            process.log()
        );
        Ok(())
    }

    /// Requests a rekey. The request fails if the daemon dies before it answers.
    fn rekey(&self, ike: bool) -> Result<()> {
        let mut command = self.host().command(find_binary("strata")?);
        command.args(["--socket", "api.sock", "rekey", "office"]);
        command.args(ike.then_some("--ike"));
        let _ = self.host().run_command(command, DEADLINE);
        Ok(())
    }

    /// Returns the last log message of a complete set-up.
    fn is_up(&self) -> &'static str {
        match self.role {
            Role::Endpoint | Role::Locked | Role::Borrower | Role::Lender => "tunnel up",
            Role::Licensed => "runs as",
        }
    }

    fn start_again(&self) -> Result<Process> {
        // Removes the log of the predecessor, so that only the new daemon's messages count.
        fs::remove_file(self.host().directory().join("stratad.log"))?;
        let mut process = self.start(&[])?;
        process.wait_for_log("runs as", DEADLINE)?;
        Ok(process)
    }

    fn start_and_stop(&self) -> Result<()> {
        let mut process = self.start_again()?;
        let status = process.terminate(DEADLINE)?;
        ensure!(status.success(), "{status}: {}", process.log());
        if self.role == Role::Locked {
            let status = self.start(&["--unlock"])?.wait(DEADLINE)?;
            ensure!(status.success(), "unlocking: {status}");
        }
        Ok(())
    }

    /// Lists devices, sockets, rules, routes, filters, settings, and the list of name servers.
    fn traces(&self) -> Result<Vec<String>> {
        let host = self.host();
        let mut traces = pair::traces(host)?;
        traces.push(host.run("nft list ruleset")?);
        traces.extend(host.inside(|| Ok(settings(Path::new("/proc/sys/net"))))?);
        let mut files: Vec<_> = fs::read_dir(host.directory())?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.to_string_lossy().contains("resolv.conf"))
            .collect();
        files.sort();
        for file in files {
            traces.push(format!(
                "{}: {:?}",
                file.display(),
                fs::read_to_string(&file)?
            ));
        }
        Ok(traces)
    }
}

fn is_rekey(point: &&str) -> bool {
    point.starts_with("rekey-")
}

/// Lists every readable network setting with its value.
fn settings(folder: &Path) -> Vec<String> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    let of = |path: std::path::PathBuf| match path.is_dir() {
        true => settings(&path),
        false => fs::read_to_string(&path)
            .map(|value| format!("{} = {}", path.display(), value.trim_end()))
            .into_iter()
            .collect(),
    };
    entries.into_iter().flat_map(of).collect()
}
