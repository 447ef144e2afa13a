//! A client that sends through a tunnel all the time, as an application that waits for an answer,
//! and a service at the gateway that answers it.

use crate::host::Host;
use crate::process::{DEADLINE, until};
use anyhow::Result;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Inner address and port of the service.
const ADDRESS: &str = "10.8.0.1:7007";

/// Time between two datagrams of the client.
const PAUSE: Duration = Duration::from_millis(100);

/// Octets of a datagram, which has its number.
const LENGTH: usize = 4;

/// A service that answers each datagram, until dropped.
pub struct Service {
    ended: Arc<AtomicBool>,
}

impl Service {
    /// Starts the service on a host that has its inner address. It survives the device of a tunnel.
    ///
    /// # Errors
    /// The host lacks the address.
    pub fn start(host: &Host) -> Result<Self> {
        let socket = host.inside(|| Ok(UdpSocket::bind(ADDRESS)?))?;
        socket.set_read_timeout(Some(PAUSE))?;
        let ended = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&ended);
        thread::spawn(move || {
            let mut octets = [0; LENGTH];
            while !has_ended.load(Ordering::Relaxed) {
                if let Ok((len, from)) = socket.recv_from(&mut octets) {
                    // The client sends another datagram if the answer cannot leave.
                    let _ = socket.send_to(&octets[..len], from);
                }
            }
        });
        Ok(Self { ended })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// A client of the service.
pub struct Client {
    socket: UdpSocket,
    sent: u32,
}

impl Client {
    /// Starts a client on a host, and waits for its first answer.
    ///
    /// # Errors
    /// As [`Client::answered`].
    pub fn start(host: &Host) -> Result<Self> {
        let socket = host.inside(|| Ok(UdpSocket::bind("0.0.0.0:0")?))?;
        socket.set_read_timeout(Some(PAUSE))?;
        let mut client = Self { socket, sent: 0 };
        client.answered()?;
        Ok(client)
    }

    /// Sends a datagram every tenth of a second until one of them is answered. Returns the time
    /// that took.
    ///
    /// # Errors
    /// None was answered within two minutes.
    pub fn answered(&mut self) -> Result<Duration> {
        let (begun, first) = (Instant::now(), self.sent);
        until("an answer of the gateway", DEADLINE, || {
            // Nothing leaves while the tunnel is down.
            let _ = self.socket.send_to(&self.sent.to_be_bytes(), ADDRESS);
            self.sent += 1;
            let mut octets = [0; LENGTH];
            let answer = self.socket.recv(&mut octets);
            let is_new = answer.is_ok() && u32::from_be_bytes(octets) >= first;
            Ok(is_new.then_some(()))
        })?;
        Ok(begun.elapsed())
    }
}
