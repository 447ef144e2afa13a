//! First requests of IKE_SA_INIT from addresses that never asked for anything: each from another one
//! of 127.0.0.0/8, each good as it is, and all to the port on which the honest initiators are, so that
//! they wait in one line. What a responder does about them before it knows that somebody is there may
//! cost it time, but no memory, and no more octets than came.
//!
//! All of those addresses are this host's, so the answers come back, and are counted.

use crate::bench::crowd::{self, NON_ESP_MARKER, PEER};
use crate::bench::responder::Place;
use crate::host::Host;
use anyhow::{Context, Result};
use crypto::{Rng, Secret};
use ike::Engine;
use model::Path;
use os::{Datagrams, clock, entropy};
use serde::Serialize;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Where all of it comes from; where answers go, therefore.
const PORT: u16 = 15_500;

/// From one look at the clock to the next.
const STEP: Duration = Duration::from_micros(500);

/// Sent at most between two looks.
const BURST: u64 = 1000;

/// A flood that is about to begin.
pub(super) struct Flood {
    udp: Datagrams,
    /// The request, with an initiator's SPI behind the marker that is drawn anew each time.
    request: Vec<u8>,
    rng: Rng,
}

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

impl Flood {
    /// One in this host.
    pub fn new(host: &Host) -> Result<Self> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
        let udp = host.inside(|| Ok(Datagrams::udp(any, None)?))?;
        let mut rng = Rng::from_seed(entropy::seed());
        // It is of no use: nobody gets as far as to prove anything.
        let key = Secret::new(rng.array::<32>().to_vec());
        let config = crowd::config(0, key, PORT, Place::ONE_HOST);
        let now = clock::now();
        let mut engine = Engine::new(config, rng.array(), now);
        engine.initiate(PEER, path(&mut rng), now)?;
        let request = engine
            .poll_transmit()
            .context("who begins sends a request")?;
        Ok(Self {
            udp,
            request: request.payload,
            rng,
        })
    }

    /// Pours so many a second, as far as the core allows, until it is over.
    pub fn pour(mut self, per_second: u32, over: &AtomicBool) -> Result<Poured> {
        let begun = clock::now();
        let mut poured = Poured {
            request: self.request.len(),
            ..Poured::default()
        };
        let mut due = 0;
        while !over.load(Ordering::Relaxed) {
            let elapsed = clock::now().since(begun).as_secs_f64();
            let behind = (elapsed * f64::from(per_second)) as u64 - due;
            for _ in 0..behind.min(BURST) {
                poured.sent += u64::from(self.spoof());
                due += 1;
            }
            self.read(&mut poured)?;
            thread::sleep(STEP);
        }
        poured.per_second = poured.sent as f64 / clock::now().since(begun).as_secs_f64();
        Ok(poured)
    }

    /// Sends one; `false` if the kernel did not take it: a buffer is full, or the address is one of
    /// those that no packet may come from.
    fn spoof(&mut self) -> bool {
        let spi: [u8; 8] = self.rng.array();
        let at = NON_ESP_MARKER.len();
        self.request[at..at + spi.len()].copy_from_slice(&spi);
        let path = path(&mut self.rng);
        self.udp.send(path, 0, &self.request).is_ok()
    }

    fn read(&mut self, poured: &mut Poured) -> Result<()> {
        loop {
            let read = self.udp.recv(|_, answer| {
                poured.answers += 1;
                poured.longest_answer = poured.longest_answer.max(answer.len());
            });
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                read => read.context("reading answers to nobody")?,
            };
        }
    }
}

/// From anywhere to the responder.
fn path(rng: &mut Rng) -> Path {
    let anywhere = Ipv4Addr::from_bits(127 << 24 | rng.u32() >> 8);
    Path::udp(
        SocketAddr::from((anywhere, PORT)),
        SocketAddr::new(Place::ONE_HOST.responder, ike::NATT_PORT),
    )
}
