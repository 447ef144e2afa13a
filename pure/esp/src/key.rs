//! A key in one direction, and the only place that builds nonces.
//!
//! A nonce is 4 octets of salt and 8 of IV (RFC 4106 section 4, RFC 8750 section 4), and the IV is
//! always the sequence number. Keys are per SA, zone and direction, and [`crate::outbound`] uses
//! every number once, so no pair of key and nonce seals twice.

use crate::prefetch::prefetch;
use crypto::{Aead, AeadAlgorithm, BadIcv, BadKey, Hmac, HmacAlgorithm, NONCE_LEN, Prf, Secret};
use model::{MapKind, NODE_SUITE, Sha2, Suite, ZoneId};
use wire::esp::ICV_LEN;
use wire::zoned::{MAX_ZONES, Map};

pub(crate) const SALT_LEN: usize = 4;

/// An expanded key with its salt.
pub(crate) struct Key {
    aead: Aead,
    salt: Secret,
}

impl Key {
    /// Expands encryption key and salt, concatenated.
    pub fn new(suite: Suite, key_and_salt: &Secret) -> Result<Self, Unusable> {
        let algorithm = match suite {
            Suite::Aes128Gcm16 => AeadAlgorithm::Aes128Gcm,
            Suite::Aes256Gcm16 => AeadAlgorithm::Aes256Gcm,
            Suite::ChaCha20Poly1305 => AeadAlgorithm::ChaCha20Poly1305,
            Suite::Aes128Cbc(_) | Suite::Aes256Cbc(_) => return Err(Unusable::NoAead),
        };
        let mut salt = key_and_salt.clone();
        let key = salt
            .split_off_front(suite.key_len())
            .filter(|_| salt.len() == suite.salt_len())
            .ok_or(Unusable::KeyLength)?;
        Ok(Self {
            aead: Aead::new(algorithm, key.expose())?,
            salt,
        })
    }

    /// Prefetches the salt. The AEAD library's own memory is not accessible.
    pub fn prefetch(&self) {
        prefetch(self.salt.expose());
    }

    /// Encrypts `text` in place.
    pub fn seal(&self, iv: u64, aad: &[u8], text: &mut [u8]) -> [u8; ICV_LEN] {
        self.aead.seal(&nonce(&self.salt, iv), aad, text)
    }

    /// Authenticates and decrypts `text` in place.
    pub fn open(&self, iv: u64, aad: &[u8], text: &mut [u8], icv: &[u8]) -> Result<(), BadIcv> {
        self.aead.open(&nonce(&self.salt, iv), aad, text, icv)
    }
}

/// Derives the key and salt that a licensed node uses under a grant, in the direction of `root`:
/// for overlays from root_w, for injected packets from root_inj.
pub fn grant_key(root: &Secret, grant: u16) -> Secret {
    let len = NODE_SUITE.keymat_len();
    Prf::HmacSha256.plus(root.expose(), &[&grant.to_be_bytes()], len)
}

/// Returns the nonce of a packet (RFC 4106 section 4, RFC 3686 section 4).
pub(crate) fn nonce(salt: &Secret, iv: u64) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    nonce[..SALT_LEN].copy_from_slice(salt.expose());
    nonce[SALT_LEN..].copy_from_slice(&iv.to_be_bytes());
    nonce
}

/// Expands an HMAC key.
pub(crate) fn hmac(hash: Sha2, key: &[u8]) -> Result<Hmac, BadKey> {
    let algorithm = match hash {
        Sha2::Sha256 => HmacAlgorithm::Sha256,
        Sha2::Sha384 => HmacAlgorithm::Sha384,
        Sha2::Sha512 => HmacAlgorithm::Sha512,
    };
    Hmac::new(algorithm, key)
}

/// The reason why an SA or a grant cannot be installed. The cause is always local: the peer's
/// octets were checked before they became parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// A key does not have the length of its suite's key and salt.
    #[error("a key does not have the length that its suite requires")]
    KeyLength,
    /// The suite is not an AEAD where one is required. No caller does this.
    #[error("the suite is not an AEAD")]
    NoAead,
    /// Keys, zones and agreement do not match.
    #[error("the keys do not match the agreed zones")]
    Zones,
    /// There is no key for the designated zone, so no packet could be opened.
    #[error("no key for the designated zone")]
    NoDesignatedZone,
    /// The inbound SPI is reserved or in use by another SA.
    #[error("the inbound SPI is reserved, or in use by another SA")]
    Spi,
    /// A mode other than tunnel, with more than one pair of addresses.
    #[error("transport and BEET mode need exactly one address at each end")]
    Mode,
    /// More grants share this SPI than a packet may be tried against.
    #[error("too many grants have this SPI")]
    Crowded,
}

impl From<BadKey> for Unusable {
    fn from(_: BadKey) -> Self {
        Self::KeyLength
    }
}

/// Returns the serial of the payload zone, given the number of zones, and the map if it is fixed.
/// Only an opaque SA has a single zone.
pub(crate) fn payload_zone(count: usize, map: &MapKind) -> Result<(ZoneId, Option<Map>), Unusable> {
    let zone = u8::try_from(count).map_err(|_| Unusable::Zones)?;
    let fixed = match map {
        MapKind::Changeable => None,
        MapKind::Fixed(runs) => Some(Map::fixed(ZoneId(zone), runs).map_err(|_| Unusable::Zones)?),
    };
    let least = match &fixed {
        Some(map) if map.is_opaque() => 1,
        _ => 2,
    };
    match (least..=MAX_ZONES).contains(&count) {
        true => Ok((ZoneId(zone), fixed)),
        false => Err(Unusable::Zones),
    }
}
