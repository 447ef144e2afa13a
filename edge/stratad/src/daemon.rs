//! The loop: wait for a descriptor or a deadline, hand what came to the node, carry out what the
//! node says. One thread, no locks; everything it waits for is in one set.
//!
//! A packet travels so: read from the TUN (or from UDP port 4500) into a batch of buffers that
//! live as long as the daemon, sealed (or opened) in place by the node, sent (or written) by
//! [`Outlet`].

use crate::api::Api;
use crate::audit::{self, Audit};
use crate::batch::{self, Arrived, BATCH, TURNS, fill};
use crate::crew::{Crew, Word};
use crate::faults::{self, Faults, Spec, Step, Way};
use crate::host::Host;
use crate::inside::Inside;
use crate::journal::Journal;
use crate::keylog::Keys;
use crate::log::Log;
use crate::outlet::{Losses, Outlet};
use crate::streams::Streams;
use crate::{mobile, reload, setup};
use anyhow::{Context, Result};
use config::Config;
use control::{Failure, Reload, Response};
use model::{Instant, Lease, Path, Transmit};
use node::{Event, Node, Packet, Side, Verdict};
use os::poll::{Interest, Ready};
use os::signals::Signal;
use os::{Poller, Signals, clock, crash, divert, entropy};
use std::io;
use std::num::NonZeroU8;
use store::Store;
use wire::ecn::Ecn;
use wire::esp::Datagram;

/// What is waited for. Sockets of port 500 count from `IKE`, those of port 4500 from `NATT`, those that
/// take streams from `LISTEN`, those of Mobile IPv4 from `MOBILE`, and streams from `STREAM`.
mod token {
    pub const SIGNALS: u64 = 0;
    pub const API: u64 = 1;
    pub const TUNNEL: u64 = 2;
    pub const WIRED: u64 = 3;
    pub const WIRELESS: u64 = 4;
    pub const CHANGES: u64 = 5;
    pub const CREW: u64 = 6;
    pub const IKE: u64 = 1 << 16;
    pub const NATT: u64 = 1 << 17;
    pub const ESP: u64 = 1 << 18;
    pub const LISTEN: u64 = 1 << 19;
    pub const MOBILE: u64 = 1 << 20;
    pub const STREAM: u64 = 1 << 32;
}

/// The running daemon.
pub struct Daemon {
    /// What holds now.
    config: Config,
    log: Log,
    node: Node,
    host: Host,
    crew: Crew,
    streams: Streams,
    api: Api,
    keys: Keys,
    audit: Audit,
    losses: Losses,
    journal: Journal,
    /// Where leases are remembered, once there are pools.
    store: Option<Store>,
    poller: Poller,
    signals: Signals,
    batch: Vec<Packet>,
    arrived: Arrived,
    /// What goes wrong on purpose.
    faults: Option<Faults>,
    /// Why there is no going on.
    broken: Option<anyhow::Error>,
}

impl Daemon {
    /// Sets the host up and starts the node. Errors say what to change.
    pub fn start(config: Config, log: Log, faults: Option<Spec>) -> Result<Self> {
        anyhow::ensure!(
            faults.is_none() || config.tunnel.workers == NonZeroU8::MIN,
            "faults are made by one thread only\n  fix: leave `workers` of [tunnel] out, or --faults"
        );
        let signals = Signals::take(&[Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP])?;
        let now = clock::now();
        // The API first: it tells whether another daemon runs with this configuration.
        let api = Api::open(&config, now)?;
        let store = open_store(&config)?;
        let streams = Streams::open(&config, token::STREAM)?;
        let host = Host::open(&config)?;
        let mut node = Node::new(setup::node(&config), entropy::seed(), now);
        node.set_wall_clock(config::today());
        let store = store.map(|(store, leases)| {
            node.restore_leases(leases);
            store
        });
        let ike_port = config.listen.ike;
        let mut daemon = Self {
            node,
            config,
            log,
            host,
            crew: Crew::new()?,
            streams,
            api,
            keys: Keys::default(),
            audit: Audit::default(),
            losses: Losses::default(),
            journal: Journal::default(),
            store,
            poller: Poller::new()?,
            signals,
            batch: batch::buffers(),
            arrived: Arrived::default(),
            faults: faults.map(|spec| Faults::new(spec, ike_port)),
            broken: None,
        };
        daemon.api.lead(&daemon.config, daemon.host.inside());
        daemon.open_audit(daemon.config.audit.clone(), now);
        daemon.watch().context("preparing to wait for events")?;
        daemon.look(now);
        daemon.man()?;
        tracing::info!(
            "stratad {} runs as {}",
            env!("CARGO_PKG_VERSION"),
            daemon.config.identity
        );
        Ok(daemon)
    }

    /// Runs until SIGTERM or SIGINT, or until a device is gone; then deletes all SAs and takes
    /// everything out of the system.
    pub fn run(mut self) -> Result<()> {
        let mut ready = Vec::new();
        self.tell_time(clock::now());
        self.carry_out(clock::now());
        crash::point("first-message-sent");
        while self.broken.is_none() && !self.is_told_to_stop() {
            let deadlines = [
                self.node.poll_timeout(),
                self.api.poll_timeout(),
                self.streams.poll_timeout(),
            ];
            let deadline = deadlines.into_iter().flatten().min();
            self.poller
                .wait(deadline.map(|deadline| deadline.at), &mut ready)?;
            let now = clock::now();
            self.tell_time(now);
            for event in &ready {
                self.handle(*event, now);
            }
            if self
                .node
                .poll_timeout()
                .is_some_and(|deadline| deadline.at <= now)
            {
                self.node.handle_timeout(now);
                self.cover(now);
            }
            self.streams.handle_timeout(|| self.node.streams(), now);
            self.carry_out(now);
            self.api.settle(&self.node, now);
        }
        let broken = self.broken.take().map_or(Ok(()), Err);
        let stopped = self.stop();
        if let (Err(_), Err(also)) = (&broken, &stopped) {
            tracing::error!("and cleaning up failed as well: {also:#}");
        }
        broken.and(stopped)
    }

    /// Takes the signals that have come. SIGHUP is `strata reload` for those who prefer it.
    fn is_told_to_stop(&mut self) -> bool {
        while let Some(signal) = self.signals.next_signal() {
            if signal != Signal::SIGHUP {
                return true;
            }
            self.reload(false, clock::now());
        }
        false
    }

    /// Reads the configuration again. If it has faults nothing changes.
    fn reload(&mut self, dry_run: bool, now: Instant) -> Response {
        let file = self.config.places.file().to_owned();
        if !dry_run {
            self.open_audit(self.config.audit.clone(), now);
        }
        let response = match config::load(&file) {
            Ok(new) if dry_run => self.compare(&new),
            Ok(new) => self.reconfigure(new, now),
            Err(error) => reload::refusal(&file, &error),
        };
        if !dry_run {
            reload::journal(&response);
        }
        response
    }

    fn compare(&self, new: &Config) -> Response {
        Response::Reload(reload::report(&self.config, new))
    }

    /// Only the difference has consequences. Routes come first: they alone can fail.
    fn reconfigure(&mut self, new: Config, now: Instant) -> Response {
        let report = reload::report(&self.config, &new);
        let new = new.keeping(&self.config);
        let first_store = match self.store {
            Some(_) => Ok(None),
            None => open_store(&new),
        };
        let first_store = match first_store {
            Ok(store) => store,
            Err(error) => {
                let fix = "nothing was changed; try again when that is done";
                return Response::Error(Failure::new(error.to_string(), fix));
            }
        };
        if let Err(error) = self.lead(&new) {
            let failed = format!("the routes cannot be changed: {error}");
            if let Err(error) = self.lead(&self.config.clone()) {
                tracing::error!("nor can they be put back: {error}");
            }
            return Response::Error(Failure::new(failed, "nothing else was changed; try again"));
        }
        // What the change ends is recorded, also where nothing is from then on.
        if new.audit.is_some() && new.audit != self.config.audit {
            self.open_audit(new.audit.clone(), now);
        }
        let made_anew = self.node.reconfigure(setup::node(&new), now);
        if let Some((store, leases)) = first_store {
            self.node.restore_leases(leases);
            self.store = Some(store);
        }
        self.api.reconfigure(&new);
        self.api.lead(&new, self.host.inside());
        self.log.set(new.log);
        self.config = new;
        self.carry_out(now);
        if self.config.audit.is_none() {
            self.open_audit(None, now);
        }
        self.resolve();
        Response::Reload(Reload {
            applied: true,
            made_anew: made_anew.into_iter().collect(),
            ..report
        })
    }

    /// Leads what a configuration protects into the tunnel, whose device may come or go with it.
    fn lead(&mut self, config: &Config) -> Result<()> {
        let had_tunnel = self.host.tunnel.is_some();
        if config.peers.is_empty() {
            self.losses.add(&self.crew.stop());
        }
        self.host.reconfigure(config)?;
        if let Some(tunnel) = &self.host.tunnel
            && !had_tunnel
        {
            self.poller
                .add(&tunnel.tun, token::TUNNEL, Interest::Read)?;
        }
        self.man()
    }

    /// Has others work at the tunnel as well, if there is one and they are wanted.
    fn man(&mut self) -> Result<()> {
        let tunnel = self.host.tunnel.as_ref();
        tunnel.map_or(Ok(()), |tunnel| {
            self.crew.start(&self.config, &self.node, tunnel)
        })
    }

    fn stop(mut self) -> Result<()> {
        tracing::info!("stopping: deleting all SAs");
        let now = clock::now();
        self.node.shutdown(now);
        self.carry_out(now);
        crash::point("deletes-sent");
        // By the way that packets have until then.
        if let Some(mobile) = &mut self.host.mobile
            && let Err(error) = mobile.farewell(&mut self.node, &mut self.losses)
        {
            tracing::warn!("the home agent does not know of our end: {error}");
        }
        self.crew.stop();
        self.host
            .close()
            .context("taking routes and rules out of the system")
    }

    fn watch(&self) -> io::Result<()> {
        let read = Interest::Read;
        self.poller.add(&self.signals, token::SIGNALS, read)?;
        self.poller.add(&self.api, token::API, read)?;
        self.poller.add(&self.host.changes, token::CHANGES, read)?;
        self.poller.add(&self.crew, token::CREW, read)?;
        if let Some(tunnel) = &self.host.tunnel {
            self.poller.add(&tunnel.tun, token::TUNNEL, read)?;
        }
        if let Some(divert) = &self.host.divert {
            for (side, token) in [
                (divert::Side::Wired, token::WIRED),
                (divert::Side::Wireless, token::WIRELESS),
            ] {
                self.poller.add(divert.passage.device(side), token, read)?;
            }
        }
        for (udp, token) in self.host.sockets.ike.iter().zip(token::IKE..) {
            self.poller.add(udp, token, read)?;
        }
        for (udp, token) in self.host.sockets.natt.iter().zip(token::NATT..) {
            self.poller.add(udp, token, read)?;
        }
        for (esp, token) in self.host.sockets.esp.iter().zip(token::ESP..) {
            self.poller.add(esp, token, read)?;
        }
        self.streams.watch(token::LISTEN, &self.poller)?;
        let mobile = self.host.mobile.as_ref();
        mobile.map_or(Ok(()), |mobile| mobile.watch(&self.poller, token::MOBILE))
    }

    fn handle(&mut self, ready: Ready, now: Instant) {
        match ready.token {
            token::SIGNALS => {}
            token::API => self.serve(now),
            token::CHANGES => self.read_changes(now),
            token::CREW => self.hear(now),
            token::TUNNEL => self.read_tunnel(now),
            token::WIRED => self.read_side(Side::Wired, now),
            token::WIRELESS => self.read_side(Side::Wireless, now),
            token if token < token::NATT => self.read_ike((token - token::IKE) as usize, now),
            token if token < token::ESP => {
                self.read_natt((token - token::NATT) as usize, now);
            }
            token if token < token::LISTEN => self.read_esp((token - token::ESP) as usize, now),
            token if token < token::MOBILE => {
                let listener = (token - token::LISTEN) as usize;
                self.streams.accept(listener, &self.poller, now);
            }
            token if token < token::STREAM => {
                if let Some(mobile) = &mut self.host.mobile {
                    let (node, batch) = (&mut self.node, &mut self.batch[..]);
                    let (losses, broken) = (&mut self.losses, &mut self.broken);
                    mobile.handle(token - token::MOBILE, node, batch, losses, broken);
                }
            }
            _ => self.read_stream(ready, now),
        }
    }

    /// What the time of day is used for: certificates, registrations, and tokens for keys.
    fn tell_time(&mut self, now: Instant) {
        self.node.set_wall_clock(config::today());
        mobile::tell_time(&mut self.node, now);
    }

    /// Has a mobile node see which interfaces there are.
    fn look(&mut self, now: Instant) {
        if let Some(mobile) = &mut self.host.mobile {
            mobile.look(&mut self.node, (&self.poller, token::MOBILE), now);
        }
    }

    fn serve(&mut self, now: Instant) {
        self.losses.streams = self.streams.counts;
        if let Some(faults) = &self.faults {
            self.losses.faults = faults.counts();
        }
        let mut losses = self.losses;
        losses.add(&self.crew.losses());
        self.api.serve(&mut self.node, &mut self.keys, &losses, now);
        while let Some(asked) = self.api.poll_reload() {
            let response = self.reload(asked.dry_run, now);
            self.api.reloaded(&asked, &response);
        }
    }

    /// What other threads have for this one. That their worker has reports is seen by the node's deadline.
    fn hear(&mut self, now: Instant) {
        self.crew.listen();
        while let Some(word) = self.crew.poll_word() {
            match word {
                Word::Message(path, message) => self.node.handle_datagram(path, &message, now),
                Word::Stream(path, packet) => self.streams.pass(path, &packet),
                Word::TooLong(path) => measure(&mut self.node, &self.host, path, now),
                Word::Broken(why) => self.broken = Some(why),
            }
        }
        self.streams.flush(&self.poller);
    }

    /// Addresses or routes are others: perhaps a tunnel has to take another way.
    fn read_changes(&mut self, now: Instant) {
        match self.host.changes.any() {
            Ok(true) => {
                self.look(now);
                self.tell_ways(now);
            }
            Ok(false) => {}
            Err(error) => {
                let what = "the kernel's news of addresses";
                self.losses.not_read(what, &error, &mut self.broken);
            }
        }
    }

    fn tell_ways(&mut self, now: Instant) {
        let remotes = self.node.remotes();
        if remotes.is_empty() {
            return;
        }
        match self.host.ways(&self.config, &remotes) {
            Ok(ways) => self.node.handle_ways(&ways, now),
            Err(error) => tracing::warn!("tunnels stay where they are: {error}"),
        }
    }

    /// Inner datagrams: sealed and sent.
    fn read_tunnel(&mut self, now: Instant) {
        for _ in 0..TURNS {
            let Some(tunnel) = &mut self.host.tunnel else {
                return;
            };
            let (filled, failed) = fill(&mut self.batch, &mut tunnel.tun);
            let ends = self.host.ends();
            let (losses, faults) = (&mut self.losses, &mut self.faults);
            let mut outlet = Outlet::new(ends, &mut self.streams, losses, faults);
            self.node.seal(&mut self.batch[..filled], &mut outlet, now);
            for path in outlet.finish() {
                measure(&mut self.node, &self.host, path, now);
            }
            self.streams.flush(&self.poller);
            if let Some(error) = failed {
                let name = self.host.tunnel.as_ref().map(|tunnel| tunnel.tun.name());
                let what = name.unwrap_or("the tunnel");
                return self.losses.not_read(what, &error, &mut self.broken);
            }
        }
    }

    /// Port 500: IKE alone.
    fn read_ike(&mut self, index: usize, now: Instant) {
        let (node, udp) = (&mut self.node, &mut self.host.sockets.ike[index]);
        for _ in 0..TURNS {
            let read = udp.recv(|arrival, payload| {
                let take = |path, message: &[u8]| node.handle_datagram(path, message, now);
                faults::pass(&mut self.faults, Way::In, arrival.path, payload, take);
            });
            if let Err(error) = read {
                let what = "the socket for IKE";
                return self.losses.not_read(what, &error, &mut self.broken);
            }
        }
    }

    /// Port 4500: ESP, and IKE behind the non-ESP marker. One system call may bring more packets
    /// than a batch holds.
    fn read_natt(&mut self, index: usize, now: Instant) {
        for _ in 0..TURNS {
            let mut arrived = std::mem::take(&mut self.arrived);
            let node = &mut self.node;
            let read = self.host.sockets.natt[index].recv(|arrival, payload| {
                let ecn = Ecn::from_bits(arrival.ecn);
                let take = |path, payload: &[u8]| {
                    sort(node, &mut arrived, (path, ecn), payload, now);
                };
                faults::pass(&mut self.faults, Way::In, arrival.path, payload, take);
            });
            self.open(arrived, now);
            if let Err(error) = read {
                let what = "the socket for ESP";
                return self.losses.not_read(what, &error, &mut self.broken);
            }
        }
    }

    /// Protocol 50: ESP alone.
    fn read_esp(&mut self, index: usize, now: Instant) {
        for _ in 0..TURNS {
            let mut arrived = std::mem::take(&mut self.arrived);
            let read = self.host.sockets.esp[index].recv(|arrival, payload| {
                let ecn = Ecn::from_bits(arrival.ecn);
                let take = |path, packet: &[u8]| arrived.push(path, ecn, packet);
                faults::pass(&mut self.faults, Way::In, arrival.path, payload, take);
            });
            self.open(arrived, now);
            if let Err(error) = read {
                let what = "the socket for protocol 50";
                return self.losses.not_read(what, &error, &mut self.broken);
            }
        }
    }

    /// A stream: the same as on port 4500.
    fn read_stream(&mut self, ready: Ready, now: Instant) {
        let before = self.useful();
        let mut arrived = std::mem::take(&mut self.arrived);
        let node = &mut self.node;
        let take = |path, message: &[u8]| {
            sort(node, &mut arrived, (path, Ecn::NotEct), message, now);
        };
        let messages = self.streams.handle(ready, &self.poller, take);
        self.open(arrived, now);
        let useful = self.useful() != before;
        self.streams.judge(ready.token, messages, useful);
    }

    /// Messages that were of any use so far.
    fn useful(&self) -> u64 {
        let esp = self.node.esp_counters();
        self.node.ike_counters().taken + esp.opened.packets + esp.dummies()
    }

    fn open(&mut self, mut arrived: Arrived, now: Instant) {
        let ends = self.host.ends();
        let (losses, faults) = (&mut self.losses, &mut self.faults);
        let mut outlet = Outlet::new(ends, &mut self.streams, losses, faults);
        self.node.open(arrived.packets(), &mut outlet, now);
        outlet.finish();
        arrived.clear();
        self.arrived = arrived;
    }

    /// Sends dummies where there was silence.
    fn cover(&mut self, now: Instant) {
        let Some(packet) = self.batch.first_mut() else {
            return;
        };
        let ends = self.host.ends();
        let (losses, faults) = (&mut self.losses, &mut self.faults);
        let mut outlet = Outlet::new(ends, &mut self.streams, losses, faults);
        self.node.cover(packet, &mut outlet);
        for path in outlet.finish() {
            measure(&mut self.node, &self.host, path, now);
        }
        self.streams.flush(&self.poller);
    }

    /// Transit packets of others, at a licensed node.
    fn read_side(&mut self, from: Side, now: Instant) {
        let Some(divert) = &mut self.host.divert else {
            return;
        };
        let (passage, side) = (&mut divert.passage, os_side(from));
        let mut read = 0;
        while read < TURNS * BATCH {
            let count = match passage.recv(side) {
                Ok(count) => count,
                Err(error) => {
                    let what = passage.device(side).name();
                    self.losses.not_read(what, &error, &mut self.broken);
                    break;
                }
            };
            for index in 0..count {
                let packet = passage.packet(index);
                if self.node.transit(from, packet, now) == Verdict::Forward {
                    passage.pass(index);
                }
                while let Some((to, packet)) = self.node.poll_resend() {
                    passage.send(os_side(to), &packet);
                }
            }
            read += count;
        }
        self.losses.forwarded += passage.flush();
    }

    /// Carries out what the node has to say, and what it says to that.
    fn carry_out(&mut self, now: Instant) {
        loop {
            self.follow_registrations(now);
            self.keep_leases();
            while let Some(Transmit { path, payload }) = self.node.poll_transmit() {
                if path.is_stream() {
                    self.streams.send(path, &payload, &self.poller, now);
                    continue;
                }
                // IKE learns of congestion by loss, and asks again.
                let header = (Ecn::NotEct.bits(), false);
                let send = |path, payload: &[u8]| {
                    self.losses.send(&self.host.sockets, path, header, payload);
                };
                faults::pass(&mut self.faults, Way::Out, path, &payload, send);
            }
            while let Some((to, packet)) = self.node.poll_resend() {
                if let Some(divert) = &mut self.host.divert {
                    divert.passage.send(os_side(to), &packet);
                }
            }
            if let Some(divert) = &mut self.host.divert {
                self.losses.forwarded += divert.passage.flush();
            }
            if let Some(event) = self.node.poll_event() {
                self.note(event, now);
            } else if let Some(lost) = self.streams.poll_lost() {
                self.node.handle_disconnected(lost, now);
            } else {
                return;
            }
        }
    }

    /// Has registrations leave first, and then the kernel lead packets as they say: the answer to one and the first message
    /// that follows it may come at once, and what is said to that goes the new way.
    fn follow_registrations(&mut self, now: Instant) {
        let Some(mobile) = &mut self.host.mobile else {
            return;
        };
        mobile.carry_out(&mut self.node, &mut self.losses);
        while let Some(event) = self.node.poll_event() {
            self.note(event, now);
        }
    }

    /// Remembers what was lent before the answer leaves that says so. If that fails it is lent all
    /// the same: nobody else gets the address while this daemon runs, and when it does not no tunnel
    /// is left that could carry it. Only who has which would be forgotten.
    fn keep_leases(&mut self) {
        let changes: Vec<_> = std::iter::from_fn(|| self.node.poll_lease()).collect();
        let Some(store) = self.store.as_ref().filter(|_| !changes.is_empty()) else {
            return;
        };
        let kept = faults::step(&mut self.faults, Step::Lease).map_err(anyhow::Error::from);
        if let Err(error) = kept.and_then(|()| Ok(store.keep(&changes)?)) {
            tracing::error!("who has which address will be forgotten at a restart: {error}");
            self.losses.leases += 1;
        }
        crash::point("pool-lease-kept");
    }

    /// Tells an event to the log, or does what it asks for.
    fn note(&mut self, event: Event, now: Instant) {
        match event {
            Event::PairLearnt {
                from,
                source,
                destination,
            } => self.learn(from, source, destination),
            Event::WaysWanted => self.tell_ways(now),
            Event::Giving { ref sa, grant, .. } => {
                let recorded = self.record(&event, now);
                let required = self.audit.is_required();
                let recorded = if required { recorded } else { Ok(()) };
                self.node.give(sa.csa, grant, recorded, now);
            }
            Event::KeyLog(line) => {
                if let Err(error) = self.keys.write(&line) {
                    tracing::error!("a key cannot be written for analysis: {error}");
                    self.losses.keys += 1;
                }
            }
            event => {
                // It has been told, and nothing hangs on it.
                let _ = self.record(&event, now);
                self.journal.tell(&event, now);
                if let (Event::MobileIp(event), Some(mobile)) = (&event, &mut self.host.mobile) {
                    mobile.note(event);
                } else if let Event::Configured { peer, .. } = &event {
                    let taken = self.take_inside();
                    self.api.tell_routes(peer);
                    self.insist(taken, peer, now);
                } else if let Event::PeerDown { .. } = event {
                    if let Err(error) = self.take_inside() {
                        tracing::error!("the device keeps addresses that nobody lends us: {error}");
                    }
                } else if let Event::ChildUp { peer, .. } = &event {
                    let taken = faults::step(&mut self.faults, Step::Child);
                    self.insist(taken, peer, now);
                    self.resolve();
                    self.skip_numbers();
                } else if let Event::ChildDown { .. } = event {
                    self.resolve();
                } else if let Event::ChildRekeyed { .. } = event {
                    crash::point("rekey-child-done");
                    self.skip_numbers();
                } else if let Event::IkeRekeyed { .. } = event {
                    crash::point("rekey-ike-done");
                }
            }
        }
    }

    /// If faults are asked for that come late.
    fn skip_numbers(&mut self) {
        if let Some(number) = self.faults.as_ref().and_then(Faults::numbers) {
            self.node.skip_numbers(number);
        }
    }

    /// Opens the audit log, be it once more. Keys that were not given for want of it are given then.
    fn open_audit(&mut self, settings: Option<config::Audit>, now: Instant) {
        if let Err(error) = self.audit.open(settings.as_ref()) {
            let _ = self.not_recorded(&error);
        }
        self.node.set_recording(self.audit.is_on(), now);
    }

    /// Writes down what becomes of licences and keys; errors with the reason for a person.
    fn record(&mut self, event: &Event, now: Instant) -> Result<(), String> {
        let Some(record) = audit::record(event, config::today(), now) else {
            return Ok(());
        };
        let kept = self.audit.keep(&record);
        kept.map_err(|error| self.not_recorded(&error))
    }

    fn not_recorded(&mut self, error: &io::Error) -> String {
        let what = match self.audit.is_required() {
            true => "no key is given, as `required` says",
            false => "keys are given all the same",
        };
        let why = format!("the audit log cannot be written: {error}");
        tracing::error!("{why}; {what}; make room for `file` in [audit], then `strata reload`");
        self.losses.audit += 1;
        why
    }

    fn take_inside(&mut self) -> Result<(), os::Error> {
        let inside = Inside::of(&self.node, &self.config);
        let taken = self.host.take(&self.config, inside, &mut self.faults);
        self.api.lead(&self.config, self.host.inside());
        taken
    }

    /// A tunnel that this system did not take up is ended at both ends, rather than left half done:
    /// without its address, for one, it would be of no use, and nobody would see why.
    fn insist(&mut self, taken: Result<(), os::Error>, peer: &str, now: Instant) {
        if let Err(error) = taken {
            let why = format!("this system could not take up the tunnel: {error}");
            self.node.withdraw(peer, why, now);
        }
    }

    /// A name that cannot be resolved is no reason to lose a tunnel.
    fn resolve(&mut self) {
        let up = self.node.has_tunnel();
        if up {
            crash::point("tunnel-up");
        }
        let faults = &mut self.faults;
        let tunnel = self.host.tunnel.as_mut();
        if let Some(Err(error)) = tunnel.map(|tunnel| tunnel.resolve(up, faults)) {
            tracing::error!("the name servers are not those of `dns`: {error}");
        }
    }

    fn learn(&mut self, from: Side, source: std::net::IpAddr, destination: std::net::IpAddr) {
        let Some(divert) = &mut self.host.divert else {
            return;
        };
        if let Err(error) = divert.learn(os_side(from), source, destination) {
            tracing::warn!("fragments between {source} and {destination} may overtake: {error}");
        }
    }
}

/// The file of leases, for who lends.
fn open_store(config: &Config) -> Result<Option<(Store, Vec<Lease>)>, store::Error> {
    match config.pools.is_empty() {
        true => Ok(None),
        false => Store::open(&config.store).map(Some),
    }
}

/// A packet was too long for a path: the node is told what the system knows of it.
fn measure(node: &mut Node, host: &Host, path: Path, now: Instant) {
    match host.path_mtu(path) {
        Ok(mtu) => node.handle_path_mtu(path, mtu, now),
        // It is no longer ours, or has no route: nothing is too long for it.
        Err(error) => tracing::debug!("what {} takes is not known: {error}", path.remote),
    }
}

/// What came on port 4500, or in a stream: IKE is handled at once, and ESP with all that came with it.
fn sort(
    node: &mut Node,
    arrived: &mut Arrived,
    (path, ecn): (Path, Ecn),
    payload: &[u8],
    now: Instant,
) {
    match Datagram::of(payload) {
        Datagram::Ike(message) => node.handle_datagram(path, message, now),
        Datagram::Keepalive => {}
        Datagram::Esp(packet) => arrived.push(path, ecn, packet),
    }
}

const fn os_side(side: Side) -> divert::Side {
    match side {
        Side::Wired => divert::Side::Wired,
        Side::Wireless => divert::Side::Wireless,
    }
}
