//! Moves of an IKE SA and its child SAs (RFC 4555).
//!
//! *The end that chooses the path* receives a new path from the caller. It uses the path at once,
//! for outstanding requests too, and sends UPDATE_SA_ADDRESSES as soon as the window allows. If the
//! path changes again before the answer arrives, that answer does not count, and another update is
//! sent: only the newest path counts (section 3.5). Child SAs follow at once if the peer's address
//! stays the same, and otherwise after the answer with our cookie.
//!
//! *The other end* answers, and sends IKE messages to the source address of the update. It sends
//! packets of child SAs there only after a request of its own with a cookie was answered from there
//! (section 3.7). A newer update restarts this check; an update that a newer one has overtaken does
//! nothing. [`Core::path`] is thus the path of IKE messages, and [`Core::proved`] that of child
//! SAs, unless their own packets led them elsewhere (`follow.rs`). Any update but an answer to
//! that check leads them back.
//!
//! Child SAs in transport mode move with MOBIKE-X alone (`transport.rs`), at either end only once
//! the other end has agreed.
//!
//! Other messages move nothing: an answer on another path only shows that this path works (section
//! 3.8). A request is sent on several paths for this purpose.

use super::{follow, live_path, measure, transport};
use crate::down_reason::{DownReason, PeerMisbehaved};
use crate::event::Event;
use crate::exchange::{find_notify, first_error, notify};
use crate::extension::mobike::{self, Mobike};
use crate::extension::mobikex::Named;
use crate::extension::routability::{self, Cookie};
use crate::extension::{nat, no_nats, tcp};
use crate::misuse::CannotMove;
use crate::refusal::Refusal;
use crate::sa::arrived::Arrived;
use crate::sa::core::Core;
use crate::sa::protected;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::task::{Answer, Subject, Task, Then};
use model::{Deadline, Path};
use std::time::Duration;
use wire::ike::{Message, NotifyType, Payload};

/// Time without a response after which other paths are tried.
const SILENT_AFTER: Duration = Duration::from_millis(1500);

/// Maximum number of times that an update is repeated because a NAT was on its path (section 3.9).
const MAX_TRANSLATED: u32 = 5;

/// The request that accompanies a change of path.
pub(crate) struct Move {
    cookie: Cookie,
    payloads: Vec<Payload>,
}

impl Task for Move {
    fn subject(&self) -> Subject {
        Subject::Whole
    }

    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        self.payloads.clone()
    }

    fn tells_refusal(&self) -> bool {
        true
    }

    fn moves(&self) -> bool {
        true
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        session: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        conclude(session, &self, answer.message, turn).into()
    }
}

/// Moves to another path.
pub(crate) fn move_to(
    session: &mut Session,
    path: Path,
    turn: &mut Turn<'_, '_>,
) -> Result<(), CannotMove> {
    let fixed = session.children.are_fixed();
    let mobike = session.mobike.as_mut().ok_or(match fixed {
        true => CannotMove::Transport,
        false => CannotMove::NotAgreed,
    })?;
    if !mobike.decides {
        return Err(CannotMove::NotOurs);
    }
    if fixed && !mobike.extended {
        return Err(CannotMove::Transport);
    }
    transport::check(session, path, turn).map_err(CannotMove::Unplaced)?;
    let path = tcp::named(turn, path);
    if let Some(mobike) = &mut session.mobike {
        (mobike.pending, mobike.silent, mobike.translated) = (true, false, 0);
    }
    protected::switch_to(turn, path);
    live_path::join(session);
    if path.remote.ip() == turn.core.proved.remote.ip() && !fixed {
        turn.carry(session.children.on_path_of_ike());
    }
    Ok(())
}

/// Returns the time at which a path without responses is reported, unless it has been.
pub(crate) fn silent_at(session: &Session, core: &Core) -> Option<Deadline> {
    let mobike = session.mobike.as_ref()?;
    if !mobike.decides || mobike.silent || live_path::is_all_apart(session, core) {
        return None;
    }
    // The request may have gone on another path, or be lost alone.
    let is_measuring = session.queue.runs(|task| task.measures());
    let pause = match is_measuring {
        true => SILENT_AFTER + measure::PATIENCE,
        false => SILENT_AFTER,
    };
    Some(Deadline {
        at: core.requests.unanswered_since()? + pause,
        reason: "a path without answers is reported",
    })
}

/// Reports once that the peer does not answer.
pub(crate) fn note_silence(session: &mut Session, turn: &mut Turn<'_, '_>) {
    let due = silent_at(session, turn.core);
    if due.is_some_and(|deadline| deadline.at <= turn.ctx.now)
        && let Some(mobike) = &mut session.mobike
    {
        mobike.silent = true;
        let (sa, path) = (turn.core.id, turn.core.path);
        turn.ctx.event(Event::PathSilent { sa, path });
    }
}

/// Handles an answer on a path.
pub(crate) fn note_answer(session: &mut Session, path: Path, turn: &mut Turn<'_, '_>) {
    let sa = turn.core.id;
    if let Some(mobike) = session.deciding()
        && std::mem::take(&mut mobike.silent)
    {
        turn.ctx.event(Event::PathAnswers { sa, path });
    }
}

/// Returns the request that a change of path requires, ahead of all others.
pub(crate) fn next(session: &mut Session, turn: &mut Turn<'_, '_>) -> Option<Box<dyn Task>> {
    let mobike = session.mobike.as_mut()?;
    if !std::mem::take(&mut mobike.pending) {
        return None;
    }
    let (cookie, cookie_payload) = routability::cookie(turn.ctx.rng);
    let mut payloads = Vec::new();
    if mobike.decides {
        payloads.push(mobike::update());
        if mobike.extended {
            payloads.extend(named(turn.core).payloads());
        }
        payloads.extend(nat::payloads(
            turn.core.spi_i,
            turn.core.spi_r,
            turn.core.path,
            turn.ctx.config,
            turn.ctx.rng,
        ));
        let forbidden = turn
            .core
            .peer(turn.ctx.config)
            .is_some_and(|peer| peer.features.forbids_nat);
        payloads.extend(forbidden.then(|| no_nats::forbid(turn.core.path)));
    }
    payloads.push(cookie_payload);
    Some(Box::new(Move { cookie, payloads }))
}

/// Returns the addresses that an update names: both ends of the path.
const fn named(core: &Core) -> Named {
    Named {
        sender: Some(core.path.local.ip()),
        receiver: Some(core.path.remote.ip()),
    }
}

/// Evaluates the address hashes in a message of the peer. If the peer sees another address of
/// ours than before, an update is due.
pub(crate) fn note_seen(session: &mut Session, said: &Message, path: Path, core: &Core) {
    let translated = |nat: nat::Nat| nat.ours;
    let now = nat::detect(said, path).is_some_and(translated);
    let before = core.nat.is_some_and(translated);
    let seen = mobike::seen_as(said);
    if let Some(mobike) = session.deciding()
        && seen.is_some()
        && (now || before)
        && mobike.seen != seen
    {
        mobike.seen = seen;
        mobike.pending = true;
    }
}

/// Evaluates the answer to our update, or to our check of the peer's new path.
fn conclude(
    session: &mut Session,
    moved: &Move,
    response: &Message,
    turn: &mut Turn<'_, '_>,
) -> Result<(), DownReason> {
    let Some(mobike) = &mut session.mobike else {
        return Ok(());
    };
    // "If the values do not match, the IKE_SA MUST be closed" (section 3.7).
    let returned = routability::is_returned(&moved.cookie, response);
    let error = first_error(response);
    if !returned && error.is_none() {
        return Err(DownReason::Misbehaved(PeerMisbehaved::Cookie));
    }
    // The path has changed since: the answer tells nothing about the new one.
    if mobike.pending {
        return Ok(());
    }
    match error {
        None => {
            if mobike.decides {
                mobike.seen = mobike::seen_as(response);
                turn.core.nat = nat::detect(response, turn.core.path).or(turn.core.nat);
            }
            if transport::settle(session, turn) {
                turn.carry(session.children.on_path_of_ike());
            }
        }
        Some(NotifyType::UNEXPECTED_NAT_DETECTED) if mobike.translated < MAX_TRANSLATED => {
            mobike.translated += 1;
            mobike.pending = true;
        }
        Some(why) => {
            let (sa, path) = (turn.core.id, turn.core.path);
            turn.ctx
                .refused(Some(turn.core.peer_id()), Refusal::MoveRefused(why));
            turn.ctx.event(Event::MoveRefused { sa, path });
            if session.is_on_trial() {
                return Err(DownReason::NotFollowed);
            }
        }
    }
    Ok(())
}

/// Handles the MOBIKE notifies of a request, and returns those of the answer.
pub(crate) fn answer(
    session: &mut Session,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Vec<Payload> {
    let mut answer = Vec::new();
    let Some(mobike) = &mut session.mobike else {
        return answer;
    };
    let (moves, listed) = (mobike.is_moved(request), mobike.listed(request));
    if moves || listed.is_some() {
        if no_nats::is_translated(request, arrived.path) {
            turn.ctx
                .refused(Some(turn.core.peer_id()), Refusal::Translated);
            answer.push(notify(NotifyType::UNEXPECTED_NAT_DETECTED, Vec::new()));
            return answer;
        }
        if let Some(addresses) = listed {
            mobike.addresses = addresses;
            tell_addresses(session, turn);
        }
        if let Err(why) = follow_update(session, moves, request, arrived, turn) {
            turn.ctx.refused(Some(turn.core.peer_id()), why);
            answer.push(notify(NotifyType::UNACCEPTABLE_ADDRESSES, Vec::new()));
            return answer;
        }
    }
    if find_notify(request, NotifyType::NAT_DETECTION_DESTINATION_IP).is_some() {
        // The peer checks a new path: our NAT may have changed its mapping.
        note_seen(session, request, arrived.path, turn.core);
        let seen = nat::payloads(
            turn.core.spi_i,
            turn.core.spi_r,
            arrived.path,
            turn.ctx.config,
            turn.ctx.rng,
        );
        answer.extend(seen);
    }
    answer
}

/// Moves IKE messages to the source address of an update. Child SAs follow after a check.
fn follow_update(
    session: &mut Session,
    moves: bool,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Result<(), Refusal> {
    let (Some(mobike), true) = (&session.mobike, moves) else {
        return Ok(());
    };
    let path = arrived.path;
    if mobike.decides {
        return Err(Refusal::NotTheirsToMove);
    }
    if !path.is_stream() && path.local.port() != turn.ctx.config.natt_port {
        return Err(Refusal::WrongPort);
    }
    let only = turn
        .core
        .peer(turn.ctx.config)
        .and_then(|peer| peer.address);
    if let Some(only) = only.filter(|only| *only != path.remote.ip()) {
        let to = path.remote.ip();
        return Err(Refusal::MovedAway { to, only });
    }
    transport::admit(session, request, path, turn).map_err(Refusal::Unplaced)?;
    turn.core.nat = nat::detect(request, path).or(turn.core.nat);
    // "A TCP handshake proves the routability of the TCP Originator's address; thus, the Return
    // Routability Check SHOULD NOT be performed" (RFC 9329 section 7.1).
    let is_new = path != turn.core.proved || follow::returns(session, path, turn);
    if let Some(mobike) = &mut session.mobike {
        mobike.pending = is_new && !path.is_stream();
    }
    // Packets from there may have come first.
    let is_asked = follow::has_asked(session, path);
    follow::end_check(session, path, turn.core);
    match is_asked {
        true => protected::take_path(turn, path),
        false => protected::switch_to(turn, path),
    }
    live_path::join(session);
    let most = session.most_paths(turn.core.peer(turn.ctx.config));
    if is_new && most > 1 {
        turn.ctx.event(Event::PathLeft { sa: turn.core.id });
    }
    if path.is_stream() {
        turn.carry(session.children.on_path_of_ike());
    }
    Ok(())
}

/// Reports the peer's addresses.
pub(crate) fn tell_addresses(session: &Session, turn: &mut Turn<'_, '_>) {
    if let Some(mobike) = &session.mobike {
        turn.ctx.event(Event::Mobile {
            sa: turn.core.id,
            decides: mobike.decides,
            path: turn.core.path,
            addresses: mobike.addresses.clone(),
        });
    }
}

/// Repeats a request that was dropped with its keys.
pub(crate) fn repeat(session: &mut Session) {
    let moves = session.is_moving();
    if let Some(mobike) = &mut session.mobike {
        mobike.pending = moves;
        mobike.count_anew();
    }
}

/// Returns the state of a clone of the IKE SA.
pub(crate) fn of_clone(session: &Session) -> Option<Mobike> {
    let mut mobike = session.mobike.clone()?;
    // A path that is being verified has to be verified on the clone too.
    mobike.pending = session.is_moving();
    mobike.silent = false;
    mobike.count_anew();
    Some(mobike)
}
