//! New keys for the IKE SA itself (RFC 7296 sections 1.3.2 and 2.18).
//!
//! The successor has SPIs, keys and message IDs of its own and takes over everything else: our name
//! of the SA, the children, the grants, the tasks that wait. So nobody outside notices. What is left
//! of the old one gets another name, and only serves to end it: who asked for the successor deletes
//! it, the other end answers what comes late.
//!
//! Both ends may ask at once. Each then has two successors, compares their nonces when it has seen
//! all four, keeps one, and who asked for the other deletes that (section 2.8.2). Until then
//! nothing is handed over, and the peer's messages on its own successor are simply repeated by it.
//! Where further key exchanges follow ([`heir`](super::heir)), they do so for the one that is kept; the
//! other is then dropped unfinished. Who has begun with them refuses a request that comes late.

use super::children::{Age, lifetimes};
use super::cloning::Purpose;
use super::closing::{Closing, Retired};
use super::established::Established;
use super::heir::Heir;
use super::task::Task;
use super::{Arrived, Context, Core, Sa, State};
use crate::directory::Directory;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::exchange::create_child::{Nonce, Offered, Renewal, wanted_group};
use crate::exchange::{first_error, notify};
use crate::extension::clone;
use crate::extension::followup::Series;
use crate::keys::ProvedKeys;
use crate::menu::{IkeMenu, group_id, group_named, groups_of};
use crate::proposal::{check_successor, choose_successor, offer_successor};
use crate::refusal::Refusal;
use model::Path;
use wire::ike::{GroupId, Message, NotifyType, Payload};

/// Our request for a successor.
pub(crate) struct IkeRekey {
    spi: u64,
    nonce: Nonce,
    key: Offered,
    pub(super) payloads: Vec<Payload>,
    /// The group was already corrected once.
    pub(super) corrected: bool,
    /// If it is to be a clone: where that is to go.
    pub(super) to: Option<Path>,
}

impl Established {
    /// Asks for a successor, unless that is being done.
    pub(crate) fn rekey_ike(&mut self, core: &mut Core, ctx: &mut Context<'_>) {
        self.age.renew_at = None;
        if self.is_leaving() || self.queue.tasks().any(Task::renews_ike) {
            return;
        }
        let Some(peer) = core.peer(ctx.config) else {
            return;
        };
        if let Some(group) = groups_of(peer).first() {
            self.ask_for_heir(*group, (false, None), core, ctx);
        }
    }

    /// Asks for one in a group; it is a clone if it is `to` go somewhere.
    pub(super) fn ask_for_heir(
        &mut self,
        group: GroupId,
        (corrected, to): (bool, Option<Path>),
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) {
        let key = Offered::new(group, ctx.rng);
        let (Some(key), Some(peer)) = (key, core.peer(ctx.config)) else {
            return;
        };
        let (spi, nonce): (_, Nonce) = (ctx.ike_spi(), ctx.rng.array());
        let mut payloads: Vec<_> = to.map(|_| clone::payload()).into_iter().collect();
        payloads.extend([
            Payload::SecurityAssociation(offer_successor(&IkeMenu::of(peer), spi)),
            Payload::Nonce(nonce.to_vec()),
            key.payload(),
        ]);
        let rekey = IkeRekey {
            spi,
            nonce,
            key,
            payloads,
            corrected,
            to,
        };
        self.ask(Task::RekeyIke(Box::new(rekey)), core, ctx);
    }

    /// Whether we asked for a successor and have not heard yet.
    pub(super) fn awaits_heir(&self) -> bool {
        let heir = |task: &Task| matches!(task, Task::RekeyIke(rekey) if rekey.to.is_none());
        self.queue.runs(heir)
    }

    /// Whether a successor that we asked for is agreed upon just now.
    pub(super) fn is_rekeying_ike(&self) -> bool {
        self.queue.runs(Task::renews_ike)
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
        // (section 2.25.1). The same for whatever else we wait for, and for what the peer has asked
        // before and has not come yet: it would be lost.
        let ours = self.awaits_heir();
        let contested = ours && self.promised.is_some();
        let busy = !ours && (!core.requests.is_idle() || self.is_making_child());
        let late = !core.responses.is_in_order(request.header.message_id);
        if contested || busy || late {
            let answer = vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
            self.respond(answer, arrived, core, ctx);
            return State::Established(self);
        }
        let (heir, answer) = match self.agree_on_heir(request, None, core, ctx) {
            Ok(agreed) => agreed,
            Err(refusal) => return self.answer_renewal(vec![refusal], arrived, core, ctx),
        };
        self.respond(answer, arrived, core, ctx);
        self.promise(heir, core, ctx)
    }

    /// The successor, and the payloads of the answer; or a refusal. `purpose` if it is a clone.
    pub(super) fn agree_on_heir(
        &self,
        request: &Message,
        purpose: Option<Purpose>,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> Result<(Heir, Vec<Payload>), Payload> {
        let refuse = |kind| notify(kind, Vec::new());
        let syntax = || refuse(NotifyType::INVALID_SYNTAX);
        let peer = core.peer(ctx.config).ok_or_else(syntax)?;
        let theirs = Renewal::read(request).ok_or_else(syntax)?;
        let public = theirs.key.ok_or_else(syntax)?;
        let spi = ctx.ike_spi();
        // The group that its public value is of, if that will do: another would cost a round.
        let menu = IkeMenu::of(peer);
        let same = group_named(public.group).filter(|group| menu.groups.contains(group));
        let same = same.map(|group| IkeMenu {
            groups: vec![group],
            ..menu.clone()
        });
        let mut menus = same.iter().chain([&menu]);
        let choice = menus.find_map(|menu| choose_successor(theirs.proposals, menu, spi));
        let Some((choice, peer_spi)) = choice else {
            let why = Refusal::no_ike_proposal(IkeMenu::of(peer));
            ctx.refused(Some(peer.name.clone()), why);
            return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
        };
        let group = group_id(choice.group);
        if public.group != group {
            let wanted = group.0.to_be_bytes().to_vec();
            return Err(notify(NotifyType::INVALID_KE_PAYLOAD, wanted));
        }
        let nonce: Nonce = ctx.rng.array();
        let Some((ours, (_, shared))) = Offered::answer(public, ctx.rng) else {
            ctx.refused(Some(peer.name.clone()), Refusal::KeyExchange);
            return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
        };
        let mut answer = vec![
            Payload::SecurityAssociation(vec![choice.answer]),
            Payload::Nonce(nonce.to_vec()),
            ours,
        ];
        let heir = Heir {
            suite: choice.suite,
            purpose,
            ours: false,
            spi_i: peer_spi,
            spi_r: spi,
            nonce_i: theirs.nonce.to_vec(),
            nonce_r: nonce.to_vec(),
            shared,
            series: Series::new(choice.kems),
            until: ctx.now + ctx.config.timers.follow_up,
        };
        answer.extend(heir.link());
        Ok((heir, answer))
    }

    /// The peer answered our request.
    pub(super) fn conclude_rekey_ike(
        mut self: Box<Self>,
        rekey: IkeRekey,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        if let Some(to) = rekey.to {
            return self.conclude_clone((rekey, to), response, core, ctx);
        }
        let promised = self.promised.take_if(|heir| heir.purpose.is_none());
        match (first_error(response), promised) {
            (Some(_), Some(theirs)) => self.promise(*theirs, core, ctx),
            (Some(error), None) => {
                self.note_refused_heir(error, rekey.corrected, response, core, ctx);
                self.send_next(core, ctx);
                State::Established(self)
            }
            (None, theirs) => match settle_heir(rekey, response, core, ctx) {
                None => self.close(DownReason::NotOffered("a successor"), core, ctx),
                Some(ours) => {
                    let theirs = theirs.map(|heir| *heir);
                    self.decide((ours, response), theirs, core, ctx)
                }
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
                self.ask_for_heir(group, (true, None), core, ctx);
            }
            _ => self.put_off_heir(error, core, ctx),
        }
    }

    /// All nonces are known: which successor stays?
    fn decide(
        mut self: Box<Self>,
        (ours, response): (Heir, &Message),
        theirs: Option<Heir>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        match theirs {
            Some(theirs) if ours.lower_nonce() < theirs.lower_nonce() => {
                if ours.is_complete() {
                    let mut lost = ours.core(core, ctx);
                    let state = Closing::replaced(ours.keys(&self.keys), &mut lost, ctx);
                    ctx.out.heirs.push(Sa { core: lost, state });
                }
                // Should the peer not go on with its own.
                self.age.try_again(&ctx.config.timers, ctx.rng, ctx.now);
                self.promise(theirs, core, ctx)
            }
            theirs => {
                if let Some(theirs) = theirs.filter(Heir::is_complete) {
                    // The peer deletes what it asked for in vain.
                    let lost = theirs.core(core, ctx);
                    let state = Retired::begin(theirs.keys(&self.keys), ctx);
                    ctx.out.heirs.push(Sa { core: lost, state });
                }
                match ours.is_complete() {
                    true => self.take_over(ours, core, ctx),
                    false => self.follow_up(ours, response, core, ctx),
                }
            }
        }
    }

    /// Our successor takes over, and we delete what is left.
    pub(super) fn take_over(
        self: Box<Self>,
        heir: Heir,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let old = self.hand_over(heir, core, ctx);
        Closing::replaced(old, core, ctx)
    }

    /// The peer's successor takes over, and the peer will delete what is left.
    pub(super) fn retire(
        self: Box<Self>,
        heir: Heir,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
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
        match self.promised.take_if(|heir| heir.is_complete()) {
            None => Err(self),
            Some(heir) => {
                core.requests.abandon();
                self.hand_over(*heir, core, ctx);
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
        let keys = heir.keys(&self.keys);
        let old = std::mem::replace(&mut self.keys, keys);
        self.repeat_move();
        self.repeat_question(ctx);
        self.promised = None;
        self.openings.clear();
        self.offered.clear();
        self.queue
            .reset(|task| task.renews_ike() || matches!(task, Task::Window(_)));
        let lifetime = lifetimes(core, ctx.config).ike;
        self.age = Age::begin(lifetime, ctx.config, ctx.rng, ctx.now);
        let (sa, peer) = (next.id, next.name());
        ctx.event(Event::IkeRekeyed { sa, peer });
        self.tell_window(&mut next, ctx.config);
        self.send_next(&mut next, ctx);
        let state = State::Established(self);
        ctx.out.heirs.push(Sa { core: next, state });
        old
    }

    /// "When rekeying an IKE SA, the new IKE SA starts with window size 1 until it is explicitly
    /// increased by sending a new SET_WINDOW_SIZE notification" (section 2.3).
    pub(super) fn tell_window(&mut self, next: &mut Core, config: &Directory) {
        let window = next.own_window(config);
        if window > 1 {
            next.responses.widen(window);
            self.queue.push_first(Task::Window(window));
        }
    }
}

/// The successor that the peer agreed to. `None` if its answer is none to what we offered.
pub(super) fn settle_heir(
    rekey: IkeRekey,
    response: &Message,
    core: &Core,
    ctx: &Context<'_>,
) -> Option<Heir> {
    let peer = core.peer(ctx.config)?;
    let theirs = Renewal::read(response)?;
    let (choice, peer_spi) = check_successor(theirs.proposals, &IkeMenu::of(peer))?;
    let (group, shared) = rekey.key.agree(theirs.key?)?;
    if group != group_id(choice.group) || theirs.nonce == rekey.nonce {
        return None;
    }
    Some(Heir {
        suite: choice.suite,
        purpose: rekey.to.map(Purpose::HandOver),
        ours: true,
        spi_i: rekey.spi,
        spi_r: peer_spi,
        nonce_i: rekey.nonce.to_vec(),
        nonce_r: theirs.nonce.to_vec(),
        shared,
        series: Series::new(choice.kems),
        until: ctx.now,
    })
}
