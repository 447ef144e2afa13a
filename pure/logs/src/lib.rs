//! What the logs of a VPN gateway say about its sessions, and what caching would save (paper 004,
//! section IV): log lines go in, [`Session`]s come out, and distributions and simulated caching
//! strategies are computed from them.
//!
//! A [`Reader`] understands one [`Format`] and turns each line into a [`Note`]: a session began,
//! carried octets, or ended. [`Join`] pairs the notes of a session. [`Logs`] drives both over any
//! number of files, as files of a log rotate. A line that a reader cannot understand is counted in
//! [`Faults`] with its place.
//!
//! Everything is bounded, whatever the length of the logs: open sessions, users, days and samples
//! have a limit each, and what exceeds a limit is counted.

mod analysis;
mod clock;
mod fault;
mod join;
mod log;
mod note;
mod reader;
mod readers;
mod session;

pub use analysis::{
    Bound, Days, Exposure, Histogram, Order, Outcome, Sample, Simulation, Summary, Visits, bounds,
};
pub use clock::{Clock, Zone};
pub use fault::{Fault, Faults, Why};
pub use join::{Doubts, Join};
pub use log::Logs;
pub use note::{Kind, Note, Notes};
pub use reader::Reader;
pub use readers::Format;
pub use readers::csv::{Column, Columns};
pub use session::{Octets, Session, Span};
