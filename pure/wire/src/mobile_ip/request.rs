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

/// A mobile node's request for a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Requested services.
    pub flags: RequestFlags,
    /// Requested lifetime; [`Lifetime::NONE`] to deregister.
    pub lifetime: Lifetime,
    /// Home address of the mobile node.
    pub home: Ipv4Addr,
    /// Address of its home agent.
    pub home_agent: Ipv4Addr,
    /// End of the tunnel. The home address stands for all care-of addresses when deregistering.
    pub care_of: Ipv4Addr,
    /// Number that distinguishes this request from earlier and later ones.
    pub identification: u64,
}

/// Services that a mobile node requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFlags(u8);

impl RequestFlags {
    /// S: keep existing bindings.
    pub const SIMULTANEOUS: Self = Self(0x80);
    /// B: forward broadcast datagrams of the home network.
    pub const BROADCAST: Self = Self(0x40);
    /// D: the tunnel ends at the mobile node itself.
    pub const CO_LOCATED: Self = Self(0x20);
    /// M: use minimal encapsulation.
    pub const MINIMAL: Self = Self(0x10);
    /// G: use GRE.
    pub const GRE: Self = Self(0x08);
    /// T: use a reverse tunnel (RFC 3024).
    pub const REVERSE_TUNNEL: Self = Self(0x02);

    /// All bits except `r` and `x`: "Sent as zero; ignored on reception." No others are reserved.
    const KNOWN: u8 = 0xfa;

    /// Returns true if all of `flags` are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns true if the request asks for another encapsulation than IP in IP.
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

    /// Returns the message without extensions.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![message::REQUEST, self.flags.0];
        out.extend(self.lifetime.0.to_be_bytes());
        for address in [self.home, self.home_agent, self.care_of] {
            out.extend(address.octets());
        }
        out.extend(self.identification.to_be_bytes());
        out
    }

    /// Returns true if the request ends a registration.
    pub const fn is_deregistration(&self) -> bool {
        self.lifetime.is_none()
    }
}
