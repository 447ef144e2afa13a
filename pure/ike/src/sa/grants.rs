//! Gateway and licensed node: the gateway distributes and revokes keys, and the node announces its
//! neighbours (`extension/distribute.rs`).

use super::established::Established;
use super::offered::{Offered, Question};
use super::task::{self, Task};
use super::{Arrived, Turn};
use crate::config::PeerRole;
use crate::event::Event;
use crate::extension::distribute;
use crate::refusal::{GrantRefusal, Refusal};
use crypto::Secret;
use model::{CsaId, Grant, Identity};
use wire::ike::{Message, RefusalCode};

impl Established {
    /// Sends a grant, only to a licensed node that understands the exchange.
    pub(crate) fn distribute(&mut self, grant: Grant<Secret>, turn: &mut Turn<'_, '_>) {
        let licensed = turn
            .core
            .peer(turn.ctx.config)
            .is_some_and(|peer| matches!(peer.role, PeerRole::Licensed));
        match licensed && self.private {
            true => self.ask(Task::Distribute(Box::new(grant)), turn),
            false => turn
                .ctx
                .event(task::refused(&grant, GrantRefusal::NotLicensed, turn.core)),
        }
    }

    /// Revokes or returns a grant. If the grant is still queued, its keys are not sent.
    pub(crate) fn revoke(&mut self, csa: CsaId, turn: &mut Turn<'_, '_>) {
        if !self.private {
            return;
        }
        let is_given = |task: &Task| matches!(task, Task::Distribute(grant) if grant.csa == csa);
        self.queue.withdraw(is_given);
        self.ask(Task::Revoke(csa), turn);
    }

    /// Licensed node: handles a grant. Only our gateway may send one. The caller decides if it can
    /// be used.
    pub(super) fn accept_grant(
        &mut self,
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
            turn.ctx
                .refused(Some(peer.name.clone()), Refusal::NotOurGateway);
            return Err(code);
        }
        let grant = distribute::read(request).ok_or(RefusalCode::INVALID_GRANT)?;
        let known = self.grants.contains(&grant.csa);
        let held = self.grants.len() + self.offered.len();
        if !known && held >= turn.ctx.config.limits.grants {
            return Err(RefusalCode::TOO_MANY_GRANTS);
        }
        let question = Question::Grant(distribute::name(request));
        self.offered.push(Offered::new(question, arrived));
        let (sa, gateway) = (turn.core.id, peer.identity.clone());
        turn.ctx.event(Event::Granted { sa, gateway, grant });
        Ok(())
    }

    /// Licensed node: answers a grant. A refused grant is not held, but an earlier one for the same
    /// composite SA stays.
    pub(crate) fn answer_grant(
        &mut self,
        csa: CsaId,
        grant: u16,
        refusal: Option<RefusalCode>,
        turn: &mut Turn<'_, '_>,
    ) {
        let Some(offered) = self.remove_offered(Question::Grant((csa, grant))) else {
            return;
        };
        if refusal.is_none() {
            self.grants.insert(csa);
        }
        offered.answer(self, vec![distribute::reply(csa, grant, refusal)], turn);
    }

    /// Licensed node: handles revocations. Gateway: handles returned grants.
    pub(super) fn revoke_grant(&mut self, request: &Message, turn: &mut Turn<'_, '_>) {
        if !self.private {
            return;
        }
        let sa = turn.core.id;
        let peer = turn.core.peer(turn.ctx.config);
        let is_node = peer.is_some_and(|peer| peer.role == PeerRole::Licensed);
        for csa in distribute::revoked(request) {
            if is_node {
                turn.ctx.event(Event::GivenBack { sa, csa });
            } else if self.grants.remove(&csa) {
                turn.ctx.event(Event::Revoked { sa, csa });
            }
        }
    }

    /// Licensed node: announces to a gateway, and to no other peer, the nodes that mobile nodes may
    /// move to from us.
    pub(crate) fn tell_neighbours(&mut self, nodes: Vec<Identity>, turn: &mut Turn<'_, '_>) {
        let peer = turn.core.peer(turn.ctx.config);
        if self.private && peer.is_some_and(|peer| peer.role == PeerRole::Gateway) {
            // This list replaces earlier ones.
            self.queue
                .withdraw(|task| matches!(task, Task::Neighbours(_)));
            self.ask(Task::Neighbours(nodes), turn);
        }
    }

    /// Gateway: handles the announcement of a licensed node.
    pub(super) fn note_neighbours(&self, request: &Message, turn: &mut Turn<'_, '_>) {
        let peer = turn.core.peer(turn.ctx.config).filter(|_| self.private);
        let node = peer.filter(|peer| peer.role == PeerRole::Licensed);
        let said = node.and_then(|node| Some((node, distribute::said_neighbours(request)?)));
        if let Some((node, neighbours)) = said {
            let node = node.identity.clone();
            turn.ctx.event(Event::Neighbours { node, neighbours });
        }
    }
}
