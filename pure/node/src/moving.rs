//! Tunnels that move (RFC 4555): `mobility` decides, `ike` says it to the peer, `esp` follows.
//!
//! The driver tells by which ways packets can leave ([`Node::handle_ways`]) whenever that changes, and
//! when [`crate::Event::WaysWanted`] says that there is a tunnel to be asked for: the way is a matter
//! of the system's routes, of which nothing is known here. The peer of a tunnel may list other
//! addresses in each of its requests. That costs look-ups of its own addresses alone, and one a
//! second at most.

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

/// The IKE SAs that are ours to move.
#[derive(Default)]
pub(crate) struct Moving(BTreeMap<IkeSaId, Mobile>);

struct Mobile {
    paths: Paths,
    /// The peer's addresses, that in use at first.
    remotes: Vec<IpAddr>,
    /// The paths of the clone that is to take its place.
    next: Option<Paths>,
    /// A hand-over that waits for the end of another one, with its local address if an operator chose one.
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
        let mut remotes = Vec::new();
        let used = self.moving.0.values().flat_map(|mobile| &mobile.remotes);
        let honest = self.encapsulation == Encapsulation::ForNat;
        let known = self.ike.peers().iter();
        let known = known.filter_map(|peer| peer.address.as_ref());
        for remote in used.chain(known.filter(|_| honest)) {
            if !remotes.contains(remote) {
                remotes.push(*remote);
            }
        }
        remotes
    }

    /// The addresses of the peer of one tunnel, to which ways are wanted.
    pub fn remotes_of(&self, sa: IkeSaId) -> &[IpAddr] {
        let mobile = self.moving.0.get(&sa);
        mobile.map_or(&[], |mobile| &mobile.remotes)
    }

    /// By which pairs of addresses packets can leave now to the peer of one tunnel, for each of
    /// [`Self::remotes_of`] the best first.
    pub fn handle_ways_of(&mut self, sa: IkeSaId, ways: &[Way], now: Instant) {
        if let Some(mobile) = self.moving.0.get_mut(&sa) {
            mobile.handle_ways(ways);
        }
        self.drain(now);
    }

    /// By which pairs of addresses packets can leave now: all of them, for each of [`Self::remotes`]
    /// the best first.
    pub fn handle_ways(&mut self, ways: &[Way], now: Instant) {
        for mobile in self.moving.0.values_mut() {
            mobile.handle_ways(ways);
        }
        // The best of each comes first, and is the last to be entered.
        let best = ways.iter().rev().map(|way| (way.remote, way.local));
        self.sources = match self.encapsulation {
            Encapsulation::ForNat => best.collect(),
            Encapsulation::Always => BTreeMap::new(),
        };
        self.initiate_due(now);
    }

    /// Moves a peer's tunnel so that it leaves from an address, or by the best way there is. The peer
    /// is told even if that is the way it takes.
    pub fn move_peer(
        &mut self,
        peer: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<Path, CannotMove> {
        let (_, mobile) = self.movable(peer)?;
        let path = mobile.paths.choose(from)?;
        self.drain(now);
        Ok(path)
    }

    /// The same without a pause: a clone of the IKE SA (RFC 7791) goes there, and takes its place with the
    /// same children once these work. If nothing comes of it, all stays where it is. While another
    /// hand-over is on its way, or the SA before drains, this one waits.
    pub fn hand_over(
        &mut self,
        peer: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<Path, CannotMove> {
        let (sa, _) = self.movable(peer)?;
        let (path, _) = self.start_hand_over(sa, from, now)?;
        self.drain(now);
        Ok(path)
    }

    /// Starts a hand-over, or has it wait while another one is under way. Returns its path, and true if it
    /// was started.
    fn start_hand_over(
        &mut self,
        sa: IkeSaId,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<(Path, bool), CannotMove> {
        let mobile = self.moving.0.get_mut(&sa);
        let mobile = mobile.ok_or(ike::CannotMove::NotAgreed)?;
        let mut next = mobile.paths.clone();
        let path = next.choose(from)?;
        // It is for the clone to go there.
        next.poll_step();
        let started = match self.ike.hand_over(sa, path, now) {
            Err(ike::CannotMove::UnderWay) => false,
            handed_over => {
                handed_over?;
                mobile.next = Some(next);
                true
            }
        };
        mobile.later = (!started).then_some(from);
        Ok((path, started))
    }

    /// Starts hand-overs that waited for others. Returns true if any was started or refused.
    pub(crate) fn hand_over_late(&mut self, now: Instant) -> bool {
        let mobiles = self.moving.0.iter();
        let late = mobiles.filter_map(|(sa, mobile)| Some((*sa, mobile.later?)));
        let late: Vec<_> = late.collect();
        let mut any = false;
        for (sa, from) in late {
            any |= match self.start_hand_over(sa, from, now) {
                Ok((_, started)) => started,
                Err(why) => {
                    self.moving.give_up_late(sa);
                    let peer = self.name(sa);
                    self.refused(peer, format!("the tunnel is not handed over: {why}"), now);
                    true
                }
            };
        }
        any
    }

    /// The IKE SA with a peer, if it is ours to move.
    fn movable(&mut self, peer: &str) -> Result<(IkeSaId, &mut Mobile), CannotMove> {
        self.peer(peer).ok_or(UnknownPeer)?;
        let sa = self.established(peer).ok_or(ike::CannotMove::NotUp)?;
        let theirs = self.ike.sa(sa).is_some_and(|up| up.moves.is_some());
        let fixed = self.is_fixed(sa);
        let mobile = self.moving.0.get_mut(&sa);
        let mobile = mobile.ok_or(match theirs {
            true => ike::CannotMove::NotOurs,
            false if fixed => ike::CannotMove::Transport,
            false => ike::CannotMove::NotAgreed,
        })?;
        Ok((sa, mobile))
    }

    /// Whether a child of an IKE SA is bound to the addresses outside.
    fn is_fixed(&self, sa: IkeSaId) -> bool {
        let mut children = self.children.iter();
        children.any(|(_, child)| child.ike == sa && child.status.mode == Mode::Transport)
    }

    /// Where the tunnels go that are up, and could go.
    pub fn paths(&self) -> Vec<PathsStatus> {
        let status = |sa: ike::SaStatus| {
            let name = sa
                .peer
                .filter(|name| self.established(name) == Some(sa.id))?;
            let mobile = self.moving.0.get(&sa.id);
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
        let carriages = self.carriages(sa);
        let mobile = self.moving.0.entry(sa).or_insert_with(|| Mobile {
            paths: Paths::new(path, carriages),
            remotes: Vec::new(),
            next: None,
            later: None,
            looked_up: None,
            due: None,
        });
        if mobile.remotes != remotes {
            mobile.remotes = remotes;
            mobile.due = Some(
                mobile
                    .looked_up
                    .map_or(now, |before| now.max(before + PAUSE)),
            );
            self.look_up(now);
        }
    }

    /// Asks for the ways of the tunnels that are due.
    pub(crate) fn look_up(&mut self, now: Instant) {
        let mobiles = self.moving.0.iter_mut();
        let due = mobiles.filter(|(_, mobile)| mobile.due.is_some_and(|due| due <= now));
        for (sa, mobile) in due {
            (mobile.looked_up, mobile.due) = (Some(now), None);
            self.events.push_back(Event::WaysWanted { of: Some(*sa) });
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
        if let Some(mobile) = self.moving.0.get_mut(&sa) {
            mobile.paths.handle_silence(now);
        }
    }

    pub(crate) fn path_answers(&mut self, sa: IkeSaId, path: Path) {
        if let Some(mobile) = self.moving.0.get_mut(&sa) {
            mobile.paths.handle_answer(path);
        }
    }

    pub(crate) fn move_refused(&mut self, sa: IkeSaId) {
        if let Some(mobile) = self.moving.0.get_mut(&sa) {
            mobile.paths.handle_refusal();
        }
    }

    /// The children of an IKE SA take another path.
    pub(crate) fn path_moved(&mut self, sa: IkeSaId, children: &[ChildSaId], path: Path) {
        for id in children {
            self.workers.move_path(*id, path);
            if let Some(child) = self.children.get_mut(*id) {
                child.status.path = path;
            }
            self.measure(*id);
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
        for (sa, mobile) in &mut self.moving.0 {
            match mobile.paths.poll_step() {
                Some(Step::Take(path)) => {
                    any = true;
                    // One that is just being deleted does not move any more.
                    let _ = self.ike.move_to(*sa, path, now);
                }
                Some(Step::Try(path)) => {
                    any = true;
                    self.ike.probe(*sa, path, now);
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
        let old = self.0.get_mut(&old);
        if let Some((paths, old)) = old.and_then(|old| Some((old.next.take()?, old))) {
            let mobile = Mobile {
                paths,
                remotes: old.remotes.clone(),
                next: None,
                later: old.later.take(),
                looked_up: old.looked_up,
                due: old.due,
            };
            self.0.insert(clone, mobile);
        }
    }

    /// A hand-over that waited is refused.
    fn give_up_late(&mut self, sa: IkeSaId) {
        if let Some(mobile) = self.0.get_mut(&sa) {
            mobile.later = None;
        }
    }

    pub(crate) fn forget(&mut self, sa: IkeSaId) {
        self.0.remove(&sa);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for mobile in self.0.values_mut() {
            mobile.paths.handle_timeout(now);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let paths = self.0.values().map(|mobile| &mobile.paths);
        let paths = paths.filter_map(Paths::poll_timeout).min();
        let due = self.0.values().filter_map(|mobile| mobile.due).min();
        let reason = "a peer has other addresses";
        let due = due.map(|at| Deadline { at, reason });
        paths.into_iter().chain(due).min()
    }
}

impl Mobile {
    fn handle_ways(&mut self, ways: &[Way]) {
        let remotes = self.remotes.iter();
        let ours = remotes.flat_map(|remote| ways.iter().filter(|way| way.remote == *remote));
        self.paths.handle_ways(&ours.copied().collect::<Vec<_>>());
    }
}
