//! Agent solicitations, which are router solicitations (RFC 1256 section 4, RFC 5944 section 2.2).

use super::icmp;
use crate::codec::Malformed;

/// ICMP type of a router solicitation.
const KIND: u8 = 10;
const WHAT: &str = "a router solicitation";

/// A request to all agents on the link for an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solicitation;

impl Solicitation {
    /// Reads a whole ICMP message.
    pub fn parse(octets: &[u8]) -> Result<Self, Malformed> {
        let (code, mut reader) = icmp::read(WHAT, KIND, octets)?;
        reader.u32()?;
        match code {
            0 => Ok(Self),
            _ => Err(Malformed::Value(WHAT)),
        }
    }

    /// Returns the ICMP message.
    pub fn encode(self) -> Vec<u8> {
        let mut message = icmp::begin(KIND, 0);
        message.extend([0; 4]);
        icmp::finish(message)
    }
}
