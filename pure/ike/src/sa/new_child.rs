//! Additional child SAs (RFC 7296 section 1.3.1), and new ones in the place of lost ones.
//!
//! Either end may request a child SA. The responder assigns a request to the first configured child
//! SA whose selectors overlap with the requested ones and that is not up, as there is one of each.
//! "A failed attempt to create a Child SA SHOULD NOT tear down the IKE SA": the reason is reported,
//! and the request repeated.
//!
//! If both ends request the same child SA at once, two of them result. One of these is deleted, as
//! with simultaneous rekeys (section 2.8.1).

use super::child_request::{Attempt, ChildRequest, Settled};
use super::established::Established;
use super::task::Task;
use super::{Context, Core};
use crate::child::{self, Offer, Terms};
use crate::event::Event;
use crate::exchange::{first_error, notify};
use crate::extension::{resource, slot};
use crate::menu::EspMenu;
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
    pub(super) fn ask_for_new(
        &mut self,
        name: Option<&str>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let peer = core.peer(ctx.config);
        let attempt = peer.and_then(|peer| Some(Attempt::first(peer, &peer.policy(name)?)));
        if let Some(attempt) = attempt {
            self.ask_once(name, attempt, core, ctx);
        }
    }

    fn ask_once(
        &mut self,
        name: Option<&str>,
        attempt: Attempt,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let peer = core.peer(ctx.config);
        let Some((peer, policy)) = peer.and_then(|peer| Some((peer, peer.policy(name)?))) else {
            return;
        };
        let menu = EspMenu::of(peer, attempt.groups(peer));
        let ground = self.ground(core);
        let spis = ctx.spis(core.id, name);
        let offer = match Offer::new(menu, &policy, ground, self.private, spis) {
            Ok(offer) => offer,
            Err(why) => {
                self.put_off(policy.name, ctx);
                let (name, why) = (name.map(str::to_owned), Box::new(why.into()));
                let why = Refusal::ChildFailed { name, why };
                return ctx.refused(Some(core.name()), why);
            }
        };
        let terms = (peer, &policy, self.addresses);
        let mut request = ChildRequest::new(offer, attempt, None, terms, ctx.rng);
        if self.resources && resource::number(name).is_some() {
            request.payloads.push(resource::info(name));
        }
        let slot = self.private.then(|| slot::offer(peer, name)).flatten();
        request.payloads.extend(slot);
        let name = name.map(str::to_owned);
        let new = Box::new(NewChild { name, request });
        self.ask(Task::NewChild(new), core, ctx);
    }

    /// Answers a request for an additional child SA.
    pub(super) fn answer_new_child(
        &mut self,
        request: &Message,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> Vec<Payload> {
        let answered = self.take_new_child(request, core, ctx);
        answered.unwrap_or_else(|(kind, why)| {
            if let Some(why) = why {
                ctx.refused(Some(core.name()), why);
            }
            vec![notify(kind, Vec::new())]
        })
    }

    fn take_new_child(
        &mut self,
        request: &Message,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> Result<Vec<Payload>, (NotifyType, Option<Refusal>)> {
        // The end "SHOULD reply with TEMPORARY_FAILURE" (section 2.25.2).
        let later = NotifyType::TEMPORARY_FAILURE;
        if self.is_rekeying_ike() {
            return Err((later, None));
        }
        let none = NotifyType::NO_ADDITIONAL_SAS;
        let peer = core.peer(ctx.config).ok_or((none, None))?;
        let most = peer.most_children(&ctx.config.limits);
        let own = self.children.len() + self.openings.len();
        if own >= most || own + ctx.beside.children >= 2 * most {
            return Err((none, Some(Refusal::TooManyChildren(most))));
        }
        let resource = self.resources && resource::is_named(request);
        let offered = self.private.then(|| slot::offered(request)).flatten();
        let is_there = |name: Option<&str>| {
            let opening = resource && self.is_opening(name);
            opening || self.children.current(name).is_some()
        };
        let policy = child::meant(peer, self.addresses, (request, resource, offered), is_there);
        let policy = policy.map_err(|(kind, why)| (kind, Some(why)))?;
        if ctx.wishes.is_closed(&peer.name, policy.name) {
            let name = policy.name.unwrap_or_default().to_owned();
            return Err((later, Some(Refusal::ChildTakenDown(name))));
        }
        match self.agree_on_child(&policy, None, request, core, ctx) {
            Err(refusal) => Ok(vec![refusal]),
            Ok((mut payloads, agreed, lower_nonce)) => {
                payloads.extend(resource.then(|| resource::info(policy.name)));
                Ok(self.open(None, (payloads, agreed, lower_nonce), core, ctx))
            }
        }
    }

    /// Evaluates the peer's answer.
    pub(super) fn conclude_new_child(
        &mut self,
        new: NewChild,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        if self.is_leaving() {
            return;
        }
        if let Some(error) = first_error(response) {
            return self.note_refused_new(new, error, response, core, ctx);
        }
        let NewChild { name, request } = new;
        self.note_exchange(&request, core, ctx);
        let (spi, rival) = (request.spi, request.rival());
        let peer = core.peer(ctx.config);
        let policy = peer.and_then(|peer| Some((peer, peer.policy(name.as_deref())?)));
        // The child SA may not be wanted any more.
        let wanted = ctx.wishes.of(&core.name(), name.as_deref()).unwrap_or(true);
        let Some((peer, policy)) = policy.filter(|_| wanted) else {
            return self.ask(Task::DeleteChild(None, spi), core, ctx);
        };
        let terms = (peer, &policy, self.addresses);
        match request.settle(terms, response, &self.keys) {
            Ok(Settled::Stays(terms)) => {
                self.take(*terms, rival, core, ctx);
                self.assure(name.as_deref(), core, ctx);
            }
            Ok(Settled::Follows(request)) => {
                self.close_opening(name.as_deref());
                let request = *request;
                let new = Box::new(NewChild { name, request });
                self.queue.push_first(Task::NewChild(new));
            }
            Ok(Settled::Goes) => self.ask(Task::DeleteChild(None, spi), core, ctx),
            // If the peer does not continue either, the child SA is missing, and requested again.
            Ok(Settled::Stops) => {}
            Ok(Settled::Deleted) => drop(self.put_off(name.as_deref(), ctx)),
            // "If this is unacceptable to the initiator, the initiator MUST delete the SA".
            Err(why) => {
                self.ask(Task::DeleteChild(None, spi), core, ctx);
                self.put_off(name.as_deref(), ctx);
                let why = Box::new(why);
                ctx.refused(Some(core.name()), Refusal::ChildFailed { name, why });
            }
        }
    }

    /// Sends a request that assures the peer of the slot: the peer may use it as soon as it is
    /// certain that we have its answer, even before a packet arrives on the slot.
    pub(super) fn assure(&mut self, name: Option<&str>, core: &mut Core, ctx: &mut Context<'_>) {
        if slot::is_slot(name) {
            self.ask(Task::Liveness, core, ctx);
        }
    }

    /// Adds a child SA that the peer agreed to. It replaces the one of the peer's competing
    /// request.
    fn take(&mut self, terms: Terms, rival: Option<ChildSaId>, core: &Core, ctx: &mut Context<'_>) {
        match rival.filter(|rival| self.children.is_current(*rival)) {
            Some(rival) => {
                self.succeed(rival, terms, true, core, ctx);
                self.children
                    .replace(rival, false, &ctx.config.timers, ctx.now);
            }
            None => drop(self.add_child(terms, true, core, ctx)),
        }
    }

    fn note_refused_new(
        &mut self,
        new: NewChild,
        error: NotifyType,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let NewChild { name, request } = new;
        if request.rival().is_some() || self.children.current(name.as_deref()).is_some() {
            return;
        }
        let peer = core.peer(ctx.config);
        let attempt = peer.and_then(|peer| request.after(error, response, peer));
        if let Some(attempt) = attempt {
            return self.ask_once(name.as_deref(), attempt, core, ctx);
        }
        if request.is_contested() {
            return;
        }
        let again = self.put_off(name.as_deref(), ctx);
        if error == NotifyType::TS_MAX_QUEUE && resource::is_additional(name.as_deref()) {
            self.upkeep.is_full = true;
            return ctx.refused(Some(core.name()), Refusal::NoMoreResources);
        }
        if error == NotifyType::TEMPORARY_FAILURE {
            self.note_busy(core, ctx);
        }
        let passes = [NotifyType::TEMPORARY_FAILURE, NotifyType::STATE_NOT_FOUND];
        // The peer was temporarily busy, or has been for too long.
        if passes.contains(&error) && !again {
            return;
        }
        let notify = error;
        if self.upkeep.is_news(name.as_deref(), error) {
            ctx.refused(Some(core.name()), Refusal::ChildRefused { name, notify });
        }
    }

    /// Adds a usable child SA. `ours`: we requested it.
    pub(super) fn add_child(
        &mut self,
        terms: Terms,
        ours: bool,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> ChildSaId {
        let id = ctx.child_id();
        let name = terms.name.as_deref();
        let peer = core.peer(ctx.config);
        if let Some((peer, policy)) = peer.and_then(|peer| Some((peer, peer.policy(name)?))) {
            for remark in child::remarks(policy.zones, &terms) {
                ctx.refused(Some(peer.name.clone()), remark);
            }
        }
        let age = self.age_of(&terms, core, ctx);
        self.children.add(id, &terms, age);
        let waits = resource::is_additional(name) || slot::is_slot(name);
        if !ours && waits {
            self.unsure.add(id, &core.responses, ctx.now);
        }
        let child = self.named(id, terms, ours, core);
        ctx.event(Event::ChildUp(Box::new(child)));
        id
    }
}
