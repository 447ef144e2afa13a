//! Tunnels that move (RFC 4555): `mobility` decides, `ike` says it to the peer, `esp` follows.
//!
//! The driver tells by which ways packets can leave ([`Node::handle_ways`]) whenever that changes,
//! and when [`crate::Event::WaysWanted`] says that there is a tunnel to be asked for: the way is a
//! matter of the system's routes, of which nothing is known here. The peer of a tunnel may list
//! other addresses in each of its requests. That costs look-ups of its own addresses alone, and one
//! a second at most.

use crate::node::Node;
use crate::{Event, UnknownPeer};
use ike::Tcp;
use mobility::{Candidate, Carriage, NoWay, Paths, Step, Way};
use model::{Carrier, ChildSaId, Deadline, Encapsulation, IkeSaId, Instant, Mode, Path};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Shortest time between two look-ups for the addresses that one peer lists.
const PAUSE: Duration = Duration::from_secs(1);

/// The IKE SAs that are ours to move. A message of one of them visits no other.
#[derive(Default)]
pub(crate) struct Moving {
    all: BTreeMap<IkeSaId, Mobile>,
    /// SAs that may have a step to take.
    changed: BTreeSet<IkeSaId>,
    /// SAs with a hand-over that waits.
    late: BTreeSet<IkeSaId>,
    /// Deadlines of the SAs.
    deadlines: BTreeSet<(Deadline, IkeSaId)>,
    /// Number of visits to all SAs.
    #[cfg(test)]
    pub(crate) walks: std::cell::Cell<usize>,
}

struct Mobile {
    paths: Paths,
    /// The peer's addresses, that in use at first.
    remotes: Vec<IpAddr>,
    /// The paths of the clone that is to take its place.
    next: Option<Paths>,
    /// A hand-over that waits for the end of another one, with its local address if an operator
    /// chose one.
    later: Option<Option<IpAddr>>,
    /// Time of the last look-up for the peer's addresses.
    looked_up: Option<Instant>,
    /// Time of the next one, if the peer has listed others since.
    due: Option<Instant>,
}

/// Why a tunnel does not move.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotMove {
    /// The configuration does not have the peer.
    #[error(transparent)]
    UnknownPeer(#[from] UnknownPeer),
    /// The IKE SA cannot, or it is not for us.
    #[error(transparent)]
    Ike(#[from] ike::CannotMove),
    /// Not from there.
    #[error(transparent)]
    NoWay(#[from] NoWay),
}

/// Where a peer's tunnel goes, and could go.
#[derive(Clone, Debug)]
pub struct PathsStatus {
    /// Name of the peer's table.
    pub name: String,
    /// The path of its IKE SA.
    pub path: Path,
    /// Whether it can move, and then whether it is for us to decide.
    pub moves: Option<bool>,
    /// The ways it could take, if it is.
    pub candidates: Vec<Candidate>,
}

impl Node {
    /// The addresses of peers to which ways are wanted, those in use before others.
    pub fn remotes(&self) -> Vec<IpAddr> {
        let used = self.moving.iter().flat_map(|mobile| &mobile.remotes);
        let honest = self.encapsulation == Encapsulation::ForNat;
        let known = self.ike.peers().iter();
        let known = known.filter_map(|peer| peer.address.as_ref());
        let remotes = used.chain(known.filter(|_| honest)).copied();
        let mut seen = BTreeSet::new();
        remotes.filter(|remote| seen.insert(*remote)).collect()
    }

    /// The addresses of the peer of one tunnel, to which ways are wanted.
    pub fn remotes_of(&self, sa: IkeSaId) -> &[IpAddr] {
        let mobile = self.moving.all.get(&sa);
        mobile.map_or(&[], |mobile| &mobile.remotes)
    }

    /// By which pairs of addresses packets can leave now to the peer of one tunnel, for each of
    /// [`Self::remotes_of`] the best first.
    pub fn handle_ways_of(&mut self, sa: IkeSaId, ways: &[Way], now: Instant) {
        let ways = by_remote(ways);
        self.moving.change(sa, |mobile| mobile.handle_ways(&ways));
        self.drain(now);
    }

    /// By which pairs of addresses packets can leave now: all of them, for each of
    /// [`Self::remotes`] the best first.
    pub fn handle_ways(&mut self, ways: &[Way], now: Instant) {
        let of_each = by_remote(ways);
        self.moving
            .change_all(|mobile| mobile.handle_ways(&of_each));
        // The best of each comes first, and is the last to be entered.
        let best = ways.iter().rev().map(|way| (way.remote, way.local));
        self.sources = match self.encapsulation {
            Encapsulation::ForNat => best.collect(),
            Encapsulation::Always => BTreeMap::new(),
        };
        self.initiate_due(now);
    }

    /// Moves a peer's tunnel so that it leaves from an address, or by the best way there is. The
    /// peer is told even if that is the way it takes.
    pub fn move_peer(
        &mut self,
        peer: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<Path, CannotMove> {
        let sa = self.movable(peer)?;
        let chosen = self.moving.change(sa, |mobile| mobile.paths.choose(from));
        let path = chosen.ok_or(ike::CannotMove::NotAgreed)??;
        self.drain(now);
        Ok(path)
    }

    /// The same without a pause: a clone of the IKE SA (RFC 7791) goes there, and takes its place
    /// with the same children once these work. If nothing comes of it, all stays where it is. While
    /// another hand-over is on its way, or the SA before drains, this one waits.
    pub fn hand_over(
        &mut self,
        peer: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<Path, CannotMove> {
        let sa = self.movable(peer)?;
        let (path, _) = self.start_hand_over(sa, from, now)?;
        self.drain(now);
        Ok(path)
    }

    /// Starts a hand-over, or has it wait while another one is under way. Returns its path, and
    /// true if it was started.
    fn start_hand_over(
        &mut self,
        sa: IkeSaId,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<(Path, bool), CannotMove> {
        let mobile = self.moving.all.get(&sa);
        let mut next = mobile.ok_or(ike::CannotMove::NotAgreed)?.paths.clone();
        let path = next.choose(from)?;
        // It is for the clone to go there.
        next.poll_step();
        let started = match self.ike.hand_over(sa, path, now) {
            Err(ike::CannotMove::UnderWay) => false,
            handed_over => handed_over.map(|_| true)?,
        };
        self.moving.change(sa, |mobile| {
            if started {
                mobile.next = Some(next);
            }
            mobile.later = (!started).then_some(from);
        });
        Ok((path, started))
    }

    /// Starts hand-overs that waited for others. Returns true if any was started or refused.
    pub(crate) fn hand_over_late(&mut self, now: Instant) -> bool {
        let late = self.moving.late.iter();
        let late = late.filter_map(|sa| Some((*sa, self.moving.all.get(sa)?.later?)));
        let late: Vec<_> = late.collect();
        let mut any = false;
        for (sa, from) in late {
            any |= match self.start_hand_over(sa, from, now) {
                Ok((_, started)) => started,
                Err(why) => {
                    self.moving.change(sa, |mobile| mobile.later = None);
                    let peer = self.name(sa);
                    self.refused(peer, format!("the tunnel is not handed over: {why}"), now);
                    true
                }
            };
        }
        any
    }

    /// The IKE SA with a peer, if it is ours to move.
    fn movable(&self, peer: &str) -> Result<IkeSaId, CannotMove> {
        self.peer(peer).ok_or(UnknownPeer)?;
        let sa = self.established(peer).ok_or(ike::CannotMove::NotUp)?;
        if self.moving.all.contains_key(&sa) {
            return Ok(sa);
        }
        let theirs = self.ike.sa(sa).is_some_and(|up| up.moves.is_some());
        Err(match theirs {
            true => ike::CannotMove::NotOurs,
            false if self.is_fixed(peer, sa) => ike::CannotMove::Transport,
            false => ike::CannotMove::NotAgreed,
        }
        .into())
    }

    /// Whether a child of an IKE SA is bound to the addresses outside.
    fn is_fixed(&self, peer: &str, sa: IkeSaId) -> bool {
        let mut children = self.children.of_peer(peer);
        children.any(|(_, child)| child.ike == sa && child.status.mode == Mode::Transport)
    }

    /// Where the tunnels go that are up, and could go.
    pub fn paths(&self) -> Vec<PathsStatus> {
        let status = |sa: ike::SaStatus| {
            let name = sa
                .peer
                .filter(|name| self.established(name) == Some(sa.id))?;
            let mobile = self.moving.all.get(&sa.id);
            Some(PathsStatus {
                name,
                path: sa.path,
                moves: sa.moves,
                candidates: mobile.map_or_else(Vec::new, |m| m.paths.candidates().to_vec()),
            })
        };
        self.ike.sas().filter_map(status).collect()
    }

    /// An IKE SA can move; the peer's addresses are these.
    pub(crate) fn mobile(&mut self, sa: IkeSaId, path: Path, others: Vec<IpAddr>, now: Instant) {
        let used = std::iter::once(path.remote.ip());
        let mut seen = BTreeSet::new();
        let remotes = used.chain(others).filter(|remote| seen.insert(*remote));
        let remotes: Vec<_> = remotes.collect();
        if !self.moving.all.contains_key(&sa) {
            let mobile = Mobile {
                paths: Paths::new(path, self.carriages(sa)),
                remotes: Vec::new(),
                next: None,
                later: None,
                looked_up: None,
                due: None,
            };
            self.moving.insert(sa, mobile);
        }
        self.moving.change(sa, |mobile| {
            if mobile.remotes != remotes {
                mobile.remotes = remotes;
                let again = mobile.looked_up.map(|before| before + PAUSE);
                mobile.due = Some(again.map_or(now, |again| again.max(now)));
            }
        });
        self.look_up(now);
    }

    /// Asks for the ways of the tunnels that are due.
    pub(crate) fn look_up(&mut self, now: Instant) {
        for sa in self.moving.due(now) {
            let looks = self.moving.change(sa, |mobile| {
                let looks = mobile.due.take_if(|due| *due <= now).is_some();
                if looks {
                    mobile.looked_up = Some(now);
                }
                looks
            });
            if looks == Some(true) {
                self.events.push_back(Event::WaysWanted { of: Some(sa) });
            }
        }
    }

    /// What can carry packets to the peer of an IKE SA, the best first.
    fn carriages(&self, sa: IkeSaId) -> Vec<Carriage> {
        let datagrams = Carriage {
            carrier: Carrier::Udp,
            local: self.natt_port,
            remote: ike::NATT_PORT,
        };
        let stream = |remote| Carriage {
            carrier: Carrier::Tcp,
            local: 0,
            remote,
        };
        let peer = self.name(sa).and_then(|name| self.peer(&name));
        match peer.map_or(Tcp::Off, |peer| peer.tcp) {
            Tcp::Off => vec![datagrams],
            Tcp::Fallback(port) => vec![datagrams, stream(port)],
            Tcp::Always(port) => vec![stream(port)],
        }
    }

    pub(crate) fn path_silent(&mut self, sa: IkeSaId, now: Instant) {
        self.moving
            .change(sa, |mobile| mobile.paths.handle_silence(now));
    }

    pub(crate) fn path_answers(&mut self, sa: IkeSaId, path: Path) {
        self.moving
            .change(sa, |mobile| mobile.paths.handle_answer(path));
    }

    pub(crate) fn move_refused(&mut self, sa: IkeSaId) {
        self.moving
            .change(sa, |mobile| mobile.paths.handle_refusal());
    }

    /// The children of an IKE SA take another path.
    pub(crate) fn path_moved(&mut self, sa: IkeSaId, children: &[ChildSaId], path: Path) {
        for id in children {
            let before = self.children.get(*id).map(|child| child.status.path);
            let presumed = before.and_then(|before| self.leave_path(*id, before));
            self.workers.move_path(*id, path);
            self.children.move_to(*id, path);
            self.measure_on(*id, presumed);
        }
        let peer = self.name(sa);
        if let Some(peer) = &peer {
            self.whereabouts.stir(peer);
        }
        // A clone takes nothing with it yet.
        if let Some(peer) = peer.filter(|peer| self.established(peer) == Some(sa)) {
            self.events.push_back(Event::PathMoved { peer, path });
        }
    }

    /// Does what was decided; whether anything was.
    pub(crate) fn take_steps(&mut self, now: Instant) -> bool {
        let mut any = false;
        for sa in std::mem::take(&mut self.moving.changed) {
            let mobile = self.moving.all.get_mut(&sa);
            match mobile.and_then(|mobile| mobile.paths.poll_step()) {
                Some(Step::Take(path)) => {
                    any = true;
                    // One that is just being deleted does not move any more.
                    let _ = self.ike.move_to(sa, path, now);
                }
                Some(Step::Try(path)) => {
                    any = true;
                    self.ike.probe(sa, path, now);
                }
                None => {}
            }
        }
        any
    }
}

impl Moving {
    /// A clone has the place of an IKE SA, where that was to go.
    pub(crate) fn hand_over(&mut self, old: IkeSaId, clone: IkeSaId) {
        let succeeds = |old: &mut Mobile| {
            Some(Mobile {
                paths: old.next.take()?,
                remotes: old.remotes.clone(),
                next: None,
                later: old.later.take(),
                looked_up: old.looked_up,
                due: old.due,
            })
        };
        if let Some(mobile) = self.change(old, succeeds).flatten() {
            self.insert(clone, mobile);
        }
    }

    pub(crate) fn forget(&mut self, sa: IkeSaId) {
        let gone = self.all.remove(&sa);
        self.index(sa, gone.as_ref().and_then(Mobile::poll_timeout));
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for sa in self.due(now) {
            self.change(sa, |mobile| mobile.paths.handle_timeout(now));
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    fn due(&self, now: Instant) -> Vec<IkeSaId> {
        let deadlines = self.deadlines.iter();
        let due = deadlines.take_while(|(deadline, _)| deadline.at <= now);
        due.map(|(_, sa)| *sa).collect()
    }

    fn iter(&self) -> impl Iterator<Item = &Mobile> {
        #[cfg(test)]
        self.walks.update(|walks| walks + 1);
        self.all.values()
    }

    fn insert(&mut self, sa: IkeSaId, mobile: Mobile) {
        let before = self.all.insert(sa, mobile);
        self.index(sa, before.as_ref().and_then(Mobile::poll_timeout));
    }

    /// Changes the state of one IKE SA, and keeps the indices consistent.
    fn change<T>(&mut self, sa: IkeSaId, change: impl FnOnce(&mut Mobile) -> T) -> Option<T> {
        let mobile = self.all.get_mut(&sa)?;
        let before = mobile.poll_timeout();
        let outcome = change(mobile);
        self.index(sa, before);
        Some(outcome)
    }

    fn change_all(&mut self, mut change: impl FnMut(&mut Mobile)) {
        #[cfg(test)]
        self.walks.update(|walks| walks + 1);
        for sa in self.all.keys().copied().collect::<Vec<_>>() {
            self.change(sa, &mut change);
        }
    }

    /// Enters an IKE SA that changed into the indices. `before` is its earlier deadline.
    fn index(&mut self, sa: IkeSaId, before: Option<Deadline>) {
        let mobile = self.all.get(&sa);
        let deadline = mobile.and_then(Mobile::poll_timeout);
        if before != deadline {
            if let Some(before) = before {
                self.deadlines.remove(&(before, sa));
            }
            self.deadlines.extend(deadline.map(|at| (at, sa)));
        }
        match mobile.is_some_and(|mobile| mobile.later.is_some()) {
            true => self.late.insert(sa),
            false => self.late.remove(&sa),
        };
        match mobile {
            Some(_) => self.changed.insert(sa),
            None => self.changed.remove(&sa),
        };
    }
}

impl Mobile {
    fn poll_timeout(&self) -> Option<Deadline> {
        let reason = "a peer has other addresses";
        let due = self.due.map(|at| Deadline { at, reason });
        self.paths.poll_timeout().into_iter().chain(due).min()
    }

    fn handle_ways(&mut self, ways: &Ways) {
        let ours = self.remotes.iter().filter_map(|remote| ways.get(remote));
        let ours: Vec<_> = ours.flatten().copied().collect();
        self.paths.handle_ways(&ours);
    }
}

/// The ways to each remote address, the best first.
type Ways = BTreeMap<IpAddr, Vec<Way>>;

fn by_remote(ways: &[Way]) -> Ways {
    let mut of_each = Ways::new();
    for way in ways {
        of_each.entry(way.remote).or_default().push(*way);
    }
    of_each
}
