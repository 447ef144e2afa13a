//! First requests of IKE_SA_INIT from addresses that never asked for anything: each from another
//! address of 127.0.0.0/8, each valid, and all to the port of the honest initiators, so that all
//! share one queue. Until it has verified that a peer exists at the address, a responder may spend
//! time on them, but no memory, and it may not send more octets than it received.
//!
//! All of those addresses belong to this host, so the answers come back, and are counted.

use crate::bench::forge::{Forged, Way};
use crate::host::Host;
use anyhow::{Context, Result};
use os::clock;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// From random addresses of the host to the responder.
const WAY: Way = Way {
    network: Ipv4Addr::new(127, 0, 0, 0),
    prefix: 8,
    to: Ipv4Addr::LOCALHOST,
    port: ike::NATT_PORT,
};

/// Interval between two looks at the clock.
const STEP: Duration = Duration::from_micros(500);

/// Largest number of requests between two looks at the clock.
const BURST: u64 = 1000;

/// Counters of a flood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Poured {
    /// Requests that the kernel accepted.
    pub sent: u64,
    /// Requests per second.
    pub per_second: f64,
    /// Octets of each request.
    pub request: usize,
    /// Answers that came back.
    pub answers: u64,
    /// Octets of the longest answer.
    pub longest_answer: usize,
}

/// Sends this many requests per second from a host, as far as the core allows, until `over` is set.
pub(super) fn pour(host: &Host, per_second: u32, over: &AtomicBool) -> Result<Poured> {
    let mut forged = Forged::good(host, WAY)?;
    let begun = clock::now();
    let (mut poured, mut due) = (Poured::default(), 0);
    while !over.load(Ordering::Relaxed) {
        let elapsed = clock::now().since(begun).as_secs_f64();
        let behind = (elapsed * f64::from(per_second)) as u64 - due;
        for _ in 0..behind.min(BURST) {
            let (octets, outcome) = forged.send_next();
            poured.sent += u64::from(outcome.is_ok());
            poured.request = octets;
            due += 1;
        }
        let read = forged.read_answers(|answer| {
            poured.answers += 1;
            poured.longest_answer = poured.longest_answer.max(answer.len());
        });
        read.context("reading answers to forged addresses")?;
        thread::sleep(STEP);
    }
    poured.per_second = poured.sent as f64 / clock::now().since(begun).as_secs_f64();
    Ok(poured)
}
