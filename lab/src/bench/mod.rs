//! `strata-lab bench`: the costs of Strata, each compared with its cryptography alone, and its
//! throughput compared with other tunnels and with many peers. Compared values are measured in
//! turns in the same run. Goals are printed as well, but a missed goal changes nothing: another
//! machine has other figures. Only endurance ([`soak`]) is the same everywhere.

pub mod esp;
pub mod flood;
pub mod ike;
pub mod peers;
pub mod sas;
pub mod soak;

mod certificates;
mod client;
mod cores;
mod crowd;
mod forge;
mod goal;
mod iperf;
mod memory;
mod responder;
mod spread;

pub(crate) use cores::{OwnCore, spent_by, spent_here};
pub use goal::{Bound, Goal};
pub use spread::Spread;

use serde::Serialize;

/// The result of a benchmark.
pub trait Measured: Serialize {
    /// Returns true if everything was carried or set up, at whatever cost.
    fn is_complete(&self) -> bool;

    /// Returns everything but the goals, as text for readers.
    fn body(&self) -> String;

    /// Returns the goals with their results, one line each.
    fn verdict(&self) -> String;
}

/// Returns the name of this process's AES-GCM implementation.
fn aead() -> &'static str {
    crypto::provider().map_or("AWS-LC", |provider| provider.name())
}
