//! Networks in virtual time.
//!
//! A [`Link`] says what becomes of a packet: when it arrives, or why it never does. A [`Pipe`]
//! is a link that also holds the packets on their way. Both are pure: the laboratory's real-time
//! emulator drives the very same object with a real clock that simulations drive with a virtual
//! one, so what holds in a test holds on real packets.
//!
//! A [`Network`] joins [`Host`]s by wires of two pipes each, with a [`Nat`] on a wire where one is
//! wanted. A host does what a kernel does with packets, drives a [`node::Node`] exactly as the
//! daemon does (the same calls with the same octets: handshakes, KEY_DISTRIBUTE, sealed packets,
//! SNOOP), and runs one end of a [`tcp`] connection. A [`scene`] is a network with something going
//! on in it: so far [`scene::Download`], the measurement of the papers.
//!
//! A run is a function of its seed: the same packets leave at the same moments, which
//! [`Network::digest`] proves. Forty seconds of a download take a fraction of one.
//!
//! # What it leaves out
//!
//! The machine: nobody waits for a processor, a copy or a system call, so what a simulation says
//! about time is about the network and the protocols alone. IPv6 between hosts, fragments and ICMP:
//! senders keep to the segment size that fits. Congestion control but Reno, and of that what
//! [`tcp`] lists. The kernel's way into TUN devices and namespaces: for that there is the
//! laboratory, and what both measure is compared.

mod datagram;
mod host;
mod ip4;
mod link;
mod nat;
mod network;
mod pipe;
mod program;
pub mod scene;
mod stream;
pub mod tcp;

pub use host::{Divert, Host, HostCounters, Via};
pub use link::{Link, Outcome, Reason, Settings, Statistics};
pub use nat::{Nat, NatCounters};
pub use network::{HostId, Interface, Network, WireId};
pub use pipe::Pipe;
pub use program::{Program, Received};
pub use stream::Stream;
