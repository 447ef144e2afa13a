//! What a licensed node does with the TCP headers it may see: it repairs losses ([`Snoop`]), says which windows are to be
//! lower ([`Regulator`]), and what is said in the name of an end that is silent ([`StandIn`]). The last two only say what;
//! `esp` seals it.
//!
//! # SNOOP
//!
//! It is that of Balakrishnan et al. (1995), over multi-layered IPsec (*Mobile multi-layered IPsec*, section 5.1.2).
//!
//! A TCP sender takes every loss for congestion and halves its rate. On a wireless hop most losses
//! are bit errors. The node before that hop keeps the packets of each connection until the
//! receiver acknowledges them, sends again what the hop has lost, and keeps from the sender the
//! duplicate acknowledgements that would make it slow down.
//!
//! ```text
//!  server ── gateway ══ Side::Wired ══ [ licensed node ] ══ Side::Wireless ══ mobile node
//!              data ────────────────────►  cache  ─────────────────────►
//!              ◄──────────────────────── Verdict  ◄───────────── acknowledgements
//! ```
//!
//! ## Contract
//!
//! * Packets are repeated, never made or changed: what [`Snoop::poll_transmit`] gives is octet for
//!   octet what [`Segment::sealed`] once was. So a sealed packet goes out under its own ESP
//!   sequence number, no key is needed, no nonce is used for anything new, and a copy too many ends
//!   at the endpoint's replay window without TCP noticing.
//! * A packet is sent again only while it is less than half the endpoint's replay window behind
//!   the highest number seen (DESIGN section 7).
//! * Data is always forwarded. An acknowledgement is suppressed only if it carries nothing else: no
//!   payload, no SYN, FIN, RST or URG, no other window or congestion marks than the last one, and no option
//!   but SACK and timestamps.
//! * What is not fresh by the node's replay window is forwarded and changes nothing.
//! * State belongs to a connection *within one composite SA* (or in the clear). Another SA with
//!   the same inner addresses meets other state. A rekey does not end it: the new SA goes on in the
//!   old one's line, and what was sealed by either is sent again as long as its keys are held.
//! * TCP in the clear works alike. There copies do reach the receiver, which answers each with a
//!   duplicate acknowledgement; these echoes are counted and not taken for losses.
//! * Memory is bounded by [`Config`]: connections, packets of one connection, octets of all. Where it is used up the line with
//!   the most gives way, so that one line's connections take the place of its own.
//! * An acknowledgement that is held is sent before its SA or its connection is forgotten, and before so many others have
//!   passed that it could not be sent any more.
//!
//! ## How it works
//!
//! *Loss* is proved, not guessed: a packet is lost if one sent after it has arrived and it has not.
//! `repair.rs` says how that one rule covers SACK, duplicate counts, partial acknowledgements and
//! lost retransmissions. *Acknowledgements* have a table of cases in `acknowledgement.rs`. *Data*,
//! in `flow.rs`: what comes in order is cached; what the sender sends again, and what comes out of
//! order without having been here, is the sender's business: it is cached and repaired, but its
//! duplicate acknowledgements go through, because its congestion control is at work. The *timers*:
//! after a retransmission timeout without any sign of life the oldest packet is sent again, with
//! doubling time; after the persist time everything is, once; after the garbage time the connection
//! is forgotten.
//!
//! Timestamps need no rule: a repeated packet carries its old timestamp, the receiver echoes that
//! one when the hole is filled (RFC 7323 section 4.3), and so a sender that had gone into recovery
//! after all sees that its retransmission was not needed and undoes the reduction (RFC 3522).
//!
//! ## Limits
//!
//! * The original does not cache what finds the wireless queue full, so that congestion shows. A
//!   node that forwards through the kernel cannot see that queue. What stands in for it is
//!   [`Config::packets_per_flow`]: unacknowledged packets of a connection *are* its backlog, and
//!   what exceeds the limit is the sender's to repair. Set it near the queue's length.
//! * Retransmissions wait in the same queue as everything else. A deep queue makes each repair
//!   take a queue's time, and during slow start that can outlast a sender's timer.
//! * Only the direction from wired senders to wireless receivers is helped.
//! * Whoever holds the composite SA's header key, or is on the path of clear TCP, can spoil the
//!   state of a connection in it: that costs the repairs, never data.

mod acknowledgement;
mod cache;
mod config;
mod counters;
mod flow;
mod lines;
mod regulator;
mod repair;
mod rtt;
mod segment;
mod snoop;
mod stand_in;
mod status;

pub use config::Config;
pub use counters::Counters;
pub use regulator::Regulator;
pub use segment::{Position, Segment, Side, Verdict};
pub use snoop::Snoop;
pub use stand_in::{Answer, Patience, StandIn};
pub use status::{FlowStatus, State};
