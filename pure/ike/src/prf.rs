//! Keys of the pseudorandom function that both ends have negotiated.

use crypto::{Prf, Secret};

/// A key, and the function that it is for. Keys of an IKE SA that is rekeyed keep theirs: "the old
/// PRF is used" for the successor's SKEYSEED (RFC 7296 section 2.18).
#[derive(Clone)]
pub(crate) struct PrfKey {
    pub(crate) prf: Prf,
    key: Secret,
}

impl PrfKey {
    pub(crate) const fn new(prf: Prf, key: Secret) -> Self {
        Self { prf, key }
    }

    /// Returns the key itself, which a session that is resumed later needs.
    pub(crate) const fn secret(&self) -> &Secret {
        &self.key
    }

    /// Returns prf(key, concatenated parts).
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> Secret {
        self.prf.mac(self.key.expose(), parts)
    }

    /// Returns the first `length` octets of prf+(key, concatenated parts).
    pub(crate) fn plus(&self, parts: &[&[u8]], length: usize) -> Secret {
        self.prf.plus(self.key.expose(), parts, length)
    }

    /// Returns the key with a PPK mixed in: prf+(PPK, SK') (RFC 8784 section 3).
    pub(crate) fn with_ppk(&self, ppk: &Secret) -> Self {
        let length = self.key.len();
        let key = self.prf.plus(ppk.expose(), &[self.key.expose()], length);
        Self::new(self.prf, key)
    }
}

#[cfg(test)]
impl PrfKey {
    /// For tests that derive keys on their own.
    pub(crate) fn expose(&self) -> &[u8] {
        self.key.expose()
    }
}
