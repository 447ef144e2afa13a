//! Worker threads in addition to the main one, if the configuration has several `workers`. Each has
//! a queue of the tunnel device, sockets of its own, and one of the node's workers.
//!
//! Work of the main thread alone reaches it in a [`Message`]: IKE, streams, paths, ends. So a
//! thread holds no lock that another thread waits for, except its worker's during a batch.

use crate::batch::{self, Arrived, TURNS, fill};
use crate::host::Tunnel;
use crate::sink::{Carrier, IoCounters, PacketSink};
use crate::sockets::Sockets;
use crate::trace::Drops;
use anyhow::{Context, Result};
use config::Config;
use model::{Instant, Path};
use node::{Node, Packet, WorkerHandle};
use os::poll::{Interest, Ready};
use os::{Bulk, Error, Links, Poller, Waker, clock};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use wire::ecn::Ecn;
use wire::esp::Datagram;

/// Most messages queued for the main thread. Further ones are lost, as with a full socket.
const MESSAGES: usize = 1024;

/// Poller tokens of a thread. Sockets count from `NATT`.
mod token {
    pub const STOP: u64 = 0;
    pub const TUNNEL: u64 = 1;
    pub const NATT: u64 = 2;
}

/// A message from a worker thread to the main thread.
pub enum Message {
    /// An IKE message that the kernel delivered to this thread.
    Ike(Path, Vec<u8>),
    /// A packet whose path is a TCP stream.
    Stream(Path, Vec<u8>),
    /// A packet was too long for a path.
    TooLong(Path),
    /// The thread cannot continue.
    Broken(anyhow::Error),
}

/// The worker threads in addition to the main one; none if it is alone.
pub struct Workers {
    threads: Vec<Thread>,
    sender: SyncSender<Message>,
    messages: Receiver<Message>,
    /// Readable if there are messages, or the node has reports.
    waker: Arc<Waker>,
    /// The interfaces of hosts with link-local addresses.
    links: Links,
}

struct Thread {
    handle: JoinHandle<()>,
    stop: Arc<Waker>,
    counters: Arc<Mutex<IoCounters>>,
}

/// The state of a worker thread.
struct Worker {
    handle: WorkerHandle,
    tun: Bulk,
    sockets: Sockets,
    batch: Vec<Packet>,
    arrived: Arrived,
    counters: Arc<Mutex<IoCounters>>,
    /// For lines about dropped packets.
    lines: Drops,
    poller: Poller,
    main: Main,
}

/// The connection to the main thread.
struct Main {
    messages: SyncSender<Message>,
    waker: Arc<Waker>,
    /// Messages that were lost on the way.
    lost: u64,
    has_sent: bool,
}

impl Workers {
    /// Creates the channel, without threads.
    pub fn new(links: &Links) -> Result<Self, Error> {
        let (sender, messages) = sync_channel(MESSAGES);
        Ok(Self {
            threads: Vec::new(),
            sender,
            messages,
            waker: Arc::new(Waker::new()?),
            links: links.clone(),
        })
    }

    /// Starts the worker threads that the configuration asks for, unless they already run.
    pub fn start(
        &mut self,
        config: &Config,
        node: &Node,
        tunnel: &Tunnel,
        lines: &Drops,
    ) -> Result<()> {
        if !self.threads.is_empty() {
            return Ok(());
        }
        for number in 1..usize::from(config.tunnel.workers.get()) {
            let worker = Worker::new(
                Sockets::beside(config, &self.links)?,
                node.worker(number),
                tunnel.tun.queue()?,
                self.main(),
                lines.beside(),
            )?;
            let counters = Arc::clone(&worker.counters);
            let stop = Arc::new(Waker::new()?);
            let add = worker.poller.add(&*stop, token::STOP, Interest::Read);
            add.context("preparing to stop workers")?;
            let handle = Builder::new()
                .name(format!("worker {number}"))
                .spawn(move || worker.work())
                .context("starting a thread")?;
            self.threads.push(Thread {
                handle,
                stop,
                counters,
            });
        }
        Ok(())
    }

    /// Stops all threads, and returns their counters. Packets in their queues are lost.
    pub fn stop(&mut self) -> IoCounters {
        let mut counters = IoCounters::default();
        for thread in self.threads.drain(..) {
            thread.stop.wake();
            let _ = thread.handle.join();
            counters.add(&held(&thread.counters));
        }
        counters
    }

    /// Returns the next message of a thread. Call it until it returns `None` whenever the waker is
    /// readable.
    pub fn poll_message(&self) -> Option<Message> {
        self.messages.try_recv().ok()
    }

    /// Rearms the waker; call it before reading messages.
    pub fn listen(&self) {
        self.waker.heard();
    }

    /// Returns the counters of the running threads.
    pub fn counters(&self) -> IoCounters {
        let mut counters = IoCounters::default();
        for thread in &self.threads {
            counters.add(&held(&thread.counters));
        }
        counters
    }

    fn main(&self) -> Main {
        Main {
            messages: self.sender.clone(),
            waker: Arc::clone(&self.waker),
            lost: 0,
            has_sent: false,
        }
    }
}

impl AsFd for Workers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl Worker {
    fn new(
        sockets: Sockets,
        handle: WorkerHandle,
        tun: Bulk,
        main: Main,
        lines: Drops,
    ) -> Result<Self> {
        let poller = Poller::new()?;
        let read = Interest::Read;
        poller.add(&tun, token::TUNNEL, read)?;
        for (udp, token) in sockets.natt.iter().zip(token::NATT..) {
            poller.add(udp, token, read)?;
        }
        Ok(Self {
            handle,
            tun,
            sockets,
            batch: batch::buffers(),
            arrived: Arrived::default(),
            counters: Arc::default(),
            lines,
            poller,
            main,
        })
    }

    /// Runs until the thread is stopped, or cannot continue.
    fn work(mut self) {
        let mut ready = Vec::new();
        let why = loop {
            match self.turn(&mut ready) {
                Ok(true) => {}
                Ok(false) => return,
                Err(why) => break why,
            }
            if self.handle.has_reports() || self.main.has_sent {
                self.main.has_sent = false;
                self.main.waker.wake();
            }
        };
        self.main.send(Message::Broken(why));
        self.main.waker.wake();
    }

    /// Handles pending events; returns false if the thread should stop.
    fn turn(&mut self, ready: &mut Vec<Ready>) -> Result<bool> {
        self.poller.wait(None, ready)?;
        let now = clock::now();
        for event in ready {
            match event.token {
                token::STOP => return Ok(false),
                token::TUNNEL => self.read_tunnel(now)?,
                token => self.read_natt((token - token::NATT) as usize, now)?,
            }
        }
        Ok(true)
    }

    /// Reads inner packets, seals and sends them.
    fn read_tunnel(&mut self, now: Instant) -> Result<()> {
        for _ in 0..TURNS {
            let (filled, failed) = fill(&mut self.batch, &mut self.tun);
            let mut counters = held(&self.counters);
            let mut faults = None;
            let mut sink = PacketSink::new(
                &mut self.sockets,
                Some(&mut self.tun),
                &mut self.main,
                &mut counters,
                &mut self.lines,
                &mut faults,
            );
            self.handle.seal(&mut self.batch[..filled], &mut sink, now);
            for path in sink.finish() {
                self.main.send(Message::TooLong(path));
            }
            counters.handed += std::mem::take(&mut self.main.lost);
            if let Some(error) = failed {
                let mut broken = None;
                counters.not_read(self.tun.name(), &error, &mut broken);
                return broken.map_or(Ok(()), Err);
            }
        }
        Ok(())
    }

    /// Reads ESP, and any IKE message that the kernel delivered to this thread.
    fn read_natt(&mut self, index: usize, now: Instant) -> Result<()> {
        for _ in 0..TURNS {
            let (arrived, main) = (&mut self.arrived, &mut self.main);
            let read =
                self.sockets.natt[index].recv(|arrival, payload| match Datagram::parse(payload) {
                    Datagram::Ike(message) => {
                        main.send(Message::Ike(arrival.path, message.to_vec()));
                    }
                    Datagram::Keepalive => {}
                    Datagram::Esp(packet) => {
                        arrived.push(arrival.path, Ecn::from_bits(arrival.ecn), packet);
                    }
                });
            let mut counters = held(&self.counters);
            let mut faults = None;
            let mut sink = PacketSink::new(
                &mut self.sockets,
                Some(&mut self.tun),
                &mut self.main,
                &mut counters,
                &mut self.lines,
                &mut faults,
            );
            self.handle.open(self.arrived.packets(), &mut sink, now);
            sink.finish();
            self.arrived.clear();
            counters.handed += std::mem::take(&mut self.main.lost);
            if let Err(error) = read {
                let mut broken = None;
                counters.not_read("a socket for ESP", &error, &mut broken);
                return broken.map_or(Ok(()), Err);
            }
        }
        Ok(())
    }
}

impl Main {
    fn send(&mut self, message: Message) {
        self.has_sent = true;
        self.lost += u64::from(self.messages.try_send(message).is_err());
    }
}

impl Carrier for Main {
    fn pass(&mut self, path: Path, packet: &[u8]) {
        self.send(Message::Stream(path, packet.to_vec()));
    }
}

/// Locks the counters. A poisoned lock is harmless: every update of the counters is complete.
fn held(counters: &Mutex<IoCounters>) -> MutexGuard<'_, IoCounters> {
    counters.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_beyond_the_queue_are_counted() {
        let workers = Workers::new(&Links::default()).unwrap();
        let mut main = workers.main();
        let path = Path::udp(([192, 0, 2, 1], 1).into(), ([192, 0, 2, 2], 2).into());
        for _ in 0..MESSAGES + 3 {
            main.pass(path, b"one");
        }
        assert_eq!(main.lost, 3);
        let heard = std::iter::from_fn(|| workers.poll_message()).count();
        assert_eq!(heard, MESSAGES);
    }
}
