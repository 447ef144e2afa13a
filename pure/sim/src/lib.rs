//! Networks in virtual time.
//!
//! A [`Link`] decides the fate of a packet: its arrival time, or the reason of its loss. The lab's
//! real-time emulator drives links with a real clock (in a [`Pipe`], which holds the packets in
//! transit), and simulations with a virtual one, so results of a test also hold for real packets.
//!
//! A [`Network`] connects [`Host`]s by wires of two links each, optionally with a [`Nat`] on a
//! wire; [`world::Hosts`] advances its time. A host does the work of a kernel with packets. It
//! drives a [`node::Node`] as the daemon does, with the same calls and the same octets (handshakes,
//! KEY_DISTRIBUTE, sealed packets, SNOOP), and runs one end of a [`tcp`] connection. A [`scene`] is
//! a network with a workload: so far [`scene::Download`], the measurement of the papers.
//!
//! A run is a function of its seed: the same packets leave at the same times, as
//! [`Network::digest`] proves. Forty seconds of a download take a fraction of a second.
//!
//! # Limits
//!
//! The simulation has no model of the machine. Processors, copies and system calls take no time, so
//! durations describe only the network and the protocols. Hosts have no IPv6, fragments or ICMP
//! between them: senders keep to a segment size that fits. Reno is the only congestion control,
//! with the omissions that [`tcp`] lists. The kernel's handling of TUN devices and namespaces is
//! tested in the lab, and the results of both are compared.

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
