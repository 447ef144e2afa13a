//! A gateway counts each of 200,000 malformed datagrams (a million in the long form), does not
//! grow, and sets up the next tunnel within a second.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, Pair, Terms, Tunnel};
use lab::process::until;
use serde_json::{Value, json};
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Instant;

const WARM_UP: u64 = 20_000;
/// Datagrams of the short and of the long form.
const COUNTS: [u64; 2] = [200_000, 1_000_000];

/// Datagrams that the kernel queues for a socket until the daemon reads it.
const BURST: u64 = 128;

/// Limit on the gateway's growth, in octets: a leak of 6 octets per datagram exceeds it.
const MOST_GROWTH: u64 = 1 << 20;

// Weakness: 28
// Weakness: 29
// Weakness: 30
#[lab::test]
fn malformed_datagrams_are_counted_and_cost_no_memory_and_no_tunnel() -> Result<()> {
    let pair = Pair::new("flood")?;
    let tunnel = pair.start_up(Terms::ZONED)?;
    let mut flood = Flood::new(&pair)?;
    flood.throw(&pair, &tunnel, WARM_UP)?;
    let before = resident(&tunnel.gateway)?;
    let [few, all] = COUNTS;
    let count = effort::count("datagrams", few, all);
    flood.throw(&pair, &tunnel, count)?;
    let growth = resident(&tunnel.gateway)?.saturating_sub(before);
    println!("{count} datagrams, {growth} octets more");
    ensure!(growth < MOST_GROWTH, "{growth} octets more");

    tunnel.mobile.strata_text("down office")?;
    let down = |status: &Value| pair::children(status).is_empty();
    tunnel.gateway.wait_until("status", DEADLINE, down)?;
    let begun = Instant::now();
    tunnel.mobile.strata_text("up office --wait")?;
    println!("the next honest set-up took {:?}", begun.elapsed());
    Ok(())
}

/// Recorded genuine packets, and the socket that sends corrupted copies of them.
struct Flood {
    socket: UdpSocket,
    /// Packets, each with its destination port.
    seeds: Vec<(u16, Vec<u8>)>,
    dice: u64,
}

impl Flood {
    fn new(pair: &Pair) -> Result<Self> {
        let socket = pair
            .between
            .inside(|| Ok(UdpSocket::bind("192.0.2.2:0")?))?;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
        let mut seeds = Vec::new();
        for (name, port, marker, skipped) in [
            ("ike_message", 500, &[][..], 0),
            ("ike_message", 4500, &[0; 4][..], 0),
            // The first octet of these seeds is for the fuzzer.
            ("zone_map", 4500, &[][..], 1),
        ] {
            for file in fs::read_dir(folder.join(name))? {
                let octets = fs::read(file?.path())?;
                seeds.push((port, [marker, &octets[skipped..]].concat()));
            }
        }
        let dice = 0x5eed_0000_0000_0001;
        Ok(Self {
            socket,
            seeds,
            dice,
        })
    }

    /// Sends `count` datagrams, never more at once than the kernel keeps, and waits until each is
    /// counted, with what the mobile node sent meanwhile and nothing else. The kernel counts those
    /// for which a busy gateway left no room.
    fn throw(&mut self, pair: &Pair, tunnel: &Tunnel, count: u64) -> Result<()> {
        let gateway = || -> Result<(u64, u64)> {
            let lost = pair.gateway.udp_count("RcvbufErrors")?;
            Ok((counted(&tunnel.gateway)?, lost))
        };
        let (begun, overflowed) = gateway()?;
        let honest = genuine(&tunnel.mobile)?;
        let mut thrown = 0;
        while thrown < count {
            let burst = BURST.min(count - thrown);
            for _ in 0..burst {
                let (port, octets) = self.damaged();
                self.socket.send_to(&octets, ("192.0.2.1", port))?;
            }
            thrown += burst;
            let what = format!("the count of {thrown} datagrams");
            until(&what, DEADLINE, || {
                let (counted, lost) = gateway()?;
                Ok((counted + lost >= begun + overflowed + thrown).then_some(()))
            })?;
        }
        let mut last = String::new();
        let lost = until("a count that is exact", DEADLINE, || {
            let honest = genuine(&tunnel.mobile)? - honest;
            let (counted, lost) = gateway()?;
            let (counted, lost) = (counted - begun, lost - overflowed);
            last = format!("{thrown} thrown and {honest} genuine, {counted} counted, {lost} lost");
            Ok((counted + lost == thrown + honest).then_some(lost))
        });
        let lost = lost.context(last)?;
        println!("{lost} of {thrown} overflowed the socket's buffer");
        ensure!(lost * 100 <= thrown, "{lost} of {thrown} were lost");
        Ok(())
    }

    fn damaged(&mut self) -> (u16, Vec<u8>) {
        let index = self.roll(self.seeds.len());
        let (port, mut octets) = self.seeds[index].clone();
        let len = octets.len();
        match self.roll(4) {
            // At least two octets: a single octet may be a keepalive, which no counter includes.
            0 => octets.truncate(2 + self.roll(len - 2)),
            1 => octets
                .iter_mut()
                .for_each(|octet| *octet = self.roll(256) as u8),
            _ => {
                for _ in 0..=self.roll(6) {
                    let at = self.roll(len);
                    octets[at] ^= 1 + self.roll(255) as u8;
                }
            }
        }
        (port, octets)
    }

    fn roll(&mut self, below: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 8) as usize % below
    }
}

/// Returns the daemon's own count of all datagrams from outside: IKE messages that the engine
/// handled or dropped, those that unauthenticated initiators sent beyond the queue or the share of
/// time for them, and ESP packets.
fn counted(daemon: &Daemon) -> Result<u64> {
    let metrics = Metrics::read(daemon)?;
    let received = metrics.sum("strata_ike_datagrams_total", &["received"]);
    let handled = metrics.sum("strata_ike_datagrams_total", &["taken", "answered_again"]);
    let dropped = metrics.sum_without("strata_ike_dropped_total", &[]);
    ensure!(
        received == handled + dropped,
        "{received} received, but {handled} handled and {dropped} dropped"
    );
    let refused = metrics.sum("strata_system_refused_total", &["unproved"]);
    let opened = metrics.sum("strata_esp_packets_total", &["opened"]);
    Ok(received + refused + opened + metrics.sum_without("strata_esp_dropped_total", OUTBOUND))
}

/// Returns the number of datagrams that an honest daemon sent.
fn genuine(daemon: &Daemon) -> Result<u64> {
    let metrics = Metrics::read(daemon)?;
    let ike = metrics.sum("strata_ike_datagrams_total", &["sent"]);
    Ok(ike + metrics.sum("strata_esp_packets_total", &["sealed"]))
}

/// Drop reasons of outbound packets.
const OUTBOUND: &[&str] = &[
    "datagram_malformed",
    "discard_policy",
    "bypass_not_routed",
    "no_sa",
    "no_policy",
    "sequence_exhausted",
    "too_big",
];

/// Counters from a daemon's metrics.
struct Metrics(String);

impl Metrics {
    fn read(daemon: &Daemon) -> Result<Self> {
        daemon.ask("metrics", json!({})).map(Self)
    }

    /// Sums the samples of a counter with one of these labels.
    fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let chosen = |(label, count)| labels.contains(&label).then_some(count);
        self.samples(name).filter_map(chosen).sum()
    }

    /// Sums the samples of a counter with none of these labels.
    fn sum_without(&self, name: &str, labels: &[&str]) -> u64 {
        let chosen = |(label, count)| (!labels.contains(&label)).then_some(count);
        self.samples(name).filter_map(chosen).sum()
    }

    /// Returns the samples of a counter. Lines are `name{kind="label"} 5`, with quotes and newlines
    /// escaped as in JSON.
    fn samples<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        let lines = self.0.split("\\n");
        lines.filter_map(move |line| {
            let (_, rest) = line.strip_prefix(name)?.split_once("=\\\"")?;
            let (label, count) = rest.split_once("\\\"} ")?;
            Some((label, count.parse().ok()?))
        })
    }
}

/// Returns the daemon's resident memory, in octets.
fn resident(daemon: &Daemon) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: u64 = kib.context("the kernel tells VmRSS")?.parse()?;
    Ok(kib << 10)
}
