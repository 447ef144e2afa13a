//! The child SAs that an IKE SA should have, and the times of requests for missing ones.
//!
//! The initiator of the IKE SA creates the child SAs of its configuration, and those of an SA that
//! this one has replaced. In addition, each end creates those that its operator opened. A child SA
//! that the peer refused or deleted is requested again after growing delays. Everything else stays
//! up.

use super::child::NewChild;
use super::{child, delete};
use crate::config;
use crate::event::Event;
use crate::extension::resource;
use crate::policy::Policy;
use crate::sa::turn::{Context, Turn};
use crate::session::Session;
use crate::session::replacement::Aside;
use model::{ChildSaId, PeerId};

/// Requests the wanted child SAs that are missing, if it is time.
pub(crate) fn maintain(session: &mut Session, turn: &mut Turn<'_, '_>) {
    session.upkeep.next = None;
    let served =
        session.replacement.has_successor || session.replacement.aside == Some(Aside::Theirs);
    if session.is_leaving() || (served && turn.ctx.is_acquainted()) {
        return;
    }
    let Some(peer) = turn.core.peer(turn.ctx.config) else {
        return;
    };
    for policy in peer.policies() {
        if !is_missing(session, &policy, peer.id, turn.ctx) {
            continue;
        }
        match session.upkeep.until(policy.name) {
            Some(until) if turn.ctx.now < until => {
                let next = session.upkeep.next.into_iter().chain([until]);
                session.upkeep.next = next.min();
            }
            _ => child::request(session, policy.name, turn),
        }
    }
}

/// Returns true if the SA has all child SAs that its traffic needs.
pub(crate) fn has_inherited(session: &Session) -> bool {
    let current = session.children.current_names();
    let has =
        |name: &Option<String>| resource::is_additional(name.as_deref()) || current.contains(name);
    session.upkeep.inherited.iter().all(has)
}

/// Deletes a child SA that is no longer wanted.
pub(crate) fn drop_child(session: &mut Session, name: Option<&str>, turn: &mut Turn<'_, '_>) {
    session.upkeep.inherited.remove(&name.map(str::to_owned));
    session.upkeep.retry(name);
    session.openings.close(name);
    if let Some(id) = session.children.current(name) {
        delete_current(session, id, turn);
    }
}

/// Deletes a child SA without a successor. Nothing more is sent on it; packets in flight to us
/// may arrive.
pub(crate) fn delete_current(session: &mut Session, id: ChildSaId, turn: &mut Turn<'_, '_>) {
    if session.children.end(id) {
        note_room(session, id);
        turn.ctx.event(Event::ChildRetired { child: id });
        delete::request(session, id, turn);
    }
}

/// Removes a child SA that the peer no longer has.
pub(crate) fn lose_child(session: &mut Session, id: ChildSaId, ctx: &mut Context<'_>) {
    note_room(session, id);
    session.children.remove(id);
    ctx.event(Event::ChildDown {
        child: id,
        why: None,
    });
}

/// Notes the end of a child SA. If it is one of several for the same traffic, the peer may
/// accept another one.
fn note_room(session: &mut Session, id: ChildSaId) {
    let name = session.children.get(id).map(|child| child.name.as_deref());
    if name.and_then(resource::number).is_some() {
        session.upkeep.is_full = false;
    }
}

/// Returns true if the peer may be asked for a child SA. One of several for the same traffic
/// requires the peer's support, and "the fallback SA". A slot requires a first child SA with
/// zones, and one for a domain is requested by the end that can name its nodes.
fn is_possible(session: &Session, policy: &Policy<'_>) -> bool {
    let name = policy.name;
    let first = session.children.current(None);
    let first = first.and_then(|first| session.children.get(first));
    if config::is_slot(name) {
        let has_zones = first.is_some_and(|first| first.agreement.is_some());
        return has_zones && policy.domain.is_none();
    }
    let several = session.terms.resources && !session.upkeep.is_full && first.is_some();
    several || !resource::is_additional(name)
}

fn is_missing(session: &Session, policy: &Policy<'_>, peer: PeerId, ctx: &Context<'_>) -> bool {
    let name = policy.name;
    let inherited = || {
        session
            .upkeep
            .inherited
            .iter()
            .any(|old| old.as_deref() == name)
    };
    let ours = || session.terms.contact.ours && (policy.auto || inherited());
    let mut asked = session.queue.tasks_of::<NewChild>();
    is_possible(session, policy)
        && ctx.overrides.of(peer, name).unwrap_or_else(ours)
        && session.children.current(name).is_none()
        && !session.openings.is_open(name)
        && !asked.any(|new| new.name.as_deref() == name)
}
