//! What is carried, and what that takes.

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

/// One turn of somebody.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// 10^9 bits of payload a second, over one TCP connection.
    pub one: f64,
    /// The same over four.
    pub four: f64,
    /// Seconds that the machine's processors were busy for 10^9 octets of the first.
    pub cpu: f64,
    /// Datagrams of 64 octets a second that arrived.
    pub packets: f64,
    /// Microseconds to the far host and back, when nothing else is carried.
    pub rtt: f64,
    /// The same beside four TCP connections.
    pub loaded: f64,
}

/// Octets of small datagrams, without headers.
const SMALL: usize = 64;

/// Round trips at rest.
const TURNS: usize = 300;

/// When the next one begins: by the clock, or those of a moment of rest would be more than those of a load.
const PACE: Duration = Duration::from_millis(1);

/// What is not back by then is lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a load is tried.
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

/// What iperf3 says of a load, how long processors were busy with it, and what was measured beside its
/// client. Where a tunnel drops much, the two ends of iperf3 now and then lose each other, or no round trip
/// comes back, and all begins anew.
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

/// The middle one, of as many as there are to be `more` of after so many.
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

/// Where it comes from. What came too late before it has another number.
fn arrival(at: &UdpSocket, octets: &[u8; SMALL]) -> io::Result<SocketAddr> {
    let mut found = [0; SMALL];
    loop {
        let (_, from) = at.recv_from(&mut found)?;
        if found == *octets {
            return Ok(from);
        }
    }
}

/// For how many seconds the processors of this machine have been busy, all together.
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
