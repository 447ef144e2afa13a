//! IKE SAs that are initiated again at another place: at the gateway of a redirection
//! (`extension/redirect.rs`), or over TCP (`extension/tcp.rs`).

use super::Engine;
use crate::allowed_suites::AllowedIkeSuites;
use crate::destination::Destination;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::extension::redirect::is_listed;
use crate::extension::tcp;
use crate::misuse::{ApiMisuse, CannotRedirect};
use crate::sa::init_sent::InitSent;
use crate::sa::turn::{Fallen, Followed};
use crate::task::redirect;
use model::{IkeSaId, Instant, Path, PeerId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A redirection to a gateway whose addresses are not known yet.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    old: IkeSaId,
    /// The path to the gateway that redirected us, by UDP.
    path: Path,
    /// True if the existing IKE SA stays until the new one is up.
    anew: bool,
}

/// Commands.
impl Engine {
    /// Redirects the peer of an IKE SA, which the peer initiated, to another gateway. The peer
    /// follows by deleting the SA.
    pub fn redirect(
        &mut self,
        sa: IkeSaId,
        to: Destination,
        now: Instant,
    ) -> Result<(), CannotRedirect> {
        let mut asked = Err(CannotRedirect::NotUp);
        self.with_established(sa, now, |up, turn| asked = redirect::request(up, to, turn));
        asked
    }

    /// Initiates at an address of the gateway that [`Event::RedirectedToName`] told, beside
    /// attempts at its other addresses. [`Event::Redirected`] reports the IKE SA. An error means
    /// that the configuration does not list the address, or that another attempt is in progress.
    pub fn follow(&mut self, peer: PeerId, to: IpAddr, now: Instant) -> Result<IkeSaId, ApiMisuse> {
        let known = self.config.peer(peer).ok_or(ApiMisuse::UnknownPeer)?;
        let told = self.named.get(&peer).ok_or(ApiMisuse::UnknownPeer)?;
        if !is_listed(known, to) {
            return Err(ApiMisuse::UnknownPeer);
        }
        let Named { old, path, anew } = *told;
        let menu = AllowedIkeSuites::of(known);
        let there = tcp::first(known, there(path, to), &mut self.rng);
        self.join_race(peer, now)?;
        let from = Some(path.remote.ip());
        let sa = self.insert_begun(peer, there, anew, now, |turn| {
            InitSent::begin(menu, from, turn)
        });
        self.mark_raced(sa);
        let event = Event::Redirected { old, sa, peer, to };
        self.out.events.push_back(event);
        Ok(sa)
    }

    /// Returns true if a peer may redirect us to an address.
    pub fn may_redirect(&self, peer: PeerId, to: IpAddr) -> bool {
        let known = self.config.peer(peer);
        known.is_some_and(|known| is_listed(known, to))
    }
}

impl Engine {
    /// Initiates at the gateways to which we were redirected, and asks the caller for the addresses
    /// of those that have a name.
    pub(crate) fn follow_redirects(&mut self, now: Instant) {
        for followed in std::mem::take(&mut self.out.followed) {
            let Followed {
                old,
                peer,
                path,
                anew,
                to,
            } = followed;
            let path = tcp::datagrams(path, self.config.natt_port);
            let to = match to {
                Destination::Address(to) => to,
                Destination::Name(name) => {
                    self.named.insert(peer, Named { old, path, anew });
                    let event = Event::RedirectedToName { old, peer, name };
                    self.out.events.push_back(event);
                    continue;
                }
            };
            let there = there(path, to);
            let from = Some(path.remote.ip());
            let event = match self.begin(peer, there, anew, from, now) {
                Ok(sa) => Event::Redirected { old, sa, peer, to },
                Err(_) => outdone(old, peer),
            };
            self.out.events.push_back(event);
        }
    }
}

/// Returns the path to another gateway. The routing table determines our address.
const fn there(path: Path, to: IpAddr) -> Path {
    let ours = match to {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    Path::udp(
        SocketAddr::new(ours, path.local.port()),
        SocketAddr::new(to, path.remote.port()),
    )
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
