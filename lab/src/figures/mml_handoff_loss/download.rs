//! One TCP connection that always has data to send, with the arrival times of its octets.

use super::journey::{Carried, Over, silences};
use crate::host::Host;
use crate::pair::MOBILE;
use crate::transfer::connect;
use crate::walk::Walk;
use anyhow::{Context, Result, ensure};
use os::tcp;
use socket2::SockRef;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Receive buffer of the reader, in octets. It limits the octets under way, so that no queue on the
/// path is ever full and only moves lose packets.
const WINDOW: usize = 32 << 10;

/// Device of the tunnel at both ends.
const DEVICE: &str = "strata0";

/// Time for the network to become empty.
const QUIET: Duration = Duration::from_millis(500);

/// A running download.
pub(super) struct Download {
    watched: TcpStream,
    before: [u64; 2],
    sender: JoinHandle<Result<u64>>,
    receiver: JoinHandle<Result<(u64, Vec<Instant>)>>,
}

impl Download {
    /// Starts a download from home to the mobile node, which runs until `over`.
    pub fn start(walk: &Walk, over: &Over) -> Result<Self> {
        let before = count(walk)?;
        let (out, inward) = connect(&walk.home, &walk.mobile, MOBILE[0])?;
        SockRef::from(&inward).set_recv_buffer_size(WINDOW)?;
        let (watched, stop) = (out.try_clone()?, over.flag());
        Ok(Self {
            watched,
            before,
            sender: thread::spawn(move || send(out, &stop)),
            receiver: thread::spawn(move || receive(inward)),
        })
    }

    /// Waits for the end of the download. Returns its counters, and its gaps in the rounds that
    /// started at these times.
    pub fn end(self, walk: &Walk, times: &[Instant]) -> Result<Carried> {
        let sent = self.sender.join().expect("a sender returns its errors")?;
        let received = self.receiver.join();
        let (received, arrivals) = received.expect("a receiver returns its errors")?;
        ensure!(received == sent, "{received} of {sent} octets came");
        let resent = tcp::sending(&self.watched)?.retransmitted;
        thread::sleep(QUIET);
        let now = count(walk)?;
        let [sent, came] = [0, 1].map(|end| now[end] - self.before[end]);
        Ok(Carried {
            sent,
            lost: sent.saturating_sub(came),
            resent: Some(resent.into()),
            gaps: silences(&arrivals, times),
            ..Carried::default()
        })
    }
}

fn send(mut out: TcpStream, over: &AtomicBool) -> Result<u64> {
    let (chunk, mut sent) = ([0; WINDOW], 0);
    while !over.load(Relaxed) {
        out.write_all(&chunk)?;
        sent += chunk.len() as u64;
    }
    out.shutdown(Shutdown::Write)?;
    Ok(sent)
}

fn receive(mut inward: TcpStream) -> Result<(u64, Vec<Instant>)> {
    let (mut received, mut arrivals) = (0, Vec::new());
    let mut chunk = [0; WINDOW];
    loop {
        match inward.read(&mut chunk)? {
            0 => return Ok((received, arrivals)),
            count => received += count as u64,
        }
        arrivals.push(Instant::now());
    }
}

/// Returns the number of packets that home's kernel sent into the tunnel, and the number that the
/// mobile node's kernel received from it.
fn count(walk: &Walk) -> Result<[u64; 2]> {
    let [(sent, _), (_, came)] = [counters(&walk.home)?, counters(&walk.mobile)?];
    Ok([sent, came])
}

/// Returns the kernel's counters of the tunnel's device: packets sent into the tunnel, and packets
/// received.
fn counters(host: &Host) -> Result<(u64, u64)> {
    let all = host.inside(|| Ok(fs::read_to_string("/proc/thread-self/net/dev")?))?;
    parse(&all).with_context(|| format!("{DEVICE} is not in {all}"))
}

/// Parses a line of proc(5): octets, packets and six more counters of receiving, then packets,
/// errors and drops of sending.
fn parse(all: &str) -> Option<(u64, u64)> {
    let line = all
        .lines()
        .find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    let numbers: Vec<u64> = line
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let dropped = numbers.get(11)?;
    Some((numbers.get(9)? + dropped, *numbers.get(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_counters_are_read() {
        let text = "Inter-| Receive | Transmit\n face |bytes\n    lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n\
                    strata0: 700 7 0 0 0 0 0 0 9000 90 0 3 0 0 0 0\n";
        assert_eq!(parse(text), Some((93, 7)));
        assert_eq!(parse("lo: 1 2\n"), None);
    }
}
