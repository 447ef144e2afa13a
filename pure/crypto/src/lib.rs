//! Every cryptographic operation of Strata, behind types that cannot leak or be confused:
//! a [`Secret`] wipes itself and never prints its octets, an [`Aead`] context takes its nonce from
//! the caller (a sequence number, never a random one), a [`KeyPair`] is spent by its one agreement.
//!
//! The arithmetic is that of AWS-LC. Nothing here reads a clock or the system's randomness: all
//! random octets come from an [`Rng`] whose seed the caller brings, so that a test can repeat them.
//!
//! One file per concern; the numbers by which IKEv2 names the algorithms are `wire`'s.

mod aead;
mod agreement;
mod digest;
mod prf;
mod rng;
mod secret;

pub use aead::{Aead, AeadAlgorithm, BadIcv, BadKey, ICV_LEN, NONCE_LEN};
pub use agreement::{BadPublicValue, Group, KeyPair};
pub use digest::{sha1, sha256};
pub use prf::Prf;
pub use rng::Rng;
pub use secret::{Secret, equal};
