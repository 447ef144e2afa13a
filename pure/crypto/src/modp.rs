//! Diffie-Hellman modulo the primes of RFC 3526, for peers without curves. AWS-LC does not offer
//! this arithmetic; crypto-bigint does, in constant time.
//!
//! The length of private values follows the strength of a group (RFC 3526 section 8). A peer's
//! value "MUST be between 1 and p-1, exclusive". For these primes, p = 2q + 1, no other check is
//! needed if no private value is used twice (RFC 6989 section 2.1).

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, Uint};
use zeroize::{Zeroize, Zeroizing};

/// The prime of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modulus {
    Bits2048,
    Bits3072,
}

/// 64-bit words of the longest private value.
const EXPONENT_WORDS: usize = 7;

impl Modulus {
    /// Returns the length in octets of a public value and of the secret: that of the prime, leading
    /// zeros included (RFC 7296 sections 2.14 and 3.4).
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::Bits2048 => 256,
            Self::Bits3072 => 384,
        }
    }

    /// Returns the length of a private value in octets: 320 or 448 bits.
    pub(crate) const fn private_len(self) -> usize {
        match self {
            Self::Bits2048 => 40,
            Self::Bits3072 => 8 * EXPONENT_WORDS,
        }
    }

    /// Returns the public value of a private value.
    pub(crate) fn public(self, private: &[u8]) -> Vec<u8> {
        self.power(&[2], private).to_vec()
    }

    /// Returns true if a public value is acceptable from a peer.
    pub(crate) fn contains(self, public: &[u8]) -> bool {
        public.len() == self.len()
            && match self {
                Self::Bits2048 => is_between::<32>(PRIME_2048, public),
                Self::Bits3072 => is_between::<48>(PRIME_3072, public),
            }
    }

    /// Returns the secret shared with a peer, whose value [`Self::contains`] has accepted.
    pub(crate) fn shared(self, private: &[u8], peer: &[u8]) -> Zeroizing<Vec<u8>> {
        self.power(peer, private)
    }

    fn power(self, base: &[u8], exponent: &[u8]) -> Zeroizing<Vec<u8>> {
        match self {
            Self::Bits2048 => power::<32>(PRIME_2048, base, exponent),
            Self::Bits3072 => power::<48>(PRIME_3072, base, exponent),
        }
    }
}

/// Returns true if 1 < value < p - 1.
fn is_between<const WORDS: usize>(prime: &str, value: &[u8]) -> bool {
    let (prime, value) = (Odd::<Uint<WORDS>>::from_be_hex(prime), number(value));
    value > Uint::ONE && value < prime.get().wrapping_sub(&Uint::ONE)
}

/// Returns base ^ exponent mod prime, in a time that depends on the lengths only.
fn power<const WORDS: usize>(prime: &str, base: &[u8], exponent: &[u8]) -> Zeroizing<Vec<u8>> {
    let parameters = FixedMontyParams::new_vartime(Odd::<Uint<WORDS>>::from_be_hex(prime));
    let mut exponent = number::<EXPONENT_WORDS>(exponent);
    let bits = 64 * EXPONENT_WORDS as u32;
    let base = FixedMontyForm::new(&number(base), &parameters);
    let mut power = base.pow_bounded_exp(&exponent, bits).retrieve();
    exponent.zeroize();
    let mut octets = Zeroizing::new(Vec::with_capacity(8 * WORDS));
    for word in power.as_words().iter().rev() {
        octets.extend_from_slice(&word.to_be_bytes());
    }
    power.zeroize();
    octets
}

/// Returns octets as a number. Octets that do not fit are cut off at the front.
fn number<const WORDS: usize>(octets: &[u8]) -> Uint<WORDS> {
    let mut padded = Zeroizing::new(vec![0; 8 * WORDS]);
    let from = padded.len().saturating_sub(octets.len());
    padded[from..].copy_from_slice(&octets[octets.len().saturating_sub(8 * WORDS)..]);
    Uint::from_be_slice(&padded)
}

/// RFC 3526 section 3.
const PRIME_2048: &str = concat!(
    "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74",
    "020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6df25f1437",
    "4fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7ed",
    "ee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf05",
    "98da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb",
    "9ed529077096966d670c354e4abc9804f1746c08ca18217c32905e462e36ce3b",
    "e39e772c180e86039b2783a2ec07a28fb5c55df06f4c52c9de2bcbf695581718",
    "3995497cea956ae515d2261898fa051015728e5a8aacaa68ffffffffffffffff",
);

/// RFC 3526 section 4.
const PRIME_3072: &str = concat!(
    "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74",
    "020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6df25f1437",
    "4fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7ed",
    "ee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf05",
    "98da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb",
    "9ed529077096966d670c354e4abc9804f1746c08ca18217c32905e462e36ce3b",
    "e39e772c180e86039b2783a2ec07a28fb5c55df06f4c52c9de2bcbf695581718",
    "3995497cea956ae515d2261898fa051015728e5a8aaac42dad33170d04507a33",
    "a85521abdf1cba64ecfb850458dbef0a8aea71575d060c7db3970f85a6e1e4c7",
    "abf5ae8cdb0933d71e8c94e04a25619dcee3d2261ad2ee6bf12ffa06d98a0864",
    "d87602733ec86a64521f2b18177b200cbbe117577a615d6c770988c0bad946e2",
    "08e24fa074e5ab3143db5bfce0fd108e4b82d120a93ad2caffffffffffffffff",
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256;
    use crate::testing::hex;

    const BOTH: [Modulus; 2] = [Modulus::Bits2048, Modulus::Bits3072];

    /// The expected values are hashes of results of Python's pow().
    #[test]
    fn powers_are_those_of_another_implementation() {
        let expected = [
            (
                "44e0c95811ac8c19dcf8e803d0e9594d1676074f3f419fbea2c45a65d816913c",
                "b80c69e11b9f4e598faa6a9c4c85b8a182d8f3389657ed1793b9a3b80c2f43e3",
            ),
            (
                "f9f45869c5ccfbf7f37bef78847f6fc5a9258ce74e420fa03901667c61ae4905",
                "995a1034587c03d4b9a9720f92549f5dff173fb195acf5ab6f5a468582614c6f",
            ),
        ];
        for (modulus, (public, shared)) in BOTH.into_iter().zip(expected) {
            let [a, b] = [0x5a, 0x3c].map(|octet| vec![octet; modulus.private_len()]);
            let ours = modulus.public(&a);
            assert_eq!(sha256(&[&ours]).to_vec(), hex(public));
            let secret = modulus.shared(&b, &ours);
            assert_eq!(sha256(&[&secret]).to_vec(), hex(shared));
            assert_eq!(modulus.shared(&a, &modulus.public(&b)), secret);
        }
    }

    /// Leading zeros stay: without them one exchange in 256 would fail.
    #[test]
    fn short_powers_have_zeros_in_front() {
        for modulus in BOTH {
            let mut three = vec![0; modulus.private_len()];
            *three.last_mut().unwrap() = 3;
            let mut eight = vec![0; modulus.len()];
            *eight.last_mut().unwrap() = 8;
            assert_eq!(modulus.public(&three), eight);
        }
    }

    /// RFC 6989 section 2.1: 0, 1 and p - 1 are in groups so small that they reveal the private
    /// value.
    #[test]
    fn values_outside_2_to_p_minus_2_are_refused() {
        for (modulus, prime) in BOTH.into_iter().zip([PRIME_2048, PRIME_3072]) {
            let prime = hex(prime);
            let beside = |down: u8| {
                let mut value = prime.clone();
                *value.last_mut().unwrap() -= down;
                value
            };
            let small = |value| [vec![0; modulus.len() - 1], vec![value]].concat();
            for bad in [
                small(0),
                small(1),
                beside(1),
                prime.clone(),
                vec![0xff; modulus.len()],
            ] {
                assert!(!modulus.contains(&bad));
            }
            for good in [small(2), beside(2)] {
                assert!(modulus.contains(&good));
            }
            for len in [0, 1, modulus.len() - 1, modulus.len() + 1] {
                assert!(!modulus.contains(&vec![2; len]));
            }
        }
    }
}
