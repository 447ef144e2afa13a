//! The token with which a mobile node lets one licensed node request keys from another (DESIGN
//! section 5, DKM). It is the data of the TOKEN notify, and of a Mobile IP extension on the first
//! part of its path.
//!
//! ```text
//!  SPI (4) | SPI (4) | Nonce (16) | Expiry (4) | Zones (1) | of each: Zone (1) | MAC (16)
//!  the node that is asked: ID Type (1) | Length (2) | Identity
//! ```
//!
//! The SPIs are those of both directions of a composite SA, the lower first, because its ends order
//! them differently. The expiry is in NTP seconds. The token does not name the node that may use
//! it: the verifier inserts the identity of its authenticated peer, and the MAC is right for that
//! identity only ([`Token::covered`]).

use super::private::{encode_node, read_node};
use crate::codec::{Malformed, Reader};
use crate::zoned::MAX_ZONES;
use model::{Identity, Spi, ZoneId};

/// Zone number that stands for the token key in a grant.
pub const TOKEN_ZONE: ZoneId = ZoneId(253);

const WHAT: &str = "a token for keys";

/// Label at the front of the MAC's input, so the MAC has no other meaning.
const LABEL: &[u8] = b"Strata token 1";

/// A mobile node's permission for another licensed node to fetch keys of a composite SA, once and
/// soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// SPIs of both directions of the composite SA, the lower first.
    pub spis: [Spi; 2],
    /// Random octets that no other token has.
    pub nonce: [u8; 16],
    /// Time of expiry, in NTP seconds.
    pub expiry: u32,
    /// Requested zones, ascending.
    pub zones: Vec<ZoneId>,
    /// MAC that authenticates the token.
    pub mac: [u8; 16],
    /// Identity of the node that holds the keys.
    pub holder: Identity,
}

impl Token {
    /// Returns the wire form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.front();
        out.extend(self.mac);
        encode_node(&self.holder, &mut out);
        out
    }

    /// Reads the wire form.
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

    /// Returns the authenticated octets: the token's fields, the holder of the keys, and the node
    /// that asks. Identities are canonical, because both ends may spell a name in different case.
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
