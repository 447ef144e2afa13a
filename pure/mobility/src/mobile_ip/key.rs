//! The keys by which two nodes authenticate each other: a "Mobility Security Association" (RFC 5944
//! section 1.6).

use super::Replay;
use crypto::{HMAC_MD5_LEN, Prf, Secret, equal, hmac_md5};
use std::net::Ipv4Addr;
use wire::mobile_ip::{Authentication, Between, Extensions, Note, append_authentication};

/// The authentication algorithm of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// The "default algorithm" (section 5.1), which every implementation supports.
    HmacMd5,
    /// HMAC-SHA-256, not truncated.
    #[default]
    HmacSha256,
}

/// A key and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// The index that names the association at both ends. "SPI values 0 through 255 are reserved"
    /// (section 1.6).
    pub spi: u32,
    /// The authentication algorithm.
    pub algorithm: Algorithm,
    /// The key.
    pub key: Secret,
    /// The replay protection that a home agent applies; other nodes ignore this field.
    pub replay: Replay,
}

impl Algorithm {
    /// Returns the length of an authenticator, in octets.
    pub const fn authenticator_len(self) -> u8 {
        match self {
            Self::HmacMd5 => HMAC_MD5_LEN as u8,
            Self::HmacSha256 => 32,
        }
    }

    fn mac(self, key: &Secret, octets: &[u8]) -> Vec<u8> {
        match self {
            Self::HmacMd5 => hmac_md5(key.expose(), &[octets]).to_vec(),
            Self::HmacSha256 => Prf::HmacSha256
                .mac(key.expose(), &[octets])
                .expose()
                .to_vec(),
        }
    }
}

impl Association {
    /// Appends an extension that authenticates a message.
    pub fn sign(&self, message: &mut Vec<u8>, between: Between) {
        let announced = (self.spi, self.algorithm.authenticator_len());
        append_authentication(message, between, announced, |covered| {
            self.algorithm.mac(&self.key, covered)
        });
    }

    /// Returns the extension that authenticates a message, if it is valid and the only one of its
    /// kind.
    pub fn verify<'a>(
        &self,
        extensions: Extensions<'a>,
        between: Between,
    ) -> Option<Authentication<'a>> {
        let found = extensions.only(between)?;
        let expected = self.algorithm.mac(&self.key, found.covered);
        (found.spi == self.spi && equal(found.authenticator, &expected)).then_some(found)
    }

    /// Appends a note to a request of a mobile node that is now at `care_of`. The note is for the
    /// agent at `previous` and names the `registration` there.
    pub(super) fn append_note(
        &self,
        message: &mut Vec<u8>,
        (previous, registration): (Ipv4Addr, u64),
        (home, care_of): (Ipv4Addr, Ipv4Addr),
    ) {
        let mut note = Note {
            previous,
            registration,
            spi: self.spi,
            authenticator: &[],
        };
        let authenticator = self.algorithm.mac(&self.key, &note.covered(home, care_of));
        note.authenticator = &authenticator;
        note.append(message);
    }

    /// Returns true if a mobile node at `care_of` wrote this note.
    pub(super) fn has_written(&self, note: &Note<'_>, home: Ipv4Addr, care_of: Ipv4Addr) -> bool {
        let expected = self.algorithm.mac(&self.key, &note.covered(home, care_of));
        note.spi == self.spi && equal(note.authenticator, &expected)
    }
}
