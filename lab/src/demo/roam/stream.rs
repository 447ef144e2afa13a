//! A voice call: numbered datagrams at an even pace, from the gateway to the mobile node.

use super::LAST;
use super::network::Network;
use super::news::{News, Teller};
use crate::pair::{GATEWAY, MOBILE};
use anyhow::Result;
use os::priority;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two datagrams.
pub(super) const PACE: Duration = Duration::from_millis(20);

/// Octets of each datagram: an RTP header and 20 ms of G.711.
const LENGTH: usize = 172;

/// Port of the receiver.
const PORT: u16 = 5004;

/// Interval at which the receiver checks for the end.
const PATIENCE: Duration = Duration::from_millis(100);

/// Sends datagrams until `over` is set.
pub(super) fn send(network: &Network, teller: &Teller, over: &AtomicBool) -> Result<()> {
    let home = &network.walk.home;
    let socket = home.inside(|| Ok(UdpSocket::bind((GATEWAY[0], 0))?))?;
    // Without real-time priority, the pace is less even.
    let _ = priority::make_real_time();
    let beginning = Instant::now();
    let mut datagram = [0; LENGTH];
    for number in 0_u32.. {
        thread::sleep((beginning + PACE * number).saturating_duration_since(Instant::now()));
        if over.load(Ordering::Relaxed) {
            break;
        }
        datagram[..4].copy_from_slice(&number.to_be_bytes());
        teller.tell(News::Sent(number));
        // A datagram that cannot be sent does not arrive, and is counted there.
        let _ = socket.send_to(&datagram, (MOBILE[0], PORT));
    }
    Ok(())
}

/// Receives datagrams until `over` is set, and for a while after.
pub(super) fn receive(network: &Network, teller: &Teller, over: &AtomicBool) -> Result<()> {
    let mobile = &network.walk.mobile;
    let socket = mobile.inside(|| Ok(UdpSocket::bind((MOBILE[0], PORT))?))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut datagram = [0; LENGTH];
    let mut until = None;
    while until.is_none_or(|until| Instant::now() < until) {
        match socket.recv(&mut datagram) {
            Ok(_) => {
                let [a, b, c, d, ..] = datagram;
                teller.tell(News::Came(u32::from_be_bytes([a, b, c, d])));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if until.is_none() && over.load(Ordering::Relaxed) {
            until = Some(Instant::now() + LAST);
        }
    }
    Ok(())
}
