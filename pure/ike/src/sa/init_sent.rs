//! Initiator: IKE_SA_INIT was sent, its response is expected.
//!
//! Nothing that comes here is authenticated. What does not fit is dropped and the genuine response
//! is still waited for; a refusal is remembered, told once, and believed only when nothing better
//! came until the request was given up (RFC 7296 section 2.21.1).

use super::auth_sent::AuthSent;
use super::{Arrived, Context, Core, State};
use crate::counters::DropReason;
use crate::event::{DownReason, Refusal};
use crate::exchange::init::{self, Init, NONCE_LEN};
use crate::exchange::{first_error, is_ours, rules, vendor_id};
use crate::extension::{childless, cookie, nat};
use crate::keys::{Inputs, UnprovedKeys};
use crate::proposal::{check_ike, offer_ike};
use crypto::{Group, KeyPair, Rng, Secret};
use model::Suite;
use wire::ike::{Datagram, ExchangeType, GroupId, Message, NotifyType, Payload};
use zeroize::Zeroizing;

pub(crate) struct InitSent {
    /// What the private value is drawn from. A public value that is refused would use the key pair
    /// up; nothing was agreed with it, so it may be made again for the response that is genuine.
    seed: Zeroizing<[u8; 32]>,
    nonce: [u8; NONCE_LEN],
    /// The payloads without a cookie.
    payloads: Vec<Payload>,
    /// The message as it was sent last, which AUTH covers.
    sent: Vec<u8>,
    cookies: u32,
    /// The last refusal, by whomever.
    pub(crate) refused: Option<NotifyType>,
}

/// What a response that fits tells.
struct Answer {
    suite: Suite,
    shared: Secret,
    nonce: Vec<u8>,
}

impl InitSent {
    /// Sends the first message.
    pub(crate) fn begin(core: &mut Core, suites: &[Suite], ctx: &mut Context<'_>) -> State {
        let (seed, nonce) = (Zeroizing::new(ctx.rng.array()), ctx.rng.array());
        let key = key_pair(&seed);
        let mut payloads = init::payloads(offer_ike(suites), key.public(), &nonce);
        payloads.extend(nat::payloads(core.spi_i, 0, core.path, ctx.rng));
        payloads.push(vendor_id());
        let mut state = Box::new(Self {
            seed,
            nonce,
            payloads,
            sent: Vec::new(),
            cookies: 0,
            refused: None,
        });
        state.send(state.payloads.clone(), core, ctx);
        State::InitSent(state)
    }

    pub(super) fn handle(
        self: Box<Self>,
        arrived: &Arrived<'_>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let Datagram::Clear(response) = &arrived.datagram else {
            ctx.drop(DropReason::UnexpectedExchange);
            return State::InitSent(self);
        };
        if !response.header.flags.response || !core.requests.awaits(&response.header) {
            ctx.drop(DropReason::UnexpectedExchange);
            return State::InitSent(self);
        }
        if let Some(cookie) = cookie::asked(response) {
            return self.send_cookie(cookie, core, ctx);
        }
        if let Some(error) = first_error(response) {
            return self.remember(error, core, ctx);
        }
        match self.read(response, core, ctx) {
            Ok(answer) => {
                ctx.take();
                self.proceed(&answer, arrived, response, core, ctx)
            }
            Err(why) => {
                ctx.drop(why);
                State::InitSent(self)
            }
        }
    }

    /// The response never came.
    pub(super) fn give_up(self, core: &Core, ctx: &mut Context<'_>) -> State {
        let address = core.path.remote.ip();
        let why = match self.refused {
            Some(notify) => DownReason::Refused { notify },
            None => DownReason::Unreachable { address },
        };
        core.gone(why, ctx)
    }

    fn send(&mut self, payloads: Vec<Payload>, core: &mut Core, ctx: &mut Context<'_>) {
        let header = core.header(ExchangeType::IKE_SA_INIT, 0, false);
        self.sent = Message { header, payloads }.encode();
        ctx.transmit(core.path, &self.sent);
        let timers = &ctx.config.timers;
        let (exchange, octets) = (ExchangeType::IKE_SA_INIT, self.sent.clone());
        core.requests
            .sent(exchange, octets, timers.attempts, timers, ctx.now);
    }

    fn send_cookie(
        mut self: Box<Self>,
        cookie: &[u8],
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        if self.cookies == cookie::MAX_ROUNDS {
            ctx.drop(DropReason::RepeatedTooOften);
        } else {
            ctx.take();
            self.cookies += 1;
            self.send(cookie::prepend(cookie, &self.payloads), core, ctx);
        }
        State::InitSent(self)
    }

    fn remember(
        mut self: Box<Self>,
        error: NotifyType,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> State {
        if self.refused.replace(error) != Some(error) {
            let peer = core.name(ctx.config);
            ctx.refused(Some(peer), Refusal::Unproved(error));
        }
        ctx.drop(DropReason::Unauthenticated);
        State::InitSent(self)
    }

    fn read(
        &self,
        response: &Message,
        core: &Core,
        ctx: &Context<'_>,
    ) -> Result<Answer, DropReason> {
        rules::check(response).map_err(|_| DropReason::WrongPayloads)?;
        if response.unsupported_critical().is_some() {
            return Err(DropReason::WrongPayloads);
        }
        let init = Init::read(response).ok_or(DropReason::WrongPayloads)?;
        let peer = core.peer(ctx.config).ok_or(DropReason::UnknownSa)?;
        let choice = check_ike(init.proposals, &peer.suites).ok_or(DropReason::WrongAnswer)?;
        let key = key_pair(&self.seed);
        let reflected = init.nonce == self.nonce || init.key.public == key.public();
        if reflected || response.header.spi_r == 0 {
            return Err(DropReason::Reflected);
        }
        if init.key.group != GroupId::CURVE25519 {
            return Err(DropReason::KeyExchange);
        }
        let shared = key
            .agree(&init.key.public)
            .map_err(|_| DropReason::KeyExchange)?;
        Ok(Answer {
            suite: choice.suite,
            shared,
            nonce: init.nonce.to_vec(),
        })
    }

    fn proceed(
        self,
        answer: &Answer,
        arrived: &Arrived<'_>,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let nat = nat::detect(response, arrived.path);
        let no_child = core
            .peer(ctx.config)
            .is_some_and(|peer| childless::is_wanted(&peer.role));
        if no_child && !childless::is_supported(response) {
            return core.gone(DownReason::NotChildless, ctx);
        }
        if !no_child && nat.is_none() {
            return core.gone(DownReason::NoNatTraversal, ctx);
        }
        core.requests.answered();
        core.spi_r = response.header.spi_r;
        core.path = match nat {
            Some(_) => nat::float(arrived.path, ctx.config.natt_port),
            None => arrived.path,
        };
        let keys = UnprovedKeys::derive(Inputs {
            suite: answer.suite,
            shared: answer.shared.clone(),
            nonce_i: &self.nonce,
            nonce_r: &answer.nonce,
            spi_i: core.spi_i,
            spi_r: core.spi_r,
            initiator: true,
        });
        AuthSent {
            keys,
            response: arrived.octets.to_vec(),
            child: None,
            nat,
            private: is_ours(response),
        }
        .begin(&self.sent, core, ctx)
    }
}

fn key_pair(seed: &[u8; 32]) -> KeyPair {
    KeyPair::generate(Group::X25519, &mut Rng::from_seed(*seed))
}
