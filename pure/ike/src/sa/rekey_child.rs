//! Rekeys of a child SA (RFC 7296 sections 1.3.3 and 2.8).
//!
//! No packet is lost, because the old child SA stays until its successor works. Both ends accept
//! packets on the old and the new child SA as soon as they know it, the caller decides when to send
//! on which, and the old one is deleted only after a drain time.
//!
//! Both ends may rekey at once. Then there are two successors, and the one "created with the lowest
//! of the four nonces" is deleted by the end that requested it (section 2.8.1). No packet was ever
//! sent on it.

use super::child_request::{Attempt, ChildRequest, Settled};
use super::children::{Age, Child, Life};
use super::established::Established;
use super::task::Task;
use super::{Context, Core, licences};
use crate::child::{Offer, Terms};
use crate::config::Lifetimes;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::exchange::create_child::about;
use crate::exchange::{first_error, notify};
use crate::extension::resource;
use crate::menu::EspMenu;
use crate::refusal::Refusal;
use model::{ChildSa, ChildSaId, Spi};
use wire::ike::{Message, NotifyType, Payload};

/// Our request for a successor.
pub(crate) struct ChildRekey {
    pub(super) old: ChildSaId,
    name: Option<String>,
    pub(super) request: ChildRequest,
}

impl Established {
    /// Requests a successor of a child SA, unless that is in progress.
    pub(crate) fn rekey_child(&mut self, id: ChildSaId, core: &mut Core, ctx: &mut Context<'_>) {
        let asked = |task: &Task| matches!(task, Task::RekeyChild(rekey) if rekey.old == id);
        if self.is_leaving() || self.queue.tasks().any(asked) {
            return;
        }
        let (peer, child) = (core.peer(ctx.config), self.children.get(id));
        let Some((peer, child)) = peer.zip(child) else {
            return;
        };
        if self.is_opening(child.name.as_deref()) {
            return;
        }
        if let Some(policy) = peer.policy(child.name.as_deref()) {
            let attempt = Attempt::first(peer, &policy);
            self.ask_for_child(id, attempt, core, ctx);
        }
    }

    /// Requests a successor, unless the configuration no longer allows the child SA.
    fn ask_for_child(
        &mut self,
        id: ChildSaId,
        attempt: Attempt,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let (peer, old) = (core.peer(ctx.config), self.children.get(id));
        let Some((peer, old)) = peer.zip(old) else {
            return;
        };
        let policy = peer.policy(old.name.as_deref());
        let offered = policy.and_then(|policy| {
            let menu = EspMenu::of(peer, attempt.groups(peer));
            let ground = self.ground(core);
            let before = old.agreement.as_ref();
            let offer = {
                let spis = ctx.spis(core.id, policy.name);
                Offer::again(menu, &policy, ground, before, spis)?
            };
            Some((policy, offer))
        });
        let Some((policy, offer)) = offered else {
            return;
        };
        let terms = (peer, &policy, self.addresses);
        let request = ChildRequest::new(offer, attempt, Some(old.inbound), terms, ctx.rng);
        let name = old.name.clone();
        let rekey = ChildRekey {
            old: id,
            name,
            request,
        };
        self.ask(Task::RekeyChild(Box::new(rekey)), core, ctx);
    }

    /// Answers a request for a successor of the child SA on which the peer receives with `spi`.
    pub(super) fn answer_rekey_child(
        &mut self,
        spi: Spi,
        request: &Message,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> Vec<Payload> {
        let later = || vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
        let most = core.peer(ctx.config);
        let most = most.map_or(0, |peer| peer.most_children(&ctx.config.limits));
        let full = self.children.len() + self.openings.len() >= most;
        // An unknown child SA may be one whose answer has not arrived yet.
        let makes = |task: &Task| matches!(task, Task::RekeyChild(_) | Task::NewChild(_));
        let expecting = self.queue.runs(makes);
        let Some(old) = self.children.by_outbound(spi) else {
            if expecting {
                return later();
            }
            return vec![about(NotifyType::CHILD_SA_NOT_FOUND, spi)];
        };
        // A replaced child SA is about to be deleted (section 2.25.1).
        let current = matches!(old.life, Life::Current(_));
        let (id, name, agreement) = (old.id, old.name.clone(), old.agreement.clone());
        let inherited = ctx.is_inherited(core.id, name.as_deref());
        if !current || inherited || full || self.is_rekeying_ike() {
            return later();
        }
        let policy = core.peer(ctx.config);
        let Some(policy) = policy.and_then(|peer| peer.policy(name.as_deref())) else {
            return later();
        };
        match self.agree_on_child(&policy, Some(agreement.as_ref()), request, core, ctx) {
            Err(refusal) => vec![refusal],
            Ok(agreed) => self.open(Some(id), agreed, core, ctx),
        }
    }

    /// Evaluates the peer's answer. An error ends the IKE SA.
    pub(super) fn conclude_rekey_child(
        &mut self,
        rekey: ChildRekey,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> Result<(), DownReason> {
        // Child SAs of an SA that another one has replaced get no successors.
        if self.is_leaving() {
            return Ok(());
        }
        if let Some(error) = first_error(response) {
            return self.note_refused_child(&rekey, error, response, core, ctx);
        }
        let ChildRekey { old, name, request } = rekey;
        self.note_exchange(&request, core, ctx);
        let (spi, rival) = (request.spi, request.rival());
        let peer = core.peer(ctx.config);
        let policy = peer.and_then(|peer| Some((peer, peer.policy(name.as_deref())?)));
        // The child SA may not be wanted any more.
        let ended = |id| self.children.get(id).is_some_and(Child::is_ending);
        let dropped = self.children.current(name.as_deref()).is_none()
            && (ended(old) || rival.is_some_and(ended));
        // The successor would replace a child SA by which another IKE SA has replaced the old one.
        let inherited = ctx.is_inherited(core.id, name.as_deref());
        let Some((peer, policy)) = policy.filter(|_| !dropped && !inherited) else {
            self.ask(Task::DeleteChild(None, spi), core, ctx);
            // In case the other IKE SA does not stay.
            self.renew_later(Some(old), ctx);
            return Ok(());
        };
        let terms = (peer, &policy, self.addresses);
        match request.settle(terms, response, &self.keys)? {
            Settled::Stays(terms) => {
                if let Some(rival) = rival {
                    let timers = &ctx.config.timers;
                    self.children.replace(rival, false, timers, ctx.now);
                }
                self.succeed(old, *terms, true, core, ctx);
                self.assure(name.as_deref(), core, ctx);
            }
            Settled::Follows(request) => {
                self.close_opening(name.as_deref());
                let request = *request;
                let rekey = ChildRekey { old, name, request };
                self.queue.push_first(Task::RekeyChild(Box::new(rekey)));
            }
            Settled::Goes => self.ask(Task::DeleteChild(None, spi), core, ctx),
            // In case the peer does not continue its own request.
            Settled::Stops => self.renew_later(Some(old), ctx),
            Settled::Deleted => self.delete_current(old, core, ctx),
        }
        Ok(())
    }

    /// Handles a refusal. "When A receives this error, it already knows there was simultaneous
    /// rekeying, so it can ignore the error message" (section 2.8.1).
    fn note_refused_child(
        &mut self,
        rekey: &ChildRekey,
        error: NotifyType,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> Result<(), DownReason> {
        if rekey.request.rival().is_some() || !self.children.is_current(rekey.old) {
            return Ok(());
        }
        let peer = core.peer(ctx.config);
        let attempt = peer.and_then(|peer| rekey.request.after(error, response, peer));
        if let Some(attempt) = attempt {
            self.ask_for_child(rekey.old, attempt, core, ctx);
            return Ok(());
        }
        let passes = match error {
            // The end "SHOULD silently delete the Child SA (if it still exists) and send a request
            // to create a new Child SA from scratch" (section 2.25).
            NotifyType::CHILD_SA_NOT_FOUND => {
                self.lose_child(rekey.old, ctx);
                return match self.children.is_over() {
                    true => Err(DownReason::ChildDeleted),
                    false => Ok(()),
                };
            }
            NotifyType::STATE_NOT_FOUND => true,
            NotifyType::TEMPORARY_FAILURE => {
                self.note_busy(core, ctx);
                true
            }
            _ => rekey.request.is_contested(),
        };
        if let Some(Life::Current(age)) = self.children.get_mut(rekey.old).map(|c| &mut c.life) {
            if !passes && age.is_news(error) {
                ctx.refused(Some(core.name()), Refusal::RekeyRefused(error));
            }
            age.try_again(&ctx.config.timers, ctx.rng, ctx.now);
        }
        Ok(())
    }

    /// Installs a successor. `ours`: we requested it.
    pub(super) fn succeed(
        &mut self,
        old: ChildSaId,
        terms: Terms,
        ours: bool,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> ChildSaId {
        let id = ctx.child_id();
        let age = self.age_of(&terms, core, ctx);
        self.tell_unlicensed(old, &terms, core, ctx);
        self.children
            .replace(old, ours, &ctx.config.timers, ctx.now);
        self.children.add(id, &terms, age);
        if !ours {
            self.unsure.add(id, &core.responses, ctx.now);
        }
        let new = Box::new(self.named(id, terms, ours, core));
        ctx.event(Event::ChildRekeyed { old, new });
        id
    }

    /// Starts the lifetime of a new child SA. The configuration may have changed since its request.
    pub(super) fn age_of(&self, terms: &Terms, core: &Core, ctx: &mut Context<'_>) -> Age {
        let peer = core.peer(ctx.config);
        let policy = peer.and_then(|peer| peer.policy(terms.name.as_deref()));
        let lifetime = policy.map_or(Lifetimes::default().child, |policy| policy.lifetime);
        let mut age = Age::begin(lifetime, ctx.config, ctx.rng, ctx.now);
        if let (Some(policy), Some(agreement)) = (policy, &terms.agreement) {
            licences::adapt(&mut age, policy.zones, (&terms.asked, agreement), ctx.now);
        }
        age
    }

    /// Creates the description of a child SA for the caller.
    pub(super) fn named(
        &self,
        id: ChildSaId,
        terms: Terms,
        initiator: bool,
        core: &Core,
    ) -> ChildSa<crypto::Secret> {
        ChildSa {
            id,
            resource: resource::number(terms.name.as_deref()).filter(|_| self.resources),
            ike: core.id,
            peer: core.name(),
            name: terms.name,
            mode: terms.mode,
            path: core.esp,
            local: terms.local,
            remote: terms.remote,
            inbound: terms.inbound,
            outbound: terms.outbound,
            agreement: terms.agreement,
            opaque: terms.beside.opaque,
            integrity: terms.beside.integrity,
            tokens: terms.tokens,
            takes_padding: terms.takes_padding,
            exchanges: terms.exchanges,
            initiator,
        }
    }
}
