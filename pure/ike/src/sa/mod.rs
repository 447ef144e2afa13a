//! One IKE SA: the data of all states, and the states.
//!
//! ```text
//!  initiator:  InitSent ── IKE_SA_INIT answered ──> AuthSent ── peer proved ──> Established
//!              InitSent ──> KemSent ── IKE_INTERMEDIATE answered ──> AuthSent
//!  responder:  (stateless) ── IKE_SA_INIT ──> AwaitAuth ── peer proved ──> Established
//!  both:       Established ── close ──> Closing ── answered or given up ──> Gone
//!              Established, AwaitAuth ── ended by a request of the peer ──> Lingering ──> Gone
//!              Established ── rekeyed ──> a new Established, and this one ends:
//!                  by us: Closing        by the peer: Retired ── deleted ──> Lingering
//!              Established ── cloned ──> a new Established, and this one stays
//!              Established ── another took its place, and it was deleted ──> Lingering ──> Gone
//! ```
//!
//! A state is a struct with the data of that state and nothing else. Handling a message consumes
//! the state and returns the next one. For a dropped message, that is the same state.

pub(crate) mod auth_sent;
pub(crate) mod await_auth;
mod child_request;
mod children;
mod cloning;
pub(crate) mod closing;
pub(crate) mod established;
pub(crate) mod following;
mod grants;
mod informational;
pub(crate) mod init_sent;
pub(crate) mod kem_sent;
mod leaving;
mod licences;
mod moving;
mod neighbour;
mod new_child;
mod offered;
mod opening;
mod pace;
pub(crate) mod protected;
mod queue;
mod redirecting;
mod rekey_child;
mod rekey_ike;
mod screen;
mod successor;
pub(crate) mod task;
mod unsure;
mod upkeep;

use crate::attempt::{Attempts, End, Offer};
use crate::child_overrides::ChildOverrides;
use crate::cipher::Cipher;
use crate::config::Peer;
use crate::counters::{Counters, DropReason};
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::extension::fragment::{Inbox, Limit};
use crate::extension::intermediate::AuthTranscript;
use crate::extension::nat::{self, Nat};
use crate::extension::ppk::Ppk;
use crate::extension::redirect::{Followed, Redirects};
use crate::extension::tcp::Fallen;
use crate::ike_spi::IkeSpis;
use crate::peer_table::PeerTable;
use crate::pool::Pools;
use crate::refusal::Refusal;
use crate::signature;
use crate::spi::{self, Fresh};
use crate::window::{Arrival, Due, Requests, Responses};
use auth_sent::AuthSent;
use await_auth::AwaitAuth;
use closing::{Closing, Lingering, Retired};
use crypto::{Rng, UnixTime};
use established::Established;
use following::Checks;
use init_sent::InitSent;
use kem_sent::KemSent;
use model::{ChildSaId, Deadline, IkeSaId, Instant, Path, Transmit};
use protected::Unlocked;
use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use wire::ike::{Datagram, ExchangeType, Flags, Header, Message, VERSION_2};

/// One IKE SA.
pub(crate) struct Sa {
    pub(crate) core: Core,
    pub(crate) state: State,
}

/// The data that every state has.
pub(crate) struct Core {
    pub(crate) id: IkeSaId,
    /// The peer's name in the configuration. A responder learns it in IKE_AUTH.
    pub(crate) peer: Option<String>,
    /// True if we are the original initiator.
    pub(crate) initiator: bool,
    /// Time at which its first message was sent or received.
    pub(crate) began: Instant,
    /// True if the SA is not up yet, and replaces another one once it is.
    pub(crate) anew: bool,
    pub(crate) spi_i: u64,
    pub(crate) spi_r: u64,
    /// Path of its messages.
    pub(crate) path: Path,
    /// The newest verified path to the peer.
    pub(crate) proved: Path,
    /// Path of the child SAs' packets: the verified path, possibly without UDP.
    pub(crate) esp: Path,
    /// Result of NAT detection; `None` if the peer does not support NAT traversal.
    pub(crate) nat: Option<Nat>,
    /// Maximum size of unfragmented messages; `None` if fragments were not negotiated.
    pub(crate) limit: Option<Limit>,
    /// Our port of its next TCP connection, zero until drawn.
    pub(crate) port: u16,
    /// True if its TCP connection is lost, and nothing has arrived on another one yet.
    pub(crate) lost: bool,
    pub(crate) requests: Requests,
    pub(crate) responses: Responses,
    /// Fragments of incomplete messages.
    pub(crate) inbox: Inbox,
    /// The last IKE_INTERMEDIATE messages, which AUTH covers in addition to the first messages.
    pub(crate) transcript: AuthTranscript,
}

pub(crate) enum State {
    InitSent(Box<InitSent>),
    KemSent(Box<KemSent>),
    AuthSent(Box<AuthSent>),
    AwaitAuth(Box<AwaitAuth>),
    Established(Box<Established>),
    Closing(Box<Closing>),
    Retired(Box<Retired>),
    Lingering(Lingering),
    Gone,
}

/// The parts of the engine that an SA uses while it handles an input.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a PeerTable,
    pub(crate) barred: &'a BTreeSet<String>,
    pub(crate) overrides: &'a ChildOverrides,
    pub(crate) rng: &'a mut Rng,
    pub(crate) ike_spis: &'a mut IkeSpis,
    pub(crate) spis: &'a mut spi::Sequence,
    pub(crate) out: &'a mut Output,
    /// Addresses to lease.
    pub(crate) pools: &'a mut Pools,
    /// Other IKE SAs with the same peer that are up.
    pub(crate) beside: Beside,
    pub(crate) now: Instant,
    /// Wall-clock time.
    pub(crate) today: UnixTime,
}

/// The IKE SAs with a peer that are up, except the one that handles an input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    /// Number of IKE SAs.
    pub(crate) sas: usize,
    /// Number of their child SAs.
    pub(crate) children: usize,
    /// Names of current child SAs of IKE SAs that replace another one, with the id of that one.
    pub(crate) inherited: Vec<(IkeSaId, Option<String>)>,
}

/// One input of an IKE SA: the data of all its states, and the parts of the engine that it uses.
pub(crate) struct Turn<'t, 'c> {
    pub(crate) core: &'t mut Core,
    pub(crate) ctx: &'t mut Context<'c>,
}

impl<'c> Turn<'_, 'c> {
    /// Returns the turn of another SA in its place, such as a successor.
    pub(crate) const fn of<'t>(&'t mut self, core: &'t mut Core) -> Turn<'t, 'c> {
        let ctx = &mut *self.ctx;
        Turn { core, ctx }
    }
}

impl Context<'_> {
    /// Returns true if a clone or a re-authenticated IKE SA has a replacement for this child SA.
    pub(crate) fn is_inherited(&self, sa: IkeSaId, name: Option<&str>) -> bool {
        let mut inherited = self.beside.inherited.iter();
        inherited.any(|(from, child)| *from == sa && child.as_deref() == name)
    }
}

/// Outputs of SAs, for the caller or the engine.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) transmits: VecDeque<Transmit>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) counters: Counters,
    pub(crate) attempts: Attempts,
    pub(crate) children: u64,
    /// Number of IKE SA ids assigned so far.
    pub(crate) sas: u64,
    /// SAs created by SAs: successors, their remains and clones. The engine inserts them.
    pub(crate) successors: Vec<Sa>,
    /// SAs of ours to re-authenticate. The engine initiates the new SAs.
    pub(crate) unproved: Vec<IkeSaId>,
    /// Redirections to follow. The engine initiates there.
    pub(crate) followed: Vec<Followed>,
    pub(crate) redirects: Redirects,
    /// Rate limits for checking new addresses of peers.
    pub(crate) checks: Checks,
    /// SAs that were not answered by UDP. The engine initiates over TCP.
    pub(crate) fallen: Vec<Fallen>,
}

/// A datagram that belongs to an SA.
pub(crate) struct Arrived<'a> {
    pub(crate) datagram: Datagram<'a>,
    pub(crate) octets: &'a [u8],
    pub(crate) path: Path,
    /// The content, from [`Sa::screen`] to the state, so that a message is decrypted once.
    pub(crate) opened: Cell<Option<Unlocked>>,
}

impl<'a> Arrived<'a> {
    pub(crate) fn new(datagram: Datagram<'a>, octets: &'a [u8], path: Path) -> Self {
        Self {
            datagram,
            octets,
            path,
            opened: Cell::default(),
        }
    }
}

impl Sa {
    /// Handles a datagram that passed [`Self::screen`].
    pub(crate) fn handle(&mut self, arrived: &Arrived<'_>, ctx: &mut Context<'_>) {
        let core = &mut self.core;
        let turn = &mut Turn { core, ctx };
        self.state = match std::mem::replace(&mut self.state, State::Gone) {
            State::InitSent(state) => state.handle(arrived, turn),
            State::KemSent(state) => state.handle(arrived, turn),
            State::AuthSent(state) => state.handle(arrived, turn),
            State::AwaitAuth(state) => state.handle(arrived, turn),
            State::Established(state) => state.handle(arrived, turn),
            State::Closing(state) => state.handle(arrived, turn),
            State::Retired(state) => state.handle(arrived, turn),
            state @ (State::Lingering(_) | State::Gone) => state,
        };
        self.maintain(ctx);
    }

    /// Performs the actions that are due.
    pub(crate) fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        let core = &mut self.core;
        ctx.out.counters.incomplete += core.inbox.expire(ctx.now);
        if let Some(cipher) = self.state.cipher() {
            core.cut_smaller(cipher, ctx);
        }
        let due = core.requests.handle_timeout(&ctx.config.timers, ctx.now);
        if let Due::Again(datagrams) = due {
            if let State::Established(state) = &mut self.state
                && state.repeat_there(&datagrams, ctx)
            {
                return;
            }
            core.repeat(&self.state, &datagrams, ctx);
            return;
        }
        let gave_up = match due {
            Due::GiveUp(attempts) => Some(attempts),
            Due::Nothing | Due::Again(_) => None,
        };
        let turn = &mut Turn { core, ctx };
        self.state = match (std::mem::replace(&mut self.state, State::Gone), gave_up) {
            (State::InitSent(state), Some(_)) => state.give_up(turn),
            (State::KemSent(state), Some(_)) => state.give_up(turn),
            (State::AuthSent(state), Some(_)) => state.give_up(turn),
            (State::Established(state), Some(n)) => state.give_up(n, turn),
            // The peer finds out on its own.
            (State::Closing(_), Some(_)) => State::Gone,
            (State::AwaitAuth(state), _) => state.handle_timeout(turn.ctx),
            (State::Established(state), None) => state.handle_timeout(turn),
            (State::Retired(state), _) => state.handle_timeout(turn),
            (State::Lingering(state), _) => state.handle_timeout(turn),
            (state, _) => state,
        };
        self.maintain(ctx);
    }

    /// Requests child SAs that are missing after an input.
    fn maintain(&mut self, ctx: &mut Context<'_>) {
        if let Some((state, mut turn)) = self.up(ctx) {
            if state.is_to_follow() {
                state.send_next(&mut turn);
            }
            state.maintain(&mut turn);
        }
    }

    /// Returns the next deadline of this SA.
    pub(crate) fn poll_timeout(&self, config: &PeerTable) -> Option<Deadline> {
        let own = match &self.state {
            State::AwaitAuth(state) => Some(state.deadline()),
            State::Established(state) => state.deadline(&self.core, config),
            State::Retired(state) => Some(state.deadline()),
            State::Lingering(state) => Some(state.deadline()),
            State::InitSent(_) | State::KemSent(_) | State::AuthSent(_) => None,
            State::Closing(_) | State::Gone => None,
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
        self.state = match std::mem::replace(&mut self.state, State::Gone) {
            State::Established(state) => state.close(why, &mut Turn { core, ctx }),
            State::InitSent(_) | State::KemSent(_) | State::AuthSent(_) => core.gone(why, ctx),
            State::AwaitAuth(_) | State::Retired(_) => State::Gone,
            state => state,
        };
    }

    /// Returns true if we initiated the SA and it is not up yet.
    pub(crate) const fn is_being_made(&self) -> bool {
        matches!(
            self.state,
            State::InitSent(_) | State::KemSent(_) | State::AuthSent(_)
        )
    }

    /// Returns true if nothing is left of the SA but its last answers, or its Delete.
    pub(crate) const fn has_ended(&self) -> bool {
        match &self.state {
            State::Closing(_) | State::Retired(_) => true,
            State::Lingering(state) => state.is_childless(),
            _ => false,
        }
    }

    pub(crate) fn established(&self) -> Option<&Established> {
        match &self.state {
            State::Established(state) => Some(state),
            _ => None,
        }
    }

    /// Returns the state and a turn of an SA that is up.
    pub(crate) fn up<'t, 'c>(
        &'t mut self,
        ctx: &'t mut Context<'c>,
    ) -> Option<(&'t mut Established, Turn<'t, 'c>)> {
        let (core, state) = self.established_mut()?;
        Some((state, Turn { core, ctx }))
    }

    pub(crate) fn established_mut(&mut self) -> Option<(&mut Core, &mut Established)> {
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
            Self::KemSent(state) => Some(&mut state.next.keys.cipher),
            Self::AuthSent(state) => Some(&mut state.keys.cipher),
            Self::Established(state) => Some(&mut state.keys.cipher),
            Self::Closing(state) => Some(&mut state.keys.cipher),
            Self::InitSent(_) | Self::AwaitAuth(_) | Self::Retired(_) => None,
            Self::Lingering(_) | Self::Gone => None,
        }
    }
}

impl Core {
    /// Returns the SPI in messages to us.
    pub(crate) const fn own_spi(&self) -> u64 {
        match self.initiator {
            true => self.spi_i,
            false => self.spi_r,
        }
    }

    /// Returns the peer, once known, as long as it is configured.
    pub(crate) fn peer<'c>(&self, config: &'c PeerTable) -> Option<&'c Peer> {
        config.peer(self.peer.as_deref()?)
    }

    /// Returns the PPK shared with the peer.
    pub(crate) fn ppk<'c>(&self, config: &'c PeerTable) -> Option<&'c Ppk> {
        self.peer(config)?.ppk.as_deref()
    }

    /// Returns the peer's name, empty until known.
    pub(crate) fn name(&self) -> String {
        self.peer.clone().unwrap_or_default()
    }

    /// Creates the header of a message to the peer.
    pub(crate) const fn header(
        &self,
        exchange: ExchangeType,
        message_id: u32,
        response: bool,
    ) -> Header {
        Header {
            spi_i: self.spi_i,
            spi_r: self.spi_r,
            version: VERSION_2,
            exchange,
            flags: Flags {
                initiator: self.initiator,
                higher_version: false,
                response,
            },
            message_id,
        }
    }

    /// Returns the reason for which the peer refused our proof, as far as known. `ppk` is the PPK
    /// in the proof.
    pub(crate) fn proof_refused(
        &self,
        refusal: &Message,
        ppk: Option<&Ppk>,
        ctx: &Context<'_>,
    ) -> DownReason {
        let ours = ctx.config.identity.clone();
        let peer = self.peer(ctx.config);
        let signed = peer.is_some_and(|peer| peer.psk.is_none());
        let by_key = peer.is_some_and(|peer| peer.psk.is_none() && peer.key.is_some());
        let why = signature::explained(refusal);
        match ppk {
            Some(Ppk { id, .. }) if why.is_none() => {
                let id = id.clone();
                DownReason::PpkRefused { ours, id }
            }
            _ if by_key => DownReason::KeyRefused { ours },
            _ if signed => DownReason::CertificateRefused { ours, why },
            _ => DownReason::AuthenticationRefused { ours },
        }
    }

    /// Reports that the SA is down, and ends it.
    pub(crate) fn gone(&self, why: DownReason, ctx: &mut Context<'_>) -> State {
        self.announce_down(why, ctx);
        State::Gone
    }

    pub(crate) fn announce_down(&self, why: DownReason, ctx: &mut Context<'_>) {
        let end = End::Down(why.clone());
        ctx.out.attempts.end(self, end, ctx.config);
        let (sa, peer) = (self.id, self.name());
        match self.anew && ctx.is_acquainted() {
            // The old SA stays up, so there is no `IkeDown`.
            true => ctx.refused(Some(peer), Refusal::NotReauthenticated(Box::new(why))),
            false => ctx.event(Event::IkeDown { sa, peer, why }),
        }
    }

    /// Moves the child SAs' packets to the path of IKE messages.
    pub(crate) fn carry(&mut self, children: Vec<ChildSaId>, ctx: &mut Context<'_>) {
        self.proved = self.path;
        self.carry_to(self.path, children, ctx);
    }

    /// Has child SAs send on a path, wherever IKE messages go.
    fn carry_to(&mut self, path: Path, children: Vec<ChildSaId>, ctx: &mut Context<'_>) {
        let path = nat::esp_path(path, self.nat, ctx.config);
        if self.esp != path {
            self.esp = path;
            let sa = self.id;
            ctx.event(Event::PathMoved { sa, children, path });
        }
    }
}

impl Output {
    /// Returns a new id for an IKE SA.
    pub(crate) const fn sa_id(&mut self) -> IkeSaId {
        self.sas += 1;
        IkeSaId(self.sas)
    }
}

impl Context<'_> {
    /// Returns true if another IKE SA with the same peer is up.
    pub(crate) const fn is_acquainted(&self) -> bool {
        self.beside.sas > 0
    }

    /// Sends a message. It gets the non-ESP marker on the shared port (RFC 3948 section 2.2), and
    /// on a TCP connection (RFC 9329 section 3.1).
    pub(crate) fn transmit(&mut self, path: Path, message: &[u8]) {
        let marked = path.is_stream() || path.local.port() == self.config.natt_port;
        let marker: &[u8] = if marked { &[0; 4] } else { &[] };
        self.out.counters.sent += 1;
        self.out.transmits.push_back(Transmit {
            path,
            payload: [marker, message].concat(),
        });
    }

    /// Sends a message in one datagram or in fragments.
    pub(crate) fn transmit_all(&mut self, path: Path, datagrams: &[Vec<u8>]) {
        self.out.counters.fragmented += u64::from(datagrams.len() > 1);
        for datagram in datagrams {
            self.transmit(path, datagram);
        }
    }

    /// Answers a retransmitted request, or drops it.
    pub(crate) fn answer_again(&mut self, arrival: Arrival, path: Path) {
        match arrival {
            Arrival::Again(answer) => {
                self.out.counters.answered_again += 1;
                self.transmit_all(path, &answer);
            }
            Arrival::TooOften => self.drop(DropReason::RepeatedTooOften),
            Arrival::Elsewhere => self.drop(DropReason::RepeatedElsewhere),
            Arrival::New | Arrival::Unexpected => self.drop(DropReason::MessageId),
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.out.events.push_back(event);
    }

    pub(crate) fn refused(&mut self, peer: Option<String>, why: Refusal) {
        if let Some(peer) = &peer {
            self.out.attempts.remark(peer, &why);
        }
        let from = None;
        self.event(Event::Refused { peer, from, why });
    }

    /// Reports the refusal of an initiator that is not authenticated.
    pub(crate) fn refused_unknown_peer(&mut self, from: SocketAddr, why: Refusal) {
        let (peer, from) = (None, Some(from));
        self.event(Event::Refused { peer, from, why });
    }

    /// Starts the record of the attempt by which an SA is established.
    pub(crate) fn attempt(&mut self, core: &Core, theirs: Offer) {
        let attempts = &mut self.out.attempts;
        attempts.begin(core, self.config, theirs, self.now);
    }

    pub(crate) const fn drop(&mut self, why: DropReason) {
        self.out.counters.drop(why);
    }

    /// Counts the current datagram as acted upon.
    pub(crate) const fn count_taken(&mut self) {
        self.out.counters.taken += 1;
    }

    /// Returns a new id for an IKE SA.
    pub(crate) const fn sa_id(&mut self) -> IkeSaId {
        self.out.sa_id()
    }

    /// Draws an SPI for an IKE SA. Two of ours share 48 random bits so rarely that nothing checks
    /// it; the older SA would not be heard any more.
    pub(crate) fn ike_spi(&mut self) -> u64 {
        self.ike_spis.draw(self.rng)
    }

    /// Returns a source of SPIs for one child SA of an IKE SA.
    pub(crate) fn spis(&mut self, sa: IkeSaId, name: Option<&str>) -> Fresh<'_> {
        Fresh::new(self.spis, self.config.workers, sa, name)
    }

    pub(crate) const fn child_id(&mut self) -> ChildSaId {
        self.out.children += 1;
        ChildSaId(self.out.children)
    }
}
