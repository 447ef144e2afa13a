//! The credential by which we sign.

use crypto::{RawKey, SignatureAlgorithm};
use std::fmt::Debug;
use std::sync::Arc;

/// Makes signatures with a private key that the engine never sees.
pub trait Signer: Debug + Send + Sync {
    /// Signs the octets with the key of [`Credential::key`]. `None` if the key cannot be used.
    fn sign(&self, octets: &[u8]) -> Option<Vec<u8>>;
}

/// Credential that proves our identity.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Our certificate in DER, followed by the intermediates up to a CA that peers trust. Empty if
    /// all peers that authenticate us by signature know our raw public key.
    pub chain: Vec<Vec<u8>>,
    /// Our public key.
    pub key: RawKey,
    /// Signature algorithm of the key.
    pub algorithm: SignatureAlgorithm,
    /// Signer with the private key.
    pub signer: Arc<dyn Signer>,
}
