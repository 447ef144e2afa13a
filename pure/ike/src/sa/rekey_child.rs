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
use super::{Core, Turn, licences};
use crate::allowed_suites::AllowedEspSuites;
use crate::child::{ChildConfig, ChildTerms, Offer};
use crate::config::Lifetimes;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::exchange::create_child::about;
use crate::exchange::{first_error, notify};
use crate::extension::resource;
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
    pub(crate) fn rekey_child(&mut self, id: ChildSaId, turn: &mut Turn<'_, '_>) {
        let asked = |task: &Task| matches!(task, Task::RekeyChild(rekey) if rekey.old == id);
        if self.is_leaving() || self.queue.tasks().any(asked) {
            return;
        }
        let (peer, child) = (turn.core.peer(turn.ctx.config), self.children.get(id));
        let Some((peer, child)) = peer.zip(child) else {
            return;
        };
        if self.is_opening(child.name.as_deref()) {
            return;
        }
        if let Some(policy) = peer.policy(child.name.as_deref()) {
            let attempt = Attempt::first(peer, &policy);
            self.ask_for_child(id, attempt, turn);
        }
    }

    /// Requests a successor, unless the configuration no longer allows the child SA.
    fn ask_for_child(&mut self, id: ChildSaId, attempt: Attempt, turn: &mut Turn<'_, '_>) {
        let (peer, old) = (turn.core.peer(turn.ctx.config), self.children.get(id));
        let Some((peer, old)) = peer.zip(old) else {
            return;
        };
        let policy = peer.policy(old.name.as_deref());
        let offered = policy.and_then(|policy| {
            let menu = AllowedEspSuites::of(peer, attempt.groups(peer));
            let ground = self.ground(turn.core);
            let before = old.agreement.as_ref();
            let offer = {
                let spis = turn.ctx.spis(turn.core.id, policy.name);
                Offer::again(menu, &policy, ground, before, spis)?
            };
            Some((policy, offer))
        });
        let Some((policy, offer)) = offered else {
            return;
        };
        let config = ChildConfig {
            peer,
            policy: &policy,
            addresses: self.addresses,
        };
        let request = ChildRequest::new(offer, attempt, Some(old.inbound), config, turn.ctx.rng);
        let name = old.name.clone();
        let rekey = ChildRekey {
            old: id,
            name,
            request,
        };
        self.ask(Task::RekeyChild(Box::new(rekey)), turn);
    }

    /// Answers a request for a successor of the child SA on which the peer receives with `spi`.
    pub(super) fn answer_rekey_child(
        &mut self,
        spi: Spi,
        request: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> Vec<Payload> {
        let later = || vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
        let most = turn.core.peer(turn.ctx.config);
        let most = most.map_or(0, |peer| peer.most_children(&turn.ctx.config.limits));
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
        let inherited = turn.ctx.is_inherited(turn.core.id, name.as_deref());
        if !current || inherited || full || self.is_rekeying_ike() {
            return later();
        }
        let policy = turn.core.peer(turn.ctx.config);
        let Some(policy) = policy.and_then(|peer| peer.policy(name.as_deref())) else {
            return later();
        };
        match self.agree_on_child(&policy, Some(agreement.as_ref()), request, turn) {
            Err(refusal) => vec![refusal],
            Ok((payloads, agreed, lower_nonce)) => {
                self.open(Some(id), payloads, agreed, lower_nonce, turn)
            }
        }
    }

    /// Evaluates the peer's answer. An error ends the IKE SA.
    pub(super) fn conclude_rekey_child(
        &mut self,
        rekey: ChildRekey,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), DownReason> {
        // Child SAs of an SA that another one has replaced get no successors.
        if self.is_leaving() {
            return Ok(());
        }
        if let Some(error) = first_error(response) {
            return self.note_refused_child(&rekey, error, response, turn);
        }
        let ChildRekey { old, name, request } = rekey;
        self.note_exchange(&request, turn);
        let (spi, rival) = (request.spi, request.rival());
        let peer = turn.core.peer(turn.ctx.config);
        let policy = peer.and_then(|peer| Some((peer, peer.policy(name.as_deref())?)));
        // The child SA may not be wanted any more.
        let ended = |id| self.children.get(id).is_some_and(Child::is_ending);
        let dropped = self.children.current(name.as_deref()).is_none()
            && (ended(old) || rival.is_some_and(ended));
        // The successor would replace a child SA by which another IKE SA has replaced the old one.
        let inherited = turn.ctx.is_inherited(turn.core.id, name.as_deref());
        let Some((peer, policy)) = policy.filter(|_| !dropped && !inherited) else {
            self.ask(Task::DeleteChild(None, spi), turn);
            // In case the other IKE SA does not stay.
            self.renew_later(Some(old), turn.ctx);
            return Ok(());
        };
        let config = ChildConfig {
            peer,
            policy: &policy,
            addresses: self.addresses,
        };
        match request.conclude(config, response, &self.keys)? {
            Settled::Stays(terms) => {
                if let Some(rival) = rival {
                    let timers = &turn.ctx.config.timers;
                    self.children.replace(rival, false, timers, turn.ctx.now);
                }
                self.succeed(old, *terms, true, turn);
                self.assure(name.as_deref(), turn);
            }
            Settled::Follows(request) => {
                self.close_opening(name.as_deref());
                let request = *request;
                let rekey = ChildRekey { old, name, request };
                self.queue.push_first(Task::RekeyChild(Box::new(rekey)));
            }
            Settled::Goes => self.ask(Task::DeleteChild(None, spi), turn),
            // In case the peer does not continue its own request.
            Settled::Stops => self.renew_later(Some(old), turn.ctx),
            Settled::Deleted => self.delete_current(old, turn),
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
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), DownReason> {
        if rekey.request.rival().is_some() || !self.children.is_current(rekey.old) {
            return Ok(());
        }
        let peer = turn.core.peer(turn.ctx.config);
        let attempt = peer.and_then(|peer| rekey.request.after(error, response, peer));
        if let Some(attempt) = attempt {
            self.ask_for_child(rekey.old, attempt, turn);
            return Ok(());
        }
        let passes = match error {
            // The end "SHOULD silently delete the Child SA (if it still exists) and send a request
            // to create a new Child SA from scratch" (section 2.25).
            NotifyType::CHILD_SA_NOT_FOUND => {
                self.lose_child(rekey.old, turn.ctx);
                return match self.children.is_over() {
                    true => Err(DownReason::ChildDeleted),
                    false => Ok(()),
                };
            }
            NotifyType::STATE_NOT_FOUND => true,
            NotifyType::TEMPORARY_FAILURE => {
                self.note_busy(turn);
                true
            }
            _ => rekey.request.is_contested(),
        };
        if let Some(Life::Current(age)) = self.children.get_mut(rekey.old).map(|c| &mut c.life) {
            if !passes && age.is_news(error) {
                turn.ctx
                    .refused(Some(turn.core.name()), Refusal::RekeyRefused(error));
            }
            age.try_again(&turn.ctx.config.timers, turn.ctx.rng, turn.ctx.now);
        }
        Ok(())
    }

    /// Installs a successor. `ours`: we requested it.
    pub(super) fn succeed(
        &mut self,
        old: ChildSaId,
        terms: ChildTerms,
        ours: bool,
        turn: &mut Turn<'_, '_>,
    ) -> ChildSaId {
        let id = turn.ctx.child_id();
        let age = self.age_of(&terms, turn);
        self.tell_unlicensed(old, &terms, turn);
        self.children
            .replace(old, ours, &turn.ctx.config.timers, turn.ctx.now);
        self.children.add(id, &terms, age);
        if !ours {
            self.unsure.add(id, &turn.core.responses, turn.ctx.now);
        }
        let new = Box::new(self.named(id, terms, ours, turn.core));
        turn.ctx.event(Event::ChildRekeyed { old, new });
        id
    }

    /// Starts the lifetime of a new child SA. The configuration may have changed since its request.
    pub(super) fn age_of(&self, terms: &ChildTerms, turn: &mut Turn<'_, '_>) -> Age {
        let peer = turn.core.peer(turn.ctx.config);
        let policy = peer.and_then(|peer| peer.policy(terms.name.as_deref()));
        let lifetime = policy.map_or(Lifetimes::default().child, |policy| policy.lifetime);
        let mut age = Age::begin(lifetime, turn.ctx.config, turn.ctx.rng, turn.ctx.now);
        if let (Some(policy), Some(agreement)) = (policy, &terms.agreement) {
            licences::adapt(
                &mut age,
                policy.zones,
                &terms.asked,
                agreement,
                turn.ctx.now,
            );
        }
        age
    }

    /// Creates the description of a child SA for the caller.
    pub(super) fn named(
        &self,
        id: ChildSaId,
        terms: ChildTerms,
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
