//! Cryptographic operations of Strata, behind types that protect their secrets and cannot be
//! confused.
//!
//! A [`Secret`] wipes itself and never prints its octets. An [`Aead`] context gets its nonce from
//! the caller (a sequence number, never a random one). A [`KeyPair`] is consumed by its single
//! agreement.
//!
//! The arithmetic is that of AWS-LC, with three exceptions: groups that only `legacy` offers
//! (`modp`), the MAC that Mobile IPv4 requires (`hmac_md5`), and AEADs if the process has installed
//! another [`Provider`]. Nothing here reads a clock or the system's randomness: all random octets
//! come from an [`Rng`] that the caller seeds, so tests are repeatable. The one exception is
//! [`KemKey`] and the ciphertexts for it, because AWS-LC draws that randomness itself.
//!
//! One file per concern. The IKEv2 numbers of the algorithms are defined in `wire`.

mod aead;
mod agreement;
mod calendar;
mod cbc;
mod certificate;
mod ctr;
mod digest;
mod hmac;
mod hmac_md5;
mod kem;
mod lines;
mod modp;
mod path;
mod prf;
mod provider;
mod raw_key;
mod request;
mod revocation;
mod rng;
mod secret;
mod signature;
mod small_order;
mod trust;
mod untrusted;
mod verifier;

pub use aead::{Aead, AeadAlgorithm, BadIcv, BadKey, ICV_LEN, NONCE_LEN};
pub use agreement::{BadPublicValue, Group, KeyPair};
pub use calendar::UnixTime;
pub use cbc::{BLOCK_LEN, CbcHmac};
pub use certificate::{Certificate, Name, NoCertificate};
pub use ctr::CtrHmac;
pub use digest::{sha1, sha256};
pub use hmac::{Hmac, HmacAlgorithm};
pub use hmac_md5::{HMAC_MD5_LEN, hmac_md5};
pub use kem::{BadKemValue, Kem, KemKey};
pub use prf::Prf;
pub use provider::{ExpandedKey, Provider, provide, provider};
pub use raw_key::{NoKey, RawKey};
pub use request::{BadRequest, CertificateRequest};
pub use revocation::{NoRevocationList, RevocationList, Revoked};
pub use rng::Rng;
pub use secret::{Secret, equal};
pub use signature::{KeyKind, PublicKey, SignatureAlgorithm, fixed as fixed_signature};
pub use trust::{Revocation, TrustStore};
pub use untrusted::{Unsupported, Untrusted};

#[cfg(test)]
mod testing {
    /// Returns the octets of a vector in an RFC's notation; white space is ignored.
    pub(crate) fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text
            .chars()
            .filter(|c| !c.is_whitespace())
            .map(|c| c.to_digit(16).expect("a hexadecimal digit") as u8)
            .collect();
        assert!(digits.len().is_multiple_of(2), "whole octets");
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    }
}
