//! Initiator: IKE_INTERMEDIATE was sent, and its response is awaited (RFC 9370 section 2.2.2).
//!
//! The keys are fresh, but the other end is unknown until IKE_AUTH. Each exchange renews the keys.
//! IKE_AUTH follows after all negotiated exchanges.

use super::State;
use super::arrived::Arrived;
use super::auth_sent::{AuthSent, uncut};
use super::closing::Ending;
use super::protected;
use super::turn::Turn;
use crate::down_reason::{DownReason, PeerMisbehaved};
use crate::exchange::{first_error, key_exchange};
use crate::extension::intermediate::Asked;
use crate::extension::tcp;
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
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let Some(kem) = left.pop_front() else {
            return next.begin(&first, turn);
        };
        let Some(asked) = Asked::new(kem) else {
            return Ending::gone(DownReason::NoKemKey, turn).into();
        };
        let (exchange, payloads) = (ExchangeType::IKE_INTERMEDIATE, vec![asked.payload()]);
        let allowed = turn.ctx.config.timers.give_up;
        protected::request(turn, &mut next.keys.cipher, exchange, payloads, allowed);
        let uncut = uncut(turn.core, turn.ctx.config);
        turn.ctx.out.attempts.learn_uncut(turn.core, uncut);
        State::KemSent(Box::new(Self {
            next,
            first,
            asked,
            left,
        }))
    }

    pub(super) fn handle(self: Box<Self>, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) -> State {
        match protected::accept_unproved(turn, &self.next.keys.cipher, arrived) {
            None => State::KemSent(self),
            Some(Err(complaint)) => {
                Ending::gone(DownReason::Misbehaved(complaint.why), turn).into()
            }
            Some(Ok(response)) => self.conclude(&response, turn),
        }
    }

    /// Gives up, as no response arrived.
    pub(super) fn give_up(self: Box<Self>, turn: &mut Turn<'_, '_>) -> State {
        let port = turn.core.path.remote.port();
        let why = match uncut(turn.core, turn.ctx.config) {
            Some(uncut) => DownReason::LongKemUnanswered(uncut),
            None => DownReason::AuthUnanswered { port },
        };
        tcp::unanswered(why, turn).into()
    }

    fn conclude(self: Box<Self>, response: &Message, turn: &mut Turn<'_, '_>) -> State {
        if let Some(notify) = first_error(response) {
            return Ending::gone(DownReason::KemRefused { notify }, turn).into();
        }
        let Self {
            mut next,
            first,
            asked,
            left,
        } = *self;
        let agreed = key_exchange(response).and_then(|answer| asked.agree(answer).ok());
        let Some((kem, shared)) = agreed else {
            return Ending::gone(DownReason::Misbehaved(PeerMisbehaved::BadKem), turn).into();
        };
        next.covered
            .add(&next.keys.roots, &mut turn.core.transcript);
        let (spi_i, spi_r) = (turn.core.spi_i, turn.core.spi_r);
        next.keys = next.keys.renewed(kem, shared, spi_i, spi_r, true);
        Self::begin(next, first, left, turn)
    }
}
