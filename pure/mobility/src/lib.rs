//! Which path a tunnel takes, at the end that decides (RFC 4555 section 2.1: the one that began it).
//!
//! [`Paths`] is told three things: by which pairs of addresses packets can leave at all, the best
//! first ([`Paths::handle_ways`]); that nobody answers on the path in use; and that somebody does, on
//! that path or another. It says two: take this path, or try it ([`Paths::poll_step`]).
//!
//! * As long as the best way works, it is taken: which one that is, the system says by its routes.
//! * A path that is silent is left when, and only when, somebody answers on another. All others are
//!   tried one after the other until that happens or the tunnel is given up: a hint that a path is
//!   dead may be wrong, or forged (section 5.4), an answer is not.
//! * A way that was found silent or was refused is not taken again before it has been away: so a
//!   path that is up and yet dead is not returned to with every change of another one.
//! * Where packets may go in datagrams and in a stream, every way is there twice. Datagrams are the
//!   better ones: a stream is taken when nothing else answers, and left for a way that is new (RFC 9329
//!   section 7.1).
//! * An operator's choice holds as long as its address is there and works.
//!
//! No message, no clock and no system is known there.
//!
//! Another way to move is [`mobile_ip`]: the address stays, and agents in the network know where it is.

pub mod mobile_ip;
mod paths;
#[cfg(test)]
mod tests;

pub use paths::{Candidate, Carriage, NoWay, Paths, Standing, Step, Way};
