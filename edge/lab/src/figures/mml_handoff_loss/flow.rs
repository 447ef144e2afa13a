//! Numbered datagrams, a thousand a second, and when each came.

use super::journey::{Carried, Over, silences};
use crate::host::Host;
use anyhow::{Result, ensure};
use os::priority;
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// From one datagram to the next.
const PERIOD: Duration = Duration::from_millis(1);

/// Octets of each, as a voice has.
const LENGTH: usize = 160;

/// After such a silence nothing comes any more, once nothing is sent.
const QUIET: Duration = Duration::from_secs(1);

/// Room for what comes while whoever reads it has no processor.
const BUFFER: usize = 1 << 20;

/// A flow that runs.
pub(super) struct Flow {
    sender: JoinHandle<Result<u64>>,
    receiver: JoinHandle<Result<Arrivals>>,
}

/// The numbers that came, with the time of each.
type Arrivals = Vec<(u64, Instant)>;

impl Flow {
    /// Between addresses of two hosts, until it is over.
    pub fn start(from: (&Host, &str), to: (&Host, &str), over: &Over) -> Result<Self> {
        let (near, far) = (socket(from)?, socket(to)?);
        near.connect(far.local_addr()?)?;
        far.connect(near.local_addr()?)?;
        far.set_read_timeout(Some(QUIET))?;
        // The kernel may give less.
        let _ = socket2::SockRef::from(&far).set_recv_buffer_size(BUFFER);
        let [here, there] = [over.flag(), over.flag()];
        Ok(Self {
            sender: thread::spawn(move || send(&near, &here)),
            receiver: thread::spawn(move || receive(&far, &there)),
        })
    }

    /// Once it is over: what became of it in the rounds that began at these times.
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
            resent: None,
            gaps: silences(&times_of_all, times),
        })
    }
}

fn socket((host, address): (&Host, &str)) -> Result<UdpSocket> {
    let address: IpAddr = address.parse()?;
    host.inside(|| Ok(UdpSocket::bind((address, 0))?))
}

/// Each when it is due; who was late makes up for it. Gives how many there were.
fn send(socket: &UdpSocket, over: &AtomicBool) -> Result<u64> {
    // Or a machine with other work would show in the gaps.
    let _ = priority::make_real_time();
    let mut datagram = [0; LENGTH];
    let mut due = Instant::now();
    for number in 0.. {
        if over.load(Relaxed) {
            return Ok(number);
        }
        datagram[..8].copy_from_slice(&number.to_be_bytes());
        match socket.send(&datagram) {
            // Without a way out a datagram is lost like any other.
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
