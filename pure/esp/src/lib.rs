//! The data plane: protects outbound datagrams, and verifies and decrypts inbound packets.
//!
//! A [`Worker`] owns its SAs by value and works on batches of caller-owned [`Packet`]s. Each packet
//! is sealed or opened inside its own buffer. This path takes no locks and does not allocate,
//! except for an SA's replay window, which its first packet creates. Two kinds of SA share one
//! path, and the SPI selects between them: plain ESP (RFC 4303, 4106, 8750), and composite SAs,
//! whose packets are divided into zones (DESIGN section 3).
//!
//! Several threads hold a [`WorkerHandle`] each among [`Workers`]. Every SA belongs to one worker,
//! and every worker is behind a lock that is taken once per batch (`workers.rs`). Control sends
//! [`Command`]s and reads [`Report`]s.
//!
//! *Outbound*: policy ([`Spd`]), the SA that protects the packet, a fresh sequence number,
//! `classify`, seal. *Inbound*: SPI, replay check, every ICV, second replay check and window
//! update. Only then is the datagram reassembled, checked against the SA's selectors and released.
//! Dropped packets are returned with a [`DropReason`] and counted.
//!
//! An SA in transport or BEET mode seals the octets behind the IP header, and the receiver rebuilds
//! that header (`pair.rs`). Everything else works as in tunnel mode.
//!
//! Datagrams may be padded to hide their length from observers (`padding.rs`).
//!
//! Some datagrams may be sent unencrypted, if both ends agreed to that (`level.rs`).
//!
//! A [`Licensed`] node decrypts the zones it has keys for in a copy, and never modifies the packet.
//! With a grant to write, it appends a request for a change (`overlay.rs`), which the endpoint
//! applies. With a grant to inject, it repeats acknowledgements of one endpoint to the other
//! (`injection.rs`).
//!
//! The socket owns the outer IP header, except for two fields. ECN is copied between inner and
//! outer header (`ecn.rs`), and an administrator sets the DSCP.

mod aad;
mod claims;
mod command;
mod division;
mod drop;
mod ecn;
mod foreign;
mod guard;
mod inbound;
mod injection;
mod key;
mod lane;
mod level;
mod licensed;
mod link;
mod observed;
mod order;
mod outbound;
mod overlay;
mod pace;
mod packet;
mod padding;
mod pair;
mod plain;
mod policy;
mod prefetch;
mod reach;
mod replay;
mod report;
mod room;
mod sa;
mod scratch;
mod source;
mod sync;
mod unencrypted;
mod view;
mod worker;
mod workers;
mod zoned;

pub use command::{Command, PeerSettings};
pub use drop::DropReason;
pub use ecn::Congestion;
pub use foreign::Foreign;
pub use key::{Unusable, grant_key};
pub use level::LevelStatus;
pub use licensed::{Licensed, NotOpened, NotWritten};
pub use link::Link;
pub use observed::Observed;
pub use pace::{Pace, Rates};
pub use packet::{HEADROOM, Packet, TAILROOM};
pub use policy::{Action, Policy, Protected, Spd};
pub use report::{Counters, Report, SaTraffic, Traffic};
pub use room::{PathMtu, Searched};
pub use sa::SaStatus;
pub use scratch::Scratch;
pub use view::{Direction, Headers, View};
pub use worker::{Sink, Worker};
pub use workers::{WorkerHandle, Workers};
