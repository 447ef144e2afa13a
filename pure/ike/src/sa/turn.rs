//! One input of an IKE SA: its data in all states, and the parts of the engine that it uses.

use super::core::Core;
use crate::attempt::{Attempts, End, Offer};
use crate::auth::Proof;
use crate::child_overrides::ChildOverrides;
use crate::config::Peer;
use crate::counters::{Counters, DropReason};
use crate::destination::Destination;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::extension::nat;
use crate::extension::ppk::Ppk;
use crate::ike_spi::IkeSpis;
use crate::limits::{Checks, Redirects};
use crate::peer_table::PeerTable;
use crate::placed::Placed;
use crate::pool::Pools;
use crate::refusal::Refusal;
use crate::shown::Sources;
use crate::signature;
use crate::spi::{self, Fresh};
use crate::tickets::Tickets;
use crate::window::Arrival;
use crypto::{Rng, UnixTime};
use model::{ChildSaId, Identity, IkeSaId, Instant, Path, PeerId, Transmit, Unique};
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use wire::ike::Message;

/// The parts of the engine that an SA uses while it handles an input.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a PeerTable,
    pub(crate) barred: &'a BTreeSet<PeerId>,
    pub(crate) overrides: &'a ChildOverrides,
    pub(crate) rng: &'a mut Rng,
    pub(crate) ike_spis: &'a mut IkeSpis,
    pub(crate) spis: &'a mut spi::Sequence,
    pub(crate) out: &'a mut Output,
    /// Addresses to lease.
    pub(crate) pools: &'a mut Pools,
    pub(crate) tickets: &'a mut Tickets,
    pub(crate) sources: &'a Sources,
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
    /// True if we have sent IKE_AUTH for another one, which the peer may have.
    pub(crate) may_be_up: bool,
    /// Names of current child SAs of IKE SAs that replace another one, with the id of that one.
    pub(crate) inherited: Vec<(IkeSaId, Option<String>)>,
}

/// One input of an IKE SA: the data of all its states, and the parts of the engine that it uses.
pub(crate) struct Turn<'t, 'c> {
    pub(crate) core: &'t mut Core,
    pub(crate) ctx: &'t mut Context<'c>,
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
    /// SAs of ours to re-authenticate. The engine initiates the new SAs.
    pub(crate) unproved: Vec<IkeSaId>,
    /// SAs of ours that the peer seems to have lost. The engine initiates the new SAs.
    pub(crate) lost: Vec<IkeSaId>,
    /// Redirections to follow. The engine initiates there.
    pub(crate) followed: Vec<Followed>,
    pub(crate) redirects: Redirects,
    /// Rate limits for checking new addresses of peers.
    pub(crate) checks: Checks,
    /// Addresses of peers in transport mode.
    pub(crate) placed: Placed,
    /// SAs that were not answered by UDP. The engine initiates over TCP.
    pub(crate) fallen: Vec<Fallen>,
    /// Attempts to resume a session that failed or are in doubt. The engine initiates in full.
    pub(crate) not_resumed: Vec<NotResumed>,
    /// The initiator that has proved itself and waits for the engine's decision.
    pub(crate) applicant: Option<Applicant>,
}

/// An initiator that has proved itself, and may come if the engine decides so.
pub(crate) struct Applicant {
    /// The peer with its identity, or the one that stands for it among others.
    pub(crate) peer: PeerId,
    pub(crate) identity: Identity,
    pub(crate) from: IpAddr,
}

/// The engine's decision about an applicant.
#[derive(Clone)]
pub(crate) struct Verdict {
    /// The peer that it is.
    pub(crate) peer: PeerId,
    /// The reason for which it may not come.
    pub(crate) refusal: Option<Refusal>,
}

/// A redirection that we follow.
pub(crate) struct Followed {
    pub(crate) old: IkeSaId,
    pub(crate) peer: PeerId,
    pub(crate) path: Path,
    /// True if the existing IKE SA stays until the new one is up.
    pub(crate) anew: bool,
    pub(crate) to: Destination,
}

/// An SA that was not answered by UDP, and the path of its replacement.
pub(crate) struct Fallen {
    pub(crate) old: IkeSaId,
    pub(crate) peer: PeerId,
    pub(crate) path: Path,
    /// True if the existing IKE SA stays until the new one is up.
    pub(crate) anew: bool,
}

/// An attempt to resume a session, beside or after which a full exchange begins.
pub(crate) struct NotResumed {
    pub(crate) old: IkeSaId,
    pub(crate) peer: PeerId,
    pub(crate) path: Path,
    /// True if the existing IKE SA stays until the new one is up.
    pub(crate) anew: bool,
}

impl From<&Core> for NotResumed {
    fn from(core: &Core) -> Self {
        Self {
            old: core.id,
            peer: core.peer_id(),
            path: core.path,
            anew: core.anew,
        }
    }
}

impl<'c> Turn<'_, 'c> {
    /// Returns the turn of another SA in its place, such as a successor.
    pub(crate) const fn of<'t>(&'t mut self, core: &'t mut Core) -> Turn<'t, 'c> {
        let ctx = &mut *self.ctx;
        Turn { core, ctx }
    }

    /// Returns the reason for which the peer refused our proof, as far as known. `ppk` is the PPK
    /// in the proof.
    pub(crate) fn proof_refused(&self, refusal: &Message, ppk: Option<&Ppk>) -> DownReason {
        let ours = self.ctx.config.identity.clone();
        let peer = self.core.peer(self.ctx.config);
        let proof = peer.map(Proof::of);
        let has_key = proof.is_some_and(|proof| proof.known_key().is_some());
        let is_certified = proof.is_some_and(Proof::is_certified);
        let why = signature::explained(refusal);
        match ppk {
            Some(Ppk { id, .. }) if why.is_none() => {
                let id = id.clone();
                DownReason::PpkRefused { ours, id }
            }
            _ if has_key => DownReason::KeyRefused { ours },
            _ if is_certified => DownReason::CertificateRefused { ours, why },
            _ => DownReason::AuthenticationRefused { ours },
        }
    }

    pub(crate) fn announce_down(&mut self, why: DownReason) {
        let end = End::Down(why.clone());
        self.ctx.out.attempts.end(self.core, end, self.ctx.config);
        let (sa, peer) = (self.core.id, self.core.peer_id());
        match self.core.anew && self.ctx.is_acquainted() {
            // The old SA stays up, so there is no `IkeDown`.
            true => self
                .ctx
                .refused(Some(peer), Refusal::NotReauthenticated(Box::new(why))),
            false => self.ctx.event(Event::IkeDown { sa, peer, why }),
        }
    }

    /// Moves the child SAs' packets to the path of IKE messages.
    pub(crate) fn carry(&mut self, children: Vec<ChildSaId>) {
        self.core.proved = self.core.path;
        self.carry_to(self.core.path, children);
    }

    /// Has child SAs send on a path, wherever IKE messages go.
    pub(crate) fn carry_to(&mut self, path: Path, children: Vec<ChildSaId>) {
        let path = nat::esp_path(path, self.core.nat, self.ctx.config);
        if self.core.esp != path {
            self.core.esp = path;
            let sa = self.core.id;
            self.ctx.event(Event::PathMoved { sa, children, path });
        }
    }

    /// Requests that the engine initiates an IKE SA at another gateway.
    pub(crate) fn follow_redirect(&mut self, to: Destination, anew: bool) {
        self.ctx.out.followed.push(Followed {
            old: self.core.id,
            peer: self.core.peer_id(),
            path: self.core.path,
            anew,
            to,
        });
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
    /// Returns true if the operator took a peer down, or the table that it is a user of.
    pub(crate) fn is_barred(&self, peer: PeerId) -> bool {
        let table = self.config.users.table(peer);
        self.barred.contains(&peer) || table.is_some_and(|table| self.barred.contains(&table))
    }

    /// Asks the engine whether an initiator that has proved itself may come, if that is not
    /// certain. Returns true if its decision follows.
    pub(crate) fn applies(&mut self, peer: &Peer, identity: &Identity, from: IpAddr) -> bool {
        let asks = peer.users.is_some() || peer.unique == Unique::Keep;
        self.out.applicant = asks.then(|| Applicant {
            peer: peer.id,
            identity: identity.clone(),
            from,
        });
        asks
    }

    /// Returns true if a clone or a re-authenticated IKE SA has a replacement for this child SA.
    pub(crate) fn is_inherited(&self, sa: IkeSaId, name: Option<&str>) -> bool {
        let mut inherited = self.beside.inherited.iter();
        inherited.any(|(from, child)| *from == sa && child.as_deref() == name)
    }

    /// Returns true if another IKE SA with the same peer is up.
    pub(crate) const fn is_acquainted(&self) -> bool {
        self.beside.sas > 0
    }

    /// Returns true if the peer may have another IKE SA with us.
    pub(crate) const fn may_be_acquainted(&self) -> bool {
        self.is_acquainted() || self.beside.may_be_up
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

    pub(crate) fn refused(&mut self, peer: Option<PeerId>, why: Refusal) {
        if let Some(peer) = peer {
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
