//! Performance enhancement by a licensed node, which can read TCP headers but no payload.
//!
//! [`Snoop`] repairs losses, [`WindowLimiter`] chooses lower receive windows, and [`StandIn`]
//! answers for an end that is out of reach. The last two only return a decision; `esp` seals the
//! packets that carry it out.
//!
//! # SNOOP
//!
//! This is the SNOOP of Balakrishnan et al. (1995), over multi-layered IPsec (*Mobile multi-layered
//! IPsec*, section 5.1.2).
//!
//! A TCP sender takes every loss for congestion and halves its rate. On a wireless hop most losses
//! are bit errors. The node before that hop caches the packets of each connection until the
//! receiver acknowledges them and retransmits those that the hop loses. It also hides from the
//! sender the duplicate acknowledgements that would slow the sender down.
//!
//! ```text
//!  server ── gateway ══ Side::Wired ══ [ licensed node ] ══ Side::Wireless ══ mobile node
//!              data ────────────────────►  cache  ─────────────────────►
//!              ◄──────────────────────── Verdict  ◄───────────── acknowledgements
//! ```
//!
//! ## Contract
//!
//! * Packets are repeated, never created or changed: [`Snoop::poll_transmit`] returns each packet
//!   octet for octet as it came in [`Segment::sealed`]. A sealed packet therefore goes out under
//!   its own ESP sequence number. No key is needed, no nonce is used for anything new, and the
//!   endpoint's replay window drops a surplus copy before TCP sees it.
//! * A packet is retransmitted only while it is less than half the endpoint's replay window behind
//!   the highest number seen (DESIGN section 7).
//! * Data is always forwarded. An acknowledgement is suppressed only if it carries nothing else: no
//!   payload, no SYN, FIN, RST or URG, the same window and congestion marks as the previous one,
//!   and no option other than SACK and timestamps.
//! * A packet that the node's replay window has already seen is forwarded and changes no state.
//! * State belongs to a connection *within one composite SA* (or in clear). The same inner
//!   addresses in another SA have state of their own. State survives a rekey: the new SA continues
//!   the old one's line, and packets sealed by either SA are retransmitted while its keys are held.
//! * TCP in clear works alike. Its surplus copies do reach the receiver, which answers each with a
//!   duplicate acknowledgement; these echoes are counted and not taken for losses.
//! * Memory is bounded by [`Config`]: connections, packets of one connection, octets in total. At a
//!   limit the gateway with the most gives way, and of its lines the one with the most. So a
//!   gateway that grows displaces its own connections, over however many lines it spreads them.
//! * A held acknowledgement is sent before its SA or its connection is forgotten, and before it
//!   falls too far behind in the replay window to be sent at all.
//!
//! ## How it works
//!
//! *Losses* are proved, not guessed: a packet is lost if a packet sent after it has arrived and it
//! has not. `repair.rs` explains how that one rule covers SACK, duplicate counts, partial
//! acknowledgements and lost retransmissions.
//!
//! *Acknowledgements* follow the table of cases in `acknowledgement.rs`.
//!
//! *Data* is handled in `flow.rs`. Segments in order are cached. A segment that the sender
//! retransmits, or that arrives out of order for the first time, is cached and repaired as well.
//! Its duplicate acknowledgements pass, because the sender's congestion control is at work.
//!
//! There are three *timers*. After a retransmission timeout without progress the oldest packet is
//! retransmitted, with a doubling timeout. After the persist time all packets are retransmitted,
//! once. After the garbage time the connection is forgotten.
//!
//! Timestamps need no rule. A repeated packet carries its old timestamp, and the receiver echoes
//! that timestamp when the hole is filled (RFC 7323 section 4.3). A sender that had started
//! recovery sees from the echo that its retransmission was not needed and undoes the reduction (RFC
//! 3522).
//!
//! ## Limits
//!
//! * The original leaves packets uncached when they find the wireless queue full, so that
//!   congestion shows. A node that forwards through the kernel cannot see that queue.
//!   [`Config::packets_per_flow`] takes its place: unacknowledged packets of a connection *are* its
//!   backlog, and the sender has to repair the losses beyond the limit. Set it near the queue's
//!   length.
//! * Retransmissions wait in the same queue as all other packets. With a deep queue each repair
//!   takes the queue's delay, and during slow start that can outlast a sender's timer.
//! * Only the direction from wired senders to wireless receivers is helped.
//! * A holder of the composite SA's header key, or an attacker on the path of TCP in clear, can
//!   corrupt the state of a connection. That costs the repairs, never data.

mod acknowledgement;
mod cache;
mod config;
mod counters;
mod flow;
mod lines;
mod repair;
mod rtt;
mod segment;
mod snoop;
mod stand_in;
mod status;
mod window_limiter;

pub use config::Config;
pub use counters::Counters;
pub use segment::{Line, Owner, Position, Segment, Side, Verdict};
pub use snoop::Snoop;
pub use stand_in::{Answer, Patience, StandIn};
pub use status::{FlowStatus, State};
pub use window_limiter::WindowLimiter;
