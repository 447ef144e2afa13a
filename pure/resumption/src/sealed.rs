//! Entries as a store outside the process has them: encrypted, with a key that the store lacks.
//!
//! ```text
//! stored = nonce (12) | AES-256-GCM(key, nonce, handle, content) | ICV (16)
//! content = what `Entry::encode_whole` returns
//! ```
//!
//! The handle is authenticated, so a store cannot exchange two entries. Nonces are random: an entry
//! is written again whenever its usage is, and 2^32 writes with one key leave the chance of a
//! repeated nonce below 2^-32 (NIST SP 800-38D section 8.3).

use crate::{Entry, Handle, ReferenceKey, Unreadable};
use crypto::{Aead, AeadAlgorithm, Prf, Rng, Secret};

/// Octets of a nonce and of an ICV.
const NONCE_LEN: usize = 12;
const ICV_LEN: usize = 16;

/// The secret of a gateway, or of a cluster, from which the keys of its store are derived.
#[derive(Clone)]
pub struct StoreKey(Secret);

impl StoreKey {
    /// Length of the secret in octets.
    pub const LEN: usize = 32;

    /// Wraps a secret of [`Self::LEN`] octets. Another length is `None`.
    pub fn new(secret: Secret) -> Option<Self> {
        (secret.len() == Self::LEN).then_some(Self(secret))
    }

    /// Returns the key of references.
    pub fn references(&self) -> ReferenceKey {
        ReferenceKey::restored(self.derive(b"references of tickets"))
    }

    /// Returns the key of entries.
    pub fn sealer(&self, rng: Rng) -> Sealer {
        Sealer::new(&self.derive(b"entries of sessions"), rng)
    }

    fn derive(&self, purpose: &[u8]) -> Secret {
        Prf::HmacSha256.mac(self.0.expose(), &[purpose])
    }
}

/// Encrypts and decrypts entries.
pub struct Sealer {
    aead: Aead,
    rng: Rng,
}

impl Sealer {
    /// Takes a key, which is an output of HMAC-SHA-256 or as long.
    ///
    /// # Panics
    /// If it is not.
    pub(crate) fn new(key: &Secret, rng: Rng) -> Self {
        let aead = Aead::new(AeadAlgorithm::Aes256Gcm, key.expose());
        Self {
            aead: aead.expect("a PRF output is as long as the key of AES-256"),
            rng,
        }
    }

    /// Returns the octets to store under a handle.
    pub fn seal(&mut self, handle: &Handle, entry: &Entry) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = self.rng.array();
        let mut octets = nonce.to_vec();
        octets.extend(entry.encode_whole().expose());
        let (_, body) = octets.split_at_mut(NONCE_LEN);
        let icv = self.aead.seal(&nonce, handle.octets(), body);
        octets.extend(icv);
        octets
    }

    /// Reads the octets that are stored under a handle.
    pub fn open(&self, handle: &Handle, stored: &[u8]) -> Result<Entry, Unreadable> {
        let (nonce, rest) = stored.split_first_chunk::<NONCE_LEN>().ok_or(Unreadable)?;
        let (body, icv) = rest.split_last_chunk::<ICV_LEN>().ok_or(Unreadable)?;
        let mut body = zeroize::Zeroizing::new(body.to_vec());
        let opened = self.aead.open(nonce, handle.octets(), &mut body, icv);
        opened.map_err(|_| Unreadable)?;
        Entry::decode_whole(&body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Keys, MOST_OCTETS, Proof, Usage, Way};
    use crypto::UnixTime;
    use model::{Group, Suite};
    use wire::ike::Identification;

    fn sealer(key: u8) -> Sealer {
        let key = StoreKey::new(Secret::new(vec![key; StoreKey::LEN])).unwrap();
        key.sealer(Rng::from_seed([1; 32]))
    }

    fn entry() -> Entry {
        Entry {
            identity: "alice@example.net".parse().unwrap(),
            proof: Proof::Certificate,
            chain: vec![vec![0x30; 500], vec![0x31; 700]],
            group: Group::X25519,
            credential: [3; 8],
            keys: Keys {
                way: Way::Ticket,
                suite: Suite::Aes128Gcm16,
                prf: Prf::HmacSha256,
                kems: Vec::new(),
                ppk: false,
                secret: Secret::new(vec![9; 32]),
            },
            usage: Usage::new(UnixTime(1_796_000_000)),
            ends: UnixTime(1_796_028_800),
        }
    }

    const HANDLE: [u8; 16] = [4; 16];

    #[test]
    fn an_entry_is_opened_as_it_was_sealed() {
        let mut sealer = sealer(1);
        let handle = Handle::from(HANDLE);
        let one = sealer.seal(&handle, &entry());
        let other = sealer.seal(&handle, &entry());
        assert_ne!(one, other, "each has a nonce of its own");
        for stored in [one, other] {
            assert_eq!(sealer.open(&handle, &stored), Ok(entry()));
        }
    }

    /// The paper (004, section V): 50,000 records of at most 100 octets, beside identity and
    /// certificates.
    #[test]
    fn a_stored_entry_is_no_longer_than_the_paper_says() {
        let entry = Entry {
            chain: Vec::new(),
            ..entry()
        };
        let stored = sealer(1).seal(&Handle::from(HANDLE), &entry);
        let identity = Identification::from(entry.identity).octets().len() + 2;
        assert!(stored.len() - identity <= MOST_OCTETS, "{}", stored.len());
    }

    #[test]
    fn another_key_another_handle_or_another_octet_opens_nothing() {
        let handle = Handle::from(HANDLE);
        let stored = sealer(1).seal(&handle, &entry());
        assert_eq!(sealer(2).open(&handle, &stored), Err(Unreadable));
        let other = Handle::from([5; 16]);
        assert_eq!(sealer(1).open(&other, &stored), Err(Unreadable));
        for at in (0..stored.len()).step_by(7) {
            let mut changed = stored.clone();
            changed[at] ^= 1;
            assert_eq!(sealer(1).open(&handle, &changed), Err(Unreadable));
            assert_eq!(sealer(1).open(&handle, &stored[..at]), Err(Unreadable));
        }
    }

    #[test]
    fn nothing_of_an_entry_can_be_read_in_the_store() {
        let stored = sealer(1).seal(&Handle::from(HANDLE), &entry());
        for known in [&b"alice@example.net"[..], &[9; 32], &[0x30; 16]] {
            assert!(!stored.windows(known.len()).any(|window| window == known));
        }
    }
}
