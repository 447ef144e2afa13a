//! Dispatch of an IKE SA that is up: requests of both ends, as many at a time as the windows allow.
//!
//! This file knows all tasks and nothing of what they do. It hands messages to them, performs what
//! they return, and sends what they have queued.

use super::arrived::{Arrived, Complaint};
use super::closing::{Closing, Ending, Lingering, Retired};
use super::core::Core;
use super::protected;
use super::turn::Turn;
use crate::attempt::End;
use crate::child::ChildTerms;
use crate::down_reason::{DownReason, PeerMisbehaved};
use crate::event::Event;
use crate::exchange::create_child::{Renewal, Wish};
use crate::exchange::{first_error, notify};
use crate::extension;
use crate::extension::configuration::Inside;
use crate::extension::contact::Contact;
use crate::extension::mobike::Mobike;
use crate::extension::{distribute, migration, nat, overlap, routability, tcp};
use crate::keys::ProvedKeys;
use crate::misuse::CannotMove;
use crate::peer_table::PeerTable;
use crate::refusal::Refusal;
use crate::session::children::{Age, Due, lifetimes};
use crate::session::replacement::Aside;
use crate::session::successor::Successor;
use crate::session::task::{Answer, Succession, Task, Then};
use crate::session::{Lifetime, Session, Terms};
use crate::task::liveness::Check;
use crate::task::{
    child, clone, confirm, crash, delete, follow, follow_up, grant, leave, licences, live_path,
    liveness, measure, mobike, opening, path_traffic, ping, reauth, redirect, rekey_child,
    rekey_ike, renew, ticket, token, upkeep, window,
};
use model::{Deadline, InnerAddresses, Instant, Path};
use std::time::Duration;
use wire::ike::{ExchangeType, Message, NotifyType, Payload};

/// Properties of a new SA.
#[derive(Clone)]
pub(crate) struct Beginning {
    pub(crate) private: bool,
    /// True if the initiator sent INITIAL_CONTACT.
    pub(crate) initial: bool,
    pub(crate) mobike: Option<Mobike>,
    /// The inner addresses that one end has leased to the other.
    pub(crate) addresses: Option<InnerAddresses>,
    /// The certificates that authenticated the peer.
    pub(crate) chain: Vec<Vec<u8>>,
    /// Lifetime of the authentication that the responder announced, if it did.
    pub(crate) counts_for: Option<Duration>,
    /// True if the initiator supports redirection by us.
    pub(crate) willing: bool,
    /// True if either end may clone the IKE SA.
    pub(crate) clones: bool,
    /// True if there may be several child SAs for the same traffic.
    pub(crate) resources: bool,
    /// Number of responses that the peer keeps, if announced.
    pub(crate) window: Option<u32>,
    /// True if a session is resumed.
    pub(crate) resumed: bool,
}

/// The SA after a turn.
pub(crate) enum Next {
    Up(Box<Session>),
    Ended(Ending),
}

/// An SA that another one has created: its successor, its remains, or a clone.
pub(crate) struct Born {
    pub(crate) core: Core,
    pub(crate) state: Next,
}

/// Brings the SA up, with the assigned inner addresses, and its child SA if it has one.
pub(crate) fn begin(
    keys: ProvedKeys,
    beginning: Beginning,
    inside: Option<Inside>,
    child: Option<ChildTerms>,
    turn: &mut Turn<'_, '_>,
) -> Box<Session> {
    turn.core.proved = turn.core.path;
    turn.core.esp = nat::esp_path(turn.core.path, turn.core.nat, turn.ctx.config);
    turn.core.anew = false;
    turn.core.overlap(beginning.window, turn.ctx.config);
    turn.core
        .responses
        .widen(turn.core.own_window(turn.ctx.config));
    let proof = reauth::age(beginning.counts_for, turn.core.initiator, turn);
    let lifetime = lifetimes(turn.core, turn.ctx.config).ike;
    let terms = Terms {
        contact: Contact {
            ours: turn.core.initiator,
            began: turn.core.began,
            since: turn.ctx.now,
            initial: beginning.initial,
            lowest_nonce: keys.lowest_nonce.clone(),
        },
        addresses: beginning.addresses,
        chain: beginning.chain,
        believed: turn.ctx.today,
        private: beginning.private,
        clones: beginning.clones,
        resources: beginning.resources,
        willing: beginning.willing,
    };
    let lifetime = Lifetime {
        keys: Age::begin(lifetime, turn.ctx.config, turn.ctx.rng, turn.ctx.now),
        proof,
    };
    let home = turn.core.path.remote.ip();
    let mut session = Session::new(keys, terms, lifetime, home, turn.ctx.now);
    session.mobike = beginning.mobike;
    turn.ctx
        .out
        .attempts
        .end(turn.core, End::Up, turn.ctx.config);
    turn.ctx.event(Event::IkeUp {
        sa: turn.core.id,
        peer: turn.core.peer_id(),
        initiator: turn.core.initiator,
        resumed: beginning.resumed,
    });
    let ppk = turn.core.ppk(turn.ctx.config);
    if ppk.is_some() && !session.keys.ppk {
        // "If a PPK was configured but was not used for a particular IKE SA, then
        // implementations SHOULD audit this event" (RFC 8784 section 6).
        turn.ctx
            .refused(Some(turn.core.peer_id()), Refusal::WithoutPpk);
    }
    let wanted = turn
        .core
        .peer(turn.ctx.config)
        .is_some_and(|peer| peer.kems.iter().any(Option::is_some));
    if wanted && session.keys.kems.is_empty() {
        turn.ctx
            .refused(Some(turn.core.peer_id()), Refusal::WithoutKem);
    }
    let several = turn
        .core
        .peer(turn.ctx.config)
        .is_some_and(|peer| peer.features.resources > 1);
    if several && !session.terms.resources {
        turn.ctx
            .refused(Some(turn.core.peer_id()), Refusal::WithoutResources);
    }
    let paths = turn.core.peer(turn.ctx.config);
    let paths = paths.is_some_and(|peer| peer.features.paths > 1);
    if paths && !session.is_extended() {
        turn.ctx
            .refused(Some(turn.core.peer_id()), Refusal::WithoutPaths);
    }
    path_traffic::tell_unused(&session, turn);
    mobike::tell_addresses(&session, turn);
    if let Some(inside) = inside {
        let (sa, peer) = (turn.core.id, turn.core.peer_id());
        turn.ctx.event(Event::Configured { sa, peer, inside });
    }
    if let Some(terms) = child {
        child::add(&mut session, terms, turn.core.initiator, turn);
    }
    session
}

/// Handles a message. SAs that it creates are added to `born`.
pub(crate) fn handle(
    session: Box<Session>,
    arrived: &Arrived<'_>,
    born: &mut Vec<Born>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    match arrived.datagram.header().flags.response {
        true => handle_response(session, arrived, born, turn),
        false => handle_request(session, arrived, born, turn),
    }
}

/// Performs the actions that are due.
pub(crate) fn handle_timeout(mut session: Box<Session>, turn: &mut Turn<'_, '_>) -> Next {
    let is_too_old = is_too_old(&mut session, turn);
    send_next(&mut session, turn);
    if is_too_old {
        let why = licences::why_over(&session, turn);
        return Next::Ended(close(session, why, turn));
    }
    let tried_until = session.replacement.tried_until();
    if tried_until.is_some_and(|until| until <= turn.ctx.now) {
        return Next::Ended(turn_back(session, DownReason::NotFollowed, turn));
    }
    if reauth::is_due(&mut session, turn) {
        return Next::Ended(close(session, DownReason::ProofTooOld, turn));
    }
    let heard = session.liveness.heard;
    let unsure = &mut session.openings.unsure;
    unsure.resolve(&turn.core.responses, heard, turn.ctx);
    follow::end_step(&mut session, turn);
    leave::leave(&mut session, turn);
    send_next(&mut session, turn);
    opening::forget(&mut session, turn.ctx);
    mobike::note_silence(&mut session, turn);
    confirm::doubt(&mut session, turn);
    liveness::check(&mut session, turn);
    Next::Up(session)
}

/// Ends a turn: requests child SAs that are missing, and sends queued requests.
pub(crate) fn finish(session: &mut Session, turn: &mut Turn<'_, '_>) {
    upkeep::maintain(session, turn);
    send_next(session, turn);
}

/// Rekeys and deletes the SAs that are due. Returns true if keys have expired without a
/// successor.
fn is_too_old(session: &mut Session, turn: &mut Turn<'_, '_>) -> bool {
    while let Some(due) = session.children.pop_due(turn.ctx.now) {
        match due {
            Due::Rekey(child) => rekey_child::request(session, child, turn),
            Due::Delete(child) => delete::request(session, child, turn),
            Due::Forget(child) => {
                session.children.remove(child);
                turn.ctx.event(Event::ChildDown { child, why: None });
            }
            Due::End(child) if session.children.all_current().count() > 1 => {
                upkeep::delete_current(session, child, turn);
            }
            Due::End(_) => return true,
        }
    }
    let past = |at: Option<Instant>| at.is_some_and(|at| at <= turn.ctx.now);
    if past(session.lifetime.keys.over_at) {
        return true;
    }
    if past(session.lifetime.keys.renew_at) {
        rekey_ike::request(session, turn);
    }
    false
}

/// Returns the next deadline.
pub(crate) fn deadline(session: &Session, core: &Core, config: &PeerTable) -> Option<Deadline> {
    let renewal = |at| Deadline {
        at,
        reason: "rekey or delete an SA",
    };
    let ages = [
        session.children.next(),
        session.lifetime.keys.next(),
        session.lifetime.proof.next(),
        session.replacement.leaves_at(),
        session.replacement.tried_until(),
        session.upkeep.next,
        session.openings.unsure.next(),
        opening::forgets_at(session),
    ];
    let ages = ages.into_iter().flatten();
    let asked = liveness::due(session, core, config).into_iter();
    ages.map(renewal)
        .chain(asked)
        .chain(follow::step_ends_at(session))
        .chain(mobike::silent_at(session, core))
        .chain(confirm::overdue_at(session))
        .min()
}

/// Moves the SA to another path.
pub(crate) fn move_to(
    session: &mut Session,
    path: Path,
    turn: &mut Turn<'_, '_>,
) -> Result<(), CannotMove> {
    mobike::move_to(session, path, turn)
}

/// Tests another path with the oldest outstanding request.
pub(crate) fn probe(session: &mut Session, path: Path, turn: &mut Turn<'_, '_>) {
    if turn.core.requests.is_idle() {
        session.ask(Check::Liveness, turn);
        send_next(session, turn);
    }
    let path = tcp::named(turn, path);
    live_path::join(session);
    if let Some(datagrams) = turn.core.requests.oldest() {
        turn.ctx.out.counters.retransmitted += 1;
        turn.ctx.transmit_all(path, datagrams);
    }
    turn.core.requests.exclude();
}

/// Measures a path by a request that is sent on it alone.
pub(crate) fn measure(session: &mut Session, path: Path, turn: &mut Turn<'_, '_>) {
    if measure::begin(session, path, turn) {
        send_next(session, turn);
        turn.core.requests.wait(measure::PATIENCE, turn.ctx.now);
    }
}

/// Gives up, as the peer does not answer.
pub(crate) fn give_up(mut session: Box<Session>, attempts: u32, turn: &mut Turn<'_, '_>) -> Ending {
    if session.is_on_trial() {
        return turn_back(session, DownReason::PeerGone { attempts }, turn);
    }
    let why = match session.is_leaving() {
        true => DownReason::Replaced,
        false => {
            turn.ctx.ike_spis.lose(turn.core.own_spi());
            DownReason::PeerGone { attempts }
        }
    };
    delete::drop_all(&mut session, &why, turn.ctx);
    Ending::gone(why, turn)
}

/// Takes the SA down without a message to the peer, which has lost its state.
pub(crate) fn abandon(session: &mut Session, turn: &mut Turn<'_, '_>) -> Ending {
    let why = DownReason::Replaced;
    turn.ctx.tickets.end(turn.core.id);
    delete::drop_all(session, &why, turn.ctx);
    Ending::gone(why, turn)
}

/// Closes the SA by an INFORMATIONAL request with a Delete.
pub(crate) fn close(mut session: Box<Session>, why: DownReason, turn: &mut Turn<'_, '_>) -> Ending {
    clone::note_in_vain(&session, &why, turn);
    turn.ctx.tickets.end(turn.core.id);
    delete::drop_all(&mut session, &why, turn.ctx);
    Closing::begin(session.keys, why, turn)
}

/// Closes a clone on the path of the original, because the new path may be the cause.
fn turn_back(session: Box<Session>, why: DownReason, turn: &mut Turn<'_, '_>) -> Ending {
    if let Some(Aside::Ours { from, .. }) = &session.replacement.aside {
        protected::switch_to(turn, **from);
    }
    close(session, why, turn)
}

/// Ends the SA for both ends. Our last response is kept for a while.
fn end(mut session: Box<Session>, why: DownReason, turn: &mut Turn<'_, '_>) -> Ending {
    clone::note_in_vain(&session, &why, turn);
    turn.ctx.tickets.end(turn.core.id);
    delete::drop_all(&mut session, &why, turn.ctx);
    turn.announce_down(why);
    turn.core.requests.abandon();
    Ending::Lingering(Lingering::until(
        turn.ctx.now + turn.ctx.config.timers.linger,
    ))
}

/// Ends the SA, which another one has replaced.
fn left(session: Box<Session>, turn: &mut Turn<'_, '_>) -> Ending {
    turn.ctx.tickets.end(turn.core.id);
    Ending::Lingering(Lingering::replaced(session.children, turn.ctx))
}

/// Ends the SA, as the peer has deleted it, on its own or because another SA has replaced it.
fn deleted(session: Box<Session>, turn: &mut Turn<'_, '_>) -> Ending {
    if !session.replacement.has_successor || !turn.ctx.is_acquainted() {
        return end(session, DownReason::ClosedByPeer, turn);
    }
    for child in session.children.ids() {
        turn.ctx.event(Event::ChildRetired { child });
    }
    turn.core.requests.abandon();
    left(session, turn)
}

fn handle_response(
    mut session: Box<Session>,
    arrived: &Arrived<'_>,
    born: &mut Vec<Born>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    if liveness::handle_clear_error(&mut session, arrived, turn) {
        turn.ctx.count_taken();
        turn.core.requests.abandon();
        return Next::Ended(left(session, turn));
    }
    let Some(response) = protected::accept_response(turn, &session.keys.cipher, arrived) else {
        return Next::Up(session);
    };
    session.liveness.heard = turn.ctx.now;
    turn.core.lost = false;
    follow::follow(&mut session, arrived, turn);
    mobike::note_answer(&mut session, arrived.path, turn);
    let task = session.queue.finish(arrived.datagram.header().message_id);
    let then = match response {
        // "Such errors in parsing or processing response packets should still cause the
        // recipient to clean up the IKE state" (RFC 7296 section 2.21).
        Err(Complaint { why, .. }) => Then::Close(DownReason::Misbehaved(why)),
        Ok(mut response) => {
            if !session.terms.private {
                response.forget_private();
            }
            match first_error(&response) {
                Some(notify @ NotifyType::INVALID_SYNTAX) => {
                    Then::End(DownReason::Unreadable { notify })
                }
                _ => conclude(&mut session, task, &response, arrived.path, turn),
            }
        }
    };
    perform(session, then, born, turn)
}

/// Evaluates the answer to a request of ours.
fn conclude(
    session: &mut Session,
    task: Option<Box<dyn Task>>,
    message: &Message,
    path: Path,
    turn: &mut Turn<'_, '_>,
) -> Then {
    let Some(task) = task else {
        return Then::Stay;
    };
    if task.exchange() == ExchangeType::IKE_FOLLOWUP_KE
        && let Err(why) = session.openings.note_forgotten(message)
    {
        return Then::Close(why);
    }
    if let Some(notify) = first_error(message)
        && task.exchange() == ExchangeType::INFORMATIONAL
        && !task.tells_refusal()
    {
        let why = Refusal::InformationRefused { notify };
        turn.ctx.refused(Some(turn.core.peer_id()), why);
    }
    if task.shows_our_address() {
        mobike::note_seen(session, message, path, turn.core);
    }
    task.conclude(&Answer { message, path }, session, turn)
}

fn handle_request(
    mut session: Box<Session>,
    arrived: &Arrived<'_>,
    born: &mut Vec<Born>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    let Some(request) = protected::accept_request(turn, &mut session.keys.cipher, arrived) else {
        return Next::Up(session);
    };
    session.liveness.heard = turn.ctx.now;
    turn.core.lost = false;
    let unsure = &mut session.openings.unsure;
    unsure.resolve(&turn.core.responses, turn.ctx.now, turn.ctx);
    follow::follow(&mut session, arrived, turn);
    let then = match request {
        Ok(mut request) => {
            if !session.terms.private {
                request.forget_private();
            }
            if request.header.exchange == ExchangeType::INFORMATIONAL {
                return handle_informational(session, &request, arrived, born, turn);
            }
            handle_genuine(&mut session, &request, arrived, turn)
        }
        Err(Complaint { why, notify }) => {
            // INVALID_SYNTAX "is considered fatal in both peers" (RFC 7296 section 2.21.3).
            let fatal = notify.kind == NotifyType::INVALID_SYNTAX;
            session.respond(vec![Payload::Notify(notify)], arrived, turn);
            match fatal {
                true => Then::End(DownReason::Misbehaved(why)),
                false => Then::Stay,
            }
        }
    };
    perform(session, then, born, turn)
}

fn handle_genuine(
    session: &mut Session,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Then {
    match request.header.exchange {
        ExchangeType::KEY_DISTRIBUTE if session.terms.private => {
            if let Err(code) = grant::accept(session, request, arrived, turn) {
                let (csa, grant) = distribute::name(request);
                let answer = distribute::reply(csa, grant, Some(code));
                session.respond(vec![answer], arrived, turn);
            }
            Then::Stay
        }
        ExchangeType::KEY_REQUEST if session.terms.private => {
            if let Err(code) = token::accept(session, request, arrived, turn) {
                session.respond(migration::answer(&Err(code)), arrived, turn);
            }
            Then::Stay
        }
        ExchangeType::CREATE_CHILD_SA => handle_create_child(session, request, arrived, turn),
        ExchangeType::IKE_FOLLOWUP_KE => follow_up::answer(session, request, arrived, turn),
        // An initial exchange again, or a private one without the vendor ID: genuine, but
        // "invalid because some type, length, or value was out of range".
        _ => {
            let answer = notify(NotifyType::INVALID_SYNTAX, Vec::new());
            session.respond(vec![answer], arrived, turn);
            Then::End(DownReason::Misbehaved(PeerMisbehaved::UnexpectedExchange))
        }
    }
}

fn handle_create_child(
    session: &mut Session,
    request: &Message,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Then {
    if session.is_leaving() {
        let later = vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
        session.respond(later, arrived, turn);
        return Then::Stay;
    }
    let added = extension::live_path::added(request).filter(|_| session.is_extended());
    let selected = extension::path_traffic::requested(request);
    let selected = selected.filter(|_| session.has_path_selectors());
    let wish = Renewal::read(request).map(|renewal| renewal.wish(request));
    let answer = match (wish, added) {
        (Some(Wish::Ike), _) if extension::clone::is_asked_for(request) => {
            return clone::answer(session, request, arrived, turn);
        }
        (Some(Wish::Ike), _) => return rekey_ike::answer(session, request, arrived, turn),
        (Some(Wish::Child(spi)), _) => rekey_child::answer(session, spi, request, turn),
        (Some(Wish::Another), Some(number)) => {
            live_path::answer(session, number, request, arrived, turn)
        }
        (Some(Wish::Another) | None, _) => match selected {
            Some(number) => path_traffic::answer(session, number, request, turn),
            None => child::answer(session, request, turn),
        },
    };
    session.respond_renewal(answer, arrived, turn)
}

/// Handles deletions, revocations, announcements and moves (RFC 7296 section 1.4).
fn handle_informational(
    mut session: Box<Session>,
    request: &Message,
    arrived: &Arrived<'_>,
    born: &mut Vec<Born>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    let fatal = first_error(request).filter(|kind| is_fatal(*kind));
    let closes = extension::delete::closes_ike_sa(request);
    let deleted = delete::answer(&mut session, request, turn.ctx);
    live_path::note_removed(&mut session, request, turn);
    let childless = !deleted.is_empty() && session.children.is_over();
    grant::note_revoked(&mut session, request, turn);
    grant::note_neighbours(&session, request, turn);
    reauth::note_lifetime(&mut session, request, turn);
    redirect::note(&session, request, turn);
    crash::note_token(&mut session, request);
    turn.core
        .overlap(overlap::announced(request), turn.ctx.config);
    let mut answer: Vec<_> = extension::delete::paired(deleted).into_iter().collect();
    answer.extend(routability::echo(request));
    answer.extend(mobike::answer(&mut session, request, arrived, turn));
    let private = session.terms.private;
    answer.extend(ticket::answer(request, private, &session.keys, turn));
    answer.extend(ping::answer(&session, request));
    session.respond(answer, arrived, turn);
    match (fatal, closes, childless) {
        (Some(NotifyType::AUTHENTICATION_FAILED), _, _) => {
            let why = turn.proof_refused(request, None);
            Next::Ended(end(session, why, turn))
        }
        (Some(notify), _, _) => Next::Ended(end(session, DownReason::Unreadable { notify }, turn)),
        (None, true, _) => Next::Ended(inherit(session, born, turn)),
        (None, false, true) => Next::Ended(close(session, DownReason::ChildDeleted, turn)),
        (None, false, false) => {
            send_next(&mut session, turn);
            Next::Up(session)
        }
    }
}

/// Handles the peer's Delete of this SA while our request is outstanding: the peer's own successor,
/// if it requested one, replaces the SA. "Forget about its own rekeying request" (section 2.25.2).
fn inherit(mut session: Box<Session>, born: &mut Vec<Born>, turn: &mut Turn<'_, '_>) -> Ending {
    let promised = &mut session.replacement.promised;
    let Some(successor) = promised.take_if(|successor| successor.is_complete()) else {
        return deleted(session, turn);
    };
    turn.core.requests.abandon();
    hand_over(session, *successor, born, turn);
    Ending::Lingering(Lingering::until(
        turn.ctx.now + turn.ctx.config.timers.linger,
    ))
}

/// Returns true for errors that end the SA even outside a response (RFC 7296 section 2.21.2: in the
/// INFORMATIONAL exchange that follows IKE_AUTH).
const fn is_fatal(kind: NotifyType) -> bool {
    matches!(
        kind,
        NotifyType::AUTHENTICATION_FAILED
            | NotifyType::INVALID_SYNTAX
            | NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD
    )
}

/// Performs what a task returned.
fn perform(
    mut session: Box<Session>,
    then: Then,
    born: &mut Vec<Born>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    match then {
        Then::Stay => {}
        Then::Close(why) => return Next::Ended(close(session, why, turn)),
        Then::End(why) => return Next::Ended(end(session, why, turn)),
        Then::Leave => return Next::Ended(left(session, turn)),
        Then::Send(task) => send(&mut session, task, turn),
        Then::Succeed(succession) => return succeed(session, *succession, born, turn),
    }
    send_next(&mut session, turn);
    Next::Up(session)
}

/// Lets another IKE SA replace this one, or exist beside it.
fn succeed(
    session: Box<Session>,
    succession: Succession,
    born: &mut Vec<Born>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    if let Some(lost) = succession.lost {
        let mut core = lost.core(turn);
        let ours = lost.ours;
        let keys = lost.keys(&session.keys);
        // The end that requested the successor in vain deletes it.
        let state = Next::Ended(match ours {
            true => Closing::replaced(keys, &mut turn.of(&mut core)),
            false => Retired::begin(keys, turn.ctx),
        });
        born.push(Born { core, state });
    }
    match succession.stays {
        Some(successor) if successor.is_complete() && successor.purpose.is_some() => {
            bear(session, successor, born, turn)
        }
        Some(successor) if successor.ours => {
            let old = hand_over(session, successor, born, turn);
            Next::Ended(Closing::replaced(old, turn))
        }
        Some(successor) => promise(session, successor, born, turn),
        None => {
            let mut session = session;
            send_next(&mut session, turn);
            Next::Up(session)
        }
    }
}

/// Lets a successor that the peer requested replace this SA, unless it has to wait: for more key
/// exchanges, or for the answer to our own request, which decides between the two successors.
fn promise(
    mut session: Box<Session>,
    successor: Successor,
    born: &mut Vec<Born>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    if successor.is_complete() && !rekey_ike::is_awaiting(&session) {
        turn.core.requests.abandon();
        let old = hand_over(session, successor, born, turn);
        return Next::Ended(Retired::begin(old, turn.ctx));
    }
    session.replacement.promised = Some(Box::new(successor));
    send_next(&mut session, turn);
    Next::Up(session)
}

/// Turns this SA into its successor, and returns the old keys.
fn hand_over(
    mut session: Box<Session>,
    successor: Successor,
    born: &mut Vec<Born>,
    turn: &mut Turn<'_, '_>,
) -> ProvedKeys {
    let mut next = successor.core(turn);
    // The successor keeps the id. The remains of the old SA get the new one.
    std::mem::swap(&mut next.id, &mut turn.core.id);
    let keys = successor.keys(&session.keys);
    let old = std::mem::replace(&mut session.keys, keys);
    mobike::repeat(&mut session);
    follow::repeat(&mut session, turn);
    session.replacement.promised = None;
    session.openings.incomplete.clear();
    session.grants.offered.clear();
    session.queue.reset(|task| task.ends_with_keys());
    let lifetime = lifetimes(turn.core, turn.ctx.config).ike;
    session.lifetime.keys = Age::begin(lifetime, turn.ctx.config, turn.ctx.rng, turn.ctx.now);
    let (sa, peer) = (next.id, next.peer_id());
    turn.ctx.event(Event::IkeRekeyed { sa, peer });
    renew::proceed(&mut session, turn.ctx.now);
    window::tell(&mut session, &mut next, turn.ctx.config);
    turn.ctx.tickets.void(next.id);
    ticket::ask(&mut session);
    crash::give_token(&mut session, turn.ctx);
    send_next(&mut session, &mut turn.of(&mut next));
    let (core, state) = (next, Next::Up(session));
    born.push(Born { core, state });
    old
}

/// Makes a clone the replacement of its original.
pub(crate) fn conclude_trial(session: &mut Session, turn: &mut Turn<'_, '_>) {
    clone::conclude_trial(session, turn);
    ticket::ask(session);
    mobike::tell_addresses(session, turn);
}

/// Installs a clone. This SA stays.
fn bear(
    mut session: Box<Session>,
    successor: Successor,
    born: &mut Vec<Born>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    let to = successor.destination();
    let (mut core, mut clone) = clone::bear(&session, successor, turn);
    clone.mobike = mobike::of_clone(&session);
    if let Some(to) = to {
        // Cannot fail, as the original may move.
        let _ = move_to(&mut clone, to, &mut turn.of(&mut core));
    }
    send_next(&mut clone, &mut turn.of(&mut core));
    if clone.is_on_trial() {
        finish(&mut clone, &mut turn.of(&mut core));
    }
    let state = Next::Up(clone);
    born.push(Born { core, state });
    send_next(&mut session, turn);
    Next::Up(session)
}

/// Sends queued requests, as many as the window allows.
pub(crate) fn send_next(session: &mut Session, turn: &mut Turn<'_, '_>) {
    live_path::check(session, turn);
    if turn.core.requests.is_idle()
        && let Some(task) = mobike::next(session, turn).or_else(|| follow::next(session, turn))
    {
        send(session, task, turn);
    }
    while turn.core.requests.has_room()
        && !(session.is_to_move() || session.is_to_follow())
        && let Some(task) = session.queue.pop()
    {
        if !task.is_moot(session) {
            send(session, task, turn);
        }
    }
}

/// Sends a request at once.
pub(crate) fn send(session: &mut Session, task: Box<dyn Task>, turn: &mut Turn<'_, '_>) {
    let timers = &turn.ctx.config.timers;
    let mut allowed = task.allowed(session, timers);
    if session.is_patient() {
        allowed = allowed.max(timers.give_up_patient);
    }
    let payloads = task.payloads(session, turn);
    let path = task.path(session, turn.core);
    let (cipher, exchange) = (&mut session.keys.cipher, task.exchange());
    let id = protected::request_on(turn, path, cipher, exchange, payloads, allowed);
    follow::note_sent(session, turn.core);
    session.queue.run(id, task);
}
