//! A thousand numbered packets per second in both directions: how many are lost, and the longest
//! time without one.

use crate::host::Host;
use crate::process::{DEADLINE, until};
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two packets.
const PAUSE: Duration = Duration::from_millis(1);

/// Read timeout of a receiver.
const LOOK: Duration = Duration::from_millis(50);

/// Time after the last packet until missing packets count as lost.
const SILENCE: Duration = Duration::from_secs(2);

/// Packets of one direction: sent, lost, and the longest time without one of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Gaps {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Longest time between two arrivals of a flow.
    pub longest: Duration,
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sent,
            lost,
            longest,
        } = self;
        write!(
            f,
            "{lost} of {sent} lost, longest gap {} ms",
            longest.as_millis()
        )
    }
}

/// The counters of running streams.
#[derive(Default)]
pub struct Counters {
    sent: [AtomicU64; 2],
    arrived: [AtomicU64; 2],
}

impl Counters {
    /// Waits until this many more packets have been sent in each direction.
    ///
    /// # Errors
    /// They were not sent in time.
    pub fn wait_for(&self, more: u64) -> Result<()> {
        let goals = [0, 1].map(|way| self.sent[way].load(Relaxed) + more);
        until("more packets", DEADLINE, || {
            let all = (0..2).all(|way| self.sent[way].load(Relaxed) >= goals[way]);
            Ok(all.then_some(()))
        })
    }

    /// Waits until at least this many more packets are missing, both directions together.
    ///
    /// # Errors
    /// They arrived.
    pub fn wait_for_losses(&self, more: u64) -> Result<()> {
        let goal = self.missing() + more;
        until("lost packets", DEADLINE, || {
            Ok((self.missing() >= goal).then_some(()))
        })
    }

    /// Returns true if nothing of one direction is missing.
    fn has_all(&self, way: usize) -> bool {
        self.arrived[way].load(Relaxed) == self.sent[way].load(Relaxed)
    }

    fn missing(&self) -> u64 {
        let of = |counters: &[AtomicU64; 2]| -> u64 {
            counters.iter().map(|counter| counter.load(Relaxed)).sum()
        };
        let arrived = of(&self.arrived);
        of(&self.sent).saturating_sub(arrived)
    }
}

/// Sends packets between an address of one host and an address of another while `meanwhile` runs.
/// Returns what became of those to the second host, and of those to the first.
///
/// # Errors
/// A packet came twice, or `meanwhile` failed.
pub fn measure(
    near: (&Host, &str),
    far: (&Host, &str),
    meanwhile: impl FnOnce(&Counters) -> Result<()>,
) -> Result<[Gaps; 2]> {
    measure_flows(1, near, far, meanwhile)
}

/// Sends the same number of packets on so many flows in turns.
///
/// # Errors
/// As [`measure`].
pub fn measure_flows(
    flows: usize,
    near: (&Host, &str),
    far: (&Host, &str),
    meanwhile: impl FnOnce(&Counters) -> Result<()>,
) -> Result<[Gaps; 2]> {
    let (near, far) = connect(flows, near, far)?;
    let counters = Counters::default();
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let senders = [&near, &far].into_iter().zip(&counters.sent);
        let senders: Vec<_> = senders
            .map(|(sockets, sent)| scope.spawn(|| send(sockets, sent, &stop)))
            .collect();
        let (counters, over) = (&counters, &over);
        let receivers = [(&far, 0), (&near, 1)].map(|(sockets, way)| {
            let receiving = sockets.iter();
            let receiving =
                receiving.map(|socket| scope.spawn(move || receive(socket, counters, way, over)));
            receiving.collect::<Vec<_>>()
        });
        let result = meanwhile(counters);
        stop.store(true, Relaxed);
        for sender in senders {
            sender.join().expect("a sender does not panic");
        }
        over.store(true, Relaxed);
        let longest = receivers.map(|receivers| {
            let longest = receivers.into_iter().map(|receiver| {
                let received = receiver.join();
                received.expect("a receiver returns its errors")
            });
            longest.collect::<Result<Vec<_>>>()
        });
        let [there, back] = longest;
        let longest = [there?, back?].map(|flows| flows.into_iter().max().unwrap_or_default());
        result?;
        Ok([0, 1].map(|way| {
            let sent = counters.sent[way].load(Relaxed);
            Gaps {
                sent,
                lost: sent.saturating_sub(counters.arrived[way].load(Relaxed)),
                longest: longest[way],
            }
        }))
    })
}

/// Opens the sockets of the flows at both ends.
fn connect(
    flows: usize,
    near: (&Host, &str),
    far: (&Host, &str),
) -> Result<(Vec<UdpSocket>, Vec<UdpSocket>)> {
    let pairs = (0..flows).map(|_| {
        let (near, far) = (socket(near)?, socket(far)?);
        near.connect(far.local_addr()?)?;
        far.connect(near.local_addr()?)?;
        Ok((near, far))
    });
    pairs.collect()
}

fn socket((host, address): (&Host, &str)) -> Result<UdpSocket> {
    let address: IpAddr = address.parse()?;
    let socket = host.inside(|| Ok(UdpSocket::bind((address, 0))?))?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

fn send(flows: &[UdpSocket], sent: &AtomicU64, stop: &AtomicBool) {
    let mut due = Instant::now();
    for socket in flows.iter().cycle() {
        if stop.load(Relaxed) {
            return;
        }
        let number = sent.fetch_add(1, Relaxed);
        // A refused packet counts as lost.
        let _refused = socket.send(&number.to_be_bytes());
        due += PAUSE;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Counts packets of a flow until after the end none is missing, or none has arrived for a while;
/// returns the longest gap.
fn receive(
    socket: &UdpSocket,
    counters: &Counters,
    way: usize,
    over: &AtomicBool,
) -> Result<Duration> {
    let mut seen = BTreeSet::new();
    let (mut heard, mut longest) = (Instant::now(), Duration::ZERO);
    let mut number = [0; 8];
    loop {
        // An error is the timeout, or a report that a packet of ours was refused.
        if socket.recv(&mut number).is_ok() {
            let number = u64::from_be_bytes(number);
            ensure!(seen.insert(number), "packet {number} came twice");
            counters.arrived[way].fetch_add(1, Relaxed);
            longest = longest.max(heard.elapsed());
            heard = Instant::now();
        } else if over.load(Relaxed) && (counters.has_all(way) || heard.elapsed() > SILENCE) {
            return Ok(longest);
        }
    }
}
