//! IKE and ESP in streams of TCP (RFC 9329): who holds which connection, and what one may cost.
//!
//! The node sends along paths; a path of TCP is the name of a connection. What is of IKE makes the
//! connection if it is one of ours to make, and waits for it; what is of ESP does not wait. There is
//! room for little of it behind a full socket: more would only arrive too late, and the transport
//! above slows down when packets are lost, as it does behind any router.
//!
//! **What strangers cost.** Anybody can connect. A connection that no IKE SA uses is closed after
//! [`GRACE`], be it that nothing was said in it or nonsense, that what was said led to nothing, or
//! that the SA is gone. Until then it is a stranger's, and of these there are few, and fewer from one
//! address. What each can make us hold is one message.

use config::Config;
use model::{Deadline, Instant, Path};
use os::poll::{Interest, Ready};
use os::routes::MARK;
use os::{Error, Listener, Poller, Stream};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use wire::stream::{self, PREFIX, Reader};

/// How long a connection is kept that no IKE SA uses: "5-10 seconds is a good compromise" (RFC 9329
/// section 6.3.1).
const GRACE: Duration = Duration::from_secs(10);

/// How often it is looked which are used.
const PAUSE: Duration = Duration::from_secs(1);

/// Connections that others made: a process has a thousand descriptors, for everything.
const MOST: usize = 512;

/// Those among them that no IKE SA uses.
const STRANGERS: usize = 64;

/// The same, from one address.
const STRANGERS_PER_ADDRESS: usize = 8;

/// Octets of ESP that wait for one socket.
const ESP_ROOM: usize = 64 << 10;

/// Octets that wait at all: IKE is kept while ESP is dropped.
const IKE_ROOM: usize = 256 << 10;

/// So many messages in a row that are of no SA mean that both ends have lost count of the octets (RFC
/// 9329 section 6.1).
const VAIN: usize = 1000;

/// Reads from one connection before the others get their turn.
const TURNS: usize = 4;

/// What was closed, refused or lost, since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Connections that were not taken, because there were too many.
    pub refused: u64,
    /// Connections of others that were closed because no IKE SA used them.
    pub unused: u64,
    /// Connections in which something stood that nobody can read.
    pub corrupt: u64,
    /// Packets that did not fit into a socket any more.
    pub full: u64,
    /// Packets for connections that are not there.
    pub gone: u64,
}

/// All connections.
pub struct Streams {
    listeners: Vec<Listener>,
    held: BTreeMap<u64, Held>,
    /// By their paths; one that we have made also by that without our address.
    named: BTreeMap<Path, u64>,
    /// The token of the next one.
    next: u64,
    /// Those with something to write.
    dirty: BTreeSet<u64>,
    lost: VecDeque<Path>,
    look: Option<Instant>,
    buffer: Vec<u8>,
    /// What went wrong.
    pub counts: Counts,
}

struct Held {
    stream: Stream,
    path: Path,
    /// As the node asked for it, if it is one that we made.
    asked: Option<Path>,
    connected: bool,
    reader: Reader,
    waiting: Vec<u8>,
    interest: Interest,
    /// Since when no IKE SA uses it.
    unused: Option<Instant>,
    /// Messages since the last that was of any use.
    vain: usize,
}

impl Streams {
    /// Listens, if the configuration says so. Connections get tokens from `first` on.
    pub fn open(config: &Config, first: u64) -> Result<Self, Error> {
        let port = config.listen.tcp;
        let listeners = port.map_or_else(|| Ok(Vec::new()), |port| listen(config, port));
        Ok(Self {
            listeners: listeners?,
            held: BTreeMap::new(),
            named: BTreeMap::new(),
            next: first,
            dirty: BTreeSet::new(),
            lost: VecDeque::new(),
            look: None,
            buffer: vec![0; 64 << 10],
            counts: Counts::default(),
        })
    }

    /// Has those who connect waited for, under tokens from `first` on.
    pub fn watch(&self, first: u64, poller: &Poller) -> io::Result<()> {
        let mut listeners = self.listeners.iter().zip(first..);
        listeners.try_for_each(|(listener, token)| poller.add(listener, token, Interest::Read))
    }

    /// Takes whoever has connected.
    pub fn accept(&mut self, listener: usize, poller: &Poller, now: Instant) {
        for _ in 0..TURNS {
            let Some(Ok(stream)) = self.listeners.get(listener).map(Listener::accept) else {
                return;
            };
            let Ok(path) = stream.path() else {
                continue;
            };
            if self.is_crowded(path.remote.ip()) {
                self.counts.refused += 1;
                continue;
            }
            let held = Held {
                stream,
                path,
                asked: None,
                connected: true,
                reader: Reader::of_responder(),
                waiting: Vec::new(),
                interest: Interest::Read,
                unused: Some(now),
                vain: 0,
            };
            self.hold(held, poller, now);
        }
    }

    /// Reads what has come on a connection, shows each message to `each`, and writes what waits. Gives
    /// how many messages there were.
    pub fn handle(
        &mut self,
        ready: Ready,
        poller: &Poller,
        mut each: impl FnMut(Path, &[u8]),
    ) -> usize {
        let token = ready.token;
        if ready.writable && !self.is_connected(token) {
            return 0;
        }
        let mut messages = 0;
        if ready.readable {
            for _ in 0..TURNS {
                let Some(held) = self.held.get_mut(&token) else {
                    return messages;
                };
                let read = match held.stream.read(&mut self.buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Ok(0) | Err(_) => {
                        self.close(token);
                        return messages;
                    }
                    Ok(read) => read,
                };
                let path = held.path;
                let read = held.reader.read(&self.buffer[..read], |message| {
                    messages += 1;
                    each(path, message);
                });
                if read.is_err() {
                    self.counts.corrupt += 1;
                    self.close(token);
                    return messages;
                }
            }
        }
        self.dirty.insert(token);
        self.flush(poller);
        messages
    }

    /// What became of the messages that a connection gave last: whether one of them was of any use.
    pub fn judge(&mut self, token: u64, messages: usize, useful: bool) {
        let Some(held) = self.held.get_mut(&token) else {
            return;
        };
        held.vain = if useful { 0 } else { held.vain + messages };
        if held.vain > VAIN {
            self.counts.corrupt += 1;
            self.close(token);
        }
    }

    /// Sends an IKE message with its non-ESP marker, along a connection that is made if need be.
    pub fn send(&mut self, path: Path, message: &[u8], poller: &Poller, now: Instant) {
        if !self.named.contains_key(&path) {
            self.connect(path, poller, now);
        }
        self.push(path, message, IKE_ROOM);
        self.flush(poller);
    }

    /// Sends an ESP packet if there is room for it. It leaves with the next [`Streams::flush`].
    pub fn pass(&mut self, path: Path, packet: &[u8]) {
        self.push(path, packet, ESP_ROOM);
    }

    /// Writes what waits, as far as sockets take it.
    pub fn flush(&mut self, poller: &Poller) {
        for token in std::mem::take(&mut self.dirty) {
            let Some(held) = self.held.get_mut(&token) else {
                continue;
            };
            if held
                .write()
                .and_then(|()| held.watch(token, poller))
                .is_err()
            {
                self.close(token);
            }
        }
    }

    /// The next connection of ours that is lost or could not be made.
    pub fn poll_lost(&mut self) -> Option<Path> {
        self.lost.pop_front()
    }

    /// When to call [`Streams::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        Some(Deadline {
            at: self.look?,
            reason: "streams that nobody uses are closed",
        })
    }

    /// Closes what no IKE SA uses, if it is time; `used` gives those that one does.
    pub fn handle_timeout<I: Iterator<Item = Path>>(
        &mut self,
        used: impl FnOnce() -> I,
        now: Instant,
    ) {
        if self.look.is_none_or(|at| now < at) {
            return;
        }
        let used: BTreeSet<Path> = used().collect();
        let mut over = Vec::new();
        for (token, held) in &mut self.held {
            let asked = held.asked.is_some_and(|asked| used.contains(&asked));
            if asked || used.contains(&held.path) {
                held.unused = None;
            } else if now >= *held.unused.get_or_insert(now) + GRACE {
                over.push(*token);
                self.counts.unused += u64::from(held.asked.is_none());
            }
        }
        over.into_iter().for_each(|token| self.close(token));
        self.look = (!self.held.is_empty()).then_some(now + PAUSE);
    }

    /// Whether one more would be too many.
    fn is_crowded(&self, from: IpAddr) -> bool {
        let theirs = || self.held.values().filter(|held| held.asked.is_none());
        let strangers = || theirs().filter(|held| held.unused.is_some());
        let here = strangers().filter(|held| held.path.remote.ip() == from);
        theirs().count() >= MOST
            || strangers().count() >= STRANGERS
            || here.count() >= STRANGERS_PER_ADDRESS
    }

    /// Connects, unless the path is one that another has connected.
    fn connect(&mut self, path: Path, poller: &Poller, now: Instant) {
        let ours = self
            .listeners
            .iter()
            .all(|listener| listener.port() != path.local.port());
        if !ours {
            return;
        }
        let Ok(stream) = Stream::connect(path.local, path.remote, Some(MARK)) else {
            return self.lost.push_back(path);
        };
        let held = Held {
            stream,
            path,
            asked: Some(path),
            connected: false,
            reader: Reader::of_originator(),
            waiting: PREFIX.to_vec(),
            interest: Interest::ReadWrite,
            unused: Some(now),
            vain: 0,
        };
        self.hold(held, poller, now);
    }

    fn hold(&mut self, held: Held, poller: &Poller, now: Instant) {
        let token = self.next;
        if poller.add(&held.stream, token, held.interest).is_err() {
            return self.lost.extend(held.asked);
        }
        self.next += 1;
        self.named.insert(held.path, token);
        self.held.insert(token, held);
        self.look = self.look.or(Some(now + PAUSE));
    }

    /// Whether it is, now that it can be written to; if it could not be made it is gone.
    fn is_connected(&mut self, token: u64) -> bool {
        let Some(held) = self.held.get_mut(&token) else {
            return false;
        };
        if held.connected {
            return true;
        }
        match held.stream.outcome().and_then(|()| held.stream.path()) {
            Ok(path) => {
                (held.path, held.connected) = (path, true);
                self.named.insert(path, token);
                true
            }
            Err(error) => {
                tracing::debug!("no connection to {}: {error}", held.path.remote);
                self.close(token);
                false
            }
        }
    }

    fn push(&mut self, path: Path, message: &[u8], room: usize) {
        let named = self.named.get(&path).copied();
        let Some((token, held)) = named.and_then(|token| Some((token, self.held.get_mut(&token)?)))
        else {
            self.counts.gone += 1;
            return;
        };
        if held.waiting.len() + message.len() > room {
            // What cannot be written is noticed by the next flush.
            let _ = held.write();
        }
        let fits = held.waiting.len() + message.len() <= room;
        if fits && stream::write(message, &mut held.waiting) {
            self.dirty.insert(token);
        } else {
            self.counts.full += 1;
        }
    }

    /// Closes a connection. Of one that we made the node is told.
    fn close(&mut self, token: u64) {
        let Some(held) = self.held.remove(&token) else {
            return;
        };
        for path in held.asked.iter().chain([&held.path]) {
            if self.named.get(path) == Some(&token) {
                self.named.remove(path);
            }
        }
        self.lost.extend(held.asked.map(|_| held.path));
    }
}

impl Held {
    fn write(&mut self) -> io::Result<()> {
        let mut written = 0;
        let result = loop {
            let left = self.waiting.get(written..).unwrap_or_default();
            if left.is_empty() || !self.connected {
                break Ok(());
            }
            match self.stream.write(left) {
                Ok(octets) => written += octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.waiting.drain(..written);
        result
    }

    /// Waits for room as long as there is something to write.
    fn watch(&mut self, token: u64, poller: &Poller) -> io::Result<()> {
        let interest = match self.connected && self.waiting.is_empty() {
            true => Interest::Read,
            false => Interest::ReadWrite,
        };
        if interest != self.interest {
            poller.change(&self.stream, token, interest)?;
            self.interest = interest;
        }
        Ok(())
    }
}

/// Sockets as there are for UDP.
fn listen(config: &Config, port: u16) -> Result<Vec<Listener>, Error> {
    let listen = &config.listen.addresses;
    if !listen.is_empty() {
        let bind = |address: &IpAddr| Listener::bind(SocketAddr::new(*address, port), Some(MARK));
        return listen.iter().map(bind).collect();
    }
    let any = [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];
    let bound = any.map(|address| Listener::bind(SocketAddr::new(address, port), Some(MARK)));
    let lacks_family =
        |result: &Result<Listener, Error>| matches!(result, Err(Error::NoFamily { .. }));
    bound
        .into_iter()
        .filter(|result| !lacks_family(result))
        .collect()
}
