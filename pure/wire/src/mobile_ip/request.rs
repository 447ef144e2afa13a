//! The Registration Request (RFC 5944 section 3.3).
//!
//! ```text
//!  Type 1 | S B D M G r T x | Lifetime (2) | Home Address (4) | Home Agent (4)
//!  Care-of Address (4) | Identification (8) | extensions
//! ```

use super::{Extensions, Lifetime, message};
use crate::codec::{Malformed, Reader};
use std::net::Ipv4Addr;
use std::ops::BitOr;

const WHAT: &str = "a Registration Request";

/// What a mobile node asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// How.
    pub flags: RequestFlags,
    /// For how long; [`Lifetime::NONE`] to end it.
    pub lifetime: Lifetime,
    /// The address of the mobile node.
    pub home: Ipv4Addr,
    /// That of its home agent.
    pub home_agent: Ipv4Addr,
    /// Where the tunnel is to end; the home address if all are to be ended.
    pub care_of: Ipv4Addr,
    /// What tells this request from others, before and after.
    pub identification: u64,
}

/// How a mobile node wants to be served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFlags(u8);

impl RequestFlags {
    /// S: what is bound already stays bound.
    pub const SIMULTANEOUS: Self = Self(0x80);
    /// B: broadcast datagrams of the home network are wanted.
    pub const BROADCAST: Self = Self(0x40);
    /// D: the mobile node itself is where the tunnel ends.
    pub const CO_LOCATED: Self = Self(0x20);
    /// M: minimal encapsulation.
    pub const MINIMAL: Self = Self(0x10);
    /// G: GRE.
    pub const GRE: Self = Self(0x08);
    /// T: a tunnel back (RFC 3024).
    pub const REVERSE_TUNNEL: Self = Self(0x02);

    /// All but `r` and `x`: "Sent as zero; ignored on reception." Nothing else is reserved.
    const KNOWN: u8 = 0xfa;

    /// Whether all of these are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether another encapsulation than IP in IP is asked for.
    pub const fn asks_for_other_encapsulation(self) -> bool {
        self.has(Self::MINIMAL) || self.has(Self::GRE)
    }
}

impl BitOr for RequestFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Request {
    /// Reads a whole UDP payload.
    pub fn parse(octets: &[u8]) -> Result<(Self, Extensions<'_>), Malformed> {
        let mut reader = Reader::new(WHAT, octets);
        if reader.u8()? != message::REQUEST {
            return Err(Malformed::Value(WHAT));
        }
        let request = Self {
            flags: RequestFlags(reader.u8()? & RequestFlags::KNOWN),
            lifetime: Lifetime(reader.u16()?),
            home: reader.array::<4>()?.into(),
            home_agent: reader.array::<4>()?.into(),
            care_of: reader.array::<4>()?.into(),
            identification: reader.u64()?,
        };
        let extensions = Extensions::parse(WHAT, octets, octets.len() - reader.left())?;
        Ok((request, extensions))
    }

    /// The message without extensions.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![message::REQUEST, self.flags.0];
        out.extend(self.lifetime.0.to_be_bytes());
        for address in [self.home, self.home_agent, self.care_of] {
            out.extend(address.octets());
        }
        out.extend(self.identification.to_be_bytes());
        out
    }

    /// Whether it asks to end something, and not to begin it.
    pub const fn is_deregistration(&self) -> bool {
        self.lifetime.is_none()
    }
}
