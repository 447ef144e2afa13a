//! The data plane: which datagrams are protected, how, and what arrives of them.
//!
//! A [`Worker`] owns its SAs by value and works on batches of caller-owned [`Packet`]s, each sealed
//! or opened inside its own buffer: nothing on that way locks or allocates, but for the replay window
//! that the first packet of an SA makes. Two kinds of SA share one path and never a packet, for the SPI
//! says which kind it is: plain ESP (RFC 4303, 4106, 8750) and composite SAs, whose packets are cut
//! into zones (DESIGN section 3).
//!
//! Several threads have a [`Seat`] each among [`Workers`]: an SA is one worker's, and each worker is behind a lock that is
//! taken once for a batch (`workers.rs`).
//!
//! *Outbound*: policy ([`Spd`]), the newest SA whose selectors fit, a sequence number that is never
//! given twice, `classify`, seal. *Inbound*: SPI, replay check, every ICV, replay re-check and
//! move, and only then the datagram is put together, held against the SA's selectors and released.
//! What does not come through is handed back with its [`DropReason`] and counted.
//!
//! An SA in transport or BEET mode seals what follows the IP header, and its receiver makes that
//! header anew (`pair.rs`); all else is as in a tunnel.
//!
//! Datagrams may be padded, so that nobody outside sees how long they are (`padding.rs`).
//!
//! Some datagrams may go without encryption, if both ends agreed so (`level.rs`).
//!
//! A [`Licensed`] node opens, in a copy, the zones whose keys it was granted, and changes nothing. If it was
//! granted to write, it appends what it wants changed (`overlay.rs`), and the endpoint does that. If it was
//! granted to inject, it says once more what one end has said (`injection.rs`), and the other hears it.
//!
//! The outer IP header is the socket's but for its ECN field, which goes from header to header (`ecn.rs`),
//! and its DSCP, which is as an administrator has it.

mod aad;
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
mod order;
mod outbound;
mod overlay;
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
mod view;
mod worker;
mod workers;
mod zoned;

pub use drop::DropReason;
pub use ecn::Congestion;
pub use foreign::Foreign;
pub use key::{Unusable, grant_key};
pub use level::LevelStatus;
pub use licensed::{Licensed, NotOpened, NotWritten};
pub use link::Link;
pub use packet::{HEADROOM, Packet, TAILROOM};
pub use policy::{Action, Policy, Protected, Spd};
pub use report::{Counters, Report, SaTraffic, Traffic};
pub use room::PathMtu;
pub use sa::SaStatus;
pub use scratch::Scratch;
pub use view::{Direction, Headers, View};
pub use worker::{Sink, Worker};
pub use workers::{Seat, Workers};
