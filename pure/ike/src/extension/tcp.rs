//! IKE and ESP in a stream of TCP (RFC 9329), for networks that let no UDP through.
//!
//! Nothing of it is negotiated: a configuration says that a peer listens. "Implementations MUST favor
//! using direct ESP or UDP encapsulation over TCP encapsulation whenever possible" (section 9), so
//! TCP is what is left when nobody answered by UDP. An IKE SA is then begun anew, and stays with TCP
//! unless MOBIKE moves it; how it does that is in `sa/moving.rs`, and which way is tried next is for
//! `mobility`.
//!
//! **Connections have names.** An engine opens no socket. It sends along a path of TCP whose local
//! port it has drawn, and whoever drives it makes the connection of that name if there is none, from
//! that port. "Multiple IKE SAs MUST NOT share a single TCP connection, unless one is a rekey of an
//! existing IKE SA" (section 6.1): so each SA draws its own. A connection that is lost is told by
//! [`Engine::handle_disconnected`]; who began the SA then sends along another one, as the "TCP
//! Originator is responsible for re-establishing the TCP connection" (section 6.1), and the other end
//! answers where that came from. [`Engine::streams`] says which connections are of any use still.
//!
//! A stream loses nothing, so what is under way in it is not sent again; only in a new one it is
//! (section 6.2). It has proved where the peer is, so neither cookies (section 6.3) nor a check of
//! the address (section 7.1) say more. It is cut by nobody, so there are no fragments (section 7.5).

use crate::config::{NATT_PORT, Peer, Timers};
use crate::down_reason::DownReason;
use crate::engine::Engine;
use crate::event::Event;
use crate::sa::established::Established;
use crate::sa::task::Task;
use crate::sa::{Context, Core, Sa, State};
use crypto::Rng;
use model::{IkeSaId, Instant, Path};
use std::net::SocketAddr;

/// So often a first message is sent by UDP before TCP is tried: "the initial message over UDP be
/// retransmitted at least once before falling back to TCP" (section 5.1).
const PATIENCE: u32 = 4;

/// Where ports begin that nobody has a claim to (RFC 6335 section 6).
const FIRST_DYNAMIC: u16 = 49_152;

/// Whether packets may go to a peer in a stream, and the port at which it listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tcp {
    /// Never.
    #[default]
    Off,
    /// When nobody answers by UDP.
    Fallback(u16),
    /// From the first message on.
    Always(u16),
}

/// Where an IKE SA with a peer begins. One that is begun in a stream has it for itself.
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

/// A connection between the same addresses that has not been there before.
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

/// How often a first message is sent.
pub(crate) fn attempts(core: &Core, ctx: &Context<'_>) -> u32 {
    let Timers { attempts, .. } = ctx.config.timers;
    match core.peer(ctx.config).map(|peer| peer.tcp) {
        Some(Tcp::Fallback(_)) if !core.path.is_stream() => attempts.min(PATIENCE),
        _ => attempts,
    }
}

/// Between the same hosts by UDP: whoever is sent to another gateway "MUST first try UDP" there
/// (section 7.2).
pub(crate) fn datagrams(path: Path, natt_port: u16) -> Path {
    match path.is_stream() {
        false => path,
        true => Path::udp(
            SocketAddr::new(path.local.ip(), natt_port),
            SocketAddr::new(path.remote.ip(), NATT_PORT),
        ),
    }
}

/// An SA that nobody answered by UDP, and what takes its place.
pub(crate) struct Fallen {
    old: IkeSaId,
    peer: String,
    path: Path,
    /// Whether what there is stays until the new one is up.
    anew: bool,
}

impl Core {
    /// Nobody answered: by UDP perhaps nobody could. "When switching from UDP to TCP, a new
    /// IKE_SA_INIT exchange MUST be initiated with the Initiator's new SPI" (section 5.1).
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

    /// A path to be taken or tried, by the name of a connection of ours if it is a stream: that of the
    /// one there is, or of the next.
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

    /// Sends a request once more that was not answered in time; in a stream only if that is a new one.
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
    /// The connection is lost: another one is made at once, in which the peer hears of us. If that is
    /// lost before anything came, the next waits as long as a request does that is sent again.
    fn reconnect(&mut self, core: &mut Core, ctx: &mut Context<'_>) {
        if std::mem::replace(&mut core.lost, true) {
            return;
        }
        core.port = 0;
        let path = another(core.path, ctx.rng);
        // "The Initiator MUST retransmit its request over this connection" (section 6.2).
        core.take(path, ctx);
        core.carry(self.children(), ctx);
        if let Some(mobike) = &mut self.mobike {
            mobike.pending = mobike.decides;
        }
        // "It is suggested that the TCP Originator send an UPDATE_SA_ADDRESSES message if MOBIKE is
        // supported and an empty informational message if it is not" (section 6.1).
        match self.mobike.is_some() {
            true => self.send_next(core, ctx),
            false if core.requests.is_idle() => self.ask(Task::Liveness, core, ctx),
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
                state.reconnect(core, ctx);
                State::Established(state)
            }
            state => state,
        };
    }
}

/// Inputs.
impl Engine {
    /// A connection that we asked for, by sending along this path, was not made or is lost.
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
    /// The connections that IKE SAs or their children use; any other may be closed: "Once the SA has
    /// been deleted, the TCP Originator SHOULD close the TCP connection" (section 6.1), and so it
    /// should the old one when an SA has moved (section 7.1).
    pub fn streams(&self) -> impl Iterator<Item = Path> {
        let sas = self.sas.values();
        let sas = sas.filter(|sa| !self.half_open.contains(sa.core.id));
        let used = sas.flat_map(|sa| [sa.core.path, sa.core.proved]);
        used.filter(|path| path.is_stream())
    }
}

impl Engine {
    /// Begins in a stream what nobody answered by UDP.
    pub(crate) fn fall_back(&mut self, now: Instant) {
        for fallen in std::mem::take(&mut self.out.fallen) {
            let Fallen {
                old,
                peer,
                path,
                anew,
            } = fallen;
            // Or it is being made already.
            if let Ok(sa) = self.begin(&peer, path, (anew, None), now) {
                let to = path.remote;
                let event = Event::FellBack { old, sa, peer, to };
                self.out.events.push_back(event);
            }
        }
    }
}

/// Whether two paths are one connection, of which our own address may not have been known at first.
fn is_same(path: Path, named: Path) -> bool {
    let (ours, other) = (path.local.ip(), named.local.ip());
    let local = ours == other || ours.is_unspecified() || other.is_unspecified();
    let ends = (path.carrier, path.local.port(), path.remote);
    path.is_stream() && local && ends == (named.carrier, named.local.port(), named.remote)
}
