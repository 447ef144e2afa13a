//! Non-blocking TCP connections, and their listeners.
//!
//! Written data is sent at once, in whole segments or not: the caller has already gathered what
//! belongs together. A connection without an acknowledgement for ten seconds is broken. The kernel
//! would try for a quarter of an hour, and a new connection would have worked long before.

use crate::{Error, Family, datagrams::bind_early, owner::Owner};
use model::Path;
use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Connections that the kernel queues until they are accepted.
const BACKLOG: i32 = 64;

/// Time without an acknowledgement after which a connection is broken.
const PATIENCE: Duration = Duration::from_secs(10);

/// Size of the kernel's send buffer in octets: 100 ms at 40 Mb/s. A larger one would only delay
/// later packets.
const SEND_BUFFER: usize = 512 << 10;

/// A socket that accepts connections.
pub struct Listener {
    socket: Socket,
    port: u16,
}

/// A connection, established or in progress.
pub struct Stream {
    socket: Socket,
    remote: SocketAddr,
}

impl Listener {
    /// Listens in the calling thread's network namespace; `address` and `mark` are as in
    /// [`crate::Datagrams::udp`].
    pub fn bind(address: SocketAddr, mark: Option<u32>) -> Result<Self, Error> {
        let failed = |error| explain(error, address);
        let socket = open(address, mark).map_err(failed)?;
        bind_early(&socket, address).map_err(failed)?;
        // Connections inherit it, which saves a call for each.
        tune(&socket).map_err(failed)?;
        socket.listen(BACKLOG).map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?.as_socket();
        let port = local.unwrap_or(address).port();
        Ok(Self { socket, port })
    }

    /// Returns the port of the listener, never 0.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Accepts the next connection; [`io::ErrorKind::WouldBlock`] if there is none.
    pub fn accept(&self) -> io::Result<Stream> {
        let (socket, remote) = self.socket.accept()?;
        socket.set_nonblocking(true)?;
        let remote = remote.as_socket().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Stream { socket, remote })
    }
}

impl From<Listener> for TcpListener {
    fn from(listener: Listener) -> Self {
        listener.socket.into()
    }
}

impl Stream {
    /// Begins to connect from an address and port to another. The connection is established once it
    /// is writable and [`Stream::outcome`] returns no error.
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

    /// Returns the error that prevented the connection, once it is writable.
    pub fn outcome(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }

    /// Returns the path between the two ends.
    pub fn path(&self) -> io::Result<Path> {
        let local = self.socket.local_addr()?.as_socket();
        let local = local.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Path::tcp(local, self.remote))
    }

    /// Reads received data; zero octets if the other end has closed the connection.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.socket).read(into)
    }

    /// Writes as much as the kernel accepts, and returns its length.
    pub fn write(&self, octets: &[u8]) -> io::Result<usize> {
        (&self.socket).write(octets)
    }

    /// Resets the connection: the other end is notified, and the kernel keeps no state.
    pub fn reset(self) {
        // Without the option the end is an orderly one.
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
            family: Family::from_address(address.ip()),
        },
        _ => Error::os(format!("listening on TCP {address}"))(error),
    }
}
