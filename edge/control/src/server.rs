//! The daemon's end.
//!
//! One descriptor ([`AsFd`]) is readable whenever there is something to do; then
//! [`Server::handle_ready`] does it all: takes connections, reads, writes what is left of earlier
//! answers, and returns the requests. A client has at most one request outstanding: the next line
//! is read only when the last one was answered, so a [`ClientId`] says which request is meant.
//! Everything is bounded: connections, octets that wait to be read, and, by the line above, answers
//! that wait to be written.

use crate::line::{LONGEST_REQUEST, Lines};
use crate::{Failure, Request, Response};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Most connections at once. A new one beyond that takes the place of the longest idle one.
pub(crate) const MOST_CLIENTS: usize = 32;
/// Most octets read from one connection before the others get their turn.
const READ_AT_ONCE: usize = 16 << 10;
/// The listener's token; clients count from 0.
const LISTENER: u64 = u64::MAX;

/// Names one client and its outstanding request. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(u64);

/// Why there is no [`Server`].
#[derive(Debug, thiserror::Error)]
pub enum CannotListen {
    /// Another daemon answers on this socket. A daemon has claimed its network namespace by then, so the other one serves
    /// another namespace.
    #[error("another stratad is running in another network namespace and answers on {}\n  fix: give each network namespace its own `socket` in [control]", .0.display())]
    Running(PathBuf),
    /// There is a file that is no socket.
    #[error("{} is in the way and is not a socket\n  fix: remove it, or name another `socket` in [control]", .0.display())]
    InTheWay(PathBuf),
    /// Everything else.
    #[error("cannot listen on {}: {source}\n  fix: run as root, or name a `socket` in [control] whose folder you may write to", path.display())]
    Failed {
        /// The socket's path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The API's socket and its clients.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    /// The socket's file is this inode on this device, as long as it is ours.
    file: (u64, u64),
    epoll: Epoll,
    clients: BTreeMap<ClientId, Client>,
    next: u64,
    /// A descriptor to give up when there are no others.
    spare: Option<File>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    lines: Lines,
    unsent: Vec<u8>,
    /// A request was handed out and is not yet answered.
    asked: bool,
    /// The other end has closed, or has lost our ear: nothing more is read.
    ended: bool,
    /// What epoll waits for.
    interest: EpollFlags,
}

impl Server {
    /// Listens on a socket of mode 0600. Makes the folder if it is not there, and replaces a
    /// socket on which nobody answers any more.
    pub fn bind(path: &Path) -> Result<Self, CannotListen> {
        let failed = |source| CannotListen::Failed {
            path: path.to_owned(),
            source,
        };
        check_path(path)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        Self::open(path).map_err(failed)
    }

    fn open(path: &Path) -> io::Result<Self> {
        // Made under another name, so that nobody can connect before the mode is right.
        let mut fresh = path.to_owned();
        fresh.as_mut_os_string().push(".new");
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&fresh)?;
        listener.set_nonblocking(true)?;
        fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
        let file = fs::symlink_metadata(&fresh)?;
        fs::rename(&fresh, path)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            file: (file.dev(), file.ino()),
            epoll,
            clients: BTreeMap::new(),
            next: 0,
            spare: spare(),
        })
    }

    /// Answers a client's request. Nothing happens if it has none outstanding or has gone.
    pub fn answer(&mut self, id: ClientId, response: &Response) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.asked {
            client.asked = false;
            client.send(response);
            self.settle(id);
        }
    }

    /// Whether a client still waits for an answer. One that closed its connection does not.
    pub fn waits(&self, id: ClientId) -> bool {
        self.clients.get(&id).is_some_and(|client| client.asked)
    }

    /// Does what can be done without blocking, and returns the requests that have come.
    pub fn handle_ready(&mut self) -> Vec<(ClientId, Request)> {
        // Those whose end was seen in an earlier call have had the chance of an answer at once.
        self.clients.retain(|_, client| !client.is_done());
        self.accept();
        let ids: Vec<_> = self.clients.keys().copied().collect();
        let mut requests = Vec::new();
        for id in ids {
            let Some(client) = self.clients.get_mut(&id) else {
                continue;
            };
            client.read();
            let request = client.next_request();
            requests.extend(request.map(|request| (id, request)));
            self.settle(id);
        }
        requests
    }

    fn accept(&mut self) {
        while let Some(stream) = self.next_connection() {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let mut client = Client::new(stream);
            if self.clients.len() >= MOST_CLIENTS && !self.drop_idle() {
                let message = format!("{MOST_CLIENTS} clients already wait for answers");
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

    /// The next connection that waits. Without a descriptor for it the listener would stay ready
    /// for ever: the spare one is given up to take the connection and close it, so that its client
    /// learns that it is refused. Other errors are a connection's own: it has gone.
    fn next_connection(&mut self) -> Option<UnixStream> {
        loop {
            let error = match self.listener.accept() {
                Ok((stream, _)) => return Some(stream),
                Err(error) => error,
            };
            match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EMFILE | Errno::ENFILE) => {}
                Some(Errno::ECONNABORTED | Errno::EINTR) => continue,
                _ => return None,
            }
            drop(self.spare.take());
            let refused = self.listener.accept().map(drop);
            self.spare = spare();
            refused.ok()?;
        }
    }

    /// Drops the oldest client that waits for nothing. `false` if there is none.
    fn drop_idle(&mut self) -> bool {
        let idle = self.clients.iter().find(|(_, client)| !client.asked);
        let id = idle.map(|(id, _)| *id);
        id.is_some_and(|id| self.clients.remove(&id).is_some())
    }

    /// Writes what can be written, and keeps epoll's interest in step.
    fn settle(&mut self, id: ClientId) {
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
    /// Readable whenever [`Server::handle_ready`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

impl Drop for Server {
    /// Removes the socket's file, unless it is a successor's.
    fn drop(&mut self) {
        let file = fs::symlink_metadata(&self.path);
        if file.is_ok_and(|file| (file.dev(), file.ino()) == self.file) {
            let _ = fs::remove_file(&self.path);
        }
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

    /// The next request, unless one is outstanding. What is no request is answered here.
    fn next_request(&mut self) -> Option<Request> {
        while self.has_next() {
            match Request::from_line(&self.lines.pop()?) {
                Ok(request) => {
                    self.asked = true;
                    return Some(request);
                }
                Err(failure) => self.send(&Response::Error(failure)),
            }
        }
        None
    }

    /// Whether a line may be taken: nobody gets further requests in while answers pile up.
    fn has_next(&self) -> bool {
        !self.asked && self.unsent.is_empty() && self.lines.has_line()
    }

    /// It will get no further answer and ask no further question.
    fn is_done(&self) -> bool {
        self.ended && self.unsent.is_empty() && !self.has_next()
    }

    /// A socket that can be written to is ready at once: that is how a client is looked at again
    /// that has lines waiting, or is done. One that has ended can be read forever: of no interest.
    fn wanted(&self) -> EpollFlags {
        let mut flags = EpollFlags::empty();
        flags.set(EpollFlags::EPOLLIN, !self.ended);
        let again = !self.unsent.is_empty() || self.has_next() || self.ended;
        flags.set(EpollFlags::EPOLLOUT, again);
        flags
    }

    fn refuse_rest(&mut self) {
        let message = format!("a line has more than {LONGEST_REQUEST} octets");
        let fix = "send shorter lines, and the next after the answer to the last";
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

/// Whether our socket may take this path: not from a daemon that is running.
fn check_path(path: &Path) -> Result<(), CannotListen> {
    let failed = |source| CannotListen::Failed {
        path: path.to_owned(),
        source,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(file) if file.file_type().is_socket() => {}
        Ok(_) => return Err(CannotListen::InTheWay(path.to_owned())),
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(CannotListen::Running(path.to_owned())),
        // Nobody answers any more.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(failed(error)),
    }
}
