//! The successor of an IKE SA, before it takes over.
//!
//! Where an additional key exchange was agreed (RFC 9370 section 2.2.4), the successor is complete only
//! after one IKE_FOLLOWUP_KE for each method; who asked for the successor asks for these, and names it
//! by what the last answer had in ADDITIONAL_KEY_EXCHANGE. An end that does not know it any more says
//! STATE_NOT_FOUND.
//!
//! ```text
//!  CREATE_CHILD_SA   SK {SA(ADDKE1 = ML-KEM-768), Ni, KEi}  -->
//!                         <--  SK {SA, Nr, KEr, N(ADDITIONAL_KEY_EXCHANGE)}
//!  IKE_FOLLOWUP_KE   SK {KE(public key), N(ADDITIONAL_KEY_EXCHANGE)}  -->
//!                         <--  SK {KE(ciphertext)}
//! ```

use super::established::Established;
use super::task::Task;
use super::{Arrived, Context, Core, State};
use crate::event::{DownReason, PeerMisbehaved, Refusal};
use crate::exchange::{find_notify, first_error, key_exchange, notify};
use crate::extension::fragment::Inbox;
use crate::extension::intermediate::{self, Asked, Said};
use crate::keys::{Inputs, ProvedKeys};
use crate::window::{Requests, Responses};
use crypto::Secret;
use model::{Kem, Suite};
use std::collections::VecDeque;
use wire::ike::{Message, NotifyType, Payload};

/// A successor that has not taken over yet.
pub(crate) struct Heir {
    pub(super) suite: Suite,
    /// Whether we asked for it: then we are its original initiator.
    pub(super) ours: bool,
    pub(super) spi_i: u64,
    pub(super) spi_r: u64,
    pub(super) nonce_i: Vec<u8>,
    pub(super) nonce_r: Vec<u8>,
    /// What the group gave.
    pub(super) shared: Secret,
    /// The additional key exchanges that are still to come, and what the others gave.
    pub(super) left: VecDeque<Kem>,
    pub(super) further: Vec<(Kem, Secret)>,
}

impl Heir {
    /// Whether all key exchanges took place.
    pub(super) fn is_complete(&self) -> bool {
        self.left.is_empty()
    }

    /// What decides between two successors (RFC 7296 section 2.8.2).
    pub(super) fn lower_nonce(&self) -> &[u8] {
        self.nonce_i.as_slice().min(&self.nonce_r)
    }

    /// Its keys; `old` are those of the SA that it follows.
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
        old.successor(&inputs, &self.further)
    }

    /// "The first message ... will have Message ID 0" (RFC 7296 section 2.18): windows are new as well.
    pub(super) fn core(&self, old: &Core, ctx: &mut Context<'_>) -> Core {
        Core {
            id: ctx.sa_id(),
            peer: old.peer.clone(),
            initiator: self.ours,
            began: old.began,
            anew: false,
            spi_i: self.spi_i,
            spi_r: self.spi_r,
            path: old.path,
            proved: old.proved,
            limit: old.limit,
            port: old.port,
            lost: old.lost,
            requests: Requests::new(),
            responses: Responses::new(),
            inbox: Inbox::default(),
            said: Said::default(),
        }
    }

    /// What names it to who asked for it, if that has to ask on: its SPI at our end, which says all,
    /// as there is one request at a time.
    pub(super) fn link(&self) -> Option<Payload> {
        let data = self.spi_r.to_be_bytes().to_vec();
        (!self.is_complete()).then(|| notify(NotifyType::ADDITIONAL_KEY_EXCHANGE, data))
    }

    fn is_named_in(&self, request: &Message) -> bool {
        let named = find_notify(request, NotifyType::ADDITIONAL_KEY_EXCHANGE);
        named.is_some_and(|notify| notify.data == self.spi_r.to_be_bytes())
    }

    /// Answers the next key exchange. `None` if that is not the one agreed, or its value is none.
    fn answer(&mut self, request: &Message) -> Option<Payload> {
        let kem = self.left.pop_front()?;
        let (payload, shared) = intermediate::answer(kem, key_exchange(request)?).ok()?;
        self.further.push((kem, shared));
        Some(payload)
    }
}

/// Our request for the next key exchange.
pub(crate) struct FollowUp {
    heir: Heir,
    asked: Asked,
    pub(super) payloads: Vec<Payload>,
}

impl Established {
    /// Asks for the next key exchange, before anything else is asked. The notify of the peer's last
    /// answer is sent back to it as it is.
    pub(super) fn follow_up(
        mut self: Box<Self>,
        mut heir: Heir,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let link = find_notify(response, NotifyType::ADDITIONAL_KEY_EXCHANGE).cloned();
        let asked = heir.left.pop_front().and_then(Asked::new);
        let (Some(link), Some(asked)) = (link, asked) else {
            let why = DownReason::NotOffered("the name of a key exchange");
            return self.close(why, core, ctx);
        };
        let payloads = vec![asked.payload(), Payload::Notify(link)];
        let follow_up = FollowUp {
            heir,
            asked,
            payloads,
        };
        let task = Task::FollowUp(Box::new(follow_up));
        self.queue.push_first(task);
        self.send_next(core, ctx);
        State::Established(self)
    }

    /// The peer answered it.
    pub(super) fn conclude_follow_up(
        mut self: Box<Self>,
        follow_up: FollowUp,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let FollowUp {
            mut heir, asked, ..
        } = follow_up;
        if let Some(error) = first_error(response) {
            self.put_off_heir(error, core, ctx);
            self.send_next(core, ctx);
            return State::Established(self);
        }
        let agreed = key_exchange(response).and_then(|answer| asked.agree(answer).ok());
        let Some(agreed) = agreed else {
            return self.close(DownReason::Misbehaved(PeerMisbehaved::BadKem), core, ctx);
        };
        heir.further.push(agreed);
        match heir.is_complete() {
            true => self.take_over(heir, core, ctx),
            false => self.follow_up(heir, response, core, ctx),
        }
    }

    /// The successor was refused, or the peer has forgotten it: some time later it is asked for anew.
    pub(super) fn put_off_heir(
        &mut self,
        error: NotifyType,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        match error {
            NotifyType::TEMPORARY_FAILURE => self.note_busy(core, ctx),
            NotifyType::STATE_NOT_FOUND => {}
            _ => ctx.refused(Some(core.name()), Refusal::RekeyRefused(error)),
        }
        self.age.try_again(&ctx.config.timers, ctx.rng, ctx.now);
    }

    /// Answers a peer that wants the next key exchange for the successor that it asked for.
    pub(super) fn answer_follow_up(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let named = |heir: &mut Heir| !heir.is_complete() && heir.is_named_in(request);
        let late = !core.responses.is_in_order(request.header.message_id);
        let busy = late || (!self.awaits_heir() && !core.requests.is_idle());
        let refusal = match self.promised.take_if(named) {
            None => NotifyType::STATE_NOT_FOUND,
            // What either end waits for would be lost with the SA, as in CREATE_CHILD_SA.
            Some(_) if busy => NotifyType::TEMPORARY_FAILURE,
            Some(mut heir) => match heir.answer(request) {
                None => {
                    ctx.refused(Some(core.name()), Refusal::KeyExchange);
                    NotifyType::NO_PROPOSAL_CHOSEN
                }
                Some(answer) => {
                    let answer = std::iter::once(answer).chain(heir.link()).collect();
                    self.respond(answer, arrived, core, ctx);
                    return self.promise(heir, core, ctx);
                }
            },
        };
        self.respond(vec![notify(refusal, Vec::new())], arrived, core, ctx);
        State::Established(self)
    }

    /// A successor that the peer asked for takes over, or waits: for more key exchanges, or for the
    /// answer to our own request, which decides between the two.
    pub(super) fn promise(
        mut self: Box<Self>,
        heir: Heir,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        if heir.is_complete() && !self.awaits_heir() {
            return self.retire(heir, core, ctx);
        }
        self.promised = Some(heir);
        self.send_next(core, ctx);
        State::Established(self)
    }
}
