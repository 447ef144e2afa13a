//! IKE and ESP in streams of TCP (RFC 9329): the connections, their owners and their limits.
//!
//! The node sends along paths; a TCP path identifies a connection. An IKE message opens the
//! connection if this end may open it, and is queued until it is established. An ESP packet is
//! never queued for that. Little ESP is buffered behind a full socket: more would only arrive too
//! late, and the transport above slows down when packets are lost, as it does behind any router.
//!
//! **Limits for unknown peers.** Any host can connect. A connection without an IKE SA is closed
//! after [`GRACE`]: whether it carried nothing, nonsense or an exchange that failed, or its SA has
//! ended. Until then it counts as one of an unknown peer. The number of such connections is
//! limited, in total and per network. A new one evicts the oldest of the most crowded network. Each
//! can make us buffer at most one message. A handshake costs the kernel as much as several packets,
//! so they are accepted at a limited rate ([`EACH`]). If more arrive, the kernel drops the SYN, and
//! an honest client sends it again.

use crate::unproved;
use config::Config;
use model::{Bucket, Deadline, Entry, Instant, Origin, Path, Room, UnknownPeers};
use os::poll::{Interest, Ready};
use os::routes::MARK;
use os::{Error, Links, Listener, Poller, Stream};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use wire::stream::{self, PREFIX, Reader};

/// Time that a connection without an IKE SA is kept: "5-10 seconds is a good compromise" (RFC 9329
/// section 6.3.1).
const GRACE: Duration = Duration::from_secs(10);

/// Interval between checks for unused connections.
const PAUSE: Duration = Duration::from_secs(1);

/// Time after which one more connection is accepted.
const EACH: Duration = Duration::from_micros(625);

/// Time in which a burst of connections is earned, and for which the listeners then rest.
const BURST: Duration = Duration::from_millis(10);

/// Most incoming connections, in addition to one per peer; never more than half of the descriptors.
const MOST: usize = 512;

/// Limits on incoming connections without an IKE SA. A connection may evict an older one of its own
/// network only after that one has had time to send something.
const STRANGERS: Room = Room {
    total: 128,
    per_site: 64,
    per_host: 16,
    patience: Duration::from_secs(2),
};

/// Octets of ESP that are buffered for one socket.
const ESP_ROOM: usize = 64 << 10;

/// Octets that are buffered for one socket in total: IKE is kept while ESP is dropped.
const IKE_ROOM: usize = 256 << 10;

/// Consecutive messages without an SA after which both ends are assumed to have lost message
/// framing (RFC 9329 section 6.1).
const VAIN: usize = 1000;

/// Reads from one connection before the others are served.
const TURNS: usize = 4;

/// Connections and packets that were closed, refused or lost since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Connections without an IKE SA that were evicted for one of a less crowded network.
    pub gave_way: u64,
    /// Incoming connections closed because no IKE SA used them.
    pub unused: u64,
    /// Connections closed because of unreadable content.
    pub corrupt: u64,
    /// Packets dropped because the socket's buffer was full.
    pub full: u64,
    /// Packets dropped because their connection did not exist.
    pub gone: u64,
}

/// All connections.
pub struct Streams {
    listeners: Vec<Listener>,
    /// Token of the first listener.
    first_listener: u64,
    accepted: Bucket,
    /// End of a pause in which the listeners are not watched.
    pause: Option<Instant>,
    held: BTreeMap<u64, Held>,
    /// Connections by path. An outgoing connection is also listed under its path without our
    /// address.
    named: BTreeMap<Path, u64>,
    /// Token of the next connection.
    next: u64,
    /// Connections with data to write.
    dirty: BTreeSet<u64>,
    lost: VecDeque<Path>,
    look: Option<Instant>,
    /// Incoming connections without an IKE SA.
    unknown_peers: UnknownPeers<u64>,
    /// Addresses of configured peers.
    peers: BTreeSet<IpAddr>,
    /// Most file descriptors of the process.
    files: u64,
    /// Most incoming connections.
    most: usize,
    buffer: Vec<u8>,
    /// The interfaces of hosts with link-local addresses.
    links: Links,
    /// Counters of failures.
    pub counts: Counts,
}

struct Held {
    stream: Stream,
    path: Path,
    /// The path as the node asked for it, for an outgoing connection.
    asked: Option<Path>,
    connected: bool,
    reader: Reader,
    waiting: Vec<u8>,
    interest: Interest,
    /// Time since which no IKE SA has used the connection.
    unused: Option<Instant>,
    /// Messages since the last one that belonged to an SA.
    vain: usize,
}

impl Streams {
    /// Opens listeners if the configuration asks for them. Connections get tokens from `first` on;
    /// `files` is the process's limit on descriptors.
    pub fn open(config: &Config, links: &Links, first: u64, files: u64) -> Result<Self, Error> {
        let port = config.listen.tcp;
        let listeners = port.map_or_else(|| Ok(Vec::new()), |port| listen(config, port));
        let mut streams = Self::new(listeners?, first, files);
        streams.links = links.clone();
        streams.reconfigure(config);
        Ok(streams)
    }

    fn new(listeners: Vec<Listener>, first: u64, files: u64) -> Self {
        Self {
            listeners,
            first_listener: 0,
            accepted: Bucket::default(),
            pause: None,
            held: BTreeMap::new(),
            named: BTreeMap::new(),
            next: first,
            dirty: BTreeSet::new(),
            lost: VecDeque::new(),
            look: None,
            unknown_peers: UnknownPeers::default(),
            peers: BTreeSet::new(),
            files,
            most: MOST,
            buffer: vec![0; 64 << 10],
            links: Links::default(),
            counts: Counts::default(),
        }
    }

    /// Applies the peers of another configuration. Connections stay open.
    pub fn reconfigure(&mut self, config: &Config) {
        self.peers = unproved::addresses(config);
        let half = usize::try_from(self.files / 2).unwrap_or(usize::MAX);
        self.most = half.min(MOST + expected(config));
    }

    /// Registers the listeners with the poller, under tokens from `first` on.
    pub fn watch(&mut self, first: u64, poller: &Poller) -> io::Result<()> {
        self.first_listener = first;
        let mut listeners = self.listeners.iter().zip(first..);
        listeners.try_for_each(|(listener, token)| poller.add(listener, token, Interest::Read))
    }

    /// Accepts new connections, as many as the rate allows.
    pub fn accept(&mut self, listener: usize, poller: &Poller, now: Instant) {
        for _ in 0..TURNS {
            if self.accepted.next(BURST, now) > now {
                return self.pause(poller, now);
            }
            let Some(Ok(stream)) = self.listeners.get(listener).map(Listener::accept) else {
                return;
            };
            self.accepted.charge(EACH, BURST, now);
            let Ok(path) = stream.path() else {
                continue;
            };
            let path = self.links.arriving(path);
            let from = Origin::new(path.remote.ip(), &self.peers);
            if !self.make_room(from, now) {
                self.counts.refused += 1;
                stream.reset();
                continue;
            }
            self.unknown_peers.insert(self.next, from, now);
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

    /// Stops watching the listeners until another burst is earned.
    fn pause(&mut self, poller: &Poller, now: Instant) {
        self.watch_for(poller, Interest::None);
        self.pause = Some(now + BURST);
    }

    fn watch_for(&self, poller: &Poller, interest: Interest) {
        for (listener, token) in self.listeners.iter().zip(self.first_listener..) {
            if let Err(error) = poller.change(listener, token, interest) {
                tracing::warn!("TCP connections may not be accepted: {error}");
            }
        }
    }

    /// Reads from a connection, passes each message to `each`, and writes buffered data. Returns
    /// the number of messages.
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

    /// Records if any of the messages last read from a connection was useful. Closes the connection
    /// after too many useless messages.
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

    /// Sends an IKE message with its non-ESP marker, opening a connection if necessary.
    pub fn send(&mut self, path: Path, message: &[u8], poller: &Poller, now: Instant) {
        if !self.named.contains_key(&path) {
            self.connect(path, poller, now);
        }
        self.push(path, message, IKE_ROOM);
        self.flush(poller);
    }

    /// Sends an ESP packet if its buffer has room. It leaves with the next [`Streams::flush`].
    pub fn pass(&mut self, path: Path, packet: &[u8]) {
        self.push(path, packet, ESP_ROOM);
    }

    /// Writes buffered data, as far as sockets accept it.
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

    /// Returns the next outgoing connection that was lost or could not be established.
    pub fn poll_lost(&mut self) -> Option<Path> {
        self.lost.pop_front()
    }

    /// Returns the time of the next call to [`Streams::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let close = self.look.map(|at| Deadline {
            at,
            reason: "close unused TCP connections",
        });
        let accept = self.pause.map(|at| Deadline {
            at,
            reason: "accept TCP connections again",
        });
        close.into_iter().chain(accept).min()
    }

    /// Ends a pause of the listeners. Closes connections without an IKE SA once their time is over;
    /// `used` returns the paths with an IKE SA.
    pub fn handle_timeout<I: Iterator<Item = Path>>(
        &mut self,
        used: impl FnOnce() -> I,
        poller: &Poller,
        now: Instant,
    ) {
        if self.pause.take_if(|at| *at <= now).is_some() {
            self.watch_for(poller, Interest::Read);
        }
        if self.look.is_none_or(|at| now < at) {
            return;
        }
        let used: BTreeSet<Path> = used().collect();
        let mut over = Vec::new();
        for (token, held) in &mut self.held {
            let asked = held.asked.is_some_and(|asked| used.contains(&asked));
            if asked || used.contains(&held.path) {
                held.unused = None;
                self.unknown_peers.remove(*token);
                continue;
            }
            if held.asked.is_none() {
                let from = Origin::new(held.path.remote.ip(), &self.peers);
                self.unknown_peers.insert(*token, from, now);
            }
            if now >= *held.unused.get_or_insert(now) + GRACE {
                over.push(*token);
                self.counts.unused += u64::from(held.asked.is_none());
            }
        }
        over.into_iter().for_each(|token| self.close(token));
        self.look = (!self.held.is_empty()).then_some(now + PAUSE);
    }

    /// Returns true if there is room for one more connection, after evicting another if necessary.
    fn make_room(&mut self, from: Origin, now: Instant) -> bool {
        let theirs = self.held.values().filter(|held| held.asked.is_none());
        let room = match theirs.count() < self.most {
            true => STRANGERS,
            // All connections have an IKE SA.
            false => Room {
                total: 0,
                ..STRANGERS
            },
        };
        match self.unknown_peers.entry(from, &room, now) {
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

    /// Opens a connection, unless the path belongs to an incoming one.
    fn connect(&mut self, path: Path, poller: &Poller, now: Instant) {
        let ours = self
            .listeners
            .iter()
            .all(|listener| listener.port() != path.local.port());
        if !ours {
            return;
        }
        let connect = |way: Path| Stream::connect(way.local, way.remote, Some(MARK));
        let Ok(stream) = self.links.leaving(path).and_then(connect) else {
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
            self.unknown_peers.remove(token);
            return self.lost.extend(held.asked);
        }
        self.next += 1;
        self.named.insert(held.path, token);
        self.held.insert(token, held);
        self.look = self.look.or(Some(now + PAUSE));
    }

    /// Returns true if a connection is established, once it is writable. A connection that failed
    /// is removed.
    fn is_connected(&mut self, token: u64) -> bool {
        let Some(held) = self.held.get_mut(&token) else {
            return false;
        };
        if held.connected {
            return true;
        }
        match held.stream.outcome().and_then(|()| held.stream.path()) {
            Ok(path) => {
                let path = self.links.arriving(path);
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
            // The next flush notices a write error.
            let _ = held.write();
        }
        let fits = held.waiting.len() + message.len() <= room;
        if fits && stream::write(message, &mut held.waiting) {
            self.dirty.insert(token);
        } else {
            self.counts.full += 1;
        }
    }

    /// Closes a connection. The node is notified of an outgoing one.
    fn close(&mut self, token: u64) {
        if let Some(held) = self.forget(token) {
            self.lost.extend(held.asked.map(|_| held.path));
        }
    }

    fn forget(&mut self, token: u64) -> Option<Held> {
        self.unknown_peers.remove(token);
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

    /// Waits for writability while data is buffered.
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

/// Opens listeners at the same addresses as the UDP sockets.
/// Returns the number of peers that may come.
fn expected(config: &Config) -> usize {
    let peers = config.peers.iter();
    let most = peers.map(|peer| match peer.user_identities() {
        Some(_) => peer.users as usize,
        None => 1,
    });
    most.sum()
}

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

    /// Returns a loopback address. All of 127.0.0.0/8 is local, so connections can come from many
    /// addresses.
    fn host(site: u8, host: u8) -> IpAddr {
        Ipv4Addr::new(127, 1, site, host).into()
    }

    struct Server {
        streams: Streams,
        poller: Poller,
        to: SocketAddr,
        /// The client ends of the connections.
        clients: Vec<Stream>,
        now: Instant,
    }

    impl Server {
        fn new() -> Self {
            // The loopback device of a new namespace is down.
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

        fn begin(&mut self, from: IpAddr) {
            let from = SocketAddr::new(from, 0);
            let client = Stream::connect(from, self.to, None).unwrap();
            self.clients.push(client);
        }

        /// Connects from an address, a millisecond after the last one; returns true if the
        /// connection was accepted.
        fn connect(&mut self, from: IpAddr) -> bool {
            self.now += Duration::from_millis(1);
            self.begin(from);
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

    // Weakness: 91
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

    /// After an orderly close, the kernel would keep the connection until the other end
    /// acknowledges it.
    // Weakness: 130
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
    fn more_connections_than_a_burst_are_accepted_after_a_pause() {
        let mut server = Server::new();
        server.streams.watch(1, &server.poller).unwrap();
        let late = Some(os::clock::now() + Duration::from_secs(20));
        let mut ready = Vec::new();
        let mut turn = |server: &mut Server, until| {
            server.poller.wait(until, &mut ready).unwrap();
            if ready.is_empty() {
                return false;
            }
            server.streams.accept(0, &server.poller, server.now);
            true
        };
        let burst = (BURST.as_micros() / EACH.as_micros()) as usize + 1;
        for n in 0..burst + 1 {
            server.begin(host(n as u8, 1));
        }
        while server.streams.pause.is_none() {
            assert!(turn(&mut server, late));
        }
        assert_eq!(server.streams.held.len(), burst);
        assert!(
            !turn(&mut server, Some(Instant::ZERO)),
            "and nothing wakes it"
        );
        let at = server.streams.poll_timeout().unwrap().at;
        assert_eq!(at, server.now + BURST);
        server.now = at;
        let used = std::iter::empty;
        server.streams.handle_timeout(used, &server.poller, at);
        while server.streams.held.len() <= burst {
            assert!(turn(&mut server, late));
        }
    }

    // Weakness: 91
    #[test]
    fn a_configured_address_has_places_that_no_unknown_peer_takes() {
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
        let used = || [path].into_iter();
        server.streams.handle_timeout(used, &server.poller, now);
        server.streams.most = 3;
        assert!(server.connect(host(1, 1)) && server.connect(host(2, 1)));
        for n in 3..20 {
            assert!(server.connect(host(n, 1)));
        }
        assert!(server.holds(host(77, 1)));
        assert_eq!(server.streams.held.len(), 3);
    }
}
