//! Gateway and licensed node: the gateway distributes and revokes keys, and the node announces its
//! neighbours (`extension/distribute.rs`).

use super::established::Established;
use super::offered::{Offered, Question};
use super::task::{self, Task};
use super::{Arrived, Context, Core};
use crate::config::PeerRole;
use crate::event::Event;
use crate::extension::distribute;
use crate::refusal::{GrantRefusal, Refusal};
use crypto::Secret;
use model::{CsaId, Grant, Identity};
use wire::ike::{Message, RefusalCode};

impl Established {
    /// Sends a grant, only to a licensed node that understands the exchange.
    pub(crate) fn distribute(
        &mut self,
        grant: Grant<Secret>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let licensed = core
            .peer(ctx.config)
            .is_some_and(|peer| matches!(peer.role, PeerRole::Licensed));
        match licensed && self.private {
            true => self.ask(Task::Distribute(Box::new(grant)), core, ctx),
            false => ctx.event(task::refused(&grant, GrantRefusal::NotLicensed, core)),
        }
    }

    /// Revokes or returns a grant. If the grant is still queued, its keys are not sent.
    pub(crate) fn revoke(&mut self, csa: CsaId, core: &mut Core, ctx: &mut Context<'_>) {
        if !self.private {
            return;
        }
        let is_given = |task: &Task| matches!(task, Task::Distribute(grant) if grant.csa == csa);
        self.queue.withdraw(is_given);
        self.ask(Task::Revoke(csa), core, ctx);
    }

    /// Licensed node: handles a grant. Only our gateway may send one. The caller decides if it can
    /// be used.
    pub(super) fn take_grant(
        &mut self,
        request: &Message,
        arrived: &Arrived<'_>,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> Result<(), RefusalCode> {
        let peer = core.peer(ctx.config);
        let peer = peer.ok_or(RefusalCode::NOT_THE_GATEWAY)?;
        let role = match peer.role {
            PeerRole::Gateway => None,
            PeerRole::Licensed => Some(RefusalCode::NOT_A_LICENSED_NODE),
            PeerRole::Vpn { .. } | PeerRole::Neighbour => Some(RefusalCode::NOT_THE_GATEWAY),
        };
        if let Some(code) = role {
            ctx.refused(Some(peer.name.clone()), Refusal::NotOurGateway);
            return Err(code);
        }
        let grant = distribute::read(request).ok_or(RefusalCode::INVALID_GRANT)?;
        let known = self.grants.contains(&grant.csa);
        let held = self.grants.len() + self.offered.len();
        if !known && held >= ctx.config.limits.grants {
            return Err(RefusalCode::TOO_MANY_GRANTS);
        }
        let question = Question::Grant(distribute::name(request));
        self.offered.push(Offered::new(question, arrived));
        let (sa, gateway) = (core.id, peer.identity.clone());
        ctx.event(Event::Granted { sa, gateway, grant });
        Ok(())
    }

    /// Licensed node: answers a grant. A refused grant is not held, but an earlier one for the same
    /// composite SA stays.
    pub(crate) fn answer_grant(
        &mut self,
        name: (CsaId, u16),
        refusal: Option<RefusalCode>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let Some(offered) = self.take_offered(Question::Grant(name)) else {
            return;
        };
        if refusal.is_none() {
            self.grants.insert(name.0);
        }
        offered.answer(self, vec![distribute::reply(name, refusal)], core, ctx);
    }

    /// Licensed node: handles revocations. Gateway: handles returned grants.
    pub(super) fn take_back(&mut self, request: &Message, core: &Core, ctx: &mut Context<'_>) {
        if !self.private {
            return;
        }
        let sa = core.id;
        let peer = core.peer(ctx.config);
        let is_node = peer.is_some_and(|peer| peer.role == PeerRole::Licensed);
        for csa in distribute::revoked(request) {
            if is_node {
                ctx.event(Event::GivenBack { sa, csa });
            } else if self.grants.remove(&csa) {
                ctx.event(Event::Revoked { sa, csa });
            }
        }
    }

    /// Licensed node: announces to a gateway, and to no other peer, the nodes that mobile nodes may
    /// move to from us.
    pub(crate) fn tell_neighbours(
        &mut self,
        nodes: Vec<Identity>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let peer = core.peer(ctx.config);
        if self.private && peer.is_some_and(|peer| peer.role == PeerRole::Gateway) {
            // This list replaces earlier ones.
            self.queue
                .withdraw(|task| matches!(task, Task::Neighbours(_)));
            self.ask(Task::Neighbours(nodes), core, ctx);
        }
    }

    /// Gateway: handles the announcement of a licensed node.
    pub(super) fn note_neighbours(&self, request: &Message, core: &Core, ctx: &mut Context<'_>) {
        let peer = core.peer(ctx.config).filter(|_| self.private);
        let node = peer.filter(|peer| peer.role == PeerRole::Licensed);
        let said = node.and_then(|node| Some((node, distribute::said_neighbours(request)?)));
        if let Some((node, neighbours)) = said {
            let node = node.identity.clone();
            ctx.event(Event::Neighbours { node, neighbours });
        }
    }
}
