//! A wire with a rate, a delay, a queue and bit errors, in real time.
//!
//! Each end is a TUN device in some namespace. The emulator reads the packets that the kernel there
//! routes into the device, and the kernel receives the packets that the emulator writes. The two
//! directions are independent: each is a thread around a [`sim::Pipe`], the object that simulations
//! drive in virtual time. The thread sleeps until a packet arrives or is due. The timer is precise
//! to nanoseconds, so no spinning is needed.
//!
//! On a busy machine, the emulator's error is in time: a packet that is due while another process
//! has the processor leaves late. The threads therefore ask for real-time priority, and the
//! lateness of each packet is counted and reported ([`Statistics::lateness`]), so that a
//! measurement can be judged by it. If an ordinary user is refused the priority, the statistics
//! record it.
//!
//! [`Emulator::fade`] changes the loss of a running wire, as a radio does that a host walks away
//! from.

mod fading;

use crate::histogram::{Histogram, Quantiles};
use anyhow::{Context, Result};
use fading::{Fader, Fading};
use nix::sys::eventfd::{EfdFlags, EventFd};
use os::poll::{Interest, Poller};
use os::{Tun, clock, priority};
use serde::Serialize;
use sim::Pipe;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Number of packets read before packets that have become due meanwhile are released.
const BATCH: usize = 32;

/// Lateness beyond which a packet counts as late.
pub const LATE: Duration = Duration::from_millis(5);

/// Largest size of an IP packet, in octets.
const LONGEST: usize = 65_535;

const PACKET: u64 = 0;
const ORDER: u64 = 1;

/// Properties of the two directions of a wire.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// From the first end to the second.
    pub a_to_b: sim::Settings,
    /// From the second end to the first.
    pub b_to_a: sim::Settings,
}

impl Settings {
    /// Uses the same settings in both directions.
    pub const fn symmetric(settings: sim::Settings) -> Self {
        Self {
            a_to_b: settings,
            b_to_a: settings,
        }
    }
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Statistics {
    /// Packets that arrived from the sender's kernel.
    pub offered: u64,
    /// Packets delivered, including those still under way that will arrive.
    pub delivered: u64,
    /// Octets of the delivered packets, IP headers included.
    pub delivered_octets: u64,
    /// Packets dropped because the queue was full.
    pub lost_queue: u64,
    /// Packets with at least one bit error.
    pub lost_bit_error: u64,
    /// Packets that the receiver's kernel refused.
    pub refused: u64,
    /// True if the thread got real-time priority.
    pub real_time: bool,
    /// Packets that were later than [`LATE`].
    pub late: u64,
    /// Delay between the due time of a packet and its hand-over to the receiver.
    pub lateness: Quantiles,
}

/// A running emulator; dropping it cuts the wire.
pub struct Emulator {
    directions: [Handle; 2],
}

impl Emulator {
    /// Joins two TUN devices. The same seed gives the same bit errors to the same packets.
    ///
    /// # Errors
    /// No thread or descriptor is available.
    pub fn start(a: Tun, b: Tun, settings: Settings, seed: u64) -> Result<Self> {
        let (a, b) = (Arc::new(a), Arc::new(b));
        let [there, back] = settings.links(seed);
        Ok(Self {
            directions: [
                Handle::spawn(a.clone(), b.clone(), there)?,
                Handle::spawn(b, a, back)?,
            ],
        })
    }

    /// Replaces the wire by one with other settings: no packet is under way, all counters are zero,
    /// and the error sequence starts again from the seed.
    pub fn change(&mut self, settings: Settings, seed: u64) {
        for (direction, link) in self.directions.iter_mut().zip(settings.links(seed)) {
            direction.change(link);
        }
    }

    /// Loses this share of all packets that are sent from now on, whatever their length, in both
    /// directions. Packets under way arrive.
    pub fn fade(&self, share: f64) {
        for direction in &self.directions {
            direction.fader.set(share);
        }
    }

    /// Returns the packets of each direction that [`Emulator::fade`] has lost. No other counter
    /// has them.
    pub fn faded(&self) -> [u64; 2] {
        [&self.directions[0], &self.directions[1]].map(|direction| direction.fader.lost())
    }

    /// Returns the counters of each direction: from the first end to the second, and back.
    pub fn statistics(&self) -> [Statistics; 2] {
        [&self.directions[0], &self.directions[1]].map(|direction| direction.gauges.read())
    }
}

/// Settings of a direction, and the seed of its errors.
type Link = (sim::Settings, u64);

impl Settings {
    /// Returns a link for each direction. The directions draw their errors from different streams.
    fn links(self, seed: u64) -> [Link; 2] {
        let seed = seed.wrapping_mul(2);
        [(self.a_to_b, seed), (self.b_to_a, seed.wrapping_add(1))]
    }
}

/// A direction, as seen from outside its thread.
struct Handle {
    gauges: Arc<Gauges>,
    fader: Fader,
    /// Channel to the thread, which ends when it is dropped.
    orders: Option<Sender<Order>>,
    /// Wakes the thread to look for an order.
    wake: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

/// An order to become another link, with its new counters.
struct Order(Pipe<Vec<u8>>, Arc<Gauges>);

impl Handle {
    fn spawn(from: Arc<Tun>, to: Arc<Tun>, (settings, seed): Link) -> Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let (wake, gauges) = (Arc::new(EventFd::from_flags(flags)?), Arc::default());
        let (orders, received) = mpsc::channel();
        let mut poller = Poller::new()?;
        poller.add(&*from, PACKET, Interest::Read)?;
        poller.add(&*wake, ORDER, Interest::Read)?;
        let name = format!("link {}", from.name());
        let (fader, fading) = fading::channel(seed);
        let mut direction = Direction {
            from,
            to,
            pipe: Pipe::new(settings, seed),
            gauges: Arc::clone(&gauges),
            fading,
            buffer: vec![0; LONGEST],
            wake: wake.clone(),
            orders: received,
        };
        let thread = thread::Builder::new()
            .name(name)
            .spawn(move || direction.run(&mut poller))
            .context("cannot start a thread for the emulator")?;
        Ok(Self {
            gauges,
            fader,
            orders: Some(orders),
            wake,
            thread: Some(thread),
        })
    }

    fn change(&mut self, (settings, seed): Link) {
        self.gauges = Arc::default();
        if let Some(orders) = &self.orders {
            let order = Order(Pipe::new(settings, seed), self.gauges.clone());
            // The send fails only if the thread has ended with its devices; then no order is
            // needed.
            let _ = orders.send(order);
        }
        self.wake();
    }

    fn wake(&self) {
        // The counter of an eventfd overflows at 2^64 - 1; one addition cannot fail.
        let _ = self.wake.write(1);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.orders = None;
        self.wake();
        if let Some(thread) = self.thread.take() {
            // The thread's panic has already been printed.
            let _ = thread.join();
        }
    }
}

/// Counters that a direction's thread writes and any thread reads.
#[derive(Default)]
struct Gauges {
    link: Mutex<sim::Statistics>,
    refused: AtomicU64,
    real_time: AtomicBool,
    late: AtomicU64,
    lateness: Histogram,
}

impl Gauges {
    fn read(&self) -> Statistics {
        let link = *self.link.lock().unwrap_or_else(PoisonError::into_inner);
        Statistics {
            offered: link.offered,
            delivered: link.delivered,
            delivered_octets: link.delivered_octets,
            lost_queue: link.lost_queue,
            lost_bit_error: link.lost_bit_error,
            refused: self.refused.load(Relaxed),
            real_time: self.real_time.load(Relaxed),
            late: self.late.load(Relaxed),
            lateness: self.lateness.quantiles(),
        }
    }
}

/// State of one direction, owned by its thread.
struct Direction {
    from: Arc<Tun>,
    to: Arc<Tun>,
    pipe: Pipe<Vec<u8>>,
    gauges: Arc<Gauges>,
    fading: Fading,
    buffer: Vec<u8>,
    wake: Arc<EventFd>,
    orders: Receiver<Order>,
}

impl Direction {
    /// Runs until an order to stop arrives, or the sender's device is gone with its namespace.
    fn run(&mut self, poller: &mut Poller) {
        self.gauges
            .real_time
            .store(priority::make_real_time().is_ok(), Relaxed);
        let mut ready = Vec::new();
        loop {
            self.release_due();
            if poller.wait(self.pipe.next_due(), &mut ready).is_err() {
                return;
            }
            for event in &ready {
                let goes_on = match event.token {
                    ORDER => self.take_order(),
                    _ => self.take_arrivals().is_ok(),
                };
                if !goes_on {
                    return;
                }
            }
        }
    }

    /// Carries out the pending orders. Returns false if the direction must stop.
    fn take_order(&mut self) -> bool {
        // The descriptor was readable a moment ago, and this thread is its only reader.
        let _ = self.wake.read();
        loop {
            match self.orders.try_recv() {
                Ok(Order(pipe, gauges)) => {
                    let real_time = self.gauges.real_time.load(Relaxed);
                    gauges.real_time.store(real_time, Relaxed);
                    (self.pipe, self.gauges) = (pipe, gauges);
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn take_arrivals(&mut self) -> std::io::Result<()> {
        for _ in 0..BATCH {
            let length = match self.from.recv(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            if self.fading.takes() {
                continue;
            }
            let packet = self.buffer[..length].to_vec();
            self.pipe.push(packet, length, clock::now());
        }
        let mut link = self.gauges.link.lock();
        let link = link
            .as_deref_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut());
        *link = self.pipe.statistics();
        Ok(())
    }

    fn release_due(&mut self) {
        while let Some(due) = self.pipe.next_due() {
            let now = clock::now();
            let Some(packet) = self.pipe.pop_due(now) else {
                return;
            };
            if self.to.send(&packet).is_err() {
                self.gauges.refused.fetch_add(1, Relaxed);
            }
            let lateness = now.since(due);
            let late = u64::from(lateness > LATE);
            self.gauges.late.fetch_add(late, Relaxed);
            self.gauges.lateness.record(lateness);
        }
    }
}
