//! The algorithms that the paper on CZML-IPSec was measured with, for its figures and nothing else: no key
//! exchange offers them and no file names them.
//!
//! Kept libraries compute them, which the feature `legacy` brings (`libraries`).

#[cfg(feature = "legacy")]
mod libraries;

use crate::obstacle::Obstacle;
use esp::Foreign;

/// A cipher, in CBC mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    Des,
    TripleDes,
    /// With keys of 128 bits: AES.
    Rijndael,
    /// Words of 32 bits, 12 rounds, keys of 16 octets.
    Rc5,
}

/// An HMAC, of which 96 bits are sent (RFC 2403, RFC 2404).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integrity {
    Md5,
    Sha1,
}

/// What protects a zone, or a plain packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Algorithms {
    pub encryption: Encryption,
    pub integrity: Integrity,
}

/// Makes a cipher with the key of this number.
pub(crate) type Make = fn(key: u8) -> Box<dyn Foreign>;

impl Encryption {
    pub const ALL: [Self; 4] = [Self::Des, Self::TripleDes, Self::Rijndael, Self::Rc5];

    /// As the paper writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Des => "DES-CBC",
            Self::TripleDes => "3DES-CBC",
            Self::Rijndael => "Rijndael-CBC",
            Self::Rc5 => "RC5-CBC",
        }
    }

    pub const fn with(self, integrity: Integrity) -> Algorithms {
        Algorithms {
            encryption: self,
            integrity,
        }
    }
}

impl Integrity {
    pub const ALL: [Self; 2] = [Self::Md5, Self::Sha1];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "HMAC-MD5",
            Self::Sha1 => "HMAC-SHA1",
        }
    }
}

impl Algorithms {
    pub fn name(self) -> String {
        format!("{} + {}", self.encryption.name(), self.integrity.name())
    }

    /// What makes such ciphers.
    #[cfg(feature = "legacy")]
    pub fn make(self) -> Result<Make, Obstacle> {
        Ok(libraries::make(self))
    }

    /// What makes such ciphers is not there.
    #[cfg(not(feature = "legacy"))]
    pub fn make(self) -> Result<Make, Obstacle> {
        Err(Obstacle::new(
            format!("this build has no {}", self.name()),
            "build one that has: cargo build --release -p strata",
        ))
    }
}
