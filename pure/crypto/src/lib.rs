//! Every cryptographic operation of Strata, behind types that cannot leak or be confused:
//! a [`Secret`] wipes itself and never prints its octets, an [`Aead`] context takes its nonce from
//! the caller (a sequence number, never a random one), a [`KeyPair`] is spent by its one agreement.
//!
//! The arithmetic is that of AWS-LC, but for groups that only `legacy` has (`modp`), for the MAC that Mobile IPv4
//! demands (`hmac_md5`), and for AEADs where the process has another [`Provider`]. Nothing here reads
//! a clock or the system's randomness: all random octets come from an [`Rng`] whose seed the caller
//! brings, so that a test can repeat them. The one exception is a [`KemKey`] and what is made for it:
//! AWS-LC lets nobody bring those octets.
//!
//! One file per concern; the numbers by which IKEv2 names the algorithms are `wire`'s.

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
mod prf;
mod provider;
mod raw_key;
mod revocation;
mod rng;
mod secret;
mod signature;
mod small_order;
mod trust;
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
pub use revocation::{NoRevocationList, RevocationList, Revoked};
pub use rng::Rng;
pub use secret::{Secret, equal};
pub use signature::{KeyKind, PublicKey, SignatureAlgorithm, fixed as fixed_signature};
pub use trust::{Revocation, TrustStore, Untrusted};

#[cfg(test)]
mod testing {
    /// Octets of a vector as an RFC prints it; white space is ignored.
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
