//! Keys of WireGuard, and the names of hosts that are made of them.

use aws_lc_rs::agreement::{PrivateKey, X25519};
use data_encoding::{BASE64, HEXLOWER};
use zeroize::Zeroizing;

/// Octets of a key.
const KEY_LEN: usize = 32;
/// Octets of a public key that name a host.
const NAMING: usize = 6;

/// Returns the octets of a key in base64.
pub(crate) fn key(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let octets = BASE64.decode(text.as_bytes()).map(Zeroizing::new).ok()?;
    (octets.len() == KEY_LEN).then_some(octets)
}

/// Returns the public key of a private one.
pub(crate) fn public(private: &Zeroizing<Vec<u8>>) -> Option<Vec<u8>> {
    let private = PrivateKey::from_private_key(&X25519, private).ok()?;
    Some(private.compute_public_key().ok()?.as_ref().to_vec())
}

/// Returns the name of the host with a public key.
pub(super) fn host_name(public: &[u8]) -> String {
    let head = public.get(..NAMING).unwrap_or(public);
    format!("wg-{}", HEXLOWER.encode(head))
}
