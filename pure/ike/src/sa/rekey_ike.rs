//! New keys for the IKE SA itself (RFC 7296 sections 1.3.2 and 2.18).
//!
//! The successor has SPIs, keys and message IDs of its own and takes over everything else: our name
//! of the SA, the children, the grants, the tasks that wait. So nobody outside notices. What is left
//! of the old one gets another name, and only serves to end it: who asked for the successor deletes
//! it, the other end answers what comes late.
//!
//! Additional key exchanges do not take place again (RFC 9370 section 2.2.4 would have them in
//! IKE_FOLLOWUP_KE). Those of the first IKE SA are in SK_d, and so in the keys of every successor and
//! child: who breaks the group has none of them. A peer that insists on one more is refused.
//!
//! Both ends may ask at once. Each then has two successors, compares their nonces when it has seen
//! all four, keeps one, and who asked for the other deletes that (section 2.8.2). Until then
//! nothing is handed over, and the peer's messages on its own successor are simply repeated by it.

use super::children::{Age, lifetimes};
use super::closing::{Closing, Retired};
use super::established::Established;
use super::task::Task;
use super::{Arrived, Context, Core, Sa, State};
use crate::event::{DownReason, Event, Refusal};
use crate::exchange::create_child::{Nonce, Offered, Renewal, wanted_group};
use crate::exchange::{first_error, notify};
use crate::extension::fragment::Inbox;
use crate::extension::intermediate::Said;
use crate::keys::{Inputs, ProvedKeys};
use crate::menu::{IkeMenu, group_id, group_named, groups_of};
use crate::proposal::{check_successor, choose_successor, offer_successor};
use crate::window::{Requests, Responses};
use wire::ike::{GroupId, Message, NotifyType, Payload};

/// Our request for a successor.
pub(crate) struct IkeRekey {
    spi: u64,
    nonce: Nonce,
    key: Offered,
    pub(super) payloads: Vec<Payload>,
    /// The successor that the peer asked for meanwhile.
    rival: Option<Rival>,
    /// The group was already corrected once.
    corrected: bool,
}

struct Rival {
    heir: Heir,
    lower_nonce: Vec<u8>,
}

/// A successor that has not taken over yet.
struct Heir {
    keys: ProvedKeys,
    spi_i: u64,
    spi_r: u64,
    /// Whether we asked for it: then we are its original initiator.
    ours: bool,
}

impl Established {
    /// Asks for a successor, unless that is being done.
    pub(crate) fn rekey_ike(&mut self, core: &mut Core, ctx: &mut Context<'_>) {
        self.age.renew_at = None;
        if self.tasks().any(|task| matches!(task, Task::RekeyIke(_))) {
            return;
        }
        let Some(peer) = core.peer(ctx.config) else {
            return;
        };
        if let Some(group) = groups_of(peer).first() {
            self.ask_for_heir(*group, false, core, ctx);
        }
    }

    fn ask_for_heir(
        &mut self,
        group: GroupId,
        corrected: bool,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let key = Offered::new(group, ctx.rng);
        let (Some(key), Some(peer)) = (key, core.peer(ctx.config)) else {
            return;
        };
        let (spi, nonce): (_, Nonce) = (ctx.ike_spi(), ctx.rng.array());
        let payloads = vec![
            Payload::SecurityAssociation(offer_successor(&IkeMenu::of_successor(peer), spi)),
            Payload::Nonce(nonce.to_vec()),
            key.payload(),
        ];
        let rekey = IkeRekey {
            spi,
            nonce,
            key,
            payloads,
            rival: None,
            corrected,
        };
        self.ask(Task::RekeyIke(Box::new(rekey)), core, ctx);
    }

    /// Whether a successor is agreed upon just now.
    pub(super) fn is_rekeying_ike(&self) -> bool {
        matches!(self.running, Some(Task::RekeyIke(_)))
    }

    /// Answers a peer that wants a successor.
    pub(super) fn answer_rekey_ike(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        // "If a peer receives a request to rekey the IKE SA, and it is currently creating,
        // rekeying, or closing a Child SA of that IKE SA, it SHOULD reply with TEMPORARY_FAILURE"
        // (section 2.25.1). The same for whatever else we wait for: it would be lost.
        let ours = self.is_rekeying_ike();
        let contested = self
            .running_rekey()
            .is_some_and(|rekey| rekey.rival.is_some());
        if contested || (!ours && !core.requests.is_idle()) {
            let answer = vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
            self.respond(answer, arrived, core, ctx);
            return State::Established(self);
        }
        let (heir, answer, lower_nonce) = match self.agree_on_heir(request, core, ctx) {
            Ok(agreed) => agreed,
            Err(refusal) => {
                self.respond(vec![refusal], arrived, core, ctx);
                return State::Established(self);
            }
        };
        self.respond(answer, arrived, core, ctx);
        match self.running_rekey() {
            Some(rekey) => {
                rekey.rival = Some(Rival { heir, lower_nonce });
                State::Established(self)
            }
            None => self.retire(heir, core, ctx),
        }
    }

    /// The successor, the payloads of the answer, and the lower nonce; or a refusal.
    fn agree_on_heir(
        &self,
        request: &Message,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> Result<(Heir, Vec<Payload>, Vec<u8>), Payload> {
        let refuse = |kind| notify(kind, Vec::new());
        let syntax = || refuse(NotifyType::INVALID_SYNTAX);
        let peer = core.peer(ctx.config).ok_or_else(syntax)?;
        let theirs = Renewal::read(request).ok_or_else(syntax)?;
        let public = theirs.key.ok_or_else(syntax)?;
        let spi = ctx.ike_spi();
        // The group that its public value is of, if it is one of ours: another would cost a round.
        let mut menu = IkeMenu::of_successor(peer);
        if let Some(group) = group_named(public.group).filter(|group| menu.groups.contains(group)) {
            menu.groups = vec![group];
        }
        let Some((choice, peer_spi)) = choose_successor(theirs.proposals, &menu, spi) else {
            let why = Refusal::no_ike_proposal(IkeMenu::of_successor(peer));
            ctx.refused(Some(peer.name.clone()), why);
            return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
        };
        let group = group_id(choice.group);
        if public.group != group {
            let wanted = group.0.to_be_bytes().to_vec();
            return Err(notify(NotifyType::INVALID_KE_PAYLOAD, wanted));
        }
        let nonce: Nonce = ctx.rng.array();
        let key = Offered::new(group, ctx.rng).ok_or_else(syntax)?;
        let answer = vec![
            Payload::SecurityAssociation(vec![choice.answer]),
            Payload::Nonce(nonce.to_vec()),
            key.payload(),
        ];
        let Some((_, shared)) = key.agree(public) else {
            ctx.refused(Some(peer.name.clone()), Refusal::KeyExchange);
            return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
        };
        let keys = self.keys.successor(&Inputs {
            suite: choice.suite,
            shared,
            nonce_i: theirs.nonce,
            nonce_r: &nonce,
            spi_i: peer_spi,
            spi_r: spi,
            initiator: false,
        });
        let heir = Heir {
            keys,
            spi_i: peer_spi,
            spi_r: spi,
            ours: false,
        };
        Ok((heir, answer, theirs.lower_nonce(&nonce)))
    }

    /// The peer answered our request.
    pub(super) fn conclude_rekey_ike(
        mut self: Box<Self>,
        rekey: IkeRekey,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let IkeRekey {
            spi,
            nonce,
            key,
            rival,
            corrected,
            ..
        } = rekey;
        match (first_error(response), rival) {
            (Some(_), Some(rival)) => self.retire(rival.heir, core, ctx),
            (Some(error), None) => {
                self.note_refused_heir(error, corrected, response, core, ctx);
                self.send_next(core, ctx);
                State::Established(self)
            }
            (None, rival) => match self.settle_heir(spi, &nonce, key, response, core, ctx) {
                None => self.close(DownReason::NotOffered("a successor"), core, ctx),
                Some((ours, lower)) => self.decide(ours, &lower, rival, core, ctx),
            },
        }
    }

    fn note_refused_heir(
        &mut self,
        error: NotifyType,
        corrected: bool,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let ours = core.peer(ctx.config).map_or_else(Vec::new, groups_of);
        let wanted = wanted_group(response).filter(|group| ours.contains(group));
        match (error, wanted) {
            (NotifyType::INVALID_KE_PAYLOAD, Some(group)) if !corrected => {
                return self.ask_for_heir(group, true, core, ctx);
            }
            (NotifyType::TEMPORARY_FAILURE, _) => {}
            _ => ctx.refused(Some(core.name()), Refusal::RekeyRefused(error)),
        }
        self.age.try_again(&ctx.config.timers, ctx.rng, ctx.now);
    }

    fn settle_heir(
        &self,
        spi: u64,
        nonce: &Nonce,
        key: Offered,
        response: &Message,
        core: &Core,
        ctx: &Context<'_>,
    ) -> Option<(Heir, Vec<u8>)> {
        let peer = core.peer(ctx.config)?;
        let theirs = Renewal::read(response)?;
        let (choice, peer_spi) = check_successor(theirs.proposals, &IkeMenu::of_successor(peer))?;
        let (group, shared) = key.agree(theirs.key?)?;
        if group != group_id(choice.group) || theirs.nonce == nonce {
            return None;
        }
        let keys = self.keys.successor(&Inputs {
            suite: choice.suite,
            shared,
            nonce_i: nonce,
            nonce_r: theirs.nonce,
            spi_i: spi,
            spi_r: peer_spi,
            initiator: true,
        });
        let heir = Heir {
            keys,
            spi_i: spi,
            spi_r: peer_spi,
            ours: true,
        };
        Some((heir, theirs.lower_nonce(nonce)))
    }

    /// All nonces are known: which successor stays?
    fn decide(
        self: Box<Self>,
        ours: Heir,
        lower: &[u8],
        rival: Option<Rival>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        match rival {
            Some(rival) if lower < rival.lower_nonce.as_slice() => {
                let mut lost = ours.core(core, ctx);
                let state = Closing::quietly(ours.keys, &mut lost, ctx);
                ctx.out.heirs.push(Sa { core: lost, state });
                self.retire(rival.heir, core, ctx)
            }
            rival => {
                if let Some(Rival { heir, .. }) = rival {
                    // The peer deletes what it asked for in vain.
                    let lost = heir.core(core, ctx);
                    let state = Retired::begin(heir.keys, ctx);
                    ctx.out.heirs.push(Sa { core: lost, state });
                }
                let old = self.hand_over(ours, core, ctx);
                Closing::quietly(old, core, ctx)
            }
        }
    }

    /// The peer's successor takes over, and the peer will delete what is left.
    fn retire(self: Box<Self>, heir: Heir, core: &mut Core, ctx: &mut Context<'_>) -> State {
        core.requests.abandon();
        let old = self.hand_over(heir, core, ctx);
        Retired::begin(old, ctx)
    }

    /// The peer deletes this SA while we wait for the answer to our request: then its own
    /// successor has taken over, if it asked for one. "Forget about its own rekeying request"
    /// (section 2.25.2). Gives itself back if there is none.
    pub(super) fn inherit(
        mut self: Box<Self>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> Result<(), Box<Self>> {
        match self.running_rekey().and_then(|rekey| rekey.rival.take()) {
            None => Err(self),
            Some(rival) => {
                core.requests.abandon();
                self.hand_over(rival.heir, core, ctx);
                Ok(())
            }
        }
    }

    /// Makes the successor what this SA was, and gives the old keys.
    fn hand_over(
        mut self: Box<Self>,
        heir: Heir,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> ProvedKeys {
        let mut next = heir.core(core, ctx);
        // The successor has the name; what is left of the old SA has the new one.
        std::mem::swap(&mut next.id, &mut core.id);
        let old = std::mem::replace(&mut self.keys, heir.keys);
        self.repeat_move();
        self.running = None;
        self.waiting
            .retain(|task| !matches!(task, Task::RekeyIke(_)));
        let lifetime = lifetimes(core, ctx.config).ike;
        self.age = Age::begin(lifetime, ctx.config, ctx.rng, ctx.now);
        let (sa, peer) = (next.id, next.name());
        ctx.event(Event::IkeRekeyed { sa, peer });
        self.send_next(&mut next, ctx);
        let state = State::Established(self);
        ctx.out.heirs.push(Sa { core: next, state });
        old
    }

    fn running_rekey(&mut self) -> Option<&mut IkeRekey> {
        match &mut self.running {
            Some(Task::RekeyIke(rekey)) => Some(rekey),
            _ => None,
        }
    }
}

impl Heir {
    /// "The first message ... will have Message ID 0" (section 2.18): windows are new as well.
    fn core(&self, old: &Core, ctx: &mut Context<'_>) -> Core {
        Core {
            id: ctx.sa_id(),
            peer: old.peer.clone(),
            initiator: self.ours,
            began: old.began,
            spi_i: self.spi_i,
            spi_r: self.spi_r,
            path: old.path,
            proved: old.proved,
            limit: old.limit,
            requests: Requests::new(),
            responses: Responses::new(),
            inbox: Inbox::default(),
            said: Said::default(),
        }
    }
}
