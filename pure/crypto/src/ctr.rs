//! AES-CTR with an HMAC-SHA2 over the ciphertext (RFC 3686, RFC 4868), for zones.
//!
//! A counter block is a nonce of 12 octets and a block counter that starts at one (RFC 3686 section
//! 4). The caller guarantees that a key and a nonce are used together only once, as with an AEAD:
//! two texts under one nonce reveal their difference.

use crate::aead::{BadIcv, BadKey, NONCE_LEN};
use crate::hmac::Hmac;
use aws_lc_rs::cipher::{AES_128, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use std::fmt;

/// Both expanded keys of one direction. AWS-LC wipes them when they are dropped.
pub struct CtrHmac {
    cipher: EncryptingKey,
    mac: Hmac,
}

impl CtrHmac {
    /// Expands the cipher's key of 16 or 32 octets.
    pub fn new(key: &[u8], mac: Hmac) -> Result<Self, BadKey> {
        let algorithm = match key.len() {
            16 => &AES_128,
            _ => &AES_256,
        };
        let unbound = UnboundCipherKey::new(algorithm, key);
        let cipher = unbound.and_then(EncryptingKey::ctr).map_err(|_| BadKey {
            expected: 32,
            found: key.len(),
        })?;
        Ok(Self { cipher, mac })
    }

    /// Encrypts in place, and writes the ICV over `aad` and the ciphertext.
    ///
    /// # Panics
    /// If `icv` is not as long as an ICV.
    pub fn seal(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], in_out: &mut [u8], icv: &mut [u8]) {
        self.apply(nonce, in_out);
        self.mac.sign([aad, in_out], icv);
    }

    /// Checks `icv`, and only then decrypts `in_out` in place. After an error `in_out` is unchanged
    /// and still encrypted.
    pub fn open(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
        icv: &[u8],
    ) -> Result<(), BadIcv> {
        self.mac.verify([aad, in_out], icv)?;
        self.apply(nonce, in_out);
        Ok(())
    }

    /// Adds the key stream to the text; encryption and decryption are the same.
    fn apply(&self, nonce: &[u8; NONCE_LEN], in_out: &mut [u8]) {
        let mut block = [0; 16];
        block[..NONCE_LEN].copy_from_slice(nonce);
        block[15] = 1;
        let context = EncryptionContext::Iv128(FixedLength::from(&block));
        self.cipher
            .less_safe_encrypt(in_out, context)
            .expect("a stream has no length that it cannot take");
    }
}

impl fmt::Debug for CtrHmac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CtrHmac({:?})", self.mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hmac::HmacAlgorithm;
    use crate::testing::hex;
    use proptest::prelude::*;

    fn ctr(key: &str) -> CtrHmac {
        let mac = Hmac::new(HmacAlgorithm::Sha256, &[7; 32]).unwrap();
        CtrHmac::new(&hex(key), mac).unwrap()
    }

    /// RFC 3686 test vectors 1 to 3 and 7 to 9: key, nonce and IV, plaintext, ciphertext.
    #[test]
    fn the_vectors_of_rfc_3686_section_6_hold() {
        let counting = |len: u8| (0..len).collect::<Vec<u8>>();
        let cases = [
            (
                "ae6852f8121067cc4bf7a5765577f39e",
                "000000300000000000000000",
                b"Single block msg".to_vec(),
                "e4095d4fb7a7b3792d6175a3261311b8",
            ),
            (
                "7e24067817fae0d743d6ce1f32539163",
                "006cb6dbc0543b59da48d90b",
                counting(32),
                "5104a106168a72d9790d41ee8edad388eb2e1efc46da57c8fce630df9141be28",
            ),
            (
                "7691be035e5020a8ac6e618529f9a0dc",
                "00e0017b27777f3f4a1786f0",
                counting(36),
                "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
            ),
            (
                "776beff2851db06f4c8a0542c8696f6c6a81af1eec96b4d37fc1d689e6c1c104",
                "00000060db5672c97aa8f0b2",
                b"Single block msg".to_vec(),
                "145ad01dbf824ec7560863dc71e3e0c0",
            ),
            (
                "f6d66d6bd52d59bb0796365879eff886c66dd51a5b6a99744b50590c87a23884",
                "00faac24c1585ef15a43d875",
                counting(32),
                "f05e231b3894612c49ee000b804eb2a9b8306b508f839d6a5530831d9344af1c",
            ),
            (
                "ff7a617ce69148e4f1726e2f43581de2aa62d9f805532edff1eed687fb54153d",
                "001cc5b751a51d70a1c11148",
                counting(36),
                "eb6c52821d0bbbf7ce7594462aca4faab407df866569fd07f48cc0b583d6071f1ec0e6b8",
            ),
        ];
        for (key, nonce, plain, sealed) in cases {
            let (ctr, nonce) = (ctr(key), hex(nonce).try_into().unwrap());
            let (mut octets, mut icv) = (plain.clone(), [0; 16]);
            ctr.seal(&nonce, b"", &mut octets, &mut icv);
            assert_eq!(octets, hex(sealed));
            assert_eq!(ctr.open(&nonce, b"", &mut octets, &icv), Ok(()));
            assert_eq!(octets, plain);
        }
    }

    #[test]
    fn keys_of_other_lengths_are_refused() {
        for len in [0, 15, 17, 24, 31, 33] {
            let mac = Hmac::new(HmacAlgorithm::Sha256, &[7; 32]).unwrap();
            let refused = CtrHmac::new(&vec![0; len], mac).unwrap_err();
            assert_eq!(refused.found, len);
        }
    }

    #[test]
    fn a_context_prints_its_algorithm_only() {
        let ctr = ctr(&"41".repeat(16));
        assert_eq!(format!("{ctr:?}"), "CtrHmac(Hmac(Sha256, 16 octets))");
    }

    proptest! {
        /// One flipped bit anywhere in AAD, ciphertext or ICV is refused, and nothing is decrypted.
        #[test]
        fn one_flipped_bit_is_refused_and_nothing_is_decrypted(
            key: [u8; 32],
            nonce: [u8; 12],
            aad: [u8; 8],
            plain in prop::collection::vec(any::<u8>(), 0..70),
            bit: prop::sample::Index,
        ) {
            let mac = Hmac::new(HmacAlgorithm::Sha384, &[9; 48]).unwrap().whole();
            let ctr = CtrHmac::new(&key, mac).unwrap();
            let (mut octets, mut icv) = (plain, [0; 48]);
            ctr.seal(&nonce, &aad, &mut octets, &mut icv);
            let mut all = [&aad[..], &octets, &icv].concat();
            let bit = bit.index(all.len() * 8);
            all[bit / 8] ^= 1 << (bit % 8);
            let (aad, rest) = all.split_at_mut(8);
            let (octets, icv) = rest.split_at_mut(rest.len() - 48);
            let before = octets.to_vec();
            prop_assert_eq!(ctr.open(&nonce, aad, octets, icv), Err(BadIcv));
            prop_assert_eq!(octets, before);
        }
    }
}
