//! Child SAs with the traffic of one of several live paths (`extension/path_traffic.rs`).
//!
//! The caller decides which path has which traffic. Only the end that chooses the paths requests
//! it.

use super::opening::{self, Refused};
use super::{child, child_terms, upkeep};
use crate::extension::path_traffic;
use crate::refusal::Refusal;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::task::Task;
use wire::ike::{Message, NotifyType, Payload};

/// Requests the child SA for a rule on a path, unless the path has one, or it is too early after a
/// refusal.
pub(crate) fn request(session: &mut Session, number: u8, rule: u8, turn: &mut Turn<'_, '_>) {
    let decides = session.deciding().is_some() && session.has_path_selectors();
    let Some(name) = path_traffic::name(Some(rule), number).filter(|_| decides) else {
        return;
    };
    let until = session.upkeep.until(Some(name));
    let is_early = until.is_some_and(|until| turn.ctx.now < until);
    if !is_early && !session.is_leaving() && is_free(session, number) {
        child::request(session, Some(name), turn);
    }
}

/// Deletes the child SA with the traffic of a path.
pub(crate) fn remove(session: &mut Session, number: u8, turn: &mut Turn<'_, '_>) {
    for name in path_traffic::names_on(number) {
        upkeep::drop_child(session, Some(name), turn);
    }
}

/// Deletes the child SAs with the traffic of paths that do not exist any more. Nothing checks the
/// address that they send to.
pub(crate) fn remove_lost(session: &mut Session, turn: &mut Turn<'_, '_>) {
    let current = session.children.all_current();
    let lost = current.filter(|child| session.lacks_path(child.name.as_deref()));
    for id in lost.map(|child| child.id).collect::<Vec<_>>() {
        upkeep::delete_current(session, id, turn);
    }
}

/// Returns true if no child SA has the traffic of this path, and none is being created for it.
fn is_free(session: &Session, number: u8) -> bool {
    path_traffic::names_on(number).all(|name| {
        let name = Some(name);
        let wants = |task: &dyn Task| task.wants().is_some_and(|wanted| wanted.name == name);
        let is_used = session.children.has(name)
            || session.openings.is_open(name)
            || session.queue.tasks().any(wants);
        !is_used
    })
}

/// Answers a request that selects the traffic of a path.
pub(crate) fn answer(
    session: &mut Session,
    number: u8,
    request: &Message,
    turn: &mut Turn<'_, '_>,
) -> Vec<Payload> {
    let accepted = accept(session, number, request, turn);
    opening::answered(accepted, turn)
}

fn accept(
    session: &mut Session,
    number: u8,
    request: &Message,
    turn: &mut Turn<'_, '_>,
) -> Result<Vec<Payload>, Refused> {
    let none = NotifyType::NO_ADDITIONAL_SAS;
    if session.chooses_path() != Some(false) {
        return Err((none, Some(Refusal::NotTheirsToMove)));
    }
    let most = session.most_paths(turn.core.peer(turn.ctx.config));
    let name = path_traffic::name(None, number).filter(|_| number <= most);
    let name = name.ok_or((none, Some(Refusal::TooManyPaths(most))))?;
    let is_unproved = session.paths.is_unproved(Some(name));
    let is_usable = session.has_path(number) && is_free(session, number);
    if session.is_rekeying() || is_unproved || !is_usable {
        return Err((NotifyType::TEMPORARY_FAILURE, None));
    }
    let peer = turn.core.peer(turn.ctx.config).ok_or((none, None))?;
    opening::check_room(session, peer, turn)?;
    let policy = session.policy(peer, Some(name)).ok_or((none, None))?;
    match child_terms::agree(session, &policy, None, request, turn) {
        Err(refusal) => Ok(vec![refusal]),
        Ok((payloads, agreed, lower_nonce)) => Ok(opening::open(
            session,
            None,
            payloads,
            agreed,
            lower_nonce,
            turn,
        )),
    }
}

/// Reports that the rules of the configuration have no effect.
pub(crate) fn tell_unused(session: &Session, turn: &mut Turn<'_, '_>) {
    let peer = turn.core.peer(turn.ctx.config);
    if !session.is_extended() || peer.is_none_or(|peer| peer.rules.is_empty()) {
        return;
    }
    let why = match (session.has_path_selectors(), session.chooses_path()) {
        (true, Some(true)) => return,
        (false, _) => Refusal::WithoutPathTraffic,
        (true, _) => Refusal::PathTrafficOfPeer,
    };
    turn.ctx.refused(Some(turn.core.peer_id()), why);
}
