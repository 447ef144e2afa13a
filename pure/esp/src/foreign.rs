//! Ciphers from outside `crypto` on the same data path, so that a paper's measurements can be
//! repeated with everything else that a packet meets.
//!
//! They cannot be negotiated. An agreed suite has a number in proposals and a name in the
//! configuration; a foreign cipher has neither. It replaces the agreed ciphers of an installed SA,
//! by a call of [`crate::Worker::make_foreign`] at both ends. Only the lab does so, never a program
//! that runs for a user; a test of the dependencies between crates checks that.

use crypto::BadIcv;
use model::{Frame, ZoneId};

/// The protection of a zone, or of a whole plain SA, in both directions.
pub trait Foreign: Send {
    /// Returns the octets that it adds around a text. The result never changes.
    fn frame(&self) -> Frame;

    /// Encrypts `text`, padded to whole blocks, in place, and writes IV and ICV. Every `seq` is
    /// used once per key.
    fn seal(&self, seq: u32, aad: &[u8], iv: &mut [u8], text: &mut [u8], icv: &mut [u8]);

    /// Verifies `icv`, and only then decrypts `text` in place.
    fn open(
        &self,
        seq: u32,
        aad: &[u8],
        iv: &[u8],
        text: &mut [u8],
        icv: &[u8],
    ) -> Result<(), BadIcv>;
}

/// A function that creates the cipher of each zone; a plain SA uses that of the first zone.
pub(crate) type Make<'m> = &'m dyn Fn(ZoneId) -> Box<dyn Foreign>;
