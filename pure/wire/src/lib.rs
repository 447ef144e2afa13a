//! Octets to types and back. No cryptography, no I/O; a reader never fails in any other way than
//! by saying that it could not read.

pub mod codec;
pub mod ike;
pub mod tcp;
