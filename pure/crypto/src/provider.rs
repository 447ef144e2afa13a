//! Alternative implementations of the AEADs, for machines that have a faster one than AWS-LC's.
//!
//! A process has one provider, as it has one allocator. A provider changes the speed of an
//! operation and never its result, so no engine needs to know it.

use crate::{AeadAlgorithm, ICV_LEN, NONCE_LEN};
use std::sync::OnceLock;

static PROVIDER: OnceLock<Box<dyn Provider>> = OnceLock::new();

/// An AEAD implementation with exactly the results of AWS-LC.
pub trait Provider: Send + Sync {
    /// Returns the name and version of the implementation.
    fn name(&self) -> &str;

    /// Expands a key of the right length; `None` if the algorithm is not supported.
    fn expand(&self, algorithm: AeadAlgorithm, key: &[u8]) -> Option<Box<dyn ExpandedKey>>;
}

/// A key that a [`Provider`] has expanded. It wipes itself when it is dropped.
pub trait ExpandedKey: Send + Sync {
    /// Encrypts in place and returns the ICV.
    fn seal(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], in_out: &mut [u8]) -> [u8; ICV_LEN];

    /// Decrypts in place and returns the expected ICV. The caller compares the ICVs and wipes the
    /// output if they differ.
    fn open(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], in_out: &mut [u8]) -> [u8; ICV_LEN];
}

/// Installs the process's provider, which expands all further keys of the algorithms it supports.
/// Only the first call takes effect. Returns true if this call did.
pub fn provide(provider: Box<dyn Provider>) -> bool {
    PROVIDER.set(provider).is_ok()
}

/// Returns the installed provider, or `None` if AWS-LC expands all keys.
pub fn provider() -> Option<&'static dyn Provider> {
    PROVIDER.get().map(Box::as_ref)
}
