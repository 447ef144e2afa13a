//! Octets that nobody may see.

use std::fmt;
use std::mem;
use zeroize::Zeroizing;

/// Key material or a preshared key. Wiped when dropped, compared in constant time, printed as its
/// length only.
///
/// Between engines a key travels as one secret: encryption key, then the 4 octets of salt.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes over `octets`; the vector's memory is wiped with the secret.
    pub fn new(octets: Vec<u8>) -> Self {
        Self(Zeroizing::new(octets))
    }

    /// The octets themselves. Copies of them are the caller's to wipe.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// How many octets there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no octet at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes `n` octets from the front, as RFC 7296 section 2.17 takes keys from KEYMAT. `None`,
    /// and nothing taken, if there are fewer.
    pub fn split_off_front(&mut self, n: usize) -> Option<Self> {
        if n > self.len() {
            return None;
        }
        let rest = Zeroizing::new(self.0.split_off(n));
        // The octets of `rest` that stay behind in the front's spare capacity are wiped with it.
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

/// Whether two slices hold the same octets, in a time that depends on their lengths only.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}
