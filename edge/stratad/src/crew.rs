//! Worker threads in addition to the main one, if the configuration has several `workers`. Each has
//! a queue of the tunnel device, sockets of its own, and one of the node's workers.
//!
//! Work of the main thread alone reaches it in a [`Word`]: IKE, streams, paths, ends. So a thread
//! holds no lock that another thread waits for, except its worker's during a batch.

use crate::batch::{self, Arrived, TURNS, fill};
use crate::host::Tunnel;
use crate::outlet::{Carrier, Losses, Outlet};
use crate::quota::Quota;
use crate::sockets::Sockets;
use anyhow::{Context, Result};
use config::Config;
use model::{Instant, Path};
use node::{Node, Packet, Seat};
use os::poll::{Interest, Ready};
use os::{Bulk, Error, Poller, Waker, clock};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use wire::ecn::Ecn;
use wire::esp::Datagram;

/// Most messages queued for the main thread. Further ones are lost, as with a full socket.
const WORDS: usize = 1024;

/// Poller tokens of a thread. Sockets count from `NATT`.
mod token {
    pub const STOP: u64 = 0;
    pub const TUNNEL: u64 = 1;
    pub const NATT: u64 = 2;
}

/// A message from a worker thread to the main thread.
pub enum Word {
    /// An IKE message that the kernel delivered to this thread.
    Message(Path, Vec<u8>),
    /// A packet whose path is a TCP stream.
    Stream(Path, Vec<u8>),
    /// A packet was too long for a path.
    TooLong(Path),
    /// The thread cannot continue.
    Broken(anyhow::Error),
}

/// The worker threads in addition to the main one; none if it is alone.
pub struct Crew {
    threads: Vec<Thread>,
    sender: SyncSender<Word>,
    words: Receiver<Word>,
    /// Readable if there are messages, or the node has reports.
    waker: Arc<Waker>,
}

struct Thread {
    handle: JoinHandle<()>,
    stop: Arc<Waker>,
    losses: Arc<Mutex<Losses>>,
}

/// The state of a worker thread.
struct Hand {
    seat: Seat,
    tun: Bulk,
    sockets: Sockets,
    batch: Vec<Packet>,
    arrived: Arrived,
    losses: Arc<Mutex<Losses>>,
    /// Quota of lines about dropped packets.
    lines: Quota,
    poller: Poller,
    main: Main,
}

/// The connection to the main thread.
struct Main {
    words: SyncSender<Word>,
    waker: Arc<Waker>,
    /// Messages that were lost on the way.
    lost: u64,
    has_spoken: bool,
}

impl Crew {
    /// Creates the channel, without threads.
    pub fn new() -> Result<Self, Error> {
        let (sender, words) = sync_channel(WORDS);
        Ok(Self {
            threads: Vec::new(),
            sender,
            words,
            waker: Arc::new(Waker::new()?),
        })
    }

    /// Starts the worker threads that the configuration asks for, unless they already run.
    pub fn start(&mut self, config: &Config, node: &Node, tunnel: &Tunnel) -> Result<()> {
        if !self.threads.is_empty() {
            return Ok(());
        }
        for number in 1..usize::from(config.tunnel.workers.get()) {
            let hand = Hand::new(config, node.seat(number), tunnel.tun.queue()?, self.main())?;
            let losses = Arc::clone(&hand.losses);
            let stop = Arc::new(Waker::new()?);
            let add = hand.poller.add(&*stop, token::STOP, Interest::Read);
            add.context("preparing to stop workers")?;
            let handle = Builder::new()
                .name(format!("worker {number}"))
                .spawn(move || hand.work())
                .context("starting a thread")?;
            self.threads.push(Thread {
                handle,
                stop,
                losses,
            });
        }
        Ok(())
    }

    /// Stops all threads, and returns their counters of losses. Packets in their queues are lost.
    pub fn stop(&mut self) -> Losses {
        let mut losses = Losses::default();
        for thread in self.threads.drain(..) {
            thread.stop.wake();
            // A thread that panicked has already reported that.
            let _ = thread.handle.join();
            losses.add(&held(&thread.losses));
        }
        losses
    }

    /// Returns the next message of a thread. Call it until it returns `None` whenever the waker is
    /// readable.
    pub fn poll_word(&self) -> Option<Word> {
        self.words.try_recv().ok()
    }

    /// Rearms the waker; call it before reading messages.
    pub fn listen(&self) {
        self.waker.heard();
    }

    /// Returns the losses of the running threads.
    pub fn losses(&self) -> Losses {
        let mut losses = Losses::default();
        for thread in &self.threads {
            losses.add(&held(&thread.losses));
        }
        losses
    }

    fn main(&self) -> Main {
        Main {
            words: self.sender.clone(),
            waker: Arc::clone(&self.waker),
            lost: 0,
            has_spoken: false,
        }
    }
}

impl AsFd for Crew {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl Hand {
    fn new(config: &Config, seat: Seat, tun: Bulk, main: Main) -> Result<Self> {
        let sockets = Sockets::beside(config)?;
        let poller = Poller::new()?;
        let read = Interest::Read;
        poller.add(&tun, token::TUNNEL, read)?;
        for (udp, token) in sockets.natt.iter().zip(token::NATT..) {
            poller.add(udp, token, read)?;
        }
        Ok(Self {
            seat,
            tun,
            sockets,
            batch: batch::buffers(),
            arrived: Arrived::default(),
            losses: Arc::default(),
            lines: Quota::default(),
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
            if self.seat.has_reports() || self.main.has_spoken {
                self.main.has_spoken = false;
                self.main.waker.wake();
            }
        };
        self.main.tell(Word::Broken(why));
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
            let mut losses = held(&self.losses);
            let mut faults = None;
            let mut outlet = Outlet::new(
                &mut self.sockets,
                Some(&mut self.tun),
                &mut self.main,
                &mut losses,
                &mut self.lines,
                &mut faults,
            );
            self.seat.seal(&mut self.batch[..filled], &mut outlet, now);
            for path in outlet.finish() {
                self.main.tell(Word::TooLong(path));
            }
            losses.handed += std::mem::take(&mut self.main.lost);
            if let Some(error) = failed {
                let mut broken = None;
                losses.not_read(self.tun.name(), &error, &mut broken);
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
                self.sockets.natt[index].recv(|arrival, payload| match Datagram::of(payload) {
                    Datagram::Ike(message) => {
                        main.tell(Word::Message(arrival.path, message.to_vec()));
                    }
                    Datagram::Keepalive => {}
                    Datagram::Esp(packet) => {
                        arrived.push(arrival.path, Ecn::from_bits(arrival.ecn), packet);
                    }
                });
            let mut losses = held(&self.losses);
            let mut faults = None;
            let mut outlet = Outlet::new(
                &mut self.sockets,
                Some(&mut self.tun),
                &mut self.main,
                &mut losses,
                &mut self.lines,
                &mut faults,
            );
            self.seat.open(self.arrived.packets(), &mut outlet, now);
            outlet.finish();
            self.arrived.clear();
            losses.handed += std::mem::take(&mut self.main.lost);
            if let Err(error) = read {
                let mut broken = None;
                losses.not_read("a socket for ESP", &error, &mut broken);
                return broken.map_or(Ok(()), Err);
            }
        }
        Ok(())
    }
}

impl Main {
    fn tell(&mut self, word: Word) {
        self.has_spoken = true;
        self.lost += u64::from(self.words.try_send(word).is_err());
    }
}

/// A thread that panics reports that: its queue and its sockets close with it, and no other thread
/// serves them.
impl Drop for Main {
    fn drop(&mut self) {
        if thread::panicking() {
            let why = "a worker thread of the data plane has crashed\n  fix: restart stratad, and report its log";
            self.tell(Word::Broken(anyhow::anyhow!(why)));
            self.waker.wake();
        }
    }
}

impl Carrier for Main {
    fn pass(&mut self, path: Path, packet: &[u8]) {
        self.tell(Word::Stream(path, packet.to_vec()));
    }
}

/// Locks the counters. A poisoned lock is harmless: every update of the counters is complete.
fn held(losses: &Mutex<Losses>) -> MutexGuard<'_, Losses> {
    losses.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_breaks_off_says_so_and_one_that_ends_does_not() {
        for breaks in [true, false] {
            let crew = Crew::new().unwrap();
            let main = crew.main();
            let thread = thread::spawn(move || {
                let _main = main;
                assert!(!breaks, "on purpose");
            });
            assert_eq!(thread.join().is_err(), breaks);
            assert_eq!(matches!(crew.poll_word(), Some(Word::Broken(_))), breaks);
        }
    }

    #[test]
    fn words_that_nobody_hears_are_counted_when_there_are_too_many() {
        let crew = Crew::new().unwrap();
        let mut main = crew.main();
        let path = Path::udp(([192, 0, 2, 1], 1).into(), ([192, 0, 2, 2], 2).into());
        for _ in 0..WORDS + 3 {
            main.pass(path, b"one");
        }
        assert_eq!(main.lost, 3);
        let heard = std::iter::from_fn(|| crew.poll_word()).count();
        assert_eq!(heard, WORDS);
    }
}
