//! The Registration Reply (RFC 5944 section 3.4).
//!
//! ```text
//!  Type 3 | Code | Lifetime (2) | Home Address (4) | Home Agent (4) | Identification (8) | extensions
//! ```

use super::{Code, Extensions, Lifetime, Request, message};
use crate::codec::{Malformed, Reader};
use std::net::Ipv4Addr;

const WHAT: &str = "a Registration Reply";

/// An agent's answer to a registration request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Result of the request.
    pub code: Code,
    /// Granted lifetime.
    pub lifetime: Lifetime,
    /// Home address of the mobile node.
    pub home: Ipv4Addr,
    /// Address of its home agent.
    pub home_agent: Ipv4Addr,
    /// Identification of the request. An agent may have changed its upper half (section 5.7).
    pub identification: u64,
}

impl Reply {
    /// Returns a reply with the fields of a request.
    pub const fn to(request: &Request, code: Code) -> Self {
        Self {
            code,
            lifetime: request.lifetime,
            home: request.home,
            home_agent: request.home_agent,
            identification: request.identification,
        }
    }

    /// Reads a whole UDP payload.
    pub fn parse(octets: &[u8]) -> Result<(Self, Extensions<'_>), Malformed> {
        let mut reader = Reader::new(WHAT, octets);
        if reader.u8()? != message::REPLY {
            return Err(Malformed::Value(WHAT));
        }
        let reply = Self {
            code: Code::from_number(reader.u8()?),
            lifetime: Lifetime(reader.u16()?),
            home: reader.array::<4>()?.into(),
            home_agent: reader.array::<4>()?.into(),
            identification: reader.u64()?,
        };
        let extensions = Extensions::parse(WHAT, octets, octets.len() - reader.left())?;
        Ok((reply, extensions))
    }

    /// Returns the message without extensions.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![message::REPLY, self.code.number()];
        out.extend(self.lifetime.0.to_be_bytes());
        for address in [self.home, self.home_agent] {
            out.extend(address.octets());
        }
        out.extend(self.identification.to_be_bytes());
        out
    }
}
