//! HMAC-MD5 (RFC 2104), which Mobile IPv4 requires of every implementation (RFC 5944 section 5.1).
//!
//! AWS-LC does not export its own, so this is RustCrypto's. The known attacks on MD5 do not break
//! HMAC-MD5 (RFC 6151 section 2.3), but nothing else should use it.

use ::hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;

/// Octets of the output.
pub const HMAC_MD5_LEN: usize = 16;

/// Returns HMAC-MD5 of the concatenated parts under a key of any length.
pub fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> [u8; HMAC_MD5_LEN] {
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// RFC 2202 section 2: test cases 1, 2 and 6, the last with a key longer than a block.
    #[test]
    fn the_vectors_of_rfc_2202_hold() {
        let cases: [(&[u8], &[u8], &str); 3] = [
            (&[0x0b; 16], b"Hi There", "9294727a3638bb1c13f48ef8158bfc9d"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "750c783e6ab0b503eaa86e310a5db738",
            ),
            (
                &[0xaa; 80],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd",
            ),
        ];
        for (key, text, expected) in cases {
            assert_eq!(hmac_md5(key, &[text]).to_vec(), hex(expected));
            let (front, back) = text.split_at(3);
            assert_eq!(hmac_md5(key, &[front, back]).to_vec(), hex(expected));
        }
    }
}
