//! Numbered datagrams in both directions, each of which must arrive: proof that no packet was lost.

use crate::host::Host;
use anyhow::{Result, bail, ensure};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Datagrams under way at once, in each direction.
const VOLLEY: u32 = 32;

/// Minimum number of datagrams each way, even if `meanwhile` ends earlier.
const LEAST: u32 = 20 * VOLLEY;

/// Octets of each datagram: a number and padding.
const LENGTH: usize = 1000;

/// Time after which a datagram counts as lost.
const SILENCE: Duration = Duration::from_secs(20);

/// Keeps datagrams under way between an address of one host and an address of another while
/// `meanwhile` runs, and until the minimum is reached. Returns the result of `meanwhile`.
///
/// # Errors
/// A datagram was lost or came twice, or `meanwhile` failed.
pub fn volleys<T>(
    near: (&Host, &str),
    far: (&Host, &str),
    meanwhile: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mut volleys = Volleys::new(near, far)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let flying = scope.spawn(|| volleys.fly_until(&over));
        let result = meanwhile();
        over.store(true, Ordering::Relaxed);
        flying.join().expect("a volley returns its errors")?;
        result
    })
}

/// The sockets at both ends.
pub struct Volleys {
    near: UdpSocket,
    far: UdpSocket,
    /// Number of the next datagram each way.
    next: u32,
}

impl Volleys {
    /// Number of datagrams under way at once, in both directions together.
    pub const DATAGRAMS: u32 = 2 * VOLLEY;

    /// Opens sockets on an address of one host and an address of another.
    ///
    /// # Errors
    /// A host lacks its address.
    pub fn new(near: (&Host, &str), far: (&Host, &str)) -> Result<Self> {
        let (near, far) = (socket(near)?, socket(far)?);
        near.connect(far.local_addr()?)?;
        far.connect(near.local_addr()?)?;
        Ok(Self { near, far, next: 0 })
    }

    /// Sends one volley each way, and waits for all of its datagrams.
    ///
    /// # Errors
    /// A datagram was lost or came twice.
    pub fn fly(&mut self) -> Result<()> {
        let Self { near, far, next } = self;
        send(near, *next)?;
        send(far, *next)?;
        receive(far, *next)?;
        receive(near, *next)?;
        *next = next.wrapping_add(VOLLEY);
        Ok(())
    }

    /// Sends volleys until `over` is set, and one more after that: it shows damage that comes late.
    fn fly_until(&mut self, over: &AtomicBool) -> Result<()> {
        loop {
            let last = over.load(Ordering::Relaxed) && self.next >= LEAST;
            self.fly()?;
            if last {
                return Ok(());
            }
        }
    }
}

fn socket((host, address): (&Host, &str)) -> Result<UdpSocket> {
    let address: IpAddr = address.parse()?;
    let socket = host.inside(|| Ok(UdpSocket::bind((address, 0))?))?;
    socket.set_read_timeout(Some(SILENCE))?;
    Ok(socket)
}

fn send(socket: &UdpSocket, first: u32) -> Result<()> {
    let mut datagram = [0; LENGTH];
    for number in first..first + VOLLEY {
        datagram[..4].copy_from_slice(&number.to_be_bytes());
        socket.send(&datagram)?;
    }
    Ok(())
}

/// Receives a volley in any order. In the kernel, a wire is one queue for each of two processors,
/// and a sender that moves from one processor to the other may overtake its own packets.
fn receive(socket: &UdpSocket, first: u32) -> Result<()> {
    let mut datagram = [0; LENGTH];
    let mut missing: BTreeSet<_> = (first..first + VOLLEY).collect();
    while !missing.is_empty() {
        let received = socket.recv(&mut datagram);
        if matches!(&received, Err(error) if error.kind() == ErrorKind::WouldBlock) {
            bail!("datagrams {missing:?} were lost");
        }
        received?;
        let [a, b, c, d, ..] = datagram;
        let came = u32::from_be_bytes([a, b, c, d]);
        ensure!(missing.remove(&came), "datagram {came} came twice");
    }
    Ok(())
}
