//! Traffic of a program that goes on when the address of its host changes: a datagram in each
//! period each way.
//!
//! It stands for the transport protocols of the papers. The kernel of the mobile node chooses the
//! source address of each datagram by its routes, unless the program has an inner address. The
//! server answers to the address of the last datagram that it got. Arrivals at the mobile node are
//! seen by packet sockets only.

use crate::bait::DISCARD;
use crate::host::Host;
use anyhow::Result;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval between two datagrams each way.
const PERIOD: Duration = Duration::from_millis(1);

/// Octets of a datagram. It begins with its number.
const LENGTH: usize = 64;

/// Running programs at both ends; they stop when dropped.
pub(super) struct Talk {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Talk {
    /// Starts the program of the mobile node, with an address of its own or with any, and the
    /// server at this address of the other host. Both use the discard port.
    pub fn start(
        mobile: &Host,
        own: Option<IpAddr>,
        gateway: &Host,
        server: IpAddr,
    ) -> Result<Self> {
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let near = bind(mobile, own.unwrap_or(any))?;
        let far = bind(gateway, server)?;
        let over = Arc::<AtomicBool>::default();
        let (stop_near, stop_far) = (Arc::clone(&over), Arc::clone(&over));
        let server = SocketAddr::new(server, DISCARD);
        Ok(Self {
            over,
            threads: vec![
                thread::spawn(move || send(&near, &stop_near, || Some(server))),
                thread::spawn(move || {
                    let mut peer = None;
                    send(&far, &stop_far, || {
                        peer = last_sender(&far).or(peer);
                        peer
                    });
                }),
            ],
        })
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // The thread's panic has already been printed.
            let _ = thread.join();
        }
    }
}

fn bind(host: &Host, address: IpAddr) -> Result<UdpSocket> {
    let socket = host.inside(|| Ok(UdpSocket::bind((address, DISCARD))?))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Sends a numbered datagram in each period, as soon as there is an address to send to.
fn send(socket: &UdpSocket, over: &AtomicBool, mut to: impl FnMut() -> Option<SocketAddr>) {
    let mut datagram = [0; LENGTH];
    let mut number = 0u64;
    while !over.load(Relaxed) {
        if let Some(to) = to() {
            datagram[..8].copy_from_slice(&number.to_be_bytes());
            // There may be no route at that moment.
            let _ = socket.send_to(&datagram, to);
            number += 1;
        }
        thread::sleep(PERIOD);
    }
}

/// Reads what has arrived, and returns the sender of the last datagram.
fn last_sender(socket: &UdpSocket) -> Option<SocketAddr> {
    let mut datagram = [0; LENGTH];
    let mut last = None;
    while let Ok((_, from)) = socket.recv_from(&mut datagram) {
        last = Some(from);
    }
    last
}
