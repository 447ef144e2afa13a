//! Rate limit of a flood.

use crate::bench::forge::Forged;
use anyhow::Result;
use os::clock;
use serde::Serialize;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Packets and bits per second; the limit that is reached first applies.
const PACKETS: f64 = 20_000.0;
const BITS: f64 = 50e6;

/// Interval between two looks at the clock.
const STEP: Duration = Duration::from_micros(500);

/// Delay beyond which missed packets are not caught up, in seconds.
const LATENESS: f64 = 0.01;

/// Octets of the headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// A flood that can be sent without end.
pub(super) trait Flood: Send {
    /// Sends the next part, in the namespace of the flooder.
    ///
    /// # Errors
    /// The flood cannot be made.
    fn send(&mut self) -> Result<Sent>;

    /// Reads the answers and returns their number.
    ///
    /// # Errors
    /// A socket failed.
    fn read(&mut self) -> io::Result<u64>;
}

/// Packets of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub packets: u32,
    /// Octets of all packets, from the IP header on.
    pub octets: usize,
}

/// Rates of a flood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Poured {
    /// Packets per second.
    pub packets_per_s: f64,
    /// Rate, in 10^6 bits per second.
    pub mbps: f64,
    /// Answers per second.
    pub answers_per_s: f64,
}

impl Flood for Forged {
    fn send(&mut self) -> Result<Sent> {
        let (octets, outcome) = self.send_next();
        Ok(Sent::datagram(octets, &outcome))
    }

    fn read(&mut self) -> io::Result<u64> {
        let mut answers = 0;
        self.read_answers(|_| answers += 1)?;
        Ok(answers)
    }
}

impl Sent {
    /// Counts one datagram with this many octets after the UDP header. A datagram that the kernel
    /// rejects does not count as a packet.
    pub fn datagram(payload: usize, outcome: &io::Result<()>) -> Self {
        Self {
            packets: u32::from(outcome.is_ok()),
            octets: HEADERS + payload,
        }
    }

    /// Returns the seconds until the next part is due.
    fn pause(self) -> f64 {
        (f64::from(self.packets.max(1)) / PACKETS).max(self.octets as f64 * 8.0 / BITS)
    }
}

/// Sends until `over` is set.
pub(super) fn pour(mut flood: Box<dyn Flood>, over: &AtomicBool) -> Result<Poured> {
    let begun = clock::now();
    let elapsed = || clock::now().since(begun).as_secs_f64();
    let (mut due, mut packets, mut octets, mut answers) = (0.0, 0_u64, 0_usize, 0);
    while !over.load(Ordering::Relaxed) {
        let now = elapsed();
        due = f64::max(due, now - LATENESS);
        while due < now {
            let sent = flood.send()?;
            due += sent.pause();
            packets += u64::from(sent.packets);
            octets += sent.octets;
        }
        answers += flood.read()?;
        thread::sleep(STEP);
    }
    let seconds = elapsed();
    Ok(Poured {
        packets_per_s: packets as f64 / seconds,
        mbps: octets as f64 * 8.0 / 1e6 / seconds,
        answers_per_s: answers as f64 / seconds,
    })
}
