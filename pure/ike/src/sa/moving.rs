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
//! SAs, unless their own packets led them elsewhere (`following.rs`). Any update but an answer to
//! that check leads them back.
//!
//! Other messages move nothing: an answer on another path only shows that this path works (section
//! 3.8). A request is sent on several paths for this purpose.

use super::established::Established;
use super::task::Task;
use super::{Arrived, Context, Core, Turn};
use crate::down_reason::{DownReason, PeerMisbehaved};
use crate::event::Event;
use crate::exchange::{find_notify, first_error, notify};
use crate::extension::mobike::{self, Cookie};
use crate::extension::nat;
use crate::misuse::CannotMove;
use crate::refusal::Refusal;
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
    pub(super) payloads: Vec<Payload>,
}

impl Established {
    /// Moves to another path.
    pub(crate) fn move_to(
        &mut self,
        path: Path,
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), CannotMove> {
        if self.children.are_fixed() {
            return Err(CannotMove::Transport);
        }
        let mobike = self.mobike.as_mut().ok_or(CannotMove::NotAgreed)?;
        if !mobike.decides {
            return Err(CannotMove::NotOurs);
        }
        (mobike.pending, mobike.silent, mobike.translated) = (true, false, 0);
        let path = turn.core.named(path, turn.ctx.rng);
        turn.core.switch_to(path, turn.ctx);
        if path.remote.ip() == turn.core.proved.remote.ip() {
            turn.core.carry(self.children(), turn.ctx);
        }
        self.send_next(turn);
        Ok(())
    }

    /// Tests another path with the oldest outstanding request.
    pub(crate) fn probe(&mut self, path: Path, turn: &mut Turn<'_, '_>) {
        if turn.core.requests.is_idle() {
            self.ask(Task::Liveness, turn);
        }
        let path = turn.core.named(path, turn.ctx.rng);
        if let Some(datagrams) = turn.core.requests.oldest() {
            turn.ctx.out.counters.retransmitted += 1;
            turn.ctx.transmit_all(path, datagrams);
        }
        turn.core.requests.exclude();
    }

    /// Returns the time at which a path without responses is reported, unless it has been.
    pub(super) fn silent_at(&self, core: &Core) -> Option<Deadline> {
        let mobike = self.mobike.as_ref()?;
        if !mobike.decides || mobike.silent {
            return None;
        }
        Some(Deadline {
            at: core.requests.unanswered_since()? + SILENT_AFTER,
            reason: "a path without answers is reported",
        })
    }

    /// Reports once that the peer does not answer.
    pub(super) fn note_silence(&mut self, turn: &mut Turn<'_, '_>) {
        let due = self.silent_at(turn.core);
        if due.is_some_and(|deadline| deadline.at <= turn.ctx.now)
            && let Some(mobike) = &mut self.mobike
        {
            mobike.silent = true;
            let (sa, path) = (turn.core.id, turn.core.path);
            turn.ctx.event(Event::PathSilent { sa, path });
        }
    }

    /// Handles an answer on a path.
    pub(super) fn note_answer(&mut self, path: Path, turn: &mut Turn<'_, '_>) {
        let sa = turn.core.id;
        if let Some(mobike) = self.deciding()
            && std::mem::take(&mut mobike.silent)
        {
            turn.ctx.event(Event::PathAnswers { sa, path });
        }
    }

    /// Returns true if a change of path requires a request, for which all others wait.
    pub(super) fn is_to_move(&self) -> bool {
        self.mobike.as_ref().is_some_and(|mobike| mobike.pending)
    }

    /// Returns the request that a change of path requires, ahead of all others.
    pub(super) fn next_move(&mut self, turn: &mut Turn<'_, '_>) -> Option<Task> {
        let mobike = self.mobike.as_mut()?;
        if !std::mem::take(&mut mobike.pending) {
            return None;
        }
        let (cookie, cookie_payload) = mobike::cookie(turn.ctx.rng);
        let mut payloads = Vec::new();
        if mobike.decides {
            payloads.push(mobike::update());
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
            payloads.extend(forbidden.then(|| mobike::no_nats_allowed(turn.core.path)));
        }
        payloads.push(cookie_payload);
        Some(Task::Move(Box::new(Move { cookie, payloads })))
    }

    /// Returns the payloads of a liveness check. The end that chooses the path includes NAT
    /// detection (section 3.8): a NAT may have given it another address, or may be new.
    pub(super) fn liveness_payloads(&mut self, turn: &mut Turn<'_, '_>) -> Vec<Payload> {
        self.deciding().map_or_else(Vec::new, |_| {
            nat::payloads(
                turn.core.spi_i,
                turn.core.spi_r,
                turn.core.path,
                turn.ctx.config,
                turn.ctx.rng,
            )
            .to_vec()
        })
    }

    /// Handles a refusal by a busy peer. The peer may be waiting for our response to a request that
    /// it sends to our previous address behind a NAT. Its refusals count as signs of life, so no
    /// liveness check would reveal our new address. The end that chooses the path therefore checks
    /// its address now.
    pub(super) fn note_busy(&mut self, turn: &mut Turn<'_, '_>) {
        if self.deciding().is_some() {
            self.ask(Task::Whereabouts, turn);
        }
    }

    /// Evaluates the address hashes in a message of the peer. If the peer sees another address of
    /// ours than before, an update is due.
    pub(super) fn note_seen(&mut self, said: &Message, path: Path, core: &Core) {
        let translated = |nat: nat::Nat| nat.ours;
        let now = nat::detect(said, path).is_some_and(translated);
        let before = core.nat.is_some_and(translated);
        let seen = mobike::seen_as(said);
        if let Some(mobike) = self.deciding()
            && seen.is_some()
            && (now || before)
            && mobike.seen != seen
        {
            mobike.seen = seen;
            mobike.pending = true;
        }
    }

    /// Evaluates the answer to our update, or to our check of the peer's new path.
    pub(super) fn conclude_move(
        &mut self,
        moved: &Move,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), DownReason> {
        let Some(mobike) = &mut self.mobike else {
            return Ok(());
        };
        // "If the values do not match, the IKE_SA MUST be closed" (section 3.7).
        let returned = mobike::is_returned(&moved.cookie, response);
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
                turn.core.carry(self.children(), turn.ctx);
            }
            Some(NotifyType::UNEXPECTED_NAT_DETECTED) if mobike.translated < MAX_TRANSLATED => {
                mobike.translated += 1;
                mobike.pending = true;
            }
            Some(why) => {
                let (sa, path) = (turn.core.id, turn.core.path);
                turn.ctx
                    .refused(Some(turn.core.name()), Refusal::MoveRefused(why));
                turn.ctx.event(Event::MoveRefused { sa, path });
                if self.is_on_trial() {
                    return Err(DownReason::NotFollowed);
                }
            }
        }
        Ok(())
    }

    /// Handles the MOBIKE notifies of a request, and returns those of the answer.
    pub(super) fn answer_mobike(
        &mut self,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Vec<Payload> {
        let mut answer: Vec<_> = mobike::echo(request).into_iter().collect();
        let Some(mobike) = &mut self.mobike else {
            return answer;
        };
        let (moves, listed) = (mobike.is_moved(request), mobike.listed(request));
        if moves || listed.is_some() {
            if mobike::is_translated(request, arrived.path) {
                turn.ctx
                    .refused(Some(turn.core.name()), Refusal::Translated);
                answer.push(notify(NotifyType::UNEXPECTED_NAT_DETECTED, Vec::new()));
                return answer;
            }
            if let Some(addresses) = listed {
                mobike.addresses = addresses;
                self.tell_addresses(turn);
            }
            if let Err(why) = self.follow_update(moves, request, arrived, turn) {
                turn.ctx.refused(Some(turn.core.name()), why);
                answer.push(notify(NotifyType::UNACCEPTABLE_ADDRESSES, Vec::new()));
                return answer;
            }
        }
        if find_notify(request, NotifyType::NAT_DETECTION_DESTINATION_IP).is_some() {
            // The peer checks a new path: our NAT may have changed its mapping.
            self.note_seen(request, arrived.path, turn.core);
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
        &mut self,
        moves: bool,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), Refusal> {
        let (Some(mobike), true) = (&self.mobike, moves) else {
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
        turn.core.nat = nat::detect(request, path).or(turn.core.nat);
        // "A TCP handshake proves the routability of the TCP Originator's address; thus, the Return
        // Routability Check SHOULD NOT be performed" (RFC 9329 section 7.1).
        let is_new = path != turn.core.proved || self.returns(path, turn);
        if let Some(mobike) = &mut self.mobike {
            mobike.pending = is_new && !path.is_stream();
        }
        self.end_check(path, turn.core);
        turn.core.switch_to(path, turn.ctx);
        if path.is_stream() {
            turn.core.carry(self.children(), turn.ctx);
        }
        Ok(())
    }

    /// Reports the peer's addresses.
    pub(crate) fn tell_addresses(&self, turn: &mut Turn<'_, '_>) {
        if let Some(mobike) = &self.mobike {
            turn.ctx.event(Event::Mobile {
                sa: turn.core.id,
                decides: mobike.decides,
                path: turn.core.path,
                addresses: mobike.addresses.clone(),
            });
        }
    }

    /// Repeats a request that was dropped with its keys.
    pub(super) fn repeat_move(&mut self) {
        let moves = self.queue.runs(|task| matches!(task, Task::Move(_)));
        if let Some(mobike) = &mut self.mobike {
            mobike.pending |= moves;
            mobike.count_anew();
        }
    }

    fn deciding(&mut self) -> Option<&mut mobike::Mobike> {
        self.mobike.as_mut().filter(|mobike| mobike.decides)
    }
}

impl Core {
    /// Moves IKE messages to another path, outstanding ones at once.
    pub(crate) fn switch_to(&mut self, path: Path, ctx: &mut Context<'_>) {
        if self.path == path {
            return;
        }
        if !is_same_route(path, self.path) {
            self.requests.forget_round_trip();
        }
        self.path = path;
        self.send_again(ctx);
    }

    /// Retransmits the outstanding requests, with all their time.
    pub(super) fn send_again(&mut self, ctx: &mut Context<'_>) {
        let path = self.path;
        let timers = &ctx.config.timers;
        for datagrams in self.requests.restart(timers, ctx.now) {
            ctx.out.counters.retransmitted += 1;
            ctx.transmit_all(path, datagrams);
        }
    }
}

/// Returns true if the round trip that was measured on one path also applies to the other.
/// "Port-only changes are commonly the result of NAT rebinding" (RFC 9000 section 9.4), except
/// where the port belongs to a new connection.
pub(super) fn is_same_route(one: Path, other: Path) -> bool {
    let ends = |path: Path| (path.local.ip(), path.remote.ip());
    one == other || !one.is_stream() && !other.is_stream() && ends(one) == ends(other)
}
