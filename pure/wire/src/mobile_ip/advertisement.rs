//! Agent advertisements: router advertisements (RFC 1256 section 4) with the extension of a
//! mobility agent (RFC 5944 section 2.1).

use super::extension::{self, Walk, kind};
use super::{Lifetime, icmp};
use crate::codec::{Malformed, Reader};
use std::net::Ipv4Addr;
use std::ops::BitOr;
use std::time::Duration;

/// ICMP type of a router advertisement.
const KIND: u8 = 9;
/// "The mobility agent does not route common traffic" (section 2.1).
const AGENT_ONLY: u8 = 16;
const WHAT: &str = "a router advertisement";
const AGENT: &str = "the Mobility Agent Advertisement extension";
const PREFIXES: &str = "the Prefix-Lengths extension";
/// Octets of the agent's extension before its care-of addresses.
const AGENT_LEN: usize = 6;
/// Most care-of addresses that the extension's length field allows.
pub const LONGEST_CARE_OF: usize = (0xff - AGENT_LEN) / 4;

/// A router advertisement, perhaps from a mobility agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// True if it routes for all hosts, and not only for registered mobile nodes.
    pub routes_for_all: bool,
    /// Validity of the advertisement, in seconds.
    pub lifetime: u16,
    /// Listed router addresses.
    pub routers: Vec<Router>,
    /// Properties as a mobility agent, if it is one.
    pub agent: Option<Agent>,
}

/// A router in an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router {
    /// Address of the router.
    pub address: Ipv4Addr,
    /// Preference as a default router.
    pub preference: i32,
    /// Prefix length of the address, if it is included (section 2.1.2).
    pub prefix_length: Option<u8>,
}

/// The Mobility Agent Advertisement extension (section 2.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Number of advertisements since the agent started (section 2.3.2).
    pub sequence: u16,
    /// The longest registration lifetime that it accepts.
    pub registration_lifetime: Lifetime,
    /// Services of the agent.
    pub flags: AgentFlags,
    /// Care-of addresses: ends of tunnels to its visitors.
    pub care_of: Vec<Ipv4Addr>,
}

/// Services of an agent. Unknown bits are ignored, "as opposed to discarding such advertisements"
/// (section 2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentFlags(u16);

impl AgentFlags {
    /// R: every mobile node has to register with this agent.
    pub const REGISTRATION_REQUIRED: Self = Self(0x8000);
    /// B: the agent accepts no new registrations.
    pub const BUSY: Self = Self(0x4000);
    /// H: a home agent on this link.
    pub const HOME_AGENT: Self = Self(0x2000);
    /// F: a foreign agent on this link.
    pub const FOREIGN_AGENT: Self = Self(0x1000);
    /// M: supports minimal encapsulation.
    pub const MINIMAL: Self = Self(0x0800);
    /// G: supports GRE.
    pub const GRE: Self = Self(0x0400);
    /// T: supports reverse tunnels of its visitors (RFC 3024).
    pub const REVERSE_TUNNEL: Self = Self(0x0100);
    /// U: supports tunnels in UDP (RFC 3519).
    pub const UDP_TUNNEL: Self = Self(0x0080);
    /// X: supports revocation (RFC 3543).
    pub const REVOCATION: Self = Self(0x0040);
    /// I: supports regional registration (RFC 4857).
    pub const REGIONAL: Self = Self(0x0020);

    /// All named bits: neither the reserved ones nor `r`, which is "ignored on reception".
    const KNOWN: u16 = 0xfde0;

    /// Returns true if all of `flags` are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Adds `flags` if a condition holds.
    #[must_use]
    pub const fn with_if(self, condition: bool, flags: Self) -> Self {
        match condition {
            true => Self(self.0 | flags.0),
            false => self,
        }
    }
}

impl BitOr for AgentFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Advertisement {
    /// Reads a whole ICMP message.
    pub fn parse(octets: &[u8]) -> Result<Self, Malformed> {
        let (code, mut reader) = icmp::read(WHAT, KIND, octets)?;
        if !matches!(code, 0 | AGENT_ONLY) {
            return Err(Malformed::Value(WHAT));
        }
        let (count, entry_size, lifetime) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let routers = read_routers(&mut reader, count.into(), entry_size.into())?;
        let mut advertisement = Self {
            routes_for_all: code == 0,
            lifetime,
            routers,
            agent: None,
        };
        let extensions = octets.len() - reader.left();
        for extension in Walk::new(WHAT, octets, extensions) {
            let extension = extension?;
            advertisement.take(extension.kind, extension.body)?;
        }
        Ok(advertisement)
    }

    /// Returns the ICMP message.
    pub fn encode(&self) -> Vec<u8> {
        let code = if self.routes_for_all { 0 } else { AGENT_ONLY };
        let mut message = icmp::begin(KIND, code);
        let routers = &self.routers[..self.routers.len().min(0xff)];
        message.extend([routers.len() as u8, 2]);
        message.extend(self.lifetime.to_be_bytes());
        for router in routers {
            message.extend(router.address.octets());
            message.extend(router.preference.to_be_bytes());
        }
        if let Some(agent) = &self.agent {
            agent.encode(&mut message);
        }
        let prefixes: Option<Vec<u8>> = routers.iter().map(|router| router.prefix_length).collect();
        if let Some(prefixes) = prefixes.filter(|prefixes| !prefixes.is_empty()) {
            message.extend([kind::PREFIX_LENGTHS, prefixes.len() as u8]);
            message.extend(prefixes);
        }
        if !message.len().is_multiple_of(2) {
            message.push(kind::PADDING);
        }
        icmp::finish(message)
    }

    /// Returns the validity of the advertisement.
    pub const fn lifetime(&self) -> Duration {
        Duration::from_secs(self.lifetime as u64)
    }

    /// Processes an extension. Unknown extensions are skipped or refused, depending on their number
    /// (section 1.8).
    fn take(&mut self, kind: u8, body: &[u8]) -> Result<(), Malformed> {
        match kind {
            kind::AGENT if self.agent.is_some() => Err(Malformed::TooMany(AGENT)),
            kind::AGENT => {
                self.agent = Some(Agent::read(body)?);
                Ok(())
            }
            // "N, where N is the value (possibly zero) of the Num Addrs field".
            kind::PREFIX_LENGTHS if body.len() != self.routers.len() => {
                Err(Malformed::Length(PREFIXES))
            }
            kind::PREFIX_LENGTHS if body.iter().any(|&length| length > 32) => {
                Err(Malformed::Value(PREFIXES))
            }
            kind::PREFIX_LENGTHS => {
                for (router, &length) in self.routers.iter_mut().zip(body) {
                    router.prefix_length = Some(length);
                }
                Ok(())
            }
            _ => extension::skip(WHAT, kind),
        }
    }
}

impl Agent {
    fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(AGENT, body);
        let (sequence, lifetime, flags) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let mut care_of = Vec::new();
        while !reader.is_empty() {
            care_of.push(reader.array::<4>()?.into());
        }
        Ok(Self {
            sequence,
            registration_lifetime: Lifetime(lifetime),
            flags: AgentFlags(flags & AgentFlags::KNOWN),
            care_of,
        })
    }

    fn encode(&self, message: &mut Vec<u8>) {
        let care_of = &self.care_of[..self.care_of.len().min(LONGEST_CARE_OF)];
        message.extend([kind::AGENT, (AGENT_LEN + 4 * care_of.len()) as u8]);
        message.extend(self.sequence.to_be_bytes());
        message.extend(self.registration_lifetime.0.to_be_bytes());
        message.extend(self.flags.0.to_be_bytes());
        for address in care_of {
            message.extend(address.octets());
        }
    }
}

/// Reads the router entries. An entry has at least two words, and the rest is ignored (RFC 1256
/// section 4).
fn read_routers(
    reader: &mut Reader<'_>,
    count: usize,
    words: usize,
) -> Result<Vec<Router>, Malformed> {
    if count > 0 && words < 2 {
        return Err(Malformed::Length(WHAT));
    }
    let mut entries = reader.sub(WHAT, count * words * 4)?;
    let mut routers = Vec::new();
    for _ in 0..count {
        let mut entry = entries.sub(WHAT, words * 4)?;
        routers.push(Router {
            address: entry.array::<4>()?.into(),
            preference: i32::from_be_bytes(entry.array()?),
            prefix_length: None,
        });
    }
    Ok(routers)
}
