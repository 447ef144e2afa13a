//! `strata bench`: what Strata costs, each time beside the cryptography of it alone, and what it carries beside
//! others and for many, measured in turns in the same run. What is aimed at is printed as well, and missing it changes nothing: another
//! machine has other figures. Only whether it lasts ([`soak`]) is the same everywhere.

pub mod esp;
pub mod flood;
pub mod ike;
pub mod peers;
pub mod sas;
pub mod soak;

mod cores;
mod crowd;
mod forge;
mod goal;
mod iperf;
mod memory;
mod responder;

pub(crate) use cores::spent_here;
pub use goal::{Bound, Goal};

/// Whose AES-GCM this process has.
fn aead() -> &'static str {
    crypto::provider().map_or("AWS-LC", |provider| provider.name())
}
