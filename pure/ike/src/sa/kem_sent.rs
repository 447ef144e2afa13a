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
use crate::auth::initiator::Initiator;
use crate::down_reason::{DownReason, PeerMisbehaved};
use crate::exchange::{first_error, key_exchange};
use crate::extension::intermediate::Asked;
use crate::extension::tcp;
use model::Kem;
use std::collections::VecDeque;
use wire::ike::{ExchangeType, Message};

pub(crate) struct KemSent {
    /// The proofs of IKE_AUTH, including the keys.
    pub(crate) proof: Initiator,
    /// True if the responder understands our private numbers.
    private: bool,
    asked: Asked,
    /// The methods that follow.
    left: VecDeque<Kem>,
}

impl KemSent {
    /// Starts the next of the remaining exchanges, or IKE_AUTH if there is none.
    pub(super) fn begin(
        mut proof: Initiator,
        private: bool,
        mut left: VecDeque<Kem>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let Some(kem) = left.pop_front() else {
            return AuthSent::begin(proof, private, turn);
        };
        let Some(asked) = Asked::new(kem) else {
            return Ending::gone(DownReason::NoKemKey, turn).into();
        };
        let (exchange, payloads) = (ExchangeType::IKE_INTERMEDIATE, vec![asked.payload()]);
        let allowed = turn.ctx.config.timers.give_up;
        let cipher = &mut proof.handshake.keys.cipher;
        protected::request(turn, cipher, exchange, payloads, allowed);
        let uncut = uncut(turn.core, turn.ctx.config);
        turn.ctx.out.attempts.learn_uncut(turn.core, uncut);
        State::KemSent(Box::new(Self {
            proof,
            private,
            asked,
            left,
        }))
    }

    pub(super) fn handle(self: Box<Self>, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) -> State {
        match protected::accept_unproved(turn, &self.proof.handshake.keys.cipher, arrived) {
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
            mut proof,
            private,
            asked,
            left,
        } = *self;
        let agreed = key_exchange(response).and_then(|answer| asked.agree(answer).ok());
        let Some((kem, shared)) = agreed else {
            return Ending::gone(DownReason::Misbehaved(PeerMisbehaved::BadKem), turn).into();
        };
        proof.handshake.renew(kem, shared, turn.core);
        Self::begin(proof, private, left, turn)
    }
}
