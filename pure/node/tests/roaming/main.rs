//! A mobile node that moves among licensed foreign agents, with its gateway, which is its home
//! agent: hand-over on virtual time (DESIGN section 5).

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]

mod attacks;
#[path = "../../src/tests/datagram.rs"]
mod datagram;
mod domain;
mod flows;
mod handover;
mod holders;
mod hosts;
#[path = "../../src/tests/outlet.rs"]
mod outlet;
mod shared;
mod walks;
mod witness;
mod world;

// Names that the shared modules use from the crate.
use node::{DropReason, Packet, Sink};
