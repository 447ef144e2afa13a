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
//! network; the oldest of the most crowded one gives way to the next. What each can make us hold is one
//! message.

use crate::unproved;
use config::Config;
use model::{Deadline, Entry, Instant, Origin, Path, Room, Strangers};
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

/// Connections that others made, beside one for each peer: but never more than half of the descriptors.
const MOST: usize = 512;

/// Those among them that no IKE SA uses. A newcomer from the same network has to wait until those before it
/// have had the time to say something.
const STRANGERS: Room = Room {
    total: 128,
    per_site: 64,
    per_host: 16,
    patience: Duration::from_secs(2),
};

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
    /// Connections that no IKE SA used and that gave way to those of less crowded networks.
    pub gave_way: u64,
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
    /// Connections of others that no IKE SA uses.
    strangers: Strangers<u64>,
    /// Addresses of configured peers.
    peers: BTreeSet<IpAddr>,
    /// Descriptors that the process may have.
    files: u64,
    /// Connections that others may have made.
    most: usize,
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
    /// Listens, if the configuration says so. Connections get tokens from `first` on; the process may have so
    /// many `files`.
    pub fn open(config: &Config, first: u64, files: u64) -> Result<Self, Error> {
        let port = config.listen.tcp;
        let listeners = port.map_or_else(|| Ok(Vec::new()), |port| listen(config, port));
        let mut streams = Self::new(listeners?, first, files);
        streams.reconfigure(config);
        Ok(streams)
    }

    fn new(listeners: Vec<Listener>, first: u64, files: u64) -> Self {
        Self {
            listeners,
            held: BTreeMap::new(),
            named: BTreeMap::new(),
            next: first,
            dirty: BTreeSet::new(),
            lost: VecDeque::new(),
            look: None,
            strangers: Strangers::default(),
            peers: BTreeSet::new(),
            files,
            most: MOST,
            buffer: vec![0; 64 << 10],
            counts: Counts::default(),
        }
    }

    /// Has the peers of a configuration from now on. Connections stay.
    pub fn reconfigure(&mut self, config: &Config) {
        self.peers = unproved::addresses(config);
        let half = usize::try_from(self.files / 2).unwrap_or(usize::MAX);
        self.most = half.min(MOST + config.peers.len());
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
            let from = Origin::new(path.remote.ip(), &self.peers);
            if !self.make_room(from, now) {
                self.counts.refused += 1;
                stream.reset();
                continue;
            }
            self.strangers.insert(self.next, from, now);
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
                self.strangers.remove(*token);
                continue;
            }
            if held.asked.is_none() {
                let from = Origin::new(held.path.remote.ip(), &self.peers);
                self.strangers.insert(*token, from, now);
            }
            if now >= *held.unused.get_or_insert(now) + GRACE {
                over.push(*token);
                self.counts.unused += u64::from(held.asked.is_none());
            }
        }
        over.into_iter().for_each(|token| self.close(token));
        self.look = (!self.held.is_empty()).then_some(now + PAUSE);
    }

    /// Whether there is a place for one more, if need be that of another.
    fn make_room(&mut self, from: Origin, now: Instant) -> bool {
        let theirs = self.held.values().filter(|held| held.asked.is_none());
        let room = match theirs.count() < self.most {
            true => STRANGERS,
            // The others are in use.
            false => Room {
                total: 0,
                ..STRANGERS
            },
        };
        match self.strangers.entry(from, &room, now) {
            Entry::Free => true,
            Entry::Instead(oldest) => {
                self.counts.gave_way += 1;
                if let Some(held) = self.forget(oldest) {
                    held.stream.reset();
                }
                true
            }
            Entry::Refused => false,
        }
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
            self.strangers.remove(token);
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
        if let Some(held) = self.forget(token) {
            self.lost.extend(held.asked.map(|_| held.path));
        }
    }

    fn forget(&mut self, token: u64) -> Option<Held> {
        self.strangers.remove(token);
        let held = self.held.remove(&token)?;
        for path in held.asked.iter().chain([&held.path]) {
            if self.named.get(path) == Some(&token) {
                self.named.remove(path);
            }
        }
        Some(held)
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

#[cfg(test)]
mod tests {
    use super::*;
    use os::netlink::Netlink;
    use std::time::Instant as Clock;

    /// All of 127.0.0.0/8 is this host, so that connections may come from many.
    fn host(site: u8, host: u8) -> IpAddr {
        Ipv4Addr::new(127, 1, site, host).into()
    }

    struct Server {
        streams: Streams,
        poller: Poller,
        to: SocketAddr,
        /// What the other ends hold.
        clients: Vec<Stream>,
        now: Instant,
    }

    impl Server {
        fn new() -> Self {
            // A namespace of its own has a loopback device that is down.
            let netlink = Netlink::open().unwrap();
            if !netlink.is_up("lo").unwrap() {
                netlink.link_up("lo").unwrap();
            }
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = Listener::bind(any, None).unwrap();
            let to = SocketAddr::new(any.ip(), listener.port());
            Self {
                streams: Streams::new(vec![listener], 7, 1024),
                poller: Poller::new().unwrap(),
                to,
                clients: Vec::new(),
                now: Instant::from_origin(Duration::from_secs(9)),
            }
        }

        /// Connects from an address; gives whether it was taken.
        fn connect(&mut self, from: IpAddr) -> bool {
            let from = SocketAddr::new(from, 0);
            let client = Stream::connect(from, self.to, None).unwrap();
            self.clients.push(client);
            let counts = |streams: &Streams| (streams.next, streams.counts.refused);
            let (before, deadline) = (
                counts(&self.streams),
                Clock::now() + Duration::from_secs(20),
            );
            while counts(&self.streams) == before {
                assert!(Clock::now() < deadline, "the connection has not come");
                self.streams.accept(0, &self.poller, self.now);
            }
            self.streams.next > before.0
        }

        fn holds(&self, address: IpAddr) -> bool {
            let mut held = self.streams.held.values();
            held.any(|held| held.path.remote.ip() == address)
        }
    }

    #[test]
    fn idle_connections_of_a_few_networks_keep_no_other_out() {
        let mut server = Server::new();
        for n in 0..200_u8 {
            server.connect(host(n % 4, n % 20));
        }
        assert_eq!(server.streams.held.len(), STRANGERS.total);
        let honest = host(77, 1);
        assert!(server.connect(honest));
        for n in 0..100_u8 {
            server.connect(host(n % 4, n % 20));
        }
        assert!(server.holds(honest), "nor take its place");
        assert_eq!(server.streams.held.len(), STRANGERS.total);
        assert!(server.streams.counts.gave_way > 0);
    }

    /// An orderly end would be kept by the kernel until the other end says that it has seen it.
    #[test]
    fn what_gives_way_is_reset() {
        let mut server = Server::new();
        for n in 0..=STRANGERS.total as u8 {
            server.connect(host(n, 1));
        }
        let (oldest, deadline) = (&server.clients[0], Clock::now() + Duration::from_secs(20));
        let end = loop {
            match oldest.read(&mut [0]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    assert!(Clock::now() < deadline, "it was not closed");
                }
                end => break end,
            }
        };
        let why = end.map_err(|error| error.kind());
        assert_eq!(why, Err(io::ErrorKind::ConnectionReset));
    }

    #[test]
    fn one_host_has_its_own_places_only_and_they_change_hands() {
        let mut server = Server::new();
        for _ in 0..STRANGERS.per_host {
            assert!(server.connect(host(1, 1)));
        }
        assert!(!server.connect(host(1, 1)));
        assert!(server.connect(host(2, 1)));
        server.now += STRANGERS.patience;
        assert!(server.connect(host(1, 1)));
        assert_eq!(server.streams.held.len(), STRANGERS.per_host + 1);
    }

    #[test]
    fn a_configured_address_has_places_that_no_stranger_takes() {
        let mut server = Server::new();
        let peer = host(77, 1);
        server.streams.peers = BTreeSet::from([peer]);
        assert!(server.connect(peer));
        for n in 0..200_u8 {
            server.connect(host(n, n));
        }
        assert!(server.holds(peer));
        assert_eq!(server.streams.held.len(), STRANGERS.total + 1);
    }

    #[test]
    fn a_connection_that_an_ike_sa_uses_gives_way_to_nobody() {
        let mut server = Server::new();
        assert!(server.connect(host(77, 1)));
        let path = server.streams.held.values().next().unwrap().path;
        server.now += PAUSE;
        let now = server.now;
        server.streams.handle_timeout(|| [path].into_iter(), now);
        server.streams.most = 3;
        assert!(server.connect(host(1, 1)) && server.connect(host(2, 1)));
        for n in 3..20 {
            assert!(server.connect(host(n, 1)));
        }
        assert!(server.holds(host(77, 1)));
        assert_eq!(server.streams.held.len(), 3);
    }
}
