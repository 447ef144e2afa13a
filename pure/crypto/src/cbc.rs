//! AES-CBC with an HMAC-SHA2 over the ciphertext (RFC 3602, RFC 4868), for peers without an AEAD.
//!
//! The HMAC is checked before decryption, so only its maker can learn about the padding. A wrong
//! HMAC and an impossible length give the same error.
//!
//! The IV is the packet's number, encrypted with the packet's key: "apply the forward cipher
//! function, under the same key that is used for the encryption of the plaintext, to a nonce" (NIST
//! SP 800-38A appendix C). So it is "unpredictable" and no "counter or other low-Hamming distance
//! source", as RFC 3602 section 3 demands, and needs no randomness. The caller that counts the
//! numbers guarantees that a key and a number are used together only once.

use crate::aead::{BadIcv, BadKey};
use crate::hmac::Hmac;
use aws_lc_rs::cipher::{
    AES_128, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use std::fmt;

/// Octets of an AES block, and of an IV.
pub const BLOCK_LEN: usize = 16;

/// Both expanded keys of one direction. AWS-LC wipes them when they are dropped.
pub struct CbcHmac {
    encrypt: EncryptingKey,
    decrypt: DecryptingKey,
    mac: Hmac,
}

impl CbcHmac {
    /// Expands the cipher's key of 16 or 32 octets.
    pub fn new(key: &[u8], mac: Hmac) -> Result<Self, BadKey> {
        let cipher = match key.len() {
            16 => &AES_128,
            _ => &AES_256,
        };
        let bad_key = |_| BadKey {
            expected: 32,
            found: key.len(),
        };
        let unbound = || UnboundCipherKey::new(cipher, key);
        Ok(Self {
            encrypt: unbound().and_then(EncryptingKey::cbc).map_err(bad_key)?,
            decrypt: unbound().and_then(DecryptingKey::cbc).map_err(bad_key)?,
            mac,
        })
    }

    /// Returns the length of an ICV in octets.
    pub const fn icv_len(&self) -> usize {
        self.mac.icv_len()
    }

    /// Returns the IV of the packet with this number.
    pub fn iv(&self, number: u64) -> [u8; BLOCK_LEN] {
        let mut iv = [0; BLOCK_LEN];
        iv[BLOCK_LEN - 8..].copy_from_slice(&number.to_be_bytes());
        self.encrypt(&[0; BLOCK_LEN], &mut iv);
        iv
    }

    /// Encrypts whole blocks in place, and writes the ICV over `aad`, the IV and the ciphertext.
    ///
    /// # Panics
    /// If `in_out` is not whole blocks, or `icv` not as long as an ICV.
    pub fn seal(&self, iv: &[u8; BLOCK_LEN], aad: &[u8], in_out: &mut [u8], icv: &mut [u8]) {
        self.seal_before(iv, (aad, &[]), in_out, icv);
    }

    /// Like [`Self::seal`], with an ICV that also covers `behind`: octets after the ciphertext that
    /// are not sent.
    ///
    /// # Panics
    /// As [`Self::seal`].
    pub fn seal_before(
        &self,
        iv: &[u8; BLOCK_LEN],
        (aad, behind): (&[u8], &[u8]),
        in_out: &mut [u8],
        icv: &mut [u8],
    ) {
        self.encrypt(iv, in_out);
        self.mac.sign([aad, iv, in_out, behind], icv);
    }

    /// Checks `icv`, and only then decrypts `in_out` in place. After an error `in_out` is unchanged
    /// and still encrypted.
    pub fn open(
        &self,
        iv: &[u8; BLOCK_LEN],
        aad: &[u8],
        in_out: &mut [u8],
        icv: &[u8],
    ) -> Result<(), BadIcv> {
        self.open_before(iv, (aad, &[]), in_out, icv)
    }

    /// Like [`Self::open`], for an ICV that also covers `behind`.
    pub fn open_before(
        &self,
        iv: &[u8; BLOCK_LEN],
        (aad, behind): (&[u8], &[u8]),
        in_out: &mut [u8],
        icv: &[u8],
    ) -> Result<(), BadIcv> {
        self.mac.verify([aad, iv, in_out, behind], icv)?;
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
}

impl fmt::Debug for CbcHmac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CbcHmac({:?})", self.mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hmac::HmacAlgorithm;
    use crate::testing::hex;
    use proptest::prelude::*;

    fn mac() -> Hmac {
        Hmac::new(HmacAlgorithm::Sha256, &[7; 32]).unwrap()
    }

    fn cbc(key: &str) -> CbcHmac {
        CbcHmac::new(&hex(key), mac()).unwrap()
    }

    fn iv(text: &str) -> [u8; 16] {
        hex(text).try_into().unwrap()
    }

    /// RFC 3602 cases 1 to 4, and for 256 bits F.2.5 of NIST SP 800-38A.
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

    #[test]
    fn keys_of_other_lengths_are_refused() {
        for len in [0, 15, 17, 24, 31, 33] {
            let refused = CbcHmac::new(&vec![0; len], mac()).unwrap_err();
            assert_eq!(refused.found, len);
        }
    }

    /// RFC 3602 section 3: an IV is no counter and does not follow from the number alone.
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
        assert_eq!(format!("{cbc:?}"), "CbcHmac(Hmac(Sha256, 16 octets))");
    }

    /// An attacker that looks for a padding oracle gets the same error for every attempt.
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
            // Even a correct ICV opens no text that is not whole blocks.
            let mut icv = [0; 16];
            mac().sign([b"", &[0; 16], &text], &mut icv);
            let opened = cbc.open(&[0; 16], b"", &mut text, &icv);
            assert_eq!(opened.is_ok(), len % 16 == 0, "{len}");
        }
    }

    proptest! {
        /// One flipped bit anywhere in IV, AAD, ciphertext or ICV is refused, and nothing is
        /// decrypted.
        #[test]
        fn one_flipped_bit_is_refused_and_nothing_is_decrypted(
            key: [u8; 32],
            number: u64,
            aad: [u8; 8],
            plain: [u8; 64],
            which in 0..3_usize,
            bit: prop::sample::Index,
        ) {
            let algorithm = HmacAlgorithm::ALL[which];
            let mac = Hmac::new(algorithm, &vec![9; algorithm.key_len()]).unwrap();
            let cbc = CbcHmac::new(&key, mac).unwrap();
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
