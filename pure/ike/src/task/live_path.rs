//! Further paths to the peer (`extension/live_path.rs`): adding, checking and removing them.
//!
//! Each end sends a request with a COOKIE2 on the path alone before it sends packets there: the
//! initiator before it adds the path, the responder after that. Such a path is gone for the peer as
//! well if it does not answer: the responder deletes its child SA, and the initiator may add the
//! path again.
//!
//! The check of a responder moves the path too, if the newest packets come from another address: a
//! NAT may have changed its mapping. A third party that hands packets over faster than the network
//! looks the same, and relays the check as well. So the old address is asked next, and the path
//! stays while that one answers. It returns without this question to the address from which it was
//! added, because an answer of the third party would keep it.
//!
//! A request on a dead path would block the window. So it is retransmitted on the path of the IKE
//! SA after a while ([`Apart`]), and then its answer proves nothing.
//!
//! A peer with keys could direct requests to a third party, so the checks are limited like those of
//! `follow.rs`, and no packet of a child SA goes to an address without an answer.

use super::opening::{self, Refused};
use super::{child, child_terms, licences, path_traffic, upkeep};
use crate::event::Event;
use crate::extension::routability::{self, Cookie};
use crate::extension::{live_path, no_nats};
use crate::refusal::{Refusal, Unfollowed};
use crate::sa::arrived::Arrived;
use crate::sa::core::Core;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::live_paths::{Apart, tell_not_added};
use crate::session::task::{Answer, Task, Then};
use model::Path;
use wire::ike::{Header, Message, NotifyType, Payload};

/// Number of checks without an answer after which a responder gives a new path up.
const MOST_FAILURES: u8 = 3;

/// A question on a path of its own.
struct Question {
    number: u8,
    cookie: Cookie,
    apart: Apart,
    /// Path that has answered and replaces the one that is asked, if that one does not answer.
    next: Option<Path>,
}

impl Task for Question {
    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        vec![routability::cookie_payload(&self.cookie)]
    }

    fn is_moot(&self, session: &Session) -> bool {
        session.paths.get(self.number).is_none()
    }

    fn apart(&self) -> Option<&Apart> {
        Some(&self.apart)
    }

    fn apart_mut(&mut self) -> Option<&mut Apart> {
        Some(&mut self.apart)
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        session: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        let returned = routability::is_returned(&self.cookie, answer.message);
        let (number, asked) = (self.number, self.apart.path);
        match (self.next, returned && self.apart.is_alone()) {
            (None, true) => note_proved(session, number, asked, turn),
            (None, false) => note_unanswered(session, number, asked, turn),
            (Some(next), false) if self.apart.is_unanswered() => {
                settle(session, number, next, turn);
            }
            (Some(next), _) => {
                let (to, why) = (next.remote, Unfollowed::StillThere);
                let why = Refusal::NotFollowed { to, why };
                turn.ctx.refused(Some(turn.core.peer_id()), why);
            }
        }
        Then::Stay
    }
}

/// Adds a path, if its check succeeds.
pub(crate) fn add(session: &mut Session, path: Path, turn: &mut Turn<'_, '_>) {
    let decides = session.deciding().is_some();
    let most = session.most_paths(turn.core.peer(turn.ctx.config));
    let free = (2..=most).find(|number| is_free(session, *number));
    let known = session.children.current(None).is_none() || is_used(session, path, turn.core);
    match free.filter(|_| decides && !known && !session.is_leaving()) {
        Some(number) => {
            session.paths.set(number, path);
            ask(session, number, path, None, turn);
        }
        None => tell_not_added(path, false, turn),
    }
}

/// Returns true if no child SA has the path of this number, and none is being created for it.
fn is_free(session: &Session, number: u8) -> bool {
    let name = live_path::name(number);
    let asked = |question: &Question| question.number == number;
    let wants = |task: &dyn Task| task.wants().is_some_and(|wanted| wanted.name == name);
    let is_used = session.children.has(name)
        || session.openings.is_open(name)
        || session.queue.tasks_of().any(asked)
        || session.queue.tasks().any(wants);
    name.is_some() && !is_used
}

/// Returns true if packets take a path already: it is that of the IKE SA, or a further one.
fn is_used(session: &Session, path: Path, core: &Core) -> bool {
    let is_same = |known: Path| (known.local, known.remote) == (path.local, path.remote);
    let mut further = session.paths.iter();
    let further = further.any(|known| is_same(known.path) && !is_free(session, known.number));
    is_same(core.path) || further
}

fn ask(session: &mut Session, number: u8, path: Path, next: Option<Path>, turn: &mut Turn<'_, '_>) {
    let (cookie, _) = routability::cookie(turn.ctx.rng);
    let apart = Apart::new(path);
    let question = Question {
        number,
        cookie,
        apart,
        next,
    };
    session.ask(question, turn);
}

/// Handles the answer on a path. If packets take another one, that one is asked first.
fn note_proved(session: &mut Session, number: u8, path: Path, turn: &mut Turn<'_, '_>) {
    let known = session.paths.get(number).copied();
    let leaves = known.filter(|known| known.proved && known.path != path);
    match leaves.filter(|known| known.home != path.remote) {
        Some(known) => ask(session, number, known.path, Some(path), turn),
        None => settle(session, number, path, turn),
    }
}

/// Uses a path. The end that chooses the paths creates the child SA now.
fn settle(session: &mut Session, number: u8, path: Path, turn: &mut Turn<'_, '_>) {
    let (sa, name) = (turn.core.id, live_path::name(number));
    let decides = session.deciding().is_some();
    let Some(known) = session.paths.get_mut(number) else {
        return;
    };
    let moves = known.path != path;
    (known.path, known.proved, known.failures) = (path, true, 0);
    if decides {
        return child::request(session, name, turn);
    }
    let children = session.children.on_path(number);
    if moves {
        licences::relicense(session, turn);
        turn.ctx.event(Event::PathMoved { sa, children, path });
    }
    turn.ctx.event(Event::PathProved { sa, number });
}

/// Handles a check without an answer on its path.
fn note_unanswered(session: &mut Session, number: u8, path: Path, turn: &mut Turn<'_, '_>) {
    if session.deciding().is_some() {
        return tell_not_added(path, false, turn);
    }
    let Some(known) = session.paths.get_mut(number) else {
        return;
    };
    // A path that works stays where it is.
    if known.proved {
        return;
    }
    known.failures += 1;
    match known.failures < MOST_FAILURES {
        true => ask(session, number, path, None, turn),
        false => remove(session, number, turn),
    }
}

/// Checks each path that the peer added, until it is proved or gone. The traffic of a path goes
/// with it.
pub(crate) fn check(session: &mut Session, turn: &mut Turn<'_, '_>) {
    path_traffic::remove_lost(session, turn);
    if session.deciding().is_some() {
        return;
    }
    let unproved = session.paths.iter().filter(|known| !known.proved);
    for known in unproved.copied().collect::<Vec<_>>() {
        let asked = |question: &Question| question.number == known.number;
        let child = session.children.current(live_path::name(known.number));
        if child.is_some() && known.failures < MOST_FAILURES && !session.queue.tasks_of().any(asked)
        {
            ask(session, known.number, known.path, None, turn);
        }
    }
}

/// Removes a path, at both ends.
pub(crate) fn remove(session: &mut Session, number: u8, turn: &mut Turn<'_, '_>) {
    if let Some(name) = live_path::name(number) {
        path_traffic::remove(session, number, turn);
        upkeep::drop_child(session, Some(name), turn);
    }
}

/// Handles the removal of a path by the peer. Its child SA may have another SPI than the one that
/// the request deletes, if a rekey has crossed it.
pub(crate) fn note_removed(session: &mut Session, request: &Message, turn: &mut Turn<'_, '_>) {
    let removed = live_path::removed(request).filter(|_| session.is_extended());
    if let Some(number) = removed {
        remove(session, number, turn);
    }
}

/// Answers a request that adds a path.
pub(crate) fn answer(
    session: &mut Session,
    number: u8,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Vec<Payload> {
    let accepted = accept(session, number, request, arrived, turn);
    opening::answered(accepted, turn)
}

fn accept(
    session: &mut Session,
    number: u8,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Result<Vec<Payload>, Refused> {
    let later = (NotifyType::TEMPORARY_FAILURE, None);
    let none = NotifyType::NO_ADDITIONAL_SAS;
    let most = session.most_paths(turn.core.peer(turn.ctx.config));
    let name = live_path::name(number).filter(|_| number <= most);
    let name = name.ok_or((none, Some(Refusal::TooManyPaths(most))))?;
    if session.is_rekeying() || !is_free(session, number) {
        return Err(later);
    }
    admit(session, request, arrived.path, turn)?;
    let peer = turn.core.peer(turn.ctx.config).ok_or((none, None))?;
    opening::check_room(session, peer, turn)?;
    let policy = peer.policy(Some(name)).ok_or((none, None))?;
    let policy = session.policy_on(arrived.path, policy, peer);
    match child_terms::agree(session, &policy, None, request, turn) {
        Err(refusal) => Ok(vec![refusal]),
        Ok((payloads, agreed, lower_nonce)) => {
            session.paths.set(number, arrived.path);
            Ok(opening::open(
                session,
                None,
                payloads,
                agreed,
                lower_nonce,
                turn,
            ))
        }
    }
}

/// Decides about the addresses of a path.
fn admit(
    session: &Session,
    request: &Message,
    path: Path,
    turn: &mut Turn<'_, '_>,
) -> Result<(), Refused> {
    let refused = |why| (NotifyType::UNACCEPTABLE_ADDRESSES, Some(why));
    if session.chooses_path() != Some(false) {
        return Err(refused(Refusal::NotTheirsToMove));
    }
    // It was sent on the path of the IKE SA as well, as its own did not answer.
    if path.is_stream() || is_used(session, path, turn.core) {
        return Err((NotifyType::TEMPORARY_FAILURE, None));
    }
    if path.local.port() != turn.ctx.config.natt_port {
        return Err(refused(Refusal::WrongPort));
    }
    let peer = turn.core.peer(turn.ctx.config);
    let to = path.remote.ip();
    if let Some(only) = peer
        .and_then(|peer| peer.address)
        .filter(|only| *only != to)
    {
        return Err(refused(Refusal::MovedAway { to, only }));
    }
    let forbids = peer.is_some_and(|peer| peer.features.forbids_nat);
    let translated = forbids && !live_path::is_as_named(request, path);
    if translated || no_nats::is_translated(request, path) {
        let kind = NotifyType::UNEXPECTED_NAT_DETECTED;
        return Err((kind, Some(Refusal::Translated)));
    }
    let peer = Some(turn.core.peer_id());
    let admitted = turn.ctx.out.checks.admit(peer, to, turn.ctx.now);
    admitted.map_err(|why| {
        let to = path.remote;
        let why = Refusal::NotFollowed { to, why };
        (NotifyType::TEMPORARY_FAILURE, Some(why))
    })
}

/// Checks the source of the newest packet of a child SA on a further path, if it is not the address
/// that the child SA sends to: the mapping of a NAT may have changed.
pub(crate) fn note_stray(session: &mut Session, number: u8, from: Path, turn: &mut Turn<'_, '_>) {
    let known = session.paths.get(number).filter(|known| known.proved);
    let Some(known) = known.filter(|known| known.path.remote != from.remote) else {
        return;
    };
    let asked = |question: &Question| question.number == number;
    let peer = turn.core.peer(turn.ctx.config);
    let is_fixed = peer.is_none_or(|peer| {
        let only = peer.address.is_some_and(|only| only != from.remote.ip());
        only || peer.features.forbids_nat
    });
    let ours = session.chooses_path() != Some(false);
    let is_other = from.is_stream() || from.local != known.path.local;
    if ours || is_fixed || is_other || session.queue.tasks_of().any(asked) {
        return;
    }
    let (peer, to) = (turn.core.peer_id(), from.remote.ip());
    if turn
        .ctx
        .out
        .checks
        .admit(Some(peer), to, turn.ctx.now)
        .is_ok()
    {
        ask(session, number, from, None, turn);
    }
}

/// Retransmits a request on its own path, if it has one. Returns true if it must go nowhere else.
pub(crate) fn repeat_apart(
    session: &mut Session,
    datagrams: &[Vec<u8>],
    turn: &mut Turn<'_, '_>,
) -> bool {
    let header = datagrams
        .first()
        .and_then(|octets| Header::peek(octets).ok());
    let task = header.and_then(|header| session.queue.running_as(header.message_id));
    let Some(apart) = task.and_then(|task| task.apart_mut()) else {
        return false;
    };
    let was_alone = apart.is_alone();
    let is_alone = apart.repeat();
    if is_alone {
        turn.ctx.out.counters.retransmitted += 1;
        turn.ctx.transmit_all(apart.path, datagrams);
    } else if was_alone {
        turn.core.requests.begin_silence(turn.ctx.now);
    }
    is_alone
}

/// Notes that all outstanding requests are sent on another path too.
pub(crate) fn join(session: &mut Session) {
    for task in session.queue.running_mut() {
        if let Some(apart) = task.apart_mut() {
            apart.join();
        }
    }
}

/// Returns true if nothing is outstanding on the path of the IKE SA.
pub(crate) fn is_all_apart(session: &Session, core: &Core) -> bool {
    let is_apart = |task: &dyn Task| task.apart().is_some_and(Apart::is_alone);
    !core.requests.is_idle() && session.queue.running().all(is_apart)
}
