//! Output of the node, which is carried out: messages, leases and changes of the system.

use super::{Daemon, os_side};
use crate::assigned::AssignedAddresses;
use crate::audit;
use crate::faults::{self, Faults, Step, Way};
use crate::naming::{self, Outer};
use crate::restorer::{self, Verdict};
use crate::troubles::Task;
use model::{Df, Instant, Mode, Path, PeerId, Transmit};
use node::Event;
use os::{clock, crash, divert};
use resumption::Store;
use std::io;
use std::net::IpAddr;
use wire::ecn::Ecn;

impl Daemon {
    /// Carries out the node's output until there is no more.
    pub(super) fn carry_out(&mut self, now: Instant) {
        loop {
            self.follow_registrations(now);
            self.keep_leases(now);
            while let Some(transmit) = self.node.poll_transmit() {
                self.transmit(&transmit, now);
            }
            while let Some(query) = self.node.poll_query() {
                self.names.ask(&query, &self.poller, &mut self.node, now);
            }
            while let Some((to, packet)) = self.node.poll_resend() {
                if let Some(divert) = &mut self.host.divert {
                    divert.passage.send(os_side(to), &packet);
                }
            }
            if let Some(divert) = &mut self.host.divert {
                self.counters.forwarded += divert.passage.flush();
            }
            if self.ask_sessions(now) {
                continue;
            }
            if let Some(event) = self.node.poll_event() {
                self.note(event, now);
            } else if let Some(lost) = self.streams.poll_lost() {
                self.node.handle_disconnected(lost, now);
            } else {
                return self.names.tidy(&self.node);
            }
        }
    }

    /// Sends an IKE message.
    pub(super) fn transmit(&mut self, transmit: &Transmit, now: Instant) {
        let Transmit { path, payload } = transmit;
        self.trace.sent(&self.node, *path, payload, now);
        if path.is_stream() {
            return self.streams.send(*path, payload, &self.poller, now);
        }
        // IKE detects congestion by loss, and retransmits.
        let class = Ecn::NotEct.bits();
        let send = |path: Path, payload: &[u8]| {
            let sent = self.host.sockets.send(path, class, Df::Clear, payload);
            self.counters.sent += u64::from(sent.is_err());
            self.unsent.note(path.remote.ip(), payload, &sent, now);
        };
        faults::pass(&mut self.faults, Way::Out, *path, payload, send);
    }

    /// Sends registrations, and updates the kernel's routes to match them. A mobile node updates
    /// its routes after sending, but before IKE messages leave: a registration reply and the first
    /// message through the new agent may arrive together, and the response must take the new route.
    /// An agent updates its routes before sending, because packets may follow its reply at once. A
    /// token for keys leaves with its registration, so it is recorded first.
    pub(super) fn follow_registrations(&mut self, now: Instant) {
        if self.host.mobile.is_none() {
            return;
        }
        let mut events = Vec::new();
        while let Some(event) = self.node.poll_event() {
            match event.is_of_token() || event.is_of_agent() {
                true => self.note(event, now),
                false => events.push(event),
            }
        }
        let Some(mobile) = &mut self.host.mobile else {
            return;
        };
        mobile.carry_out(&mut self.node, &mut self.counters);
        events.into_iter().for_each(|event| self.note(event, now));
        while let Some(event) = self.node.poll_event() {
            self.note(event, now);
        }
    }

    /// Stores leases before the responses that announce them leave. A failure does not withdraw the
    /// lease: the address stays unique while this daemon runs, and no tunnel that could carry it
    /// survives the daemon. Only the assignment of addresses to peers would be forgotten.
    fn keep_leases(&mut self, now: Instant) {
        while let Some(change) = self.node.poll_lease() {
            self.leases.add(change);
        }
        let changes = self.leases.take(now);
        let Some(store) = self.store.as_ref().filter(|_| !changes.is_empty()) else {
            return;
        };
        let begun = clock::now();
        let kept = faults::step(&mut self.faults, Step::Lease).map_err(anyhow::Error::from);
        let kept = kept.and_then(|()| Ok(store.keep(&changes)?));
        if kept.is_err() {
            self.counters.leases += 1;
            self.leases.put_back(changes);
        }
        self.troubles.note(Task::Leases, kept, now);
        self.leases.wrote(begun, clock::now());
        crash::point("pool-lease-kept");
    }

    /// Passes requests to the store of sessions, and their outcomes to the node. Returns true if
    /// there were any.
    fn ask_sessions(&mut self, now: Instant) -> bool {
        while let Some(operation) = self.node.poll_store() {
            self.sessions.submit(operation, config::today());
        }
        let mut is_answered = false;
        while let Some(outcome) = self.sessions.poll() {
            self.node.handle_stored(outcome, now);
            is_answered = true;
        }
        if let Some(written) = self.sessions.written() {
            self.troubles.note(Task::Sessions, written, now);
        }
        is_answered
    }

    /// Logs an event, or carries out the action that it asks for.
    fn note(&mut self, event: Event, now: Instant) {
        match event {
            Event::PairLearnt { wired, wireless } => self.learn(wired, wireless, now),
            Event::PairForgotten { wired, wireless } => self.unlearn(wired, wireless, now),
            Event::NameWanted { peer, ref name } => self.look_up(peer, name, now),
            Event::NameProved {
                ref name, address, ..
            } => {
                let kept = self.names.keep(name, address);
                self.troubles.note(Task::Names, kept, now);
            }
            Event::WaysWanted { of: None } => self.tell_ways(now),
            Event::WaysWanted { of: Some(sa) } => self.tell_ways_of(sa, now),
            Event::Giving { ref sa, grant, .. } => {
                let recorded = self.record(&event, now);
                let required = self.audit.is_required();
                let recorded = if required { recorded } else { Ok(()) };
                self.node.give(sa.csa, grant, recorded, now);
            }
            Event::KeyLog(line) => {
                let written = self.keys.write(&line);
                self.counters.keys += u64::from(written.is_err());
                self.troubles.note(Task::Keys, written, now);
            }
            event => {
                // Best effort: `record` has logged the failure.
                let _ = self.record(&event, now);
                self.journal.tell(&event, self.node.names(), now);
                if let Event::PeerUp { .. } | Event::PeerDown { .. } = &event {
                    self.manager.note_change(now);
                }
                self.trace.note_user(&event, self.node.names());
                if let (Event::MobileIp(event), Some(mobile)) = (&event, &mut self.host.mobile) {
                    mobile.note(event);
                } else if let Event::Configured { peer, .. } = &event {
                    let taken = self.take_inside();
                    self.api.tell_routes(self.node.name(*peer));
                    self.insist(taken, *peer, now);
                } else if let Event::NameFound { .. } = &event {
                    let servers = self.host.outer().servers.clone();
                    self.open_to(servers, now);
                } else if let Event::PeerDown { peer, .. } = &event {
                    self.give_back(*peer, now);
                } else if let Event::PathMoved { peer, .. } = &event {
                    self.follow_outside(*peer, now);
                } else if let Event::ChildUp { peer, mode, .. } = &event {
                    let taken = faults::step(&mut self.faults, Step::Child);
                    self.insist(taken, *peer, now);
                    if *mode == Mode::Transport {
                        let taken = self.take_inside();
                        self.troubles.note(Task::Addresses, taken, now);
                    }
                    self.resolve(now);
                    self.skip_numbers();
                } else if let Event::ChildDown { .. } = event {
                    self.resolve(now);
                } else if let Event::ChildRekeyed { .. } = event {
                    crash::point("rekey-child-done");
                    self.skip_numbers();
                } else if let Event::IkeRekeyed { .. } = event {
                    crash::point("rekey-ike-done");
                }
            }
        }
    }

    /// Tells the node where the name of a peer is told. The answers of the name servers pass from
    /// now on.
    fn look_up(&mut self, peer: PeerId, name: &str, now: Instant) {
        let inside = self.host.servers_inside();
        let sources = naming::sources(&self.config, name, inside);
        self.open_to(sources.servers.clone(), now);
        self.node.handle_name_sources(peer, name, &sources, now);
    }

    /// Lets answers of these name servers, and of peers that were found, pass all filters.
    fn open_to(&mut self, servers: Vec<IpAddr>, now: Instant) {
        let streams = naming::streams(&self.config, &self.node);
        let outer = Outer { servers, streams };
        let opened = self.host.open_to(&self.config, outer, &mut self.faults);
        self.troubles.note(Task::Resolvers, opened, now);
    }

    /// Skips sequence numbers, if `--faults` asks for that.
    fn skip_numbers(&mut self) {
        if let Some(number) = self.faults.as_ref().and_then(Faults::numbers) {
            self.node.skip_numbers(number);
        }
    }

    /// Opens or reopens the audit log. Keys that were withheld because the log was unavailable are
    /// released.
    pub(super) fn open_audit(&mut self, settings: Option<config::Audit>, now: Instant) {
        let opened = self.audit.open(settings.as_ref());
        // Best effort: `recorded` has logged the failure.
        let _ = self.recorded(opened, now);
        self.node.set_recording(self.audit.is_on(), now);
    }

    /// Records who has keys already, in a log that was empty so far.
    pub(super) fn record_holders(&mut self, now: Instant) {
        for record in audit::holders(&self.node, config::today(), now) {
            let kept = self.audit.keep(&record);
            // Best effort: `recorded` has logged the failure.
            let _ = self.recorded(kept, now);
        }
    }

    /// Records the use of licences and keys. An error is a reason for a person.
    fn record(&mut self, event: &Event, now: Instant) -> Result<(), String> {
        let record = audit::record(event, self.node.names(), config::today(), now);
        let Some(record) = record.and_then(|record| self.audit.ration(record, now)) else {
            return Ok(());
        };
        let kept = self.audit.keep(&record);
        self.recorded(kept, now)
    }

    /// Records the result of opening or writing the audit log.
    fn recorded(&mut self, kept: io::Result<()>, now: Instant) -> Result<(), String> {
        let Err(error) = kept else {
            self.troubles.succeeded(Task::Audit);
            return Ok(());
        };
        let what = match self.audit.is_required() {
            true => "no keys are given (`required = true`)",
            false => "keys are still given (`required = false`)",
        };
        let failed = Err(format!("{error}; {what}"));
        self.troubles.note(Task::Audit, failed, now);
        self.counters.audit += 1;
        Err(format!("cannot write the audit log: {error}"))
    }

    fn take_inside(&mut self) -> Result<(), os::Error> {
        let inside = AssignedAddresses::new(&self.node, &self.config);
        let taken = self.host.assign(&self.config, inside, &mut self.faults);
        self.api.set_routes(&self.config, self.host.inside());
        taken
    }

    /// Has routes into tunnels in transport mode prefer the outer address that they moved to.
    fn follow_outside(&mut self, peer: PeerId, now: Instant) {
        let (inside, name) = (self.host.inside(), self.node.name(peer));
        if inside.is_some_and(|inside| inside.outside(name).is_some()) {
            let taken = self.take_inside();
            self.troubles.note(Task::Addresses, taken, now);
        }
    }

    /// Removes the addresses that a peer assigned, if it assigned any: of a gateway's peers, none
    /// does. Before a restart they stay, as programs use them.
    fn give_back(&mut self, peer: PeerId, now: Instant) {
        if self.hands_over {
            return;
        }
        let (inside, name) = (self.host.inside(), self.node.name(peer));
        if inside.is_some_and(|inside| inside.is_from(name)) {
            let taken = self.take_inside();
            self.troubles.note(Task::Addresses, taken, now);
        }
    }

    /// Ends a tunnel at both ends if this system could not install it. A half-installed tunnel,
    /// without its address for instance, would be useless for no visible reason.
    fn insist(&mut self, taken: Result<(), os::Error>, peer: PeerId, now: Instant) {
        if let Err(error) = taken {
            let why = format!("this host could not install the tunnel: {error}");
            self.node.withdraw(peer, why, now);
        }
    }

    /// Sets the name servers. A failure does not end the tunnel. Before a restart they stay:
    /// questions wait as other packets do.
    pub(super) fn resolve(&mut self, now: Instant) {
        if self.hands_over {
            return;
        }
        let up = self.node.has_tunnel();
        if up {
            crash::point("tunnel-up");
        }
        let faults = &mut self.faults;
        let tunnel = self.host.tunnel.as_mut();
        let resolved = tunnel.map_or(Ok(()), |tunnel| tunnel.resolve(up, faults));
        self.troubles.note(Task::NameServers, resolved, now);
    }

    /// Restores state that other programs removed, or warns that it is no longer restored. A failed
    /// comparison counts as missing state.
    pub(super) fn put_back(&mut self, now: Instant) {
        let missing = self.host.missing(&self.config);
        let missing = missing.unwrap_or_else(|error| vec![error.to_string()]);
        let missing = restorer::shorten(missing);
        // The lists of all routes and rules.
        os::memory::return_freed();
        match self.restorer.judge(missing.is_empty(), now) {
            Verdict::Intact => self.troubles.forget(Task::Restore),
            Verdict::Restore => {
                let list = missing.join(", ");
                tracing::warn!("restoring what another program removed: {list}");
                let restored = self.host.restore(&self.config, &mut self.faults);
                if restored.is_err() {
                    self.restorer.suspect(now);
                }
                self.troubles.note(Task::Restore, restored, now);
            }
            Verdict::GiveUp => {
                tracing::error!("{}", restorer::warning(&missing));
                self.api.give_up(missing);
            }
        }
    }

    fn learn(&mut self, wired: IpAddr, wireless: IpAddr, now: Instant) {
        let Some(divert) = &mut self.host.divert else {
            return;
        };
        if let Err(error) = divert.learn(divert::Side::Wired, wired, wireless) {
            self.node.handle_not_diverted(wired, wireless, now);
            let what =
                format!("fragments between {wired} and {wireless} may be reordered: {error}");
            self.journal.warn(&what, now);
        }
    }

    fn unlearn(&mut self, wired: IpAddr, wireless: IpAddr, now: Instant) {
        let Some(divert) = &mut self.host.divert else {
            return;
        };
        if let Err(error) = divert.forget(divert::Side::Wired, wired, wireless) {
            let what = format!("cannot remove a rule for {wired} and {wireless}: {error}");
            self.journal.warn(&what, now);
        }
    }
}
