//! Numbered datagrams to and fro, of which each is waited for: what says that not one was lost.

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

/// What flies each way at the least, however soon `meanwhile` is over.
const LEAST: u32 = 20 * VOLLEY;

/// Octets of each: a number and a rest.
const LENGTH: usize = 1000;

/// A datagram that takes longer is lost.
const SILENCE: Duration = Duration::from_secs(20);

/// Keeps datagrams flying between an address of one host and an address of another while
/// `meanwhile` runs, and until enough have flown; gives what that gives.
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
    /// The number of the next datagram each way.
    next: u32,
}

impl Volleys {
    /// How many datagrams fly at once, of both directions.
    pub const DATAGRAMS: u32 = 2 * VOLLEY;

    /// Between an address of one host and an address of another.
    ///
    /// # Errors
    /// They do not have them.
    pub fn new(near: (&Host, &str), far: (&Host, &str)) -> Result<Self> {
        let (near, far) = (socket(near)?, socket(far)?);
        near.connect(far.local_addr()?)?;
        far.connect(near.local_addr()?)?;
        Ok(Self { near, far, next: 0 })
    }

    /// Sends so many each way, and waits for all of them.
    ///
    /// # Errors
    /// One was lost or came twice.
    pub fn fly(&mut self) -> Result<()> {
        let Self { near, far, next } = self;
        send(near, *next)?;
        send(far, *next)?;
        receive(far, *next)?;
        receive(near, *next)?;
        *next = next.wrapping_add(VOLLEY);
        Ok(())
    }

    /// A volley follows the end: what happened has had the time to do harm.
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

/// In any order: a wire is two processors' queues in the kernel, and a sender that is moved from one to the other
/// may overtake itself.
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
