//! Protected messages of one IKE SA, in and out: window, cipher, form, in that order, the same for
//! every state that has keys.

use super::{Arrived, Context, Core};
use crate::cipher::Cipher;
use crate::counters::DropReason;
use crate::event::PeerMisbehaved;
use crate::exchange::rules;
use crate::window::Arrival;
use wire::ike::{Datagram, ExchangeType, Message, NotOpened, Notify, NotifyType, Payload, Sealed};

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
    /// A request that is new and genuine. Repeated ones get the answer they got before, to where
    /// they came from; everything else is dropped and counted.
    pub(super) fn accept_request(
        &mut self,
        cipher: &Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Option<Genuine> {
        let id = arrived.datagram.header().message_id;
        match self.responses.arrival(id, arrived.octets) {
            Arrival::New => open(cipher, arrived, ctx),
            Arrival::Again(response) => {
                ctx.out.counters.answered_again += 1;
                ctx.transmit(arrived.path, &response);
                None
            }
            Arrival::TooOften => {
                ctx.drop(DropReason::RepeatedTooOften);
                None
            }
            Arrival::Unexpected => {
                ctx.drop(DropReason::MessageId);
                None
            }
        }
    }

    /// The genuine response to the request under way.
    pub(super) fn accept_response(
        &mut self,
        cipher: &Cipher,
        arrived: &Arrived<'_>,
        ctx: &mut Context<'_>,
    ) -> Option<Genuine> {
        if !self.requests.awaits(arrived.datagram.header()) {
            ctx.drop(DropReason::MessageId);
            return None;
        }
        let response = open(cipher, arrived, ctx)?;
        self.requests.answered();
        Some(response)
    }

    /// Answers the request that [`Self::accept_request`] gave, to where it came from.
    pub(super) fn respond(
        &mut self,
        cipher: &mut Cipher,
        arrived: &Arrived<'_>,
        payloads: Vec<Payload>,
        ctx: &mut Context<'_>,
    ) {
        let request = arrived.datagram.header();
        let header = self.header(request.exchange, request.message_id, true);
        let response = cipher.seal(&Message { header, payloads });
        ctx.transmit(arrived.path, &response);
        self.responses.answered(arrived.octets, response);
    }

    /// Sends a request; there must be none under way.
    pub(crate) fn request(
        &mut self,
        cipher: &mut Cipher,
        exchange: ExchangeType,
        payloads: Vec<Payload>,
        attempts: u32,
        ctx: &mut Context<'_>,
    ) {
        let header = self.header(exchange, self.requests.next_id(), false);
        let octets = cipher.seal(&Message { header, payloads });
        ctx.transmit(self.path, &octets);
        let timers = &ctx.config.timers;
        self.requests
            .sent(exchange, octets, attempts, timers, ctx.now);
        ctx.out.attempts.sent(self, false);
    }
}

fn open(cipher: &Cipher, arrived: &Arrived<'_>, ctx: &mut Context<'_>) -> Option<Genuine> {
    let Datagram::Sealed(sealed) = &arrived.datagram else {
        ctx.drop(DropReason::Unauthenticated);
        return None;
    };
    let genuine = unseal(cipher, sealed);
    match genuine {
        Some(_) => ctx.take(),
        None => ctx.drop(DropReason::BadIcv),
    }
    genuine
}

/// `None` if it is not genuine.
fn unseal(cipher: &Cipher, sealed: &Sealed<'_>) -> Option<Genuine> {
    let message = match cipher.open(sealed) {
        Ok(message) => message,
        Err(NotOpened::Refused(_) | NotOpened::Unframed) => return None,
        Err(NotOpened::Malformed(_)) => {
            return Some(Err(Complaint::syntax(PeerMisbehaved::InvalidSyntax)));
        }
    };
    if let Some(kind) = message.unsupported_critical() {
        let notify = Notify::new(NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD, vec![kind.0]);
        let why = PeerMisbehaved::UnsupportedCritical;
        return Some(Err(Complaint { why, notify }));
    }
    Some(match rules::check(&message) {
        Ok(()) => Ok(message),
        Err(why) => Err(Complaint::syntax(why)),
    })
}
