//! Gateway and licensed node: the gateway distributes and revokes keys, and the node announces its
//! neighbours (`extension/distribute.rs`).

use crate::config::PeerRole;
use crate::event::Event;
use crate::extension::distribute;
use crate::refusal::{GrantRefusal, Refusal};
use crate::sa::arrived::Arrived;
use crate::sa::core::Core;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::grants::Question;
use crate::session::task::{Answer, Subject, Task, Then};
use crypto::Secret;
use model::{CsaId, Grant, Identity};
use wire::ike::{ExchangeType, Message, Payload, RefusalCode};

/// Distribution of keys to a licensed node.
struct Distribute(Grant<Secret>);

/// Revocation of a grant.
pub(crate) struct Revoke(pub(crate) CsaId);

/// Announcement of the nodes that mobile nodes may move to from us.
pub(crate) struct Neighbours(pub(crate) Vec<Identity>);

impl Task for Distribute {
    fn subject(&self) -> Subject {
        Subject::Csa(self.0.csa)
    }

    fn exchange(&self) -> ExchangeType {
        ExchangeType::KEY_DISTRIBUTE
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        distribute::payloads(&self.0)
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        _: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        let (sa, grant) = (turn.core.id, &self.0);
        turn.ctx
            .event(match distribute::outcome(grant, answer.message) {
                Ok(()) => Event::GrantAccepted {
                    sa,
                    csa: grant.csa,
                    grant: grant.grant,
                },
                Err(why) => refused(grant, why, turn.core),
            });
        Then::Stay
    }
}

impl Task for Revoke {
    fn subject(&self) -> Subject {
        Subject::Csa(self.0)
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        vec![distribute::revocation(self.0)]
    }
}

impl Task for Neighbours {
    fn subject(&self) -> Subject {
        Subject::Neighbours
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        vec![distribute::neighbours(&self.0)]
    }
}

/// Returns the event for a refused grant.
fn refused(grant: &Grant<Secret>, why: GrantRefusal, core: &Core) -> Event {
    Event::GrantRefused {
        sa: core.id,
        csa: grant.csa,
        grant: grant.grant,
        why,
    }
}

/// Sends a grant, only to a licensed node that understands the exchange.
pub(crate) fn distribute(session: &mut Session, grant: Grant<Secret>, turn: &mut Turn<'_, '_>) {
    let licensed = turn
        .core
        .peer(turn.ctx.config)
        .is_some_and(|peer| matches!(peer.role, PeerRole::Licensed));
    match licensed && session.terms.private {
        true => session.ask(Distribute(grant), turn),
        false => turn
            .ctx
            .event(refused(&grant, GrantRefusal::NotLicensed, turn.core)),
    }
}

/// Revokes or returns a grant. If the grant is still queued, its keys are not sent.
pub(crate) fn revoke(session: &mut Session, csa: CsaId, turn: &mut Turn<'_, '_>) {
    if !session.terms.private {
        return;
    }
    session.queue.withdraw(|Distribute(grant)| grant.csa == csa);
    session.ask(Revoke(csa), turn);
}

/// Licensed node: handles a grant. Only our gateway may send one. The caller decides if it can
/// be used.
pub(crate) fn accept(
    session: &mut Session,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Result<(), RefusalCode> {
    let peer = turn.core.peer(turn.ctx.config);
    let peer = peer.ok_or(RefusalCode::NOT_THE_GATEWAY)?;
    let role = match peer.role {
        PeerRole::Gateway => None,
        PeerRole::Licensed => Some(RefusalCode::NOT_A_LICENSED_NODE),
        PeerRole::Vpn { .. } | PeerRole::Neighbour => Some(RefusalCode::NOT_THE_GATEWAY),
    };
    if let Some(code) = role {
        turn.ctx.refused(Some(peer.id), Refusal::NotOurGateway);
        return Err(code);
    }
    let grant = distribute::read(request).ok_or(RefusalCode::INVALID_GRANT)?;
    let known = session.grants.held.contains(&grant.csa);
    let held = session.grants.held.len() + session.grants.offered.len();
    if !known && held >= turn.ctx.config.limits.grants {
        return Err(RefusalCode::TOO_MANY_GRANTS);
    }
    let question = Question::Grant(distribute::name(request));
    session.grants.offer(question, arrived);
    let (sa, gateway) = (turn.core.id, peer.identity.clone());
    turn.ctx.event(Event::Granted { sa, gateway, grant });
    Ok(())
}

/// Licensed node: answers a grant. A refused grant is not held, but an earlier one for the same
/// composite SA stays.
pub(crate) fn answer(
    session: &mut Session,
    csa: CsaId,
    grant: u16,
    refusal: Option<RefusalCode>,
    turn: &mut Turn<'_, '_>,
) {
    let Some(offered) = session.grants.take(Question::Grant((csa, grant))) else {
        return;
    };
    if refusal.is_none() {
        session.grants.held.insert(csa);
    }
    session.respond_late(vec![distribute::reply(csa, grant, refusal)], &offered, turn);
}

/// Licensed node: handles revocations. Gateway: handles returned grants.
pub(crate) fn note_revoked(session: &mut Session, request: &Message, turn: &mut Turn<'_, '_>) {
    if !session.terms.private {
        return;
    }
    let sa = turn.core.id;
    let peer = turn.core.peer(turn.ctx.config);
    let is_node = peer.is_some_and(|peer| peer.role == PeerRole::Licensed);
    for csa in distribute::revoked(request) {
        if is_node {
            turn.ctx.event(Event::GivenBack { sa, csa });
        } else if session.grants.held.remove(&csa) {
            turn.ctx.event(Event::Revoked { sa, csa });
        }
    }
}

/// Licensed node: announces to a gateway, and to no other peer, the nodes that mobile nodes may
/// move to from us.
pub(crate) fn tell_neighbours(
    session: &mut Session,
    nodes: Vec<Identity>,
    turn: &mut Turn<'_, '_>,
) {
    let peer = turn.core.peer(turn.ctx.config);
    if session.terms.private && peer.is_some_and(|peer| peer.role == PeerRole::Gateway) {
        // This list replaces earlier ones.
        session.queue.withdraw(|_: &Neighbours| true);
        session.ask(Neighbours(nodes), turn);
    }
}

/// Gateway: handles the announcement of a licensed node.
pub(crate) fn note_neighbours(session: &Session, request: &Message, turn: &mut Turn<'_, '_>) {
    let peer = turn
        .core
        .peer(turn.ctx.config)
        .filter(|_| session.terms.private);
    let node = peer.filter(|peer| peer.role == PeerRole::Licensed);
    let said = node.and_then(|node| Some((node, distribute::said_neighbours(request)?)));
    if let Some((node, neighbours)) = said {
        let node = node.identity.clone();
        turn.ctx.event(Event::Neighbours { node, neighbours });
    }
}
