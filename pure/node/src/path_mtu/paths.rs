//! Path MTUs of child SAs: asked for, searched and applied.

use super::search::{Heard, Search, Step};
use super::searches::Searches;
use super::{Discovery, Origin, ProbeCounts};
use crate::Event;
use crate::effects::Turn;
use crate::licensing::Licensing;
use crate::plane::Plane;
use crate::tunnels::Tunnels;
use crate::tunnels::children::Child;
use esp::{Command, Packet, PathMtu, Sink};
use model::{ChildSaId, Deadline, Instant, Path, PeerId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use wire::esp::FIRST_SPI;
use wire::probe::{Kind, Probe};
use wire::quoted::Quoted;

/// "When a PMTU value has not been decreased for a while (on the order of 10 minutes)", longer
/// packets are tried again (RFC 1191 section 6.3, which RFC 4301 section 8.2.2 wants).
const AGE: Duration = Duration::from_secs(600);

/// Datagram size that every host accepts (RFC 791), and MTU that every link has (RFC 8200 section
/// 5). A smaller reported value is forged or useless.
const LEAST_V4: u16 = 576;
const LEAST_V6: u16 = 1280;

/// Maximum number of Mobile IP tunnels with an ignored value that are remembered.
const MOST_TUNNELS: usize = 256;

/// Datagrams up to this length fit every path with any overhead.
const LONG: usize = 1100;

/// Maximum number of probes and echoes that wait to be sent.
const MOST_WAITING: usize = 1024;

/// The path MTUs of a host.
#[derive(Default)]
pub(crate) struct PathMtus {
    discovery: Discovery,
    searches: Searches,
    /// Probes and echoes to be sent, with their SAs.
    waiting: VecDeque<(ChildSaId, Probe)>,
    counts: ProbeCounts,
    known: BTreeMap<Path, Known>,
    limits: BTreeMap<ChildSaId, Limit>,
    /// Mobile IP tunnels with an ignored value, and the time until which it is not reported again.
    tunnels: BTreeMap<Path, Instant>,
    /// Number of ignored values.
    disbelieved: u64,
}

struct Known {
    mtu: PathMtu,
    until: Instant,
}

/// The limit of a child SA, in octets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Path MTU.
    pub outside: u16,
    /// Longest inner datagram that fits.
    pub inside: u16,
}

/// The child SAs of a host.
#[derive(Clone, Copy)]
pub(crate) struct ChildSas<'a> {
    pub tunnels: &'a Tunnels,
    pub licensing: &'a Licensing,
}

impl<'a> ChildSas<'a> {
    fn get(self, id: ChildSaId) -> Option<&'a Child> {
        self.tunnels.children().get(id)
    }

    fn path(self, id: ChildSaId) -> Option<Path> {
        Some(self.get(id)?.status.path)
    }

    /// Returns the child SAs that send on a path.
    fn on(self, path: Path) -> impl Iterator<Item = ChildSaId> {
        self.tunnels.children().on(path)
    }

    fn may_be_sent_on(self, id: ChildSaId) -> bool {
        self.licensing.may_be_sent_on(id, self.tunnels)
    }
}

impl PathMtus {
    pub fn new(discovery: Discovery) -> Self {
        Self {
            discovery,
            ..Self::default()
        }
    }

    /// Turns discovery on or off for all child SAs.
    pub fn set_discovery(&mut self, discovery: Discovery, sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        if self.discovery == discovery {
            return;
        }
        *self = Self {
            discovery,
            counts: self.counts,
            disbelieved: self.disbelieved,
            ..Self::default()
        };
        for (id, _) in sas.tunnels.children().iter() {
            self.measure(id, None, sas, turn);
        }
    }

    // Reports of routers and of the system.

    /// Handles a router's report that a packet was too long. It changes nothing unless it quotes a
    /// recent packet of an SA on its path.
    pub fn handle_too_big(&mut self, report: Quoted, sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        let Quoted { path, header, mtu } = report;
        // IKE has no SPI here, and is not limited.
        let is_ike = path.has_udp() && header.is_some_and(|header| header.spi < FIRST_SPI);
        let mut users = sas.on(path).peekable();
        if self.discovery == Discovery::Off || is_ike || users.peek().is_none() {
            return;
        }
        let has_sent = |id| header.is_some_and(|header| turn.plane.has_sent(id, header));
        let is_true = users.any(has_sent);
        let least = if path.remote.is_ipv4() {
            LEAST_V4
        } else {
            LEAST_V6
        };
        if !is_true || mtu < least {
            self.disbelieved += 1;
        }
        match self.discovery {
            _ if !is_true => {}
            Discovery::Off => {}
            Discovery::Probe if mtu < least => {}
            Discovery::Probe => self.search(path, sas, turn, |search| search.handle_report(mtu)),
            Discovery::Icmp if mtu < least => {
                turn.add(Event::PathMtuForged { path, mtu });
                self.know(path, PathMtu::Any, sas, turn);
            }
            Discovery::Icmp => self.know(path, PathMtu::Octets(mtu), sas, turn),
        }
    }

    /// Handles the MTU of the interface by which a path leaves.
    pub fn handle_interface(
        &mut self,
        path: Path,
        mtu: u16,
        sas: ChildSas<'_>,
        turn: &mut Turn<'_>,
    ) {
        if self.discovery == Discovery::Icmp && sas.on(path).next().is_some() {
            let known = self.known.get(&path).map(|known| known.mtu);
            if !matches!(known, Some(PathMtu::Octets(octets)) if octets <= mtu) {
                self.know(path, PathMtu::Octets(mtu), sas, turn);
            }
            return;
        }
        let mut changed = false;
        let change = |search: &mut Search| changed = search.handle_interface(mtu);
        self.search(path, sas, turn, change);
        if changed {
            self.watch(path, turn);
        }
    }

    /// Returns the next path whose interface the system should be asked for.
    pub fn poll_wanted(&mut self) -> Option<Path> {
        self.searches.pop_wanted()
    }

    /// Has the system asked again for the MTUs of all paths.
    pub fn remeasure(&mut self) {
        self.searches.want_all();
    }

    /// Counts an implausible value of the system for a Mobile IP tunnel, and reports it once in ten
    /// minutes.
    pub fn disbelieve(&mut self, path: Path, mtu: u16, turn: &mut Turn<'_>) {
        let now = turn.now;
        self.tunnels.retain(|_, until| *until > now);
        if self.tunnels.len() < MOST_TUNNELS && !self.tunnels.contains_key(&path) {
            self.tunnels.insert(path, now + AGE);
            self.disbelieved += 1;
            turn.add(Event::PathMtuForged { path, mtu });
        }
    }

    /// Sets the known MTU of a path.
    fn know(&mut self, path: Path, mtu: PathMtu, sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        let until = turn.now + AGE;
        self.known.insert(path, Known { mtu, until });
        self.apply_known(path, sas, turn);
    }

    /// Applies the path MTU to all child SAs on a path, and reports it once per peer.
    fn apply_known(&mut self, path: Path, sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        let mut told = BTreeSet::new();
        for id in sas.on(path) {
            let before = self.outside(id);
            self.apply(id, path, turn);
            if before != self.outside(id) {
                self.tell(id, &mut told, sas, turn);
            }
        }
    }

    // Child SAs.

    /// Applies the path MTU to a child SA that is new, or new on its path, of which a length may be
    /// `presumed`. One that hides lengths sends no probes: they would show when its first datagram
    /// is sent, and lengths of their own.
    pub fn measure(
        &mut self,
        id: ChildSaId,
        presumed: Option<u16>,
        sas: ChildSas<'_>,
        turn: &mut Turn<'_>,
    ) {
        let Some(child) = sas.get(id) else {
            return;
        };
        let path = child.status.path;
        let hides = turn.plane.observed(id).hides_lengths;
        if self.discovery == Discovery::Probe && !path.is_stream() && !hides {
            let foreign = !turn.ike.has_our_vendor_id(child.ike);
            self.searches
                .join(path, id, || Search::new(foreign, presumed));
            turn.add(Command::Watch(id));
        }
        self.apply(id, path, turn);
    }

    /// Ends the use of a path by a child SA. Returns the length that came through, if any did.
    pub fn leave(&mut self, id: ChildSaId, path: Path) -> Option<u16> {
        let entry = self.searches.get(path);
        let presumption = entry.and_then(|entry| entry.search.presumption());
        self.searches.leave(path, id);
        self.limits.remove(&id);
        presumption
    }

    /// Turns probes off for the child SAs of a peer that hide lengths now, and on for the others.
    pub fn lengths_changed(&mut self, peer: PeerId, sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        for (id, child) in sas.tunnels.children().of_peer(peer) {
            let path = child.status.path;
            if self.searches.has(path, id) && turn.plane.observed(id).hides_lengths {
                self.searches.leave(path, id);
            }
            if !self.searches.has(path, id) {
                self.measure(id, None, sas, turn);
            }
        }
    }

    /// Limits a child SA to the MTU of its path.
    fn apply(&mut self, id: ChildSaId, path: Path, turn: &Turn<'_>) {
        let (mtu, outside) = match self.discovery {
            Discovery::Probe if !self.searches.has(path, id) => (PathMtu::Any, None),
            _ => self.of(path),
        };
        let inside = turn.plane.set_path_mtu(id, mtu);
        let limit = outside.zip(inside);
        match limit.map(|(outside, inside)| Limit { outside, inside }) {
            Some(limit) => self.limits.insert(id, limit),
            None => self.limits.remove(&id),
        };
    }

    /// Reports the limit of a child SA, unless its peer is among those that were told.
    fn tell(
        &self,
        id: ChildSaId,
        told: &mut BTreeSet<PeerId>,
        sas: ChildSas<'_>,
        turn: &mut Turn<'_>,
    ) {
        if let Some(child) = sas.get(id).filter(|child| told.insert(child.peer)) {
            let limit = self.limit(id);
            turn.add(Event::PathMtu {
                peer: child.peer,
                outside: limit.map(|limit| limit.outside),
                inside: limit.map(|limit| limit.inside),
            });
        }
    }

    // Probes.

    /// Notes that a child SA sends.
    pub fn sends(&mut self, id: ChildSaId, sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        if let Some(path) = sas.path(id) {
            self.search(path, sas, turn, Search::begin);
        }
    }

    /// Has the paths of child SAs probed again on which long datagrams get no answer.
    pub fn doubt(&mut self, silent: &[ChildSaId], sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        let is_long = |id: ChildSaId| {
            let longest = turn.plane.observed(id).longest_unanswered;
            longest.is_some_and(|longest| longest > LONG)
        };
        let doubted = silent.iter().filter(|id| is_long(**id));
        let paths: Vec<_> = doubted.filter_map(|id| sas.path(*id)).collect();
        for path in paths {
            self.search(path, sas, turn, Search::doubt);
        }
    }

    /// Handles an authentic probe or echo. Only peers with our vendor ID send them.
    pub fn handle_probe(
        &mut self,
        id: ChildSaId,
        probe: Probe,
        sas: ChildSas<'_>,
        turn: &mut Turn<'_>,
    ) {
        let Some(child) = sas.get(id) else {
            return;
        };
        let path = child.status.path;
        match probe.kind {
            Kind::Probe if turn.plane.observed(id).hides_lengths => {}
            Kind::Probe if turn.ike.has_our_vendor_id(child.ike) => {
                if self.send(id, probe.echo()) {
                    self.counts.echoed += 1;
                }
                // The path carries datagrams, and soon ours.
                self.search(path, sas, turn, Search::begin);
            }
            Kind::Probe | Kind::Notice | Kind::Ping | Kind::Answer => {}
            Kind::Echo => {
                let mut heard = Heard::Nothing;
                let change = |search: &mut Search| heard = search.handle_echo(probe.number);
                self.search(path, sas, turn, change);
                self.disbelieved += u64::from(heard == Heard::Refuted);
            }
        }
    }

    /// Turns `packet` into each probe and echo that is due, and sends it.
    pub fn send_probes(&mut self, plane: &Plane, packet: &mut Packet, sink: &mut impl Sink) {
        while let Some((id, probe)) = self.waiting.pop_front() {
            let notice = (probe.kind == Kind::Probe).then(|| plane.notice(id, packet));
            if let Some(path) = notice.flatten() {
                sink.transmit(packet, path);
            }
            if let Some(path) = plane.probe(id, probe, packet) {
                sink.transmit(packet, path);
            }
        }
    }

    /// Changes the search of a path, if there is one, and takes its next steps.
    fn search(
        &mut self,
        path: Path,
        sas: ChildSas<'_>,
        turn: &mut Turn<'_>,
        change: impl FnOnce(&mut Search),
    ) {
        let Some(entry) = self.searches.get_mut(path) else {
            return;
        };
        change(&mut entry.search);
        while let Some(entry) = self.searches.get_mut(path) {
            let step = entry.search.step(|| turn.rng.u64(), turn.now);
            let lost = std::mem::take(&mut entry.search.losses);
            self.counts.lost += lost;
            match step {
                Some(Step::Probe(octets, number)) => self.probe(path, octets, number, sas),
                Some(Step::Watch) => self.watch(path, turn),
                None => break,
            }
        }
        self.searches.schedule(path);
        self.apply_search(path, sas, turn);
    }

    fn probe(&mut self, path: Path, octets: u16, number: u64, sas: ChildSas<'_>) {
        // The oldest: a peer may not have installed the newest yet.
        let oldest = self.searches.users(path).find(|id| sas.may_be_sent_on(*id));
        let Some(id) = oldest else {
            return;
        };
        let probe = Probe {
            kind: Kind::Probe,
            octets,
            number,
        };
        self.counts.sent += u64::from(self.send(id, probe));
    }

    /// Queues a probe or an echo. Returns false if too many wait.
    fn send(&mut self, id: ChildSaId, probe: Probe) -> bool {
        let has_room = self.waiting.len() < MOST_WAITING;
        if has_room {
            self.waiting.push_back((id, probe));
        }
        has_room
    }

    /// Has the data path report when a child SA of the path's search sends.
    fn watch(&self, path: Path, turn: &mut Turn<'_>) {
        for id in self.searches.users(path) {
            turn.add(Command::Watch(id));
        }
    }

    /// Applies the state of a search to its child SAs, and reports its result.
    fn apply_search(&mut self, path: Path, sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        let entry = self.searches.get_mut(path);
        let is_new = entry.is_some_and(|entry| entry.take_news().is_some());
        let mut told = BTreeSet::new();
        for id in self.searches.users(path).collect::<Vec<_>>() {
            self.apply(id, path, turn);
            if is_new {
                self.tell(id, &mut told, sas, turn);
            }
        }
    }

    // Time.

    /// Discards expired values, and takes the steps of searches that are due.
    pub fn handle_timeout(&mut self, sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        while let Some(path) = self.searches.pop_due(turn.now) {
            self.search(path, sas, turn, |_| {});
        }
        let old = self.known.iter();
        let old = old.filter(|(_, known)| known.until <= turn.now);
        for path in old.map(|(path, _)| *path).collect::<Vec<_>>() {
            self.known.remove(&path);
            self.apply_known(path, sas, turn);
        }
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let waiting = (!self.waiting.is_empty()).then_some(Instant::ZERO);
        let known = self.known.values().map(|known| known.until).min();
        let next = [waiting, known, self.searches.poll_timeout()];
        Some(Deadline {
            at: next.into_iter().flatten().min()?,
            reason: "discover a path MTU",
        })
    }

    // Status.

    /// Returns the limit of a child SA, if there is one.
    pub fn limit(&self, id: ChildSaId) -> Option<Limit> {
        self.limits.get(&id).copied()
    }

    fn outside(&self, id: ChildSaId) -> Option<u16> {
        Some(self.limit(id)?.outside)
    }

    /// Returns the origin of the MTU of a path.
    pub fn origin(&self, path: Path) -> Option<Origin> {
        match self.discovery {
            Discovery::Off => None,
            Discovery::Icmp => self.of(path).1.map(|_| Origin::Reported),
            Discovery::Probe => Some(self.searches.get(path)?.search.outside()?.1),
        }
    }

    /// Returns the limits of a path, and its MTU if known.
    fn of(&self, path: Path) -> (PathMtu, Option<u16>) {
        match self.discovery {
            Discovery::Off => (PathMtu::Any, None),
            Discovery::Icmp => match self.known.get(&path).map(|known| known.mtu) {
                Some(PathMtu::Octets(octets)) => (PathMtu::Octets(octets), Some(octets)),
                Some(mtu) => (mtu, None),
                None => (PathMtu::Unknown, None),
            },
            Discovery::Probe => match self.searches.get(path) {
                Some(entry) => {
                    let outside = entry.search.outside().map(|(octets, _)| octets);
                    (entry.search.limit(), outside)
                }
                None => (PathMtu::Any, None),
            },
        }
    }

    /// Returns the counters of probes.
    pub const fn counts(&self) -> ProbeCounts {
        self.counts
    }

    /// Returns the number of implausible and refuted reports.
    pub const fn disbelieved(&self) -> u64 {
        self.disbelieved
    }
}
