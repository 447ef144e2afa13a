//! Two engines and a hop between them. A NAT may stand in front of the left host.
//!
//! Everything that was sent is kept for attacks, and everything that happened for the pages in
//! `docs/`. A state change that those pages do not document fails the test.

use super::trace::{Cause, Trace};
use crate::{Config, DownReason, DropReason, Engine, Event, SaState};
use crypto::{Rng, Secret};
use model::{BesideSa, ChildSa, Grant, IkeSaId, Instant, Path, PeerId};
use resumption::{Memory, Outcome, Store};
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::ike::{Datagram, Header, Message, Notify, Payload, RefusalCode};
use world::{Hop, Hosts, Nat, Network};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

pub(crate) struct Host {
    pub(crate) engine: Engine,
    /// The host's first peer.
    peer: PeerId,
    pub(crate) events: Vec<Event>,
    /// Refusal code for all grants that arrive, if the host cannot use them.
    pub(crate) unusable: Option<RefusalCode>,
    /// Keys that the host gives to a neighbour that requests them.
    pub(crate) keys: Option<Grant<Secret>>,
    /// The store of its sessions; without one, no request to it has an outcome.
    pub(crate) store: Option<Memory>,
}

/// A datagram in flight.
#[derive(Clone, Debug)]
pub(crate) struct Flying {
    pub(crate) to: Side,
    /// The path as the receiver sees it.
    pub(crate) path: Path,
    /// The IKE message without the non-ESP marker.
    pub(crate) message: Vec<u8>,
}

impl Flying {
    /// Returns an answer in clear to this request of the left host, as anybody can send it.
    pub(crate) fn forged_answer(&self, notifies: &[Notify]) -> Self {
        let mut header = Header::peek(&self.message).unwrap();
        (header.flags.initiator, header.flags.response) = (false, true);
        let payloads = notifies.iter().cloned().map(Payload::Notify).collect();
        Self {
            to: Side::Left,
            path: self.path.reversed(),
            message: Message { header, payloads }.encode(),
        }
    }

    /// Returns the message, which is in clear.
    pub(crate) fn clear(&self) -> Message {
        match Datagram::decode(&self.message) {
            Ok(Datagram::Clear(message)) => message,
            other => panic!("it is in clear: {other:?}"),
        }
    }
}

pub(crate) struct Pair {
    pub(crate) left: Host,
    pub(crate) right: Host,
    pub(crate) now: Instant,
    /// Conditions of UDP. A stream delivers everything or nothing.
    pub(crate) hop: Hop,
    pub(crate) nat: Option<Nat>,
    /// Unreachable addresses: no datagram comes from them or arrives there.
    pub(crate) away: Vec<IpAddr>,
    /// True if no UDP datagram arrives.
    pub(crate) deaf: bool,
    /// Ports of the left host's connections that are cut off.
    pub(crate) cut: BTreeSet<u16>,
    /// The longest IP datagrams that reach the left and the right host, in octets.
    pub(crate) longest: [usize; 2],
    /// Everything that was sent, in order.
    pub(crate) sent: Vec<Flying>,
    /// Messages sent to an address of neither host, with that address.
    pub(crate) astray: Vec<(SocketAddr, Vec<u8>)>,
    pub(crate) trace: Trace,
    network: Network<Flying>,
}

pub(crate) const LEFT: &str = "192.168.1.2";
pub(crate) const RIGHT: &str = "203.0.113.1";

pub(crate) const NAT: Nat = Nat {
    outside: IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9)),
    shift: 20_000,
};

/// A round trip takes 40 ms, and a delayed datagram as long as five.
const HOP: Hop = Hop {
    delay: Duration::from_millis(20),
    late: Duration::from_millis(80),
    ..Hop::PERFECT
};

impl Hosts for Pair {
    type Packet = Flying;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Flying> {
        &mut self.network
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let engines = [&self.left, &self.right];
        let due = engines.map(|host| host.engine.poll_timeout().map(|deadline| deadline.at));
        due.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self) {
        self.timeout(Side::Left);
        self.timeout(Side::Right);
    }

    fn receive(&mut self, flying: Flying) {
        self.deliver(&flying);
    }
}

impl Pair {
    pub(crate) fn new(left: Config, right: Config) -> Self {
        Self::seeded(left, right, 1)
    }

    pub(crate) fn seeded(left: Config, right: Config, seed: u8) -> Self {
        Self {
            left: Host::seeded(left, seed, 1),
            right: Host::seeded(right, seed, 2),
            now: Instant::ZERO,
            hop: HOP,
            nat: None,
            away: Vec::new(),
            deaf: false,
            cut: BTreeSet::new(),
            longest: [usize::MAX; 2],
            sent: Vec::new(),
            astray: Vec::new(),
            trace: Trace::default(),
            // The figures of some tests suit the decisions of their seeds.
            network: Network::new(Rng::from_seed([seed; 32])).rolling_u32(),
        }
    }

    /// Restarts the network's random decisions with another seed.
    pub(crate) fn reseed(&mut self, seed: u8) {
        self.network.rng = Rng::from_seed([seed; 32]);
    }

    /// Initiates from the left host and drives both hosts until nothing is in flight.
    pub(crate) fn connect(&mut self) -> IkeSaId {
        let id = self.initiate(Side::Left);
        self.settle();
        id
    }

    pub(crate) fn initiate(&mut self, side: Side) -> IkeSaId {
        let [left, right] = [LEFT, RIGHT].map(|ip| ip.parse().unwrap());
        let (from, to) = match side {
            Side::Left => (left, right),
            Side::Right => (right, self.nat.map_or(left, |nat| nat.outside)),
        };
        let socket = |ip| SocketAddr::new(ip, crate::PORT);
        let path = Path::udp(socket(from), socket(to));
        let peer = self.host(side).peer;
        self.with(side, |engine, now| engine.initiate(peer, path, now))
            .unwrap()
    }

    pub(crate) fn host(&mut self, side: Side) -> &mut Host {
        match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        }
    }

    /// Runs a command on an engine and sends the resulting messages.
    pub(crate) fn with<T>(&mut self, side: Side, run: impl FnOnce(&mut Engine, Instant) -> T) -> T {
        let now = self.now;
        let result = run(&mut self.host(side).engine, now);
        self.collect_from(side, Cause::Command);
        result
    }

    /// Restarts a host with nothing but its configuration.
    pub(crate) fn restart(&mut self, side: Side, fresh: Host) {
        *self.host(side) = fresh;
        self.trace.forget(side);
    }

    /// Runs the timers that are due at one host.
    pub(crate) fn timeout(&mut self, side: Side) {
        let now = self.now;
        self.host(side).engine.handle_timeout(now);
        self.collect_from(side, Cause::Timeout);
    }

    /// Delivers all messages in flight and their answers, without running any timer.
    pub(crate) fn settle(&mut self) {
        while self.deliver_next() {}
    }

    /// Delivers a request and its answer.
    pub(crate) fn settle_one_round(&mut self) {
        self.deliver_next();
        self.deliver_next();
    }

    /// Delivers one datagram; returns false if none is in flight.
    pub(crate) fn deliver_next(&mut self) -> bool {
        let Some(at) = self.network.next_due() else {
            return false;
        };
        self.now = self.now.max(at);
        let flying = self.network.pop_due(self.now);
        flying.iter().for_each(|flying| self.deliver(flying));
        true
    }

    /// Delivers a datagram to its receiver now; the datagram may be forged.
    pub(crate) fn deliver(&mut self, flying: &Flying) {
        let now = self.now;
        let host = self.host(flying.to);
        host.engine
            .handle_datagram(flying.path, &flying.message, now);
        self.collect_from(flying.to, Cause::Arrived(&flying.message));
    }

    /// Starts the story for the pages here and drops the events so far.
    pub(crate) fn begin_story(&mut self) {
        self.trace.begin(self.now);
    }

    /// Removes and returns the datagrams in flight.
    pub(crate) fn intercept(&mut self) -> Vec<Flying> {
        self.network.intercept()
    }

    /// Delivers both ends' requests and then both answers, in one of the four possible orders.
    pub(crate) fn cross(&mut self, order: usize) {
        for reverse in [order % 2 == 1, order / 2 == 1] {
            let mut flying = self.intercept();
            if reverse {
                flying.reverse();
            }
            flying.iter().for_each(|flying| self.deliver(flying));
        }
    }

    /// Loses all datagrams in flight.
    pub(crate) fn lose(&mut self) {
        let lost = self.intercept();
        self.trace.lose(lost.len());
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.network.next_due().is_none()
    }

    /// Collects the events and messages that a host produced for `cause`.
    fn collect_from(&mut self, side: Side, cause: Cause<'_>) {
        let host = match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        };
        self.trace.look(self.now, side, &host.engine, cause);
        while let Some(event) = host.engine.poll_event() {
            self.trace.told(self.now, side, &event);
            if let Event::Granted { sa, grant, .. } = &event {
                let unusable = host.unusable;
                let engine = &mut host.engine;
                engine.answer_grant(*sa, grant.csa, grant.grant, unusable, self.now);
            }
            if let Event::KeysAsked { sa, token, .. } = &event {
                let answer = host.keys.clone().ok_or(RefusalCode::UNKNOWN_GRANT);
                let now = self.now;
                host.engine.answer_request(*sa, token.nonce, &answer, now);
            }
            host.events.push(event);
        }
        self.ask_store(side);
        while let Some(transmit) = self.host(side).engine.poll_transmit() {
            let path = transmit.path;
            let marked = path.is_stream() || path.local.port() == crate::NATT_PORT;
            let message = match marked {
                true => transmit.payload.strip_prefix(&[0; 4]).unwrap().to_vec(),
                false => transmit.payload,
            };
            self.send(side, path, message);
        }
    }

    /// Gives a host an outcome of its store.
    pub(crate) fn store_answers(&mut self, side: Side, outcome: Outcome) {
        let now = self.now;
        self.host(side).engine.handle_stored(outcome, now);
        self.collect_from(side, Cause::Stored);
    }

    /// Passes the requests of a host to its store, and their outcomes to the host.
    fn ask_store(&mut self, side: Side) {
        let now = self.now;
        let host = self.host(side);
        while let Some(operation) = host.engine.poll_store() {
            let Some(store) = &mut host.store else {
                continue;
            };
            store.submit(operation, host.engine.today());
            while let Some(outcome) = store.poll() {
                host.engine.handle_stored(outcome, now);
            }
            return self.collect_from(side, Cause::Stored);
        }
    }

    fn send(&mut self, from: Side, path: Path, message: Vec<u8>) {
        let to = path.remote;
        let Some(path) = self.translate(from, path) else {
            return self.astray.push((to, message));
        };
        let to = from.other();
        let flying = Flying { to, path, message };
        self.sent.push(flying.clone());
        let away = |end: SocketAddr| self.away.contains(&end.ip());
        let away = away(path.local) || away(path.remote);
        const IP_UDP_MARKER: usize = 20 + 8 + 4;
        let too_long = flying.message.len() + IP_UDP_MARKER > self.longest[to as usize];
        let arrives = match path.is_stream() {
            false => {
                let is_blocked = away || too_long || self.deaf;
                let hop = if is_blocked { Hop::DEAD } else { self.hop };
                self.network.send(flying.clone(), &hop, self.now)
            }
            true => {
                let ports = [path.local.port(), path.remote.port()];
                let passes = !away && !ports.iter().any(|port| self.cut.contains(port));
                if passes {
                    let at = self.now + self.hop.delay;
                    self.network.deliver(flying.clone(), at);
                }
                passes
            }
        };
        let receiver = match to {
            Side::Left => &self.left.engine,
            Side::Right => &self.right.engine,
        };
        self.trace.sent(self.now, &flying, receiver, !arrives);
    }

    /// Returns the path as the receiver sees it; `None` if no receiver has the address.
    fn translate(&self, from: Side, path: Path) -> Option<Path> {
        let mut path = path;
        if path.local.ip().is_unspecified() {
            let own = match from {
                Side::Left => LEFT,
                Side::Right => RIGHT,
            };
            path.local.set_ip(own.parse().unwrap());
        }
        let seen = path.reversed();
        let Some(nat) = self.nat else {
            return Some(seen);
        };
        match from {
            Side::Left => Some(Path {
                remote: nat.outward(seen.remote),
                ..seen
            }),
            Side::Right => Some(Path {
                local: nat.inward(seen.local, LEFT.parse().unwrap())?,
                ..seen
            }),
        }
    }
}

impl Drop for Pair {
    /// Every state change of every test has to be documented on the page about states.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            super::states::assert_documented(&self.trace.machine);
        }
    }
}

impl Host {
    pub(crate) fn seeded(config: Config, seed: u8, number: u8) -> Self {
        Self {
            peer: config.peers[0].id,
            engine: Engine::new(
                config,
                [seed.wrapping_mul(3).wrapping_add(number); 32],
                Instant::ZERO,
            ),
            events: Vec::new(),
            unusable: None,
            keys: None,
            store: Some(Memory::new(1000)),
        }
    }

    /// Returns the first label of the host's identity.
    pub(crate) fn name(&self) -> String {
        let identity = self.engine.config.identity.to_string();
        identity.split('.').next().unwrap_or_default().to_owned()
    }

    /// Returns the children that came up and have not gone down.
    pub(crate) fn children(&self) -> Vec<&ChildSa<Secret>> {
        let up = self.events.iter().filter_map(|event| match event {
            Event::ChildUp(child) => Some(&**child),
            Event::ChildRekeyed { new, .. } => Some(&**new),
            _ => None,
        });
        let down = |child: &&ChildSa<Secret>| {
            self.events
                .iter()
                .any(|event| matches!(event, Event::ChildDown { child: id, .. } if *id == child.id))
        };
        up.filter(|child| !down(child)).collect()
    }

    pub(crate) fn child(&self) -> &ChildSa<Secret> {
        let children = self.children();
        assert_eq!(children.len(), 1, "{:?}", self.events);
        children[0]
    }

    /// Returns the number of established IKE SAs.
    pub(crate) fn up(&self) -> usize {
        let sas = self.engine.sas();
        sas.filter(|sa| sa.state == SaState::Established).count()
    }

    pub(crate) fn down_reasons(&self) -> Vec<&DownReason> {
        let reasons = self.events.iter().filter_map(|event| match event {
            Event::IkeDown { why, .. } => Some(why),
            _ => None,
        });
        reasons.collect()
    }

    pub(crate) fn refusals(&self) -> Vec<String> {
        let refusals = self.events.iter().filter_map(|event| match event {
            Event::Refused { why, .. } => Some(why.to_string()),
            _ => None,
        });
        refusals.collect()
    }

    pub(crate) fn dropped(&self, why: DropReason) -> u64 {
        self.engine.counters().dropped(why)
    }

    /// Returns all visible state, to compare before and after an attack.
    pub(crate) fn picture(&self) -> String {
        let sas: VecDeque<_> = self.engine.sas().collect();
        format!("{sas:?} {} events", self.events.len())
    }
}

/// Returns true if two children match: each opens what the other seals.
pub(crate) fn fit(a: &ChildSa<Secret>, b: &ChildSa<Secret>) -> bool {
    let same = |x: &model::Half<Secret>, y: &model::Half<Secret>| {
        let keys = keys_of(x) == keys_of(y) && x.keys.is_extended() == y.keys.is_extended();
        x.spi == y.spi && keys && x.writers == y.writers
    };
    let beside = |a: &Option<BesideSa<Secret>>, b: &Option<BesideSa<Secret>>| match (a, b) {
        (Some(a), Some(b)) => same(&a.inbound, &b.outbound) && same(&b.inbound, &a.outbound),
        (a, b) => a.is_none() && b.is_none(),
    };
    beside(&a.opaque, &b.opaque)
        && beside(&a.integrity, &b.integrity)
        && same(&a.inbound, &b.outbound)
        && same(&b.inbound, &a.outbound)
        && a.agreement == b.agreement
        && a.local == b.remote
        && a.remote == b.local
        && keys_of(&a.inbound) != keys_of(&a.outbound)
}

pub(crate) fn keys_of(half: &model::Half<Secret>) -> Vec<Vec<u8>> {
    match &half.keys {
        model::Keys::Plain { key, .. } => vec![key.expose().to_vec()],
        model::Keys::Zoned(zones) => {
            let keys = zones.iter().map(|zone| zone.key.expose().to_vec());
            keys.collect()
        }
    }
}
