//! IKE and ESP over TCP (RFC 9329), for networks that block UDP.
//!
//! TCP is not negotiated: the configuration says that a peer listens. "Implementations MUST favor
//! using direct ESP or UDP encapsulation over TCP encapsulation whenever possible" (section 9), so
//! TCP is used when a peer does not answer by UDP. The IKE SA is then initiated again, and stays on
//! TCP unless a move of the tunnel takes it elsewhere: `mobility` chooses the path to try next.
//!
//! **A path names a connection.** An engine opens no socket. It sends on a TCP path whose local
//! port it has drawn. The caller establishes the connection from that port if it does not exist.
//! "Multiple IKE SAs MUST NOT share a single TCP connection, unless one is a rekey of an existing
//! IKE SA" (section 6.1), so each SA draws its own port. [`crate::Engine::handle_disconnected`]
//! reports a lost connection. The initiator of the SA then sends on another one, as the "TCP
//! Originator is responsible for re-establishing the TCP connection" (section 6.1), and the other
//! end answers on that connection. [`crate::Engine::streams`] returns the connections that are
//! still in use.
//!
//! TCP loses nothing, so outstanding requests are not retransmitted, except on a new connection
//! (section 6.2). A connection verifies the peer's address, so neither cookies (section 6.3) nor an
//! address check (section 7.1) are needed. TCP segments messages itself, so there are no fragments
//! (section 7.5).

use crate::config::{NATT_PORT, Peer, Tcp, Timers};
use crate::down_reason::DownReason;
use crate::sa::closing::Ending;
use crate::sa::turn::{Fallen, Turn};
use crypto::Rng;
use model::{ChildSaId, Path};
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
pub(crate) fn another(mut path: Path, rng: &mut Rng) -> Path {
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

/// Ends an initiation that was not answered, or falls back to TCP if configured, because UDP may
/// be blocked. "When switching from UDP to TCP, a new IKE_SA_INIT exchange MUST be initiated with
/// the Initiator's new SPI" (section 5.1).
pub(crate) fn unanswered(why: DownReason, turn: &mut Turn<'_, '_>) -> Ending {
    let core = &turn.core;
    let to = core.path.remote;
    let tcp = core.peer(turn.ctx.config).map(|peer| peer.tcp);
    match (core.path.is_stream(), tcp) {
        (false, Some(Tcp::Fallback(port))) => {
            turn.ctx.out.fallen.push(Fallen {
                old: core.id,
                peer: core.peer_id(),
                path: Path::tcp(core.path.local, SocketAddr::new(to.ip(), port)),
                anew: core.anew,
            });
            Ending::Gone
        }
        (false, _) => Ending::gone(why, turn),
        (true, _) => Ending::gone(DownReason::StreamUnanswered { to }, turn),
    }
}

/// Completes a path to use or probe. A TCP path gets the name of the current connection if its
/// ends are the same, otherwise that of the next one.
pub(crate) fn named(turn: &mut Turn<'_, '_>, mut path: Path) -> Path {
    let core = &mut *turn.core;
    let ends = |path: Path| (path.carrier, path.local.ip(), path.remote);
    if path.is_stream() && ends(path) == ends(core.path) {
        return core.path;
    }
    if path.is_stream() && path.local.port() == 0 {
        if core.port == 0 {
            core.port = another(path, turn.ctx.rng).local.port();
        }
        path.local.set_port(core.port);
    }
    path
}

/// Retransmits a request that was not answered in time; over TCP only on a new connection.
pub(crate) fn repeat(turn: &mut Turn<'_, '_>, children: Vec<ChildSaId>, datagrams: &[Vec<u8>]) {
    if turn.core.path.is_stream() {
        if !turn.core.lost {
            return;
        }
        turn.core.path = another(turn.core.path, turn.ctx.rng);
        turn.carry(children);
    }
    turn.ctx.out.counters.retransmitted += 1;
    turn.ctx.out.attempts.sent(turn.core, true);
    turn.ctx.transmit_all(turn.core.path, datagrams);
}
