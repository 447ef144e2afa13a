//! Tunnels that move (RFC 4555): `mobility` decides, `ike` says it to the peer, `esp` follows.
//!
//! The driver tells by which ways packets can leave ([`crate::Node::handle_ways`]) whenever that
//! changes, and when [`crate::Event::WaysWanted`] says that there is a tunnel to be asked for: the
//! way is a matter of the system's routes, of which nothing is known here. The peer of a tunnel may
//! list other addresses in each of its requests. That costs look-ups of its own addresses alone,
//! and one a second at most.
//!
//! If a tunnel can be handed over without a pause ([`ike::Engine::can_hand_over`]), `mobility` has
//! its ways measured, and asks for hand-overs like an operator. Sources outside may report the
//! signals of its networks ([`crate::Node::handle_signal`]).

use super::desired::UnknownPeer;
use super::live_paths::LivePathStatus;
use crate::Event;
use crate::effects::{IkeCommand, Turn};
use esp::Protected;
use ike::{Measured, NotHandedOver, Tcp};
use mobility::{Candidate, Carriage, Failure, Fate, NoWay, Paths, Quality, Reported, Signals};
use mobility::{Step, Way, Why};
use model::{Carrier, Deadline, IkeSaId, Instant, Path, PeerId, TrafficSelector};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Shortest time between two look-ups for the addresses that one peer lists.
const PAUSE: Duration = Duration::from_secs(1);

/// The IKE SAs that are ours to move. A message of one of them visits no other.
#[derive(Default)]
pub(crate) struct Moving {
    /// Local port of datagrams.
    natt_port: u16,
    all: BTreeMap<IkeSaId, Mobile>,
    /// SAs that may have a step to take.
    changed: BTreeSet<IkeSaId>,
    /// SAs with a hand-over that waits.
    late: BTreeSet<IkeSaId>,
    /// Deadlines of the SAs.
    deadlines: BTreeSet<(Deadline, IkeSaId)>,
    /// Signals of local addresses, as external sources report them.
    signals: Signals,
    /// Number of visits to all SAs.
    #[cfg(test)]
    pub(crate) walks: std::cell::Cell<usize>,
}

struct Mobile {
    paths: Paths,
    /// The peer's addresses, that in use at first.
    remotes: Vec<IpAddr>,
    /// Addresses that its child SAs in transport mode may have.
    outside: Vec<Protected>,
    /// The paths of the clone that is to take its place.
    next: Option<Paths>,
    /// A hand-over that is to start, and may wait for the end of another one.
    later: Option<Goal>,
    /// Time of the last look-up for the peer's addresses.
    looked_up: Option<Instant>,
    /// Time of the next one, if the peer has listed others since.
    due: Option<Instant>,
}

/// The goal of a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// An operator asked for it: from a local address, or by the best way.
    Asked {
        from: Option<IpAddr>,
        /// True if a move with a pause is the alternative.
        or_hard: bool,
    },
    /// This path is to be used instead.
    Better(Path),
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
    /// The peer.
    pub peer: PeerId,
    /// The path of its IKE SA.
    pub path: Path,
    /// Whether it can move, and then whether it is for us to decide.
    pub moves: Option<bool>,
    /// The ways it could take, if it is.
    pub candidates: Vec<Candidate>,
    /// The paths that carry packets at the same time, that of the IKE SA first; none if there may
    /// be only one.
    pub live: Vec<LivePathStatus>,
    /// Why it is on this path, if it is for us to decide.
    pub why: Option<Why>,
    /// True if it is for us to decide, and the tunnel can be handed over without a pause.
    pub hands_over: bool,
}

impl Moving {
    pub(crate) fn new(natt_port: u16) -> Self {
        Self {
            natt_port,
            ..Self::default()
        }
    }

    /// Returns true if an IKE SA is ours to move.
    pub(crate) fn has(&self, sa: IkeSaId) -> bool {
        self.all.contains_key(&sa)
    }

    /// The addresses of all peers, the one in use first.
    pub(crate) fn remotes(&self) -> impl Iterator<Item = IpAddr> {
        let used = self.iter().flat_map(|mobile| &mobile.remotes);
        used.copied()
    }

    /// The addresses of the peer of one tunnel.
    pub(crate) fn remotes_of(&self, sa: IkeSaId) -> &[IpAddr] {
        let mobile = self.all.get(&sa);
        mobile.map_or(&[], |mobile| &mobile.remotes)
    }

    /// The ways that a tunnel could take.
    pub(crate) fn candidates(&self, sa: IkeSaId) -> Vec<Candidate> {
        let mobile = self.all.get(&sa);
        mobile.map_or_else(Vec::new, |mobile| mobile.paths.candidates().to_vec())
    }

    /// Returns the quality of a path.
    pub(crate) fn quality(&self, sa: IkeSaId, path: Path) -> Option<Quality> {
        let mut candidates = self.all.get(&sa)?.paths.candidates().iter();
        let known = candidates.find(|known| known.leads_along(path))?;
        Some(known.quality)
    }

    /// Returns why a tunnel is on its path.
    pub(crate) fn why(&self, sa: IkeSaId) -> Option<Why> {
        Some(self.all.get(&sa)?.paths.why())
    }

    /// Returns true if an IKE SA is ours to hand over without a pause.
    pub(crate) fn hands_over(&self, sa: IkeSaId) -> bool {
        let mobile = self.all.get(&sa);
        mobile.is_some_and(|mobile| mobile.paths.hands_over())
    }

    /// Returns the signal of a local address, if a source reports it.
    pub(crate) fn signal(&self, local: IpAddr) -> Option<&Reported> {
        self.signals.reported(local)
    }

    /// Handles the signal of a network with these local addresses, which an external source
    /// reports.
    pub(crate) fn handle_signal(
        &mut self,
        locals: &[IpAddr],
        percent: u8,
        by: Option<&str>,
        turn: &mut Turn<'_>,
    ) {
        let locals = self.signals.note(locals, percent, by, turn.now);
        if let Some(first) = locals.first() {
            let reported = self.signals.reported(*first).cloned();
            turn.add(Event::Signal { locals, reported });
        }
        // A tunnel that stayed may have another way now.
        self.follow_signals(turn.now);
    }

    /// Forgets signals that were not reported again. Returns true if one of them was weak.
    fn expire_signals(&mut self, turn: &mut Turn<'_>) -> bool {
        let over = self.signals.expire(turn.now);
        if over.is_empty() {
            return false;
        }
        turn.add(Event::Signal {
            locals: over.into_keys().collect(),
            reported: None,
        });
        self.follow_signals(turn.now);
        true
    }

    fn follow_signals(&mut self, now: Instant) {
        let weak = self.signals.weak();
        self.change_all(|mobile| {
            mobile.paths.handle_weak(&weak, now);
            if let Some(next) = &mut mobile.next {
                next.handle_weak(&weak, now);
            }
        });
    }

    /// Handles the ways to the peer of one tunnel, for each of its addresses the best first.
    pub(crate) fn handle_ways(&mut self, sa: IkeSaId, ways: &[Way], now: Instant) {
        let ways = by_remote(ways);
        self.change(sa, |mobile| mobile.handle_ways(&ways, now));
    }

    /// Handles the ways to all peers.
    pub(crate) fn handle_all_ways(&mut self, ways: &[Way], now: Instant) {
        let ways = by_remote(ways);
        self.change_all(|mobile| mobile.handle_ways(&ways, now));
    }

    /// Chooses the path of a tunnel that leaves from an address, or by the best way there is.
    pub(crate) fn choose(
        &mut self,
        sa: IkeSaId,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<Path, CannotMove> {
        let chosen = self.change(sa, |mobile| {
            if let Some(from) = from.filter(|from| !mobile.may_leave(*from)) {
                let why = ike::Unplaced::NotListed(from);
                return Err(ike::CannotMove::Unplaced(why).into());
            }
            Ok(mobile.paths.choose(from, now)?)
        });
        chosen.ok_or(ike::CannotMove::NotAgreed)?
    }

    /// Returns the path of a hand-over, and the paths of the clone that goes there. `None` if it is
    /// no longer due.
    pub(crate) fn plan(
        &self,
        sa: IkeSaId,
        goal: Goal,
        now: Instant,
    ) -> Result<Option<(Path, Paths)>, CannotMove> {
        let mobile = self.all.get(&sa);
        let paths = &mobile.ok_or(ike::CannotMove::NotAgreed)?.paths;
        match goal {
            Goal::Asked { from, .. } => {
                let mut next = paths.clone();
                let path = next.choose(from, now)?;
                // It is for the clone to go there.
                next.poll_step();
                Ok(Some((path, next)))
            }
            Goal::Better(path) => Ok(paths.handed_over(path, now).map(|next| (path, next))),
        }
    }

    /// Records a hand-over that was started, with the paths of the clone.
    pub(crate) fn started(&mut self, sa: IkeSaId, goal: Goal, next: Paths, now: Instant) {
        self.change(sa, |mobile| {
            if let Goal::Asked { or_hard, .. } = goal {
                mobile.paths.note_handing(next.current(), or_hard, now);
            }
            (mobile.next, mobile.later) = (Some(next), None);
        });
    }

    /// Has a hand-over wait for the end of another one.
    pub(crate) fn wait(&mut self, sa: IkeSaId, goal: Goal) {
        self.change(sa, |mobile| mobile.later = Some(goal));
    }

    /// Gives up a hand-over that waits.
    pub(crate) fn give_up(&mut self, sa: IkeSaId) {
        self.change(sa, |mobile| mobile.later = None);
    }

    /// Returns the hand-overs that are to start.
    pub(crate) fn late(&self) -> Vec<(IkeSaId, Goal)> {
        let late = self.late.iter();
        late.filter_map(|sa| Some((*sa, self.all.get(sa)?.later?)))
            .collect()
    }

    /// Handles the end of a hand-over that did not take place.
    pub(crate) fn not_handed_over(&mut self, sa: IkeSaId, why: NotHandedOver, now: Instant) {
        let why = match why {
            NotHandedOver::Busy => Failure::Busy,
            NotHandedOver::Refused => Failure::Refused,
            NotHandedOver::Failed => Failure::Silent,
        };
        self.change(sa, |mobile| {
            mobile.next = None;
            mobile.paths.handle_not_handed_over(why, now);
        });
    }

    /// Handles the fate of a request that measured a path.
    pub(crate) fn measured(&mut self, sa: IkeSaId, path: Path, measured: Measured, now: Instant) {
        let fate = match measured {
            Measured::Answered(took) => Fate::Answered(took),
            Measured::Lost => Fate::Lost,
            Measured::Unknown => Fate::Unknown,
        };
        self.change(sa, |mobile| mobile.paths.handle_measured(path, fate, now));
    }

    /// An IKE SA can move; the peer's addresses are these.
    pub(crate) fn mobile(
        &mut self,
        sa: IkeSaId,
        path: Path,
        others: Vec<IpAddr>,
        turn: &mut Turn<'_>,
    ) {
        let used = std::iter::once(path.remote.ip());
        let mut seen = BTreeSet::new();
        let remotes = used.chain(others).filter(|remote| seen.insert(*remote));
        let remotes: Vec<_> = remotes.collect();
        if !self.has(sa) {
            let mut paths = Paths::new(path, self.carriages(sa, path, turn));
            paths.handle_weak(&self.signals.weak(), turn.now);
            let mobile = Mobile {
                paths,
                remotes: Vec::new(),
                outside: outside(sa, turn),
                next: None,
                later: None,
                looked_up: None,
                due: None,
            };
            self.insert(sa, mobile);
        }
        let now = turn.now;
        let peer = turn.peer(sa).and_then(|peer| turn.ike.peer(peer));
        // Flows of a tunnel with several live paths go to the others without a hand-over.
        let one_path = peer.filter(|peer| peer.features.paths == 1);
        if let Some(peer) = one_path.filter(|_| turn.ike.can_hand_over(sa)) {
            let every = peer.features.probes;
            self.change(sa, |mobile| mobile.paths.allow_soft(every, now));
        }
        self.change(sa, |mobile| {
            if mobile.remotes != remotes {
                mobile.remotes = remotes;
                let again = mobile.looked_up.map(|before| before + PAUSE);
                mobile.due = Some(again.map_or(now, |again| again.max(now)));
            }
        });
        self.look_up(turn);
    }

    /// Asks for the ways of the tunnels that are due.
    pub(crate) fn look_up(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now;
        for sa in self.due(now) {
            let looks = self.change(sa, |mobile| {
                let looks = mobile.due.take_if(|due| *due <= now).is_some();
                if looks {
                    mobile.looked_up = Some(now);
                }
                looks
            });
            if looks == Some(true) {
                turn.add(Event::WaysWanted { of: Some(sa) });
            }
        }
    }

    /// What can carry packets to the peer of an IKE SA on this path, the best first.
    fn carriages(&self, sa: IkeSaId, path: Path, turn: &Turn<'_>) -> Vec<Carriage> {
        let datagrams = Carriage {
            carrier: Carrier::Udp,
            local: self.natt_port,
            remote: match path.is_stream() {
                true => ike::NATT_PORT,
                false => path.remote.port(),
            },
        };
        let stream = |remote| Carriage {
            carrier: Carrier::Tcp,
            local: 0,
            remote,
        };
        let peer = turn.peer(sa).and_then(|peer| turn.ike.peer(peer));
        match peer.map_or(Tcp::Off, |peer| peer.tcp) {
            Tcp::Off => vec![datagrams],
            Tcp::Fallback(port) => vec![datagrams, stream(port)],
            Tcp::Always(port) => vec![stream(port)],
        }
    }

    /// Handles the silence of a path.
    pub(crate) fn path_silent(&mut self, sa: IkeSaId, now: Instant) {
        self.change(sa, |mobile| mobile.paths.handle_silence(now));
    }

    /// Handles an answer on a path.
    pub(crate) fn path_answers(&mut self, sa: IkeSaId, path: Path, now: Instant) {
        self.change(sa, |mobile| mobile.paths.handle_answer(path, now));
    }

    /// Handles a move that the peer refused.
    pub(crate) fn move_refused(&mut self, sa: IkeSaId, now: Instant) {
        self.change(sa, |mobile| mobile.paths.handle_refusal(now));
    }

    /// Does what was decided; whether anything was.
    pub(crate) fn take_steps(&mut self, turn: &mut Turn<'_>) -> bool {
        let mut any = false;
        for sa in std::mem::take(&mut self.changed) {
            let mobile = self.all.get_mut(&sa);
            let Some(step) = mobile.and_then(|mobile| mobile.paths.poll_step()) else {
                continue;
            };
            any = true;
            match step {
                Step::Take(path) => turn.add(IkeCommand::MoveTo(sa, path)),
                Step::Try(path) => turn.add(IkeCommand::Probe(sa, path)),
                Step::Measure(path) => turn.add(IkeCommand::Measure(sa, path)),
                // What an operator has asked for comes first.
                Step::HandOver(path) => {
                    self.change(sa, |mobile| {
                        mobile.later.get_or_insert(Goal::Better(path));
                    });
                }
            }
        }
        any
    }

    /// A clone has the place of an IKE SA, where that was to go.
    pub(crate) fn hand_over(&mut self, old: IkeSaId, clone: IkeSaId) {
        let succeeds = |old: &mut Mobile| {
            Some(Mobile {
                paths: old.next.take()?,
                remotes: old.remotes.clone(),
                outside: old.outside.clone(),
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

    /// Handles deadlines. Returns true if a weak signal does not hold any more.
    pub(crate) fn handle_timeout(&mut self, turn: &mut Turn<'_>) -> bool {
        let now = turn.now;
        for sa in self.due(now) {
            self.change(sa, |mobile| mobile.paths.handle_timeout(now));
        }
        self.expire_signals(turn)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let first = self.deadlines.first().map(|(deadline, _)| *deadline);
        first.into_iter().chain(self.signals.poll_timeout()).min()
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

    /// Returns true if child SAs in transport mode may have this address of ours.
    fn may_leave(&self, from: IpAddr) -> bool {
        self.outside.iter().all(|ends| has(&ends.local, from))
    }

    /// Returns true if child SAs in transport mode may have both addresses of a way.
    fn may_take(&self, way: &Way) -> bool {
        let mut outside = self.outside.iter();
        self.may_leave(way.local) && outside.all(|ends| has(&ends.remote, way.remote))
    }

    fn handle_ways(&mut self, ways: &Ways, now: Instant) {
        let ours = self.remotes.iter().filter_map(|remote| ways.get(remote));
        let ours = ours.flatten().filter(|way| self.may_take(way));
        let ours: Vec<_> = ours.copied().collect();
        self.paths.handle_ways(&ours, now);
        if let Some(next) = &mut self.next {
            next.handle_ways(&ours, now);
        }
    }
}

/// Returns the addresses that the child SAs of an IKE SA in transport mode may have.
fn outside(sa: IkeSaId, turn: &Turn<'_>) -> Vec<Protected> {
    let peer = turn.peer(sa).and_then(|peer| turn.ike.peer(peer));
    let outside = peer.into_iter().flat_map(ike::Peer::outside);
    let outside = outside.map(|(local, remote)| Protected {
        local: local.to_vec().into(),
        remote: remote.to_vec().into(),
    });
    outside.collect()
}

fn has(selectors: &[TrafficSelector], address: IpAddr) -> bool {
    let mut selectors = selectors.iter();
    selectors.any(|selector| selector.has_address(address))
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
