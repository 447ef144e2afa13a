//! Initiator: IKE_AUTH was sent, and its response is awaited. The proofs of identity may need
//! several rounds (`auth/initiator.rs`).

use super::State;
use super::admission::{self, FirstRequest};
use super::arrived::Arrived;
use super::closing::Ending;
use super::core::Core;
use super::protected;
use super::turn::{NotResumed, Turn};
use crate::auth::Step;
use crate::auth::initiator::{Failed, Initiator};
use crate::child::Offer;
use crate::config::Config;
use crate::down_reason::DownReason;
use crate::exchange::notify;
use crate::extension::fragment::Uncut;
use crate::extension::{tcp, ticket};
use crate::signature;
use std::time::Duration;
use wire::ike::{ExchangeType, Message, NotifyType, Payload};

pub(crate) struct AuthSent {
    pub(crate) proof: Initiator,
    /// The child SA that we requested; `None` for a role without child SAs.
    child: Option<Offer>,
    /// True if the responder understands our private numbers.
    private: bool,
}

impl AuthSent {
    /// Sends the first request.
    pub(super) fn begin(proof: Initiator, private: bool, turn: &mut Turn<'_, '_>) -> State {
        let state = Box::new(Self {
            proof,
            child: None,
            private,
        });
        state.proceed(None, turn)
    }

    pub(super) fn handle(self: Box<Self>, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) -> State {
        match protected::accept_unproved(turn, &self.proof.handshake.keys.cipher, arrived) {
            None => State::AuthSent(self),
            Some(Err(complaint)) => {
                Ending::gone(DownReason::Misbehaved(complaint.why), turn).into()
            }
            Some(Ok(mut response)) => {
                let private = self.private;
                if !private {
                    response.forget_private();
                }
                turn.ctx.out.attempts.learn(turn.core, |theirs| {
                    theirs.read_auth(&response, false, private)
                });
                self.proceed(Some(&response), turn)
            }
        }
    }

    /// Gives up, as no response arrived.
    pub(super) fn give_up(self: Box<Self>, turn: &mut Turn<'_, '_>) -> State {
        let port = turn.core.path.remote.port();
        let why = match uncut(turn.core, turn.ctx.config) {
            Some(uncut) => DownReason::LongAuthUnanswered(uncut),
            None => DownReason::AuthUnanswered { port },
        };
        tcp::unanswered(why, turn).into()
    }

    /// Continues after a response, or begins without one.
    fn proceed(mut self: Box<Self>, response: Option<&Message>, turn: &mut Turn<'_, '_>) -> State {
        match self.proof.step(response, turn) {
            Ok(Step::More(proof)) if response.is_none() => self.request_first(proof, turn),
            Ok(Step::More(proof)) => self.request(proof, turn),
            Ok(Step::Done(proved)) => {
                let resumed = self.proof.is_resumed();
                let keys = self.proof.handshake.keys.proved(&proved.evidence);
                admission::accept(proved, keys, self.private, resumed, self.child, turn).into()
            }
            Err(failed) => self.fail(failed, turn),
        }
    }

    /// Sends the first request, which has more than our proof.
    fn request_first(mut self: Box<Self>, proof: Vec<Payload>, turn: &mut Turn<'_, '_>) -> State {
        let Some(peer) = turn.core.peer(turn.ctx.config) else {
            return State::GONE;
        };
        match admission::request(peer, proof, self.private, turn) {
            Ok(FirstRequest {
                mut payloads,
                child,
            }) => {
                self.child = child;
                payloads.extend(ticket::request(peer, self.private));
                self.request(payloads, turn)
            }
            Err(why) => Ending::gone(why, turn).into(),
        }
    }

    fn request(mut self: Box<Self>, payloads: Vec<Payload>, turn: &mut Turn<'_, '_>) -> State {
        let cipher = &mut self.proof.handshake.keys.cipher;
        let allowed = turn.ctx.config.timers.give_up;
        protected::request(turn, cipher, ExchangeType::IKE_AUTH, payloads, allowed);
        let uncut = uncut(turn.core, turn.ctx.config);
        turn.ctx.out.attempts.learn_uncut(turn.core, uncut);
        State::AuthSent(self)
    }

    fn fail(mut self: Box<Self>, failed: Failed, turn: &mut Turn<'_, '_>) -> State {
        let Failed { why, is_up_there } = failed;
        let is_resumed = self.proof.is_resumed();
        if is_up_there {
            let mut payloads = vec![notify(NotifyType::AUTHENTICATION_FAILED, Vec::new())];
            if let (DownReason::BadProof(why), true) = (&why, self.private) {
                payloads.extend(signature::explanation(why));
            }
            let cipher = &mut self.proof.handshake.keys.cipher;
            let exchange = ExchangeType::INFORMATIONAL;
            protected::request(turn, cipher, exchange, payloads, Duration::ZERO);
        }
        if is_resumed {
            turn.ctx.out.not_resumed.push(NotResumed::from(&*turn.core));
            return State::GONE;
        }
        Ending::gone(why, turn).into()
    }
}

/// Returns the size of our request if IP has to fragment it.
pub(super) fn uncut(core: &Core, config: &Config) -> Option<Uncut> {
    let longest = core.requests.longest()?;
    Uncut::of(longest, core.path, core.limit, config)
}
