//! New keys for a child (RFC 7296 sections 1.3.3 and 2.8).
//!
//! Nothing is lost, because nothing ends before its successor works: both ends accept packets on
//! the old and the new child from the moment they know it, the owner of the engine says when to
//! send on which, and only after a time of draining the old one is deleted.
//!
//! Both ends may ask at once. Then there are two successors, and the one "created with the lowest
//! of the four nonces" is deleted by who asked for it (section 2.8.1). It never carried anything.

use super::children::{Age, Life, lifetimes};
use super::established::Established;
use super::task::Task;
use super::{Context, Core};
use crate::child::{self, Offer, Terms};
use crate::config::Peer;
use crate::event::{DownReason, Event, Refusal};
use crate::exchange::create_child::{
    Nonce, Offered, Renewal, about, rekey_sa, renewal, wanted_group,
};
use crate::exchange::{first_error, notify};
use crate::menu::groups_of;
use model::{ChildSa, ChildSaId, InnerAddresses, Spi, ZoneAgreement};
use wire::ike::{GroupId, Message, NotifyType, Payload};

/// Our request for a successor.
pub(crate) struct ChildRekey {
    pub(super) old: ChildSaId,
    offer: Offer,
    nonce: Nonce,
    key: Option<Offered>,
    pub(super) payloads: Vec<Payload>,
    /// The successor that the peer asked for meanwhile.
    rival: Option<Rival>,
    /// The group was already corrected once.
    corrected: bool,
}

struct Rival {
    id: ChildSaId,
    lower_nonce: Vec<u8>,
}

impl ChildRekey {
    /// `None` if the peer's configuration allows no such child any more.
    fn new(
        old: (ChildSaId, Spi, Option<&ZoneAgreement>),
        group: Option<GroupId>,
        (peer, addresses): (&Peer, Option<InnerAddresses>),
        ctx: &mut Context<'_>,
    ) -> Option<Self> {
        let (id, inbound, agreement) = old;
        let groups = group.map_or_else(Vec::new, |_| groups_of(peer));
        let offer = Offer::again(peer, agreement, groups, ctx.rng)?;
        let nonce: Nonce = ctx.rng.array();
        let key = group.and_then(|group| Offered::new(group, ctx.rng));
        let mut payloads = vec![rekey_sa(inbound)];
        let public = key.as_ref().map(Offered::payload);
        payloads.extend(renewal(offer.payloads(peer, addresses), &nonce, public));
        Some(Self {
            old: id,
            offer,
            nonce,
            key,
            payloads,
            rival: None,
            corrected: false,
        })
    }
}

impl Established {
    /// Asks for a successor of a child, unless that is being done.
    pub(crate) fn rekey_child(&mut self, id: ChildSaId, core: &mut Core, ctx: &mut Context<'_>) {
        let asked = |task: &Task| matches!(task, Task::RekeyChild(rekey) if rekey.old == id);
        if self.is_leaving() || self.queue.tasks().any(asked) {
            return;
        }
        let Some(peer) = core.peer(ctx.config) else {
            return;
        };
        let group = groups_of(peer).first().copied();
        self.ask_for_child(id, group.filter(|_| peer.lifetimes.pfs), false, core, ctx);
    }

    fn ask_for_child(
        &mut self,
        id: ChildSaId,
        group: Option<GroupId>,
        corrected: bool,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let Some(peer) = core.peer(ctx.config) else {
            return;
        };
        let old = self.children.iter().find(|child| child.id == id);
        let old = old.map(|old| (id, old.inbound, old.agreement.as_ref()));
        let terms = (peer, self.addresses);
        let rekey = old.and_then(|old| ChildRekey::new(old, group, terms, ctx));
        if let Some(rekey) = rekey {
            let rekey = ChildRekey { corrected, ..rekey };
            self.ask(Task::RekeyChild(Box::new(rekey)), core, ctx);
        }
    }

    /// Answers a peer that wants a successor of the child on which it receives with `spi`.
    pub(super) fn answer_rekey_child(
        &mut self,
        spi: Spi,
        request: &Message,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> Vec<Payload> {
        let later = || vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
        let full = self.children.is_full();
        // One that we do not know may be the successor whose answer has not arrived yet.
        let rekeys = |task: &Task| matches!(task, Task::RekeyChild(_));
        let expecting = self.queue.runs(rekeys);
        let Some(old) = self.children.by_outbound(spi) else {
            if expecting {
                return later();
            }
            return vec![about(NotifyType::CHILD_SA_NOT_FOUND, spi)];
        };
        // One that is replaced is about to be deleted (section 2.25.1).
        let current = matches!(old.life, Life::Current(_));
        let (id, agreement) = (old.id, old.agreement.clone());
        if !current || full || self.is_rekeying_ike() {
            return later();
        }
        match self.agree_on_child(agreement.as_ref(), request, core, ctx) {
            Err(refusal) => vec![refusal],
            Ok((payloads, terms, lower_nonce)) => {
                let new = self.succeed(id, terms, false, core, ctx);
                if let Some(rekey) = self.running_rekey_of(id) {
                    rekey.rival = Some(Rival {
                        id: new,
                        lower_nonce,
                    });
                }
                payloads
            }
        }
    }

    /// The payloads of an answer, the child, and the lower nonce; or a refusal.
    fn agree_on_child(
        &mut self,
        before: Option<&ZoneAgreement>,
        request: &Message,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> Result<(Vec<Payload>, Terms, Vec<u8>), Payload> {
        let refuse = |kind| notify(kind, Vec::new());
        let peer = core.peer(ctx.config);
        let peer = peer.ok_or_else(|| refuse(NotifyType::NO_ADDITIONAL_SAS))?;
        let theirs = Renewal::read(request);
        let theirs = theirs.ok_or_else(|| refuse(NotifyType::INVALID_SYNTAX))?;
        let ours = groups_of(peer);
        if let Some(key) = theirs.key.filter(|key| !ours.contains(&key.group)) {
            let wanted = ours.first().unwrap_or(&key.group).0.to_be_bytes();
            return Err(notify(NotifyType::INVALID_KE_PAYLOAD, wanted.to_vec()));
        }
        let nonce: Nonce = ctx.rng.array();
        let key = theirs.key.and_then(|key| Offered::new(key.group, ctx.rng));
        let public = key.as_ref().map(Offered::payload);
        let exchanged = key.zip(theirs.key).map(|(ours, theirs)| ours.agree(theirs));
        if matches!(exchanged, Some(None)) {
            ctx.refused(Some(peer.name.clone()), Refusal::KeyExchange);
            return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
        }
        let keys = self.keys.child(exchanged.flatten(), theirs.nonce, &nonce);
        let terms = (peer, self.addresses);
        let answer = child::answer(terms, request, self.private, Some(before), keys, ctx.rng);
        let (answer, terms) = answer.map_err(|(kind, why)| {
            ctx.refused(Some(peer.name.clone()), why);
            refuse(kind)
        })?;
        let payloads = renewal(answer, &nonce, public.filter(|_| terms.exchanged));
        Ok((payloads, terms, theirs.lower_nonce(&nonce)))
    }

    /// The peer answered our request. `Err` ends the IKE SA.
    pub(super) fn conclude_rekey_child(
        &mut self,
        rekey: ChildRekey,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> Result<(), DownReason> {
        // What another SA has replaced meanwhile is not sent on again.
        if self.is_leaving() {
            return Ok(());
        }
        if let Some(error) = first_error(response) {
            return self.note_refused_child(&rekey, error, response, core, ctx);
        }
        let broken = DownReason::NotOffered("a child where one was asked for");
        let (Some(peer), Some(theirs)) = (core.peer(ctx.config), Renewal::read(response)) else {
            return Err(broken);
        };
        let exchanged = rekey.key.zip(theirs.key);
        let exchanged = exchanged.and_then(|(ours, theirs)| ours.agree(theirs));
        let keys = self.keys.child(exchanged, &rekey.nonce, theirs.nonce);
        let addresses = self.addresses;
        let terms = rekey.offer.settle(peer, addresses, response, keys)?;
        let lower = theirs.lower_nonce(&rekey.nonce);
        match rekey.rival {
            Some(rival) if lower < rival.lower_nonce => {
                self.ask(Task::DeleteChild(None, rekey.offer.spi), core, ctx);
            }
            rival => {
                if let Some(rival) = rival {
                    let timers = &ctx.config.timers;
                    self.children.replace(rival.id, false, timers, ctx.now);
                }
                self.succeed(rekey.old, terms, true, core, ctx);
            }
        }
        Ok(())
    }

    /// "When A receives this error, it already knows there was simultaneous rekeying, so it can
    /// ignore the error message" (section 2.8.1).
    fn note_refused_child(
        &mut self,
        rekey: &ChildRekey,
        error: NotifyType,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> Result<(), DownReason> {
        if rekey.rival.is_some() || !self.children.is_current(rekey.old) {
            return Ok(());
        }
        let peer = core.peer(ctx.config);
        let ours = peer.map_or_else(Vec::new, groups_of);
        let wanted = wanted_group(response).filter(|group| ours.contains(group));
        match (error, wanted) {
            (NotifyType::CHILD_SA_NOT_FOUND, _) => return Err(DownReason::ChildDeleted),
            (NotifyType::INVALID_KE_PAYLOAD, Some(group)) if !rekey.corrected => {
                self.ask_for_child(rekey.old, Some(group), true, core, ctx);
                return Ok(());
            }
            (NotifyType::TEMPORARY_FAILURE, _) => self.note_busy(core, ctx),
            _ => ctx.refused(Some(core.name()), Refusal::RekeyRefused(error)),
        }
        if let Some(Life::Current(age)) = self.children.get_mut(rekey.old).map(|c| &mut c.life) {
            age.try_again(&ctx.config.timers, ctx.rng, ctx.now);
        }
        Ok(())
    }

    /// A successor is agreed. `ours`: because we asked for it.
    fn succeed(
        &mut self,
        old: ChildSaId,
        terms: Terms,
        ours: bool,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> ChildSaId {
        let id = ctx.child_id();
        let lifetime = lifetimes(core, ctx.config).child;
        let age = Age::begin(lifetime, ctx.config, ctx.rng, ctx.now);
        self.children
            .replace(old, ours, &ctx.config.timers, ctx.now);
        self.children.add(id, &terms, age);
        let new = Box::new(named(id, terms, ours, core));
        ctx.event(Event::ChildRekeyed { old, new });
        id
    }

    fn running_rekey_of(&mut self, id: ChildSaId) -> Option<&mut ChildRekey> {
        self.queue.running_mut().find_map(|task| match task {
            Task::RekeyChild(rekey) if rekey.old == id => Some(&mut **rekey),
            _ => None,
        })
    }
}

/// A child with the names that we give it.
pub(super) fn named(
    id: ChildSaId,
    terms: Terms,
    initiator: bool,
    core: &Core,
) -> ChildSa<crypto::Secret> {
    ChildSa {
        id,
        ike: core.id,
        peer: core.name(),
        path: core.proved,
        local: terms.local,
        remote: terms.remote,
        inbound: terms.inbound,
        outbound: terms.outbound,
        agreement: terms.agreement,
        initiator,
    }
}
