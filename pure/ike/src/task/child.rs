//! Additional child SAs (RFC 7296 section 1.3.1), and new ones in the place of lost ones.
//!
//! Either end may request a child SA. The responder assigns a request to the first configured child
//! SA whose selectors overlap with the requested ones and that is not up, as there is one of each.
//! "A failed attempt to create a Child SA SHOULD NOT tear down the IKE SA": the reason is reported,
//! and the request repeated.
//!
//! If both ends request the same child SA at once, two of them result. One of these is deleted, as
//! with simultaneous rekeys (section 2.8.1).

use super::delete::DeleteChild;
use super::liveness::Check;
use super::opening::{self, Refused};
use super::{child_terms, liveness, rekey_child};
use crate::allowed_suites::AllowedEspSuites;
use crate::child::{self, ChildConfig, ChildTerms, Offer, Requested};
use crate::config;
use crate::event::Event;
use crate::exchange::first_error;
use crate::extension::path_traffic::{self, path_traffic};
use crate::extension::slot::{self, Offered};
use crate::extension::{live_path, resource};
use crate::refusal::Refusal;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::child_request::{Attempt, ChildRequest, Settled};
use crate::session::live_paths::Apart;
use crate::session::task::{Answer, Subject, Task, Then, Wanted};
use model::ChildSaId;
use wire::ike::{ExchangeType, Message, NotifyType, Payload};

/// Our request for a child SA.
pub(crate) struct NewChild {
    pub(crate) name: Option<String>,
    request: ChildRequest,
    /// The path that the child SA is for, if it is not that of the IKE SA.
    apart: Option<Apart>,
}

impl Task for NewChild {
    fn subject(&self) -> Subject {
        Subject::NewChild
    }

    fn exchange(&self) -> ExchangeType {
        self.request.exchange()
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        self.request.payloads.clone()
    }

    fn is_moot(&self, session: &Session) -> bool {
        let name = self.name.as_deref();
        let full = session.upkeep.is_full && resource::is_additional(name);
        full || session.children.current(name).is_some()
            || session.openings.is_open(name)
            || session.lacks_path(name)
    }

    fn apart(&self) -> Option<&Apart> {
        self.apart.as_ref()
    }

    fn apart_mut(&mut self) -> Option<&mut Apart> {
        self.apart.as_mut()
    }

    fn wants(&self) -> Option<Wanted<'_>> {
        Some(Wanted {
            request: &self.request,
            old: None,
            name: self.name.as_deref(),
        })
    }

    fn child_mut(&mut self) -> Option<&mut ChildRequest> {
        Some(&mut self.request)
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        session: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        conclude(session, *self, answer.message, turn);
        Then::Stay
    }
}

/// Requests a child SA.
pub(crate) fn request(session: &mut Session, name: Option<&str>, turn: &mut Turn<'_, '_>) {
    let peer = turn.core.peer(turn.ctx.config);
    let attempt = peer.and_then(|peer| Some(Attempt::first(peer, &session.policy(peer, name)?)));
    if let Some(attempt) = attempt {
        ask(session, name, attempt, turn);
    }
}

fn ask(session: &mut Session, name: Option<&str>, attempt: Attempt, turn: &mut Turn<'_, '_>) {
    let peer = turn.core.peer(turn.ctx.config);
    let policy = peer.and_then(|peer| Some((peer, session.policy(peer, name)?)));
    let Some((peer, policy)) = policy else {
        return;
    };
    let unencrypted = peer.unencrypted_now(turn.ctx.today);
    let menu = AllowedEspSuites::to_offer(peer, attempt.groups(peer), unencrypted);
    let ground = session.mode_context(turn.core);
    let spis = turn.ctx.spis(turn.core.id, name);
    let offer = match Offer::new(menu, &policy, ground, session.terms.private, spis) {
        Ok(offer) => offer,
        Err(why) => {
            session.upkeep.put_off(policy.name, turn.ctx.now);
            let (name, why) = (name.map(str::to_owned), Box::new(why.into()));
            let why = Refusal::ChildFailed { name, why };
            return turn.ctx.refused(Some(turn.core.peer_id()), why);
        }
    };
    let config = ChildConfig {
        peer,
        policy: &policy,
        addresses: session.terms.addresses,
        today: turn.ctx.today,
    };
    let mut request = ChildRequest::new(offer, attempt, None, config, turn.ctx.rng);
    if session.terms.resources && resource::number(name).is_some() {
        request.payloads.push(resource::info(name));
    }
    if session.terms.private {
        request.payloads.extend(slot::offer(peer, name));
    }
    let own = session.paths.of(name);
    let added = own.map(|own| live_path::add(own.number, own.path));
    request.payloads.extend(added.into_iter().flatten());
    request.payloads.extend(path_traffic::payload(name));
    let apart = own.map(|own| Apart::new(own.path));
    let name = name.map(str::to_owned);
    let new = NewChild {
        name,
        request,
        apart,
    };
    session.ask(new, turn);
}

/// Answers a request for an additional child SA.
pub(crate) fn answer(
    session: &mut Session,
    request: &Message,
    turn: &mut Turn<'_, '_>,
) -> Vec<Payload> {
    let accepted = accept(session, request, turn);
    opening::answered(accepted, turn)
}

fn accept(
    session: &mut Session,
    request: &Message,
    turn: &mut Turn<'_, '_>,
) -> Result<Vec<Payload>, Refused> {
    // The end "SHOULD reply with TEMPORARY_FAILURE" (section 2.25.2).
    let later = NotifyType::TEMPORARY_FAILURE;
    if session.is_rekeying() {
        return Err((later, None));
    }
    let none = NotifyType::NO_ADDITIONAL_SAS;
    let peer = turn.core.peer(turn.ctx.config).ok_or((none, None))?;
    opening::check_room(session, peer, turn)?;
    let resource = session.terms.resources && resource::is_named(request);
    let offered = session.terms.private.then(|| Offered::read(request));
    let offered = offered.flatten();
    let placed = offered.as_ref().and_then(Offered::placed);
    let is_there = |name: Option<&str>| {
        let opening = resource && session.openings.is_open(name);
        opening || session.children.current(name).is_some()
    };
    let requested = Requested {
        request,
        resource,
        offered,
    };
    let asked = |name: &str| session.asked(name);
    let policy = child::meant(peer, session.terms.addresses, requested, is_there, asked);
    let policy = policy.map_err(|(kind, why)| (kind, Some(why)))?;
    if turn.ctx.overrides.is_closed(peer.id, policy.name) {
        let name = policy.name.unwrap_or_default().to_owned();
        return Err((later, Some(Refusal::ChildTakenDown(name))));
    }
    match child_terms::agree(session, &policy, None, request, turn) {
        Err(refusal) => Ok(vec![refusal]),
        Ok((mut payloads, agreed, lower_nonce)) => {
            if let Some((node, place)) = placed.filter(|_| policy.domain.is_some()) {
                let peer = peer.id;
                turn.ctx.event(Event::Placed { peer, node, place });
            }
            payloads.extend(resource.then(|| resource::info(policy.name)));
            Ok(opening::open(
                session,
                None,
                payloads,
                agreed,
                lower_nonce,
                turn,
            ))
        }
    }
}

/// Evaluates the peer's answer.
fn conclude(session: &mut Session, new: NewChild, response: &Message, turn: &mut Turn<'_, '_>) {
    if session.is_leaving() {
        return;
    }
    if let Some(error) = first_error(response) {
        return note_refused(session, new, error, response, turn);
    }
    let NewChild { name, request, .. } = new;
    child_terms::note_exchange(session, &request, turn);
    let (spi, rival) = (request.spi, request.rival());
    let peer = turn.core.peer(turn.ctx.config);
    let policy = peer.and_then(|peer| Some((peer, session.policy(peer, name.as_deref())?)));
    // The child SA may not be wanted any more.
    let wanted = turn
        .ctx
        .overrides
        .of(turn.core.peer_id(), name.as_deref())
        .unwrap_or(true);
    let wanted = wanted && !session.lacks_path(name.as_deref());
    let Some((peer, policy)) = policy.filter(|_| wanted) else {
        return session.ask(DeleteChild::unused(spi), turn);
    };
    let config = ChildConfig {
        peer,
        policy: &policy,
        addresses: session.terms.addresses,
        today: turn.ctx.today,
    };
    match request.conclude(config, response, &session.keys) {
        Ok(Settled::Stays(terms)) => {
            install(session, *terms, rival, turn);
            assure(session, name.as_deref(), turn);
        }
        Ok(Settled::Follows(request)) => {
            session.openings.close(name.as_deref());
            let own = session.paths.of(name.as_deref());
            let new = NewChild {
                apart: own.map(|own| Apart::new(own.path)),
                request: *request,
                name,
            };
            session.queue.push_first(Box::new(new));
        }
        Ok(Settled::Goes) => session.ask(DeleteChild::unused(spi), turn),
        // If the peer does not continue either, the child SA is missing, and requested again.
        Ok(Settled::Stops) => {}
        Ok(Settled::Deleted) => drop(session.upkeep.put_off(name.as_deref(), turn.ctx.now)),
        // "If this is unacceptable to the initiator, the initiator MUST delete the SA".
        Err(why) => {
            session.ask(DeleteChild::unused(spi), turn);
            session.upkeep.put_off(name.as_deref(), turn.ctx.now);
            session.paths.note_refused(name.as_deref(), None, turn);
            let why = Box::new(why);
            turn.ctx.refused(
                Some(turn.core.peer_id()),
                Refusal::ChildFailed { name, why },
            );
        }
    }
}

/// Sends a request that assures the peer of the slot: the peer may use it as soon as it is
/// certain that we have its answer, even before a packet arrives on the slot.
pub(crate) fn assure(session: &mut Session, name: Option<&str>, turn: &mut Turn<'_, '_>) {
    if config::is_slot(name) {
        session.ask(Check::Liveness, turn);
    }
}

/// Adds a child SA that the peer agreed to. It replaces the one of the peer's competing
/// request.
fn install(
    session: &mut Session,
    terms: ChildTerms,
    rival: Option<ChildSaId>,
    turn: &mut Turn<'_, '_>,
) {
    match rival.filter(|rival| session.children.is_current(*rival)) {
        Some(rival) => {
            rekey_child::succeed(session, rival, terms, true, turn);
            session
                .children
                .replace(rival, false, &turn.ctx.config.timers, turn.ctx.now);
        }
        None => drop(add(session, terms, true, turn)),
    }
}

fn note_refused(
    session: &mut Session,
    new: NewChild,
    error: NotifyType,
    response: &Message,
    turn: &mut Turn<'_, '_>,
) {
    let NewChild { name, request, .. } = new;
    if request.rival().is_some() || session.children.current(name.as_deref()).is_some() {
        return;
    }
    let peer = turn.core.peer(turn.ctx.config);
    let attempt = peer.and_then(|peer| request.after(error, response, peer));
    if let Some(attempt) = attempt {
        return ask(session, name.as_deref(), attempt, turn);
    }
    if request.is_contested() {
        return;
    }
    session
        .paths
        .note_refused(name.as_deref(), Some(error), turn);
    let again = session.upkeep.put_off(name.as_deref(), turn.ctx.now);
    if error == NotifyType::TS_MAX_QUEUE && resource::is_additional(name.as_deref()) {
        session.upkeep.is_full = true;
        return turn
            .ctx
            .refused(Some(turn.core.peer_id()), Refusal::NoMoreResources);
    }
    if error == NotifyType::TEMPORARY_FAILURE {
        liveness::note_busy(session, turn);
    }
    let passes = match session.paths.of(name.as_deref()) {
        Some(_) => vec![NotifyType::TEMPORARY_FAILURE, NotifyType::NO_ADDITIONAL_SAS],
        None => vec![NotifyType::TEMPORARY_FAILURE, NotifyType::STATE_NOT_FOUND],
    };
    // The peer was temporarily busy, or has been for too long.
    if passes.contains(&error) && !again {
        return;
    }
    let notify = error;
    if session.upkeep.is_news(name.as_deref(), error) {
        turn.ctx.refused(
            Some(turn.core.peer_id()),
            Refusal::ChildRefused { name, notify },
        );
    }
}

/// Adds a usable child SA. `ours`: we requested it.
pub(crate) fn add(
    session: &mut Session,
    terms: ChildTerms,
    ours: bool,
    turn: &mut Turn<'_, '_>,
) -> ChildSaId {
    let id = turn.ctx.child_id();
    let name = terms.name.as_deref();
    let peer = turn.core.peer(turn.ctx.config);
    if let Some((peer, policy)) = peer.and_then(|peer| Some((peer, session.policy(peer, name)?))) {
        for remark in child::remarks(policy.zones, &terms) {
            turn.ctx.refused(Some(peer.id), remark);
        }
    }
    let age = child_terms::age_of(session, &terms, turn);
    session.children.add(id, &terms, age);
    let has_path = session.paths.of(name).is_some() || path_traffic(name).is_some();
    let waits = resource::is_additional(name) || config::is_slot(name) || has_path;
    if !ours && waits {
        session
            .openings
            .unsure
            .add(id, &turn.core.responses, turn.ctx.now);
    }
    let child = child_terms::described(session, id, terms, ours, turn);
    turn.ctx.event(Event::ChildUp(Box::new(child)));
    id
}
