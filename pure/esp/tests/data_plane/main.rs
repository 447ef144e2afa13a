//! The data plane from outside: two workers, the path between them, and attackers.

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]

mod allowance;
mod attacks;
mod authentic;
mod bare;
mod bench;
mod checksum;
mod claims;
mod clamp;
mod datagram;
mod dscp;
mod ecn;
mod esn;
mod fixed;
mod foreign;
mod identity;
mod injection;
mod level;
mod licensed;
mod many;
mod mode;
mod overlay;
mod padding;
mod policy;
mod room;
mod suites;
mod vectors;
