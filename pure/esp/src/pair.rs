//! Transport and BEET mode (RFC 4303 section 3.1.1, RFC 7402 appendix B): what is sealed is what
//! follows the IP header, and the receiver makes that header anew of the SA's one pair of addresses.
//!
//! In transport mode these are the addresses outside, in BEET mode those inside. Either way they are
//! the SA's and not the packet's: an authentic packet that somebody sends on from another address is
//! the same datagram. Fields that travelled in the header are lost with it, DSCP too, for the outer
//! header is the socket's. Of ECN there is one field on the way, that outside: it is sent as it was, and
//! comes back into the header with what routers wrote there.
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
use wire::ip;
use wire::shell::Shell;

/// IPv6's fragment header (RFC 8200 section 4.5).
const FRAGMENT: u8 = 44;

/// IPv6's hop-by-hop options and routing header, which every node on the way looks at (RFC 4303
/// section 3.1.1), and BEET's pseudo-header for IPv4 options.
const OF_THE_HEADER: [u8; 3] = [0, 43, 94];

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
        let pair = one_pair(&sa.local, &sa.remote).filter(|_| sa.agreement.is_none());
        let (local, remote) = pair.ok_or(Unusable::Mode)?;
        Ok(Some(Self { local, remote }))
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
        let (protocol, from, len) = (
            header.protocol(),
            header.header_len(),
            header.payload().len(),
        );
        packet.cut(from, len);
        Ok(protocol)
    }

    /// Puts a header on what came, and says what selectors ask about the datagram.
    pub fn dress(self, packet: &mut Packet, protocol: u8) -> Result<Flow, DropReason> {
        match protocol {
            FRAGMENT => return Err(DropReason::Fragment),
            protocol if OF_THE_HEADER.contains(&protocol) => {
                return Err(DropReason::HeaderOptions);
            }
            _ => {}
        }
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
