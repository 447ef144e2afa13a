//! The successor of an IKE SA, before it replaces the SA.
//!
//! With negotiated additional key exchanges, the successor is complete only after one
//! IKE_FOLLOWUP_KE for each ([`followup`]). The end that requested the successor initiates them.

use super::cloning::Purpose;
use super::established::Established;
use super::task::Task;
use super::{Arrived, Context, Core, State};
use crate::down_reason::DownReason;
use crate::exchange::{first_error, notify};
use crate::extension::followup::{self, Series};
use crate::extension::fragment::Inbox;
use crate::extension::intermediate::{Asked, Said};
use crate::keys::{Inputs, ProvedKeys};
use crate::refusal::Refusal;
use crate::window::Responses;
use crypto::Secret;
use model::{Instant, Suite};
use wire::ike::{Message, NotifyType, Payload};

/// A successor that has not replaced its SA yet.
pub(crate) struct Heir {
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

impl Heir {
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
            esp: old.esp,
            nat: old.nat,
            limit: old.limit,
            port: old.port,
            lost: old.lost,
            requests: old.requests.successor(),
            responses: Responses::new(),
            inbox: Inbox::default(),
            said: Said::default(),
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
    pub(super) heir: Heir,
    asked: Asked,
    pub(super) payloads: Vec<Payload>,
}

impl Established {
    /// Requests the next key exchange, ahead of all queued requests.
    pub(super) fn follow_up(
        mut self: Box<Self>,
        mut heir: Heir,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let Some((asked, payloads)) = heir.series.ask(response) else {
            let why = DownReason::NotOffered("no link to the next key exchange");
            return self.close(why, core, ctx);
        };
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

    /// Evaluates the peer's answer.
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
            match heir.purpose {
                None => self.put_off_heir(error, core, ctx),
                Some(_) => self.note_no_clone(error, core, ctx),
            }
            self.send_next(core, ctx);
            return State::Established(self);
        }
        if let Err(why) = heir.series.conclude(asked, response) {
            return self.close(DownReason::Misbehaved(why), core, ctx);
        }
        match heir.is_complete() {
            true if heir.purpose.is_some() => self.bear(heir, core, ctx),
            true => self.take_over(heir, core, ctx),
            false => self.follow_up(heir, response, core, ctx),
        }
    }

    /// Handles a refusal of the successor, or the loss of its state by the peer. It is requested
    /// again after a delay.
    pub(super) fn put_off_heir(
        &mut self,
        error: NotifyType,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        match error {
            NotifyType::TEMPORARY_FAILURE => self.note_busy(core, ctx),
            NotifyType::STATE_NOT_FOUND => {}
            _ if self.age.is_news(error) => {
                ctx.refused(Some(core.name()), Refusal::RekeyRefused(error));
            }
            _ => {}
        }
        self.age.try_again(&ctx.config.timers, ctx.rng, ctx.now);
    }

    /// Answers a peer's request for the next key exchange of a child SA, or of a successor.
    pub(super) fn answer_follow_up(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        if let Some(answer) = self.answer_opening(request, core, ctx) {
            self.respond(answer, arrived, core, ctx);
            return State::Established(self);
        }
        let named = |heir: &mut Box<Heir>| !heir.is_complete() && heir.is_named_in(request);
        let late = !core.responses.is_in_order(request.header.message_id);
        let busy = late || (!self.awaits_heir() && !core.requests.is_idle());
        let refusal = match self.promised.take_if(named) {
            None => NotifyType::STATE_NOT_FOUND,
            // Requests in flight of either end would be lost with the SA, as in CREATE_CHILD_SA.
            Some(_) if busy => NotifyType::TEMPORARY_FAILURE,
            Some(mut heir) => match heir.series.answer(request) {
                None => {
                    ctx.refused(Some(core.name()), Refusal::KeyExchange);
                    NotifyType::NO_PROPOSAL_CHOSEN
                }
                Some(answer) => {
                    heir.until = ctx.now + ctx.config.timers.follow_up;
                    let answer = std::iter::once(answer).chain(heir.link()).collect();
                    self.respond(answer, arrived, core, ctx);
                    return self.promise(*heir, core, ctx);
                }
            },
        };
        self.respond(vec![notify(refusal, Vec::new())], arrived, core, ctx);
        State::Established(self)
    }

    /// Lets a successor that the peer requested replace this SA, unless it has to wait: for more
    /// key exchanges, or for the answer to our own request, which decides between the two
    /// successors.
    pub(super) fn promise(
        mut self: Box<Self>,
        heir: Heir,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        if heir.is_complete() && heir.purpose.is_some() {
            return self.bear(heir, core, ctx);
        }
        if heir.is_complete() && !self.awaits_heir() {
            return self.retire(heir, core, ctx);
        }
        self.promised = Some(Box::new(heir));
        self.send_next(core, ctx);
        State::Established(self)
    }
}
