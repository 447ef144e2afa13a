//! The virtual network of all tests of several hosts.
//!
//! [`Network`] holds the packets in flight and decides with a seeded generator which of them a
//! [`Hop`] loses, repeats or delays. [`Nat`] shows a host by another address. [`Hosts`] is what a
//! test adds: its hosts, the way of a packet from one to the other, and what it records. In return
//! it runs them on virtual time. The tests in `hosts.rs` have the smallest example.
//!
//! No engine is a dependency, so that the tests of each engine can use this crate.

mod hop;
mod hosts;
mod nat;
mod network;

pub use hop::Hop;
pub use hosts::Hosts;
pub use nat::Nat;
pub use network::Network;
