//! To be written.

mod acknowledgement;
mod cache;
mod config;
mod counters;
mod flow;
mod repair;
mod rtt;
mod segment;
mod snoop;
mod status;

pub use config::Config;
pub use counters::Counters;
pub use segment::{Position, Segment, Side, Verdict};
pub use snoop::Snoop;
pub use status::{FlowStatus, State};
