//! What is carried, and what that takes.

use super::line::Line;
use crate::host::Host;
use crate::process::{DEADLINE, Process};
use crate::testbed::find_command;
use anyhow::{Context, Result, bail, ensure};
use nix::unistd::{SysconfVar, sysconf};
use serde_json::Value;
use std::fs;
use std::net::UdpSocket;
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
}

/// Octets of small datagrams, without headers.
const SMALL: usize = 64;

const TURNS: usize = 500;

/// How often a load is tried.
const TRIES: usize = 5;

pub(super) fn measure(line: &Line, seconds: u32) -> Result<Sample> {
    let rtt = rtt(line)?;
    let small = format!("--udp --bitrate 0 --length {SMALL}");
    let [(one, spent), (four, _), (small, _)] = [
        carry(line, seconds, "--parallel 1")?,
        carry(line, seconds, "--parallel 4")?,
        carry(line, seconds, &small)?,
    ];
    let octets = number(&one, "/end/sum_received/bytes")?;
    ensure!(octets > 0.0, "nothing arrived");
    let arrived = number(&small, "/end/sum/packets")? - number(&small, "/end/sum/lost_packets")?;
    Ok(Sample {
        one: number(&one, "/end/sum_received/bits_per_second")? / 1e9,
        four: number(&four, "/end/sum_received/bits_per_second")? / 1e9,
        cpu: spent / octets * 1e9,
        packets: arrived / number(&small, "/end/sum/seconds")?,
        rtt,
    })
}

/// What iperf3 says of a load, and how long processors were busy with it. Where a tunnel drops much, the
/// two ends of iperf3 now and then lose each other, and begin anew.
fn carry(line: &Line, seconds: u32, load: &str) -> Result<(Value, f64)> {
    let mut told = Value::Null;
    for _ in 0..TRIES {
        let _server = serve(line)?;
        let before = busy()?;
        told = iperf3(line, seconds, load)?;
        if told["error"].is_null() {
            return Ok((told, busy()? - before));
        }
    }
    bail!("iperf3: {}", told["error"])
}

fn serve(line: &Line) -> Result<Process> {
    let words = format!("--server --one-off --forceflush --bind {}", line.address);
    let mut server = start(&line.far, &words)?;
    server.wait_for_log("Server listening", DEADLINE)?;
    Ok(server)
}

/// It ends with an exit status of its own where it says in JSON what is wrong.
fn iperf3(line: &Line, seconds: u32, load: &str) -> Result<Value> {
    let words = format!("--json --client {} --time {seconds} {load}", line.address);
    let mut client = start(&line.near, &words)?;
    client.wait(DEADLINE + Duration::from_secs(seconds.into()))?;
    let told = client.log();
    serde_json::from_str(&told).with_context(|| format!("what iperf3 says is no JSON: {told}"))
}

fn start(host: &Host, words: &str) -> Result<Process> {
    // What its predecessor said says nothing about it.
    let _ = fs::remove_file(host.directory().join("iperf3.log"));
    let mut command = host.command(find_command("iperf3", "iperf3")?);
    command.args(words.split_whitespace());
    host.start("iperf3", command)
}

fn number(told: &Value, place: &str) -> Result<f64> {
    let number = told.pointer(place).and_then(Value::as_f64);
    number.with_context(|| format!("iperf3 says nothing of {place}: {told}"))
}

/// The middle one of so many, each after the answer to the one before.
fn rtt(line: &Line) -> Result<f64> {
    let address = line.address;
    let far = line.far.inside(|| Ok(UdpSocket::bind((address, 0))?))?;
    let near = line.near.inside(|| Ok(UdpSocket::bind(("0.0.0.0", 0))?))?;
    for socket in [&far, &near] {
        socket.set_read_timeout(Some(DEADLINE))?;
    }
    near.connect(far.local_addr()?)?;
    let times = thread::scope(|scope| {
        let echo = scope.spawn(|| {
            let mut octets = [0; SMALL];
            (0..TURNS).try_for_each(|_| {
                let (_, back) = far.recv_from(&mut octets)?;
                far.send_to(&octets, back).map(drop)
            })
        });
        let times: Result<Vec<f64>> = (0..TURNS)
            .map(|_| {
                let begun = Instant::now();
                near.send(&[0; SMALL])?;
                near.recv(&mut [0; SMALL])?;
                Ok(begun.elapsed().as_secs_f64() * 1e6)
            })
            .collect();
        echo.join().expect("an echo returns its errors")?;
        times
    })?;
    crate::experiment::median(&times).context("no round trips")
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
