//! IKE and ESP over TCP (RFC 9329), for networks that block UDP.
//!
//! TCP is not negotiated: the configuration says that a peer listens. "Implementations MUST favor
//! using direct ESP or UDP encapsulation over TCP encapsulation whenever possible" (section 9), so
//! TCP is used when a peer does not answer by UDP. The IKE SA is then initiated again, and stays on
//! TCP unless MOBIKE moves it. `sa/moving.rs` implements these moves, and `mobility` chooses the
//! path to try next.
//!
//! **A path names a connection.** An engine opens no socket. It sends on a TCP path whose local
//! port it has drawn. The caller establishes the connection from that port if it does not exist.
//! "Multiple IKE SAs MUST NOT share a single TCP connection, unless one is a rekey of an existing
//! IKE SA" (section 6.1), so each SA draws its own port. [`Engine::handle_disconnected`] reports a
//! lost connection. The initiator of the SA then sends on another one, as the "TCP Originator is
//! responsible for re-establishing the TCP connection" (section 6.1), and the other end answers on
//! that connection. [`Engine::streams`] returns the connections that are still in use.
//!
//! TCP loses nothing, so outstanding requests are not retransmitted, except on a new connection
//! (section 6.2). A connection verifies the peer's address, so neither cookies (section 6.3) nor an
//! address check (section 7.1) are needed. TCP segments messages itself, so there are no fragments
//! (section 7.5).

use crate::config::{NATT_PORT, Peer, Tcp, Timers};
use crate::down_reason::DownReason;
use crate::engine::Engine;
use crate::event::Event;
use crate::sa::established::Established;
use crate::sa::task::Task;
use crate::sa::{Context, Core, Sa, State, Turn};
use crypto::Rng;
use model::{IkeSaId, Instant, Path};
use std::net::SocketAddr;
use std::time::Duration;

/// First dynamic port, which is assigned to no service (RFC 6335 section 6).
const FIRST_DYNAMIC: u16 = 49_152;

/// Returns the path of the first message to a peer. An IKE SA that begins over TCP has a connection
/// of its own.
pub(crate) fn first(peer: &Peer, path: Path, rng: &mut Rng) -> Path {
    match (path.is_stream(), peer.tcp) {
        (false, Tcp::Off | Tcp::Fallback(_)) => path,
        (false, Tcp::Always(port)) => {
            let remote = SocketAddr::new(path.remote.ip(), port);
            another(Path::tcp(path.local, remote), rng)
        }
        (true, _) => another(path, rng),
    }
}

/// Returns the name of a new connection between the same addresses.
fn another(mut path: Path, rng: &mut Rng) -> Path {
    let above = rng.u32() % u32::from(u16::MAX - FIRST_DYNAMIC);
    let above = u16::try_from(above).unwrap_or_default();
    let port = match FIRST_DYNAMIC + above {
        port if port == path.local.port() => u16::MAX,
        port => port,
    };
    path.local.set_port(port);
    path
}

/// Returns the time after which a first message is given up.
pub(crate) fn allowed(turn: &Turn<'_, '_>) -> Duration {
    let Timers {
        give_up, fall_back, ..
    } = turn.ctx.config.timers;
    match turn.core.peer(turn.ctx.config).map(|peer| peer.tcp) {
        Some(Tcp::Fallback(_)) if !turn.core.path.is_stream() => fall_back,
        _ => give_up,
    }
}

/// Returns the UDP path between the same hosts: a redirected initiator "MUST first try UDP" at the
/// other gateway (section 7.2).
pub(crate) fn datagrams(path: Path, natt_port: u16) -> Path {
    match path.is_stream() {
        false => path,
        true => Path::udp(
            SocketAddr::new(path.local.ip(), natt_port),
            SocketAddr::new(path.remote.ip(), NATT_PORT),
        ),
    }
}

/// An SA that was not answered by UDP, and the path of its replacement.
pub(crate) struct Fallen {
    old: IkeSaId,
    peer: String,
    path: Path,
    /// True if the existing IKE SA stays until the new one is up.
    anew: bool,
}

impl Core {
    /// Ends an initiation that was not answered, or falls back to TCP if configured, because UDP
    /// may be blocked. "When switching from UDP to TCP, a new IKE_SA_INIT exchange MUST be
    /// initiated with the Initiator's new SPI" (section 5.1).
    pub(crate) fn unanswered(&self, why: DownReason, ctx: &mut Context<'_>) -> State {
        let to = self.path.remote;
        match (
            self.path.is_stream(),
            self.peer(ctx.config).map(|peer| peer.tcp),
        ) {
            (false, Some(Tcp::Fallback(port))) => {
                ctx.out.fallen.push(Fallen {
                    old: self.id,
                    peer: self.name(),
                    path: Path::tcp(self.path.local, SocketAddr::new(to.ip(), port)),
                    anew: self.anew,
                });
                State::Gone
            }
            (false, _) => self.gone(why, ctx),
            (true, _) => self.gone(DownReason::StreamUnanswered { to }, ctx),
        }
    }

    /// Completes a path to use or probe. A TCP path gets the name of the current connection if its
    /// ends are the same, otherwise that of the next one.
    pub(crate) fn named(&mut self, mut path: Path, rng: &mut Rng) -> Path {
        let ends = |path: Path| (path.carrier, path.local.ip(), path.remote);
        if path.is_stream() && ends(path) == ends(self.path) {
            return self.path;
        }
        if path.is_stream() && path.local.port() == 0 {
            if self.port == 0 {
                self.port = another(path, rng).local.port();
            }
            path.local.set_port(self.port);
        }
        path
    }

    /// Retransmits a request that was not answered in time; over TCP only on a new connection.
    pub(crate) fn repeat(&mut self, state: &State, datagrams: &[Vec<u8>], ctx: &mut Context<'_>) {
        if self.path.is_stream() {
            if !self.lost {
                return;
            }
            let children = match state {
                State::Established(state) => state.children(),
                _ => Vec::new(),
            };
            self.path = another(self.path, ctx.rng);
            self.carry(children, ctx);
        }
        ctx.out.counters.retransmitted += 1;
        ctx.out.attempts.sent(self, true);
        ctx.transmit_all(self.path, datagrams);
    }
}

impl Established {
    /// Replaces a lost connection at once, and sends a message on the new one. If that is lost as
    /// well before anything arrived, the next attempt waits for a retransmission.
    fn reconnect(&mut self, turn: &mut Turn<'_, '_>) {
        if std::mem::replace(&mut turn.core.lost, true) {
            return;
        }
        turn.core.port = 0;
        let path = another(turn.core.path, turn.ctx.rng);
        // "The Initiator MUST retransmit its request over this connection" (section 6.2).
        turn.core.switch_to(path, turn.ctx);
        turn.core.carry(self.children(), turn.ctx);
        if let Some(mobike) = &mut self.mobike {
            mobike.pending = mobike.decides;
        }
        // "It is suggested that the TCP Originator send an UPDATE_SA_ADDRESSES message if MOBIKE is
        // supported and an empty informational message if it is not" (section 6.1).
        match self.mobike.is_some() {
            true => self.send_next(turn),
            false if turn.core.requests.is_idle() => self.ask(Task::Liveness, turn),
            false => {}
        }
    }
}

impl Sa {
    fn handle_disconnected(&mut self, ctx: &mut Context<'_>) {
        let core = &mut self.core;
        let to = core.path.remote;
        self.state = match std::mem::replace(&mut self.state, State::Gone) {
            State::InitSent(_) | State::KemSent(_) | State::AuthSent(_) => {
                core.gone(DownReason::NotConnected { to }, ctx)
            }
            State::Established(mut state) => {
                state.reconnect(&mut Turn { core, ctx });
                State::Established(state)
            }
            state => state,
        };
    }
}

/// Inputs.
impl Engine {
    /// Reports that a connection of ours, identified by the path we sent on, could not be
    /// established or was lost.
    pub fn handle_disconnected(&mut self, path: Path, now: Instant) {
        let affected = self.sas.values().filter(|sa| is_same(sa.core.path, path));
        let affected: Vec<_> = affected.map(|sa| sa.core.id).collect();
        for id in affected {
            self.with_sa(id, now, |sa, ctx| sa.handle_disconnected(ctx));
        }
    }
}

/// Getters.
impl Engine {
    /// Returns the connections that IKE SAs or their child SAs use. The caller may close all
    /// others: "Once the SA has been deleted, the TCP Originator SHOULD close the TCP connection"
    /// (section 6.1). The same applies to the old connection of an SA that has moved (section 7.1).
    pub fn streams(&self) -> impl Iterator<Item = Path> {
        let sas = self.sas.values();
        let sas = sas.filter(|sa| !self.half_open.contains(sa.core.id));
        let used = sas.flat_map(|sa| [sa.core.path, sa.core.proved]);
        used.filter(|path| path.is_stream())
    }
}

impl Engine {
    /// Initiates over TCP the IKE SAs that were not answered by UDP.
    pub(crate) fn fall_back(&mut self, now: Instant) {
        for fallen in std::mem::take(&mut self.out.fallen) {
            let Fallen {
                old,
                peer,
                path,
                anew,
            } = fallen;
            // An error means that an IKE SA is being established already.
            if let Ok(sa) = self.begin(&peer, path, anew, None, now) {
                let to = path.remote;
                let event = Event::FellBack { old, sa, peer, to };
                self.out.events.push_back(event);
            }
        }
    }
}

/// Returns true if two paths are the same connection. Our own address may have been unknown at
/// first.
fn is_same(path: Path, named: Path) -> bool {
    let (ours, other) = (path.local.ip(), named.local.ip());
    let local = ours == other || ours.is_unspecified() || other.is_unspecified();
    let ends = (path.carrier, path.local.port(), path.remote);
    path.is_stream() && local && ends == (named.carrier, named.local.port(), named.remote)
}
