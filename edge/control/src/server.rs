//! The server side of the API.
//!
//! One descriptor ([`AsFd`]) is readable whenever there is work. [`Server::handle_ready`] then does
//! all of it: accepts connections, reads, writes the rest of earlier answers, and returns the
//! requests. A client has at most one request outstanding: its next line is parsed only after the
//! answer to the last one, so a [`ClientId`] identifies the request. All state is bounded: the
//! connections, the octets that wait to be parsed, and, as each client has one request, the answers
//! that wait to be written.

use crate::line::{LONGEST_REQUEST, Lines};
use crate::right::refusal;
use crate::{Access, CannotListen, Failure, Request, Response, Right, Socket};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Limit on connections. A new one beyond the limit replaces the oldest one without a request.
pub(crate) const MOST_CLIENTS: usize = 32;
/// Connections accepted before others get their turn.
const ACCEPTED_AT_ONCE: usize = 2 * MOST_CLIENTS;
/// Octets read from one connection before the next one gets its turn.
const READ_AT_ONCE: usize = 16 << 10;
/// Epoll token of the listener; client tokens count from 0.
const LISTENER: u64 = u64::MAX;

/// Identifies a client and its outstanding request. Values are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(u64);

/// The API's socket and its clients.
#[derive(Debug)]
pub struct Server {
    socket: Socket,
    /// The right of all clients.
    right: Right,
    epoll: Epoll,
    clients: BTreeMap<ClientId, Client>,
    next: u64,
    /// A spare descriptor, closed to accept a connection when the process has no descriptors left.
    spare: Option<File>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    lines: Lines,
    unsent: Vec<u8>,
    /// A request was returned to the caller and is not answered yet.
    asked: bool,
    /// The client has closed its side or sent an oversized line; nothing more is read.
    ended: bool,
    /// Events that epoll waits for.
    interest: EpollFlags,
}

impl Server {
    /// Listens on a socket for the user of the daemon, whose clients may send all requests.
    pub fn bind(path: &Path) -> Result<Self, CannotListen> {
        let socket = Socket::bind(path, Access::Owner)?;
        Self::open(path, socket, Right::Change)
    }

    /// Listens on a socket whose clients may only read. As a server of its own, it takes no room
    /// of other clients.
    pub fn bind_for_readers(path: &Path, access: Access) -> Result<Self, CannotListen> {
        let socket = Socket::bind(path, access)?;
        Self::open(path, socket, Right::Read)
    }

    fn open(path: &Path, socket: Socket, right: Right) -> Result<Self, CannotListen> {
        let failed = |errno: Errno| CannotListen::Failed {
            path: path.to_owned(),
            source: errno.into(),
        };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, LISTENER);
        epoll.add(socket.listener(), event).map_err(failed)?;
        Ok(Self {
            socket,
            right,
            epoll,
            clients: BTreeMap::new(),
            next: 0,
            spare: spare(),
        })
    }

    /// Answers a client's request. Does nothing if the client has none outstanding or has gone.
    pub fn answer(&mut self, id: ClientId, response: &Response) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.asked {
            client.asked = false;
            client.send(response);
            self.write_pending(id);
        }
    }

    /// Returns true if a client waits for an answer. A client that closed its connection does not.
    pub fn waits(&self, id: ClientId) -> bool {
        self.clients.get(&id).is_some_and(|client| client.asked)
    }

    /// Does all work that does not block, and returns the new requests.
    pub fn handle_ready(&mut self) -> Vec<(ClientId, Request)> {
        // A client that ended in an earlier call stayed until now, so the caller could answer at
        // once.
        self.clients.retain(|_, client| !client.is_done());
        self.accept();
        let ids: Vec<_> = self.clients.keys().copied().collect();
        let mut requests = Vec::new();
        for id in ids {
            let Some(client) = self.clients.get_mut(&id) else {
                continue;
            };
            client.read();
            let request = client.next_request(self.right);
            requests.extend(request.map(|request| (id, request)));
            self.write_pending(id);
        }
        requests
    }

    /// Accepts connections, a limited number at once: clients may connect faster than that.
    fn accept(&mut self) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let Some(stream) = self.next_connection() else {
                return;
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let mut client = Client::new(stream);
            if self.clients.len() >= MOST_CLIENTS && !self.drop_idle() {
                let message = format!("too many clients: {MOST_CLIENTS} are waiting for answers");
                client.send(&Response::Error(Failure::new(message, "try again later")));
                client.write();
                continue;
            }
            let id = ClientId(self.next);
            let event = EpollEvent::new(client.interest, id.0);
            if self.epoll.add(&client.stream, event).is_ok() {
                self.next += 1;
                self.clients.insert(id, client);
            }
        }
    }

    /// Returns the next pending connection. Without a free descriptor the listener would stay
    /// readable forever. In that case the spare descriptor is closed to accept and close the
    /// connection, so that the client sees the refusal. Other errors concern one connection, which
    /// has gone.
    fn next_connection(&mut self) -> Option<UnixStream> {
        loop {
            let error = match self.socket.listener().accept() {
                Ok((stream, _)) => return Some(stream),
                Err(error) => error,
            };
            match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EMFILE | Errno::ENFILE) => {}
                Some(Errno::ECONNABORTED | Errno::EINTR) => continue,
                _ => return None,
            }
            drop(self.spare.take());
            let refused = self.socket.listener().accept().map(drop);
            self.spare = spare();
            refused.ok()?;
        }
    }

    /// Drops the oldest client without a request. Returns false if there is none.
    fn drop_idle(&mut self) -> bool {
        let idle = self.clients.iter().find(|(_, client)| !client.asked);
        let id = idle.map(|(id, _)| *id);
        id.is_some_and(|id| self.clients.remove(&id).is_some())
    }

    /// Writes as much as possible and updates epoll's interest.
    fn write_pending(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.write();
        let interest = client.wanted();
        if interest == client.interest {
            return;
        }
        let mut event = EpollEvent::new(interest, id.0);
        match self.epoll.modify(&client.stream, &mut event) {
            Ok(()) => client.interest = interest,
            Err(_) => drop(self.clients.remove(&id)),
        }
    }
}

impl AsFd for Server {
    /// Readable whenever [`Server::handle_ready`] has work.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

impl Client {
    fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            lines: Lines::new(LONGEST_REQUEST),
            unsent: Vec::new(),
            asked: false,
            ended: false,
            interest: EpollFlags::EPOLLIN,
        }
    }

    fn read(&mut self) {
        if self.ended {
            return;
        }
        let mut buffer = [0; READ_AT_ONCE];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.ended = true,
            Ok(count) => {
                if self.lines.push(&buffer[..count]).is_err() {
                    self.refuse_rest();
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(_) => self.give_up(),
        }
    }

    /// Returns the next request, unless one is outstanding. Answers invalid lines here, and
    /// requests without the right for them.
    fn next_request(&mut self, right: Right) -> Option<Request> {
        while self.has_next() {
            match Request::from_line(&self.lines.pop()?) {
                Ok(request) if request.right() > right => {
                    self.send(&Response::Error(refusal()));
                }
                Ok(request) => {
                    self.asked = true;
                    return Some(request);
                }
                Err(failure) => self.send(&Response::Error(failure)),
            }
        }
        None
    }

    /// Returns true if the next line may be parsed: not while an answer is outstanding or unsent.
    fn has_next(&self) -> bool {
        !self.asked && self.unsent.is_empty() && self.lines.has_line()
    }

    /// Returns true if the client neither gets an answer nor sends a request any more.
    fn is_done(&self) -> bool {
        self.ended && self.unsent.is_empty() && !self.has_next()
    }

    /// Returns the events to wait for. A writable socket is ready at once, so `EPOLLOUT` also
    /// schedules clients with lines left or with nothing left to do. A client that has ended is
    /// readable forever, so `EPOLLIN` is cleared.
    fn wanted(&self) -> EpollFlags {
        let mut flags = EpollFlags::empty();
        flags.set(EpollFlags::EPOLLIN, !self.ended);
        let again = !self.unsent.is_empty() || self.has_next() || self.ended;
        flags.set(EpollFlags::EPOLLOUT, again);
        flags
    }

    fn refuse_rest(&mut self) {
        let message = format!("a line has more than {LONGEST_REQUEST} octets");
        let fix = "send shorter lines, and wait for each answer";
        self.send(&Response::Error(Failure::new(message, fix)));
        self.lines = Lines::new(LONGEST_REQUEST);
        self.asked = false;
        self.ended = true;
    }

    fn give_up(&mut self) {
        self.unsent.clear();
        self.lines = Lines::new(LONGEST_REQUEST);
        self.ended = true;
    }

    fn send(&mut self, response: &Response) {
        self.unsent.extend_from_slice(response.to_line().as_bytes());
        self.unsent.push(b'\n');
    }

    fn write(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if is_passing(&error) => return,
                Err(_) => return self.give_up(),
            }
        }
    }
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
