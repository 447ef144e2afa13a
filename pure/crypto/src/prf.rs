//! The pseudorandom function of IKEv2 and the key expansion made of it (RFC 7296 section 2.13).

use crate::Secret;
use aws_lc_rs::hmac;
use zeroize::Zeroizing;

/// A negotiated PRF. It takes a key of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prf {
    /// PRF_HMAC_SHA2_256 (RFC 4868).
    HmacSha256,
}

impl Prf {
    /// Octets of output, which are also the preferred octets of key.
    #[expect(
        clippy::len_without_is_empty,
        reason = "the length of a function's output, not of a collection"
    )]
    pub const fn len(self) -> usize {
        match self {
            Self::HmacSha256 => 32,
        }
    }

    /// prf(key, parts one after the other).
    pub fn mac(self, key: &[u8], parts: &[&[u8]]) -> Secret {
        let key = self.key(key);
        self.sign(&key, parts)
    }

    /// prf+(key, parts one after the other), its first `len` octets:
    ///
    /// ```text
    /// prf+ (K,S) = T1 | T2 | T3 | T4 | ...
    /// T1 = prf (K, S | 0x01)    T2 = prf (K, T1 | S | 0x02)    and so on
    /// ```
    ///
    /// # Panics
    /// If `len` is more than 255 outputs of the prf, where the function ends. No exchange comes
    /// near: the longest KEYMAT, two directions of eight zones, is 576 octets.
    pub fn plus(self, key: &[u8], parts: &[&[u8]], len: usize) -> Secret {
        assert!(len <= 255 * self.len(), "prf+ ends after 255 blocks");
        let key = self.key(key);
        let mut keymat = Zeroizing::new(Vec::with_capacity(len + self.len()));
        let mut last = Secret::new(Vec::new());
        let mut counter = 0_u8;
        while keymat.len() < len {
            counter += 1;
            let number = [counter];
            let block = [&[last.expose()], parts, &[&number]].concat();
            last = self.sign(&key, &block);
            keymat.extend_from_slice(last.expose());
        }
        Secret::new(keymat[..len].to_vec())
    }

    fn key(self, octets: &[u8]) -> hmac::Key {
        match self {
            Self::HmacSha256 => hmac::Key::new(hmac::HMAC_SHA256, octets),
        }
    }

    /// Joins the parts so that the result is written straight into memory that is wiped.
    fn sign(self, key: &hmac::Key, parts: &[&[u8]]) -> Secret {
        let message = Zeroizing::new(parts.concat());
        let mut output = vec![0; self.len()];
        hmac::sign_to_buffer(key, &message, &mut output)
            .expect("the buffer is as long as the prf's output");
        Secret::new(output)
    }
}
