//! The successor of an IKE SA, before it replaces the SA.
//!
//! With negotiated additional key exchanges, the successor is complete only after one
//! IKE_FOLLOWUP_KE for each ([`followup`]). The end that requested the successor initiates them.

use super::cloning::Purpose;
use super::established::Established;
use super::task::Task;
use super::{Arrived, Core, State, Turn};
use crate::down_reason::DownReason;
use crate::exchange::{first_error, notify};
use crate::extension::followup::{self, Series};
use crate::extension::fragment::Inbox;
use crate::extension::intermediate::{Asked, AuthTranscript};
use crate::keys::{Inputs, ProvedKeys};
use crate::refusal::Refusal;
use crate::window::Responses;
use crypto::Secret;
use model::{Instant, Suite};
use wire::ike::{Message, NotifyType, Payload};

/// A successor that has not replaced its SA yet.
pub(crate) struct Successor {
    pub(super) suite: Suite,
    /// Purpose of the successor, if it is a clone.
    pub(super) purpose: Option<Purpose>,
    /// True if we requested it, and are thus its original initiator.
    pub(super) ours: bool,
    pub(super) spi_i: u64,
    pub(super) spi_r: u64,
    pub(super) nonce_i: Vec<u8>,
    pub(super) nonce_r: Vec<u8>,
    /// Shared secret of the group.
    pub(super) shared: Secret,
    /// The additional key exchanges.
    pub(super) series: Series,
    /// Time at which it is dropped, if the peer has to continue it.
    pub(super) until: Instant,
}

impl Successor {
    /// Returns true if all key exchanges have taken place.
    pub(super) fn is_complete(&self) -> bool {
        self.series.is_complete()
    }

    /// Returns the nonce that decides between two successors (RFC 7296 section 2.8.2).
    pub(super) fn lower_nonce(&self) -> &[u8] {
        self.nonce_i.as_slice().min(&self.nonce_r)
    }

    /// Derives its keys; `old` are those of the SA that it replaces.
    pub(super) fn keys(self, old: &ProvedKeys) -> ProvedKeys {
        let inputs = Inputs {
            suite: self.suite,
            shared: self.shared,
            nonce_i: &self.nonce_i,
            nonce_r: &self.nonce_r,
            spi_i: self.spi_i,
            spi_r: self.spi_r,
            initiator: self.ours,
        };
        old.successor(&inputs, &self.series.secrets())
    }

    /// Creates its core: "The first message ... will have Message ID 0" (RFC 7296 section 2.18), so
    /// the windows are new too.
    pub(super) fn core(&self, turn: &mut Turn<'_, '_>) -> Core {
        let old = &*turn.core;
        Core {
            id: turn.ctx.sa_id(),
            peer: old.peer.clone(),
            initiator: self.ours,
            began: old.began,
            anew: false,
            spi_i: self.spi_i,
            spi_r: self.spi_r,
            path: old.path,
            proved: old.proved,
            esp: old.esp,
            nat: old.nat,
            limit: old.limit,
            port: old.port,
            lost: old.lost,
            requests: old.requests.successor(),
            responses: Responses::new(),
            inbox: Inbox::default(),
            transcript: AuthTranscript::default(),
        }
    }

    /// Returns the notify that identifies the successor to the end that requested it, if another
    /// key exchange has to follow. The data is our SPI, which is unambiguous because there is one
    /// such request at a time.
    pub(super) fn link(&self) -> Option<Payload> {
        self.series.link(&self.spi_r.to_be_bytes())
    }

    fn is_named_in(&self, request: &Message) -> bool {
        followup::is_for(request, &self.spi_r.to_be_bytes())
    }
}

/// Our request for the next key exchange.
pub(crate) struct FollowUp {
    pub(super) successor: Successor,
    asked: Asked,
    pub(super) payloads: Vec<Payload>,
}

impl Established {
    /// Requests the next key exchange, ahead of all queued requests.
    pub(super) fn follow_up(
        mut self: Box<Self>,
        mut successor: Successor,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let Some((asked, payloads)) = successor.series.ask(response) else {
            let why = DownReason::NotOffered("no link to the next key exchange");
            return self.close(why, turn);
        };
        let follow_up = FollowUp {
            successor,
            asked,
            payloads,
        };
        let task = Task::FollowUp(Box::new(follow_up));
        self.queue.push_first(task);
        self.send_next(turn);
        State::Established(self)
    }

    /// Evaluates the peer's answer.
    pub(super) fn conclude_follow_up(
        mut self: Box<Self>,
        follow_up: FollowUp,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let FollowUp {
            mut successor,
            asked,
            ..
        } = follow_up;
        if let Some(error) = first_error(response) {
            match successor.purpose {
                None => self.put_off_successor(error, turn),
                Some(_) => self.note_no_clone(error, turn),
            }
            self.send_next(turn);
            return State::Established(self);
        }
        if let Err(why) = successor.series.conclude(asked, response) {
            return self.close(DownReason::Misbehaved(why), turn);
        }
        match successor.is_complete() {
            true if successor.purpose.is_some() => self.bear(successor, turn),
            true => self.take_over(successor, turn),
            false => self.follow_up(successor, response, turn),
        }
    }

    /// Handles a refusal of the successor, or the loss of its state by the peer. It is requested
    /// again after a delay.
    pub(super) fn put_off_successor(&mut self, error: NotifyType, turn: &mut Turn<'_, '_>) {
        match error {
            NotifyType::TEMPORARY_FAILURE => self.note_busy(turn),
            NotifyType::STATE_NOT_FOUND => {}
            _ if self.age.is_news(error) => {
                turn.ctx
                    .refused(Some(turn.core.name()), Refusal::RekeyRefused(error));
            }
            _ => {}
        }
        self.age
            .try_again(&turn.ctx.config.timers, turn.ctx.rng, turn.ctx.now);
    }

    /// Answers a peer's request for the next key exchange of a child SA, or of a successor.
    pub(super) fn answer_follow_up(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        if let Some(answer) = self.answer_opening(request, turn) {
            self.respond(answer, arrived, turn);
            return State::Established(self);
        }
        let named = |successor: &mut Box<Successor>| {
            !successor.is_complete() && successor.is_named_in(request)
        };
        let late = !turn.core.responses.is_in_order(request.header.message_id);
        let busy = late || (!self.awaits_successor() && !turn.core.requests.is_idle());
        let refusal = match self.promised.take_if(named) {
            None => NotifyType::STATE_NOT_FOUND,
            // Requests in flight of either end would be lost with the SA, as in CREATE_CHILD_SA.
            Some(_) if busy => NotifyType::TEMPORARY_FAILURE,
            Some(mut successor) => match successor.series.answer(request) {
                None => {
                    turn.ctx
                        .refused(Some(turn.core.name()), Refusal::KeyExchange);
                    NotifyType::NO_PROPOSAL_CHOSEN
                }
                Some(answer) => {
                    successor.until = turn.ctx.now + turn.ctx.config.timers.follow_up;
                    let answer = std::iter::once(answer).chain(successor.link()).collect();
                    self.respond(answer, arrived, turn);
                    return self.promise(*successor, turn);
                }
            },
        };
        self.respond(vec![notify(refusal, Vec::new())], arrived, turn);
        State::Established(self)
    }

    /// Lets a successor that the peer requested replace this SA, unless it has to wait: for more
    /// key exchanges, or for the answer to our own request, which decides between the two
    /// successors.
    pub(super) fn promise(
        mut self: Box<Self>,
        successor: Successor,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        if successor.is_complete() && successor.purpose.is_some() {
            return self.bear(successor, turn);
        }
        if successor.is_complete() && !self.awaits_successor() {
            return self.retire(successor, turn);
        }
        self.promised = Some(Box::new(successor));
        self.send_next(turn);
        State::Established(self)
    }
}
