//! A continuous flow of numbered datagrams, delivered or not, so that some are under way when an
//! event happens.

use crate::bait::DISCARD;
use crate::host::Host;
use crate::process::{DEADLINE, until};
use anyhow::Result;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Octets of a datagram. It begins with its number.
const LENGTH: usize = 64;

/// A sender of datagrams; it stops when dropped.
pub struct Chatter {
    sent: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

impl Chatter {
    /// Sends a datagram from an address of a host to another address in each period.
    ///
    /// # Errors
    /// The host has no such address.
    pub fn start((host, from): (&Host, &str), to: &str, period: Duration) -> Result<Self> {
        let (from, to): (IpAddr, IpAddr) = (from.parse()?, to.parse()?);
        let socket = host.inside(|| Ok(UdpSocket::bind((from, 0))?))?;
        let (sent, over) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (count, stop) = (sent.clone(), over.clone());
        let sender = thread::spawn(move || {
            let mut datagram = [0; LENGTH];
            while !stop.load(Relaxed) {
                datagram[..8].copy_from_slice(&count.load(Relaxed).to_be_bytes());
                // There may be no route at that moment.
                let _ = socket.send_to(&datagram, (to, DISCARD));
                count.fetch_add(1, Relaxed);
                thread::sleep(period);
            }
        });
        Ok(Self {
            sent,
            over,
            sender: Some(sender),
        })
    }

    /// Waits for this many more attempts to send, whether or not there was a route.
    ///
    /// # Errors
    /// They were not made in time.
    pub fn wait_for(&self, more: u64) -> Result<()> {
        let goal = self.sent.load(Relaxed) + more;
        until("datagrams to be sent", DEADLINE, || {
            Ok((self.sent.load(Relaxed) >= goal).then_some(()))
        })
    }
}

impl Drop for Chatter {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(sender) = self.sender.take() {
            sender.join().expect("a sender does not panic");
        }
    }
}
