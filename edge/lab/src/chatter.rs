//! Datagrams all the time, whether or not they arrive: what is under way when something happens.

use crate::bait::DISCARD;
use crate::host::Host;
use crate::process::{DEADLINE, until};
use anyhow::Result;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Who sends them, until it is dropped.
pub struct Chatter {
    sent: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

impl Chatter {
    /// From an address of a host to another address, one in each period.
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
            while !stop.load(Relaxed) {
                // There may be no way just then.
                let _ = socket.send_to(&[0; 64], (to, DISCARD));
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

    /// Waits until so many more were sent, or would have been if there were a way.
    ///
    /// # Errors
    /// They were not.
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
