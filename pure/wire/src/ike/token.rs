//! The token of a mobile node, by which one licensed node asks another for keys (DESIGN section 5, DKM): data of the
//! notify TOKEN, and of an extension of Mobile IP on the first part of its way.
//!
//! ```text
//!  SPI (4) | SPI (4) | Nonce (16) | Expiry (4) | Zones (1) | of each: Zone (1) | MAC (16)
//!  the node that is asked: ID Type (1) | Length (2) | Identity
//! ```
//!
//! The SPIs are those of both directions of a composite SA, the lower first, for there both ends' names of it differ. The
//! expiry is in seconds of NTP. Who may ask is not in it: whoever verifies it takes the node that it speaks with, and the
//! MAC is right for that one alone ([`Token::covered`]).

use super::private::{encode_node, read_node};
use crate::codec::{Malformed, Reader};
use crate::zoned::MAX_ZONES;
use model::{Identity, Spi, ZoneId};

/// What stands for the zone in a grant where the key of its tokens is.
pub const TOKEN_ZONE: ZoneId = ZoneId(253);

const WHAT: &str = "a token for keys";

/// What the MAC is made of besides, so that the key is of use for nothing else.
const LABEL: &[u8] = b"Strata token 1";

/// "Let this node have the keys of this composite SA that you have, once, and soon."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Both directions of the composite SA, the lower first.
    pub spis: [Spi; 2],
    /// What is in no other token.
    pub nonce: [u8; 16],
    /// Until when it is good, in seconds of NTP.
    pub expiry: u32,
    /// The zones that are meant, ascending.
    pub zones: Vec<ZoneId>,
    /// What proves it.
    pub mac: [u8; 16],
    /// Who is asked.
    pub holder: Identity,
}

impl Token {
    /// Its octets.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.front();
        out.extend(self.mac);
        encode_node(&self.holder, &mut out);
        out
    }

    /// Reads it.
    pub fn decode(octets: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(WHAT, octets);
        let spis = [Spi(r.u32()?), Spi(r.u32()?)];
        let (nonce, expiry, count) = (r.array()?, r.u32()?, r.u8()?);
        if usize::from(count) > MAX_ZONES {
            return Err(Malformed::TooMany(WHAT));
        }
        let zones = (0..count).map(|_| r.u8().map(ZoneId));
        let zones: Vec<_> = zones.collect::<Result<_, _>>()?;
        let token = Self {
            spis,
            nonce,
            expiry,
            zones,
            mac: r.array()?,
            holder: read_node(&mut r)?,
        };
        r.finish()?;
        let is_sound = spis[0] <= spis[1] && token.zones.is_sorted_by(|a, b| a < b);
        is_sound.then_some(token).ok_or(Malformed::Value(WHAT))
    }

    /// What is authenticated: what it says, of whom keys are asked, and who may ask. Both ends may spell a
    /// name in letters of another case.
    pub fn covered(&self, asker: &Identity) -> Vec<u8> {
        let mut out = [LABEL, &self.front()].concat();
        encode_node(&self.holder.canonical(), &mut out);
        encode_node(&asker.canonical(), &mut out);
        out
    }

    fn front(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for spi in self.spis {
            out.extend(spi.0.to_be_bytes());
        }
        out.extend(self.nonce);
        out.extend(self.expiry.to_be_bytes());
        out.push(self.zones.len() as u8);
        out.extend(self.zones.iter().map(|zone| zone.0));
        out
    }
}
