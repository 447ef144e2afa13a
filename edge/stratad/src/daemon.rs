//! The main loop: it waits for a descriptor or a deadline, passes input to the node (`intake.rs`),
//! and carries out the node's output (`outcome.rs`). One thread without locks waits on one set of
//! descriptors.
//!
//! A packet is read from the TUN (or from UDP port 4500) into a batch of buffers that live as long
//! as the daemon, sealed (or opened) in place by the node, and sent (or written) by
//! [`PacketSink`](crate::sink::PacketSink).

mod intake;
mod outcome;

use crate::api::Api;
use crate::audit::Audit;
use crate::batch::{self, Arrived};
use crate::faults::{Faults, Spec};
use crate::host::{self, Host};
use crate::journal::Journal;
use crate::kept::{Hold, Kept};
use crate::keylog::Keys;
use crate::leases::Leases;
use crate::log::Log;
use crate::metrics::Scrapes;
use crate::naming::Names;
use crate::restorer::Restorer;
use crate::service_manager::{ServiceManager, Tunnels};
use crate::sessions::Sessions;
use crate::sink::IoCounters;
use crate::start::Start;
use crate::streams::Streams;
use crate::trace::Trace;
use crate::troubles::{Task, Troubles};
use crate::unproved::{self, Unproved};
use crate::unsent::Unsent;
use crate::workers::Workers;
use crate::{mobile, reload, setup};
use anyhow::{Context, Result};
use config::Config;
use control::{Failure, Reload, Response};
use model::{Instant, Lease};
use node::{Node, Packet, Side};
use os::poll::Interest;
use os::signals::Signal;
use os::{Claim, Links, Poller, Signals, clock, crash, divert, entropy};
use std::io;
use std::num::NonZeroU8;
use std::sync::Arc;
use store::Store;

/// Poller tokens. Sockets of port 500 count from `IKE`, those of port 4500 from `NATT`, TCP
/// listeners from `LISTEN`, those of Mobile IPv4 from `MOBILE`, questions to name servers from
/// `NAMES`, and TCP streams from `STREAM`.
mod token {
    pub const SIGNALS: u64 = 0;
    pub const API: u64 = 1;
    pub const TUNNEL: u64 = 2;
    pub const WIRED: u64 = 3;
    pub const WIRELESS: u64 = 4;
    pub const CHANGES: u64 = 5;
    pub const WORKERS: u64 = 6;
    pub const REPORTS: u64 = 7;
    pub const SESSIONS: u64 = 8;
    pub const READERS: u64 = 9;
    pub const SCRAPES: u64 = 10;
    pub const IKE: u64 = 1 << 16;
    pub const NATT: u64 = 1 << 17;
    pub const ESP: u64 = 1 << 18;
    pub const LISTEN: u64 = 1 << 19;
    pub const MOBILE: u64 = 1 << 20;
    pub const NAMES: u64 = 1 << 24;
    pub const STREAM: u64 = 1 << 32;
}

/// The running daemon.
pub struct Daemon {
    /// The configuration in effect.
    config: Arc<Config>,
    log: Log,
    node: Node,
    host: Host,
    workers: Workers,
    streams: Streams,
    api: Api,
    scrapes: Scrapes,
    keys: Keys,
    audit: Audit,
    counters: IoCounters,
    journal: Journal,
    trace: Trace,
    unsent: Unsent,
    restorer: Restorer,
    troubles: Troubles,
    /// The store of leases, if there are pools.
    store: Option<Store>,
    leases: Leases,
    names: Names,
    /// The sessions that peers may resume.
    sessions: Sessions,
    /// Counts the starts, if peers are given tokens.
    _start: Option<Start>,
    poller: Poller,
    signals: Signals,
    batch: Vec<Packet>,
    arrived: Arrived,
    unproved: Unproved,
    manager: ServiceManager,
    kept: Kept,
    /// The wait before the kept tunnel device is read.
    hold: Option<Hold>,
    /// True before a restart, if the next process takes over the tunnel device.
    hands_over: bool,
    /// True if packets were sealed, opened or forwarded since the last look.
    busy: bool,
    /// Deliberate faults.
    faults: Option<Faults>,
    /// The reason that the daemon cannot continue.
    broken: Option<anyhow::Error>,
    /// Released after all system state has been removed.
    _claim: Claim,
}

/// The signal that ends a daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGUSR1, `RestartKillSignal=` of the unit: another process follows.
    Restart,
}

impl Daemon {
    /// Sets the host up and starts the node. An error includes its remedy.
    pub fn start(config: Config, log: Log, faults: Option<Spec>, mut kept: Kept) -> Result<Self> {
        anyhow::ensure!(
            faults.is_none() || config.tunnel.workers == NonZeroU8::MIN,
            "`--faults` supports one thread only\n  fix: remove `workers` from [tunnel], or omit `--faults`"
        );
        let signals = [
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGHUP,
            Signal::SIGUSR1,
        ];
        let signals = Signals::take(&signals)?;
        let now = clock::now();
        // The claim comes before any change: existing state may be another daemon's.
        let claim = host::claim(&config)?;
        kept.claim();
        let config = Arc::new(config);
        let mut api = Api::open(&config, now)?;
        let scrapes = Scrapes::open(&config)?;
        let store = open_store(&config)?;
        let links = Links::default();
        api.set_links(&links);
        let files = os::files::raise_limit();
        let streams = Streams::open(&config, &links, token::STREAM, files)?;
        let mut faults = faults.map(|spec| Faults::new(spec, config.listen.ike));
        let host = Host::open(&config, &links, &mut kept, &mut faults)?;
        let hold = kept.store(&host).then(|| Hold::new(now));
        let mut node = Node::new(setup::node(&config), entropy::seed(), now);
        node.set_wall_clock(config::today());
        let sessions = Sessions::open(&config, &mut node, now)?;
        let store = store.map(|(store, leases)| {
            node.restore_leases(leases);
            store
        });
        let start = Start::count(&config).map(|(start, incarnation)| {
            node.set_incarnation(incarnation);
            start
        });
        let mut daemon = Self {
            node,
            config,
            log,
            host,
            workers: Workers::new(&links)?,
            streams,
            api,
            scrapes,
            keys: Keys::default(),
            audit: Audit::default(),
            counters: IoCounters::default(),
            journal: Journal::default(),
            trace: Trace::default(),
            unsent: Unsent::default(),
            restorer: Restorer::default(),
            troubles: Troubles::default(),
            store,
            leases: Leases::default(),
            names: Names::new(token::NAMES),
            sessions,
            _start: start,
            poller: Poller::new()?,
            signals,
            batch: batch::buffers(),
            arrived: Arrived::default(),
            unproved: Unproved::default(),
            manager: ServiceManager::of_this_process(now),
            kept,
            hold,
            hands_over: false,
            busy: false,
            faults,
            broken: None,
            _claim: claim,
        };
        daemon.trace.dropped.set_names(daemon.node.names());
        daemon.trace.set_peers(&daemon.config.log_peers);
        daemon.api.set_routes(&daemon.config, daemon.host.inside());
        daemon.unproved.reconfigure(&daemon.config);
        daemon.names.restore(&daemon.config, &mut daemon.node);
        daemon.open_audit(daemon.config.audit.clone(), now);
        daemon.watch().context("preparing to wait for events")?;
        daemon.look(now);
        daemon.start_workers()?;
        os::memory::return_freed();
        tracing::info!(
            "stratad {} runs as {}",
            env!("CARGO_PKG_VERSION"),
            daemon.config.identity
        );
        Ok(daemon)
    }

    /// Runs until SIGTERM or SIGINT, or until a device is removed; then deletes all SAs and removes
    /// all system state. SIGUSR1 leaves the tunnel device to the next process, if it is kept.
    pub fn run(mut self) -> Result<()> {
        let mut ready = Vec::new();
        self.tell_time(clock::now());
        self.carry_out(clock::now());
        crash::point("first-message-sent");
        self.manager.ready(clock::now());
        let mut end = None;
        while self.broken.is_none() && end.is_none() {
            let hold = self.hold.as_ref();
            let deadlines = [
                hold.map(|hold| hold.poll_timeout(&self.node, &self.config)),
                self.node.poll_timeout(),
                self.api.poll_timeout(),
                self.streams.poll_timeout(),
                self.restorer.poll_timeout(),
                self.host.clear.poll_timeout(),
                self.leases.poll_timeout(),
                self.unproved.lost.poll_timeout(),
                self.manager.poll_timeout(),
            ];
            let deadlines = deadlines.into_iter().flatten().map(|deadline| deadline.at);
            let now = clock::now();
            let late = [self.unproved.next(now), self.api.next_reader(now)];
            let until = deadlines.chain(late.into_iter().flatten()).min();
            self.poller.wait(until, &mut ready)?;
            let now = clock::now();
            self.tell_time(now);
            for event in &ready {
                self.handle(*event, now);
            }
            self.hear_unproved();
            if self
                .node
                .poll_timeout()
                .is_some_and(|deadline| deadline.at <= now)
            {
                self.node.handle_timeout(now);
                self.measure_paths(now);
                self.cover(now);
            }
            let (streams, node) = (&mut self.streams, &self.node);
            streams.handle_timeout(|| node.streams(), &self.poller, now);
            if self.restorer.is_due(now) {
                self.put_back(now);
            }
            if self.api.next_reader(now).is_some_and(|at| at <= now) {
                self.serve_reader(now);
            }
            self.carry_out(now);
            let claimants = self.api.claimants();
            let clear = &mut self.host.clear;
            clear.handle_timeout(claimants, &mut self.faults, now);
            self.api.answer_waiting(&self.node, now);
            let (config, node) = (&self.config, &self.node);
            self.manager.handle_timeout(|| tunnels(config, node), now);
            self.api.answer_pings(&mut self.node, now);
            self.end_hold(now);
            end = self.next_end();
        }
        let broken = self.broken.take().map_or(Ok(()), Err);
        let stopped = self.stop(end.unwrap_or(End::Stop));
        if let (Err(_), Err(also)) = (&broken, &stopped) {
            tracing::error!("clean-up failed as well: {also:#}");
        }
        broken.and(stopped)
    }

    /// Handles messages of unauthenticated initiators, as far as packets leave time for them.
    fn hear_unproved(&mut self) {
        let mut now = clock::now();
        if std::mem::take(&mut self.busy) {
            self.unproved.note_packets(now);
        }
        now = self.ask_for_cookies(now);
        self.unproved.lost.tell(now);
        let begun = now;
        while now - begun < unproved::SLICE
            && let Some((path, message)) = self.unproved.pop(now)
        {
            self.trace.hear(&mut self.node, path, &message, now);
            let ended = clock::now();
            self.unproved.took(now, ended);
            now = ended;
        }
    }

    /// Answers first messages with a cookie request. Returns the time afterwards.
    fn ask_for_cookies(&mut self, mut now: Instant) -> Instant {
        while let Some((path, message)) = self.unproved.pop_unpaid(now) {
            let (node, trace) = (&mut self.node, &mut self.trace);
            if let Some(answer) = trace.ask_for_cookie(node, path, &message, now) {
                self.transmit(&answer, now);
            }
            let ended = clock::now();
            self.unproved.asked(now, ended);
            now = ended;
        }
        for (path, message) in self.unproved.take_late(now) {
            let why = unproved::LATE;
            self.trace.lost(&self.node, path, &message, why, now);
        }
        now
    }

    /// Handles pending signals; returns the end that one asks for. SIGHUP has the effect of `strata
    /// reload`.
    fn next_end(&mut self) -> Option<End> {
        loop {
            match self.signals.next_signal()? {
                Signal::SIGHUP => drop(self.reload(false, clock::now())),
                Signal::SIGUSR1 => return Some(End::Restart),
                _ => return Some(End::Stop),
            }
        }
    }

    /// Reads the kept tunnel device from now on, if its tunnels are back, or have had their time.
    fn end_hold(&mut self, now: Instant) {
        let (node, config) = (&self.node, &self.config);
        let is_over = |hold: &mut Hold| hold.is_over(node, config, now);
        if let Some(hold) = self.hold.take_if(is_over) {
            self.api.set_gap(hold.tell(tunnels(config, node), now));
            if let Err(error) = self.read_kept() {
                self.broken = Some(error.context("reading the kept tunnel device"));
            }
        }
    }

    fn read_kept(&mut self) -> Result<()> {
        if let Some(tunnel) = &self.host.tunnel {
            if let Err(error) = tunnel.drop_old_addresses(&self.config) {
                tracing::warn!("addresses of the last start stay: {error}");
            }
            self.poller
                .add(&tunnel.tun, token::TUNNEL, Interest::Read)?;
        }
        self.start_workers()
    }

    /// Reads the configuration again. If the file has faults, nothing changes.
    fn reload(&mut self, dry_run: bool, now: Instant) -> Response {
        let file = self.config.places.file().to_owned();
        if !dry_run {
            self.manager.reloading();
            self.open_audit(self.config.audit.clone(), now);
        }
        let response = match config::load(&file) {
            Ok(new) if dry_run => self.compare(&new),
            Ok(new) => self.reconfigure(new, now),
            Err(error) => reload::refusal(&file, &error),
        };
        if !dry_run {
            reload::journal(&response);
            self.manager.ready(now);
        }
        response
    }

    fn compare(&self, new: &Config) -> Response {
        Response::Reload(reload::report(&self.config, new))
    }

    /// Applies the differences to another configuration. The listener for metrics and routes come
    /// first, because only they can fail.
    fn reconfigure(&mut self, new: Config, now: Instant) -> Response {
        let report = reload::report(&self.config, &new);
        let new = Arc::new(new.keeping(&self.config));
        let first_store = match self.store {
            Some(_) => Ok(None),
            None => open_store(&new),
        };
        let first_store = match first_store {
            Ok(store) => store,
            Err(error) => {
                let fix = "correct that, then try again; nothing was changed";
                return Response::Error(Failure::new(error.to_string(), fix));
            }
        };
        if let Err(error) = self.scrapes.reconfigure(&new) {
            let fix = "correct `listen` in [metrics], then try again; nothing was changed";
            return Response::Error(Failure::new(format!("{error:#}"), fix));
        }
        if let Err(error) = self.install_routes(&new) {
            let failed = format!("cannot change the routes: {error}");
            if let Err(error) = self.scrapes.reconfigure(&self.config) {
                tracing::error!("cannot restore the listener for metrics: {error:#}");
            }
            if let Err(error) = self.install_routes(&self.config.clone()) {
                tracing::error!("cannot restore the routes: {error}");
            }
            return Response::Error(Failure::new(failed, "try again; nothing else was changed"));
        }
        // The end of grants is still recorded if the new configuration has no audit log.
        if new.audit.is_some() && new.audit != self.config.audit {
            self.open_audit(new.audit.clone(), now);
            self.record_holders(now);
        }
        let made_anew = self.node.reconfigure(setup::node(&new), now);
        self.trace.dropped.set_names(self.node.names());
        if let Some((store, leases)) = first_store {
            self.node.restore_leases(leases);
            self.store = Some(store);
        }
        self.restorer = Restorer::default();
        self.troubles.forget(Task::Restore);
        self.api.reconfigure(&new);
        self.unproved.reconfigure(&new);
        self.names.restore(&new, &mut self.node);
        self.streams.reconfigure(&new);
        self.api.set_routes(&new, self.host.inside());
        self.log.set(new.log);
        self.trace.set_peers(&new.log_peers);
        self.config = new;
        self.follow(now);
        self.carry_out(now);
        if self.config.audit.is_none() {
            self.open_audit(None, now);
        }
        self.resolve(now);
        os::memory::return_freed();
        let made_anew = made_anew
            .iter()
            .map(|peer| self.node.name(*peer).to_owned());
        let mut made_anew: Vec<_> = made_anew.collect();
        made_anew.sort_unstable();
        Response::Reload(Reload {
            applied: true,
            made_anew,
            ..report
        })
    }

    /// Routes the protected prefixes of a configuration into the tunnel, and creates or removes the
    /// tunnel's device if necessary.
    fn install_routes(&mut self, config: &Config) -> Result<()> {
        let had_tunnel = self.host.tunnel.is_some();
        if config.peers.is_empty() {
            self.counters.add(&self.workers.stop());
        }
        self.host.reconfigure(config, &mut self.faults)?;
        if had_tunnel != self.host.tunnel.is_some() {
            self.kept.store_again(&self.host);
            self.hold = None;
        }
        if let Some(tunnel) = &self.host.tunnel
            && !had_tunnel
        {
            self.poller
                .add(&tunnel.tun, token::TUNNEL, Interest::Read)?;
        }
        self.start_workers()
    }

    /// Starts the additional worker threads, if there is a tunnel and the configuration asks for
    /// them.
    fn start_workers(&mut self) -> Result<()> {
        let tunnel = self.host.tunnel.as_ref().filter(|_| self.hold.is_none());
        tunnel.map_or(Ok(()), |tunnel| {
            self.workers
                .start(&self.config, &self.node, tunnel, &self.trace.dropped)
        })
    }

    fn stop(mut self, end: End) -> Result<()> {
        self.hands_over = end == End::Restart && self.kept.is_stored();
        match self.hands_over {
            true => tracing::info!("stopping for a restart: deleting all SAs"),
            false => tracing::info!("stopping: deleting all SAs"),
        }
        self.manager.stopping();
        let now = clock::now();
        self.node.shutdown(now);
        self.leases.hurry();
        self.carry_out(now);
        crash::point("deletes-sent");
        // Deregistration uses the route that packets have until then.
        if let Some(mobile) = &mut self.host.mobile
            && let Err(error) = mobile.farewell(&mut self.node, &mut self.counters)
        {
            tracing::warn!("mobile node: cannot deregister: {error}");
        }
        self.workers.stop();
        if self.hands_over {
            return self.host.hand_over().context("leaving the tunnel device");
        }
        let closed = self.host.close().context("removing routes and rules");
        self.kept.empty();
        closed
    }

    fn watch(&mut self) -> io::Result<()> {
        let read = Interest::Read;
        self.poller.add(&self.signals, token::SIGNALS, read)?;
        self.poller.add(&self.api, token::API, read)?;
        if let Some(readers) = self.api.readers() {
            self.poller.add(&*readers, token::READERS, read)?;
        }
        self.poller.add(&self.scrapes, token::SCRAPES, read)?;
        for changes in self.host.changes.descriptors() {
            self.poller.add(changes, token::CHANGES, read)?;
        }
        self.poller.add(&self.workers, token::WORKERS, read)?;
        if let Some(waker) = self.sessions.waker() {
            self.poller.add(waker, token::SESSIONS, read)?;
        }
        for reports in &self.host.reports {
            self.poller.add(reports, token::REPORTS, read)?;
        }
        if let Some(tunnel) = self.host.tunnel.as_ref().filter(|_| self.hold.is_none()) {
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

    /// Passes the wall-clock time to the node, for certificates, registrations, and tokens for
    /// keys.
    fn tell_time(&mut self, now: Instant) {
        self.node.set_wall_clock(config::today());
        mobile::tell_time(&mut self.node, now);
    }

    /// Handles a change of interfaces, addresses or routes.
    fn look(&mut self, now: Instant) {
        self.follow(now);
        if let Some(mobile) = &mut self.host.mobile {
            mobile.look(&mut self.node, &self.poller, token::MOBILE, now);
        }
    }

    /// Updates the routes into tunnels, the interfaces that traffic depends on, and the list of
    /// what this host does not have yet.
    fn follow(&mut self, now: Instant) {
        let (host, config) = (&mut self.host, &self.config);
        let interfaces = host.look(config).and_then(|()| host.interfaces(config));
        let followed = interfaces.map(|known| self.node.set_interfaces(known, now));
        self.troubles.note(Task::Routes, followed, now);
    }
}

/// Opens the store of leases, if there are pools.
fn open_store(config: &Config) -> Result<Option<(Store, Vec<Lease>)>, store::Error> {
    match config.pools.is_empty() {
        true => Ok(None),
        false => Store::open(&config.store).map(Some),
    }
}

/// Counts the tunnels of the configuration, and those that are up.
fn tunnels(config: &Config, node: &Node) -> Tunnels {
    let up = config
        .peers
        .iter()
        .filter(|peer| node.is_up(&peer.party.name));
    Tunnels {
        up: up.count(),
        all: config.peers.len(),
    }
}

const fn os_side(side: Side) -> divert::Side {
    match side {
        Side::Wired => divert::Side::Wired,
        Side::Wireless => divert::Side::Wireless,
    }
}
