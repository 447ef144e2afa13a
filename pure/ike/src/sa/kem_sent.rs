//! Initiator: IKE_INTERMEDIATE was sent, and its response is awaited (RFC 9370 section 2.2.2).
//!
//! The keys are fresh, but the other end is unknown until IKE_AUTH. Each exchange renews the keys.
//! IKE_AUTH follows after all negotiated exchanges.

use super::auth_sent::{AuthSent, uncut};
use super::{Arrived, Context, Core, State};
use crate::down_reason::{DownReason, PeerMisbehaved};
use crate::exchange::{first_error, key_exchange};
use crate::extension::intermediate::Asked;
use model::Kem;
use std::collections::VecDeque;
use wire::ike::{ExchangeType, Message};

pub(crate) struct KemSent {
    /// State for IKE_AUTH, including the keys.
    pub(crate) next: AuthSent,
    /// Our IKE_SA_INIT message.
    first: Vec<u8>,
    asked: Asked,
    /// The methods that follow.
    left: VecDeque<Kem>,
}

impl KemSent {
    /// Starts the next of the remaining exchanges, or IKE_AUTH if there is none. `first` is our
    /// IKE_SA_INIT message.
    pub(super) fn begin(
        mut next: AuthSent,
        first: Vec<u8>,
        mut left: VecDeque<Kem>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let Some(kem) = left.pop_front() else {
            return next.begin(&first, core, ctx);
        };
        let Some(asked) = Asked::new(kem) else {
            return core.gone(DownReason::NoKemKey, ctx);
        };
        let (exchange, payloads) = (ExchangeType::IKE_INTERMEDIATE, vec![asked.payload()]);
        let allowed = ctx.config.timers.give_up;
        core.request(&mut next.keys.cipher, exchange, payloads, allowed, ctx);
        let uncut = uncut(core, ctx.config);
        ctx.out.attempts.learn_uncut(core, uncut);
        State::KemSent(Box::new(Self {
            next,
            first,
            asked,
            left,
        }))
    }

    pub(super) fn handle(
        self: Box<Self>,
        arrived: &Arrived<'_>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        match core.accept_unproved(&self.next.keys.cipher, arrived, ctx) {
            None => State::KemSent(self),
            Some(Err(complaint)) => core.gone(DownReason::Misbehaved(complaint.why), ctx),
            Some(Ok(response)) => self.conclude(&response, core, ctx),
        }
    }

    /// Gives up, as no response arrived.
    pub(super) fn give_up(self: Box<Self>, core: &Core, ctx: &mut Context<'_>) -> State {
        let port = core.path.remote.port();
        let why = match uncut(core, ctx.config) {
            Some(uncut) => DownReason::LongKemUnanswered(uncut),
            None => DownReason::AuthUnanswered { port },
        };
        core.unanswered(why, ctx)
    }

    fn conclude(
        self: Box<Self>,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        if let Some(notify) = first_error(response) {
            return core.gone(DownReason::KemRefused { notify }, ctx);
        }
        let Self {
            mut next,
            first,
            asked,
            left,
        } = *self;
        let agreed = key_exchange(response).and_then(|answer| asked.agree(answer).ok());
        let Some(agreed) = agreed else {
            return core.gone(DownReason::Misbehaved(PeerMisbehaved::BadKem), ctx);
        };
        next.covered.add(&next.keys.roots, &mut core.said);
        next.keys = next.keys.renewed(agreed, (core.spi_i, core.spi_r), true);
        Self::begin(next, first, left, core, ctx)
    }
}
