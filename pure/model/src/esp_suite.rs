//! Cipher suites of plain ESP.

use crate::{Sha2, Suite};
use std::fmt;

/// Octets of salt behind the key of AES-GMAC (RFC 4543 section 5.4).
const SALT_LEN: usize = 4;

/// The cipher suite of a plain child SA. IKE messages and zones have types of their own, which do
/// not include the suites without encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EspSuite {
    /// Encrypts and authenticates.
    Encrypted(Suite),
    /// Authenticates only: NULL (RFC 2410) with an HMAC (RFC 4868).
    Null(Sha2),
    /// Authenticates only: AES-128-GMAC (RFC 4543).
    Aes128Gmac,
    /// Authenticates only: AES-256-GMAC.
    Aes256Gmac,
}

impl EspSuite {
    /// The suites without encryption, the preferred kind first.
    pub const UNENCRYPTED: [Self; 5] = [
        Self::Aes128Gmac,
        Self::Aes256Gmac,
        Self::Null(Sha2::Sha256),
        Self::Null(Sha2::Sha384),
        Self::Null(Sha2::Sha512),
    ];

    /// Iterates over all suites, those with encryption first.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let encrypted = Suite::ALL.into_iter().map(Self::Encrypted);
        encrypted.chain(Self::UNENCRYPTED)
    }

    /// Returns true if the suite encrypts.
    pub const fn encrypts(self) -> bool {
        matches!(self, Self::Encrypted(_))
    }

    /// Returns the length of the cipher's key in octets, without salt.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Encrypted(suite) => suite.key_len(),
            Self::Null(_) => 0,
            Self::Aes128Gmac => 16,
            Self::Aes256Gmac => 32,
        }
    }

    /// Returns the length of the salt behind the cipher's key in octets.
    pub const fn salt_len(self) -> usize {
        match self {
            Self::Encrypted(suite) => suite.salt_len(),
            Self::Null(_) => 0,
            Self::Aes128Gmac | Self::Aes256Gmac => SALT_LEN,
        }
    }

    /// Returns the hash function of the suite's HMAC, or `None` if it has no HMAC.
    pub const fn hash(self) -> Option<Sha2> {
        match self {
            Self::Encrypted(suite) => suite.hash(),
            Self::Null(hash) => Some(hash),
            Self::Aes128Gmac | Self::Aes256Gmac => None,
        }
    }

    /// Returns true if the IV may be implicit (RFC 8750).
    pub const fn may_omit_iv(self) -> bool {
        self.encrypts() && self.hash().is_none()
    }

    /// Returns the length of the ICV in octets.
    pub const fn icv_len(self) -> usize {
        match self.hash() {
            None => 16,
            Some(hash) => hash.output_len() / 2,
        }
    }

    /// Returns the octets of key material for one direction: the cipher's key, then the salt or the
    /// HMAC key (RFC 7296 section 2.17).
    pub const fn keymat_len(self) -> usize {
        let mac = match self.hash() {
            None => 0,
            Some(hash) => hash.output_len(),
        };
        self.key_len() + self.salt_len() + mac
    }

    /// Returns the name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Encrypted(suite) => suite.name(),
            Self::Null(Sha2::Sha256) => "null-sha256",
            Self::Null(Sha2::Sha384) => "null-sha384",
            Self::Null(Sha2::Sha512) => "null-sha512",
            Self::Aes128Gmac => "aes128gmac",
            Self::Aes256Gmac => "aes256gmac",
        }
    }
}

impl From<Suite> for EspSuite {
    fn from(suite: Suite) -> Self {
        Self::Encrypted(suite)
    }
}

impl fmt::Display for EspSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ZoneSuite;

    #[test]
    fn each_suite_has_a_name_of_its_own_and_those_of_zones_are_called_as_there() {
        let all: Vec<_> = EspSuite::all().map(EspSuite::name).collect();
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), Suite::ALL.len() + 5);
        for suite in [EspSuite::Aes128Gmac, EspSuite::Aes256Gmac] {
            let mut zones = ZoneSuite::all();
            let zone = zones.find(|zone| zone.to_string() == suite.name()).unwrap();
            assert_eq!(zone.keymat_len(), suite.keymat_len());
            assert!(!zone.encrypts() && !suite.encrypts());
        }
    }

    /// RFC 4868 section 2.1.1, RFC 4543 section 5.4: no suite has an empty key.
    // Weakness: 16
    #[test]
    fn a_suite_without_encryption_has_the_keys_of_its_authentication() {
        let lengths = EspSuite::UNENCRYPTED.map(|suite| (suite.keymat_len(), suite.icv_len()));
        assert_eq!(lengths, [(20, 16), (36, 16), (32, 16), (48, 24), (64, 32)]);
        for suite in Suite::ALL {
            let esp = EspSuite::from(suite);
            assert_eq!(
                (esp.keymat_len(), esp.icv_len()),
                (suite.keymat_len(), suite.icv_len())
            );
        }
    }
}
