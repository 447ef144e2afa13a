//! Path selection for one tunnel, and Mobile IPv4.
//!
//! [`Paths`] selects the path at the end that decides (RFC 4555 section 2.1: the original
//! initiator). Its inputs are the address pairs that packets can leave by, best first
//! ([`Paths::handle_ways`]), silence on the path in use, and answers on that path or another. Its
//! output is a [`Step`] ([`Paths::poll_step`]): take a path, or try it.
//!
//! * The tunnel takes the best way while that way works. The system's routes decide the order.
//! * If both ends allow hand-overs without a pause ([`Paths::allow_soft`]), the tunnel is handed
//!   over while its current way works, and moves at once only if that way is gone. Ways are then
//!   measured, and a way that fades is left before it is silent (`soft.rs`). So is one whose
//!   network has a weak signal, if an external source reports it ([`Signals`]).
//! * The tunnel leaves a silent path only when another path answers. Until then, or until the
//!   tunnel is given up, all other paths are tried in turn: a hint that a path is dead may be wrong
//!   or forged (section 5.4), an answer is not.
//! * A way that was silent or refused is not selected again until it has disappeared and returned.
//!   A path that is up but dead therefore does not attract the tunnel whenever another path
//!   changes. If ways are measured, several answers in a row count as well.
//! * If packets can travel both in datagrams and in a stream, the list has each way twice.
//!   Datagrams are preferred: a stream is selected only if nothing else answers, and left for any
//!   way that is new (RFC 9329 section 7.1).
//! * An operator's choice holds while its address exists and works.
//!
//! [`Paths`] handles no messages, reads no clock and makes no system calls.
//!
//! [`mobile_ip`] is the alternative: the host keeps its address, and agents in the network track
//! its location.

pub mod mobile_ip;
mod paths;
mod quality;
mod signal;
mod soft;
#[cfg(test)]
mod tests;

pub use paths::{Candidate, Carriage, NoWay, Paths, Standing, Step, Way};
pub use quality::Quality;
pub use signal::{Reported, Signals};
pub use soft::{Failure, Fate, Why};
