//! Hash functions.

use aws_lc_rs::digest::{Algorithm, Context, Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// Returns SHA-256 of the concatenated parts (FIPS 180-4).
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let digest = hash(&SHA256, parts);
    digest.as_ref().try_into().expect("SHA-256 has 32 octets")
}

/// Returns SHA-1 of the concatenated parts. Only for the uses that RFC 7296 fixes and that need no
/// collision resistance: NAT detection (section 2.23) and the names of CAs (section 3.7).
pub fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let digest = hash(&SHA1_FOR_LEGACY_USE_ONLY, parts);
    digest.as_ref().try_into().expect("SHA-1 has 20 octets")
}

fn hash(algorithm: &'static Algorithm, parts: &[&[u8]]) -> Digest {
    let mut context = Context::new(algorithm);
    parts.iter().for_each(|part| context.update(part));
    context.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// The examples of FIPS 180-4's predecessor, FIPS 180-2 appendices A and B.
    #[test]
    fn the_examples_of_the_standard_hold() {
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(
            sha256(&[b"abc"]).to_vec(),
            hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        );
        assert_eq!(
            sha256(&[two_blocks]).to_vec(),
            hex("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
        );
        assert_eq!(
            sha1(&[b"abc"]).to_vec(),
            hex("a9993e364706816aba3e25717850c26c9cd0d89d")
        );
        assert_eq!(
            sha1(&[two_blocks]).to_vec(),
            hex("84983e441c3bd26ebaae4aa1f95129e5e54670f1")
        );
    }

    #[test]
    fn parts_are_hashed_as_one_message() {
        assert_eq!(sha256(&[b"a", b"", b"bc"]), sha256(&[b"abc"]));
        assert_eq!(sha1(&[b"ab", b"c"]), sha1(&[b"abc"]));
    }
}
