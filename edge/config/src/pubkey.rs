//! `pubkey`: a peer's raw public key, in place of certificates (RFC 7670).

use crate::reader::Value;
use crypto::RawKey;

/// Reads the public key whose file a value names.
pub(crate) fn pubkey(value: &Value<'_>) -> Option<RawKey> {
    let pem = value.file()?;
    RawKey::from_pem(&pem).ok().or_else(|| {
        value.fault(
            "there is no public key for Ed25519, ECDSA P-256 or P-384, or RSA of 2048 bits or more in this file",
            "name a PEM file with `-----BEGIN PUBLIC KEY-----`: at the peer, `strata pki pubkey FILE.key` prints it",
        )
    })
}
