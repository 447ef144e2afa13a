//! Messages between two foreign agents about a mobile node that moved from one to the other. They
//! are experimental (RFC 4064), because there is no standard.
//!
//! ```text
//!  Type 255 | Sub-Type | Lifetime (2) | Home Address (4) | Identification (8) | extensions
//! ```
//!
//! The new agent notifies the old one (sub-type 1) and includes the mobile node's
//! [`Note`](super::Note). The old agent answers (2). Both authenticate with the extension for two
//! agents.

use super::{Extensions, Lifetime, message};
use crate::codec::{Malformed, Reader};
use std::net::Ipv4Addr;

const WHAT: &str = "a notice between foreign agents";

/// A notice about a note that a mobile node left for an agent, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Sender of the notice.
    pub step: Step,
    /// In an answer: time for which packets are forwarded; [`Lifetime::NONE`] if none are.
    pub lifetime: Lifetime,
    /// Home address of the mobile node.
    pub home: Ipv4Addr,
    /// Identification of the request at the new agent. An answer repeats it.
    pub identification: u64,
}

/// Sender of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The new agent notifies the previous one.
    Told,
    /// The previous agent answers.
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

    /// Returns the message without extensions.
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
