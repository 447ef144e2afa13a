//! Additional child SAs (RFC 7296 section 1.3.1), and new ones in the place of lost ones.
//!
//! Either end may request a child SA. The responder assigns a request to the first configured child
//! SA whose selectors overlap with the requested ones and that is not up, as there is one of each.
//! "A failed attempt to create a Child SA SHOULD NOT tear down the IKE SA": the reason is reported,
//! and the request repeated.
//!
//! If both ends request the same child SA at once, two of them result. One of these is deleted, as
//! with simultaneous rekeys (section 2.8.1).

use super::Turn;
use super::child_request::{Attempt, ChildRequest, Settled};
use super::established::Established;
use super::task::Task;
use crate::allowed_suites::AllowedEspSuites;
use crate::child::{self, ChildConfig, ChildTerms, Offer, Requested};
use crate::config;
use crate::event::Event;
use crate::exchange::{first_error, notify};
use crate::extension::{resource, slot};
use crate::refusal::Refusal;
use model::ChildSaId;
use wire::ike::{Message, NotifyType, Payload};

/// Our request for a child SA.
pub(crate) struct NewChild {
    pub(super) name: Option<String>,
    pub(super) request: ChildRequest,
}

impl Established {
    /// Requests a child SA.
    pub(super) fn ask_for_new(&mut self, name: Option<&str>, turn: &mut Turn<'_, '_>) {
        let peer = turn.core.peer(turn.ctx.config);
        let attempt = peer.and_then(|peer| Some(Attempt::first(peer, &peer.policy(name)?)));
        if let Some(attempt) = attempt {
            self.ask_once(name, attempt, turn);
        }
    }

    fn ask_once(&mut self, name: Option<&str>, attempt: Attempt, turn: &mut Turn<'_, '_>) {
        let peer = turn.core.peer(turn.ctx.config);
        let Some((peer, policy)) = peer.and_then(|peer| Some((peer, peer.policy(name)?))) else {
            return;
        };
        let menu = AllowedEspSuites::of(peer, attempt.groups(peer));
        let ground = self.ground(turn.core);
        let spis = turn.ctx.spis(turn.core.id, name);
        let offer = match Offer::new(menu, &policy, ground, self.private, spis) {
            Ok(offer) => offer,
            Err(why) => {
                self.put_off(policy.name, turn.ctx);
                let (name, why) = (name.map(str::to_owned), Box::new(why.into()));
                let why = Refusal::ChildFailed { name, why };
                return turn.ctx.refused(Some(turn.core.name()), why);
            }
        };
        let config = ChildConfig {
            peer,
            policy: &policy,
            addresses: self.addresses,
        };
        let mut request = ChildRequest::new(offer, attempt, None, config, turn.ctx.rng);
        if self.resources && resource::number(name).is_some() {
            request.payloads.push(resource::info(name));
        }
        let slot = self.private.then(|| slot::offer(peer, name)).flatten();
        request.payloads.extend(slot);
        let name = name.map(str::to_owned);
        let new = Box::new(NewChild { name, request });
        self.ask(Task::NewChild(new), turn);
    }

    /// Answers a request for an additional child SA.
    pub(super) fn answer_new_child(
        &mut self,
        request: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> Vec<Payload> {
        let answered = self.accept_new_child(request, turn);
        answered.unwrap_or_else(|(kind, why)| {
            if let Some(why) = why {
                turn.ctx.refused(Some(turn.core.name()), why);
            }
            vec![notify(kind, Vec::new())]
        })
    }

    fn accept_new_child(
        &mut self,
        request: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> Result<Vec<Payload>, (NotifyType, Option<Refusal>)> {
        // The end "SHOULD reply with TEMPORARY_FAILURE" (section 2.25.2).
        let later = NotifyType::TEMPORARY_FAILURE;
        if self.is_rekeying_ike() {
            return Err((later, None));
        }
        let none = NotifyType::NO_ADDITIONAL_SAS;
        let peer = turn.core.peer(turn.ctx.config).ok_or((none, None))?;
        let most = peer.most_children(&turn.ctx.config.limits);
        let own = self.children.len() + self.openings.len();
        if own >= most || own + turn.ctx.beside.children >= 2 * most {
            return Err((none, Some(Refusal::TooManyChildren(most))));
        }
        let resource = self.resources && resource::is_named(request);
        let offered = self.private.then(|| slot::offered(request)).flatten();
        let is_there = |name: Option<&str>| {
            let opening = resource && self.is_opening(name);
            opening || self.children.current(name).is_some()
        };
        let requested = Requested {
            request,
            resource,
            offered,
        };
        let policy = child::meant(peer, self.addresses, requested, is_there);
        let policy = policy.map_err(|(kind, why)| (kind, Some(why)))?;
        if turn.ctx.overrides.is_closed(&peer.name, policy.name) {
            let name = policy.name.unwrap_or_default().to_owned();
            return Err((later, Some(Refusal::ChildTakenDown(name))));
        }
        match self.agree_on_child(&policy, None, request, turn) {
            Err(refusal) => Ok(vec![refusal]),
            Ok((mut payloads, agreed, lower_nonce)) => {
                payloads.extend(resource.then(|| resource::info(policy.name)));
                Ok(self.open(None, payloads, agreed, lower_nonce, turn))
            }
        }
    }

    /// Evaluates the peer's answer.
    pub(super) fn conclude_new_child(
        &mut self,
        new: NewChild,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) {
        if self.is_leaving() {
            return;
        }
        if let Some(error) = first_error(response) {
            return self.note_refused_new(new, error, response, turn);
        }
        let NewChild { name, request } = new;
        self.note_exchange(&request, turn);
        let (spi, rival) = (request.spi, request.rival());
        let peer = turn.core.peer(turn.ctx.config);
        let policy = peer.and_then(|peer| Some((peer, peer.policy(name.as_deref())?)));
        // The child SA may not be wanted any more.
        let wanted = turn
            .ctx
            .overrides
            .of(&turn.core.name(), name.as_deref())
            .unwrap_or(true);
        let Some((peer, policy)) = policy.filter(|_| wanted) else {
            return self.ask(Task::DeleteChild(None, spi), turn);
        };
        let config = ChildConfig {
            peer,
            policy: &policy,
            addresses: self.addresses,
        };
        match request.conclude(config, response, &self.keys) {
            Ok(Settled::Stays(terms)) => {
                self.install(*terms, rival, turn);
                self.assure(name.as_deref(), turn);
            }
            Ok(Settled::Follows(request)) => {
                self.close_opening(name.as_deref());
                let request = *request;
                let new = Box::new(NewChild { name, request });
                self.queue.push_first(Task::NewChild(new));
            }
            Ok(Settled::Goes) => self.ask(Task::DeleteChild(None, spi), turn),
            // If the peer does not continue either, the child SA is missing, and requested again.
            Ok(Settled::Stops) => {}
            Ok(Settled::Deleted) => drop(self.put_off(name.as_deref(), turn.ctx)),
            // "If this is unacceptable to the initiator, the initiator MUST delete the SA".
            Err(why) => {
                self.ask(Task::DeleteChild(None, spi), turn);
                self.put_off(name.as_deref(), turn.ctx);
                let why = Box::new(why);
                turn.ctx
                    .refused(Some(turn.core.name()), Refusal::ChildFailed { name, why });
            }
        }
    }

    /// Sends a request that assures the peer of the slot: the peer may use it as soon as it is
    /// certain that we have its answer, even before a packet arrives on the slot.
    pub(super) fn assure(&mut self, name: Option<&str>, turn: &mut Turn<'_, '_>) {
        if config::is_slot(name) {
            self.ask(Task::Liveness, turn);
        }
    }

    /// Adds a child SA that the peer agreed to. It replaces the one of the peer's competing
    /// request.
    fn install(&mut self, terms: ChildTerms, rival: Option<ChildSaId>, turn: &mut Turn<'_, '_>) {
        match rival.filter(|rival| self.children.is_current(*rival)) {
            Some(rival) => {
                self.succeed(rival, terms, true, turn);
                self.children
                    .replace(rival, false, &turn.ctx.config.timers, turn.ctx.now);
            }
            None => drop(self.add_child(terms, true, turn)),
        }
    }

    fn note_refused_new(
        &mut self,
        new: NewChild,
        error: NotifyType,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) {
        let NewChild { name, request } = new;
        if request.rival().is_some() || self.children.current(name.as_deref()).is_some() {
            return;
        }
        let peer = turn.core.peer(turn.ctx.config);
        let attempt = peer.and_then(|peer| request.after(error, response, peer));
        if let Some(attempt) = attempt {
            return self.ask_once(name.as_deref(), attempt, turn);
        }
        if request.is_contested() {
            return;
        }
        let again = self.put_off(name.as_deref(), turn.ctx);
        if error == NotifyType::TS_MAX_QUEUE && resource::is_additional(name.as_deref()) {
            self.upkeep.is_full = true;
            return turn
                .ctx
                .refused(Some(turn.core.name()), Refusal::NoMoreResources);
        }
        if error == NotifyType::TEMPORARY_FAILURE {
            self.note_busy(turn);
        }
        let passes = [NotifyType::TEMPORARY_FAILURE, NotifyType::STATE_NOT_FOUND];
        // The peer was temporarily busy, or has been for too long.
        if passes.contains(&error) && !again {
            return;
        }
        let notify = error;
        if self.upkeep.is_news(name.as_deref(), error) {
            turn.ctx.refused(
                Some(turn.core.name()),
                Refusal::ChildRefused { name, notify },
            );
        }
    }

    /// Adds a usable child SA. `ours`: we requested it.
    pub(super) fn add_child(
        &mut self,
        terms: ChildTerms,
        ours: bool,
        turn: &mut Turn<'_, '_>,
    ) -> ChildSaId {
        let id = turn.ctx.child_id();
        let name = terms.name.as_deref();
        let peer = turn.core.peer(turn.ctx.config);
        if let Some((peer, policy)) = peer.and_then(|peer| Some((peer, peer.policy(name)?))) {
            for remark in child::remarks(policy.zones, &terms) {
                turn.ctx.refused(Some(peer.name.clone()), remark);
            }
        }
        let age = self.age_of(&terms, turn);
        self.children.add(id, &terms, age);
        let waits = resource::is_additional(name) || config::is_slot(name);
        if !ours && waits {
            self.unsure.add(id, &turn.core.responses, turn.ctx.now);
        }
        let child = self.named(id, terms, ours, turn.core);
        turn.ctx.event(Event::ChildUp(Box::new(child)));
        id
    }
}
