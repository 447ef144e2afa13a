//! What two foreign agents say to each other of a mobile node that has gone from one to the other: a message for
//! experiments (RFC 4064), for there is no standard of it.
//!
//! ```text
//!  Type 255 | Sub-Type | Lifetime (2) | Home Address (4) | Identification (8) | extensions
//! ```
//!
//! The one where it is now tells (sub-type 1), with the [`Note`](super::Note) that it was given; the one where it
//! was answers (2). Both prove themselves by the extension for two agents.

use super::{Extensions, Lifetime, message};
use crate::codec::{Malformed, Reader};
use std::net::Ipv4Addr;

const WHAT: &str = "a notice between foreign agents";

/// Of what a mobile node has left an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Who says it.
    pub step: Step,
    /// Of an answer, for how long packets are sent on; [`Lifetime::NONE`] if none are.
    pub lifetime: Lifetime,
    /// The address of the mobile node.
    pub home: Ipv4Addr,
    /// That of the request at the new agent, which an answer repeats.
    pub identification: u64,
}

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The agent where the mobile node is now.
    Told,
    /// The agent where it was.
    Answered,
}

impl Notice {
    /// Reads a whole UDP payload.
    pub fn parse(octets: &[u8]) -> Result<(Self, Extensions<'_>), Malformed> {
        let mut reader = Reader::new(WHAT, octets);
        if reader.u8()? != message::EXPERIMENT {
            return Err(Malformed::Value(WHAT));
        }
        let notice = Self {
            step: match reader.u8()? {
                1 => Step::Told,
                2 => Step::Answered,
                _ => return Err(Malformed::Value(WHAT)),
            },
            lifetime: Lifetime(reader.u16()?),
            home: reader.array::<4>()?.into(),
            identification: reader.u64()?,
        };
        let extensions = Extensions::parse(WHAT, octets, octets.len() - reader.left())?;
        Ok((notice, extensions))
    }

    /// The message without extensions.
    pub fn encode(&self) -> Vec<u8> {
        let step = match self.step {
            Step::Told => 1,
            Step::Answered => 2,
        };
        let mut out = vec![message::EXPERIMENT, step];
        out.extend(self.lifetime.0.to_be_bytes());
        out.extend(self.home.octets());
        out.extend(self.identification.to_be_bytes());
        out
    }
}
