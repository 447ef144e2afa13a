//! Providers of AES-GCM: one end of a tunnel uses libipsec-mb, the other AWS-LC.

use anyhow::{Context, Result, bail, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, TUNNEL_KEY, Terms, Tunnel};
use lab::plain;
use lab::transfer::transfer;
use model::Suite;
use os::Family;
use std::fs;
use std::path::{Path, PathBuf};

const OCTETS: u64 = 300_000;

const THEIRS: &str = "aead = \"ipsec-mb\"";
const AUTO: &str = "aead = \"auto\"";
const NONE: &str = "";

fn configs(terms: Terms<'_>, lines: [&str; 2]) -> [String; 2] {
    [
        in_node(&pair::mobile_config(Family::V4, terms, "manual"), lines[0]),
        in_node(&pair::gateway_config(terms), lines[1]),
    ]
}

fn in_node(config: &str, line: &str) -> String {
    plain::in_table(config, "[node]", line)
}

fn start(pair: &Pair, terms: Terms<'_>, lines: [&str; 2]) -> Result<Tunnel> {
    let tunnel = plain::start_with(pair, &configs(terms, lines))?;
    tunnel.up()?;
    Ok(tunnel)
}

/// Returns true if a daemon has loaded the library, according to its memory map.
fn has_loaded(daemon: &Daemon) -> Result<bool> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", daemon.pid()))?;
    Ok(maps.contains("libIPSec_MB"))
}

fn carry(pair: &Pair, tunnel: &Tunnel) -> Result<()> {
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], OCTETS)?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        pair::no_drops(&daemon.strata("status")?)?;
    }
    Ok(())
}

/// Suites that libipsec-mb lacks use AWS-LC at both ends.
// Works: ipsec-mb
#[lab::test]
fn every_suite_is_carried_between_the_two() -> Result<()> {
    for suite in Suite::ALL {
        let pair = Pair::new("aead")?;
        let suite = format!("suite = \"{suite}\"");
        let configs = configs(Terms::PLAIN, [THEIRS, NONE]);
        let configs = configs.map(|config| plain::about_peer(&config, &suite));
        let tunnel = plain::start_with(&pair, &configs)?;
        tunnel.up()?;
        carry(&pair, &tunnel).with_context(|| suite.clone())?;
        let loaded = [has_loaded(&tunnel.mobile)?, has_loaded(&tunnel.gateway)?];
        ensure!(loaded == [true, false], "{loaded:?}");
    }
    Ok(())
}

// Works: ipsec-mb
#[lab::test]
fn zones_are_carried_between_the_two_and_a_licensed_node_has_either() -> Result<()> {
    for line in [THEIRS, NONE] {
        let pair = Pair::new("aead")?;
        let node = in_node(&pair::licensed_config(LICENSED), line);
        let node = pair.start_licensed_as(&node)?;
        let tunnel = start(&pair, Terms::LICENSED, [NONE, THEIRS])?;
        node.wait_until("zones", DEADLINE, pair::holds_a_grant)?;
        carry(&pair, &tunnel)?;
        ensure!(pair::segments(&node)? > 100);
        ensure!(has_loaded(&node)? == (line == THEIRS));
    }
    Ok(())
}

// Works: ipsec-mb
#[lab::test]
fn auto_is_the_library_where_it_is_installed() -> Result<()> {
    let pair = Pair::new("aead")?;
    let mut tunnel = start(&pair, Terms::PLAIN, [AUTO, NONE])?;
    carry(&pair, &tunnel)?;
    ensure!(has_loaded(&tunnel.mobile)?);
    let told = "using AES-GCM of libipsec-mb 1.";
    tunnel.mobile.process().wait_for_log(told, DEADLINE)
}

/// Control of the other tests.
// Refuses: ipsec-mb
#[lab::test]
fn without_a_word_nobody_loads_it() -> Result<()> {
    let pair = Pair::new("aead")?;
    let tunnel = start(&pair, Terms::PLAIN, [NONE, "aead = \"aws-lc\""])?;
    carry(&pair, &tunnel)?;
    ensure!(!has_loaded(&tunnel.mobile)? && !has_loaded(&tunnel.gateway)?);
    Ok(())
}

/// Covers the library with an empty file, within this program's mount namespace. Removed on drop.
struct Covered<'p> {
    pair: &'p Pair,
    library: PathBuf,
}

impl<'p> Covered<'p> {
    fn new(pair: &'p Pair) -> Result<Self> {
        let library = Path::new("/usr/lib/x86_64-linux-gnu/libIPSec_MB.so.1").canonicalize()?;
        let mount = format!("mount --bind /dev/null {}", library.display());
        pair.mobile.run(&mount)?;
        Ok(Self { pair, library })
    }
}

impl Drop for Covered<'_> {
    fn drop(&mut self) {
        let unmount = format!("umount {}", self.library.display());
        let _ = self.pair.mobile.run(&unmount);
    }
}

// Refuses: ipsec-mb
#[lab::test]
fn where_it_is_missing_the_daemon_names_the_package_and_auto_does_without() -> Result<()> {
    let pair = Pair::new("aead")?;
    let _covered = Covered::new(&pair)?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    let [config, _] = configs(Terms::PLAIN, [THEIRS, NONE]);
    let Err(refused) = pair.mobile.stratad(&config) else {
        bail!("it started");
    };
    let refused = format!("{refused:?}");
    ensure!(
        refused.contains("install the package libipsec-mb1"),
        "{refused}"
    );
    let mut tunnel = start(&pair, Terms::PLAIN, [AUTO, NONE])?;
    carry(&pair, &tunnel)?;
    let told = "using AES-GCM of AWS-LC: libipsec-mb cannot be loaded";
    tunnel.mobile.process().wait_for_log(told, DEADLINE)
}

// Refuses: ipsec-mb
#[lab::test]
fn a_word_for_nobody_is_refused_with_the_words() -> Result<()> {
    let pair = Pair::new("aead")?;
    let tunnel = start(&pair, Terms::PLAIN, [NONE; 2])?;
    let [config, _] = configs(Terms::PLAIN, ["aead = \"openssl\"", NONE]);
    tunnel.mobile.configure(&config)?;
    tunnel.mobile.refuses("reload", "ipsec-mb")
}

// Refuses: ipsec-mb
#[lab::test]
fn another_word_needs_a_restart() -> Result<()> {
    let pair = Pair::new("aead")?;
    let tunnel = start(&pair, Terms::PLAIN, [NONE; 2])?;
    let [config, _] = configs(Terms::PLAIN, [THEIRS, NONE]);
    let told = tunnel.mobile.change(&config)?;
    ensure!(
        told.contains("node.aead") && told.contains("restart"),
        "{told}"
    );
    ensure!(!has_loaded(&tunnel.mobile)?);
    Ok(())
}
