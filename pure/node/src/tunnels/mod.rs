//! The tunnels to peers: wanted, established, replaced step by step, moved, silent and ended.

pub(crate) mod children;
mod cover;
pub(crate) mod desired;
pub(crate) mod initiations;
mod keys;
mod lanes;
pub(crate) mod level;
pub(crate) mod live_paths;
mod meter;
pub(crate) mod moving;
pub(crate) mod outside;
mod own_traffic;
mod path_health;
mod pauses;
pub(crate) mod rivals;
mod silence;
mod succession;
pub(crate) mod tally;

use crate::config::{Inside, Role};
use crate::effects::{IkeCommand, Turn};
use crate::{Cause, Event};
use children::{Child, Children};
use cover::Cover;
use crypto::Secret;
use desired::{Entry, Peers, Refused, Retry, UnknownPeer};
use esp::PeerSettings;
use ike::{PathRule, Resumption, is_slot, live_path, path_of};
use initiations::Initiations;
use keys::KeyReports;
use level::{Levels, NoLevel};
use live_paths::{LivePaths, Scene, SlotUse};
use meter::Meter;
use model::{
    ChildSa, ChildSaId, Deadline, IkeSaId, Instant, LevelChoice, Mode, Path, PeerId, Signal,
};
use moving::{CannotMove, Moving, PathsStatus};
use outside::Outside;
use rivals::{InTurns, Rivals};
use silence::Silences;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use succession::{Heir, Succession};
use tally::Tally;

/// The tunnels of a host. It knows nothing of licensed nodes: `dispatch.rs` joins both.
pub(crate) struct Tunnels {
    /// Peers that the configuration wants up.
    start: BTreeSet<PeerId>,
    /// Peers whose address is a name.
    named: BTreeSet<PeerId>,
    desired: Peers,
    children: Children,
    succession: Succession,
    moving: Moving,
    live: LivePaths,
    cover: Cover,
    levels: Levels,
    silences: Silences,
    meter: Meter,
    tally: Tally,
    initiations: Initiations,
    rivals: Rivals,
    /// Settings that peers assign to us, by IKE SA, with the peers.
    assigned: BTreeMap<IkeSaId, (PeerId, Inside)>,
    outside: Outside,
    keys: KeyReports,
    /// The last refusal of an unknown peer.
    stranger: Option<Refused>,
}

/// The part of the configuration that tunnels need.
pub(crate) struct TunnelConfig {
    pub start: Vec<PeerId>,
    pub named: BTreeSet<PeerId>,
    pub cover: BTreeMap<PeerId, Duration>,
}

impl Tunnels {
    pub fn new(
        config: TunnelConfig,
        outside: Outside,
        key_log: bool,
        peers: &[ike::Peer],
        now: Instant,
    ) -> Self {
        let reachable = peers.iter();
        let reachable = reachable.map(|peer| (peer.id, is_reachable(peer, &config.named)));
        let mut tunnels = Self {
            start: wanted(config.start, peers),
            desired: Peers::new(reachable),
            named: config.named,
            children: Children::default(),
            succession: Succession::default(),
            moving: Moving::new(outside.natt_port()),
            live: LivePaths::default(),
            cover: Cover::default(),
            levels: Levels::default(),
            silences: Silences::default(),
            meter: Meter::default(),
            tally: Tally::default(),
            initiations: Initiations::default(),
            rivals: Rivals::default(),
            assigned: BTreeMap::new(),
            outside,
            keys: KeyReports(key_log),
            stranger: None,
        };
        tunnels.cover.set(config.cover, std::iter::empty(), now);
        for peer in &tunnels.start {
            tunnels.desired.want(*peer, true, now);
        }
        tunnels
    }

    /// Applies changed intervals of cover traffic.
    pub fn set_cover(&mut self, cover: BTreeMap<PeerId, Duration>, now: Instant) {
        let up = self.children.iter();
        let up = up.map(|(_, child)| child.peer);
        self.cover.set(cover, up, now);
    }

    /// Applies the configured levels in the settings of packets, and overrides them there with the
    /// operator's.
    pub fn set_levels(&mut self, settings: &mut BTreeMap<PeerId, PeerSettings>) {
        self.levels.set(settings);
    }

    /// Sets the peers whose address is a name.
    pub fn set_named(&mut self, named: BTreeSet<PeerId>) {
        self.named = named;
    }

    /// Sets the peers to keep up. Returns those that are new in the list.
    pub fn set_peers(
        &mut self,
        start: Vec<PeerId>,
        anew: &BTreeSet<PeerId>,
        ike: &ike::Engine,
        now: Instant,
    ) -> Vec<PeerId> {
        let start = wanted(start, ike.peers());
        let old_start = std::mem::replace(&mut self.start, start);
        self.desired.retain(|peer| ike.peer(peer).is_some());
        self.rivals.retain(|peer| ike.peer(peer).is_some());
        self.tally.retain(|peer| ike.peer(peer).is_some());
        for peer in ike.peers() {
            self.desired.know(peer.id, is_reachable(peer, &self.named));
        }
        for peer in anew {
            self.desired.renew(*peer, now);
        }
        // Only a changed entry overrides an earlier command of the operator.
        let new: Vec<_> = self.start.difference(&old_start).copied().collect();
        for peer in &new {
            self.desired.want(*peer, true, now);
        }
        for peer in old_start.difference(&self.start) {
            self.desired.release(*peer);
        }
        new
    }

    // Users.

    /// Adds a user, with the interval of its cover traffic and its level.
    pub fn user_entered(&mut self, peer: PeerId, cover: Option<Duration>, level: LevelChoice) {
        self.desired.know(peer, false);
        self.cover.set_interval(peer, cover);
        self.levels.set_configured(peer, Some(level));
    }

    /// Forgets a user.
    pub fn user_left(&mut self, peer: PeerId) {
        self.desired.forget(peer);
        self.tally.forget(peer);
        self.live.forget(peer);
        self.rivals.retain(|other| other != peer);
        self.cover.set_interval(peer, None);
        self.levels.set_configured(peer, None);
    }

    // Peers to keep up.

    /// Marks a peer as wanted or not. Errors if there is no such peer.
    pub fn want(&mut self, peer: PeerId, wanted: bool, now: Instant) -> Result<(), UnknownPeer> {
        self.desired.want(peer, wanted, now).ok_or(UnknownPeer)
    }

    /// Returns the peers to initiate now.
    pub fn take_due(&mut self, now: Instant) -> Vec<PeerId> {
        self.desired.due(now)
    }

    /// Records that an initiation was started.
    pub fn started(&mut self, peer: PeerId, sa: IkeSaId, now: Instant) {
        self.desired.started(peer, sa);
        self.initiations.begun(sa, now);
    }

    /// Plans another attempt with a peer, if the one in progress allows it: it was refused without
    /// proof, or the peer may have lost it.
    pub fn retry_beside(&mut self, peer: PeerId, turn: &Turn<'_>) {
        let sa = self.current(peer).and_then(|sa| turn.ike.sa(sa));
        if sa.is_some_and(|sa| sa.allows_another) {
            self.desired.retry_beside(peer, turn.now);
        }
    }

    /// Puts off an attempt beside another one, as none can begin now.
    pub fn put_off(&mut self, peer: PeerId, now: Instant) {
        self.desired.retry_beside(peer, now);
    }

    /// Records that an initiation was not possible.
    pub fn not_started(&mut self, peer: PeerId, why: Cause, now: Instant) {
        self.desired.down(peer, None, why, Retry::Usual, now);
    }

    /// Has a peer that waits for its next attempt initiated at once, as the network has changed.
    pub fn hasten(&mut self, peer: PeerId, now: Instant) {
        self.desired.hasten(peer, now);
    }

    /// Records which of several attempts at addresses of a peer continues.
    pub fn answered(&mut self, peer: PeerId, sa: IkeSaId) {
        if self.established(peer).is_none() {
            self.desired.started(peer, sa);
        }
    }

    /// Records a refusal or failure of a peer, or of an unknown one. `from` is the source of a
    /// message that is not authenticated.
    pub fn refused(
        &mut self,
        peer: Option<PeerId>,
        from: Option<SocketAddr>,
        why: Cause,
        turn: &mut Turn<'_>,
    ) {
        let refused = Refused {
            at: turn.now,
            from,
            why: why.clone(),
        };
        match peer {
            Some(peer) => self.desired.refused(peer, refused),
            None => self.stranger = Some(refused),
        }
        turn.add(Event::Refused { peer, from, why });
    }

    /// Returns the peer that a refused initiator claimed to be. While that peer is up, only the
    /// peer itself can change its status, so that unknown peers cannot write there.
    pub fn claimed(&self, why: &ike::Refusal, ike: &ike::Engine) -> Option<PeerId> {
        let claimed = why.claimed()?;
        let peer = ike.claimed(claimed)?;
        let up = self.desired.get(peer)?.up_since.is_some();
        (!up).then_some(peer)
    }

    /// Returns the IKE SA with a peer, if it is up.
    pub fn established(&self, peer: PeerId) -> Option<IkeSaId> {
        let entry = self.desired.get(peer)?;
        entry.up_since.and(entry.sa)
    }

    /// Returns the IKE SA with a peer, up or in progress.
    pub fn current(&self, peer: PeerId) -> Option<IkeSaId> {
        self.desired.get(peer)?.sa
    }

    // IKE SAs.

    /// Records an IKE SA that is up. Returns true if the peer was not up before.
    pub fn ike_up(&mut self, sa: IkeSaId, peer: PeerId, turn: &mut Turn<'_>) -> bool {
        let is_new = self.established(peer).is_none();
        self.desired.up(peer, sa, turn.now);
        self.keys.ike(sa, turn);
        if let Some(sa) = turn.ike.sa(sa) {
            self.tally.set_up(turn.now.since(sa.began));
        }
        turn.add(Event::PeerUp { peer });
        turn.check(peer);
        is_new
    }

    /// Has an IKE SA take the place of another with the same peer.
    pub fn go_by(&mut self, sa: IkeSaId, peer: PeerId, turn: &mut Turn<'_>) {
        self.desired.up(peer, sa, turn.now);
        self.live.stir(peer);
        turn.check(peer);
    }

    /// Records that a clone of an IKE SA has replaced it, on another path.
    pub fn handed_over(&mut self, old: IkeSaId, sa: IkeSaId, peer: PeerId) {
        self.moving.hand_over(old, sa);
        self.tally.handed_over(peer);
    }

    /// Records a rekey of an IKE SA.
    pub fn ike_rekeyed(&mut self, sa: IkeSaId, peer: PeerId, turn: &mut Turn<'_>) {
        self.keys.ike(sa, turn);
        self.tally.rekeyed(peer);
        turn.add(Event::IkeRekeyed { peer });
    }

    /// Records a clone of an IKE SA, which does not carry any child SA yet.
    pub fn ike_cloned(&mut self, old: IkeSaId, sa: IkeSaId, peer: PeerId, turn: &mut Turn<'_>) {
        self.keys.ike(sa, turn);
        if let Some(lent) = self.assigned.get(&old).cloned() {
            self.assigned.insert(sa, lent);
        }
        turn.add(Event::Cloned { peer });
    }

    /// Records that an initiation continues on another IKE SA: with another gateway, or over TCP.
    /// An SA that is up stays until the new one is up.
    pub fn begun_instead(&mut self, old: IkeSaId, sa: IkeSaId, peer: PeerId, now: Instant) {
        self.initiations.begun(sa, now);
        let entry = self.desired.get(peer);
        if entry.is_some_and(|entry| entry.sa == Some(old) && entry.up_since.is_none()) {
            self.desired.started(peer, sa);
        }
    }

    /// Records the end of an IKE SA, whose child SAs are gone. Nothing is told of an attempt if a
    /// newer one is in progress.
    pub fn ike_down(
        &mut self,
        sa: IkeSaId,
        peer: PeerId,
        why: &ike::DownReason,
        turn: &mut Turn<'_>,
    ) {
        let retry = Retry::from(why);
        let (why, intended) = (Cause::from(why.clone()), why.is_intended());
        let lent = self.assigned.remove(&sa);
        self.moving.forget(sa);
        self.silences.forget(sa);
        self.live.stir(peer);
        self.fall_back(peer, sa, turn);
        turn.check(peer);
        if self.current(peer).is_some_and(|other| other != sa) {
            self.keep_inside(peer, lent, turn);
        } else {
            self.desired
                .down(peer, Some(sa), why.clone(), retry, turn.now);
            turn.add(Event::PeerDown {
                peer,
                why,
                intended,
            });
        }
    }

    /// Handles the end of an IKE SA that another one replaced. The peer may have assigned other
    /// addresses there.
    fn keep_inside(&self, peer: PeerId, gone: Option<(PeerId, Inside)>, turn: &mut Turn<'_>) {
        let kept = self.assigned.values().find(|(other, _)| *other == peer);
        if let (Some((_, gone)), Some((_, kept))) = (gone, kept)
            && gone != *kept
        {
            let addresses = kept.addresses;
            turn.add(Event::Configured { peer, addresses });
        }
    }

    /// Switches to a remaining IKE SA. After a simultaneous initiation or a clone, the SA that
    /// ended may be the latest one, or the one on which grants were sent.
    fn fall_back(&mut self, peer: PeerId, gone: IkeSaId, turn: &Turn<'_>) {
        let entry = self.desired.get(peer);
        let without = entry.is_some_and(|entry| entry.sa.is_none_or(|sa| sa == gone));
        let is_up = |sa: &ike::SaStatus| sa.since.is_some() && !sa.leaving;
        let other = turn.ike.sas_of(peer).find(is_up).map(|sa| sa.id);
        if let Some(other) = other.filter(|_| without) {
            self.desired.up(peer, other, turn.now);
        }
    }

    /// Records the settings that a peer assigns to us.
    pub fn configured(&mut self, sa: IkeSaId, peer: PeerId, inside: Inside, turn: &mut Turn<'_>) {
        let addresses = inside.addresses;
        self.assigned.insert(sa, (peer, inside));
        turn.add(Event::Configured { peer, addresses });
    }

    /// Records that a peer connected from another address, and displaced its own IKE SA.
    pub fn displaced(
        &mut self,
        peer: PeerId,
        old: SocketAddr,
        new: SocketAddr,
        turn: &mut Turn<'_>,
    ) {
        let in_turns = self.rivals.note(peer, old, new, turn.now);
        turn.add(Event::Displaced {
            peer,
            old,
            new,
            in_turns,
        });
    }

    // Child SAs.

    /// Records a new child SA, before it is installed. Returns true if it sends at once.
    pub fn child_up(&mut self, child: &ChildSa<Secret>, turn: &mut Turn<'_>) -> bool {
        turn.add(Event::ChildUp {
            peer: child.peer,
            child: child.name.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            zoned: child.agreement.is_some(),
            mode: child.mode,
        });
        note_unencrypted(child, turn);
        let name = child.name.as_deref();
        self.live.child_up(child.id, name, child.initiator);
        let is_additional = child.resource.is_some_and(|number| number > 0);
        let waits = is_additional || is_slot(child.name.as_deref());
        if waits {
            self.succession
                .begin(child.id, Heir::beside(child), turn.now);
        }
        !waits
    }

    /// Begins the replacement of a child SA by another.
    pub fn child_rekeyed(&mut self, old: ChildSaId, child: &ChildSa<Secret>, turn: &mut Turn<'_>) {
        turn.add(Event::ChildRekeyed {
            peer: child.peer,
            child: child.name.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            exchanges: child.exchanges.clone(),
        });
        note_unencrypted(child, turn);
        self.tally.rekeyed(child.peer);
        let before = self.children.get(old);
        let anew = before.is_some_and(|before| before.ike != child.ike);
        if anew {
            let name = child.name.as_deref();
            self.live.child_up(child.id, name, child.initiator);
        }
        let heir = Heir {
            old: Some(old),
            anew,
            ..Heir::beside(child)
        };
        self.succession.begin(child.id, heir, turn.now);
        self.set_draining(old, true);
    }

    /// Adds a child SA that is installed.
    pub fn insert(&mut self, id: ChildSaId, child: Child, turn: &Turn<'_>) {
        self.cover.begin(child.peer, turn.now);
        self.meter.begin(turn);
        self.live.stir(child.peer);
        self.children.insert(id, child);
    }

    /// Handles the deletion of a child SA, whose successor carries all traffic. A child SA without
    /// a successor counts as missing once no packet of it can arrive any more.
    pub fn child_retired(&mut self, old: ChildSaId, turn: &mut Turn<'_>) {
        turn.add(esp::Command::Retire(old));
        // After a simultaneous rekey, the SA that goes may be one that never sent.
        self.succession.withdraw(old);
        if let Some(child) = self.children.get_mut(old) {
            child.retired = true;
            self.live.stir(child.peer);
            turn.check(child.peer);
        }
    }

    /// Returns the SA that will replace a child SA.
    pub fn heir_of(&self, id: ChildSaId) -> Option<ChildSaId> {
        self.succession.heir_of(id)
    }

    /// Records that the peer has a child SA.
    pub fn confirm(&mut self, id: ChildSaId) {
        self.succession.confirm(id);
    }

    /// Returns true if a child SA does not send yet.
    pub fn is_waiting(&self, id: ChildSaId) -> bool {
        self.succession.is_waiting(id)
    }

    /// Returns the successors that can send now: see [`Succession::ready`].
    pub fn take_ready(
        &mut self,
        granted: impl Fn(ChildSaId) -> Option<bool>,
        now: Instant,
    ) -> Vec<ChildSaId> {
        let mut ready = self.succession.ready(granted, now);
        ready.retain(|id| !self.live.is_unproved(*id));
        ready
    }

    /// Ends the wait of a child SA that sends.
    pub fn settle(&mut self, id: ChildSaId) {
        self.succession.settle(id);
        if let Some(child) = self.children.get(id) {
            self.live.stir(child.peer);
        }
    }

    /// Ends the wait of a child SA that is gone. If it never replaced its predecessor, the
    /// predecessor stays in use and is returned.
    pub fn end_succession(&mut self, id: ChildSaId) -> Option<ChildSaId> {
        let before = self.succession.predecessor(id);
        if let Some(old) = before {
            self.set_draining(old, false);
        }
        self.succession.settle(id);
        before
    }

    /// Returns true if another SA has replaced this one, or carries the same traffic: after a
    /// simultaneous rekey one of the two goes.
    pub fn is_replaced(&self, id: ChildSaId) -> bool {
        let child = self.children.get(id);
        child.is_some_and(|child| child.status.draining || self.is_doubled(id, child))
    }

    fn is_doubled(&self, id: ChildSaId, child: &Child) -> bool {
        let mut beside = self.children.of_peer(child.peer);
        beside.any(|(other, beside)| {
            let is_used = !beside.retired && !beside.status.draining;
            other != id && beside.is_for_the_same(child) && is_used
        })
    }

    /// Removes a child SA.
    pub fn remove(&mut self, id: ChildSaId) -> Option<Child> {
        let child = self.children.remove(id)?;
        self.live.child_down(id);
        self.live.stir(child.peer);
        if self.children.of_peer(child.peer).next().is_none() {
            self.cover.end(child.peer);
        }
        Some(child)
    }

    /// Returns true if a child SA of the original IKE SA takes over from one that is gone. That
    /// happens when a clone ends, and the original carries everything again.
    pub fn is_relieved(&mut self, gone: &Child) -> bool {
        let takes_over = |child: &Child| {
            child.is_for_the_same(gone) && child.ike != gone.ike && child.status.draining
        };
        let other = {
            let mut others = self.children.of_peer(gone.peer);
            others
                .find(|(_, child)| takes_over(child))
                .map(|(id, _)| id)
        };
        let other = other.and_then(|other| self.children.get_mut(other));
        other.map(|other| other.status.draining = false).is_some()
    }

    fn set_draining(&mut self, child: ChildSaId, draining: bool) {
        if let Some(child) = self.children.get_mut(child) {
            child.status.draining = draining;
        }
    }

    /// Returns the child SAs.
    pub const fn children(&self) -> &Children {
        &self.children
    }

    /// Returns a peer's child SAs of one IKE SA.
    pub fn children_on(&self, peer: PeerId, sa: IkeSaId) -> Vec<ChildSaId> {
        let children = self.children.of_peer(peer);
        let children = children.filter(|(_, child)| child.ike == sa);
        children.map(|(id, _)| id).collect()
    }

    /// Returns a peer's child SAs of one IKE SA that no other replaces.
    pub fn lasting_children(&self, peer: PeerId, sa: IkeSaId) -> Vec<ChildSaId> {
        let children = self.children.of_peer(peer);
        let lasting = children.filter(|(_, child)| child.ike == sa && !child.status.draining);
        lasting.map(|(id, _)| id).collect()
    }

    // Paths.

    /// Returns the state of the tunnels that move.
    pub const fn moving(&mut self) -> &mut Moving {
        &mut self.moving
    }

    /// Returns the share of requests that the path of an IKE SA loses, in per cent, if the path is
    /// measured.
    pub fn lost(&self, sa: IkeSaId, path: Path) -> Option<u8> {
        self.moving.quality(sa, path)?.lost()
    }

    /// Returns the addresses of peers to which ways are wanted, those in use before others.
    pub fn remotes(&self, ike: &ike::Engine) -> Vec<IpAddr> {
        let honest = self.outside.is_honest();
        let known = ike.peers().iter();
        let known = known.filter(|peer| honest || peer.resumption != Resumption::Off);
        let used = self.moving.remotes();
        let remotes = used.chain(known.filter_map(|peer| peer.address));
        let mut seen = BTreeSet::new();
        remotes.filter(|remote| seen.insert(*remote)).collect()
    }

    /// Returns the addresses of the peer of one tunnel, to which ways are wanted.
    pub fn remotes_of(&self, sa: IkeSaId) -> &[IpAddr] {
        self.moving.remotes_of(sa)
    }

    /// Returns the local addresses of initiations.
    pub const fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Sets the ports of peers that do not listen on the usual ones. Returns the peers whose port
    /// is another one than before.
    pub fn set_ports(&mut self, ports: BTreeMap<PeerId, u16>) -> BTreeSet<PeerId> {
        self.outside.set_ports(ports)
    }

    /// Handles changed ways to all peers.
    pub fn handle_ways(&mut self, ways: &[mobility::Way], now: Instant) {
        self.moving.handle_all_ways(ways, now);
        self.live.stir_all();
        // The best of each comes first, and is the last to be entered.
        let best = ways.iter().rev().map(|way| (way.remote, way.local));
        self.outside.set_sources(best);
    }

    /// Handles the signals of local addresses, which an external source reports.
    pub fn handle_signal(
        &mut self,
        locals: &[IpAddr],
        percent: u8,
        by: Option<&str>,
        turn: &mut Turn<'_>,
    ) {
        self.moving.handle_signal(locals, percent, by, turn);
        self.live.stir_all();
    }

    /// Returns the signal of a local address, if a source reports it.
    pub fn signal_of(&self, local: IpAddr) -> Option<&mobility::Reported> {
        self.moving.signal(local)
    }

    /// Returns the IKE SA with a peer, if it is ours to move.
    pub fn movable(&self, peer: PeerId, ike: &ike::Engine) -> Result<IkeSaId, CannotMove> {
        ike.peer(peer).ok_or(UnknownPeer)?;
        let sa = self.established(peer).ok_or(ike::CannotMove::NotUp)?;
        if self.moving.has(sa) {
            return Ok(sa);
        }
        let theirs = ike.sa(sa).is_some_and(|up| up.moves.is_some());
        Err(match theirs {
            true => ike::CannotMove::NotOurs,
            false if self.is_fixed(peer, sa) => ike::CannotMove::Transport,
            false => ike::CannotMove::NotAgreed,
        }
        .into())
    }

    /// Returns true if a child of an IKE SA is bound to the addresses outside.
    fn is_fixed(&self, peer: PeerId, sa: IkeSaId) -> bool {
        let mut children = self.children.of_peer(peer);
        children.any(|(_, child)| child.ike == sa && child.status.mode == Mode::Transport)
    }

    /// Returns the paths of the tunnels that are up, and those that they could take.
    pub fn paths(&self, ike: &ike::Engine) -> Vec<PathsStatus> {
        let status = |sa: ike::SaStatus| {
            let peer = sa.peer;
            let peer = peer.filter(|peer| self.established(*peer) == Some(sa.id))?;
            Some(PathsStatus {
                peer,
                path: sa.path,
                moves: sa.moves,
                candidates: self.moving.candidates(sa.id),
                why: self.moving.why(sa.id),
                hands_over: self.moving.hands_over(sa.id),
                live: self.live.status(peer),
            })
        };
        ike.sas().filter_map(status).collect()
    }

    /// Records that a child SA takes another path.
    pub fn move_child(&mut self, id: ChildSaId, path: Path) {
        self.children.move_to(id, path);
    }

    // Live paths.

    /// Returns the owner of live paths.
    pub const fn live(&mut self) -> &mut LivePaths {
        &mut self.live
    }

    /// Sets the interfaces of local addresses, by which rules choose paths.
    pub fn set_interfaces(&mut self, interfaces: BTreeMap<IpAddr, String>) {
        self.live.set_interfaces(interfaces);
    }

    /// Returns true if the peer has not answered on the path of a child SA.
    pub fn is_unproved(&self, id: ChildSaId) -> bool {
        self.live.is_unproved(id)
    }

    /// Returns true if a child SA is on a path that is not used.
    pub fn is_off(&self, id: ChildSaId) -> bool {
        let child = self.children.get(id);
        child.is_some_and(|child| {
            let name = child.status.name.as_deref();
            self.live.is_off(child.peer, name, child.ike)
        })
    }

    /// Returns the number of paths that carry packets of a peer, if there may be several.
    pub fn count_live_paths(&self, peer: PeerId) -> Option<usize> {
        let paths = self.live.status(peer);
        let working = paths.iter().filter(|path| path.works).count();
        (!paths.is_empty()).then_some(working)
    }

    /// Returns true if these child SAs have another path than the IKE SA.
    pub fn are_on_further_path(&self, children: &[ChildSaId]) -> bool {
        let mut children = children.iter().filter_map(|id| self.children.get(*id));
        children.any(|child| is_on_further_path(child.status.name.as_deref()))
    }

    /// Handles the answer of a peer on a path that it has added.
    pub fn path_proved(&mut self, sa: IkeSaId, number: u8, turn: &Turn<'_>) {
        let Some(peer) = turn.peer(sa) else { return };
        let is_there = |child: &Child| {
            child.ike == sa && live_path(child.status.name.as_deref()) == Some(number)
        };
        let children = self.children.of_peer(peer);
        let there = children.filter(|(_, child)| is_there(child));
        for id in there.map(|(id, _)| id).collect::<Vec<_>>() {
            self.live.proved(id);
        }
    }

    /// Reviews the paths that may have changed. `slots` tells how a peer's slots are used. Returns
    /// true if there is anything to carry out.
    pub fn review_paths(&mut self, slots: impl Fn(PeerId) -> SlotUse, turn: &mut Turn<'_>) -> bool {
        let before = turn.effects.len();
        for peer in self.live.take_changed() {
            let sa = self.established(peer);
            let most = sa.map_or(1, |sa| turn.ike.most_paths(sa));
            let Some(sa) = sa.filter(|_| most > 1) else {
                self.live.forget(peer);
                continue;
            };
            let scene = Scene {
                peer,
                sa,
                most,
                children: &self.children,
                succession: &self.succession,
                slots: slots(peer),
                rules: rules(peer, sa, turn.ike),
                candidates: self.moving.has(sa).then(|| self.moving.candidates(sa)),
            };
            self.live.review(scene, turn);
        }
        turn.effects.len() > before
    }

    // Silence.

    /// Notes that a child SA sent its first datagram since it was watched.
    pub fn sends(&mut self, child: ChildSaId, now: Instant) {
        if let Some(of) = self.children.get(child) {
            self.silences.sends(of.ike, child, now);
            self.live.sends(of.peer, now);
        }
    }

    /// Reports peers that were heard through ESP to IKE, and the path of their newest packet, so
    /// that liveness checks cost nothing while traffic flows (RFC 7296 section 2.4). Only peers
    /// that are due for a check are looked at.
    pub fn tell_liveness(&mut self, turn: &mut Turn<'_>) {
        let due: Vec<_> = turn.ike.due(turn.now).collect();
        for (sa, children) in due {
            let (mut newest, mut stray) = (None, None);
            for id in children {
                let seen = turn.plane.observed(id);
                let heard = seen.heard.map(|heard| (heard, id));
                let child = self.children.get_mut(id);
                // The packets on a further path say nothing about that of the IKE SA.
                let name = child
                    .as_ref()
                    .and_then(|child| child.status.name.as_deref());
                if heard > newest && !is_on_further_path(name) {
                    (newest, stray) = (heard, seen.stray);
                }
                if let Some(child) = child.filter(|child| seen.heard > child.heard) {
                    child.heard = seen.heard;
                    let at = seen.heard.unwrap_or(turn.now);
                    turn.add(IkeCommand::NoteInbound(child.ike, at));
                }
            }
            turn.add(IkeCommand::NoteNewest(sa, stray));
        }
    }

    /// Checks peers that have been silent for too long. Returns their child SAs.
    pub fn break_silences(&mut self, turn: &mut Turn<'_>) -> Vec<ChildSaId> {
        self.silences.handle_timeout(turn)
    }

    /// Reports initiations without an answer, and plans others beside those that the peer may have
    /// lost.
    pub fn judge_initiations(&mut self, turn: &mut Turn<'_>) {
        for peer in self.initiations.handle_timeout(turn) {
            self.retry_beside(peer, turn);
        }
    }

    // Traffic.

    /// Begins to meter what tunnels carry, if a reload asks for it.
    pub fn begin_meter(&mut self, turn: &Turn<'_>) {
        self.meter.begin(turn);
    }

    /// Counts what a child SA has carried, before it is removed.
    pub fn count_traffic(&mut self, child: ChildSaId, turn: &mut Turn<'_>) {
        self.meter.settle(child, &self.children, turn);
        if let Some(of) = self.children.get(child) {
            self.tally
                .settle(of.peer, turn.plane.observed(child).traffic);
        }
    }

    /// Returns the counts that outlive SAs.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    // Protection, cover and keys.

    /// Chooses among the agreed levels. `agreed` tells for each composite SA of the peer whether
    /// unencrypted packets are allowed. Returns the effective choice.
    pub fn choose_level(
        &mut self,
        peer: PeerId,
        role: Option<&Role>,
        agreed: impl Iterator<Item = bool>,
        signal: Signal,
    ) -> Result<LevelChoice, NoLevel> {
        self.levels.choose(peer, role, agreed, signal)?;
        Ok(self.levels.choice(peer))
    }

    /// Returns the operator's signal for a peer.
    pub fn signal(&self, peer: PeerId) -> Signal {
        self.levels.signal(peer)
    }

    /// Returns the next peer that is due for a dummy packet.
    pub fn pop_cover(&mut self) -> Option<PeerId> {
        self.cover.pop_ended()
    }

    /// Returns the reports of keys.
    pub const fn keys(&self) -> &KeyReports {
        &self.keys
    }

    /// Turns reports of keys on or off. Returns the reports of the established IKE SAs if they are
    /// on.
    pub fn set_key_log(&mut self, on: bool, ike: &ike::Engine) -> Vec<Event> {
        self.keys = KeyReports(on);
        let established = self.desired.iter();
        let established = established.filter_map(|entry| entry.up_since.and(entry.sa));
        let mut established: Vec<_> = established.collect();
        established.sort_unstable();
        let keys = established.into_iter();
        keys.filter_map(|sa| self.keys.of_ike(sa, ike)).collect()
    }

    // Time.

    /// Handles the deadlines of tunnels that move, and of cover traffic.
    pub fn handle_timeout(&mut self, turn: &mut Turn<'_>) {
        self.live.handle_timeout(turn.now);
        if self.moving.handle_timeout(turn) {
            self.live.stir_all();
        }
        self.moving.look_up(turn);
        self.cover.handle_timeout(turn.now);
        self.meter.handle_timeout(&self.children, turn);
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let deadlines = [
            self.desired.poll_timeout(),
            self.succession.poll_timeout(),
            self.moving.poll_timeout(),
            self.live.poll_timeout(),
            self.cover.poll_timeout(),
            self.silences.poll_timeout(),
            self.meter.poll_timeout(),
            self.initiations.poll_timeout(),
        ];
        deadlines.into_iter().flatten().min()
    }

    // Status.

    /// Returns the number of peers that are up.
    pub fn count_up(&self) -> usize {
        let up = self.desired.iter().filter(|entry| entry.up_since.is_some());
        up.count()
    }

    #[cfg(test)]
    pub const fn desired_mut(&mut self) -> &mut Peers {
        &mut self.desired
    }

    #[cfg(test)]
    pub const fn moves(&self) -> &std::cell::Cell<usize> {
        &self.moving.walks
    }

    #[cfg(test)]
    pub fn poll_moving(&self) -> Option<Deadline> {
        self.moving.poll_timeout()
    }

    pub fn entry(&self, peer: PeerId) -> Option<&Entry> {
        self.desired.get(peer)
    }

    pub fn rivals(&self, peer: PeerId) -> Option<InTurns> {
        self.rivals.of(peer)
    }

    /// Returns the last refusal of an unknown peer.
    pub const fn stranger(&self) -> Option<&Refused> {
        self.stranger.as_ref()
    }

    /// Returns the settings that peers assign to us, with the peers.
    pub fn assigned(&self) -> impl Iterator<Item = &(PeerId, Inside)> {
        self.assigned.values()
    }
}

/// Returns true if a child SA with this name has another path than the IKE SA.
fn is_on_further_path(name: Option<&str>) -> bool {
    path_of(name).is_some_and(|number| number > 1)
}

/// Returns the peers that are brought up without a command. Licensed nodes and neighbours are
/// always among them, because keys must be able to leave as soon as they exist or are requested.
fn wanted(start: Vec<PeerId>, peers: &[ike::Peer]) -> BTreeSet<PeerId> {
    let licensed = peers
        .iter()
        .filter(|peer| matches!(peer.role, Role::Licensed | Role::Neighbour));
    let licensed = licensed.map(|peer| peer.id);
    licensed.chain(start).collect()
}

/// Returns the rules for the traffic of live paths, if they apply to an IKE SA.
fn rules(peer: PeerId, sa: IkeSaId, ike: &ike::Engine) -> &[PathRule] {
    let peer = ike.peer(peer).filter(|_| ike.has_path_selectors(sa));
    peer.map_or(&[], |peer| &peer.rules)
}

/// Returns true if we can initiate with a peer. With a gateway whose grants we accept we never do.
fn is_reachable(peer: &ike::Peer, named: &BTreeSet<PeerId>) -> bool {
    let is_known = peer.address.is_some() || named.contains(&peer.id);
    is_known && !matches!(peer.role, Role::Gateway)
}

/// Records a child SA that is not encrypted.
fn note_unencrypted(child: &ChildSa<Secret>, turn: &mut Turn<'_>) {
    let suite = child.outbound.keys.plain_suite();
    if let Some(suite) = suite.filter(|suite| !suite.encrypts()) {
        turn.add(Event::Unencrypted {
            peer: child.peer,
            child: child.name.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            suite,
        });
    }
}
