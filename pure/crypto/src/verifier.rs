//! Signature algorithms accepted in certificates: those of [`crate::PublicKey`], and either curve
//! with the hash of the other, as some CAs sign.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1,
    ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    UnparsedPublicKey, VerificationAlgorithm,
};
use rustls_pki_types::{
    AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id,
};

/// All accepted algorithms, in webpki's form.
pub(crate) const ALL: &[&dyn SignatureVerificationAlgorithm] = &[
    &Verifier::new(
        alg_id::ECDSA_P256,
        alg_id::ECDSA_SHA256,
        &ECDSA_P256_SHA256_ASN1,
    ),
    &Verifier::new(
        alg_id::ECDSA_P256,
        alg_id::ECDSA_SHA384,
        &ECDSA_P256_SHA384_ASN1,
    ),
    &Verifier::new(
        alg_id::ECDSA_P384,
        alg_id::ECDSA_SHA256,
        &ECDSA_P384_SHA256_ASN1,
    ),
    &Verifier::new(
        alg_id::ECDSA_P384,
        alg_id::ECDSA_SHA384,
        &ECDSA_P384_SHA384_ASN1,
    ),
    &Verifier::new(alg_id::ED25519, alg_id::ED25519, &ED25519),
    &Verifier::rsa(alg_id::RSA_PKCS1_SHA256, &RSA_PKCS1_2048_8192_SHA256),
    &Verifier::rsa(alg_id::RSA_PKCS1_SHA384, &RSA_PKCS1_2048_8192_SHA384),
    &Verifier::rsa(alg_id::RSA_PKCS1_SHA512, &RSA_PKCS1_2048_8192_SHA512),
    &Verifier::rsa(alg_id::RSA_PSS_SHA256, &RSA_PSS_2048_8192_SHA256),
    &Verifier::rsa(alg_id::RSA_PSS_SHA384, &RSA_PSS_2048_8192_SHA384),
    &Verifier::rsa(alg_id::RSA_PSS_SHA512, &RSA_PSS_2048_8192_SHA512),
];

/// One algorithm with its X.509 identifiers.
struct Verifier {
    key: AlgorithmIdentifier,
    signature: AlgorithmIdentifier,
    algorithm: &'static dyn VerificationAlgorithm,
}

impl Verifier {
    const fn new(
        key: AlgorithmIdentifier,
        signature: AlgorithmIdentifier,
        algorithm: &'static dyn VerificationAlgorithm,
    ) -> Self {
        Self {
            key,
            signature,
            algorithm,
        }
    }

    const fn rsa(
        signature: AlgorithmIdentifier,
        algorithm: &'static dyn VerificationAlgorithm,
    ) -> Self {
        Self::new(alg_id::RSA_ENCRYPTION, signature, algorithm)
    }
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
