//! The data plane from outside: two workers, what is between them, and everybody who meddles.

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]

mod attacks;
mod authentic;
mod bench;
mod clamp;
mod datagram;
mod dscp;
mod ecn;
mod identity;
mod licensed;
mod mode;
mod padding;
mod policy;
mod room;
mod suites;
mod vectors;
