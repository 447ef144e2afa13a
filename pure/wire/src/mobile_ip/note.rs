//! A mobile node's note to the agent that it leaves: an extension of its request at the next agent,
//! which forwards the note (an idea of draft-ietf-mobileip-optim section 6.1, which never became a
//! standard).
//!
//! ```text
//!  Type 255 | Length | Sub-Type 1 | Reserved | Previous Care-of Address (4) | Registration (8)
//!  SPI (4) | Authenticator
//! ```
//!
//! The extension number is experimental (RFC 4064), in the short format of RFC 5944 section 1.11,
//! so other agents skip it. The authenticator does not cover the surrounding message, which differs
//! on each hop: see [`Note::covered`].

use super::{Extensions, kind};
use crate::codec::Reader;
use std::net::Ipv4Addr;

/// Sub-type of this experiment.
const SUB_TYPE: u8 = 1;
/// Octets without authenticator, type and length.
const FIXED_LEN: usize = 18;

/// A mobile node's request to a previous agent: "forward my packets to my new care-of address".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    /// Care-of address of the agent that the note is for.
    pub previous: Ipv4Addr,
    /// Identification of the request with which the mobile node registered through that agent.
    pub registration: u64,
    /// SPI: selects the key that both share.
    pub spi: u32,
    /// Authenticator of the note.
    pub authenticator: &'a [u8],
}

impl<'a> Note<'a> {
    /// Returns the note in a message, if there is exactly one.
    pub fn find(extensions: Extensions<'a>) -> Option<Self> {
        let mut all = extensions.iter().filter_map(|one| match one.kind {
            kind::EXPERIMENT => Self::read(one.body),
            _ => None,
        });
        let (note, None) = (all.next()?, all.next()) else {
            return None;
        };
        Some(note)
    }

    /// Reads an extension. Experiments of others are ignored.
    fn read(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new("a note", body);
        let [SUB_TYPE, _] = reader.array().ok()? else {
            return None;
        };
        Some(Self {
            previous: reader.array::<4>().ok()?.into(),
            registration: reader.u64().ok()?,
            spi: reader.u32().ok()?,
            authenticator: reader.take(reader.left()).ok()?,
        })
    }

    /// Appends the extension to a message.
    pub fn append(&self, message: &mut Vec<u8>) {
        let len = FIXED_LEN + self.authenticator.len();
        debug_assert!(len <= 255, "no authenticator is so long");
        message.extend([kind::EXPERIMENT, len as u8, SUB_TYPE, 0]);
        message.extend(self.previous.octets());
        message.extend(self.registration.to_be_bytes());
        message.extend(self.spi.to_be_bytes());
        message.extend(self.authenticator);
    }

    /// Returns the authenticated octets: the fields of the note, the mobile node's home address and
    /// its new care-of address. They start like no message that the same key may authenticate.
    pub fn covered(&self, home: Ipv4Addr, care_of: Ipv4Addr) -> [u8; 26] {
        let mut octets = [0; 26];
        octets[..2].copy_from_slice(&[kind::EXPERIMENT, SUB_TYPE]);
        octets[2..6].copy_from_slice(&home.octets());
        octets[6..10].copy_from_slice(&self.previous.octets());
        octets[10..14].copy_from_slice(&care_of.octets());
        octets[14..22].copy_from_slice(&self.registration.to_be_bytes());
        octets[22..].copy_from_slice(&self.spi.to_be_bytes());
        octets
    }
}
