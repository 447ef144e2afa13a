//! What a mobile node gives the foreign agent to which it comes, with its request: octets that mean nothing here.
//!
//! ```text
//!  Type 255 | Length | Sub-Type 2 | Reserved | Octets
//! ```
//!
//! The number is one for experiments (RFC 4064), in the short format of RFC 5944 section 1.11; who does not know
//! it skips it. It stands behind what is authenticated for the home agent, so it goes no further than to the agent.

use super::{Extensions, kind};
use crate::codec::Reader;

/// Which of all experiments it is.
const SUB_TYPE: u8 = 2;
/// Octets of it in front of what is enclosed, without its type and length.
const FIXED_LEN: usize = 2;

/// Octets for a foreign agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enclosure<'a>(pub &'a [u8]);

impl<'a> Enclosure<'a> {
    /// More octets have no room.
    pub const LONGEST: usize = 255 - FIXED_LEN;

    /// All that are in a message.
    pub fn all(extensions: Extensions<'a>) -> impl Iterator<Item = Self> {
        let experiments = extensions.iter().filter(|one| one.kind == kind::EXPERIMENT);
        experiments.filter_map(|one| Self::read(one.body))
    }

    /// Somebody else's experiment is none.
    fn read(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new("an enclosure", body);
        match reader.array().ok()? {
            [SUB_TYPE, _] => Some(Self(reader.rest())),
            _ => None,
        }
    }

    /// Appends it to a message. What has no room is left out.
    pub fn append(self, message: &mut Vec<u8>) {
        if self.0.len() <= Self::LONGEST {
            let len = FIXED_LEN + self.0.len();
            message.extend([kind::EXPERIMENT, len as u8, SUB_TYPE, 0]);
            message.extend(self.0);
        }
    }
}
