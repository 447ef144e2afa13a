//! Transport and BEET mode (RFC 4303 section 3.1.1, RFC 7402 appendix B): the octets behind the IP
//! header are sealed, and the receiver rebuilds the header from the SA's one pair of addresses.
//!
//! In transport mode these are the outer addresses, in BEET mode the inner ones. They belong to the
//! SA and not to the packet: in BEET mode, an authentic packet that is forwarded from another
//! address carries the same datagram. In transport mode, it is dropped, because its addresses do
//! not match the selectors of the SA, and the addresses of the SA move with its path. Until both
//! ends have moved, a packet is dropped by one of them. Other header fields are lost, including the
//! DSCP, because the socket writes the outer header. There is a single ECN field, the outer one: it
//! is sent as in the datagram, and copied back into the rebuilt header with the marks of routers.
//!
//! The sealed octets may be in zones. The map then describes the octets behind the header, and so
//! do offsets in zone selectors. The extents of the headers are found while the datagram still has
//! all of them, and an omitted checksum is recomputed once the header is back.
//!
//! Information that only a header can carry does not get through. "Transport mode ESP is applied
//! only to whole IP datagrams (not to IP fragments)" (RFC 4303 section 3.3.4). Options and
//! extension headers would have to be in the outer header, which the socket writes, and so would
//! those for which BEET has a pseudo-header (next header 94). Datagrams with any of these are
//! dropped.

use crate::drop::DropReason;
use crate::key::Unusable;
use crate::packet::Packet;
use crate::policy::Protected;
use crypto::Secret;
use model::{ChildSa, Flow, Mode, Path, TrafficSelector, one_pair};
use std::net::IpAddr;
use wire::esp::next_header;
use wire::ip;
use wire::shell::Shell;

/// The next header value of IPv6's fragment header (RFC 8200 section 4.5).
const FRAGMENT: u8 = 44;

/// IPv6 hop-by-hop options and routing header, which every router examines (RFC 4303 section
/// 3.1.1); the value of dummy packets (RFC 4303 section 2.6); and BEET's pseudo-header for IPv4
/// options. IPv4 also has protocols of these numbers, and the two could not be distinguished.
const OF_THE_HEADER: [u8; 4] = [0, 43, next_header::NONE, 94];

/// The addresses of both ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    local: IpAddr,
    remote: IpAddr,
}

impl From<Path> for Pair {
    fn from(path: Path) -> Self {
        Self {
            local: path.local.ip(),
            remote: path.remote.ip(),
        }
    }
}

impl Pair {
    /// Returns the pair of an SA, or `None` in tunnel mode, which needs none.
    pub fn from_sa(sa: &ChildSa<Secret>) -> Result<Option<Self>, Unusable> {
        if sa.mode == Mode::Tunnel {
            return Ok(None);
        }
        let (local, remote) = one_pair(&sa.local, &sa.remote).ok_or(Unusable::Mode)?;
        Ok(Some(Self { local, remote }))
    }

    /// Returns the traffic that an SA in transport mode carries between these outer addresses:
    /// protocols and ports stay. `None` if it cannot be between them, as they have another family.
    pub fn between(self, carried: &Protected) -> Option<Protected> {
        let at = |selectors: &[TrafficSelector], address| {
            let moved = selectors.iter().map(|selector| selector.at(address));
            moved.collect::<Vec<_>>().into()
        };
        let before = one_pair(&carried.local, &carried.remote)?.0;
        let family = before.is_ipv4();
        let fits = self.local.is_ipv4() == family && self.remote.is_ipv4() == family;
        fits.then(|| Protected {
            local: at(&carried.local, self.local),
            remote: at(&carried.remote, self.remote),
        })
    }

    /// Returns the length of the header that is not sent, in octets.
    pub const fn header_len(self) -> usize {
        match self.local {
            IpAddr::V4(_) => ip::V4_HEADER_LEN,
            IpAddr::V6(_) => ip::V6_HEADER_LEN,
        }
    }

    /// Removes the header from an outbound datagram, and returns the protocol behind it.
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

    /// Rebuilds the header of an inbound datagram, and returns the fields that selectors match.
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

/// Checks that the protocol behind a header does not depend on the header.
fn headless(protocol: u8) -> Result<(), DropReason> {
    match protocol {
        FRAGMENT => Err(DropReason::Fragment),
        _ if OF_THE_HEADER.contains(&protocol) => Err(DropReason::HeaderOptions),
        _ => Ok(()),
    }
}
