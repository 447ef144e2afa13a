//! Extensions that negotiate a tunnel in UDP (RFC 3519 sections 3.1 and 3.2), for networks behind a
//! NAT.
//!
//! ```text
//!  Request: Type 144 | Length 6 | Sub-Type 0 | Reserved 1 | F R Reserved 2 | Encapsulation | Reserved 3 (2)
//!  Reply:   Type 44  | Length 6 | Sub-Type 0 | Reply Code | F Reserved (2) | Keepalive Interval (2)
//! ```
//!
//! The position of a request determines its sender: a mobile node's is in front of the
//! authentication to the home agent, a foreign agent's is behind it (sections 4.4 and 4.5).

use super::{Extension, Extensions, kind};
use crate::codec::{Malformed, Reader};

/// The only sub-type of both extensions.
const SUB_TYPE: u8 = 0;
/// Octets of both extensions without type and length.
const LEN: u8 = 6;
/// Flag F of both extensions.
const FORCED: u8 = 0x80;
/// Flag R of a request.
const THROUGH_AGENT: u8 = 0x40;
const REPLY: &str = "the UDP Tunnel Reply extension";

/// A request for a tunnel in UDP (section 3.1). Its sender supports such tunnels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpTunnelRequest {
    /// F: use UDP even if no NAT is detected.
    pub forced: bool,
    /// R: a mobile node with a co-located address registers through a foreign agent, because the
    /// agent requires it.
    pub through_agent: bool,
    /// IP protocol number of the encapsulation in UDP; 0 for the choice of the request's flags
    /// (section 3.1.4).
    pub encapsulation: u8,
}

impl UdpTunnelRequest {
    /// Returns the request among extensions, if exactly one is understood. Others are "silently
    /// skipped" (section 3.1.3).
    pub fn find(extensions: Extensions<'_>) -> Option<Self> {
        only(extensions, kind::UDP_TUNNEL_REQUEST, Self::read)
    }

    fn read(body: &[u8]) -> Option<Self> {
        match *body {
            [SUB_TYPE, _, flags, encapsulation, 0, 0] => Some(Self {
                forced: flags & FORCED != 0,
                through_agent: flags & THROUGH_AGENT != 0,
                encapsulation,
            }),
            _ => None,
        }
    }

    /// Appends the extension to a message.
    pub fn append(self, message: &mut Vec<u8>) {
        let forced = if self.forced { FORCED } else { 0 };
        let through_agent = if self.through_agent { THROUGH_AGENT } else { 0 };
        message.extend([kind::UDP_TUNNEL_REQUEST, LEN, SUB_TYPE, 0]);
        message.extend([forced | through_agent, self.encapsulation, 0, 0]);
    }
}

/// The home agent's decision to use a tunnel in UDP for the current binding, or not (section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpTunnelReply {
    /// Reply code. With 0 to 63 the home agent uses a tunnel in UDP, with others it does not
    /// (section 3.2.1).
    pub code: u8,
    /// F: the request forced the tunnel.
    pub forced: bool,
    /// Interval of keepalives for the NAT mapping, in seconds; 0 if the home agent sets none.
    pub keepalive: u16,
}

impl UdpTunnelReply {
    /// "Will do tunnelling."
    pub const WILL: u8 = 0;
    /// "Tunnelling declined, reason unspecified."
    pub const DECLINED: u8 = 64;

    /// Returns true if the home agent uses a tunnel in UDP.
    pub const fn assents(self) -> bool {
        self.code < 64
    }

    /// Returns the reply among extensions, if there is exactly one.
    pub fn find(extensions: Extensions<'_>) -> Option<Self> {
        only(extensions, kind::UDP_TUNNEL_REPLY, |body| {
            Self::read(body).ok()
        })
    }

    /// Reads the extension. It is not skippable, so malformed content makes the message unreadable.
    pub(super) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(REPLY, body);
        let [sub_type, code, flags, _] = reader.array()?;
        let keepalive = reader.u16()?;
        if sub_type != SUB_TYPE || !reader.is_empty() {
            return Err(Malformed::Value(REPLY));
        }
        Ok(Self {
            code,
            forced: flags & FORCED != 0,
            keepalive,
        })
    }

    /// Appends the extension to a message.
    pub fn append(self, message: &mut Vec<u8>) {
        let forced = if self.forced { FORCED } else { 0 };
        message.extend([kind::UDP_TUNNEL_REPLY, LEN, SUB_TYPE, self.code]);
        message.extend([forced, 0]);
        message.extend(self.keepalive.to_be_bytes());
    }
}

fn only<'a, T>(
    extensions: Extensions<'a>,
    kind: u8,
    read: impl Fn(&'a [u8]) -> Option<T>,
) -> Option<T> {
    let of_kind = |one: Extension<'a>| (one.kind == kind).then(|| read(one.body)).flatten();
    let mut all = extensions.iter().filter_map(of_kind);
    let (found, None) = (all.next()?, all.next()) else {
        return None;
    };
    Some(found)
}
