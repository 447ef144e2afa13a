//! One IKE SA: the data of all states, and the states.
//!
//! ```text
//!  initiator:  InitSent ── IKE_SA_INIT answered ──> AuthSent ── peer proved ──> Established
//!              InitSent ──> KemSent ── IKE_INTERMEDIATE answered ──> AuthSent
//!              ResumeSent ── IKE_SESSION_RESUME answered ──> AuthSent
//!              ResumeSent ── SKID_RESUME answered ──> Established
//!  responder:  (stateless) ── IKE_SA_INIT ──> AwaitAuth ── peer proved ──> Established
//!              (stateless) ── IKE_SESSION_RESUME ──> AwaitEntry ── entry read ──> AwaitAuth
//!              (stateless) ── SKID_RESUME ──> AwaitEntry ── entry read ──> AwaitProof
//!              AwaitProof ── third message, entry taken ──> Established
//!  both:       Established ── close ──> Closing ── answered or given up ──> Gone
//!              Established, AwaitAuth ── ended by a request of the peer ──> Lingering ──> Gone
//!              AwaitProof ── refused ──> Lingering ──> Gone
//!              Established ── rekeyed ──> a new Established, and this one ends:
//!                  by us: Closing        by the peer: Retired ── deleted ──> Lingering
//!              Established ── cloned ──> a new Established, and this one stays
//!              Established ── another took its place, and it was deleted ──> Lingering ──> Gone
//! ```
//!
//! A state is a struct with the data of that state and nothing else. Handling a message consumes
//! the state and returns the next one. For a dropped message, that is the same state.

mod admission;
pub(crate) mod arrived;
pub(crate) mod auth_sent;
pub(crate) mod await_auth;
pub(crate) mod await_entry;
pub(crate) mod await_proof;
pub(crate) mod closing;
pub(crate) mod core;
pub(crate) mod established;
mod first_answer;
pub(crate) mod first_message;
pub(crate) mod init_sent;
pub(crate) mod kem_sent;
pub(crate) mod protected;
pub(crate) mod resume_sent;
mod screen;
pub(crate) mod turn;

use crate::cipher::Cipher;
use crate::counters::DropReason;
use crate::down_reason::DownReason;
use crate::extension::tcp;
use crate::peer_table::PeerTable;
use crate::session::Session;
use crate::task::{follow, live_path, measure, stream};
use crate::window::Due;
use arrived::Arrived;
use auth_sent::AuthSent;
use await_auth::AwaitAuth;
use await_entry::{AwaitEntry, Known};
use await_proof::{AwaitProof, Proving};
use closing::Ending;
use core::Core;
use established::Next;
use init_sent::InitSent;
use kem_sent::KemSent;
use model::{Deadline, PeerId};
use resume_sent::{ResumeSent, Resuming};
use resumption::Entry;
use std::net::IpAddr;
use turn::{Context, Turn, Verdict};

/// One IKE SA.
pub(crate) struct Sa {
    pub(crate) core: Core,
    pub(crate) state: State,
}

pub(crate) enum State {
    InitSent(Box<InitSent>),
    ResumeSent(Box<ResumeSent>),
    KemSent(Box<KemSent>),
    AuthSent(Box<AuthSent>),
    AwaitEntry(Box<AwaitEntry>),
    AwaitAuth(Box<AwaitAuth>),
    AwaitProof(Box<AwaitProof>),
    Established(Box<Session>),
    Ending(Ending),
}

impl State {
    pub(crate) const GONE: Self = Self::Ending(Ending::Gone);
}

impl From<Next> for State {
    fn from(next: Next) -> Self {
        match next {
            Next::Up(session) => Self::Established(session),
            Next::Ended(ending) => Self::Ending(ending),
        }
    }
}

impl From<Proving> for State {
    fn from(proving: Proving) -> Self {
        match proving {
            Proving::Waits(state) => Self::AwaitProof(state),
            Proving::Done(next) => next.into(),
        }
    }
}

impl From<Ending> for State {
    fn from(ending: Ending) -> Self {
        Self::Ending(ending)
    }
}

impl Sa {
    /// Handles a datagram that passed [`Self::screen`]. Returns the SAs that it creates.
    pub(crate) fn handle(&mut self, arrived: &Arrived<'_>, ctx: &mut Context<'_>) -> Vec<Self> {
        let core = &mut self.core;
        let turn = &mut Turn { core, ctx };
        let mut born = Vec::new();
        self.state = match std::mem::replace(&mut self.state, State::GONE) {
            State::InitSent(state) => state.handle(arrived, turn),
            State::ResumeSent(state) => match state.handle(arrived, turn) {
                Resuming::Waits(state) => State::ResumeSent(state),
                Resuming::Answered { proof, private } => AuthSent::begin(*proof, private, turn),
                Resuming::Done(next) => next.into(),
            },
            State::KemSent(state) => state.handle(arrived, turn),
            State::AuthSent(state) => state.handle(arrived, turn),
            // The initiator waits for our answer, which needs the entry.
            State::AwaitEntry(state) => {
                turn.ctx.drop(DropReason::UnexpectedExchange);
                State::AwaitEntry(state)
            }
            State::AwaitAuth(state) => state.handle(arrived, turn),
            State::AwaitProof(state) => state.handle(arrived, turn).into(),
            State::Established(session) => {
                established::handle(session, arrived, &mut born, turn).into()
            }
            State::Ending(state) => state.handle(arrived, turn).into(),
        };
        self.finish(ctx);
        let born = born.into_iter().map(|sa| Self {
            core: sa.core,
            state: sa.state.into(),
        });
        born.collect()
    }

    /// Handles the entry of the session that an initiator resumes; `None` if there is none.
    pub(crate) fn handle_entry(&mut self, entry: Option<Box<Entry>>, ctx: &mut Context<'_>) {
        let core = &mut self.core;
        let turn = &mut Turn { core, ctx };
        self.state = match std::mem::replace(&mut self.state, State::GONE) {
            State::AwaitEntry(state) => match state.proceed(entry, turn) {
                Ok(Known::ByTicket(resumer)) => AwaitAuth::resumed(*resumer),
                Ok(Known::BySkid(state)) => State::AwaitProof(state),
                Err(refused) => refused.into(),
            },
            state => state,
        };
    }

    /// Handles whether the store has taken this entry for an initiator that knows its keys.
    pub(crate) fn handle_taken(&mut self, was_there: bool, ctx: &mut Context<'_>) {
        let core = &mut self.core;
        let turn = &mut Turn { core, ctx };
        self.state = match std::mem::replace(&mut self.state, State::GONE) {
            State::AwaitAuth(state) => state.handle_taken(was_there, turn),
            State::AwaitProof(state) => state.handle_taken(was_there, turn).into(),
            state => state,
        };
        self.finish(ctx);
    }

    /// Handles the engine's decision about an initiator that has proved itself.
    pub(crate) fn handle_verdict(&mut self, verdict: Verdict, ctx: &mut Context<'_>) {
        let core = &mut self.core;
        let turn = &mut Turn { core, ctx };
        self.state = match std::mem::replace(&mut self.state, State::GONE) {
            State::AwaitAuth(state) => state.handle_verdict(verdict, turn),
            State::AwaitProof(state) => state.handle_verdict(&verdict, turn).into(),
            state => state,
        };
        self.finish(ctx);
    }

    /// Performs the actions that are due.
    pub(crate) fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        let core = &mut self.core;
        let turn = &mut Turn { core, ctx };
        turn.ctx.out.counters.incomplete += turn.core.inbox.expire(turn.ctx.now);
        if let Some(cipher) = self.state.cipher() {
            protected::cut_smaller(turn, cipher);
        }
        let timers = &turn.ctx.config.timers;
        let due = turn.core.requests.handle_timeout(timers, turn.ctx.now);
        if let Due::Again(datagrams) = due {
            if let State::ResumeSent(state) = &mut self.state {
                state.note_silence(turn);
                if !state.note_shown(turn) {
                    self.state = State::GONE;
                    return;
                }
            }
            let mut children = Vec::new();
            if let State::Established(state) = &mut self.state {
                if follow::repeat_there(state, &datagrams, turn.ctx)
                    || live_path::repeat_apart(state, &datagrams, turn)
                {
                    return;
                }
                measure::note_loss(state, turn);
                children = state.children.on_path_of_ike();
            }
            tcp::repeat(turn, children, &datagrams);
            return;
        }
        let gave_up = match due {
            Due::GiveUp(attempts) => Some(attempts),
            Due::Nothing | Due::Again(_) => None,
        };
        self.state = match (std::mem::replace(&mut self.state, State::GONE), gave_up) {
            (State::InitSent(state), Some(_)) => state.give_up(turn),
            // The full exchange that has begun beside tells the outcome.
            (State::ResumeSent(state), Some(_)) => {
                state.give_up(turn);
                State::GONE
            }
            (State::KemSent(state), Some(_)) => state.give_up(turn),
            (State::AuthSent(state), Some(_)) => state.give_up(turn),
            (State::Established(session), Some(n)) => established::give_up(session, n, turn).into(),
            (State::AwaitEntry(state), _) => match state.is_over(turn.ctx.now) {
                true => state.refuse(turn).into(),
                false => State::AwaitEntry(state),
            },
            (State::AwaitAuth(state), _) => state.handle_timeout(turn.ctx),
            (State::AwaitProof(state), _) if state.is_over(turn.ctx) => State::GONE,
            (State::Established(session), None) => {
                established::handle_timeout(session, turn).into()
            }
            (State::Ending(state), _) => state.handle_timeout(gave_up.is_some(), turn).into(),
            (state, _) => state,
        };
        self.finish(ctx);
    }

    /// Ends a turn: an SA that is up sends what it has queued.
    pub(crate) fn finish(&mut self, ctx: &mut Context<'_>) {
        if let Some((session, mut turn)) = self.up(ctx) {
            established::finish(session, &mut turn);
        }
    }

    /// Handles the loss of its TCP connection.
    pub(crate) fn handle_disconnected(&mut self, ctx: &mut Context<'_>) {
        let core = &mut self.core;
        let to = core.path.remote;
        let turn = &mut Turn { core, ctx };
        self.state = match std::mem::replace(&mut self.state, State::GONE) {
            State::InitSent(_) | State::KemSent(_) | State::AuthSent(_) => {
                Ending::gone(DownReason::NotConnected { to }, turn).into()
            }
            State::ResumeSent(state) => {
                state.give_up(turn);
                Ending::gone(DownReason::NotConnected { to }, turn).into()
            }
            State::Established(mut session) => {
                stream::reconnect(&mut session, turn);
                established::send_next(&mut session, turn);
                State::Established(session)
            }
            state => state,
        };
    }

    /// Returns the next deadline of this SA.
    pub(crate) fn poll_timeout(&self, config: &PeerTable) -> Option<Deadline> {
        let own = match &self.state {
            State::AwaitEntry(state) => Some(state.deadline()),
            State::AwaitAuth(state) => Some(state.deadline()),
            State::AwaitProof(state) => Some(state.deadline()),
            State::Established(session) => established::deadline(session, &self.core, config),
            State::Ending(state) => state.deadline(),
            State::InitSent(_) | State::ResumeSent(_) | State::KemSent(_) | State::AuthSent(_) => {
                None
            }
        };
        let incomplete = self.core.inbox.deadline().map(|at| Deadline {
            at,
            reason: "discard the fragments of an incomplete message",
        });
        let request = self.core.requests.poll_timeout();
        request.into_iter().chain(incomplete).chain(own).min()
    }

    /// Closes the SA in an orderly way, for the reason `why`.
    pub(crate) fn close(&mut self, why: DownReason, ctx: &mut Context<'_>) {
        let core = &mut self.core;
        self.state = match std::mem::replace(&mut self.state, State::GONE) {
            State::Established(session) => {
                established::close(session, why, &mut Turn { core, ctx }).into()
            }
            State::InitSent(_) | State::ResumeSent(_) | State::KemSent(_) | State::AuthSent(_) => {
                Ending::gone(why, &mut Turn { core, ctx }).into()
            }
            State::AwaitEntry(_)
            | State::AwaitAuth(_)
            | State::AwaitProof(_)
            | State::Ending(Ending::Retired(_)) => State::GONE,
            state => state,
        };
    }

    /// Returns true if we initiated the SA and it is not up yet.
    pub(crate) const fn is_being_made(&self) -> bool {
        matches!(
            self.state,
            State::InitSent(_) | State::ResumeSent(_) | State::KemSent(_) | State::AuthSent(_)
        )
    }

    /// Returns true if its first message has no acceptable answer yet.
    pub(crate) const fn is_unanswered(&self) -> bool {
        matches!(self.state, State::InitSent(_) | State::ResumeSent(_))
    }

    /// Returns true if it waits for an answer together with attempts at other addresses.
    pub(crate) const fn is_racing(&self) -> bool {
        self.core.raced && self.is_unanswered()
    }

    /// Returns true if another attempt may begin beside this one: an unauthenticated message
    /// refused it, or its responder may have lost it, as IKE_SA_INIT was answered and a later
    /// request is not.
    pub(crate) fn allows_another(&self) -> bool {
        let began = matches!(self.state, State::KemSent(_) | State::AuthSent(_));
        self.core.refused || began && self.core.requests.tries() > 1
    }

    /// Returns true if nothing is left of the SA but its last answers, or its Delete.
    pub(crate) const fn has_ended(&self) -> bool {
        match &self.state {
            State::Ending(state) => state.has_ended(),
            _ => false,
        }
    }

    pub(crate) fn established(&self) -> Option<&Session> {
        match &self.state {
            State::Established(state) => Some(state),
            _ => None,
        }
    }

    /// Returns the peer, and its address of the child SAs in transport mode; `None` without any.
    pub(crate) fn placed_at(&self) -> Option<(IpAddr, PeerId)> {
        let up = self.established()?;
        let at = (self.core.esp.remote.ip(), self.core.peer_id());
        up.children.are_fixed().then_some(at)
    }

    /// Returns the state and a turn of an SA that is up.
    pub(crate) fn up<'t, 'c>(
        &'t mut self,
        ctx: &'t mut Context<'c>,
    ) -> Option<(&'t mut Session, Turn<'t, 'c>)> {
        let (core, state) = self.established_mut()?;
        Some((state, Turn { core, ctx }))
    }

    pub(crate) fn established_mut(&mut self) -> Option<(&mut Core, &mut Session)> {
        match &mut self.state {
            State::Established(state) => Some((&mut self.core, state)),
            _ => None,
        }
    }
}

impl State {
    /// Returns the cipher of a state that may have an outstanding request.
    fn cipher(&mut self) -> Option<&mut Cipher> {
        match self {
            Self::KemSent(state) => Some(&mut state.proof.handshake.keys.cipher),
            Self::AuthSent(state) => Some(&mut state.proof.handshake.keys.cipher),
            Self::Established(state) => Some(&mut state.keys.cipher),
            Self::Ending(Ending::Closing(state)) => Some(&mut state.keys.cipher),
            Self::InitSent(_)
            | Self::ResumeSent(_)
            | Self::AwaitEntry(_)
            | Self::AwaitAuth(_)
            | Self::AwaitProof(_)
            | Self::Ending(_) => None,
        }
    }
}
