//! Protected messages of one IKE SA, inbound and outbound: window, cipher and payload rules, in
//! that order, for every state that has keys.

use super::moving::is_same_route;
use super::{Arrived, Context, Core};
use crate::cipher::Cipher;
use crate::counters::DropReason;
use crate::down_reason::PeerMisbehaved;
use crate::exchange::{first_error, rules};
use crate::extension::fragment::{Limit, Outgoing};
use crate::extension::intermediate;
use crate::refusal::Refusal;
use crate::window::Arrival;
use crypto::sha256;
use model::Path;
use std::time::Duration;
use wire::ike::{
    Content, Datagram, ExchangeType, Header, Message, NotOpened, Notify, NotifyType, Payload,
    Sealed,
};

#[cfg(test)]
thread_local! {
    /// Number of messages and fragments that engines of this thread have tried to open.
    pub(crate) static OPENED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The error of an authentic message that is invalid.
pub(crate) struct Complaint {
    pub(super) why: PeerMisbehaved,
    /// The notify for the answer, if the message was a request.
    pub(super) notify: Notify,
}

impl Complaint {
    fn syntax(why: PeerMisbehaved) -> Self {
        let notify = Notify::new(NotifyType::INVALID_SYNTAX, Vec::new());
        Self { why, notify }
    }
}

/// Content of an authentic message or fragment, which may still be malformed.
pub(crate) type Unlocked = Result<Content, Complaint>;

/// An authentic message, or the error of an authentic but invalid one.
pub(super) type Genuine = Result<Message, Complaint>;

impl Core {
    /// Returns true for a new, authentic message, and for an unprotected answer to an outstanding
    /// request. Everything else is answered again, or dropped and counted.
    pub(super) fn admits(
        &mut self,
        cipher: &mut Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> bool {
        let header = arrived.datagram.header();
        if !header.flags.response {
            return self.is_new(cipher, arrived, ctx) && self.is_authentic(cipher, arrived, ctx);
        }
        let is_clear = matches!(arrived.datagram, Datagram::Clear(_));
        self.is_awaited(header, ctx) && (is_clear || self.is_authentic(cipher, arrived, ctx))
    }

    /// Returns a new, authentic request, once complete. Retransmitted requests get the previous
    /// answer, to the address they came from. Everything else is dropped and counted.
    pub(super) fn accept_request(
        &mut self,
        cipher: &mut Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Option<Genuine> {
        match self.is_new(cipher, arrived, ctx) {
            true => self.open(cipher, arrived, ctx),
            false => None,
        }
    }

    /// Returns true if a request is new, as far as its message ID shows. A retransmission is
    /// answered again; everything else is dropped and counted.
    fn is_new(
        &mut self,
        cipher: &mut Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> bool {
        let id = arrived.datagram.header().message_id;
        let from = arrived.path.remote;
        match self.responses.arrival(id, arrived.octets, from, ctx.now) {
            Arrival::New => return true,
            Arrival::Unexpected if self.responses.is_answered(id) => {
                self.answer_recut(cipher, arrived, ctx);
            }
            again => ctx.answer_again(again, arrived.path),
        }
        false
    }

    /// Returns true if a response answers an outstanding request. Any other is dropped and counted.
    fn is_awaited(&self, header: &Header, ctx: &mut Context<'_>) -> bool {
        let awaits = self.requests.awaits(header);
        if !awaits {
            ctx.drop(DropReason::MessageId);
        }
        awaits
    }

    /// Returns true if a message is authentic, and keeps its content for the state. Any other is
    /// dropped and counted.
    fn is_authentic(&self, cipher: &Cipher, arrived: &Arrived<'_>, ctx: &mut Context<'_>) -> bool {
        match sealed(arrived).and_then(|sealed| self.unlock(cipher, sealed)) {
            Ok(content) => {
                arrived.opened.set(Some(content));
                true
            }
            Err(why) => {
                ctx.drop(why);
                false
            }
        }
    }

    /// Returns the authentic response to an outstanding request, once complete.
    pub(super) fn accept_response(
        &mut self,
        cipher: &Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Option<Genuine> {
        let header = arrived.datagram.header();
        if !self.is_awaited(header, ctx) {
            return None;
        }
        let response = self.open(cipher, arrived, ctx)?;
        self.requests.answered(header.message_id, ctx.now);
        Some(response)
    }

    /// The same for a peer that is not yet authenticated. An error in clear is not authentic. It is
    /// reported, and the authentic response is still awaited.
    pub(super) fn accept_unproved(
        &mut self,
        cipher: &Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Option<Genuine> {
        if !arrived.datagram.header().flags.response {
            ctx.drop(DropReason::UnexpectedExchange);
            return None;
        }
        if let Datagram::Clear(message) = &arrived.datagram
            && let Some(error) = first_error(message)
        {
            ctx.refused(Some(self.name()), Refusal::Unproved(error));
        }
        self.accept_response(cipher, arrived, ctx)
    }

    /// Answers a request that [`Self::accept_request`] returned, to the address it came from.
    pub(super) fn respond(
        &mut self,
        cipher: &mut Cipher,
        arrived: &Arrived<'_>,
        payloads: Vec<Payload>,
        ctx: &mut Context<'_>,
    ) {
        let request = arrived.datagram.header();
        let header = self.header(request.exchange, request.message_id, true);
        let message = Message { header, payloads };
        self.note_ours(&message);
        let limit = self.limit_on(arrived.path);
        let response = Outgoing::seal(message, limit, arrived.path, cipher);
        ctx.transmit_all(arrived.path, response.datagrams());
        let (id, to) = (request.message_id, arrived.path.remote);
        self.responses.answered(id, response, to);
    }

    /// Returns true if an authentic message is the newest of its kind so far. Overlapping messages
    /// may arrive in any order.
    pub(super) fn is_newest(&self, header: &Header) -> bool {
        match header.flags.response {
            true => self.requests.is_newest(header.message_id),
            false => self.responses.is_newest(header.message_id),
        }
    }

    /// Sends a request, for which the window must have room, and gives it up after `allowed`.
    /// Returns its message ID.
    pub(crate) fn request(
        &mut self,
        cipher: &mut Cipher,
        exchange: ExchangeType,
        payloads: Vec<Payload>,
        allowed: Duration,
        ctx: &mut Context<'_>,
    ) -> u32 {
        self.request_on(self.path, cipher, exchange, payloads, allowed, ctx)
    }

    /// The same on another path.
    pub(super) fn request_on(
        &mut self,
        path: Path,
        cipher: &mut Cipher,
        exchange: ExchangeType,
        payloads: Vec<Payload>,
        allowed: Duration,
        ctx: &mut Context<'_>,
    ) -> u32 {
        let header = self.header(exchange, self.requests.next_id(), false);
        let message = Message { header, payloads };
        self.note_ours(&message);
        let limit = self.limit_on(path);
        let parcel = Outgoing::seal(message, limit, path, cipher);
        ctx.transmit_all(path, parcel.datagrams());
        let timers = &ctx.config.timers;
        self.requests
            .sent(&header, parcel, allowed, timers, ctx.now);
        if !is_same_route(path, self.path) {
            self.requests.exclude();
        }
        ctx.out.attempts.sent(self, false);
        header.message_id
    }

    /// "An implementation SHOULD NOT send fragments when going over a TCP connection" (RFC 9329
    /// section 7.5).
    fn limit_on(&self, path: Path) -> Option<Limit> {
        self.limit.filter(|_| !path.is_stream())
    }

    /// Stores the message for IntAuth, before fragmentation.
    fn note_ours(&mut self, message: &Message) {
        if intermediate::is_covered(&message.header) {
            self.transcript.note_ours(message);
        }
    }

    /// Fragments an unanswered request into smaller pieces, as it may be too long for the path (RFC
    /// 7383 section 2.5.2).
    pub(super) fn cut_smaller(&mut self, cipher: &mut Cipher, ctx: &mut Context<'_>) {
        if self.path.is_stream() {
            return;
        }
        if let Some(parcel) = self.requests.stuck(ctx.now) {
            self.limit = Some(Limit::SMALLEST);
            let cut = parcel.cut_smaller(Limit::SMALLEST, self.path, cipher);
            ctx.out.counters.cut_smaller += u64::from(cut);
        }
    }

    /// Opens a message. Returns `None` if it is not authentic, or not complete.
    fn open(
        &mut self,
        cipher: &Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Option<Genuine> {
        match self.unseal(cipher, arrived, ctx) {
            Ok(genuine) => {
                ctx.count_taken();
                genuine
            }
            Err(why) => {
                ctx.drop(why);
                None
            }
        }
    }

    /// Returns the content of a message. For a message in fragments, that is with the last of them.
    fn unseal(
        &mut self,
        cipher: &Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Result<Option<Genuine>, DropReason> {
        let sealed = sealed(arrived)?;
        let content = match arrived.opened.take() {
            Some(content) => content,
            None => self.unlock(cipher, sealed)?,
        };
        let (content, mark, before) = match (content, sealed.fragment) {
            (Ok(piece), Some(at)) => {
                let until = ctx.now + ctx.config.timers.reassembly;
                let Arrived { octets, path, .. } = *arrived;
                let whole = self.inbox.add(sealed, at, piece, octets, path, until)?;
                let Some(whole) = whole else {
                    return Ok(None);
                };
                ctx.out.counters.reassembled += 1;
                self.limit = self.limit.min(Some(whole.largest));
                (Ok(whole.content), whole.mark, whole.before)
            }
            (content, _) => (content, sha256(&[arrived.octets]), sealed.before_iv()),
        };
        self.inbox.forget(&sealed.header);
        if !sealed.header.flags.response {
            self.responses.came(sealed.header.message_id, mark);
        }
        if let (Ok(content), true) = (&content, intermediate::is_covered(&sealed.header)) {
            self.transcript.note_theirs(before, content);
        }
        Ok(Some(
            content.and_then(|content| read(&content, sealed.header)),
        ))
    }

    /// Opens a message or a fragment.
    fn unlock(&self, cipher: &Cipher, sealed: &Sealed<'_>) -> Result<Unlocked, DropReason> {
        if let Some(at) = sealed.fragment {
            self.limit.ok_or(DropReason::FragmentNotAgreed)?;
            self.inbox.admits(&sealed.header, at)?;
        }
        #[cfg(test)]
        OPENED.set(OPENED.get() + 1);
        match cipher.open(sealed) {
            Ok(content) => Ok(Ok(content)),
            Err(NotOpened::Refused(_) | NotOpened::Unframed) => Err(DropReason::BadIcv),
            Err(NotOpened::Malformed(_)) => {
                Ok(Err(Complaint::syntax(PeerMisbehaved::InvalidSyntax)))
            }
        }
    }

    /// Handles a retransmission of an answered request with other fragments: the answer was too
    /// long for the path, so it is fragmented like the request. "That event MUST only trigger a
    /// retransmission of the response message ... if the Fragment Number field in the received
    /// fragment is set to 1" (RFC 7383 section 2.6.1).
    fn answer_recut(&mut self, cipher: &mut Cipher, arrived: &Arrived<'_>, ctx: &mut Context<'_>) {
        let Datagram::Sealed(sealed) = &arrived.datagram else {
            return ctx.drop(DropReason::MessageId);
        };
        let (Some(at), Some(limit)) = (sealed.fragment, self.limit) else {
            return ctx.drop(DropReason::MessageId);
        };
        if at.number != 1 {
            return ctx.drop(DropReason::FragmentRepeated);
        }
        if let Err(NotOpened::Refused(_) | NotOpened::Unframed) = cipher.open(sealed) {
            return ctx.drop(DropReason::BadIcv);
        }
        let limit = limit.min(Limit::of(arrived.octets, arrived.path));
        self.limit = Some(limit);
        let (id, from) = (sealed.header.message_id, arrived.path.remote);
        let again = self
            .responses
            .recut(id, arrived.octets, from, ctx.now, |response| {
                let cut = response.cut_smaller(limit, arrived.path, cipher);
                ctx.out.counters.cut_smaller += u64::from(cut);
            });
        ctx.answer_again(again, arrived.path);
    }
}

fn sealed<'a>(arrived: &'a Arrived<'_>) -> Result<&'a Sealed<'a>, DropReason> {
    match &arrived.datagram {
        Datagram::Sealed(sealed) => Ok(sealed),
        Datagram::Clear(_) => Err(DropReason::Unauthenticated),
    }
}

fn read(content: &Content, header: Header) -> Genuine {
    let message = content
        .message(header)
        .map_err(|_| Complaint::syntax(PeerMisbehaved::InvalidSyntax))?;
    if let Some(kind) = message.unsupported_critical() {
        let notify = Notify::new(NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD, vec![kind.0]);
        let why = PeerMisbehaved::UnsupportedCritical;
        return Err(Complaint { why, notify });
    }
    match rules::check(&message) {
        Ok(()) => Ok(message),
        Err(why) => Err(Complaint::syntax(why)),
    }
}
