//! Networks with a workload.

mod configuration;
mod download;
mod parties;
mod stage;

pub use configuration::Configuration;
pub use download::{Download, Failure, Measured, Sample};
