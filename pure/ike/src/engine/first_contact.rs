//! Messages that belong to no IKE SA: an initiator's first message, and all others.

use crate::config::Config;
use crate::counters::DropReason;
use crate::engine::own_spi;
use crate::exchange::notify;
use crate::extension::{cookie, crash, padding, skid};
use crate::sa::arrived::Arrived;
use crate::sa::await_auth::AwaitAuth;
use crate::sa::await_entry::AwaitEntry;
use crate::sa::closing::{Ending, Lingering};
use crate::sa::first_message::{HalfOpenTerms, Rejected};
use crate::sa::turn::{Beside, Turn};
use crate::sa::{Sa, State};
use crate::session::Session;
use crate::{Engine, NATT_PORT, task};
use model::{Carrier, Entry, IkeSaId, Instant, Origin, Path, Spi};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::ike::{
    Datagram, ExchangeType, First, Flags, Header, Message, NotifyType, Payload, VERSION_2,
};

/// Most IKE SAs that are searched for an SPI that the peer does not know.
const MOST_SEARCHED: usize = 64;

/// Minimum delay between unprotected answers to messages of another IKE version.
const STRAY_ANSWER_PAUSE: Duration = Duration::from_secs(1);

impl Engine {
    /// Handles a message without our SPI, which is either an initiator's first or invalid.
    pub(crate) fn handle_first(&mut self, arrived: &Arrived<'_>, now: Instant) {
        let header = *arrived.datagram.header();
        if !header.is_first() {
            return self.handle_unknown(arrived, now);
        }
        let clear;
        let request = match &arrived.datagram {
            Datagram::Clear(request) => request,
            // Its clear payloads are all that can be read before its entry is there.
            Datagram::Sealed(sealed) if skid::is_meant(&header) => match sealed.clear() {
                Ok(read) => {
                    clear = read;
                    &clear
                }
                Err(_) => return self.drop(DropReason::WrongPayloads),
            },
            Datagram::Sealed(_) => return self.drop(DropReason::UnknownSa),
        };
        if self.by_spi.contains_key(&header.spi_i) {
            return self.drop(DropReason::Reflected);
        }
        match self.half_open.find(arrived.path.remote, header.spi_i) {
            Some(id) => self.answer_again(id, request, arrived, now),
            None => self.admit(request, arrived, now),
        }
    }

    /// Drops a message with an SPI of no SA. A request on an IKE SA that was lost with an earlier
    /// process, or that ended without a Delete, is answered with INVALID_IKE_SPI: the receiver "MAY
    /// send a response without cryptographic protection" (RFC 7296 section 1.5). The rate is
    /// limited because sources can be forged. Other SPIs get no answer: their SA has ended in
    /// order, or the response that creates it is still on its way.
    pub(crate) fn handle_unknown(&mut self, arrived: &Arrived<'_>, now: Instant) {
        let Arrived { octets, path, .. } = *arrived;
        if let Datagram::Clear(message) = &arrived.datagram
            && let Some(spi) = crash::told_unknown(message)
        {
            return self.handle_told_unknown(spi, path.remote.ip(), now);
        }
        self.drop(DropReason::UnknownSa);
        let header = arrived.datagram.header();
        let sealed = matches!(arrived.datagram, Datagram::Sealed(_));
        let established = sealed && header.exchange.0 > ExchangeType::IKE_AUTH.0;
        let asks = established && !header.flags.response;
        if asks
            && self.told_unknown.admit(None, path.remote.ip(), now).is_ok()
            && self.ike_spis.is_lost(own_spi(header))
        {
            let unknown = notify(NotifyType::INVALID_IKE_SPI, Vec::new());
            let (spi_i, spi_r) = (header.spi_i, header.spi_r);
            let token = self
                .ike_spis
                .token_of_lost(own_spi(header), spi_i, spi_r)
                .map(crash::payload);
            let with_token = std::iter::once(unknown.clone()).chain(token).collect();
            if !self.answer_stray(header, path, octets, with_token, now) {
                self.answer_stray(header, path, octets, vec![unknown], now);
            }
        }
    }

    /// Tells the sender of an ESP packet of `octets` octets that we know no SA with its SPI: "the
    /// node MAY send an informational message without cryptographic protection" (RFC 7296 section
    /// 1.5). A peer whose SA was lost with an earlier process then asks at once.
    pub fn handle_unknown_spi(&mut self, spi: Spi, path: Path, octets: usize, now: Instant) {
        let path = match path.carrier {
            Carrier::Udp => path,
            Carrier::Tcp => return,
            Carrier::Ip => {
                let local = (path.local.ip(), self.config.natt_port);
                let remote = (path.remote.ip(), NATT_PORT);
                Path::udp(local.into(), remote.into())
            }
        };
        let told = crash::unknown_spi(spi).encode();
        let told_spi = &mut self.told_unknown_spi;
        if told.len() <= octets && told_spi.admit(None, path.remote.ip(), now).is_ok() {
            let mut ctx = self.context(Beside::default(), now);
            ctx.transmit(path, &told);
        }
    }

    /// Asks a peer that seems to say that it does not know the SPI of a child SA. Only the oldest
    /// IKE SAs are searched: an end with many is no client, and anybody can send this.
    fn handle_told_unknown(&mut self, spi: Spi, from: IpAddr, now: Instant) {
        let sends = |session: &Session| session.children.sends_on(spi);
        let is_meant =
            |sa: &Sa| sa.core.path.remote.ip() == from && sa.established().is_some_and(sends);
        let mut searched = self.sas.values().take(MOST_SEARCHED);
        let of = searched.find(|sa| is_meant(sa)).map(|sa| sa.core.id);
        let asked = of.and_then(|id| self.with_established(id, now, task::crash::note_unknown_spi));
        match asked {
            Some(()) => self.out.counters.taken += 1,
            None => self.drop(DropReason::UnknownSa),
        }
    }

    fn admit(&mut self, request: &Message, arrived: &Arrived<'_>, now: Instant) {
        let remote = arrived.path.remote;
        // "In general, Cookies provide less value in the case of TCP encapsulation ... the
        // Initiator's IP address has been verified" (RFC 9329 section 6.3).
        let paid = arrived.path.is_stream() || self.is_paid(arrived.octets, remote, now);
        let origin = self.origin(arrived.path);
        if self.half_open.is_crowded(origin, &self.config.limits) && !paid {
            return self.send_cookie(arrived.path, arrived.octets, now);
        }
        let gives_way = match self.half_open.entry(origin, &self.config.limits, now) {
            Entry::Free => None,
            Entry::Instead(oldest) => Some(oldest),
            Entry::Refused => return self.drop(DropReason::HalfOpenLimit),
        };
        if let Some(sa) = self.respond(request, origin, paid, arrived, now) {
            if let Some(oldest) = gives_way {
                self.out.counters.gave_way += 1;
                self.with_sa(oldest, now, |sa, _| sa.state = State::GONE);
            }
            self.half_open.insert(&sa, origin, now);
            self.insert(sa);
        }
    }

    /// Answers a first message. Returns the SA if it counts as half open.
    fn respond(
        &mut self,
        request: &Message,
        origin: Origin,
        paid: bool,
        arrived: &Arrived<'_>,
        now: Instant,
    ) -> Option<Box<Sa>> {
        let Config { limits, timers, .. } = &*self.config;
        let until = now + self.half_open.patience(origin, limits, timers);
        let mut core = self.new_core(arrived.path, false, now);
        core.spi_i = request.header.spi_i;
        core.spi_r = self.fresh_spi();
        let ctx = &mut self.context(Beside::default(), now);
        let turn = &mut Turn {
            core: &mut core,
            ctx,
        };
        let terms = HalfOpenTerms { paid, until };
        let begun = match request.header.exchange {
            ExchangeType::IKE_SESSION_RESUME | ExchangeType::SKID_RESUME => {
                let begun = AwaitEntry::begin(request, arrived.octets, terms, turn);
                begun.map(|state| State::AwaitEntry(Box::new(state)))
            }
            _ => AwaitAuth::begin(request, arrived.octets, terms, turn),
        };
        match begun {
            Ok(state) => {
                self.out.counters.taken += 1;
                return Some(Box::new(Sa { core, state }));
            }
            // It costs nearly nothing, but who sends it in masses is to bring cookies for the rest.
            Err(Rejected::BadValue) => {
                self.drop(DropReason::KeyExchange);
                let state = Ending::Lingering(Lingering::until(until)).into();
                return Some(Box::new(Sa { core, state }));
            }
            Err(Rejected::Dropped(why)) => self.drop(why),
            Err(Rejected::Answered(kind, data)) => {
                self.drop(match kind {
                    NotifyType::REDIRECT => DropReason::Redirected,
                    _ => DropReason::Refused,
                });
                let Arrived { octets, path, .. } = *arrived;
                self.answer_stray(&request.header, path, octets, vec![notify(kind, data)], now);
            }
            Err(Rejected::Unpaid) => self.send_cookie(arrived.path, arrived.octets, now),
        }
        None
    }

    /// Sends a cookie, as too many initiators are half open to keep state for an unverified
    /// address, or as the answer would be longer than the request.
    pub(crate) fn send_cookie(&mut self, path: Path, octets: &[u8], now: Instant) {
        let Some(first) = First::peek(octets) else {
            return self.drop(DropReason::WrongPayloads);
        };
        let cookie = self.cookies.ask(&first, path.remote, &mut self.rng, now);
        self.drop(DropReason::CookieWanted);
        if let Some(cookie) = cookie {
            self.answer_stray(
                &first.header,
                path,
                octets,
                vec![cookie::payload(&cookie)],
                now,
            );
        }
    }

    /// Returns true if a first message has a valid cookie of ours.
    pub(crate) fn is_paid(&self, octets: &[u8], from: SocketAddr, now: Instant) -> bool {
        First::peek(octets).is_some_and(|first| self.cookies.is_paid(&first, from, now))
    }

    /// Answers a retransmitted first message, if it is the same, or differs only in a valid cookie.
    fn answer_again(
        &mut self,
        id: IkeSaId,
        request: &Message,
        arrived: &Arrived<'_>,
        now: Instant,
    ) {
        let (octets, from) = (arrived.octets, arrived.path.remote);
        let paid = self.is_paid(octets, from, now);
        let origin = self.origin(arrived.path);
        let is_crowded = self.half_open.is_crowded(origin, &self.config.limits);
        let Some(sa) = self.sas.get_mut(&id) else {
            return;
        };
        let responses = &mut sa.core.responses;
        let mut is_taken = false;
        if let State::AwaitAuth(state) = &mut sa.state {
            is_taken = paid && state.takes_with_cookie(request, octets, responses);
        }
        // After another request, the initiator has the answer to the first one.
        if !is_crowded && responses.is_newest(0) {
            let expires = now + self.config.timers.half_open;
            match &mut sa.state {
                State::AwaitAuth(state) => state.extend(expires),
                State::AwaitProof(state) => state.extend(expires),
                _ => {}
            }
        }
        let arrival = match is_taken {
            true => responses.recut(0, octets, from, now, |_| ()),
            false => responses.arrival(0, octets, from, now),
        };
        self.context(Beside::default(), now)
            .answer_again(arrival, arrived.path);
    }

    /// Ignores IKEv1, and answers later versions with ours (RFC 7296 section 2.5), at a low rate.
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
            self.answer_stray(header, path, octets, vec![answer], now);
        }
    }

    /// Sends an unprotected answer outside any IKE SA. Returns false if it is longer than the
    /// request, and so is not sent.
    fn answer_stray(
        &mut self,
        request: &Header,
        path: Path,
        octets: &[u8],
        payloads: Vec<Payload>,
        now: Instant,
    ) -> bool {
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
        let answer = Message { header, payloads }.encode();
        let is_sent = padding::is_enough(octets, &answer);
        if is_sent {
            let mut ctx = self.context(Beside::default(), now);
            ctx.transmit(path, &answer);
        }
        is_sent
    }
}
