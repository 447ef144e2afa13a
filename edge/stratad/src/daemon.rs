//! The loop: wait for a descriptor or a deadline, hand what came to the node, carry out what the
//! node says. One thread, no locks; everything it waits for is in one set.
//!
//! A packet travels so: read from the TUN (or from UDP port 4500) into a batch of buffers that
//! live as long as the daemon, sealed (or opened) in place by the node, sent (or written) by
//! [`Outlet`].

use crate::api::Api;
use crate::host::Host;
use crate::journal::Journal;
use crate::keylog::Keys;
use crate::outlet::{Losses, Outlet};
use crate::setup;
use anyhow::{Context, Result};
use config::Config;
use model::{Instant, Path};
use node::{Event, Node, Packet, Side, Verdict};
use os::poll::{Interest, Ready};
use os::signals::Signal;
use os::{Poller, Signals, clock, crash, divert, entropy};
use std::io;
use wire::esp::Datagram;

/// Packets handed to the node at once. Longer batches make others wait, shorter ones cost calls.
const BATCH: usize = 64;

/// Batches taken from one descriptor before the others get their turn.
const TURNS: usize = 4;

/// The longest IP packet.
const LONGEST: usize = 65_535;

/// What is waited for. Sockets of port 500 count from `IKE`, those of port 4500 from `NATT`.
mod token {
    pub const SIGNALS: u64 = 0;
    pub const API: u64 = 1;
    pub const TUNNEL: u64 = 2;
    pub const WIRED: u64 = 3;
    pub const WIRELESS: u64 = 4;
    pub const IKE: u64 = 1 << 16;
    pub const NATT: u64 = 1 << 17;
}

/// The running daemon.
pub struct Daemon {
    node: Node,
    host: Host,
    api: Api,
    keys: Keys,
    losses: Losses,
    journal: Journal,
    poller: Poller,
    signals: Signals,
    batch: Vec<Packet>,
    arrived: Arrived,
    transit: Vec<u8>,
}

impl Daemon {
    /// Sets the host up and starts the node. Errors say what to change.
    pub fn start(config: &Config) -> Result<Self> {
        let signals = Signals::take(&[Signal::SIGTERM, Signal::SIGINT])?;
        let now = clock::now();
        // The API first: it tells whether another daemon runs with this configuration.
        let api = Api::open(config, now)?;
        let host = Host::open(config)?;
        let daemon = Self {
            node: Node::new(setup::node(config), entropy::seed(), now),
            host,
            api,
            keys: Keys::default(),
            losses: Losses::default(),
            journal: Journal::default(),
            poller: Poller::new()?,
            signals,
            batch: (0..BATCH).map(|_| Packet::with_capacity(LONGEST)).collect(),
            arrived: Arrived::default(),
            transit: vec![0; LONGEST],
        };
        daemon.watch().context("preparing to wait for events")?;
        tracing::info!(
            "stratad {} runs as {}",
            env!("CARGO_PKG_VERSION"),
            config.identity
        );
        Ok(daemon)
    }

    /// Runs until SIGTERM or SIGINT, then deletes all SAs and takes everything out of the system.
    pub fn run(mut self) -> Result<()> {
        let mut ready = Vec::new();
        self.carry_out(clock::now());
        crash::point("first-message-sent");
        while self.signals.next_signal().is_none() {
            let deadlines = [self.node.poll_timeout(), self.api.poll_timeout()];
            let deadline = deadlines.into_iter().flatten().min();
            self.poller
                .wait(deadline.map(|deadline| deadline.at), &mut ready)?;
            let now = clock::now();
            for event in &ready {
                self.handle(*event, now);
            }
            if self
                .node
                .poll_timeout()
                .is_some_and(|deadline| deadline.at <= now)
            {
                self.node.handle_timeout(now);
            }
            self.carry_out(now);
            self.api.settle(&self.node, now);
        }
        self.stop()
    }

    fn stop(mut self) -> Result<()> {
        tracing::info!("stopping: deleting all SAs");
        let now = clock::now();
        self.node.shutdown(now);
        self.carry_out(now);
        crash::point("deletes-sent");
        self.host
            .close()
            .context("taking routes and rules out of the system")
    }

    fn watch(&self) -> io::Result<()> {
        let read = Interest::Read;
        self.poller.add(&self.signals, token::SIGNALS, read)?;
        self.poller.add(&self.api, token::API, read)?;
        if let Some(tunnel) = &self.host.tunnel {
            self.poller.add(&tunnel.tun, token::TUNNEL, read)?;
        }
        if let Some(divert) = &self.host.divert {
            self.poller
                .add(divert.tun(divert::Side::Wired), token::WIRED, read)?;
            self.poller
                .add(divert.tun(divert::Side::Wireless), token::WIRELESS, read)?;
        }
        for (udp, token) in self.host.ike.iter().zip(token::IKE..) {
            self.poller.add(udp, token, read)?;
        }
        for (udp, token) in self.host.natt.iter().zip(token::NATT..) {
            self.poller.add(udp, token, read)?;
        }
        Ok(())
    }

    fn handle(&mut self, ready: Ready, now: Instant) {
        match ready.token {
            token::SIGNALS => {}
            token::API => self
                .api
                .serve(&mut self.node, &mut self.keys, &self.losses, now),
            token::TUNNEL => self.read_tunnel(),
            token::WIRED => self.read_side(Side::Wired, now),
            token::WIRELESS => self.read_side(Side::Wireless, now),
            token if token < token::NATT => self.read_ike((token - token::IKE) as usize, now),
            token => self.read_natt((token - token::NATT) as usize, now),
        }
    }

    /// Inner datagrams: sealed and sent.
    fn read_tunnel(&mut self) {
        let Some(tunnel) = &self.host.tunnel else {
            return;
        };
        for _ in 0..TURNS {
            let mut filled = 0;
            for packet in &mut self.batch {
                let Ok(len) = tunnel.tun.recv(packet.space()) else {
                    break;
                };
                packet.set_len(len);
                filled += 1;
            }
            let mut outlet = Outlet {
                host: &self.host,
                losses: &mut self.losses,
            };
            self.node.seal(&mut self.batch[..filled], &mut outlet);
            if filled < BATCH {
                return;
            }
        }
    }

    /// Port 500: IKE alone.
    fn read_ike(&mut self, index: usize, now: Instant) {
        let (node, udp) = (&mut self.node, &mut self.host.ike[index]);
        for _ in 0..TURNS {
            let read =
                udp.recv(|arrival, payload| node.handle_datagram(arrival.path, payload, now));
            if read.is_err() {
                return;
            }
        }
    }

    /// Port 4500: ESP, and IKE behind the non-ESP marker. One system call may bring more packets
    /// than a batch holds.
    fn read_natt(&mut self, index: usize, now: Instant) {
        for _ in 0..TURNS {
            let mut arrived = std::mem::take(&mut self.arrived);
            let read = self.host.natt[index].recv(|arrival, payload| match Datagram::of(payload) {
                Datagram::Ike(message) => self.node.handle_datagram(arrival.path, message, now),
                Datagram::Keepalive => {}
                Datagram::Esp(packet) => arrived.push(arrival.path, packet),
            });
            let mut outlet = Outlet {
                host: &self.host,
                losses: &mut self.losses,
            };
            self.node.open(arrived.packets(), &mut outlet, now);
            arrived.clear();
            self.arrived = arrived;
            if read.is_err() {
                return;
            }
        }
    }

    /// Transit packets of others, at a licensed node.
    fn read_side(&mut self, from: Side, now: Instant) {
        let Some(divert) = &self.host.divert else {
            return;
        };
        for _ in 0..TURNS * BATCH {
            let Ok(len) = divert.recv(os_side(from), &mut self.transit) else {
                return;
            };
            let packet = &mut self.transit[..len];
            if self.node.transit(from, packet, now) == Verdict::Forward {
                self.losses
                    .forward(divert, os_side(from).opposite(), packet);
            }
            while let Some((to, packet)) = self.node.poll_resend() {
                self.losses.forward(divert, os_side(to), &packet);
            }
        }
    }

    /// Carries out what the node has to say.
    fn carry_out(&mut self, now: Instant) {
        while let Some(transmit) = self.node.poll_transmit() {
            self.losses
                .send(&self.host, transmit.path, &transmit.payload);
        }
        while let Some((to, packet)) = self.node.poll_resend() {
            if let Some(divert) = &self.host.divert {
                self.losses.forward(divert, os_side(to), &packet);
            }
        }
        while let Some(event) = self.node.poll_event() {
            self.note(event, now);
        }
    }

    /// Tells an event to the log, or does what it asks for.
    fn note(&mut self, event: Event, now: Instant) {
        match event {
            Event::PairLearnt {
                from,
                source,
                destination,
            } => self.learn(from, source, destination),
            Event::KeyLog(line) => {
                if let Err(error) = self.keys.write(&line) {
                    tracing::error!("a key cannot be written for analysis: {error}");
                    self.losses.keys += 1;
                }
            }
            event => {
                self.journal.tell(&event, now);
                if let Event::ChildUp { .. } | Event::ChildDown { .. } = event {
                    self.resolve();
                }
            }
        }
    }

    /// A name that cannot be resolved is no reason to lose a tunnel.
    fn resolve(&mut self) {
        let up = self
            .node
            .peers()
            .iter()
            .any(|peer| !peer.children.is_empty());
        if up {
            crash::point("tunnel-up");
        }
        let tunnel = self.host.tunnel.as_mut();
        if let Some(Err(error)) = tunnel.map(|tunnel| tunnel.resolve(up)) {
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

const fn os_side(side: Side) -> divert::Side {
    match side {
        Side::Wired => divert::Side::Wired,
        Side::Wireless => divert::Side::Wireless,
    }
}

/// Packets copied out of the receive buffers, in buffers that are used again and again.
#[derive(Default)]
struct Arrived {
    packets: Vec<Packet>,
    filled: usize,
}

impl Arrived {
    fn push(&mut self, path: Path, octets: &[u8]) {
        if self.filled == self.packets.len() {
            self.packets.push(Packet::with_capacity(LONGEST));
        }
        let packet = &mut self.packets[self.filled];
        packet.fill(octets);
        packet.path = Some(path);
        self.filled += 1;
    }

    fn packets(&mut self) -> &mut [Packet] {
        &mut self.packets[..self.filled]
    }

    fn clear(&mut self) {
        self.filled = 0;
    }
}
