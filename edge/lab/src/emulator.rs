//! A wire with a rate, a delay, a queue and bit errors, in real time.
//!
//! Each end is a TUN device in some namespace: what the kernel there routes into it, the emulator
//! reads, and what the emulator writes, the kernel receives. The two directions are independent,
//! each a thread around a [`sim::Pipe`], the same object simulations drive in virtual time. The
//! thread sleeps until a packet comes or one is due; the timer is precise to nanoseconds, so there
//! is nothing to spin for.
//!
//! What an emulator on a busy machine gets wrong is time: a packet that should have left while
//! another process had the processor leaves late. So the threads ask for real-time priority, and
//! how late each packet was is counted and reported ([`Statistics::lateness`]); a measurement can
//! be judged by it. Where the priority is refused (an ordinary user) the statistics say so.

use crate::histogram::{Histogram, Quantiles};
use anyhow::{Context, Result};
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

/// Packets read before those that have become due meanwhile are released.
const BATCH: usize = 32;

/// A packet handed over later than this after its due time counts as late.
pub const LATE: Duration = Duration::from_millis(5);

/// Everything that fits into an IP packet.
const LONGEST: usize = 65_535;

const PACKET: u64 = 0;
const ORDER: u64 = 1;

/// What the two directions of a wire are like.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// From the first end to the second.
    pub a_to_b: sim::Settings,
    /// And back.
    pub b_to_a: sim::Settings,
}

impl Settings {
    /// The same in both directions.
    pub const fn symmetric(settings: sim::Settings) -> Self {
        Self {
            a_to_b: settings,
            b_to_a: settings,
        }
    }
}

/// What one direction did so far.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Statistics {
    /// Packets the sender's kernel gave us.
    pub offered: u64,
    /// Packets that arrived, or are on their way and will.
    pub delivered: u64,
    /// Octets of them, IP headers included.
    pub delivered_octets: u64,
    /// Packets that found the queue full.
    pub lost_queue: u64,
    /// Packets with at least one bit error.
    pub lost_bit_error: u64,
    /// Packets the receiver's kernel refused.
    pub refused: u64,
    /// Whether the thread got real-time priority.
    pub real_time: bool,
    /// Packets that were more than [`LATE`].
    pub late: u64,
    /// How long after their due time packets were handed to the receiver.
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
    /// No thread or descriptor is to be had.
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

    /// Makes it another wire: nothing is under way, nothing is counted yet, and errors are drawn as
    /// from the start.
    pub fn change(&mut self, settings: Settings, seed: u64) {
        for (direction, link) in self.directions.iter_mut().zip(settings.links(seed)) {
            direction.change(link);
        }
    }

    /// What each direction did so far: from the first end to the second, and back.
    pub fn statistics(&self) -> [Statistics; 2] {
        [&self.directions[0], &self.directions[1]].map(|direction| direction.gauges.read())
    }
}

/// What a direction is like, and what its errors are drawn from.
type Link = (sim::Settings, u64);

impl Settings {
    /// The directions draw their errors from different streams.
    fn links(self, seed: u64) -> [Link; 2] {
        let seed = seed.wrapping_mul(2);
        [(self.a_to_b, seed), (self.b_to_a, seed.wrapping_add(1))]
    }
}

/// A direction, seen from outside its thread.
struct Handle {
    gauges: Arc<Gauges>,
    /// The thread ends when this is gone.
    orders: Option<Sender<Order>>,
    /// Tells the thread to look whether there is an order.
    wake: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

/// Become another link, and count there.
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
        let mut direction = Direction {
            from,
            to,
            pipe: Pipe::new(settings, seed),
            gauges: Arc::clone(&gauges),
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
            orders: Some(orders),
            wake,
            thread: Some(thread),
        })
    }

    fn change(&mut self, (settings, seed): Link) {
        self.gauges = Arc::default();
        if let Some(orders) = &self.orders {
            let order = Order(Pipe::new(settings, seed), self.gauges.clone());
            // A thread that has ended, for its devices are gone, needs none.
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
            // A panic in it has been printed already.
            let _ = thread.join();
        }
    }
}

/// What a direction's thread writes and anybody reads.
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

/// One direction: what its thread works on.
struct Direction {
    from: Arc<Tun>,
    to: Arc<Tun>,
    pipe: Pipe<Vec<u8>>,
    gauges: Arc<Gauges>,
    buffer: Vec<u8>,
    wake: Arc<EventFd>,
    orders: Receiver<Order>,
}

impl Direction {
    /// Until it is told to stop, or the sender's device is gone with its namespace.
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

    /// Does what it is told to; returns whether it goes on.
    fn take_order(&mut self) -> bool {
        // It was readable a moment ago, and nobody else reads it.
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
