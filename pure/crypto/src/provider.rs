//! Another implementation of the AEADs than AWS-LC's, for machines that have a faster one.
//!
//! There is one for the whole process, as there is one allocator: it changes how long a result takes and
//! never which it is, so no engine has to know.

use crate::{AeadAlgorithm, ICV_LEN, NONCE_LEN};
use std::sync::OnceLock;

static PROVIDER: OnceLock<Box<dyn Provider>> = OnceLock::new();

/// What gives octet for octet the same as AWS-LC.
pub trait Provider: Send + Sync {
    /// What it calls itself, with its version.
    fn name(&self) -> &str;

    /// Expands a key of the right length; `None` for an algorithm that it does not have.
    fn expand(&self, algorithm: AeadAlgorithm, key: &[u8]) -> Option<Box<dyn ExpandedKey>>;
}

/// A key that a [`Provider`] has expanded. It wipes itself when it is dropped.
pub trait ExpandedKey: Send + Sync {
    /// Encrypts in place, and gives the ICV.
    fn seal(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], in_out: &mut [u8]) -> [u8; ICV_LEN];

    /// Decrypts in place, and gives the ICV that there should be. Whoever asked compares, and wipes what is
    /// not authentic.
    fn open(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], in_out: &mut [u8]) -> [u8; ICV_LEN];
}

/// From now on every key is expanded by this provider, if it has the algorithm. The first who asks is heard;
/// gives whether it was this one.
pub fn provide(provider: Box<dyn Provider>) -> bool {
    PROVIDER.set(provider).is_ok()
}

/// Who expands keys, if it is not AWS-LC alone.
pub fn provider() -> Option<&'static dyn Provider> {
    PROVIDER.get().map(Box::as_ref)
}
