//! All of Strata's use of Linux: TUN devices, UDP and TCP sockets, routes and rules, network
//! namespaces, the clock, randomness, signals and polling. This crate knows none of Strata's
//! protocols, and no other crate makes a system call on the data path.
//!
//! Two rules hold throughout. An error that a person can repair says how ([`Error`]). And state
//! that the kernel keeps after a process died (routes, rules) is marked, so that the next start
//! finds and removes it ([`Netlink::cleanup`]).

mod bulk;
mod changes;
pub mod claim;
pub mod clear;
pub mod clock;
pub mod crash;
mod cut;
pub mod cycles;
mod datagrams;
pub mod discovery;
pub mod divert;
pub mod entropy;
mod error;
pub mod files;
pub mod firewall;
mod installed;
mod join;
pub mod kept;
mod link_socket;
pub mod links;
mod local_udp;
pub mod lock;
pub mod memory;
pub mod mobile;
pub mod netlink;
pub mod netns;
mod nftables;
mod option;
mod owner;
mod passage;
pub mod poll;
mod prefix;
pub mod priority;
mod program;
mod query_socket;
mod reports;
pub mod resolver;
pub mod routes;
mod run;
#[cfg(test)]
mod sample;
pub mod signals;
mod stream;
pub mod sysctl;
pub mod tcp;
pub mod tun;
mod virtio;
mod waker;

pub use bulk::{Bulk, SEGMENTS};
pub use changes::{Changes, News};
pub use claim::Claim;
pub use cut::Outline;
pub use datagrams::{Arrival, Datagrams, MOST_AT_ONCE, is_too_long, path_mtu};
pub use discovery::Discovery;
pub use divert::Divert;
pub use error::{Error, is_gone};
pub use link_socket::{Ends, LinkAddress};
pub use links::Links;
pub use local_udp::LocalUdp;
pub use lock::Lock;
pub use netlink::Netlink;
pub use netns::NetNs;
pub use owner::Owner;
pub use passage::Passage;
pub use poll::Poller;
pub use prefix::{Family, Prefix};
pub use query_socket::QuerySocket;
pub use reports::Reports;
pub use resolver::Resolver;
pub use routes::Routes;
pub use run::Run;
pub use signals::Signals;
pub use stream::{Listener, Stream};
pub use tun::Tun;
pub use waker::Waker;
