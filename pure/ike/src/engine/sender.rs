//! Classification of message senders, before the messages are read: a message is handled at once,
//! or waits in one of three queues.
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
    /// The message belongs to an IKE SA that is up, or to none, or its network has no place for
    /// one more half-open SA. It need not wait.
    Settled,
    /// The message belongs to a half-open IKE SA. Both ends have spent time on it, which is wasted
    /// if the message is lost.
    Begun,
    /// The sender is not authenticated, but receives at its source address: the message has a
    /// cookie, or came over TCP.
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
                true => Sender::Begun,
                false => Sender::Settled,
            };
        }
        if self.has_no_place(path, &header, now) {
            return Sender::Settled;
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

    /// Returns true for a first message from a network whose half-open SAs occupy all of its
    /// places, and give way to none yet. Neither its content nor its cookie matters, so it is
    /// dropped unread, and not asked for a cookie.
    pub(crate) fn has_no_place(&self, path: Path, header: &Header, now: Instant) -> bool {
        header.is_first()
            && self
                .half_open
                .is_full(self.origin(path), &self.config.limits, now)
            && self.is_new(path, header.spi_i)
    }

    /// Returns true if an initiator has to return a cookie.
    fn is_unpaid(&self, path: Path, spi_i: u64) -> bool {
        self.half_open
            .is_crowded(self.origin(path), &self.config.limits)
            && self.is_new(path, spi_i)
    }

    /// Returns true for the SPI of a first message that was not answered before, and is not ours.
    fn is_new(&self, path: Path, spi_i: u64) -> bool {
        self.half_open.find(path.remote, spi_i).is_none() && !self.by_spi.contains_key(&spi_i)
    }

    /// Returns the origin of a message.
    pub(crate) fn origin(&self, path: Path) -> Origin {
        Origin::new(path.remote.ip(), &self.config.addresses_of_peers)
    }
}
