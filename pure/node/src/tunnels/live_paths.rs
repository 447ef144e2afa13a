//! Several paths to one peer that carry packets at the same time (DESIGN section 6): which of them
//! exist, and which are used.
//!
//! Each path has a child SA for the same traffic, and `esp` sends each flow on one of them. An end
//! that stops sending on a path moves its flows to the others, without a message to the peer. Both
//! ends decide so independently ([`Health`]), and the initiator at once if packets cannot leave on
//! the path any more, or its signal is weak. If all paths are down, all are used, because any may
//! recover.
//!
//! The initiator adds a path for each further pair of addresses that answers, over UDP, the best
//! first ([`Pauses`]). A path that was lost is added again after a pause that doubles each time,
//! and is short again after a minute of use. A path is removed if packets cannot leave there, if it
//! was silent for long, or if the IKE SA has moved to the same pair of addresses.
//!
//! On the path of the IKE SA, the child SA that sends may be a slot (`licensing/placement.rs`). If
//! the IKE SA has moved to the addresses of a further path, that path carries the packets until the
//! slot is ready, so that the licensed node there can read them all the time.

use super::children::{Child, Children};
use super::lanes::{Ends, FIRST, Found, Lane, ends, number};
use super::own_traffic::{self, Carried};
use super::path_health::{Health, IDLE, TICK};
use super::pauses::Pauses;
use super::succession::Succession;
use crate::Event;
use crate::effects::{IkeCommand, Turn};
use esp::Command;
use ike::{PathRule, live_path, path_traffic};
use mobility::Candidate;
use model::{Carrier, ChildSaId, Deadline, IkeSaId, Instant, Path, PeerId, TrafficSelector};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Time for which a path is silent before it is removed.
const GIVE_UP: Duration = Duration::from_secs(30);

/// Time for which the IKE SA has the addresses of a further path before that is removed. Until the
/// peer has verified the move, it sends on the further path.
const BESIDE: Duration = Duration::from_secs(3);

/// Time after which an addition without an outcome is forgotten.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longest time between two reviews.
const REST: Duration = Duration::from_secs(3600);

/// The live paths of all peers with several.
#[derive(Default)]
pub(crate) struct LivePaths {
    peers: BTreeMap<PeerId, Paths>,
    due: BTreeSet<(Instant, PeerId)>,
    /// Child SAs on which nothing may be sent, because the peer has not answered on their paths.
    unproved: BTreeSet<ChildSaId>,
    /// Child SAs on whose paths a ping is due.
    pings: Vec<ChildSaId>,
    /// Peers whose paths or child SAs have changed since the last review.
    changed: BTreeSet<PeerId>,
    /// The interfaces of local addresses.
    interfaces: BTreeMap<IpAddr, String>,
}

/// The live paths of one peer.
struct Paths {
    sa: IkeSaId,
    lanes: BTreeMap<u8, Lane>,
    /// The path that is being added, and the time until which that may take.
    adding: Option<(Path, Instant)>,
    /// True if the peer allows no further path.
    is_full: bool,
    pauses: Pauses,
    /// Time at which a datagram was last seen.
    active: Instant,
    /// Time of the next tick.
    at: Instant,
}

/// The state of a live path, for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePathStatus {
    /// The path.
    pub path: Path,
    /// True if it is used.
    pub works: bool,
    /// True if the signal of our address is weak, and others carry what we send.
    pub is_avoided: bool,
    /// Traffic that the path carries before all others, at the end of the peer that did not select
    /// it; empty if there is none.
    pub traffic: Vec<TrafficSelector>,
    /// True if the path carries other traffic as well.
    pub is_shared: bool,
}

/// What a review reads.
pub(crate) struct Scene<'a> {
    pub peer: PeerId,
    pub sa: IkeSaId,
    /// The most paths.
    pub most: u8,
    pub children: &'a Children,
    /// Child SAs that do not send yet.
    pub succession: &'a Succession,
    pub slots: SlotUse,
    /// Rules for the traffic of interfaces.
    pub rules: &'a [PathRule],
    /// Pairs of addresses, the best first; none until they are known. `None` if the peer chooses
    /// the paths.
    pub candidates: Option<Vec<Candidate>>,
}

/// The use of slots on the path of the IKE SA.
#[derive(Clone, Copy, Default)]
pub(crate) struct SlotUse {
    /// The slot that sends.
    pub sends: Option<ChildSaId>,
    /// True if a licensed node there has a slot that is not ready yet.
    pub is_awaited: bool,
}

impl LivePaths {
    /// Notes a new child SA. Nothing is sent on the path of one that the peer requested before the
    /// peer has answered there.
    pub fn child_up(&mut self, child: ChildSaId, name: Option<&str>, ours: bool) {
        if live_path(name).is_some() && !ours {
            self.unproved.insert(child);
        }
    }

    /// Notes that the peer has answered on the path of a child SA.
    pub fn proved(&mut self, child: ChildSaId) {
        self.unproved.remove(&child);
    }

    pub fn child_down(&mut self, child: ChildSaId) {
        self.unproved.remove(&child);
    }

    /// Returns true if the peer has not answered on the path of a child SA.
    pub fn is_unproved(&self, child: ChildSaId) -> bool {
        self.unproved.contains(&child)
    }

    /// Returns true if a child SA is on a path that is not used.
    pub fn is_off(&self, peer: PeerId, name: Option<&str>, sa: IkeSaId) -> bool {
        let Some(paths) = self.peers.get(&peer).filter(|paths| paths.sa == sa) else {
            return false;
        };
        let lane = |number| paths.lanes.get(&number);
        match path_traffic(name) {
            Some(traffic) => lane(traffic.path).is_some_and(|lane| lane.own.is_off()),
            None => number(name).and_then(lane).is_some_and(|lane| lane.is_off),
        }
    }

    /// Sets the interfaces of local addresses.
    pub fn set_interfaces(&mut self, interfaces: BTreeMap<IpAddr, String>) {
        if self.interfaces != interfaces {
            self.interfaces = interfaces;
            self.stir_all();
        }
    }

    /// Has the paths of a peer reviewed.
    pub fn stir(&mut self, peer: PeerId) {
        self.changed.insert(peer);
    }

    /// Has the paths of all peers reviewed, as packets can leave on other paths than before.
    pub fn stir_all(&mut self) {
        self.changed.extend(self.peers.keys());
    }

    /// Notes that rules may be others. The traffic of one that a peer refused is requested without
    /// a pause.
    pub fn reloaded(&mut self) {
        let paths = self.peers.values_mut();
        for lane in paths.flat_map(|paths| paths.lanes.values_mut()) {
            lane.own.hasten();
        }
        self.stir_all();
    }

    /// Notes that the peer has left the path of the IKE SA.
    pub fn path_left(&mut self, peer: PeerId) {
        self.change(peer, |paths| {
            if let Some(lane) = paths.lanes.get_mut(&FIRST) {
                lane.health.leave();
            }
        });
    }

    /// Notes that child SAs have another path, which is verified.
    pub fn path_moved(&mut self, peer: PeerId, children: &[ChildSaId], now: Instant) {
        self.change(peer, |paths| {
            let moved = paths.lanes.values_mut();
            for lane in moved.filter(|lane| children.contains(&lane.current)) {
                (lane.health, lane.since) = (Health::new(), now);
                paths.at = now;
            }
        });
    }

    /// Notes that a path was not added.
    pub fn not_added(&mut self, peer: PeerId, path: Path, full: bool, now: Instant) {
        self.change(peer, |paths| {
            paths.adding.take_if(|(adding, _)| *adding == path);
            paths.is_full |= full;
            paths.put_off(ends(path), false, now);
        });
    }

    /// Notes that a child SA sends after a pause.
    pub fn sends(&mut self, peer: PeerId, now: Instant) {
        self.change(peer, |paths| {
            paths.active = now;
            paths.at = paths.at.min(now + TICK);
        });
    }

    pub fn forget(&mut self, peer: PeerId) {
        if let Some(paths) = self.peers.remove(&peer) {
            self.due.remove(&(paths.at, peer));
        }
    }

    /// Has the paths that are due reviewed.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        self.changed.extend(due.map(|(_, peer)| *peer));
    }

    /// Returns the peers whose paths are to be reviewed.
    pub fn take_changed(&mut self) -> BTreeSet<PeerId> {
        std::mem::take(&mut self.changed)
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let (at, _) = self.due.first()?;
        Some(Deadline {
            at: *at,
            reason: "check live paths",
        })
    }

    /// Returns the child SAs on whose paths a ping is due.
    pub fn take_pings(&mut self) -> Vec<ChildSaId> {
        std::mem::take(&mut self.pings)
    }

    /// Reviews the paths of a peer: which exist, and which are used.
    pub fn review(&mut self, scene: Scene<'_>, turn: &mut Turn<'_>) {
        let (peer, sa, now) = (scene.peer, scene.sa, turn.now);
        let paths = self
            .peers
            .entry(peer)
            .or_insert_with(|| Paths::new(sa, now));
        if paths.sa != sa {
            let at = paths.at;
            *paths = Paths::new(sa, now);
            self.due.remove(&(at, peer));
        }
        let rules = own_traffic::by_address(&self.interfaces, scene.rules);
        let mut pings = Vec::new();
        self.change(peer, |paths| pings = paths.review(scene, &rules, turn));
        self.changed.remove(&peer);
        self.pings.append(&mut pings);
    }

    /// Returns the live paths of a peer, that of the IKE SA first.
    pub fn status(&self, peer: PeerId) -> Vec<LivePathStatus> {
        let lanes = self.peers.get(&peer).map(|paths| paths.lanes.values());
        let status = |lane: &Lane| LivePathStatus {
            path: lane.path,
            works: !lane.health.is_down(),
            is_avoided: lane.is_avoided,
            traffic: lane.own.selectors().to_vec(),
            is_shared: !lane.is_off,
        };
        lanes.into_iter().flatten().map(status).collect()
    }

    fn change(&mut self, peer: PeerId, change: impl FnOnce(&mut Paths)) {
        if let Some(paths) = self.peers.get_mut(&peer) {
            self.due.remove(&(paths.at, peer));
            change(paths);
            self.due.insert((paths.at, peer));
            self.changed.insert(peer);
        }
    }
}

impl Paths {
    fn new(sa: IkeSaId, now: Instant) -> Self {
        Self {
            sa,
            lanes: BTreeMap::new(),
            adding: None,
            is_full: false,
            pauses: Pauses::default(),
            active: now,
            at: now,
        }
    }

    /// Returns the child SAs on whose paths a ping is due.
    fn review(
        &mut self,
        scene: Scene<'_>,
        rules: &BTreeMap<IpAddr, u8>,
        turn: &mut Turn<'_>,
    ) -> Vec<ChildSaId> {
        self.update(&scene, turn);
        let pings = match self.at <= turn.now {
            true => self.tick(turn),
            false => Vec::new(),
        };
        if let Some(candidates) = scene.candidates.as_ref().filter(|all| !all.is_empty()) {
            self.choose(candidates, rules, scene.most, turn);
            self.follow_rules(rules, turn);
        }
        // A single path is used in any case, and has no signs of life.
        let is_single = self.lanes.len() == 1;
        for lane in self.lanes.values_mut().filter(|_| is_single) {
            lane.health = Health::new();
        }
        self.apply(scene.peer, scene.slots.is_awaited, turn);
        pings
    }

    /// Updates the paths from the child SAs.
    fn update(&mut self, scene: &Scene<'_>, turn: &Turn<'_>) {
        let mut found: BTreeMap<u8, Found> = BTreeMap::new();
        let mut own: BTreeMap<u8, Carried> = BTreeMap::new();
        let sends = |id, child: &Child| {
            child.ike == scene.sa && !child.retired && !scene.succession.is_waiting(id)
        };
        let of_peer = scene.children.of_peer(scene.peer);
        for (id, child) in of_peer.filter(|(id, child)| sends(*id, child)) {
            let name = child.status.name.as_deref();
            if let Some(traffic) = path_traffic(name) {
                let own = own.entry(traffic.path);
                let own = own.or_insert_with(|| Carried::new(traffic));
                own.enter(id, &child.status.local, &child.status.remote);
            }
            if let Some(number) = number(name) {
                let path = child.status.path;
                let found = found.entry(number).or_insert_with(|| Found::new(path));
                found.enter(id, name, path);
            }
        }
        let lost = |(number, lane): (&u8, &Lane)| {
            (!found.contains_key(number)).then(|| (ends(lane.path), lane.lasted(turn.now)))
        };
        for (ends, lasted) in self.lanes.iter().filter_map(lost).collect::<Vec<_>>() {
            self.put_off(ends, lasted, turn.now);
            self.is_full = false;
        }
        self.lanes.retain(|number, _| found.contains_key(number));
        for (number, found) in found {
            self.enter(number, found, scene.slots.sends, turn.now);
        }
        for (number, lane) in &mut self.lanes {
            lane.own.update(own.remove(number));
        }
    }

    fn enter(&mut self, number: u8, found: Found, slot: Option<ChildSaId>, now: Instant) {
        let Found {
            path,
            children: mut older,
            slots,
        } = found;
        let Some(current) = older.pop() else { return };
        let added = ends(path);
        self.adding
            .take_if(|(adding, _)| number != FIRST && ends(*adding) == added);
        let lane = self.lanes.entry(number).or_insert_with(|| {
            self.at = now;
            Lane::new(path, current, now)
        });
        (lane.path, lane.current, lane.older) = (path, current, older);
        lane.slot = slot.filter(|slot| slots.contains(slot));
        lane.slots = slots;
    }

    /// Evaluates signs of life. Returns the child SAs on whose paths a ping is due.
    fn tick(&mut self, turn: &mut Turn<'_>) -> Vec<ChildSaId> {
        let now = turn.now;
        let round_trip = turn.ike.sa(self.sa).and_then(|sa| sa.round_trip);
        let mut pings = Vec::new();
        // A single path has no use for pings.
        let several = self.lanes.len() > 1;
        for (number, lane) in self.lanes.iter_mut().filter(|_| several) {
            let seen = lane.look(round_trip, turn);
            if seen.is_busy {
                self.active = now;
            }
            let was_down = lane.health.is_down();
            if lane.health.tick(seen, now) {
                pings.push(lane.sending());
            }
            if was_down != lane.health.is_down() {
                lane.since = now;
                // The IKE SA looks for another path if its own does not answer.
                if *number == FIRST && !was_down {
                    turn.add(IkeCommand::Doubt(self.sa));
                }
            }
        }
        self.schedule(turn);
        pings
    }

    fn schedule(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now;
        let several = self.lanes.len() > 1;
        let is_busy = now < self.active + IDLE;
        let lanes = self.lanes.values().filter(|_| several);
        let next = lanes.map(|lane| lane.health.next(is_busy, now));
        let next = next.chain(self.next_change(now)).min();
        self.at = next.unwrap_or(now + REST);
        if several && !is_busy {
            for lane in self.lanes.values() {
                let senders = lane.senders();
                senders.for_each(|id| turn.add(Command::Watch(id)));
            }
        }
    }

    /// Returns the time of the next change that no event announces.
    fn next_change(&self, now: Instant) -> Option<Instant> {
        let doubles = self.lanes.values().filter_map(|lane| lane.double);
        let doubles = doubles.map(|since| since + BESIDE);
        let adding = self.adding.map(|(_, until)| until);
        let asking = self.lanes.values().filter_map(|lane| lane.own.again());
        let all = self
            .pauses
            .ends()
            .chain(doubles)
            .chain(adding)
            .chain(asking);
        all.filter(|at| *at > now).min()
    }

    /// Removes paths, and adds one.
    fn choose(
        &mut self,
        candidates: &[Candidate],
        rules: &BTreeMap<IpAddr, u8>,
        most: u8,
        turn: &mut Turn<'_>,
    ) {
        let now = turn.now;
        let ways = candidates.iter().filter(|way| way.carrier == Carrier::Udp);
        let ways: Vec<Ends> = ways.map(|way| (way.way.local, way.way.remote)).collect();
        self.pauses.note_ways(&ways, now);
        let first = self.lanes.get(&FIRST).map(|lane| lane.path);
        let mut removed = Vec::new();
        for (number, lane) in &mut self.lanes {
            let local = lane.path.local.ip();
            let mut all = candidates.iter();
            lane.is_weak = all.any(|way| way.is_weak && way.way.local == local);
            let is_gone = !ways.contains(&ends(lane.path));
            if is_gone {
                lane.health.leave();
            }
            if *number == FIRST {
                continue;
            }
            let is_double = first.map(ends) == Some(ends(lane.path));
            lane.double = is_double.then(|| lane.double.unwrap_or(now));
            let has_been =
                |since: Option<Instant>, time| since.is_some_and(|since| since + time <= now);
            let is_silent = lane.health.is_down() && has_been(Some(lane.since), GIVE_UP);
            if !lane.is_leaving && (is_gone || is_silent || has_been(lane.double, BESIDE)) {
                lane.is_leaving = true;
                removed.push(*number);
            }
        }
        for number in removed {
            turn.add(IkeCommand::RemovePath(self.sa, number));
        }
        self.add(&ways, rules, most, turn);
        if let Some(next) = self.next_change(now) {
            self.at = self.at.min(next);
        }
    }

    /// Has each path carry the traffic of the rule for its interface.
    fn follow_rules(&mut self, rules: &BTreeMap<IpAddr, u8>, turn: &mut Turn<'_>) {
        // A single path carries all traffic.
        let several = self.lanes.len() > 1;
        for (number, lane) in &mut self.lanes {
            let is_leaving = lane.is_leaving || lane.double.is_some();
            let is_usable = several && !is_leaving && !lane.health.is_down();
            let rule = rules.get(&lane.path.local.ip()).copied();
            lane.own
                .follow_rule(*number, rule, is_usable, self.sa, turn);
        }
        if let Some(next) = self.next_change(turn.now) {
            self.at = self.at.min(next);
        }
    }

    /// Returns the pairs of addresses of all paths.
    fn used(&self) -> Vec<Ends> {
        self.lanes.values().map(|lane| ends(lane.path)).collect()
    }

    fn add(&mut self, ways: &[Ends], rules: &BTreeMap<IpAddr, u8>, most: u8, turn: &mut Turn<'_>) {
        let now = turn.now;
        self.adding.take_if(|(_, until)| *until <= now);
        let room = self.lanes.len() < usize::from(most) && self.lanes.contains_key(&FIRST);
        if !room || self.is_full || self.adding.is_some() {
            return;
        }
        let Some(current) = turn.ike.sa(self.sa).map(|sa| sa.path) else {
            return;
        };
        let way = self.pauses.best(ways, &self.used(), rules, now);
        let Some(way) = way.filter(|_| current.carrier == Carrier::Udp) else {
            return;
        };
        let path = path_on(way, current);
        self.adding = Some((path, now + PATIENCE));
        turn.add(IkeCommand::AddPath(self.sa, path));
    }

    /// Has a pair of addresses wait before it is used again.
    fn put_off(&mut self, ends: Ends, lasted: bool, now: Instant) {
        let until = self.pauses.put_off(ends, lasted, now);
        self.at = self.at.min(until);
    }

    /// Stops sending on the paths that are down, unless all are, and on those with a weak signal if
    /// another one works. Sends on all others. A path that is to be removed is left first, so that
    /// packets under way arrive before that.
    fn apply(&mut self, peer: PeerId, awaits_slot: bool, turn: &mut Turn<'_>) {
        let is_covered = awaits_slot && self.is_covered();
        let is_usable = |number: u8, lane: &Lane| {
            let is_left = match is_covered {
                true => number == FIRST,
                false => lane.double.is_some(),
            };
            !lane.health.is_down() && !is_left
        };
        let mut all = self.lanes.iter();
        // A path that is reserved for other traffic is no reason to leave a weak one.
        let any_strong = all.any(|(number, lane)| {
            is_usable(*number, lane) && !lane.is_weak && !lane.own.is_reserved()
        });
        let is_open =
            |number: u8, lane: &Lane| is_usable(number, lane) && !(any_strong && lane.is_weak);
        let mut all = self.lanes.iter();
        let any = all.any(|(number, lane)| is_open(*number, lane));
        let mut all = self.lanes.iter();
        let yields = all.any(|(number, lane)| is_open(*number, lane) && !lane.own.is_reserved());
        let mut retired = Vec::new();
        for (number, lane) in &mut self.lanes {
            lane.is_avoided = any_strong && lane.is_weak && is_usable(*number, lane);
            lane.switch(any && !is_open(*number, lane), yields, &mut retired, turn);
            // A path that works is not down because another one covers it.
            let is_down = lane.health.is_down();
            let was_down = std::mem::replace(&mut lane.is_down, is_down);
            let (path, works) = (lane.path, !is_down);
            if was_down != is_down && lane.double.is_none() && !lane.is_leaving {
                turn.add(Event::LivePath { peer, path, works });
            }
        }
        own_traffic::retire(retired, turn);
    }

    /// Returns true if a further path works between the same ends as that of the IKE SA, and is not
    /// removed yet. Two paths from behind one NAT have different ports.
    fn is_covered(&self) -> bool {
        let ends = |path: Path| (path.local.ip(), path.remote);
        let first = self.lanes.get(&FIRST).map(|lane| ends(lane.path));
        let mut further = self.lanes.iter().filter(|(number, _)| **number != FIRST);
        further.any(|(_, lane)| {
            let works = !lane.health.is_down() && !lane.is_leaving;
            works && first == Some(ends(lane.path))
        })
    }
}

/// Returns the path between two addresses, with the ports of the current one.
fn path_on((local, remote): Ends, current: Path) -> Path {
    let port = match remote == current.remote.ip() {
        true => current.remote.port(),
        false => ike::NATT_PORT,
    };
    Path::udp(
        SocketAddr::new(local, current.local.port()),
        SocketAddr::new(remote, port),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths from two interfaces behind one NAT have the same addresses for the gateway.
    #[test]
    fn a_path_with_another_port_of_the_peer_does_not_cover_that_of_the_ike_sa() {
        let path = |port| {
            let socket = |end: [u8; 4], port| SocketAddr::from((end, port));
            Path::udp(
                socket([192, 0, 2, 1], 4500),
                socket([198, 51, 100, 1], port),
            )
        };
        for (port, covers) in [(4500, true), (60_001, false)] {
            let mut paths = Paths::new(IkeSaId(1), Instant::ZERO);
            for (number, port) in [(FIRST, 4500), (2, port)] {
                let child = ChildSaId(number.into());
                let lane = Lane::new(path(port), child, Instant::ZERO);
                paths.lanes.insert(number, lane);
            }
            assert_eq!(paths.is_covered(), covers, "{port}");
        }
    }
}
