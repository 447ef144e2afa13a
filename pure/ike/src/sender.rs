//! Classification of message senders, before the messages are read: a message is handled at once,
//! or waits in one of two queues.
//!
//! A first message with a possibly forged source address is cheap to send and costs a key agreement
//! to answer. A message from a verified address is scarce, so it never waits behind unverified
//! ones. Once cookies are required, unverified messages need no queue at all: the answer is one MAC
//! over fields of the datagram (RFC 7296 section 2.6).

use crate::Engine;
use crate::engine::own_spi;
use model::{Instant, Origin, Path, Transmit};
use wire::ike::{First, Header};

/// Classification of a message's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The message belongs to an IKE SA that is up, or to none. It need not wait.
    Settled,
    /// The sender is not authenticated, but receives at its source address: the message has a
    /// cookie, belongs to a half-open IKE SA, or came over TCP.
    Reachable,
    /// The message begins an IKE SA, and its source address may be forged.
    Unverified,
    /// The same, and so many IKE SAs are half open that the initiator has to return a cookie
    /// ([`Engine::ask_for_cookie`]).
    Unpaid,
}

impl Engine {
    /// Classifies the sender of a message that has not been passed to [`Engine::handle_datagram`]
    /// yet.
    pub fn sender(&self, path: Path, octets: &[u8], now: Instant) -> Sender {
        let Ok(header) = Header::peek(octets) else {
            return Sender::Settled;
        };
        let own_spi = own_spi(&header);
        if own_spi != 0 {
            let half_open = |id| self.half_open.contains(id);
            return match self.by_spi.get(&own_spi).copied().is_some_and(half_open) {
                true => Sender::Reachable,
                false => Sender::Settled,
            };
        }
        let Some(first) = First::peek(octets) else {
            return Sender::Unverified;
        };
        if path.is_stream() || self.cookies.is_paid(&first, path.remote, now) {
            return Sender::Reachable;
        }
        match self.is_unpaid(path, header.spi_i) {
            true => Sender::Unpaid,
            false => Sender::Unverified,
        }
    }

    /// Handles a message of a [`Sender::Unpaid`] sender. Returns the answer, which may be sent
    /// before all other output.
    pub fn ask_for_cookie(&mut self, path: Path, octets: &[u8], now: Instant) -> Option<Transmit> {
        self.out.counters.received += 1;
        let others = self.out.transmits.len();
        self.send_cookie(path, octets, now);
        self.out.transmits.split_off(others).pop_front()
    }

    /// Returns true if an initiator has to return a cookie. Messages that were answered before, or
    /// are our own, need none.
    fn is_unpaid(&self, path: Path, spi_i: u64) -> bool {
        let origin = Origin::new(path.remote.ip(), &self.config.addresses_of_peers);
        self.half_open.is_crowded(origin, &self.config.limits)
            && self.half_open.find(path.remote, spi_i).is_none()
            && !self.by_spi.contains_key(&spi_i)
    }
}
