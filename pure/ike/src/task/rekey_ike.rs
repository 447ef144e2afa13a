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
//! Follow-up key exchanges (`follow_up.rs`) take place only for the successor that is kept; the
//! other is dropped unfinished. An end that has begun with them refuses a late request.

use super::{clone, follow_up, liveness, opening};
use crate::allowed_suites::{AllowedIkeSuites, group_id, group_named, groups_of};
use crate::down_reason::DownReason;
use crate::exchange::create_child::{Nonce, Offered, Renewal, wanted_group};
use crate::exchange::{first_error, notify};
use crate::extension;
use crate::extension::followup::Series;
use crate::proposal::{check_successor, choose_successor, offer_successor};
use crate::refusal::Refusal;
use crate::sa::arrived::Arrived;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::successor::{Purpose, Successor};
use crate::session::task::{Answer, Makes, Subject, Succession, Task, Then};
use model::Path;
use wire::ike::{ExchangeType, GroupId, Message, NotifyType, Payload};

/// Our request for a successor.
pub(crate) struct IkeRekey {
    spi: u64,
    nonce: Nonce,
    key: Offered,
    payloads: Vec<Payload>,
    /// True if the group has been corrected once.
    pub(crate) corrected: bool,
    /// Path of the clone, if the request is for one.
    to: Option<Path>,
}

impl Task for IkeRekey {
    fn subject(&self) -> Subject {
        Subject::Whole
    }

    fn exchange(&self) -> ExchangeType {
        ExchangeType::CREATE_CHILD_SA
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        self.payloads.clone()
    }

    fn ends_with_keys(&self) -> bool {
        self.makes() == Some(Makes::Successor)
    }

    fn makes(&self) -> Option<Makes> {
        Some(match self.to {
            None => Makes::Successor,
            Some(_) => Makes::Clone,
        })
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        session: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        conclude(session, *self, answer.message, turn)
    }
}

/// Requests a successor, unless that is in progress.
pub(crate) fn request(session: &mut Session, turn: &mut Turn<'_, '_>) {
    session.lifetime.keys.renew_at = None;
    if session.is_leaving()
        || session
            .queue
            .tasks()
            .any(|task| task.makes() == Some(Makes::Successor))
    {
        return;
    }
    let Some(peer) = turn.core.peer(turn.ctx.config) else {
        return;
    };
    if let Some(group) = groups_of(peer).first() {
        ask(session, *group, false, None, turn);
    }
}

/// Requests a successor in a group, or a clone if `to` is given.
pub(crate) fn ask(
    session: &mut Session,
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
    let mut payloads: Vec<_> = to
        .map(|_| extension::clone::payload())
        .into_iter()
        .collect();
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
    session.ask(rekey, turn);
}

/// Returns true if our request for a successor is unanswered.
pub(crate) fn is_awaiting(session: &Session) -> bool {
    let mut rekeys = session.queue.running_of::<IkeRekey>();
    rekeys.any(|rekey| rekey.to.is_none())
}

/// Answers a request for a successor.
pub(crate) fn answer(
    session: &mut Session,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Then {
    // "If a peer receives a request to rekey the IKE SA, and it is currently creating,
    // rekeying, or closing a Child SA of that IKE SA, it SHOULD reply with TEMPORARY_FAILURE"
    // (section 2.25.1). The same applies to any other outstanding request of ours, and to
    // earlier requests of the peer that have not arrived yet: they would be lost.
    let ours = is_awaiting(session);
    let contested = ours && session.replacement.promised.is_some();
    let busy = !ours && (!turn.core.requests.is_idle() || opening::is_making_child(session));
    let late = !turn.core.responses.is_in_order(request.header.message_id);
    if contested || busy || late {
        let answer = vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
        session.respond(answer, arrived, turn);
        return Then::Stay;
    }
    let (successor, answer) = match agree(request, None, turn) {
        Ok(agreed) => agreed,
        Err(refusal) => return session.respond_renewal(vec![refusal], arrived, turn),
    };
    let answer = answer
        .into_iter()
        .chain(extension::ticket::postponed(request));
    session.respond(answer.collect(), arrived, turn);
    Then::succeed(successor)
}

/// Returns the successor and the payloads of the answer, or a refusal. `purpose` is set for a
/// clone.
pub(crate) fn agree(
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
        turn.ctx.refused(Some(peer.id), why);
        return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
    };
    let group = group_id(choice.group);
    if public.group != group {
        let wanted = group.0.to_be_bytes().to_vec();
        return Err(notify(NotifyType::INVALID_KE_PAYLOAD, wanted));
    }
    let nonce: Nonce = turn.ctx.rng.array();
    let Some((ours, (_, shared))) = Offered::answer(public, turn.ctx.rng) else {
        turn.ctx.refused(Some(peer.id), Refusal::KeyExchange);
        return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
    };
    let mut answer = vec![
        Payload::SecurityAssociation(vec![choice.answer]),
        Payload::Nonce(nonce.to_vec()),
        ours,
    ];
    let successor = Successor {
        suite: choice.suite,
        prf: choice.prf,
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
fn conclude(
    session: &mut Session,
    rekey: IkeRekey,
    response: &Message,
    turn: &mut Turn<'_, '_>,
) -> Then {
    if let Some(to) = rekey.to {
        return clone::conclude(session, rekey, to, response, turn);
    }
    let promised = session
        .replacement
        .promised
        .take_if(|successor| successor.purpose.is_none());
    match (first_error(response), promised) {
        (Some(_), Some(theirs)) => Then::succeed(*theirs),
        (Some(error), None) => {
            note_refused(session, error, rekey.corrected, response, turn);
            Then::Stay
        }
        (None, theirs) => match conclude_successor(rekey, response, turn) {
            None => Then::Close(DownReason::NotOffered("successor of the IKE SA")),
            Some(ours) => {
                let theirs = theirs.map(|successor| *successor);
                decide(session, ours, theirs, response, turn)
            }
        },
    }
}

fn note_refused(
    session: &mut Session,
    error: NotifyType,
    corrected: bool,
    response: &Message,
    turn: &mut Turn<'_, '_>,
) {
    match group_to_try(error, corrected, response, turn) {
        Some(group) => ask(session, group, true, None, turn),
        None => put_off(session, error, turn),
    }
}

/// Returns the group that a refusal names, if it is one of ours and the refused request was not
/// itself corrected so.
pub(super) fn group_to_try(
    error: NotifyType,
    corrected: bool,
    response: &Message,
    turn: &Turn<'_, '_>,
) -> Option<GroupId> {
    if error != NotifyType::INVALID_KE_PAYLOAD || corrected {
        return None;
    }
    let ours = groups_of(turn.core.peer(turn.ctx.config)?);
    wanted_group(response).filter(|group| ours.contains(group))
}

/// Decides which successor stays, as all nonces are known.
fn decide(
    session: &mut Session,
    ours: Successor,
    theirs: Option<Successor>,
    response: &Message,
    turn: &mut Turn<'_, '_>,
) -> Then {
    let mut then = Succession::default();
    match theirs {
        Some(theirs) if ours.lower_nonce() < theirs.lower_nonce() => {
            then.lost = Some(ours).filter(Successor::is_complete);
            // In case the peer does not continue its own.
            let timers = &turn.ctx.config.timers;
            let age = &mut session.lifetime.keys;
            age.try_again(timers, turn.ctx.rng, turn.ctx.now);
            then.stays = Some(theirs);
        }
        theirs => {
            then.lost = theirs.filter(Successor::is_complete);
            match ours.is_complete() {
                true => then.stays = Some(ours),
                false => {
                    if let Then::Close(why) = follow_up::ask(session, ours, response) {
                        return Then::Close(why);
                    }
                }
            }
        }
    }
    Then::Succeed(Box::new(then))
}

/// Handles a refusal of the successor, or the loss of its state by the peer. It is requested
/// again after a delay.
pub(crate) fn put_off(session: &mut Session, error: NotifyType, turn: &mut Turn<'_, '_>) {
    match error {
        NotifyType::TEMPORARY_FAILURE => liveness::note_busy(session, turn),
        NotifyType::STATE_NOT_FOUND => {}
        _ if session.lifetime.keys.is_news(error) => {
            turn.ctx
                .refused(Some(turn.core.peer_id()), Refusal::RekeyRefused(error));
        }
        _ => {}
    }
    session
        .lifetime
        .keys
        .try_again(&turn.ctx.config.timers, turn.ctx.rng, turn.ctx.now);
}

/// Returns the successor that the peer agreed to, or `None` if its answer does not fit our offer.
pub(crate) fn conclude_successor(
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
        prf: choice.prf,
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
