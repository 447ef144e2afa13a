//! Transport and BEET mode (RFC 4303 section 3.1.1, RFC 7402 appendix B): what is sealed is what
//! follows the IP header, and the receiver makes that header anew of the SA's one pair of addresses.
//!
//! In transport mode these are the addresses outside, in BEET mode those inside. Either way they are
//! the SA's and not the packet's: an authentic packet that somebody sends on from another address is
//! the same datagram. Fields that travelled in the header are lost with it, DSCP too, for the outer
//! header is the socket's. Of ECN there is one field on the way, that outside: it is sent as it was, and
//! comes back into the header with what routers wrote there.
//!
//! What is sealed may be in zones: then the map is of what follows the header, and so are places that
//! somebody counted. Where the headers of a datagram end is found while it still has all of them, and a
//! checksum that was left out is made anew when it has them again.
//!
//! What only a header can say does not get through. "Transport mode ESP is applied only to whole IP
//! datagrams (not to IP fragments)" (RFC 4303 section 3.3.4), and the options and extension headers
//! of a datagram would have to be in the outer header, which is the socket's; so would those that BEET
//! has a pseudo-header for (next header 94). Datagrams with any of that are dropped.

use crate::drop::DropReason;
use crate::key::Unusable;
use crate::packet::Packet;
use crypto::Secret;
use model::{ChildSa, Flow, Mode, one_pair};
use std::net::IpAddr;
use wire::esp::next_header;
use wire::ip;
use wire::shell::Shell;

/// IPv6's fragment header (RFC 8200 section 4.5).
const FRAGMENT: u8 = 44;

/// IPv6's hop-by-hop options and routing header, which every node on the way looks at (RFC 4303
/// section 3.1.1), BEET's pseudo-header for IPv4 options, and the number that says that a packet carries
/// nothing (RFC 4303 section 2.6). IPv4 has protocols of these numbers too, and nobody could tell which is
/// meant.
const OF_THE_HEADER: [u8; 4] = [0, 43, next_header::NONE, 94];

/// The addresses of both ends.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    local: IpAddr,
    remote: IpAddr,
}

impl Pair {
    /// That of an SA; `None` for a tunnel, which needs none.
    pub fn of(sa: &ChildSa<Secret>) -> Result<Option<Self>, Unusable> {
        if sa.mode == Mode::Tunnel {
            return Ok(None);
        }
        let (local, remote) = one_pair(&sa.local, &sa.remote).ok_or(Unusable::Mode)?;
        Ok(Some(Self { local, remote }))
    }

    /// Octets of the header that stays behind.
    pub const fn header_len(self) -> usize {
        match self.local {
            IpAddr::V4(_) => ip::V4_HEADER_LEN,
            IpAddr::V6(_) => ip::V6_HEADER_LEN,
        }
    }

    /// Takes the header off a datagram of ours, and says what follows it.
    pub fn strip(packet: &mut Packet) -> Result<u8, DropReason> {
        let header = ip::Header::parse(packet.octets());
        let header = header.map_err(|_| DropReason::DatagramMalformed)?;
        if header.is_fragment() {
            return Err(DropReason::Fragment);
        }
        if header.has_options() {
            return Err(DropReason::HeaderOptions);
        }
        let protocol = header.protocol();
        headless(protocol)?;
        let (from, len) = (header.header_len(), header.payload().len());
        packet.cut(from, len);
        Ok(protocol)
    }

    /// Puts a header on what came, and says what selectors ask about the datagram.
    pub fn dress(self, packet: &mut Packet, protocol: u8) -> Result<Flow, DropReason> {
        headless(protocol)?;
        let shell = Shell::new(self.remote, self.local, protocol, packet.len());
        let shell = shell.ok_or(DropReason::TooBig)?;
        let header = shell.octets();
        packet.grow(header.len(), 0)?;
        packet.octets_mut()[..header.len()].copy_from_slice(header);
        packet.ecn.write(packet.octets_mut());
        let header = ip::Header::parse(packet.octets());
        let header = header.map_err(|_| DropReason::InnerMalformed)?;
        match header.is_fragment() {
            true => Err(DropReason::Fragment),
            false => Ok(header.flow()),
        }
    }
}

/// Whether what follows a header can do without it, as far as its protocol says so.
fn headless(protocol: u8) -> Result<(), DropReason> {
    match protocol {
        FRAGMENT => Err(DropReason::Fragment),
        _ if OF_THE_HEADER.contains(&protocol) => Err(DropReason::HeaderOptions),
        _ => Ok(()),
    }
}
