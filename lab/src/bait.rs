//! Bait: packets that must not be seen in clear, for a wiretap to catch.
//!
//! The host between the endpoints of a [`crate::pair`] is tapped. The endpoints have default
//! routes, so any packet outside the tunnel passes there. The last packet of each round is a marker
//! that leaves in clear on purpose: once the marker was seen, all earlier packets were too.

use crate::host::Host;
use crate::pair::{self, DEADLINE};
use crate::wiretap::{Seen, Wiretap};
use anyhow::{Result, ensure};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Text of every bait, and never of the marker.
pub const SECRET: &str = "this must not be seen";

/// Destination of the marker: the host between, which no tunnel protects.
pub const BETWEEN: [&str; 2] = ["10.3.0.1", "2001:db8:3::1"];

/// Port without a listener.
pub const DISCARD: u16 = 9;

/// Text of the marker, which ends each round in each family.
const MARKER: &str = "the last packet of this round";

/// Lays bait for each destination, then sends the markers. Returns all packets that passed the tap
/// so far.
///
/// # Errors
/// A marker did not pass.
pub fn round(host: &Host, tap: &Wiretap, destinations: &[&str]) -> Result<Vec<Seen>> {
    destinations
        .iter()
        .try_for_each(|destination| lay(host, destination))?;
    for address in BETWEEN {
        send(host, SocketAddr::new(address.parse()?, DISCARD), MARKER)?;
    }
    let mut seen = Vec::new();
    for address in BETWEEN {
        // One family may be slower: its first packet may wait for neighbour resolution.
        let to: IpAddr = address.parse()?;
        let is_marker = |seen: &Seen| seen.destination == to && seen.has_text(MARKER);
        if !seen.iter().any(is_marker) {
            seen.extend(tap.read_until(DEADLINE, is_marker)?);
        }
    }
    Ok(seen)
}

/// Lays bait continuously while `happens` runs.
///
/// # Errors
/// `happens` failed.
pub fn lay_while<T>(
    host: &Host,
    destinations: &[&str],
    happens: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let laying = scope.spawn(|| {
            while !over.load(Relaxed) {
                let mut each = destinations.iter();
                each.try_for_each(|destination| lay(host, destination))?;
            }
            Ok(())
        });
        let result = happens();
        over.store(true, Relaxed);
        let laid: Result<()> = laying.join().expect("it returns its errors");
        laid.and(result)
    })
}

/// Sends a datagram and the start of a TCP connection. Both may fail: a black hole looks like that
/// to the sender.
///
/// # Errors
/// The destination is not an address.
pub fn lay(host: &Host, destination: &str) -> Result<()> {
    let destination = SocketAddr::new(destination.parse()?, DISCARD);
    let _ = send(host, destination, SECRET);
    host.inside(|| {
        let _ = TcpStream::connect_timeout(&destination, Duration::from_millis(20));
        Ok(())
    })
}

fn send(host: &Host, destination: SocketAddr, text: &str) -> Result<()> {
    host.inside(|| {
        socket(destination)?.send_to(text.as_bytes(), destination)?;
        Ok(())
    })
}

/// Opens a socket that may send to this destination, even if it is a broadcast address.
///
/// # Errors
/// Those of the kernel.
pub fn socket(destination: SocketAddr) -> Result<UdpSocket> {
    let any = match destination {
        SocketAddr::V4(_) => "0.0.0.0:0",
        SocketAddr::V6(_) => "[::]:0",
    };
    let socket = UdpSocket::bind(any)?;
    socket.set_broadcast(true)?;
    Ok(socket)
}

/// Checks that bait was caught: the control of a test that finds no leak.
///
/// # Errors
/// No bait was caught.
pub fn leak(seen: &[Seen]) -> Result<()> {
    let secret = seen.iter().any(|seen| seen.has_text(SECRET));
    ensure!(secret, "the detector is blind: {seen:?}");
    Ok(())
}

/// Checks that no bait was caught, nor any packet that shows an address inside the tunnel.
///
/// # Errors
/// Such a packet was caught.
pub fn no_leak(seen: &[Seen]) -> Result<()> {
    let leaks = leaks(seen);
    ensure!(leaks.is_empty(), "seen in clear: {leaks:?}");
    Ok(())
}

/// Returns the packets that show an address inside the tunnel, or the secret text.
pub fn leaks(seen: &[Seen]) -> Vec<&Seen> {
    let inside = pair::inside();
    let touches = |seen: &Seen| inside.iter().any(|prefix| seen.touches(*prefix));
    seen.iter()
        .filter(|seen| seen.has_text(SECRET) || touches(seen))
        .collect()
}
