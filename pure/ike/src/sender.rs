//! The senders of messages, judged before the messages are read: which are handled at once, and which wait in which place.
//!
//! A first message from an address that may be forged costs an octet to send and a key agreement to answer. A
//! message that shows that its sender receives at its address is scarce, so it never waits behind those
//! that do not. Once cookies are wanted the others need no place at all: their answer is one MAC over what stands in
//! the datagram (RFC 7296 section 2.6).

use crate::Engine;
use crate::engine::own_spi;
use model::{Instant, Origin, Path, Transmit};
use wire::ike::{First, Header};

/// What is known of a message's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The message belongs to an IKE SA that is up, or to none: nothing to wait for.
    Settled,
    /// The sender has proved no identity, but receives at its address: the message has a cookie, belongs to a
    /// half-open IKE SA, or came in a stream.
    Reachable,
    /// The message begins an IKE SA, and its address may be forged.
    Unverified,
    /// The same, and so many IKE SAs are half open that it has to come again with a cookie
    /// ([`Engine::ask_for_cookie`]).
    Unpaid,
}

impl Engine {
    /// Judges a message that [`Engine::handle_datagram`] has not got yet.
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

    /// Handles a message that is [`Sender::Unpaid`]. Gives the answer, which nothing else has to be sent before.
    pub fn ask_for_cookie(&mut self, path: Path, octets: &[u8], now: Instant) -> Option<Transmit> {
        self.out.counters.received += 1;
        let others = self.out.transmits.len();
        self.send_cookie(path, octets, now);
        self.out.transmits.split_off(others).pop_front()
    }

    /// One that was answered before, or is our own, is asked for nothing.
    fn is_unpaid(&self, path: Path, spi_i: u64) -> bool {
        let origin = Origin::new(path.remote.ip(), &self.config.addresses_of_peers);
        self.half_open.is_crowded(origin, &self.config.limits)
            && self.half_open.find(path.remote, spi_i).is_none()
            && !self.by_spi.contains_key(&spi_i)
    }
}
