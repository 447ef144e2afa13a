//! Secret octets.

use std::fmt;
use std::mem;
use zeroize::Zeroizing;

/// Key material or a preshared key. It is wiped when dropped, compared in constant time, and
/// printed as its length only.
///
/// Between engines a key travels as one secret: the encryption key, then the 4 octets of salt.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Wraps `octets`; the vector's memory is wiped with the secret.
    pub fn new(octets: Vec<u8>) -> Self {
        Self(Zeroizing::new(octets))
    }

    /// Returns the octets. The caller has to wipe its copies.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Returns the number of octets.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no octets.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns `n` octets from the front, as RFC 7296 section 2.17 takes keys from
    /// KEYMAT. Returns `None` and removes nothing if there are fewer.
    pub fn split_off_front(&mut self, n: usize) -> Option<Self> {
        if n > self.len() {
            return None;
        }
        let rest = Zeroizing::new(self.0.split_off(n));
        // The octets of `rest` that remain in the front's spare capacity are wiped with the front.
        Some(Self(mem::replace(&mut self.0, rest)))
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        equal(self.expose(), other.expose())
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} octets)", self.len())
    }
}

/// Compares two slices in a time that depends on their lengths only.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_secret_is_printed_as_its_length_only() {
        let secret = Secret::new(b"hunter2".to_vec());
        for text in [format!("{secret:?}"), format!("{secret:#?}")] {
            assert_eq!(text, "Secret(7 octets)");
        }
    }

    #[test]
    fn keys_are_taken_from_the_front_in_order() {
        let mut keymat = Secret::new((0..36).collect());
        let key = keymat.split_off_front(32).unwrap();
        assert_eq!(key.expose(), (0..32).collect::<Vec<u8>>());
        assert_eq!(keymat.expose(), [32, 33, 34, 35]);
        assert_eq!(keymat.split_off_front(5), None);
        assert_eq!(keymat.len(), 4, "a refused request takes nothing");
        assert!(!keymat.is_empty());
        assert_eq!(keymat.split_off_front(0), Some(Secret::new(Vec::new())));
        assert_eq!(keymat.split_off_front(4).map(|salt| salt.len()), Some(4));
        assert!(keymat.is_empty());
    }

    #[test]
    fn secrets_are_equal_when_all_octets_are() {
        let octets = vec![7; 32];
        let secret = Secret::new(octets.clone());
        assert_eq!(secret, secret.clone());
        assert_ne!(secret, Secret::new(octets[1..].to_vec()));
        for place in 0..octets.len() {
            let mut other = octets.clone();
            other[place] ^= 0x80;
            assert_ne!(secret, Secret::new(other));
        }
    }

    #[test]
    fn a_dropped_secret_leaves_nothing_in_memory() {
        let whole = Secret::new(b"Strata-canary-16".repeat(256));
        let place = Place::new(&whole);
        assert_eq!(place.canaries(), 256);
        drop(whole);
        assert_eq!(place.canaries(), 0);
    }

    #[test]
    fn both_parts_of_a_split_secret_leave_nothing_in_memory() {
        let mut rest = Secret::new(b"Strata-canary-16".repeat(256));
        let front = rest.split_off_front(1024).unwrap();
        let places = [Place::new(&front), Place::new(&rest)];
        assert_eq!(places.each_ref().map(Place::canaries), [64, 192]);
        drop((front, rest));
        assert_eq!(places.each_ref().map(Place::canaries), [0, 0]);
    }

    /// The memory of a secret, present or past, read from outside.
    struct Place {
        address: u64,
        len: usize,
    }

    impl Place {
        fn new(secret: &Secret) -> Self {
            Self {
                address: secret.expose().as_ptr() as u64,
                len: secret.len(),
            }
        }

        fn canaries(&self) -> usize {
            let memory = std::fs::OpenOptions::new()
                .read(true)
                .open("/proc/self/mem")
                .unwrap();
            let mut octets = vec![0; self.len];
            memory.read_exact_at(&mut octets, self.address).unwrap();
            octets
                .windows(16)
                .filter(|window| window == b"Strata-canary-16")
                .count()
        }
    }
}
