//! Ciphers that are not those of `crypto`, on the one data path: what a paper was measured with can be measured
//! again with everything else that a packet meets.
//!
//! Nobody agrees on them. What is agreed on is a suite, and a suite has a number that a peer offers and a
//! name that a file has; a foreign cipher has neither. It takes the place of the agreed ones in an SA
//! that is installed already, by a call of [`crate::Worker::make_foreign`] at either end: the lab makes it, and nothing
//! that is run for a user (a test of the arrows between crates sees to that).

use crypto::BadIcv;
use model::{Frame, ZoneId};

/// What protects a zone, or all of a plain SA, in both directions.
pub trait Foreign: Send {
    /// What it puts around a text. Always the same.
    fn frame(&self) -> Frame;

    /// Encrypts `text`, padded to whole blocks, in place, and writes IV and ICV. `seq` comes once for
    /// each key.
    fn seal(&self, seq: u32, aad: &[u8], iv: &mut [u8], text: &mut [u8], icv: &mut [u8]);

    /// Checks `icv`, and only then decrypts `text` in place.
    fn open(
        &self,
        seq: u32,
        aad: &[u8],
        iv: &[u8],
        text: &mut [u8],
        icv: &[u8],
    ) -> Result<(), BadIcv>;
}

/// Makes the cipher of each zone; a plain SA has that of the first.
pub(crate) type Make<'m> = &'m dyn Fn(ZoneId) -> Box<dyn Foreign>;
