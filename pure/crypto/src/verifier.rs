//! The signatures that certificates may bear: those of [`crate::PublicKey`], which IKE uses itself,
//! and of CAs with RSA, which are still many.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use rustls_pki_types::{
    AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id,
};

/// All of them, as webpki takes them.
pub(crate) const ALL: &[&dyn SignatureVerificationAlgorithm] = &[
    &Verifier {
        key: alg_id::ECDSA_P256,
        signature: alg_id::ECDSA_SHA256,
        algorithm: &ECDSA_P256_SHA256_ASN1,
    },
    &Verifier {
        key: alg_id::ED25519,
        signature: alg_id::ED25519,
        algorithm: &ED25519,
    },
    &Verifier {
        key: alg_id::RSA_ENCRYPTION,
        signature: alg_id::RSA_PKCS1_SHA256,
        algorithm: &RSA_PKCS1_2048_8192_SHA256,
    },
];

/// One algorithm and how X.509 names it.
struct Verifier {
    key: AlgorithmIdentifier,
    signature: AlgorithmIdentifier,
    algorithm: &'static dyn VerificationAlgorithm,
}

impl SignatureVerificationAlgorithm for Verifier {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        UnparsedPublicKey::new(self.algorithm, public_key)
            .verify(message, signature)
            .map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.key
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.signature
    }
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Verifier({:?})", self.signature)
    }
}
