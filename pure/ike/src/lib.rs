//! The IKEv2 engine (RFC 7296): all IKE SAs of one host, without sockets, clock or randomness of
//! its own.
//!
//! # How to drive it
//!
//! An [`Engine`]'s methods are of four kinds.
//!
//! * **Commands**: [`Engine::initiate`], [`Engine::close`], [`Engine::shutdown`], [`Engine::bar`],
//!   [`Engine::reconfigure`], [`Engine::renew`], [`Engine::rekey_child`], [`Engine::rekey_ike`],
//!   [`Engine::open_child`], [`Engine::close_child`], [`Engine::release_child`], [`Engine::reauthenticate`], [`Engine::redirect`],
//!   [`Engine::move_to`], [`Engine::probe`], [`Engine::hasten`], [`Engine::hand_over`], [`Engine::distribute`],
//!   [`Engine::revoke`], [`Engine::answer_grant`], [`Engine::request_keys`], [`Engine::answer_request`],
//!   [`Engine::tell_neighbours`], [`Engine::note_inbound`], [`Engine::set_wall_clock`], [`Engine::restore_leases`].
//! * **Inputs**: [`Engine::handle_datagram`] for an IKE message that arrived (or [`Engine::ask_for_cookie`], where
//!   [`Engine::sender`] says so),
//!   [`Engine::handle_disconnected`] for a stream that is lost, [`Engine::handle_timeout`] when the
//!   deadline came. They never fail; what happened is told by
//!   events and [`Counters`].
//! * **Outputs**: [`Engine::poll_lease`], [`Engine::poll_transmit`], [`Engine::poll_event`],
//!   [`Engine::poll_timeout`]. After every command or input, drain the first three in that order
//!   and ask the last.
//! * **Getters**: everything else.
//!
//! # How it is made
//!
//! One IKE SA is a state machine whose states are structs (`sa`); what all exchanges have in common
//! is in `window` (message IDs, retransmission), `keys` (the key schedule, as types), `cipher` and `exchange`
//! (which payloads make up which message). Everything that is an extension has a file of its own in
//! `extension`. Addresses that are lent to peers are in `pool`.
//!
//! **Invariants.** No message that fails its integrity check changes anything but a counter. Keys
//! of children can only be made by `keys::ProvedKeys`, which exist only after the peer's AUTH
//! verified. The responder never repeats a message on its own. What strangers cost is bounded in
//! number and time.

mod advice;
mod attempt;
mod auth;
mod bad_proof;
mod child;
mod cipher;
mod config;
mod counters;
mod directory;
mod down_reason;
mod engine;
mod event;
mod exchange;
mod extension;
mod half_open;
mod ike_spi;
mod keys;
mod menu;
mod misuse;
mod policy;
mod pool;
mod proposal;
mod reconfigure;
mod refusal;
mod roster;
mod sa;
mod selectors;
mod sender;
mod signature;
mod spi;
mod status;
mod stranger;
#[cfg(test)]
mod tests;
mod timeline;
mod window;
mod wishes;

pub use attempt::{Attempt, End, Offer};
pub use bad_proof::BadProof;
pub use config::{
    Addressing, ChildPolicy, Config, FRAGMENT, Lifetimes, Limits, NATT_PORT, PORT, Peer, PeerRole,
    Slot, Stance, Timers, ZonePolicy,
};
pub use counters::{Counters, DropReason};
pub use down_reason::{DownReason, PeerMisbehaved};
pub use engine::Engine;
pub use event::Event;
pub use extension::configuration::Inside;
pub use extension::fragment::Uncut;
pub use extension::migration::{is_signed, sign_token, token_key};
pub use extension::mode::BadMode;
pub use extension::nat::Nat;
pub use extension::overlap::Windows;
pub use extension::ppk::{BadPpk, Ppk};
pub use extension::redirect::Elsewhere;
pub use extension::slot::{is_slot, name as slot_name};
pub use extension::tcp::Tcp;
pub use misuse::{ApiMisuse, CannotMove, CannotReauthenticate, CannotRedirect, UnknownChild};
pub use pool::Pool;
pub use refusal::{GrantRefusal, KeyRefusal, Refusal, Unfollowed};
pub use sender::Sender;
pub use signature::{Credential, NotVerified, Signer};
pub use status::{KeyLog, SaState, SaStatus};
