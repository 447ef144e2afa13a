//! Cipher suites of zones (DESIGN section 3).

use crate::{Frame, Sha2, Suite};
use std::fmt;

/// Octets of salt at the front of every nonce.
const SALT_LEN: usize = 4;
/// Octets of an AES block, and of an IV on the wire.
const BLOCK_LEN: usize = 16;

/// The cipher suite of a zone. Each zone has its own. Nonces contain the sequence number, so only
/// AES-CBC, whose IV has to be unpredictable, carries an IV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ZoneSuite {
    /// AES-128-GCM (RFC 4106).
    Aes128Gcm16,
    /// AES-256-GCM.
    Aes256Gcm16,
    /// ChaCha20-Poly1305 (RFC 7634).
    ChaCha20Poly1305,
    /// AES-128-GMAC (RFC 4543): readable in clear, but authenticated.
    Aes128Gmac,
    /// AES-256-GMAC.
    Aes256Gmac,
    /// AES-128-CTR (RFC 3686), then an HMAC over the ciphertext.
    Aes128Ctr(Hmac),
    /// AES-256-CTR, then an HMAC.
    Aes256Ctr(Hmac),
    /// AES-128-CBC (RFC 3602), then an HMAC over the ciphertext.
    Aes128Cbc(Hmac),
    /// AES-256-CBC, then an HMAC.
    Aes256Cbc(Hmac),
}

/// An HMAC-SHA2, sent whole or cut to half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hmac {
    /// The hash function.
    pub hash: Sha2,
    /// True if the ICV is the whole output of the hash function instead of half (RFC 4868 section
    /// 2.1.2).
    pub whole: bool,
}

impl Hmac {
    /// Iterates over all HMACs, those with half an ICV first.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let of = |whole| Sha2::ALL.into_iter().map(move |hash| Self { hash, whole });
        [false, true].into_iter().flat_map(of)
    }

    /// Returns the length of the ICV in octets.
    pub const fn icv_len(self) -> usize {
        match self.whole {
            true => self.hash.output_len(),
            false => self.hash.output_len() / 2,
        }
    }
}

impl ZoneSuite {
    /// Iterates over all suites, the preferred kind first.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let combined = [
            Self::Aes128Gcm16,
            Self::Aes256Gcm16,
            Self::ChaCha20Poly1305,
            Self::Aes128Gmac,
            Self::Aes256Gmac,
        ];
        let ciphers = [
            Self::Aes128Ctr,
            Self::Aes256Ctr,
            Self::Aes128Cbc,
            Self::Aes256Cbc,
        ];
        let with_hmac = ciphers
            .into_iter()
            .flat_map(|cipher| Hmac::all().map(cipher));
        combined.into_iter().chain(with_hmac)
    }

    /// Returns true if the suite encrypts the zone.
    pub const fn encrypts(self) -> bool {
        !matches!(self, Self::Aes128Gmac | Self::Aes256Gmac)
    }

    /// Returns the length of the cipher's key in octets, without salt.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm16 | Self::Aes128Gmac | Self::Aes128Ctr(_) | Self::Aes128Cbc(_) => 16,
            Self::Aes256Gcm16
            | Self::ChaCha20Poly1305
            | Self::Aes256Gmac
            | Self::Aes256Ctr(_)
            | Self::Aes256Cbc(_) => 32,
        }
    }

    /// Returns the suite's HMAC, or `None` for an AEAD or GMAC.
    pub const fn hmac(self) -> Option<Hmac> {
        match self {
            Self::Aes128Ctr(hmac)
            | Self::Aes256Ctr(hmac)
            | Self::Aes128Cbc(hmac)
            | Self::Aes256Cbc(hmac) => Some(hmac),
            _ => None,
        }
    }

    /// Returns true if the suite encrypts whole blocks, with an IV on the wire.
    const fn in_blocks(self) -> bool {
        matches!(self, Self::Aes128Cbc(_) | Self::Aes256Cbc(_))
    }

    /// Returns the octets of key material for one direction: the keys of the cipher and of the
    /// HMAC, then the salt (DESIGN section 3). AES-CBC has no nonce and needs no salt.
    pub const fn keymat_len(self) -> usize {
        let mac = match self.hmac() {
            Some(hmac) => hmac.hash.output_len(),
            None => 0,
        };
        let salt = if self.in_blocks() { 0 } else { SALT_LEN };
        self.key_len() + mac + salt
    }

    /// Returns the length of the IV on the wire in octets.
    pub const fn iv_len(self) -> usize {
        if self.in_blocks() { BLOCK_LEN } else { 0 }
    }

    /// Returns the length of the ICV in octets.
    pub const fn icv_len(self) -> usize {
        match self.hmac() {
            Some(hmac) => hmac.icv_len(),
            None => 16,
        }
    }

    /// Returns the most octets that the suite adds to those of a zone.
    pub const fn overhead(self) -> usize {
        self.frame().overhead()
    }

    /// Returns the lengths of IV, block and ICV.
    pub const fn frame(self) -> Frame {
        let block_len = if self.in_blocks() { BLOCK_LEN } else { 1 };
        Frame {
            iv_len: self.iv_len() as u8,
            block_len: block_len as u8,
            icv_len: self.icv_len() as u8,
        }
    }
}

impl From<ZoneSuite> for Frame {
    fn from(suite: ZoneSuite) -> Self {
        suite.frame()
    }
}

impl From<Suite> for ZoneSuite {
    fn from(suite: Suite) -> Self {
        let half = |hash| Hmac { hash, whole: false };
        match suite {
            Suite::Aes128Gcm16 => Self::Aes128Gcm16,
            Suite::Aes256Gcm16 => Self::Aes256Gcm16,
            Suite::ChaCha20Poly1305 => Self::ChaCha20Poly1305,
            Suite::Aes128Cbc(hash) => Self::Aes128Cbc(half(hash)),
            Suite::Aes256Cbc(hash) => Self::Aes256Cbc(half(hash)),
        }
    }
}

/// Written as in a configuration file: `aes128gcm16`, `aes128gmac`, `aes128ctr-sha256`,
/// `aes128-sha256`, and with a whole HMAC `aes128-sha256_256`.
impl fmt::Display for ZoneSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aes128Gcm16 => "aes128gcm16",
            Self::Aes256Gcm16 => "aes256gcm16",
            Self::ChaCha20Poly1305 => "chacha20poly1305",
            Self::Aes128Gmac => "aes128gmac",
            Self::Aes256Gmac => "aes256gmac",
            Self::Aes128Ctr(_) => "aes128ctr",
            Self::Aes256Ctr(_) => "aes256ctr",
            Self::Aes128Cbc(_) => "aes128",
            Self::Aes256Cbc(_) => "aes256",
        })?;
        let Some(hmac) = self.hmac() else {
            return Ok(());
        };
        let bits = hmac.hash.output_len() * 8;
        write!(f, "-sha{bits}")?;
        match hmac.whole {
            true => write!(f, "_{bits}"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_suite_has_a_name_of_its_own_and_what_esp_has_is_called_as_there() {
        let names: BTreeSet<_> = ZoneSuite::all().map(|suite| suite.to_string()).collect();
        assert_eq!(names.len(), ZoneSuite::all().count());
        for suite in Suite::ALL {
            let zone = ZoneSuite::from(suite);
            assert_eq!(zone.to_string(), suite.name());
            assert_eq!(zone.keymat_len(), suite.keymat_len());
            assert_eq!(zone.icv_len(), suite.icv_len());
        }
    }

    #[test]
    fn only_blocks_are_padded() {
        let hmac = Hmac {
            hash: Sha2::Sha384,
            whole: true,
        };
        let (cbc, ctr) = (ZoneSuite::Aes128Cbc(hmac), ZoneSuite::Aes256Ctr(hmac));
        let texts = [0, 1, 15, 16, 31].map(|plain| cbc.frame().text_len(plain));
        assert_eq!(texts, [16, 16, 16, 32, 32]);
        let plain = [0, 15, 16, 32].map(|text| cbc.frame().plain_len(text));
        assert_eq!(plain, [None, None, Some(15), Some(31)]);
        assert_eq!((cbc.iv_len(), cbc.overhead()), (16, 16 + 16 + 48));
        assert_eq!((ctr.frame().text_len(33), ctr.overhead()), (33, 48));
        assert_eq!((cbc.keymat_len(), ctr.keymat_len()), (16 + 48, 32 + 48 + 4));
    }
}
