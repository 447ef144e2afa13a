//! The note of a mobile node for the agent that it leaves: an extension of its request at the next one, who passes
//! it on (the idea of draft-ietf-mobileip-optim section 6.1, which never became a standard).
//!
//! ```text
//!  Type 255 | Length | Sub-Type 1 | Reserved | Previous Care-of Address (4) | Registration (8)
//!  SPI (4) | Authenticator
//! ```
//!
//! The number is one for experiments (RFC 4064), in the short format of RFC 5944 section 1.11; who does not know
//! it skips it. What is authenticated is not the message around it, for that differs on each way: see
//! [`Note::covered`].

use super::{Extensions, kind};
use crate::codec::Reader;
use std::net::Ipv4Addr;

/// Which of all experiments it is.
const SUB_TYPE: u8 = 1;
/// Octets of it but its authenticator and its type and length.
const FIXED_LEN: usize = 18;

/// "What comes for me to you, send there": from a mobile node to an agent that it was registered through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    /// The care-of address of whom it is for.
    pub previous: Ipv4Addr,
    /// The identification of the request by which the mobile node is registered there.
    pub registration: u64,
    /// Which key both have.
    pub spi: u32,
    /// What proves it.
    pub authenticator: &'a [u8],
}

impl<'a> Note<'a> {
    /// The one in a message, if there is exactly one.
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

    /// Somebody else's experiment is none.
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

    /// Appends it to a message.
    pub fn append(&self, message: &mut Vec<u8>) {
        let len = FIXED_LEN + self.authenticator.len();
        debug_assert!(len <= 255, "no authenticator is so long");
        message.extend([kind::EXPERIMENT, len as u8, SUB_TYPE, 0]);
        message.extend(self.previous.octets());
        message.extend(self.registration.to_be_bytes());
        message.extend(self.spi.to_be_bytes());
        message.extend(self.authenticator);
    }

    /// What is authenticated: what the note says, of whom, and where the mobile node is now. It begins as no
    /// message does for which there may be the same key.
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
