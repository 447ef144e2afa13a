//! Numbered datagrams, a thousand per second, with the arrival time of each.

use super::journey::{Carried, Over, silences};
use crate::host::Host;
use anyhow::{Result, ensure};
use os::priority;
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval between two datagrams.
const PERIOD: Duration = Duration::from_millis(1);

/// Octets of each datagram, as in a voice call.
const LENGTH: usize = 160;

/// Silence after which nothing arrives any more, once nothing is sent.
const QUIET: Duration = Duration::from_secs(1);

/// Receive buffer for datagrams that arrive while the reader has no processor.
const BUFFER: usize = 1 << 20;

/// A running flow.
pub(super) struct Flow {
    sender: JoinHandle<Result<u64>>,
    receiver: JoinHandle<Result<Arrivals>>,
}

/// Numbers of the datagrams that arrived, with their times.
type Arrivals = Vec<(u64, Instant)>;

impl Flow {
    /// Starts a flow between addresses of two hosts, which runs until `over`.
    pub fn start(from: (&Host, &str), to: (&Host, &str), over: &Over) -> Result<Self> {
        let (near, far) = (socket(from)?, socket(to)?);
        near.connect(far.local_addr()?)?;
        far.connect(near.local_addr()?)?;
        far.set_read_timeout(Some(QUIET))?;
        // The kernel may grant a smaller buffer.
        let _ = socket2::SockRef::from(&far).set_recv_buffer_size(BUFFER);
        let [here, there] = [over.flag(), over.flag()];
        Ok(Self {
            sender: thread::spawn(move || send(&near, &here)),
            receiver: thread::spawn(move || receive(&far, &there)),
        })
    }

    /// Waits for the end of the flow. Returns its counters, and its gaps in the rounds that started
    /// at these times.
    pub fn end(self, times: &[Instant]) -> Result<Carried> {
        let sent = self.sender.join().expect("a sender returns its errors")?;
        let arrivals = self
            .receiver
            .join()
            .expect("a receiver returns its errors")?;
        let mut came = vec![false; sent as usize];
        for (number, _) in &arrivals {
            let twice = std::mem::replace(&mut came[*number as usize], true);
            ensure!(!twice, "datagram {number} came twice");
        }
        let times_of_all: Vec<_> = arrivals.iter().map(|(_, at)| *at).collect();
        Ok(Carried {
            sent,
            lost: sent - arrivals.len() as u64,
            gaps: silences(&times_of_all, times),
            ..Carried::default()
        })
    }
}

fn socket((host, address): (&Host, &str)) -> Result<UdpSocket> {
    let address: IpAddr = address.parse()?;
    host.inside(|| Ok(UdpSocket::bind((address, 0))?))
}

/// Sends each datagram when it is due, and catches up after a delay. Returns the number of
/// datagrams.
fn send(socket: &UdpSocket, over: &AtomicBool) -> Result<u64> {
    // Otherwise other load on the machine would show in the gaps.
    let _ = priority::make_real_time();
    let mut datagram = [0; LENGTH];
    let mut due = Instant::now();
    for number in 0.. {
        if over.load(Relaxed) {
            return Ok(number);
        }
        datagram[..8].copy_from_slice(&number.to_be_bytes());
        match socket.send(&datagram) {
            // Without a route a datagram is lost like any other.
            Err(error) if error.kind() == ErrorKind::NetworkUnreachable => {}
            sent => _ = sent?,
        }
        due += PERIOD;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(u64::MAX)
}

fn receive(socket: &UdpSocket, over: &AtomicBool) -> Result<Arrivals> {
    let _ = priority::make_real_time();
    let mut arrivals = Vec::new();
    let mut datagram = [0; LENGTH];
    loop {
        match socket.recv(&mut datagram) {
            Ok(_) => {
                let (number, _) = datagram.split_first_chunk().expect("it is longer");
                arrivals.push((u64::from_be_bytes(*number), Instant::now()));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if over.load(Relaxed) {
                    return Ok(arrivals);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}
