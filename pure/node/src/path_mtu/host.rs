//! Path MTUs of a node's child SAs: asked for, searched and applied.

use super::*;
use crate::{Event, Node};
use esp::Command;

impl Node {
    /// Handles a router's report that a packet was too long. It changes nothing unless it quotes a
    /// recent packet of an SA on its path.
    pub fn handle_too_big(&mut self, report: Quoted, now: Instant) {
        let Quoted { path, header, mtu } = report;
        // IKE has no SPI here, and is not limited.
        let is_ike = path.has_udp() && header.is_some_and(|header| header.spi < FIRST_SPI);
        let mut users = self.users(path).peekable();
        if self.path_mtus.discovery == Discovery::Off || is_ike || users.peek().is_none() {
            return;
        }
        let has_sent = |id| header.is_some_and(|header| self.plane.has_sent(id, header));
        let is_true = users.any(has_sent);
        drop(users);
        let least = if path.remote.is_ipv4() {
            LEAST_V4
        } else {
            LEAST_V6
        };
        if !is_true || mtu < least {
            self.path_mtus.disbelieved += 1;
        }
        match self.path_mtus.discovery {
            _ if !is_true => {}
            Discovery::Off => {}
            Discovery::Probe if mtu < least => {}
            Discovery::Probe => self.search(path, now, |search| search.handle_report(mtu)),
            Discovery::Icmp if mtu < least => {
                self.events.push_back(Event::PathMtuForged { path, mtu });
                self.know(path, PathMtu::Any, now);
            }
            Discovery::Icmp => self.know(path, PathMtu::Octets(mtu), now),
        }
    }

    /// Handles the MTU of the interface by which a path leaves, after a packet was too long for it
    /// or after [`Node::poll_path_mtu`].
    pub fn handle_interface_mtu(&mut self, path: Path, mtu: u16, now: Instant) {
        if self.path_mtus.discovery == Discovery::Icmp && self.users(path).next().is_some() {
            let known = self.path_mtus.known.get(&path).map(|known| known.mtu);
            if !matches!(known, Some(PathMtu::Octets(octets)) if octets <= mtu) {
                self.know(path, PathMtu::Octets(mtu), now);
            }
            return;
        }
        let mut changed = false;
        self.search(path, now, |search| changed = search.handle_interface(mtu));
        if changed {
            self.watch_path(path);
        }
    }

    /// Returns the child SAs that send on a path.
    fn users(&self, path: Path) -> impl Iterator<Item = ChildSaId> {
        self.own.tunnels.children().on(path)
    }

    /// Sets the known MTU of a path.
    fn know(&mut self, path: Path, mtu: PathMtu, now: Instant) {
        let until = now + AGE;
        let known = Known { mtu, until };
        self.path_mtus.known.insert(path, known);
        self.measure_path(path);
    }

    /// Returns the next path whose interface the system should be asked for: its MTU goes to
    /// [`Node::handle_interface_mtu`].
    pub fn poll_path_mtu(&mut self) -> Option<Path> {
        self.path_mtus.wanted.pop_first()
    }

    /// Has the system asked again for the MTUs of all paths: interfaces or routes have changed.
    pub fn remeasure_paths(&mut self) {
        let paths = self.path_mtus.searches.keys().copied();
        self.path_mtus.wanted.extend(paths);
    }

    /// Returns the counters of probes.
    pub const fn probe_counts(&self) -> ProbeCounts {
        self.path_mtus.counts
    }

    /// Reports that the system's path MTU for a Mobile IP tunnel is implausibly small. The value is
    /// counted and reported once in ten minutes, for as long as the system remembers it.
    pub fn disbelieve_path_mtu(&mut self, path: Path, mtu: u16, now: Instant) {
        let tunnels = &mut self.path_mtus.tunnels;
        tunnels.retain(|_, until| *until > now);
        if tunnels.len() < MOST_TUNNELS && !tunnels.contains_key(&path) {
            tunnels.insert(path, now + AGE);
            self.path_mtus.disbelieved += 1;
            self.events.push_back(Event::PathMtuForged { path, mtu });
        }
    }

    /// Returns the number of implausible and refuted reports of path MTUs.
    pub const fn disbelieved_path_mtus(&self) -> u64 {
        self.path_mtus.disbelieved
    }

    /// Turns path MTU discovery on or off for all child SAs.
    pub(crate) fn discover_path_mtus(&mut self, discovery: Discovery) {
        if self.path_mtus.discovery == discovery {
            return;
        }
        self.path_mtus = PathMtus {
            discovery,
            counts: self.path_mtus.counts,
            disbelieved: self.path_mtus.disbelieved,
            ..PathMtus::default()
        };
        let children: Vec<_> = self
            .own
            .tunnels
            .children()
            .iter()
            .map(|(id, _)| id)
            .collect();
        children.into_iter().for_each(|id| self.measure(id));
    }

    /// Turns probes off for the child SAs of a peer that hide lengths now, and on for the others.
    pub(crate) fn lengths_changed(&mut self, peer: &str) {
        let children = self.own.tunnels.children().of_peer(peer);
        let children: Vec<_> = children
            .map(|(id, child)| (id, child.status.path))
            .collect();
        for (id, path) in children {
            if self.path_mtus.has(path, id) && self.plane.observed(id).hides_lengths {
                self.path_mtus.leave(path, id);
            }
            if !self.path_mtus.has(path, id) {
                self.measure(id);
            }
        }
    }

    /// Discards expired values, and takes the steps of searches that are due.
    pub(crate) fn forget_path_mtus(&mut self, now: Instant) {
        while let Some((at, path)) = self.path_mtus.due.first().copied()
            && at <= now
        {
            self.path_mtus.due.pop_first();
            self.search(path, now, |_| {});
        }
        let known = &mut self.path_mtus.known;
        let old = known.iter().filter(|(_, known)| known.until <= now);
        let old: Vec<_> = old.map(|(path, _)| *path).collect();
        for path in old {
            self.path_mtus.known.remove(&path);
            self.measure_path(path);
        }
    }

    /// Applies the path MTU to a child SA that is new, or new on its path. One that hides lengths
    /// sends no probes: they would show when its first datagram is sent, and lengths of their own.
    pub(crate) fn measure(&mut self, id: ChildSaId) {
        self.measure_on(id, None);
    }

    /// Does so on a path of which a length is presumed.
    pub(crate) fn measure_on(&mut self, id: ChildSaId, presumed: Option<u16>) {
        let Some(child) = self.own.tunnels.children().get(id) else {
            return;
        };
        let (path, ike) = (child.status.path, child.ike);
        let hides = self.plane.observed(id).hides_lengths;
        if self.path_mtus.discovery == Discovery::Probe && !path.is_stream() && !hides {
            let foreign = !self.ike.has_our_vendor_id(ike);
            let search = || Search::new(foreign, presumed);
            self.path_mtus.join(path, id, search);
            self.plane.apply(Command::Watch(id));
        }
        self.limit_to_path(id);
    }

    fn limit_to_path(&mut self, id: ChildSaId) {
        if let Some(child) = self.own.tunnels.child_mut(id) {
            let path = child.status.path;
            let is_searched = self.path_mtus.has(path, id);
            let (mtu, outside) = match self.path_mtus.discovery {
                Discovery::Probe if !is_searched => (PathMtu::Any, None),
                _ => self.path_mtus.of(path),
            };
            let inside = self.plane.set_path_mtu(id, mtu);
            child.status.mtu = inside.filter(|_| outside.is_some());
            child.status.path_mtu = outside.filter(|_| inside.is_some());
        }
    }

    /// Returns the origin of the MTU of a path, if it is known.
    pub(crate) fn path_mtu_origin(&self, path: Path) -> Option<Origin> {
        self.path_mtus.origin(path)
    }

    /// Ends the use of a path by a child SA. Returns the length that came through, if any did.
    pub(crate) fn leave_path(&mut self, id: ChildSaId, path: Path) -> Option<u16> {
        let entry = self.path_mtus.searches.get(&path);
        let presumption = entry.and_then(|entry| entry.search.presumption());
        self.path_mtus.leave(path, id);
        presumption
    }

    /// Notes that a child SA sends.
    pub(crate) fn probe_path_of(&mut self, id: ChildSaId, now: Instant) {
        if let Some(child) = self.own.tunnels.children().get(id) {
            self.search(child.status.path, now, Search::begin);
        }
    }

    /// Has the paths of child SAs probed again on which long datagrams get no answer.
    pub(crate) fn doubt_paths(&mut self, ids: &[ChildSaId], now: Instant) {
        let is_long = |id: &&ChildSaId| {
            let longest = self.plane.observed(**id).longest_unanswered;
            longest.is_some_and(|longest| longest > LONG)
        };
        for id in ids.iter().filter(is_long).copied().collect::<Vec<_>>() {
            if let Some(child) = self.own.tunnels.children().get(id) {
                self.search(child.status.path, now, Search::doubt);
            }
        }
    }

    /// Handles an authentic probe or echo. Only peers with our vendor ID send them.
    pub(crate) fn handle_probe(&mut self, id: ChildSaId, probe: Probe, now: Instant) {
        let Some(child) = self.own.tunnels.children().get(id) else {
            return;
        };
        let path = child.status.path;
        match probe.kind {
            Kind::Probe if self.plane.observed(id).hides_lengths => {}
            Kind::Probe if self.ike.has_our_vendor_id(child.ike) => {
                if self.path_mtus.send(id, probe.echo()) {
                    self.path_mtus.counts.echoed += 1;
                }
                // The path carries datagrams, and soon ours.
                self.search(path, now, Search::begin);
            }
            Kind::Probe | Kind::Notice => {}
            Kind::Echo => {
                let mut heard = Heard::Nothing;
                self.search(path, now, |search| heard = search.handle_echo(probe.number));
                self.path_mtus.disbelieved += u64::from(heard == Heard::Refuted);
            }
        }
    }

    /// Turns `packet` into each probe and echo that is due, and sends it.
    pub(crate) fn send_probes(&mut self, packet: &mut Packet, sink: &mut impl Sink) {
        while let Some((id, probe)) = self.path_mtus.waiting.pop_front() {
            let notice = (probe.kind == Kind::Probe).then(|| self.plane.notice(id, packet));
            if let Some(path) = notice.flatten() {
                sink.transmit(packet, path);
            }
            if let Some(path) = self.plane.probe(id, probe, packet) {
                sink.transmit(packet, path);
            }
        }
    }

    /// Changes the search of a path, if there is one, and takes its next steps.
    fn search(&mut self, path: Path, now: Instant, change: impl FnOnce(&mut Search)) {
        let Some(entry) = self.path_mtus.searches.get_mut(&path) else {
            return;
        };
        change(&mut entry.search);
        loop {
            let Some(entry) = self.path_mtus.searches.get_mut(&path) else {
                return;
            };
            let rng = &mut self.own.rng;
            let step = entry.search.step(|| u64::from_be_bytes(rng.array()), now);
            let lost = std::mem::take(&mut entry.search.losses);
            self.path_mtus.counts.lost += lost;
            match step {
                Some(Step::Probe(octets, number)) => self.probe(path, octets, number),
                Some(Step::Watch) => self.watch_path(path),
                None => break,
            }
        }
        self.path_mtus.schedule(path);
        self.limit_path(path);
    }

    fn probe(&mut self, path: Path, octets: u16, number: u64) {
        let Some(entry) = self.path_mtus.searches.get(&path) else {
            return;
        };
        // The oldest: a peer may not have installed the newest yet.
        let Some(&id) = entry.users.iter().find(|id| self.may_be_sent_on(**id)) else {
            return;
        };
        let probe = Probe {
            kind: Kind::Probe,
            octets,
            number,
        };
        self.path_mtus.counts.sent += u64::from(self.path_mtus.send(id, probe));
    }

    fn watch_path(&self, path: Path) {
        let users = self.path_mtus.searches.get(&path);
        let users = users.iter().flat_map(|entry| &entry.users);
        users.for_each(|id| self.plane.apply(Command::Watch(*id)));
    }

    /// Applies the state of a search to the child SAs on its path, and reports its result.
    fn limit_path(&mut self, path: Path) {
        let Some(entry) = self.path_mtus.searches.get_mut(&path) else {
            return;
        };
        let search = &entry.search;
        let known = entry.told.or(search.interface());
        let news = search.result().filter(|result| Some(*result) != known);
        entry.told = news.or(entry.told);
        let users: Vec<_> = entry.users.iter().copied().collect();
        let mut told = BTreeSet::new();
        for id in users {
            self.limit_to_path(id);
            let child = self
                .own
                .tunnels
                .children()
                .get(id)
                .filter(|_| news.is_some());
            if let Some(child) = child.filter(|child| told.insert(child.peer.clone())) {
                self.events.push_back(Event::PathMtu {
                    peer: child.peer.clone(),
                    outside: child.status.path_mtu,
                    inside: child.status.mtu,
                });
            }
        }
    }

    /// Applies the path MTU to all child SAs on a path, and reports it once per peer.
    fn measure_path(&mut self, on: Path) {
        let ids: Vec<_> = self.own.tunnels.children().on(on).collect();
        let mut told = Vec::new();
        for id in ids {
            let before = self
                .own
                .tunnels
                .children()
                .get(id)
                .and_then(|child| child.status.path_mtu);
            self.limit_to_path(id);
            let Some(child) = self.own.tunnels.children().get(id) else {
                continue;
            };
            if before != child.status.path_mtu && !told.contains(&child.peer) {
                told.push(child.peer.clone());
                self.events.push_back(Event::PathMtu {
                    peer: child.peer.clone(),
                    outside: child.status.path_mtu,
                    inside: child.status.mtu,
                });
            }
        }
    }
}
