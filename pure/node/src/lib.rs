//! One host, still without I/O: a [`Node`] joins the engines for whatever roles its configuration
//! gives it. An *endpoint* has VPN peers; a *gateway* is an endpoint that also knows licensed
//! nodes and hands them keys; a *licensed node* takes keys from gateways and works on transit
//! packets. One host may be all three.
//!
//! # How to drive it
//!
//! * **Commands** ([`Node::up`], [`Node::down`], [`Node::open_child`], [`Node::close_child`], [`Node::withdraw`],
//!   [`Node::rekey`], [`Node::reauthenticate`], [`Node::redirect`], [`Node::move_peer`], [`Node::hand_over`],
//!   [`Node::choose_level`], [`Node::reconfigure`], [`Node::deregister`], [`Node::shutdown`]) say what the operator
//!   wants, and [`Node::set_wall_clock`], [`Node::set_time_of_day`], [`Node::restore_leases`] and
//!   [`Node::set_key_log`] what the system knows. Whoever has [`Node::set_recording`] on answers each
//!   [`Event::Giving`] by [`Node::give`].
//! * **Inputs** never fail; what is wrong with a packet becomes a counter or an event.
//!   IKE datagrams and timeouts go to [`Node::handle_datagram`] and [`Node::handle_timeout`], what
//!   the routes allow to [`Node::handle_ways`], streams that are lost to [`Node::handle_disconnected`],
//!   packets that were too long to [`Node::handle_path_mtu`];
//!   packets go in batches through [`Node::seal`] (from the TUN device), [`Node::open`] (from
//!   UDP port 4500) and one by one through [`Node::transit`] (diverted by a licensed node). Where silence is
//!   covered, [`Node::cover`] follows each timeout.
//!   Interfaces of Mobile IP that come and go are told by [`Node::handle_link`]. What comes by its sockets goes to
//!   [`Node::handle_discovery`], [`Node::handle_nearby`] and [`Node::handle_registration`], and packets in its tunnels through
//!   [`Node::encapsulate`] and [`Node::decapsulate`]: see [`mobile_ip`].
//! * **Outputs**: after every command, input and batch, drain [`Node::poll_lease`], [`Node::poll_registration`],
//!   [`Node::poll_transmit`], [`Node::poll_resend`] and [`Node::poll_event`] in this order until they are empty, then ask
//!   [`Node::poll_timeout`] when to come back. What is said to a mobile node by its new way cannot come before the reply
//!   that opens this way.
//!
//! # How it is joined
//!
//! The engines do not know each other. `ike` announces child SAs and grants by events, `node`
//! turns them into `esp` SAs, into the licensed node's views and into KEY_DISTRIBUTE requests.
//! This happens in one private function, `drain` in `junction.rs`; nothing else asks an engine for its events.

mod config;
mod cover;
mod event;
mod grants;
mod holders;
mod holdings;
mod junction;
mod keylog;
mod level;
mod migration;
pub mod mobile_ip;
mod moving;
mod node;
mod pairs;
mod path_mtu;
mod peers;
mod reconfigure;
mod revocation;
mod silence;
mod status;
mod succession;
#[cfg(test)]
mod tests;
mod transit;
mod whereabouts;

pub use config::{
    Action, Addressing, ChildPolicy, Config, Credential, Elsewhere, FRAGMENT, Inside, Lifetimes,
    Patience, Peer, Policy, Pool, Ppk, Role, Signer, SnoopConfig, Stance, Tcp, ZonePolicy,
};
pub use esp::{Congestion, Counters, DropReason, LevelStatus, Packet, Seat, Sink, Traffic};
pub use event::{Composite, Dropped, Ending, Event};
pub use grants::GrantState;
pub use ike::{
    Attempt, BadPpk, BadProof, CannotMove as NotMovable, CannotReauthenticate as NotRepeated,
    CannotRedirect as NotSent, DownReason, End, Offer, Refusal, Sender, Slot, UnknownChild,
    Windows, is_slot,
};
pub use keylog::KeyLog;
pub use level::NoLevel;
pub use migration::{MigrationCounters, NoKeys};
pub use mobility::{Candidate, Standing, Way};
pub use moving::{CannotMove, PathsStatus};
pub use node::{CannotReauthenticate, CannotRedirect, CannotRekey, Node, Rekey, UnknownPeer};
pub use pep::{FlowStatus, Side};
pub use status::{ChildStatus, CsaStatus, GrantStatus, HeldGrant, PeerState, PeerStatus};
pub use transit::{TransitCounters, Verdict};
pub use whereabouts::{Handover, Places};
