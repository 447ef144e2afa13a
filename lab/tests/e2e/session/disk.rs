//! A gateway whose disk is full for a while: tunnels come up, what it stores is told as missing,
//! and all of it is stored as soon as there is room.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::lending::{ALICE, POOL, borrower_config, lender_config};
use lab::pair::{DEADLINE, Pair, is_down, is_up};
use lab::plain::about_peer;
use lab::process::until;
use serde_json::Value;
use std::path::PathBuf;

/// Room for both files and little else.
const ROOM: &str = "6m";

/// A small disk of a host.
struct Disk<'h> {
    host: &'h Host,
    folder: PathBuf,
}

impl<'h> Disk<'h> {
    fn mount(host: &'h Host) -> Result<Self> {
        let folder = host.directory().join("disk");
        std::fs::create_dir(&folder)?;
        host.run(&format!(
            "mount -t tmpfs -o size={ROOM},mode=700 none {}",
            folder.display()
        ))?;
        Ok(Self { host, folder })
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Leaves no octet free.
    fn fill(&self) -> Result<()> {
        let fill = self.file("fill");
        let dd = format!("dd if=/dev/zero of={fill} bs=4k status=none");
        let filled = self.host.run(&dd);
        ensure!(filled.is_err(), "the disk is larger than {fill}");
        Ok(())
    }

    fn make_room(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.file("fill"))?)
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = self
            .host
            .run(&format!("umount --lazy {}", self.folder.display()));
    }
}

/// Has the client's tunnel end and come up again, and waits until both ends have it.
fn again(mobile: &Daemon, gateway: &Daemon) -> Result<()> {
    mobile.strata_text("down office")?;
    gateway.wait_until("status", DEADLINE, is_down)?;
    mobile.strata_text("up office --wait")?;
    gateway.wait_until("status", DEADLINE, is_up).map(drop)
}

/// Sets the tunnel up again and again until the gateway says that it cannot do this, or that it
/// can.
fn until_told(mobile: &Daemon, gateway: &Daemon, task: &str, fails: bool) -> Result<()> {
    until(task, DEADLINE, || {
        again(mobile, gateway)?;
        let status = gateway.strata("status")?;
        let errors = status["status"]["errors"].as_array();
        let of_task = |error: &Value| error["task"] == task;
        let failing = errors.is_some_and(|errors| errors.iter().any(of_task));
        Ok((failing == fails).then_some(()))
    })
}

fn sessions(gateway: &Daemon) -> Result<usize> {
    let listed = gateway.strata("sessions")?;
    Ok(listed["sessions"]["sessions"]
        .as_array()
        .map_or(0, Vec::len))
}

// Works: resume
// Refuses: resume
// Recovers: resume
// Recovers: pools
// Weakness: 198
#[lab::test]
fn what_a_full_disk_kept_from_being_stored_is_stored_once_there_is_room() -> Result<()> {
    let pair = Pair::new("disk")?;
    let disk = Disk::mount(&pair.gateway)?;
    let ours = about_peer(&lender_config(&pair.gateway, POOL), "resume = \"ticket\"");
    let leases = pair.gateway.directory().join("strata.redb");
    let ours = ours.replace(&leases.display().to_string(), &disk.file("leases.redb"));
    let ours = format!(
        "{ours}\n[sessions]\nfile = \"{}\"\n",
        disk.file("sessions.redb")
    );
    lab::plain::give_keys(&pair)?;
    let mut gateway = pair.gateway.stratad(&ours)?;
    let theirs = about_peer(&borrower_config(&ALICE), "resume = \"ticket\"");
    let mobile = pair.mobile.stratad(&theirs)?;
    mobile.strata_text("up office --wait")?;
    until("a session", DEADLINE, || {
        Ok((sessions(&gateway)? == 1).then_some(()))
    })?;
    disk.fill()?;
    for task in ["sessions", "store"] {
        until_told(&mobile, &gateway, task, true)?;
    }
    // What ends sessions is not lost.
    gateway.strata("sessions --end-all")?;
    disk.make_room()?;
    for task in ["sessions", "store"] {
        until_told(&mobile, &gateway, task, false)?;
    }
    until("a session", DEADLINE, || {
        Ok((sessions(&gateway)? == 1).then_some(()))
    })?;
    gateway.process().crash()?;
    gateway.start_again()?;
    let kept = sessions(&gateway)?;
    ensure!(kept == 1, "{kept} sessions are in the file");
    Ok(())
}
