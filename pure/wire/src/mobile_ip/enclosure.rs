//! Opaque octets that a mobile node includes in its request for a new foreign agent.
//!
//! ```text
//!  Type 255 | Length | Sub-Type 2 | Reserved | Octets
//! ```
//!
//! The extension number is experimental (RFC 4064), in the short format of RFC 5944 section 1.11,
//! so other agents skip it. The extension is behind the authentication for the home agent, so it
//! goes only as far as the foreign agent.

use super::{Extensions, kind};
use crate::codec::Reader;

/// Sub-type of this experiment.
const SUB_TYPE: u8 = 2;
/// Octets before the enclosed ones, without type and length.
const FIXED_LEN: usize = 2;

/// Octets for a foreign agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enclosure<'a>(pub &'a [u8]);

impl<'a> Enclosure<'a> {
    /// Most octets that fit.
    pub const LONGEST: usize = 255 - FIXED_LEN;

    /// Returns all enclosures in a message.
    pub fn all(extensions: Extensions<'a>) -> impl Iterator<Item = Self> {
        let experiments = extensions.iter().filter(|one| one.kind == kind::EXPERIMENT);
        experiments.filter_map(|one| Self::read(one.body))
    }

    /// Reads an extension. Experiments of others are ignored.
    fn read(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new("an enclosure", body);
        match reader.array().ok()? {
            [SUB_TYPE, _] => Some(Self(reader.rest())),
            _ => None,
        }
    }

    /// Appends the extension to a message, unless the octets do not fit.
    pub fn append(self, message: &mut Vec<u8>) {
        if self.0.len() <= Self::LONGEST {
            let len = FIXED_LEN + self.0.len();
            message.extend([kind::EXPERIMENT, len as u8, SUB_TYPE, 0]);
            message.extend(self.0);
        }
    }
}
