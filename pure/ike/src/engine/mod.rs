//! All IKE SAs of one host: dispatch of datagrams, and the choice among several SAs with one peer.

mod attempts;
mod children;
mod clones;
mod deadlines;
mod elsewhere;
mod first_contact;
mod grants;
mod half_open;
mod live_paths;
mod peer_index;
mod ping;
mod race;
mod reauth;
mod reconfigure;
mod resumption;
mod sender;
mod status;
mod users;

use crate::allowed_suites::AllowedIkeSuites;
use crate::child_overrides::ChildOverrides;
use crate::config::{Config, Peer, Resumption};
use crate::counters::DropReason;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::extension::contact::{self, Contact, Fate};
use crate::extension::fragment::Inbox;
use crate::extension::intermediate::AuthTranscript;
use crate::extension::{cookie, tcp};
use crate::ike_spi::IkeSpis;
use crate::incarnation::Incarnation;
use crate::limits::Checks;
use crate::misuse::{ApiMisuse, CannotMove};
use crate::peer_table::PeerTable;
use crate::pool::Pools;
use crate::sa::arrived::Arrived;
use crate::sa::closing::Ending;
use crate::sa::core::Core;
use crate::sa::established;
use crate::sa::init_sent::InitSent;
use crate::sa::resume_sent::ResumeSent;
use crate::sa::turn::{Beside, Context, Output, Turn};
use crate::sa::{Sa, State};
use crate::session::Session;
use crate::shown::Sources;
use crate::spi;
use crate::task::{follow, liveness, rekey_child, rekey_ike};
use crate::tickets::Tickets;
use crate::window::{Requests, Responses};
use crypto::{Rng, UnixTime};
use deadlines::Deadlines;
use half_open::HalfOpen;
use model::{
    ChildSaId, Deadline, IkeSaId, Instant, Lease, LeaseChange, Path, PeerId, Stray, Transmit,
};
use peer_index::PeerIndex;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use wire::codec::Malformed;
use wire::ike::{Datagram, Header};

pub use sender::Sender;
pub use status::{KeyLog, SaState, SaStatus};

/// Maximum number of ended IKE SAs per peer that still answer retransmissions.
const MOST_ENDED: usize = 16;

/// The IKEv2 engine of one host. The crate documentation describes its use.
pub struct Engine {
    pub(crate) config: PeerTable,
    pub(crate) rng: Rng,
    spis: spi::Sequence,
    pub(crate) out: Output,
    pub(crate) pools: Pools,
    pub(crate) tickets: Tickets,
    sources: Sources,
    /// Boxed because `Sa` is large, and a map moves its values and reserves room for more.
    pub(crate) sas: BTreeMap<IkeSaId, Box<Sa>>,
    pub(crate) by_spi: BTreeMap<u64, IkeSaId>,
    peer_index: PeerIndex,
    pub(crate) half_open: HalfOpen,
    pub(crate) cookies: cookie::Jar,
    pub(crate) deadlines: Deadlines,
    pub(crate) next_stray_answer: Instant,
    /// Limits the answers to requests on unknown IKE SAs.
    pub(crate) told_unknown: Checks,
    /// The same for ESP packets.
    told_unknown_spi: Checks,
    pub(crate) ike_spis: IkeSpis,
    /// Peers whose requests to establish an IKE SA are refused.
    pub(crate) barred: BTreeSet<PeerId>,
    pub(crate) overrides: ChildOverrides,
    /// Redirections of peers to gateways with a name, the last one of each.
    named: BTreeMap<PeerId, elsewhere::Named>,
    today: UnixTime,
    /// Number of times that the state of an SA ran.
    #[cfg(test)]
    pub(crate) runs: u64,
}

/// Commands.
impl Engine {
    /// Creates an engine without SAs. All randomness comes from `seed`, which must be fresh. No two
    /// engines may have the same seed, except to repeat a test.
    pub fn new(config: Config, seed: [u8; 32], now: Instant) -> Self {
        let mut rng = Rng::from_seed(seed);
        Self {
            config: PeerTable::new(config),
            spis: spi::Sequence::new(&mut rng),
            rng,
            out: Output::default(),
            pools: Pools::default(),
            tickets: Tickets::new(&seed),
            sources: Sources::default(),
            sas: BTreeMap::new(),
            by_spi: BTreeMap::new(),
            peer_index: PeerIndex::default(),
            half_open: HalfOpen::default(),
            cookies: cookie::Jar::default(),
            deadlines: Deadlines::default(),
            next_stray_answer: now,
            told_unknown: Checks::default(),
            told_unknown_spi: Checks::default(),
            ike_spis: IkeSpis::new(&seed),
            barred: BTreeSet::new(),
            overrides: ChildOverrides::default(),
            named: BTreeMap::new(),
            today: UnixTime::default(),
            #[cfg(test)]
            runs: 0,
        }
    }

    /// Sets the wall-clock time, which determines the validity of certificates. Without it, no
    /// certificate is valid.
    pub const fn set_wall_clock(&mut self, today: UnixTime) {
        self.today = today;
    }

    /// Restores the leases that an earlier engine reported. Call this before anything else except
    /// [`Self::set_wall_clock`], because leases expire by the wall clock.
    pub fn restore_leases(&mut self, leases: Vec<Lease>) {
        let pools = self.config.peers.iter().filter_map(Peer::pool);
        let pools: BTreeMap<_, _> = pools.map(|pool| (pool.name.as_str(), pool)).collect();
        let lent = |name: &str| pools.get(name).copied();
        self.pools.restore(leases, lent, self.today);
    }

    /// Sets the incarnation of the node, which can then prove to initiators that their IKE SAs were
    /// lost with an earlier process (RFC 6290).
    pub fn set_incarnation(&mut self, incarnation: Incarnation) {
        self.ike_spis.set_incarnation(incarnation);
    }

    /// Sets our address for packets to each remote one; `None` without a route. A ticket that was
    /// presented from one of them is not presented from another.
    pub fn set_sources(&mut self, sources: impl Iterator<Item = (IpAddr, Option<IpAddr>)>) {
        self.sources.set(sources);
    }

    /// Initiates an IKE SA with a configured peer, and its child SA if the role has one. Ends in
    /// [`Event::IkeUp`] or [`Event::IkeDown`], or without an event if another IKE SA that was
    /// initiated beside it comes up, or newer ones were initiated. Beside an IKE SA that is
    /// being established, another one may be initiated only if [`SaStatus::refused`] is set.
    pub fn initiate(
        &mut self,
        peer: PeerId,
        path: Path,
        now: Instant,
    ) -> Result<IkeSaId, ApiMisuse> {
        self.resume(peer, path, false, now)
    }

    /// Initiates an IKE SA by a full exchange. With `anew`, the IKE SA replaces another one once it
    /// is up. `from` is the address of the gateway that redirected us.
    pub(crate) fn begin(
        &mut self,
        peer: PeerId,
        path: Path,
        anew: bool,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<IkeSaId, ApiMisuse> {
        let (menu, path) = self.prepare(peer, path, anew, now)?;
        Ok(self.insert_begun(peer, path, anew, now, |turn| {
            InitSent::begin(menu, from, turn)
        }))
    }

    /// Initiates an IKE SA, by a ticket if we hold one of the peer.
    pub(crate) fn resume(
        &mut self,
        peer: PeerId,
        path: Path,
        anew: bool,
        now: Instant,
    ) -> Result<IkeSaId, ApiMisuse> {
        let (menu, path) = self.prepare(peer, path, anew, now)?;
        let known = self.config.peer(peer);
        let allowed = known.map_or(Resumption::Off, |known| known.resumption);
        let shown = self.sources.shown(path);
        let held = self.tickets.present(peer, shown, now);
        let held = held.filter(|held| allowed.allows(held.keys.way));
        Ok(self.insert_begun(peer, path, anew, now, |turn| {
            match held.and_then(|held| ResumeSent::begin(held, turn)) {
                Some(state) => State::ResumeSent(state),
                None => InitSent::begin(menu, None, turn),
            }
        }))
    }

    /// Initiates an IKE SA by a full exchange, beside an attempt to resume one.
    pub(crate) fn begin_beside(
        &mut self,
        peer: PeerId,
        path: Path,
        anew: bool,
        now: Instant,
    ) -> Result<IkeSaId, ApiMisuse> {
        if self.is_racing(peer) {
            return self.initiate_beside(peer, path, now);
        }
        let (menu, path) = self.prepare(peer, path, false, now)?;
        Ok(self.insert_begun(peer, path, anew, now, |turn| {
            InitSent::begin(menu, None, turn)
        }))
    }

    /// Makes room for another attempt with a peer. Returns what we offer, and the path of the first
    /// message. `anew`: there is no hurry.
    fn prepare(
        &mut self,
        peer: PeerId,
        path: Path,
        anew: bool,
        now: Instant,
    ) -> Result<(AllowedIkeSuites, Path), ApiMisuse> {
        self.make_room(peer, anew, now)?;
        let known = self.config.peer(peer).ok_or(ApiMisuse::UnknownPeer)?;
        let menu = AllowedIkeSuites::of(known);
        Ok((menu, tcp::first(known, path, &mut self.rng)))
    }

    /// Begins an IKE SA with a first message.
    fn insert_begun(
        &mut self,
        peer: PeerId,
        path: Path,
        anew: bool,
        now: Instant,
        begin: impl FnOnce(&mut Turn<'_, '_>) -> State,
    ) -> IkeSaId {
        let mut core = self.new_core(path, true, now);
        core.spi_i = self.fresh_spi();
        core.peer = Some(peer);
        core.anew = anew;
        let ctx = &mut self.context(Beside::default(), now);
        let state = begin(&mut Turn {
            core: &mut core,
            ctx,
        });
        self.insert(Box::new(Sa { core, state }))
    }

    /// Bars a peer, or admits it again. A barred peer that initiates receives TEMPORARY_FAILURE
    /// after authentication. IKE SAs that are up stay up. Admitting the peer also reverts closed
    /// child SAs to the configuration.
    pub fn bar(&mut self, peer: PeerId, barred: bool, now: Instant) {
        if barred {
            self.barred.insert(peer);
            self.end_sessions(Some(peer));
        } else {
            self.barred.remove(&peer);
            self.overrides.let_in(peer);
            self.drop_children(peer, &[], now);
            self.forget_user(peer);
        }
    }

    /// Deletes an IKE SA and its child SAs. All of them are down at once, with [`Event::ChildDown`]
    /// and [`Event::IkeDown`]; the Delete is sent in the background.
    pub fn close(&mut self, sa: IkeSaId, now: Instant) {
        self.close_for(sa, DownReason::ClosedHere, now);
    }

    /// Deletes all IKE SAs. Done when [`Self::sas`] is empty.
    pub fn shutdown(&mut self, now: Instant) {
        for id in self.sas.keys().copied().collect::<Vec<_>>() {
            self.close(id, now);
        }
    }

    /// Rekeys a child SA. Ends in [`Event::ChildRekeyed`], in [`Event::Refused`], or in the IKE
    /// SA's [`Event::IkeDown`].
    pub fn rekey_child(&mut self, sa: IkeSaId, child: ChildSaId, now: Instant) {
        self.with_established(sa, now, |state, turn| {
            rekey_child::request(state, child, turn);
        });
    }

    /// Rekeys an IKE SA. Ends in [`Event::IkeRekeyed`], in [`Event::Refused`], or in
    /// [`Event::IkeDown`].
    pub fn rekey_ike(&mut self, sa: IkeSaId, now: Instant) {
        self.with_established(sa, now, rekey_ike::request);
    }

    /// Moves an IKE SA and its child SAs to another path, if this end chooses the path.
    /// [`Event::MoveRefused`] reports a refusal by the peer.
    pub fn move_to(&mut self, sa: IkeSaId, path: Path, now: Instant) -> Result<(), CannotMove> {
        let mut moved = Err(CannotMove::NotUp);
        self.with_established(sa, now, |state, turn| {
            moved = established::move_to(state, path, turn);
        });
        moved
    }

    /// Retransmits the outstanding request of an IKE SA on another path too, and sends a liveness
    /// check if there is none. [`Event::PathAnswers`] reports an answer.
    pub fn probe(&mut self, sa: IkeSaId, path: Path, now: Instant) {
        self.with_established(sa, now, |state, turn| established::probe(state, path, turn));
    }

    /// Measures a path of an IKE SA whose path we choose, by a request that is sent on it alone.
    /// Ends in [`Event::PathMeasured`].
    pub fn measure(&mut self, sa: IkeSaId, path: Path, now: Instant) {
        self.with_established(sa, now, |state, turn| {
            established::measure(state, path, turn);
        });
    }

    /// Retransmits all outstanding requests after 1 ms, because a path has come up. The delay gives
    /// the driver time to install routes.
    pub fn hasten(&mut self, now: Instant) {
        for id in self.sas.keys().copied().collect::<Vec<_>>() {
            self.with_sa(id, now, |sa, ctx| sa.core.requests.hasten(ctx.now));
        }
    }

    /// Sends a liveness check because the child SAs of an IKE SA sent for a while and received
    /// nothing. A check without a response never ends the SA earlier than the configured liveness
    /// does.
    pub fn doubt(&mut self, sa: IkeSaId, now: Instant) {
        self.with_established(sa, now, liveness::doubt);
    }

    /// Notes that the newest packet of a child SA, of `octets` octets, arrived on another path than
    /// the child SA sends on, and checks that path.
    pub fn note_stray(&mut self, sa: IkeSaId, path: Path, octets: usize, now: Instant) {
        self.with_established(sa, now, |state, turn| {
            follow::note_stray(state, path, octets, turn);
        });
    }

    /// Notes the path of the newest packet of an IKE SA's children, if they send elsewhere. Called
    /// before [`Self::handle_timeout`].
    pub fn note_newest(&mut self, sa: IkeSaId, stray: Option<Stray>) {
        let up = self.sas.get_mut(&sa).and_then(|sa| sa.established_mut());
        if let Some((_, up)) = up {
            follow::note_newest(up, stray);
        }
    }

    /// Notes that an authentic ESP packet arrived on a child SA of this IKE SA: the peer is alive.
    pub fn note_inbound(&mut self, sa: IkeSaId, now: Instant) {
        self.with_established(sa, now, |state, turn| {
            state.liveness.note_heard(turn.ctx.now)
        });
    }
}

/// Inputs. They never fail: an invalid datagram is the sender's fault.
impl Engine {
    /// Handles an IKE message, without the non-ESP marker. `path` holds our address on which it
    /// arrived, and its source address.
    pub fn handle_datagram(&mut self, path: Path, payload: &[u8], now: Instant) {
        self.out.counters.received += 1;
        let Ok(header) = Header::peek(payload) else {
            return self.drop(DropReason::MalformedMessage);
        };
        if header.major_version() != 2 {
            return self.handle_other_version(&header, path, payload, now);
        }
        if self.has_no_place(path, &header, now) {
            return self.drop(DropReason::HalfOpenLimit);
        }
        let datagram = match Datagram::decode(payload) {
            Ok(datagram) => datagram,
            Err(Malformed::TooMany(_)) => return self.drop(DropReason::TooMuch),
            Err(_) => return self.drop(DropReason::MalformedMessage),
        };
        let own_spi = own_spi(&header);
        let arrived = Arrived::new(datagram, payload, path);
        match self.by_spi.get(&own_spi) {
            Some(&id) => self.handle_arrived(id, &arrived, now),
            None if own_spi == 0 => self.handle_first(&arrived, now),
            None => self.handle_unknown(&arrived, now),
        }
    }

    /// Performs all actions that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(id) = self.deadlines.pop_due(now) {
            self.with_sa(id, now, |sa, ctx| sa.handle_timeout(ctx));
        }
        let strategy = &self.config.resumption;
        self.tickets
            .checkpoint(strategy, &mut self.rng, self.today, now);
        self.replace_lost(now);
        self.reauthenticate_due(now);
        self.fall_back(now);
        self.replace_attempts_to_resume(now);
    }
}

/// Outputs. Drain them in this order after every command or input.
impl Engine {
    /// Returns the next lease change to persist, before anything is sent: the next engine needs it.
    pub fn poll_lease(&mut self) -> Option<LeaseChange> {
        self.pools.poll()
    }

    /// Returns the next datagram to send. On the shared port it begins with the non-ESP marker.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.transmits.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.out.events.pop_front()
    }

    /// Returns the latest time for the next call of [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let deadlines = [self.deadlines.next(), self.tickets.deadline()];
        deadlines.into_iter().flatten().min()
    }
}

impl Engine {
    fn handle_arrived(&mut self, id: IkeSaId, arrived: &Arrived<'_>, now: Instant) {
        if self.screen(id, arrived, now) {
            self.advance(id, now, |sa, ctx| sa.handle(arrived, ctx));
        }
    }

    /// Runs a function on an SA that may come up by it. It returns the SAs that it creates.
    fn advance(
        &mut self,
        id: IkeSaId,
        now: Instant,
        run: impl FnOnce(&mut Sa, &mut Context<'_>) -> Vec<Sa>,
    ) {
        let was_up = self.is_up(id);
        let before = self.out.events.len();
        self.run(id, now, run);
        self.decide(id, now);
        let news = self.out.events.drain(before..).collect();
        if !was_up && self.is_up(id) {
            // The old SA's end is told before the new one's beginning.
            self.end_other_attempts(id, now);
            let (stays, succeeded) = self.replace_older(id, now);
            let news = self.succeed(id, &succeeded, news, now);
            let news = self.retell(id, news, now);
            self.out.events.extend(news);
            if !stays {
                self.close_for(id, DownReason::Replaced, now);
            }
        } else {
            let news = self.retell(id, news, now);
            self.out.events.extend(news);
            self.conclude_clone_trial(id, now);
        }
        self.conclude_race(id, now);
        self.follow_redirects(now);
        self.replace_attempts_to_resume(now);
    }

    /// Returns true if an SA has to handle a datagram. Any other changes nothing that is indexed.
    fn screen(&mut self, id: IkeSaId, arrived: &Arrived<'_>, now: Instant) -> bool {
        let mut sas = std::mem::take(&mut self.sas);
        let mut ctx = self.context(Beside::default(), now);
        let passes = sas
            .get_mut(&id)
            .is_some_and(|sa| sa.screen(arrived, &mut ctx));
        self.sas = sas;
        passes
    }

    /// Decides between `new`, which was just authenticated, and older SAs with the same peer.
    /// Returns true if `new` stays, and the SAs that it replaces step by step, oldest first.
    fn replace_older(&mut self, new: IkeSaId, now: Instant) -> (bool, Vec<IkeSaId>) {
        let Some((peer, contact, from)) = self.contact(new) else {
            return (true, Vec::new());
        };
        let fate = |sa: &Sa| {
            let old = sa.established().filter(|old| !old.is_leaving())?;
            let elsewhere = sa.core.path.remote.ip() != from;
            Some((
                sa.core.id,
                contact::fate(&contact, &old.terms.contact, elsewhere),
            ))
        };
        let others = self.sas_with(peer).filter(|sa| sa.core.id != new);
        let older: Vec<_> = others.filter_map(fate).collect();
        self.tell_displaced(new, &older);
        for (id, fate) in &older {
            match fate {
                Fate::OldForgotten => self.abandon(*id, now),
                Fate::OldGoes => self.close_for(*id, DownReason::Replaced, now),
                Fate::NewGoes | Fate::Succeeded | Fate::Both => {}
            }
        }
        let stays = older.iter().all(|(_, fate)| *fate != Fate::NewGoes);
        let succeeded = older
            .iter()
            .filter(|(_, fate)| *fate == Fate::Succeeded)
            .map(|(id, _)| *id);
        (stays, succeeded.collect())
    }

    /// Reports an IKE SA that the peer replaces from another address. Several machines with one key
    /// replace each other's like this.
    fn tell_displaced(&mut self, new: IkeSaId, older: &[(IkeSaId, Fate)]) {
        let goes = |fate: &Fate| matches!(fate, Fate::OldForgotten | Fate::OldGoes);
        let of = |id: &IkeSaId| {
            let core = &self.sas.get(id)?.core;
            (!core.initiator).then_some((core.peer, core.path.remote))
        };
        let gone = older.iter().filter(|(_, fate)| goes(fate));
        let gone = gone.filter_map(|(id, _)| of(id));
        let Some((Some(peer), new)) = of(&new) else {
            return;
        };
        let elsewhere = gone.filter(|(_, old)| *old != new);
        let events = elsewhere.map(|(_, old)| Event::Displaced { peer, old, new });
        let events: Vec<_> = events.collect();
        self.out.events.extend(events);
    }

    fn abandon(&mut self, id: IkeSaId, now: Instant) {
        self.with_sa(id, now, |sa, ctx| {
            if let Some((session, mut turn)) = sa.up(ctx) {
                sa.state = established::abandon(session, &mut turn).into();
            }
        });
    }

    pub(crate) fn close_for(&mut self, id: IkeSaId, why: DownReason, now: Instant) {
        self.with_sa(id, now, |sa, ctx| sa.close(why, ctx));
    }

    /// Runs a function on an SA that is up.
    pub(crate) fn with_established(
        &mut self,
        id: IkeSaId,
        now: Instant,
        run: impl FnOnce(&mut Session, &mut Turn<'_, '_>),
    ) -> Option<()> {
        self.is_up(id).then_some(())?;
        self.with_sa(id, now, |sa, ctx| {
            if let Some((session, mut turn)) = sa.up(ctx) {
                run(session, &mut turn);
                established::send_next(session, &mut turn);
            }
        });
        Some(())
    }

    /// Runs a function on an SA, then updates all indices.
    pub(crate) fn with_sa(
        &mut self,
        id: IkeSaId,
        now: Instant,
        run: impl FnOnce(&mut Sa, &mut Context<'_>),
    ) {
        self.run(id, now, |sa, ctx| {
            run(sa, ctx);
            Vec::new()
        });
    }

    /// The same for a function that returns the SAs that it creates.
    fn run(
        &mut self,
        id: IkeSaId,
        now: Instant,
        run: impl FnOnce(&mut Sa, &mut Context<'_>) -> Vec<Sa>,
    ) {
        let Some(mut sa) = self.sas.remove(&id) else {
            return;
        };
        #[cfg(test)]
        {
            self.runs += 1;
        }
        let beside = sa.core.peer.map(|peer| self.beside(peer));
        let born = run(&mut sa, &mut self.context(beside.unwrap_or_default(), now));
        self.half_open.update(&sa);
        let peer = sa.core.peer;
        let ended = peer.filter(|_| sa.has_ended());
        if matches!(sa.state, State::Ending(Ending::Gone)) {
            self.deadlines.set(id, None);
            self.by_spi.remove(&sa.core.own_spi());
            self.peer_index.leave(&sa.core);
            self.out.placed.forget(id);
        } else {
            self.insert(sa);
        }
        for sa in born {
            self.insert(Box::new(sa));
        }
        if let Some(peer) = ended {
            self.forget_ended(peer);
        }
        if !self.is_up(id) {
            self.pools.release(id, self.today);
            self.tickets.close(id, now);
        }
        if let Some(peer) = peer {
            self.forget_user(peer);
        }
    }

    /// Drops the oldest remains of a peer's ended IKE SAs if there are too many. Each of them
    /// answers retransmissions for a while, and a peer can rekey as often as it likes.
    fn forget_ended(&mut self, peer: PeerId) {
        let ended = self.sas_with(peer).filter(|sa| sa.has_ended());
        let mut ended: Vec<_> = ended.map(|sa| sa.core.id).collect();
        ended.sort_unstable();
        let over = ended.len().saturating_sub(MOST_ENDED);
        for id in ended.into_iter().take(over) {
            self.drop_ended(id);
        }
    }

    /// Drops the remains of an ended IKE SA.
    fn drop_ended(&mut self, id: IkeSaId) {
        if let Some(sa) = self.sas.remove(&id) {
            self.deadlines.set(id, None);
            self.by_spi.remove(&sa.core.own_spi());
            self.peer_index.leave(&sa.core);
            self.out.placed.forget(id);
        }
    }

    /// Returns the IKE SAs with a peer that are up, and their child SAs.
    fn beside(&self, peer: PeerId) -> Beside {
        let mut others = self.sas_with(peer);
        let begun = Beside {
            may_be_up: others.any(|sa| matches!(sa.state, State::AuthSent(_))),
            ..Beside::default()
        };
        let up = self.sas_with(peer).filter_map(Sa::established);
        up.fold(begun, |mut beside, up| {
            beside.sas += 1;
            beside.children += up.children.len();
            if let Some(old) = up.replacement.follows {
                let names = up.children.current_names().into_iter();
                beside.inherited.extend(names.map(|name| (old, name)));
            }
            beside
        })
    }

    /// Returns the IKE SAs with a peer, except the one that is handling an input.
    pub(crate) fn sas_with(&self, peer: PeerId) -> impl Iterator<Item = &Sa> {
        let sas = self.peer_index.with(peer);
        sas.filter_map(|id| self.sas.get(&id).map(Box::as_ref))
    }

    fn is_up(&self, id: IkeSaId) -> bool {
        self.sas
            .get(&id)
            .is_some_and(|sa| sa.established().is_some())
    }

    /// Returns the peer, the properties that decide between IKE SAs, and the peer's address.
    fn contact(&self, id: IkeSaId) -> Option<(PeerId, Contact, IpAddr)> {
        let sa = self.sas.get(&id)?;
        let contact = sa.established()?.terms.contact.clone();
        Some((sa.core.peer?, contact, sa.core.path.remote.ip()))
    }

    pub(crate) fn insert(&mut self, sa: Box<Sa>) -> IkeSaId {
        let id = sa.core.id;
        self.by_spi.insert(sa.core.own_spi(), id);
        self.peer_index.enter(&sa.core);
        self.out.placed.put(sa.core.id, sa.placed_at());
        self.deadlines.set(id, sa.poll_timeout(&self.config));
        self.sas.insert(id, sa);
        id
    }

    pub(crate) fn new_core(&mut self, path: Path, initiator: bool, now: Instant) -> Core {
        let id = self.out.sa_id();
        Core {
            id,
            peer: None,
            initiator,
            began: now,
            anew: false,
            raced: false,
            spi_i: 0,
            spi_r: 0,
            path,
            proved: path,
            esp: path,
            nat: None,
            limit: None,
            port: 0,
            lost: false,
            refused: false,
            requests: Requests::new(),
            responses: Responses::new(),
            inbox: Inbox::default(),
            transcript: AuthTranscript::default(),
        }
    }

    /// Draws an SPI that is not in use.
    pub(crate) fn fresh_spi(&mut self) -> u64 {
        loop {
            let spi = self.ike_spis.draw(&mut self.rng);
            if !self.by_spi.contains_key(&spi) {
                return spi;
            }
        }
    }

    pub(crate) fn context(&mut self, beside: Beside, now: Instant) -> Context<'_> {
        Context {
            config: &self.config,
            barred: &self.barred,
            overrides: &self.overrides,
            rng: &mut self.rng,
            ike_spis: &mut self.ike_spis,
            spis: &mut self.spis,
            out: &mut self.out,
            pools: &mut self.pools,
            tickets: &mut self.tickets,
            sources: &self.sources,
            beside,
            now,
            today: self.today,
        }
    }

    pub(crate) const fn drop(&mut self, why: DropReason) {
        self.out.counters.drop(why);
    }
}

/// Returns our SPI in a received message.
pub(crate) const fn own_spi(header: &Header) -> u64 {
    match header.flags.initiator {
        true => header.spi_r,
        false => header.spi_i,
    }
}
