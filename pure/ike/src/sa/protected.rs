//! Protected messages of one IKE SA, in and out: window, cipher, form, in that order, the same for
//! every state that has keys.

use super::{Arrived, Context, Core};
use crate::cipher::Cipher;
use crate::counters::DropReason;
use crate::down_reason::PeerMisbehaved;
use crate::exchange::{first_error, rules};
use crate::extension::fragment::{Limit, Parcel};
use crate::extension::intermediate;
use crate::refusal::Refusal;
use crate::window::Arrival;
use crypto::sha256;
use model::Path;
use wire::ike::{
    Content, Datagram, ExchangeType, Header, Message, NotOpened, Notify, NotifyType, Payload,
};

/// A genuine message that its own sender got wrong.
pub(super) struct Complaint {
    pub(super) why: PeerMisbehaved,
    /// What to answer, if it was a request.
    pub(super) notify: Notify,
}

impl Complaint {
    fn syntax(why: PeerMisbehaved) -> Self {
        let notify = Notify::new(NotifyType::INVALID_SYNTAX, Vec::new());
        Self { why, notify }
    }
}

/// A genuine message, or one that is genuine and wrong.
pub(super) type Genuine = Result<Message, Complaint>;

impl Core {
    /// A request that is new and genuine, once all of it is there. Repeated ones get the answer they
    /// got before, to where they came from; everything else is dropped and counted.
    pub(super) fn accept_request(
        &mut self,
        cipher: &mut Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Option<Genuine> {
        let id = arrived.datagram.header().message_id;
        let from = arrived.path.remote;
        match self.responses.arrival(id, arrived.octets, from, ctx.now) {
            Arrival::New => self.open(cipher, arrived, ctx),
            Arrival::Unexpected if self.responses.is_answered(id) => {
                self.answer_recut(cipher, arrived, ctx);
                None
            }
            again => {
                ctx.answer_again(again, arrived.path);
                None
            }
        }
    }

    /// The genuine response to a request under way, once all of it is there.
    pub(super) fn accept_response(
        &mut self,
        cipher: &Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Option<Genuine> {
        let header = arrived.datagram.header();
        if !self.requests.awaits(header) {
            ctx.drop(DropReason::MessageId);
            return None;
        }
        let response = self.open(cipher, arrived, ctx)?;
        self.requests.answered(header.message_id);
        Some(response)
    }

    /// The same from who has not proved yet who it is. An error in the clear proves nothing; it is told,
    /// and the genuine response waited for.
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

    /// Answers a request that [`Self::accept_request`] gave, to where it came from.
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
        let response = Parcel::seal(message, limit, arrived.path, cipher);
        ctx.transmit_all(arrived.path, response.datagrams());
        let (id, to) = (request.message_id, arrived.path.remote);
        self.responses.answered(id, response, to);
    }

    /// Whether a genuine message is the newest of its kind that came: what is under way together may
    /// arrive in any order.
    pub(super) fn is_newest(&self, header: &Header) -> bool {
        match header.flags.response {
            true => self.requests.is_newest(header.message_id),
            false => self.responses.is_newest(header.message_id),
        }
    }

    /// Sends a request; the window must have room for it. Gives its message ID.
    pub(crate) fn request(
        &mut self,
        cipher: &mut Cipher,
        exchange: ExchangeType,
        payloads: Vec<Payload>,
        attempts: u32,
        ctx: &mut Context<'_>,
    ) -> u32 {
        self.request_on(self.path, cipher, exchange, payloads, attempts, ctx)
    }

    /// The same along another path.
    pub(super) fn request_on(
        &mut self,
        path: Path,
        cipher: &mut Cipher,
        exchange: ExchangeType,
        payloads: Vec<Payload>,
        attempts: u32,
        ctx: &mut Context<'_>,
    ) -> u32 {
        let header = self.header(exchange, self.requests.next_id(), false);
        let message = Message { header, payloads };
        self.note_ours(&message);
        let limit = self.limit_on(path);
        let parcel = Parcel::seal(message, limit, path, cipher);
        ctx.transmit_all(path, parcel.datagrams());
        let timers = &ctx.config.timers;
        self.requests
            .sent(&header, parcel, attempts, timers, ctx.now);
        ctx.out.attempts.sent(self, false);
        header.message_id
    }

    /// "An implementation SHOULD NOT send fragments when going over a TCP connection" (RFC 9329 section
    /// 7.5).
    fn limit_on(&self, path: Path) -> Option<Limit> {
        self.limit.filter(|_| !path.is_stream())
    }

    /// What AUTH covers is taken before anything is cut.
    fn note_ours(&mut self, message: &Message) {
        if intermediate::is_covered(&message.header) {
            self.said.note_ours(message);
        }
    }

    /// A request that nobody answers may be too long for the path (RFC 7383 section 2.5.2).
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

    /// Opens what came; `None` if it is not genuine or not complete.
    fn open(
        &mut self,
        cipher: &Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Option<Genuine> {
        match self.unseal(cipher, arrived, ctx) {
            Ok(genuine) => {
                ctx.take();
                genuine
            }
            Err(why) => {
                ctx.drop(why);
                None
            }
        }
    }

    /// What is inside, of a message that came in fragments with the last of them.
    fn unseal(
        &mut self,
        cipher: &Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Result<Option<Genuine>, DropReason> {
        let Datagram::Sealed(sealed) = &arrived.datagram else {
            return Err(DropReason::Unauthenticated);
        };
        if let Some(at) = sealed.fragment {
            self.limit.ok_or(DropReason::FragmentNotAgreed)?;
            self.inbox.admits(&sealed.header, at)?;
        }
        let content = match cipher.open(sealed) {
            Ok(content) => Ok(content),
            Err(NotOpened::Refused(_) | NotOpened::Unframed) => {
                return Err(DropReason::BadIcv);
            }
            Err(NotOpened::Malformed(_)) => Err(Complaint::syntax(PeerMisbehaved::InvalidSyntax)),
        };
        let (content, mark, before) = match (content, sealed.fragment) {
            (Ok(piece), Some(at)) => {
                let until = ctx.now + ctx.config.timers.reassembly;
                let from = (arrived.octets, arrived.path);
                let Some(whole) = self.inbox.add(sealed, at, piece, from, until)? else {
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
            self.said.note_theirs(before, content);
        }
        Ok(Some(
            content.and_then(|content| read(&content, sealed.header)),
        ))
    }

    /// A request that was answered came cut in another way: the answer was too long for the path, so
    /// it is cut like the request. "That event MUST only trigger a retransmission of the response
    /// message ... if the Fragment Number field in the received fragment is set to 1" (RFC 7383
    /// section 2.6.1).
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
