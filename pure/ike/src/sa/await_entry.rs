//! Responder: IKE_SESSION_RESUME or SKID_RESUME presented a ticket of ours, and the store is asked
//! for its entry.
//!
//! The initiator is not authenticated, and has its place among the half-open SAs. A store may be
//! slow or gone: the ticket is then refused, and the initiator begins a full exchange.

use super::await_proof::{AwaitProof, Presented};
use super::closing::{Ending, Lingering};
use super::first_message::{HalfOpenTerms, Rejected};
use super::turn::Turn;
use crate::auth::handshake::Handshake;
use crate::auth::responder::{Responder, Resumed};
use crate::counters::DropReason;
use crate::destination::Destination;
use crate::exchange::init::NONCE_LEN;
use crate::exchange::{is_ours, nonce, rules, vendor_id};
use crate::extension::fragment::{self, Outgoing};
use crate::extension::{childless, nat, redirect, skid, ticket};
use crate::keys::{Inputs, UnprovedKeys};
use crypto::sha256;
use model::{Deadline, Group, Instant};
use resumption::{Entry, Operation, OperationId, Ticket, Way};
use std::time::Duration;
use wire::ike::{Message, NotifyType, Payload};

/// Longest time to wait for the store. The initiator begins a full exchange when it has not been
/// answered for a second.
const PATIENCE: Duration = Duration::from_millis(500);

/// Longest answer to a ticket, in octets. A shorter request from an address that may be forged has
/// to bring a cookie.
const LONGEST_ANSWER: usize = 160;

pub(crate) struct AwaitEntry {
    way: Way,
    /// The clear payloads of the first message.
    request: Message,
    octets: Vec<u8>,
    ticket: Ticket,
    /// True if the source address is verified.
    paid: bool,
    /// Time by which the initiator has to authenticate.
    until: Instant,
    /// Time at which the store is waited for no longer.
    gives_up: Instant,
}

/// An initiator whose ticket names a session, and who has to prove that it knows the keys.
pub(crate) struct Resumer {
    pub(super) proof: Responder,
    pub(super) group: Group,
    /// True if it understands our private numbers.
    pub(super) private: bool,
    /// True if it supports redirection.
    pub(super) willing: bool,
    pub(super) elsewhere: Option<Destination>,
    /// Time by which it has to prove that.
    pub(super) until: Instant,
}

/// An initiator whose ticket names a session.
pub(crate) enum Known {
    ByTicket(Box<Resumer>),
    BySkid(Box<AwaitProof>),
}

impl AwaitEntry {
    /// Asks the store for the entry of a ticket. A ticket that is not one of ours is refused at
    /// once.
    pub(crate) fn begin(
        request: &Message,
        octets: &[u8],
        terms: HalfOpenTerms,
        turn: &mut Turn<'_, '_>,
    ) -> Result<Self, Rejected> {
        if let Some(kind) = request.unsupported_critical() {
            let kind = vec![kind.0];
            return Err(Rejected::Answered(
                NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD,
                kind,
            ));
        }
        rules::check(request).map_err(|_| Rejected::Dropped(DropReason::WrongPayloads))?;
        let way = match skid::is_meant(&request.header) {
            true => Way::Skid3,
            false => Way::Ticket,
        };
        if nonce(request).is_none() {
            return Err(Rejected::Dropped(DropReason::WrongPayloads));
        }
        // No child SA would follow (`admission`). libreswan 5.2 leaves it out, and gives up if it
        // is asked for a cookie.
        if nat::detect(request, turn.core.path).is_none() {
            return Err(Rejected::Answered(NotifyType::TICKET_NACK, Vec::new()));
        }
        let presented = ticket::presented(way, request);
        let strategy = &turn.ctx.config.resumption;
        let ticket = presented.and_then(|ticket| turn.ctx.tickets.read(ticket, strategy));
        let Some(ticket) = ticket else {
            return Err(Rejected::Answered(NotifyType::TICKET_NACK, Vec::new()));
        };
        let is_repeated = turn.ctx.tickets.is_repeated(&ticket, turn.ctx.now);
        if !terms.paid && (is_repeated || octets.len() < LONGEST_ANSWER) {
            return Err(Rejected::Unpaid);
        }
        let id = OperationId(turn.core.id.0);
        turn.ctx.tickets.submit(Operation::Read(id, ticket.clone()));
        turn.core.responses.came(0, sha256(&[octets]));
        Ok(Self {
            way,
            request: request.clone(),
            octets: octets.to_vec(),
            ticket,
            paid: terms.paid,
            until: terms.until,
            gives_up: terms.until.min(turn.ctx.now + PATIENCE),
        })
    }

    pub(super) const fn deadline(&self) -> Deadline {
        Deadline {
            at: self.gives_up,
            reason: "the store of sessions has not answered",
        }
    }

    /// Returns true if the store has been waited for long enough.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.gives_up <= now
    }

    /// Continues with the entry, if the store has it.
    pub(super) fn proceed(
        self,
        entry: Option<Box<Entry>>,
        turn: &mut Turn<'_, '_>,
    ) -> Result<Known, Ending> {
        let (strategy, today) = (turn.ctx.config.resumption, turn.ctx.today);
        // An IKE SA that only the initiator has lost is still up here.
        let usage = turn.ctx.tickets.usage(self.ticket.handle(), turn.ctx.now);
        let entry = entry.map(|mut entry| {
            entry.usage = usage.unwrap_or(entry.usage);
            entry
        });
        let is_good = |entry: &Entry| {
            let left = strategy.left(&entry.usage, entry.ends, today);
            entry.keys.way.is_skid3() == self.way.is_skid3() && !left.is_zero()
        };
        match (entry.filter(|entry| is_good(entry)), self.way) {
            (Some(entry), Way::Ticket) => Ok(Known::ByTicket(Box::new(self.accept(*entry, turn)))),
            (Some(entry), Way::Skid3 | Way::Skid3Pfs) => {
                self.accept_skid(*entry, turn).map(Known::BySkid)
            }
            (None, _) => Err(self.refuse(turn)),
        }
    }

    /// Answers SKID3 with all that both ends agree on.
    fn accept_skid(self, entry: Entry, turn: &mut Turn<'_, '_>) -> Result<Box<AwaitProof>, Ending> {
        let (ours, mut opening) = self.opening(turn);
        let presented = Presented {
            clear: &self.request,
            octets: self.octets.clone(),
            paid: self.paid,
            entry,
            ticket: self.ticket.clone(),
            until: self.until,
        };
        AwaitProof::begin(presented, ours, &mut opening, turn).map_err(|why| {
            let remote = turn.core.path.remote;
            turn.ctx.refused_unknown_peer(remote, why);
            self.refuse(turn)
        })
    }

    /// Returns our nonce, and the payloads that tell it together with what does not depend on the
    /// entry.
    fn opening(&self, turn: &mut Turn<'_, '_>) -> ([u8; NONCE_LEN], Vec<Payload>) {
        let request = &self.request;
        let ours: [u8; NONCE_LEN] = turn.ctx.rng.array();
        let (spi_i, spi_r, path) = (turn.core.spi_i, turn.core.spi_r, turn.core.path);
        let mut payloads = vec![Payload::Nonce(ours.to_vec())];
        payloads.extend(nat::payloads(
            spi_i,
            spi_r,
            path,
            turn.ctx.config,
            turn.ctx.rng,
        ));
        payloads.push(childless::payload());
        turn.core.limit = fragment::agreed(request, turn.ctx.config);
        payloads.extend(turn.core.limit.and(fragment::payload(turn.ctx.config)));
        payloads.extend(is_ours(request).then(vendor_id));
        (ours, payloads)
    }

    /// Answers with our nonce. Keys and all that IKE_AUTH needs come from the entry.
    fn accept(self, entry: Entry, turn: &mut Turn<'_, '_>) -> Resumer {
        let (ours, opening) = self.opening(turn);
        let response = self.answer(opening, turn);
        let request = &self.request;
        let theirs = nonce(request).expect("it was there before the store was asked");
        let spis = [turn.core.spi_i, turn.core.spi_r];
        let inputs = Inputs::of_session(&entry.keys, [theirs, &ours], spis, false);
        let keys = UnprovedKeys::resumed(&entry.keys, &inputs);
        let path = turn.core.path;
        turn.core.nat = nat::detect(request, path);
        Resumer {
            group: entry.group,
            private: is_ours(request),
            willing: redirect::is_willing(request),
            elsewhere: redirect::elsewhere(request, path.local.ip(), turn.ctx.config),
            until: self.until,
            proof: Responder::resumed(
                Handshake::new(keys, false, response, self.octets),
                Resumed::new(entry, self.ticket),
            ),
        }
    }

    /// Refuses the ticket. The initiator keeps its place among the half-open SAs until it would
    /// have had to authenticate.
    pub(super) fn refuse(&self, turn: &mut Turn<'_, '_>) -> Ending {
        turn.ctx.drop(DropReason::Refused);
        self.answer(vec![ticket::refusal()], turn);
        Ending::Lingering(Lingering::until(self.until))
    }

    fn answer(&self, payloads: Vec<Payload>, turn: &mut Turn<'_, '_>) -> Vec<u8> {
        let header = turn.core.header(self.request.header.exchange, 0, true);
        let answer = Message { header, payloads }.encode();
        turn.ctx.transmit(turn.core.path, &answer);
        let (kept, to) = (Outgoing::clear(answer.clone()), turn.core.path.remote);
        turn.core.responses.answered(0, kept, to);
        answer
    }
}
