//! Initiator: IKE_SESSION_RESUME was sent with a ticket, and its response is awaited (RFC 5723
//! section 4.3.2).
//!
//! No message in this state is authenticated. A refusal, or silence, begins a full exchange beside
//! this attempt (`engine/resumption.rs`). An acceptable response that comes later still counts.

use super::arrived::Arrived;
use super::first_answer;
use super::turn::{NotResumed, Turn};
use crate::attempt::Offer;
use crate::auth::handshake::Handshake;
use crate::auth::initiator::Initiator;
use crate::counters::DropReason;
use crate::exchange::init::NONCE_LEN;
use crate::exchange::{find_notify, first_error, is_ours, nonce, rules, vendor_id};
use crate::extension::fragment::{self, Outgoing};
use crate::extension::{childless, cookie, nat, redirect, ticket};
use crate::keys::{Inputs, UnprovedKeys};
use crate::tickets::Held;
use wire::ike::{Datagram, ExchangeType, Message, NotifyType, Payload};

pub(crate) struct ResumeSent {
    held: Held,
    nonce: [u8; NONCE_LEN],
    cookie: Option<Vec<u8>>,
    cookies: u32,
    /// The payloads after nonce and ticket.
    extensions: Vec<Payload>,
    /// The last message sent, which AUTH covers.
    sent: Vec<u8>,
    /// True if a full exchange has begun beside.
    is_doubtful: bool,
    /// True if somebody has refused the ticket.
    is_refused: bool,
}

/// What follows a response.
pub(crate) enum Resuming {
    /// An acceptable one is still awaited.
    Waits(Box<ResumeSent>),
    /// The gateway knows the ticket. IKE_AUTH follows.
    Answered {
        /// The proofs of IKE_AUTH, including the keys.
        proof: Box<Initiator>,
        /// True if the responder understands our private numbers.
        private: bool,
    },
}

impl ResumeSent {
    /// Presents a ticket.
    pub(crate) fn begin(held: Held, turn: &mut Turn<'_, '_>) -> Box<Self> {
        turn.ctx.attempt(turn.core, Offer::default());
        let (spi_i, path) = (turn.core.spi_i, turn.core.path);
        let mut extensions = nat::payloads(spi_i, 0, path, turn.ctx.config, turn.ctx.rng).to_vec();
        extensions.extend(fragment::payload(turn.ctx.config));
        let peer = turn.core.peer(turn.ctx.config);
        extensions.extend(peer.and_then(|peer| redirect::willing(peer, None)));
        extensions.push(vendor_id());
        let mut state = Box::new(Self {
            held,
            nonce: turn.ctx.rng.array(),
            cookie: None,
            cookies: 0,
            extensions,
            sent: Vec::new(),
            is_doubtful: false,
            is_refused: false,
        });
        state.send(turn);
        state
    }

    pub(super) fn handle(
        mut self: Box<Self>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Resuming {
        let Datagram::Clear(response) = &arrived.datagram else {
            turn.ctx.drop(DropReason::UnexpectedExchange);
            return Resuming::Waits(self);
        };
        if !response.header.flags.response || !turn.core.requests.awaits(&response.header) {
            turn.ctx.drop(DropReason::UnexpectedExchange);
            return Resuming::Waits(self);
        }
        if let Some(cookie) = cookie::asked(response) {
            return self.send_cookie(cookie, turn);
        }
        // A redirection is followed in the full exchange, where its sender has to know our nonce.
        let is_redirected = find_notify(response, NotifyType::REDIRECT).is_some();
        if ticket::is_refused(response) || is_redirected || first_error(response).is_some() {
            turn.ctx.drop(DropReason::Unauthenticated);
            self.is_refused = true;
            self.doubt(turn);
            return Resuming::Waits(self);
        }
        match self.read(response, arrived, turn) {
            Ok(nonce) => self.proceed(&nonce, arrived, response, turn),
            Err(why) => {
                turn.ctx.drop(why);
                Resuming::Waits(self)
            }
        }
    }

    /// Has a full exchange begun beside this attempt, once.
    pub(crate) fn doubt(&mut self, turn: &mut Turn<'_, '_>) {
        turn.core.refused = true;
        if !std::mem::replace(&mut self.is_doubtful, true) {
            turn.ctx.out.not_resumed.push(NotResumed::from(&*turn.core));
        }
    }

    /// Gives up, as no acceptable response arrived. A gateway that is away for longer knows the
    /// ticket when it is back.
    pub(super) fn give_up(self, turn: &mut Turn<'_, '_>) {
        if !self.is_refused {
            let held = Held {
                shown_from: Some(turn.core.path.local.ip()),
                ..self.held
            };
            turn.ctx.tickets.put_back(turn.core.peer_id(), held);
        }
    }

    fn send(&mut self, turn: &mut Turn<'_, '_>) {
        let mut payloads = vec![
            Payload::Nonce(self.nonce.to_vec()),
            ticket::presentation(&self.held.ticket),
        ];
        payloads.extend(self.extensions.iter().cloned());
        if let Some(cookie) = &self.cookie {
            payloads.insert(0, cookie::payload(cookie));
        }
        let header = turn.core.header(ExchangeType::IKE_SESSION_RESUME, 0, false);
        let octets = Message { header, payloads }.encode();
        turn.ctx.transmit(turn.core.path, &octets);
        self.sent.clone_from(&octets);
        let timers = &turn.ctx.config.timers;
        let parcel = Outgoing::clear(octets);
        turn.core
            .requests
            .sent(&header, parcel, timers.give_up, timers, turn.ctx.now);
        turn.ctx.out.attempts.sent(turn.core, false);
    }

    fn send_cookie(mut self: Box<Self>, cookie: &[u8], turn: &mut Turn<'_, '_>) -> Resuming {
        if self.cookies == cookie::MAX_ROUNDS {
            turn.ctx.drop(DropReason::RepeatedTooOften);
        } else {
            turn.ctx.count_taken();
            self.cookies += 1;
            self.cookie = Some(cookie.to_vec());
            self.send(turn);
        }
        Resuming::Waits(self)
    }

    /// Returns the responder's nonce.
    fn read(
        &self,
        response: &Message,
        arrived: &Arrived<'_>,
        turn: &Turn<'_, '_>,
    ) -> Result<Vec<u8>, DropReason> {
        rules::check(response).map_err(|_| DropReason::WrongPayloads)?;
        if response.unsupported_critical().is_some() {
            return Err(DropReason::WrongPayloads);
        }
        let theirs = nonce(response).ok_or(DropReason::WrongPayloads)?;
        if theirs == self.nonce || response.header.spi_r == 0 {
            return Err(DropReason::Reflected);
        }
        let peer = turn.core.peer(turn.ctx.config);
        let lacks = match peer.is_some_and(|peer| childless::is_wanted(&peer.role)) {
            true => !childless::is_supported(response),
            false => nat::detect(response, arrived.path).is_none(),
        };
        match lacks {
            true => Err(DropReason::WrongAnswer),
            false => Ok(theirs.to_vec()),
        }
    }

    fn proceed(
        self: Box<Self>,
        theirs: &[u8],
        arrived: &Arrived<'_>,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> Resuming {
        let nat = first_answer::detect_nat(response, arrived, turn.core);
        first_answer::accept(response, arrived, nat, turn);
        let Held { keys, chain, .. } = self.held;
        let inputs = Inputs {
            suite: keys.suite,
            prf: keys.prf,
            nonce_i: &self.nonce,
            nonce_r: theirs,
            spi_i: turn.core.spi_i,
            spi_r: turn.core.spi_r,
            initiator: true,
        };
        let keys = UnprovedKeys::resumed(&keys, &inputs);
        let handshake = Handshake::new(keys, true, self.sent, arrived.octets.to_vec());
        Resuming::Answered {
            proof: Box::new(Initiator::resumed(handshake, chain)),
            private: is_ours(response),
        }
    }
}
