//! A voice call: numbered datagrams at an even pace each way, with the kernel's time of their
//! arrival.

use super::network::Network;
use super::news::{News, Teller};
use crate::host::Host;
use crate::pair::{GATEWAY, MOBILE};
use crate::wiretap::stamp;
use anyhow::Result;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use os::priority;
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two datagrams.
pub(super) const PACE: Duration = Duration::from_millis(20);

/// Octets of each datagram: an RTP header and 20 ms of G.711.
const LENGTH: usize = 172;

/// Port at both ends.
const PORT: u16 = 5004;

/// Interval at which a receiver checks for the end.
const PATIENCE: Duration = Duration::from_millis(100);

/// Time that the last datagrams get to arrive.
const LAST: Duration = Duration::from_millis(500);

/// A direction of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToHost,
    ToServer,
}

impl Direction {
    pub const ALL: [Self; 2] = [Self::ToHost, Self::ToServer];

    /// Returns the words in a message.
    pub const fn text(self) -> &'static str {
        match self {
            Self::ToHost => "to the host",
            Self::ToServer => "to the server",
        }
    }
}

/// The sockets of the host and of the server.
pub(super) struct Ends {
    host: UdpSocket,
    server: UdpSocket,
}

impl Ends {
    pub fn open(network: &Network) -> Result<Self> {
        let open = |host: &Host, address: &str| {
            let socket = host.inside(|| Ok(UdpSocket::bind((address, PORT))?))?;
            socket.set_read_timeout(Some(PATIENCE))?;
            setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            anyhow::Ok(socket)
        };
        let host = open(&network.host, MOBILE[0])?;
        let server = open(&network.gateway, GATEWAY[0])?;
        host.connect(server.local_addr()?)?;
        server.connect(host.local_addr()?)?;
        Ok(Self { host, server })
    }

    /// Sends datagrams until `over` is set.
    pub fn send(&self, direction: Direction, teller: &Teller, over: &AtomicBool) -> Result<()> {
        let socket = match direction {
            Direction::ToHost => &self.server,
            Direction::ToServer => &self.host,
        };
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
            teller.tell(News::Sent(direction, number));
            // A datagram that cannot be sent does not arrive, and is counted there.
            let _ = socket.send(&datagram);
        }
        Ok(())
    }

    /// Receives datagrams until `over` is set, and for a while after.
    pub fn receive(&self, direction: Direction, teller: &Teller, over: &AtomicBool) -> Result<()> {
        let socket = match direction {
            Direction::ToHost => &self.host,
            Direction::ToServer => &self.server,
        };
        let mut until = None;
        while until.is_none_or(|until| Instant::now() < until) {
            if let Some((number, at)) = next(socket)? {
                teller.tell_of(at, News::Came(direction, number));
            }
            if until.is_none() && over.load(Ordering::Relaxed) {
                until = Some(Instant::now() + LAST);
            }
        }
        Ok(())
    }
}

/// Returns the number of the next datagram, and the kernel's time of its arrival since the epoch.
/// `None` if none arrives for a while.
fn next(socket: &UdpSocket) -> Result<Option<(u32, Duration)>> {
    let mut datagram = [0; LENGTH];
    let mut space = nix::cmsg_space!(TimeSpec);
    let mut octets = [IoSliceMut::new(&mut datagram)];
    let flags = MsgFlags::empty();
    let at = match recvmsg::<()>(socket.as_raw_fd(), &mut octets, Some(&mut space), flags) {
        Ok(message) => stamp(message.cmsgs()?),
        // The timeout, or a report that a datagram of ours was refused.
        Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(None),
        Err(Errno::EHOSTUNREACH | Errno::ENETUNREACH) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let [a, b, c, d, ..] = datagram;
    Ok(Some((u32::from_be_bytes([a, b, c, d]), at)))
}
