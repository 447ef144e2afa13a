//! A mobile node that moves between two agents, licensed each where it is. The second agent fetches
//! its first keys from the first one. IKE takes some time, everything else none.

use super::datagram;
use super::outlet::Outlet;
use super::world::{
    GATEWAY, Hosts, LICENSED, MOBILE, NAMES, Network, Policies, address, config, identity, licence,
    peer,
};
use crate::mobile_ip::{
    Algorithm, Arrival, Association, Config as Part, ForeignAgentConfig, HomeAgentConfig, Lifetime,
    MobileNodeConfig, NtpTime, Replay, Station, Status, Transmit,
};
use crate::{
    Config, Event, Handover, MigrationCounters, NoKeys, Node, Packet, Places, Role, Side, Slot,
    ZonePolicy,
};
use crypto::{Secret, UnixTime};
use ike::{Resumption, sign_token, token_key};
use model::{CsaId, Identity, Instant, Licence, Right, Spi, TrafficSelector, ZoneId};
use resumption::{Memory, Store};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::ike::Token;
use wire::mobile_ip::{Enclosure, Request};

const NEXT: usize = 3;
const HOSTS: [usize; 4] = [MOBILE, GATEWAY, LICENSED, NEXT];
const CARE_OF: [Ipv4Addr; 2] = [Ipv4Addr::new(203, 0, 113, 3), Ipv4Addr::new(203, 0, 114, 3)];
/// Link-layer address of every station on a link.
const STATION: Station = Station([2, 0, 0, 0, 0, 1]);
const TIME: Duration = Duration::from_secs(1_800_000_000);
const STEP: Duration = Duration::from_millis(5);

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Exchange numbers.
const CREATE_CHILD_SA: u8 = 36;
const KEY_DISTRIBUTE: u8 = 240;
const KEY_REQUEST: u8 = 241;

fn name(who: usize) -> Identity {
    match who {
        NEXT => "fb.example.net".parse().unwrap(),
        who => identity(who),
    }
}

fn at(who: usize) -> IpAddr {
    match who {
        NEXT => CARE_OF[1].into(),
        who => address(who),
    }
}

fn home() -> Ipv4Addr {
    match address(MOBILE) {
        IpAddr::V4(home) => home,
        IpAddr::V6(_) => panic!("Mobile IPv4"),
    }
}

fn v4(who: usize) -> Ipv4Addr {
    match at(who) {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => panic!("Mobile IPv4"),
    }
}

/// Adds the places of both agents to a configuration, with licences for the listed agents only.
fn with_places(mut config: Config, licensed: &[usize]) -> Config {
    let first = match &config.peers[0].ike.role {
        Role::Vpn { zones, .. } => zones.clone(),
        _ => panic!("a VPN peer"),
    };
    let slot = |who: &usize| {
        let licence = licence(&name(*who).to_string(), 1);
        Slot::new(name(*who), [licence], &first)
    };
    config.peers[0].ike.slots = licensed.iter().map(slot).collect();
    config.peers[0].ike.features.mobike = false;
    let place = |who: &usize| {
        let at = TrafficSelector::from_prefix(at(*who), 32).unwrap();
        (name(*who), vec![at])
    };
    let places = Places {
        holders: None,
        handover: Handover::Dkm,
        nodes: licensed.iter().map(place).collect(),
        limits: Vec::new(),
    };
    config.peers[0].places = Some(places);
    config
}

fn key() -> Association {
    Association {
        spi: 4097,
        algorithm: Algorithm::HmacSha256,
        key: Secret::new(vec![1; 32]),
        replay: Replay::TIMESTAMPS,
    }
}

fn part(who: usize) -> Part {
    match who {
        MOBILE => Part::MobileNode(MobileNodeConfig {
            home: home(),
            home_agent: v4(GATEWAY),
            key: key(),
            agent_keys: BTreeMap::new(),
            interfaces: vec![0, 1],
            lifetime: Lifetime(300),
            simultaneous: false,
        }),
        GATEWAY => Part::HomeAgent(HomeAgentConfig::new(
            v4(GATEWAY),
            BTreeMap::from([(home(), key())]),
        )),
        who => Part::ForeignAgent(ForeignAgentConfig::new(0, v4(who))),
    }
}

/// Returns the configuration of a host where both ends license both agents.
fn host(who: usize) -> Config {
    let policies = Policies {
        mobile: Vec::new(),
        gateway: Vec::new(),
        ..Policies::default()
    };
    let both = [LICENSED, NEXT];
    let mut host = config(who.min(LICENSED), &policies);
    host.identity = name(who);
    host.mobile_ip = Some(part(who));
    match who {
        MOBILE => return with_places(host, &both),
        GATEWAY => {
            let mut next = peer("fb", LICENSED, Some(at(NEXT)), Role::Licensed);
            next.ike.identity = name(NEXT);
            host.peers.push(next);
            return with_places(host, &both);
        }
        _ => {}
    }
    let other = LICENSED + NEXT - who;
    let mut neighbour = peer("other", LICENSED, Some(at(other)), Role::Neighbour);
    neighbour.ike.identity = name(other);
    host.peers.push(neighbour);
    host
}

struct Quartet {
    nodes: Vec<Node>,
    events: [Vec<Event>; 4],
    now: Instant,
    /// Time by which each clock is ahead.
    ahead: [Duration; 4],
    /// True for each agent that the mobile node hears.
    links: [bool; 2],
    /// Lost messages: sender, receiver and exchange.
    lost: Vec<(usize, usize, u8)>,
    off: [bool; 4],
    /// True if registrations that the second agent relays are lost.
    is_mute: bool,
    /// Tokens seen on a link.
    tokens: Vec<Token>,
    /// The sessions of the gateway.
    store: Memory,
    network: Network<Flight>,
    /// Time at which the systems report the time of day next.
    report: Instant,
    sequence: u32,
}

/// An IKE message in flight.
struct Flight {
    from: SocketAddr,
    to: usize,
    transmit: model::Transmit,
}

impl Quartet {
    /// Creates a world with the mobile node at the first agent, which can read.
    fn new() -> Self {
        Self::with(HOSTS.map(host))
    }

    fn with(hosts: [Config; 4]) -> Self {
        let now = Instant::from_origin(Duration::from_secs(1000));
        let nodes = hosts.into_iter().enumerate();
        let nodes = nodes.map(|(who, config)| Node::new(config, [who as u8 + 1; 32], now));
        let mut quartet = Self {
            nodes: nodes.collect(),
            events: Default::default(),
            now,
            ahead: Default::default(),
            links: [true, false],
            lost: Vec::new(),
            off: [false; 4],
            is_mute: false,
            tokens: Vec::new(),
            store: Memory::new(10),
            network: Network::default(),
            report: now,
            sequence: 0,
        };
        quartet.run_for(millis(20_000));
        for from in [MOBILE, GATEWAY] {
            assert_eq!(quartet.readers(from), [true, false], "{:?}", quartet.events);
        }
        quartet
    }

    fn report_time(&mut self) {
        let (passed, ahead) = (self.now.since(Instant::ZERO), self.ahead);
        for (node, ahead) in self.nodes.iter_mut().zip(ahead) {
            node.set_time_of_day(NtpTime::from_unix(TIME + passed + ahead), self.now);
        }
        self.report = self.now + STEP;
    }

    fn depart(&mut self, who: usize, transmit: model::Transmit) {
        let exchange = datagram::ike(&transmit)[18];
        let to = HOSTS
            .into_iter()
            .find(|to| at(*to) == transmit.path.remote.ip());
        let Some(to) = to else { return };
        let is_lost = self.lost.contains(&(who, to, exchange)) || self.off[who] || self.off[to];
        if !is_lost {
            let from = SocketAddr::new(at(who), transmit.path.local.port());
            let flight = Flight { from, to, transmit };
            self.network.deliver(flight, self.now + STEP);
        }
    }

    /// Delivers messages of Mobile IP at once.
    fn carry(&mut self, who: usize, transmit: Transmit) {
        match transmit {
            Transmit::Icmp {
                interface, octets, ..
            } => {
                let place = match who {
                    MOBILE => interface as usize,
                    agent => agent - LICENSED,
                };
                if !self.links[place] || self.off[LICENSED + place] {
                    return;
                }
                let (to, interface, from) = match who {
                    MOBILE => (LICENSED + place, 0, home()),
                    agent => (MOBILE, place as u32, v4(agent)),
                };
                self.nodes[to].handle_discovery(interface, from, STATION, &octets, self.now);
            }
            Transmit::Udp {
                source,
                destination,
                ttl,
                octets,
                ..
            } => {
                let to = HOSTS
                    .into_iter()
                    .find(|to| v4(*to) == *destination.ip())
                    .unwrap();
                let agent = [who, to].into_iter().find(|one| *one >= LICENSED);
                let place = agent.unwrap() - LICENSED;
                let on_link = who == MOBILE || to == MOBILE;
                let is_mute = self.is_mute && (who, to) == (NEXT, GATEWAY);
                if is_mute || on_link && !self.links[place] || self.off[LICENSED + place] {
                    return;
                }
                if who == MOBILE {
                    let (_, extensions) = Request::parse(&octets).unwrap();
                    let enclosed = Enclosure::all(extensions);
                    let tokens = enclosed.map(|one| Token::decode(one.0).unwrap());
                    self.tokens.extend(tokens);
                }
                let arrival = Arrival {
                    interface: if to == MOBILE { place as u32 } else { 0 },
                    source,
                    destination: *destination.ip(),
                    ttl,
                };
                match to {
                    MOBILE => self.nodes[to].handle_nearby(&arrival, STATION, &octets, self.now),
                    _ => self.nodes[to].handle_registration(&arrival, &octets, self.now),
                }
            }
        }
    }

    /// Lets the mobile node hear the second agent for some milliseconds. The agent gets keys, but
    /// the registration fails.
    fn try_in_vain(&mut self, milliseconds: u64) {
        self.is_mute = true;
        self.links = [false, true];
        self.nodes[MOBILE].handle_link(0, false, self.now);
        self.nodes[MOBILE].handle_link(1, true, self.now);
        self.run_for(millis(milliseconds));
        assert_eq!(self.counters(NEXT).taken, 1, "{:?}", self.events);
        self.links = [true, false];
        self.nodes[MOBILE].handle_link(1, false, self.now);
        self.nodes[MOBILE].handle_link(0, true, self.now);
        self.is_mute = false;
    }

    /// Moves the mobile node from the first agent to the second, until it is registered there.
    fn go_on(&mut self) {
        self.links = [false, true];
        self.nodes[MOBILE].handle_link(0, false, self.now);
        self.nodes[MOBILE].handle_link(1, true, self.now);
        self.collect();
        let since = self.now;
        while self.registered() != Some(CARE_OF[1]) {
            self.run_for(millis(5));
            let taken = self.now.since(since);
            assert!(taken < Duration::from_millis(1500), "{:?}", self.events);
        }
    }

    fn registered(&self) -> Option<Ipv4Addr> {
        match self.nodes[MOBILE].mobile_ip() {
            Some((Status::MobileNode { route, .. }, _)) => route.map(|at| at.care_of),
            other => panic!("{other:?}"),
        }
    }

    /// Returns which agents can open the next packet that an end seals. Each agent sees the packet
    /// once.
    fn readers(&mut self, from: usize) -> [bool; 2] {
        let payload = self.seal(from);
        let (to, side) = match from {
            MOBILE => (GATEWAY, Side::Wireless),
            _ => (MOBILE, Side::Wired),
        };
        let socket = |who| SocketAddr::new(at(who), 4500);
        let packet = datagram::udp(socket(from), socket(to), &payload);
        [LICENSED, NEXT].map(|who| {
            let before = self.nodes[who].transit_counters().segments;
            self.nodes[who].transit(side, &packet, self.now);
            self.nodes[who].transit_counters().segments > before
        })
    }

    fn seal(&mut self, from: usize) -> Vec<u8> {
        self.sequence += 100;
        let (client, server) = ("10.1.0.2:40000", "10.8.0.1:80");
        let segment = match from {
            MOBILE => datagram::tcp(client, server, self.sequence, 1, b"something"),
            _ => datagram::tcp(server, client, self.sequence, 1, b"something"),
        };
        let mut outlet = Outlet::default();
        let mut batch = [Packet::with_capacity(2000)];
        batch[0].fill(&segment);
        self.nodes[from].seal(&mut batch, &mut outlet, self.now);
        let (path, payload) = outlet.transmitted.pop().expect("it is sealed");
        // The other end opens the packet in any case.
        let to = if from == MOBILE { GATEWAY } else { MOBILE };
        let mut packet = Packet::from_slice(&payload);
        packet.path = Some(model::Path::udp(
            path.remote,
            SocketAddr::new(at(from), 4500),
        ));
        let mut outlet = Outlet::default();
        self.nodes[to].open(&mut [packet], &mut outlet, self.now);
        assert_eq!(outlet.delivered, [segment], "{:?}", outlet.dropped);
        payload
    }

    /// Presents a token from the second agent to the first, whether the second was given it or not.
    fn show(&mut self, token: &Token) {
        let sa = self.nodes[NEXT].sa_with("other").unwrap();
        let token = token.clone();
        self.nodes[NEXT].ike.request_keys(sa, token, self.now);
        self.nodes[NEXT].handle_timeout(self.now);
        self.collect();
        self.run_for(millis(100));
    }

    /// Creates a token of the mobile node, changed before it is signed.
    fn token(&self, asker: usize, change: impl Fn(&mut Token)) -> Token {
        let mobile = &self.nodes[MOBILE];
        let (_, child) = mobile.own.licensing.placed().migrating().next().unwrap();
        let csa = mobile.own.licensing.grants().of(child).unwrap();
        let mut spis = [csa.inbound.spi, csa.outbound.spi];
        spis.sort();
        let passed = TIME + self.now.since(Instant::ZERO);
        let mut token = Token {
            spis,
            nonce: [7; 16],
            expiry: NtpTime::from_unix(passed).seconds() + 10,
            zones: vec![ZoneId(1)],
            mac: [0; 16],
            holder: name(LICENSED),
        };
        change(&mut token);
        let key = token_key(csa.tokens.as_ref().unwrap(), &name(LICENSED));
        sign_token(&mut token, &key, &name(asker));
        token
    }

    fn counters(&self, who: usize) -> &MigrationCounters {
        self.nodes[who].migrations()
    }

    /// Asserts that no presented token was served, for these reasons.
    fn assert_refused(&self, why: &[NoKeys]) {
        let counters = self.counters(LICENSED);
        let refused: Vec<_> = counters.refused.keys().copied().collect();
        assert_eq!(refused, why, "{counters:?}");
        assert_eq!(
            self.counters(NEXT).missed,
            counters.refused.values().sum::<u64>()
        );
        assert_eq!((counters.given, self.counters(NEXT).taken), (0, 0));
        assert!(self.nodes[NEXT].held_grants().is_empty());
    }
}

impl Hosts for Quartet {
    type Packet = Flight;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Flight> {
        &mut self.network
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = self.nodes.iter().filter_map(Node::poll_timeout);
        let deadlines = deadlines.map(|deadline| deadline.at);
        deadlines.chain([self.report]).min()
    }

    fn handle_timeout(&mut self) {
        if self.report <= self.now {
            self.report_time();
        }
        for node in &mut self.nodes {
            node.handle_timeout(self.now);
        }
    }

    fn receive(&mut self, Flight { from, to, transmit }: Flight) {
        let path = model::Path::udp(transmit.path.remote, from);
        self.nodes[to].handle_datagram(path, datagram::ike(&transmit), self.now);
    }

    fn collect(&mut self) {
        while let Some(operation) = self.nodes[GATEWAY].poll_store() {
            self.store.submit(operation, UnixTime::default());
            while let Some(outcome) = self.store.poll() {
                self.nodes[GATEWAY].handle_stored(outcome, self.now);
            }
        }
        loop {
            let sent = HOSTS
                .into_iter()
                .find_map(|who| Some((who, self.nodes[who].poll_registration()?)));
            let Some((who, transmit)) = sent else { break };
            self.carry(who, transmit);
        }
        for who in HOSTS {
            while let Some(transmit) = self.nodes[who].poll_transmit() {
                self.depart(who, transmit);
            }
            while let Some(event) = self.nodes[who].poll_event() {
                if let Event::Giving { sa, grant, .. } = &event {
                    self.nodes[who].give(sa.csa, *grant, Ok(()), self.now);
                }
                self.events[who].push(event);
            }
        }
    }
}

#[test]
fn the_next_node_reads_by_the_keys_of_the_one_before_and_then_by_its_own() {
    let mut quartet = Quartet::new();
    let before = quartet.nodes[LICENSED].held_grants();
    quartet.lost.push((GATEWAY, MOBILE, CREATE_CHILD_SA));
    quartet.go_on();
    quartet.run_for(millis(100));
    let held = quartet.nodes[NEXT].held_grants();
    assert_eq!(held.len(), 1, "{:?}", quartet.events);
    assert_eq!(quartet.nodes[NEXT].name(held[0].gateway), "other");
    assert_eq!(held[0].identity, name(LICENSED));
    assert_eq!(
        (held[0].csa, &held[0].zones),
        (before[0].csa, &before[0].zones)
    );
    assert!(!held[0].writes && !held[0].injects);
    for from in [MOBILE, GATEWAY] {
        assert!(quartet.readers(from)[1], "{:?}", quartet.events);
    }
    quartet.lost.clear();
    quartet.run_for(millis(3000));
    for from in [MOBILE, GATEWAY] {
        assert_eq!(quartet.readers(from), [false, true], "{:?}", quartet.events);
    }
    quartet.run_for(millis(3000));
    let held = quartet.nodes[NEXT].held_grants();
    let gateway = quartet.nodes[NEXT].name(held[0].gateway);
    assert_eq!((held.len(), gateway), (1, "gw"));
    assert!(held[0].csa != before[0].csa);
    assert!(quartet.nodes[LICENSED].held_grants().is_empty());
    assert_eq!(
        (
            quartet.counters(LICENSED).given,
            quartet.counters(NEXT).taken
        ),
        (1, 1)
    );
    let given = |event: &Event| matches!(event, Event::TokenGiven { holder, asker, .. } if (holder, asker) == (&name(LICENSED), &name(NEXT)));
    assert!(quartet.events[MOBILE].iter().any(given));
    let handed =
        |event: &Event| matches!(event, Event::KeysHandedOn { node, .. } if *node == name(NEXT));
    assert!(quartet.events[LICENSED].iter().any(handed));
}

/// The tunnel runs to the home address, so nothing of its session depends on the agent.
#[test]
fn a_session_that_was_lost_on_the_way_is_resumed_at_the_next_agent() {
    for way in [Resumption::Tickets, Resumption::Skid3] {
        let mut hosts = HOSTS.map(host);
        for who in [MOBILE, GATEWAY] {
            hosts[who].peers[0].ike.resumption = way;
        }
        let mut quartet = Quartet::with(hosts);
        let before = quartet.nodes[LICENSED].held_grants();
        // The mobile node hears nothing of the gateway until it has given the tunnel up.
        let exchanges = (34..=38).chain(240..=242);
        quartet.lost = exchanges.map(|of| (GATEWAY, MOBILE, of)).collect();
        quartet.go_on();
        let up = |quartet: &Quartet| quartet.nodes[MOBILE].sa_with("gw").is_some();
        for _ in 0..100_000 {
            quartet.run_for(millis(2));
            if !up(&quartet) {
                break;
            }
        }
        assert!(!up(&quartet), "{way:?}");
        quartet.lost.clear();
        quartet.run_for(millis(10_000));
        for who in [MOBILE, GATEWAY] {
            let resumed = |event: &Event| matches!(event, Event::Resumed { .. });
            assert!(quartet.events[who].iter().any(resumed), "{way:?}, {who}");
            assert_eq!(quartet.readers(who), [false, true], "{way:?}, {who}");
        }
        let held = quartet.nodes[NEXT].held_grants();
        assert_eq!(held.len(), 1);
        assert_ne!(held[0].csa, before[0].csa);
        assert!(quartet.nodes[LICENSED].held_grants().is_empty());
    }
}

/// If the new slot fails for any reason, the old one is left in time, and packets outside slots are
/// unreadable.
// Recovers: handover-dkm
// Weakness: S34
#[test]
fn two_seconds_after_the_move_neither_node_reads_if_there_are_no_new_keys() {
    for lost in [
        (GATEWAY, NEXT, KEY_DISTRIBUTE),
        (GATEWAY, MOBILE, CREATE_CHILD_SA),
        (MOBILE, GATEWAY, CREATE_CHILD_SA),
    ] {
        let mut quartet = Quartet::new();
        quartet.lost.push(lost);
        quartet.go_on();
        quartet.run_for(millis(300));
        // An end that distributes no keys uses the slot as soon as it exists.
        let ends = match lost {
            (_, NEXT, _) => &[GATEWAY][..],
            _ => &[GATEWAY, MOBILE],
        };
        for from in ends {
            assert!(quartet.readers(*from)[1], "{lost:?} {:?}", quartet.events);
        }
        quartet.run_for(millis(1700));
        for from in [MOBILE, GATEWAY] {
            assert_eq!(quartet.readers(from), [false, false], "{lost:?}");
        }
        quartet.run_for(millis(500));
        assert!(quartet.nodes[NEXT].held_grants().is_empty(), "{lost:?}");
        quartet.lost.clear();
        quartet.run_for(millis(20_000));
        for from in [MOBILE, GATEWAY] {
            assert_eq!(quartet.readers(from), [false, true], "{lost:?}");
        }
    }
}

/// Later holders of the old keys can open nothing new.
// Recovers: handover-dkm
#[test]
fn if_nothing_comes_of_a_move_there_are_new_keys_all_the_same() {
    let mut quartet = Quartet::new();
    let before = quartet.token(NEXT, |_| {}).spis;
    quartet.try_in_vain(500);
    quartet.lost.push((MOBILE, GATEWAY, CREATE_CHILD_SA));
    quartet.run_for(millis(2100));
    // The mobile node is back at the first agent.
    assert_eq!(quartet.registered(), Some(CARE_OF[0]));
    assert_eq!(quartet.readers(MOBILE), [false, false]);
    quartet.lost.clear();
    quartet.run_for(millis(4000));
    assert!(quartet.token(NEXT, |_| {}).spis != before);
    for from in [MOBILE, GATEWAY] {
        assert_eq!(quartet.readers(from), [true, false]);
    }
}

/// The gateway does not know of the attempt, so the mobile node has to request the rekey before the
/// two seconds end.
// Weakness: S34
#[test]
fn if_nothing_comes_of_a_move_the_new_keys_are_there_in_time() {
    let mut quartet = Quartet::new();
    quartet.try_in_vain(500);
    quartet.run_for(millis(1200));
    assert_eq!(quartet.nodes[NEXT].held_grants().len(), 1, "it has keys");
    assert_eq!(quartet.readers(GATEWAY), [true, false]);
    quartet.run_for(millis(3000));
    for from in [MOBILE, GATEWAY] {
        assert_eq!(quartet.readers(from), [true, false]);
    }
}

/// The keys may be elsewhere since the token was issued. A late move does not extend the time.
// Weakness: S34
#[test]
fn a_move_that_is_late_is_not_sealed_for_the_node_before_for_longer() {
    let mut quartet = Quartet::new();
    quartet.lost.push((GATEWAY, NEXT, KEY_DISTRIBUTE));
    quartet.lost.push((MOBILE, GATEWAY, CREATE_CHILD_SA));
    quartet.try_in_vain(500);
    quartet.run_for(millis(900));
    quartet.go_on();
    quartet.run_for(millis(550));
    assert_eq!(quartet.registered(), Some(CARE_OF[1]));
    assert_eq!(quartet.readers(MOBILE), [false, false]);
}

/// An agent that was visited in the meantime holds the keys of the current slot again.
// Weakness: S34
#[test]
fn who_comes_back_in_time_leaves_the_slot_all_the_same() {
    let mut quartet = Quartet::new();
    quartet.lost.push((GATEWAY, NEXT, KEY_DISTRIBUTE));
    for (from, to) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
        quartet.lost.push((from, to, CREATE_CHILD_SA));
    }
    quartet.go_on();
    quartet.run_for(millis(200));
    assert!(quartet.readers(GATEWAY)[1], "{:?}", quartet.events);
    quartet.links = [true, false];
    quartet.nodes[MOBILE].handle_link(1, false, quartet.now);
    quartet.nodes[MOBILE].handle_link(0, true, quartet.now);
    quartet.run_for(millis(1800));
    assert_eq!(quartet.registered(), Some(CARE_OF[0]));
    for from in [MOBILE, GATEWAY] {
        assert_eq!(quartet.readers(from), [false, false]);
    }
}

/// A further move does not extend the time.
// Weakness: S34
#[test]
fn what_goes_to_and_fro_is_not_sealed_for_the_node_before_for_longer() {
    let mut quartet = Quartet::new();
    quartet.lost.push((GATEWAY, NEXT, KEY_DISTRIBUTE));
    quartet.go_on();
    quartet.links = [false, false];
    quartet.nodes[MOBILE].handle_link(1, false, quartet.now);
    quartet.run_for(millis(1000));
    quartet.links = [false, true];
    quartet.nodes[MOBILE].handle_link(1, true, quartet.now);
    quartet.run_for(millis(1005));
    assert_eq!(quartet.readers(MOBILE), [false, false]);
}

#[test]
fn without_the_node_before_there_is_a_delay_and_nothing_else() {
    for lost in [None, Some((LICENSED, NEXT, KEY_REQUEST))] {
        let mut quartet = Quartet::new();
        quartet.off[LICENSED] = lost.is_none();
        quartet.lost.extend(lost);
        quartet.go_on();
        quartet.run_for(millis(200));
        // A packet on the new slot shows the mobile node that the gateway has it.
        quartet.readers(GATEWAY);
        quartet.run_for(millis(5));
        for from in [MOBILE, GATEWAY] {
            assert_eq!(quartet.readers(from), [false, true], "{:?}", quartet.events);
        }
        assert_eq!(quartet.counters(NEXT).taken, 0);
        let held = quartet.nodes[NEXT].held_grants();
        let gateway = quartet.nodes[NEXT].id("gw").unwrap();
        assert!(held.iter().all(|held| held.gateway == gateway));
    }
}

// Refuses: handover-dkm
// Weakness: S33
#[test]
fn a_token_is_good_once() {
    let mut quartet = Quartet::new();
    quartet.go_on();
    quartet.run_for(millis(100));
    let [token] = &quartet.tokens[..] else {
        panic!("{:?}", quartet.tokens)
    };
    let token = token.clone();
    quartet.show(&token);
    quartet.show(&token);
    let counters = quartet.counters(LICENSED);
    assert_eq!((counters.given, counters.refused[&NoKeys::Used]), (1, 2));
    assert_eq!(
        (quartet.counters(NEXT).taken, quartet.counters(NEXT).missed),
        (1, 2)
    );
}

// Refuses: handover-dkm
// Weakness: S33
#[test]
fn a_token_that_the_mobile_node_has_not_made_is_good_for_nothing() {
    let changes: [fn(&mut Token); 5] = [
        |token| token.mac[0] ^= 1,
        |token| token.nonce[0] ^= 1,
        |token| token.expiry += 1,
        |token| token.zones.push(ZoneId(2)),
        |token| token.holder = name(NEXT),
    ];
    let mut quartet = Quartet::new();
    for change in changes {
        let mut token = quartet.token(NEXT, |_| {});
        change(&mut token);
        quartet.show(&token);
    }
    quartet.assert_refused(&[NoKeys::Wrong]);
    // Control: without the changes the token is valid.
    let token = quartet.token(NEXT, |_| {});
    quartet.show(&token);
    assert_eq!(quartet.counters(LICENSED).given, 1);
}

// Refuses: handover-dkm
// Weakness: S33
#[test]
fn a_token_for_another_node_is_of_no_use_to_who_has_it() {
    let mut quartet = Quartet::new();
    for asker in [MOBILE, GATEWAY, LICENSED] {
        let token = quartet.token(asker, |token| token.nonce[0] = asker as u8);
        quartet.show(&token);
    }
    quartet.assert_refused(&[NoKeys::Wrong]);
}

// Refuses: handover-dkm
// Weakness: S33
#[test]
fn a_token_is_good_for_some_seconds_by_clocks_that_differ_by_some() {
    for (ahead, is_good) in [(0, true), (9, true), (12, false)] {
        let mut quartet = Quartet::new();
        quartet.ahead[LICENSED] = Duration::from_secs(ahead);
        quartet.run_for(millis(5));
        let token = quartet.token(NEXT, |_| {});
        quartet.show(&token);
        match is_good {
            true => assert_eq!(quartet.counters(LICENSED).given, 1, "{ahead}"),
            false => quartet.assert_refused(&[NoKeys::Stale]),
        }
    }
    // A wrong clock cannot create a token without expiry.
    let mut quartet = Quartet::new();
    let token = quartet.token(NEXT, |token| token.expiry += 60);
    quartet.show(&token);
    quartet.assert_refused(&[NoKeys::Stale]);
}

// Refuses: handover-dkm
// Weakness: S33
#[test]
fn a_node_gives_nothing_that_it_does_not_hold() {
    let mut quartet = Quartet::new();
    let token = quartet.token(NEXT, |token| token.spis = [Spi(256), Spi(257)]);
    quartet.show(&token);
    let token = quartet.token(NEXT, |_| {});
    let now = quartet.now;
    quartet.nodes[MOBILE].down("gw", now).unwrap();
    quartet.run_for(millis(1000));
    assert!(quartet.nodes[LICENSED].held_grants().is_empty());
    quartet.show(&token);
    quartet.assert_refused(&[NoKeys::Unknown]);
}

/// A rekeyed slot needs new tokens.
// Refuses: handover-dkm
// Weakness: S33
#[test]
fn a_token_of_before_is_of_no_use_for_new_keys() {
    let mut quartet = Quartet::new();
    let token = quartet.token(NEXT, |_| {});
    let now = quartet.now;
    quartet.nodes[MOBILE]
        .rekey("gw", crate::Rekey::Children, now)
        .unwrap();
    quartet.run_for(millis(3000));
    let spis = quartet.token(NEXT, |_| {}).spis;
    assert!(spis != token.spis, "there are no new keys");
    let old = Token { spis, ..token };
    quartet.show(&old);
    quartet.assert_refused(&[NoKeys::Wrong]);
}

// Refuses: handover-dkm
// Weakness: S35
#[test]
fn a_node_that_one_end_does_not_license_gets_no_keys_from_another() {
    let mut hosts = HOSTS.map(host);
    hosts[GATEWAY] = with_places(host(GATEWAY), &[LICENSED]);
    let mut quartet = Quartet::with(hosts);
    // No other node has a slot here, so the agent accepts no tokens.
    quartet.go_on();
    quartet.run_for(millis(300));
    quartet.assert_refused(&[NoKeys::Unknown]);
    let mut hosts = HOSTS.map(host);
    hosts[MOBILE] = with_places(host(MOBILE), &[LICENSED]);
    let mut quartet = Quartet::with(hosts);
    quartet.go_on();
    quartet.run_for(millis(300));
    assert!(quartet.tokens.is_empty());
    quartet.assert_refused(&[]);
    for from in [MOBILE, GATEWAY] {
        assert!(!quartet.readers(from)[1]);
    }
}

/// A licence to write does not entitle a node to keys from another one.
// Weakness: S35
#[test]
fn a_node_that_both_ends_license_for_another_zone_gets_none_of_these() {
    let mut hosts = HOSTS.map(host);
    let payload = |zones: &mut ZonePolicy| {
        let licences = zones.licences.iter_mut();
        let fb = licences.filter(|licence| licence.node == name(NEXT));
        fb.for_each(|licence| {
            *licence = Licence {
                right: Right::Write,
                ..licence.clone()
            }
        });
    };
    payload(&mut hosts[GATEWAY].peers[0].ike.slots[1].zones);
    let mut quartet = Quartet::with(hosts);
    let token = quartet.token(NEXT, |_| {});
    quartet.show(&token);
    quartet.assert_refused(&[NoKeys::Unknown]);
}

/// A token gives keys only for the zones that it names.
#[test]
fn a_token_for_another_zone_gives_none_of_these() {
    let mut quartet = Quartet::new();
    let token = quartet.token(NEXT, |token| token.zones = vec![ZoneId(2)]);
    quartet.show(&token);
    quartet.assert_refused(&[NoKeys::NotLicensed]);
}

/// The slot is spent because its keys were handed on, but no node needs new keys for it.
#[test]
fn a_slot_that_is_left_has_no_new_keys() {
    let mut quartet = Quartet::new();
    let slot = host(MOBILE).peers[0].ike.slots[0].name.clone();
    let spis = |quartet: &Quartet| {
        let peers = quartet.nodes[MOBILE].peers();
        let children = peers.into_iter().flat_map(|peer| peer.children);
        let of_slot = children.filter(|child| child.name.as_ref() == Some(&slot));
        of_slot.map(|child| child.inbound).collect::<Vec<_>>()
    };
    let before = spis(&quartet);
    assert_eq!(before.len(), 1);
    quartet.go_on();
    for _ in 0..500 {
        let now = spis(&quartet);
        assert!(now.is_empty() || now == before, "{now:?}");
        quartet.run_for(millis(20));
    }
    assert!(spis(&quartet).is_empty());
}

#[test]
fn with_a_record_of_who_may_read_a_token_leaves_when_that_is_written() {
    let mut quartet = Quartet::new();
    let now = quartet.now;
    quartet.nodes[MOBILE].set_recording(true, now);
    quartet.go_on();
    quartet.run_for(millis(3000));
    let recorded = |event: &&Event| matches!(event, Event::Giving { node, grant: 0, .. } if *node == name(NEXT));
    assert_eq!(quartet.events[MOBILE].iter().filter(recorded).count(), 1);
}

/// Stations on the link cannot trigger requests, or only a few.
// Weakness: S33
// Weakness: S36
#[test]
fn what_visitors_give_an_agent_that_is_no_token_of_a_neighbours_is_counted_and_no_more() {
    let mut quartet = Quartet::new();
    let strange = quartet.token(NEXT, |token| token.holder = NAMES[GATEWAY].parse().unwrap());
    let octets = strange.encode();
    let now = quartet.now;
    for octets in [&[1, 2, 3][..], &octets] {
        show(&mut quartet, Some(STATION), octets, now);
    }
    assert_eq!(quartet.counters(NEXT).missed, 2);
}

/// Nor can they exhaust the memory with tokens that trigger no request or would be valid for years.
// Weakness: S36
#[test]
fn tokens_of_strangers_leave_room_for_those_of_mobile_nodes() {
    let mut quartet = Quartet::new();
    let now = quartet.now;
    for number in 0..300_u16 {
        let strange = quartet.token(NEXT, |token| {
            token.nonce[..2].copy_from_slice(&number.to_be_bytes());
            match number % 2 {
                0 => token.holder = NAMES[GATEWAY].parse().unwrap(),
                _ => token.expiry = token.expiry.wrapping_add(1 << 30),
            }
        });
        show(&mut quartet, Some(STATION), &strange.encode(), now);
    }
    assert_eq!(quartet.counters(NEXT).missed, 300);
    quartet.go_on();
    quartet.run_for(millis(1000));
    assert_eq!(quartet.counters(NEXT).taken, 1);
}

/// Gives octets of a visitor to the next node.
fn show(quartet: &mut Quartet, station: Option<Station>, octets: &[u8], now: Instant) {
    quartet.nodes[NEXT].turn(now, |own, turn| {
        let migration = own.licensing.migration();
        migration.show(station, octets, &own.tunnels, turn);
    });
}

/// Presents tokens that name a neighbour but were not issued for this node.
fn show_forged(quartet: &mut Quartet, numbers: std::ops::Range<u16>, station: fn(u16) -> Station) {
    let now = quartet.now;
    for number in numbers {
        let [high, low] = number.to_be_bytes();
        let forged = quartet.token(GATEWAY, |token| {
            token.nonce[..2].copy_from_slice(&[high, low])
        });
        let station = Some(station(number));
        show(quartet, station, &forged.encode(), now);
    }
}

// Weakness: 113
#[test]
fn a_station_has_a_neighbour_asked_for_a_few_tokens_and_no_more() {
    let mut quartet = Quartet::new();
    for number in 0..20 {
        show_forged(&mut quartet, number..number + 1, |_| Station([6; 6]));
        quartet.run_for(millis(50));
    }
    // Refusals do not raise the limit.
    assert_eq!(quartet.counters(LICENSED).refused[&NoKeys::Wrong], 8);
    assert_eq!(quartet.counters(NEXT).missed, 20);
    quartet.go_on();
    quartet.run_for(millis(1000));
    assert_eq!(quartet.counters(NEXT).taken, 1);
}

/// The tokens fill the whole memory.
// Weakness: 113
#[test]
fn tokens_that_were_refused_make_room_for_those_of_mobile_nodes() {
    let mut quartet = Quartet::new();
    show_forged(&mut quartet, 0..300, |number| {
        let [high, low] = number.to_be_bytes();
        Station([6, 0, 0, 0, high, low])
    });
    quartet.run_for(millis(500));
    assert_eq!(quartet.counters(NEXT).missed, 300);
    quartet.go_on();
    quartet.run_for(millis(1000));
    assert_eq!(quartet.counters(NEXT).taken, 1);
}

/// A holder of a slot's keys can create any number of tokens, and a neighbour can present all of
/// them.
// Weakness: 125
#[test]
fn tokens_of_one_slot_without_end_leave_another_slot_its_places() {
    let mut quartet = Quartet::new();
    let (now, spis) = (quartet.now, [Spi(0x6000), Spi(0x7000)]);
    let anothers = quartet.token(NEXT, |token| (token.nonce, token.spis) = ([8; 16], spis));
    let ask = |node: &mut Node, token: &Token| {
        let sa = node.sa_with("other").unwrap();
        node.turn(now, |own, turn| {
            let migration = own.licensing.migration();
            migration.keys_asked(sa, name(NEXT), token, &own.transit, turn);
        });
        let counters = node.migrations();
        let count = |why| counters.refused.get(&why).copied().unwrap_or_default();
        (counters.given, count(NoKeys::Busy), count(NoKeys::Used))
    };
    for number in 0..300_u16 {
        let token = quartet.token(NEXT, |token| {
            token.nonce[..2].copy_from_slice(&number.to_be_bytes());
        });
        ask(&mut quartet.nodes[LICENSED], &token);
    }
    let node = &mut quartet.nodes[LICENSED];
    let first = node.held_grants().remove(0);
    let mut own = [first.from_gateway, first.to_gateway];
    own.sort();
    let (_, grant) = node.own.transit.onward(own).next().unwrap();
    let mut grant = grant.clone();
    (grant.csa, grant.line) = (CsaId(66), CsaId(66));
    (grant.from_gateway.spi, grant.to_gateway.spi) = (spis[0], spis[1]);
    let (sa, gateway) = (node.sa_with("gw").unwrap(), node.id("gw").unwrap());
    let installed = node
        .own
        .transit
        .install(sa, gateway, name(GATEWAY), grant, now);
    assert!(installed.is_ok());
    assert_eq!(ask(node, &anothers), (9, 292, 0));
    assert_eq!(ask(node, &anothers), (9, 292, 1));
}

/// A token that is recorded after the agent has answered does not leave. It is not reported as
/// given, and the slot does not have to be left.
#[test]
fn a_token_that_is_recorded_too_late_is_given_to_nobody() {
    let counted = |quartet: &Quartet| {
        let count =
            |is_it: fn(&&Event) -> bool| quartet.events[MOBILE].iter().filter(is_it).count();
        let given = |event: &&Event| matches!(event, Event::TokenGiven { .. });
        (count(|event| event.is_of_token()), count(given))
    };
    let recording = || {
        let mut quartet = Quartet::new();
        let now = quartet.now;
        quartet.nodes[MOBILE].set_recording(true, now);
        quartet
    };
    // Registrations are answered at once here, before the events are processed.
    let mut quartet = recording();
    quartet.go_on();
    quartet.run_for(millis(3000));
    assert_eq!(counted(&quartet), (1, 0));
    // Control: a request that is retransmitted carries the token.
    let mut quartet = recording();
    quartet.try_in_vain(1500);
    assert_eq!(counted(&quartet), (1, 1));
}
