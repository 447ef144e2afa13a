//! Messages of strangers: what the first of an initiator is answered, and all that belongs to no SA.

use crate::Engine;
use crate::counters::DropReason;
use crate::exchange::notify;
use crate::extension::{cookie, padding};
use crate::sa::await_auth::{AwaitAuth, Rejected};
use crate::sa::{Arrived, Beside, Sa};
use model::{IkeSaId, Instant, Path};
use std::time::Duration;
use wire::ike::{Datagram, ExchangeType, Flags, Header, Message, NotifyType, Payload, VERSION_2};

/// Unprotected answers to strangers of another version: not more often than this.
const STRAY_ANSWER_PAUSE: Duration = Duration::from_secs(1);

impl Engine {
    /// A message with no SPI of ours: the first of an initiator, or nothing.
    pub(crate) fn handle_first(&mut self, arrived: &Arrived<'_>, now: Instant) {
        let header = *arrived.datagram.header();
        let first = header.flags.initiator
            && !header.flags.response
            && header.exchange == ExchangeType::IKE_SA_INIT
            && header.message_id == 0
            && header.spi_i != 0;
        let Datagram::Clear(request) = &arrived.datagram else {
            return self.drop(DropReason::UnknownSa);
        };
        if !first {
            return self.drop(DropReason::UnknownSa);
        }
        if self.by_spi.contains_key(&header.spi_i) {
            return self.drop(DropReason::Reflected);
        }
        let from = arrived.path.remote.ip();
        match self.half_open.find(arrived.path.remote, header.spi_i) {
            Some(id) => self.answer_again(id, arrived),
            None if self.half_open.is_full(from, &self.config.limits) => {
                self.drop(DropReason::HalfOpenLimit);
            }
            None => {
                // "In general, Cookies provide less value in the case of TCP encapsulation ... the
                // Initiator's IP address has been verified" (RFC 9329 section 6.3).
                let paid = arrived.path.is_stream() || self.cookies.is_paid(request, from);
                match self.half_open.is_crowded(from, &self.config.limits) && !paid {
                    true => self.ask_for_cookie(request, arrived, now),
                    false => self.respond(request, paid, arrived, now),
                }
            }
        }
    }

    fn respond(&mut self, request: &Message, paid: bool, arrived: &Arrived<'_>, now: Instant) {
        let mut core = self.new_core(arrived.path, false, now);
        core.spi_i = request.header.spi_i;
        core.spi_r = self.fresh_spi();
        let mut ctx = self.context(Beside::default(), now);
        match AwaitAuth::begin(request, arrived.octets, paid, &mut core, &mut ctx) {
            Ok(state) => {
                self.out.counters.taken += 1;
                let (remote, spi_i) = (core.path.remote, core.spi_i);
                let id = self.insert(Box::new(Sa { core, state }));
                self.half_open.insert(remote, spi_i, id);
            }
            Err(Rejected::Dropped(why)) => self.drop(why),
            Err(Rejected::Answered(kind, data)) => {
                self.drop(match kind {
                    NotifyType::REDIRECT => DropReason::Redirected,
                    _ => DropReason::Refused,
                });
                let Arrived { octets, path, .. } = *arrived;
                self.answer_stray(&request.header, path, octets, notify(kind, data), now);
            }
            Err(Rejected::Unpaid) => self.ask_for_cookie(request, arrived, now),
        }
    }

    /// Too many initiators have not proved who they are to keep something for one more that may
    /// not even be where it says it is, or to send it more than it sent.
    fn ask_for_cookie(&mut self, request: &Message, arrived: &Arrived<'_>, now: Instant) {
        let from = arrived.path.remote.ip();
        let Some(cookie) = self.cookies.ask(request, from, &mut self.rng, now) else {
            return self.drop(DropReason::WrongPayloads);
        };
        self.drop(DropReason::CookieWanted);
        let Arrived { octets, path, .. } = *arrived;
        self.answer_stray(&request.header, path, octets, cookie::payload(&cookie), now);
    }

    /// The first message came again: so does its answer, if it is the same message.
    fn answer_again(&mut self, id: IkeSaId, arrived: &Arrived<'_>) {
        let Some(sa) = self.sas.get_mut(&id) else {
            return;
        };
        let responses = &mut sa.core.responses;
        let arrival = responses.arrival(0, arrived.octets, arrived.path.remote);
        self.context(Beside::default(), Instant::ZERO)
            .answer_again(arrival, arrived.path);
    }

    /// IKEv1 is not answered. A version yet to come is told ours (RFC 7296 section 2.5), but rarely.
    pub(crate) fn handle_other_version(
        &mut self,
        header: &Header,
        path: Path,
        octets: &[u8],
        now: Instant,
    ) {
        if header.major_version() < 2 {
            return self.drop(DropReason::OldVersion);
        }
        self.drop(DropReason::UnknownVersion);
        let first = header.spi_r == 0 && !header.flags.response;
        if first && self.next_stray_answer <= now {
            self.next_stray_answer = now + STRAY_ANSWER_PAUSE;
            let ours = vec![VERSION_2 >> 4];
            let answer = notify(NotifyType::INVALID_MAJOR_VERSION, ours);
            self.answer_stray(header, path, octets, answer, now);
        }
    }

    /// An unprotected answer outside any IKE SA, unless it is longer than the question.
    fn answer_stray(
        &mut self,
        request: &Header,
        path: Path,
        octets: &[u8],
        payload: Payload,
        now: Instant,
    ) {
        let flags = Flags {
            initiator: !request.flags.initiator,
            higher_version: false,
            response: true,
        };
        let header = Header {
            version: VERSION_2,
            flags,
            ..*request
        };
        let payloads = vec![payload];
        let answer = Message { header, payloads }.encode();
        if padding::is_enough(octets, &answer) {
            let mut ctx = self.context(Beside::default(), now);
            ctx.transmit(path, &answer);
        }
    }
}
