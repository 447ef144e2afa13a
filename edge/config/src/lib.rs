//! The configuration: one strict TOML file, read into types that need no further checks.
//!
//! [`load`] reads the file and the pre-shared keys that it names. The TOML library parses the text;
//! a small reader then reads each table by its rows (`keys/`). The keys of the rows *are* the keys
//! allowed, and any other key is reported as unknown. One pass finds every fault, not only the
//! first. Each fault has a line, a column, a description and a fix. A [`Config`] exists only if the
//! list of faults is empty. Settings that are legal but worth a second look (above all a licensed
//! payload) are in [`Config::warnings`].
//!
//! [`Config::diff`] compares a running daemon's configuration with a new one, key by key, and
//! states the effect of each change.
//!
//! [`described`] returns what the rows say of each key. The reference page and the examples in
//! `examples/` repeat it.

mod address;
mod aead;
mod audit;
mod check;
mod child;
mod config;
mod credential;
mod diff;
mod divert;
mod domain;
mod duplicate;
mod encoded;
mod fault;
mod handover;
mod key;
mod keys;
mod layout;
mod level;
mod licence;
mod link;
mod listen;
mod live_paths;
mod machine;
mod metrics;
mod mobility;
mod mode;
mod party;
mod peer;
mod place;
mod policy;
mod pool;
mod ppk;
mod prefix;
mod psk;
mod pubkey;
mod reader;
mod redirect;
mod revocation;
mod sessions;
mod set;
mod strength;
#[cfg(test)]
mod tests;
mod tfc;
mod traffic;
mod tunnel;
mod unencrypted;
mod users;
mod value;
mod warning;
mod zone;

pub use address::{Address, Host, OnLink};
pub use aead::Aead;
pub use audit::Audit;
pub use child::Child;
pub use config::{Config, DEFAULT_FILE, DEFAULT_SOCKET, LogLevel, load};
pub use credential::{Credential, expiry, today};
pub use diff::{Change, What};
pub use divert::{Divert, Snoop, StandIn};
pub use domain::Domain;
pub use fault::{Error, Fault, Faults};
pub use handover::{Handover, Slot};
pub use key::PrivateKey;
pub use keys::{Described, Effect, described};
pub use level::LevelPolicy;
pub use link::LinkedHost;
pub use listen::Listen;
pub use machine::{Need, Setting};
pub use metrics::MetricsAddress;
pub use mobility::{
    Agent, Algorithm, Association, ForeignAgent, HomeAgent, ListedHomeAgent, MOBILE_DEVICE, Mobile,
    MobileNode, Mobility, Nat, Replay, Resident,
};
pub use party::{Gateway, Licensed, Neighbour, Party, Terms};
pub use peer::{Addressing, Leak, Peer, PeerTerms, Resume, Routing, Start, Tcp};
pub use place::Places;
pub use policy::{Action, Policy};
pub use pool::{DEFAULT_STORE, Pool};
pub use ppk::Ppk;
pub use prefix::Prefix;
pub use psk::Psk;
pub use redirect::{Redirect, When};
pub use sessions::Sessions;
pub use tfc::Tfc;
pub use traffic::InterfaceTraffic;
pub use tunnel::{Offload, PathMtu, Tunnel, ZONED_OVERHEAD, default_mtu};
pub use unencrypted::Unencrypted;
pub use warning::Warning;
pub use zone::{Stance, ZonePolicy};
