//! Initiator: IKE_SA_INIT was sent, and its response is awaited.
//!
//! No message in this state is authenticated. Unacceptable responses are dropped, and the genuine
//! one is still awaited. A refusal is stored and reported once. It takes effect only if no
//! acceptable response arrives until the request is given up (RFC 7296 section 2.21.1). Until then,
//! other attempts may begin beside this one (`engine/attempts.rs`).

use super::State;
use super::arrived::Arrived;
use super::closing::Ending;
use super::first_answer;
use super::kem_sent::KemSent;
use super::turn::Turn;
use crate::allowed_suites::{AllowedIkeSuites, group_id};
use crate::attempt::Offer;
use crate::auth::Proof;
use crate::auth::handshake::Handshake;
use crate::auth::initiator::Initiator;
use crate::counters::DropReason;
use crate::destination::Destination;
use crate::down_reason::DownReason;
use crate::exchange::init::{self, Init, NONCE_LEN};
use crate::exchange::{first_error, is_ours, rules, vendor_id};
use crate::extension::fragment::{self, Outgoing};
use crate::extension::{childless, cookie, guess, intermediate, nat, padding, ppk, redirect, tcp};
use crate::keys::{Inputs, UnprovedKeys};
use crate::proposal::{check_ike, offer_ike};
use crate::refusal::Refusal;
use crate::signature;
use crypto::{KeyPair, Prf, Rng, Secret};
use model::{Group, Kem, Suite};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::ike::{Datagram, ExchangeType, Message, Payload};
use zeroize::Zeroizing;

pub(crate) struct InitSent {
    /// Seeds of the private values, one per group. A key agreement consumes the key pair, even if
    /// the public value is invalid. Nothing was agreed then, so the same key pair may be generated
    /// again for the genuine response.
    pub(crate) seeds: BTreeMap<Group, Zeroizing<[u8; 32]>>,
    nonce: [u8; NONCE_LEN],
    /// Our offer, independent of the guessed group.
    menu: AllowedIkeSuites,
    /// Group of the last public value that was sent.
    guess: Group,
    guesses: u32,
    cookie: Option<Vec<u8>>,
    cookies: u32,
    /// The payloads after the first three.
    extensions: Vec<Payload>,
    /// The last message sent with each group: AUTH covers the answered one.
    sent: BTreeMap<Group, Vec<u8>>,
    /// Reason for which the last answer was not usable. The answer is not authenticated.
    refused: Option<DownReason>,
    /// True if the peer redirected us to a gateway with a name, whose addresses are awaited.
    is_redirected: bool,
}

/// The content of an acceptable response.
struct Answer {
    suite: Suite,
    prf: Prf,
    group: Group,
    /// The additional key exchanges.
    kems: Vec<Kem>,
    shared: Secret,
    nonce: Vec<u8>,
}

impl InitSent {
    /// Sends the first message; `from` is the gateway that redirected us to this one.
    pub(crate) fn begin(
        menu: AllowedIkeSuites,
        from: Option<IpAddr>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        turn.ctx.attempt(turn.core, Offer::default());
        let mut extensions = nat::payloads(
            turn.core.spi_i,
            0,
            turn.core.path,
            turn.ctx.config,
            turn.ctx.rng,
        )
        .to_vec();
        extensions.extend(signature::announcement(turn.ctx.config));
        extensions.extend(fragment::payload(turn.ctx.config));
        let ours = turn.core.ppk(turn.ctx.config);
        extensions.extend(ours.map(|_| ppk::payload()));
        let peer = turn.core.peer(turn.ctx.config);
        extensions.extend(peer.and_then(|peer| redirect::willing(peer, from)));
        let further = menu.kems.iter().any(Option::is_some);
        extensions.extend(further.then(intermediate::payload));
        extensions.extend([vendor_id(), padding::payload()]);
        let guess = menu.groups.first().copied().unwrap_or(Group::X25519);
        let groups = menu.groups.iter().copied().chain([guess]);
        let mut draw = Rng::from_seed(turn.ctx.rng.array());
        let mut state = Box::new(Self {
            seeds: groups
                .map(|group| (group, Zeroizing::new(draw.array())))
                .collect(),
            nonce: turn.ctx.rng.array(),
            guess,
            menu,
            guesses: 0,
            cookie: None,
            cookies: 0,
            extensions,
            sent: BTreeMap::new(),
            refused: None,
            is_redirected: false,
        });
        state.send(turn);
        State::InitSent(state)
    }

    pub(super) fn handle(self: Box<Self>, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) -> State {
        let Datagram::Clear(response) = &arrived.datagram else {
            turn.ctx.drop(DropReason::UnexpectedExchange);
            return State::InitSent(self);
        };
        if !response.header.flags.response || !turn.core.requests.awaits(&response.header) {
            turn.ctx.drop(DropReason::UnexpectedExchange);
            return State::InitSent(self);
        }
        turn.ctx
            .out
            .attempts
            .learn(turn.core, |theirs| theirs.read_init(response));
        if let Some(cookie) = cookie::asked(response) {
            return self.send_cookie(cookie, turn);
        }
        if let Some(group) = guess::corrected(response, &self.menu.groups) {
            return self.send_group(group, turn);
        }
        let told = match self.is_redirected {
            true => None,
            false => redirect::sent(response, &self.nonce, turn),
        };
        match told {
            // The response is not authenticated, and the name may mean nothing.
            Some(Ok(to @ Destination::Name(_))) => {
                turn.follow_redirect(to, turn.core.anew);
                turn.ctx.drop(DropReason::Unauthenticated);
                let mut redirected = self;
                redirected.is_redirected = true;
                return State::InitSent(redirected);
            }
            Some(Ok(to)) => {
                turn.ctx.count_taken();
                turn.follow_redirect(to, turn.core.anew);
                return State::GONE;
            }
            Some(Err(why)) => {
                let told = Refusal::UnprovedLack(Box::new(why.clone()));
                return self.remember(why, told, turn);
            }
            None => {}
        }
        if let Some(error) = first_error(response) {
            let (why, told) = (
                DownReason::Refused { notify: error },
                Refusal::Unproved(error),
            );
            return self.remember(why, told, turn);
        }
        match self.read(response) {
            Ok(answer) => self.proceed(&answer, arrived, response, turn),
            Err(why) => {
                turn.ctx.drop(why);
                State::InitSent(self)
            }
        }
    }

    /// Gives up, as no acceptable response arrived.
    pub(super) fn give_up(self, turn: &mut Turn<'_, '_>) -> State {
        let address = turn.core.path.remote.ip();
        match self.refused {
            Some(why) => Ending::gone(why, turn).into(),
            None => tcp::unanswered(DownReason::Unreachable { address }, turn).into(),
        }
    }

    fn send(&mut self, turn: &mut Turn<'_, '_>) {
        let (exchange, key) = (ExchangeType::IKE_SA_INIT, self.key_pair(self.guess));
        let offer = offer_ike(&self.menu);
        let mut payloads = init::payloads(offer, self.guess, key.public(), &self.nonce);
        payloads.extend(self.extensions.iter().cloned());
        if let Some(cookie) = &self.cookie {
            payloads.insert(0, cookie::payload(cookie));
        }
        let header = turn.core.header(exchange, 0, false);
        let octets = Message { header, payloads }.encode();
        turn.ctx.transmit(turn.core.path, &octets);
        self.sent.insert(self.guess, octets.clone());
        let timers = &turn.ctx.config.timers;
        let parcel = Outgoing::clear(octets);
        let allowed = tcp::allowed(turn);
        turn.core
            .requests
            .sent(&header, parcel, allowed, timers, turn.ctx.now);
        turn.ctx.out.attempts.sent(turn.core, false);
    }

    fn key_pair(&self, group: Group) -> KeyPair {
        init::key_pair(group, &mut Rng::from_seed(*self.seeds[&group]))
    }

    fn send_cookie(mut self: Box<Self>, cookie: &[u8], turn: &mut Turn<'_, '_>) -> State {
        if self.cookies == cookie::MAX_ROUNDS {
            turn.ctx.drop(DropReason::RepeatedTooOften);
        } else {
            turn.ctx.count_taken();
            self.cookies += 1;
            self.cookie = Some(cookie.to_vec());
            self.send(turn);
        }
        State::InitSent(self)
    }

    /// Sends the request with another group. A retransmitted answer to an earlier guess changes
    /// nothing.
    fn send_group(mut self: Box<Self>, group: Group, turn: &mut Turn<'_, '_>) -> State {
        if group == self.guess {
            turn.ctx.drop(DropReason::WrongAnswer);
        } else if self.guesses == guess::MAX_ROUNDS {
            turn.ctx.drop(DropReason::RepeatedTooOften);
        } else {
            turn.ctx.count_taken();
            self.guesses += 1;
            self.guess = group;
            self.send(turn);
        }
        State::InitSent(self)
    }

    fn remember(
        mut self: Box<Self>,
        why: DownReason,
        told: Refusal,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        if self.refused.as_ref() != Some(&why) {
            let peer = turn.core.peer_id();
            turn.ctx.refused(Some(peer), told);
            self.refused = Some(why.clone());
        }
        turn.core.refused = true;
        turn.ctx.drop(DropReason::Unauthenticated);
        // "In the case of TCP encapsulation, an Initiator SHOULD NOT wait for additional messages"
        // (RFC 9329 section 6.4): this answer is genuine, or no genuine one will come.
        match turn.core.path.is_stream() {
            true => Ending::gone(why, turn).into(),
            false => State::InitSent(self),
        }
    }

    fn read(&self, response: &Message) -> Result<Answer, DropReason> {
        rules::check(response).map_err(|_| DropReason::WrongPayloads)?;
        if response.unsupported_critical().is_some() {
            return Err(DropReason::WrongPayloads);
        }
        let init = Init::read(response).ok_or(DropReason::WrongPayloads)?;
        let choice = check_ike(init.proposals, &self.menu).ok_or(DropReason::WrongAnswer)?;
        if !choice.kems.is_empty() && !intermediate::is_supported(response) {
            return Err(DropReason::WrongAnswer);
        }
        let tried = self.sent.contains_key(&choice.group);
        if !tried || init.key.group != group_id(choice.group) {
            return Err(DropReason::KeyExchange);
        }
        // Our key pair is generated again, but only for a valid public value.
        init::check(choice.group, &init.key.public).map_err(|_| DropReason::KeyExchange)?;
        let key = self.key_pair(choice.group);
        let reflected = init.nonce == self.nonce || init.key.public == key.public();
        if reflected || response.header.spi_r == 0 {
            return Err(DropReason::Reflected);
        }
        let shared = key
            .agree(&init.key.public)
            .map_err(|_| DropReason::KeyExchange)?;
        Ok(Answer {
            suite: choice.suite,
            prf: choice.prf,
            group: choice.group,
            kems: choice.kems,
            shared,
            nonce: init.nonce.to_vec(),
        })
    }

    /// Continues with an answer, unless its sender lacks a feature that we need. That is not
    /// authenticated either, and treated like a refusal.
    fn proceed(
        self: Box<Self>,
        answer: &Answer,
        arrived: &Arrived<'_>,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let nat = first_answer::detect_nat(response, arrived, turn.core);
        let no_child = turn
            .core
            .peer(turn.ctx.config)
            .is_some_and(|peer| childless::is_wanted(&peer.role));
        let lack = match no_child {
            true => (!childless::is_supported(response)).then_some(DownReason::NotChildless),
            false => nat.is_none().then_some(DownReason::NoNatTraversal),
        };
        let signs = turn
            .core
            .peer(turn.ctx.config)
            .is_some_and(|peer| Proof::of(peer).is_signature());
        let credential = turn.ctx.config.credential.as_ref().filter(|_| signs);
        let method = credential.map(|credential| signature::method(credential, response));
        let (method, deaf) = match method.transpose() {
            Ok(method) => (method, None),
            Err(why) => (None, Some(why.into())),
        };
        let lack = lack.or(deaf);
        let ours = turn.core.ppk(turn.ctx.config);
        let agreed = ours.filter(|_| ppk::is_offered(response));
        // "It is RECOMMENDED that ... the initiator not abort the exchange immediately. Instead, it
        // waits for more response messages" (RFC 8784 section 6).
        let missed = agreed.is_none() && ours.is_some_and(|ours| ours.required);
        let lack = lack.or_else(|| missed.then_some(DownReason::NoPpk));
        if let Some(why) = lack {
            let told = Refusal::UnprovedLack(Box::new(why.clone()));
            return self.remember(why, told, turn);
        }
        first_answer::accept(response, arrived, nat, turn);
        let inputs = Inputs {
            suite: answer.suite,
            prf: answer.prf,
            nonce_i: &self.nonce,
            nonce_r: &answer.nonce,
            spi_i: turn.core.spi_i,
            spi_r: turn.core.spi_r,
            initiator: true,
        };
        let keys = UnprovedKeys::derive(&answer.shared, &inputs);
        let first = self.sent[&answer.group].clone();
        let handshake = Handshake::new(keys, true, first, arrived.octets.to_vec());
        let proof = Initiator::new(handshake, method, agreed.is_some());
        let kems = answer.kems.iter().copied().collect();
        KemSent::begin(proof, is_ours(response), kems, turn)
    }
}
