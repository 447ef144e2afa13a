//! The composition layer: one [`Node`] per host, without I/O, in the roles that its configuration
//! assigns.
//!
//! An *endpoint* has VPN peers. A *gateway* is an endpoint that also knows licensed nodes and
//! distributes keys to them. A *licensed node* receives keys from gateways and processes the
//! transit packets that they open. One host may have all three roles.
//!
//! # How to drive it
//!
//! * **Commands** carry out what the operator requests: [`Node::up`], [`Node::down`],
//!   [`Node::open_child`], [`Node::close_child`], [`Node::withdraw`], [`Node::rekey`],
//!   [`Node::reauthenticate`], [`Node::redirect`], [`Node::move_peer`], [`Node::hand_over`],
//!   [`Node::choose_level`], [`Node::ping`], [`Node::reconfigure`], [`Node::deregister`],
//!   [`Node::shutdown`].
//!   [`Node::set_wall_clock`], [`Node::set_time_of_day`], [`Node::restore_leases`] and
//!   [`Node::set_key_log`] pass in what the system knows. A driver that turns on
//!   [`Node::set_recording`] answers each [`Event::Giving`] with [`Node::give`].
//! * **Inputs** never fail. A bad packet becomes a counter or an event. IKE datagrams go to
//!   [`Node::handle_datagram`], expired timeouts to [`Node::handle_timeout`], changed routes to
//!   [`Node::handle_ways`], closed streams to [`Node::handle_disconnected`], and reports of
//!   oversized packets to [`Node::handle_too_big`]. For peers with a name, the driver answers
//!   [`Event::NameWanted`] by [`Node::handle_name_sources`], sends [`Node::poll_query`], and passes
//!   answers to [`Node::handle_name_reply`]. Data packets go in batches through [`Node::seal`]
//!   (from the TUN device) and [`Node::open`] (from UDP port 4500), and one by one through
//!   [`Node::transit`] (diverted on a licensed node). After each timeout, answer
//!   [`Node::poll_path_mtu`] and call [`Node::cover`], which sends pings and answers too. For
//!   Mobile IP, [`Node::handle_link`] reports interfaces that appear or disappear. Messages from
//!   its sockets go to [`Node::handle_discovery`], [`Node::handle_nearby`] and
//!   [`Node::handle_registration`], and packets of its tunnels through [`Node::encapsulate`] and
//!   [`Node::decapsulate`]: see [`mobile_ip`].
//! * **Outputs**: after every command, input and batch, drain [`Node::poll_lease`],
//!   [`Node::poll_registration`], [`Node::poll_transmit`], [`Node::poll_resend`] and
//!   [`Node::poll_event`] in this order until they are empty. [`Node::poll_timeout`] then returns
//!   the time of the next call. The order ensures that a mobile node receives the registration
//!   reply, which opens its new route, before any datagram that takes this route.
//!
//! # How the engines are joined
//!
//! The engines do not know each other. `ike` announces child SAs and grants as events. `node` turns
//! them into `esp` SAs, into views of the licensed node and into KEY_DISTRIBUTE requests.
//!
//! Seven owners hold the state: `tunnels`, `naming`, `licensing`, `transit`, `mobile_ip`,
//! `path_mtu` and `ping`. None of them knows the node. An owner reads the engines, and leaves
//! commands and events in its `Turn` (`effects.rs`). `dispatch.rs` carries them out at once, in
//! their order. It alone polls the
//! events of the engines, in `drain`.

mod cause;
mod commands;
mod config;
mod dispatch;
mod effects;
mod event;
mod inspect;
mod keylog;
mod licensing;
pub mod mobile_ip;
mod naming;
mod node;
mod owners;
mod path_mtu;
mod ping;
mod plane;
mod status;
#[cfg(test)]
mod tests;
mod transit;
mod tunnels;

pub use cause::{Cause, NoKeys};
pub use commands::{CannotReauthenticate, CannotRedirect, CannotRekey, Rekey};
pub use config::{
    Action, Addressing, BadDestination, CertificateTerms, ChildPolicy, Config, Credential,
    Destination, Elsewhere, FRAGMENT, Inside, Lifetimes, PathRule, Patience, Peer, PeerTerms,
    Policy, Pool, Ppk, Role, Signer, SnoopConfig, Stance, Tcp, ZonePolicy,
};
pub use esp::{
    Congestion, Counters, DropReason, LevelStatus, Packet, Rates, Sink, Traffic, WorkerHandle,
};
pub use event::{Composite, Dropped, Ending, Event};
pub use ike::{
    Attempt, BadMode, BadPpk, BadProof, CannotMove as NotMovable,
    CannotReauthenticate as NotRepeated, CannotRedirect as NotSent, Domain, DownReason, End,
    GrantRefusal, Incarnation, KeyRefusal, NotResumed, NotVerified, Offer, Refusal, Resumption,
    Sender, Slot, Unencrypted, UnknownChild, Unplaced, UserPolicy, Windows, is_slot, slot_name,
};
pub use keylog::KeyLog;
pub use licensing::grants::GrantState;
pub use licensing::migration::MigrationCounters;
pub use licensing::places::{Handover, Limit, Places};
pub use mobility::{Candidate, Quality, Reported, Standing, Way, Why};
pub use naming::lookup::{Found, NotFound, Sources};
pub use naming::status::{NameStatus, Tried};
pub use naming::{Query, QueryId};
pub use node::Node;
pub use path_mtu::{Discovery, Origin, ProbeCounts};
pub use pep::{FlowStatus, Side};
pub use ping::{CannotPing, NotPinged, PingId, PingReport, RoundTrips};
pub use status::{
    ChildStatus, CsaStatus, GrantStatus, HeldGrant, PeerNumbers, PeerStatus, SILENT, Totals,
    UserCount,
};
pub use transit::{TransitCounters, Verdict};
pub use tunnels::desired::{PeerState, Refused, UnknownPeer};
pub use tunnels::initiations::OVERDUE;
pub use tunnels::level::NoLevel;
pub use tunnels::live_paths::LivePathStatus;
pub use tunnels::moving::{CannotMove, PathsStatus};
pub use tunnels::rivals::InTurns;
pub use tunnels::tally::{SET_UP_BOUNDS, SetUps};
