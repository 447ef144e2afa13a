//! First requests of IKE_SA_INIT from addresses that never asked for anything: each from another one
//! of 127.0.0.0/8, each good as it is, and all to the port on which the honest initiators are, so that
//! they wait in one line. What a responder does about them before it knows that somebody is there may
//! cost it time, but no memory, and no more octets than came.
//!
//! All of those addresses are this host's, so the answers come back, and are counted.

use crate::bench::forge::{Forged, Way};
use crate::host::Host;
use anyhow::{Context, Result};
use os::clock;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// From anywhere in the host to the responder.
const WAY: Way = Way {
    network: Ipv4Addr::new(127, 0, 0, 0),
    prefix: 8,
    to: Ipv4Addr::LOCALHOST,
    port: ike::NATT_PORT,
};

/// From one look at the clock to the next.
const STEP: Duration = Duration::from_micros(500);

/// Sent at most between two looks.
const BURST: u64 = 1000;

/// What a flood was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Poured {
    /// Requests that the kernel took.
    pub sent: u64,
    /// So many a second.
    pub per_second: f64,
    /// Octets of each.
    pub request: usize,
    /// Answers that came back.
    pub answers: u64,
    /// Octets of the longest.
    pub longest_answer: usize,
}

/// Pours so many a second from a host, as far as the core allows, until it is over.
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
