//! The methods by which peers and we prove our identities ([`Proof`]).

use crate::config::Peer;
use crate::peer_table::PeerTable;
use crypto::{RawKey, Secret};
use resumption::{Fingerprint, Keys, Proof as Kind};
use wire::ike::Identification;

/// Method by which a peer and we prove our identities to each other, as configured.
#[derive(Clone, Copy)]
pub(crate) enum Proof<'p> {
    /// With a pre-shared key.
    Psk(&'p Secret),
    /// With certificates.
    Signature,
    /// With raw public keys, of which this is the peer's.
    RawKey(&'p RawKey),
    /// With the keys of a session that is resumed. No configuration asks for this.
    Resumed,
}

impl<'p> Proof<'p> {
    pub(crate) fn of(peer: &'p Peer) -> Self {
        match (&peer.psk, peer.key.as_deref()) {
            (Some(psk), _) => Self::Psk(psk),
            (None, Some(key)) => Self::RawKey(key),
            (None, None) => Self::Signature,
        }
    }

    /// Returns the kind of the proof in an entry.
    pub(crate) const fn kind(self) -> Option<Kind> {
        match self {
            Self::Psk(_) => Some(Kind::Psk),
            Self::Signature => Some(Kind::Certificate),
            Self::RawKey(_) => Some(Kind::RawKey),
            Self::Resumed => None,
        }
    }

    /// Returns the peer's raw public key, if it proves its identity with one.
    pub(crate) const fn known_key(self) -> Option<&'p RawKey> {
        match self {
            Self::RawKey(key) => Some(key),
            Self::Psk(_) | Self::Signature | Self::Resumed => None,
        }
    }

    /// Returns true if the peer proves its identity with a certificate.
    pub(crate) const fn is_certified(self) -> bool {
        match self {
            Self::Signature => true,
            Self::Psk(_) | Self::RawKey(_) | Self::Resumed => false,
        }
    }

    /// Returns true if the peer proves its identity with a signature.
    pub(crate) const fn is_signature(self) -> bool {
        self.is_certified() || self.known_key().is_some()
    }
}

/// Returns the fingerprint of the credentials by which a peer and we prove our identities now. What
/// a session has proved does not count once one of them was replaced.
pub(crate) fn fingerprint(peer: &Peer, keys: &Keys, config: &PeerTable) -> Fingerprint {
    let authorities = peer.certificate.digest(config.authorities);
    let own = Identification::from(config.identity.clone()).octets();
    let credential = match Proof::of(peer) {
        Proof::Psk(psk) => psk.expose(),
        Proof::RawKey(key) => key.der(),
        Proof::Signature | Proof::Resumed => &authorities,
    };
    let ppk = peer.ppk.as_ref();
    let ppk = ppk.map_or(&[][..], |ppk| ppk.secret.expose());
    let lengths = [own.len(), credential.len()];
    let [first, second] = lengths.map(usize::to_be_bytes);
    let parts: [&[u8]; 6] = [b"credentials", &first, &second, &own, credential, ppk];
    let mac = keys.prf.mac(keys.secret.expose(), &parts);
    let mut fingerprint = Fingerprint::default();
    let len = fingerprint.len();
    fingerprint.copy_from_slice(&mac.expose()[..len]);
    fingerprint
}
