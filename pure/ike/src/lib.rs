//! The IKEv2 engine (RFC 7296): all IKE SAs of one host, without sockets, clock or randomness of
//! its own.
//!
//! # Driving the engine
//!
//! An [`Engine`] has four kinds of methods.
//!
//! * **Commands**: [`Engine::initiate`], [`Engine::close`], [`Engine::shutdown`], [`Engine::bar`],
//!   [`Engine::reconfigure`], [`Engine::renew`], [`Engine::rekey_child`], [`Engine::rekey_ike`],
//!   [`Engine::end_unencrypted`], [`Engine::open_child`], [`Engine::close_child`],
//!   [`Engine::release_child`], [`Engine::reauthenticate`], [`Engine::redirect`],
//!   [`Engine::move_to`], [`Engine::probe`], [`Engine::add_path`], [`Engine::remove_path`],
//!   [`Engine::note_path_stray`], [`Engine::add_path_traffic`], [`Engine::remove_path_traffic`],
//!   [`Engine::hasten`], [`Engine::hand_over`], [`Engine::distribute`], [`Engine::revoke`],
//!   [`Engine::answer_grant`], [`Engine::request_keys`], [`Engine::answer_request`],
//!   [`Engine::tell_neighbours`], [`Engine::ask_ping_counts`], [`Engine::note_pings`],
//!   [`Engine::note_inbound`], [`Engine::set_wall_clock`],
//!   [`Engine::restore_leases`], [`Engine::refer_by`].
//! * **Inputs**: [`Engine::handle_datagram`] for an IKE message that arrived (or
//!   [`Engine::ask_for_cookie`], if [`Engine::sender`] asks for it),
//!   [`Engine::handle_disconnected`] for a lost TCP connection, [`Engine::handle_stored`] for an
//!   outcome of the store of sessions, [`Engine::handle_timeout`] for an expired deadline. Inputs
//!   never fail. Events and [`Counters`] report the outcome.
//! * **Outputs**: [`Engine::poll_lease`], [`Engine::poll_transmit`], [`Engine::poll_event`],
//!   [`Engine::poll_store`], [`Engine::poll_timeout`]. After every command or input, drain the
//!   first four in that order, then read the last.
//! * **Getters**: everything else.
//!
//! # Structure
//!
//! One IKE SA is a state machine whose states are structs (`sa`). An SA that is up is a `session`:
//! data that every `task` may change. A task is a request, what its answer leads to, and the answer
//! to the same request of the peer, in one file for each concern. Tasks queue requests and return
//! what has to happen; the dispatch of the state (`sa/established.rs`) sends and performs it.
//! `engine` has the commands, the inputs and the indices of all SAs.
//!
//! The parts that all exchanges share are in `window` (message IDs, retransmission), `keys` (the
//! key schedule, as types), `cipher` and `exchange` (the payloads of each message). Every extension
//! has a file of its own in `extension` for its payloads and the rules that it quotes. `pool`
//! leases inner addresses to peers.
//!
//! **Invariants.** A message that fails its integrity check changes nothing but a counter. Only
//! `keys::ProvedKeys` can derive keys of child SAs, and they exist only after the peer's AUTH has
//! been verified. The responder never retransmits on its own. The cost of unauthenticated peers is
//! bounded in number and time.

mod allowed_suites;
mod attempt;
mod auth;
mod bad_proof;
mod certificate_terms;
mod child;
mod child_overrides;
mod cipher;
mod config;
mod counters;
mod credential;
mod destination;
mod domain;
mod down_reason;
mod engine;
mod event;
mod exchange;
mod extension;
mod ike_spi;
mod incarnation;
mod keys;
mod limits;
mod misuse;
mod peer_table;
mod placed;
mod policy;
mod pool;
mod prf;
mod proposal;
mod refusal;
mod repeats;
mod runs;
mod sa;
mod selectors;
mod session;
mod shown;
mod signature;
mod spi;
mod task;
#[cfg(test)]
mod tests;
mod tickets;
mod users;
mod window;

pub use attempt::{Attempt, End, Offer};
pub use bad_proof::BadProof;
pub use certificate_terms::CertificateTerms;
pub use config::{
    Addressing, ChildPolicy, Config, Elsewhere, FRAGMENT, Lifetimes, Limits, NATT_PORT, PORT,
    PathRule, Peer, PeerRole, PeerTerms, Resumption, Slot, Stance, Tcp, Timers, Unencrypted,
    UserPolicy, ZonePolicy, is_slot, slot_name,
};
pub use counters::{Counters, DropReason};
pub use credential::{Credential, Signer};
pub use destination::{BadDestination, Destination};
pub use domain::Domain;
pub use down_reason::{DownReason, PeerMisbehaved};
pub use engine::{Engine, KeyLog, SaState, SaStatus, Sender};
pub use event::{Event, Measured, NotHandedOver};
pub use extension::configuration::Inside;
pub use extension::fragment::Uncut;
pub use extension::live_path::live_path;
pub use extension::migration::{is_signed, sign_token, token_key};
pub use extension::mode::BadMode;
pub use extension::nat::Nat;
pub use extension::overlap::Windows;
pub use extension::path_traffic::{PathTraffic, path_of, path_traffic};
pub use extension::ppk::{BadPpk, Ppk};
pub use incarnation::Incarnation;
pub use misuse::{ApiMisuse, CannotMove, CannotReauthenticate, CannotRedirect, UnknownChild};
pub use placed::Unplaced;
pub use pool::Pool;
pub use refusal::{GrantRefusal, KeyRefusal, NotResumed, Refusal, Unfollowed};
pub use signature::NotVerified;
