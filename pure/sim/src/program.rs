//! The programs of a download: one asks, the other answers with an endless stream.

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

/// What a client got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    content: Stream,
    /// Octets that came in order, each compared with what the server sent.
    pub octets: u64,
    /// When the first came.
    pub began: Option<Instant>,
    /// The first octet of a piece that was not what the server sent.
    pub damaged: Option<u64>,
}

impl Program {
    /// Waits for a request and answers with `content` without end.
    pub fn server(settings: Settings, local: SocketAddrV4, content: Stream) -> Self {
        Self {
            connection: Connection::listen(settings, local, content),
            part: Part::Server { asked: false },
        }
    }

    /// Connects, asks, and compares what comes with `content`.
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

    /// Its end of the connection.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What a client got; `None` for a server.
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
