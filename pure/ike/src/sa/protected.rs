//! Protected messages of one IKE SA, inbound and outbound: window, cipher and payload rules, in
//! that order, for every state that has keys.

use super::arrived::{Arrived, Complaint, Genuine, Unlocked};
use super::core::{Core, is_same_route};
use super::turn::Turn;
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

/// Returns true for a new, authentic message, and for an unprotected answer to an outstanding
/// request. Everything else is answered again, or dropped and counted.
pub(crate) fn admits(turn: &mut Turn<'_, '_>, cipher: &mut Cipher, arrived: &Arrived<'_>) -> bool {
    let header = arrived.datagram.header();
    if !header.flags.response {
        return is_new(turn, cipher, arrived) && is_authentic(turn, cipher, arrived);
    }
    let is_clear = matches!(arrived.datagram, Datagram::Clear(_));
    is_awaited(turn, header) && (is_clear || is_authentic(turn, cipher, arrived))
}

/// Returns a new, authentic request, once complete. Retransmitted requests get the previous
/// answer, to the address they came from. Everything else is dropped and counted.
pub(crate) fn accept_request(
    turn: &mut Turn<'_, '_>,
    cipher: &mut Cipher,
    arrived: &Arrived<'_>,
) -> Option<Genuine> {
    match is_new(turn, cipher, arrived) {
        true => open(turn, cipher, arrived),
        false => None,
    }
}

/// Returns true if a request is new, as far as its message ID shows. A retransmission is
/// answered again; everything else is dropped and counted.
fn is_new(turn: &mut Turn<'_, '_>, cipher: &mut Cipher, arrived: &Arrived<'_>) -> bool {
    let id = arrived.datagram.header().message_id;
    let from = arrived.path.remote;
    match turn
        .core
        .responses
        .arrival(id, arrived.octets, from, turn.ctx.now)
    {
        Arrival::New => return true,
        Arrival::Unexpected if turn.core.responses.is_answered(id) => {
            answer_recut(turn, cipher, arrived);
        }
        again => turn.ctx.answer_again(again, arrived.path),
    }
    false
}

/// Returns true if a response answers an outstanding request. Any other is dropped and counted.
fn is_awaited(turn: &mut Turn<'_, '_>, header: &Header) -> bool {
    let awaits = turn.core.requests.awaits(header);
    if !awaits {
        turn.ctx.drop(DropReason::MessageId);
    }
    awaits
}

/// Returns true if a message is authentic, and keeps its content for the state. Any other is
/// dropped and counted.
fn is_authentic(turn: &mut Turn<'_, '_>, cipher: &Cipher, arrived: &Arrived<'_>) -> bool {
    match sealed(arrived).and_then(|sealed| unlock(turn.core, cipher, sealed)) {
        Ok(content) => {
            arrived.opened.set(Some(content));
            true
        }
        Err(why) => {
            turn.ctx.drop(why);
            false
        }
    }
}

/// Returns the authentic response to an outstanding request, once complete.
pub(crate) fn accept_response(
    turn: &mut Turn<'_, '_>,
    cipher: &Cipher,
    arrived: &Arrived<'_>,
) -> Option<Genuine> {
    let header = arrived.datagram.header();
    if !is_awaited(turn, header) {
        return None;
    }
    let response = open(turn, cipher, arrived)?;
    turn.core.requests.answered(header.message_id, turn.ctx.now);
    Some(response)
}

/// The same for a peer that is not yet authenticated. An error in clear is not authentic. It is
/// reported, and the authentic response is still awaited. Another attempt may begin beside this one
/// (`engine/attempts.rs`).
pub(crate) fn accept_unproved(
    turn: &mut Turn<'_, '_>,
    cipher: &Cipher,
    arrived: &Arrived<'_>,
) -> Option<Genuine> {
    if !arrived.datagram.header().flags.response {
        turn.ctx.drop(DropReason::UnexpectedExchange);
        return None;
    }
    if let Datagram::Clear(message) = &arrived.datagram
        && let Some(error) = first_error(message)
    {
        turn.core.refused = true;
        turn.ctx
            .refused(Some(turn.core.peer_id()), Refusal::Unproved(error));
    }
    let response = accept_response(turn, cipher, arrived)?;
    turn.core.refused = false;
    Some(response)
}

/// Answers a request that [`accept_request`] returned, to the address it came from.
pub(crate) fn respond(
    turn: &mut Turn<'_, '_>,
    cipher: &mut Cipher,
    arrived: &Arrived<'_>,
    payloads: Vec<Payload>,
) {
    let request = arrived.datagram.header();
    let header = turn.core.header(request.exchange, request.message_id, true);
    let message = Message { header, payloads };
    note_ours(turn, &message);
    let limit = limit_on(turn.core, arrived.path);
    let response = Outgoing::seal(message, limit, arrived.path, cipher);
    turn.ctx.transmit_all(arrived.path, response.datagrams());
    let (id, to) = (request.message_id, arrived.path.remote);
    turn.core.responses.answered(id, response, to);
}

/// Sends a request, for which the window must have room, and gives it up after `allowed`.
/// Returns its message ID.
pub(crate) fn request(
    turn: &mut Turn<'_, '_>,
    cipher: &mut Cipher,
    exchange: ExchangeType,
    payloads: Vec<Payload>,
    allowed: Duration,
) -> u32 {
    request_on(turn, turn.core.path, cipher, exchange, payloads, allowed)
}

/// The same on another path.
pub(crate) fn request_on(
    turn: &mut Turn<'_, '_>,
    path: Path,
    cipher: &mut Cipher,
    exchange: ExchangeType,
    payloads: Vec<Payload>,
    allowed: Duration,
) -> u32 {
    let header = turn
        .core
        .header(exchange, turn.core.requests.next_id(), false);
    let message = Message { header, payloads };
    note_ours(turn, &message);
    let limit = limit_on(turn.core, path);
    let parcel = Outgoing::seal(message, limit, path, cipher);
    turn.ctx.transmit_all(path, parcel.datagrams());
    let timers = &turn.ctx.config.timers;
    turn.core
        .requests
        .sent(&header, parcel, allowed, timers, turn.ctx.now);
    if !is_same_route(path, turn.core.path) {
        turn.core.requests.exclude();
    }
    turn.ctx.out.attempts.sent(turn.core, false);
    header.message_id
}

/// "An implementation SHOULD NOT send fragments when going over a TCP connection" (RFC 9329
/// section 7.5).
fn limit_on(core: &Core, path: Path) -> Option<Limit> {
    core.limit.filter(|_| !path.is_stream())
}

/// Stores the message for IntAuth, before fragmentation.
fn note_ours(turn: &mut Turn<'_, '_>, message: &Message) {
    if intermediate::is_covered(&message.header) {
        turn.core.transcript.note_ours(message);
    }
}

/// Fragments an unanswered request into smaller pieces, as it may be too long for the path (RFC
/// 7383 section 2.5.2).
pub(crate) fn cut_smaller(turn: &mut Turn<'_, '_>, cipher: &mut Cipher) {
    if turn.core.path.is_stream() {
        return;
    }
    if let Some(parcel) = turn.core.requests.stuck(turn.ctx.now) {
        turn.core.limit = Some(Limit::SMALLEST);
        let cut = parcel.cut_smaller(Limit::SMALLEST, turn.core.path, cipher);
        turn.ctx.out.counters.cut_smaller += u64::from(cut);
    }
}

/// Opens a message. Returns `None` if it is not authentic, or not complete.
fn open(turn: &mut Turn<'_, '_>, cipher: &Cipher, arrived: &Arrived<'_>) -> Option<Genuine> {
    match unseal(turn, cipher, arrived) {
        Ok(genuine) => {
            turn.ctx.count_taken();
            genuine
        }
        Err(why) => {
            turn.ctx.drop(why);
            None
        }
    }
}

/// Returns the content of a message. For a message in fragments, that is with the last of them.
fn unseal(
    turn: &mut Turn<'_, '_>,
    cipher: &Cipher,
    arrived: &Arrived<'_>,
) -> Result<Option<Genuine>, DropReason> {
    let sealed = sealed(arrived)?;
    let content = match arrived.opened.take() {
        Some(content) => content,
        None => unlock(turn.core, cipher, sealed)?,
    };
    let (content, mark, before) = match (content, sealed.fragment) {
        (Ok(piece), Some(at)) => {
            let until = turn.ctx.now + turn.ctx.config.timers.reassembly;
            let Arrived { octets, path, .. } = *arrived;
            let whole = turn
                .core
                .inbox
                .add(sealed, at, piece, octets, path, until)?;
            let Some(whole) = whole else {
                return Ok(None);
            };
            turn.ctx.out.counters.reassembled += 1;
            turn.core.limit = turn.core.limit.min(Some(whole.largest));
            (Ok(whole.content), whole.mark, whole.before)
        }
        (content, _) => (content, sha256(&[arrived.octets]), sealed.before_iv()),
    };
    turn.core.inbox.forget(&sealed.header);
    if !sealed.header.flags.response {
        turn.core.responses.came(sealed.header.message_id, mark);
    }
    if let (Ok(content), true) = (&content, intermediate::is_covered(&sealed.header)) {
        turn.core.transcript.note_theirs(before, content);
    }
    Ok(Some(
        content.and_then(|content| read(&content, sealed.header)),
    ))
}

/// Opens a message or a fragment.
fn unlock(core: &Core, cipher: &Cipher, sealed: &Sealed<'_>) -> Result<Unlocked, DropReason> {
    if let Some(at) = sealed.fragment {
        core.limit.ok_or(DropReason::FragmentNotAgreed)?;
        core.inbox.admits(&sealed.header, at)?;
    }
    #[cfg(test)]
    OPENED.set(OPENED.get() + 1);
    match cipher.open(sealed) {
        Ok(content) => Ok(Ok(content)),
        Err(NotOpened::Refused(_) | NotOpened::Unframed) => Err(DropReason::BadIcv),
        Err(NotOpened::Malformed(_)) => Ok(Err(Complaint::syntax(PeerMisbehaved::InvalidSyntax))),
    }
}

/// Handles a retransmission of an answered request with other fragments: the answer was too
/// long for the path, so it is fragmented like the request. "That event MUST only trigger a
/// retransmission of the response message ... if the Fragment Number field in the received
/// fragment is set to 1" (RFC 7383 section 2.6.1).
fn answer_recut(turn: &mut Turn<'_, '_>, cipher: &mut Cipher, arrived: &Arrived<'_>) {
    let Datagram::Sealed(sealed) = &arrived.datagram else {
        return turn.ctx.drop(DropReason::MessageId);
    };
    let (Some(at), Some(limit)) = (sealed.fragment, turn.core.limit) else {
        return turn.ctx.drop(DropReason::MessageId);
    };
    if at.number != 1 {
        return turn.ctx.drop(DropReason::FragmentRepeated);
    }
    if let Err(NotOpened::Refused(_) | NotOpened::Unframed) = cipher.open(sealed) {
        return turn.ctx.drop(DropReason::BadIcv);
    }
    let limit = limit.min(Limit::of(arrived.octets, arrived.path));
    turn.core.limit = Some(limit);
    let (id, from) = (sealed.header.message_id, arrived.path.remote);
    let again = turn
        .core
        .responses
        .recut(id, arrived.octets, from, turn.ctx.now, |response| {
            let cut = response.cut_smaller(limit, arrived.path, cipher);
            turn.ctx.out.counters.cut_smaller += u64::from(cut);
        });
    turn.ctx.answer_again(again, arrived.path);
}

/// Moves IKE messages to another path, outstanding ones at once.
pub(crate) fn switch_to(turn: &mut Turn<'_, '_>, path: Path) {
    if turn.core.path != path {
        take_path(turn, path);
        send_again(turn);
    }
}

/// The same, if the outstanding requests were sent on this path already.
pub(crate) fn take_path(turn: &mut Turn<'_, '_>, path: Path) {
    if !is_same_route(path, turn.core.path) {
        turn.core.requests.forget_round_trip();
    }
    turn.core.path = path;
}

/// Retransmits the outstanding requests, with all their time.
pub(crate) fn send_again(turn: &mut Turn<'_, '_>) {
    let Turn { core, ctx } = turn;
    let path = core.path;
    for datagrams in core.requests.restart(&ctx.config.timers, ctx.now) {
        ctx.out.counters.retransmitted += 1;
        ctx.transmit_all(path, datagrams);
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
