//! Several paths to one peer that carry packets at the same time (DESIGN section 6): which of them
//! exist, and which are used.
//!
//! Each path has a child SA for the same traffic, and `esp` sends each flow on one of them. An end
//! that stops sending on a path moves its flows to the others, without a message to the peer. Both
//! ends decide so independently ([`Health`]), and the initiator at once if packets cannot leave on
//! the path any more. If all paths are down, all are used, because any may recover.
//!
//! The initiator adds a path for each further pair of addresses that answers, over UDP: from
//! another address of its own first, then to another one of the peer. A path that was lost is added
//! again after a pause that doubles each time, and is short again after a minute of use. A path is
//! removed if packets cannot leave there, if it was silent for long, or if the IKE SA has moved to
//! the same pair of addresses.

use super::children::{Child, Children};
use super::lanes::{Ends, FIRST, Lane, ends, number};
use super::path_health::{Health, IDLE, TICK};
use super::succession::Succession;
use crate::Event;
use crate::effects::{IkeCommand, Turn};
use esp::Command;
use ike::live_path;
use mobility::Candidate;
use model::{Carrier, ChildSaId, Deadline, IkeSaId, Instant, Path, PeerId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The first and the longest pause before a path is added again.
const PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(64);

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
}

/// The live paths of one peer.
struct Paths {
    sa: IkeSaId,
    lanes: BTreeMap<u8, Lane>,
    /// The path that is being added, and the time until which that may take.
    adding: Option<(Path, Instant)>,
    /// True if the peer allows no further path.
    is_full: bool,
    pauses: BTreeMap<Ends, Pause>,
    /// The pairs of addresses on which packets could leave at the last review.
    ways: BTreeSet<Ends>,
    /// Time at which a datagram was last seen.
    active: Instant,
    /// Time of the next tick.
    at: Instant,
}

struct Pause {
    until: Instant,
    length: Duration,
}

/// The state of a live path, for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePathStatus {
    /// The path.
    pub path: Path,
    /// True if it is used.
    pub works: bool,
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
    /// Pairs of addresses, the best first; none until they are known. `None` if the peer chooses
    /// the paths.
    pub candidates: Option<Vec<Candidate>>,
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
        let number = number(name);
        number.is_some_and(|number| paths.lanes.get(&number).is_some_and(|lane| lane.is_off))
    }

    /// Has the paths of a peer reviewed.
    pub fn stir(&mut self, peer: PeerId) {
        self.changed.insert(peer);
    }

    /// Has the paths of all peers reviewed, as packets can leave on other paths than before.
    pub fn stir_all(&mut self) {
        self.changed.extend(self.peers.keys());
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
        let mut pings = Vec::new();
        self.change(peer, |paths| pings = paths.review(scene, turn));
        self.changed.remove(&peer);
        self.pings.append(&mut pings);
    }

    /// Returns the live paths of a peer, that of the IKE SA first.
    pub fn status(&self, peer: PeerId) -> Vec<LivePathStatus> {
        let lanes = self.peers.get(&peer).map(|paths| paths.lanes.values());
        let status = |lane: &Lane| LivePathStatus {
            path: lane.path,
            works: !lane.health.is_down(),
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
    const fn new(sa: IkeSaId, now: Instant) -> Self {
        Self {
            sa,
            lanes: BTreeMap::new(),
            adding: None,
            is_full: false,
            pauses: BTreeMap::new(),
            ways: BTreeSet::new(),
            active: now,
            at: now,
        }
    }

    /// Returns the child SAs on whose paths a ping is due.
    fn review(&mut self, scene: Scene<'_>, turn: &mut Turn<'_>) -> Vec<ChildSaId> {
        self.update(&scene, turn);
        let pings = match self.at <= turn.now {
            true => self.tick(turn),
            false => Vec::new(),
        };
        if let Some(candidates) = scene.candidates.as_ref().filter(|all| !all.is_empty()) {
            self.choose(candidates, scene.most, turn);
        }
        // A single path is used in any case, and has no signs of life.
        let is_single = self.lanes.len() == 1;
        for lane in self.lanes.values_mut().filter(|_| is_single) {
            lane.health = Health::new();
        }
        self.apply(scene.peer, turn);
        pings
    }

    /// Updates the paths from the child SAs.
    fn update(&mut self, scene: &Scene<'_>, turn: &Turn<'_>) {
        let mut found: BTreeMap<u8, (Path, Vec<ChildSaId>)> = BTreeMap::new();
        let sends = |id, child: &Child| {
            child.ike == scene.sa && !child.retired && !scene.succession.is_waiting(id)
        };
        let of_peer = scene.children.of_peer(scene.peer);
        for (id, child) in of_peer.filter(|(id, child)| sends(*id, child)) {
            if let Some(number) = number(child.status.name.as_deref()) {
                let path = child.status.path;
                let (newest, ids) = found.entry(number).or_insert((path, Vec::new()));
                *newest = path;
                ids.push(id);
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
        for (number, (path, mut ids)) in found {
            let Some(current) = ids.pop() else { continue };
            self.enter(number, path, current, ids, turn.now);
        }
    }

    fn enter(
        &mut self,
        number: u8,
        path: Path,
        current: ChildSaId,
        older: Vec<ChildSaId>,
        now: Instant,
    ) {
        let added = ends(path);
        self.adding
            .take_if(|(adding, _)| number != FIRST && ends(*adding) == added);
        let lane = self.lanes.entry(number).or_insert_with(|| {
            self.at = now;
            Lane::new(path, current, now)
        });
        (lane.path, lane.current, lane.older) = (path, current, older);
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
                pings.push(lane.current);
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
                turn.add(Command::Watch(lane.current));
            }
        }
    }

    /// Returns the time of the next change that no event announces.
    fn next_change(&self, now: Instant) -> Option<Instant> {
        let pauses = self.pauses.values().map(|pause| pause.until);
        let doubles = self.lanes.values().filter_map(|lane| lane.double);
        let doubles = doubles.map(|since| since + BESIDE);
        let adding = self.adding.map(|(_, until)| until);
        let all = pauses.chain(doubles).chain(adding);
        all.filter(|at| *at > now).min()
    }

    /// Removes paths, and adds one.
    fn choose(&mut self, candidates: &[Candidate], most: u8, turn: &mut Turn<'_>) {
        let now = turn.now;
        let ways = candidates.iter().filter(|way| way.carrier == Carrier::Udp);
        let ways: Vec<Ends> = ways.map(|way| (way.way.local, way.way.remote)).collect();
        self.note_ways(&ways, now);
        let first = self.lanes.get(&FIRST).map(|lane| lane.path);
        let mut removed = Vec::new();
        for (number, lane) in &mut self.lanes {
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
        self.add(&ways, most, turn);
        if let Some(next) = self.next_change(now) {
            self.at = self.at.min(next);
        }
    }

    /// Notes the pairs of addresses that packets can leave on. A pause begins when one returns.
    fn note_ways(&mut self, ways: &[Ends], now: Instant) {
        for ends in ways.iter().filter(|ends| !self.ways.contains(ends)) {
            if let Some(pause) = self.pauses.get_mut(ends) {
                pause.until = now + pause.length;
            }
        }
        self.ways = ways.iter().copied().collect();
    }

    fn add(&mut self, ways: &[Ends], most: u8, turn: &mut Turn<'_>) {
        let now = turn.now;
        self.adding.take_if(|(_, until)| *until <= now);
        let room = self.lanes.len() < usize::from(most) && self.lanes.contains_key(&FIRST);
        if !room || self.is_full || self.adding.is_some() {
            return;
        }
        let Some(current) = turn.ike.sa(self.sa).map(|sa| sa.path) else {
            return;
        };
        let used: Vec<Ends> = self.lanes.values().map(|lane| ends(lane.path)).collect();
        let is_paused = |way: &Ends| self.pauses.get(way).is_some_and(|pause| now < pause.until);
        let open = ways.iter().filter(|way| !is_paused(way));
        let Some(way) = furthest(open, &used).filter(|_| current.carrier == Carrier::Udp) else {
            return;
        };
        let path = path_on(way, current);
        self.adding = Some((path, now + PATIENCE));
        turn.add(IkeCommand::AddPath(self.sa, path));
    }

    /// Has a pair of addresses wait before it is used again.
    fn put_off(&mut self, ends: Ends, lasted: bool, now: Instant) {
        let before = self.pauses.get(&ends).filter(|_| !lasted);
        let length = before.map_or(PAUSE, |pause| (pause.length * 2).min(LONGEST_PAUSE));
        let until = now + length;
        self.pauses.insert(ends, Pause { until, length });
        // A host has few addresses. Those that were used long ago are forgotten.
        self.pauses
            .retain(|_, pause| now < pause.until + 2 * LONGEST_PAUSE);
        self.at = self.at.min(until);
    }

    /// Stops sending on the paths that are down, unless all are, and sends on all others. A path
    /// that is to be removed is left first, so that packets under way arrive before that.
    fn apply(&mut self, peer: PeerId, turn: &mut Turn<'_>) {
        let is_open = |lane: &Lane| !lane.health.is_down() && lane.double.is_none();
        let any = self.lanes.values().any(is_open);
        for lane in self.lanes.values_mut() {
            let is_off = any && !is_open(&*lane);
            if is_off == lane.is_off {
                continue;
            }
            lane.is_off = is_off;
            match is_off {
                true => {
                    let all = lane.older.iter().chain([&lane.current]);
                    all.for_each(|child| turn.add(Command::Retire(*child)));
                }
                false => turn.add(Command::Prefer(lane.current)),
            }
            let (path, works) = (lane.path, !is_off);
            if lane.double.is_none() && !lane.is_leaving {
                turn.add(Event::LivePath { peer, path, works });
            }
        }
    }
}

/// Returns the way that shares least with those in use: from another address of ours, and then to
/// another one of the peer. Of several, the first.
fn furthest<'w>(ways: impl Iterator<Item = &'w Ends>, used: &[Ends]) -> Option<Ends> {
    let shared = |way: &Ends| {
        let local = used.iter().any(|(local, _)| *local == way.0);
        let remote = used.iter().any(|(_, remote)| *remote == way.1);
        (local, remote)
    };
    let ways = ways.copied().filter(|way| shared(way) != (true, true));
    ways.min_by_key(|way| shared(way))
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

    fn way(local: u8, remote: u8) -> Ends {
        ([10, 0, 0, local].into(), [192, 0, 2, remote].into())
    }

    #[test]
    fn a_path_from_another_address_is_better_than_one_to_another_address() {
        let all = [way(1, 1), way(1, 2), way(2, 1), way(2, 2)];
        let next = |used: &[Ends]| furthest(all.iter(), used);
        assert_eq!(next(&[way(1, 1)]), Some(way(2, 2)));
        assert_eq!(next(&[way(1, 1), way(2, 2)]), None);
        let one_peer = [way(1, 1), way(2, 1), way(3, 1)];
        let next = |used: &[Ends]| furthest(one_peer.iter(), used);
        assert_eq!(next(&[way(1, 1)]), Some(way(2, 1)));
        assert_eq!(next(&[way(1, 1), way(2, 1)]), Some(way(3, 1)));
        assert_eq!(
            furthest([way(1, 1), way(1, 2)].iter(), &[way(1, 1)]),
            Some(way(1, 2))
        );
    }

    #[test]
    fn a_pause_doubles_until_the_path_has_lasted() {
        let mut paths = Paths::new(IkeSaId(1), Instant::ZERO);
        let length = |paths: &Paths| paths.pauses[&way(1, 1)].length.as_secs();
        let mut lengths = Vec::new();
        for lasted in [false, false, false, true, false] {
            paths.put_off(way(1, 1), lasted, Instant::ZERO);
            lengths.push(length(&paths));
        }
        assert_eq!(lengths, [2, 4, 8, 2, 4]);
        for _ in 0..20 {
            paths.put_off(way(1, 1), false, Instant::ZERO);
        }
        assert_eq!(length(&paths), 64);
    }

    #[test]
    fn a_pause_begins_when_the_address_is_there_again() {
        let mut paths = Paths::new(IkeSaId(1), Instant::ZERO);
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        paths.note_ways(&[way(1, 1)], at(0));
        paths.put_off(way(1, 1), true, at(0));
        paths.note_ways(&[], at(0));
        paths.note_ways(&[way(1, 1)], at(60));
        assert_eq!(paths.pauses[&way(1, 1)].until, at(62));
        paths.note_ways(&[way(1, 1)], at(61));
        assert_eq!(
            paths.pauses[&way(1, 1)].until,
            at(62),
            "it was there before"
        );
    }
}
