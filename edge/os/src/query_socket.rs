//! A UDP socket for a question to one server, outside of all tunnels.
//!
//! The kernel chooses a random port, and passes on answers of that server only.

use crate::{Error, Family};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Longest answer, in octets.
const LONGEST: usize = 4096;

/// The socket.
pub struct QuerySocket(UdpSocket);

impl QuerySocket {
    /// Opens a socket for one server, in the calling thread's network namespace. All packets carry
    /// `mark`, for routing rules that keep them out of the tunnel.
    pub fn open(server: SocketAddr, mark: u32) -> Result<Self, Error> {
        let open = || -> io::Result<UdpSocket> {
            let any: IpAddr = match Family::from_address(server.ip()) {
                Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
                Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
            };
            let domain = Domain::for_address(server);
            let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
            socket.set_mark(mark)?;
            socket.set_nonblocking(true)?;
            socket.bind(&SocketAddr::new(any, 0).into())?;
            socket.connect(&server.into())?;
            Ok(socket.into())
        };
        let opened = open().map_err(Error::os(format!("asking {server}")));
        opened.map(Self)
    }

    /// Sends a question.
    pub fn send(&self, question: &[u8]) -> io::Result<()> {
        self.0.send(question).map(drop)
    }

    /// Reads one answer and passes it to `each`. Call again until [`io::ErrorKind::WouldBlock`].
    /// Another error says that the server does not listen, or cannot be reached.
    pub fn recv(&self, each: impl FnOnce(&[u8])) -> io::Result<()> {
        let mut buffer = [0; LONGEST];
        let length = self.0.recv(&mut buffer)?;
        each(&buffer[..length]);
        Ok(())
    }
}

impl AsFd for QuerySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_server_that_was_asked_is_heard() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let Ok(asking) = QuerySocket::open(server.local_addr().unwrap(), 0x7296) else {
            println!("skipped: setting a mark needs CAP_NET_ADMIN");
            return;
        };
        asking.send(b"question").unwrap();
        let mut buffer = [0; 100];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"question");
        // The kernel answers that the port is closed, if anything.
        let _refused = other.send_to(b"forged", from);
        server.send_to(b"answer", from).unwrap();
        let mut heard = Vec::new();
        asking.recv(|answer| heard = answer.to_vec()).unwrap();
        assert_eq!(heard, b"answer");
        let nothing = asking.recv(|_| ()).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }
}
