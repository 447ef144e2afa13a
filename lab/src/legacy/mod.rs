//! The algorithms that the paper on CZML-IPSec was measured with. They are for its figures only: no
//! key exchange offers them, and no configuration can name them. Library implementations compute
//! them (`libraries`), which no program but `strata-lab` links.

mod libraries;

use esp::Foreign;
use serde::{Deserialize, Serialize};

/// A cipher, in CBC mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Encryption {
    Des,
    TripleDes,
    /// AES with 128-bit keys.
    Rijndael,
    /// Words of 32 bits, 12 rounds, keys of 16 octets.
    Rc5,
}

/// An HMAC truncated to 96 bits (RFC 2403, RFC 2404).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Integrity {
    Md5,
    Sha1,
}

/// The algorithms that protect a zone or a plain packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Algorithms {
    pub encryption: Encryption,
    pub integrity: Integrity,
}

/// Makes a cipher with the key of this number.
pub(crate) type Make = fn(key: u8) -> Box<dyn Foreign>;

impl Encryption {
    pub const ALL: [Self; 4] = [Self::Des, Self::TripleDes, Self::Rijndael, Self::Rc5];

    /// Returns the name as the paper writes it.
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

    /// Returns the constructor of these ciphers.
    pub fn make(self) -> Make {
        libraries::make(self)
    }
}
