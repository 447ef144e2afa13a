//! Three hosts, one in each role of Mobile IPv4. All messages arrive at once.

use super::world::{Hosts, LICENSED, Network, Policies, config};
use crate::mobile_ip::{
    Arrival, Association, Config as Part, Event as Told, ForeignAgentConfig, HomeAgentConfig,
    Lifetime, MobileEvent, MobileNodeConfig, NtpTime, Replay, Station, Status, Transmit,
};
use crate::{Config, Event, Node};
use crypto::Secret;
use model::{Instant, TrafficSelector};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

const HOME: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 7);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const AGENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

/// Link-layer address of every station on a link.
const STATION: Station = Station([2, 0, 0, 0, 0, 1]);
const MOBILE: usize = 0;
const FOREIGN: usize = 1;
const STANDING_IN: usize = 2;

struct Trio {
    nodes: [Node; 3],
    events: [Vec<Told>; 3],
    now: Instant,
    network: Network<Sent>,
    /// Time at which the systems report the time of day next.
    report: Instant,
}

/// A message, and the host that sent it.
struct Sent {
    by: usize,
    transmit: Transmit,
}

fn key(octet: u8) -> Association {
    Association {
        spi: 4097,
        algorithm: crate::mobile_ip::Algorithm::HmacSha256,
        key: Secret::new(vec![octet; 32]),
        replay: Replay::TIMESTAMPS,
    }
}

fn node(part: Option<Part>, seed: u8, now: Instant) -> Node {
    let config = Config {
        peers: Vec::new(),
        start: Vec::new(),
        mobile_ip: part,
        ..config(LICENSED, &Policies::default())
    };
    Node::new(config, [seed; 32], now)
}

impl Trio {
    /// Creates the hosts with the keys of mobile node and home agent, and with the difference of
    /// their clocks.
    fn new(keys: [u8; 2], apart: Duration) -> Self {
        let now = Instant::from_origin(Duration::from_secs(1000));
        let mobile = Part::MobileNode(MobileNodeConfig {
            home: HOME,
            home_agent: HOME_AGENT,
            key: key(keys[0]),
            agent_keys: BTreeMap::new(),
            interfaces: vec![0],
            lifetime: Lifetime(300),
            simultaneous: false,
        });
        let foreign = Part::ForeignAgent(ForeignAgentConfig::new(0, AGENT));
        let home = Part::HomeAgent(HomeAgentConfig::new(
            HOME_AGENT,
            BTreeMap::from([(HOME, key(keys[1]))]),
        ));
        let mut nodes = [mobile, foreign, home].map(|part| node(Some(part), 7, now));
        let time = NtpTime::from_unix(Duration::from_secs(1_800_000_000));
        nodes[STANDING_IN].set_time_of_day(time, now);
        nodes[MOBILE].set_time_of_day(time.plus(apart), now);
        Self {
            nodes,
            events: [Vec::new(), Vec::new(), Vec::new()],
            now,
            network: Network::default(),
            report: now + Duration::from_millis(100),
        }
    }

    fn report_time(&mut self) {
        let time = NtpTime::from_unix(Duration::from_secs(1_800_000_000));
        let passed = self
            .now
            .since(Instant::from_origin(Duration::from_secs(1000)));
        for who in [MOBILE, STANDING_IN] {
            self.nodes[who].set_time_of_day(time.plus(passed), self.now);
        }
        self.report = self.now + Duration::from_millis(100);
    }

    fn registrations(&self) -> usize {
        match self.nodes[MOBILE].mobile_ip() {
            Some((Status::MobileNode { registrations, .. }, _)) => registrations.len(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the number of accepted registrations of a host, and the codes of denied ones.
    fn counted(&self, who: usize) -> (u64, Vec<u8>) {
        let (accepted, denied) = self.nodes[who].registrations().unwrap();
        (accepted, denied.map(|(code, _)| code).collect())
    }

    fn refusal(&self, who: usize) -> String {
        let (_, refusal) = self.nodes[who].mobile_ip().unwrap();
        refusal.map_or(String::new(), |refused| refused.why.to_string())
    }
}

impl Hosts for Trio {
    type Packet = Sent;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Sent> {
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

    fn receive(&mut self, sent: Sent) {
        match sent.transmit {
            Transmit::Icmp { octets, .. } => {
                let (to, from) = if sent.by == MOBILE {
                    (FOREIGN, HOME)
                } else {
                    (MOBILE, AGENT)
                };
                self.nodes[to].handle_discovery(0, from, STATION, &octets, self.now);
            }
            Transmit::Udp {
                source,
                destination,
                ttl,
                octets,
                ..
            } => {
                let arrival = Arrival {
                    interface: 0,
                    source,
                    destination: *destination.ip(),
                    ttl,
                };
                let to = [HOME, AGENT, HOME_AGENT]
                    .iter()
                    .position(|address| address == destination.ip())
                    .unwrap();
                match to {
                    MOBILE => self.nodes[to].handle_nearby(&arrival, STATION, &octets, self.now),
                    _ => self.nodes[to].handle_registration(&arrival, &octets, self.now),
                }
            }
        }
    }

    fn collect(&mut self) {
        for (who, node) in self.nodes.iter_mut().enumerate() {
            while let Some(transmit) = node.poll_registration() {
                self.network.deliver(Sent { by: who, transmit }, self.now);
            }
            while let Some(event) = node.poll_event() {
                if let Event::MobileIp(event) = event {
                    self.events[who].push(event);
                }
            }
        }
    }
}

#[test]
fn three_hosts_agree_where_one_of_them_is() {
    let mut trio = Trio::new([1, 1], Duration::ZERO);
    trio.run_for(Duration::from_secs(3));
    assert_eq!(trio.registrations(), 1);
    let Some((Status::ForeignAgent { visitors, .. }, None)) = trio.nodes[FOREIGN].mobile_ip()
    else {
        panic!("{:?}", trio.nodes[FOREIGN].mobile_ip());
    };
    assert_eq!(visitors[0].visitor.home, HOME);
    let Some((Status::HomeAgent { homes, .. }, None)) = trio.nodes[STANDING_IN].mobile_ip() else {
        panic!("{:?}", trio.nodes[STANDING_IN].mobile_ip());
    };
    assert_eq!((homes[0].0, homes[0].1[0].care_of), (HOME, AGENT));
    for who in [MOBILE, FOREIGN, STANDING_IN] {
        assert_eq!(trio.counted(who).0, 1, "{who}");
    }
    trio.run_for(Duration::from_secs(600));
    let is_renewal = |told: &&Told| matches!(told, Told::MobileNode(MobileEvent::Renewed(_)));
    assert!(trio.events[MOBILE].iter().filter(is_renewal).count() >= 2);
    assert!(trio.nodes[MOBILE].deregister(trio.now));
    trio.run_for(Duration::from_secs(2));
    let done = Told::MobileNode(MobileEvent::Deregistered { confirmed: true });
    assert!(trio.events[MOBILE].contains(&done));
    assert_eq!(trio.registrations(), 0);
}

/// The mobile node's clock is an hour slow, and the system keeps reporting that time.
#[test]
fn a_mobile_node_believes_its_home_agent_rather_than_its_own_clock() {
    let mut trio = Trio::new([1, 1], Duration::from_secs(3600));
    trio.run_for(Duration::from_secs(20));
    assert_eq!(trio.registrations(), 1, "{:?}", trio.events);
    assert!(trio.refusal(STANDING_IN).contains("fresh"));
}

// Refuses: mobile-ip
#[test]
fn who_has_another_key_is_denied_and_each_end_can_say_why() {
    let mut trio = Trio::new([1, 2], Duration::ZERO);
    trio.run_for(Duration::from_secs(60));
    assert_eq!(trio.registrations(), 0);
    assert_eq!(trio.counted(STANDING_IN), (0, vec![131]));
    let why = "could not authenticate the mobile node";
    assert!(trio.refusal(STANDING_IN).contains(why));
    assert!(trio.refusal(MOBILE).contains("failed to authenticate"));
    let refused = |told: &&Told| matches!(told, Told::Refused(_));
    assert!(trio.events[MOBILE].iter().any(|told| refused(&told)));
    let (_, refused) = trio.nodes[STANDING_IN].mobile_ip().unwrap();
    let from = refused.and_then(|refused| refused.from);
    assert_eq!(from.map(|from| from.ip()), Some(AGENT.into()), "it relays");
}

#[test]
fn who_takes_no_part_in_it_takes_nothing_and_waits_for_nothing() {
    let now = Instant::from_origin(Duration::from_secs(1000));
    let mut node = node(None, 1, now);
    node.handle_discovery(0, AGENT, STATION, &[9; 40], now);
    node.encapsulate(&[0x45; 40], |_| panic!("there is no tunnel"), now);
    assert!(!node.deregister(now));
    assert!(node.mobile_ip().is_none() && node.poll_registration().is_none());
    assert!(node.registrations().is_none());
    assert_eq!(node.mobile_ip_drops().count(), 0);
}

/// Packets to such an address are the host's own. They would be delivered to a visitor with that
/// home address.
// Weakness: 112
#[test]
fn nobody_visits_who_has_the_address_of_a_peer_or_one_that_the_host_needs() {
    let peer = |address: Ipv4Addr| {
        let mut config = config(LICENSED, &Policies::default());
        config.peers[0].ike.address = Some(address.into());
        config
    };
    let network = |address: Ipv4Addr| TrafficSelector::from_prefix(address.into(), 24);
    for (address, reserved, visits) in [
        (HOME, HOME_AGENT, 0),
        (HOME_AGENT, HOME, 0),
        (HOME_AGENT, HOME_AGENT, 1),
    ] {
        let mut trio = Trio::new([1, 1], Duration::ZERO);
        let now = trio.now;
        let agent = &mut trio.nodes[FOREIGN];
        agent.set_reserved(vec![network(reserved).unwrap()], now);
        agent.reconfigure(peer(address), now);
        trio.run_for(Duration::from_secs(3));
        assert_eq!(trio.registrations(), visits, "{address} {reserved}");
    }
}
