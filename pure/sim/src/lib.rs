//! Networks in virtual time.
//!
//! A [`Link`] says what becomes of a packet: when it arrives, or why it never does. A [`Pipe`]
//! is a link that also holds the packets on their way. Both are pure: the laboratory's real-time
//! emulator drives the very same object with a real clock that simulations drive with a virtual
//! one, so what holds in a test holds on real packets.

mod link;
mod pipe;

pub use link::{Link, Outcome, Reason, Settings, Statistics};
pub use pipe::Pipe;
