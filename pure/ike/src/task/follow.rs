//! Following a peer that does not announce its moves to a new address behind its NAT (RFC 7296
//! section 2.23).
//!
//! If an authentic message has "a different port, address, or both", a host "that does not support
//! other methods of recovery such as IKEv2 Mobility and Multihoming [...], and that is not behind a
//! NAT, SHOULD send all packets (including retransmission packets) to the IP address and port in
//! the validated packet". The integrity check does not cover the header: a router that rewrites the
//! source address of one authentic packet would move a tunnel to a third party. A new address is
//! therefore only a reason for a check:
//!
//! 1. A request is sent to the new address alone. Its answer, from any address, shows that packets
//!    for the new address reach the peer. If it also returns our COOKIE2, the peer has read the
//!    request. Most peers that announce no moves return none, so several answers count instead
//!    ([`SUSTAINED`]), because a peer can write an answer without having received the request.
//! 2. A request is sent to the old address alone. If there is no answer for a little longer than
//!    the new address took, IKE messages and the child SAs' packets move.
//!
//! IKE_AUTH from another address than IKE_SA_INIT is checked in the same way, even if moves are
//! announced (RFC 4555).
//!
//! An authentic message from the old address, or an answer to the second request, ends the check:
//! the peer has not moved. The same check moves the SA back. Until the check succeeds, the new
//! address gets no packet of a child SA. It receives at most three times the octets that came from
//! it, answers included.
//!
//! Packets of child SAs are checked in the same way, even if moves are announced, as soon as the
//! newest of them comes from another address or port: a NAT may map ESP apart from IKE. The data
//! plane says from which address most of the newer packets come. Child SAs move there if the old
//! address is silent, or if newer packets keep coming only from the new one. If no moves are
//! announced, and where both had one address that is silent now, the IKE SA moves too. If moves are
//! announced, it moves by UPDATE_SA_ADDRESSES alone (RFC 4555 section 3.8), so the check says where
//! the peer is seen, and the peer then sends that update. Such a check gives way to one of a newer
//! address ([`Pace`]).
//!
//! A third party that relays everything is indistinguishable from a NAT. So the SA leaves an
//! address that a check found, but that the peer did not announce, as soon as newer packets come
//! only from another address. Answers from the address that is left do not count.
//!
//! The two requests are sent one after the other, because the peer may keep no more than one
//! response. A request that was sent to both addresses proves nothing. If an earlier request is
//! outstanding, it is only retransmitted to both.

use crate::config::Timers;
use crate::extension::nat::{self, Nat};
use crate::extension::routability::{self, Cookie};
use crate::refusal::{Refusal, Unfollowed};
use crate::sa::arrived::Arrived;
use crate::sa::core::Core;
use crate::sa::protected;
use crate::sa::turn::{Context, Turn};
use crate::session::Session;
use crate::session::follow::{Following, Packets, SHORTEST, Step, patience};
use crate::session::pace::Pace;
use crate::session::task::{Answer, Subject, Task, Then};
use model::{Deadline, Path, Stray};
use std::time::Duration;
use wire::ike::{Message, Payload};

/// Number of requests that a peer without COOKIE2 has to answer at its new address before it is
/// followed.
const SUSTAINED: u8 = 3;

/// Octets that may be sent to a new address for each octet that came from there. One more is for
/// the answer.
const SHARE: usize = 2;

/// The same for each octet of a child SA's packet, which needs no answer.
const SHARE_OF_PACKETS: usize = 3;

/// Question to one address of the peer.
struct Question(Cookie);

impl Task for Question {
    fn subject(&self) -> Subject {
        Subject::Whole
    }

    fn payloads(&self, session: &Session, turn: &mut Turn<'_, '_>) -> Vec<Payload> {
        let hashes = payloads(session, turn);
        [vec![routability::cookie_payload(&self.0)], hashes].concat()
    }

    fn allowed(&self, session: &Session, timers: &Timers) -> Duration {
        match session.follow.is_led_by_packets() {
            true => Duration::MAX,
            false => timers.give_up,
        }
    }

    fn path(&self, session: &Session, core: &Core) -> Path {
        match &session.follow.check {
            Some(following) if following.asks_new() => following.to,
            Some(following) if following.packets.is_some() => core.esp,
            _ => core.path,
        }
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        session: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        conclude(session, &self.0, answer.message, turn)
    }
}

fn question(ctx: &mut Context<'_>) -> Box<dyn Task> {
    Box::new(Question(routability::cookie(ctx.rng).0))
}

/// Examines the source address of an authentic message. Where moves are announced, "other messages"
/// move nothing (RFC 4555 section 3.8).
pub(crate) fn follow(session: &mut Session, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) {
    if !turn.core.is_newest(arrived.datagram.header()) || session.announces_moves() {
        return;
    }
    match (turn.core.path.is_stream(), arrived.path.is_stream()) {
        (false, false) => note_source(session, arrived, turn),
        // "It SHOULD choose the TCP connection on which it last received a valid and
        // decryptable IKE or ESP message" (RFC 9329 section 6.1). Who began has one connection,
        // and knows it.
        (true, true) if !session.terms.contact.ours => {
            protected::switch_to(turn, arrived.path);
            turn.carry(session.children.on_path_of_ike());
        }
        // "When switching from UDP to TCP, a new IKE_SA_INIT exchange MUST be initiated" (RFC
        // 9329 section 5.1).
        _ => {}
    }
}

fn note_source(session: &mut Session, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) {
    let from = arrived.path;
    match &session.follow.check {
        None if from != turn.core.path => check(session, from, None, turn),
        // Child SAs' packets may have another address than messages.
        Some(following) if following.packets.is_some() => {}
        Some(following) if following.to != from && from == turn.core.path => {
            stay(session, Unfollowed::StillThere, turn);
        }
        _ => {}
    }
    give_credit(session, from, SHARE * arrived.octets.len(), turn);
}

/// Permits to send this many octets more to an address, if it is checked.
fn give_credit(session: &mut Session, to: Path, octets: usize, turn: &mut Turn<'_, '_>) {
    let following = session.follow.check.as_mut();
    if let Some(following) = following.filter(|following| following.to == to) {
        following.credit += octets;
        // The answer to a request under way may be what the peer cannot send to us otherwise.
        if let (Step::Waiting, Some(datagrams)) = (following.step, turn.core.requests.oldest()) {
            following.send(datagrams, turn.ctx);
            turn.core.requests.exclude();
        }
    }
}

/// Checks the path of a child SA's newest packet, of `octets` octets, which is not the path
/// that child SAs send on.
pub(crate) fn note_stray(
    session: &mut Session,
    from: Path,
    octets: usize,
    turn: &mut Turn<'_, '_>,
) {
    // A stream has one address, which is the peer's.
    if from.is_stream() || turn.core.esp.is_stream() || from.remote == turn.core.esp.remote {
        return;
    }
    // An update came first, and is being checked there.
    if session.is_moving() && from.remote == turn.core.path.remote {
        return;
    }
    // "NO_NATS_ALLOWED": a translated packet is an attack (RFC 4555 section 3.9).
    if turn
        .core
        .peer(turn.ctx.config)
        .is_some_and(|peer| peer.features.forbids_nat)
    {
        return;
    }
    let runs = session.follow.check.is_some();
    if gives_way(session, from) && session.follow.pace.admits(from.remote, runs, turn.ctx.now) {
        drop_check(session, turn);
        check(
            session,
            from,
            Some(Packets::begin(from, turn.ctx.now)),
            turn,
        );
    }
    give_credit(session, from, SHARE_OF_PACKETS * octets, turn);
}

/// Returns true if no check is running, or one that a check of a packet's path may replace. If
/// moves are announced, packets cannot move the IKE SA, and do not replace the check of IKE_AUTH.
fn gives_way(session: &Session, newer: Path) -> bool {
    let following = session.follow.check.as_ref();
    following.is_none_or(|following| {
        let replaceable = following.packets.is_some() || !session.announces_moves();
        replaceable && following.to.remote != newer.remote
    })
}

/// Notes the newest packet of child SAs, unless it came on the path that they send on.
pub(crate) fn note_newest(session: &mut Session, stray: Option<Stray>) {
    let following = session.follow.check.as_mut();
    if let Some(packets) = following.and_then(|following| following.packets.as_mut()) {
        packets.stray = stray;
    }
}

/// Returns the address hashes of a check, which accompany its cookie.
pub(crate) fn payloads(session: &Session, turn: &mut Turn<'_, '_>) -> Vec<Payload> {
    match &session.follow.check {
        Some(following) if session.announces_moves() && following.packets.is_some() => {
            let mut path = turn.core.path;
            if following.asks_new() {
                path = following.to;
            }
            nat::payloads(
                turn.core.spi_i,
                turn.core.spi_r,
                path,
                turn.ctx.config,
                turn.ctx.rng,
            )
            .to_vec()
        }
        _ => Vec::new(),
    }
}

/// Ends the check when an update of the addresses arrives, unless the IKE SA stays where it is:
/// child SAs' packets may still have another address.
pub(crate) fn end_check(session: &mut Session, updated: Path, core: &Core) {
    let moves = updated.remote != core.path.remote;
    if moves {
        session.follow.pace = Pace::default();
    }
    let known = session.follow.check.as_ref();
    if moves || known.is_some_and(|following| following.packets.is_none()) {
        session.follow.check = None;
    }
}

/// Returns true if an update returns child SAs to the path of IKE messages. An update that a
/// check of ours caused says nothing about packets that a NAT maps apart.
pub(crate) fn returns(session: &Session, updated: Path, turn: &Turn<'_, '_>) -> bool {
    let remote = nat::esp_path(updated, turn.core.nat, turn.ctx.config).remote;
    let is_apart =
        turn.core.esp.remote.ip() == remote.ip() && session.follow.pace.is_resting(turn.ctx.now);
    turn.core.esp.remote != remote && !is_apart
}

/// Checks the source address of IKE_AUTH, if it differs from that of IKE_SA_INIT. Only the
/// latter is known to be the peer's: the keys depend on the response that was sent there.
pub(crate) fn check_beginning(
    session: &mut Session,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) {
    begin_check(session, arrived.path, None, turn);
    if let Some(following) = &mut session.follow.check {
        following.credit = SHARE * arrived.octets.len();
    }
}

/// Starts the check of an address, if the peer may be followed there.
fn check(session: &mut Session, to: Path, packets: Option<Packets>, turn: &mut Turn<'_, '_>) {
    if !turn.core.nat.is_some_and(Nat::follows) {
        return;
    }
    let only = turn
        .core
        .peer(turn.ctx.config)
        .and_then(|peer| peer.address);
    let ip = to.remote.ip();
    if let Some(only) = only.filter(|only| *only != ip) {
        return turn.ctx.refused(
            Some(turn.core.peer_id()),
            Refusal::MovedAway { to: ip, only },
        );
    }
    begin_check(session, to, packets, turn);
}

fn begin_check(session: &mut Session, to: Path, packets: Option<Packets>, turn: &mut Turn<'_, '_>) {
    if session.children.are_fixed() {
        return;
    }
    match turn
        .ctx
        .out
        .checks
        .admit(Some(turn.core.peer_id()), to.remote.ip(), turn.ctx.now)
    {
        Ok(()) => session.follow.check = Some(Box::new(Following::begin(to, packets, turn))),
        Err(why) => refuse_to_follow(to, why, turn),
    }
}

fn refuse_to_follow(path: Path, why: Unfollowed, turn: &mut Turn<'_, '_>) {
    let to = path.remote;
    turn.ctx
        .refused(Some(turn.core.peer_id()), Refusal::NotFollowed { to, why });
}

/// Returns the question to a new address.
pub(crate) fn next(session: &mut Session, turn: &mut Turn<'_, '_>) -> Option<Box<dyn Task>> {
    if !session.is_to_follow() {
        return None;
    }
    let following = session.follow.check.as_mut()?;
    following.step = Step::New {
        asked: turn.ctx.now,
        repeated: false,
    };
    following.until = turn.ctx.now + patience(turn);
    Some(question(turn.ctx))
}

/// Returns true if a question was sent on this path, and is not answered.
pub(crate) fn has_asked(session: &Session, path: Path) -> bool {
    let following = session.follow.check.as_ref();
    following.is_some_and(|following| following.asks_new() && following.to == path)
}

/// Charges the credit of the new address with the question that was sent there.
pub(crate) fn note_sent(session: &mut Session, core: &Core) {
    let following = session.follow.check.as_mut();
    if let Some(following) = following.filter(|following| following.asks_new()) {
        let datagrams = core.requests.oldest().unwrap_or_default();
        let octets = datagrams.iter().map(Vec::len).sum();
        following.credit = following.credit.saturating_sub(octets);
    }
}

/// Retransmits a request to the new address, if that has a part in it. Returns true if it must
/// go nowhere else.
pub(crate) fn repeat_there(
    session: &mut Session,
    datagrams: &[Vec<u8>],
    ctx: &mut Context<'_>,
) -> bool {
    let Some(following) = &mut session.follow.check else {
        return false;
    };
    match &mut following.step {
        Step::Waiting => {
            following.send(datagrams, ctx);
            false
        }
        Step::New { repeated, .. } => {
            *repeated = true;
            following.send(datagrams, ctx);
            true
        }
        Step::Old => false,
    }
}

/// Evaluates the answer to a question. The source address of the answer does not matter, as the
/// request went to one address.
fn conclude(
    session: &mut Session,
    cookie: &Cookie,
    response: &Message,
    turn: &mut Turn<'_, '_>,
) -> Then {
    let announced = session.announces_moves();
    let Some(following) = &mut session.follow.check else {
        return Then::Stay;
    };
    let (asked, repeated) = match following.step {
        // It was sent to both addresses.
        Step::Waiting => return Then::Stay,
        Step::Old => {
            note_old_answer(session, turn);
            return Then::Stay;
        }
        Step::New { asked, repeated } => (asked, repeated),
    };
    following.answers += 1;
    if !routability::is_returned(cookie, response) {
        // A peer that announces its moves returns the cookie, which proves that it receives there.
        if announced {
            stay(session, Unfollowed::Unanswered, turn);
            return Then::Stay;
        }
        if following.answers < SUSTAINED {
            following.step = Step::Waiting;
            following.until = turn.ctx.now + patience(turn);
            return Then::Stay;
        }
    }
    let took = turn.ctx.now - asked;
    let pause = match repeated {
        true => patience(turn),
        false => (took + took / 4).clamp(SHORTEST, patience(turn)),
    };
    following.step = Step::Old;
    following.until = turn.ctx.now + pause;
    Then::Send(question(turn.ctx))
}

/// Notes an answer from the old address. Child SAs' packets may still come only from the new
/// one.
fn note_old_answer(session: &mut Session, turn: &mut Turn<'_, '_>) {
    let announced = match session.announces_moves() {
        true => turn.core.path.remote.ip(),
        false => session.follow.home,
    };
    let following = session.follow.check.as_mut();
    match following.and_then(|following| following.packets.as_mut()) {
        Some(packets) => packets.old_answers = turn.core.esp.remote.ip() == announced,
        None => stay(session, Unfollowed::StillThere, turn),
    }
}

/// Ends the step of a check whose time is over.
pub(crate) fn end_step(session: &mut Session, turn: &mut Turn<'_, '_>) {
    let Some(following) = session
        .follow
        .check
        .take_if(|following| following.until <= turn.ctx.now)
    else {
        return;
    };
    let why = match (following.step, following.packets) {
        (Step::Old, Some(packets)) if !packets.moved(following.to, turn.core.esp) => {
            Unfollowed::StillThere
        }
        (Step::Old, packets) => {
            let children = session.children.on_path_of_ike();
            let old_is_silent = packets.is_none_or(|packets| !packets.old_answers);
            let together = turn.core.path.remote == turn.core.esp.remote;
            let all = packets.is_none() || !session.announces_moves() && together && old_is_silent;
            match all {
                true => {
                    protected::switch_to(turn, following.to);
                    turn.carry(children);
                }
                false => turn.carry_to(following.to, children),
            }
            session.follow.pace.succeed();
            return;
        }
        _ => Unfollowed::Unanswered,
    };
    session.follow.check = Some(following);
    stay(session, why, turn);
}

/// Ends a check: everything stays on the old path, including an outstanding question.
fn stay(session: &mut Session, why: Unfollowed, turn: &mut Turn<'_, '_>) {
    if let Some(to) = drop_check(session, turn) {
        refuse_to_follow(to, why, turn);
    }
}

/// Ends a check, and returns the path that was checked. An outstanding question is sent on the
/// old path now.
fn drop_check(session: &mut Session, turn: &mut Turn<'_, '_>) -> Option<Path> {
    let following = session.follow.check.take()?;
    if following.asks_new() {
        protected::send_again(turn);
    }
    Some(following.to)
}

/// Repeats a question that was dropped with its keys.
pub(crate) fn repeat(session: &mut Session, turn: &Turn<'_, '_>) {
    if let Some(following) = &mut session.follow.check {
        following.step = Step::Waiting;
        following.until = turn.ctx.now + patience(turn);
    }
}

pub(crate) fn step_ends_at(session: &Session) -> Option<Deadline> {
    let following = session.follow.check.as_ref()?;
    Some(Deadline {
        at: following.until,
        reason: "probe an address that the peer's messages came from",
    })
}
