//! Responder: IKE_SA_INIT was answered, and IKE_AUTH is awaited, or the negotiated additional key
//! exchanges before it (RFC 9370).
//!
//! The initiator is not authenticated. It costs us one key agreement and this state. The engine
//! keeps a bounded number of such states for a bounded time, in however many rounds the proof of
//! identity comes (`auth/responder.rs`).

use super::State;
use super::admission::{self, ProvedInitiator, Traits};
use super::arrived::{Arrived, Complaint, Postponed};
use super::await_entry::Resumer;
use super::closing::{Ending, Lingering};
use super::established::Next;
use super::first_message::{HalfOpenTerms, Rejected};
use super::protected;
use super::turn::{Context, Turn, Verdict};
use crate::allowed_suites::group_id;
use crate::attempt::Offer;
use crate::auth::handshake::Handshake;
use crate::auth::responder::{Responder, Round};
use crate::auth::{Proved, Step};
use crate::cipher::Cipher;
use crate::counters::DropReason;
use crate::destination::Destination;
use crate::down_reason::PeerMisbehaved;
use crate::exchange::auth::Presented;
use crate::exchange::init::{self, Init, NONCE_LEN};
use crate::exchange::{is_ours, key_exchange, notify, rules, vendor_id};
use crate::extension::cookie;
use crate::extension::fragment::{self, Outgoing};
use crate::extension::nat;
use crate::extension::{childless, intermediate, padding, ppk, redirect};
use crate::keys::{Inputs, UnprovedKeys};
use crate::peer_table::PeerTable;
use crate::proposal::{IkeChoice, choose_ike};
use crate::refusal::{NotResumed, Refusal};
use crate::signature;
use crate::window::Responses;
use crypto::sha256;
use model::{Deadline, Group, Instant, Kem};
use resumption::{Operation, OperationId, Ticket};
use std::collections::VecDeque;
use wire::ike::{Datagram, ExchangeType, Message, NotifyType, Payload, Proposal};

pub(crate) struct AwaitAuth {
    pub(crate) proof: Responder,
    /// What the initiator offers in its first message.
    offer: Offer,
    group: Group,
    pub(crate) private: bool,
    /// True if the initiator supports redirection.
    willing: bool,
    elsewhere: Option<Destination>,
    /// The first IKE_AUTH request, if the proof needs another one.
    first: Option<Message>,
    /// The additional key exchanges that are still to come.
    left: VecDeque<Kem>,
    /// Cipher of the last additional key exchange, for a retransmitted request with other
    /// fragments.
    previous: Option<Cipher>,
    /// The verified request of an initiator whose entry the store is taking, or about whom the
    /// engine decides.
    postponed: Option<Box<Postponed>>,
    expires: Instant,
}

impl AwaitAuth {
    /// Answers a first message: derives keys, and sends the response.
    pub(crate) fn begin(
        request: &Message,
        octets: &[u8],
        terms: HalfOpenTerms,
        turn: &mut Turn<'_, '_>,
    ) -> Result<State, Rejected> {
        let drop = Rejected::Dropped;
        if let Some(kind) = request.unsupported_critical() {
            let kind = vec![kind.0];
            return Err(Rejected::Answered(
                NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD,
                kind,
            ));
        }
        rules::check(request).map_err(|_| drop(DropReason::WrongPayloads))?;
        let init = Init::read(request).ok_or(drop(DropReason::WrongPayloads))?;
        let elsewhere = redirect::elsewhere(request, turn.core.path.local.ip(), turn.ctx.config);
        let at_once = redirect::is_at_once(turn.ctx.config);
        if let Some(to) = elsewhere.as_ref().filter(|_| at_once) {
            let data = redirect::data(to, init.nonce);
            return Err(Rejected::Answered(NotifyType::REDIRECT, data));
        }
        let Some(choice) = choose(request, init.proposals, turn.ctx.config) else {
            let why = Refusal::no_ike_proposal(turn.ctx.config.menu.clone());
            refuse_first(request, why.clone(), turn);
            turn.ctx.refused_unknown_peer(turn.core.path.remote, why);
            return Err(Rejected::Answered(
                NotifyType::NO_PROPOSAL_CHOSEN,
                Vec::new(),
            ));
        };
        if init.key.group != group_id(choice.group) {
            let wanted = group_id(choice.group).0.to_be_bytes().to_vec();
            return Err(Rejected::Answered(NotifyType::INVALID_KE_PAYLOAD, wanted));
        }
        let nonce: [u8; NONCE_LEN] = turn.ctx.rng.array();
        let answer = vec![choice.answer];
        // Our public value is as long as the peer's, and is not computed for an initiator that does
        // not get it.
        let mut payloads = init::payloads(answer, choice.group, &init.key.public, &nonce);
        payloads.extend(nat::payloads(
            turn.core.spi_i,
            turn.core.spi_r,
            turn.core.path,
            turn.ctx.config,
            turn.ctx.rng,
        ));
        payloads.extend(signature::requests(
            turn.ctx.config.trust_of_all.authorities(),
            turn.ctx.config.signing,
        ));
        payloads.extend(signature::announcement(turn.ctx.config));
        payloads.push(childless::payload());
        turn.core.limit = fragment::agreed(request, turn.ctx.config);
        payloads.extend(turn.core.limit.and(fragment::payload(turn.ctx.config)));
        let ppk = turn.ctx.config.ppks && ppk::is_offered(request);
        payloads.extend(ppk.then(ppk::payload));
        let further = !choice.kems.is_empty();
        payloads.extend(further.then(intermediate::payload));
        let private = is_ours(request);
        payloads.extend(private.then(vendor_id));
        let header = turn.core.header(ExchangeType::IKE_SA_INIT, 0, true);
        let mut response = Message { header, payloads };
        if !terms.paid && !padding::is_enough(octets, &response.encode()) {
            return Err(Rejected::Unpaid);
        }
        let key = init::key_pair_for(&init.key.public, choice.group, turn.ctx.rng);
        let key = key.map_err(|_| Rejected::BadValue)?;
        turn.ctx.out.counters.key_pairs += 1;
        init::set_public(&mut response, key.public());
        let response = response.encode();
        let shared = key.agree(&init.key.public);
        let shared = shared.map_err(|_| Rejected::BadValue)?;
        turn.ctx.transmit(turn.core.path, &response);
        turn.core.responses.came(0, sha256(&[octets]));
        let to = turn.core.path.remote;
        let kept = Outgoing::clear(response.clone());
        turn.core.responses.answered(0, kept, to);
        let inputs = Inputs {
            suite: choice.suite,
            prf: choice.prf,
            nonce_i: init.nonce,
            nonce_r: &nonce,
            spi_i: turn.core.spi_i,
            spi_r: turn.core.spi_r,
            initiator: false,
        };
        let keys = UnprovedKeys::derive(&shared, &inputs);
        turn.core.nat = nat::detect(request, turn.core.path);
        let method = turn.ctx.config.credential.as_ref();
        let method = method.map(|credential| signature::method(credential, request));
        let handshake = Handshake::new(keys, false, response, octets.to_vec());
        Ok(State::AwaitAuth(Box::new(Self {
            proof: Responder::new(handshake, method, ppk),
            offer: Offer::of_initiator(request),
            group: choice.group,
            private,
            willing: redirect::is_willing(request),
            elsewhere,
            first: None,
            left: choice.kems.into(),
            previous: None,
            postponed: None,
            expires: terms.until,
        })))
    }

    /// Awaits the proof that an initiator knows the keys of the session that it resumes.
    pub(super) fn resumed(resumer: Resumer) -> State {
        let Resumer {
            proof,
            group,
            private,
            willing,
            elsewhere,
            until,
        } = resumer;
        State::AwaitAuth(Box::new(Self {
            proof,
            offer: Offer::default(),
            group,
            private,
            willing,
            elsewhere,
            first: None,
            left: VecDeque::new(),
            previous: None,
            postponed: None,
            expires: until,
        }))
    }

    /// Replaces the answered first message by another one that differs only in its cookie, and
    /// returns true if it did.
    ///
    /// While the number of half-open SAs crosses the threshold, copies of a first message may be
    /// answered directly or with a cookie request, in any order. The AUTH of an initiator that had
    /// to return a cookie covers the message with the cookie, regardless of which copy was
    /// answered.
    pub(crate) fn takes_with_cookie(
        &mut self,
        message: &Message,
        octets: &[u8],
        responses: &Responses,
    ) -> bool {
        let same = match Datagram::decode(&self.proof.handshake.theirs) {
            Ok(Datagram::Clear(before)) => cookie::is_all_that_differs(&before, message),
            Ok(Datagram::Sealed(_)) | Err(_) => false,
        };
        let takes = same && responses.is_newest(0);
        if takes {
            self.proof.handshake.theirs = octets.to_vec();
        }
        takes
    }

    /// Moves the end of the SA. An initiator that retransmits its first message may have lost every
    /// response so far, and needs the SA that the next one is about.
    pub(crate) const fn extend(&mut self, expires: Instant) {
        self.expires = expires;
    }

    pub(super) fn handle(
        mut self: Box<Self>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let header = arrived.datagram.header();
        let is_last = turn.core.responses.is_answered(header.message_id);
        let repeated = match arrived.datagram {
            Datagram::Clear(_) => true,
            Datagram::Sealed(_) => is_last && intermediate::is_covered(header),
        };
        if header.flags.response || (header.exchange != self.awaited() && !repeated) {
            turn.ctx.drop(DropReason::UnexpectedExchange);
            return State::AwaitAuth(self);
        }
        let cipher = match &mut self.previous {
            Some(previous) if is_last => previous,
            _ => &mut self.proof.handshake.keys.cipher,
        };
        match protected::accept_request(turn, cipher, arrived) {
            None => State::AwaitAuth(self),
            Some(Err(Complaint { why, notify })) => {
                turn.ctx
                    .refused_unknown_peer(arrived.path.remote, Refusal::Misbehaved(why));
                let payloads = vec![Payload::Notify(notify)];
                protected::respond(
                    turn,
                    &mut self.proof.handshake.keys.cipher,
                    arrived,
                    payloads,
                );
                self.linger()
            }
            Some(Ok(request)) if intermediate::is_covered(&request.header) => {
                self.exchange(&request, arrived, turn)
            }
            Some(Ok(request)) => self.conclude(request, arrived, turn),
        }
    }

    pub(super) fn handle_timeout(self: Box<Self>, ctx: &Context<'_>) -> State {
        match self.expires <= ctx.now {
            true => State::GONE,
            false => State::AwaitAuth(self),
        }
    }

    pub(super) const fn deadline(&self) -> Deadline {
        Deadline {
            at: self.expires,
            reason: "an initiator has not authenticated",
        }
    }

    /// Returns the exchange that has to come next: all negotiated key exchanges in their order,
    /// then IKE_AUTH.
    fn awaited(&self) -> ExchangeType {
        match self.left.is_empty() {
            true => ExchangeType::IKE_AUTH,
            false => ExchangeType::IKE_INTERMEDIATE,
        }
    }

    /// Answers an additional key exchange, and continues with the new keys.
    fn exchange(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let asked = self.left.pop_front().zip(key_exchange(request));
        let agreed = asked.and_then(|(kem, asked)| {
            let (answer, shared) = intermediate::answer(kem, asked).ok()?;
            Some((answer, (kem, shared)))
        });
        let Some((answer, (kem, shared))) = agreed else {
            turn.ctx.refused_unknown_peer(
                arrived.path.remote,
                Refusal::Misbehaved(PeerMisbehaved::BadKem),
            );
            turn.ctx.out.counters.refused += 1;
            let payloads = vec![notify(NotifyType::INVALID_SYNTAX, Vec::new())];
            protected::respond(
                turn,
                &mut self.proof.handshake.keys.cipher,
                arrived,
                payloads,
            );
            return self.linger();
        };
        protected::respond(
            turn,
            &mut self.proof.handshake.keys.cipher,
            arrived,
            vec![answer],
        );
        let before = self.proof.handshake.renew(kem, shared, turn.core);
        self.previous = Some(before.cipher);
        State::AwaitAuth(self)
    }

    /// Ends the SA, which keeps its place among the half-open ones until it would have expired.
    fn linger(&self) -> State {
        Ending::Lingering(Lingering::until(self.expires)).into()
    }

    fn conclude(
        mut self: Box<Self>,
        request: Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        if let Some(ticket) = self.proof.to_take() {
            return self.take(ticket, request, arrived, turn);
        }
        let earlier = self.first.take();
        let first = earlier.as_ref().unwrap_or(&request);
        let round = Round {
            first,
            request: &request,
            from: arrived.path.remote.ip(),
        };
        match self.proof.step(round, turn) {
            Ok(Some(Step::Done(proved))) => self.admit(proved, arrived, turn),
            Ok(None) => {
                self.postponed = Some(Postponed::new(request, arrived));
                self.first = earlier;
                State::AwaitAuth(self)
            }
            Ok(Some(Step::More(payloads))) => {
                let cipher = &mut self.proof.handshake.keys.cipher;
                protected::respond(turn, cipher, arrived, payloads);
                self.first = earlier.or(Some(request));
                // The answer to this request has the keys of the next one.
                self.previous = None;
                State::AwaitAuth(self)
            }
            Err(why) => self.refuse(first, why, arrived, turn),
        }
    }

    /// Has the store take the entry of an initiator that knows its keys. Nothing else happens
    /// before the outcome: another initiator may have been faster.
    fn take(
        mut self: Box<Self>,
        ticket: Ticket,
        request: Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let round = Round {
            first: &request,
            request: &request,
            from: arrived.path.remote.ip(),
        };
        if let Err(why) = self.proof.step(round, turn).map(drop) {
            return self.refuse(&request, why, arrived, turn);
        }
        let id = OperationId(turn.core.id.0);
        turn.ctx.tickets.submit(Operation::Take(id, ticket));
        self.postponed = Some(Postponed::new(request, arrived));
        State::AwaitAuth(self)
    }

    /// Continues with an initiator that has proved itself, as the engine decided.
    pub(super) fn handle_verdict(
        mut self: Box<Self>,
        verdict: Verdict,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let Some(postponed) = self.postponed.take() else {
            return State::AwaitAuth(self);
        };
        self.proof.note_verdict(verdict);
        self.conclude(postponed.request.clone(), &postponed.arrived(), turn)
    }

    /// Continues after the store has taken the entry, or did not find it.
    pub(super) fn handle_taken(
        mut self: Box<Self>,
        was_there: bool,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let Some(postponed) = self.postponed.take() else {
            return State::AwaitAuth(self);
        };
        let arrived = postponed.arrived();
        let request = postponed.request.clone();
        if was_there {
            self.proof.note_taken();
            return self.conclude(request, &arrived, turn);
        }
        let claimed = Presented::of_initiator(&request).map(|presented| presented.id);
        let why = claimed.map_or(Refusal::AuthenticationMethod, |claimed| {
            Refusal::NotResumed {
                claimed: claimed.identity.clone(),
                why: NotResumed::Spent,
            }
        });
        self.refuse(&request, why, &arrived, turn)
    }

    /// Continues with an initiator that is proved.
    fn admit(
        mut self,
        proved: Proved<'_>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let refusal = self.proof.refusal();
        turn.core.peer = Some(proved.peer.id);
        admission::settle_path(arrived, turn);
        let usage = self.proof.usage();
        let Handshake { keys, .. } = self.proof.handshake;
        self.offer.read_auth(proved.message, true, self.private);
        turn.ctx.attempt(turn.core, self.offer);
        let initiator = ProvedInitiator {
            keys: keys.proved(&proved.evidence),
            proved,
            traits: Traits {
                private: self.private,
                willing: self.willing,
                elsewhere: self.elsewhere,
                group: self.group,
                usage,
            },
            refusal,
        };
        match admission::admit(initiator, arrived, turn) {
            Next::Up(session) => admission::check_path(session, arrived, turn).into(),
            ended => ended.into(),
        }
    }

    /// Refuses an initiator that did not prove its identity, and records its claims.
    fn refuse(
        mut self: Box<Self>,
        first: &Message,
        why: Refusal,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let config = turn.ctx.config;
        let claimed = why.claimed();
        let claimed = claimed.and_then(|claimed| config.claimed(claimed));
        let mut theirs = std::mem::take(&mut self.offer);
        theirs.read_auth(first, true, self.private);
        let attempts = &mut turn.ctx.out.attempts;
        attempts.refuse(
            turn.core,
            claimed,
            config,
            theirs,
            why.clone(),
            turn.ctx.now,
        );
        turn.ctx.out.counters.refused += 1;
        let mut payloads = vec![notify(NotifyType::AUTHENTICATION_FAILED, Vec::new())];
        if let (Refusal::BadProof { why, .. }, true) = (&why, self.private) {
            payloads.extend(signature::explanation(why));
        }
        turn.ctx.refused_unknown_peer(arrived.path.remote, why);
        let cipher = &mut self.proof.handshake.keys.cipher;
        protected::respond(turn, cipher, arrived, payloads);
        self.linger()
    }
}

/// Chooses algorithms for an initiator. Without IKE_INTERMEDIATE there is no additional key
/// exchange.
fn choose(request: &Message, offered: &[Proposal], config: &PeerTable) -> Option<IkeChoice> {
    if intermediate::is_supported(request) {
        return choose_ike(offered, &config.menu);
    }
    let mut allowed = config.menu.clone();
    allowed.kems.retain(Option::is_none);
    choose_ike(offered, &allowed)
}

/// Records the offer of an initiator whose first request is refused.
fn refuse_first(request: &Message, why: Refusal, turn: &mut Turn<'_, '_>) {
    let theirs = Offer::of_initiator(request);
    let attempts = &mut turn.ctx.out.attempts;
    attempts.refuse(turn.core, None, turn.ctx.config, theirs, why, turn.ctx.now);
}
