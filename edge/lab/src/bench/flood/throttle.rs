//! How fast a flood is sent.

use crate::bench::forge::Forged;
use anyhow::Result;
use os::clock;
use serde::Serialize;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Packets and bits a second, of which the first to be reached counts.
const PACKETS: f64 = 20_000.0;
const BITS: f64 = 50e6;

/// From one look at the clock to the next.
const STEP: Duration = Duration::from_micros(500);

/// What is late by more than this is not made up for, in seconds.
const LATENESS: f64 = 0.01;

/// Octets of the headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// Something that can be sent without end.
pub(super) trait Flood: Send {
    /// Sends the next part, in the namespace of the flooder.
    ///
    /// # Errors
    /// The flood cannot be made.
    fn send(&mut self) -> Result<Sent>;

    /// Reads what came back; gives how many answers there were.
    ///
    /// # Errors
    /// A socket failed.
    fn read(&mut self) -> io::Result<u64>;
}

/// What one call has sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub packets: u32,
    /// Octets of all of them, from the IP header on.
    pub octets: usize,
}

/// What a flood was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Poured {
    /// Packets a second.
    pub packets_per_s: f64,
    /// 10^6 bits a second.
    pub mbps: f64,
    /// Answers a second.
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
    /// One datagram with so many octets behind UDP's header; what the kernel does not take is not counted.
    pub fn datagram(payload: usize, outcome: &io::Result<()>) -> Self {
        Self {
            packets: u32::from(outcome.is_ok()),
            octets: HEADERS + payload,
        }
    }

    /// Seconds until the next part is due.
    fn pause(self) -> f64 {
        (f64::from(self.packets.max(1)) / PACKETS).max(self.octets as f64 * 8.0 / BITS)
    }
}

/// Sends until it is over.
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
