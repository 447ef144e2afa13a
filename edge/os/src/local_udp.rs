//! One UDP port on one interface, for neighbours without a route to them.
//!
//! The port is also bound as an ordinary socket that receives nothing. So no other process takes
//! it, and the kernel does not report it unreachable to neighbours.

use crate::link_socket::{Ends, Field, LinkSocket, Wanted};
use crate::{Error, datagrams};
use nix::libc;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use wire::checksum::{self, Checksum};
use wire::udp::{HEADER_LEN, Header, PROTOCOL};

/// The port on the interface.
pub struct LocalUdp {
    socket: LinkSocket,
    port: u16,
    /// Reserves the port.
    _bound: Socket,
}

impl LocalUdp {
    /// Opens the port on an interface of the calling thread's network namespace, for datagrams to
    /// any address there.
    ///
    /// # Errors
    /// [`Error::PortTaken`] if a socket has the port, unless it is bound to another interface;
    /// those of [`Discovery::open`](crate::Discovery::open).
    pub fn open(interface: &str, port: u16) -> Result<Self, Error> {
        Self::listen(interface, port, false)
    }

    /// Opens the port on an interface while one address's port is also ours for routed peers, by a
    /// [`Datagrams::udp_beside`](crate::Datagrams::udp_beside).
    ///
    /// # Errors
    /// Those of [`LocalUdp::open`].
    pub fn open_beside(interface: &str, port: u16) -> Result<Self, Error> {
        Self::listen(interface, port, true)
    }

    fn listen(interface: &str, port: u16, beside: bool) -> Result<Self, Error> {
        let wanted = Wanted {
            protocol: PROTOCOL,
            field: Field::Port(port),
        };
        let socket = LinkSocket::open(interface, wanted)?;
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let bound = hold(interface, address, beside);
        let bound = bound.map_err(|error| datagrams::explain(error, Protocol::UDP, address))?;
        Ok(Self {
            socket,
            port,
            _bound: bound,
        })
    }

    /// Joins a group, whose datagrams are received too.
    pub fn join(&self, group: Ipv4Addr) -> io::Result<()> {
        self.socket.join(group)
    }

    /// Reads one datagram and passes it to `each` with its source port; a datagram with a wrong
    /// checksum is dropped. Call again until [`io::ErrorKind::WouldBlock`].
    pub fn recv(&mut self, each: impl FnOnce(Ends, u16, &[u8])) -> io::Result<()> {
        let Some(came) = self.socket.recv()? else {
            return Ok(());
        };
        let segment = came.header.payload();
        let Some(header) = Header::parse(segment) else {
            return Ok(());
        };
        let made = came.checksum == Checksum::Made && header.checksum != 0;
        let wrong = made && checksum::of_transport(&came.header) != Some(header.checksum);
        if let Some(payload) = segment.get(HEADER_LEN..header.len.into())
            && !wrong
        {
            each(came.ends, header.source_port, payload);
        }
        Ok(())
    }

    /// Sends one datagram from the port to another.
    ///
    /// # Errors
    /// EMSGSIZE for a datagram longer than the link's MTU, ENETDOWN while the interface is down,
    /// ENXIO once it is gone.
    pub fn send(&self, ends: Ends, port: u16, payload: &[u8]) -> io::Result<()> {
        // A datagram that does not fit is refused as a packet.
        let len = u16::try_from(HEADER_LEN + payload.len()).unwrap_or(u16::MAX);
        let mut header = [0; HEADER_LEN];
        for (field, value) in header.chunks_exact_mut(2).zip([self.port, port, len]) {
            field.copy_from_slice(&value.to_be_bytes());
        }
        let send = |packet: &mut [u8]| {
            let made = checksum::restore(packet);
            debug_assert!(made, "it has a place for one");
        };
        self.socket.send(ends, PROTOCOL, [&header, payload], send)
    }
}

impl AsFd for LocalUdp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn hold(interface: &str, address: SocketAddr, beside: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    let nothing = SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0);
    socket.attach_filter(&[nothing])?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.set_reuse_port(beside)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
