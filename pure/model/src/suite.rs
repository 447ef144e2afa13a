//! Cipher suites that encrypt, and the hash functions of their HMACs.

use std::fmt;

/// Cipher suite that encrypts ESP packets and IKE messages. The discriminants are not transform
/// IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suite {
    /// AES-128-GCM with a 16-octet ICV (RFC 4106).
    Aes128Gcm16,
    /// AES-256-GCM with a 16-octet ICV (RFC 4106).
    Aes256Gcm16,
    /// ChaCha20-Poly1305 (RFC 7634).
    ChaCha20Poly1305,
    /// AES-128-CBC (RFC 3602), then an HMAC over the ciphertext (RFC 4868).
    Aes128Cbc(Sha2),
    /// AES-256-CBC, then an HMAC.
    Aes256Cbc(Sha2),
}

/// The hash function of an HMAC. The HMAC is cut to half of its output (RFC 4868 section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sha2 {
    /// HMAC-SHA-256-128.
    Sha256,
    /// HMAC-SHA-384-192.
    Sha384,
    /// HMAC-SHA-512-256.
    Sha512,
}

impl Sha2 {
    /// Every hash function.
    pub const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    /// Returns the octets of the output, and of an HMAC key.
    pub const fn output_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// Octets of salt behind an AEAD's key (RFC 4106 section 8.1, RFC 5282 section 7.1).
const SALT_LEN: usize = 4;

impl Suite {
    /// All suites, the preferred kind first.
    pub const ALL: [Self; 9] = [
        Self::Aes128Gcm16,
        Self::Aes256Gcm16,
        Self::ChaCha20Poly1305,
        Self::Aes128Cbc(Sha2::Sha256),
        Self::Aes256Cbc(Sha2::Sha256),
        Self::Aes128Cbc(Sha2::Sha384),
        Self::Aes256Cbc(Sha2::Sha384),
        Self::Aes128Cbc(Sha2::Sha512),
        Self::Aes256Cbc(Sha2::Sha512),
    ];

    /// Returns the length of the cipher's key in octets, without salt.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm16 | Self::Aes128Cbc(_) => 16,
            Self::Aes256Gcm16 | Self::ChaCha20Poly1305 | Self::Aes256Cbc(_) => 32,
        }
    }

    /// Returns the length of the salt behind the cipher's key in octets.
    pub const fn salt_len(self) -> usize {
        match self.hash() {
            None => SALT_LEN,
            Some(_) => 0,
        }
    }

    /// Returns the hash function of the suite's HMAC, or `None` for an AEAD.
    pub const fn hash(self) -> Option<Sha2> {
        match self {
            Self::Aes128Gcm16 | Self::Aes256Gcm16 | Self::ChaCha20Poly1305 => None,
            Self::Aes128Cbc(hash) | Self::Aes256Cbc(hash) => Some(hash),
        }
    }

    /// Returns the length of the ICV in octets.
    pub const fn icv_len(self) -> usize {
        match self.hash() {
            None => 16,
            Some(hash) => hash.output_len() / 2,
        }
    }

    /// Returns the length of the HMAC key in octets.
    pub const fn mac_key_len(self) -> usize {
        match self.hash() {
            None => 0,
            Some(hash) => hash.output_len(),
        }
    }

    /// Returns the octets of key material for one direction: the cipher's key, then the salt or the
    /// HMAC key (RFC 7296 section 2.17).
    pub const fn keymat_len(self) -> usize {
        self.key_len() + self.salt_len() + self.mac_key_len()
    }

    /// Returns the name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm16 => "aes128gcm16",
            Self::Aes256Gcm16 => "aes256gcm16",
            Self::ChaCha20Poly1305 => "chacha20poly1305",
            Self::Aes128Cbc(Sha2::Sha256) => "aes128-sha256",
            Self::Aes128Cbc(Sha2::Sha384) => "aes128-sha384",
            Self::Aes128Cbc(Sha2::Sha512) => "aes128-sha512",
            Self::Aes256Cbc(Sha2::Sha256) => "aes256-sha256",
            Self::Aes256Cbc(Sha2::Sha384) => "aes256-sha384",
            Self::Aes256Cbc(Sha2::Sha512) => "aes256-sha512",
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
