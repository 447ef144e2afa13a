//! Names of entries, and the form in which clients present them.

use crypto::{Prf, Rng, Secret, equal};
use std::fmt;

/// Length of a handle, and of the MAC behind it, in octets.
const LEN: usize = 16;

/// Name of an entry: random, and new for each entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle([u8; LEN]);

impl Handle {
    /// Draws a handle.
    pub fn draw(rng: &mut Rng) -> Self {
        Self(rng.array())
    }

    /// Returns the octets, which are its key in a store.
    pub const fn octets(&self) -> &[u8; LEN] {
        &self.0
    }
}

impl From<[u8; LEN]> for Handle {
    fn from(octets: [u8; LEN]) -> Self {
        Self(octets)
    }
}

/// Shows the first four octets. They identify an entry to an operator, and present it to nobody.
impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "Handle({a:02x}{b:02x}{c:02x}{d:02x})")
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}{d:02x}")
    }
}

/// A handle and its MAC, as a client presents them.
///
/// ```text
/// reference = handle (16) | first 16 octets of HMAC-SHA-256(key, handle)
/// ```
pub type Reference = [u8; 2 * LEN];

/// Key of the MACs. It says which gateway, or which cluster, has issued a reference.
pub struct ReferenceKey(Secret);

impl ReferenceKey {
    /// Draws a key.
    pub fn draw(rng: &mut Rng) -> Self {
        Self(Secret::new(rng.array::<32>().to_vec()))
    }

    /// Restores a key of an earlier process.
    pub const fn restored(key: Secret) -> Self {
        Self(key)
    }

    /// Returns the reference of a handle.
    pub fn issue(&self, handle: &Handle) -> Reference {
        let mut reference = [0; 2 * LEN];
        let (name, mac) = reference.split_at_mut(LEN);
        name.copy_from_slice(&handle.0);
        mac.copy_from_slice(&self.mac(handle));
        reference
    }

    /// Returns the handle of a reference that this key has issued. Anything else is `None`.
    pub fn read(&self, presented: &[u8]) -> Option<Handle> {
        let presented = Reference::try_from(presented).ok()?;
        let (name, mac) = presented.split_at(LEN);
        let handle = Handle(name.try_into().ok()?);
        equal(&self.mac(&handle), mac).then_some(handle)
    }

    fn mac(&self, handle: &Handle) -> [u8; LEN] {
        let mac = Prf::HmacSha256.mac(self.0.expose(), &[&handle.0]);
        let mut first = [0; LEN];
        first.copy_from_slice(&mac.expose()[..LEN]);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> ReferenceKey {
        ReferenceKey::draw(&mut Rng::from_seed([seed; 32]))
    }

    #[test]
    fn a_reference_names_its_handle_to_the_key_that_issued_it_only() {
        let handle = Handle::draw(&mut Rng::from_seed([3; 32]));
        let reference = key(1).issue(&handle);
        assert_eq!(key(1).read(&reference), Some(handle));
        assert_eq!(key(2).read(&reference), None);
    }

    #[test]
    fn a_reference_with_any_other_octet_names_nothing() {
        let reference = key(1).issue(&Handle::from([7; LEN]));
        for place in 0..reference.len() {
            let mut changed = reference;
            changed[place] ^= 1;
            assert_eq!(key(1).read(&changed), None, "octet {place}");
            assert_eq!(key(1).read(&reference[..place]), None);
        }
        assert_eq!(key(1).read(&[&reference[..], &[0]].concat()), None);
    }

    #[test]
    fn a_log_shows_a_handle_without_enough_to_present_it() {
        let handle = Handle::from([0xab; LEN]);
        assert_eq!(format!("{handle} {handle:?}"), "abababab Handle(abababab)");
    }
}
