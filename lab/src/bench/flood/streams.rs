//! TCP connections to the port of IKE and ESP that never send data.

use super::scene::WAY;
use super::throttle::{Flood, Sent};
use anyhow::Result;
use crypto::Rng;
use os::entropy;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

/// Number of connections kept open; the oldest is closed for the next one.
const HELD: usize = 1024;

/// Packets of each connection until it is closed: SYN, ACK, FIN and its ACK.
const PACKETS: u32 = 4;

/// Octets of IP and TCP headers.
const HEADERS: usize = 52;

/// The open connections.
pub(super) struct Streams {
    held: VecDeque<Socket>,
    rng: Rng,
}

impl Streams {
    pub fn new() -> Self {
        Self {
            held: VecDeque::new(),
            rng: Rng::from_seed(entropy::seed()),
        }
    }
}

impl Flood for Streams {
    fn send(&mut self) -> Result<Sent> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.bind(&SocketAddr::from((WAY.source(&mut self.rng), 0)).into())?;
        // The handshake continues in the kernel.
        let _ = socket.connect(&SocketAddr::from((WAY.to, ike::NATT_PORT)).into());
        self.held.push_back(socket);
        if self.held.len() > HELD {
            self.held.pop_front();
        }
        Ok(Sent {
            packets: PACKETS,
            octets: PACKETS as usize * HEADERS,
        })
    }

    /// Returns the number of connections that the gateway closed; they never carry data.
    fn read(&mut self) -> io::Result<u64> {
        let before = self.held.len();
        self.held.retain(|socket| {
            let mut octet = [std::mem::MaybeUninit::uninit()];
            match socket.recv(&mut octet) {
                Ok(_) => false,
                Err(error) => matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected
                ),
            }
        });
        Ok((before - self.held.len()) as u64)
    }
}
