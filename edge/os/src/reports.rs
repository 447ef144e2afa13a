//! Reports of routers that a packet of ESP or UDP was too long for their next hop, as they arrive.
//!
//! The system evaluates such a report by itself: it remembers the MTU for the destination, if any
//! socket has the addresses and ports of the quoted packet. So everyone who knows these can have it
//! believe anything. A raw socket shows the whole report, with the packet that it quotes, and lets
//! its reader decide. It receives every report of the host, whichever program has sent the packet.

use crate::{Error, Family};
use nix::libc;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// Longest report that is read; a longer one is truncated.
const LONGEST: usize = 2048;

const ESP: u32 = 50;
const UDP: u32 = 17;

/// Destination Unreachable with code 4 (RFC 1191 section 4), and Packet Too Big (RFC 4443 section
/// 3.2): type and code.
const FRAGMENTATION_NEEDED: u32 = 0x0304;
const PACKET_TOO_BIG: u32 = 0x0200;

/// Octets of ICMP before the quoted packet.
const FRONT: u32 = 8;

/// A socket for the reports of one family.
pub struct Reports {
    socket: Socket,
    family: Family,
}

impl Reports {
    /// Opens the socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing, or the system lacks the family.
    pub fn open(family: Family) -> Result<Self, Error> {
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT) => Error::NoFamily { family },
            _ => Error::os("listening for reports of routers")(error),
        };
        let (domain, protocol) = match family {
            Family::V4 => (Domain::IPV4, Protocol::ICMPV4),
            Family::V6 => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket = Socket::new(domain, Type::RAW, Some(protocol)).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        socket.attach_filter(&filter(family)).map_err(failed)?;
        Ok(Self { socket, family })
    }

    /// Returns the family of the reports.
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Reads one report and passes its ICMP message to `each`. The checksum of ICMPv6 is checked,
    /// that of ICMP is not. Call again until [`io::ErrorKind::WouldBlock`].
    pub fn recv(&self, each: impl FnOnce(&[u8])) -> io::Result<()> {
        let mut octets = [0; LONGEST];
        let len = (&self.socket).read(&mut octets)?;
        let packet = &octets[..len];
        let header = match self.family {
            // raw(7): the IP header is in front.
            Family::V4 => 4 * usize::from(packet.first().map_or(0, |first| first & 0x0f)),
            Family::V6 => 0,
        };
        each(packet.get(header..).unwrap_or_default());
        Ok(())
    }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns a filter that passes only reports that quote ESP or UDP, so that other ICMP wakes no
/// one.
fn filter(family: Family) -> Vec<SockFilter> {
    let step = |code: u32, k: u32| SockFilter::new(code as u16, 0, 0, k);
    // Skips a step unless the value is `k`.
    let unless = |k: u32| {
        SockFilter::new(
            (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            0,
            1,
            k,
        )
    };
    let is = |k: u32| {
        SockFilter::new(
            (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            1,
            0,
            k,
        )
    };
    let load = libc::BPF_LD | libc::BPF_IND;
    let skip_header = match family {
        Family::V4 => step(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0),
        Family::V6 => step(libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM, 0),
    };
    // The field of the quoted IP header that names the protocol.
    let (kind, protocol) = match family {
        Family::V4 => (FRAGMENTATION_NEEDED, FRONT + 9),
        Family::V6 => (PACKET_TOO_BIG, FRONT + 6),
    };
    let give = |octets: u32| step(libc::BPF_RET | libc::BPF_K, octets);
    vec![
        skip_header,
        step(load | libc::BPF_H, 0),
        is(kind),
        give(0),
        step(load | libc::BPF_B, protocol),
        is(ESP),
        unless(UDP),
        give(LONGEST as u32),
        give(0),
    ]
}
