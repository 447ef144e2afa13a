//! The loads, and the measurements of them.

use super::line::Line;
use crate::bench::iperf::{self, number};
use crate::process::{DEADLINE, Process};
use anyhow::{Context, Result, anyhow, ensure};
use nix::unistd::{SysconfVar, sysconf};
use serde_json::Value;
use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Measurements of one turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Payload throughput over one TCP connection, in 10^9 bits per second.
    pub one: f64,
    /// Payload throughput over four TCP connections, in 10^9 bits per second.
    pub four: f64,
    /// Processor time of the whole machine for 10^9 octets over one connection, in seconds.
    pub cpu: f64,
    /// Received datagrams of 64 octets per second.
    pub packets: f64,
    /// Round-trip time without other traffic, in microseconds.
    pub rtt: f64,
    /// Round-trip time during four TCP connections, in microseconds.
    pub loaded: f64,
}

/// Octets of small datagrams, without headers.
const SMALL: usize = 64;

/// Number of round trips without other traffic.
const TURNS: usize = 300;

/// Interval between round trips. A fixed interval weighs loaded and quiet moments alike; otherwise
/// quiet moments would contribute more round trips.
const PACE: Duration = Duration::from_millis(1);

/// Time after which a datagram counts as lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// Number of attempts at a load.
const TRIES: usize = 5;

pub(super) fn measure(line: &Line, seconds: u32) -> Result<Sample> {
    let begun = Instant::now();
    let rtt = round_trips(
        line,
        |count| Ok(count < TURNS && begun.elapsed() < DEADLINE),
    )?;
    let small = format!("--udp --bitrate 0 --length {SMALL}");
    let alone = |_: &mut Process| Ok(());
    let (one, spent, ()) = carry(line, seconds, "--parallel 1", alone)?;
    let (four, _, loaded) = carry(line, seconds, "--parallel 4", |client| {
        round_trips(line, |_| Ok(client.child().try_wait()?.is_none()))
    })?;
    let (small, _, ()) = carry(line, seconds, &small, alone)?;
    let octets = number(&one, "/end/sum_received/bytes")?;
    ensure!(octets > 0.0, "nothing arrived");
    let arrived = number(&small, "/end/sum/packets")? - number(&small, "/end/sum/lost_packets")?;
    Ok(Sample {
        one: number(&one, "/end/sum_received/bits_per_second")? / 1e9,
        four: number(&four, "/end/sum_received/bits_per_second")? / 1e9,
        cpu: spent / octets * 1e9,
        packets: arrived / number(&small, "/end/sum/seconds")?,
        rtt,
        loaded,
    })
}

/// Runs a load. Returns iperf3's report, the processor time of the machine, and the result of
/// `beside`, which runs next to the client. If a tunnel drops many packets, the two ends of iperf3
/// may lose each other, or no round trip completes; then the load is repeated.
fn carry<T>(
    line: &Line,
    seconds: u32,
    load: &str,
    beside: impl Fn(&mut Process) -> Result<T>,
) -> Result<(Value, f64, T)> {
    let mut why = None;
    for _ in 0..TRIES {
        let _server = iperf::serve(&line.far, line.address)?;
        let before = busy()?;
        let mut client = iperf::send(&line.near, line.address, seconds, load)?;
        let measured = beside(&mut client);
        let told = iperf::report(&mut client, seconds)?;
        why = match (&told["error"], measured) {
            (Value::Null, Ok(measured)) => return Ok((told, busy()? - before, measured)),
            (Value::Null, Err(error)) => Some(error),
            (error, _) => Some(anyhow!("iperf3: {error}")),
        };
    }
    Err(why.context("no tries")?)
}

/// Returns the median round-trip time. `more` decides by the number of round trips so far whether
/// another one follows.
fn round_trips(line: &Line, mut more: impl FnMut(usize) -> Result<bool>) -> Result<f64> {
    let address = line.address;
    let far = line.far.inside(|| Ok(UdpSocket::bind((address, 0))?))?;
    let near = line.near.inside(|| Ok(UdpSocket::bind(("0.0.0.0", 0))?))?;
    for socket in [&far, &near] {
        socket.set_read_timeout(Some(PATIENCE))?;
    }
    near.connect(far.local_addr()?)?;
    let mut times = Vec::new();
    for number in 0.. {
        if !more(times.len())? {
            break;
        }
        let begun = Instant::now();
        if passes(&near, &far, number).is_ok() {
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        thread::sleep(PACE.saturating_sub(begun.elapsed()));
    }
    crate::experiment::median(&times).context("no round trips")
}

fn passes(near: &UdpSocket, far: &UdpSocket, number: u64) -> io::Result<()> {
    let mut octets = [0; SMALL];
    octets[..8].copy_from_slice(&number.to_be_bytes());
    near.send(&octets)?;
    far.send_to(&octets, arrival(far, &octets)?)?;
    arrival(near, &octets).map(drop)
}

/// Receives these octets and returns their source. A late datagram of an earlier round trip has
/// another number and is skipped.
fn arrival(at: &UdpSocket, octets: &[u8; SMALL]) -> io::Result<SocketAddr> {
    let mut found = [0; SMALL];
    loop {
        let (_, from) = at.recv_from(&mut found)?;
        if found == *octets {
            return Ok(from);
        }
    }
}

/// Returns the seconds that all processors of this machine have been busy, summed.
fn busy() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("/proc/stat is empty")?;
    let ticks: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .map_while(|word| word.parse().ok())
        .collect();
    let hertz = sysconf(SysconfVar::CLK_TCK)?.context("the kernel has no clock tick")?;
    // user, nice, system, idle, iowait, irq, softirq (proc(5))
    let at = |index: usize| ticks.get(index).copied().unwrap_or_default();
    Ok([0, 1, 2, 5, 6].map(at).iter().sum::<f64>() / hertz as f64)
}
