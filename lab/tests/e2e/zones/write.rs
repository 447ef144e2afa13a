//! `right = "write"` and `[regulate]`: a licensed node lowers TCP windows, and the kernel's sender
//! obeys them. With another right, or after a revocation, the node lowers nothing.

use anyhow::{Context, Result, bail, ensure};
use lab::daemon::Daemon;
use lab::pair::{
    DEADLINE, HEADERS, LICENSED, MOBILE, NODE_KEY, Pair, Terms, Tunnel, licensed_config,
    mobile_config,
};
use lab::process::until;
use lab::transfer::connect;
use lab::wiretap::Wiretap;
use os::Family;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wire::zoned::Overlay;

const WRITE: &str = r#"[{ node = "fa.example.net", zones = ["headers"], right = "write" }]"#;

const WINDOW: u64 = 32 << 10;

fn licensing(licences: &str) -> Terms<'_> {
    Terms {
        zones: "require",
        licences,
    }
}

/// Starts a tunnel through a node that is configured to lower windows.
fn start(pair: &Pair, licences: &str) -> Result<(Daemon, Tunnel)> {
    pair.between.secret("node.psk", NODE_KEY)?;
    let config = licensed_config(LICENSED) + "[regulate]\nwindow = \"32KiB\"\n";
    let licensed = pair.between.stratad(&config)?;
    let terms = licensing(licences);
    let tunnel = pair.start(Family::V4, terms, terms)?;
    tunnel.up()?;
    has_keys(&licensed, DEADLINE)?;
    Ok((licensed, tunnel))
}

fn has_keys(licensed: &Daemon, deadline: Duration) -> Result<Value> {
    let held = |zones: &Value| zones["zones"]["held"][0].is_object();
    licensed.wait_until("zones", deadline, held)
}

/// A download by the mobile node.
struct Download {
    sender: TcpStream,
    receiver: TcpStream,
}

impl Download {
    fn begin(pair: &Pair) -> Result<Self> {
        let (sender, receiver) = connect(&pair.gateway, &pair.mobile, MOBILE[0])?;
        Ok(Self { sender, receiver })
    }

    /// Transfers enough data for the receiver to open its window.
    fn go_on(&mut self) -> Result<()> {
        let chunk = [7; 8192];
        let mut room = [0; 8192];
        for _ in 0..40 {
            self.sender.write_all(&chunk)?;
            self.receiver.read_exact(&mut room)?;
        }
        Ok(())
    }

    /// Returns the send window in the sender's kernel, in octets.
    fn window(&self, pair: &Pair) -> Result<u64> {
        let port = self.sender.local_addr()?.port();
        let told = pair.gateway.run(&format!("ss -tinH sport = :{port}"))?;
        let window = told
            .split_whitespace()
            .find_map(|word| word.strip_prefix("snd_wnd:"));
        let window = window.with_context(|| format!("no window in {told}"))?;
        Ok(window.parse()?)
    }
}

// Works: write-right
// Answers: write-what
#[lab::test]
fn a_kernels_sender_keeps_to_the_window_that_a_writer_lowers() -> Result<()> {
    let pair = Pair::new("write")?;
    let (licensed, tunnel) = start(&pair, WRITE)?;
    let mut download = Download::begin(&pair)?;
    for _ in 0..3 {
        download.go_on()?;
        let window = download.window(&pair)?;
        ensure!(window <= WINDOW, "the sender believes {window}");
    }
    let zones = has_keys(&licensed, DEADLINE)?;
    ensure!(
        zones["zones"]["held"][0]["writes"] == json!(["window"]),
        "{zones}"
    );
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let zones = daemon.strata("zones")?;
        let holder = &zones["zones"]["composites"][0]["holders"][0];
        ensure!(holder["right"] == "write", "{zones}");
    }
    let status = tunnel.gateway.strata("status")?;
    ensure!(status["status"]["written"].as_u64() > Some(10), "{status}");
    ensure!(lowered(&licensed)? > 10, "nothing was counted");
    Ok(())
}

fn lowered(licensed: &Daemon) -> Result<u64> {
    let metrics = licensed.strata_text("metrics")?;
    let line = metrics.lines().find(|line| {
        line.starts_with("strata_regulated_windows_total") && line.contains("\"lowered\"")
    });
    let number = line.and_then(|line| line.rsplit(' ').next());
    Ok(number.context("no such counter")?.parse()?)
}

/// Control: the same node and configuration without the right to write.
// Refuses: write-right
// Answers: write-without
#[lab::test]
fn a_node_that_may_only_read_lowers_no_window() -> Result<()> {
    let pair = Pair::new("write")?;
    let (licensed, tunnel) = start(&pair, HEADERS)?;
    let mut download = Download::begin(&pair)?;
    download.go_on()?;
    let window = download.window(&pair)?;
    ensure!(window > WINDOW, "the sender believes {window}");
    ensure!(lowered(&licensed)? == 0);
    let status = tunnel.gateway.strata("status")?;
    ensure!(status["status"]["written"] == 0, "{status}");
    Ok(())
}

// Refuses: write-right
#[lab::test]
fn a_licence_to_write_that_is_taken_back_ends_while_packets_flow() -> Result<()> {
    let pair = Pair::new("write")?;
    let (licensed, tunnel) = start(&pair, WRITE)?;
    let mut download = Download::begin(&pair)?;
    download.go_on()?;
    ensure!(download.window(&pair)? <= WINDOW);
    let without = mobile_config(Family::V4, Terms::ZONED, "manual");
    tunnel.mobile.change(&without)?;
    until("a window that nobody lowers", DEADLINE, || {
        download.go_on()?;
        Ok((download.window(&pair)? > WINDOW).then_some(()))
    })?;
    let nothing = |zones: &Value| !zones["zones"]["held"][0].is_object();
    licensed.wait_until("zones", DEADLINE, nothing)?;
    Ok(())
}

/// A duplicate of a packet carries the same overlay, because a number belongs to one packet.
// Recovers: write-right
// Weakness: S19
#[lab::test]
fn no_number_comes_twice_over_a_crash_of_the_writer_and_a_lossy_hop() -> Result<()> {
    let pair = Pair::with_lossy_hop("write", lossy())?;
    let (mut licensed, _tunnel) = start(&pair, WRITE)?;
    let tap = Wiretap::open(&pair.gateway)?;
    let mut numbers = BTreeMap::new();
    for round in 1..=2 {
        let mut download = Download::begin(&pair)?;
        download.go_on()?;
        ensure!(download.window(&pair)? <= WINDOW, "round {round}");
        // The crash interrupts the download.
        licensed.process().crash()?;
        licensed.start_again()?;
        download.go_on()?;
        has_keys(&licensed, DEADLINE)?;
        note(&tap, &mut numbers)?;
    }
    let grants: std::collections::BTreeSet<_> = numbers.keys().map(|(_, n)| n >> 48).collect();
    ensure!(
        grants.len() == 2 && numbers.len() > 30,
        "{grants:?}, {} overlays",
        numbers.len()
    );
    Ok(())
}

/// Records the numbers of all overlays that the tap has seen, each with its packet; fails on a
/// reused number.
fn note(tap: &Wiretap, numbers: &mut BTreeMap<(u32, u64), Vec<u8>>) -> Result<()> {
    while let Some(seen) = tap.next()? {
        let Some(esp) = seen.esp() else { continue };
        if let Ok(Some((_, overlay))) = Overlay::read(esp) {
            let spi = u32::from_be_bytes([esp[0], esp[1], esp[2], esp[3]]);
            let before = numbers.insert((spi, overlay.number()), esp.to_vec());
            if before.is_some_and(|before| before != esp) {
                bail!(
                    "{:x} of {spi:x} is the number of two overlays",
                    overlay.number()
                );
            }
        }
    }
    Ok(())
}

fn lossy() -> sim::Settings {
    sim::Settings {
        rate: std::num::NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        // One in a hundred full packets is lost.
        bit_error_rate: 1.0 / 1_200_000.0,
    }
}
