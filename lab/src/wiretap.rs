//! A tap of the packets that pass through a host: the witness of leak tests.
//!
//! The tap is a packet socket on every device of the host, so it belongs on a host that is only the
//! network between two others. It sees packets of one device in the order in which they passed.
//! Therefore no wait is needed to show that nothing else was sent: send a marker afterwards and
//! read until it arrives.

use crate::host::Host;
use crate::process::until;
use anyhow::Result;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use os::Prefix;
use std::fs;
use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use wire::esp::{NATT_PORT, PROTOCOL as ESP, is_esp};
use wire::ike::{ExchangeType, Header};
use wire::{ip, udp};

/// Receive buffer, in octets, for packets that arrive between two reads.
const BUFFER: usize = 8 << 20;

/// Port of IKE, and the marker of its messages on port 4500.
const IKE_PORT: u16 = 500;
const MARKER: [u8; 4] = [0; 4];

/// An open tap. It sees packets from its opening on.
pub struct Wiretap {
    socket: OwnedFd,
}

/// An IP packet that was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Outer source address.
    pub source: IpAddr,
    /// Outer destination address.
    pub destination: IpAddr,
    /// The whole packet, starting with its IP header.
    pub octets: Vec<u8>,
    /// Time since the epoch at which the kernel saw it.
    pub at: Duration,
}

/// Returns the kernel's time stamp of a packet.
pub(crate) fn stamp(messages: impl Iterator<Item = ControlMessageOwned>) -> Duration {
    let time = messages.filter_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    time.last().unwrap_or_default()
}

/// Returns the exchanges of the IKE messages among these packets.
pub fn exchanges(seen: &[Seen]) -> Vec<ExchangeType> {
    let ike = seen.iter().filter_map(Seen::ike);
    let exchange = |message| Some(Header::peek(message).ok()?.exchange);
    ike.filter_map(exchange).collect()
}

impl Wiretap {
    /// Opens a tap on a host.
    ///
    /// # Errors
    /// The process may not open packet sockets.
    pub fn open(host: &Host) -> Result<Self> {
        let socket = host.inside(|| {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            // With a datagram socket, the kernel removes the Ethernet header.
            let (family, kind) = (AddressFamily::Packet, SockType::Datagram);
            Ok(socket(family, kind, flags, SockProtocol::EthAll)?)
        })?;
        // The kernel may grant a smaller buffer; then a burst is captured in part.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER);
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        Ok(Self { socket })
    }

    /// Returns the next IP packet, if one has passed.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn next(&self) -> Result<Option<Seen>> {
        let mut buffer = vec![0; 1 << 16];
        let mut space = nix::cmsg_space!(TimeSpec);
        loop {
            let mut octets = [IoSliceMut::new(&mut buffer)];
            let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
            let (count, at) = match recvmsg::<()>(socket, &mut octets, Some(&mut space), flags) {
                Ok(message) => (message.bytes, stamp(message.cmsgs()?)),
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            };
            if let Some(seen) = Seen::parse(&buffer[..count], at) {
                return Ok(Some(seen));
            }
        }
    }

    /// Waits until a packet passes, or this time is over. A packet that was not read yet counts.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn wait(&self, most: Duration) -> Result<()> {
        let mut socket = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut socket, PollTimeout::try_from(most)?) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns all packets that have passed and were not read yet.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn rest(&self) -> Result<Vec<Seen>> {
        std::iter::from_fn(|| self.next().transpose()).collect()
    }

    /// Reads until a packet satisfies `is_last`, which is the last one returned.
    ///
    /// # Errors
    /// No such packet passed before the deadline.
    pub fn read_until(
        &self,
        deadline: Duration,
        is_last: impl Fn(&Seen) -> bool,
    ) -> Result<Vec<Seen>> {
        let mut all = Vec::new();
        until("a packet on the wire", deadline, || {
            while let Some(seen) = self.next()? {
                let last = is_last(&seen);
                all.push(seen);
                if last {
                    return Ok(Some(()));
                }
            }
            Ok(None)
        })?;
        Ok(all)
    }
}

/// Writes packets as a capture that tcpdump and Wireshark read (libpcap's format, link type 101:
/// packets begin with their IP header). All have the time zero.
///
/// # Errors
/// The file cannot be written.
pub fn write_capture(file: &Path, packets: &[Seen]) -> Result<()> {
    const LONGEST: u32 = 65_535;
    const RAW_IP: u32 = 101;
    // Magic, version 2.4, time zone, accuracy of times.
    let header = [0xa1b2_c3d4, 0x0002_0004, 0, 0, LONGEST, RAW_IP].map(u32::to_be_bytes);
    let mut octets = header.as_flattened().to_vec();
    for packet in packets {
        let length = packet.octets.len() as u32;
        let header = [0, 0, length, length].map(u32::to_be_bytes);
        octets.extend(header.as_flattened());
        octets.extend(&packet.octets);
    }
    Ok(fs::write(file, octets)?)
}

impl Seen {
    /// Returns true if the packet comes from or goes to an address of this prefix in clear. The
    /// outer addresses of an ESP packet are the hosts' own, whatever the packet holds.
    pub fn touches(&self, prefix: Prefix) -> bool {
        prefix.contains(self.source) || prefix.contains(self.destination)
    }

    /// Returns true for a fragment of an IPv4 packet: more fragments follow, or the offset is not
    /// zero.
    pub fn is_fragment(&self) -> bool {
        let field = self.octets.get(6..8).unwrap_or_default();
        self.source.is_ipv4() && matches!(field, [high, low] if high & 0x3f != 0 || *low != 0)
    }

    /// Returns the ESP packet inside UDP, from the SPI on.
    pub fn esp(&self) -> Option<&[u8]> {
        let (ports, packet) = self.udp()?;
        (ports.destination_port == NATT_PORT && is_esp(packet)).then_some(packet)
    }

    /// Returns the IKE message from or to a port of IKE, without the marker that port 4500 needs
    /// (RFC 3948 section 2.2).
    pub fn ike(&self) -> Option<&[u8]> {
        let (ports, payload) = self.udp()?;
        let ports = [ports.source_port, ports.destination_port];
        let message = if ports.contains(&NATT_PORT) {
            payload.strip_prefix(&MARKER)?
        } else if ports.contains(&IKE_PORT) {
            payload
        } else {
            return None;
        };
        Header::peek(message).ok().map(|_| message)
    }

    /// Returns true for a UDP datagram from or to a port whose payload starts with this octet, for
    /// example the type of a registration message.
    pub fn is_udp_of(&self, port: u16, first: u8) -> bool {
        self.udp().is_some_and(|(ports, content)| {
            let is_its = [ports.source_port, ports.destination_port].contains(&port);
            is_its && content.first() == Some(&first)
        })
    }

    /// Returns the UDP header and the payload.
    fn udp(&self) -> Option<(udp::Header, &[u8])> {
        let header = ip::Header::parse(&self.octets).ok()?;
        let is_udp = header.protocol() == udp::PROTOCOL && !header.is_fragment();
        let ports = is_udp.then(|| udp::Header::parse(header.payload()))??;
        Some((ports, header.payload().get(udp::HEADER_LEN..)?))
    }

    /// Returns the ESP packet without UDP, from the SPI on.
    pub fn esp_without_udp(&self) -> Option<&[u8]> {
        let header = ip::Header::parse(&self.octets).ok()?;
        (header.protocol() == ESP && !header.is_fragment()).then(|| header.payload())
    }

    /// Returns true if the packet contains this text.
    pub fn has_text(&self, text: &str) -> bool {
        let wanted = text.as_bytes();
        self.octets.windows(wanted.len()).any(|part| part == wanted)
    }

    /// Parses an IP packet; returns `None` for other protocols (ARP).
    fn parse(octets: &[u8], at: Duration) -> Option<Self> {
        let v4 = |at: usize| {
            Some(Ipv4Addr::from(
                <[u8; 4]>::try_from(octets.get(at..at + 4)?).ok()?,
            ))
        };
        let v6 = |at: usize| {
            Some(Ipv6Addr::from(
                <[u8; 16]>::try_from(octets.get(at..at + 16)?).ok()?,
            ))
        };
        let (source, destination) = match octets.first()? >> 4 {
            4 => (v4(12)?.into(), v4(16)?.into()),
            6 => (v6(8)?.into(), v6(24)?.into()),
            _ => return None,
        };
        Some(Self {
            source,
            destination,
            octets: octets.to_vec(),
            at,
        })
    }
}
