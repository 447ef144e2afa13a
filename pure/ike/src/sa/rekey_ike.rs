//! Rekeys of the IKE SA (RFC 7296 sections 1.3.2 and 2.18).
//!
//! The successor has new SPIs, keys and message IDs and inherits everything else: our id of the SA,
//! the child SAs, the grants and the queued tasks. A rekey is therefore invisible to callers. The
//! remains of the old SA get another id, and only serve to end it: the end that requested the
//! successor deletes the old SA, and the other end answers late messages.
//!
//! Both ends may rekey at once. Each then has two successors. It compares their nonces once it has
//! all four and keeps one, and the end that requested the other deletes that (section 2.8.2). Until
//! then nothing is handed over, and the peer retransmits its messages on its own successor.
//! Follow-up key exchanges ([`successor`](super::successor)) take place only for the successor that
//! is kept; the other is dropped unfinished. An end that has begun with them refuses a late
//! request.

use super::children::{Age, lifetimes};
use super::cloning::Purpose;
use super::closing::{Closing, Retired};
use super::established::Established;
use super::successor::Successor;
use super::task::Task;
use super::{Arrived, Core, Sa, State, Turn};
use crate::allowed_suites::{AllowedIkeSuites, group_id, group_named, groups_of};
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::exchange::create_child::{Nonce, Offered, Renewal, wanted_group};
use crate::exchange::{first_error, notify};
use crate::extension::clone;
use crate::extension::followup::Series;
use crate::keys::ProvedKeys;
use crate::peer_table::PeerTable;
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
    /// True if the group has been corrected once.
    pub(super) corrected: bool,
    /// Path of the clone, if the request is for one.
    pub(super) to: Option<Path>,
}

impl Established {
    /// Requests a successor, unless that is in progress.
    pub(crate) fn rekey_ike(&mut self, turn: &mut Turn<'_, '_>) {
        self.age.renew_at = None;
        if self.is_leaving() || self.queue.tasks().any(Task::renews_ike) {
            return;
        }
        let Some(peer) = turn.core.peer(turn.ctx.config) else {
            return;
        };
        if let Some(group) = groups_of(peer).first() {
            self.request_successor(*group, false, None, turn);
        }
    }

    /// Requests a successor in a group, or a clone if `to` is given.
    pub(super) fn request_successor(
        &mut self,
        group: GroupId,
        corrected: bool,
        to: Option<Path>,
        turn: &mut Turn<'_, '_>,
    ) {
        let key = Offered::new(group, turn.ctx.rng);
        let (Some(key), Some(peer)) = (key, turn.core.peer(turn.ctx.config)) else {
            return;
        };
        let (spi, nonce): (_, Nonce) = (turn.ctx.ike_spi(), turn.ctx.rng.array());
        let mut payloads: Vec<_> = to.map(|_| clone::payload()).into_iter().collect();
        payloads.extend([
            Payload::SecurityAssociation(offer_successor(&AllowedIkeSuites::of(peer), spi)),
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
        self.ask(Task::RekeyIke(Box::new(rekey)), turn);
    }

    /// Returns true if our request for a successor is unanswered.
    pub(super) fn awaits_successor(&self) -> bool {
        let successor = |task: &Task| matches!(task, Task::RekeyIke(rekey) if rekey.to.is_none());
        self.queue.runs(successor)
    }

    /// Returns true if an exchange for a successor that we requested is outstanding.
    pub(super) fn is_rekeying_ike(&self) -> bool {
        self.queue.runs(Task::renews_ike)
    }

    /// Answers a request for a successor.
    pub(super) fn answer_rekey_ike(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        // "If a peer receives a request to rekey the IKE SA, and it is currently creating,
        // rekeying, or closing a Child SA of that IKE SA, it SHOULD reply with TEMPORARY_FAILURE"
        // (section 2.25.1). The same applies to any other outstanding request of ours, and to
        // earlier requests of the peer that have not arrived yet: they would be lost.
        let ours = self.awaits_successor();
        let contested = ours && self.promised.is_some();
        let busy = !ours && (!turn.core.requests.is_idle() || self.is_making_child());
        let late = !turn.core.responses.is_in_order(request.header.message_id);
        if contested || busy || late {
            let answer = vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
            self.respond(answer, arrived, turn);
            return State::Established(self);
        }
        let (successor, answer) = match self.agree_on_successor(request, None, turn) {
            Ok(agreed) => agreed,
            Err(refusal) => return self.answer_renewal(vec![refusal], arrived, turn),
        };
        self.respond(answer, arrived, turn);
        self.promise(successor, turn)
    }

    /// Returns the successor and the payloads of the answer, or a refusal. `purpose` is set for a
    /// clone.
    pub(super) fn agree_on_successor(
        &self,
        request: &Message,
        purpose: Option<Purpose>,
        turn: &mut Turn<'_, '_>,
    ) -> Result<(Successor, Vec<Payload>), Payload> {
        let refuse = |kind| notify(kind, Vec::new());
        let syntax = || refuse(NotifyType::INVALID_SYNTAX);
        let peer = turn.core.peer(turn.ctx.config).ok_or_else(syntax)?;
        let theirs = Renewal::read(request).ok_or_else(syntax)?;
        let public = theirs.key.ok_or_else(syntax)?;
        let spi = turn.ctx.ike_spi();
        // The group of the public value is preferred, if allowed: another one would cost a round
        // trip.
        let menu = AllowedIkeSuites::of(peer);
        let same = group_named(public.group).filter(|group| menu.groups.contains(group));
        let same = same.map(|group| AllowedIkeSuites {
            groups: vec![group],
            ..menu.clone()
        });
        let mut menus = same.iter().chain([&menu]);
        let choice = menus.find_map(|menu| choose_successor(theirs.proposals, menu, spi));
        let Some((choice, peer_spi)) = choice else {
            let why = Refusal::no_ike_proposal(AllowedIkeSuites::of(peer));
            turn.ctx.refused(Some(peer.name.clone()), why);
            return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
        };
        let group = group_id(choice.group);
        if public.group != group {
            let wanted = group.0.to_be_bytes().to_vec();
            return Err(notify(NotifyType::INVALID_KE_PAYLOAD, wanted));
        }
        let nonce: Nonce = turn.ctx.rng.array();
        let Some((ours, (_, shared))) = Offered::answer(public, turn.ctx.rng) else {
            turn.ctx
                .refused(Some(peer.name.clone()), Refusal::KeyExchange);
            return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
        };
        let mut answer = vec![
            Payload::SecurityAssociation(vec![choice.answer]),
            Payload::Nonce(nonce.to_vec()),
            ours,
        ];
        let successor = Successor {
            suite: choice.suite,
            purpose,
            ours: false,
            spi_i: peer_spi,
            spi_r: spi,
            nonce_i: theirs.nonce.to_vec(),
            nonce_r: nonce.to_vec(),
            shared,
            series: Series::new(choice.kems),
            until: turn.ctx.now + turn.ctx.config.timers.follow_up,
        };
        answer.extend(successor.link());
        Ok((successor, answer))
    }

    /// Evaluates the peer's answer.
    pub(super) fn conclude_rekey_ike(
        mut self: Box<Self>,
        rekey: IkeRekey,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        if let Some(to) = rekey.to {
            return self.conclude_clone(rekey, to, response, turn);
        }
        let promised = self
            .promised
            .take_if(|successor| successor.purpose.is_none());
        match (first_error(response), promised) {
            (Some(_), Some(theirs)) => self.promise(*theirs, turn),
            (Some(error), None) => {
                self.note_refused_successor(error, rekey.corrected, response, turn);
                self.send_next(turn);
                State::Established(self)
            }
            (None, theirs) => match conclude_successor(rekey, response, turn) {
                None => self.close(DownReason::NotOffered("successor of the IKE SA"), turn),
                Some(ours) => {
                    let theirs = theirs.map(|successor| *successor);
                    self.decide(ours, theirs, response, turn)
                }
            },
        }
    }

    fn note_refused_successor(
        &mut self,
        error: NotifyType,
        corrected: bool,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) {
        let ours = turn
            .core
            .peer(turn.ctx.config)
            .map_or_else(Vec::new, groups_of);
        let wanted = wanted_group(response).filter(|group| ours.contains(group));
        match (error, wanted) {
            (NotifyType::INVALID_KE_PAYLOAD, Some(group)) if !corrected => {
                self.request_successor(group, true, None, turn);
            }
            _ => self.put_off_successor(error, turn),
        }
    }

    /// Decides which successor stays, as all nonces are known.
    fn decide(
        mut self: Box<Self>,
        ours: Successor,
        theirs: Option<Successor>,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        match theirs {
            Some(theirs) if ours.lower_nonce() < theirs.lower_nonce() => {
                if ours.is_complete() {
                    let mut lost = ours.core(turn);
                    let keys = ours.keys(&self.keys);
                    let state = Closing::replaced(keys, &mut turn.of(&mut lost));
                    turn.ctx.out.successors.push(Sa { core: lost, state });
                }
                // In case the peer does not continue its own.
                self.age
                    .try_again(&turn.ctx.config.timers, turn.ctx.rng, turn.ctx.now);
                self.promise(theirs, turn)
            }
            theirs => {
                if let Some(theirs) = theirs.filter(Successor::is_complete) {
                    // The peer deletes the successor that it requested in vain.
                    let lost = theirs.core(turn);
                    let state = Retired::begin(theirs.keys(&self.keys), turn.ctx);
                    turn.ctx.out.successors.push(Sa { core: lost, state });
                }
                match ours.is_complete() {
                    true => self.take_over(ours, turn),
                    false => self.follow_up(ours, response, turn),
                }
            }
        }
    }

    /// Lets our successor replace this SA, and deletes the remains.
    pub(super) fn take_over(
        self: Box<Self>,
        successor: Successor,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let old = self.hand_over(successor, turn);
        Closing::replaced(old, turn)
    }

    /// Lets the peer's successor replace this SA. The peer deletes the remains.
    pub(super) fn retire(self: Box<Self>, successor: Successor, turn: &mut Turn<'_, '_>) -> State {
        turn.core.requests.abandon();
        let old = self.hand_over(successor, turn);
        Retired::begin(old, turn.ctx)
    }

    /// Handles the peer's Delete of this SA while our request is outstanding: the peer's own
    /// successor, if it requested one, replaces the SA. "Forget about its own rekeying request"
    /// (section 2.25.2). Returns `self` if there is no such successor.
    pub(super) fn inherit(mut self: Box<Self>, turn: &mut Turn<'_, '_>) -> Result<(), Box<Self>> {
        match self.promised.take_if(|successor| successor.is_complete()) {
            None => Err(self),
            Some(successor) => {
                turn.core.requests.abandon();
                self.hand_over(*successor, turn);
                Ok(())
            }
        }
    }

    /// Turns this SA into its successor, and returns the old keys.
    fn hand_over(mut self: Box<Self>, successor: Successor, turn: &mut Turn<'_, '_>) -> ProvedKeys {
        let mut next = successor.core(turn);
        // The successor keeps the id. The remains of the old SA get the new one.
        std::mem::swap(&mut next.id, &mut turn.core.id);
        let keys = successor.keys(&self.keys);
        let old = std::mem::replace(&mut self.keys, keys);
        self.repeat_move();
        self.repeat_question(turn);
        self.promised = None;
        self.openings.clear();
        self.offered.clear();
        self.queue
            .reset(|task| task.renews_ike() || matches!(task, Task::Window(_)));
        let lifetime = lifetimes(turn.core, turn.ctx.config).ike;
        self.age = Age::begin(lifetime, turn.ctx.config, turn.ctx.rng, turn.ctx.now);
        let (sa, peer) = (next.id, next.name());
        turn.ctx.event(Event::IkeRekeyed { sa, peer });
        self.tell_window(&mut next, turn.ctx.config);
        self.send_next(&mut turn.of(&mut next));
        let state = State::Established(self);
        turn.ctx.out.successors.push(Sa { core: next, state });
        old
    }

    /// Announces our window to the peer: "When rekeying an IKE SA, the new IKE SA starts with
    /// window size 1 until it is explicitly increased by sending a new SET_WINDOW_SIZE
    /// notification" (section 2.3).
    pub(super) fn tell_window(&mut self, next: &mut Core, config: &PeerTable) {
        let window = next.own_window(config);
        if window > 1 {
            next.responses.widen(window);
            self.queue.push_first(Task::Window(window));
        }
    }
}

/// Returns the successor that the peer agreed to, or `None` if its answer does not fit our offer.
pub(super) fn conclude_successor(
    rekey: IkeRekey,
    response: &Message,
    turn: &Turn<'_, '_>,
) -> Option<Successor> {
    let peer = turn.core.peer(turn.ctx.config)?;
    let theirs = Renewal::read(response)?;
    let (choice, peer_spi) = check_successor(theirs.proposals, &AllowedIkeSuites::of(peer))?;
    let (group, shared) = rekey.key.agree(theirs.key?)?;
    if group != group_id(choice.group) || theirs.nonce == rekey.nonce {
        return None;
    }
    Some(Successor {
        suite: choice.suite,
        purpose: rekey.to.map(Purpose::HandOver),
        ours: true,
        spi_i: rekey.spi,
        spi_r: peer_spi,
        nonce_i: rekey.nonce.to_vec(),
        nonce_r: theirs.nonce.to_vec(),
        shared,
        series: Series::new(choice.kems),
        until: turn.ctx.now,
    })
}
