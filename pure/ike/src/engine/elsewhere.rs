//! IKE SAs that are initiated again at another place: at the gateway of a redirection
//! (`extension/redirect.rs`), or over TCP (`extension/tcp.rs`).

use super::Engine;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::extension::tcp;
use crate::misuse::CannotRedirect;
use crate::sa::turn::{Fallen, Followed};
use crate::task::redirect;
use model::{IkeSaId, Instant, Path, PeerId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Commands.
impl Engine {
    /// Redirects the peer of an IKE SA, which the peer initiated, to another gateway. The peer
    /// follows by deleting the SA.
    pub fn redirect(
        &mut self,
        sa: IkeSaId,
        to: IpAddr,
        now: Instant,
    ) -> Result<(), CannotRedirect> {
        let mut asked = Err(CannotRedirect::NotUp);
        self.with_established(sa, now, |up, turn| asked = redirect::request(up, to, turn));
        asked
    }
}

impl Engine {
    /// Initiates at the gateways to which we were redirected. The routing table determines our
    /// address.
    pub(crate) fn follow_redirects(&mut self, now: Instant) {
        for followed in std::mem::take(&mut self.out.followed) {
            let Followed {
                old,
                peer,
                path,
                anew,
                to,
            } = followed;
            let ours: IpAddr = match to {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let path = tcp::datagrams(path, self.config.natt_port);
            let there = Path::udp(
                SocketAddr::new(ours, path.local.port()),
                SocketAddr::new(to, path.remote.port()),
            );
            let from = Some(path.remote.ip());
            let event = match self.begin(peer, there, anew, from, now) {
                Ok(sa) => Event::Redirected { old, sa, peer, to },
                Err(_) => outdone(old, peer),
            };
            self.out.events.push_back(event);
        }
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
            let to = path.remote;
            let begun = match self.is_racing(peer) {
                true => self.initiate_beside(peer, path, now),
                false => self.begin(peer, path, anew, None, now),
            };
            let event = match begun {
                Ok(sa) => Event::FellBack { old, sa, peer, to },
                Err(_) => outdone(old, peer),
            };
            self.out.events.push_back(event);
        }
    }
}

/// Returns the end of an IKE SA that is not initiated again, as another attempt is in progress.
const fn outdone(sa: IkeSaId, peer: PeerId) -> Event {
    let why = DownReason::Replaced;
    Event::IkeDown { sa, peer, why }
}

/// Returns true if two paths are the same connection. Our own address may have been unknown at
/// first.
fn is_same(path: Path, named: Path) -> bool {
    let (ours, other) = (path.local.ip(), named.local.ip());
    let local = ours == other || ours.is_unspecified() || other.is_unspecified();
    let ends = (path.carrier, path.local.port(), path.remote);
    path.is_stream() && local && ends == (named.carrier, named.local.port(), named.remote)
}
