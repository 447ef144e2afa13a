//! HTTP for one page, `/metrics`, which a thread of its own serves to a collector.
//!
//! The thread has no access to the daemon. It asks for the page ([`Server::is_wanted`]) once the
//! last one is older than [`FRESH`], so that no number of clients takes more of the daemon's time.
//! A client that sends nothing, reads nothing or sends anything else than a request costs one of
//! [`MOST_CLIENTS`] connections for [`PATIENCE`], at most [`LONGEST_HEAD`] octets, and no time of
//! other clients. A connection carries one request.

mod answer;
mod request;
mod server;
#[cfg(test)]
mod tests;

pub use answer::Refusal;
pub use request::{Head, LONGEST_HEAD};
pub use server::{FRESH, Listener, MOST_CLIENTS, PATIENCE, Server};
