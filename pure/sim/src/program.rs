//! Programs of a download: the client sends a request, the server answers with an endless stream.

use crate::Stream;
use crate::tcp::{Connection, Settings};
use model::Instant;
use std::net::SocketAddrV4;

/// Octets of a request.
const REQUEST: u64 = 100;

/// A program with one connection.
pub struct Program {
    connection: Connection,
    part: Part,
}

enum Part {
    Server { asked: bool },
    Client(Received),
}

/// The download of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    content: Stream,
    /// Octets received in order, each compared with the server's stream.
    pub octets: u64,
    /// Time of the first octet.
    pub began: Option<Instant>,
    /// Offset of the first piece that differs from the server's stream.
    pub damaged: Option<u64>,
}

impl Program {
    /// Returns a program that waits for a request and answers with an endless stream of `content`.
    pub fn server(settings: Settings, local: SocketAddrV4, content: Stream) -> Self {
        Self {
            connection: Connection::listen(settings, local, content),
            part: Part::Server { asked: false },
        }
    }

    /// Returns a program that connects, sends a request, and compares the answer with `content`.
    pub fn client(
        settings: Settings,
        ends: [SocketAddrV4; 2],
        content: Stream,
        now: Instant,
    ) -> Self {
        let mut connection = Connection::dial(settings, ends, Stream::new(0), now);
        connection.write(REQUEST);
        let received = Received {
            content,
            octets: 0,
            began: None,
            damaged: None,
        };
        Self {
            connection,
            part: Part::Client(received),
        }
    }

    /// Returns the program's end of the connection.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns the download of a client, or `None` for a server.
    pub const fn received(&self) -> Option<&Received> {
        match &self.part {
            Part::Client(received) => Some(received),
            Part::Server { .. } => None,
        }
    }

    pub(crate) const fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub(crate) fn handle_datagram(&mut self, datagram: &[u8], now: Instant) {
        self.connection.handle_datagram(datagram, now);
        let octets = self.connection.read(now);
        match &mut self.part {
            Part::Server { asked } => {
                if !*asked && self.connection.received() >= REQUEST {
                    *asked = true;
                    self.connection.write(u64::MAX);
                }
            }
            Part::Client(received) => received.take(&octets, now),
        }
    }

    pub(crate) fn poll_datagram(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.connection.poll_datagram(now)
    }
}

impl Received {
    fn take(&mut self, octets: &[u8], now: Instant) {
        if octets.is_empty() {
            return;
        }
        self.began.get_or_insert(now);
        if !self.content.is_at(self.octets, octets) {
            self.damaged.get_or_insert(self.octets);
        }
        self.octets += octets.len() as u64;
    }
}
