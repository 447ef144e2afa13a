//! Connections of TCP that never block, and sockets that take them.
//!
//! What is written is sent at once, whole segments or not: whoever writes has gathered what belongs
//! together. A connection whose other end has not acknowledged anything for ten seconds is broken; the
//! kernel would try for a quarter of an hour, and by then a new one would long have worked.

use crate::{Error, Family, owner::Owner};
use model::Path;
use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Connections that the kernel keeps for us until we take them.
const BACKLOG: i32 = 64;

/// After so long without an acknowledgement a connection is broken.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the kernel holds of what we have written: 100 ms at 40 Mb/s. More would only make later packets
/// older.
const SEND_BUFFER: usize = 512 << 10;

/// A socket that takes connections.
pub struct Listener {
    socket: Socket,
    port: u16,
}

/// A connection, or one that is being made.
pub struct Stream {
    socket: Socket,
    remote: SocketAddr,
}

impl Listener {
    /// Listens in the calling thread's network namespace; address and mark are meant as in
    /// [`crate::Datagrams::udp`].
    pub fn bind(address: SocketAddr, mark: Option<u32>) -> Result<Self, Error> {
        let failed = |error| explain(error, address);
        let socket = open(address, mark).map_err(failed)?;
        socket.bind(&address.into()).map_err(failed)?;
        // Connections inherit it, which saves a call for each.
        tune(&socket).map_err(failed)?;
        socket.listen(BACKLOG).map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?.as_socket();
        let port = local.unwrap_or(address).port();
        Ok(Self { socket, port })
    }

    /// The port it listens at, never 0.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Takes the next connection; [`io::ErrorKind::WouldBlock`] if there is none.
    pub fn accept(&self) -> io::Result<Stream> {
        let (socket, remote) = self.socket.accept()?;
        socket.set_nonblocking(true)?;
        let remote = remote.as_socket().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Stream { socket, remote })
    }
}

impl Stream {
    /// Begins to connect from an address and port to another one. It is connected when it can be
    /// written to and [`Stream::outcome`] has nothing to say.
    pub fn connect(local: SocketAddr, remote: SocketAddr, mark: Option<u32>) -> io::Result<Self> {
        let socket = open(local, mark)?;
        socket.bind(&local.into())?;
        tune(&socket)?;
        let stream = Self { socket, remote };
        match stream.socket.connect(&remote.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => Err(error),
            _ => Ok(stream),
        }
    }

    /// Why it could not be connected, once it can be written to.
    pub fn outcome(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }

    /// Between which ends.
    pub fn path(&self) -> io::Result<Path> {
        let local = self.socket.local_addr()?.as_socket();
        let local = local.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Path::tcp(local, self.remote))
    }

    /// Reads what has come; zero octets if the other end has closed it.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.socket).read(into)
    }

    /// Writes as much as the kernel takes, and says how much that was.
    pub fn write(&self, octets: &[u8]) -> io::Result<usize> {
        (&self.socket).write(octets)
    }

    /// Ends a connection of which nothing is wanted any more: the other end is told so by a reset, and the kernel
    /// keeps nothing of it.
    pub fn reset(self) {
        // Without it the end is an orderly one.
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn open(address: SocketAddr, mark: Option<u32>) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if let Some(mark) = mark {
        socket.set_mark(mark)?;
    }
    Ok(socket)
}

fn tune(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.set_tcp_user_timeout(Some(PATIENCE))
}

fn explain(error: io::Error, address: SocketAddr) -> Error {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EADDRINUSE) => Error::PortTaken {
            protocol: "TCP",
            port: address.port(),
            owner: Owner::of_tcp_port(address.port()),
        },
        Some(Errno::EADDRNOTAVAIL) => Error::NoSuchAddress {
            address: address.ip(),
        },
        Some(Errno::EAFNOSUPPORT) => Error::NoFamily {
            family: Family::of(address.ip()),
        },
        _ => Error::os(format!("listening on TCP {address}"))(error),
    }
}
