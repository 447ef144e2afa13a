//! Extensions that ask for a tunnel in UDP and answer (RFC 3519 sections 3.1 and 3.2), for networks behind a NAT.
//!
//! ```text
//!  Request: Type 144 | Length 6 | Sub-Type 0 | Reserved 1 | F R Reserved 2 | Encapsulation | Reserved 3 (2)
//!  Reply:   Type 44  | Length 6 | Sub-Type 0 | Reply Code | F Reserved (2) | Keepalive Interval (2)
//! ```
//!
//! Of whom a request is says its place: a mobile node's is in front of what authenticates it to the home agent, a
//! foreign agent's behind it (sections 4.4 and 4.5).

use super::{Extension, Extensions, kind};
use crate::codec::{Malformed, Reader};

/// The only sub-type of both.
const SUB_TYPE: u8 = 0;
/// Octets of both without type and length.
const LEN: u8 = 6;
/// F, of both.
const FORCED: u8 = 0x80;
/// R, of a request.
const THROUGH_AGENT: u8 = 0x40;
const REPLY: &str = "the UDP Tunnel Reply extension";

/// "The sender is capable of handling MIP UDP tunnelling" (section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpTunnelRequest {
    /// F: whether a NAT is seen or not.
    pub forced: bool,
    /// R: a mobile node with an address of its own registers through a foreign agent, for it has to.
    pub through_agent: bool,
    /// What is to be in UDP, as IP numbers it; 0 for what the flags of the request say (section 3.1.4).
    pub encapsulation: u8,
}

impl UdpTunnelRequest {
    /// The one among extensions, if there is exactly one that is understood. One that is not is "silently skipped"
    /// (section 3.1.3).
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

    /// Appends it to a message.
    pub fn append(self, message: &mut Vec<u8>) {
        let forced = if self.forced { FORCED } else { 0 };
        let through_agent = if self.through_agent { THROUGH_AGENT } else { 0 };
        message.extend([kind::UDP_TUNNEL_REQUEST, LEN, SUB_TYPE, 0]);
        message.extend([forced | through_agent, self.encapsulation, 0, 0]);
    }
}

/// "Whether or not the HA will use MIP UDP tunnelling for the current mobility binding" (section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpTunnelReply {
    /// 0 to 63: it will; the others: it will not (section 3.2.1).
    pub code: u8,
    /// F: it was asked for by F.
    pub forced: bool,
    /// Seconds after which the mapping of a NAT is to be kept alive; 0 if it is not said.
    pub keepalive: u16,
}

impl UdpTunnelReply {
    /// "Will do tunnelling."
    pub const WILL: u8 = 0;
    /// "Tunnelling declined, reason unspecified."
    pub const DECLINED: u8 = 64;

    /// Whether packets are in UDP from now on.
    pub const fn assents(self) -> bool {
        self.code < 64
    }

    /// The one among extensions, if there is exactly one.
    pub fn find(extensions: Extensions<'_>) -> Option<Self> {
        only(extensions, kind::UDP_TUNNEL_REPLY, |body| {
            Self::read(body).ok()
        })
    }

    /// It may not be skipped: a message is not understood by who does not understand it.
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

    /// Appends it to a message.
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
